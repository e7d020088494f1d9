"""Planning anew after the clock was set back: what lies ahead of it was reckoned by a time that never was."""

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, select

from index.store.engines import update_rows
from index.store.tables import documents, origins

# As far as the clocks of machines that share a database may differ.
_SLACK = timedelta(minutes=5)


def plan_anew(connection: Connection, now: datetime) -> int:
    """Bring visits and looks forward that were planned by a clock which was ahead; gives the number of origins.

    Each keeps its interval, counted from now.
    """
    looks = select(documents.c.id, documents.c.attempted_at, documents.c.next_fetch_at).where(
        documents.c.attempted_at > now + _SLACK, documents.c.next_fetch_at.is_not(None)
    )
    moved: list[dict[str, Any]] = [
        {"id": row.id, "next_fetch_at": _from_now(now, row.attempted_at, row.next_fetch_at)}
        for row in connection.execute(looks)
    ]
    update_rows(connection, documents, moved)
    visits = select(origins.c.id, origins.c.last_visit_at, origins.c.next_visit_at, origins.c.not_before).where(
        origins.c.last_visit_at > now + _SLACK, origins.c.next_visit_at.is_not(None)
    )
    planned: list[dict[str, Any]] = [
        {
            "id": row.id,
            "next_visit_at": _from_now(now, row.last_visit_at, row.next_visit_at),
            "not_before": None if row.not_before is None else _from_now(now, row.last_visit_at, row.not_before),
        }
        for row in connection.execute(visits)
    ]
    update_rows(connection, origins, planned)
    return len(planned)


def _from_now(now: datetime, before: datetime, planned: datetime) -> datetime:
    return now + max(timedelta(0), planned - before)
