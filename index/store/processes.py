"""Which processes are at work on one database, and whether they were told of the same origins."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, delete, select

from index.store.engines import upsert_rows
from index.store.tables import processes

StoredRow = Row[Any]
# Who was not heard of for so long is not at work any more.
SILENT_FOR = timedelta(seconds=90)


def put_process(connection: Connection, name: str, role: str, origins_digest: str, now: datetime) -> None:
    """Make a process known, or tell that it still is at work."""
    row = {"name": name, "role": role, "origins_digest": origins_digest, "started_at": now, "seen_at": now}
    upsert_rows(connection, processes, [row], key="name", never=("started_at",))


def remove_processes(connection: Connection, names: Collection[str]) -> None:
    """Take out processes that ended."""
    connection.execute(delete(processes).where(processes.c.name.in_(names)))


def processes_since(connection: Connection, since: datetime) -> list[StoredRow]:
    """Give the processes heard of since a time, the longest at work first."""
    query = select(processes).where(processes.c.seen_at >= since)
    return list(connection.execute(query.order_by(processes.c.started_at, processes.c.name)))
