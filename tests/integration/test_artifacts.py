"""Cards that entries point to, through the crawl: what is fetched, compared, kept and forgotten."""

import asyncio
import hashlib
import json
import time
from typing import Any

import pytest
from aiohttp import web as server

from crawler.surfaces import mcp
from index.store.documents import origin_id
from index.store.drift_reads import OpenDrift, drifts_of, open_counts
from index.store.tables import documents, entries
from tests.conftest import OpenCrawl
from tests.fakes.cards import (
    CARD,
    LEGACY,
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
    waiting,
)
from tests.fakes.clock import FakeClock
from tests.fakes.exam import Exam
from tests.fakes.harness import ALL_SURFACES, Crawl
from tests.fakes.history import pass_time, visit_due
from tests.fakes.web import FakeWeb, Page, Site, entry

ARD = "/.well-known/ard.json"
PREDECESSOR = "/.well-known/ai-catalog.json"
SURFACES = list(ALL_SURFACES)


def origin(site: Site, **options: Any) -> dict[str, Any]:
    """An origin of all surfaces, or with other options."""
    return {"origin": site.origin, "surfaces": SURFACES, **options}


def publish(site: Site, *entries: Any, card: Any = None) -> None:
    """Serve a catalog, and the card that its entry points to."""
    site.manifest(*(entries or (agent_entry(),)))
    site.json(CARD, agent_card() if card is None else card)


async def decision_of(crawl: Crawl, name: str = "planner") -> tuple[str, str | None]:
    (row,) = await rows_of(crawl, entries, key=urn(name))
    return row.artifact_decision, row.artifact_url


# --- which artifacts are read -----------------------------------------------------------------------------------------


