"""The daemon's own faults: a database that is locked, full, gone or cut off, and a clock that is set."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from aiohttp import ClientSession
from aiohttp import web as server
from sqlalchemy import Connection, event, select, update

from crawler.clock import SystemClock
from crawler.daemon import Daemon
from crawler.scheduler import Bells
from index.api.app import ApiServer
from index.store.frontier import release_claims, renew_claims
from index.store.outage import StoreUnavailable
from index.store.tables import documents, fetches, listings, origins
from tests.conftest import OpenCrawl
from tests.fakes.clock import FakeClock
from tests.fakes.events import PATIENCE_S, Events, logged
from tests.fakes.harness import Crawl, crawling, settings_for
from tests.fakes.shell import command
from tests.fakes.web import FakeWeb, Site, entry

ARD = "/.well-known/ard.json"
SERVER = "postgresql://postgres@127.0.0.1:5432/postgres"
only_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
only_postgres = pytest.mark.parametrize(
    "database_url", [pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True
)


class Held:
    """A manifest that is held back until the test lets it go."""

    def __init__(self, site: Site, entries: int) -> None:
        self.asked = asyncio.Event()
        self.released = asyncio.Event()
        self._site, self._entries = site, entries
        site.handle(ARD, self.answer)

    async def answer(self, _: server.Request) -> server.StreamResponse:
        self.asked.set()
        await self.released.wait()
        return server.json_response({"entries": [entry(f"e{n}", self._site.host) for n in range(self._entries)]})


@asynccontextmanager
async def daemon_of(*sites: Site, url: str, **crawl: Any) -> AsyncIterator[tuple[Crawl, Daemon, Events]]:
    """Run a daemon in this process, by the real clock."""
    settings = settings_for(*sites, url=url, crawl={"shutdown_grace": "10s", **crawl}, api={"listen": "127.0.0.1:0"})
    with logged() as events:
        async with crawling(settings, SystemClock()) as opened:
            daemon = Daemon(settings, opened.clock, opened.crew)
            task = asyncio.create_task(daemon.run())
            try:
                yield opened, daemon, events
            finally:
                daemon.stop()
                await asyncio.wait_for(task, PATIENCE_S)


async def be_impatient(crawl: Crawl) -> None:
    """Wait for locks only a moment."""
    await crawl.database.write(lambda connection: connection.exec_driver_sql("PRAGMA busy_timeout = 50").close())


def fill(connection: Connection) -> int:
    """Leave a file no room to grow; gives how many pages it has."""
    pages = int(connection.exec_driver_sql("PRAGMA page_count").scalar_one())
    connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}").close()
    return pages


@contextmanager
def locked(url: str) -> Iterator[None]:
    """Hold the write lock as another process would."""
    other = sqlite3.connect(url.partition(":///")[2], isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


class Faults:
    """Counts the statements that the database refused, and tells when there were so many."""

    def __init__(self, crawl: Crawl) -> None:
        self.number = 0
        self._more = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        event.listen(crawl.database.write_engine, "handle_error", self._count)

    def _count(self, _: Any) -> None:
        self._loop.call_soon_threadsafe(self._add)

    def _add(self) -> None:
        self.number += 1
        self._more.set()

    async def reach(self, number: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while self.number < number:
                self._more.clear()
                await self._more.wait()


def settled(connection: Connection) -> dict[str, tuple[Any, ...]]:
    """Give visits, outcome and holder of each origin."""
    query = select(origins.c.origin, origins.c.visits, origins.c.last_outcome, origins.c.claimed_by)
    return {row[0]: tuple(row[1:]) for row in connection.execute(query)}


def listed(connection: Connection) -> int:
    return len(connection.execute(select(listings.c.id).where(listings.c.removed_at.is_(None))).all())


def looks(connection: Connection) -> list[str]:
    """Give the URL of every line of the fetch log."""
    query = select(documents.c.url).join(fetches, fetches.c.document_id == documents.c.id)
    return list(connection.execute(query).scalars())


async def ready(address: str) -> tuple[int, dict[str, Any]]:
    async with ClientSession() as session, session.get(f"http://{address}/readyz") as response:
        return response.status, await response.json()


# --- SQLite -----------------------------------------------------------------------------------------------------------


@only_sqlite
async def test_a_locked_database_is_waited_for_and_told_of(web: FakeWeb, database_url: str) -> None:
    site = web.site("acme")
    held = Held(site, 3)
    async with (
        daemon_of(site, url=database_url) as (crawl, _, events),
        ApiServer(crawl.settings, crawl.database) as api,
    ):
        await asyncio.wait_for(held.asked.wait(), PATIENCE_S)
        await be_impatient(crawl)
        faults = Faults(crawl)
        with locked(database_url):
            held.released.set()
            said = await events.wait("store.unavailable")
            assert "locked" in said["reason"]
            status, answer = await ready(api.address)
            assert (status, answer["status"]) == (200, "degraded")
            assert answer["problem"] == "the database is locked by another process"
            assert answer["since"]
            code, shown = await command(database_url, "status")
            assert code == 0
            assert "problem    the database is locked by another process" in shown
            await faults.reach(4)
            assert await crawl.database.read(listed) == 0
        await events.wait("visit.done", origin=site.origin)
        await events.wait("store.available")
        assert (await ready(api.address))[1] == {"status": "ready", "entries": 3}
        assert await crawl.database.read(settled) == {site.origin: (1, "done", None)}
        seen = await crawl.database.read(looks)
        assert len(seen) == len(set(seen)), "nothing is written twice"
        assert [len(events.named(name)) for name in ("store.unavailable", "store.available")] == [1, 1]
        assert events.named("store.unit_failed") == events.named("visit.crashed") == []


@only_sqlite
async def test_no_visit_begins_while_what_was_found_finds_no_room(web: FakeWeb, database_url: str) -> None:
    """A claim needs no new page and would succeed, so it is the failing write that keeps others from beginning."""
    first, late = web.site("first"), web.site("late")
    late.manifest(entry("late", late.host))
    held = Held(first, 400)
    settings = settings_for(first, late, url=database_url)
    async with crawling(settings, SystemClock()) as before:
        due = datetime.now(UTC) + timedelta(seconds=2)
        this = update(origins).where(origins.c.origin == late.origin).values(next_visit_at=due)
        await before.database.write(lambda connection: connection.execute(this))
    async with daemon_of(first, late, url=database_url) as (crawl, _, events):
        await asyncio.wait_for(held.asked.wait(), PATIENCE_S)
        pages = await crawl.database.write(fill)
        faults = Faults(crawl)
        held.released.set()
        assert "full" in (await events.wait("store.unavailable"))["reason"]
        # By the seventh attempt the other origin has been due for seconds.
        await faults.reach(7)
        assert datetime.now(UTC) > due
        assert late.requests() == []
        await crawl.database.write(lambda c: c.exec_driver_sql(f"PRAGMA max_page_count = {pages + 100_000}").close())
        await events.wait("visit.done", origin=first.origin)
        await events.wait("visit.done", origin=late.origin)
        assert await crawl.database.read(listed) == 401
        assert [len(events.named(name)) for name in ("store.unavailable", "store.available")] == [1, 1]


@only_sqlite
async def test_a_database_file_that_is_moved_away_and_back_is_waited_for(web: FakeWeb, database_url: str) -> None:
    site = web.site("acme")
    held = Held(site, 3)
    path = Path(database_url.partition(":///")[2])
    async with daemon_of(site, url=database_url) as (crawl, _, events):
        await asyncio.wait_for(held.asked.wait(), PATIENCE_S)
        away = await asyncio.to_thread(path.rename, path.with_name("away.db"))
        held.released.set()
        assert "moved or deleted" in (await events.wait("store.unavailable"))["reason"]
        await asyncio.to_thread(path.touch)
        with pytest.raises(StoreUnavailable, match="another file is in its place"):
            await crawl.database.write(listed)
        await asyncio.to_thread(away.rename, path)
        await events.wait("visit.done", origin=site.origin)
        assert await crawl.database.read(listed) == 3


@only_sqlite
async def test_a_daemon_that_is_stopped_in_an_outage_ends_and_the_next_one_finds_it_all(
    web: FakeWeb, database_url: str
) -> None:
    site = web.site("acme")
    held = Held(site, 3)
    settings = settings_for(site, url=database_url, crawl={"shutdown_grace": "1s", "lease": "2s"})
    with ExitStack() as lock, logged() as events:
        async with crawling(settings, SystemClock()) as crawl:
            daemon = Daemon(settings, crawl.clock, crawl.crew)
            task = asyncio.create_task(daemon.run())
            await asyncio.wait_for(held.asked.wait(), PATIENCE_S)
            await be_impatient(crawl)
            lock.enter_context(locked(database_url))
            held.released.set()
            await events.wait("store.unavailable")
            daemon.stop()
            await asyncio.wait_for(task, PATIENCE_S)
        assert (await events.wait("store.units_lost"))["units"] > 0
        assert events.named("visit.done") == []
    async with crawling(settings, SystemClock()) as crawl:
        assert (await crawl.database.read(settled))[site.origin][0] == 0
        await crawl.run()
        assert await crawl.database.read(listed) == 3


# --- PostgreSQL -------------------------------------------------------------------------------------------------------


async def on_server(*statements: str) -> None:
    connection = await asyncpg.connect(SERVER)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


def terminate(name: str) -> str:
    return f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"


@only_postgres
async def test_a_crawl_whose_connections_are_cut_again_and_again_ends_as_any_other(
    web: FakeWeb, database_url: str
) -> None:
    name = database_url.rpartition("/")[2]
    sites = [web.site(f"s{number}") for number in range(12)]

    def cutting(site: Site) -> Any:
        async def answer(_: server.Request) -> server.StreamResponse:
            await on_server(terminate(name))
            return server.json_response({"entries": [entry(f"e{n}", site.host) for n in range(5)]})

        return answer

    for site in sites:
        site.handle(ARD, cutting(site))
    with logged() as events:
        async with crawling(settings_for(*sites, url=database_url), SystemClock()) as crawl:
            summary = await crawl.run()
            assert (summary.visited, summary.failed, summary.crashed) == (12, 0, 0)
            assert await crawl.database.read(listed) == 60
            assert set((await crawl.database.read(settled)).values()) == {(1, "done", None)}
            assert set(await crawl.database.read(looks)) >= {site.url(ARD) for site in sites}
    assert len(events.named("store.unavailable")) == len(events.named("store.available")) > 0


@only_postgres
async def test_a_server_that_loses_the_database_for_a_while_is_waited_for(web: FakeWeb, database_url: str) -> None:
    name = database_url.rpartition("/")[2]
    site = web.site("acme")
    held = Held(site, 3)
    async with (
        daemon_of(site, url=database_url) as (crawl, _, events),
        ApiServer(crawl.settings, crawl.database) as api,
    ):
        await asyncio.wait_for(held.asked.wait(), PATIENCE_S)
        await on_server(terminate(name), f"ALTER DATABASE {name} RENAME TO {name}_away")
        try:
            held.released.set()
            assert (await events.wait("store.unavailable"))["reason"]
            status, answer = await ready(api.address)
            assert (status, answer["errorCode"]) == (503, "UNAVAILABLE")
            assert "gone" in answer["message"]
            async with ClientSession() as session:
                async with session.get(f"http://{api.address}/api/v1/agents") as response:
                    assert (response.status, response.headers["Retry-After"]) == (503, "5")
                async with session.get(f"http://{api.address}/metrics") as response:
                    text = await response.text()
            assert "ardvark_store_available 0.0" in text
            assert "ardvark_listings " not in text
        finally:
            await on_server(f"ALTER DATABASE {name}_away RENAME TO {name}")
        await events.wait("visit.done", origin=site.origin)
        await events.wait("store.available")
        assert (await ready(api.address))[1] == {"status": "ready", "entries": 3}
        assert await crawl.database.read(settled) == {site.origin: (1, "done", None)}
        assert events.named("visit.crashed") == []


# --- claims -----------------------------------------------------------------------------------------------------------


async def test_an_outage_longer_than_the_lease_does_not_make_a_worker_claim_its_own_origins(
    open_crawl: OpenCrawl, web: FakeWeb, clock: FakeClock
) -> None:
    async with open_crawl(web.site("acme")) as crawl:
        (held,) = await crawl.crew.claim(10)
        clock.advance(hours=1)
        assert await crawl.crew.claim(10) == []
        await crawl.crew.release([held])
        assert [claim.origin for claim in await crawl.crew.claim(10)] == [held.origin]


async def test_a_settled_visit_is_not_claimed_by_a_late_renewal(
    open_crawl: OpenCrawl, web: FakeWeb, clock: FakeClock
) -> None:
    async with open_crawl(web.site("acme")) as crawl:
        (held,) = await crawl.crew.claim(10)
        await crawl.database.write(release_claims, [held])
        await crawl.database.write(renew_claims, [held], clock.now() + timedelta(hours=1))
        assert [claim.origin for claim in await crawl.crew.claim(10)] == [held.origin]


# --- the clock --------------------------------------------------------------------------------------------------------


class SettableClock(SystemClock):
    """The clock of the machine, and the same for the scheduler's library, as somebody sets it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.ahead = timedelta(0)
        clock = self

        class Set(datetime):
            @classmethod
            def now(cls, tz: Any = None) -> datetime:
                return clock.now().astimezone(tz)

        monkeypatch.setattr("apscheduler.schedulers.base.datetime", Set)
        monkeypatch.setattr("apscheduler.executors.base.datetime", Set)

    def now(self) -> datetime:
        return super().now() + self.ahead


