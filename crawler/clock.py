"""Time as an argument, so that tests can run a month in a second."""

import asyncio
import random
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """The time, waiting, and chance."""

    def now(self) -> datetime:
        """Give the time in UTC."""

    def monotonic(self) -> float:
        """Give seconds that never go back."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""

    def chance(self) -> float:
        """Give a number in [0, 1)."""


class SystemClock:
    """The clock of this machine."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.Random(seed)  # noqa: S311 - jitter is no secret

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def chance(self) -> float:
        return self._random.random()
