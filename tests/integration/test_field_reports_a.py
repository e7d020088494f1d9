"""Field reports of kind A: finding the documents, whatever path, hint or catch-all stands in the way."""

import json
from typing import Any

import pytest
from aiohttp import web as server

from index.store.inspect import listing_row, sources_of
from index.store.snapshots import load_snapshot
from tests.conftest import OpenCrawl
from tests.fakes.clock import FakeClock
from tests.fakes.harness import Crawl
from tests.fakes.history import fetch_log, pass_time
from tests.fakes.web import FakeWeb, Site, entry

ARD = "/.well-known/ard.json"
PREDECESSOR = "/.well-known/ai-catalog.json"
ECHO = "urn:air:acme.example:tool:echo"
WEATHER = "urn:air:acme.example:tool:weather"
APP = '<!doctype html><title>App</title><div id="root"></div>'


async def source_of(crawl: Crawl, identifier: str = ECHO) -> tuple[str, str]:
    """Say where a listing comes from: the document's path and the mechanism that led to it."""
    row = await crawl.database.read(listing_row, identifier)
    assert row is not None
    return "/" + row.url.split("/", 3)[3], row.mechanism


async def states_of(crawl: Crawl, identifier: str = ECHO) -> list[tuple[str, str]]:
    """Give path and state of every source of an identifier, the listed one first."""
    rows = await crawl.database.read(sources_of, identifier)
    return [("/" + row.url.split("/", 3)[3], row.state) for row in rows]


async def problem_codes(crawl: Crawl, site: Site, path: str = ARD) -> list[str]:
    return [problem["code"] for problem in (await crawl.documents(site))[path].problems]


def paths(site: Site) -> list[str]:
    return [seen.path for seen in site.requests()]


# --- FR-01: the manifest on only one of two paths ---------------------------------------------------------------------


