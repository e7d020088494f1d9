"""Several processes on one database: crawlers that share the work, a scheduler that looks after it, and an API."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aiohttp import ClientSession
from aiohttp import web as server
from sqlalchemy import Connection, select

from index.store.database import Database
from index.store.frontier import claim_due, managed_origins, put_origins
from index.store.processes import processes_since
from index.store.tables import origins
from tests.fakes.contents import listed_digests
from tests.fakes.operator import PATIENCE_S, Operator, operator_of
from tests.fakes.watched import Watched, named
from tests.fakes.web import FakeWeb, entry

pytestmark = pytest.mark.system
ARD = "/.well-known/ard.json"
on_postgres = pytest.mark.parametrize(
    "database_url", [pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True
)
SITES = 240
HELD = 60
VISITS = 20


class Held:
    """Answers that are held back until the test lets them go."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.enough = asyncio.Event()
        self.released = asyncio.Event()

    async def answer(self, request: server.Request) -> server.StreamResponse:
        host = request.host.partition(":")[0]
        self.asked[host] += 1
        if self.asked.total() >= HELD:
            self.enough.set()
        await self.released.wait()
        return server.json_response({"entries": [entry("held", host)]})


Start = Callable[..., Awaitable[Watched]]


@pytest.fixture
async def operator(database_url: str, tmp_path: Path) -> AsyncIterator[Operator]:
    async with operator_of(tmp_path / "operator", database_url) as somebody:
        yield somebody


@pytest.fixture
async def start(operator: Operator) -> AsyncIterator[Start]:
    """Start a process of a role, from the folder of an operator."""
    started: list[Watched] = []

    async def started_as(role: str, somebody: Operator = operator) -> Watched:
        watched = Watched(await somebody.start("run", "--role", role))
        watched.reading = asyncio.create_task(watched.read())
        started.append(watched)
        return watched

    yield started_as
    for watched in started:
        await watched.end()


def claims(connection: Connection) -> dict[str, str]:
    query = select(origins.c.origin, origins.c.claimed_by).where(origins.c.claimed_by.is_not(None))
    return {row.origin: row.claimed_by for row in connection.execute(query)}


def visits(connection: Connection) -> dict[str, tuple[int, str]]:
    query = select(origins.c.origin, origins.c.visits, origins.c.last_outcome).where(origins.c.active)
    return {row.origin: (row.visits, row.last_outcome) for row in connection.execute(query)}


PATIENT = (
    'allow_http = true\nallow_private = ["127.0.0.0/8"]\nhosts = { "*.example" = "127.0.0.1" }\n'
    'header_timeout = "5m"\ntotal_timeout = "5m"'
)


