"""Pacing: one request at a time to one origin, spaced; other origins are never held up."""

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta

from crawler.clock import Clock
from crawler.policy.politeness import Mercy, after_too_many_requests, slowdown_at

_IDLE_LIMIT = 10_000


@dataclass(slots=True)
class _Lane:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    next_at: float = 0.0
    waiting: int = 0


class _Turn:
    """One turn at an origin, to be used with `async with`."""

    __slots__ = ("_clock", "_lane", "_spacing_s")

    def __init__(self, clock: Clock, lane: _Lane, spacing_s: float) -> None:
        self._clock = clock
        self._lane = lane
        self._spacing_s = spacing_s
        lane.waiting += 1

    async def __aenter__(self) -> None:
        lane = self._lane
        try:
            await lane.lock.acquire()
        except BaseException:
            lane.waiting -= 1
            raise
        try:
            wait = lane.next_at - self._clock.monotonic()
            if wait > 0:
                await self._clock.sleep(wait)
        except BaseException:
            await self.__aexit__()
            raise
        lane.next_at = self._clock.monotonic() + self._spacing_s

    async def __aexit__(self, *_: object) -> None:
        self._lane.lock.release()
        self._lane.waiting -= 1


class Limiter:
    """Turns at origins, and the mercy that some of them asked for.

    It is remembered while this process lives; whoever keeps it for longer asks for the news and brings it back.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lanes: dict[str, _Lane] = {}
        self._mercies: dict[str, Mercy] = {}
        self._news: set[str] = set()

    def slow_down(self, origin: str, retry_after: timedelta | None) -> None:
        """Take note that an origin answered 429."""
        now = self._clock.monotonic()
        if len(self._mercies) >= _IDLE_LIMIT:
            self._mercies = {name: kept for name, kept in self._mercies.items() if kept.until > now}
        self._mercies[origin] = after_too_many_requests(self._mercies.get(origin), now, retry_after)
        self._news.add(origin)

    def take_news(self) -> dict[str, Mercy]:
        """Give the mercies that are new since this was asked last."""
        news, self._news = self._news, set()
        return {origin: self._mercies[origin] for origin in news if origin in self._mercies}

    def remember(self, origin: str, mercy: Mercy) -> None:
        """Bring back what was kept, unless more is known by now."""
        known = self._mercies.get(origin)
        if known is None or known.until < mercy.until:
            self._mercies[origin] = mercy

    def slowdown(self, origin: str) -> float:
        """Say how many times longer than usual the pauses at an origin are."""
        return slowdown_at(self._mercies.get(origin), self._clock.monotonic())

    def turn(self, origin: str, spacing: timedelta) -> "_Turn":
        """Wait for this origin's turn and hold it; the next turn starts no sooner than `spacing` after this one."""
        return _Turn(self._clock, self._lane(origin), spacing.total_seconds())

    def wait_s(self, origin: str) -> float:
        """Say how long a turn at this origin would have to wait now, in seconds."""
        lane = self._lanes.get(origin)
        return 0.0 if lane is None else max(lane.next_at - self._clock.monotonic(), 0.0)

    def _lane(self, origin: str) -> _Lane:
        lane = self._lanes.get(origin)
        if lane is None:
            if len(self._lanes) >= _IDLE_LIMIT:
                now = self._clock.monotonic()
                self._lanes = {name: kept for name, kept in self._lanes.items() if kept.waiting or kept.next_at > now}
            lane = self._lanes[origin] = _Lane()
        return lane
