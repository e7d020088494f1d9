"""Field reports of kind I: a process that runs for long, beside others."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import cycle
from statistics import quantiles
from typing import Any

import pytest
from aiohttp import ClientSession
from aiohttp import web as server
from sqlalchemy import Connection, func, select

from crawler.clock import SystemClock
from index.api.app import ApiServer
from index.store.tables import listings, snapshots
from tests.bench.steady import grows, run
from tests.fakes.contents import check_sound
from tests.fakes.events import PATIENCE_S, logged
from tests.fakes.harness import crawling, settings_for
from tests.fakes.web import FakeWeb, Handler, entry

ORIGINS, CLIENTS, SEARCHES = 50, 20, 5
PLACES = ("harbour", "meadow")
ARD = "/.well-known/ard.json"
# Holds the write lock of a database until its standard input ends, having written as well.
WRITER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
connection.execute("BEGIN IMMEDIATE")
connection.execute("UPDATE facts SET number = number")
print("locked", flush=True)
sys.stdin.read()
connection.execute("COMMIT")
"""


# --- FR-123: "database is locked" -------------------------------------------------------------------------------------


@asynccontextmanager
async def writing_elsewhere(url: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Have another process in the middle of a write transaction."""
    pipe = asyncio.subprocess.PIPE
    path = url.partition(":///")[2]
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", WRITER, path, stdin=pipe, stdout=pipe)
    assert process.stdout is not None
    assert await asyncio.wait_for(process.stdout.readline(), PATIENCE_S) == b"locked\n"
    try:
        yield process
    finally:
        await asyncio.wait_for(process.communicate(b""), PATIENCE_S)


async def search_often(session: ClientSession, address: str) -> list[float]:
    """Be one client that searches again and again; gives how long each answer took."""
    seconds = []
    for number in range(SEARCHES):
        began = time.perf_counter()
        question = {"query": {"text": PLACES[number % 2]}, "pageSize": 10}
        async with session.post(f"http://{address}/api/v1/search", json=question) as answer:
            assert answer.status == 200, await answer.text()
            assert len((await answer.json())["results"]) == 10
        seconds.append(time.perf_counter() - began)
    return seconds


async def searched_by_many(address: str) -> float:
    """Let all clients search at once; gives the time within which nineteen of twenty answers came."""
    async with ClientSession() as session:
        found = await asyncio.gather(*(search_often(session, address) for _ in range(CLIENTS)))
    return quantiles([seconds for client in found for seconds in client], n=20)[-1]


async def test_fr_123_readers_and_writers_of_several_processes_never_meet_a_locked_database(
    web: FakeWeb, sqlite_url: str
) -> None:
    sites = [web.site(f"s{number}") for number in range(ORIGINS)]
    for site, place in zip(sites, cycle(PLACES)):
        site.manifest(entry(place, site.host))
    settings = settings_for(*sites, url=sqlite_url, api={"listen": "127.0.0.1:0"})

    def stored(connection: Connection) -> tuple[int, int]:
        live = select(func.count()).where(listings.c.removed_at.is_(None))
        bodies = select(func.count()).select_from(snapshots)
        return connection.execute(live).scalar_one(), connection.execute(bodies).scalar_one()

    with logged() as events:
        async with (
            crawling(settings, SystemClock()) as crawl,
            ApiServer(settings, crawl.database) as api,
        ):
            await crawl.run()
            assert await crawl.database.read(stored) == (ORIGINS, ORIGINS)
            undisturbed_s = await searched_by_many(api.address)

            for site, place in zip(sites, cycle(PLACES)):
                site.manifest(entry(place, site.host, version="2.0.0"))
            # Something is left to write for as long as the other process writes.
            asked, locked = asyncio.Event(), asyncio.Event()
            last, page = sites[-1], sites[-1].pages[ARD]
            last.handle(ARD, held_back(page, asked, locked))
            crawling_on = asyncio.create_task(crawl.run())
            await asyncio.wait_for(asked.wait(), PATIENCE_S)
            async with writing_elsewhere(sqlite_url) as other:
                before = await crawl.database.read(stored)
                locked.set()
                disturbed_s = await searched_by_many(api.address)
                assert not crawling_on.done()
                assert other.returncode is None
                assert await crawl.database.read(stored) == before, "nothing is written meanwhile"
            summary = await asyncio.wait_for(crawling_on, PATIENCE_S)
            assert (summary.visited, summary.failed, summary.crashed) == (ORIGINS, 0, 0)
            assert (summary.tally.changes, summary.tally.snapshots) == (ORIGINS, ORIGINS)
            assert await crawl.database.read(stored) == (ORIGINS, 2 * ORIGINS)
            await crawl.database.read(check_sound)
    assert {event["event"] for event in events.seen} == {"visit.done"}, "nobody was told of a lock"
    assert disturbed_s < max(0.5, 5 * undisturbed_s), (disturbed_s, undisturbed_s)


def held_back(page: Any, asked: asyncio.Event, released: asyncio.Event) -> Handler:
    """Answer with a page once it is released."""

    async def answer(_: server.Request) -> server.StreamResponse:
        asked.set()
        await released.wait()
        return server.Response(body=page.body, content_type="application/json")

    return answer


# --- FR-124: finished tasks kept until memory is gone -----------------------------------------------------------------


@pytest.mark.timeout(300)
def test_fr_124_a_process_that_goes_on_visiting_holds_no_more_tasks_sessions_or_memory() -> None:
    """The long form is a benchmark, of fifty times as many visits."""
    warm, *later = run(2000, every=500, origins=100)
    assert [sample.visits for sample in later] == [1000, 1500, 2000]
    assert not grows([warm, *later])
    assert max(sample.files for sample in later) <= warm.files + 10
    assert later[-1].rss_mib - warm.rss_mib < 20
