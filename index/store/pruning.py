"""What is no longer needed goes: a small batch a transaction, so that nobody who writes waits for it.

A function gives how much went and whether more may be left; those that walk through a table also say where to go on. Of
a document the newest line of its log and the body that it last came with always stay, and so does every body that a
document, an artifact, an earlier state or a drift names.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from typing import Any

from sqlalchemy import Column, Connection, Row, Select, Table, delete, func, select

from index.store.changes import last_cursor
from index.store.engines import chunks, insert_new_rows
from index.store.tables import (
    artifacts,
    changes,
    documents,
    drifts,
    fetches,
    pending,
    processes,
    released,
    snapshots,
    versions,
)

BATCH = 500
# Bodies are large; so are the states that are given up for want of room. Drift is what is kept the longest.
BODIES = 100
_STATES = 50
_DRIFTS = 5
_DOCUMENTS = 200
_PINS: tuple[Column[Any], ...] = (
    documents.c.digest,
    documents.c.applied_digest,
    artifacts.c.digest,
    versions.c.digest,
    drifts.c.catalog_digest,
    drifts.c.live_digest,
)


@dataclass(frozen=True, slots=True)
class Step:
    """What one batch came to; `position` is where the next one of a walk begins."""

    deleted: int
    more: bool
    position: int | str | None = None


# --- the fetch log ----------------------------------------------------------------------------------------------------


def prune_fetches(connection: Connection, before: datetime, position: int = 0, batch: int = BATCH) -> Step:
    """Delete lines of the log from before a time; lines are numbered in the order in which they were written."""
    newer = fetches.alias("newer")
    followed = select(newer.c.id).where(newer.c.document_id == fetches.c.document_id, newer.c.id > fetches.c.id)
    query = select(fetches.c.id, fetches.c.response_at, followed.exists().label("followed"))
    rows = connection.execute(query.where(fetches.c.id > position).order_by(fetches.c.id).limit(batch)).all()
    old = [row.id for row in rows if row.response_at < before and row.followed]
    _delete(connection, fetches, fetches.c.id, old)
    more = len(rows) == batch and rows[-1].response_at < before
    return Step(len(old), more, rows[-1].id if more else None)


def prune_long_logs(
    connection: Connection, most: int, since: datetime | None, position: int = -1, batch: int = BATCH
) -> Step:
    """Delete lines of the log beyond the newest `most` of each document, or of each that was looked at since a time."""
    of_document = fetches.c.document_id == documents.c.id
    last = select(fetches.c.id).where(of_document).order_by(fetches.c.id.desc()).offset(most).limit(1)
    query = select(documents.c.id, last.scalar_subquery().label("last")).where(documents.c.id > position)
    if since is not None:
        query = query.where(documents.c.attempted_at >= since)
    rows = connection.execute(query.order_by(documents.c.id).limit(_DOCUMENTS)).all()
    deleted = 0
    for row in rows:
        if row.last is None:
            continue
        beyond = (fetches.c.document_id == row.id) & (fetches.c.id <= row.last)
        lines = select(fetches.c.id).where(beyond).order_by(fetches.c.id).limit(batch - deleted)
        deleted += _delete(connection, fetches, fetches.c.id, connection.execute(lines).scalars().all())
        if deleted >= batch:
            # The same document again: it may have more.
            return Step(deleted, True, row.id - 1)
    more = len(rows) == _DOCUMENTS
    return Step(deleted, more, rows[-1].id if more else None)


# --- what is kept for a time ------------------------------------------------------------------------------------------


def prune_changes(connection: Connection, before: datetime, kept: int, batch: int = BATCH) -> Step:
    """Delete the oldest events of the feed, up to the first from after a time; the newest `kept` stay in any case."""
    columns = (changes.c.cursor, func.coalesce(changes.c.indexed_at, changes.c.at).label("at"))
    query = select(*columns).where(changes.c.cursor <= last_cursor(connection) - kept)
    rows = connection.execute(query.order_by(changes.c.cursor).limit(batch))
    old = [row.cursor for row in takewhile(lambda row: row.at < before, rows)]
    if old:
        connection.execute(delete(changes).where(changes.c.cursor <= old[-1]))
    return Step(len(old), len(old) == batch)


def prune_versions(connection: Connection, before: datetime, batch: int = BATCH) -> Step:
    """Delete earlier states that were replaced before a time."""
    rows = _oldest_versions(connection, batch)
    old = [row.id for row in rows if row.replaced_at < before]
    _delete(connection, versions, versions.c.id, old)
    return Step(len(old), len(old) == batch)


def prune_drifts(connection: Connection, before: datetime, batch: int = BATCH) -> Step:
    """Delete drift that closed before a time; what is open stays."""
    query = select(drifts.c.id).where(drifts.c.closed_at < before).order_by(drifts.c.closed_at).limit(batch)
    deleted = _delete(connection, drifts, drifts.c.id, connection.execute(query).scalars().all())
    return Step(deleted, deleted == batch)


def prune_pending(connection: Connection, before: datetime) -> Step:
    """Give up comparisons that have waited since before a time, because their origins are visited no more."""
    result = connection.execute(delete(pending).where(pending.c.at < before))
    return Step(result.rowcount, False)


def prune_processes(connection: Connection, before: datetime) -> Step:
    """Forget processes that have not been heard of since a time."""
    result = connection.execute(delete(processes).where(processes.c.seen_at < before))
    return Step(result.rowcount, False)


# --- bodies -----------------------------------------------------------------------------------------------------------


def release_snapshots(connection: Connection, now: datetime, position: str = "", batch: int = BATCH) -> Step:
    """Note which bodies nothing points to any more; deletes none.

    Comes before `prune_snapshots`. What is noted lies in a table of its own, for on SQLite to read a column behind a
    body is to read the body.
    """
    query: Select[Any] = (
        select(snapshots.c.digest, released.c.digest.label("noted"))
        .outerjoin(released, released.c.digest == snapshots.c.digest)
        .where(snapshots.c.digest > position)
        .order_by(snapshots.c.digest)
        .limit(batch)
    )
    rows = connection.execute(query).all()
    pinned = pinned_digests(connection, [row.digest for row in rows])
    spare = [{"digest": row.digest, "at": now} for row in rows if row.noted is None and row.digest not in pinned]
    insert_new_rows(connection, released, spare)
    _delete(connection, released, released.c.digest, [row.noted for row in rows if row.noted in pinned])
    more = len(rows) == batch
    return Step(0, more, rows[-1].digest if more else None)


def prune_snapshots(connection: Connection, before: datetime, batch: int = BODIES) -> Step:
    """Delete bodies that nothing has pointed to since before a time."""
    query = select(released.c.digest).where(released.c.at < before).order_by(released.c.at, released.c.digest)
    noted = connection.execute(query.limit(batch)).scalars().all()
    deleted, busy = _drop_spare(connection, noted)
    _delete(connection, released, released.c.digest, [name for name in noted if name not in busy])
    return Step(deleted, len(noted) == batch and len(busy) < batch)


def pinned_digests(connection: Connection, digests: Sequence[str]) -> set[str]:
    """Name the bodies among these that something points to."""
    pinned: set[str] = set()
    for chunk in chunks(digests):
        for column in _PINS:
            pinned.update(connection.execute(select(column).where(column.in_(chunk))).scalars())
    return pinned


def _drop_spare(connection: Connection, digests: Sequence[str]) -> tuple[int, set[str]]:
    """Delete those of these bodies that nothing points to; gives their number and which ones are just being used.

    Whoever is about to point to a stored body locks its row first, so after the lock the look at what points to it is
    one that holds (PostgreSQL; SQLite has one writer at a time).
    """
    there = select(snapshots.c.digest).where(snapshots.c.digest.in_(digests))
    known = set(connection.execute(there).scalars())
    locked = set(connection.execute(there.with_for_update(skip_locked=True)).scalars())
    spare = locked - pinned_digests(connection, sorted(locked))
    return _delete(connection, snapshots, snapshots.c.digest, spare), known - locked


# --- room -------------------------------------------------------------------------------------------------------------


def give_up_versions(connection: Connection, batch: int = _STATES) -> Step:
    """Delete the oldest earlier states whatever their age, with the bodies that only they pointed to."""
    rows = _oldest_versions(connection, batch)
    _delete(connection, versions, versions.c.id, [row.id for row in rows])
    _drop_spare(connection, sorted({row.digest for row in rows}))
    return Step(len(rows), len(rows) == batch)


def give_up_drifts(connection: Connection, batch: int = _DRIFTS) -> Step:
    """Delete the drift that closed first whatever its age, with the bodies that only it named; what is open stays."""
    columns = (drifts.c.id, drifts.c.catalog_digest, drifts.c.live_digest)
    query: Select[Any] = select(*columns).where(drifts.c.closed_at.is_not(None)).order_by(drifts.c.closed_at)
    rows = connection.execute(query.limit(batch)).all()
    _delete(connection, drifts, drifts.c.id, [row.id for row in rows])
    named = {digest for row in rows for digest in (row.catalog_digest, row.live_digest) if digest is not None}
    _drop_spare(connection, sorted(named))
    return Step(len(rows), len(rows) == batch)


def used_size(connection: Connection) -> int:
    """Measure what is stored, in bytes; room that was freed and not given back yet does not count."""
    if connection.dialect.name == "sqlite":
        pages, spare, size = (
            connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
            for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - spare) * size)
    total = 0
    for table, columns in _WIDE:
        wide = [func.coalesce(func.sum(func.pg_column_size(column)), 0) for column in columns]
        count, *sizes = connection.execute(select(func.count(), *wide).select_from(table)).one()
        total += count * _ROW_SIZE + sum(sizes)
    return int(total)


# What makes most of a database: the wide columns of these tables, and the rest of a row with its indexes, about.
_WIDE: tuple[tuple[Table, tuple[Column[Any], ...]], ...] = (
    (snapshots, (snapshots.c.body,)),
    (versions, (versions.c.content, versions.c.edits)),
    (fetches, (fetches.c.hops, fetches.c.headers)),
)
_ROW_SIZE = 200


def file_size(connection: Connection) -> int:
    """Measure the database as it lies on the disk, in bytes."""
    if connection.dialect.name == "sqlite":
        pages, size = (
            connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in ("page_count", "page_size")
        )
        return int(pages * size)
    return int(connection.execute(select(func.pg_database_size(func.current_database()))).scalar_one())


def oldest_fetch_at(connection: Connection) -> datetime | None:
    """Give the time of the oldest line of the fetch log."""
    query = select(fetches.c.response_at).order_by(fetches.c.id).limit(1)
    found: datetime | None = connection.execute(query).scalar()
    return found


def _oldest_versions(connection: Connection, batch: int) -> Sequence[Row[Any]]:
    columns = (versions.c.id, versions.c.digest, versions.c.replaced_at)
    query: Select[Any] = select(*columns).order_by(versions.c.id).limit(batch)
    return connection.execute(query).all()


def _delete(connection: Connection, table: Table, column: Column[Any], keys: Collection[Any]) -> int:
    deleted = 0
    for chunk in chunks(keys):
        deleted += connection.execute(delete(table).where(column.in_(chunk))).rowcount
    return deleted
