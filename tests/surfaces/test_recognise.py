"""What a document is, decided by its shape."""

import itertools
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crawler.surfaces.mcp import read_server_card
from crawler.surfaces.recognise import Kind, recognise
from tests.surfaces.documents import anything, lookalikes

SLASH = "example.acme/echo"
REMOTES = [{"type": "streamable-http", "url": "https://acme.example/mcp"}]
CARD_SCHEMA = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
SERVER_SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
SKILLS_SCHEMA = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
SKILL = {"id": "plan", "name": "Plan"}

# One row or more for each test of the classification, in its order.
ROWS = [
    (Kind.MADP_AGENT, {"protocol": "agent-seo/1.0"}),
    (Kind.MADP_AGENT, {"protocol": "agent-seo/draft"}),
    (Kind.MANIFEST, {"entries": []}),
    (Kind.MANIFEST, {"specVersion": "1.0", "entries": []}),
    (Kind.A2A_CARD, {"name": "A", "supportedInterfaces": []}),
    (Kind.A2A_CARD, {"name": "A", "supported_interfaces": []}),
    (Kind.A2A_CARD, {"name": "A", "supportedInterfaces": [], "url": "https://acme.example/"}),
    (Kind.A2A_CARD, {"name": "A", "url": "https://acme.example/", "skills": [], "capabilities": {}}),
    (Kind.A2A_CARD, {"name": "A", "url": "https://acme.example/", "skills": []}),
    (Kind.A2A_CARD, {"name": "A", "url": "https://acme.example/", "protocolVersion": "0.3.0"}),
    (Kind.MCP_CARD, {"$schema": CARD_SCHEMA}),
    (Kind.MCP_CARD, {"name": SLASH, "remotes": REMOTES}),
    (Kind.MCP_CARD, {"serverInfo": {"name": "echo"}}),
    (Kind.MCP_CARD, {"mcp_version": "2025-06-18"}),
    (Kind.MCP_CARD, {"endpoints": {"streamable_http": "/mcp"}}),
    (Kind.MCP_CARD, {"server_name": "echo", "endpoints": {"sse": "/sse"}}),
    (Kind.MCP_SERVER, {"name": SLASH, "packages": []}),
    (Kind.MCP_SERVER, {"$schema": SERVER_SCHEMA}),
    (Kind.MCP_SERVER, {"$schema": SERVER_SCHEMA, "name": SLASH, "remotes": REMOTES}),
    (Kind.ENTRY, {"identifier": "urn:air:acme.example:echo", "type": "application/json"}),
    (Kind.ENTRY, {"identifier": "urn:ai:acme.example:echo", "type": "application/json"}),
    (Kind.SKILLS_INDEX, {"$schema": SKILLS_SCHEMA, "skills": []}),
    # An excerpt of a card, without its address.
    (Kind.A2A_CARD, {"name": "A", "skills": [SKILL]}),
    (Kind.MCP_CARD, {"name": "A", "tools": [{"name": "search"}]}),
]


@pytest.mark.parametrize(("kind", "document"), ROWS)
def test_each_shape_has_its_kind(kind: Kind, document: dict[str, Any]) -> None:
    assert recognise(document) is kind


@pytest.mark.parametrize(
    "document",
    [
        None,
        True,
        3,
        "agent-seo/1.0",
        [],
        [{"name": "A", "supportedInterfaces": []}],
        {},
        {"protocol": 1},
        {"protocol": "Agent-SEO/1.0"},
        {"protocol": "https"},
        {"entries": {}},
        {"supportedInterfaces": []},
        {"name": "", "supportedInterfaces": []},
        {"name": " ", "url": "https://acme.example/", "skills": []},
        {"name": 1, "url": "https://acme.example/", "skills": []},
        {"name": "A", "url": "https://acme.example/"},
        {"name": "A", "url": "https://acme.example/", "capabilities": {"rest": True}},
        {"name": "A", "skills": []},
        {"name": "A", "skills": ["sql", "python"]},
        {"name": "A", "tools": []},
        {"name": "A", "remotes": []},
        {"name": "a/b/c", "remotes": REMOTES},
        {"name": "A", "packages": []},
        {"serverInfo": "echo"},
        {"mcp_version": None},
        {"mcp_version": False},
        {"endpoints": {"api": "/v1"}},
        {"endpoints": "streamable_http"},
        {"identifier": "urn:air:acme.example:echo"},
        {"identifier": "did:web:acme.example", "type": "application/json"},
        {"skills": []},
        {"$schema": 5, "skills": []},
    ],
)
def test_what_lacks_the_marks_of_every_kind_is_unknown(document: Any) -> None:
    assert recognise(document) is Kind.UNKNOWN


