"""The change feed: ordered, without gaps, replayable; a removal leaves a tombstone in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, func, select, update

from index.store.engines import insert_rows
from index.store.tables import changes, facts, storable


@dataclass(frozen=True, slots=True)
class Change:
    """One event of the feed. `members` are JSON Pointers of what differs."""

    kind: str
    identifier: str
    at: datetime
    url: str | None = None
    mechanism: str | None = None
    members: tuple[str, ...] = ()
    old_digest: str | None = None
    new_digest: str | None = None
    reason: str = ""
    change_class: str | None = None
    silent: bool = False
    indexed_at: datetime | None = None
    cursor: int = 0


def append_changes(connection: Connection, events: Sequence[Change], indexed_at: datetime | None = None) -> None:
    """Append events; the counter's row lock makes cursors follow the order of commits, in every process.

    `indexed_at` is the time from which search shows them.
    """
    if not events:
        return
    connection.execute(update(facts).where(facts.c.name == "cursor").values(number=facts.c.number + len(events)))
    last = connection.execute(select(facts.c.number).where(facts.c.name == "cursor")).scalar_one()
    first = last - len(events) + 1
    rows = [_row(event, first + index, indexed_at) for index, event in enumerate(events)]
    insert_rows(connection, changes, rows)


def _row(event: Change, cursor: int, indexed_at: datetime | None) -> dict[str, Any]:
    return {
        "cursor": cursor,
        "at": event.at,
        "kind": event.kind,
        "identifier": event.identifier,
        "url": event.url,
        "mechanism": event.mechanism,
        "members": list(event.members),
        "old_digest": event.old_digest,
        "new_digest": event.new_digest,
        "reason": event.reason,
        "change_class": event.change_class,
        "silent": event.silent,
        "indexed_at": indexed_at,
    }


def read_changes(connection: Connection, after: int, limit: int, identifier: str | None = None) -> list[Change]:
    """Give the events after a cursor, oldest first."""
    query = select(changes).where(changes.c.cursor > after).order_by(changes.c.cursor).limit(limit)
    if identifier is not None:
        query = query.where(changes.c.identifier == storable(identifier))
    return [_change(row) for row in connection.execute(query)]


def newest_changes(connection: Connection, most: int, identifier: str | None = None) -> list[Change]:
    """Give the newest events, oldest first."""
    query = select(changes).order_by(changes.c.cursor.desc()).limit(most)
    if identifier is not None:
        query = query.where(changes.c.identifier == storable(identifier))
    return [_change(row) for row in connection.execute(query)][::-1]


@dataclass(frozen=True, slots=True)
class Page:
    """A part of the feed, oldest first, and where the feed began and ended when it was read."""

    events: list[Change]
    oldest: int
    last: int

    def misses(self, after: int) -> bool:
        """Tell whether events that came after a cursor are no longer kept."""
        return after + 1 < self.oldest


def page_of_changes(connection: Connection, after: int | None, limit: int, identifier: str | None = None) -> Page:
    """Give the events after a cursor, or without one the newest, of one state of the feed."""
    if after is None:
        events = newest_changes(connection, limit, identifier)
    else:
        events = read_changes(connection, after, limit, identifier)
    return Page(events, oldest_cursor(connection), last_cursor(connection))


def _change(row: Row[Any]) -> Change:
    return Change(
        kind=row.kind,
        identifier=row.identifier,
        at=row.at,
        url=row.url,
        mechanism=row.mechanism,
        members=tuple(row.members),
        old_digest=row.old_digest,
        new_digest=row.new_digest,
        reason=row.reason,
        change_class=row.change_class,
        silent=row.silent,
        indexed_at=row.indexed_at,
        cursor=row.cursor,
    )


def last_cursor(connection: Connection) -> int:
    """Give the cursor of the newest event; zero when there is none."""
    return int(connection.execute(select(facts.c.number).where(facts.c.name == "cursor")).scalar_one())


def oldest_cursor(connection: Connection) -> int:
    """Give the cursor of the oldest event that is kept; the one that comes next when there is none.

    Who has seen everything up to the one before it has missed nothing; who asks from further back has.
    """
    # In this order: what somebody else appends between the two on PostgreSQL is found by the second one.
    following = last_cursor(connection) + 1
    oldest = connection.execute(select(func.min(changes.c.cursor))).scalar_one()
    return following if oldest is None else int(oldest)
