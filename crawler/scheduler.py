"""The bells of the daemon: a few periodic ticks, none of them for a single origin.

Which origin is due is a question to the database. A bell that is still ringing when it should ring again is let finish;
the rings it missed are one. Bells go by the clock of the machine, so they are set again when that clock leaps.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import structlog
from apscheduler.executors.asyncio import AsyncIOExecutor
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.base import BaseTrigger

from crawler.clock import Clock

_log = structlog.get_logger("ardvark.daemon")
_GRACE_S = 120
_WATCH_S = 1.0
_LEAP_S = 2.0

Bell = Callable[[], Awaitable[None]]


class _Every(BaseTrigger):  # type: ignore[misc]  # the package has no types
    """Rings an interval from now, so that no clock makes a bell catch up with the years."""

    def __init__(self, every: timedelta) -> None:
        self._every = every

    def get_next_fire_time(self, _: datetime | None, now: datetime) -> datetime:
        return now + self._every


class _Ringer(AsyncIOExecutor):  # type: ignore[misc]  # the package has no types
    """Runs what bells ring for; what the end of the process cut off before its first step is no fault to be logged."""

    def _run_job_error(self, job_id: str, exc: BaseException, traceback: Any = None) -> None:
        if isinstance(exc, asyncio.CancelledError):
            self._run_job_success(job_id, ())
        else:
            super()._run_job_error(job_id, exc, traceback)


class Bells:
    """Periodic work of one process. Use as a context manager."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._scheduler = AsyncIOScheduler(timezone="UTC", executors={"default": _Ringer()})
        self._leap: Bell | None = None
        self._offset = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def add(self, name: str, bell: Bell, every: timedelta, *, first_at: datetime | None = None) -> None:
        """Ring a bell at an interval."""
        extra = {} if first_at is None else {"next_run_time": first_at}
        self._add(bell, _Every(every), id=name, **extra)

    def at_leap(self, bell: Bell) -> None:
        """Ring a bell whenever the clock was set."""
        self._leap = bell

    def _add(self, bell: Bell, trigger: BaseTrigger | None, **options: Any) -> None:
        ring = _until_the_end(bell)
        self._scheduler.add_job(ring, trigger, coalesce=True, max_instances=1, misfire_grace_time=_GRACE_S, **options)

    def __enter__(self) -> "Bells":
        self._scheduler.start()
        self._offset = self._offset_now()
        self._timer = asyncio.get_running_loop().call_later(_WATCH_S, self._watch)
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._scheduler.shutdown(wait=False)

    def _offset_now(self) -> float:
        return self._clock.now().timestamp() - self._clock.monotonic()

    def _watch(self) -> None:
        """Compare the clock with one that cannot be set."""
        leap = self._offset_now() - self._offset
        self._offset += leap
        if abs(leap) >= _LEAP_S:
            self._set_again(leap)
        self._timer = asyncio.get_running_loop().call_later(_WATCH_S, self._watch)

    def _set_again(self, leap: float) -> None:
        now = self._clock.now()
        _log.warning("clock.leapt", seconds=round(leap, 1))
        for job in self._scheduler.get_jobs():
            job.modify(next_run_time=now)
        if self._leap is not None:
            self._add(self._leap, None, next_run_time=now)


def _until_the_end(bell: Bell) -> Bell:
    """Let a bell that rings while the process ends be cut off, which is no fault to be logged."""

    async def ring() -> None:
        with suppress(asyncio.CancelledError):
            await bell()

    return ring
