"""`POST /search`: what it accepts, what it finds, how it scores and pages (ARD 5.3.1, 5.3.2)."""

import base64
import random
from typing import Any

from tests.conftest import OpenCrawl
from tests.fakes.registry import PUBLIC_URL, serving
from tests.fakes.web import FakeWeb, entry

MCP = "application/mcp-server-card+json"
A2A = "application/a2a-agent-card+json"


def names(identifiers: list[str]) -> set[str]:
    return {identifier.rpartition(":")[2] for identifier in identifiers}


# --- the request ------------------------------------------------------------------------------------------------------

REFUSED: list[tuple[str, Any]] = [
    ("no query", {}),
    ("unknown member at the root", {"query": {"text": "x"}, "limit": 5}),
    ("unknown member in the query", {"query": {"text": "x", "texts": "y"}}),
    ("no text", {"query": {"filter": {"type": "a/b"}}}),
    ("text is null", {"query": {"text": None}}),
    ("empty text", {"query": {"text": ""}}),
    ("blank text", {"query": {"text": " \t\n"}}),
    ("text is a number", {"query": {"text": 5}}),
    ("text is a list", {"query": {"text": ["x"]}}),
    ("text beyond any need", {"query": {"text": "🙂" * 5001}}),
    ("query is a text", {"query": "x"}),
    ("query is a list", {"query": [{"text": "x"}]}),
    ("the request is a list", [{"query": {"text": "x"}}]),
    ("the request is null", None),
    ("filter is a list", {"query": {"text": "x", "filter": ["type"]}}),
    ("a filter value is null", {"query": {"text": "x", "filter": {"type": None}}}),
    ("a filter value is an object", {"query": {"text": "x", "filter": {"type": {"eq": "a/b"}}}}),
    ("a filter value holds a list", {"query": {"text": "x", "filter": {"type": [["a/b"]]}}}),
    ("a filter value holds null", {"query": {"text": "x", "filter": {"type": [None]}}}),
    ("more filter keys than can be meant", {"query": {"text": "x", "filter": {f"k{n}": "v" for n in range(33)}}}),
    ("more values than can be meant", {"query": {"text": "x", "filter": {"tags": [str(n) for n in range(101)]}}}),
    ("empty filter key", {"query": {"text": "x", "filter": {"": "v"}}}),
    ("filter key is a keyword", {"query": {"text": "x", "filter": {"@id": "v"}}}),
    ("filter key is a keyword's alias", {"query": {"text": "x", "filter": {"id": "v"}}}),
    ("filter key is searched text", {"query": {"text": "x", "filter": {"description": "v"}}}),
    ("filter key is a whole JSON member", {"query": {"text": "x", "filter": {"metadata": "v"}}}),
    ("unknown federation mode", {"query": {"text": "x"}, "federation": "all"}),
    ("federation is null", {"query": {"text": "x"}, "federation": None}),
    ("page size of zero", {"query": {"text": "x"}, "pageSize": 0}),
    ("negative page size", {"query": {"text": "x"}, "pageSize": -1}),
    ("page size in a text", {"query": {"text": "x"}, "pageSize": "10"}),
    ("broken page size", {"query": {"text": "x"}, "pageSize": 1.5}),
    ("page size is true", {"query": {"text": "x"}, "pageSize": True}),
    ("empty page token", {"query": {"text": "x"}, "pageToken": ""}),
    ("page token is a number", {"query": {"text": "x"}, "pageToken": 5}),
    ("context is a number", {"query": {"text": "x", "@context": 5}}),
]


async def test_a_request_outside_the_closed_objects_is_refused(crawl_sqlite: OpenCrawl) -> None:
    async with serving(crawl_sqlite) as registry:
        for name, body in REFUSED:
            answer = await registry.post("/api/v1/search", body)
            assert answer.error() == (400, "INVALID_ARGUMENT"), name


