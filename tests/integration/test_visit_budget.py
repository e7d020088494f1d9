"""The visit budget and the belief about changes, through the crawl."""

import asyncio
import time
from datetime import timedelta
from statistics import median
from typing import Any

import pytest

from crawler.budget import Budget
from crawler.clock import SystemClock
from crawler.daemon import Daemon
from crawler.policy.cadence import LISTING, Range, price_paid
from crawler.policy.change_rate import Belief
from index.documents import DocumentState
from index.store.documents import load_state
from index.store.frontier import looks_ahead
from index.store.status import backlog
from tests.conftest import OpenCrawl
from tests.fakes.clock import FakeClock
from tests.fakes.events import logged
from tests.fakes.harness import Crawl, crawling, settings_for
from tests.fakes.history import pass_time
from tests.fakes.web import FakeWeb, Site, entry

ARD = "/.well-known/ard.json"
DAY = timedelta(days=1)


async def state_of(crawl: Crawl, site: Site) -> DocumentState:
    state = await crawl.database.read(load_state, site.url(ARD))
    assert state is not None
    return state


async def belief_of(crawl: Crawl, site: Site) -> Belief:
    state = await state_of(crawl, site)
    assert state.rate_a is not None
    assert state.rate_b is not None
    return Belief(state.rate_a, state.rate_b)


async def live(crawl: Crawl, clock: FakeClock, *, hours: int) -> None:
    """Let time pass as in the daemon: what is due is visited, and the price is adjusted once a minute."""
    for _ in range(hours * 6):
        await pass_time(crawl, clock, minutes=10)
        for _ in range(10):
            await crawl.crew.adjust_price()


async def test_the_belief_about_changes_is_kept_through_outages_and_restarts(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"))
    async with open_crawl(acme) as crawl:
        await pass_time(crawl, clock, days=5)
        calm = await belief_of(crawl, acme)
        assert calm.rate < 0.1
        acme.page(ARD, status=503)
        await pass_time(crawl, clock, days=3)
        assert (await state_of(crawl, acme)).failures > 3
        assert await belief_of(crawl, acme) == calm
    async with open_crawl(acme) as crawl:
        assert await belief_of(crawl, acme) == calm
        acme.manifest(entry("echo"))
        await pass_time(crawl, clock, days=2)
        assert (await belief_of(crawl, acme)).rate < calm.rate
        acme.manifest(entry("echo", version="2"))
        await pass_time(crawl, clock, days=2)
        assert (await belief_of(crawl, acme)).rate > calm.rate


async def test_a_scarce_budget_makes_visits_rarer_and_an_ample_one_more_frequent(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock
) -> None:
    sites = [web.site(f"s{number}") for number in range(4)]
    for site in sites:
        site.manifest(entry("one", site.host))
    limits = {"min_interval": "1h", "max_interval": "10d", "default_freshness": "1h"}
    intervals = {}
    for budget in (4, 400):
        async with crawl_sqlite(*sites, crawl={**limits, "budget": budget}) as crawl:
            await live(crawl, clock, hours=12)
            for site in sites:
                site.manifest(entry("one", site.host, version=f"for {budget}"))
            await crawl.run()
            intervals[budget] = [(await state_of(crawl, site)).interval for site in sites]
    assert min(intervals[4]) > 2 * max(intervals[400])
    assert all(timedelta(hours=1) <= each <= 10 * DAY for found in intervals.values() for each in found)


async def test_a_process_that_starts_takes_up_the_price_of_the_latest_intervals(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    sites = [web.site(f"s{number}") for number in range(3)]
    for site in sites:
        site.manifest(entry("one", site.host), headers={"Cache-Control": "max-age=0"})
    budgeted = {"budget": 1000, "max_interval": "30d"}

    async def price(crawl: Crawl) -> float:
        paid = []
        for site in sites:
            state = await state_of(crawl, site)
            assert state.interval is not None
            paid.append(price_paid(state.interval, await belief_of(crawl, site), LISTING))
        return median(paid)

    async with open_crawl(*sites, crawl=budgeted) as crawl:
        await crawl.run()
        at_first = await price(crawl)
        for _ in range(40):
            await crawl.crew.adjust_price()
        clock.advance(hours=6)
        await crawl.run()
        adjusted = await price(crawl)
        assert adjusted < at_first / 1.5
    async with open_crawl(*sites, crawl=budgeted) as crawl:
        clock.advance(hours=6)
        await crawl.run()
        assert await price(crawl) == pytest.approx(adjusted, rel=0.01)


async def test_what_is_due_all_at_once_after_a_start_keeps_to_the_budget(web: FakeWeb, database_url: str) -> None:
    """Five hundred origins that all wait, as after an outage of ours; without a limit they take a few seconds."""
    sites = [web.site(f"s{number:03}") for number in range(500)]
    for site in sites:
        site.manifest(entry("one", site.host))
    a_second = 12
    settings = settings_for(*sites, url=database_url, crawl={"budget": a_second * 86_400, "visits": 100})
    with logged() as events:
        async with crawling(settings, SystemClock()) as crawl:
            web.clear_log()
            began = time.monotonic()
            daemon = Daemon(settings, crawl.clock, crawl.crew)
            running = asyncio.create_task(daemon.run())
            while len(events.named("visit.done")) < 12:
                await events.more()
                made, seconds = len(web.seen), time.monotonic() - began
                assert made <= a_second * seconds + 8, "no more than was earned, and one visit on credit"
            daemon.stop()
            await running
            waiting = (await crawl.database.read(backlog, crawl.clock.now())).origins
    assert waiting > 400


async def test_what_piled_up_makes_looks_rarer_until_it_is_worked_off(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock
) -> None:
    sites = [web.site(f"s{number}") for number in range(30)]
    for site in sites:
        site.manifest(entry("one", site.host))
    limits = {"min_interval": "1h", "max_interval": "10d", "default_freshness": "1h", "budget": 2_000}
    async with crawl_sqlite(*sites, crawl=limits) as crawl:
        budget = Budget(2_000, Range(timedelta(hours=1), 10 * DAY), crawl.database, clock)
        before = await budget.recall()
        piled_up = await budget.adjust()
        assert piled_up > before
        await crawl.run()
        assert await budget.adjust() < piled_up


async def test_looks_that_fall_due_are_counted_and_what_is_overdue_is_not(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"), headers={"Cache-Control": "max-age=0"})
    async with open_crawl(acme) as crawl:
        await crawl.run()

        async def due(begin: timedelta, end: timedelta) -> Any:
            return (await crawl.database.read(looks_ahead, clock.now() + begin, clock.now() + end))[0]

        # The manifest, the two absent documents, and robots.txt a day later.
        assert await due(timedelta(0), timedelta(minutes=30)) == 0
        assert await due(timedelta(minutes=30), timedelta(hours=2)) == 3
        assert await due(timedelta(hours=2), timedelta(days=2)) == 1
        clock.advance(days=3)
        assert await due(timedelta(0), timedelta(days=30)) == 0
