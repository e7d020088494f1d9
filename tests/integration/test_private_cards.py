"""Cards whose `Cache-Control` is private are for us alone (RFC 9111 5.2.2.7)."""

from tests.conftest import OpenCrawl
from tests.fakes.cards import CARD, agent_card, agent_entry, all_drifts, cards_by_path, open_drifts, skill, urn
from tests.fakes.harness import ALL_SURFACES
from tests.fakes.web import FakeWeb

PRIVATE = {"Cache-Control": "private"}


async def test_a_private_card_is_neither_searched_nor_compared(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(agent_entry(version="1.0.0"))
    moved = agent_card(version="2.0.0", skills=[skill("zanzibar", "travel")])
    acme.json(CARD, moved, headers=PRIVATE)
    async with open_crawl(acme, surfaces=ALL_SURFACES) as crawl:
        await crawl.run()
        assert await crawl.identifiers() == [urn()]
        assert await crawl.search("zanzibar") == []
        assert await all_drifts(crawl) == []
        assert (await cards_by_path(crawl))[CARD].normal == {}

        acme.json(CARD, moved, headers={"Cache-Control": "public"})
        await crawl.run()
        assert [hit.identifier for hit in await crawl.search("zanzibar")] == [urn()]
        assert ("drift.version_mismatch", "open") in {(code, "open") for code, *_ in await open_drifts(crawl)}

        acme.json(CARD, moved, headers=PRIVATE)
        await crawl.run()
        assert await crawl.search("zanzibar") == []
        assert await open_drifts(crawl) == []


async def test_private_cards_are_shown_when_the_operator_says_so(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(agent_entry())
    acme.json(CARD, agent_card(skills=[skill("zanzibar", "travel")]), headers=PRIVATE)
    async with crawl_sqlite(acme, surfaces=ALL_SURFACES, crawl={"list_private": True}) as crawl:
        await crawl.run()
        assert [hit.identifier for hit in await crawl.search("zanzibar")] == [urn()]