# One mark for each test, in the order in which they are asked.
ORDER = [
    {"protocol": "agent-seo/1.0"},
    {"entries": []},
    {"name": SLASH, "supportedInterfaces": []},
    {"serverInfo": {}},
    {"mcp_version": "1"},
    {"name": SLASH, "packages": []},
    {"name": SLASH, "remotes": []},
    {"identifier": "urn:air:acme.example:echo", "type": "text/plain"},
    {"$schema": SKILLS_SCHEMA, "skills": []},
]


@pytest.mark.parametrize(("earlier", "later"), list(itertools.combinations(ORDER, 2)))
def test_the_earlier_test_decides_what_has_the_marks_of_two_kinds(
    earlier: dict[str, Any], later: dict[str, Any]
) -> None:
    assert recognise({**later, **earlier}) is recognise(earlier)


def test_the_schema_of_a_server_card_counts_before_what_else_it_holds() -> None:
    document = {"$schema": CARD_SCHEMA, "name": SLASH, "packages": [], "serverInfo": {}, "mcp_version": "1"}
    assert recognise(document) is Kind.MCP_CARD
    assert read_server_card(document, "https://acme.example/card").shape == "2127"


def test_fr05_a_card_is_a_card_under_the_old_name_and_the_new() -> None:
    """The path plays no part: the document alone decides."""
    card = {
        "name": "Planner",
        "protocolVersion": "0.3.0",
        "version": "1.0.0",
        "url": "https://origin.example/a2a",
        "capabilities": {},
        "skills": [],
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
    }
    assert recognise(card) is Kind.A2A_CARD


def test_fr13_a_server_card_is_one_in_every_shape() -> None:
    older = {"mcp_version": "1", "server_name": "echo", "endpoints": {"streamable_http": "https://origin.example/mcp"}}
    newer = {"name": "example.origin/echo", "version": "1.2.0", "description": "d", "remotes": REMOTES}
    assert recognise(older) is recognise(newer) is Kind.MCP_CARD


def test_fr14_a_document_that_is_no_agent_is_unknown() -> None:
    document = {
        "name": "Shop",
        "description": "REST only",
        "a2a": {"supported": False},
        "mcp": {"url": "https://origin.example/mcp"},
    }
    assert recognise(document) is Kind.UNKNOWN


@pytest.mark.parametrize(
    "more",
    [
        {"skills": []},
        {"tools": []},
        {"url": "https://origin.example/"},
        {"version": "1", "capabilities": ["search"]},
        {"endpoints": {"products": "/products.json"}},
        {"protocols": {"a2a": None, "mcp_version": None}},
        {"mcp_version": None, "supportedInterfaces": None},
        {"protocol": "https", "agent_type": "none"},
    ],
)
def test_fr14_no_ad_hoc_manifest_becomes_an_agent(more: dict[str, Any]) -> None:
    assert recognise({"name": "Shop", "description": "REST only", **more}) is Kind.UNKNOWN


def test_fr99_a_card_with_damaged_members_is_still_a_card() -> None:
    document = {
        "name": "Q",
        "version": 1,
        "provider": "Corp",
        "skills": None,
        "capabilities": ["streaming"],
        "supportedInterfaces": {"url": "https://o.example"},
    }
    assert recognise(document) is Kind.A2A_CARD


@given(st.one_of(anything(), lookalikes()))
@example({"name": "\x00", "url": "", "skills": [None]})
@example({"$schema": "/v1/server-card.schema.json", "remotes": None})
def test_recognise_answers_every_value_and_agrees_with_the_reader(value: Any) -> None:
    kind = recognise(value)
    assert kind in Kind
    if kind in (Kind.MCP_CARD, Kind.MCP_SERVER):
        assert read_server_card(value, "https://acme.example/.well-known/mcp.json").kind is kind
