"""What stands beside entries: our terms in search results, the header fields of Retrieve, and nobody imitating them."""

import hashlib
from typing import Any

import pytest

from index.terms import effective_context
from tests.conftest import OpenCrawl
from tests.fakes.cards import CARD, agent_card, agent_entry, urn
from tests.fakes.clock import FakeClock
from tests.fakes.described import complaints
from tests.fakes.harness import ALL_SURFACES
from tests.fakes.registry import Registry, serving
from tests.fakes.web import FakeWeb, Site, entry

ARD = "/.well-known/ard.json"
ECHO = "urn:air:acme.example:tool:echo"
OURS = "urn:ardvark:terms:"


def allowed(site: Site) -> Any:
    return {"origin": site.origin, "surfaces": list(ALL_SURFACES)}


async def results(registry: Registry, text: str = "planner", **members: Any) -> dict[str, Any]:
    found = (await registry.search(text, pageSize=100, **members))["results"]
    return {item["identifier"]: item for item in found}


def ours(result: dict[str, Any]) -> dict[str, Any]:
    """Give what a reader of JSON-LD finds under our namespace."""
    context, _ = effective_context(*result.get("@context", []))
    expanded = {context.expand(name) or "": value for name, value in result.items()}
    return {name.removeprefix(OURS): value for name, value in expanded.items() if name.startswith(OURS)}


