"""Field reports of kind E: snapshots, drift, removal and provenance, for cards as for catalogs."""

import asyncio
import random
import socket
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web as server

from config.loading import load_settings
from crawler.assembly import make_client
from crawler.probe import Probed, probe
from crawler.upkeep import Upkeep
from index.store.snapshots import load_snapshot
from index.store.tables import documents
from index.strict_json import digest
from tests.conftest import OpenCrawl
from tests.fakes.cards import (
    CARD,
    LEGACY,
    MCP,
    agent_card,
    agent_entry,
    all_drifts,
    cards_by_path,
    feed,
    open_drifts,
    rows_of,
    server_card,
    skill,
    urn,
    versions_of,
)
from tests.fakes.clock import FakeClock
from tests.fakes.harness import ALL_SURFACES, Crawl
from tests.fakes.history import pass_time
from tests.fakes.registry import Registry, serving
from tests.fakes.tools import RealServer
from tests.fakes.web import FakeWeb, Page, Site, entry

ARD = "/.well-known/ard.json"
SERVER = "/server.json"
A2A_ONLY = ("ard", "a2a")


def origin(site: Site, *surfaces: str, **options: Any) -> Any:
    return {"origin": site.origin, "surfaces": list(surfaces or ALL_SURFACES), **options}


async def seen_by_search(registry: Registry, text: str, name: str = "planner") -> Any:
    """What a search result says about the artifact of an entry."""
    results = (await registry.search(text, pageSize=100))["results"]
    (result,) = [item for item in results if item["identifier"] == urn(name)]
    return result["ardvark:artifact"]


# --- FR-61: frozen at the first registration --------------------------------------------------------------------------


