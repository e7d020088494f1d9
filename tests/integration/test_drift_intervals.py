"""The bounds of lag hold what really happened, whatever a publisher did between two looks."""

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from index.drift import Lag, lag
from tests.conftest import OpenCrawl
from tests.fakes.cards import CARD, agent_card, agent_entry, all_drifts
from tests.fakes.clock import FakeClock
from tests.fakes.harness import ALL_SURFACES, Crawl
from tests.fakes.history import notes_of
from tests.fakes.web import FakeWeb, Site

ARD = "/.well-known/ard.json"
OLDER = {"url": "https://acme.example/old", "protocolVersion": "0.3.0"}


def origin(site: Site) -> dict[str, object]:
    return {"origin": site.origin, "surfaces": list(ALL_SURFACES)}


def lag_of(row: Any, now: datetime) -> Lag:
    return lag(row.live_old_at, row.live_new_at, row.copy_old_at, row.copy_new_at, row.closed_at or now)


@pytest.mark.parametrize("code", ["drift.hybrid_mismatch", "drift.interface_changed"])
async def test_what_a_change_of_the_older_block_alone_brings_begins_when_it_is_seen(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock, code: str
) -> None:
    acme = web.site("acme")
    acme.manifest(agent_entry(metadata={"endpoint": OLDER["url"]}))
    interface = {"url": OLDER["url"], "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    listed = agent_card()["supportedInterfaces"] + ([interface] if code == "drift.hybrid_mismatch" else [])
    acme.json(CARD, agent_card(supportedInterfaces=listed, **OLDER))
    async with open_crawl(origin(acme)) as crawl:
        await crawl.run()
        clock.advance(days=30)
        await crawl.run()
        assert await all_drifts(crawl, code=code) == []
        acme.json(CARD, agent_card(supportedInterfaces=listed, **{**OLDER, "url": "https://acme.example/new"}))
        clock.advance(hours=1)
        await crawl.run()
        (row,) = await all_drifts(crawl, code=code)
        assert lag_of(row, clock.now()).at_least_s <= timedelta(hours=1).total_seconds()


async def test_what_a_card_said_while_it_was_private_is_as_new_as_its_first_sight(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.manifest(agent_entry())
    acme.json(CARD, agent_card(), validator=False)
    async with open_crawl(origin(acme)) as crawl:
        await crawl.run()
        acme.json(CARD, agent_card(version="2.0.0"), validator=False, headers={"Cache-Control": "private"})
        clock.advance(days=30)
        await crawl.run()
        acme.json(CARD, agent_card(version="2.0.0"), validator=False)
        clock.advance(hours=1)
        await crawl.run()
        (row,) = await all_drifts(crawl)
        assert lag_of(row, clock.now()).at_least_s <= timedelta(hours=1).total_seconds()


async def look_daily(crawl: Crawl, clock: FakeClock, days: int) -> None:
    for _ in range(days):
        clock.advance(days=1)
        await crawl.run()


async def test_what_a_lying_validator_confirmed_was_no_sight_of_the_live_side(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.manifest(agent_entry())
    page = acme.json(CARD, agent_card())
    async with open_crawl(origin(acme)) as crawl:
        await crawl.run()
        clock.advance(hours=1)
        page.body = json.dumps(agent_card(version="2.0.0")).encode()
        moved_at = clock.now()
        await look_daily(crawl, clock, 8)
        assert "validator_lies" in await notes_of(crawl, acme.url(CARD))
        (row,) = await all_drifts(crawl)
        assert row.live_old_at <= moved_at <= row.live_new_at
        found = lag_of(row, clock.now())
        assert found.at_most_s is not None
        assert found.at_least_s <= (clock.now() - moved_at).total_seconds() <= found.at_most_s


async def test_what_a_lying_validator_confirmed_was_no_sight_of_the_copy(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    page = acme.manifest(agent_entry())
    acme.json(CARD, agent_card())
    async with open_crawl(origin(acme)) as crawl:
        await crawl.run()
        acme.json(CARD, agent_card(version="2.0.0"))
        moved_at = clock.now()
        clock.advance(hours=1)
        await crawl.run()
        clock.advance(hours=1)
        page.body = json.dumps({"entries": [agent_entry(version="2.0.0")]}).encode()
        followed_at = clock.now()
        await look_daily(crawl, clock, 8)
        assert "validator_lies" in await notes_of(crawl, acme.url(ARD))
        (row,) = await all_drifts(crawl)
        assert row.closed_by == "catalog"
        found = lag_of(row, clock.now())
        assert found.at_most_s is not None
        assert found.at_least_s <= (followed_at - moved_at).total_seconds() <= found.at_most_s
