"""The fault exam: whatever goes wrong, good listings stay, others are not concerned, and it is said what is wrong.

Everything that a publisher can do goes into one crawl of many sites that were well before. Our own faults are tried in
depth elsewhere; here each of them is told in the same table, which is part of the manual of operators.
"""

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiohttp import ClientSession
from aiohttp import web as server

from config.settings import Settings
from config.units import format_duration
from crawler.clock import SystemClock
from index.api.app import ApiServer
from tests.conftest import HAS_POSTGRES
from tests.fakes.clock import FakeClock
from tests.fakes.contents import check_sound
from tests.fakes.events import PATIENCE_S, logged
from tests.fakes.exam import Exam, table
from tests.fakes.faults import Relay, remote_faults
from tests.fakes.harness import Crawl, crawling, settings_for
from tests.fakes.history import pass_time
from tests.fakes.web import FakeWeb, Handler, Page, Site, entry

pytestmark = [pytest.mark.system, pytest.mark.timeout(1800)]

ARD = "/.well-known/ard.json"
IMPATIENT = {"connect_timeout": "1500ms", "header_timeout": "1500ms", "total_timeout": "2500ms"}
HEAD = ("what goes wrong", "what the look or the log says", "what listings say", "tried again after")
# Nobody answers there, as when a name server is down.
NO_NAME_SERVER = "127.0.0.66"


@dataclass
class Patient:
    """A site that was well, and the ways in which it can fall ill."""

    site: Site
    ills: dict[str, Callable[[Page], Page | Handler]]
    well: Page = field(default_factory=Page)
    identifiers: set[str] = field(default_factory=set)

    def publish(self, *names: str) -> set[str]:
        """Publish entries and give their identifiers."""
        self.well = self.site.manifest(*(entry(name, self.site.host) for name in names))
        self.identifiers = {f"urn:air:{self.site.host}:tool:{name}" for name in names}
        return self.identifiers

    def suffer(self, ill: str) -> None:
        self.site.pages[ARD] = self.ills[ill](self.well)

    def recover(self) -> None:
        self.site.pages[ARD] = self.well


def patient(site: Site, ills: dict[str, Callable[[Page], Page | Handler]] | None = None) -> Patient:
    found = Patient(site, ills or {})
    found.publish("echo", "ping")
    return found


async def visit_together(crawl: Crawl) -> None:
    """Visit all that is due at the same time, so that one that hangs could hold up the others."""
    claims = await crawl.crew.claim(100)
    await asyncio.gather(*(crawl.crew.visit(claim) for claim in claims))


async def search_says(crawl: Crawl) -> dict[str, dict[str, Any]]:
    """Search and give what each result says of its freshness."""
    async with ApiServer(crawl.settings, crawl.database, crawl.clock.now) as api, ClientSession() as session:
        question = {"query": {"text": "echo ping"}, "pageSize": 100}
        async with session.post(f"http://{api.address}/api/v1/search", json=question) as answer:
            results = (await answer.json())["results"]
    return {result["identifier"]: result["ardvark:freshness"] for result in results}


def row(ill: str, document: Any, freshness: dict[str, Any]) -> tuple[str, ...]:
    """Tell of one fault what was seen."""
    wait = format_duration(timedelta(seconds=round((document.next_fetch_at - document.attempted_at).total_seconds())))
    says = f"`{freshness['state']}`, `{freshness['why']}`"
    return (ill, f"`{document.outcome}`, `{document.reason}`", says, wait)


# --- what publishers and the net do -----------------------------------------------------------------------------------


class Certificates:
    """A site behind TLS whose certificate can be exchanged for one that nobody trusts."""

    def __init__(self, folder: Path) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._trusted = trustme.CA(key_type=trustme.KeyType.ECDSA)
        self.file = folder / "ca.pem"
        self._trusted.cert_pem.write_to_path(str(self.file))
        self.show(trusted=True)

    def show(self, *, trusted: bool) -> None:
        authority = self._trusted if trusted else trustme.CA(key_type=trustme.KeyType.ECDSA)
        authority.issue_cert("secure.example").configure_cert(self.context)


