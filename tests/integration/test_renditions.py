"""Cards that are another document for whoever names no version of the protocol."""

from typing import Any

import pytest
from aiohttp import web as server

from index.store.snapshots import load_snapshot
from index.strict_json import digest
from tests.conftest import OpenCrawl
from tests.fakes.cards import CARD, agent_card, agent_entry, all_drifts, cards_by_path, feed, skill, urn
from tests.fakes.clock import FakeClock
from tests.fakes.harness import Crawl
from tests.fakes.registry import serving
from tests.fakes.web import FakeWeb, Page, Site

OLD = {
    "name": "Planner",
    "description": "Plans trips",
    "version": "1.0.0",
    "protocolVersion": "0.3.0",
    "url": "https://acme.example/a2a",
    "skills": [skill("route", "travel", "maps"), skill("book", "travel")],
    "capabilities": {"streaming": True},
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
}
VARY = {"Vary": "Accept-Encoding, A2A-Version"}


class Negotiating:
    """Serves one page to whoever names the version, and another one to everybody else."""

    def __init__(self, site: Site, *, vary: bool = True, **members: Any) -> None:
        headers = VARY if vary else {}
        self.new = site.json(CARD, agent_card(**members), headers=headers)
        self.old: Page = site.json("/old.json", OLD, headers=headers)
        site.handle(CARD, self.answer)

    async def answer(self, request: server.Request) -> server.StreamResponse:
        return (self.new if request.headers.get("A2A-Version") else self.old).answer(request)


def origin(site: Site) -> dict[str, Any]:
    return {"origin": site.origin, "surfaces": ["ard", "a2a"]}


def versions_named(site: Site) -> list[str | None]:
    return [seen.headers.get("A2A-Version") for seen in site.requests(CARD)]


async def facts(crawl: Crawl) -> tuple[Any, ...]:
    return await crawl.identifiers(), await crawl.entry(urn()), (await cards_by_path(crawl))[CARD]


