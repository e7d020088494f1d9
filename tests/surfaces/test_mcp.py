"""MCP server cards: four shapes and the registry's server.json, and the one form they are brought to."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.surfaces.mcp import ServerCard, read_server_card
from crawler.surfaces.recognise import Kind, recognise
from index.urls import scheme_of
from tests.surfaces.documents import anything, lookalikes

AT = "https://acme.example/.well-known/mcp/server-card.json"
ENDPOINT = "https://acme.example/mcp"
REMOTE = {"type": "streamable-http", "url": ENDPOINT}
SCHEMA = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
V2127 = {
    "$schema": SCHEMA,
    "name": "example.acme/echo",
    "version": "1.2.0",
    "description": "Echoes.",
    "remotes": [REMOTE],
}
V1649 = {
    "$schema": "https://static.modelcontextprotocol.io/schemas/mcp-server-card/v1.json",
    "version": "1.0",
    "protocolVersion": "2025-06-18",
    "serverInfo": {"name": "echo", "title": "Echo", "version": "1.2.0"},
    "description": "Echoes.",
    "documentationUrl": "https://acme.example/docs",
    "transport": {"type": "streamable-http", "endpoint": "/mcp"},
    "capabilities": {"tools": {}},
    "authentication": {"required": True, "schemes": ["bearer"]},
    "instructions": "Say something.",
    "tools": [{"name": "lookup", "description": "Looks up.", "inputSchema": {}}, {"name": "fetch"}],
}
V1960 = {
    "mcp_version": "2025-06-18",
    "server_name": "echo",
    "server_version": "1.2.0",
    "endpoints": {"streamable_http": "/mcp", "sse": "https://acme.example/sse", "websocket": "wss://acme.example/ws"},
}
SERVER_JSON = {
    "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
    "name": "example.acme/echo",
    "version": "1.2.0",
    "description": "Echoes.",
    "packages": [
        {"registryType": "npm", "identifier": "@acme/echo", "version": "1.2.0", "transport": {"type": "stdio"}}
    ],
}
LIKE_2127 = {name: member for name, member in V2127.items() if name != "$schema"}


def read(value: dict[str, Any], at: str = AT) -> ServerCard:
    return read_server_card(value, at)


def problems(card: ServerCard) -> list[tuple[str, str]]:
    return [(problem.code, problem.pointer) for problem in card.problems]


def without(value: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: member for name, member in value.items() if name not in names}


# --- the shapes -------------------------------------------------------------------------------------------------------


def test_a_card_of_2127() -> None:
    value = {
        **V2127,
        "title": "Echo",
        "websiteUrl": "https://acme.example",
        "repository": {"url": "https://git.example/acme/echo", "source": "git"},
        "remotes": [
            {
                **REMOTE,
                "headers": [{"name": "X-Api-Key", "isRequired": True, "isSecret": True}, {"name": "X-Trace"}],
                "supportedProtocolVersions": ["2025-11-25", "2025-06-18"],
            },
            {"type": "sse", "url": "https://acme.example/sse", "supportedProtocolVersions": ["2025-06-18"]},
        ],
    }
    card = read(value)
    assert (card.kind, card.shape, problems(card)) == (Kind.MCP_CARD, "2127", [])
    assert card.normal == {
        "name": "example.acme/echo",
        "title": "Echo",
        "version": "1.2.0",
        "description": "Echoes.",
        "websiteUrl": "https://acme.example",
        "repository": "https://git.example/acme/echo",
        "remotes": [
            {
                **REMOTE,
                "headers": {"X-Api-Key": True, "X-Trace": False},
                "supportedProtocolVersions": ["2025-11-25", "2025-06-18"],
            },
            {"type": "sse", "url": "https://acme.example/sse", "supportedProtocolVersions": ["2025-06-18"]},
        ],
        "protocolVersions": ["2025-11-25", "2025-06-18"],
    }


def test_a_card_like_2127_lacks_its_schema() -> None:
    card = read(LIKE_2127)
    assert (card.kind, card.shape) == (Kind.MCP_CARD, "2127-like")
    assert [(p.code, p.severity, p.pointer, p.clause) for p in card.problems] == [
        ("mcp.schema", "warning", "/$schema", "SEP-2127")
    ]
    assert card.normal == read(V2127).normal


def test_a_card_of_1649() -> None:
    card = read(V1649)
    assert (card.kind, card.shape, problems(card)) == (Kind.MCP_CARD, "1649", [])
    assert card.normal == {
        "name": "echo",
        "title": "Echo",
        "version": "1.2.0",
        "description": "Echoes.",
        "websiteUrl": "https://acme.example/docs",
        "remotes": [REMOTE],
        "protocolVersions": ["2025-06-18"],
        "authRequired": True,
        "authSchemes": ["bearer"],
        "instructions": "Say something.",
        "tools": [{"name": "lookup", "description": "Looks up."}, {"name": "fetch"}],
    }


def test_a_card_of_1960() -> None:
    card = read(V1960)
    assert (card.kind, card.shape, problems(card)) == (Kind.MCP_CARD, "1960", [])
    assert card.normal == {
        "name": "echo",
        "version": "1.2.0",
        "remotes": [
            REMOTE,
            {"type": "sse", "url": "https://acme.example/sse"},
            {"type": "websocket", "url": "wss://acme.example/ws"},
        ],
        "protocolVersions": ["2025-06-18"],
    }


def test_a_server_json_of_packages_only_names_nothing_to_connect_to() -> None:
    card = read(SERVER_JSON)
    assert (card.kind, card.shape, problems(card)) == (Kind.MCP_SERVER, "server.json", [])
    assert card.normal == {
        "name": "example.acme/echo",
        "version": "1.2.0",
        "description": "Echoes.",
        "remotes": [],
        "packages": [{"registryType": "npm", "identifier": "@acme/echo", "version": "1.2.0"}],
        "protocolVersions": [],
    }


def test_a_server_json_with_remotes_keeps_both() -> None:
    card = read({**SERVER_JSON, "remotes": [REMOTE]})
    assert card.kind is Kind.MCP_SERVER
    assert card.normal["remotes"] == [REMOTE]
    assert len(card.normal["packages"]) == 1


# --- the order of detection -------------------------------------------------------------------------------------------

ORDER = [
    ("2127", {"$schema": SCHEMA}),
    ("1649", {"serverInfo": {"name": "echo"}}),
    ("1960", {"mcp_version": "1"}),
    ("1960", {"endpoints": {"streamable_http": "/mcp"}}),
    ("server.json", {"$schema": SERVER_JSON["$schema"]}),
    ("server.json", {"name": "example.acme/echo", "packages": []}),
    ("2127-like", {"name": "example.acme/echo", "remotes": []}),
]


@pytest.mark.parametrize("number", range(len(ORDER)))
def test_the_most_telling_mark_decides_the_shape(number: int) -> None:
    """Marks of all later shapes beside it change nothing."""
    shape, mark = ORDER[number]
    everything: dict[str, Any] = {}
    for _, later in reversed(ORDER[number:]):
        everything |= later
    for value in (mark, everything):
        card = read(value)
        assert (card.shape, card.kind) == (shape, recognise(value))


def test_a_card_of_none_of_the_shapes_is_unversioned() -> None:
    card = read({"name": "Registry", "tools": ["list", {"name": "show", "description": "Shows."}]})
    assert (card.kind, card.shape) == (Kind.MCP_CARD, "unversioned")
    assert card.normal["tools"] == [{"name": "list"}, {"name": "show", "description": "Shows."}]
    assert problems(card) == [("mcp.no_remote", "")]


@pytest.mark.parametrize("older", [V1649, V1960])
def test_remotes_count_before_the_members_of_older_shapes(older: dict[str, Any]) -> None:
    newer = {"type": "sse", "url": "https://acme.example/new"}
    card = read({**older, "remotes": [newer]})
    assert card.normal["remotes"] == [newer]
    assert problems(card) == [("mcp.mixed_shapes", "/transport" if older is V1649 else "/endpoints")]


def test_a_card_of_2127_that_has_only_the_older_member_is_not_without_endpoint() -> None:
    card = read({**without(V2127, "remotes"), "transport": V1649["transport"]})
    assert card.normal["remotes"] == [REMOTE]
    assert problems(card) == [("mcp.mixed_shapes", "/transport")]


# --- endpoints --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("endpoint", "resolved"),
    [
        ("/mcp", "https://acme.example/mcp"),
        ("mcp", "https://acme.example/mcp"),
        ("./mcp?x=1", "https://acme.example/mcp?x=1"),
        ("//mcp.acme.example/v1", "https://mcp.acme.example/v1"),
        ("https://other.example/mcp", "https://other.example/mcp"),
        ("HTTPS://Other.example/MCP", "HTTPS://Other.example/MCP"),
        (" /mcp ", "https://acme.example/mcp"),
        # Variables stay as they are written.
        ("https://{tenant}.acme.example/mcp", "https://{tenant}.acme.example/mcp"),
        ("/{tenant}/mcp", "https://acme.example/{tenant}/mcp"),
        ("{base_url}/mcp", "{base_url}/mcp"),
    ],
)
def test_an_endpoint_is_resolved_against_the_origin_of_its_card(endpoint: str, resolved: str) -> None:
    for value in (
        {**V1649, "transport": {"type": "streamable-http", "endpoint": endpoint}},
        {**V1960, "endpoints": {"streamable_http": endpoint}},
        {**V2127, "remotes": [{"type": "streamable-http", "url": endpoint}]},
    ):
        card = read(value)
        assert card.normal["remotes"] == [{"type": "streamable-http", "url": resolved}]
        assert problems(card) == []


@pytest.mark.parametrize("endpoint", ["javascript:alert(1)", "stdio:echo", "//", "/" + "a" * 3000])
def test_an_endpoint_that_is_no_address_is_left_out(endpoint: str) -> None:
    card = read({**V1649, "transport": {"type": "streamable-http", "endpoint": endpoint}})
    assert card.normal["remotes"] == []
    assert problems(card) == [("mcp.endpoint", "/transport/endpoint"), ("mcp.no_remote", "")]


def test_the_port_of_the_cards_origin_is_kept() -> None:
    card = read(V1649, at="https://acme.example:8443/.well-known/mcp.json")
    assert card.normal["remotes"][0]["url"] == "https://acme.example:8443/mcp"


def test_remotes_said_twice_count_once() -> None:
    other = {"type": "sse", "url": ENDPOINT}
    assert read({**V2127, "remotes": [REMOTE, other, REMOTE]}).normal["remotes"] == [REMOTE, other]


# --- faults -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "code", "severity", "pointer", "clause"),
    [
        (without(V2127, "name"), "missing", "warning", "/name", "SEP-2127"),
        (without(V2127, "version"), "missing", "warning", "/version", "SEP-2127"),
        ({**V2127, "description": ""}, "missing", "warning", "/description", "SEP-2127"),
        ({**V2127, "name": "echo"}, "name", "warning", "/name", "SEP-2127"),
        ({**V2127, "name": "a/b/c"}, "name", "warning", "/name", "SEP-2127"),
        ({**V2127, "name": "a/" + "b" * 199}, "long", "warning", "/name", "SEP-2127"),
        ({**V2127, "title": "t" * 101}, "long", "warning", "/title", "SEP-2127"),
        ({**V2127, "description": "d" * 101}, "long", "warning", "/description", "SEP-2127"),
        ({**V2127, "version": "1" * 256}, "long", "warning", "/version", "SEP-2127"),
        ({**V2127, "version": "^1.2"}, "version_range", "warning", "/version", "SEP-2127"),
        ({**V2127, "version": "1.x"}, "version_range", "warning", "/version", "SEP-2127"),
        ({**V2127, "version": ">=1.0 <2"}, "version_range", "warning", "/version", "SEP-2127"),
        ({**V2127, "remotes": [{**REMOTE, "type": "http"}]}, "transport", "warning", "/remotes/0/type", "SEP-2127"),
        ({**V2127, "remotes": []}, "no_remote", "warning", "", "SEP-2127"),
        (
            {**V2127, "$schema": "https://acme.example/v1/server-card.schema.json"},
            "schema",
            "warning",
            "/$schema",
            "SEP-2127",
        ),
        ({**V2127, "packages": []}, "mixed_shapes", "warning", "/packages", "SEP-2127"),
        ({**V2127, "transport": {}}, "mixed_shapes", "warning", "/transport", "SEP-2127"),
        ({**V2127, "tools": []}, "mixed_shapes", "info", "/tools", "SEP-2127"),
        ({**V1649, "serverInfo": {"version": "1"}}, "missing", "warning", "/serverInfo/name", "SEP-1649"),
        ({**V1649, "serverInfo": {"name": "e"}}, "missing", "warning", "/serverInfo/version", "SEP-1649"),
        (without(V1649, "protocolVersion"), "missing", "warning", "/protocolVersion", "SEP-1649"),
        (without(V1649, "transport"), "no_remote", "warning", "", "SEP-1649"),
        (without(V1960, "server_name"), "missing", "warning", "/server_name", "SEP-1960"),
        ({**V1960, "endpoints": {}}, "no_remote", "warning", "", "SEP-1960"),
        (without(SERVER_JSON, "version"), "missing", "warning", "/version", "server.json"),
        ({**SERVER_JSON, "name": "echo"}, "name", "warning", "/name", "server.json"),
        ({**SERVER_JSON, "packages": []}, "no_remote", "warning", "", "server.json"),
    ],
)
def test_faults_by_shape(value: dict[str, Any], code: str, severity: str, pointer: str, clause: str) -> None:
    assert [(p.code, p.severity, p.pointer, p.clause) for p in read(value).problems] == [
        (f"mcp.{code}", severity, pointer, clause)
    ]


@pytest.mark.parametrize("version", ["1.2.0", "1.0.0-rc.1+exp.5", "2025-06-18", "v2", "1.x-beta-y"])
def test_a_version_is_no_range(version: str) -> None:
    assert problems(read({**V2127, "version": version})) == []


def test_fr13_both_shapes_come_to_one_form_and_the_bytes_are_not_touched() -> None:
    older: dict[str, Any] = {
        "mcp_version": "1",
        "server_name": "echo",
        "endpoints": {"streamable_http": "https://origin.example/mcp"},
    }
    newer: dict[str, Any] = {
        "name": "example.origin/echo",
        "version": "1.2.0",
        "description": "d",
        "remotes": [{"type": "streamable-http", "url": "https://origin.example/mcp"}],
    }
    before = copy.deepcopy((older, newer))
    at = "https://origin.example/.well-known/mcp.json"
    remotes = [read_server_card(value, at).normal["remotes"] for value in (older, newer)]
    assert remotes[0] == remotes[1] == [{"type": "streamable-http", "url": "https://origin.example/mcp"}]
    assert (older, newer) == before


def test_fr67_the_tools_of_a_card_are_those_it_lists() -> None:
    """What the live endpoint offers beyond them cannot be told from the card, and is not added to it."""
    tools = read({**V1649, "tools": ["lookup", {"name": "fetch"}]}).normal["tools"]
    assert [tool["name"] for tool in tools] == ["lookup", "fetch"]
    assert "tools" not in read({**V1649, "tools": "dynamic"}).normal
    assert "tools" not in read(without(V1649, "tools")).normal
    assert read({**V1649, "tools": []}).normal["tools"] == []


def test_fr99_members_of_the_wrong_type_are_left_out_and_named() -> None:
    card = read(
        {
            **V1649,
            "serverInfo": {"name": 7, "version": "1"},
            "transport": "streamable-http",
            "authentication": {"required": "yes", "schemes": "bearer"},
            "tools": [{"title": "no name"}, 5, {"name": "fetch", "description": 3}],
        }
    )
    assert card.normal["tools"] == [{"name": "fetch"}]
    assert card.normal["remotes"] == []
    assert not {"authRequired", "authSchemes"} & card.normal.keys()
    wrong = [pointer for code, pointer in problems(card) if code == "mcp.wrong_type"]
    assert sorted(wrong) == [
        "/authentication/required",
        "/authentication/schemes",
        "/serverInfo/name",
        "/tools/0",
        "/tools/1",
        "/tools/2/description",
        "/transport",
    ]
    flat = read({**V2127, "remotes": [None, {**REMOTE, "headers": ["X"], "supportedProtocolVersions": [1]}]})
    assert flat.normal["remotes"] == [REMOTE]
    assert len(flat.problems) == 3


@given(
    st.dictionaries(st.text(max_size=6), anything(), max_size=4) | lookalikes(),
    st.sampled_from([AT, "https://[::1]:8443/card", "https://acme.example/"]),
)
def test_any_object_is_read_and_left_as_it_was(value: dict[str, Any], at: str) -> None:
    before = copy.deepcopy(value)
    card = read_server_card(value, at)
    assert value == before
    assert card.shape in {"2127", "2127-like", "1649", "1960", "server.json", "unversioned"}
    assert (card.kind is Kind.MCP_SERVER) == (card.shape == "server.json")
    for remote in card.normal["remotes"]:
        assert remote["url"].startswith("{") or scheme_of(remote["url"]) in {"http", "https", "ws", "wss"}