def settings_of(url: str, sites: list[Site], certificates: Certificates, *, names: bool) -> Settings:
    """Settings of a crawl; without `names` one of the sites has to be looked up, where nobody answers."""
    hosts = {site.host: "127.0.0.1" for site in sites if names or site.host != "nameless.example"}
    network = {
        **IMPATIENT,
        "hosts": hosts,
        "extra_ca_file": str(certificates.file),
        "nameservers": [NO_NAME_SERVER],
    }
    return settings_for(*sites, url=url, network=network)


async def remote(web: FakeWeb, url: str, folder: Path, exam: Exam, clock: FakeClock) -> list[tuple[str, ...]]:
    """Let every site fall ill in its own way, see what is said of it, and let it recover."""
    certificates = Certificates(folder)
    ills = remote_faults(clock)
    patients = {ill: patient(web.site(f"ill{number}"), ills) for number, ill in enumerate(ills)}
    neighbours = [patient(web.site(f"well{number}")) for number in range(3)]
    nameless = patient(web.site("nameless"))
    async with FakeWeb(tls=certificates.context) as secure_web:
        secure = patient(secure_web.site("secure"))
        everybody = [*patients.values(), nameless, secure, *neighbours]
        sites = [member.site for member in everybody]
        listed = set[str]().union(*(member.identifiers for member in everybody))
        settings = settings_of(url, sites, certificates, names=True)
        async with crawling(settings, clock) as crawl:
            await visit_together(crawl)
            assert set(await search_says(crawl)) == listed

        for ill, sick in patients.items():
            sick.suffer(ill)
        certificates.show(trusted=False)
        for neighbour in neighbours:
            listed |= neighbour.publish("echo", "ping", "echo-two")
        clock.advance(hours=2)
        rows = []
        async with crawling(settings_of(url, sites, certificates, names=False), clock) as crawl:
            began = clock.now()
            await visit_together(crawl)
            says = await search_says(crawl)
            assert set(says) == listed
            assert {says[name]["state"] for item in neighbours for name in item.identifiers} == {"fresh"}
            for neighbour in neighbours:
                document = (await crawl.documents(neighbour.site))[ARD]
                assert (document.outcome, document.confirmed_at >= began) == ("fetched", True)
            for ill, sick in {**patients, "certificate not trusted": secure, "name server down": nameless}.items():
                document = (await crawl.documents(sick.site))[ARD]
                assert document.outcome not in ("fetched", "not_modified"), ill
                states = {says[name]["state"] for name in sick.identifiers}
                assert states == {"stale"}, ill
                rows.append(row(ill, document, says[min(sick.identifiers)]))
        certificates.show(trusted=True)
        async with crawling(settings, clock) as crawl:
            await ail_on(crawl, clock, patients, exam)
            for sick in patients.values():
                sick.recover()
            await pass_time(crawl, clock, days=3)
            says = await search_says(crawl)
            assert set(says) == listed
            assert {freshness["state"] for freshness in says.values()} == {"fresh"}
            events = [change for change in await crawl.changes() if change.kind != "entry.added"]
            assert events == [], "nothing was ever removed or changed"
            await crawl.database.read(check_sound)
    return rows


async def ail_on(crawl: Crawl, clock: FakeClock, patients: dict[str, Patient], exam: Exam) -> None:
    """Let sites fall ill and recover by chance for a while, each in one way after the other."""
    chance = exam.chance("faults")
    for _ in range(40 if exam.long else 2):
        for sick in patients.values():
            if chance.random() < 0.3:
                sick.recover()
            else:
                sick.suffer(chance.choice(list(sick.ills)))
        clock.advance(hours=chance.uniform(0.1, 30))
        await visit_together(crawl)
        assert set(await crawl.identifiers()) >= set().union(*(sick.identifiers for sick in patients.values()))


# --- our own faults ---------------------------------------------------------------------------------------------------


class Held:
    """A manifest that is held back until the database is in trouble."""

    def __init__(self, site: Site) -> None:
        self.asked, self.released = asyncio.Event(), asyncio.Event()
        self._body = {"entries": [entry(f"e{number}", site.host) for number in range(400)]}
        site.handle(ARD, self.answer)

    async def answer(self, _: server.Request) -> server.StreamResponse:
        self.asked.set()
        await self.released.wait()
        return server.json_response(self._body)


