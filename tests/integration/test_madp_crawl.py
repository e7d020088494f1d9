"""MADP through a crawl: the level an origin reaches, its trust anchor, its constellation and the rate it allows."""

import ssl
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import trustme

from crawler.madp import MadpVisit
from crawler.policy.scope import Admitted, OriginRules, Refused, make_scope
from crawler.shelf import MemoryShelf
from crawler.surfaces.madp import AGENT_PATH, CONSTELLATION_PATH, DISCOVERY_PATH
from index.store.inspect import origin_row
from tests.conftest import OpenCrawl
from tests.fakes.clock import FakeClock
from tests.fakes.harness import ALL_SURFACES, Crawl
from tests.fakes.web import FakeWeb, Site

ANCHOR = "/.well-known/trust-resolver.json"


@pytest.fixture
async def tls_web(tmp_path: Path) -> AsyncIterator[tuple[FakeWeb, Path]]:
    """The fake web over TLS, and the file of its certificate authority."""
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("acme.example", "trust.acme.example", "other.example").configure_cert(context)
    file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(file))
    async with FakeWeb(tls=context) as web:
        yield web, file


def agent(**members: Any) -> dict[str, Any]:
    value = {
        "protocol": "agent-seo/1.0",
        "agent_type": "planner",
        "capabilities": ["plan.trips"],
        "input_formats": ["text/plain"],
        "output_formats": ["application/json"],
        "trust_anchor": "https://anchor.example" + ANCHOR,
        "rate_limits": {"requests_per_minute": 600},
        **members,
    }
    return {name: member for name, member in value.items() if member is not None}


async def assessed(crawl: Crawl, site: Site) -> dict[str, Any] | None:
    row = await crawl.database.read(origin_row, site.origin)
    assert row is not None
    found: dict[str, Any] | None = row.madp
    return found


