"""An origin that does not answer is left alone, and costs a visit three requests instead of all."""

from datetime import timedelta

from index.store.inspect import origin_row
from tests.conftest import OpenCrawl
from tests.fakes.clock import FakeClock
from tests.fakes.faults import reset
from tests.fakes.history import pass_time, visit_due
from tests.fakes.web import FakeWeb, Site, entry

ARD = "/.well-known/ard.json"
CATALOG = "application/ai-catalog+json"
HOURLY = {"min_interval": "1h", "max_interval": "1h", "default_freshness": "1h"}


def publish(site: Site, catalogs: int) -> None:
    """A manifest that nests catalogs of one entry each."""
    nested = [f"/c{number}.json" for number in range(catalogs)]
    site.manifest(*(entry(f"to-c{number}", type=CATALOG, url=path) for number, path in enumerate(nested)))
    for number, path in enumerate(nested):
        site.manifest(entry(f"e{number}"), path=path)


async def test_a_silent_origin_is_left_after_three_requests_and_for_longer_as_it_goes_on(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    publish(acme, 8)
    async with crawl_sqlite(acme, crawl=HOURLY) as crawl:
        await visit_due(crawl)
        listed = await crawl.identifiers()
        assert len(listed) == 8
        pages, acme.pages, acme.fallback = acme.pages, {}, reset
        clock.advance(hours=1, minutes=10)

        pauses = []
        for _ in range(5):
            web.clear_log()
            assert await visit_due(crawl) == 1
            assert len({seen.path for seen in acme.requests()}) == 3
            row = await crawl.database.read(origin_row, acme.origin)
            assert row is not None
            pauses.append(row.next_visit_at - clock.now())
            assert row.not_before is None, "a crawl by command need not wait"
            clock.advance(seconds=pauses[-1].total_seconds())
        assert pauses[0] == timedelta(minutes=5)
        assert pauses == sorted(pauses)
        assert pauses[-1] == timedelta(minutes=10)
        assert await crawl.identifiers() == listed

        acme.pages, acme.fallback = pages, None
        await pass_time(crawl, clock, hours=3)
        documents = await crawl.documents(acme)
        assert {documents[path].outcome for path in pages} == {"not_modified"}


async def test_an_origin_that_answers_now_and_then_is_visited_to_the_end(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    publish(acme, 8)
    async with crawl_sqlite(acme, crawl=HOURLY) as crawl:
        await visit_due(crawl)
        for number in (0, 1, 3, 4, 6, 7):
            acme.handle(f"/c{number}.json", reset)
        clock.advance(hours=1, minutes=10)
        web.clear_log()
        await visit_due(crawl)
        assert {f"/c{number}.json" for number in range(8)} <= {seen.path for seen in acme.requests()}


async def test_what_a_silent_origin_was_never_asked_for_does_not_make_it_due_at_once(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    publish(acme, 8)
    for number in range(8):
        acme.handle(f"/c{number}.json", reset)
    async with crawl_sqlite(acme, crawl=HOURLY) as crawl:
        await visit_due(crawl)
        asked = {seen.path for seen in acme.requests()}
        assert len([path for path in asked if path.startswith("/c")]) == 3
        assert await visit_due(crawl) == 0
        await pass_time(crawl, clock, minutes=30)
        assert {f"/c{number}.json" for number in range(8)} <= {seen.path for seen in acme.requests()}, "by and by"
