"""`POST /explore`: counts over everything that matches (ARD 5.3.3)."""

from typing import Any

from tests.conftest import OpenCrawl
from tests.fakes.registry import serving
from tests.fakes.web import FakeWeb, entry

MCP = "application/mcp-server-card+json"
A2A = "application/a2a-agent-card+json"

REFUSED: list[tuple[str, Any]] = [
    ("no result type", {}),
    ("no result type beside a query", {"query": {"text": "x"}}),
    ("result type is a text", {"resultType": "facets"}),
    ("result type without facets", {"resultType": {}}),
    ("unknown member of the result type", {"resultType": {"facets": [], "histogram": {}}}),
    ("facets is an object", {"resultType": {"facets": {"field": "type"}}}),
    ("facet is a text", {"resultType": {"facets": ["type"]}}),
    ("facet without field", {"resultType": {"facets": [{"limit": 3}]}}),
    ("facet with an empty field", {"resultType": {"facets": [{"field": ""}]}}),
    ("unknown member of a facet", {"resultType": {"facets": [{"field": "type", "sort": "value"}]}}),
    ("negative limit", {"resultType": {"facets": [{"field": "type", "limit": -1}]}}),
    ("broken limit", {"resultType": {"facets": [{"field": "type", "limit": 1.5}]}}),
    ("limit beyond the bound", {"resultType": {"facets": [{"field": "type", "limit": 1001}]}}),
    ("limit in a text", {"resultType": {"facets": [{"field": "type", "limit": "5"}]}}),
    ("negative least count", {"resultType": {"facets": [{"field": "type", "minCount": -1}]}}),
    ("unknown member at the root", {"resultType": {"facets": []}, "pageSize": 5}),
    ("federation, which Explore does not know", {"resultType": {"facets": []}, "federation": "none"}),
    ("unknown member in the query", {"query": {"words": "x"}, "resultType": {"facets": []}}),
    ("field that is a keyword", {"resultType": {"facets": [{"field": "@id"}]}}),
    ("field that is searched text", {"resultType": {"facets": [{"field": "description"}]}}),
    ("field that is a whole JSON member", {"resultType": {"facets": [{"field": "metadata"}]}}),
    ("more facets than can be meant", {"resultType": {"facets": [{"field": f"f{n}"} for n in range(21)]}}),
    ("one field in two ways", {"resultType": {"facets": [{"field": "type"}, {"field": "type", "limit": 1}]}}),
    ("filter value is null", {"query": {"filter": {"tags": None}}, "resultType": {"facets": []}}),
]


async def test_a_request_outside_the_closed_objects_is_refused(crawl_sqlite: OpenCrawl) -> None:
    async with serving(crawl_sqlite) as registry:
        for name, body in REFUSED:
            answer = await registry.post("/api/v1/explore", body)
            assert answer.error() == (400, "INVALID_ARGUMENT"), name


