"""Upkeep: what has outlived its time is pruned, and the room is given back.

A run goes on until nothing is left to prune, so that it is always faster than what is written; between two batches
others write.
"""

import asyncio
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog

from config.settings import Settings
from crawler.clock import Clock
from index.store.database import Database
from index.store.pruning import (
    Step,
    file_size,
    give_up_drifts,
    give_up_versions,
    oldest_fetch_at,
    prune_changes,
    prune_drifts,
    prune_fetches,
    prune_long_logs,
    prune_pending,
    prune_processes,
    prune_snapshots,
    prune_versions,
    release_snapshots,
    used_size,
)
from index.store.room import alone, give_back_room
from index.store.tables import key_of

_log = structlog.get_logger("ardvark.upkeep")
_PRUNING = key_of("lock", "pruning")
_PROCESS_AGE = timedelta(days=1)
EVERY = timedelta(minutes=10)
# Which bodies are spare is a question about every one of them; as often as this is enough for ages in days.
_WALK_EVERY = timedelta(hours=1)
# More than clocks of different machines are apart.
_OVERLAP = timedelta(hours=1)
_MOST_UNMEASURED = 32


@dataclass(slots=True)
class Pruned:
    """What one run came to."""

    fetches: int = 0
    snapshots: int = 0
    versions: int = 0
    drifts: int = 0
    changes: int = 0
    pending: int = 0
    size: int = 0
    oldest_fetch_at: datetime | None = None
    over_limit: bool = False

    def counts(self) -> dict[str, int]:
        """Give the numbers of rows that went, by table."""
        return {name: value for name, value in asdict(self).items() if name not in _REPORTED}


_REPORTED = frozenset({"size", "oldest_fetch_at", "over_limit"})


class Upkeep:
    """Keeps a database within the retention that the settings give."""

    def __init__(self, settings: Settings, clock: Clock, database: Database) -> None:
        self._retention = settings.retention
        self._clock = clock
        self._database = database
        self._pruned_at: datetime | None = None
        self._walked_at: datetime | None = None

    async def ring(self) -> None:
        """Prune, unless another process is just doing it."""
        began = self._clock.monotonic()
        pruned = await self.prune()
        if pruned is not None and any(pruned.counts().values()):
            seconds = round(self._clock.monotonic() - began, 3)
            _log.info("retention.pruned", **pruned.counts(), size=pruned.size, seconds=seconds)

    async def prune(self) -> Pruned | None:
        """Prune all that has outlived its time; None when another process is at it."""
        async with alone(self._database, _PRUNING) as may:
            if not may:
                return None
            pruned = Pruned()
            await self._prune_old(pruned)
            await self._make_room(pruned)
            await give_back_room(self._database)
            pruned.size = await self._database.read(file_size)
            pruned.oldest_fetch_at = await self._database.read(oldest_fetch_at)
            return pruned

    async def _prune_old(self, pruned: Pruned) -> None:
        keep, now = self._retention, self._clock.now()
        pruned.fetches += await self._repeat(prune_fetches, now - keep.fetch_log_age)
        since = None if self._pruned_at is None else self._pruned_at - _OVERLAP
        pruned.fetches += await self._repeat(prune_long_logs, keep.fetch_log_per_document, since)
        pruned.changes += await self._repeat(prune_changes, now - keep.change_age, keep.changes_kept)
        pruned.drifts += await self._repeat(prune_drifts, now - keep.drift_age)
        pruned.versions += await self._repeat(prune_versions, now - keep.version_age)
        pruned.pending += await self._repeat(prune_pending, now - keep.pending_age)
        await self._repeat(prune_processes, now - _PROCESS_AGE)
        if self._walked_at is None or now - self._walked_at >= _WALK_EVERY:
            await self._release(now)
        self._pruned_at = now
        pruned.snapshots += await self._repeat(prune_snapshots, now - keep.snapshot_age)

    async def _release(self, now: datetime) -> None:
        await self._repeat(release_snapshots, now)
        self._walked_at = now

    async def _make_room(self, pruned: Pruned) -> None:
        """Let go before its time what can be spared, until the limit is kept: bodies, earlier states, the log.

        Last goes closed drift, which names bodies as well.
        """
        limit = self._retention.max_size
        if limit is None or await self._database.read(used_size) <= limit:
            return
        now = self._clock.now()
        if self._walked_at != self._pruned_at:
            await self._release(now)
        later = now + timedelta(seconds=1)
        pruned.snapshots += await self._until(limit, prune_snapshots, later)
        pruned.versions += await self._until(limit, give_up_versions)
        pruned.fetches += await self._until(limit, prune_fetches, later)
        pruned.drifts += await self._until(limit, give_up_drifts)
        used = await self._database.read(used_size)
        pruned.over_limit = used > limit
        if pruned.over_limit:
            _log.warning("retention.over_limit", size=used, limit=limit)

    async def _repeat(self, prune: Callable[..., Step], *arguments: Any) -> int:
        return await self._until(None, prune, *arguments)

    async def _until(self, limit: int | None, prune: Callable[..., Step], *arguments: Any) -> int:
        """Prune a batch at a time, to the end or until a size is reached."""
        deleted = 0
        position: tuple[int | str, ...] = ()
        pace = None if limit is None else _Pace(limit)
        while pace is None or await self._is_over(pace):
            step = await self._database.write(prune, *arguments, *position)
            deleted += step.deleted
            if not step.more:
                break
            position = () if step.position is None else (step.position,)
            await asyncio.sleep(0)
        return deleted

    async def _is_over(self, pace: "_Pace") -> bool:
        if pace.batches >= pace.wait:
            pace.measured(await self._database.read(used_size))
        pace.batches += 1
        return pace.over > 0


@dataclass(slots=True)
class _Pace:
    """How many batches may go before the size is measured again: to measure after each would be most of the work.

    Twice as many as the last time, and no more than half of the way takes by what those freed: what comes then may free
    far more.
    """

    limit: int
    over: int = 0
    batches: int = 0
    wait: int = 0
    _size: int | None = None

    def measured(self, size: int) -> None:
        """Take note of a size, and of the batches since the last one."""
        freed = 0 if self._size is None else self._size - size
        self.over = size - self.limit
        most = min(2 * self.batches, _MOST_UNMEASURED)
        half = self.over * self.batches // (2 * freed) if freed > 0 else most
        self._size, self.batches, self.wait = size, 0, max(1, min(half, most))
