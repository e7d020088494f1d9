"""Somebody who runs the installed command: settings in a folder, processes of their own, and the requests they make."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from index.store.database import Database
from tests.fakes.contents import check_sound
from tests.fakes.shell import ARDVARK
from tests.fakes.web import Seen, Site

PATIENCE_S = 60


class Requests(list[Seen]):
    """The log of a fake web that tells when it has grown to a size."""

    def __init__(self) -> None:
        super().__init__()
        self._awaited: list[tuple[int, asyncio.Event]] = []

    def append(self, seen: Seen) -> None:
        super().append(seen)
        for size, reached in self._awaited:
            if len(self) >= size:
                reached.set()

    async def reach(self, size: int) -> None:
        reached = asyncio.Event()
        self._awaited.append((size, reached))
        if len(self) < size:
            await reached.wait()


@dataclass
class Operator:
    """Somebody at a shell, with a settings file of their own."""

    folder: Path
    url: str
    started: list[asyncio.subprocess.Process] = field(default_factory=list)

    def configure(self, sites: Sequence[Site], **sections: str) -> None:
        """Write the settings; sections are over those that every test needs."""
        network = 'allow_http = true\nallow_private = ["127.0.0.0/8"]\nhosts = { "*.example" = "127.0.0.1" }'
        parts = {
            "storage": f'url = "{self.url}"',
            "network": network,
            "politeness": 'min_delay = "0s"',
            "logging": 'format = "json"',
            "api": 'listen = "127.0.0.1:0"',
            **sections,
        }
        text = "".join(f"[{name}]\n{lines}\n" for name, lines in parts.items())
        text += "".join(f'[[origins]]\norigin = "{site.origin}"\n' for site in sites)
        self.folder.mkdir(exist_ok=True)
        (self.folder / "ardvark.toml").write_text(text)

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        """Start a command whose output the test reads."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(ARDVARK, *arguments, cwd=self.folder, stdout=pipe, stderr=pipe)
        self.started.append(process)
        return process

    async def start_daemon(self) -> asyncio.subprocess.Process:
        """Start a daemon that logs into a file, as nobody reads along."""
        with self.log.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                ARDVARK, "run", cwd=self.folder, stdout=asyncio.subprocess.DEVNULL, stderr=log
            )
        self.started.append(process)
        return process

    @property
    def log(self) -> Path:
        return self.folder / "daemon.log"

    async def crawl(self, patience_s: float = PATIENCE_S) -> dict[str, Any]:
        """Crawl to the end and give the summary."""
        process = await self.start("crawl", "--json")
        out, err = await asyncio.wait_for(process.communicate(), patience_s)
        assert process.returncode == 0, err.decode()
        summary: dict[str, Any] = json.loads(out)
        return summary

    async def read(self, work: Callable[..., Any], *arguments: Any) -> Any:
        async with Database(self.url) as database:
            return await database.read(work, *arguments)

    async def check(self) -> None:
        """Check what must hold at any moment, however the last process ended."""
        await self.read(check_sound)
        if self.url.startswith("sqlite"):
            await asyncio.to_thread(_check_file, self.url.partition(":///")[2])

    async def end(self) -> None:
        for process in self.started:
            if process.returncode is None:
                process.kill()
            await process.communicate()


def _check_file(path: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


@asynccontextmanager
async def operator_of(folder: Path, url: str) -> AsyncIterator[Operator]:
    operator = Operator(folder, url)
    try:
        yield operator
    finally:
        await operator.end()
