"""Reading what was found out about drift, lag and history, for the API and the commands."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, func, or_, select

from index.diff import GRAVITY
from index.records import Severity
from index.store.documents import origin_id
from index.store.engines import chunks
from index.store.tables import (
    artifacts,
    changes,
    copy_key,
    documents,
    drifts,
    entries,
    listing_bodies,
    listings,
    storable,
    versions,
)

StoredRow = Row[Any]
MOST_DRIFTS = 500
_GRAVITY = {str(kind): number for kind, number in GRAVITY.items()}


@dataclass(frozen=True, slots=True)
class DriftFilter:
    """Which drifts are wanted; `state` is `open`, `closed` or `all`, `origin` may be that of either side."""

    state: str = "open"
    drift_class: str | None = None
    publisher: str | None = None
    code: str | None = None
    identifier: str | None = None
    origin: str | None = None
    since: datetime | None = None


def list_drifts(
    connection: Connection, wanted: DriftFilter, limit: int, after: int | None = None
) -> Sequence[StoredRow]:
    """Give drifts, those opened last first; `after` is the id of the last row of the page before."""
    return _page(connection, _conditions(wanted), limit, after)


def drifts_of(connection: Connection, identifier: str, limit: int = MOST_DRIFTS) -> Sequence[StoredRow]:
    """Give the drifts of one identifier, open and closed, those opened last first."""
    return _page(connection, _conditions(DriftFilter("all", identifier=identifier)), limit, None)


def list_lags(connection: Connection, wanted: DriftFilter, limit: int, after: int | None = None) -> Sequence[StoredRow]:
    """Give the drifts in which a copy lags behind a live side that moved, those opened last first."""
    return _page(connection, [*_conditions(wanted), drifts.c.moved == "live"], limit, after)


def count_drifts(connection: Connection, wanted: DriftFilter) -> int:
    """Count drifts."""
    return int(connection.execute(select(func.count()).select_from(drifts).where(*_conditions(wanted))).scalar_one())


def is_any_open(connection: Connection, wanted: DriftFilter) -> bool:
    """Tell whether drift is open, whatever state is wanted otherwise.

    Information counts only when its code is wanted.
    """
    conditions = _conditions(replace(wanted, state="open"))
    if wanted.code is None:
        conditions = [*conditions, drifts.c.severity != Severity.INFO]
    return connection.execute(select(drifts.c.id).where(*conditions).limit(1)).first() is not None


def count_open_lags(connection: Connection, wanted: DriftFilter) -> int:
    """Count the copies that still lag behind, whatever state is wanted otherwise."""
    conditions = [*_conditions(replace(wanted, state="open")), drifts.c.moved == "live"]
    return int(connection.execute(select(func.count()).select_from(drifts).where(*conditions)).scalar_one())


def _page(
    connection: Connection, conditions: Sequence[ColumnElement[bool]], limit: int, after: int | None
) -> Sequence[StoredRow]:
    query: Select[Any] = select(drifts).where(*conditions).order_by(drifts.c.id.desc()).limit(limit)
    if after is not None:
        query = query.where(drifts.c.id < after)
    return connection.execute(query).all()


def _conditions(wanted: DriftFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if wanted.state != "all":
        ended = drifts.c.closed_at
        conditions.append(ended.is_(None) if wanted.state == "open" else ended.is_not(None))
    for column, value in (
        (drifts.c.drift_class, wanted.drift_class),
        (drifts.c.publisher, wanted.publisher),
        (drifts.c.code, wanted.code),
    ):
        if value is not None:
            conditions.append(column == storable(value))
    if wanted.identifier is not None:
        name = storable(wanted.identifier)
        conditions.append(or_(drifts.c.identifier == name, _NAMELESS & drifts.c.live_id.in_(_cards_of(name))))
    if wanted.origin is not None:
        own = select(documents.c.id).where(documents.c.origin_id == origin_id(wanted.origin))
        conditions.append(or_(drifts.c.catalog_document.in_(own), drifts.c.live_document.in_(own)))
    if wanted.since is not None:
        conditions.append(drifts.c.opened_at >= wanted.since)
    return conditions


# What a card disagrees about with itself, or with another one that no entry names.
_NAMELESS = drifts.c.identifier.is_(None)


def _cards_of(identifier: str) -> Select[tuple[int]]:
    """Select the artifact of the listed entry of an identifier."""
    query = select(entries.c.artifact_id).join(listings, listings.c.entry_id == entries.c.id)
    return query.where(listings.c.identifier == identifier, entries.c.artifact_id.is_not(None))


@dataclass(frozen=True, slots=True)
class OpenDrift:
    """How many drifts of a listing are open, and the gravest class among them."""

    count: int
    worst: str


def open_counts(connection: Connection, identifiers: Iterable[str]) -> dict[str, OpenDrift]:
    """Count the open drifts of listed entries and their cards; identifiers without any are left out.

    What another catalog says of an identifier is no fault of the listed entry and counts for nothing.
    """
    own = or_(
        drifts.c.catalog_document == listings.c.document_id,
        drifts.c.live_document == listings.c.document_id,
        drifts.c.catalog_document == entries.c.artifact_id,
    )
    columns = (listings.c.identifier, drifts.c.drift_class, func.count().label("number"))
    found: dict[str, OpenDrift] = {}
    for chunk in chunks(map(storable, identifiers)):
        of_entries = (
            select(*columns)
            .join(listings, listings.c.identifier == drifts.c.identifier)
            .outerjoin(entries, entries.c.id == listings.c.entry_id)
            .where(drifts.c.identifier.in_(chunk), own)
        )
        of_cards = (
            select(*columns)
            .join(entries, entries.c.artifact_id == drifts.c.live_id)
            .join(listings, listings.c.entry_id == entries.c.id)
            .where(listings.c.identifier.in_(chunk), _NAMELESS)
        )
        for query in (of_entries, of_cards):
            grouped = query.where(drifts.c.closed_at.is_(None)).group_by(listings.c.identifier, drifts.c.drift_class)
            for row in connection.execute(grouped):
                before = found.get(row.identifier)
                worst = row.drift_class if before is None else min(row.drift_class, before.worst, key=_gravity)
                found[row.identifier] = OpenDrift(row.number + (before.count if before else 0), worst)
    return found


def _gravity(name: str) -> int:
    return _GRAVITY.get(name, len(_GRAVITY))


def own_lags(connection: Connection, newest: int = 1000) -> list[float]:
    """Give how many seconds each of the newest events took from its observation until search showed it."""
    query = (
        select(changes.c.at, changes.c.indexed_at)
        .where(changes.c.indexed_at.is_not(None))
        .order_by(changes.c.cursor.desc())
        .limit(newest)
    )
    return [max(0.0, (row.indexed_at - row.at).total_seconds()) for row in connection.execute(query)]


# --- history ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class History:
    """What an entry and its artifact said before, newest first, and what they say now.

    `listing` is there for removed ones too; `artifact` is None when none was read.
    """

    listing: StoredRow
    artifact: StoredRow | None
    versions: Sequence[StoredRow]


def history_of(connection: Connection, identifier: str, limit: int = 100, after: int | None = None) -> History | None:
    """Give the earlier states of an entry in the document that it is listed from, and of its artifact.

    `after` is the id of the last version of the page before. None when the identifier was never listed.
    """
    query: Select[Any] = (
        select(
            listings,
            listing_bodies.c.entry,
            documents.c.url,
            documents.c.confirmed_at,
            entries.c.raw,
            entries.c.digest.label("entry_digest"),
            entries.c.changed_at.label("entry_changed_at"),
            entries.c.artifact_id,
        )
        .outerjoin(listing_bodies, listing_bodies.c.listing_id == listings.c.id)
        .outerjoin(documents, documents.c.id == listings.c.document_id)
        .outerjoin(entries, entries.c.id == listings.c.entry_id)
        .where(listings.c.identifier == storable(identifier))
    )
    listing = connection.execute(query).first()
    if listing is None:
        return None
    subjects = [copy_key(listing.url, identifier)] if listing.url else []
    artifact = None
    if listing.artifact_id is not None:
        subjects.append(listing.artifact_id)
        artifact = _artifact(connection, listing.artifact_id)
    # The edits tell a state; its whole text may be long.
    columns = [column for column in versions.c if column.name != "content"]
    older: Select[Any] = (
        select(*columns).where(versions.c.subject.in_(subjects)).order_by(versions.c.id.desc()).limit(limit)
    )
    if after is not None:
        older = older.where(versions.c.id < after)
    return History(listing, artifact, connection.execute(older).all())


def _artifact(connection: Connection, key: int) -> StoredRow | None:
    query: Select[Any] = (
        select(artifacts, documents.c.url, documents.c.confirmed_at)
        .join(documents, documents.c.id == artifacts.c.document_id)
        .where(artifacts.c.id == key)
    )
    return connection.execute(query).first()


# --- artifacts --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ArtifactState:
    """What is known of what an entry points to.

    `decision` is whether it is read, `card` its row in `artifacts` and `document` that of the document it is in;
    `derived` is what reading the entry added to it.
    """

    decision: str | None
    url: str | None
    derived: Mapping[str, Any]
    card: StoredRow | None = None
    document: StoredRow | None = None


def artifact_of(connection: Connection, identifier: str) -> ArtifactState | None:
    """Give what is known of the artifact of a listed entry; None when it is not listed."""
    query = select(listings.c.entry_id).where(
        listings.c.identifier == storable(identifier), listings.c.removed_at.is_(None)
    )
    entry = connection.execute(query).scalar()
    return None if entry is None else artifacts_of(connection, [entry]).get(entry)


def artifacts_of(connection: Connection, entry_ids: Iterable[int]) -> dict[int, ArtifactState]:
    """Give what is known of the artifacts of entries, by entry key."""
    found: dict[int, ArtifactState] = {}
    for chunk in chunks(entry_ids):
        query: Select[Any] = select(
            entries.c.id,
            entries.c.artifact_decision,
            entries.c.artifact_id,
            entries.c.artifact_url,
            entries.c.derived,
        ).where(entries.c.id.in_(chunk))
        rows = connection.execute(query).all()
        cards = _by_key(connection, artifacts, {row.artifact_id for row in rows if row.artifact_id is not None})
        # An inline artifact has no document of its own: what is known of it is what is known of its catalog.
        sources = {row.artifact_id for row in rows if row.artifact_id is not None} | {
            card.document_id for card in cards.values()
        }
        states = _by_key(connection, documents, sources)
        for row in rows:
            card = cards.get(row.artifact_id)
            document = states.get(card.document_id if card is not None else row.artifact_id)
            found[row.id] = ArtifactState(row.artifact_decision, row.artifact_url, row.derived, card, document)
    return found


def _by_key(connection: Connection, table: Any, keys: Iterable[int]) -> dict[int, StoredRow]:
    found: dict[int, StoredRow] = {}
    for chunk in chunks(keys):
        found.update((row.id, row) for row in connection.execute(select(table).where(table.c.id.in_(chunk))))
    return found
