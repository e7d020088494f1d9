"""What the store holds about a brand's own manifest, its older entries included."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Select, make_url, select

from index.brand_manifest import WELL_KNOWN_PATH, brand_origin
from index.documents import DocumentState
from index.endorsement import OlderState
from index.records import Problem
from index.store.documents import document_id, load_state, origin_id
from index.store.snapshots import load_snapshot
from index.store.tables import copy_key, documents, entries, origins, storable, versions

_MOST_STATES = 100


@dataclass(frozen=True, slots=True)
class StoredManifest:
    """A brand's manifest as the last look left it; `body` is None where no copy of it is kept."""

    origin: str
    allowlisted: bool
    state: DocumentState | None = None
    body: bytes | None = None
    problems: tuple[Problem, ...] = ()
    older: tuple[OlderState, ...] = ()

    @property
    def url(self) -> str:
        return self.origin + WELL_KNOWN_PATH

    @property
    def private(self) -> bool:
        """Tell whether its publisher forbids to serve it on (RFC 9111 5.2.2.7)."""
        return any(problem.code == "manifest.private" for problem in self.problems)


def manifest_of_brand(
    connection: Connection, brand: str, overridden: Sequence[str], identifier: str | None
) -> StoredManifest:
    """Give a brand's manifest, with the older states of its entry of this identifier."""
    origin = brand_origin(brand, _origins_on(connection, brand), overridden)
    active = connection.execute(select(origins.c.active).where(origins.c.id == origin_id(origin))).scalar()
    url = origin + WELL_KNOWN_PATH
    state = load_state(connection, url) if active else None
    if state is None:
        return StoredManifest(origin, bool(active))
    # A body that the entries don't reflect was not read yet, so nobody knows whether it is valid.
    digest = state.digest if state.digest == state.applied_digest else None
    return StoredManifest(
        origin,
        True,
        state,
        None if digest is None else load_snapshot(connection, digest),
        tuple(_problems(connection, document_id(url))),
        tuple(_older(connection, url, identifier or "")),
    )


def has_database(url: str) -> bool:
    """Tell whether there may be something to look into; an embedded database that is not there is not made for it."""
    parsed = make_url(url)
    return parsed.get_backend_name() != "sqlite" or Path(parsed.database or "").is_file()


def states_of_entry(connection: Connection, manifest_url: str, identifier: str) -> tuple[OlderState, ...]:
    """Give the states that a manifest's entry of an identifier had, and the one that was seen last."""
    query: Select[Any] = (
        select(entries.c.raw, entries.c.changed_at, documents.c.confirmed_at)
        .join(documents, documents.c.id == entries.c.document_id)
        .where(entries.c.document_id == document_id(manifest_url), entries.c.key == storable(identifier))
    )
    latest = (
        OlderState(row.raw, row.changed_at, row.confirmed_at)
        for row in connection.execute(query)
        if row.confirmed_at is not None
    )
    return (*latest, *_older(connection, manifest_url, identifier))


def _origins_on(connection: Connection, host: str) -> Iterator[str]:
    """Name the active origins on a host, whatever their scheme and port; asks only once somebody looks."""
    starts = [origins.c.origin.startswith(f"{scheme}://{host}", autoescape=True) for scheme in ("https", "http")]
    query = select(origins.c.origin).where(starts[0] | starts[1], origins.c.active).order_by(origins.c.origin.desc())
    yield from connection.execute(query).scalars()


def _problems(connection: Connection, document: int) -> Iterator[Problem]:
    """Give the problems of a document and of all its entries."""
    of_document = select(documents.c.problems).where(documents.c.id == document)
    of_entries = select(entries.c.problems).where(entries.c.document_id == document).order_by(entries.c.position)
    for query in (of_document, of_entries):
        for found in connection.execute(query).scalars():
            yield from (Problem(**problem) for problem in found)


def _older(connection: Connection, url: str, identifier: str) -> Iterator[OlderState]:
    """Give the states that the manifest's entry of an identifier had, the last ones of them."""
    query: Select[Any] = (
        select(versions)
        .where(versions.c.subject == copy_key(url, identifier), versions.c.kind == "entry")
        .order_by(versions.c.id.desc())
        .limit(_MOST_STATES)
    )
    for row in connection.execute(query):
        yield OlderState(row.content, row.first_seen_at, row.last_seen_at, row.replaced_at)