@on_postgres
async def test_three_crawlers_share_hundreds_of_origins_and_take_over_what_a_killed_one_held(
    web: FakeWeb, operator: Operator, start: Start
) -> None:
    """Every origin is visited, none twice within its interval, but for those that the dead one left half done."""
    held = Held()
    sites = [web.site(f"s{number:03}") for number in range(SITES)]
    for number, site in enumerate(sites):
        if number % (SITES // HELD):
            site.manifest(entry("tool", site.host))
        else:
            site.handle(ARD, held.answer)
    operator.configure(sites, network=PATIENT, crawl=f'visits = {VISITS}\nlease = "6s"')
    file = operator.folder / "ardvark.toml"
    file.write_text(file.read_text().replace("[[origins]]", '[[origins]]\nsurfaces = ["ard"]'))
    await (await operator.start("db", "upgrade")).communicate()
    crawlers = [await start("crawler") for _ in range(3)]
    await asyncio.wait_for(held.enough.wait(), PATIENCE_S)

    # Each of them is full of visits that wait; one dies with its own.
    claimed = await operator.read(claims)
    by_pid = Counter(int(name.split(":")[1]) for name in claimed.values())
    assert by_pid == {crawler.process.pid: VISITS for crawler in crawlers}
    dead, *living = crawlers
    dead.process.kill()
    await dead.process.wait()
    orphans = {origin for origin, name in claimed.items() if name.split(":")[1] == str(dead.process.pid)}
    before = set(dead.visited())
    held.released.set()

    wanted = {site.origin for site in sites} - before
    async with asyncio.timeout(PATIENCE_S):
        while wanted - {origin for crawler in living for origin in crawler.visited()}:
            waiting = [asyncio.create_task(crawler.more.wait()) for crawler in living]
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task, crawler in zip(waiting, living, strict=True):
                task.cancel()
                crawler.more.clear()
    for crawler in living:
        await crawler.stop()

    assert await operator.read(visits) == {site.origin: (1, "done") for site in sites}
    asked = {site.origin: len(site.requests(ARD)) for site in sites}
    assert {origin for origin, times in asked.items() if times != 1} <= orphans
    assert set(asked.values()) <= {1, 2}
    both = [origin for crawler in crawlers for origin in crawler.visited()]
    assert len(both) == len(set(both)) == SITES, "nothing was settled twice"
    assert all(len(crawler.visited()) > VISITS for crawler in living)
    assert len(await operator.read(listed_digests)) == SITES
    await operator.check()


@on_postgres
async def test_what_a_crawler_of_another_machine_held_is_free_when_its_lease_ends(
    web: FakeWeb, operator: Operator, start: Start
) -> None:
    """Of another machine nobody knows whether a process lives; its lease is what counts."""
    site = web.site("acme")
    site.manifest(entry("tool"))
    operator.configure([site], crawl='lease = "3s"')
    await (await operator.start("db", "upgrade")).communicate()
    now = datetime.now(UTC)
    async with Database(operator.url) as database:
        await database.write(put_origins, "config", {site.origin: {}}, now)
        (claim,) = await database.write(claim_due, "elsewhere:1:1:a", now, timedelta(seconds=3), 1)
    crawler = await start("crawler")
    await crawler.until(lambda _: bool(crawler.visited()))
    await crawler.stop()
    row = (await operator.read(visits))[site.origin]
    assert row == (1, "done")
    assert datetime.now(UTC) >= claim.until


async def test_a_crawler_serves_nothing_and_an_api_visits_nothing(
    web: FakeWeb, operator: Operator, start: Start
) -> None:
    site = web.site("acme")
    site.manifest(entry("tool"))
    operator.configure([site])
    await (await operator.start("db", "upgrade")).communicate()
    crawler = await start("crawler")
    await crawler.until(lambda _: bool(crawler.visited()))
    requests = len(web.seen)
    api = await start("api")
    await api.until(named("api.listening"))
    listening = next(event for event in api.events if event["event"] == "api.listening")
    async with ClientSession(f"http://{listening['address']}") as session, asyncio.timeout(PATIENCE_S):
        async with session.get("/api/v1/agents") as response:
            found = await response.json()
        assert [item["identifier"] for item in found["items"]] == ["urn:air:acme.example:tool:tool"]
        async with session.get("/readyz") as response:
            assert response.status == 200
    assert not any(event["event"] == "api.listening" for event in crawler.events)
    await crawler.stop()
    await api.stop()
    assert len(web.seen) == requests
    assert await operator.read(processes_since, datetime(2000, 1, 1, tzinfo=UTC)) == []


async def test_every_role_answers_for_itself_where_the_settings_say(
    web: FakeWeb, operator: Operator, start: Start
) -> None:
    """A crawler and a scheduler have no API; what they count and whether they can work is there all the same."""
    site = web.site("acme")
    site.manifest(entry("tool"))
    operator.configure([site], metrics='listen = "127.0.0.1:0"')
    await (await operator.start("db", "upgrade")).communicate()
    pages = {}
    for role in ("crawler", "scheduler", "api"):
        process = await start(role)
        await process.until(named("api.listening" if role == "api" else "daemon.started"))
        if role == "crawler":
            await process.until(lambda _, visited=process.visited: bool(visited()))
        (listening,) = [event for event in process.events if event["event"] == "metrics.listening"]
        async with ClientSession(f"http://{listening['address']}") as session, asyncio.timeout(PATIENCE_S):
            async with session.get("/healthz") as response:
                assert (response.status, await response.json()) == (200, {"status": "ok"})
            async with session.get("/readyz") as response:
                assert (response.status, await response.json()) == (200, {"status": "ready", "entries": 1})
            async with session.get("/metrics") as response:
                assert response.status == 200
                pages[role] = await response.text()
            for path in ("/", "/api/v1/agents", "/.well-known/ard.json", "/openapi.json"):
                async with session.get(path) as response:
                    assert (response.status, (await response.json())["errorCode"]) == (404, "NOT_FOUND"), path
        await process.stop()
    done = 'ardvark_visits_total{outcome="done"}'
    assert {role: f"{done} 1.0" in page for role, page in pages.items()} == {
        "crawler": True,
        "scheduler": False,
        "api": False,
    }
    assert all("ardvark_listings 1.0" in page for page in pages.values())


async def test_a_port_that_is_taken_is_the_operators_mistake(web: FakeWeb, operator: Operator, start: Start) -> None:
    operator.configure([web.site("acme")], metrics='listen = "127.0.0.1:0"')
    await (await operator.start("db", "upgrade")).communicate()
    first = await start("crawler")
    await first.until(named("metrics.listening"))
    address = next(event["address"] for event in first.events if event["event"] == "metrics.listening")
    process = await operator.start("--set", f'metrics.listen="{address}"', "run", "--role", "scheduler")
    _, err = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    assert process.returncode == 2
    assert f"metrics.listen = {address}: " in err.decode()
    assert "Traceback" not in err.decode()
    await first.stop()


async def test_a_scheduler_keeps_the_allowlist_and_visits_nothing(
    web: FakeWeb, operator: Operator, start: Start
) -> None:
    acme, other = web.site("acme"), web.site("other")
    operator.configure([acme, other])
    await operator.crawl()
    web.clear_log()
    operator.configure([acme])
    scheduler = await start("scheduler")
    await scheduler.until(named("daemon.started"))
    assert any(event["event"] == "origins.removed" for event in scheduler.events)
    await scheduler.stop()
    assert set(await operator.read(managed_origins, "config")) == {acme.origin}
    assert web.seen == []


async def test_daemons_with_different_origins_warn_and_leave_each_others_alone(
    web: FakeWeb, operator: Operator, start: Start, tmp_path: Path
) -> None:
    acme, other = web.site("acme"), web.site("other")
    acme.manifest(entry("tool"))
    other.manifest(entry("tool", other.host))
    operator.configure([acme])
    first = await start("all")
    await first.until(lambda _: bool(first.visited()))
    other_operator = Operator(tmp_path / "second", operator.url, operator.started)
    other_operator.configure([other])
    second = await start("all", other_operator)
    await second.until(named("daemon.started"))
    warned = next(event for event in second.events if event["event"] == "origins.settings_differ")
    assert warned["level"] == "warning"
    assert [name.split(":")[1] for name in warned["others"]] == [str(first.process.pid)]
    assert set(await operator.read(managed_origins, "config")) == {acme.origin, other.origin}
    await first.stop()
    await second.stop()
