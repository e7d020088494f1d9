"""`GET /origins` and `/origins/{origin}`: what was tried, what came of it, and why something is not listed."""

from typing import Any
from urllib.parse import quote

import pytest

from index.api import origins as api
from tests.conftest import OpenCrawl
from tests.fakes.cards import CARD, agent_card, agent_entry, urn
from tests.fakes.clock import FakeClock
from tests.fakes.described import complaints
from tests.fakes.harness import ALL_SURFACES
from tests.fakes.registry import Registry, serving
from tests.fakes.web import FakeWeb, Site, entry

ARD = "/.well-known/ard.json"


def allowed(site: Site) -> Any:
    return {"origin": site.origin, "surfaces": list(ALL_SURFACES)}


async def shown(registry: Registry, site: Site) -> Any:
    answer = await registry.get(f"/api/v1/origins/{quote(site.origin, safe='')}")
    assert answer.status == 200, answer.body
    return answer.json


def by(items: list[Any], name: str) -> dict[Any, Any]:
    return {item[name]: item for item in items}


async def test_origins_are_listed_by_name_and_paged(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    sites = [web.site(f"s{number}") for number in range(5)]
    for site in sites:
        site.manifest(entry("echo", site.host), entry("again", site.host))
    async with serving(open_crawl, *sites) as registry:
        whole = (await registry.get("/api/v1/origins")).json
        assert [item["origin"] for item in whole["items"]] == [site.origin for site in sites]
        first = whole["items"][0]
        assert (first["managedBy"], first["active"], first["listings"], first["visits"]) == ("config", True, 2, 1)
        assert (first["lastOutcome"], first["failures"]) == ("done", 0)
        assert first["documents"] > 0
        assert await complaints(registry, "OriginPage", whole) == []
        collected: list[Any] = []
        query = "?limit=2"
        while query:
            part = (await registry.get(f"/api/v1/origins{query}")).json
            collected += part["items"]
            query = f"?limit=2&pageToken={part['pageToken']}" if "pageToken" in part else ""
        assert collected == whole["items"]
        for wrong in ("limit=0", "pageToken=x", "filter=x", "limit=1&limit=2"):
            assert (await registry.get(f"/api/v1/origins?{wrong}")).error() == (400, "INVALID_ARGUMENT"), wrong


async def test_a_publisher_sees_what_was_tried_and_why_an_entry_is_not_listed(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme, other = web.site("acme"), web.site("other")
    acme.robots("User-agent: *\nDisallow: /secret/\n")
    acme.manifest(
        agent_entry(),
        agent_entry("outside", "https://elsewhere.test.example/card.json"),
        agent_entry("missing", acme.url("/missing.json")),
        {"identifier": "no urn", "displayName": "X", "type": "a/b", "url": "https://acme.example/x"},
    )
    acme.json(CARD, agent_card(supportedInterfaces=[{"url": "http://10.0.0.7/a2a", "protocolBinding": "JSONRPC"}]))
    acme.html(
        "/", '<link rel="ai-catalog" href="/secret/catalog.json"><link rel="ai-catalog" href="https://no.test/x">'
    )
    other.manifest(agent_entry(description="A copy"))
    async with serving(open_crawl, allowed(acme), allowed(other)) as registry:
        page = await shown(registry, acme)
        assert await complaints(registry, "Origin", page) == []
        assert (page["origin"], page["managedBy"], page["robots"]) == (acme.origin, "config", "robots")
        documents = by(page["documents"], "url")
        manifest = documents[acme.url(ARD)]
        assert (manifest["outcome"], manifest["entries"], manifest["freshness"]["state"]) == ("fetched", 4, "fresh")
        assert documents[acme.url("/secret/catalog.json")]["outcome"] == "disallowed"
        assert documents[acme.url("/secret/catalog.json")]["freshness"]["state"] == "disallowed"
        assert documents[acme.url("/missing.json")]["freshness"]["state"] == "absent"
        missing = page["notListed"]
        assert [item["identifier"] for item in missing] == ["no urn"]
        assert missing[0]["document"] == acme.url(ARD)
        assert any(problem["severity"] == "error" for problem in missing[0]["problems"])
        leads = by(page["leads"], "url")
        assert leads[acme.url("/secret/catalog.json")]["decision"] == "followed"
        assert leads["https://no.test/x"]["decision"] == "not_allowlisted"
        artifacts = by(page["artifacts"], "identifier")
        states = {name: item["state"] for name, item in artifacts.items()}
        assert states[urn()] == "read"
        assert states[urn("outside")] == "not_allowlisted"
        assert states[urn("missing")] == "absent"
        assert "finding.endpoint_unreachable_by_design" in [item["code"] for item in artifacts[urn()]["findings"]]
        assert artifacts[urn()]["problems"]
        assert set(page["omitted"].values()) == {0}
        copies = (await shown(registry, other))["notListed"]
        assert [(item["identifier"], item["state"]) for item in copies] == [(urn(), "conflict")]
        assert copies[0]["problems"][-1]["code"] == "source.conflict"


async def test_open_drift_and_cards_that_no_entry_names_are_part_of_the_page(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme = web.site("acme")
    acme.manifest(agent_entry(url=acme.url("/card.json"), version="0.9.0"))
    acme.json("/card.json", agent_card())
    acme.json(CARD, agent_card("Somebody else"))
    async with serving(open_crawl, allowed(acme)) as registry:
        page = await shown(registry, acme)
        assert "drift.version_mismatch" in [item["code"] for item in page["drift"]]
        own = [item for item in page["artifacts"] if item["identifier"] is None]
        assert by(own, "url")[acme.url(CARD)]["state"] == "read"
        assert by(own, "url")[acme.url("/.well-known/agent.json")]["state"] == "absent"


async def test_long_lists_are_cut_and_say_how_much_is_missing(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    most = api.MOST_ROWS
    bad = [{"identifier": f"bad {number}", "displayName": "X", "type": "a/b"} for number in range(most + 7)]
    acme.manifest(*bad, *(entry(f"n{number}", type="application/x-unknown") for number in range(most + 3)))
    async with serving(open_crawl, acme) as registry:
        page = await shown(registry, acme)
        assert (len(page["notListed"]), page["omitted"]["notListed"]) == (most, 7)
        assert (len(page["artifacts"]), page["omitted"]["artifacts"]) == (most, 3)
        assert page["omitted"]["documents"] == 0


async def test_the_page_of_an_origin_masks_what_looks_like_a_credential(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    token = "ghp_" + "a1B2" * 9
    acme = web.site("acme")
    acme.manifest({"identifier": f"bad {token}", "displayName": token}, agent_entry())
    acme.json(CARD, agent_card(name=f"Planner {token}", version=token))
    acme.html("/", f'<link rel="ai-catalog" href="/c.json?x={token}">')
    async with serving(open_crawl, allowed(acme)) as registry:
        answer = await registry.get(f"/api/v1/origins/{quote(acme.origin, safe='')}")
        assert answer.status == 200
        assert token.encode() not in answer.body
        assert answer.body.count(b"[redacted]") >= 3


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("https%3A%2F%2Funknown.example", 404),
        ("https://unknown.example", 404),
        ("https%3A%2F%2Funknown.example%2F", 404),
        ("HTTPS%3A%2F%2FUnknown.Example%3A443", 404),
        ("https%3A%2F%2F%5B%3A%3A1%5D%3A8080", 404),
        ("", 400),
        ("unknown.example", 400),
        ("ftp%3A%2F%2Funknown.example", 400),
        ("https%3A%2F%2Funknown.example%2Fpath", 400),
        ("https%3A%2F%2Funknown.example%3Fq", 400),
        ("https%3A%2F%2Funknown.example%23f", 400),
        ("https%3A%2F%2Fuser%40unknown.example", 400),
        ("https%253A%252F%252Funknown.example", 400),
        ("https%3A%2F%2F", 400),
        ("https%3A%2F%2Fa%00b.example", 400),
        ("https%3A%2F%2Funknown.example%", 400),
        ("https%3A%2F%2F%ff.example", 400),
        ("https%3A%2F%2Funknown.example%3A0", 400),
        ("https%3A%2F%2Funknown.example?x=1", 400),
    ],
)
async def test_the_origin_in_the_path_is_decoded_once(crawl_sqlite: OpenCrawl, path: str, status: int) -> None:
    async with serving(crawl_sqlite) as registry:
        answer = await registry.get(f"/api/v1/origins/{path}")
        assert answer.error() == (status, {400: "INVALID_ARGUMENT", 404: "NOT_FOUND"}[status])


async def test_any_spelling_of_an_origin_finds_it(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"))
    async with serving(crawl_sqlite, acme) as registry:
        for path in (quote(acme.origin, safe=""), acme.origin, quote(acme.origin.upper(), safe="") + "%2F"):
            assert (await registry.get(f"/api/v1/origins/{path}")).json["origin"] == acme.origin, path