async def through_an_outage(
    web: FakeWeb, name: str, url: str, begin: Callable[[Crawl], Any], end: Callable[[Crawl], Any]
) -> tuple[str, ...]:
    """Crawl into an outage of the database and out of it; what was listed stays, what was found is written."""
    good, late = patient(web.site(f"good-{name}")), web.site(f"late-{name}")
    late.page(ARD, status=503)
    settings = settings_for(good.site, late, url=url)
    with logged() as events:
        async with crawling(settings, SystemClock()) as crawl:
            await crawl.run(good.site)
            held = Held(late)
            task = asyncio.create_task(crawl.run(late))
            await asyncio.wait_for(held.asked.wait(), PATIENCE_S)
            await begin(crawl)
            held.released.set()
            trouble = await events.wait("store.unavailable")
            await end(crawl)
            summary = await asyncio.wait_for(task, PATIENCE_S)
            await events.wait("store.available")
            assert (summary.visited, summary.crashed) == (1, 0)
            assert good.identifiers < set(await crawl.identifiers())
            assert len(await crawl.identifiers()) == 402
            await crawl.database.read(check_sound)
            states = {freshness["state"] for freshness in (await search_says(crawl)).values()}
    assert states == {"fresh"}
    return (f"`store.unavailable`, {trouble['reason'].partition(':')[0]}", "nothing else", "100ms, at last 10s")


async def disk_full(web: FakeWeb, folder: Path) -> tuple[str, ...]:
    async def fill(crawl: Crawl) -> None:
        pages = await crawl.database.read(lambda c: int(c.exec_driver_sql("PRAGMA page_count").scalar_one()))
        await crawl.database.write(lambda c: c.exec_driver_sql(f"PRAGMA max_page_count = {pages}").close())

    async def make_room(crawl: Crawl) -> None:
        await crawl.database.write(lambda c: c.exec_driver_sql("PRAGMA max_page_count = 1000000").close())

    url = f"sqlite+aiosqlite:///{folder}/full.db"
    return ("disk full", *await through_an_outage(web, "disk", url, fill, make_room))


async def database_killed(web: FakeWeb, postgres_url: str) -> tuple[str, ...]:
    name = postgres_url.rpartition("/")[2]
    async with Relay("127.0.0.1", 5432) as relay:

        async def kill(_: Crawl) -> None:
            relay.cut()

        async def restart(_: Crawl) -> None:
            await relay.open()

        url = f"postgresql+asyncpg://postgres@127.0.0.1:{relay.port}/{name}"
        return ("database killed and restarted", *await through_an_outage(web, "killed", url, kill, restart))


async def clock_set_back(web: FakeWeb, folder: Path, clock: FakeClock) -> tuple[str, ...]:
    member = patient(web.site("clock"))
    settings = settings_for(member.site, url=f"sqlite+aiosqlite:///{folder}/clock.db")
    async with crawling(settings, clock) as crawl:
        await crawl.run()
        before: datetime = (await crawl.documents(member.site))[ARD].next_fetch_at
        wait = before - clock.now()
        clock.advance(days=-30)
        assert await crawl.crew.plan_anew() == 1
        await pass_time(crawl, clock, seconds=wait.total_seconds() + 1)
        assert [seen.status for seen in member.site.requests(ARD)] == [200, 304], "and not a month later"
        assert set(await crawl.identifiers()) == member.identifiers
        assert {freshness["state"] for freshness in (await search_says(crawl)).values()} == {"fresh"}
    return ("clock set back", "`clock.replanned`", "nothing else", "the same intervals, from now on")


# --- the exam ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "database_url", [pytest.param("postgres" if HAS_POSTGRES else "sqlite", marks=pytest.mark.postgres)], indirect=True
)
async def test_good_listings_stay_others_are_not_concerned_and_every_fault_is_named(
    web: FakeWeb, database_url: str, sqlite_url: str, tmp_path: Path, exam: Exam, clock: FakeClock
) -> None:
    rows = await remote(web, sqlite_url, tmp_path, exam, clock)
    rows.append(await disk_full(web, tmp_path))
    if HAS_POSTGRES:
        rows.append(await database_killed(web, database_url))
    rows.append(await clock_set_back(web, tmp_path, clock))
    lines = table(HEAD, rows)
    exam.say(*lines)
    if HAS_POSTGRES:
        exam.keep("faults", lines)