async def test_an_artifact_off_the_allowlist_is_not_asked_for_and_its_entry_is_listed(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme, other = web.site("acme"), web.site("other")
    other.json("/card.json", agent_card())
    acme.manifest(agent_entry(url="http://other.example/card.json"), agent_entry("odd", url=other.url("/card.json")))
    async with open_crawl(origin(acme)) as crawl:
        await crawl.run()
        assert await decision_of(crawl) == ("not_allowlisted", "http://other.example/card.json")
        assert await decision_of(crawl, "odd") == ("port", other.url("/card.json"))
        assert other.requests() == []
        assert await crawl.identifiers() == [urn("odd"), urn()]
        assert await all_drifts(crawl) == []


async def test_a_host_that_is_listed_for_an_origin_serves_its_artifacts(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme, cdn = web.site("acme"), web.site("cdn")
    cdn.json("/card.json", agent_card(skills=[skill("zanzibar", "travel")]))
    acme.manifest(agent_entry(url=cdn.url("/card.json"), capabilities=["zanzibar"]))
    async with open_crawl(origin(acme, artifact_hosts=[f"cdn.example:{web.port}"])) as crawl:
        await crawl.run()
        assert (await decision_of(crawl))[0] == "watched"
        assert [hit.identifier for hit in await crawl.search("zanzibar")] == [urn()]
        assert {seen.path for seen in cdn.requests()} == {"/robots.txt", "/card.json"}
        assert (await crawl.documents(acme))[cdn.url("/card.json")].outcome == "fetched", "the catalog's origin asks"


async def test_another_allowlisted_origin_visits_its_own_artifacts(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme, other = web.site("acme"), web.site("other")
    other.json("/card.json", agent_card(version="1.1.0"))
    acme.manifest(agent_entry(url=other.url("/card.json")))
    async with open_crawl(origin(acme), origin(other)) as crawl:
        await crawl.run()
        assert (await crawl.documents(other))["/card.json"].outcome == "fetched"
        assert list((await crawl.documents(acme)).keys() & {other.url("/card.json")}) == []
        assert await open_drifts(crawl) == [("drift.version_mismatch", urn(), "/version")]
        assert len(other.requests("/card.json")) == 1


async def test_a_change_of_the_allowlist_decides_anew(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme, other = web.site("acme"), web.site("other")
    other.json("/card.json", agent_card(version="1.1.0"))
    acme.manifest(agent_entry(url=other.url("/card.json")))
    async with open_crawl(origin(acme)) as crawl:
        await crawl.run()
        assert (await decision_of(crawl))[0] == "port"
    async with open_crawl(origin(acme), origin(other)) as crawl:
        await crawl.run()
        assert (await decision_of(crawl))[0] == "watched"
        assert await open_drifts(crawl) == [("drift.version_mismatch", urn(), "/version")]
    async with open_crawl(origin(acme)) as crawl:
        await crawl.run()
        assert (await decision_of(crawl))[0] == "port"
        (row,) = await all_drifts(crawl)
        assert row.closed_by == "removed", "what is looked at no longer disagrees no longer"
        assert await crawl.identifiers() == [urn()]


async def test_a_surface_that_is_switched_on_has_the_entries_looked_through_again(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme = web.site("acme")
    publish(acme)
    async with open_crawl(origin(acme, surfaces=["ard"])) as crawl:
        await crawl.run()
        assert (await decision_of(crawl))[0] == "surface_off"
        assert acme.requests(CARD) == []
    async with open_crawl(origin(acme, surfaces=["ard", "a2a"])) as crawl:
        await visit_due(crawl)
        assert acme.requests(ARD)[-1].status == 304
        assert (await decision_of(crawl))[0] == "watched"
        assert list(await cards_by_path(crawl)) == [CARD]


@pytest.mark.parametrize(
    ("type_", "decision"),
    [
        ("application/ai-registry+json", "not_a_card"),
        ("application/ai-skill+md", "not_a_card"),
        ("application/openapi+json", "not_a_card"),
        ("application/json", "watched"),
        ("Application/A2A-Agent-Card+JSON; charset=utf-8", "watched"),
    ],
)
async def test_only_what_may_be_a_card_is_asked_for(
    web: FakeWeb, crawl_sqlite: OpenCrawl, type_: str, decision: str
) -> None:
    acme = web.site("acme")
    acme.manifest(agent_entry(url="/thing", type=type_))
    async with crawl_sqlite(origin(acme)) as crawl:
        await crawl.run()
        assert (await decision_of(crawl))[0] == decision
        assert len(acme.requests("/thing")) == (decision == "watched")


async def test_so_many_artifacts_of_an_origin_are_watched_and_the_others_are_named(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme = web.site("acme")
    acme.manifest(*(agent_entry(f"a{number}", url=f"/c{number}.json") for number in range(6)))
    for number in range(6):
        acme.json(f"/c{number}.json", agent_card(f"Agent {number}"))
    settings = {"crawl": {"max_artifacts": 3}}
    async with open_crawl(origin(acme, surfaces=["ard", "a2a"]), **settings) as crawl:
        for _ in range(2):
            await crawl.run()
            decisions = [(await decision_of(crawl, f"a{number}"))[0] for number in range(6)]
            assert decisions == ["watched"] * 2 + ["too_many_documents"] * 4, "the origin's own place is one of them"
            assert len(await cards_by_path(crawl)) == 2
            assert len(await crawl.identifiers()) == 6
    async with open_crawl(origin(acme, surfaces=["ard", "a2a"]), crawl={"max_artifacts": 5}) as crawl:
        await crawl.run()
        decisions = [(await decision_of(crawl, f"a{number}"))[0] for number in range(6)]
        assert decisions == ["watched"] * 4 + ["too_many_documents"] * 2, "a higher bound decides anew"
        assert len(await cards_by_path(crawl)) == 4
    async with open_crawl(origin(acme, surfaces=["ard", "a2a"]), crawl={"max_artifacts": 5}) as crawl:
        assert await visit_due(crawl) == 0, "the same bound decides nothing anew"


# --- how they are asked for -------------------------------------------------------------------------------------------


async def test_cards_are_asked_for_with_the_version_of_the_protocol_and_with_nothing_but_get(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme = web.site("acme")
    extended = agent_card(capabilities={"extendedAgentCard": True, "streaming": True})
    extended["supportedInterfaces"][0]["url"] = acme.url("/a2a")
    publish(acme, agent_entry(), agent_entry("other", url="/cards/other.json"), card=extended)
    acme.json("/cards/other.json", server_card(remotes=[{"type": "streamable-http", "url": acme.url("/mcp")}]))
    async with open_crawl(origin(acme)) as crawl:
        for _ in range(3):
            await crawl.run()
    assert {seen.method for seen in web.seen} == {"GET"}
    for path in (CARD, LEGACY, "/cards/other.json"):
        assert {seen.headers.get("A2A-Version") for seen in acme.requests(path)} == {"1.0"}
    asked = {seen.path for seen in acme.requests()}
    assert not {path for path in asked if path.startswith(("/a2a", "/mcp")) or "extended" in path.lower()}
    assert not any("Authorization" in seen.headers or "Cookie" in seen.headers for seen in web.seen)


async def test_a_card_is_followed_through_redirects_on_the_allowlist_alone(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme, other, foreign = web.site("acme"), web.site("other"), web.site("foreign")
    acme.manifest(agent_entry("one", url="/one.json"), agent_entry("two", url="/two.json"))
    acme.redirect("/one.json", other.url("/moved.json"), 308)
    acme.redirect("/two.json", foreign.url("/moved.json"))
    for site in (other, foreign):
        site.json("/moved.json", agent_card(version="2.0.0"))
    async with open_crawl(origin(acme), origin(other)) as crawl:
        await crawl.run()
        found = await crawl.documents(acme)
        assert (found["/one.json"].outcome, found["/one.json"].final_url) == ("fetched", other.url("/moved.json"))
        assert (found["/two.json"].outcome, found["/two.json"].reason) == ("refused", "redirect_offsite")
        assert foreign.requests() == []
        assert await open_drifts(crawl) == [("drift.version_mismatch", urn("one"), "/version")]
        (drift,) = await all_drifts(crawl)
        assert drift.live_url == acme.url("/one.json"), "the address that the entry names"


async def test_a_304_confirms_a_card_and_what_is_open_about_it(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    publish(acme, card=agent_card(version="1.1.0"))
    async with open_crawl(origin(acme)) as crawl:
        await crawl.run()
        (first,) = await all_drifts(crawl)
        clock.advance(hours=2)
        await crawl.run()
        assert [seen.status for seen in acme.requests(CARD)] == [200, 304]
        (second,) = await all_drifts(crawl)
        assert second.opened_at == first.opened_at
        assert second.confirmed_at == second.copy_old_at == second.live_seen_at == clock.now()
        assert await feed(crawl, "drift.opened", "drift.closed") == [("drift.opened", urn())]


async def test_an_event_stream_at_the_address_of_a_card_is_cut_at_once(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    left = asyncio.Event()

    async def stream(request: server.Request) -> server.StreamResponse:
        response = server.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        await response.prepare(request)
        try:
            while True:
                await response.write(b"data: {}\n\n")
                await asyncio.sleep(0.01)
        except ConnectionError:
            left.set()
        return response

    acme.manifest(agent_entry("plain", url="/mcp", type="application/json"), agent_entry("card", url="/mcp"))
    acme.handle("/mcp", stream)
    async with open_crawl(origin(acme)) as crawl:
        await crawl.run()
        await asyncio.wait_for(left.wait(), 10)
        row = (await crawl.documents(acme))["/mcp"]
        assert (row.outcome, row.reason) == ("wrong_kind", "event_stream"), "it is no deadline that ended it"
        assert len(acme.requests("/mcp")) == 1
        assert await crawl.identifiers() == [urn("card"), urn("plain")]
        assert await open_drifts(crawl) == [("drift.artifact_gone", urn("card"), "/url")]


@pytest.mark.parametrize("path", [CARD, "/cards/planner.json"])
async def test_a_host_that_answers_everything_has_no_card(web: FakeWeb, open_crawl: OpenCrawl, path: str) -> None:
    acme = web.site("acme")
    acme.manifest(agent_entry(url=path))
    acme.fallback = Page(b"<!doctype html><title>App</title>", headers={"Content-Type": "text/html"})
    acme.robots("User-agent: *\nAllow: /\n")
    async with open_crawl(origin(acme)) as crawl:
        await crawl.run()
        assert (await crawl.documents(acme))[path].outcome == "catch_all"
        assert await cards_by_path(crawl) == {}
        assert await open_drifts(crawl) == [("drift.artifact_gone", urn(), "/url")]
        (row,) = await all_drifts(crawl)
        assert row.live_value == "not_a_document"
        control = [seen for seen in acme.requests() if seen.path.startswith("/.well-known/") and len(seen.path) > 35]
        assert len(control) == 1


# --- artifacts that several entries point to --------------------------------------------------------------------------


async def test_one_artifact_of_two_entries_is_fetched_once_and_compared_with_both(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme = web.site("acme")
    publish(acme, agent_entry("one"), agent_entry("two", version="0.9.0"))
    async with open_crawl(origin(acme)) as crawl:
        await crawl.run()
        assert len(acme.requests(CARD)) == 1
        assert await open_drifts(crawl) == [("drift.version_mismatch", urn("two"), "/version")]
        acme.manifest(agent_entry("one"))
        await crawl.run()
        (row,) = await all_drifts(crawl)
        assert row.closed_by == "removed"
        acme.json(CARD, agent_card(version="1.1.0"))
        await crawl.run()
        assert await open_drifts(crawl) == [("drift.version_mismatch", urn("one"), "/version")]
        assert await feed(crawl, "artifact.changed") == [("artifact.changed", urn("one"))]


async def test_one_artifact_of_two_origins_lives_as_long_as_one_of_them_names_it(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme, other, cdn = web.site("acme"), web.site("other"), web.site("cdn")
    cdn.json("/card.json", agent_card())
    acme.manifest(agent_entry(url=cdn.url("/card.json")))
    other.manifest(agent_entry(url=cdn.url("/card.json"), publisher="other.example"))
    hosts = [f"cdn.example:{web.port}"]
    both = [origin(site, artifact_hosts=hosts) for site in (acme, other)]
    async with open_crawl(*both) as crawl:
        await crawl.run()
        cdn.json("/card.json", agent_card(version="2.0.0"))
        await pass_time(crawl, clock, days=2)
        assert await open_drifts(crawl) == [
            ("drift.version_mismatch", urn(), "/version"),
            ("drift.version_mismatch", urn(publisher="other.example"), "/version"),
        ]
        owner = (await rows_of(crawl, documents, url=cdn.url("/card.json")))[0].origin_id
        acme.manifest(entry("echo"))
        await pass_time(crawl, clock, days=8)
        assert await open_drifts(crawl) == [("drift.version_mismatch", urn(publisher="other.example"), "/version")]
        assert (await rows_of(crawl, documents, url=cdn.url("/card.json")))[0].watched
    left = both[1] if owner == origin_id(acme.origin) else both[0]
    gone = 0 if owner == origin_id(acme.origin) else 1
    async with open_crawl(left) as crawl:
        if gone:
            acme.manifest(agent_entry(url=cdn.url("/card.json")))
        cdn.json("/card.json", agent_card(version="3.0.0"))
        await pass_time(crawl, clock, days=8)
        (live,) = [row.live_value for row in await all_drifts(crawl) if row.closed_at is None]
        assert live == "3.0.0", "whoever still names it asks for it"


# --- entries that change ----------------------------------------------------------------------------------------------


async def test_an_entry_with_another_address_forgets_its_former_artifact(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(agent_entry(url="/old.json"))
    acme.json("/old.json", agent_card(version="0.1.0"))
    acme.json("/new.json", agent_card())
    async with open_crawl(origin(acme)) as crawl:
        await crawl.run()
        assert await open_drifts(crawl) == [("drift.version_mismatch", urn(), "/version")]
        acme.manifest(agent_entry(url="/new.json"))
        web.clear_log()
        await crawl.run()
        (row,) = await all_drifts(crawl)
        assert (row.closed_by, row.live_url) == ("removed", acme.url("/old.json"))
        assert await feed(crawl, "drift.closed") == [("drift.closed", urn())]
        assert not (await crawl.documents(acme))["/old.json"].watched
        await crawl.run()
        assert len(acme.requests("/old.json")) <= 1
        assert len(acme.requests("/new.json")) == 2


async def test_an_entry_that_points_where_nobody_has_looked_yet_leaves_no_drift_behind(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme, other = web.site("acme"), web.site("other")
    acme.manifest(agent_entry(url="/old.json"))
    acme.json("/old.json", agent_card(version="0.1.0"))
    async with open_crawl(origin(acme), origin(other)) as crawl:
        await crawl.run()
        acme.manifest(agent_entry(url=other.url("/new.json")))
        (claim,) = await crawl.crew.claim(1, [acme.origin])
        await crawl.crew.visit(claim, force=True)
        (row,) = await all_drifts(crawl)
        assert row.closed_by == "removed"


async def test_an_entry_that_turns_invalid_takes_its_drift_along(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    publish(acme, card=agent_card(version="2.0.0"))
    async with open_crawl(origin(acme)) as crawl:
        await crawl.run()
        acme.manifest({**agent_entry(), "data": {}})
        await crawl.run()
        (row,) = await all_drifts(crawl)
        assert (row.closed_by, await crawl.identifiers()) == ("removed", [])
        acme.manifest(agent_entry())
        await crawl.run()
        assert await open_drifts(crawl) == [("drift.version_mismatch", urn(), "/version")]


async def test_a_removed_entry_closes_its_drift(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    publish(acme, agent_entry(version="0.9.0"), entry("echo", type="text/plain"))
    async with open_crawl(origin(acme)) as crawl:
        await crawl.run()
        acme.manifest(entry("echo", type="text/plain"))
        await crawl.run()
        (row,) = await all_drifts(crawl)
        assert (row.code, row.closed_by) == ("drift.version_mismatch", "removed")
        assert await feed(crawl, "drift.closed", "entry.removed") == [
            ("entry.removed", urn()),
            ("drift.closed", urn()),
        ]


async def test_a_removed_catalog_closes_the_drift_of_its_entries(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    publish(acme, agent_entry(version="0.9.0"))
    async with open_crawl(origin(acme)) as crawl:
        await crawl.run()
        acme.page(ARD, status=410)
        await crawl.run()
        (row,) = await all_drifts(crawl)
        assert row.closed_by == "removed"
        assert (await crawl.documents(acme))[CARD].watched, "it is the origin's own"


async def test_an_entry_that_merely_moved_within_its_catalog_has_not_followed(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme = web.site("acme")
    publish(acme, card=agent_card(version="1.1.0"))
    async with open_crawl(origin(acme)) as crawl:
        await crawl.run()
        acme.manifest(entry("echo", type="text/plain"), agent_entry())
        acme.json(CARD, agent_card())
        await crawl.run()
        (row,) = await all_drifts(crawl)
        assert (row.closed_by, row.copy_new_at) == ("live", None)


# --- cards that go, come back, or cannot be had -----------------------------------------------------------------------


async def test_a_card_that_is_gone_and_comes_back_opens_and_closes_one_drift(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    publish(acme)
    async with open_crawl(origin(acme)) as crawl:
        await crawl.run()
        last_seen = clock.now()
        acme.gone(CARD)
        clock.advance(hours=1)
        await crawl.run()
        assert await open_drifts(crawl) == [("drift.artifact_gone", urn(), "/url")]
        (row,) = await all_drifts(crawl)
        assert (row.moved, row.live_old_at, row.live_new_at) == ("live", last_seen, clock.now())
        clock.advance(hours=1)
        await crawl.run()
        (row,) = await all_drifts(crawl)
        assert row.confirmed_at == clock.now(), "that it is still gone was seen"
        acme.json(CARD, agent_card())
        clock.advance(hours=1)
        await crawl.run()
        (row,) = await all_drifts(crawl)
        assert (row.closed_by, row.closed_at) == ("live", clock.now())
        assert await versions_of(crawl) == []


@pytest.mark.parametrize("status", [404, 200])
async def test_what_a_card_that_is_not_there_once_disagreed_about_stays_as_it_was(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock, status: int
) -> None:
    acme = web.site("acme")
    hybrid = {"url": "https://acme.example/old", "preferredTransport": "JSONRPC", "protocolVersion": "0.3.0"}
    card = agent_card(version="1.1.0", **hybrid)
    publish(acme, card=card)
    async with open_crawl(origin(acme)) as crawl:
        await crawl.run()
        before = {row.id: row for row in await all_drifts(crawl)}
        assert {row.code for row in before.values()} == {"drift.version_mismatch", "drift.hybrid_mismatch"}
        for _ in range(2):
            clock.advance(hours=1)
            acme.page(CARD, b'{"hello": "world"}', status=status)
            await crawl.run()
        rows = {row.id: row for row in await all_drifts(crawl)}
        assert len(rows) == 3
        assert all(rows[key].closed_at is None for key in rows)
        assert all(rows[key].live_seen_at == before[key].live_seen_at for key in before), "nobody saw the card"
        clock.advance(hours=1)
        acme.json(CARD, card)
        await crawl.run()
        rows = {row.id: row for row in await all_drifts(crawl)}
        assert {key for key, row in rows.items() if row.closed_at is None} == set(before)
        assert all(rows[key].live_seen_at == clock.now() for key in before)
        assert await feed(crawl, "drift.closed") == [("drift.closed", urn())]


async def test_what_a_card_disagreed_about_ends_when_it_is_gone_for_good(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    publish(acme, card=agent_card(version="1.1.0"))
    async with open_crawl(origin(acme)) as crawl:
        await crawl.run()
        acme.gone(CARD)
        await pass_time(crawl, clock, days=3)
        assert await cards_by_path(crawl) == {}
        assert await open_drifts(crawl) == [("drift.artifact_gone", urn(), "/url")]
        assert [row.closed_by for row in await all_drifts(crawl, code="drift.version_mismatch")] == ["removed"]


async def test_an_outage_neither_opens_nor_closes_anything_and_the_words_of_the_card_are_found(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    publish(acme, card=agent_card(version="1.1.0", description="Sails to zanzibar"))
    async with open_crawl(origin(acme)) as crawl:
        await crawl.run()
        before = await all_drifts(crawl)
        for status in (500, 503, 401):
            clock.advance(hours=1)
            acme.page(CARD, status=status)
            await crawl.run()
            (row,) = await all_drifts(crawl)
            assert (row.closed_at, row.live_seen_at) == (None, before[0].live_seen_at)
            assert row.copy_old_at == clock.now(), "the catalog was seen all the same"
            assert [hit.identifier for hit in await crawl.search("zanzibar")] == [urn()]
        acme.page(CARD, b'{"name": "Plan', headers={"Content-Type": "application/json"})
        await crawl.run()
        assert (await crawl.documents(acme))[CARD].outcome == "malformed"
        assert len(await all_drifts(crawl)) == 1
        assert [hit.identifier for hit in await crawl.search("zanzibar")] == [urn()]


async def test_an_outage_of_a_card_that_was_gone_does_not_bring_it_back(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    publish(acme)
    async with open_crawl(origin(acme)) as crawl:
        await crawl.run()
        for status in (404, 503, 404):
            acme.page(CARD, status=status)
            clock.advance(hours=1)
            await crawl.run()
            assert await open_drifts(crawl) == [("drift.artifact_gone", urn(), "/url")], status
        assert len(await all_drifts(crawl)) == 1


async def test_a_card_that_is_gone_for_good_leaves_the_index_and_its_history_stays(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    publish(acme, card=agent_card(description="Sails to zanzibar"))
    async with open_crawl(origin(acme)) as crawl:
        await crawl.run()
        acme.gone(CARD)
        gone_at = clock.now()
        await pass_time(crawl, clock, days=3)
        assert await crawl.search("zanzibar") == []
        assert await cards_by_path(crawl) == {}
        assert await crawl.identifiers() == [urn()], "the entry stands for itself"
        (old,) = await versions_of(crawl)
        assert (json.loads(old.content)["description"], old.edits) == ("Sails to zanzibar", [])
        assert await feed(crawl, "artifact.removed") == [("artifact.removed", urn())]
        (drift,) = await all_drifts(crawl)
        assert (drift.code, drift.moved, drift.live_old_at, drift.closed_at) == (
            "drift.artifact_gone",
            "live",
            gone_at,
            None,
        )
        acme.json(CARD, agent_card(description="Sails to zanzibar"))
        await crawl.run()
        assert await open_drifts(crawl) == []
        assert [hit.identifier for hit in await crawl.search("zanzibar")] == [urn()]
        assert len(await feed(crawl, "artifact.added")) == 2


async def test_a_card_that_is_withdrawn_at_once_is_gone_at_once(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    publish(acme, card=agent_card(description="Sails to zanzibar"))
    async with open_crawl(origin(acme)) as crawl:
        await crawl.run()
        acme.page(CARD, status=410)
        await crawl.run()
        (row,) = await all_drifts(crawl)
        assert (row.code, row.moved, row.closed_at) == ("drift.artifact_gone", "live", None)
        assert await crawl.search("zanzibar") == []


async def test_a_document_of_another_kind_in_the_place_of_a_card_is_told_from_none(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme = web.site("acme")
    publish(acme)
    async with open_crawl(origin(acme)) as crawl:
        await crawl.run()
        acme.json(CARD, {"hello": "world"})
        await crawl.run()
        assert await open_drifts(crawl) == [("drift.type_mismatch", urn(), "/type")]
        assert [hit.identifier for hit in await crawl.search("maps")] == [urn()], "the copy stays, as it was"
        acme.gone(CARD)
        await crawl.run()
        assert await open_drifts(crawl) == [("drift.artifact_gone", urn(), "/url")]
        acme.json(CARD, server_card())
        await crawl.run()
        codes = {code for code, *_ in await open_drifts(crawl)}
        assert "drift.type_mismatch" in codes
        assert "drift.artifact_gone" not in codes


# --- documents of one origin against each other -----------------------------------------------------------------------


async def test_an_inline_copy_is_compared_with_the_origins_own_card(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    inline = agent_entry(url=None, data=agent_card())
    publish(acme, inline)
    async with open_crawl(origin(acme)) as crawl:
        await crawl.run()
        assert await open_drifts(crawl) == []
        acme.json(CARD, agent_card(description="Plans long trips", skills=[skill("route", "travel")]))
        await crawl.run()
        (row,) = await all_drifts(crawl)
        assert (row.code, row.identifier, row.pointer) == ("drift.inline_stale", urn(), "/data")
        assert sorted(row.members) == ["description", "skills"]
        assert (row.catalog_url, row.live_url) == (acme.url(ARD), acme.url(CARD))
        acme.manifest(
            agent_entry(
                url=None,
                data=agent_card(description="Plans long trips", skills=[skill("route", "travel")]),
                description="Plans long trips",
            )
        )
        await crawl.run()
        (row,) = await all_drifts(crawl)
        assert row.closed_by == "catalog"


async def test_an_inline_copy_that_goes_takes_its_drift_along(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    publish(acme, agent_entry(url=None, data=agent_card(description="Plans short trips")))
    async with open_crawl(origin(acme)) as crawl:
        await crawl.run()
        assert await open_drifts(crawl) == [("drift.inline_stale", urn(), "/data")]
        acme.manifest(agent_entry())
        await crawl.run()
        (row,) = await all_drifts(crawl)
        assert row.closed_by == "removed"


async def test_many_inline_copies_do_not_hide_the_origins_own_card(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    crowd = [agent_entry(f"a{number}", url=None, data=agent_card(f"Agent {number}")) for number in range(300)]
    publish(acme, *crowd, agent_entry(url=None, data=agent_card(description="Plans short trips")))
    async with crawl_sqlite(origin(acme)) as crawl:
        await crawl.run()
        assert ("drift.inline_stale", urn(), "/data") in await open_drifts(crawl)


async def test_the_two_places_of_a_manifest_are_compared(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"), entry("weather"))
    acme.manifest(entry("echo", description="Older words"), entry("sun"), path=PREDECESSOR)
    async with open_crawl(origin(acme, surfaces=["ard"])) as crawl:
        await crawl.run()
        assert await open_drifts(crawl) == [
            ("drift.manifests_differ", urn("echo"), "/description"),
            ("drift.manifests_differ", urn("sun"), ""),
            ("drift.manifests_differ", urn("weather"), ""),
        ]
        assert {(row.catalog_url, row.live_url) for row in await all_drifts(crawl)} == {
            (acme.url(PREDECESSOR), acme.url(ARD))
        }
        acme.manifest(entry("echo"), entry("weather"), path=PREDECESSOR)
        await crawl.run()
        assert {row.closed_by for row in await all_drifts(crawl)} == {"catalog"}


async def test_an_outage_of_one_place_of_a_manifest_says_nothing_and_what_was_missed_is_compared_after_it(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"), entry("more"))
    older = acme.manifest(entry("echo", description="Older words"), entry("more"), path=PREDECESSOR)
    async with open_crawl(origin(acme, surfaces=["ard"])) as crawl:
        await crawl.run()
        acme.page(PREDECESSOR, status=503)
        acme.manifest(entry("echo"), entry("more", description="Newer words"))
        await crawl.run()
        assert await open_drifts(crawl) == [("drift.manifests_differ", urn("echo"), "/description")]
        acme.pages[PREDECESSOR] = older
        clock.advance(hours=1)
        await crawl.run()
        assert acme.requests(PREDECESSOR)[-1].status == 304
        assert await open_drifts(crawl) == [
            ("drift.manifests_differ", urn("echo"), "/description"),
            ("drift.manifests_differ", urn("more"), "/description"),
        ]
        assert await waiting(crawl) == []
        acme.page(PREDECESSOR, status=410)
        await crawl.run()
        assert {row.closed_by for row in await all_drifts(crawl)} == {"removed"}


async def test_a_hybrid_card_is_compared_with_itself(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    hybrid = {"url": "https://acme.example/old", "preferredTransport": "JSONRPC", "protocolVersion": "0.3.0"}
    publish(acme, card=agent_card(**hybrid))
    async with open_crawl(origin(acme)) as crawl:
        await crawl.run()
        (row,) = await all_drifts(crawl)
        assert (row.code, row.identifier, row.catalog_url) == ("drift.hybrid_mismatch", None, acme.url(CARD))
        assert row.catalog_value["url"] == "https://acme.example/old"
        assert await crawl.database.read(open_counts, [urn()]) == {urn(): OpenDrift(1, "breaking")}
        (named,) = await crawl.database.read(drifts_of, urn())
        assert named.id == row.id
        acme.json(CARD, agent_card(**{**hybrid, "url": "https://acme.example/a2a"}))
        await crawl.run()
        assert await open_drifts(crawl) == [], "the older block alone has changed, and that was noticed"


async def test_two_cards_of_one_agent_contradict_each_other_until_one_follows_or_goes(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme = web.site("acme")
    publish(acme, agent_entry(url="/planner.json", version="2.0.0"))
    acme.json("/planner.json", agent_card(version="2.0.0"))
    async with open_crawl(origin(acme)) as crawl:
        await crawl.run()
        assert await open_drifts(crawl) == [("drift.cards_contradict", urn(), "")]
        acme.json("/planner.json", agent_card("Another", version="2.0.0"))
        await crawl.run()
        codes = {code for code, *_ in await open_drifts(crawl)}
        assert codes == {"drift.stale_copy"}, "they are of one agent no longer; the entry keeps the former name"
        acme.json("/planner.json", agent_card(version="2.0.0"))
        await crawl.run()
        assert await open_drifts(crawl) == [("drift.cards_contradict", urn(), "")]
        acme.gone("/planner.json")
        await crawl.run()
        assert await open_drifts(crawl) == [
            ("drift.artifact_gone", urn(), "/url"),
            ("drift.cards_contradict", urn(), ""),
        ], "it may be back"
        acme.page("/planner.json", status=410)
        await crawl.run()
        assert await open_drifts(crawl) == [("drift.artifact_gone", urn(), "/url")]


async def test_an_origins_own_card_is_its_own_whoever_named_it_first(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme, list_ = web.site("acme"), web.site("list")
    acme.json(CARD, agent_card())
    list_.manifest(agent_entry(url=acme.url(CARD), publisher="list.example"))
    async with open_crawl(origin(list_), origin(acme)) as crawl:
        await crawl.run(list_)
        await crawl.run()
        assert (await crawl.documents(acme))[CARD].mechanism == "agent_card"
        list_.manifest(entry("echo", "list.example", type="text/plain"))
        await crawl.run()
        assert (await crawl.documents(acme))[CARD].watched


# --- changes of cards -------------------------------------------------------------------------------------------------


async def test_members_that_never_stand_still_open_nothing_and_make_no_history(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    publish(acme)
    async with open_crawl(origin(acme)) as crawl:
        for number in range(8):
            figures = {"description": f"Plans trips, {812 + number} so far", "generatedAt": f"2026-11-{number + 10}"}
            acme.json(CARD, agent_card(**figures))
            await crawl.run()
            clock.advance(hours=1)
        assert await versions_of(crawl) == []
        assert await feed(crawl, "artifact.changed", "drift.opened") == []
        assert [hit.identifier for hit in await crawl.search("819")] == [urn()], "search shows the present words"


async def test_a_stated_digest_is_compared_with_the_bytes_whatever_they_say(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    body = json.dumps(agent_card()).encode()
    acme.page(CARD, body, headers={"Content-Type": "application/json"})
    acme.manifest(agent_entry(digest="sha256:" + hashlib.sha256(body).hexdigest()))
    async with open_crawl(origin(acme)) as crawl:
        await crawl.run()
        assert await open_drifts(crawl) == []
        clock.advance(hours=5)
        acme.page(CARD, json.dumps(agent_card(), indent=1), headers={"Content-Type": "application/json"})
        await crawl.run()
        assert await open_drifts(crawl) == [("drift.digest_mismatch", urn(), "/digest")]
        (row,) = await all_drifts(crawl)
        assert row.live_new_at == clock.now(), "these bytes were first seen now"


async def test_a_catalog_that_is_not_due_is_looked_at_when_one_of_its_cards_has_moved(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.manifest(agent_entry(), headers={"Cache-Control": "max-age=86400"})
    acme.json(CARD, agent_card(), headers={"Cache-Control": "max-age=600"})
    async with open_crawl(origin(acme, surfaces=["ard", "a2a"])) as crawl:
        await crawl.run()
        web.clear_log()
        await pass_time(crawl, clock, hours=5)
        assert (len(acme.requests(ARD)), len(acme.requests(CARD)) > 1) == (0, True)
        acme.json(CARD, agent_card(version="2.0.0"), headers={"Cache-Control": "max-age=600"})
        await pass_time(crawl, clock, hours=5)
        assert [seen.status for seen in acme.requests(ARD)] == [304]
        (row,) = await all_drifts(crawl)
        assert (row.code, row.moved) == ("drift.version_mismatch", "live")
        assert row.copy_old_at >= row.live_new_at, "both sides were seen in one visit"


# --- crashes and cost -------------------------------------------------------------------------------------------------


async def test_what_a_killed_visit_read_is_compared_at_the_end_of_the_next(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    publish(acme, card=agent_card(version="1.1.0"))
    reached = asyncio.Event()

    async def hang(_: server.Request) -> server.StreamResponse:
        reached.set()
        await asyncio.Event().wait()
        raise AssertionError

    last = mcp.CARD_PATHS[-1]
    acme.handle(last, hang)
    async with open_crawl(origin(acme)) as crawl:
        (claim,) = await crawl.crew.claim(1)
        visit = asyncio.create_task(crawl.crew.visit(claim, force=True))
        await reached.wait()
        visit.cancel()
        with pytest.raises(asyncio.CancelledError):
            await visit
        assert await all_drifts(crawl) == []
        assert sorted(kind for kind, _ in await waiting(crawl)) == ["artifact"] * 5 + ["entry", "manifest"]
    acme.gone(last)
    clock.advance(hours=1)
    async with open_crawl(origin(acme)) as crawl:
        await crawl.run()
        assert {seen.status for seen in (acme.requests(ARD)[-1], acme.requests(CARD)[-1])} == {304}
        assert await open_drifts(crawl) == [("drift.version_mismatch", urn(), "/version")]
        assert await waiting(crawl) == []


@pytest.mark.timeout(300)
async def test_a_large_catalog_of_cards_on_one_origin(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock, capsys: pytest.CaptureFixture[str], exam: Exam
) -> None:
    count = 5000 if exam.long else 1000
    acme = web.site("acme")
    acme.manifest(*(agent_entry(f"a{number}", url=f"/c/{number}.json") for number in range(count)))
    for number in range(count):
        acme.json(f"/c/{number}.json", agent_card(f"Agent {number}"))
    async with crawl_sqlite(origin(acme), crawl={"max_artifacts": 10_000}, limits={"manifest_size": "20MiB"}) as crawl:
        for title, change in (("first", False), ("unchanged", False), ("all changed", True)):
            if change:
                for number in range(count):
                    acme.json(f"/c/{number}.json", agent_card(f"Agent {number}", version="1.1.0"))
            web.clear_log()
            began = time.monotonic()
            await crawl.run()
            seconds = time.monotonic() - began
            with capsys.disabled():
                print(f"\n{count} cards, {title}: {seconds:.1f} s, {len(web.seen)} requests")
            assert len([seen for seen in web.seen if seen.path.startswith("/c/")]) == count
            clock.advance(hours=2)
        assert len(await open_drifts(crawl)) == count
