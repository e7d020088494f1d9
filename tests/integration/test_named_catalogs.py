"""Catalogs that entries took for cards: whoever points to one as a catalog has it read as one."""

from typing import Any

import pytest

from tests.conftest import OpenCrawl
from tests.fakes.cards import CARD, agent_card, agent_entry, cards_by_path, urn
from tests.fakes.clock import FakeClock
from tests.fakes.harness import ALL_SURFACES
from tests.fakes.history import pass_time
from tests.fakes.web import FakeWeb, Site, entry

NESTED = "/nested.json"
ECHO = "urn:air:acme.example:tool:echo"


def origin(site: Site, **more: Any) -> dict[str, object]:
    return {"origin": site.origin, "surfaces": list(ALL_SURFACES), **more}


def pointer(url: str) -> Any:
    return entry("nested", type="application/ai-catalog+json", url=url)


@pytest.mark.parametrize("owner", ["acme", "other"])
async def test_an_address_that_was_first_named_by_an_entry_is_read_as_the_catalog_it_is(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock, owner: str
) -> None:
    acme, holder = web.site("acme"), web.site(owner)
    named = agent_entry(url=holder.url(NESTED))
    acme.manifest(named)
    holder.manifest(entry("echo"), path=NESTED)
    async with open_crawl(*(origin(site) for site in {acme.host: acme, holder.host: holder}.values())) as crawl:
        await crawl.run()
        assert await crawl.identifiers() == [urn()]
        acme.manifest(named, pointer(holder.url(NESTED)))
        await pass_time(crawl, clock, days=2)
        assert await crawl.identifiers() == [ECHO, urn()]
        document = (await crawl.documents(holder))[NESTED]
        assert (document.kind, document.mechanism, document.depth) == ("manifest", "nested", 2)
        holder.manifest(entry("echo"), entry("weather"), path=NESTED)
        await pass_time(crawl, clock, days=2)
        assert len(await crawl.identifiers()) == 3, "it goes on being looked at as a catalog"
        acme.manifest(named)
        await pass_time(crawl, clock, days=4)
        assert await crawl.identifiers() == [urn()], "nothing leads to it any more"


async def test_one_manifest_that_names_an_address_in_both_ways_has_it_read_as_a_catalog(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme = web.site("acme")
    acme.manifest(agent_entry(url=NESTED), pointer(NESTED))
    acme.manifest(entry("echo"), path=NESTED)
    async with open_crawl(origin(acme)) as crawl:
        await crawl.run()
        assert await crawl.identifiers() == [ECHO, urn()]
        assert len(acme.requests(NESTED)) == 1


async def test_an_origins_own_card_stays_a_card_whatever_points_to_it_as_a_catalog(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme = web.site("acme")
    acme.manifest(agent_entry(), pointer(CARD))
    acme.json(CARD, agent_card())
    async with open_crawl(origin(acme)) as crawl:
        await crawl.run()
        await crawl.run()
        assert (await crawl.documents(acme))[CARD].kind == "artifact"
        assert list(await cards_by_path(crawl)) == [CARD]
