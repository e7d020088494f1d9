"""The scale-out exam: three processes share the origins of one PostgreSQL database, and one of them is killed.

Publishers answer after a while, as over a real net, so that the throughput shows how the work is shared, not how many
cores there are. Intervals are short enough for every origin to be visited again.
"""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web as server
from sqlalchemy import Connection, select

from index.store.tables import documents, fetches, origins
from tests.conftest import HAS_POSTGRES
from tests.fakes.databases import fresh_database, prepare
from tests.fakes.exam import Exam, table
from tests.fakes.operator import Operator, operator_of
from tests.fakes.watched import Watched
from tests.fakes.web import FakeWeb, entry

pytestmark = [
    pytest.mark.system,
    pytest.mark.postgres,
    pytest.mark.timeout(1200),
    pytest.mark.xdist_group("scale_out"),
    pytest.mark.skipif(not HAS_POSTGRES, reason="PostgreSQL does not answer on 127.0.0.1:5432"),
]

ARD = "/.well-known/ard.json"
PROCESSES = 3
VISITS = 20
LATENCY_S = 0.15
# A process looks for due origins every second, and the machine may have other things to do.
SLACK_S = 3.0
NETWORK = (
    'allow_http = true\nallow_private = ["127.0.0.0/8"]\nhosts = { "*.example" = "127.0.0.1" }\n'
    'header_timeout = "5m"\ntotal_timeout = "5m"'
)
WATCHED = ("min_interval", "max_interval", "default_freshness", "page_interval", "absent_max_interval")


@dataclass(frozen=True)
class Form:
    """How much there is to be done."""

    origins: int
    interval_s: int
    lease_s: int
    least_ratio: float
    patience_s: float


SHORT = Form(origins=200, interval_s=4, lease_s=3, least_ratio=1.0, patience_s=60)
LONG = Form(origins=2000, interval_s=60, lease_s=10, least_ratio=2.0, patience_s=400)


@dataclass(frozen=True)
class Measured:
    """How long the first visits of all origins took, and how many visits each process made until the end."""

    processes: int
    origins: int
    seconds: float
    shares: list[int]

    @property
    def per_s(self) -> float:
        return self.origins / self.seconds

    def cells(self) -> tuple[object, ...]:
        return self.processes, self.origins, f"{self.seconds:.1f}", f"{self.per_s:.1f}"


class Publishers:
    """The origins: manifests that are sent after a while or when the test says so, and when they were asked for."""

    def __init__(self, web: FakeWeb, number: int) -> None:
        self.sites = [web.site(f"s{item:04}") for item in range(number)]
        self.asked: dict[str, list[float]] = defaultdict(list)
        self.waiting: set[str] = set()
        self._enough: tuple[int, asyncio.Event] = (0, asyncio.Event())
        self._released = asyncio.Event()
        self._origin_of = {site.host: site.origin for site in self.sites}
        for site in self.sites:
            site.fallback = self._answer

    async def hold(self, number: int, patience_s: float) -> None:
        """Send no manifest until so many are being waited for."""
        self._released.clear()
        self._enough = (number, asyncio.Event())
        async with asyncio.timeout(patience_s):
            await self._enough[1].wait()

    def release(self) -> None:
        self._released.set()

    async def _answer(self, request: server.Request) -> server.StreamResponse:
        host = request.host.partition(":")[0]
        if request.path != ARD:
            await asyncio.sleep(LATENCY_S)
            return server.Response(status=404)
        origin = self._origin_of[host]
        self.asked[origin].append(time.time())
        self.waiting.add(origin)
        if len(self.waiting) >= self._enough[0]:
            self._enough[1].set()
        await self._released.wait()
        await asyncio.sleep(LATENCY_S)
        self.waiting.discard(origin)
        return server.json_response({"entries": [entry("tool", host)]}, headers={"ETag": '"1"'})


