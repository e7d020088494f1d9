"""Bare aiohttp and our own crawl, the first two clients of the crawl bench, each run in a process of its own."""

import asyncio
import json
import socket
import sys
import time
from datetime import UTC, datetime
from typing import Any

import uvloop

from tests.bench.visits import AT_A_TIME, ENTRIES, MANIFEST, ORIGINS, Job, conditions, read_job


async def _bare(job: Job) -> dict[str, float]:
    import ssl

    import aiohttp
    from aiohttp.abc import AbstractResolver, ResolveResult

    class Loopback(AbstractResolver):
        async def resolve(self, host: str, port: int = 0, family: Any = 0) -> list[ResolveResult]:
            return [ResolveResult(hostname=host, host="127.0.0.1", port=port, family=socket.AF_INET, proto=0, flags=0)]

        async def close(self) -> None:
            pass

    connector = aiohttp.TCPConnector(
        resolver=Loopback(), limit=AT_A_TIME, ssl=ssl.create_default_context(cafile=job.authority)
    )
    waiting = iter(enumerate(job.origins))

    async def visit_in_turn(session: aiohttp.ClientSession) -> None:
        for number, origin in waiting:
            for path in job.paths:
                async with session.get(origin + path, headers=conditions(job, number, path)) as response:
                    await response.read()

    async with aiohttp.ClientSession(connector=connector) as session:
        began, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(visit_in_turn(session) for _ in range(AT_A_TIME)))
        return _since(began, cpu)


async def _ardvark(job: Job) -> dict[str, float]:
    from config.loading import load_settings
    from config.logging import configure_logging
    from crawler.commands.heap import settle_heap
    from crawler.commands.parts import crawling
    from crawler.crawl import crawl_once

    origins = job.origins
    probed = job.kind == "four requests"
    named = origins if probed else [f"{job.scheme}://*.bench.example:{job.port}"]
    settings = load_settings(
        overrides={
            # Only what the other clients ask for as well.
            "origins": [{"origin": origin, "surfaces": ["ard"]} for origin in named],
            "storage": {"url": f"sqlite+aiosqlite:///{job.folder}/bench.db"},
            "network": {
                "allow_http": True,
                "allow_private": ["127.0.0.0/8"],
                "hosts": {"*.example": "127.0.0.1"},
                "extra_ca_file": job.authority,
            },
            "politeness": {"min_delay": "0s"},
            "logging": {"level": "warning"},
        }
    )
    configure_logging(settings.logging)
    async with crawling(settings) as parts:
        if not probed and job.crawl == "first":
            await _name_manifests(parts.database, origins)
        settle_heap()
        began, cpu = time.perf_counter(), time.process_time()
        await crawl_once(parts.crew, origins, parts.writer.tally, visits=AT_A_TIME)
        measured = _since(began, cpu)
    tally = parts.writer.tally
    assert (tally.listed if job.crawl == "first" else tally.unchanged) == ORIGINS * ENTRIES, (
        "not every manifest was read"
    )
    return measured


async def _name_manifests(database: Any, origins: list[str]) -> None:
    """Leave the origins as leads from elsewhere do: one manifest known of each, and no probing allowed."""
    from index.documents import DocumentKind
    from index.records import Mechanism
    from index.store.documents import new_target, put_documents
    from index.store.frontier import put_origins

    now = datetime.now(UTC)
    targets = [new_target(o + MANIFEST, o, now, DocumentKind.MANIFEST, Mechanism.LINK_HEADER) for o in origins]
    await database.write(put_origins, "lead", {origin: {} for origin in origins}, now)
    await database.write(put_documents, targets, ())


def _since(began: float, cpu: float) -> dict[str, float]:
    return {"seconds": time.perf_counter() - began, "cpu_s": time.process_time() - cpu}


if __name__ == "__main__":
    client = {"bare": _bare, "ardvark": _ardvark}[sys.argv[1]]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(runner.run(client(read_job(sys.argv[2])))))
