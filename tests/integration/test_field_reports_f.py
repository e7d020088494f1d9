"""Field reports of kind F: identifiers, media types and shapes, from the publisher's document to our answer."""

import json
from typing import Any
from urllib.parse import quote

import pytest
from aiohttp import web as server

from index.store.inspect import sources_of
from tests.conftest import OpenCrawl
from tests.fakes.clock import FakeClock
from tests.fakes.harness import Crawl
from tests.fakes.history import pass_time
from tests.fakes.registry import Registry, serving
from tests.fakes.web import FakeWeb, Site, entry

ARD = "/.well-known/ard.json"
PREDECESSOR = "/.well-known/ai-catalog.json"
CATALOG = "application/ai-catalog+json"
MCP = "application/mcp-server-card+json"
ECHO = "urn:air:acme.example:tool:echo"


def urn(name: str) -> str:
    return f"urn:air:acme.example:tool:{name}"


def agents(identifier: str) -> str:
    return "/api/v1/agents/" + quote(identifier, safe="")


async def retrieved(registry: Registry, identifier: str) -> Any:
    answer = await registry.get(agents(identifier))
    assert answer.status == 200, answer.body
    return answer.json


async def codes(crawl: Crawl, identifier: str) -> list[str]:
    """The problems of a listed entry."""
    return [problem["code"] for row in await crawl.database.read(sources_of, identifier) for problem in row.problems]


async def refused(crawl: Crawl, site: Site) -> list[tuple[str, list[str]]]:
    """The entries of a site that are kept out, by place, with what is wrong."""
    return [
        (row.pointer, [problem["code"] for problem in row.problems if problem["severity"] == "error"])
        for row in await crawl.not_listed(site)
    ]


# --- FR-80: two prefixes ----------------------------------------------------------------------------------------------