@dataclass
class Crowd:
    """Processes on one database, and what they say was visited."""

    operator: Operator
    form: Form
    crawlers: list[Watched] = field(default_factory=list)
    visits: list[Counter[str]] = field(default_factory=list)
    visited: set[str] = field(default_factory=set)
    _read: list[int] = field(default_factory=list)

    async def start(self) -> None:
        crawler = Watched(await self.operator.start("run", "--role", "crawler"))
        crawler.reading = asyncio.create_task(crawler.read())
        self.crawlers.append(crawler)
        self.visits.append(Counter())
        self._read.append(0)

    def total(self) -> Counter[str]:
        """Count the visits that were settled, by origin."""
        return sum(self.visits, Counter())

    def done(self) -> int:
        return sum(visits.total() for visits in self.visits)

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until something is so, looking again whenever a process says something."""
        async with asyncio.timeout(self.form.patience_s):
            while True:
                self._take_in()
                if is_so():
                    return
                said = [asyncio.create_task(crawler.more.wait()) for crawler in self.crawlers]
                await asyncio.wait(said, return_when=asyncio.FIRST_COMPLETED)
                for task in said:
                    task.cancel()

    def _take_in(self) -> None:
        for number, crawler in enumerate(self.crawlers):
            crawler.more.clear()
            new = crawler.events[self._read[number] :]
            self._read[number] += len(new)
            done = [event["origin"] for event in new if event["event"] == "visit.done"]
            self.visits[number].update(done)
            self.visited.update(done)

    async def stop(self) -> None:
        for crawler in self.crawlers:
            if crawler.process.returncode is None:
                await crawler.stop()
            assert crawler.reading is not None
            await crawler.reading
        self._take_in()
        worse = [event for crawler in self.crawlers for event in crawler.events if event["level"] == "error"]
        assert worse == []


@asynccontextmanager
async def crowd(folder: Path, publishers: Publishers, form: Form, number: int) -> AsyncIterator[Crowd]:
    """Start processes on a database of their own, each of them full of visits that wait for a manifest."""
    async with fresh_database() as url, operator_of(folder, url) as operator:
        crawl = [f"visits = {VISITS}", f'lease = "{form.lease_s}s"', *(f'{n} = "{form.interval_s}s"' for n in WATCHED)]
        operator.configure(publishers.sites, network=NETWORK, crawl="\n".join(crawl))
        file = operator.folder / "ardvark.toml"
        file.write_text(file.read_text().replace("[[origins]]", '[[origins]]\nsurfaces = ["ard"]'))
        await prepare(url)
        together = Crowd(operator, form)
        try:
            for _ in range(number):
                await together.start()
            await publishers.hold(number * VISITS, form.patience_s)
            claimed = Counter(_pid(row.claimed_by) for row in (await operator.read(_claims)).values())
            assert claimed == {crawler.process.pid: VISITS for crawler in together.crawlers}
            yield together
        finally:
            for crawler in together.crawlers:
                await crawler.end()


async def test_three_processes_do_the_work_of_three_and_visit_nothing_too_soon(
    web: FakeWeb, tmp_path: Path, exam: Exam
) -> None:
    form = LONG if exam.long else SHORT
    # What one process does alone is measured where the machine has nothing else to do.
    measured = [
        await _measure(web, tmp_path, form, number) for number in ((1, PROCESSES) if exam.long else (PROCESSES,))
    ]
    alone, together = measured[0], measured[-1]
    assert min(together.shares) > form.origins / PROCESSES, "one of them was left with little to do"
    ratio = together.per_s / alone.per_s
    head = ("processes", "origins", "seconds", "visits/s", "ratio", "visits of each in all")
    exam.say(
        f"scale-out: {VISITS} visits at a time in each process, {LATENCY_S} s an answer, intervals {form.interval_s} s",
        *table(head, [(*item.cells(), f"{item.per_s / alone.per_s:.2f}", item.shares) for item in measured]),
    )
    assert ratio >= form.least_ratio


async def _measure(web: FakeWeb, folder: Path, form: Form, processes: int) -> Measured:
    """Time the first visit of every origin, and see two of each through."""
    publishers = Publishers(web, form.origins)
    async with crowd(folder / f"of {processes}", publishers, form, processes) as together:
        began = time.monotonic()
        publishers.release()
        await together.until(lambda: len(together.visited) >= form.origins)
        seconds = time.monotonic() - began
        await together.until(lambda: together.done() >= 2 * form.origins)
        await together.stop()
        await _check(together, publishers)
    return Measured(processes, form.origins, seconds, [visits.total() for visits in together.visits])


async def test_what_a_killed_process_held_is_visited_by_the_others_within_the_lease(
    web: FakeWeb, tmp_path: Path, exam: Exam
) -> None:
    form = LONG if exam.long else SHORT
    chance = exam.chance("scale-out, killed")
    publishers = Publishers(web, form.origins)
    async with crowd(tmp_path / "killed", publishers, form, PROCESSES) as together:
        operator = together.operator
        publishers.release()
        share = chance.uniform(0.1, 0.5)
        await together.until(lambda: together.done() >= share * form.origins)
        # Every process is amid its visits again: the manifests are asked for, and nobody has them yet.
        await publishers.hold(PROCESSES * VISITS, form.patience_s)
        dead = chance.randrange(PROCESSES)
        process = together.crawlers[dead].process
        process.kill()
        await process.wait()
        held = {
            origin: row for origin, row in (await operator.read(_claims)).items() if _pid(row.claimed_by) == process.pid
        }
        assert len(held) == VISITS
        settled = {origin for origin, row in (await operator.read(_visits)).items() if row.visits}
        publishers.release()
        living = [visits for number, visits in enumerate(together.visits) if number != dead]
        left = {site.origin for site in publishers.sites} - settled
        assert held.keys() <= left
        await together.until(lambda: all(any(visits[origin] for visits in living) for origin in left))
        await together.stop()
        taken = {origin: row.claimed_at for origin, row in (await operator.read(_visits)).items() if origin in held}
        again = await _check(together, publishers, excepted=held)
    lease = timedelta(seconds=form.lease_s)
    after = sorted((taken[origin] - (row.claimed_until - lease)).total_seconds() for origin, row in held.items())
    head = ("processes", "origins", "killed after", "claims it held", "asked again", "taken over after", "lease")
    times = f"{after[0]:.1f} to {after[-1]:.1f} s"
    row = (PROCESSES, form.origins, f"{len(settled)} visits", len(held), len(again), times, f"{form.lease_s} s")
    exam.say(*table(head, [row]), f"left half done by the killed process: {', '.join(sorted(_names(again)))}")
    assert after[0] > 0
    assert after[-1] <= form.lease_s + SLACK_S


# --- what is looked at ------------------------------------------------------------------------------------------------


async def _check(together: Crowd, publishers: Publishers, excepted: Iterable[str] = ()) -> set[str]:
    """Check by three accounts that no origin was visited too soon; give those of the `excepted` that were.

    The processes tell what they settled, the publishers what they were asked for, the database what was fetched.
    """
    interval = together.form.interval_s
    visits = await together.operator.read(_visits)
    assert {origin: row.visits for origin, row in visits.items()} == together.total(), "each was settled by one of them"
    assert {row.last_outcome for row in visits.values()} == {"done"}
    early = {origin for origin, times in publishers.asked.items() if _closest(times) < interval}
    assert early <= set(excepted)
    looks = await together.operator.read(_looks)
    assert looks.keys() == {site.origin + ARD for site in publishers.sites}
    # What the killed process did not settle it did not record either.
    assert {url for url, times in looks.items() if _closest(at.timestamp() for at in times) < interval} == set()
    assert await together.operator.read(_claims) == {}
    await together.operator.check()
    return early


def _closest(times: Iterable[float]) -> float:
    return min((later - earlier for earlier, later in pairwise(times)), default=float("inf"))


def _claims(connection: Connection) -> dict[str, Any]:
    query = select(origins.c.origin, origins.c.claimed_by, origins.c.claimed_until).where(
        origins.c.claimed_by.is_not(None)
    )
    return {row.origin: row for row in connection.execute(query)}


def _visits(connection: Connection) -> dict[str, Any]:
    columns = (origins.c.origin, origins.c.visits, origins.c.last_outcome, origins.c.claimed_at)
    return {row.origin: row for row in connection.execute(select(*columns).where(origins.c.active))}


def _looks(connection: Connection) -> dict[str, list[datetime]]:
    """Give the times at which manifests were asked for, as the fetch log has them."""
    found: dict[str, list[datetime]] = defaultdict(list)
    query = select(documents.c.url, fetches.c.request_at).join(documents, documents.c.id == fetches.c.document_id)
    for row in connection.execute(query.where(documents.c.url.endswith(ARD)).order_by(fetches.c.request_at)):
        found[row.url].append(row.request_at)
    return found


def _pid(worker: str) -> int:
    return int(worker.split(":")[1])


def _names(found: Iterable[str]) -> Iterable[str]:
    return (origin.removeprefix("http://").partition(".")[0] for origin in found)