async def test_an_origin_without_an_agent_file_is_asked_for_nothing_further(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme = web.site("acme")
    async with open_crawl(acme, surfaces=ALL_SURFACES) as crawl:
        await crawl.run()
        assert await assessed(crawl, acme) is None
        assert len(acme.requests(AGENT_PATH)) == 1
        assert acme.requests(DISCOVERY_PATH) == acme.requests(CONSTELLATION_PATH) == []


async def test_the_level_follows_the_documents(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.json(AGENT_PATH, agent())
    async with open_crawl(acme, surfaces=ALL_SURFACES) as crawl:
        await crawl.run()
        found = await assessed(crawl, acme)
        assert found is not None
        assert (found["level"], found["failed"]) == ("AA", ["AAA1", "AAA2"])
        assert found["trustAnchor"]["state"] == "declared", "nothing was fetched from an address off the allowlist"

        acme.json(DISCOVERY_PATH, {"feeds": []})
        acme.json(CONSTELLATION_PATH, {"members": ["https://other.example/", "https://acme.example/"]})
        await crawl.run()
        found = await assessed(crawl, acme)
        assert found is not None
        assert (found["level"], found["failed"]) == ("AAA", [])
        assert {"url": "https://other.example/", "decision": "not_allowlisted"} in found["members"]

        await crawl.run()
        assert [seen.status for seen in acme.requests(AGENT_PATH)][-1] == 304
        assert (await assessed(crawl, acme)) == found

        acme.json(AGENT_PATH, agent(capabilities=[]))
        await crawl.run()
        found = await assessed(crawl, acme)
        assert found is not None
        assert (found["level"], found["failed"]) == ("none", ["A3"])


async def test_members_of_a_constellation_are_visited_only_when_they_are_allowlisted(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme, listed, unlisted = web.site("acme"), web.site("listed"), web.site("unlisted")
    acme.json(AGENT_PATH, agent())
    acme.json(CONSTELLATION_PATH, {"members": [{"url": listed.url("/")}, {"url": unlisted.url("/")}]})
    async with open_crawl(acme, listed, surfaces=ALL_SURFACES) as crawl:
        await crawl.run()
        found = await assessed(crawl, acme)
        assert found is not None
        assert [item["decision"] for item in found["members"]] == ["allowlisted", "not_allowlisted"]
        assert unlisted.requests() == []


async def test_an_agent_file_that_becomes_a_card_is_no_agent_file_any_more(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.json(AGENT_PATH, agent())
    acme.json(DISCOVERY_PATH, {})
    async with open_crawl(acme, surfaces=ALL_SURFACES) as crawl:
        await crawl.run()
        card = {"name": "Planner", "description": "Plans", "version": "1", "url": acme.url("/rpc"), "skills": []}
        acme.json(AGENT_PATH, card)
        await crawl.run()
        found = await assessed(crawl, acme)
        assert found is not None
        assert (found["level"], found["failed"][0]) == ("none", "A1")
        web.clear_log()
        await crawl.run()
        assert acme.requests(DISCOVERY_PATH) == []


async def test_the_rate_that_a_publisher_states_bounds_ours(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    times = []

    async def noted(request: Any) -> Any:
        times.append(clock.now())
        return await answered(request)

    page = acme.json(AGENT_PATH, agent(rate_limits={"requests_per_minute": 2}))

    async def answered(request: Any) -> Any:
        return page.answer(request) if request.path == AGENT_PATH else acme.page("/none", status=404).answer(request)

    acme.pages.clear()
    acme.handle(AGENT_PATH, noted)
    acme.fallback = noted
    async with open_crawl(acme, surfaces=ALL_SURFACES) as crawl:
        await crawl.run()
        times.clear()
        await crawl.run()
        assert len(times) > 5
        assert [(after - before).total_seconds() for before, after in pairwise(times)] == [30] * (len(times) - 1)


async def test_a_trust_anchor_is_followed_a_few_hops_and_never_called_verified(
    tls_web: tuple[FakeWeb, Path], open_crawl: OpenCrawl
) -> None:
    web, authority = tls_web
    acme, trust, other = web.site("acme"), web.site("trust.acme.example"), web.site("other")
    acme.json(AGENT_PATH, agent(trust_anchor=trust.url(ANCHOR)))
    trust.json(ANCHOR, {"next": trust.url("/second.json")})
    trust.json("/second.json", {"parent": trust.url("/third.json")})
    trust.json("/third.json", {"parent": trust.url("/fourth.json"), "members": []})
    trust.json("/fourth.json", {"members": ["acme.example"]})
    origin = {"origin": acme.origin, "artifact_hosts": [f"trust.acme.example:{web.port}"]}
    async with open_crawl(origin, network={"extra_ca_file": str(authority)}) as crawl:
        await crawl.run()
        found = await assessed(crawl, acme)
        assert found is not None
        assert found["trustAnchor"]["state"] == "parsed"
        assert len(found["trustAnchor"]["hops"]) == 3
        assert trust.requests("/fourth.json") == []

        trust.json("/second.json", {"members": [acme.origin]})
        await crawl.run()
        found = await assessed(crawl, acme)
        assert found is not None
        assert found["trustAnchor"]["state"] == "lists_domain"

        acme.json(AGENT_PATH, agent(trust_anchor=other.url("/anchor.json")))
        other.json("/anchor.json", {"members": ["acme.example"]})
        await crawl.run()
        found = await assessed(crawl, acme)
        assert found is not None
        assert found["trustAnchor"]["state"] == "declared"
        assert other.requests() == []


@pytest.mark.parametrize(
    ("url", "admitted"),
    [
        ("https://acme.co.uk/anchor.json", True),
        ("https://trust.acme.co.uk/anchor.json", True),
        ("https://other.co.uk/anchor.json", False),
        ("http://trust.acme.co.uk/anchor.json", False),
        ("https://127.0.0.1/anchor.json", False),
        ("https://trust.acme.co.uk:8443/anchor.json", False),
        ("https://user@trust.acme.co.uk/anchor.json", False),
    ],
)
def test_a_trust_anchor_may_be_on_the_publishers_own_domain(url: str, admitted: bool) -> None:
    scope = make_scope([OriginRules("https://www.acme.co.uk")])
    visit = MadpVisit("https://www.acme.co.uk", scope, MemoryShelf(), {}, anchors=[url])
    assert isinstance(visit.admits(url), Admitted) is admitted
    assert isinstance(visit.admits("https://acme.co.uk/another.json"), Refused), "only what the chain named"
