"""What became different between two moments about some origins: events, superseded states, drift opened and closed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Select, func, or_, select

from index.store.changes import Change, last_cursor, read_changes
from index.store.documents import origin_id
from index.store.engines import chunks
from index.store.tables import artifacts, copy_key, documents, drifts, entries, listings, versions

MOST_EVENTS = 10_000


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment: the ends of the feed and of the earlier states, what is listed and what drifts."""

    cursor: int
    version: int
    listed: frozenset[str]
    open_drifts: frozenset[int]


@dataclass(frozen=True, slots=True)
class Superseded:
    """A state that another one has followed, with the address that it is or was at."""

    row: Row[Any]
    url: str


@dataclass(frozen=True, slots=True)
class Difference:
    """All that became different; `omitted` counts the events past the bound."""

    changes: Sequence[Change]
    superseded: Sequence[Superseded]
    opened: Sequence[Row[Any]]
    closed: Sequence[Row[Any]]
    omitted: int = 0


def mark(connection: Connection, names: Sequence[str]) -> Mark:
    """Remember this moment, as far as these origins are concerned."""
    own = _documents_of(connection, names)
    newest = connection.execute(select(func.max(versions.c.id))).scalar()
    listed: set[str] = set()
    for chunk in chunks(own):
        query = select(listings.c.identifier).where(listings.c.document_id.in_(chunk), listings.c.removed_at.is_(None))
        listed.update(connection.execute(query).scalars())
    standing = {row.id for row in _drifts(connection, own) if row.closed_at is None}
    return Mark(last_cursor(connection), newest or 0, frozenset(listed), frozenset(standing))


def difference(connection: Connection, since: Mark, names: Sequence[str]) -> Difference:
    """Tell what became different about these origins since a moment; what others did meanwhile is left out."""
    own = _documents_of(connection, names)
    events = read_changes(connection, since.cursor, MOST_EVENTS)
    known = since.listed | _named(connection, {event.identifier for event in events}, own)
    urls = set(own.values())
    mine = [event for event in events if event.identifier in known or event.url in urls]
    found = _drifts(connection, own, since.open_drifts)
    return Difference(
        changes=mine,
        superseded=_superseded(connection, since.version, own),
        opened=[row for row in found if row.id not in since.open_drifts and row.closed_at is None],
        closed=[row for row in found if row.id in since.open_drifts and row.closed_at is not None],
        omitted=max(0, last_cursor(connection) - since.cursor - len(events)),
    )


def _documents_of(connection: Connection, names: Sequence[str]) -> dict[int, str]:
    own: dict[int, str] = {}
    for chunk in chunks(origin_id(name) for name in names):
        query = select(documents.c.id, documents.c.url).where(documents.c.origin_id.in_(chunk))
        own.update((row.id, row.url) for row in connection.execute(query))
    return own


def _named(connection: Connection, identifiers: Iterable[str], own: Mapping[int, str]) -> set[str]:
    """Leave of these identifiers those that documents of ours have."""
    found: set[str] = set()
    for chunk in chunks(identifiers):
        query = select(entries.c.key, entries.c.document_id).where(entries.c.key.in_(chunk))
        found.update(row.key for row in connection.execute(query) if row.document_id in own)
    return found


def _drifts(connection: Connection, own: Iterable[int], further: Iterable[int] = ()) -> list[Row[Any]]:
    """Give the open drifts that documents have a side in, and those that had a number before."""
    found: dict[int, Row[Any]] = {}
    for chunk in chunks(own):
        sides = or_(drifts.c.catalog_document.in_(chunk), drifts.c.live_document.in_(chunk))
        query: Select[Any] = select(drifts).where(sides, drifts.c.closed_at.is_(None))
        found.update((row.id, row) for row in connection.execute(query))
    for chunk in chunks(further):
        found.update((row.id, row) for row in connection.execute(select(drifts).where(drifts.c.id.in_(chunk))))
    return [found[number] for number in sorted(found)]


def _superseded(connection: Connection, after: int, own: Mapping[int, str]) -> list[Superseded]:
    query: Select[Any] = select(versions).where(versions.c.id > after).order_by(versions.c.id).limit(MOST_EVENTS)
    rows = connection.execute(query).all()
    inline = _inline(connection, {row.subject for row in rows if row.kind == "artifact"}, own)
    found = []
    for row in rows:
        if row.kind == "artifact":
            url = own.get(row.subject) or inline.get(row.subject)
        else:
            url = next((url for url in own.values() if copy_key(url, row.identifier or "") == row.subject), None)
        if url is not None:
            found.append(Superseded(row, url))
    return found


def _inline(connection: Connection, keys: Iterable[int], own: Mapping[int, str]) -> dict[int, str]:
    """Find the documents of inline artifacts, which have none of their own."""
    found: dict[int, str] = {}
    for chunk in chunks(keys):
        query = select(artifacts.c.id, artifacts.c.document_id).where(artifacts.c.id.in_(chunk), artifacts.c.inline)
        found.update((row.id, own[row.document_id]) for row in connection.execute(query) if row.document_id in own)
    return found
