"""What stands beside entries and search results: freshness, provenance, drift and artifact, a page at once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, func, select

from index.store.drift_reads import OpenDrift, open_counts
from index.store.engines import chunks
from index.store.search import Hit, Question, StoredEntry, retrieve, search
from index.store.tables import artifacts, documents, entries, listings


@dataclass(frozen=True, slots=True)
class SeenDocument:
    """What freshness is judged by."""

    url: str
    mechanism: str
    outcome: str | None
    reason: str
    status: int | None
    attempted_at: datetime | None
    confirmed_at: datetime | None
    fresh_until: datetime | None
    next_fetch_at: datetime | None
    failing_since: datetime | None
    absent_since: datetime | None
    digest: str | None


@dataclass(frozen=True, slots=True)
class SeenCard:
    """What a card turned out to be."""

    kind: str
    shape: str
    normal: Mapping[str, Any]
    signatures: Sequence[Mapping[str, Any]] | None


@dataclass(frozen=True, slots=True)
class Annotation:
    """What we know of a listing beside its entry.

    `trust` is how its trust manifest relates to its publisher, `decision` whether its artifact is read.
    """

    digest: str
    publisher: str
    trust: str | None
    document: SeenDocument | None
    drift: OpenDrift | None
    decision: str | None
    card: SeenCard | None
    card_document: SeenDocument | None


_SEEN = tuple(item.name for item in fields(SeenDocument))
_CARD = tuple(item.name for item in fields(SeenCard))
# How many columns of a listing and its entry stand before those of the documents.
_OWN = 5
# An inline artifact has no document of its own: what is known of it is what is known of its catalog.
_card_documents = documents.alias("card_documents")


def annotations_of(connection: Connection, identifiers: Sequence[str]) -> dict[str, Annotation]:
    """Give what is known of listings, in three statements for a page of them."""
    drift = open_counts(connection, identifiers)
    found: dict[str, Annotation] = {}
    for chunk in chunks(identifiers):
        for row in connection.execute(_statement(chunk)):
            found[row.identifier] = _annotation(row, drift.get(row.identifier))
    return found


def _statement(identifiers: Iterable[str]) -> Select[Any]:
    source = func.coalesce(artifacts.c.document_id, entries.c.artifact_id)
    return (
        select(
            listings.c.identifier,
            listings.c.digest,
            listings.c.publisher,
            entries.c.derived,
            entries.c.artifact_decision,
            *(documents.c[name] for name in _SEEN),
            *(artifacts.c[name] for name in _CARD),
            *(_card_documents.c[name] for name in _SEEN),
        )
        .outerjoin(documents, documents.c.id == listings.c.document_id)
        .outerjoin(entries, entries.c.id == listings.c.entry_id)
        .outerjoin(artifacts, artifacts.c.id == entries.c.artifact_id)
        .outerjoin(_card_documents, _card_documents.c.id == source)
        .where(listings.c.identifier.in_(list(identifiers)))
    )


def _annotation(row: Row[Any], drift: OpenDrift | None) -> Annotation:
    seen = len(_SEEN)
    document, card, card_document = row[_OWN : _OWN + seen], row[_OWN + seen : -seen], row[-seen:]
    return Annotation(
        row.digest,
        row.publisher,
        (row.derived or {}).get("trust"),
        SeenDocument(*document) if document[0] is not None else None,
        drift,
        row.artifact_decision,
        SeenCard(*card) if card[0] is not None else None,
        SeenDocument(*card_document) if card_document[0] is not None else None,
    )


@dataclass(frozen=True, slots=True)
class AnnotatedPage:
    """One page of hits with what is known of each; `after` continues it."""

    hits: list[tuple[Hit, Annotation]]
    after: tuple[int, str] | None


def annotated_search(
    connection: Connection, question: Question, size: int, after: tuple[int, str] | None
) -> AnnotatedPage:
    """Search, and read what stands beside the hits of the page."""
    page = search(connection, question, size, after)
    if not page.hits:
        return AnnotatedPage([], page.after)
    found = annotations_of(connection, [hit.identifier for hit in page.hits])
    return AnnotatedPage([(hit, found[hit.identifier]) for hit in page.hits], page.after)


def annotated_entry(connection: Connection, identifier: str) -> tuple[StoredEntry, Annotation] | None:
    """Give one listing by its exact identifier, with what stands beside it."""
    stored = retrieve(connection, identifier)
    return None if stored is None else (stored, annotations_of(connection, [identifier])[identifier])
