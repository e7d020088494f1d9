"""The bells of the daemon: what is begun between them, and their end."""

import asyncio
import logging
from collections.abc import Sequence
from datetime import timedelta

import pytest

from crawler import daemon as daemons
from crawler.clock import SystemClock
from crawler.daemon import Daemon
from crawler.scheduler import Bells
from index.store.frontier import Claim, claiming_workers
from tests.fakes.events import logged
from tests.fakes.harness import crawling, settings_for
from tests.fakes.web import FakeWeb, entry


async def test_a_bell_that_rings_at_the_end_is_cut_off_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    clock = SystemClock()
    rings, ended = asyncio.Event(), asyncio.Event()

    async def ring() -> None:
        rings.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with caplog.at_level(logging.WARNING):
        bells = Bells(clock)
        bells.add("test", ring, timedelta(minutes=1), first_at=clock.now())
        with bells:
            await asyncio.wait_for(rings.wait(), 10)
        await asyncio.wait_for(ended.wait(), 10)
        await asyncio.sleep(0)  # the executor of the bells hears of it in the next round of the loop
    assert caplog.records == []


async def test_a_bell_that_the_end_forestalls_is_left_out_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    """The signal may come between the ring and the first step of what it rings for."""
    clock = SystemClock()
    rung = []

    async def ring() -> None:
        rung.append(True)

    with caplog.at_level(logging.WARNING):
        bells = Bells(clock)
        bells.add("test", ring, timedelta(minutes=1), first_at=clock.now())
        with bells:
            pass
        for _ in range(5):
            await asyncio.sleep(0)  # ringing, ending and hearing of it each take a round of the loop
    assert rung == []
    assert caplog.records == []


@pytest.mark.parametrize(("visits", "affordable"), [(4, 100), (100, 5)])
async def test_what_is_due_is_begun_when_there_is_room_and_not_only_when_the_bell_rings(
    web: FakeWeb, database_url: str, monkeypatch: pytest.MonkeyPatch, visits: int, affordable: int
) -> None:
    """Be the room that of the settings or that of a budget."""
    monkeypatch.setattr(daemons, "_DUE_EVERY", timedelta(hours=1))
    sites = [web.site(f"s{number}") for number in range(25)]
    for site in sites:
        site.manifest(entry("one", site.host))
    settings = settings_for(*sites, url=database_url, crawl={"visits": visits})
    with logged() as events:
        async with crawling(settings, SystemClock()) as crawl:
            monkeypatch.setattr(crawl.crew, "affordable", lambda room, under_way: min(room, affordable))
            daemon = Daemon(settings, crawl.clock, crawl.crew)
            running = asyncio.create_task(daemon.run())
            async with asyncio.timeout(60):
                while len(events.named("visit.done")) < len(sites):
                    await events.more()
            daemon.stop()
            await running
    assert sorted(event["origin"] for event in events.named("visit.done")) == sorted(site.origin for site in sites)


async def test_what_is_claimed_while_the_daemon_stops_is_given_back(
    web: FakeWeb, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"))
    settings = settings_for(acme, url=database_url)
    async with crawling(settings, SystemClock()) as crawl:
        daemon = Daemon(settings, crawl.clock, crawl.crew)
        claim = crawl.crew.claim

        async def claimed_meanwhile(limit: int, only: Sequence[str] | None = None) -> list[Claim]:
            claims = await claim(limit, only)
            assert [item.origin for item in claims] == [acme.origin]
            daemon.stop()
            return claims

        monkeypatch.setattr(crawl.crew, "claim", claimed_meanwhile)
        async with asyncio.timeout(30):
            await daemon.run()
        assert web.seen == []
        assert await crawl.database.read(claiming_workers) == []
