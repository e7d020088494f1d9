"""What the live card adds to the search for an entry: its words, and its values under names of their own."""

from typing import Any

import pytest

from tests.conftest import OpenCrawl
from tests.fakes.cards import CARD, agent_card, agent_entry, server_card, skill, urn
from tests.fakes.harness import ALL_SURFACES
from tests.fakes.registry import serving
from tests.fakes.web import FakeWeb, Site

OURS = "urn:ardvark:terms:artifact."
MCP = "application/mcp-server-card+json"
SERVER = "/cards/echo.json"


def publish(site: Site) -> Any:
    site.json(CARD, agent_card(skills=[skill("zanzibar", "spices", examples=["cloves by sea"])]))
    site.json(SERVER, server_card(tools=[{"name": "echo.back"}]))
    echo = agent_entry("echo", url=SERVER, type=MCP, displayName="Echo", tags=[], capabilities=[])
    site.manifest(agent_entry(capabilities=[], tags=[]), echo)
    return {"origin": site.origin, "surfaces": list(ALL_SURFACES)}


async def test_an_entry_is_found_by_what_its_card_says(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    origin = publish(web.site("acme"))
    async with serving(open_crawl, origin) as registry:
        for text in ("zanzibar", "spices", "cloves"):
            assert await registry.found(text) == [urn()], text
        assert await registry.found("echo.back") == [urn("echo")]


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("kind", "a2a.card", ["planner"]),
        ("kind", "mcp.card", ["echo"]),
        ("skills", "zanzibar", ["planner"]),
        ("tags", "spices", ["planner"]),
        ("tools", "echo.back", ["echo"]),
        ("bindings", "JSONRPC", ["planner"]),
        ("bindings", "streamable-http", ["echo"]),
        ("protocolVersions", "1.0", ["planner"]),
        ("capabilities", "streaming", ["planner"]),
        ("inputModes", "text/plain", ["planner"]),
        ("skills", "lamu", []),
    ],
)
async def test_entries_are_filtered_by_what_their_cards_offer(
    web: FakeWeb, crawl_sqlite: OpenCrawl, name: str, value: str, found: list[str]
) -> None:
    origin = publish(web.site("acme"))
    async with serving(crawl_sqlite, origin) as registry:
        buckets = await registry.counts(OURS + name)
        assert buckets.get(value, 0) == len(found)
        counted = await registry.explore("type", filter={OURS + name: value})
        assert sum(bucket["count"] for bucket in counted["type"]["buckets"]) == len(found)
        for text in ("planner", "echo"):
            expected = [urn(text)] if text in found else []
            assert await registry.found(text, filter={OURS + name: value}) == expected


async def test_the_entry_stays_as_published_whatever_its_card_says(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    origin = publish(web.site("acme"))
    async with serving(crawl_sqlite, origin) as registry:
        answer = await registry.get(f"/api/v1/agents/{urn()}")
        assert answer.json["tags"] == answer.json["capabilities"] == []
        assert b"zanzibar" not in answer.body
