"""Field reports about cards: where they are, what shapes they have, and what they must not make us do or show."""

import json
import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme
from structlog.testing import capture_logs

from crawler.surfaces import mcp
from index.store.snapshots import load_snapshot
from index.store.tables import artifacts, changes, drifts, entries, versions
from tests.conftest import OpenCrawl
from tests.fakes.cards import (
    CARD,
    LEGACY,
    MCP,
    agent_card,
    agent_entry,
    all_drifts,
    cards_by_path,
    open_drifts,
    rows_of,
    server_card,
    skill,
    urn,
)
from tests.fakes.clock import FakeClock
from tests.fakes.fetching import Trap
from tests.fakes.harness import ALL_SURFACES
from tests.fakes.history import pass_time
from tests.fakes.registry import Registry, serving
from tests.fakes.web import FakeWeb, RawServer, Site, entry

ARD = "/.well-known/ard.json"
A2A_ONLY = ["ard", "a2a"]


def origin(site: Site, *surfaces: str, **options: Any) -> Any:
    return {"origin": site.origin, "surfaces": list(surfaces or ALL_SURFACES), **options}


async def found(registry: Registry, text: str) -> dict[str, Any]:
    """The results of a search by identifier."""
    answer = await registry.search(text, pageSize=100)
    return {result["identifier"]: result for result in answer["results"]}


# --- FR-05: the old name, the new name, or both -----------------------------------------------------------------------

OLD_CARD = {
    "name": "Planner",
    "protocolVersion": "0.3.0",
    "version": "1.0.0",
    "url": "https://origin.example/a2a",
    "capabilities": {},
    "skills": [],
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
}


@pytest.mark.parametrize("surfaces", [A2A_ONLY, ALL_SURFACES])
async def test_fr_05_a_card_under_the_old_name_alone_is_found_there(
    web: FakeWeb, open_crawl: OpenCrawl, surfaces: list[str]
) -> None:
    acme = web.site("acme")
    acme.json(LEGACY, OLD_CARD)
    async with open_crawl(origin(acme, *surfaces)) as crawl:
        await crawl.run()
        (path, card), *rest = (await cards_by_path(crawl)).items()
        assert (path, card.kind, card.shape, rest) == (LEGACY, "a2a.card", "0.3", [])
        documents = await crawl.documents(acme)
        assert (documents[CARD].outcome, documents[LEGACY].mechanism) == ("absent", "legacy_card")


