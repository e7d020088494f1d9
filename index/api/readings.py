"""What `/metrics` shows of the database: read at intervals, however often it is asked for, and waited for a little."""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime

from index.metrics import Sample
from index.store.database import Database
from index.store.outage import StoreUnavailable
from index.store.status import body_gauges, gauges

# How long each reading is good for.
_READINGS = {gauges: 5.0, body_gauges: 60.0}
# Less than the ten seconds after which monitoring gives up.
_PATIENCE_S = 4.0


class Readings:
    """The newest values of the gauges that are read from the database."""

    def __init__(self, database: Database, now: Callable[[], datetime]) -> None:
        self._database = database
        self._now = now
        self._samples: dict[str, Sample] = {}
        self._good_until: dict[Callable[..., dict[str, Sample]], float] = {}
        self._task: asyncio.Task[None] | None = None

    async def latest(self) -> Mapping[str, Sample]:
        """Give the values, of now or of a moment ago; none while the database doesn't answer."""
        if self._task is None:
            if not any(map(self._is_over, _READINGS)):
                return self._samples
            self._task = asyncio.create_task(self._read(), name="metrics of the database")
        # Who asks may leave; the reading is for all who do.
        done, _ = await asyncio.wait({self._task}, timeout=_PATIENCE_S)
        for task in done:
            task.result()
        return self._samples if done else {}

    def _is_over(self, read: Callable[..., dict[str, Sample]]) -> bool:
        return time.monotonic() >= self._good_until.get(read, float("-inf"))

    async def _read(self) -> None:
        try:
            for read, kept_s in _READINGS.items():
                if self._is_over(read):
                    self._samples |= await self._database.read(read, self._now())
                    self._good_until[read] = time.monotonic() + kept_s
        except StoreUnavailable:
            self._samples = {}
            self._good_until = {}
        finally:
            self._task = None

    async def close(self) -> None:
        """Break off a reading under way."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