async def test_fr_01_a_manifest_on_the_predecessor_path_alone_is_found(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.json(PREDECESSOR, {"specVersion": "1.0", "entries": [entry("echo")]})
    async with open_crawl(acme) as crawl:
        summary = await crawl.run()
        assert summary.as_json()["entries"] == {"listed": 1, "rejected": 0, "unchanged": 0}
        assert await source_of(crawl) == (PREDECESSOR, "predecessor_path")
        assert (await crawl.documents(acme))[ARD].outcome == "absent"
        assert [seen.status for seen in acme.requests(ARD)] == [404]


async def test_fr_01_both_paths_are_merged_and_the_newer_one_wins(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo", description="new"))
    acme.json(PREDECESSOR, {"specVersion": "1.0", "entries": [entry("echo", description="old"), entry("weather")]})
    async with open_crawl(acme) as crawl:
        await crawl.run()
        assert await crawl.identifiers() == [ECHO, WEATHER]
        assert json.loads(await crawl.entry(ECHO) or "")["description"] == "new"
        assert await states_of(crawl, ECHO) == [(ARD, "listed"), (PREDECESSOR, "conflict")]
        assert await states_of(crawl, WEATHER) == [(PREDECESSOR, "listed")]
        told = [(change.kind, change.identifier) for change in await crawl.changes()]
        assert sorted(told) == [
            ("drift.opened", ECHO),
            ("drift.opened", WEATHER),
            ("entry.added", ECHO),
            ("entry.added", WEATHER),
        ]


async def test_fr_01_the_same_entry_on_both_paths_is_no_conflict(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    """Formatting and member order make no difference."""
    acme = web.site("acme")
    acme.manifest(entry("echo"))
    mirrored = dict(reversed(entry("echo").items()))
    acme.page(PREDECESSOR, json.dumps({"specVersion": "1.0", "entries": [mirrored]}, indent=4))
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        assert await states_of(crawl) == [(ARD, "listed"), (PREDECESSOR, "duplicate")]


async def test_fr_01_the_newer_path_takes_over_when_it_appears_and_gives_way_when_it_is_gone(
    web: FakeWeb, crawl_sqlite: OpenCrawl
) -> None:
    acme = web.site("acme")
    acme.json(PREDECESSOR, {"specVersion": "1.0", "entries": [entry("echo", description="old")]})
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        acme.manifest(entry("echo", description="new"))
        await crawl.run()
        assert await source_of(crawl) == (ARD, "well_known")
        acme.page(ARD, status=410)
        await crawl.run()
        assert await source_of(crawl) == (PREDECESSOR, "predecessor_path")
        kinds = [(change.kind, change.members) for change in await crawl.changes()]
        assert kinds == [
            ("entry.added", ()),
            ("entry.changed", ("/description",)),
            ("drift.opened", ("/description",)),
            ("drift.closed", ("/description",)),
            ("entry.changed", ("/description",)),
        ]


@pytest.mark.parametrize("status", [401, 403, 404, 410, 429, 500, 503])
async def test_fr_01_a_fault_on_one_path_does_not_hide_the_other(
    web: FakeWeb, crawl_sqlite: OpenCrawl, status: int
) -> None:
    sites = [web.site("acme"), web.site("globex")]
    for site, good, bad in zip(sites, (ARD, PREDECESSOR), (PREDECESSOR, ARD), strict=True):
        site.manifest(entry("echo", publisher=site.host), path=good)
        site.page(bad, b"no", status=status)
    async with crawl_sqlite(*sites) as crawl:
        await crawl.run()
        assert await crawl.identifiers() == [ECHO, "urn:air:globex.example:tool:echo"]


async def test_fr_01_an_origin_with_neither_is_not_published_and_no_failure(
    web: FakeWeb, crawl_sqlite: OpenCrawl
) -> None:
    acme = web.site("acme")
    async with crawl_sqlite(acme) as crawl:
        summary = await crawl.run()
        assert summary.as_json()["origins"] == {
            "visited": 1,
            "failed": 0,
            "crashed": 0,
            "busy": 0,
            "robotsUnreachable": 0,
            "postponed": 0,
        }
        documents = await crawl.documents(acme)
        assert [documents[path].outcome for path in (ARD, PREDECESSOR)] == ["absent", "absent"]


# --- FR-02: members at the root that the reader does not know ---------------------------------------------------------

ROOTS: list[dict[str, Any]] = [
    {"collections": [], "x-build": "7f3"},
    {"specVersion": "99.0", "host": {"displayName": "Acme"}, "version": 3},
    {"@context": ["https://agenticresourcediscovery.org/context/v1", {"x": "https://x.example/ns#"}]},
    {"$schema": "https://elsewhere.example/closed.schema.json", "generator": None, "links": {"self": "/"}},
    {"items": [1, 2], "Entries": "no", "entries ": {}, "": True},
]


@pytest.mark.parametrize("members", ROOTS, ids=lambda members: next(iter(members)))
async def test_fr_02_members_at_the_root_that_nobody_knows_are_ignored_and_kept(
    web: FakeWeb, crawl_sqlite: OpenCrawl, members: dict[str, Any]
) -> None:
    acme = web.site("acme")
    page = acme.json(ARD, {**members, "entries": [entry("echo")]})
    async with crawl_sqlite(acme) as crawl:
        summary = await crawl.run()
        assert summary.as_json()["entries"] == {"listed": 1, "rejected": 0, "unchanged": 0}
        assert await problem_codes(crawl, acme) == []
        document = (await crawl.documents(acme))[ARD]
        assert await crawl.database.read(load_snapshot, document.digest) == page.body
        assert document.parser_version, "a report can say by which rules the document was read"


async def test_fr_02_the_sample_of_the_report_is_read_without_fault(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    sample = {
        "collections": [],
        "x-build": "7f3",
        "entries": [
            {
                "identifier": "urn:air:acme.example:tool:echo",
                "displayName": "Echo",
                "type": "application/mcp-server-card+json",
                "url": "https://acme.example/echo.json",
            }
        ],
    }
    acme.json(ARD, sample)
    async with crawl_sqlite(acme) as crawl:
        summary = await crawl.run()
        assert summary.as_json()["entries"] == {"listed": 1, "rejected": 0, "unchanged": 0}
        assert json.loads(await crawl.entry(ECHO) or "") == sample["entries"][0]


@pytest.mark.parametrize(
    ("root", "outcome", "reason"),
    [
        ({}, "wrong_kind", "manifest.no_entries"),
        ({"items": [entry("echo")]}, "wrong_kind", "manifest.no_entries"),
        ([entry("echo")], "wrong_kind", "manifest.no_entries"),
        ({"entries": {"echo": entry("echo")}}, "malformed", "manifest.entries_type"),
        ({"entries": None}, "malformed", "manifest.entries_type"),
    ],
)
async def test_fr_02_what_is_required_is_the_entries_array_and_nothing_else(
    web: FakeWeb, crawl_sqlite: OpenCrawl, root: Any, outcome: str, reason: str
) -> None:
    acme = web.site("acme")
    acme.json(ARD, root)
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        document = (await crawl.documents(acme))[ARD]
        assert (document.outcome, document.reason) == (outcome, reason)
        assert reason in await problem_codes(crawl, acme)
        assert await crawl.identifiers() == []


# --- FR-03: a host that answers every path with success ---------------------------------------------------------------


async def any_page(_: server.Request) -> server.Response:
    return server.Response(text=APP, content_type="text/html")


async def any_json(_: server.Request) -> server.Response:
    return server.json_response({"ok": True})


async def any_text(_: server.Request) -> server.Response:
    return server.Response(text="Welcome!")


async def any_redirect(request: server.Request) -> server.Response:
    if request.path == "/":
        return await any_page(request)
    return server.Response(status=302, headers={"Location": "/"})


@pytest.mark.parametrize("anything", [any_page, any_json, any_text, any_redirect])
async def test_fr_03_a_host_that_answers_everything_has_published_nothing(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock, anything: Any
) -> None:
    acme = web.site("acme")
    acme.fallback = anything
    async with crawl_sqlite(acme) as crawl:
        summary = await crawl.run()
        documents = await crawl.documents(acme)
        assert {documents[path].outcome for path in (ARD, PREDECESSOR)} == {"catch_all"}
        assert summary.as_json()["entries"] == {"listed": 0, "rejected": 0, "unchanged": 0}
        assert summary.failed == 0
        assert await crawl.identifiers() == []
        control = [path for path in paths(acme) if path not in (ARD, PREDECESSOR, "/", "/robots.txt")]
        assert len(control) == 1, "one control request serves both documents"
        for _ in range(3):
            clock.advance(hours=7)
            await crawl.run()
        assert paths(acme).count(control[0]) == 1, "at most one control request a day"
        clock.advance(hours=4)
        await crawl.run()
        assert paths(acme).count(control[0]) == 2


async def test_fr_03_a_page_in_the_place_of_one_document_alone_is_no_catch_all(
    web: FakeWeb, crawl_sqlite: OpenCrawl
) -> None:
    acme = web.site("acme")
    acme.html(ARD, APP)
    acme.json(PREDECESSOR, {"ok": True})
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        documents = await crawl.documents(acme)
        assert (documents[ARD].outcome, documents[ARD].reason) == ("absent", "not_json")
        assert (documents[PREDECESSOR].outcome, documents[PREDECESSOR].reason) == ("wrong_kind", "manifest.no_entries")


async def test_fr_03_a_catch_all_host_can_publish_all_the_same(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    """A hit is a document of the right shape; whoever has one is not asked for a control."""
    acme = web.site("acme")
    acme.manifest(entry("echo"))
    acme.manifest(entry("echo"), path=PREDECESSOR)
    acme.fallback = any_page
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        assert await crawl.identifiers() == [ECHO]
        assert set(paths(acme)) == {"/robots.txt", ARD, PREDECESSOR, "/"}


async def test_fr_03_a_site_that_becomes_a_catch_all_loses_no_entries(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock
) -> None:
    """A parked or misconfigured host says nothing about what was published; the entries stay, and are stale."""
    acme = web.site("acme")
    acme.manifest(entry("echo"))
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        acme.gone(ARD)
        acme.fallback = any_page
        for _ in range(6):
            clock.advance(days=1)
            await crawl.run()
        assert await crawl.identifiers() == [ECHO]
        document = (await crawl.documents(acme))[ARD]
        assert document.outcome == "catch_all"
        assert document.failing_since is not None


async def test_fr_03_robots_rules_hold_for_the_control_request_too(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.fallback = any_page
    acme.robots(f"User-agent: *\nDisallow: /\nAllow: {ARD}\nAllow: /$\n")
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        assert set(paths(acme)) == {"/robots.txt", ARD, "/"}
        assert (await crawl.documents(acme))[ARD].outcome == "absent"


# --- FR-05, FR-07: old names and refusals -----------------------------------------------------------------------------


async def test_fr_05_the_same_bytes_under_both_names_are_one_entry_with_two_places(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme = web.site("acme")
    for path in (ARD, PREDECESSOR):
        acme.manifest(entry("echo"), path=path)
    async with open_crawl(acme) as crawl:
        summary = await crawl.run()
        assert summary.tally.snapshots == 1
        assert await crawl.identifiers() == [ECHO]
        assert await states_of(crawl) == [(ARD, "listed"), (PREDECESSOR, "duplicate")]
        acme.gone(ARD)
        await crawl.run()
        assert await crawl.identifiers() == [ECHO]
        assert [change.kind for change in await crawl.changes()] == ["entry.added"]


@pytest.mark.parametrize("status", [401, 403, 402, 405, 406, 451])
async def test_fr_07_a_refusal_is_its_own_state_and_is_asked_about_slowly_without_credentials(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock, status: int
) -> None:
    acme = web.site("acme")
    for path in (ARD, PREDECESSOR):
        acme.page(path, b"no", status=status, headers={"WWW-Authenticate": 'Bearer realm="acme", Basic realm="acme"'})
    async with crawl_sqlite(acme) as crawl:
        summary = await crawl.run()
        document = (await crawl.documents(acme))[ARD]
        assert (document.outcome, document.reason) == ("withheld", f"http_{status}")
        assert summary.failed == 0, "whoever answers is reachable"
        await pass_time(crawl, clock, days=14)
        assert 3 <= len(acme.requests(ARD)) <= 6, "about daily at first, then less and less"
    assert {seen.headers.get("Authorization") for seen in web.seen} == {None}


async def test_fr_07_a_refusal_keeps_what_was_listed_before(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"))
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        acme.page(ARD, status=401)
        for _ in range(5):
            clock.advance(days=2)
            await crawl.run()
        assert await crawl.identifiers() == [ECHO]
        assert (await crawl.documents(acme))[ARD].failing_since is not None
        acme.manifest(entry("echo"), entry("weather"))
        await crawl.run()
        assert await crawl.identifiers() == [ECHO, WEATHER]
        assert (await crawl.documents(acme))[ARD].failing_since is None


async def test_fr_07_a_document_below_the_root_is_read_when_an_entry_names_it_and_never_guessed(
    web: FakeWeb, crawl_sqlite: OpenCrawl
) -> None:
    """Well-known names stand at the root (RFC 8615 3); a tenant's catalog is read because the manifest points to it."""
    acme = web.site("acme")
    acme.page(PREDECESSOR, status=401, headers={"WWW-Authenticate": "Bearer"})
    acme.manifest(entry("tenant", type="application/ai-catalog+json", url=acme.url("/t/42/catalog.json")))
    acme.manifest(entry("echo"), path="/t/42/catalog.json")
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        assert await crawl.identifiers() == [ECHO]
        assert (await crawl.documents(acme))[PREDECESSOR].outcome == "withheld"
        assert set(paths(acme)) == {"/robots.txt", ARD, PREDECESSOR, "/", "/t/42/catalog.json"}
    assert {seen.headers.get("Authorization") for seen in web.seen} == {None}


# --- FR-09: a robots.txt that differs from visit to visit -------------------------------------------------------------


async def test_fr_09_a_hint_that_is_withdrawn_is_no_evidence_that_the_catalog_is_gone(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    origin = web.site("acme")
    origin.manifest(entry("echo"), path="/x/entries.json")
    origin.robots(f"User-agent: *\nAllow: /\nAgentmap: {origin.url('/x/entries.json')}")
    async with open_crawl(origin) as crawl:
        await crawl.run()
        assert await source_of(crawl) == ("/x/entries.json", "agentmap")
        origin.robots("User-agent: *\nAllow: /\n")
        for _ in range(4):
            clock.advance(days=2)
            await crawl.run()
        assert await crawl.identifiers() == [ECHO]
        assert len(origin.requests("/x/entries.json")) == 5, "the known address is asked as before"
        assert [lead.withdrawn_at is None for lead in await crawl.leads(origin)] == [False]
        assert [change.kind for change in await crawl.changes()] == ["entry.added"]


async def test_fr_09_the_catalog_goes_when_its_own_address_says_so(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock
) -> None:
    origin = web.site("acme")
    origin.manifest(entry("echo"), path="/x/entries.json")
    origin.robots("Agentmap: /x/entries.json")
    async with crawl_sqlite(origin) as crawl:
        await crawl.run()
        origin.robots("")
        clock.advance(days=2)
        await crawl.run()
        origin.page("/x/entries.json", status=410)
        clock.advance(days=2)
        await crawl.run()
        assert await crawl.identifiers() == []
        assert [(change.kind, change.reason) for change in await crawl.changes(1)] == [("entry.removed", "http_410")]


async def test_fr_09_one_honest_name_is_used_for_everything(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    origin = web.site("acme")
    origin.manifest(entry("nested", type="application/ai-catalog+json", url="/n.json"))
    origin.manifest(entry("echo"), path="/n.json")
    origin.html("/", APP)
    async with crawl_sqlite(origin) as crawl:
        for _ in range(3):
            await crawl.run()
    agents = {seen.headers.get("User-Agent") for seen in web.seen}
    assert agents == {"ardvark/0.1.0 (+https://registry.example/crawler)"}


# --- FR-10: Agentmap lines anywhere, in any case ----------------------------------------------------------------------


def hinted(site: Site, *names: str) -> None:
    for name in names:
        site.manifest(entry(name), path=f"/{name}.json")


async def agentmaps(crawl: Crawl, site: Site) -> set[str]:
    found = await crawl.leads(site)
    assert {lead.mechanism for lead in found} <= {"agentmap"}
    return {lead.url.removeprefix(site.origin) for lead in found}


async def test_fr_10_hint_lines_are_read_wherever_they_stand_and_the_groups_stay_whole(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme = web.site("acme")
    hinted(acme, "a", "b")
    acme.manifest(entry("secret"), path="/private/c.json")
    acme.html("/", f'<link rel="ard" href="/private/c.json"><title>{APP}</title>')
    acme.robots(
        f"Agentmap: {acme.url('/a.json')}   # main\n"
        "agentmap: /b.json\n"
        "User-agent: *\n"
        "Disallow: /private/\n"
        f"AGENTMAP:{acme.url('/a.json')}\n"
    )
    async with open_crawl(acme) as crawl:
        await crawl.run()
        found = [lead.url.removeprefix(acme.origin) for lead in await crawl.leads(acme) if lead.mechanism == "agentmap"]
        assert sorted(found) == ["/a.json", "/b.json"]
        assert await crawl.identifiers() == ["urn:air:acme.example:tool:a", "urn:air:acme.example:tool:b"]
        private = (await crawl.documents(acme))["/private/c.json"]
        assert (private.outcome, private.reason) == ("disallowed", "robots")
        assert acme.requests("/private/c.json") == []


ROBOTS = {
    "before a byte-order mark is taken off": b"\xef\xbb\xbfAgentmap: /a.json\nUser-agent: *\nDisallow: /private/\n",
    "between agent and rule": b"User-agent: *\nAgentmap: /a.json\nDisallow: /private/\n",
    "between two agents": b"User-agent: somebody\nAgentmap: /a.json\nUser-agent: ardvark\nDisallow: /private/\n",
    "between two rules": b"User-agent: ardvark\nAllow: /a.json\nAgentmap: /a.json\nDisallow: /private/\n",
    "in another group": b"User-agent: x\nAgentmap: /a.json\nDisallow: /\n\nUser-agent: *\nDisallow: /private/\n",
    "with carriage returns": b"User-agent: *\r\nDisallow: /private/\r\nAgentMap:/a.json\r\n",
    "with old line ends": b"User-agent: *\rDisallow: /private/\rAgentmap: /a.json\r",
    "with spaces": b"  agentMAP  :   /a.json \t # comment\nUser-agent: *\nDisallow: /private/",
    "without a final line end": b"User-agent: *\nDisallow: /private/\nAgentmap: /a.json",
    "beside bytes that are no text": b"\xff\xfe\x00rubbish\nUser-agent: *\nDisallow: /private/\nAgentmap: /a.json\n",
    "beside hints of no use": (
        b"Agentmap\nAgentmap:\nAgentmap: #x\nAgentmap: http://\nAgentmap: ftp://acme.example/x\nAgent-map: /b.json\n"
        b"# Agentmap: /b.json\nUser-agent: *\nDisallow: /private/\nAgentmap: /a.json\n"
    ),
}


@pytest.mark.parametrize("place", ROBOTS)
async def test_fr_10_a_hint_line_counts_and_disturbs_no_group(
    web: FakeWeb, crawl_sqlite: OpenCrawl, place: str
) -> None:
    acme = web.site("acme")
    hinted(acme, "a", "b")
    acme.robots(ROBOTS[place])
    acme.manifest(entry("nested", type="application/ai-catalog+json", url="/private/c.json"))
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        assert await crawl.identifiers() == ["urn:air:acme.example:tool:a"]
        assert (await crawl.documents(acme))["/private/c.json"].outcome == "disallowed"
        assert "/private/c.json" not in paths(acme)


async def test_fr_10_repeated_hints_are_one_and_their_number_is_bounded(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    same = ["/a.json", acme.url("/a.json"), f"HTTP://ACME.example:{web.port}/a.json", "/x/../a.json", "/a.json#part"]
    many = [f"/many/{number}.json" for number in range(100)]
    acme.robots("".join(f"Agentmap: {target}\n" for target in (*same, *many)))
    hinted(acme, "a")
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        found = await agentmaps(crawl, acme)
        assert "/a.json" in found
        assert len(found) == 20
        assert paths(acme).count("/a.json") == 1


async def test_fr_10_a_hint_to_another_host_is_followed_only_when_that_is_listed(
    web: FakeWeb, crawl_sqlite: OpenCrawl
) -> None:
    acme, partner, stranger = web.site("acme"), web.site("partner"), web.site("stranger")
    acme.robots(f"Agentmap: {partner.url('/acme.json')}\nAgentmap: {stranger.url('/acme.json')}\n")
    for site in (partner, stranger):
        site.manifest(entry("echo"), path="/acme.json")
    async with crawl_sqlite(acme, partner) as crawl:
        await crawl.run(acme)
        assert await crawl.identifiers() == [ECHO]
        assert await source_of(crawl) == ("/acme.json", "agentmap")
        decisions = {lead.url: lead.decision for lead in await crawl.leads(acme)}
        assert decisions == {partner.url("/acme.json"): "followed", stranger.url("/acme.json"): "port"}
    assert stranger.requests() == []


# --- FR-11: one Link field with many values ---------------------------------------------------------------------------

LINKS = {
    "the sample of the report": (
        '</api>; rel="api-catalog"; title="a, b", </cat/ai.json>; type="application/json"; rel="nofollow ai-catalog"',
        {"/cat/ai.json": "predecessor_link"},
    ),
    "a relation without quotes": ("</a.json>;rel=ard", {"/a.json": "link_header"}),
    "a relation in capitals": ('</a.json>; REL="ARD"', {"/a.json": "link_header"}),
    "among other relations": ('</a.json>; rel="alternate ard describedby"', {"/a.json": "link_header"}),
    "both relations at once": ('</a.json>; rel="ai-catalog ard"', {"/a.json": "link_header"}),
    "several in one field": (
        '</a.json>; rel="ard", </b.json>; rel="ard"',
        {"/a.json": "link_header", "/b.json": "link_header"},
    ),
    "quotes inside quotes": (
        r'</x>; title="say \"hi\", <b>; rel=ard"; rel="next", </a.json>; rel="ard"',
        {"/a.json": "link_header"},
    ),
    "a comma in the address": ("</a,b.json>; rel=ard", {"/a,b.json": "link_header"}),
    "a semicolon in the address": ("</a;b.json>; rel=ard", {"/a;b.json": "link_header"}),
    "spaces everywhere": (' < /a.json > ;  rel = "ard" , ', {"/a.json": "link_header"}),
    "a relative address": ("<a.json>; rel=ard", {"/a.json": "link_header"}),
    "an anchor that is this page": ('</a.json>; anchor="/"; rel="ard"', {"/a.json": "link_header"}),
    "an anchor elsewhere": ('<https://third.example/x>; anchor="https://fourth.example/"; rel="ard"', {}),
    "an anchor elsewhere on the site": ('</a.json>; anchor="/other"; rel="ard"', {}),
    "only the first rel counts": ('</a.json>; rel="next"; rel="ard"', {}),
    "a relation that only begins so": ('</a.json>; rel="ardent ard-x ardvark"', {}),
    "the reverse": ('</a.json>; rev="ard"', {}),
    "no relation": ("</a.json>", {}),
    "no address": ("<>; rel=ard", {}),
    "no brackets": ("/a.json; rel=ard", {}),
    "rubbish before it": ('garbage, "more, garbage", </a.json>; rel="ard"', {"/a.json": "link_header"}),
    "a quote that never ends": ('</a.json>; rel="ard", </b.json>; title="oops; rel="ard"', {"/a.json": "link_header"}),
}


@pytest.mark.parametrize("name", LINKS)
async def test_fr_11_a_link_field_is_read_as_its_grammar_says(web: FakeWeb, crawl_sqlite: OpenCrawl, name: str) -> None:
    field, expected = LINKS[name]
    acme = web.site("acme")
    acme.html("/", APP, headers={"Link": field})
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        leads = {lead.url.removeprefix(acme.origin): lead.mechanism for lead in await crawl.leads(acme)}
        assert leads == expected
        assert set(paths(acme)) - {"/robots.txt", "/", ARD, PREDECESSOR} == set(expected)


async def test_fr_11_entries_are_found_through_a_link_whatever_type_it_hints_at(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    async def home(_: server.Request) -> server.Response:
        response = server.Response(text=APP, content_type="text/html")
        response.headers.add("Link", '</api>; rel="api-catalog"; title="a, b", </style.css>; rel=preload; as=style')
        response.headers.add("Link", '</cat/ai.json>; type="application/json"; rel="nofollow ai-catalog"')
        response.headers.add("Link", '</cat/ard.json>; type="text/html;q=1"; rel="ard"; hreflang=en')
        response.headers.add("Link", '<https://third.example/x>; anchor="https://fourth.example/"; rel="ard"')
        return response

    acme = web.site("acme")
    acme.handle("/", home)
    acme.manifest(entry("echo", description="by ard"), path="/cat/ard.json")
    acme.manifest(entry("echo", description="by ai-catalog"), entry("weather"), path="/cat/ai.json")
    async with open_crawl(acme) as crawl:
        await crawl.run()
        assert await crawl.identifiers() == [ECHO, WEATHER]
        assert await source_of(crawl, ECHO) == ("/cat/ard.json", "link_header")
        assert await source_of(crawl, WEATHER) == ("/cat/ai.json", "predecessor_link")


async def test_fr_11_a_link_counts_on_any_document_and_again_with_its_304(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock
) -> None:
    """Also on a page that is no HTML, against the address that answered."""
    acme = web.site("acme")
    acme.redirect("/", "/start/")
    acme.json("/start/", {"hello": "world"}, headers={"Link": "<../cat/ard.json>; rel=ard"})
    acme.manifest(entry("echo"), path="/cat/ard.json")
    async with crawl_sqlite(acme) as crawl:
        for _ in range(4):
            await crawl.run()
            clock.advance(days=2)
        assert acme.requests("/start/")[-1].status == 304
        assert await crawl.identifiers() == [ECHO]
        assert [(lead.url, lead.withdrawn_at) for lead in await crawl.leads(acme)] == [
            (acme.url("/cat/ard.json"), None)
        ]


# --- FR-12: relative links and base elements --------------------------------------------------------------------------


async def test_fr_12_a_relative_link_resolves_against_the_base_and_that_against_the_final_address(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme = web.site("acme")
    acme.redirect("/", "/site/", 301)
    acme.html("/site/", '<head><base href="../static/"><link rel="ard" href="ard-v2.json"></head>')
    acme.manifest(entry("echo"), path="/static/ard-v2.json")
    async with open_crawl(acme) as crawl:
        await crawl.run()
        assert await source_of(crawl) == ("/static/ard-v2.json", "html_link")
        assert set(paths(acme)) == {"/robots.txt", ARD, PREDECESSOR, "/", "/site/", "/static/ard-v2.json"}


PAGES = {
    "no base": ('<link rel="ard" href="a.json">', "/site/a.json"),
    "an absolute address": ('<base href="/static/"><link rel="ard" href="{origin}/a.json">', "/a.json"),
    "an absolute path": ('<base href="/static/x"><link rel="ard" href="/a.json">', "/a.json"),
    "the base after the link": ('<link rel="ard" href="a.json"><base href="/late/">', "/late/a.json"),
    "two bases": ('<base href="/one/"><base href="/two/"><link rel="ard" href="a.json">', "/one/a.json"),
    "a base without address": ('<base target="_top"><base href="/two/"><link rel=ard href=a.json>', "/two/a.json"),
    "a base without final slash": ('<base href="/static/x"><link rel="ard" href="a.json">', "/static/a.json"),
    "a base of script": ('<base href="javascript:alert(1)"><link rel="ard" href="a.json">', "/site/a.json"),
    "a base of data": ('<base href="data:text/html,x"><link rel="ard" href="a.json">', "/site/a.json"),
    "a base that is a query": ('<base href="?x=1"><link rel="ard" href="a.json">', "/site/a.json"),
    "spaces around the address": ('<base href=" /s/ "><link rel="ard" href=" a.json\n">', "/s/a.json"),
    "names in capitals": ('<BASE HREF="/s/"><LINK REL="alternate ARD" HREF="a.json">', "/s/a.json"),
    "entities": ('<link rel="ard" href="a.json?x=1&amp;y=2">', "/site/a.json?x=1&y=2"),
    "in a comment": ('<!-- <link rel="ard" href="a.json"> -->', None),
    "in a template": ('<template><link rel="ard" href="a.json"></template>', None),
    "in noscript": ('<noscript><link rel="ard" href="a.json"></noscript>', None),
    "in script text": ('<script>"<link rel=ard href=a.json>"</script>', None),
    "in the body": ('</head><body><p>hello</p><link rel="ard" href="a.json">', None),
    "no address": ('<link rel="ard"><link rel="ard" href=""><link rel="ard" href="  ">', None),
    "another relation": ('<link rel="ardvark" href="a.json"><link rel="icon" href="a.json">', None),
}


@pytest.mark.parametrize("name", PAGES)
async def test_fr_12_links_of_a_page_resolve_as_a_browser_would(
    web: FakeWeb, crawl_sqlite: OpenCrawl, name: str
) -> None:
    head, expected = PAGES[name]
    acme = web.site("acme")
    acme.redirect("/", "/site/")
    acme.html("/site/", f"<!doctype html><html><head><title>Acme</title>{head.replace('{origin}', acme.origin)}")
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        further = set(paths(acme)) - {"/robots.txt", ARD, PREDECESSOR, "/", "/site/"}
        assert further == (set() if expected is None else {expected})


async def test_fr_12_a_link_past_the_bound_of_the_head_is_not_looked_for(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.html("/", f'<head><style>{"x" * 600_000}</style><link rel="ard" href="/late.json"></head>')
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        assert "/late.json" not in paths(acme)
        assert (await crawl.documents(acme))["/"].outcome == "fetched"
        assert (await fetch_log(crawl, acme.url("/")))[0].outcome == "fetched"
