"""One crawl reads everything that leads point to, in whatever order the origins come up."""

from tests.conftest import OpenCrawl
from tests.fakes.web import FakeWeb, Site, entry

CATALOG = "application/ai-catalog+json"


def pointer(to: Site, path: str, publisher: str) -> dict[str, object]:
    return entry("nested", publisher, type=CATALOG, url=to.url(path))


async def test_a_catalog_on_an_origin_whose_turn_is_over_is_read_in_the_same_crawl(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    atlas, guild = web.site("atlas"), web.site("guild")
    atlas.manifest(pointer(guild, "/potters.json", "atlas.example"))
    guild.manifest(entry("kiln", "guild.example"), path="/potters.json")
    async with open_crawl(guild, atlas) as crawl:
        first = await crawl.run()
        assert await crawl.identifiers() == ["urn:air:guild.example:tool:kiln"]
        assert first.visited == 2
        assert len(guild.requests("/.well-known/ard.json")) == 1

        web.clear_log()
        second = await crawl.run()
        assert second.as_json()["changes"] == 0
        assert [seen.status for seen in guild.requests("/potters.json")] == [304]


async def test_a_chain_of_catalogs_back_and_forth_is_followed_to_its_end(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    left, right = web.site("left"), web.site("right")
    left.manifest(pointer(right, "/two.json", "left.example"))
    right.manifest(pointer(left, "/three.json", "right.example"), path="/two.json")
    left.manifest(entry("last", "left.example"), path="/three.json")
    async with crawl_sqlite(right, left) as crawl:
        await crawl.run()
        assert await crawl.identifiers() == ["urn:air:left.example:tool:last"]


async def test_a_catalog_on_an_origin_that_asks_for_patience_does_not_hold_up_the_crawl(
    web: FakeWeb, crawl_sqlite: OpenCrawl
) -> None:
    atlas, busy = web.site("atlas"), web.site("busy")
    atlas.manifest(entry("echo", "atlas.example"), pointer(busy, "/late.json", "atlas.example"))
    busy.page("/.well-known/ard.json", status=503, headers={"Retry-After": "3600"})
    async with crawl_sqlite(busy, atlas) as crawl:
        summary = await crawl.run()
        assert await crawl.identifiers() == ["urn:air:atlas.example:tool:echo"]
        assert summary.failed == 1
        assert [seen.path for seen in busy.requests()] == ["/robots.txt", "/.well-known/ard.json"]


async def test_a_catalog_that_is_pointed_to_again_is_read_in_the_same_crawl(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    atlas, guild = web.site("atlas"), web.site("guild")
    kiln = entry("kiln", "guild.example")
    atlas.manifest(pointer(guild, "/potters.json", "atlas.example"))
    guild.manifest(kiln, path="/potters.json")
    async with open_crawl(guild, atlas) as crawl:
        await crawl.run()
        atlas.page("/.well-known/ard.json", status=410)
        await crawl.run()
        assert await crawl.identifiers() == []
        atlas.manifest(pointer(guild, "/potters.json", "atlas.example"))
        await crawl.run()
        assert await crawl.identifiers() == [kiln["identifier"]]
