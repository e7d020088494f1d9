"""`GET /agents`: browsing in a fixed order, without relevance (ARD 5.3.5, Appendix A)."""

from typing import Any

import pytest

from tests.conftest import OpenCrawl
from tests.fakes.clock import FakeClock
from tests.fakes.registry import Registry, serving
from tests.fakes.web import FakeWeb, entry

MCP = "application/mcp-server-card+json"
A2A = "application/a2a-agent-card+json"


async def _found(registry: Registry, expression: str) -> str:
    """Filter and give the names found, as one text: names here are single letters."""
    return "".join(sorted(await registry.names(filter=expression)))


async def test_a_page_lists_items_with_the_total_in_a_fixed_order(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    """FR-110: the envelope is the list's own, never that of a manifest."""
    acme = web.site("acme")
    acme.manifest(*(entry(f"n{n}") for n in (3, 1, 5, 2, 4)))
    async with serving(open_crawl, acme) as registry:
        page = await registry.listing(pageSize="2")
        assert set(page) == {"items", "total", "pageToken"}
        assert page["total"] == 5
        assert [item["displayName"] for item in page["items"]] == ["N1", "N2"]
        assert "representativeQueries" not in page["items"][0]
        page = await registry.listing(pageSize="2", pageToken=page["pageToken"])
        assert [item["displayName"] for item in page["items"]] == ["N3", "N4"]
        page = await registry.listing(pageSize="2", pageToken=page["pageToken"])
        assert [item["displayName"] for item in page["items"]] == ["N5"]
        assert (page["total"], "pageToken" in page) == (5, False)


async def test_an_empty_registry_lists_nothing(open_crawl: OpenCrawl) -> None:
    async with serving(open_crawl) as registry:
        assert await registry.listing() == {"items": [], "total": 0}


async def test_a_page_has_twenty_items_unless_asked_and_a_hundred_at_most(
    web: FakeWeb, crawl_sqlite: OpenCrawl
) -> None:
    acme = web.site("acme")
    acme.manifest(*(entry(f"n{n:03}") for n in range(105)))
    async with serving(crawl_sqlite, acme) as registry:
        for parameters, count in (({}, 20), ({"pageSize": "7"}, 7), ({"pageSize": "100"}, 100)):
            assert len((await registry.listing(**parameters))["items"]) == count
        assert len((await registry.listing(pageSize="101"))["items"]) == 100
        assert len((await registry.listing(pageSize="99999"))["items"]) == 100


ACCEPTED = [
    ("type = 'application/mcp-server-card+json'", "ab"),
    ("type='application/mcp-server-card+json'", "ab"),
    ('type="application/mcp-server-card+json"', "ab"),
    ("type = application/mcp-server-card+json", "ab"),
    ("type = 'application/mcp-server'", "ab"),
    ("type = 'APPLICATION/mcp-server+json'", "ab"),
    ("TYPE = 'application/a2a-agent-card+json'", "c"),
    ("type = 'text/markdown; profile=\"urn:air:agent-skills\"'", "d"),
    ("type = 'application/mcp-server', 'application/ai-skill'", "abd"),
    ("type = application/mcp-server,application/ai-skill", "abd"),
    ("type = application/none", ""),
    ("displayName = 'alpha'", "ab"),
    ("displayName = 'ALPHA'", "ab"),
    ("displayName = alpha", "ab"),
    ("displayName = 'lpha t'", "b"),
    ("displayName = 'cafe'", "c"),
    ("displayName = 'Café'", "c"),
    ("displayName = 'it\\'s'", "d"),
    ('displayName = "it\'s"', "d"),
    ("displayName = 'alpha', 'delta'", "abd"),
    # Signs of pattern languages are letters like others.
    ("displayName = '%'", "d"),
    ("displayName = '_'", ""),
    ("displayName = 'a%a'", ""),
    ("displayName = 'A, AND B'", "c"),
    ("publisherId = 'acme.example'", "abc"),
    ("publisherId = 'ACME.example.'", "abc"),
    ("publisherId = 'beta.example', 'acme.example'", "abcd"),
    ("publisherId = 'example'", ""),
    ("type = application/mcp-server AND displayName = two", "b"),
    ("type = application/mcp-server and displayName = two And publisherId = acme.example", "b"),
    ("displayName = 'AND' AND type = application/mcp-server", ""),
    ("  type = application/mcp-server  ", "ab"),
    ("type = application/mcp-server\tAND\n displayName = two", "b"),
    # "After" is strict, whatever the sign.
    ("updatedAfter > '2026-03-01T00:00:00Z'", "cd"),
    ("updatedAfter = '2026-03-01'", "cd"),
    ("updatedAfter >= '2026-03-01'", "cd"),
    ("updatedAfter > 2026-02-28T23:59:59Z", "bcd"),
    ("updatedAfter > 2026-03-01T01:00:00+02:00", "bcd"),
    ("updatedAfter > 2026-03-01T00:00:00-02:00", "cd"),
    # D states no time of its own: what we saw counts.
    ("updatedAfter > 2026-11-01", "d"),
    ("createdAfter > 2026-11-29T11:59:59Z", "abcd"),
    ("createdAfter > 2026-11-29T12:00:00Z", ""),
    ("createdAfter > '2026-01-01' AND type = 'application/a2a-agent-card+json'", "c"),
    ("", "abcd"),
    ("   ", "abcd"),
]
REFUSED = [
    ("type = MCP", "MCP"),
    ("type", "type"),
    ("type =", "the end"),
    ("type = ''", "type"),
    ("type = '  '", "type"),
    ("displayName = ' '", "displayName"),
    ("type = 'a/b", "'a/b"),
    ("type = a/b,", "the end"),
    ("type > 'a/b'", ">"),
    ("type != 'a/b'", "!="),
    ("type IN ('a/b')", "IN"),
    ("displayName = x y", "y"),
    ("displayName = 'x' OR displayName = 'y'", "OR"),
    ("displayName = 'x' AND", "AND"),
    ("AND displayName = 'x'", "AND"),
    ("displayName = 'x'AND type = 'a/b'", "AND"),
    ("displayName >= 'x'", ">="),
    ("publisherId < 'x'", "<"),
    ("tags = 'x'", "tags"),
    ("updatedAt > '2026-01-01'", "updatedAt"),
    ("createdAfter < '2026-01-01'", "<"),
    ("createdAfter <= '2026-01-01'", "<="),
    ("createdAfter > 'yesterday'", "yesterday"),
    ("createdAfter > 2026-13-01", "2026-13-01"),
    ("createdAfter > 2026-01-01, 2026-02-01", "one date"),
    ("updatedAfter > ''", "updatedAfter"),
    ("= 'x'", "="),
    ("' OR 1=1 --", "'"),
    ("displayName = 'x'; DROP TABLE listings", "';'"),
    ("x" * 5000, "4000"),
]


async def test_the_filter_follows_its_grammar(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(
        entry("a", displayName="Alpha", updatedAt="2026-01-01T00:00:00Z"),
        entry("b", displayName="Alpha Two", type="application/mcp-server", updatedAt="2026-03-01T00:00:00Z"),
        entry("c", displayName="Café A, AND B", type=A2A, updatedAt="2026-03-02T01:00:00+01:00"),
        entry(
            "d",
            "beta.example",
            displayName="Delta: it's 100% here",
            type='text/markdown;profile="urn:air:agent-skills"',
            updatedAt="soon",
        ),
    )
    async with serving(open_crawl, acme) as registry:
        for expression, found in ACCEPTED:
            assert await _found(registry, expression) == found, expression
            assert (await registry.listing(filter=expression, pageSize="1"))["total"] == len(found), expression
        for expression, token in REFUSED:
            answer = await registry.listed(filter=expression)
            assert answer.error() == (400, "INVALID_ARGUMENT"), expression
            assert token in answer.json["message"], expression


async def test_no_filter_text_breaks_an_answer(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(entry("a"))
    async with serving(open_crawl, acme) as registry:
        for text in ("\x00", "a\x00b", "🙂", "\\\\", "%", "_", "\x7f"):
            for field in ("displayName", "publisherId"):
                assert await registry.names(filter=f"{field} = '{text}'") == [], (field, text)
        for raw in ("filter=%ff", "filter=%ED%A0%80", "filter=%", "orderBy=%00", "pageToken=%00", "filter=%00"):
            answer = await registry.get(f"/api/v1/agents?{raw}")
            assert answer.error() == (400, "INVALID_ARGUMENT"), raw


ORDERS = [
    ("", "abcde"),
    ("identifier", "abcde"),
    ("identifier DESC", "edcba"),
    # Names are compared without their case; equal ones fall back to the identifier.
    ("displayName", "cdeab"),
    ("displayName ASC", "cdeab"),
    ("displayName DESC", "abdec"),
    ("name", "cdeab"),
    ("name desc", "abdec"),
    ("NAME Desc", "abdec"),
    ("displayName, identifier DESC", "cedba"),
    ("updatedAt", "bceda"),
    ("updated_at DESC", "adbce"),
    ("updatedAt DESC, displayName", "adceb"),
    (" updatedAt  DESC ,  displayName DESC ", "adbec"),
    ("createdAt", "abdec"),
    ("created_at DESC", "cabde"),
    ("identifier, displayName DESC", "abcde"),
]


async def test_entries_come_in_the_order_asked_for(web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock) -> None:
    acme = web.site("acme")
    first = [
        entry("a", displayName="same", updatedAt="2026-05-01T00:00:00Z"),
        entry("b", displayName="Same", updatedAt="2026-02-01T00:00:00Z"),
        entry("d", displayName="ECHO", updatedAt="2026-04-01T00:00:00Z"),
        entry("e", displayName="echo", updatedAt="2026-02-01T00:00:00Z"),
    ]
    acme.manifest(*first)
    async with serving(open_crawl, acme) as registry:
        clock.advance(hours=2)
        acme.manifest(*first, entry("c", displayName="Delta", updatedAt="2026-02-01T00:00:00Z"))
        await registry.crawl.run()
        for order, names in ORDERS:
            parameters = {"orderBy": order} if order else {}
            listed = await registry.names(**parameters)
            assert "".join(listed) == names, order
            paged: list[str] = []
            token: dict[str, str] = {}
            while len(paged) < 5:
                page = await registry.listing(**parameters, pageSize="2", **token)
                paged += [item["identifier"][-1] for item in page["items"]]
                assert page["total"] == 5
                token = {"pageToken": page["pageToken"]} if "pageToken" in page else {}
            assert paged == listed, order
            assert token == {}
        for order in ("score", "displayName UP", "displayName ASC DESC", ",", "displayName,", "-displayName", "type"):
            answer = await registry.listed(orderBy=order)
            assert answer.error() == (400, "INVALID_ARGUMENT"), order


async def test_paging_misses_nothing_while_entries_come_and_go(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    entries = {n: entry(f"n{n:02}") for n in range(10)}
    acme.manifest(*entries.values())
    async with serving(open_crawl, acme) as registry:
        page = await registry.listing(pageSize="4")
        seen = [item["identifier"][-2:] for item in page["items"]]
        # The last one shown goes, and one comes before it: what was not shown yet stays where it is.
        acme.manifest(entry("n00-new"), *(value for n, value in entries.items() if n != 3))
        await registry.crawl.run()
        while "pageToken" in page:
            page = await registry.listing(pageSize="4", pageToken=page["pageToken"])
            seen += [item["identifier"][-2:] for item in page["items"]]
        assert seen == [f"{n:02}" for n in range(10)]


async def test_a_page_token_belongs_to_its_list(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(*(entry(f"n{n}") for n in range(5)))
    async with serving(crawl_sqlite, acme) as registry:
        token = (await registry.listing(pageSize="2", filter="displayName = n"))["pageToken"]
        assert (await registry.listed(pageSize="3", filter="displayName = n", pageToken=token)).status == 200
        wrong: list[dict[str, Any]] = [
            {"pageToken": token},
            {"pageToken": token, "filter": "displayName = N"},
            {"pageToken": token, "filter": "displayName = n", "orderBy": "displayName"},
            {"pageToken": token, "filter": "displayName = n", "orderBy": "identifier DESC"},
            {"pageToken": token[:-1], "filter": "displayName = n"},
            {"pageToken": "x" + token, "filter": "displayName = n"},
            {"pageToken": "", "filter": "displayName = n"},
            {"pageToken": "x" * 5000},
        ]
        for parameters in wrong:
            answer = await registry.listed(**parameters)
            assert answer.error() == (400, "INVALID_ARGUMENT"), parameters
        of_search = (await registry.search("tool", pageSize=2))["pageToken"]
        assert (await registry.listed(pageToken=of_search)).error() == (400, "INVALID_ARGUMENT")


@pytest.mark.parametrize(
    "query",
    [
        "pageSize=0",
        "pageSize=-1",
        "pageSize=1.5",
        "pageSize=ten",
        "pageSize=",
        "pageSize=%D9%A3",
        "pageSize=1e2",
        "pageSize=2&pageSize=3",
        "filter=&filter=",
        "limit=5",
        "pagesize=5",
        "text=weather",
    ],
)
async def test_a_parameter_that_cannot_be_meant_is_refused(crawl_sqlite: OpenCrawl, query: str) -> None:
    async with serving(crawl_sqlite) as registry:
        answer = await registry.get(f"/api/v1/agents?{query}")
        assert answer.error() == (400, "INVALID_ARGUMENT")
        assert query.partition("=")[0] in answer.json["message"]


async def test_an_entry_is_listed_under_its_publisher_and_found_by_it(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    """FR-119: list, search and retrieve read the same store."""
    site = web.site("directory")
    site.manifest(entry("directory", "directory.example"))
    async with serving(open_crawl, site) as registry:
        identifier = "urn:air:directory.example:tool:directory"
        assert identifier in await registry.found("directory", filter={"publisher": ["directory.example"]})
        listed = await registry.get("/api/v1/agents?filter=publisherId%20%3D%20%27directory.example%27")
        assert [item["identifier"] for item in listed.json["items"]] == [identifier]
        assert (await registry.get(f"/api/v1/agents/{identifier}")).status == 200
