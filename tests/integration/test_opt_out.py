"""Publishers who let robots.txt say that they want to be left alone."""

import pytest

from tests.conftest import OpenCrawl
from tests.fakes.cards import CARD, agent_card, agent_entry, skill, urn
from tests.fakes.clock import FakeClock
from tests.fakes.contents import replay
from tests.fakes.harness import ALL_SURFACES, Crawl
from tests.fakes.history import pass_time, visit_due
from tests.fakes.registry import serving
from tests.fakes.web import FakeWeb, Site, entry

ARD = "/.well-known/ard.json"
ECHO = "urn:air:acme.example:tool:echo"
ALLOW, FORBID = "User-agent: *\nAllow: /\n", "User-agent: *\nDisallow: /\n"
NO_CACHE = {"Cache-Control": "no-cache"}


def publish(site: Site) -> None:
    site.robots(ALLOW, headers=NO_CACHE)
    site.manifest(entry("echo"), headers={"Cache-Control": "max-age=43200"})
    site.html("/", "<html></html>")


async def last_reasons(crawl: Crawl) -> list[tuple[str, str, str]]:
    return [(change.kind, change.identifier, change.reason) for change in await crawl.changes()]


async def test_what_robots_txt_forbids_leaves_the_index_at_the_next_visit_though_it_is_not_due(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme, other = web.site("acme"), web.site("other")
    publish(acme)
    other.manifest(entry("other", "other.example"))
    async with open_crawl(acme, other) as crawl:
        await crawl.run()
        acme.robots(FORBID, headers=NO_CACHE)
        acme.pages.pop("/")
        web.clear_log()
        document = (await crawl.documents(acme))[ARD]
        clock.advance(hours=2)
        await visit_due(crawl)
        assert document.next_fetch_at > clock.now(), "something else of the origin was due"
        assert [seen.path for seen in acme.requests()] == ["/robots.txt"]
        assert await crawl.identifiers() == ["urn:air:other.example:tool:other"]
        assert await crawl.search("echo") == []
        assert await crawl.entry(ECHO) is None
        assert (await last_reasons(crawl))[-1] == ("entry.removed", ECHO, "robots")
        assert replay(await crawl.changes()).keys() == {"urn:air:other.example:tool:other"}


async def test_what_is_allowed_again_is_listed_again_without_being_transferred(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    publish(acme)
    async with open_crawl(acme) as crawl:
        await crawl.run()
        acme.robots(FORBID, headers=NO_CACHE)
        await crawl.run()
        assert await crawl.identifiers() == []
        removals = len(await crawl.changes())
        await pass_time(crawl, clock, days=3)
        assert len(await crawl.changes()) == removals, "it is withdrawn once"

        acme.robots(ALLOW, headers=NO_CACHE)
        await pass_time(crawl, clock, days=8)
        assert await crawl.identifiers() == [ECHO]
        assert acme.requests(ARD)[-1].status == 304
        assert [kind for kind, _, _ in await last_reasons(crawl)] == ["entry.added", "entry.removed", "entry.added"]


@pytest.mark.parametrize("status", [503, 500])
async def test_a_robots_txt_that_fails_withdraws_nothing(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock, status: int
) -> None:
    acme = web.site("acme")
    publish(acme)
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        acme.robots(FORBID, headers=NO_CACHE, status=status)
        clock.advance(days=40)
        await crawl.run()
        document = (await crawl.documents(acme))[ARD]
        assert (document.outcome, document.reason) == ("disallowed", "robots_unreachable")
        assert await crawl.identifiers() == [ECHO]


async def test_only_what_is_forbidden_is_withdrawn(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    publish(acme)
    acme.manifest(entry("old"), path="/.well-known/ai-catalog.json")
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        acme.robots(f"User-agent: *\nDisallow: {ARD}\n", headers=NO_CACHE)
        await crawl.run()
        assert await crawl.identifiers() == ["urn:air:acme.example:tool:old"]


async def test_with_the_setting_off_it_stays_and_says_that_it_is_disallowed(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    publish(acme)
    async with crawl_sqlite(acme, crawl={"withdraw_on_robots": False}) as crawl:
        await crawl.run()
        acme.robots(FORBID, headers=NO_CACHE)
        await crawl.run()
        assert await crawl.identifiers() == [ECHO]
        (hit,) = await crawl.search("echo")
        assert hit.stale_since is not None


async def test_a_card_that_is_forbidden_leaves_search_and_its_entry_stays(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.robots(ALLOW, headers=NO_CACHE)
    acme.json(CARD, agent_card(skills=[skill("zanzibar", "spices")]))
    acme.manifest(agent_entry(capabilities=[], tags=[]))
    origin = {"origin": acme.origin, "surfaces": list(ALL_SURFACES)}
    async with serving(open_crawl, origin) as registry:
        assert await registry.found("zanzibar") == [urn()]
        acme.robots(f"User-agent: *\nDisallow: {CARD}\n", headers=NO_CACHE)
        web.clear_log()
        clock.advance(hours=2)
        await registry.crawl.run()
        assert CARD not in [seen.path for seen in acme.requests()]
        assert await registry.found("zanzibar") == []
        assert await registry.found("planner") == [urn()]
        (found,) = (await registry.search("planner"))["results"]
        assert found["ardvark:artifact"]["freshness"]["state"] == "disallowed"
        assert (await last_reasons(registry.crawl))[-1] == ("artifact.removed", urn(), "robots")

        acme.robots(ALLOW, headers=NO_CACHE)
        await pass_time(registry.crawl, clock, days=2)
        assert await registry.found("zanzibar") == [urn()]
        assert acme.requests(CARD)[0].status == 304


async def test_a_redirect_to_what_is_forbidden_withdraws_nothing(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    """As to a page for maintenance or for signing in, which no robot should read."""
    acme = web.site("acme")
    publish(acme)
    acme.robots("User-agent: *\nDisallow: /login\n", headers=NO_CACHE)
    async with open_crawl(acme) as crawl:
        await crawl.run()
        acme.redirect(ARD, "/login")
        await crawl.run()
        document = (await crawl.documents(acme))[ARD]
        assert (document.outcome, document.reason) == ("disallowed", "robots")
        assert await crawl.identifiers() == [ECHO]


async def test_what_may_not_be_stored_is_withdrawn_too(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    publish(acme)
    acme.manifest(entry("echo"), headers={"Cache-Control": "no-store"})
    async with open_crawl(acme) as crawl:
        await crawl.run()
        assert await crawl.identifiers() == [ECHO]
        acme.robots(FORBID, headers=NO_CACHE)
        await crawl.run()
        assert await crawl.identifiers() == []
        acme.robots(ALLOW, headers=NO_CACHE)
        await crawl.run()
        assert await crawl.identifiers() == [ECHO]