async def test_fr_05_the_same_bytes_under_both_names_are_one_card_with_two_places(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme = web.site("acme")
    for path in (CARD, LEGACY):
        acme.json(path, OLD_CARD)
    async with open_crawl(origin(acme)) as crawl:
        summary = await crawl.run()
        assert summary.tally.snapshots == 1
        cards = await cards_by_path(crawl)
        assert cards[CARD].digest == cards[LEGACY].digest
        assert await all_drifts(crawl) == []


async def test_fr_05_where_the_new_name_answers_the_old_one_is_not_asked_and_it_is_when_the_new_one_goes(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.json(CARD, agent_card())
    acme.json(LEGACY, OLD_CARD)
    async with open_crawl(origin(acme, *A2A_ONLY)) as crawl:
        await crawl.run()
        assert acme.requests(LEGACY) == []
        acme.page(CARD, status=503)
        await crawl.run()
        assert acme.requests(LEGACY) == [], "an outage says nothing about the other place"
        acme.gone(CARD)
        await crawl.run()
        assert sorted(await cards_by_path(crawl)) == [CARD, LEGACY]
        assert len(acme.requests(LEGACY)) == 1


# --- FR-07: 401 at the root, cards one level deeper -------------------------------------------------------------------


@pytest.mark.parametrize("status", [401, 403])
async def test_fr_07_a_withheld_root_is_no_lack_and_a_nested_card_is_read_because_an_entry_names_it(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock, status: int
) -> None:
    acme = web.site("acme")
    acme.page(CARD, status=status, headers={"WWW-Authenticate": "Bearer"})
    acme.json("/t/42/card.json", agent_card(skills=[skill("zanzibar", "travel")]))
    acme.manifest(agent_entry("42", url="/t/42/card.json", capabilities=["zanzibar"]))
    async with open_crawl(origin(acme, *A2A_ONLY)) as crawl:
        await crawl.run()
        root = (await crawl.documents(acme))[CARD]
        assert (root.outcome, root.reason) == ("withheld", f"http_{status}")
        assert [hit.identifier for hit in await crawl.search("zanzibar")] == [urn("42")]
        assert await all_drifts(crawl) == []
        await pass_time(crawl, clock, days=14)
        assert 3 <= len(acme.requests(CARD)) <= 6, "about daily at first, then less and less"
    asked = {seen.path for seen in acme.requests()}
    assert asked == {"/robots.txt", ARD, "/.well-known/ai-catalog.json", "/", CARD, "/t/42/card.json"}
    assert {seen.headers.get("Authorization") for seen in web.seen} == {None}


# --- FR-13: a server card at four addresses in two shapes -------------------------------------------------------------

OLDER_SERVER = {
    "mcp_version": "1",
    "server_name": "echo",
    "endpoints": {"streamable_http": "https://origin.example/mcp"},
}
SERVER = {
    "name": "example.origin/echo",
    "version": "1.2.0",
    "description": "d",
    "remotes": [{"type": "streamable-http", "url": "https://origin.example/mcp"}],
}


async def test_fr_13_the_places_of_a_server_card_are_tried_in_order_until_one_is_valid(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme = web.site("acme")
    acme.json("/.well-known/mcp.json", OLDER_SERVER)
    acme.json("/.well-known/mcp/server-card.json", SERVER)
    async with open_crawl(origin(acme, "mcp")) as crawl:
        await crawl.run()
        (path, card), *rest = (await cards_by_path(crawl)).items()
        assert (path, card.shape, rest) == ("/.well-known/mcp/server-card.json", "2127-like", [])
        assert card.normal["remotes"] == [{"type": "streamable-http", "url": "https://origin.example/mcp"}]
        assert acme.requests("/.well-known/mcp.json") == []


@pytest.mark.parametrize("place", range(len(mcp.CARD_PATHS)))
async def test_fr_13_both_shapes_are_read_alike_wherever_they_are(
    web: FakeWeb, crawl_sqlite: OpenCrawl, place: int
) -> None:
    acme = web.site("acme")
    path = mcp.CARD_PATHS[place]
    page = acme.json(path, OLDER_SERVER)
    # What is no card at an earlier place does not end the search.
    for earlier in mcp.CARD_PATHS[:place]:
        acme.json(earlier, {"hello": "world"})
    async with crawl_sqlite(origin(acme, "mcp")) as crawl:
        await crawl.run()
        ((found_at, card),) = (await cards_by_path(crawl)).items()
        assert (found_at, card.kind, card.shape) == (path, "mcp.card", "1960")
        assert card.normal["remotes"] == [{"type": "streamable-http", "url": "https://origin.example/mcp"}]
        assert await crawl.database.read(load_snapshot, card.digest) == page.body
        asked = [seen.path for seen in acme.requests() if seen.path in mcp.CARD_PATHS]
        assert asked == list(mcp.CARD_PATHS[: place + 1])


# --- FR-14: a document that says that it is no agent ------------------------------------------------------------------

NO_AGENT = {
    "name": "Shop",
    "description": "REST only",
    "a2a": {"supported": False},
    "mcp": {"url": "https://origin.example/mcp"},
}


async def test_fr_14_a_document_that_is_no_card_is_none_wherever_it_stands_and_is_asked_for_slowly(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.json(LEGACY, NO_AGENT)
    acme.manifest(agent_entry("shop", url=LEGACY, displayName="Shop", description=None))
    async with open_crawl(origin(acme)) as crawl:
        await crawl.run()
        row = (await crawl.documents(acme))[LEGACY]
        assert (row.outcome, row.reason) == ("wrong_kind", "artifact.unknown_kind")
        assert await cards_by_path(crawl) == {}
        assert await crawl.search("REST") == []
        assert await open_drifts(crawl) == [("drift.type_mismatch", urn("shop"), "/type")]
        await pass_time(crawl, clock, days=30)
        assert len(acme.requests(LEGACY)) <= 12


# --- FR-92: the address of an entry is the endpoint itself ------------------------------------------------------------


async def test_fr_92_an_endpoint_in_the_place_of_a_card_is_no_document_and_the_entry_is_found(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme = web.site("acme")
    acme.page("/mcp", status=405, headers={"Allow": "POST"})
    acme.manifest(entry("live", type="application/json", url=acme.url("/mcp")))
    async with serving(open_crawl, origin(acme)) as registry:
        result = (await found(registry, "live"))[urn("live")]
        assert result["ardvark:artifact"]["state"] == "not_a_document"
        assert await all_drifts(registry.crawl) == []
        assert (await registry.get(f"/api/v1/agents/{urn('live')}")).status == 200
    assert {seen.method for seen in acme.requests()} == {"GET"}
    assert len(acme.requests("/mcp")) == 1


# --- FR-97: the shapes of 0.3 and 1.0 ---------------------------------------------------------------------------------

OLD_SHAPE = {
    "name": "T",
    "version": "1",
    "protocolVersion": "0.3.0",
    "url": "https://o.example/rpc",
    "preferredTransport": "JSONRPC",
    "additionalInterfaces": [{"transport": "HTTP+JSON", "url": "https://o.example/rest"}],
    "skills": [],
    "capabilities": {},
}


async def test_fr_97_old_and_new_cards_become_one_list_of_interfaces(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    newer = agent_card(
        "N", supportedInterfaces=[{"url": "https://o.example/n", "protocolBinding": "GRPC", "protocolVersion": "1.0"}]
    )
    served = {
        "/old.json": {**OLD_SHAPE, "supportsAuthenticatedExtendedCard": True},
        "/new.json": newer,
        "/both.json": {**OLD_SHAPE, **newer},
    }
    pages = {path: acme.json(path, value) for path, value in served.items()}
    acme.manifest(*(agent_entry(path[1:-5], url=path, displayName=path) for path in served))
    async with open_crawl(origin(acme, *A2A_ONLY)) as crawl:
        await crawl.run()
        cards = await cards_by_path(crawl)
        listed = {
            path: [(item["protocolBinding"], item["protocolVersion"], item["url"]) for item in interfaces]
            for path, card in cards.items()
            if (interfaces := card.normal["supportedInterfaces"])
        }
        assert listed == {
            "/old.json": [
                ("JSONRPC", "0.3.0", "https://o.example/rpc"),
                ("HTTP+JSON", "0.3.0", "https://o.example/rest"),
            ],
            "/new.json": [("GRPC", "1.0", "https://o.example/n")],
            "/both.json": [("GRPC", "1.0", "https://o.example/n")],
        }
        assert cards["/old.json"].normal["capabilities"]["extendedAgentCard"] is True
        assert [item["url"] for item in cards["/both.json"].legacy] == [
            "https://o.example/rpc",
            "https://o.example/rest",
        ]
        for path, page in pages.items():
            assert await crawl.database.read(load_snapshot, cards[path].digest) == page.body


# --- FR-99: members of the wrong type ---------------------------------------------------------------------------------

WRONG_TYPES = {
    "name": "Q",
    "version": 1,
    "provider": "Corp",
    "skills": None,
    "capabilities": ["streaming"],
    "supportedInterfaces": {"url": "https://o.example"},
}
WORSE = {
    **agent_card("R"),
    "skills": [None, 3, {"id": ["a"]}, {"id": "ok", "tags": "travel", "examples": [{"a": 1}, "zanzibar"]}],
    "securitySchemes": ["x"],
    "securityRequirements": {"a": 1},
    "signatures": "none",
    "supportedInterfaces": ["https://o.example", {"url": 7}, {"url": "https://o.example/ok"}],
    "provider": {"organization": {"name": "Corp"}, "url": ["x"]},
    "defaultInputModes": {"text": True},
}


async def test_fr_99_a_card_with_wrong_members_stays_and_disturbs_no_other(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    names = [f"good{number}" for number in range(20)]
    for name in names:
        acme.json(f"/{name}.json", agent_card(name.title(), skills=[skill(f"word{name}", "travel")]))
    acme.json("/q.json", WRONG_TYPES)
    acme.json("/r.json", WORSE)
    acme.manifest(
        agent_entry("q", url="/q.json", displayName="Q"),
        agent_entry("r", url="/r.json", displayName="R"),
        *(agent_entry(name, url=f"/{name}.json", displayName=name, capabilities=None) for name in names),
    )
    async with serving(open_crawl, origin(acme, *A2A_ONLY)) as registry:
        crawl = registry.crawl
        assert crawl.summaries[-1].crashed == 0
        for name in names:
            assert await registry.found(f"word{name}") == [urn(name)]
        assert await crawl.identifiers() == sorted(urn(name) for name in (*names, "q", "r"))
        cards = await cards_by_path(crawl)
        for path in ("/q.json", "/r.json"):
            assert cards[path].kind == "a2a.card"
            assert {"a2a.wrong_type"} <= {problem["code"] for problem in cards[path].problems}
        assert [item["url"] for item in cards["/r.json"].normal["supportedInterfaces"]] == ["https://o.example/ok"]
        assert await registry.found("zanzibar") == [urn("r")]
        for name in ("q", "r"):
            for resource in ("", "/provenance", "/history", "/drift"):
                assert (await registry.get(f"/api/v1/agents/{urn(name)}{resource}")).status == 200
        assert (await registry.get("/api/v1/drift")).status == 200


# --- FR-100: addresses that nobody outside can reach ------------------------------------------------------------------


async def test_fr_100_addresses_of_the_inside_are_named_and_never_contacted(
    open_crawl: OpenCrawl, tmp_path: Path
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("o.example").configure_cert(tls)

    async def silent(*_: Any) -> None:
        raise AssertionError

    async with FakeWeb(tls=tls) as web, Trap() as trap, RawServer(silent) as local:
        site = web.site("o")
        inside = [
            f"http://[::]:{trap.port}/rpc",
            f"http://0.0.0.0:{local.port}/",
            f"http://127.0.0.66:{trap.port}/rpc",
            f"http://o.example:{local.port}/a2a",
        ]
        interfaces = [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"} for url in inside]
        public = {"url": "https://o.example/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        site.json(CARD, agent_card(supportedInterfaces=[*interfaces, public], iconUrl="http://localhost/icon.png"))
        site.manifest(agent_entry(publisher="o.example", metadata={"endpoint": inside[2]}))
        network = {"extra_ca_file": str(tmp_path / "ca.pem")}
        async with open_crawl(origin(site), network=network) as crawl:
            for _ in range(3):
                await crawl.run()
            card = (await cards_by_path(crawl))[CARD]
            assert [(finding["code"], finding["pointer"]) for finding in card.findings] == [
                ("finding.endpoint_unreachable_by_design", "/supportedInterfaces/0/url"),
                ("finding.endpoint_unreachable_by_design", "/supportedInterfaces/1/url"),
                ("finding.endpoint_unreachable_by_design", "/supportedInterfaces/2/url"),
                ("finding.scheme_downgrade", "/supportedInterfaces/3/url"),
                ("finding.endpoint_unreachable_by_design", "/iconUrl"),
            ]
            assert await crawl.identifiers() == [urn(publisher="o.example")]
        assert (trap.reached, local.connections) == (0, 0)


# --- FR-107: what a public card should not hold -----------------------------------------------------------------------

KEY = "EXAMPLE-not-a-real-key-0000"
TOKEN = "EXAMPLE.TOKEN.ONLY"


def leaking(version: str, **members: Any) -> dict[str, Any]:
    """A card that holds credentials wherever a card can."""
    return agent_card(
        version=version,
        description=f"Plans trips. Authorization: Bearer {TOKEN} zanzibar",
        metadata={"apiKey": KEY},
        skills=[skill("route", "travel", examples=[f"curl -H 'Authorization: Bearer {TOKEN}'"])],
        securitySchemes={f"Bearer {TOKEN}": {"type": "apiKey", "apiKey": KEY, "name": "X-Key", "in": "header"}},
        **{f"Authorization: Bearer {TOKEN}": KEY},
        **members,
    )


async def test_fr_107_no_credential_of_a_card_leaves_the_stored_body(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.json(CARD, leaking("1.0.0"))
    acme.json("/.well-known/mcp.json", server_card(description=f"api_key={KEY} Bearer {TOKEN}", apiKey=KEY))
    acme.manifest(agent_entry(version="0.9.0"), agent_entry("copy", url=None, data=leaking("0.8.0")))
    with capture_logs() as events:
        async with serving(open_crawl, origin(acme)) as registry:
            crawl = registry.crawl
            raw = (await cards_by_path(crawl))[CARD].digest
            clock.advance(hours=1)
            changed = leaking("1.1.0", documentationUrl=f"https://user:{KEY}@acme.example/?apiKey={KEY}")
            changed["description"] += f" and Bearer {TOKEN}2"
            acme.json(CARD, changed)
            await crawl.run()
            assert {"drift.version_mismatch", "drift.inline_stale"} <= {code for code, *_ in await open_drifts(crawl)}
            paths = ["agents", "drift", "lag", "changes", "origins", f"origins/{acme.origin}", f"snapshots/{raw}"]
            paths += [f"agents/{urn()}{rest}" for rest in ("", "/history", "/provenance", "/drift")]
            paths += [f"agents/{urn('copy')}{rest}" for rest in ("/history", "/provenance", "/drift")]
            for path in paths:
                answer = await registry.get(f"/api/v1/{path}")
                assert answer.status == (403 if path.startswith("snapshots") else 200), path
            await registry.get("/api/v1/changes", Accept="application/atom+xml")
            assert urn() in await found(registry, "zanzibar"), "the rest of the text is found"
            for secret in (KEY, TOKEN):
                assert await crawl.search(secret.split("-")[-1].split(".")[-1]) == []
                for answer in registry.answers:
                    assert secret not in answer.body.decode("utf-8", "replace")
                    assert secret not in repr(answer.headers)
                for table in (artifacts, versions, drifts, changes):
                    for row in await rows_of(crawl, table):
                        if table is not versions or row.kind == "artifact":
                            assert secret not in repr(row), table.name
                assert secret not in repr(events)
            cards = await cards_by_path(crawl)
            assert cards[CARD].secret
            assert "finding.secret" in {finding["code"] for finding in cards[CARD].findings}
            stored = await crawl.database.read(load_snapshot, cards[CARD].digest)
            assert stored == acme.pages[CARD].body, "the evidence itself is kept"  # type: ignore[union-attr]
            (row,) = await rows_of(crawl, entries, key=urn())
            assert json.loads(row.raw)["version"] == "0.9.0"


# --- FR-75: the received bytes are the evidence -----------------------------------------------------------------------


async def test_fr_75_the_bytes_of_a_card_are_kept_and_served_as_they_came(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    card = agent_card(
        capabilities={"extensions": [{"uri": "https://x.example/e", "required": False}], "streaming": False},
        signatures=[{"protected": "eyJhbGciOiJFUzI1NiJ9", "signature": "QUJD"}],
        iconUrl="",
        x=1.0,
    )
    body = json.dumps(card, indent=3, sort_keys=True).replace("Plans", "Pl\\u0061ns").encode() + b"\r\n  \n"
    acme.page(CARD, body, headers={"Content-Type": "application/json"})
    acme.manifest(agent_entry())
    async with serving(open_crawl, origin(acme)) as registry:
        row = (await cards_by_path(registry.crawl))[CARD]
        assert await registry.crawl.database.read(load_snapshot, row.digest) == body
        answer = await registry.get(f"/api/v1/snapshots/{row.digest}")
        assert (answer.status, answer.body) == (200, body)
        assert row.normal["capabilities"]["extensions"] == [{"uri": "https://x.example/e", "required": False}]
        assert await all_drifts(registry.crawl) == []


async def test_fr_75_a_card_of_any_entry_is_named_by_its_bytes(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    page = acme.json("/card.json", server_card())
    acme.manifest(entry("echo", type=MCP, url="/card.json", description=None, version=None))
    async with crawl_sqlite(origin(acme)) as crawl:
        await crawl.run()
        row = (await cards_by_path(crawl))["/card.json"]
        document = (await crawl.documents(acme))["/card.json"]
        assert (row.digest, document.applied_digest) == (document.digest, document.digest)
        assert await crawl.database.read(load_snapshot, row.digest) == page.body
