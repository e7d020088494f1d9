"""An origin that answers 429 is asked half as often, and others as ever."""

from datetime import datetime
from itertools import pairwise

from tests.conftest import OpenCrawl
from tests.fakes.clock import FakeClock
from tests.fakes.harness import Crawl
from tests.fakes.history import fetch_log
from tests.fakes.web import FakeWeb, Site, entry

ARD = "/.well-known/ard.json"
PATHS = ("/robots.txt", ARD, "/.well-known/ai-catalog.json", "/")


async def pauses(crawl: Crawl, site: Site) -> list[float]:
    """Visit and give the seconds between the requests of the visit."""
    began = crawl.clock.now()
    await crawl.run(site)
    times: list[datetime] = []
    for path in PATHS:
        times += [row.request_at for row in await fetch_log(crawl, site.url(path)) if row.request_at >= began]
    return [round((after - before).total_seconds()) for before, after in pairwise(sorted(times))]


async def test_429_stretches_the_pauses_of_its_origin_for_a_day(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock
) -> None:
    acme, other = web.site("acme"), web.site("other")
    for site in (acme, other):
        site.robots("User-agent: *\nAllow: /\nCrawl-delay: 3\n", headers={"Cache-Control": "no-cache"})
        site.html("/", "<html></html>")
        site.manifest(entry("echo", site.host), path="/.well-known/ai-catalog.json")
    acme.page(ARD, status=429)
    async with crawl_sqlite(acme, other, politeness={"min_delay": "1s"}) as crawl:
        await crawl.run(acme)
        acme.manifest(entry("echo"))
        clock.advance(hours=1)
        # The first pause, after robots.txt, is our own: its wish was not known when it was asked for.
        assert await pauses(crawl, acme) == [2, 6, 6]
        assert await pauses(crawl, other) == [1, 3, 3]
        clock.advance(hours=24)
        assert await pauses(crawl, acme) == [1, 3, 3]


async def test_a_restart_and_another_process_keep_the_milder_pace_and_it_ends_as_it_would_have(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme, other = web.site("acme"), web.site("other")
    for site in (acme, other):
        site.robots("User-agent: *\nAllow: /\nCrawl-delay: 3\n", headers={"Cache-Control": "no-cache"})
        site.html("/", "<html></html>")
        site.manifest(entry("echo", site.host), path="/.well-known/ai-catalog.json")
    acme.page(ARD, status=429)
    polite = {"min_delay": "1s"}
    async with open_crawl(acme, other, politeness=polite) as crawl:
        await crawl.run(acme)
    acme.manifest(entry("echo"))
    clock.advance(hours=1)
    async with open_crawl(acme, other, politeness=polite) as crawl:
        assert await pauses(crawl, acme) == [2, 6, 6]
        assert await pauses(crawl, other) == [1, 3, 3]
        async with open_crawl(acme, other, politeness=polite) as beside:
            # Said once more, and heard by another process only.
            acme.page(ARD, status=429)
            clock.advance(hours=1)
            await beside.run(acme)
            acme.manifest(entry("echo"))
            clock.advance(hours=1)
            assert await pauses(crawl, acme) == [4, 12, 12]
    clock.advance(hours=24)
    async with open_crawl(acme, other, politeness=polite) as crawl:
        assert await pauses(crawl, acme) == [1, 3, 3]