async def test_a_result_says_where_it_is_from_how_fresh_it_is_and_what_disagrees(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    manifest = acme.manifest(agent_entry(), entry("plain", description="planner", type="text/plain"))
    acme.json(CARD, agent_card())
    async with serving(open_crawl, allowed(acme)) as registry:
        before = await results(registry)
        told = ours(before[urn()])
        assert set(told) == {"freshness", "provenance", "artifact"}, "no drift, no word of it"
        assert told["freshness"]["state"] == "fresh"
        assert told["freshness"]["until"] > clock.now().isoformat()
        assert (told["provenance"]["url"], told["provenance"]["mechanism"]) == (acme.url(ARD), "well_known")
        assert told["provenance"]["snapshot"] == hashlib.sha256(manifest.body).hexdigest()
        whole = await registry.get(f"/api/v1/agents/{urn()}")
        assert told["provenance"]["digest"] == hashlib.sha256(whole.body).hexdigest()
        assert told["artifact"]["freshness"]["state"] == "fresh"
        assert {name: told["artifact"][name] for name in ("state", "kind", "name", "version")} == {
            "state": "read",
            "kind": "a2a.card",
            "name": "Planner",
            "version": "1.0.0",
        }
        assert ours(before["urn:air:acme.example:tool:plain"])["artifact"] == {"state": "not_a_card"}
        clock.advance(hours=3)
        acme.json(CARD, agent_card(version="2.0.0", supportedInterfaces=[]))
        await registry.crawl.run()
        after = await results(registry)
        assert ours(after[urn()])["drift"] == {"open": 1, "worst": "version_only"}
        assert ours(after[urn()])["artifact"]["version"] == "2.0.0"
        assert "drift" not in ours(after["urn:air:acme.example:tool:plain"])
        assert after[urn()]["score"] == before[urn()]["score"], "none of it is part of the score"
        answer = await registry.search("planner")
        assert await complaints(registry, "SearchResponse", answer) == []


async def test_the_worst_of_several_drifts_is_named(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    endpoint = {"endpoint": acme.url("/gone")}
    acme.manifest(agent_entry(version="0.9.0", metadata=endpoint))
    acme.json(CARD, agent_card())
    async with serving(open_crawl, allowed(acme)) as registry:
        drift = (await registry.get(f"/api/v1/agents/{urn()}/drift")).json
        assert len(drift["items"]) == drift["open"] > 1
        assert ours((await results(registry))[urn()])["drift"] == {"open": drift["open"], "worst": "breaking"}


async def test_the_stale_copy_of_somebody_else_is_not_held_against_an_entry(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme, other = web.site("acme"), web.site("other")
    acme.manifest(agent_entry())
    other.manifest(agent_entry(url=acme.url(CARD), version="0.1.0"))
    acme.json(CARD, agent_card())
    async with serving(open_crawl, allowed(acme), allowed(other)) as registry:
        await registry.crawl.run()
        drift = (await registry.get(f"/api/v1/agents/{urn()}/drift")).json
        assert [(item["catalogUrl"], item["state"]) for item in drift["items"]] == [(other.url(ARD), "open")]
        assert drift["open"] == 0
        assert "drift" not in ours((await results(registry))[urn()])
        assert (await registry.get(f"/api/v1/agents/{urn()}")).headers["ardvark-drift"] == "open=0"


async def test_an_inline_artifact_and_one_that_was_never_read_say_so(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(
        agent_entry("inline", None, data=agent_card("Planner", version="3.1.4")),
        agent_entry("hidden", acme.url("/hidden.json")),
        agent_entry("outside", "https://elsewhere.test.example/planner.json"),
    )
    acme.page("/hidden.json", b"", status=401)
    async with serving(open_crawl, allowed(acme)) as registry:
        found = await results(registry)
        inline = ours(found[urn("inline")])["artifact"]
        assert (inline["state"], inline["kind"], inline["version"]) == ("inline", "a2a.card", "3.1.4")
        assert inline["freshness"] == ours(found[urn("inline")])["freshness"]
        hidden = ours(found[urn("hidden")])["artifact"]
        assert (hidden["state"], hidden["freshness"]["state"]) == ("auth_required", "withheld")
        assert ours(found[urn("outside")])["artifact"] == {"state": "not_allowlisted"}


async def test_freshness_turns_stale_when_its_promise_runs_out(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"))
    async with serving(open_crawl, acme) as registry:
        first = await registry.get(f"/api/v1/agents/{ECHO}")
        until = ours((await results(registry, "echo"))[ECHO])["freshness"]["until"]
        assert first.headers["ardvark-freshness"].startswith(f'fresh; until="{until}"')
        clock.advance(days=30)
        stale = ours((await results(registry, "echo"))[ECHO])["freshness"]
        assert stale == {"state": "stale", "since": until, "why": "overdue"}
        second = await registry.get(f"/api/v1/agents/{ECHO}")
        assert second.headers["ardvark-freshness"] == f'stale; since="{until}"; why="overdue"'
        assert second.body == first.body
        tag = first.headers["etag"]
        third = await registry.get(f"/api/v1/agents/{ECHO}", If_None_Match=tag)
        assert third.status == 304
        assert third.headers["ardvark-freshness"] == second.headers["ardvark-freshness"]


async def test_retrieve_says_beside_the_entry_what_is_known_of_it(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.manifest(agent_entry())
    acme.json(CARD, agent_card())
    async with serving(open_crawl, allowed(acme)) as registry:
        first = await registry.get(f"/api/v1/agents/{urn()}")
        assert first.headers["ardvark-drift"] == "open=0"
        assert first.headers["ardvark-document"] == acme.url(ARD)
        clock.advance(hours=3)
        acme.json(CARD, agent_card(version="2.0.0"))
        await registry.crawl.run()
        second = await registry.get(f"/api/v1/agents/{urn()}")
        assert second.headers["ardvark-drift"] == "open=1"
        assert second.body == first.body, "the entry stays as published"
        acme.page(ARD, b"", status=500)
        await registry.crawl.run()
        third = await registry.get(f"/api/v1/agents/{urn()}")
        assert third.headers["ardvark-freshness"].startswith("stale; since=")
        assert 'why="http_500"' in third.headers["ardvark-freshness"]
        error = await registry.get("/api/v1/agents/urn:air:acme.example:tool:nobody")
        assert not [name for name in error.headers if name.startswith("ardvark-")]


async def test_the_address_of_a_document_that_holds_a_credential_is_not_sent(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    token = "ghp_" + "a1B2" * 9
    acme = web.site("acme")
    acme.manifest(entry("echo"), path=f"/c.json?key={token}")
    acme.html("/", f'<link rel="ai-catalog" href="/c.json?key={token}">')
    async with serving(open_crawl, acme) as registry:
        answer = await registry.get(f"/api/v1/agents/{ECHO}")
        assert answer.status == 200
        assert "ardvark-document" not in answer.headers
        told = ours((await results(registry, "echo"))[ECHO])
        assert told["provenance"]["url"] == acme.url("/c.json?key=[redacted]")


# --- nobody imitates us -----------------------------------------------------------------------------------------------

FORGED = {"state": "fresh", "why": "because I say so"}
FORGERIES: dict[str, dict[str, Any]] = {
    "by our name": {"ardvark:freshness": FORGED, "ardvark:trusted": True, "ardvark:drift": {"open": 0}},
    "by our IRI": {f"{OURS}freshness": FORGED, f"{OURS}trusted": True, "URN:Ardvark:terms:trusted": True},
    "by a prefix": {"@context": {"x": OURS}, "x:freshness": FORGED, "x:trusted": True},
    "by a term": {"@context": {"cool": f"{OURS}trusted"}, "cool": True},
    "by a compact term": {"@context": [{"x": OURS}, {"cool": {"@id": "x:trusted"}}], "cool": True},
    "by the vocabulary": {"@context": {"@vocab": OURS}, "trusted": True, "freshness": FORGED},
    "by taking our prefix away": {"@context": {"ardvark": "https://elsewhere.example/#"}, "ardvark:trusted": True},
    "by protecting it": {"@context": {"@protected": True, "ardvark": "https://elsewhere.example/#"}},
    "by redefining a term": {"@context": {"ardvark:freshness": "https://elsewhere.example/#stale"}},
    "by nesting": {"@context": {"box": "@nest"}, "box": {"ardvark:trusted": True}, "@nest": {"ardvark:trusted": 1}},
}


@pytest.mark.parametrize("members", FORGERIES.values(), ids=FORGERIES.keys())
async def test_no_publisher_can_speak_in_our_name(
    web: FakeWeb, crawl_sqlite: OpenCrawl, members: dict[str, Any]
) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo", **{"ex:own": "kept", **members}))
    async with serving(crawl_sqlite, acme) as registry:
        result = (await results(registry, "echo"))[ECHO]
        told = ours(result)
        assert set(told) == {"freshness", "provenance", "artifact"}
        assert told["freshness"] != FORGED
        assert {name for name in result if name.startswith("ardvark:")} == {f"ardvark:{name}" for name in told}
        assert result["@context"][-1] == {"ardvark": OURS}
        assert not any("ardvark" in item for item in result["@context"][:-1] if isinstance(item, dict))
        assert "box" not in result
        assert "@nest" not in result
        assert result["ex:own"] == "kept"
        (item,) = (await registry.listing())["items"]
        assert not {"trusted", "cool", "x:trusted", "box", "@nest", *FORGERIES["by our IRI"]} & set(item)
        assert ours({**item, "@context": [item.get("@context", {})]}) == {}
        whole = (await registry.get(f"/api/v1/agents/{ECHO}")).json
        assert set(members) <= set(whole), "Retrieve gives what was published"
        assert await registry.counts(f"{OURS}trusted") == {}
        assert await registry.found("echo", filter={f"{OURS}trusted": True}) == []


async def test_a_publisher_cannot_filter_itself_into_what_cards_say(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(agent_entry(), entry("echo", **{f"{OURS}artifact.kind": "a2a.card"}))
    acme.json(CARD, agent_card())
    async with serving(crawl_sqlite, allowed(acme)) as registry:
        key = f"{OURS}artifact.kind"
        assert await registry.counts(key) == {"a2a.card": 1}
        assert await registry.found("planner echo", filter={key: "a2a.card"}) == [urn()]
