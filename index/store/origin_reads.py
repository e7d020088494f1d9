"""What is known of origins: a page of them, and everything a publisher may want to know about one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Row, Select, func, select

from index.records import Mechanism
from index.store.documents import origin_id
from index.store.drift_reads import ArtifactState, DriftFilter, artifacts_of, count_drifts, list_drifts
from index.store.frontier import counted_origins
from index.store.tables import artifacts, documents, entries, leads, origins

StoredRow = Row[Any]
# Where an origin keeps cards of its own, which no entry has to name.
_OWN_CARDS = (
    Mechanism.AGENT_CARD,
    Mechanism.LEGACY_CARD,
    Mechanism.SERVER_CARD,
    Mechanism.AGENT_DISCOVERY,
    Mechanism.CONSTELLATION,
    Mechanism.TRUST_ANCHOR,
    Mechanism.KEY_SET,
)


def page_of_origins(connection: Connection, limit: int, after: str | None = None) -> Sequence[StoredRow]:
    """Give origins by name, with the number of their documents and listings; `after` is the last name before."""
    query = counted_origins().limit(limit)
    if after is not None:
        query = query.where(origins.c.origin > after)
    return connection.execute(query).all()


@dataclass(frozen=True, slots=True)
class EntryArtifact:
    """What became of the artifact of an entry; `identifier` is None for a card that no entry names."""

    identifier: str | None
    state: ArtifactState


@dataclass(frozen=True, slots=True)
class OriginPage:
    """An origin with the beginnings of its lists; `counts` has how long each of them is."""

    origin: StoredRow
    documents: Sequence[StoredRow]
    not_listed: Sequence[StoredRow]
    leads: Sequence[StoredRow]
    artifacts: Sequence[EntryArtifact]
    drift: Sequence[StoredRow]
    counts: Mapping[str, int] = field(default_factory=dict)


def origin_page(connection: Connection, origin: str, limit: int) -> OriginPage | None:
    """Give what is known of an origin, at most so many rows of each kind; None when it is not known."""
    key = origin_id(origin)
    row = connection.execute(select(origins).where(origins.c.id == key)).first()
    if row is None:
        return None
    watched: Select[Any] = select(documents).where(documents.c.origin_id == key)
    missing: Select[Any] = (
        select(entries, documents.c.url)
        .join(documents, documents.c.id == entries.c.document_id)
        .where(documents.c.origin_id == key, entries.c.state != "listed")
    )
    led: Select[Any] = (
        select(leads, documents.c.url.label("source"))
        .join(documents, documents.c.id == leads.c.document_id)
        .where(documents.c.origin_id == key)
    )
    pointing: Select[Any] = (
        select(entries.c.id, entries.c.key)
        .join(documents, documents.c.id == entries.c.document_id)
        .where(documents.c.origin_id == key, entries.c.artifact_decision.is_not(None))
    )
    own = _own_cards(connection, key)
    found = connection.execute(pointing.order_by(documents.c.rank, documents.c.url, entries.c.position).limit(limit))
    wanted = DriftFilter("open", origin=origin)
    return OriginPage(
        origin=row,
        documents=connection.execute(watched.order_by(documents.c.rank, documents.c.url).limit(limit)).all(),
        not_listed=connection.execute(missing.order_by(documents.c.url, entries.c.position).limit(limit)).all(),
        leads=connection.execute(led.order_by(documents.c.url, leads.c.url).limit(limit)).all(),
        artifacts=[*_entry_artifacts(connection, found.all()), *own][:limit],
        drift=list_drifts(connection, wanted, limit),
        counts={
            "documents": _count(connection, watched),
            "notListed": _count(connection, missing),
            "leads": _count(connection, led),
            "artifacts": _count(connection, pointing) + len(own),
            "drift": count_drifts(connection, wanted),
        },
    )


def _entry_artifacts(connection: Connection, rows: Sequence[StoredRow]) -> list[EntryArtifact]:
    states = artifacts_of(connection, [row.id for row in rows])
    return [EntryArtifact(row.key, states[row.id]) for row in rows if row.id in states]


def _own_cards(connection: Connection, key: int) -> list[EntryArtifact]:
    """Give what stands in an origin's own places and is named by none of the entries."""
    named = select(entries.c.id).where(entries.c.artifact_id == documents.c.id).exists()
    query: Select[Any] = (
        select(documents)
        .where(documents.c.origin_id == key, documents.c.mechanism.in_(_OWN_CARDS), ~named)
        .order_by(documents.c.rank, documents.c.url)
    )
    rows = connection.execute(query).all()
    cards = {
        row.id: row for row in connection.execute(select(artifacts).where(artifacts.c.id.in_([row.id for row in rows])))
    }
    return [EntryArtifact(None, ArtifactState("watched", row.url, {}, cards.get(row.id), row)) for row in rows]


def _count(connection: Connection, query: Select[Any]) -> int:
    counted = query.with_only_columns(func.count(), maintain_column_froms=True).order_by(None)
    return int(connection.execute(counted).scalar_one())
