"""The thinnest whole path: one origin crawled, found by search."""

import json

from tests.conftest import OpenCrawl
from tests.fakes.web import FakeWeb, entry


async def test_one_origin_is_crawled_and_found(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    page = acme.manifest(entry("echo"), entry("weather", description="Forecasts for tomorrow"))
    async with open_crawl(acme) as crawl:
        first = await crawl.run()
        assert first.as_json()["entries"] == {"listed": 2, "rejected": 0, "unchanged": 0}
        assert await crawl.identifiers() == ["urn:air:acme.example:tool:echo", "urn:air:acme.example:tool:weather"]
        hits = await crawl.search("forecast")
        assert [hit.identifier for hit in hits] == ["urn:air:acme.example:tool:weather"]

        second = await crawl.run()
        assert second.as_json()["entries"] == {"listed": 0, "rejected": 0, "unchanged": 2}
        assert second.tally.snapshots == 0
        assert acme.requests("/.well-known/ard.json")[-1].status == 304

        page.body = json.dumps({"entries": [entry("echo", description="Another text")]}).encode()
        page.etag = '"two"'
        third = await crawl.run()
        assert third.tally.changes == 2
        kinds = [(change.kind, change.identifier, change.members) for change in await crawl.changes(2)]
        assert kinds == [
            ("entry.changed", "urn:air:acme.example:tool:echo", ("/description",)),
            ("entry.removed", "urn:air:acme.example:tool:weather", ()),
        ]
        assert await crawl.search("forecast") == []