async def test_fr_80_both_prefixes_name_one_entry_and_only_the_current_one_is_served(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme, peer = web.site("acme"), web.site("peer")
    acme.manifest(entry("echo", identifier="urn:ai:acme.example:tool:echo", representativeQueries=["a b", "c d"]))
    peer.manifest(entry("echo", description="a copy"))
    async with serving(open_crawl, acme, peer) as registry:
        crawl = registry.crawl
        assert await crawl.identifiers() == [ECHO]
        sources = await crawl.database.read(sources_of, ECHO)
        assert [(row.url, row.state, row.identifier) for row in sources] == [
            (acme.url(ARD), "listed", "urn:ai:acme.example:tool:echo"),
            (peer.url(ARD), "conflict", ECHO),
        ]
        assert json.loads(sources[0].raw)["identifier"] == "urn:ai:acme.example:tool:echo", "kept as published"
        assert await codes(crawl, ECHO) == ["identifier.old_prefix"]

        shown = await retrieved(registry, ECHO)
        assert shown["identifier"] == ECHO
        assert "identifier" in shown["ardvark:adapted"]
        assert await registry.found("echo") == [ECHO]
        assert (await registry.listing())["total"] == 1
        assert await registry.counts("type") == {MCP: 1}
        answer = await registry.get(agents("urn:ai:acme.example:tool:echo"))
        assert answer.error() == (400, "INVALID_ARGUMENT"), "the older form is no identifier of ARD"


async def test_fr_80_both_prefixes_in_one_document_are_the_same_identifier_twice(
    web: FakeWeb, crawl_sqlite: OpenCrawl
) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"), entry("echo", identifier="urn:ai:acme.example:tool:echo", displayName="Old"))
    async with crawl_sqlite(acme) as crawl:
        summary = await crawl.run()
        assert summary.as_json()["entries"] == {"listed": 1, "rejected": 1, "unchanged": 0}
        assert await refused(crawl, acme) == [("/entries/1", ["entry.duplicate"])]


async def test_fr_80_a_publisher_that_moves_to_the_new_prefix_changes_one_entry(
    web: FakeWeb, crawl_sqlite: OpenCrawl
) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo", identifier="urn:ai:acme.example:tool:echo"))
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        acme.manifest(entry("echo"))
        await crawl.run()
        assert [change.kind for change in await crawl.changes()] == ["entry.added", "entry.changed"]
        assert await crawl.identifiers() == [ECHO]


# --- FR-81: many spellings of one media type --------------------------------------------------------------------------

SPELLINGS = {
    MCP: [
        "application/mcp-server+json",
        "application/mcp-server-card+json",
        "Application/MCP-Server-Card+JSON; charset=utf-8",
        " application/mcp-server-card+json ",
        "application/mcp-server",
    ],
    "application/ai-registry+json": ["application/ai-registry", "application/ai-registry+json"],
    "application/ai-skill+md": [
        "application/ai-skill",
        "application/agent-skills+md",
        'text/markdown; profile="urn:air:agent-skills"',
        "text/markdown;profile=urn:air:agent-skills",
    ],
    "application/agent-skills+zip": ["application/agentskill+zip"],
    "application/vnd.acme.card+json;v=2": ["application/vnd.acme.card+json; V=2", "application/vnd.ACME.card+json;v=2"],
}


async def test_fr_81_one_kind_is_found_under_any_of_its_spellings_and_served_as_published(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme = web.site("acme")
    published = {
        f"k{kind}-{number}": spelling
        for kind, spellings in enumerate(SPELLINGS.values())
        for number, spelling in enumerate(spellings)
    }
    acme.manifest(*(entry(name, type=spelling, displayName="Kind") for name, spelling in published.items()))
    async with serving(open_crawl, acme) as registry:
        counts = {kind: len(spellings) for kind, spellings in SPELLINGS.items()}
        assert await registry.counts("type") == counts
        assert await registry.counts("type", text="kind") == counts
        for kind, (canonical, spellings) in enumerate(SPELLINGS.items()):
            wanted = {urn(name) for name in published if name.startswith(f"k{kind}-")}
            for spelling in (canonical, *spellings):
                assert set(await registry.found("kind", filter={"type": [spelling]})) == wanted, spelling
        for name, spelling in published.items():
            assert (await retrieved(registry, urn(name)))["type"] == spelling
        assert await codes(registry.crawl, urn("k0-0")) == ["type.spelling"], "the operator is told"
        assert await codes(registry.crawl, urn("k0-1")) == []


@pytest.mark.parametrize("type_", ["MCP", "json", "application", "application/json", "text/plain", "a/b/c", "*/*"])
async def test_fr_81_any_other_type_is_listed_as_it_is(web: FakeWeb, crawl_sqlite: OpenCrawl, type_: str) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo", type=type_))
    async with serving(crawl_sqlite, acme) as registry:
        assert await registry.found("echo", filter={"type": [type_]}) == [ECHO]


# --- FR-83, FR-84: identifiers and whose they are ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("identifier", "valid"),
    [
        ("urn:air:acme.example:forecast", True),
        ("urn:air:acme.example:a:b:c:forecast", True),
        ("urn:air:acme.example:a-b_c.d:1", True),
        ("urn:air:acme.example", False),
        ("urn:air:acme.example:", False),
        ("urn:air::x:y", False),
        ("urn:air:acme.example::y", False),
        ("urn:air:acme.example:x:", False),
        ("urn:air:acme.example:x y", False),
        ("urn:air:acme.example:x\n", False),
        ("urn:air:acme.example:é", False),
        ("urn:air:acme_example:x", False),
        ("URN:AIR:acme.example:x", False),
        ("urn:uuid:6f1c", False),
        ("https://acme.example/agent", False),
        ("", False),
    ],
)
async def test_fr_83_an_identifier_has_a_publisher_and_one_or_more_further_parts(
    web: FakeWeb, crawl_sqlite: OpenCrawl, identifier: str, valid: bool
) -> None:
    acme = web.site("acme")
    acme.manifest(entry("good"), entry("tried", identifier=identifier))
    async with serving(crawl_sqlite, acme) as registry:
        expected = sorted([urn("good"), identifier] if valid else [urn("good")])
        assert await registry.crawl.identifiers() == expected
        if valid:
            assert (await retrieved(registry, identifier))["identifier"] == identifier
        else:
            ((pointer, (code,)),) = await refused(registry.crawl, acme)
            assert pointer == "/entries/1"
            assert code.startswith("identifier.")


IDENTITIES: list[tuple[str, str, str]] = [
    # publisher, identity, what becomes of the entry by default
    ("corp.example", "spiffe://run.corp.example/x", "listed"),
    ("corp.example", "spiffe://corp.example/x", "listed"),
    ("corp.example", "did:web:corp.example", "listed"),
    ("corp.example", "did:web:api.corp.example%3A8443:agents", "listed"),
    ("corp.example", "https://CORP.example/about", "listed"),
    ("corp.example", "corp.example.", "listed"),
    ("corp.example", "did:key:z6Mk", "listed"),
    ("corp.example", "urn:air:corp.example:tool:echo", "listed"),
    ("github.io", "https://someone.github.io", "trust.misaligned"),
    ("someone.github.io", "https://github.io", "trust.misaligned"),
    ("corp.example", "https://corp.example.evil.example", "trust.misaligned"),
    ("corp.example", "https://notcorp.example", "trust.misaligned"),
    ("corp.example", "https://corp.example@evil.example/", "trust.misaligned"),
    ("corp.example", "spiffe://evil.example/corp.example", "trust.misaligned"),
]


@pytest.mark.parametrize(("publisher", "identity", "fate"), IDENTITIES)
async def test_fr_84_the_identity_belongs_to_the_publisher_or_a_name_below_it(
    web: FakeWeb, crawl_sqlite: OpenCrawl, publisher: str, identity: str, fate: str
) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo", publisher, trustManifest={"identity": identity}))
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        if fate == "listed":
            assert await crawl.identifiers() == [f"urn:air:{publisher}:tool:echo"]
        else:
            assert await refused(crawl, acme) == [("/entries/0", [fate])]


@pytest.mark.parametrize(
    ("policy", "listed"),
    [("subdomain", {"equal", "below"}), ("exact", {"equal"}), ("off", {"equal", "below", "other"})],
)
async def test_fr_84_the_operator_chooses_how_strict_that_is(
    web: FakeWeb, crawl_sqlite: OpenCrawl, policy: str, listed: set[str]
) -> None:
    acme = web.site("acme")
    identities = {"equal": "https://acme.example", "below": "https://run.acme.example", "other": "https://o.example"}
    acme.manifest(*(entry(name, trustManifest={"identity": text}) for name, text in identities.items()))
    async with crawl_sqlite(acme, trust={"alignment": policy}) as crawl:
        await crawl.run()
        assert await crawl.identifiers() == sorted(map(urn, listed))


async def test_fr_84_a_strangers_claim_gives_way_to_the_publishers_own_word(
    web: FakeWeb, crawl_sqlite: OpenCrawl
) -> None:
    bank, other = web.site("bank"), web.site("other")
    claim = "urn:air:bank.example:tool:pay"
    other.manifest(entry("pay", "bank.example", displayName="Claimed"))
    async with serving(crawl_sqlite, bank, other) as registry:
        (source,) = await registry.crawl.database.read(sources_of, claim)
        assert (source.url, source.derived["trust"]) == (other.url(ARD), "absent"), "kept, and nobody vouches for it"
        bank.manifest(entry("pay", "bank.example", displayName="Own"))
        await registry.crawl.run()
        assert (await retrieved(registry, claim))["displayName"] == "Own"
        bank.manifest()
        await registry.crawl.run()
        bank.manifest(entry("pay", "bank.example", displayName="Own"))
        await registry.crawl.run()
        assert (await retrieved(registry, claim))["displayName"] == "Own"


async def test_fr_84_whoever_finds_an_entry_sees_that_its_publisher_did_not_publish_it(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    other, bank = web.site("other"), web.site("bank")
    signed = {"identity": "https://bank.example/agents"}
    other.manifest(
        entry("pay", "bank.example"),
        entry("save", "bank.example", trustManifest=signed),
        entry("own", "other.example"),
        entry("below", "pay.other.example"),
    )
    bank.manifest(entry("lend", "bank.example"))
    claims = {"pay": "unproven", "save": "asserted", "own": None, "below": None, "lend": None}
    async with serving(open_crawl, other, bank) as registry:
        found = {item["identifier"].rpartition(":")[2]: item for item in await registry.pages("tool", 100)}
        assert {name: item.get("ardvark:publisherClaim") for name, item in found.items()} == claims
        for name, claim in claims.items():
            path = f"/api/v1/agents/{found[name]['identifier']}"
            assert (await registry.get(path)).headers.get("ardvark-publisher-claim") == claim
            assert (await registry.get(f"{path}/provenance")).json["provenance"]["publisherClaim"] == claim


# --- FR-86, FR-90: one address, however it is written; catalogs in catalogs ------------------------------------------


async def test_fr_86_an_address_is_one_document_however_it_is_written(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    spellings = [
        "/more.json",
        acme.url("/more.json"),
        f"HTTP://Acme.EXAMPLE:{web.port}/more.json",
        f"http://acme.example.:{web.port}/more.json",
        acme.url("/x/../more.json#fragment"),
        acme.url("/./more.json"),
        " " + acme.url("/more.json") + "\n",
        acme.url("/%6dore.json"),
    ]
    other = [acme.url("/More.json"), acme.url("/more.json/"), acme.url("/more.json?")]
    acme.manifest(*(entry(f"n{n}", type=CATALOG, url=url) for n, url in enumerate([*spellings, *other])))
    acme.manifest(entry("inner"), path="/more.json")
    async with open_crawl(acme) as crawl:
        await crawl.run()
        assert len(acme.requests("/more.json")) == 1
        nested = {path for path, row in (await crawl.documents(acme)).items() if row.mechanism == "nested"}
        assert nested >= {"/more.json", "/More.json", "/more.json/"}
        assert "/%6dore.json" not in nested
        assert await crawl.identifiers() == [urn("inner")]


async def test_fr_86_an_allowlist_entry_covers_every_spelling_of_its_origin(
    web: FakeWeb, crawl_sqlite: OpenCrawl
) -> None:
    acme, hub = web.site("acme"), web.site("hub")
    names = [acme.origin, f"HTTP://ACME.example:{web.port}", f"http://acme.example.:{web.port}"]
    hub.manifest(*(entry(f"n{n}", type=CATALOG, url=f"{name}/a{n}.json") for n, name in enumerate(names)))
    for number in range(len(names)):
        acme.manifest(entry(f"e{number}"), path=f"/a{number}.json")
    async with crawl_sqlite(f"HTTP://Acme.Example:{web.port}/", hub) as crawl:
        await crawl.run()
        assert await crawl.identifiers() == [urn("e0"), urn("e1"), urn("e2")]


async def test_fr_86_the_published_address_is_served_unchanged(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    texts = ["HTTPS://Origin.Example:443/a2a/", "https://origin.example/a2a/", "https://origin.example/A2A/"]
    acme.manifest(*(entry(f"e{n}", url=text) for n, text in enumerate(texts)))
    async with serving(crawl_sqlite, acme) as registry:
        assert [(await retrieved(registry, urn(f"e{n}")))["url"] for n in range(3)] == texts


async def test_fr_90_catalogs_that_loop_are_read_once_and_the_loop_is_noted(
    web: FakeWeb, crawl_sqlite: OpenCrawl
) -> None:
    acme = web.site("acme")
    acme.manifest(entry("down", type=CATALOG, url="/b.json"))
    acme.manifest(
        entry("up", type=CATALOG, url=ARD), entry("self", type=CATALOG, url="b.json"), entry("e1"), path="/b.json"
    )
    async with crawl_sqlite(acme) as crawl:
        for _ in range(2):
            await crawl.run()
        assert await crawl.identifiers() == [urn("e1")]
        assert [len(acme.requests(path)) for path in (ARD, "/b.json")] == [2, 2]
        noted = {row.identifier: {problem["code"] for problem in row.problems} for row in await crawl.not_listed(acme)}
        assert "nesting.cycle" in noted[urn("up")] & noted[urn("self")]
        assert "nesting.cycle" not in noted[urn("down")]


def inline(levels: int) -> dict[str, Any]:
    """Catalogs within catalogs: each level has one entry of its own and the next level."""
    name = f"level-{7 - levels}"
    entries = [entry(name)]
    if levels > 1:
        entries.append(
            entry(f"box-{7 - levels}", type=CATALOG, url=None, data={"entries": [*inline(levels - 1)["entries"]]})
        )
    return {"entries": entries}


async def test_fr_90_four_levels_are_read_inline_or_by_address_and_what_stands_before_the_stop_is_kept(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme, beta = web.site("acme"), web.site("beta")
    acme.json(ARD, inline(6))
    chain = [ARD, "/2.json", "/3.json", "/4.json", "/5.json", "/6.json"]
    for number, path in enumerate(chain):
        entries = [entry(f"chain-{number + 1}", "beta.example")]
        if number < 5:
            entries.append(entry(f"next-{number + 1}", "beta.example", type=CATALOG, url=chain[number + 1]))
        beta.manifest(*entries, path=path)
    async with open_crawl(acme, beta) as crawl:
        await crawl.run()
        assert await crawl.identifiers() == [
            *(urn(f"level-{number}") for number in range(1, 5)),
            *(f"urn:air:beta.example:tool:chain-{number}" for number in range(1, 5)),
        ]
        assert beta.requests("/5.json") == []
        too_deep = [
            row.identifier
            for site in (acme, beta)
            for row in await crawl.not_listed(site)
            if "nesting.too_deep" in [problem["code"] for problem in row.problems]
        ]
        assert too_deep == [urn("box-4"), "urn:air:beta.example:tool:next-4"]


async def test_fr_90_a_nested_catalog_is_held_to_allowlist_and_robots_like_any_document(
    web: FakeWeb, crawl_sqlite: OpenCrawl
) -> None:
    acme, other, stranger = web.site("acme"), web.site("other"), web.site("stranger")
    other.robots("User-agent: *\nDisallow: /private/\n")
    places = [stranger.url("/x.json"), other.url("/private/x.json"), other.url("/x.json"), "file:///etc/passwd"]
    acme.manifest(*(entry(f"n{number}", type=CATALOG, url=url) for number, url in enumerate(places)))
    other.manifest(entry("inner"), path="/x.json")
    other.manifest(entry("private"), path="/private/x.json")
    async with crawl_sqlite(acme, other) as crawl:
        await crawl.run()
        assert await crawl.identifiers() == [urn("inner")]
        assert stranger.requests() == []
        assert other.requests("/private/x.json") == []


async def test_fr_90_the_number_of_documents_of_an_origin_is_bounded(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    """Each catalog names two more; without a bound they would never end."""
    acme = web.site("acme")

    async def tree(request: server.Request) -> server.StreamResponse:
        name = request.path.strip("/").removesuffix(".json").rpartition("/")[2]
        below = [entry(f"{name}{side}", type=CATALOG, url=f"/{name}{side}.json") for side in "lr"]
        return server.json_response({"entries": [entry(f"leaf-{name}"), *below]})

    acme.manifest(entry("root", type=CATALOG, url="/t.json"))
    acme.fallback = tree
    async with crawl_sqlite(acme, crawl={"max_documents": 20, "nesting_depth": 16}) as crawl:
        for _ in range(3):
            web.clear_log()
            summary = await crawl.run()
            assert summary.crashed == 0
            assert 18 <= len(web.seen) <= 22, "robots.txt, a control request, and the twenty documents"
        decided = {lead.decision for lead in await crawl.leads(acme)}
        assert decided == {"followed", "too_many_documents"}


async def test_fr_90_another_publisher_cannot_make_an_origin_hold_more_documents_than_the_bound(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock
) -> None:
    acme, other = web.site("acme"), web.site("other")
    acme.manifest(entry("own"))
    acme.manifest(entry("kept"), path="/kept.json")
    acme.html("/", '<html><head><link rel="ard" href="/kept.json"></head></html>')
    other.manifest(*(entry(f"n{n}", "other.example", type=CATALOG, url=acme.url(f"/x{n}.json")) for n in range(30)))
    async with crawl_sqlite(acme, other, crawl={"max_documents": 8}) as crawl:
        await crawl.run(acme)
        await crawl.run()
        asked = {seen.path for seen in acme.requests()}
        assert len(asked - {"/robots.txt"}) == 8
        assert await crawl.identifiers() == [urn("kept"), urn("own")]
        documents = await crawl.documents(acme)
        excess = [row for row in documents.values() if row.reason == "too_many_documents"]
        assert (len(excess), {row.outcome for row in excess}) == (26, {"refused"})
        before = len(web.seen)
        assert await pass_time(crawl, clock, minutes=1) == 0, "what is left out does not make the origin due"
        assert len(web.seen) == before


# --- FR-91, FR-93, FR-94: names and addresses -------------------------------------------------------------------------


async def test_fr_91_known_older_names_are_read_and_invented_ones_are_located_faults(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme = web.site("acme")
    old = {"identifier": urn("old"), "displayName": "Old", "mediaType": MCP, "url": "https://acme.example/old.json"}
    acme.manifest(
        old,
        entry("both", data={}),
        {"name": "foo", "href": "/x"},
        {"identifier": urn("inline"), "displayName": "Inline", "mediaType": MCP, "inline": {"name": "x"}},
        entry("neither", url=None),
        "a text",
        None,
        [entry("list")],
    )
    async with serving(open_crawl, acme) as registry:
        crawl = registry.crawl
        assert await crawl.identifiers() == [urn("inline"), urn("old")]
        assert "entry.old_name_type" in await codes(crawl, urn("old"))
        assert {"entry.old_name_type", "entry.old_name_data"} <= set(await codes(crawl, urn("inline")))
        assert await refused(crawl, acme) == [
            ("/entries/1", ["entry.url_and_data"]),
            ("/entries/2", ["identifier.missing", "entry.type_missing", "entry.no_content"]),
            ("/entries/4", ["entry.no_content"]),
            ("/entries/5", ["entry.not_object"]),
            ("/entries/6", ["entry.not_object"]),
            ("/entries/7", ["entry.not_object"]),
        ]
        shown = await retrieved(registry, urn("old"))
        assert shown["type"] == MCP
        assert "mediaType" not in shown
        assert await registry.found("old", filter={"type": [MCP]}) == [urn("old")]


@pytest.mark.parametrize("public_url", ["https://registry.example/api/v1", "https://registry.example/api/v1/"])
async def test_fr_93_our_own_entry_gives_the_base_and_other_registries_keep_what_they_give(
    web: FakeWeb, crawl_sqlite: OpenCrawl, public_url: str
) -> None:
    peer = web.site("peer")
    given = ["https://peer.example/api", "https://peer.example/api/", "https://peer.example/search"]
    registries = [
        entry(f"r{number}", "peer.example", type="application/ai-registry+json", url=url)
        for number, url in enumerate(given)
    ]
    peer.manifest(*registries)
    async with serving(crawl_sqlite, peer, api={"public_url": public_url}) as registry:
        own = (await registry.get(ARD)).json["entries"][0]
        assert own["url"] == "https://registry.example/api/v1/"
        assert own["type"] == "application/ai-registry+json"
        assert (await registry.search("r0"))["results"][0]["source"] == own["url"]
        shown = [await retrieved(registry, item["identifier"]) for item in registries]
        assert [item["url"] for item in shown] == given
        assert peer.requests("/api") == peer.requests("/search") == []


async def test_fr_94_an_address_is_served_character_for_character_and_never_called(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme = web.site("acme")
    urls = [
        f"http://Acme.example:{web.port}/Agents/%7Eana/card.json?v=2#top",
        acme.url("/agents/rpc"),
        acme.url("/a//b/../c;x=1?q=%2F%2f&r=a+b"),
        "mailto:ana@acme.example",
        "https://xn--bcher-kva.example/",
        "https://bücher.example/straße",
    ]
    acme.manifest(*(entry(f"e{number}", url=url) for number, url in enumerate(urls)))
    async with serving(open_crawl, acme) as registry:
        for number, url in enumerate(urls):
            assert (await retrieved(registry, urn(f"e{number}")))["url"] == url
        results = (await registry.search("tool", pageSize=50))["results"]
        assert {result["identifier"]: result["url"] for result in results} == {
            urn(f"e{number}"): url for number, url in enumerate(urls)
        }
        await registry.crawl.run()
        assert {seen.method for seen in web.seen} == {"GET"}
        assert {seen.path for seen in acme.requests()} == {"/robots.txt", ARD, PREDECESSOR, "/"}


# --- FR-96: contexts --------------------------------------------------------------------------------------------------


async def test_fr_96_no_context_is_ever_fetched_and_its_terms_are_kept(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme, ctx = web.site("acme"), web.site("ctx")
    base = "https://agenticresourcediscovery.org/context/v1"
    acme.manifest(
        entry("remote", **{"@context": [base, ctx.url("/v9")], "corp:tier": "gold"}),
        entry("inline", **{"@context": [base, {"corp": "https://corp.example/ns#"}], "corp:tier": "gold"}),
        entry("hostile", **{"@context": {"@import": ctx.url("/v9"), "type": "@type", "url": None}, "corp:tier": "tin"}),
        entry("wrong", **{"@context": 7, "corp:tier": "tin"}),
        entry("null", **{"@context": None, "corp:tier": "tin"}),
        entry("plain", plan="free"),
    )
    async with serving(open_crawl, acme, ctx) as registry:
        assert ctx.requests("/v9") == []
        assert len(await registry.crawl.identifiers()) == 6
        assert "context.remote_unresolved" in await codes(registry.crawl, urn("remote"))
        assert (await retrieved(registry, urn("remote")))["corp:tier"] == "gold"
        assert await registry.found("tool", filter={"corp:tier": ["gold"]}) == [urn("remote")], "an opaque name"
        full = {"https://corp.example/ns#tier": ["gold"]}
        assert await registry.found("tool", filter=full) == [urn("inline")]
        context = {"c": "https://corp.example/ns#"}
        assert await registry.found("tool", filter={"c:tier": ["gold"]}, context=context) == [urn("inline")]
        assert await registry.found("tool", filter={"plan": ["free"]}) == [urn("plain")]
        assert await registry.counts("type") == {MCP: 6}, "a redefined core term changes nothing in the structure"


# --- FR-99: wrong JSON types ------------------------------------------------------------------------------------------

WRONG: list[Any] = [None, True, 7, 1.5, 10**30, "", "text", [], {}, [None], [[]], {"a": {"b": []}}, ["x", 1, None]]
MEMBERS = [
    "identifier",
    "displayName",
    "type",
    "url",
    "data",
    "description",
    "version",
    "tags",
    "capabilities",
    "representativeQueries",
    "updatedAt",
    "metadata",
    "trustManifest",
    "@context",
    "@id",
    "publisher",
    "ardvark:freshness",
]


async def test_fr_99_no_member_of_any_type_stops_the_crawl_or_an_answer(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    """Every member with every type it must not have, among twenty good entries of the same cycle."""
    acme, good = web.site("acme"), web.site("good")
    wrong = [
        {**entry(f"w{number}-{kind}"), member: value}
        for number, member in enumerate(MEMBERS)
        for kind, value in enumerate(WRONG)
    ]
    acme.manifest(*wrong)
    good.manifest(*(entry(f"g{number}", "good.example") for number in range(20)))
    async with serving(open_crawl, acme, good) as registry:
        (summary,) = registry.crawl.summaries
        assert (summary.crashed, summary.visited) == (0, 2)
        counts = summary.as_json()["entries"]
        assert counts["listed"] + counts["rejected"] == len(wrong) + 20
        identifiers = await registry.crawl.identifiers()
        assert len(identifiers) == counts["listed"] >= 20 + len(wrong) // 2
        assert all(found for _, found in await refused(registry.crawl, acme)), "each one kept out says why"

        assert len([name for name in await registry.found("tool") if ":good.example:" in name]) == 20
        for size in (10, 100):
            results = await registry.pages("tool", size)
            assert len({result["identifier"] for result in results}) == len(results)
        for identifier in identifiers:
            assert (await retrieved(registry, identifier))["identifier"] == identifier
        facets = await registry.explore("type", "tags", "capabilities", "publisher", "metadata.a")
        assert facets["publisher"]["buckets"][0]["value"] == "acme.example"
        assert (await registry.listing(pageSize="100"))["total"] == len(identifiers)


async def test_fr_99_a_bad_member_is_left_out_with_a_warning_and_the_entry_stays(
    web: FakeWeb, crawl_sqlite: OpenCrawl
) -> None:
    acme = web.site("acme")
    published = entry("q", version=1, tags=None, capabilities={"streaming": True}, metadata="gold", updatedAt="soon")
    published["tags"] = None
    acme.manifest(published)
    async with serving(crawl_sqlite, acme) as registry:
        assert await registry.found("q") == [urn("q")]
        problems = await codes(registry.crawl, urn("q"))
        assert problems.count("entry.wrong_type") == 4
        assert "entry.updated_at" in problems
        (result,) = (await registry.search("q"))["results"]
        assert not {"version", "tags", "capabilities", "metadata", "updatedAt"} & set(result)
        assert await retrieved(registry, urn("q")) == published, "the entry as published is still to be had"