async def test_without_a_query_the_whole_registry_is_counted(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme, beta = web.site("acme"), web.site("beta")
    acme.manifest(
        entry("a", tags=["red", "round", "red"], type="application/mcp-server"),
        entry("b", tags=["red"], version="1"),
        entry("c", type=A2A, tags=[]),
    )
    beta.manifest(entry("d", "beta.example", tags=["blue"], **{"ex:price": [5, "5", True, None, 1.5]}))
    async with serving(open_crawl, acme, beta) as registry:
        facets = await registry.explore("type", "tags", "publisher", "version", "ex:price", "absent")
        assert facets == {
            # One row of spellings is one bucket, under the canonical one.
            "type": {"buckets": [{"value": MCP, "count": 3}, {"value": A2A, "count": 1}], "otherCount": 0},
            # An entry counts once for a value, however often it has it.
            "tags": {
                "buckets": [
                    {"value": "red", "count": 2},
                    {"value": "blue", "count": 1},
                    {"value": "round", "count": 1},
                ],
                "otherCount": 0,
            },
            "publisher": {
                "buckets": [{"value": "acme.example", "count": 3}, {"value": "beta.example", "count": 1}],
                "otherCount": 0,
            },
            "version": {"buckets": [{"value": "1", "count": 1}], "otherCount": 0},
            # Values are texts, equal to what a filter would compare.
            "ex:price": {
                "buckets": [{"value": "1.5", "count": 1}, {"value": "5", "count": 1}, {"value": "true", "count": 1}],
                "otherCount": 0,
            },
            "absent": {"buckets": [], "otherCount": 0},
        }
        for body in ({}, {"query": {}}, {"query": {"filter": {}}}, {"query": {"text": " "}}):
            answer = await registry.post("/api/v1/explore", {**body, "resultType": {"facets": [{"field": "type"}]}})
            assert answer.json["facets"] == {"type": facets["type"]}, body
        nothing = await registry.post("/api/v1/explore", {"resultType": {"facets": []}})
        assert nothing.json == {"resultType": "facets", "facets": {}}


async def test_buckets_past_the_limit_are_summed_and_small_ones_left_out(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    # t1 once, t2 twice … t6 six times.
    acme.manifest(*(entry(f"n{n}", tags=[f"t{tag}" for tag in range(1, 7) if tag > n]) for n in range(6)))
    whole = [("t6", 6), ("t5", 5), ("t4", 4), ("t3", 3), ("t2", 2), ("t1", 1)]
    async with serving(open_crawl, acme) as registry:
        for query in ({}, {"text": "tool"}, {"filter": {"type": MCP}}, {"text": "tool", "filter": {"type": MCP}}):
            for asked, buckets, other in (
                ({}, whole, 0),
                ({"limit": 6}, whole, 0),
                ({"limit": 2}, whole[:2], 10),
                ({"limit": 0}, [], 21),
                ({"minCount": 3}, whole[:4], 0),
                # What is too small to show is in neither.
                ({"limit": 2, "minCount": 3}, whole[:2], 7),
                ({"minCount": 0}, whole, 0),
                ({"minCount": 7}, [], 0),
                ({"minCount": 10**30}, [], 0),
                # To JSON one number with 2 and 3.
                ({"limit": 2.0, "minCount": 3.0}, whole[:2], 7),
            ):
                facets = await registry.explore({"field": "tags", **asked}, **query)
                shown = [(bucket["value"], bucket["count"]) for bucket in facets["tags"]["buckets"]]
                assert (shown, facets["tags"]["otherCount"]) == (buckets, other), (query, asked)


async def test_twenty_buckets_are_given_unless_asked(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(*(entry(f"n{n}", version=f"{n:02}") for n in range(25)))
    async with serving(crawl_sqlite, acme) as registry:
        facet = (await registry.explore("version"))["version"]
        assert [bucket["value"] for bucket in facet["buckets"]] == [f"{n:02}" for n in range(20)]
        assert facet["otherCount"] == 5


async def test_text_and_filter_narrow_what_is_counted(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(
        entry("rain", tags=["weather"], description="Rain radar"),
        entry("rainbow", tags=["weather", "art"], description="Rain and colours", type=A2A),
        entry("paint", tags=["art"], description="Brushes"),
    )
    async with serving(open_crawl, acme) as registry:
        assert await registry.counts("tags", text="rain") == {"weather": 2, "art": 1}
        assert await registry.counts("tags", filter={"type": A2A}) == {"weather": 1, "art": 1}
        assert await registry.counts("tags", text="rain", filter={"type": MCP}) == {"weather": 1}
        assert await registry.counts("tags", filter={"tags": ["art"]}) == {"art": 2, "weather": 1}
        assert await registry.counts("type", text="rain", filter={"tags": ["weather"]}) == {MCP: 1, A2A: 1}
        assert await registry.counts("type", text="paint", filter={"tags": ["weather"]}) == {}


async def test_buckets_of_a_single_valued_field_sum_to_the_results_over_all_pages(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    """One cutoff for both: what Search pages through is what Explore counts."""
    acme, beta = web.site("acme"), web.site("beta")
    words = ["rain", "snow", "wind", "sun", "fog"]
    acme.manifest(
        *(entry(f"n{n:02}", description=" ".join(words[: 1 + n % 5]), type=(MCP, A2A, "a/b")[n % 3]) for n in range(40))
    )
    beta.manifest(
        *(entry(f"m{n:02}", "beta.example", description=words[n % 5], representativeQueries=None) for n in range(20)),
        {"tags": [f"x{n}" for n in range(300)], **entry("rain", "beta.example", displayName="Rain")},
        entry("odd", "beta.example", displayName="rain", type="Not A Type", **{"@context": {"type": "@type"}}),
        entry("twice", "beta.example", displayName="rain", **{"ard:mediaType": "c/d"}),
    )
    async with serving(open_crawl, acme, beta) as registry:
        for text in ("rain", "rain snow", "fog sun wind", "n07", "tool", "rain forecast for tomorrow", "acme"):
            results = await registry.pages(text, 9)
            for facet in ("type", "publisher", "displayName", "identifier"):
                total = sum((await registry.counts(facet, text=text)).values())
                assert total == len(results), (text, facet)
        everything = await registry.listing()
        for facet in ("type", "publisher"):
            assert sum((await registry.counts(facet)).values()) == everything["total"], facet


async def test_a_field_is_resolved_like_a_filter_key_and_answered_as_it_was_sent(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme, beta = web.site("acme"), web.site("beta")
    acme.manifest(entry("a", **{"@context": {"okf": "https://okf.example/ns#"}, "okf:topic": "x"}))
    beta.manifest(
        entry("b", "beta.example", **{"@context": {"k": "https://okf.example/ns#"}, "k:topic": "x"}),
        entry("c", "beta.example", metadata={"tier": "gold"}, trustManifest={"identity": "https://beta.example"}),
    )
    async with serving(open_crawl, acme, beta) as registry:
        context = {"@context": {"z": "https://okf.example/ns#"}}
        facets = await registry.explore(
            "z:topic", "metadata.tier", "trustManifest.identity", "ard:mediaType", **context
        )
        assert {field: facet["buckets"] for field, facet in facets.items()} == {
            "z:topic": [{"value": "x", "count": 2}],
            "metadata.tier": [{"value": "gold", "count": 1}],
            "trustManifest.identity": [{"value": "https://beta.example", "count": 1}],
            "ard:mediaType": [{"value": MCP, "count": 3}],
        }
        # Nobody here declared the prefix, so it means nothing.
        assert (await registry.explore("z:topic"))["z:topic"]["buckets"] == []
