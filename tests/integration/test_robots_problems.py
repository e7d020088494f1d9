"""What is wrong with a robots.txt is kept beside it, and gone once it is repaired."""

from tests.conftest import OpenCrawl
from tests.fakes.web import FakeWeb, entry


async def test_faults_of_a_robots_file_are_kept_until_they_are_repaired(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(entry())
    acme.robots("Agentmap: more.json\nUser-agent: *\nCrawl-delay: soon\n")
    async with open_crawl(acme) as crawl:
        await crawl.run()
        faults = (await crawl.documents(acme))["/robots.txt"].problems
        assert {item["code"] for item in faults} == {"robots.agentmap_relative", "robots.crawl_delay"}
        assert await crawl.identifiers() == ["urn:air:acme.example:tool:echo"]

        await crawl.run()
        assert len((await crawl.documents(acme))["/robots.txt"].problems) == 2

        acme.robots("User-agent: *\nAllow: /\n")
        await crawl.run()
        assert (await crawl.documents(acme))["/robots.txt"].problems == []