NOT_JSON: list[tuple[str, bytes]] = [
    ("nothing", b""),
    ("half an object", b'{"query":{"text":"x"'),
    ("a comma too many", b'{"query":{"text":"x"},}'),
    ("not a number", b'{"query":{"text":"x"},"pageSize":NaN}'),
    ("an endless number", b'{"query":{"text":"x","filter":{"tags":1e400}}}'),
    ("another encoding", '{"query":{"text":"x"}}'.encode("utf-16")),
    ("bytes that are no text", b'{"query":{"text":"\xff"}}'),
    ("a member twice", b'{"query":{"text":"x","text":"y"}}'),
    ("a filter key twice", b'{"query":{"text":"x","filter":{"tags":"a","tags":"b"}}}'),
    ("half a character", b'{"query":{"text":"\\ud83d"}}'),
    ("deep nesting", b'{"query":{"text":"x","@context":' + b"[" * 200 + b"]" * 200 + b"}}"),
    ("a form", b"query=x"),
]


async def test_a_body_that_is_not_strict_json_is_refused(crawl_sqlite: OpenCrawl) -> None:
    async with serving(crawl_sqlite) as registry:
        for name, body in NOT_JSON:
            for path in ("/api/v1/search", "/api/v1/explore"):
                answer = await registry.post(path, body)
                assert answer.error() == (400, "INVALID_ARGUMENT"), name


async def test_a_refusal_names_what_was_wrong(crawl_sqlite: OpenCrawl) -> None:
    async with serving(crawl_sqlite) as registry:
        messages = {}
        for name, body in REFUSED:
            messages[name] = (await registry.post("/api/v1/search", body)).json["message"]
    assert "limit" in messages["unknown member at the root"]
    assert "query.texts" in messages["unknown member in the query"]
    assert "query.text" in messages["no text"]
    assert "pageSize" in messages["page size of zero"]
    assert "federation" in messages["unknown federation mode"]
    assert "@id" in messages["filter key is a keyword"]
    assert "query.filter.type" in messages["a filter value is an object"]


