"""The daemon: bells, visits and the API server in one process, and how it ends.

While the database doesn't answer, nothing new is begun, and what is under way waits for it. The first signal stops
claiming and lets visits finish for a while; the second ends everything at once. Either way nothing settled is lost and
what was begun becomes due again.
"""

import asyncio
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta

import structlog

from config.settings import Settings
from crawler.budget import PERIOD
from crawler.clock import Clock
from crawler.scheduler import Bell, Bells
from crawler.worker import Crew
from index import metrics
from index.store.frontier import Claim
from index.store.outage import StoreUnavailable

_log = structlog.get_logger("ardvark.daemon")
_DUE_EVERY = timedelta(seconds=1)
_SCOPE_EVERY = timedelta(seconds=15)
_LAST_PATIENCE_S = 5.0
_CLAIM_PATIENCE_S = 1.0
# So many claims for as many visits as may be under way.
_REFILLS = 4


@dataclass(frozen=True, slots=True)
class Duty:
    """Further work of a process, done at the start and at an interval."""

    name: str
    bell: Bell
    every: timedelta


class Daemon:
    """Claims due origins and visits them until it is told to stop; without `claims` it only does what is given."""

    def __init__(
        self, settings: Settings, clock: Clock, crew: Crew, *, claims: bool = True, further: Sequence[Duty] = ()
    ) -> None:
        self._settings = settings
        self._claims = claims
        self._further = further
        self._clock = clock
        self._crew = crew
        self._running: set[asyncio.Task[None]] = set()
        self._filling: asyncio.Task[None] | None = None
        # So few visits under way that more are begun before the bell, for it is known that more are due.
        self._refill_at: int | None = None
        self._stopping = asyncio.Event()
        self._forced = asyncio.Event()

    async def run(self) -> None:
        """Run until the first signal, and to the end of the visits under way or the second signal."""
        bells = Bells(self._clock)
        if self._claims:
            bells.add("due", self._fill, _DUE_EVERY, first_at=self._clock.now())
        for duty in self._further:
            bells.add(duty.name, _unless_outage(duty.bell), duty.every, first_at=self._clock.now())
        bells.add("scope", _unless_outage(self._crew.refresh_scope), _SCOPE_EVERY)
        if self._settings.crawl.budget is not None:
            bells.add("price", _unless_outage(self._crew.adjust_price), PERIOD)
        bells.add("dead claims", _unless_outage(self._break_dead_claims), self._settings.crawl.lease)
        plan_anew = _unless_outage(self._plan_anew)
        bells.at_leap(plan_anew)
        await plan_anew()
        with self._signals():
            _log.info("daemon.started", claims=self._claims)
            with bells:
                await self._stopping.wait()
            await self._drain()

    def stop(self) -> None:
        """Stop as a signal would: the first time gently, then at once."""
        if self._stopping.is_set():
            self._forced.set()
        self._stopping.set()

    async def _fill(self) -> None:
        """Claim as many due origins as there is room for, unless that is being done."""
        await asyncio.wait({self._begin_to_fill()})

    def _begin_to_fill(self) -> asyncio.Task[None]:
        if self._filling is None:
            self._filling = asyncio.create_task(self._claim_due(), name="due origins")
            self._filling.add_done_callback(self._filled)
        return self._filling

    def _filled(self, task: asyncio.Task[None]) -> None:
        self._filling = None
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("claim.crashed", exc_info=error)

    async def _claim_due(self) -> None:
        """Begin visits within the budget, which paces what piled up meanwhile too."""
        self._refill_at = None
        under_way = len(self._running)
        room = self._crew.affordable(self._settings.crawl.visits - under_way, under_way)
        if room <= 0 or self._stopping.is_set() or self._crew.must_wait:
            return
        claims = await self._crew.claim(room)
        if self._stopping.is_set():
            await self._crew.release(claims)
            return
        for claim in claims:
            task = asyncio.create_task(self._visit(claim), name=f"visit {claim.origin}")
            self._running.add(task)
            task.add_done_callback(self._ended)
        if len(claims) == room:
            # Some at a time, for one claim costs nearly as much as a dozen.
            self._refill_at = under_way + room - max(1, min(room, self._settings.crawl.visits // _REFILLS))

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if self._refill_at is not None and len(self._running) <= self._refill_at and not self._stopping.is_set():
            self._begin_to_fill()

    async def _visit(self, claim: Claim) -> None:
        with metrics.VISITS_UNDER_WAY.track_inprogress():
            await self._crew.visit(claim)

    async def _break_dead_claims(self) -> None:
        freed = await self._crew.break_dead_claims()
        if freed:
            _log.warning("claims.freed", origins=freed)

    async def _plan_anew(self) -> None:
        moved = await self._crew.plan_anew()
        if moved:
            _log.warning("clock.replanned", origins=moved)

    async def _drain(self) -> None:
        """Let visits finish within the grace, then break them off; their origins stay due."""
        _log.info("daemon.stopping", visits=len(self._running))
        if self._filling is not None:
            # What is being claimed would be nobody's; only an outage takes longer.
            await asyncio.wait({self._filling}, timeout=_CLAIM_PATIENCE_S)
        grace = self._settings.crawl.shutdown_grace.total_seconds()
        forced = asyncio.create_task(self._forced.wait(), name="second signal")
        visits = asyncio.create_task(self._wait_for_visits(), name="visits")
        await asyncio.wait({forced, visits}, timeout=grace, return_when=asyncio.FIRST_COMPLETED)
        left = {forced, visits, *self._running, *({self._filling} if self._filling else ())}
        while left:
            for task in left:
                task.cancel()
            # A visit that waits for the database would do so for ever.
            _, left = await asyncio.wait(left, timeout=_LAST_PATIENCE_S)
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


def _unless_outage(bell: Bell) -> Bell:
    """Let a bell pass while the database doesn't answer: that is logged already, and the next ring tries again."""

    async def ring() -> None:
        with suppress(StoreUnavailable):
            await bell()

    return ring