async def test_fr_61_every_new_state_of_a_card_is_shown_and_the_former_one_kept(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.json(CARD, agent_card("Alpha", version="3.0.1", description="Sails"))
    acme.manifest(agent_entry(displayName="Boats", description="Boats and ships", version=None))
    async with serving(open_crawl, origin(acme, *A2A_ONLY)) as registry:
        crawl = registry.crawl
        assert await registry.found("alpha") == [urn()]
        clock.advance(hours=1)
        acme.json(CARD, agent_card("Beta", version="3.1.0", description="Sails"))
        await crawl.run()
        assert (await registry.found("alpha"), await registry.found("beta")) == ([], [urn()])
        shown = await seen_by_search(registry, "beta")
        assert (shown["name"], shown["version"], shown["state"]) == ("Beta", "3.1.0", "read")
        (old,) = await versions_of(crawl)
        assert [edit["pointer"] for edit in old.edits] == ["/name", "/version"]
        assert (old.edits[0]["old"], old.edits[0]["new"]) == ("Alpha", "Beta")
        event = [change for change in await crawl.changes() if change.kind == "artifact.changed"][-1]
        assert (event.members, event.identifier) == (("/name", "/version"), urn())
        assert event.at == event.indexed_at == clock.now()
        history = (await registry.get(f"/api/v1/agents/{urn()}/history")).json
        assert history["artifact"]["changedAt"].startswith(clock.now().isoformat()[:16])
        assert await crawl.entry(urn()) is not None, "the entry's own words stand"
        assert await registry.found("boats") == [urn()]


# --- FR-63: live figures in texts -------------------------------------------------------------------------------------


async def test_fr_63_figures_that_run_are_no_change_and_another_host_is_a_grave_one(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    first = agent_card(description="Lists 812 items", generatedAt="2026-11-29T10:00:00Z")
    acme.json(CARD, first)
    endpoint = first["supportedInterfaces"][0]["url"]
    acme.manifest(agent_entry(description="Lists 812 items", metadata={"endpoint": endpoint}))
    async with open_crawl(origin(acme, *A2A_ONLY)) as crawl:
        await crawl.run()
        before = (await cards_by_path(crawl))[CARD]
        second = {**first, "description": "Lists 813 items", "generatedAt": "2026-11-29T11:00:00Z"}
        second = dict(reversed(second.items()))
        acme.json(CARD, second)
        clock.advance(hours=1)
        await crawl.run()
        after = (await cards_by_path(crawl))[CARD]
        assert after.content_digest != before.content_digest
        assert (after.changed_at, after.normal["description"]) == (before.changed_at, "Lists 813 items")
        assert await feed(crawl, "artifact.changed", "drift.opened") == []
        assert await versions_of(crawl) == []
        acme.json(
            CARD,
            {**second, "supportedInterfaces": [{**first["supportedInterfaces"][0], "url": "https://new.example/"}]},
        )
        clock.advance(hours=1)
        await crawl.run()
        (event,) = [change for change in await crawl.changes() if change.kind == "artifact.changed"]
        assert (event.change_class, event.members) == ("breaking", ("/supportedInterfaces/0/url",))
        assert await open_drifts(crawl) == [("drift.interface_changed", urn(), "/metadata/endpoint")]


async def test_fr_63_a_catalog_with_running_figures_opens_nothing(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.json(CARD, agent_card(description="Lists 812 items"))
    async with open_crawl(origin(acme, *A2A_ONLY)) as crawl:
        for number in range(812, 817):
            acme.manifest(agent_entry(description=f"Lists {number} items"))
            await crawl.run()
            clock.advance(hours=1)
        assert await all_drifts(crawl) == []


# --- FR-66: two live documents contradict each other ------------------------------------------------------------------


async def test_fr_66_cards_of_one_site_that_contradict_each_other_are_one_record_with_both_addresses(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    old = {"name": "Planner", "protocolVersion": "0.3.0", "skills": [], "capabilities": {}}
    acme.json("/a.json", {**old, "version": "2.0.0", "url": "https://o.example/v2"})
    acme.json(LEGACY, {**old, "version": "1.4.0", "url": "https://o.example/v1"})
    acme.manifest(agent_entry(url="/a.json", version="2.0.0"))
    async with serving(open_crawl, origin(acme)) as registry:
        crawl = registry.crawl
        assert await crawl.identifiers() == [urn()]
        (row,) = await all_drifts(crawl)
        assert (row.code, row.drift_class, row.identifier) == ("drift.cards_contradict", "breaking", urn())
        assert (row.catalog_url, row.live_url) == (acme.url("/a.json"), acme.url(LEGACY))
        assert row.catalog_value == {"version": "2.0.0", "supportedInterfaces": ["https://o.example/v2"]}
        assert row.live_value == {"version": "1.4.0", "supportedInterfaces": ["https://o.example/v1"]}
        for _ in range(3):
            clock.advance(hours=1)
            await crawl.run()
        (row,) = await all_drifts(crawl)
        assert row.confirmed_at == clock.now(), "neither is the last writer"
        assert len(await cards_by_path(crawl)) == 2
        shown = (await registry.get("/api/v1/drift")).json["items"]
        assert [(item["catalogUrl"], item["liveUrl"]) for item in shown] == [(acme.url("/a.json"), acme.url(LEGACY))]
        acme.json(LEGACY, {**old, "version": "2.0.0", "url": "https://o.example/v2"})
        await crawl.run()
        assert await open_drifts(crawl) == []


# --- FR-67: a card leaves out a tool ----------------------------------------------------------------------------------


@pytest.mark.parametrize("as_events", [True, False])
async def test_fr_67_a_tool_that_the_endpoint_serves_and_the_card_leaves_out_is_drift_once_a_probe_has_seen_it(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock, as_events: bool
) -> None:
    acme = web.site("acme")
    async with RealServer("lookup", "fetch", "report", as_events=as_events) as tools:
        remotes = [{"type": "streamable-http", "url": tools.url}]
        acme.json(SERVER, server_card(remotes=remotes, tools=["lookup", "fetch"]))
        acme.manifest(agent_entry("echo", url=SERVER, type=MCP, version="1.2.0", tags=None, capabilities=None))
        listed = origin(acme, "ard", "mcp", artifact_hosts=[tools.authority])
        async with serving(open_crawl, listed, probe={"enabled": True}) as registry:
            crawl = registry.crawl
            assert tools.seen == [], "no crawl asks an endpoint"
            before = (await cards_by_path(crawl))[SERVER]
            found = await probed(crawl, urn("echo"))
            assert (found.finding.state, found.finding.tools) == ("open", ["lookup", "fetch", "report"])
            (row,) = await all_drifts(crawl)
            assert (row.code, row.drift_class, row.identifier) == ("drift.endpoint_tools", "search", urn("echo"))
            assert row.live_value == {"missing_in_card": ["report"], "tools": ["lookup", "fetch", "report"]}
            assert row.catalog_value == {"missing_at_endpoint": [], "tools": ["lookup", "fetch"]}
            assert (row.catalog_url, row.live_url) == (acme.url(SERVER), tools.url)
            assert (row.copy_old_at, row.live_seen_at) == (before.first_seen_at, found.finding.asked_at)
            assert (await cards_by_path(crawl))[SERVER] == before, "the card says what it said"
            assert await registry.found("report") == [], "what was only observed is searched by nobody"
            (item,) = (await registry.get(f"/api/v1/agents/{urn('echo')}/drift")).json["items"]
            assert (item["code"], item["live"]["missing_in_card"]) == ("drift.endpoint_tools", ["report"])
            clock.advance(hours=1)
            again = await probed(crawl, urn("echo"))
            (row,) = await all_drifts(crawl)
            assert (row.confirmed_at, row.live_seen_at) == (again.finding.asked_at,) * 2, "one drift, confirmed"
            acme.json(SERVER, server_card(remotes=remotes, tools=["lookup", "fetch", "report"]))
            await crawl.run()
            (row,) = await all_drifts(crawl)
            assert (row.closed_at, row.closed_by) == (clock.now(), "catalog")
        assert {seen.headers.get("User-Agent", "").split("/")[0] for seen in tools.seen} == {"ardvark"}
        assert not [seen for seen in tools.seen if "Authorization" in seen.headers or "Cookie" in seen.headers]


async def probed(crawl: Crawl, target: str, **options: Any) -> Probed:
    """Probe as the command does, with the clock of the crawl."""
    async with make_client(crawl.settings, crawl.clock) as client:
        return await probe(crawl.settings, crawl.clock, client, crawl.database, target, **options)


# --- FR-68: what answers at an advertised address ---------------------------------------------------------------------


async def test_fr_68_the_answers_of_addresses_are_told_apart_and_no_entry_is_lost_for_one(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme = web.site("acme")

    async def never(_: server.Request) -> server.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    acme.html("/html", "<title>App</title>")
    for status in (401, 402, 405, 500):
        acme.page(f"/s{status}", status=status)
    acme.handle("/slow", never)
    states = {
        "html": "not_a_document",
        "s401": "auth_required",
        "s402": "auth_required",
        "s405": "not_a_document",
        "s500": "unreachable",
        "slow": "unreachable",
        "none": "absent",
    }
    closed = f"http://closed.example:{_closed_port()}/card.json"
    acme.manifest(
        *(entry(name, type="application/json", url=acme.url(f"/{name}")) for name in states),
        entry("refused", type="application/json", url=closed),
        entry("foreign", type="application/json", url="https://foreign.example/mcp"),
        entry("called", type="application/ai-registry+json", url=acme.url("/called")),
    )
    states |= {"refused": "unreachable", "foreign": "not_allowlisted", "called": "not_a_card"}
    hosts = [closed.split("/")[2]]
    timing = {"header_timeout": "300ms"}
    async with serving(open_crawl, origin(acme, artifact_hosts=hosts), network=timing) as registry:
        for name, state in states.items():
            answer = (await registry.get(f"/api/v1/agents/{urn(name)}/provenance")).json
            assert answer["artifact"]["state"] == state, name
            assert (await registry.get(f"/api/v1/agents/{urn(name)}")).status == 200
        assert len(await registry.crawl.identifiers()) == len(states)
        assert [code for code, *_ in await open_drifts(registry.crawl)] == ["drift.artifact_gone"], "the 404 alone"
    assert {seen.method for seen in web.seen} == {"GET"}
    assert acme.requests("/called") == []


def _closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_fr_68_the_endpoints_of_a_card_are_not_measured(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme, other = web.site("acme"), web.site("other")
    interfaces = [
        {"url": site.url("/a2a"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"} for site in (acme, other)
    ]
    acme.json(CARD, agent_card(supportedInterfaces=interfaces, documentationUrl=acme.url("/docs")))
    acme.manifest(agent_entry(metadata={"endpoint": acme.url("/a2a")}))
    async with open_crawl(origin(acme), origin(other)) as crawl:
        for _ in range(2):
            await crawl.run()
    assert not [seen for seen in web.seen if seen.path in ("/a2a", "/docs")]


# --- FR-69: a short outage --------------------------------------------------------------------------------------------


async def test_fr_69_a_short_outage_of_a_card_is_one_interval_and_costs_nothing(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    good = acme.json(CARD, agent_card(skills=[skill("zanzibar", "travel")]))
    acme.manifest(agent_entry(capabilities=["zanzibar"]))

    async def reset(request: server.Request) -> server.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return server.Response()

    async with serving(open_crawl, origin(acme, *A2A_ONLY)) as registry:
        crawl = registry.crawl
        began = None
        for answer in (reset, Page(status=502)):
            acme.pages[CARD] = answer
            clock.advance(hours=1)
            await crawl.run()
            row = (await crawl.documents(acme))[CARD]
            began = began or row.failing_since
            assert (row.outcome, row.failing_since, row.confirmed_at < began) == ("unreachable", began, True)
            assert await registry.found("zanzibar") == [urn()]
            shown = await seen_by_search(registry, "zanzibar")
            assert shown["freshness"]["state"] == "stale"
        acme.pages[CARD] = good
        clock.advance(hours=1)
        await crawl.run()
        assert acme.requests(CARD)[-1].status == 304
        row = (await crawl.documents(acme))[CARD]
        assert (row.outcome, row.failing_since) == ("not_modified", None)
        assert (await crawl.documents(acme))[ARD].failing_since is None, "the catalog was never out"
        assert await all_drifts(crawl) == []
        assert await feed(crawl, "artifact.changed", "artifact.removed", "entry.changed", "entry.removed") == []


# --- FR-70: a failure beside a success --------------------------------------------------------------------------------


async def test_fr_70_a_card_that_fails_keeps_what_it_said_while_another_moves_on_and_is_tried_again_early(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    for name in ("one", "two"):
        acme.json(f"/{name}.json", agent_card(name, version="1.0.0"))
    acme.manifest(*(agent_entry(name, url=f"/{name}.json", displayName=name) for name in ("one", "two")))
    async with open_crawl(origin(acme, *A2A_ONLY)) as crawl:
        await crawl.run()
        acme.page("/one.json", status=500)
        acme.json("/two.json", agent_card("two", version="2.0.0"))
        clock.advance(hours=1)
        await crawl.run()
        cards = await cards_by_path(crawl)
        assert [cards[f"/{name}.json"].normal["version"] for name in ("one", "two")] == ["1.0.0", "2.0.0"]
        assert await open_drifts(crawl) == [("drift.version_mismatch", urn("two"), "/version")]
        rows = await crawl.documents(acme)
        assert rows["/one.json"].next_fetch_at < rows["/two.json"].next_fetch_at
        assert crawl.summaries[-1].as_json()["documents"]["unreachable"] == 1


# --- FR-72: removed upstream, alive for ever --------------------------------------------------------------------------


async def test_fr_72_the_card_of_a_removed_entry_is_asked_for_no_longer(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    names = ("a", "b", "c")
    for name in names:
        acme.json(f"/{name}.json", agent_card(name, version="2.0.0"))
    acme.manifest(*(agent_entry(name, url=f"/{name}.json", displayName=name) for name in names))
    async with serving(open_crawl, origin(acme, *A2A_ONLY)) as registry:
        crawl = registry.crawl
        assert len(await open_drifts(crawl)) == 3
        acme.manifest(*(agent_entry(name, url=f"/{name}.json", displayName=name) for name in ("a", "c")))
        await pass_time(crawl, clock, days=2)
        web.clear_log()
        await pass_time(crawl, clock, days=14)
        assert acme.requests("/b.json") == []
        assert acme.requests("/a.json") != []
        assert [identifier for _, identifier, _ in await open_drifts(crawl)] == [urn("a"), urn("c")]
        assert (await registry.get(f"/api/v1/agents/{urn('b')}")).status == 404
        assert (await registry.get(f"/api/v1/agents/{urn('b')}/history")).status == 200
        (ended,) = [row for row in await all_drifts(crawl) if row.identifier == urn("b")]
        assert ended.closed_by == "removed"


# --- FR-73: most entries gone at once ---------------------------------------------------------------------------------


async def test_fr_73_while_a_large_drop_is_held_its_cards_are_watched_and_its_drift_stands(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    names = [f"a{number}" for number in range(40)]
    for name in names:
        acme.json(f"/{name}.json", agent_card(name, version="2.0.0" if name == "a7" else "1.0.0"))
    acme.manifest(*(agent_entry(name, url=f"/{name}.json", displayName=name) for name in names))
    drift = [("drift.version_mismatch", urn("a7"), "/version")]
    async with open_crawl(origin(acme, *A2A_ONLY)) as crawl:
        await crawl.run()
        seen_at = clock.now()
        assert await open_drifts(crawl) == drift
        acme.manifest()
        clock.advance(hours=1)
        await crawl.run()
        assert (await crawl.documents(acme))[ARD].held
        assert await open_drifts(crawl) == drift
        (row,) = await all_drifts(crawl)
        assert (row.copy_old_at, row.live_seen_at) == (seen_at, clock.now()), "the new body has no such entry"
        assert await watched(crawl) == 40
        clock.advance(hours=1)
        await crawl.run()
        assert (await crawl.identifiers(), await open_drifts(crawl), await watched(crawl)) == ([], [], 0)
        assert await feed(crawl, "drift.closed") == [("drift.closed", urn("a7"))]


async def watched(crawl: Crawl) -> int:
    return len(await rows_of(crawl, documents, mechanism="entry", watched=True))


# --- FR-76: history and bodies fill the disk --------------------------------------------------------------------------

ROOM = 2 * 1024 * 1024
SPARE_ROOM = 2 * 1024 * 1024


def size_of(folder: Path) -> int:
    """Measure the database file with the log beside it."""
    return sum(path.stat().st_size for path in folder.glob("ardvark.db*"))


async def test_fr_76_a_body_that_changes_in_every_cycle_stays_within_the_room_that_there_is(
    crawl_sqlite: OpenCrawl, web: FakeWeb, clock: FakeClock, tmp_path: Path
) -> None:
    """Each cycle brings 200 KiB more, and every other one ends a drift that names one of these bodies."""
    acme, chance = web.site("acme"), random.Random(76)
    acme.manifest(
        agent_entry(version="1.0.0", capabilities=None, tags=None),
        agent_entry("lost", url="/lost.json"),
    )
    acme.json("/lost.json", agent_card("Lost", version="2.0.0"))
    retention = load_settings(overrides={"retention": {"max_size": ROOM, "fetch_log_per_document": 20}})
    sizes = []
    async with crawl_sqlite(origin(acme, *A2A_ONLY)) as crawl:
        upkeep = Upkeep(retention, clock, crawl.database)
        for cycle in range(60):
            text = chance.randbytes(100 * 1024).hex()
            page = acme.json(CARD, agent_card(version=f"{1 + cycle % 2}.0.0", notes=text))
            await crawl.run()
            clock.advance(minutes=2)
            if cycle % 5 == 4:
                pruned = await upkeep.prune()
                assert pruned is not None
                assert not pruned.over_limit
                sizes.append(size_of(tmp_path))
        assert max(sizes) <= ROOM + SPARE_ROOM
        assert await crawl.database.read(load_snapshot, digest(page.body)) == page.body
        mine, lost = [await all_drifts(crawl, identifier=urn(name)) for name in ("planner", "lost")]
        assert lost
        assert all(row.closed_at is None for row in lost), "what is open stays, however old"
        assert mine[-1].closed_at is None, "the last cycle opened one"
        assert mine[-2].closed_at is not None, "what ended last is kept the longest"
        named = {row.live_digest for row in (*mine, *lost)} | {row.catalog_digest for row in (*mine, *lost)}
        for name in named - {None}:
            assert await crawl.database.read(load_snapshot, name) is not None, "a drift that is kept has its bodies"


# --- FR-77: a local stub before the richer record ---------------------------------------------------------------------


async def test_fr_77_the_publishers_own_words_come_before_a_curated_stub_and_both_are_named(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme, curated = web.site("acme"), web.site("curated")
    curated.manifest(entry("x", displayName="X", description=None, url=acme.url("/x.json"), type="application/json"))
    acme.manifest(
        entry(
            "x",
            displayName="X",
            description="Retired, use Y",
            updatedAt="2026-08-01T00:00:00Z",
            url="/x.json",
            type="application/json",
        )
    )
    acme.json("/x.json", agent_card("X", description="Sails to zanzibar"))
    for order in ((curated, acme), (acme, curated)):
        async with serving(open_crawl, *map(origin, order)) as registry:
            (result,) = (await registry.search("retired"))["results"]
            assert (result["description"], result["ardvark:provenance"]["url"]) == ("Retired, use Y", acme.url(ARD))
            answer = (await registry.get(f"/api/v1/agents/{urn('x')}/provenance")).json
            assert {acme.url(ARD), curated.url(ARD)} <= set(_urls(answer))
            assert await registry.found("zanzibar") == [urn("x")], "and the live card beside them"
            assert len(acme.requests("/x.json")) in (1, 2), "one document, whoever names it"


def _urls(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for member in value.values() for text in _urls(member)]
    if isinstance(value, list):
        return [text for item in value for text in _urls(item)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize("gone", [404, 410])
async def test_fr_77_a_stub_is_shown_only_once_the_publishers_record_is_gone(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock, gone: int
) -> None:
    acme, curated = web.site("acme"), web.site("curated")
    curated.manifest(entry("x", description="A stub"))
    acme.manifest(entry("x", description="The record"))
    async with open_crawl(origin(curated), origin(acme)) as crawl:
        await crawl.run()
        assert "The record" in (await crawl.entry(urn("x")) or "")
        acme.page(ARD, status=503)
        await crawl.run()
        assert "The record" in (await crawl.entry(urn("x")) or "")
        acme.page(ARD, status=gone)
        await pass_time(crawl, clock, days=4)
        assert "A stub" in (await crawl.entry(urn("x")) or "")
