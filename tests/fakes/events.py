"""Log events that a test can wait for."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from structlog.testing import capture_logs
from structlog.types import EventDict

PATIENCE_S = 30


class Events:
    """What was logged, and who waits for what is yet to come."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []
        self._more = asyncio.Event()

    def __call__(self, _: Any, level: str, event: EventDict) -> EventDict:
        self.seen.append({**event, "level": level})
        self._more.set()
        return event

    def named(self, name: str) -> list[dict[str, Any]]:
        return [event for event in self.seen if event["event"] == name]

    async def wait(self, name: str, **wanted: Any) -> dict[str, Any]:
        """Wait until an event was logged; it may have been already."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                for event in self.named(name):
                    if wanted.items() <= event.items():
                        return event
                self._more.clear()
                await self._more.wait()

    async def more(self) -> None:
        """Wait until something is logged."""
        self._more.clear()
        async with asyncio.timeout(PATIENCE_S):
            await self._more.wait()


@contextmanager
def logged() -> Iterator[Events]:
    """Take the log events of this process."""
    events = Events()
    with capture_logs(processors=[events]):
        yield events
