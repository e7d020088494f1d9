"""A process whose log is read as it comes."""

import asyncio
import json
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.operator import PATIENCE_S


@dataclass
class Watched:
    """A process, and what it has logged so far."""

    process: asyncio.subprocess.Process
    events: list[dict[str, Any]] = field(default_factory=list)
    more: asyncio.Event = field(default_factory=asyncio.Event)
    reading: asyncio.Task[None] | None = None

    async def read(self) -> None:
        assert self.process.stderr is not None
        while line := await self.process.stderr.readline():
            self.events.append(json.loads(line))
            self.more.set()

    async def end(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        if self.reading is not None:
            await self.reading

    async def until(self, is_there: Callable[[list[dict[str, Any]]], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not is_there(self.events):
                self.more.clear()
                await self.more.wait()

    def visited(self) -> list[str]:
        return [event["origin"] for event in self.events if event["event"] == "visit.done"]

    async def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(self.process.wait(), PATIENCE_S) == 0


def named(name: str) -> Callable[[list[dict[str, Any]]], bool]:
    return lambda events: any(event["event"] == name for event in events)