class Rings:
    """A bell that tells how often it has rung."""

    def __init__(self) -> None:
        self.number = 0
        self._more = asyncio.Event()

    async def ring(self) -> None:
        self.number += 1
        self._more.set()

    async def further(self, number: int) -> None:
        wanted = self.number + number
        async with asyncio.timeout(PATIENCE_S):
            while self.number < wanted:
                self._more.clear()
                await self._more.wait()


@pytest.mark.parametrize("leap", [timedelta(days=-1), timedelta(hours=-1), timedelta(days=3650)])
async def test_bells_ring_on_however_the_clock_is_set(monkeypatch: pytest.MonkeyPatch, leap: timedelta) -> None:
    clock = SettableClock(monkeypatch)
    bell, leaps = Rings(), Rings()
    with logged() as events:
        bells = Bells(clock)
        bells.add("test", bell.ring, timedelta(seconds=0.2))
        bells.at_leap(leaps.ring)
        with bells:
            await bell.further(2)
            clock.ahead += leap
            before = bell.number
            await leaps.further(1)
            await bell.further(2)
            assert bell.number - before < 20, "what was missed is rung once"
        assert abs(events.named("clock.leapt")[0]["seconds"] - leap.total_seconds()) < 5
        assert leaps.number == 1


async def test_what_a_clock_planned_that_was_ahead_is_planned_anew(
    open_crawl: OpenCrawl, web: FakeWeb, clock: FakeClock
) -> None:
    acme, rests = web.site("acme"), web.site("rests")
    acme.manifest(entry("one"))
    rests.page(ARD, status=503, headers={"Retry-After": "7200"})
    async with open_crawl(acme, rests) as crawl:
        clock.advance(days=30)
        await crawl.run()

        def plan(connection: Connection) -> dict[str, tuple[Any, ...]]:
            query = select(origins.c.origin, origins.c.next_visit_at, origins.c.not_before)
            return {row[0]: tuple(row[1:]) for row in connection.execute(query)}

        before = await crawl.database.read(plan)
        clock.advance(days=-30)
        assert await crawl.crew.plan_anew() == 2
        after = await crawl.database.read(plan)
        month = timedelta(days=30)
        assert after[acme.origin][0] == before[acme.origin][0] - month
        assert after[rests.origin] == tuple(at - month for at in before[rests.origin])
        looks_at = {row.url: row.next_fetch_at for row in (await crawl.documents(acme)).values() if row.next_fetch_at}
        assert looks_at
        assert max(looks_at.values()) < clock.now() + timedelta(days=8)

        clock.advance(hours=3)
        web.clear_log()
        for claim in await crawl.crew.claim(10):
            await crawl.crew.visit(claim)
        assert {seen.host for seen in web.seen} == {acme.host, rests.host}
        assert await crawl.crew.plan_anew() == 0
