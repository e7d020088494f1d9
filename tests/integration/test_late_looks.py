"""Looks that end after what they looked at was given up, by another visit or another process."""

import asyncio
from typing import Any

from aiohttp import web as server

from index.store.tables import artifacts
from tests.conftest import OpenCrawl
from tests.fakes.cards import CARD, agent_card, agent_entry, all_drifts, rows_of, urn
from tests.fakes.clock import FakeClock
from tests.fakes.contents import check_sound
from tests.fakes.harness import ALL_SURFACES, Crawl
from tests.fakes.history import pass_time
from tests.fakes.web import FakeWeb, Page, Site, entry

ARD = "/.well-known/ard.json"
NESTED = "/potters.json"
KILN = "urn:air:guild.example:tool:kiln"


class Held:
    """A page that is held back until the test lets it go."""

    def __init__(self, site: Site, path: str) -> None:
        self.asked, self.released = asyncio.Event(), asyncio.Event()
        page = site.pages[path]
        assert isinstance(page, Page)
        self._page = page
        site.handle(path, self.answer)

    async def answer(self, request: server.Request) -> server.StreamResponse:
        self.asked.set()
        await self.released.wait()
        return self._page.answer(request)


async def visit(crawl: Crawl, site: Site) -> None:
    (claim,) = await crawl.crew.claim(1, [site.origin])
    await crawl.crew.visit(claim, force=True)


def point(atlas: Site, guild: Site) -> None:
    nested: Any = entry("nested", atlas.host, type="application/ai-catalog+json", url=guild.url(NESTED))
    atlas.manifest(nested)


async def test_a_catalog_confirmed_late_is_listed_again_when_it_is_pointed_to_again(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    atlas, guild = web.site("atlas"), web.site("guild")
    point(atlas, guild)
    guild.manifest(entry("kiln", guild.host), path=NESTED)
    async with open_crawl(atlas, guild) as crawl:
        await crawl.run()
        held = Held(guild, NESTED)
        late = asyncio.create_task(visit(crawl, guild))
        await asyncio.wait_for(held.asked.wait(), 10)
        atlas.page(ARD, status=410)
        await visit(crawl, atlas)
        assert await crawl.identifiers() == []
        held.released.set()
        await late
        assert guild.requests(NESTED)[-1].status == 304
        assert await crawl.identifiers() == []

        point(atlas, guild)
        await visit(crawl, atlas)
        await pass_time(crawl, clock, hours=2)
        assert await crawl.identifiers() == [KILN]
        await crawl.database.read(check_sound)


async def test_a_catalog_read_late_that_nothing_points_to_any_more_is_not_listed(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    atlas, guild = web.site("atlas"), web.site("guild")
    point(atlas, guild)
    guild.manifest(entry("kiln", guild.host), path=NESTED)
    async with open_crawl(atlas, guild) as crawl:
        await crawl.run()
        guild.manifest(entry("kiln", guild.host, version="2.0.0"), path=NESTED)
        held = Held(guild, NESTED)
        late = asyncio.create_task(visit(crawl, guild))
        await asyncio.wait_for(held.asked.wait(), 10)
        atlas.page(ARD, status=410)
        await visit(crawl, atlas)
        held.released.set()
        await late
        assert await crawl.identifiers() == []

        point(atlas, guild)
        await visit(crawl, atlas)
        await pass_time(crawl, clock, hours=2)
        assert await crawl.identifiers() == [KILN]
        assert '"2.0.0"' in (await crawl.entry(KILN) or "")


async def test_a_card_read_late_that_no_entry_names_any_more_is_not_kept(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme, cards = web.site("acme"), web.site("cards")
    named = agent_entry(url=cards.url("/card.json"))
    acme.manifest(named)
    cards.json("/card.json", agent_card(version="2.0.0"))
    listed = [{"origin": site.origin, "surfaces": list(ALL_SURFACES)} for site in (acme, cards)]
    async with open_crawl(*listed) as crawl:
        await crawl.run()
        assert len(await rows_of(crawl, artifacts)) == 1
        cards.json("/card.json", agent_card(version="3.0.0"))
        held = Held(cards, "/card.json")
        late = asyncio.create_task(visit(crawl, cards))
        await asyncio.wait_for(held.asked.wait(), 10)
        acme.manifest(agent_entry(url=CARD))
        await visit(crawl, acme)
        held.released.set()
        await late
        assert {row.closed_by for row in await all_drifts(crawl) if row.live_url == cards.url("/card.json")} == {
            "removed"
        }

        acme.manifest(named)
        await visit(crawl, acme)
        await pass_time(crawl, clock, hours=2)
        (drift,) = [row for row in await all_drifts(crawl) if row.closed_at is None]
        assert (drift.identifier, drift.live_value) == (urn(), "3.0.0")
        await crawl.database.read(check_sound)