async def test_no_filter_value_breaks_an_answer(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"))
    async with serving(open_crawl, acme) as registry:
        for value in ("a\x00b", "\x00", "☃" * 300, "' OR 1=1 --", "%_\\", "🙂", 2**70, -(2**70)):
            for key in ("type", "publisher", "tags", "metadata.tier", "ex:term", "ex:\x00", "metadata.\x00"):
                assert await registry.found("echo", filter={key: value}) == [], (key, value)
            assert await registry.counts("type", text="echo", filter={"tags": [value, "x"]}) == {}, value


async def test_no_text_breaks_an_answer(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"))
    async with serving(open_crawl, acme) as registry:
        for text in ("\x00", "a\x00b@acme.example", "\x00@\x00", "'\"%_\\", "-echo", "NOT (echo", "🙂", "🙂e" * 2500):
            assert set(await registry.search(text)) == {"results"}, text
            await registry.explore("type", text=text)
        assert len(await registry.found("echo\x00")) == 1


# --- results ----------------------------------------------------------------------------------------------------------


async def test_every_result_has_an_identifier_an_integer_score_and_our_source(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme = web.site("acme")
    acme.manifest(
        entry("echo", score="first", source="https://elsewhere.example/", data=None),
        entry("echo-two", score=1e9, source=None, url=None, data={"echo": True}),
    )
    async with serving(open_crawl, acme) as registry:
        answer = await registry.search("echo tool")
        assert set(answer) == {"results"}
        assert names([result["identifier"] for result in answer["results"]]) == {"echo", "echo-two"}
        for result in answer["results"]:
            assert type(result["score"]) is int
            assert 0 < result["score"] <= 100
            assert result["source"] == PUBLIC_URL


async def test_a_result_shows_what_helps_to_choose_and_leaves_the_rest_to_retrieve(
    web: FakeWeb, crawl_sqlite: OpenCrawl
) -> None:
    acme = web.site("acme")
    acme.manifest(
        entry("echo", tags=["sound"], version="1.2.0", metadata={"tier": "free"}, **{"ex:cost": 3}),
        entry("inline", url=None, data={"name": "Inline"}),
    )
    async with serving(crawl_sqlite, acme) as registry:
        shown = {result["displayName"]: result for result in (await registry.search("echo inline tool"))["results"]}
    assert shown["Echo"]["tags"] == ["sound"]
    assert shown["Echo"]["metadata"] == {"tier": "free"}
    assert shown["Echo"]["ex:cost"] == 3
    assert shown["Echo"]["url"] == "https://acme.example/cards/echo.json"
    assert not {"representativeQueries", "data"} & (shown["Echo"].keys() | shown["Inline"].keys())


async def test_text_is_found_wherever_an_entry_carries_it(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(
        entry("one", displayName="Barometer"),
        entry("two", description="Measures humidity"),
        entry("three", tags=["thermometer"]),
        entry("four", capabilities=["readAnemometer"]),
        entry("five", representativeQueries=["how strong is the monsoon", "when does it end"]),
        entry("hygrometer", displayName="Six"),
    )
    async with serving(open_crawl, acme) as registry:
        for word, name in (
            ("barometers", "one"),
            ("HUMIDITY", "two"),
            ("thermometer", "three"),
            ("anemometer", "four"),
            ("monsoon", "five"),
            ("hygrometer", "hygrometer"),
        ):
            assert names(await registry.found(word)) == {name}, word


async def test_a_better_match_scores_higher(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(
        entry("both", displayName="Currency converter", description="Converts currency amounts"),
        entry("half", displayName="Unit converter", description="Converts lengths and weights"),
        *(entry(f"none-{n}", displayName="Calendar", description="Finds free time") for n in range(20)),
    )
    async with serving(open_crawl, acme) as registry:
        results = (await registry.search("currency converter tool that converts money"))["results"]
        assert [result["displayName"] for result in results[:2]] == ["Currency converter", "Unit converter"]
        assert results[0]["score"] > results[1]["score"]


async def test_nonsense_finds_nothing(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(*(entry(name) for name in ("echo", "weather", "maps")))
    async with serving(open_crawl, acme) as registry:
        for text in ("xyzzyqwrtp", "zzgrblfx qqvnm", "???", "the of and", "🙂"):
            assert await registry.search(text) == {"results": []}, text
            assert await registry.counts("type", text=text) == {}, text


async def test_an_unmet_need_scores_lower_than_a_met_one(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(entry("weather", description="Forecasts rain"), *(entry(f"other-{n}") for n in range(20)))
    async with serving(open_crawl, acme) as registry:
        met = (await registry.search("rain forecast"))["results"][0]
        unmet = (await registry.search("rain zzgrblfx qqvnm"))["results"]
        assert [result["identifier"] for result in unmet] == [met["identifier"]]
        assert unmet[0]["score"] < met["score"]


EXACT = [
    "urn:air:acme.com:agent:assistant",
    "  urn:air:acme.com:agent:assistant ",
    "Travel Assistant",
    "travel  ASSISTANT",
    "assistant@acme.com",
    "Assistant@Acme",
]


async def test_an_exact_name_scores_100(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(
        entry(identifier="urn:air:acme.com:agent:assistant", displayName="Travel Assistant"),
        entry(identifier="urn:air:other.com:agent:assistant", displayName="Travel Assistant Pro"),
        entry(identifier="urn:air:acme.com:agent:Assistant-2", displayName="Assistant of travel"),
    )
    async with serving(open_crawl, acme) as registry:
        for text in EXACT:
            results = (await registry.search(text))["results"]
            assert results[0]["identifier"] == "urn:air:acme.com:agent:assistant", text
            assert [result["score"] for result in results if result["score"] == 100] == [100], text


async def test_an_identifier_is_exact_in_its_case_only(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"), entry("Echo", displayName="Another"))
    async with serving(open_crawl, acme) as registry:
        for text in ("urn:air:acme.example:tool:echo", "urn:air:acme.example:tool:Echo"):
            scores = {r["identifier"]: r["score"] for r in (await registry.search(text))["results"]}
            assert [identifier for identifier, score in scores.items() if score == 100] == [text]


async def test_a_filter_holds_for_exact_names_too(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"))
    async with serving(open_crawl, acme) as registry:
        assert await registry.found("urn:air:acme.example:tool:echo", filter={"type": A2A}) == []


# --- filters ----------------------------------------------------------------------------------------------------------


async def test_values_of_one_key_are_alternatives_and_keys_add_up(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(
        entry("a", tags=["red", "round"], capabilities=["roll"]),
        entry("b", tags=["blue"], capabilities=["roll"]),
        entry("c", tags=["green", "round"], capabilities=["fly"]),
    )
    async with serving(open_crawl, acme) as registry:
        for wanted, found in (
            ({"tags": "red"}, {"a"}),
            ({"tags": ["red"]}, {"a"}),
            ({"tags": ["red", "blue"]}, {"a", "b"}),
            ({"tags": ["round"], "capabilities": ["roll"]}, {"a"}),
            ({"tags": ["red", "blue"], "capabilities": ["roll", "fly"]}, {"a", "b"}),
            ({"tags": ["red"], "capabilities": ["fly"]}, set()),
            ({"tags": []}, set()),
            ({"tags": "Red"}, set()),
            ({"tags": "re"}, set()),
            ({"unknownTerm": "red"}, set()),
            ({"displayName": "A"}, {"a"}),
            ({"identifier": "urn:air:acme.example:tool:b"}, {"b"}),
            ({"url": "https://acme.example/cards/c.json"}, {"c"}),
            ({}, {"a", "b", "c"}),
        ):
            assert names(await registry.found("tool", filter=wanted)) == found, wanted


async def test_scalars_are_compared_by_their_json_text(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(
        entry("number", **{"ex:n": 5}),
        entry("text", **{"ex:n": "5"}),
        entry("decimal", **{"ex:n": 5.0}),
        entry("yes", **{"ex:n": True}),
        entry("list", **{"ex:n": [1.5, False]}),
        entry("none", **{"ex:n": None}),
    )
    async with serving(open_crawl, acme) as registry:
        for value, found in (
            (5, {"number", "text", "decimal"}),
            ("5", {"number", "text", "decimal"}),
            (5.0, {"number", "text", "decimal"}),
            (True, {"yes"}),
            ("true", {"yes"}),
            (1, set()),
            (1.5, {"list"}),
            (False, {"list"}),
            ([5, True], {"number", "text", "decimal", "yes"}),
        ):
            assert names(await registry.found("tool", filter={"ex:n": value})) == found, value


async def test_two_publishers_with_different_prefixes_for_one_namespace_match(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    """The prefix is the publisher's own affair; the IRI is what is compared (ARD 5.3.1)."""
    acme, beta = web.site("acme"), web.site("beta")
    acme.manifest(entry("one", **{"@context": {"okf": "https://okf.example/ns#"}, "okf:taxonomy": "finance"}))
    beta.manifest(
        entry("two", "beta.example", **{"@context": {"k": "https://okf.example/ns#"}, "k:taxonomy": ["finance"]}),
        entry("full", "beta.example", **{"https://okf.example/ns#taxonomy": "finance"}),
        entry("term", "beta.example", **{"@context": {"kind": "https://okf.example/ns#taxonomy"}, "kind": "finance"}),
        entry("other", "beta.example", **{"@context": {"okf": "https://other.example/ns#"}, "okf:taxonomy": "finance"}),
        entry("bare", "beta.example", **{"okf:taxonomy": "finance"}),
    )
    context = {"whatever": "https://okf.example/ns#"}
    same = {"one", "two", "full", "term"}
    async with serving(open_crawl, acme, beta) as registry:
        for given, key, found in (
            (context, "whatever:taxonomy", same),
            ([context], "whatever:taxonomy", same),
            (["https://agenticresourcediscovery.org/context/v1", context], "whatever:taxonomy", same),
            ({"t": "https://okf.example/ns#taxonomy"}, "t", same),
            (None, "https://okf.example/ns#taxonomy", same),
            # A prefix that nobody declared is part of an opaque IRI.
            (None, "okf:taxonomy", {"bare"}),
            (None, "whatever:taxonomy", set()),
            # Not usable as prefixes: the namespace ends in a letter, or is the @id of a term.
            ({"okf": "https://okf.example/ns"}, "okf:taxonomy", {"bare"}),
            ({"okf": {"@id": "https://okf.example/ns#"}}, "okf:taxonomy", {"bare"}),
            ({"okf": {"@id": "https://okf.example/ns#", "@prefix": True}}, "okf:taxonomy", same),
            # Never fetched, so it declares nothing.
            ("https://okf.example/context.jsonld", "okf:taxonomy", {"bare"}),
        ):
            found_names = names(await registry.found("tool", context=given, filter={key: "finance"}))
            assert found_names == found, (given, key)


async def test_terms_without_prefix_belong_to_the_base_vocabulary(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(
        entry("plain", licence="MIT", tags=["x"]),
        entry("prefixed", **{"ard:licence": "MIT", "tags": ["x"]}),
        entry("elsewhere", **{"@context": {"@vocab": "https://v.example/#"}, "licence": "MIT", "tags": ["x"]}),
        entry("nothing", **{"@context": None, "licence": "MIT", "tags": ["x"]}),
    )
    base = {"plain", "prefixed", "nothing"}
    async with serving(open_crawl, acme) as registry:
        for key, found in (
            ("licence", base),
            ("ard:licence", base),
            ("https://agenticresourcediscovery.org/ns#licence", base),
            ("https://v.example/#licence", {"elsewhere"}),
        ):
            assert names(await registry.found("tool", filter={key: "MIT"})) == found, key
        # A publisher's vocabulary is for terms that ARD does not define.
        for key in ("tags", "ard:tags", "https://agenticresourcediscovery.org/ns#tags"):
            assert names(await registry.found("tool", filter={key: "x"})) == base | {"elsewhere"}, key
        for key in ("type", "ard:mediaType", "https://agenticresourcediscovery.org/ns#mediaType"):
            assert names(await registry.found("tool", filter={key: MCP})) == base | {"elsewhere"}, key


async def test_paths_below_the_json_members_are_literal(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(
        entry(
            "one",
            metadata={"tier": "gold", "ex:region": "eu", "limits": {"perMinute": 60}},
            trustManifest={
                "identity": "https://acme.example",
                "attestations": [
                    {"type": "SOC2-Type2", "uri": "https://acme.example/soc2"},
                    {"type": "ISO27001", "uri": "https://acme.example/iso"},
                ],
            },
            **{"@context": {"ex": "https://ex.example/#"}},
        ),
        entry("two", url=None, data={"skills": [{"tags": [["deep"], "flat"]}, {"tags": "flat"}], "a.b": {"c": 1}}),
        entry("three", metadata={"tier": "Gold", "type": "gold"}),
    )
    async with serving(open_crawl, acme) as registry:
        for key, value, found in (
            ("metadata.tier", "gold", {"one"}),
            ("metadata.limits.perMinute", 60, {"one"}),
            # Names below the three members are no terms: neither expanded nor normalised.
            ("metadata.ex:region", "eu", {"one"}),
            ("metadata.type", "gold", {"three"}),
            ("ard:metadata.tier", "gold", {"one"}),
            ("trustManifest.identity", "https://acme.example", {"one"}),
            # Arrays on the way add no step; one element that matches is enough.
            ("trustManifest.attestations.type", "SOC2-Type2", {"one"}),
            ("trustManifest.attestations.type", ["none", "ISO27001"], {"one"}),
            ("data.skills.tags", "flat", {"two"}),
            ("data.skills.tags", "deep", {"two"}),
            ("data.a.b.c", 1, {"two"}),
            ("metadata.absent", "gold", set()),
            ("metadata.tier.gold", "gold", set()),
            ("Metadata.tier", "gold", set()),
        ):
            assert names(await registry.found("tool one two three", filter={key: value})) == found, (key, value)


async def test_the_publisher_is_derived_from_the_identifier(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(
        entry("one", "acme.example"),
        entry("two", "ACME.example"),
        entry("three", "sub.acme.example"),
        {**entry("four", "beta.example"), "publisher": "acme.example"},
    )
    async with serving(open_crawl, acme) as registry:
        for value, found in (
            ("acme.example", {"one", "two"}),
            ("Acme.Example", {"one", "two"}),
            ("acme.example.", {"one", "two"}),
            (["beta.example", "sub.acme.example"], {"three", "four"}),
            ("example", set()),
        ):
            assert names(await registry.found("tool", filter={"publisher": value})) == found, value
        # The member of the same name is an extension term like any other.
        assert names(await registry.found("tool", filter={"ard:publisher": "acme.example"})) == {"four"}


SPELLINGS = [
    ("application/mcp-server-card+json", "application/mcp-server-card+json"),
    ("application/mcp-server+json", "application/mcp-server-card+json"),
    ("application/mcp-server", "application/mcp-server-card+json"),
    ("Application/MCP-Server-Card+JSON", "application/mcp-server-card+json"),
    ("application/mcp-server-card+json; charset=utf-8", "application/mcp-server-card+json"),
    ("application/a2a-agent-card+json", "application/a2a-agent-card+json"),
    ("application/ai-registry+json", "application/ai-registry+json"),
    ("application/ai-registry", "application/ai-registry+json"),
    ("application/ai-skill+md", "application/ai-skill+md"),
    ("application/ai-skill", "application/ai-skill+md"),
    ("application/agent-skills+md", "application/ai-skill+md"),
    ('text/markdown; profile="urn:air:agent-skills"', "application/ai-skill+md"),
    ('TEXT/Markdown;PROFILE="urn:air:agent-skills"', "application/ai-skill+md"),
    ("application/agent-skills+zip", "application/agent-skills+zip"),
    ("application/agentskill+zip", "application/agent-skills+zip"),
    # The generic card is an A2A card only when its artifact says so; parameters are ordered by name.
    ("application/agent-card+json", "application/agent-card+json"),
    ("application/json", "application/json"),
    ("text/markdown", "text/markdown"),
    ("a/b; y=2; x=1", "a/b;x=1;y=2"),
    ("a/b;x=1 ;Y=2", "a/b;x=1;y=2"),
    # The same parameter twice is no media type; it equals only itself, whatever the case.
    ("a/b;x=1;x=2", "a/b;x=1;x=2"),
    ("Skill", "skill"),
]


async def test_every_spelling_of_a_media_type_finds_all_of_its_row(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(*(entry(f"n{number}", type=given) for number, (given, _) in enumerate(SPELLINGS)))
    rows: dict[str, set[str]] = {}
    for number, (_, canonical) in enumerate(SPELLINGS):
        rows.setdefault(canonical, set()).add(f"n{number}")
    async with serving(open_crawl, acme) as registry:
        for given, canonical in SPELLINGS:
            assert names(await registry.found("tool", filter={"type": given})) == rows[canonical], given
        assert await registry.counts("type") == {canonical: len(row) for canonical, row in rows.items()}
        shown = {result["identifier"].rpartition(":n")[2]: result["type"] for result in await registry.pages("tool", 9)}
        # The spelling as published is kept.
        assert shown == {str(number): given for number, (given, _) in enumerate(SPELLINGS)}


# --- paging -----------------------------------------------------------------------------------------------------------


async def test_pages_add_up_without_a_double_or_a_gap(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(
        *(
            entry(f"n{n:03}", type=MCP if n % 3 else A2A, description="measure the rain" * (1 + n % 5))
            for n in range(57)
        ),
        *(entry(f"same{n:02}", displayName="Rain") for n in range(12)),
    )
    async with serving(open_crawl, acme) as registry:
        whole = [(result["identifier"], result["score"]) for result in await registry.pages("rain", 100)]
        assert len(whole) == 69
        assert len({identifier for identifier, _ in whole}) == 69
        assert whole == sorted(whole, key=lambda pair: -pair[1])
        for size in (1, 7, 23, 68, 69):
            assert [(r["identifier"], r["score"]) for r in await registry.pages("rain", size)] == whole, size
        # The matched set is one: Search pages through it, Explore counts it.
        assert sum((await registry.counts("type", text="rain")).values()) == 69
        assert await registry.counts("type", text="rain") == {MCP: 50, A2A: 19}
        filtered = await registry.pages("rain", 5, filter={"type": A2A})
        assert len(filtered) == 19
        assert await registry.counts("type", text="rain", filter={"type": A2A}) == {A2A: 19}


async def test_a_name_that_hundreds_share_is_paged_like_any_other(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(*(entry(f"n{(n * 89) % 230:03}", displayName="Rain") for n in range(230)))
    async with serving(open_crawl, acme) as registry:
        results = await registry.pages("rain", 50)
        assert len({result["identifier"] for result in results}) == len(results) == 230
        assert [result["score"] for result in results].count(100) == 200
        assert results == await registry.pages("rain", 100)
        assert sum((await registry.counts("type", text="rain")).values()) == 230


async def test_a_page_has_ten_results_unless_asked_and_a_hundred_at_most(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(*(entry(f"n{n:03}") for n in range(105)))
    async with serving(crawl_sqlite, acme) as registry:
        for asked, given in (
            ({}, 10),
            ({"pageSize": 3}, 3),
            ({"pageSize": 100}, 100),
            ({"pageSize": 5000}, 100),
            ({"pageSize": 7.0}, 7),
        ):
            answer = await registry.search("tool", **asked)
            assert len(answer["results"]) == given
            assert answer["pageToken"]


async def test_a_page_token_belongs_to_its_query(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(*(entry(f"n{n}") for n in range(5)))
    query = {"text": "tool", "filter": {"type": MCP}}
    async with serving(crawl_sqlite, acme) as registry:
        token = (await registry.post("/api/v1/search", {"query": query, "pageSize": 2})).json["pageToken"]
        listed = (await registry.listing(pageSize="2"))["pageToken"]

        async def status(value: str, **changed: Any) -> int:
            body = {"query": {**query, **changed}, "pageSize": 2, "pageToken": value}
            answer = await registry.post("/api/v1/search", body)
            if answer.status != 200:
                assert answer.error() == (400, "INVALID_ARGUMENT")
            return answer.status

        assert await status(token) == 200
        raw = bytearray(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        raw[-2] ^= 1
        forged = [
            base64.urlsafe_b64encode(bytes(raw)).decode().rstrip("="),
            base64.urlsafe_b64encode(b"\0" * 16 + b'[1,"a"]').decode(),
            token[:-4],
            token + "AAAA",
            listed,
            "x",
            "§",
            "%00",
            "A" * 1024,
        ]
        for value in forged:
            assert await status(value) == 400, value
        for changed in ({"text": "tools"}, {"filter": {}}, {"filter": {"type": A2A}}, {"@context": {"a": "b:"}}):
            assert await status(token, **changed) == 400, changed
        as_list = await registry.listed(pageSize="2", pageToken=token)
        assert as_list.error() == (400, "INVALID_ARGUMENT")


async def test_a_page_token_works_with_any_filter_that_a_first_page_accepts(
    web: FakeWeb, crawl_sqlite: OpenCrawl
) -> None:
    """Numbers beyond 64 bits are JSON too."""
    acme = web.site("acme")
    acme.manifest(*(entry(f"n{n}", **{"ex:n": 2**70}) for n in range(3)))
    async with serving(crawl_sqlite, acme) as registry:
        results = await registry.pages("tool", 1, filter={"ex:n": [2**70, 1.5]}, context={"big": 2**80})
        assert len(results) == 3


async def test_a_page_token_outlives_the_process_that_gave_it(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(*(entry(f"n{n}") for n in range(5)))
    async with serving(open_crawl, acme) as registry:
        first = await registry.search("tool", pageSize=3)
    async with serving(open_crawl) as registry:
        second = await registry.search("tool", pageSize=3, pageToken=first["pageToken"])
        assert "pageToken" not in second
        assert names([r["identifier"] for r in first["results"] + second["results"]]) == {f"n{n}" for n in range(5)}


# --- federation -------------------------------------------------------------------------------------------------------


async def test_without_peers_every_federation_mode_answers_from_the_own_index(
    web: FakeWeb, crawl_sqlite: OpenCrawl
) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"))
    async with serving(crawl_sqlite, acme) as registry:
        own = await registry.search("echo", federation="none")
        assert set(own) == {"results"}
        assert [result["source"] for result in own["results"]] == [PUBLIC_URL]
        assert await registry.search("echo") == own
        assert await registry.search("echo", federation="auto") == own
        assert await registry.search("echo", federation="referrals") == {**own, "referrals": []}


# --- what changes -----------------------------------------------------------------------------------------------------


async def test_what_a_publisher_takes_out_is_found_no_more(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"), entry("weather", tags=["rain"]))
    async with serving(open_crawl, acme) as registry:
        assert names(await registry.found("tool")) == {"echo", "weather"}
        acme.manifest(entry("echo", description="Says hello again"))
        await registry.crawl.run()
        assert names(await registry.found("tool")) == {"echo"}
        assert await registry.found("rain") == []
        assert names(await registry.found("hello")) == {"echo"}
        assert names(await registry.found("urn:air:acme.example:tool:weather")) == {"echo"}
        assert await registry.counts("tags") == {}
        assert await registry.counts("type") == {MCP: 1}


async def test_a_copy_that_cannot_be_confirmed_is_shown_as_stale(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo", **{"@context": {"ex": "https://ex.example/#"}}))
    async with serving(open_crawl, acme) as registry:
        fresh = (await registry.search("echo"))["results"][0]
        assert fresh["ardvark:freshness"]["state"] == "fresh"
        acme.page("/.well-known/ard.json", b"", status=503)
        await registry.crawl.run()
        stale = (await registry.search("echo"))["results"][0]
        assert stale["ardvark:freshness"]["state"] == "stale"
        assert stale["@context"][0] == {"ex": "https://ex.example/#"}
        assert stale["@context"][1] == {"ardvark": "urn:ardvark:terms:"}
        assert stale["score"] == fresh["score"]


async def test_no_length_of_a_published_name_or_value_breaks_the_index(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    """Random characters, because a database would compress others and hide its limit."""
    acme = web.site("acme")
    chance = random.Random(1)
    long = "".join(chr(chance.randrange(0x10000, 0x20000)) for _ in range(4000))
    acme.manifest(
        entry("type", type=long),
        entry("name", displayName=long),
        entry("tags", tags=[long], capabilities=[long], version=long),
        entry("member", **{long: "x", "ex:value": long, f"ex:{long[:255]}": long[:256]}),
        entry("path", metadata={long: "x", "a": {long[:500]: {long[500:1000]: "y"}}, "b": long[:256]}),
        entry("context", **{"@context": {"p": f"https://p.example/{long}#", long: "https://q.example/"}, "p:x": "z"}),
        entry("url", url=f"https://acme.example/{'x' * 9000}"),
        entry("plain"),
    )
    async with serving(open_crawl, acme) as registry:
        found = await registry.names()
        assert found == ["context", "member", "name", "path", "plain", "tags", "type"]
        assert names(await registry.found("tool", filter={"metadata.b": long[:256]})) == {"path"}
        assert await registry.found("tool", filter={"type": long}) == ["urn:air:acme.example:tool:type"]
        assert sum((await registry.counts("type")).values()) == len(found)
        for name in found:
            assert (await registry.get(f"/api/v1/agents/urn:air:acme.example:tool:{name}")).status == 200