async def test_a_card_that_is_negotiated_on_the_version_is_noted_with_both_digests_and_times(
    open_crawl: OpenCrawl, web: FakeWeb, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.manifest(agent_entry())
    pages = Negotiating(acme)
    async with serving(open_crawl, origin(acme)) as registry:
        crawl = registry.crawl
        assert versions_named(acme) == ["1.0", None, "1.0"], "asked once more with the field, to be sure"
        (row,) = await all_drifts(crawl)
        assert (row.code, row.drift_class, row.severity) == ("drift.representation_varies", "compatible", "info")
        assert (row.catalog_digest, row.live_digest) == (digest(pages.old.body), digest(pages.new.body))
        assert (row.catalog_value["shape"], row.live_value["shape"]) == ("0.3", "1.0")
        assert (row.copy_old_at, row.live_seen_at) == (clock.now(), clock.now())
        assert (await crawl.documents(acme))[CARD].digest == digest(pages.new.body)
        assert await crawl.database.read(load_snapshot, digest(pages.old.body)) is None, "it is no copy of the card"
        (item,) = (await registry.get(f"/api/v1/agents/{urn()}/drift")).json["items"]
        assert (item["code"], item["catalogDigest"]) == ("drift.representation_varies", digest(pages.old.body))
        before = await facts(crawl)
        web.clear_log()
        clock.advance(hours=1)
        await crawl.run()
        assert versions_named(acme) == ["1.0"], "a 304 is no cause to look again"
        assert await facts(crawl) == before
        (row,) = await all_drifts(crawl)
        assert row.confirmed_at < clock.now(), "nor a sight of what others get"
        clock.advance(days=8)
        await crawl.run()
        (row,) = await all_drifts(crawl)
        assert (row.closed_at, row.confirmed_at) == (None, clock.now()), "the weekly look at the whole looks at both"
        pages.old = pages.new
        clock.advance(days=8)
        await crawl.run()
        (row,) = await all_drifts(crawl)
        assert row.closed_at == clock.now()
        assert [kind for kind, _ in await feed(crawl, "drift.opened", "drift.closed")] == [
            "drift.opened",
            "drift.closed",
        ]


async def test_a_card_that_does_not_say_so_is_found_out_at_the_weekly_look(
    open_crawl: OpenCrawl, web: FakeWeb, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.manifest(agent_entry())
    Negotiating(acme, vary=False)
    async with open_crawl(origin(acme)) as crawl:
        await crawl.run()
        assert versions_named(acme) == ["1.0"]
        clock.advance(days=8)
        await crawl.run()
        assert [row.code for row in await all_drifts(crawl)] == ["drift.representation_varies"]


@pytest.mark.parametrize("headers", [{}, VARY])
async def test_a_card_that_is_the_same_for_everybody_opens_nothing(
    crawl_sqlite: OpenCrawl, web: FakeWeb, clock: FakeClock, headers: dict[str, str]
) -> None:
    acme = web.site("acme")
    acme.manifest(agent_entry())
    acme.json(CARD, agent_card(), headers=headers)
    async with crawl_sqlite(origin(acme)) as crawl:
        for _ in range(3):
            await crawl.run()
            clock.advance(days=8)
        named = versions_named(acme)
        assert named.count(None) == (3 if headers else 2), "as often as the whole document is asked for"
        assert named.count("1.0") == 3
        assert await all_drifts(crawl) == []


@pytest.mark.parametrize("failure", [Page(status=500), Page(status=400), Page(b"<html>"), Page(b"{}"), Page(b"{")])
async def test_a_second_look_that_fails_opens_nothing_and_closes_nothing(
    crawl_sqlite: OpenCrawl, web: FakeWeb, clock: FakeClock, failure: Page
) -> None:
    acme = web.site("acme")
    acme.manifest(agent_entry())
    pages = Negotiating(acme)
    good, pages.old = pages.old, failure
    async with crawl_sqlite(origin(acme)) as crawl:
        await crawl.run()
        assert await all_drifts(crawl) == []
        assert (await crawl.documents(acme))[CARD].outcome == "fetched"
        pages.old = good
        clock.advance(days=8)
        await crawl.run()
        (opened,) = await all_drifts(crawl)
        before = await facts(crawl)
        pages.old = failure
        clock.advance(days=8)
        await crawl.run()
        assert await all_drifts(crawl) == [opened]
        assert (await facts(crawl))[:2] == before[:2]


async def test_a_rendition_that_is_private_is_not_compared(crawl_sqlite: OpenCrawl, web: FakeWeb) -> None:
    acme = web.site("acme")
    acme.manifest(agent_entry())
    pages = Negotiating(acme)
    pages.old.headers["Cache-Control"] = "private"
    async with crawl_sqlite(origin(acme)) as crawl:
        await crawl.run()
        assert await all_drifts(crawl) == []


async def test_a_card_that_is_another_one_at_every_look_tells_nothing(
    crawl_sqlite: OpenCrawl, web: FakeWeb, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.manifest(agent_entry())
    looks = iter(range(1000))

    async def running(_: server.Request) -> server.StreamResponse:
        return server.json_response(agent_card(generatedAt=next(looks)), headers=VARY)

    acme.handle(CARD, running)
    async with crawl_sqlite(origin(acme)) as crawl:
        for _ in range(3):
            await crawl.run()
            clock.advance(hours=1)
        assert await all_drifts(crawl) == []


async def test_an_origin_that_asks_for_a_pause_gets_no_second_look(
    crawl_sqlite: OpenCrawl, web: FakeWeb, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.robots("User-agent: *\nCrawl-delay: 300\n")
    acme.manifest(agent_entry())
    Negotiating(acme)
    async with crawl_sqlite(origin(acme), politeness={"max_delay": "10m"}) as crawl:
        for _ in range(4):
            await crawl.run()
            clock.advance(hours=1)
        assert versions_named(acme)
        assert None not in versions_named(acme)
