"""A clock that tests move by hand."""

import asyncio
from datetime import UTC, datetime, timedelta


class FakeClock:
    """Starts at a fixed time; sleeping moves it on at once, so a month passes in a moment."""

    def __init__(self, start: datetime = datetime(2026, 11, 29, 12, 0, tzinfo=UTC), *, chance: float = 0.5) -> None:
        self._now = start
        self._chance = chance
        self.slept: list[float] = []

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._now.timestamp()

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._now += timedelta(seconds=seconds)
        await asyncio.sleep(0)

    def chance(self) -> float:
        return self._chance

    def advance(self, **duration: float) -> None:
        """Move on, as in advance(hours=2)."""
        self._now += timedelta(**duration)
