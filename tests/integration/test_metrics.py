"""`/metrics`: what is counted of the process, what is read of the database, and what is never said."""

import asyncio
import re
import socket
import time
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import update

from crawler.lateness import Lateness
from index import metrics
from index.documents import Outcome
from index.edits import ChangeClass
from index.store.status import ORIGIN_STATES
from index.store.tables import origins
from tests.conftest import OpenCrawl
from tests.fakes.cards import agent_card, agent_entry
from tests.fakes.clock import FakeClock
from tests.fakes.harness import ALL_SURFACES
from tests.fakes.registry import Registry, serving
from tests.fakes.web import FakeWeb, entry

ARD = "/.well-known/ard.json"


async def scrape(registry: Registry) -> dict[str, dict[tuple[str, ...], float]]:
    """Give every sample by name and the values of its labels."""
    answer = await registry.get("/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    samples: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(answer.body.decode()):
        assert family.documentation, family.name
        for sample in family.samples:
            samples.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return samples


async def test_everything_that_is_named_is_served_and_the_database_is_in_it(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme, down = web.site("acme"), web.site("down")
    acme.manifest(entry("one"), entry("two"))
    down.robots("", status=503)
    async with serving(open_crawl, acme, down) as registry:
        clock.advance(hours=2)
        samples = await scrape(registry)
        bare = {re.sub(r"_(bucket|sum|count)$", "", name) for name in samples}
        assert bare >= metrics.names() - {"ardvark_api_request_seconds"}
        assert all(name.startswith("ardvark_") for name in samples)
        assert samples["ardvark_listings"][()] == 2
        assert samples["ardvark_origins"] == {**{(state,): 0 for state in ORIGIN_STATES}, ("done",): 1, ("failed",): 1}
        assert set(samples["ardvark_open_drift"]) == {(str(kind),) for kind in ChangeClass}
        assert samples["ardvark_due_origins"][()] == 2
        assert 0 < samples["ardvark_oldest_due_age_seconds"][()] < 7200
        assert samples["ardvark_last_cursor"][()] == 2
        assert samples["ardvark_snapshots_bytes"][()] > 0
        assert samples["ardvark_database_size_bytes"][()] > samples["ardvark_snapshots_bytes"][()]
        assert samples["ardvark_store_available"][()] == 1


async def test_claims_are_told_with_the_age_of_the_oldest(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.manifest(entry("one"))
    async with serving(open_crawl, acme) as registry:
        assert len(await registry.crawl.crew.claim(5, [acme.origin])) == 1
        clock.advance(minutes=3)
        samples = await scrape(registry)
        assert samples["ardvark_claims"][()] == 1
        assert samples["ardvark_oldest_claim_age_seconds"][()] == 180
        assert samples["ardvark_due_origins"][()] == 0


async def test_open_drift_is_told_by_class_with_the_longest_and_the_median_lag(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    """Three cards move on, an hour after each other, and their catalog stays behind."""
    acme = web.site("acme")
    cards = [f"/card{number}.json" for number in range(3)]
    acme.manifest(*(agent_entry(f"a{number}", path) for number, path in enumerate(cards)))
    for path in cards:
        acme.json(path, agent_card())
    async with serving(open_crawl, {"origin": acme.origin, "surfaces": list(ALL_SURFACES)}) as registry:
        moved_at = []
        for path in cards:
            clock.advance(hours=1)
            acme.json(path, agent_card(version="1.1.0"))
            await registry.crawl.run()
            moved_at.append(clock.now())
        clock.advance(hours=1)
        samples = await scrape(registry)
        assert samples["ardvark_open_drift"] == {
            **{(str(kind),): 0 for kind in ChangeClass},
            ("version_only",): 3,
        }
        longest, median, _ = [(clock.now() - at).total_seconds() for at in moved_at]
        assert samples["ardvark_open_lag_max_seconds"][()] == pytest.approx(longest, abs=60)
        assert samples["ardvark_open_lag_median_seconds"][()] == pytest.approx(median, abs=60)


async def test_a_crawl_counts_what_it_did(web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock) -> None:
    """Counters are of the whole process, so that only what they grow by can be told."""
    acme = web.site("acme")
    body = len(acme.manifest(entry("one"), entry("two")).body)
    async with serving(crawl_sqlite, acme) as registry:
        before = await scrape(registry)
        web.clear_log()
        clock.advance(hours=2)
        await registry.crawl.run()
        after = await scrape(registry)

    def growth(name: str, *labels: str) -> float:
        return after[name][labels] - before[name].get(labels, 0)

    answers = [seen.status for seen in web.seen]
    assert answers.count(304) == 1
    assert growth("ardvark_requests_total") == growth("ardvark_fetch_seconds_count") == len(answers)
    assert growth("ardvark_fetches_total", "not_modified") == 1
    assert growth("ardvark_fetches_total", "absent") == answers.count(404)
    assert growth("ardvark_saved_bytes_total") == body
    assert growth("ardvark_visits_total", "done") == growth("ardvark_visit_seconds_count") == 1
    assert growth("ardvark_writer_batch_units_sum") == growth("ardvark_own_lag_seconds_count") + 1, "the settlement"
    assert growth("ardvark_writer_commit_seconds_count") == growth("ardvark_writer_batch_units_count") > 0


async def test_a_first_crawl_counts_the_bytes_of_the_wire(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    async with serving(crawl_sqlite) as registry:
        before = (await scrape(registry))["ardvark_wire_bytes_total"][()]
    body = acme.manifest(entry("one")).body
    async with serving(crawl_sqlite, acme) as registry:
        assert (await scrape(registry))["ardvark_wire_bytes_total"][()] - before == len(body)


async def test_answers_are_timed_by_route_and_never_by_what_was_asked_for(
    web: FakeWeb, crawl_sqlite: OpenCrawl
) -> None:
    acme = web.site("acme")
    acme.manifest(entry("one"))
    async with serving(crawl_sqlite, acme) as registry:
        await registry.search("one")
        await registry.get("/api/v1/agents/urn:air:acme.example:tool:one")
        await registry.get("/api/v1/agents/urn:air:acme.example:tool:secret-name")
        await registry.get("/nothing/secret-name")
        await registry.post("/api/v1/search", {})
        samples = await scrape(registry)
    counts = samples["ardvark_api_request_seconds_count"]
    for labels in (
        ("/api/v1/search", "200"),
        ("/api/v1/search", "400"),
        ("/api/v1/agents/{identifier}", "200"),
        ("/api/v1/agents/{identifier}", "404"),
        ("none", "404"),
    ):
        assert counts[labels] >= 1, labels
    assert "secret-name" not in registry.answers[-1].body.decode()


async def test_no_label_grows_with_what_publishers_say(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    sites = [web.site(f"publisher{number}") for number in range(5)]
    for site in sites:
        site.manifest(entry("unmistakable", site.host, type="application/unheard-of", tags=["unmistakable"]))
    async with serving(crawl_sqlite, *sites) as registry:
        samples = await scrape(registry)
    assert "publisher" not in registry.answers[-1].body.decode().replace("publishers", "")
    known: set[Any] = {str(outcome) for outcome in Outcome}
    assert {labels[0] for labels in samples["ardvark_fetches_total"]} == known


async def test_the_database_is_asked_once_in_a_few_seconds_however_many_ask(
    web: FakeWeb, crawl_sqlite: OpenCrawl
) -> None:
    acme = web.site("acme")
    acme.manifest(entry("one"))
    async with serving(crawl_sqlite, acme) as registry:
        first = await scrape(registry)
        stop = update(origins).values(active=False)
        await registry.crawl.database.write(lambda connection: connection.execute(stop))
        second = await scrape(registry)
        assert first["ardvark_origins"] == second["ardvark_origins"]


async def test_tasks_and_sockets_of_the_process_come_and_go(crawl_sqlite: OpenCrawl) -> None:
    """What is never let go of shows as growth (FR-124)."""
    async with serving(crawl_sqlite) as registry:
        await scrape(registry)
        before = await scrape(registry)
        stop = asyncio.Event()
        waiting = [asyncio.create_task(stop.wait()) for _ in range(7)]
        pairs = [socket.socketpair() for _ in range(3)]
        more = await scrape(registry)
        stop.set()
        await asyncio.gather(*waiting)
        for pair in pairs:
            for end in pair:
                end.close()
        after = await scrape(registry)
    for name, count in (("ardvark_tasks", 7), ("ardvark_open_sockets", 6)):
        assert [more[name][()] - before[name][()], after[name][()] - before[name][()]] == [count, 0], name


async def test_the_start_and_the_memory_of_the_process_are_told(crawl_sqlite: OpenCrawl) -> None:
    async with serving(crawl_sqlite) as registry:
        samples = await scrape(registry)
    began = samples["ardvark_process_start_time_seconds"][()]
    assert time.time() - 86_400 < began < time.time()
    assert samples["ardvark_process_resident_memory_bytes"][()] > 20_000_000


async def test_what_holds_up_the_event_loop_is_measured() -> None:
    """A second bell that never rings late would hide exactly what it is for."""
    loop = asyncio.get_running_loop()
    rung = asyncio.Event()
    before = lag()
    with Lateness():
        loop.call_later(1.05, rung.set)
        loop.call_later(0.9, hold_up, 0.4)
        await rung.wait()
    seconds, bells = (now - then for now, then in zip(lag(), before, strict=True))
    assert bells == 1
    assert 0.2 < seconds < 5


def hold_up(seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


def lag() -> tuple[float, float]:
    (family,) = metrics.LOOP_LAG_SECONDS.collect()
    samples = {sample.name: sample.value for sample in family.samples}
    return samples["ardvark_loop_lag_seconds_sum"], samples["ardvark_loop_lag_seconds_count"]


async def test_metrics_can_be_switched_off(crawl_sqlite: OpenCrawl) -> None:
    async with serving(crawl_sqlite, api={"metrics": False}) as registry:
        assert (await registry.get("/metrics")).error() == (404, "NOT_FOUND")
