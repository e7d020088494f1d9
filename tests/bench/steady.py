"""A hundred thousand visits in one process: memory, tasks, sessions and open files must come to rest.

The clock is a simulated one, so that weeks pass; requests, answers and database are real. The web is a process of its
own: half a dozen looks in ten are answered by 304, manifests change now and then, and some connections are cut. The
upkeep of the database runs every simulated day, as in a daemon.
"""

import asyncio
import gc
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar
from zlib import crc32

import aiohttp

VISITS = 100_000
EVERY = 10_000
ORIGINS = 200
MOST_GROWTH = 0.05
_AT_A_TIME = 100
_CUT_EVERY, _CHANGED_EVERY = 50, 10
_UPKEEP_EVERY_H = 24
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Sample:
    """What the process holds after so many visits."""

    visits: int
    rss_mib: float
    tasks: int
    sessions: int
    files: int
    threads: int


def bench_steady() -> None:
    """Print what a process holds as its visits go on, and whether that comes to rest."""
    print(f"steady: {VISITS} visits to {ORIGINS} origins in one process\n")
    print(f"{'visits':>8} {'RSS MiB':>8} {'tasks':>6} {'sessions':>9} {'files':>6} {'threads':>8}")
    samples = []
    for sample in run(VISITS, every=EVERY):
        print(
            f"{sample.visits:8} {sample.rss_mib:8.1f} {sample.tasks:6} {sample.sessions:9} {sample.files:6} "
            f"{sample.threads:8}",
            flush=True,
        )
        samples.append(sample)
    grown = growth(samples)
    print(f"\nmemory after the first {EVERY} visits: {grown:+.1%} (at most {MOST_GROWTH:.0%})")
    if grown > MOST_GROWTH or grows(samples):
        raise SystemExit("steady: it does not come to rest")


def growth(samples: list[Sample]) -> float:
    """Give the growth of memory from the first sample to the last."""
    return samples[-1].rss_mib / samples[0].rss_mib - 1


def grows(samples: list[Sample]) -> bool:
    """Tell whether there are more tasks, sessions or threads at the end than there were after the first sample."""
    first, last = samples[0], samples[-1]
    return last.tasks > first.tasks or last.sessions > first.sessions or last.threads > first.threads


def run(visits: int, *, every: int, origins: int = ORIGINS) -> Iterator[Sample]:
    """Make visits in a process of its own and give its samples as they come."""
    with tempfile.TemporaryDirectory(prefix="ardvark-bench-") as folder:
        command = [sys.executable, "-m", "tests.bench.steady"]
        root = Path(__file__).resolve().parents[2]
        with subprocess.Popen(
            [*command, "serve"], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as web:
            assert web.stdout is not None
            port = web.stdout.readline().strip()
            arguments = ["visit", port, folder, str(visits), str(every), str(origins)]
            with subprocess.Popen([*command, *arguments], cwd=root, stdout=subprocess.PIPE, text=True) as process:
                assert process.stdout is not None
                for line in process.stdout:
                    yield Sample(**json.loads(line))
            web.communicate("")
            assert process.returncode == 0, "the visits ended early"


# --- the visits -------------------------------------------------------------------------------------------------------


async def _visit(port: str, folder: str, visits: int, every: int, origins: int) -> None:
    from config.logging import configure_logging
    from crawler.commands.heap import settle_heap
    from crawler.upkeep import Upkeep
    from tests.fakes.clock import FakeClock
    from tests.fakes.harness import crawling, settings_for

    names = [f"http://o{number}.bench.example:{port}" for number in range(origins)]
    hour = dict.fromkeys(("min_interval", "max_interval", "default_freshness", "absent_max_interval"), "1h")
    day = dict.fromkeys(("fetch_log_age", "snapshot_age", "version_age", "change_age"), "1d")
    settings = settings_for(
        *names,
        url=f"sqlite+aiosqlite:///{folder}/steady.db",
        crawl=hour,
        retention={**day, "changes_kept": 1000},
        logging={"level": "error"},
    )
    configure_logging(settings.logging)
    settle_heap()
    clock = FakeClock()
    done = 0
    async with crawling(settings, clock) as crawl:
        upkeep = Upkeep(settings, clock, crawl.database)
        hours = 0
        while done < visits:
            while claims := await crawl.crew.claim(_AT_A_TIME):
                await asyncio.gather(*(crawl.crew.visit(claim) for claim in claims))
                done += len(claims)
                if done % every < len(claims):
                    print(json.dumps(asdict(_sample(done))), flush=True)
            clock.advance(minutes=61)
            hours += 1
            if hours % _UPKEEP_EVERY_H == 0:
                await upkeep.prune()


def _sample(visits: int) -> Sample:
    gc.collect()
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE
    sessions = sum(isinstance(item, aiohttp.ClientSession) for item in gc.get_objects())
    return Sample(
        visits=visits,
        rss_mib=round(resident / 1_048_576, 1),
        tasks=len(asyncio.all_tasks()),
        sessions=sessions,
        files=len(list(Path("/proc/self/fd").iterdir())),
        threads=threading.active_count(),
    )


# --- the web that they are paid to ------------------------------------------------------------------------------------


class _Server(asyncio.Protocol):
    asked: ClassVar[Counter[bytes]] = Counter()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._buffer = b""

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head, self._buffer = self._buffer[:end], self._buffer[end + 4 :]
            said = self._answer(head)
            if said is None:
                self._transport.abort()
                return
            self._transport.write(said)

    def _answer(self, head: bytes) -> bytes | None:
        """Answer one request; None where the connection is cut instead."""
        lines = head.split(b"\r\n")
        path = lines[0].split(b" ", 2)[1]
        fields: dict[bytes, bytes] = {
            name.lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines[1:])
        }
        if path != b"/.well-known/ard.json":
            return b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\nContent-Type: text/plain\r\n\r\nnone"
        host = fields[b"host"].partition(b":")[0]
        self.asked[host] += 1
        if (self.asked[host] + crc32(host)) % _CUT_EVERY == 0:
            return None
        edition = self.asked[host] // _CHANGED_EVERY
        etag = b'"e%d"' % edition
        if fields.get(b"if-none-match") == etag:
            return b"HTTP/1.1 304 Not Modified\r\nETag: %s\r\n\r\n" % etag
        body = json.dumps({"entries": [_entry(host.decode(), number, edition) for number in range(4)]}).encode()
        return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\nETag: %s\r\n\r\n%s" % (
            len(body),
            etag,
            body,
        )


def _entry(host: str, number: int, edition: int) -> dict[str, Any]:
    from tests.fakes.web import entry

    return entry(f"n{number}", host, version=f"1.{edition if number == 0 else 0}.0", description="x" * 300)


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(_Server, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    # The parent closes our standard input when it is done with us.
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        asyncio.run(_serve())
    else:
        port_, folder_, *numbers = sys.argv[2:]
        asyncio.run(_visit(port_, folder_, *map(int, numbers)))
