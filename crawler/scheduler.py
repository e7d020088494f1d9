"""The bells of the daemon: a few periodic ticks, none of them for a single origin.

Which origin is due is a question to the database. A bell that is still ringing when it should ring again is let finish;
the rings it missed are one.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.interval import IntervalTrigger

_GRACE_S = 120

Bell = Callable[[], Awaitable[None]]


class Bells:
    """Periodic work of one process. Use as a context manager."""

    def __init__(self) -> None:
        self._scheduler = AsyncIOScheduler(timezone="UTC")

    def add(self, name: str, bell: Bell, every: timedelta, *, first_at: datetime | None = None) -> None:
        """Ring a bell at an interval."""
        extra = {} if first_at is None else {"next_run_time": first_at}
        self._scheduler.add_job(
            bell,
            IntervalTrigger(seconds=every.total_seconds(), timezone="UTC"),
            id=name,
            coalesce=True,
            max_instances=1,
            misfire_grace_time=_GRACE_S,
            **extra,
        )

    def __enter__(self) -> "Bells":
        self._scheduler.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._scheduler.shutdown(wait=False)
