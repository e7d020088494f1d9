"""The daemon: bells, visits and the API server in one process, and how it ends.

The first signal stops claiming and lets visits finish for a while; the second ends everything at once. Either way
nothing settled is lost and what was begun becomes due again.
"""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import structlog

from config.settings import Settings
from crawler.clock import Clock
from crawler.scheduler import Bells
from crawler.worker import Crew
from index.store.frontier import Claim

_log = structlog.get_logger("ardvark.daemon")
_DUE_EVERY = timedelta(seconds=1)
_SCOPE_EVERY = timedelta(seconds=15)


class Daemon:
    """Claims due origins and visits them until it is told to stop."""

    def __init__(self, settings: Settings, clock: Clock, crew: Crew) -> None:
        self._settings = settings
        self._clock = clock
        self._crew = crew
        self._running: set[asyncio.Task[None]] = set()
        self._stopping = asyncio.Event()
        self._forced = asyncio.Event()

    async def run(self) -> None:
        """Run until the first signal, and to the end of the visits under way or the second signal."""
        bells = Bells()
        bells.add("due", self._fill, _DUE_EVERY, first_at=self._clock.now())
        bells.add("scope", self._crew.refresh_scope, _SCOPE_EVERY)
        bells.add("dead claims", self._break_dead_claims, self._settings.crawl.lease)
        with self._signals():
            with bells:
                await self._stopping.wait()
            await self._drain()

    def stop(self) -> None:
        """Stop as a signal would: the first time gently, then at once."""
        if self._stopping.is_set():
            self._forced.set()
        self._stopping.set()

    async def _fill(self) -> None:
        """Claim as many due origins as there is room for."""
        room = self._settings.crawl.visits - len(self._running)
        if room <= 0 or self._stopping.is_set():
            return
        for claim in await self._crew.claim(room):
            task = asyncio.create_task(self._visit(claim), name=f"visit {claim.origin}")
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _visit(self, claim: Claim) -> None:
        await self._crew.visit(claim)

    async def _break_dead_claims(self) -> None:
        freed = await self._crew.break_dead_claims()
        if freed:
            _log.warning("claims.freed", origins=freed)

    async def _drain(self) -> None:
        """Let visits finish within the grace, then break them off; their origins stay due."""
        _log.info("daemon.stopping", visits=len(self._running))
        grace = self._settings.crawl.shutdown_grace.total_seconds()
        forced = asyncio.create_task(self._forced.wait(), name="second signal")
        visits = asyncio.create_task(self._wait_for_visits(), name="visits")
        await asyncio.wait({forced, visits}, timeout=grace, return_when=asyncio.FIRST_COMPLETED)
        for task in (forced, visits, *self._running):
            task.cancel()
        await asyncio.gather(forced, visits, *self._running, return_exceptions=True)
        _log.info("daemon.stopped", forced=self._forced.is_set())

    async def _wait_for_visits(self) -> None:
        while self._running:
            await asyncio.wait(self._running)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        numbers = (signal.SIGINT, signal.SIGTERM)
        for number in numbers:
            loop.add_signal_handler(number, self.stop)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)
