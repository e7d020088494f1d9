"""Where an entry and its live document disagree, where documents of one origin do, and how long a copy lags."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from crawler.surfaces.a2a import read_card
from crawler.surfaces.mcp import read_server_card
from index.diff import ChangeClass
from index.drift import (
    CardView,
    Disagreement,
    Lag,
    Superseded,
    compare_cards_of_origin,
    compare_entry,
    compare_hybrid,
    compare_inline,
    compare_manifests,
    lag,
    stale_since,
)
from index.records import Severity

A2A, MCP = "application/a2a-agent-card+json", "application/mcp-server-card+json"
DIGEST = "a" * 64
NOW = datetime(2026, 5, 5, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


def card(**members: Any) -> dict[str, Any]:
    return {
        "name": "Weather",
        "description": "Forecasts for places.",
        "version": "2.0.0",
        "supportedInterfaces": [interface("https://acme.example/a2a")],
        "capabilities": {"streaming": True},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [skill("forecast", tags=["weather", "travel"]), skill("alerts", tags=["storms"])],
        "provider": {"organization": "Acme", "url": "https://www.acme.example"},
        **members,
    }


def interface(url: str, binding: str = "JSONRPC", version: str = "1.0") -> dict[str, str]:
    return {"url": url, "protocolBinding": binding, "protocolVersion": version}


def skill(identifier: str, **members: Any) -> dict[str, Any]:
    return {"id": identifier, "name": identifier.title(), "description": f"Does {identifier}.", "tags": [], **members}


def server_card(**members: Any) -> dict[str, Any]:
    return {
        "$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
        "name": "example.acme/weather",
        "title": "Weather",
        "version": "2.0.0",
        "description": "Forecasts for places.",
        "remotes": [
            {"type": "streamable-http", "url": "https://acme.example/mcp", "supportedProtocolVersions": ["2025-11-25"]}
        ],
        **members,
    }


def a2a(value: Mapping[str, Any] | None = None, digest: str | None = DIGEST, **members: Any) -> CardView:
    read = read_card(value if value is not None else card(**members))
    return CardView(read.kind, read.shape, read.normal, digest, read.legacy_interfaces)


def mcp(value: Mapping[str, Any] | None = None, digest: str | None = DIGEST, **members: Any) -> CardView:
    read = read_server_card(
        value if value is not None else server_card(**members), "https://acme.example/.well-known/mcp.json"
    )
    return CardView(read.kind, read.shape, read.normal, digest)


def nothing(kind: str) -> CardView:
    return CardView(kind, "", {}, None)


def entry(**members: Any) -> dict[str, Any]:
    return {
        "identifier": "urn:air:acme.example:weather",
        "displayName": "Weather",
        "type": A2A,
        "url": "https://acme.example/.well-known/agent-card.json",
        **members,
    }


def drifts(found: list[Disagreement]) -> list[Disagreement]:
    return [item for item in found if item.is_drift]


def brief(found: list[Disagreement]) -> list[tuple[str, str]]:
    return [(item.code, item.pointer) for item in found]


def compared(live: CardView, *older: CardView, declared: str | None = None, **members: Any) -> list[Disagreement]:
    declared = declared or (MCP if live.kind.startswith("mcp") else A2A)
    return compare_entry(entry(**members), declared, live, [past.normal for past in older])


def only(found: list[Disagreement]) -> Disagreement:
    assert len(found) == 1, found
    return found[0]


# --- what is there ----------------------------------------------------------------------------------------------------


def test_an_entry_that_says_what_the_card_says_has_no_drift_and_nothing_to_note() -> None:
    found = compared(
        a2a(),
        description="Forecasts for places.",
        version="2.0.0",
        tags=["weather", "travel", "storms"],
        capabilities=["forecast", "Alerts"],
        digest=f"sha256:{DIGEST}",
        metadata={"preferredInterface": interface("https://acme.example/a2a")},
    )
    assert found == []


@pytest.mark.parametrize("kind", ["gone", "absent"])
@pytest.mark.parametrize("declared", [A2A, "application/json", "application/ai-skill+md"])
def test_an_artifact_that_is_gone_is_an_error_for_every_entry(kind: str, declared: str) -> None:
    found = only(compared(nothing(kind), declared=declared, version="1", tags=["x"]))
    assert (found.code, found.severity, found.kind) == ("drift.artifact_gone", Severity.ERROR, ChangeClass.BREAKING)
    assert (found.pointer, found.catalog) == ("/url", "https://acme.example/.well-known/agent-card.json")


@pytest.mark.parametrize("kind", ["not_a_document", "malformed", "wrong_kind", "catch_all"])
def test_a_body_that_is_no_card_contradicts_an_entry_that_announces_one(kind: str) -> None:
    assert brief(drifts(compared(nothing(kind)))) == [("drift.artifact_gone", "/url")]


def test_fr92_an_endpoint_behind_an_entry_of_plain_json_is_an_observation() -> None:
    found = only(compared(nothing("not_a_document"), declared="application/json"))
    assert (found.code, found.is_drift) == ("drift.not_a_document", False)


def test_a_skill_is_no_json_and_need_not_be() -> None:
    live = CardView("not_a_document", "", {}, DIGEST)
    assert compared(live, declared="application/ai-skill+md", digest=f"sha256:{DIGEST}") == []
    changed = compared(live, declared="application/ai-skill+md", digest="sha256:" + "b" * 64)
    assert brief(changed) == [("drift.digest_mismatch", "/digest")]


@pytest.mark.parametrize("kind", ["unreachable", "withheld", "disallowed", "refused", "too_large", "", "new_word"])
def test_fr69_what_could_not_be_observed_disagrees_with_nothing(kind: str) -> None:
    assert compared(nothing(kind), version="1", digest="sha256:" + "b" * 64) == []


@pytest.mark.parametrize(
    ("stated", "code"),
    [
        (f"sha256:{DIGEST}", None),
        (f"SHA-256:{DIGEST.upper()}", None),
        ("sha256:" + "b" * 64, "drift.digest_mismatch"),
        ("sha512:" + "b" * 128, "drift.digest_unchecked"),
        ("sha256:short", "drift.digest_unchecked"),
        ("", "drift.digest_unchecked"),
        (17, None),
    ],
)
def test_the_digest_of_the_received_bytes_is_compared(stated: Any, code: str | None) -> None:
    found = compared(a2a(), digest=stated)
    assert [item.code for item in found] == ([code] if code else [])
    assert all(item.is_drift == (code == "drift.digest_mismatch") for item in found)


def test_the_digest_of_inline_data_says_nothing_about_an_address() -> None:
    inline = {"identifier": "urn:air:acme.example:weather", "data": card(), "digest": "sha256:" + "b" * 64}
    assert compare_entry(inline, A2A, a2a()) == []


def test_without_received_bytes_no_digest_is_judged() -> None:
    assert compared(a2a(digest=None), digest="sha256:" + "b" * 64) == []


@pytest.mark.parametrize(
    ("declared", "live", "mismatch"),
    [
        (A2A, a2a(), False),
        ("Application/A2A-Agent-Card+JSON; charset=utf-8", a2a(), False),
        ("application/agent-card+json", a2a(), False),
        ("application/mcp-server+json", mcp(), False),
        (MCP, mcp(), False),
        (MCP, a2a(), True),
        (A2A, mcp(), True),
        (A2A, nothing("unknown"), True),
        (A2A, nothing("ard.manifest"), True),
        ("application/ai-catalog+json", nothing("ard.manifest"), False),
        ("application/ai-catalog+json", a2a(), True),
        ("application/ai-skill+md", a2a(), True),
        ("application/ai-skill+md", nothing("unknown"), False),
        ("application/json", a2a(), False),
        ("application/json", nothing("unknown"), False),
        ("application/vnd.acme+json", mcp(), False),
        ("application/ai-registry+json", nothing("unknown"), False),
        ("application/madp+json", CardView("madp.agent", "agent-seo/1.0", {}, None), False),
        ("no type at all", a2a(), False),
    ],
)
def test_the_detected_kind_is_held_against_the_declared_type(declared: str, live: CardView, mismatch: bool) -> None:
    found = drifts(compared(live, declared=declared))
    assert brief(found) == ([("drift.type_mismatch", "/type")] if mismatch else [])


def test_a_file_that_is_a_card_and_an_agent_file_at_once_is_compared_as_what_the_entry_announces() -> None:
    live = CardView("madp.agent", "agent-seo/1.0", {"capabilities": ["x"], "card": a2a().normal}, DIGEST)
    found = only(drifts(compared(live, version="1.9")))
    assert (found.code, found.live_pointer) == ("drift.version_mismatch", "/card/version")
    assert brief(compared(live, declared="application/madp+json", capabilities=["x"])) == []


# --- version and words ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stated", "live", "mismatch"),
    [
        ("2.0.0", "2.0.0", False),
        ("2", "2.0.0", False),
        ("v2.0", "2.0.0", False),
        (" 2.0.0 ", "2.0.0", False),
        ("1.9.0", "2.0.0", True),
        ("2.0.0-rc.1", "2.0.0", True),
        ("2.0.0+a", "2.0.0+b", True),
        ("spring", "spring", False),
        ("spring", "summer", True),
        ("", "2.0.0", False),
        ("2.0.0", "", False),
        (2, "2.0.0", False),
    ],
)
def test_versions_are_compared_by_what_they_say(stated: Any, live: str, mismatch: bool) -> None:
    found = drifts(compared(a2a(version=live), version=stated))
    assert brief(found) == ([("drift.version_mismatch", "/version")] if mismatch else [])
    assert all((item.catalog, item.live, item.severity) == (stated, live, Severity.WARNING) for item in found)


def test_the_version_of_a_server_is_that_of_its_older_card_too() -> None:
    older_shape = {"serverInfo": {"name": "weather", "version": "2.0.0"}, "transport": {"endpoint": "/mcp"}}
    found = only(drifts(compared(mcp(older_shape), version="1.0.0", displayName="weather")))
    assert (found.code, found.kind, found.live) == ("drift.version_mismatch", ChangeClass.VERSION_ONLY, "2.0.0")


@pytest.mark.parametrize("member", ["displayName", "description"])
def test_own_words_of_the_catalog_are_its_choice(member: str) -> None:
    found = only(compared(a2a(), a2a(name="Elsewhere", description="Else."), **{member: "The best of all."}))
    assert not found.is_drift
    assert found.pointer == f"/{member}"
    assert found.kind is ChangeClass.COSMETIC


@pytest.mark.parametrize(("member", "of_card"), [("displayName", "name"), ("description", "description")])
def test_words_of_an_older_card_are_a_stale_copy(member: str, of_card: str) -> None:
    found = only(compared(a2a(), a2a(**{of_card: "What it said\nbefore."}), **{member: "What it said before."}))
    assert (found.code, found.severity, found.members) == ("drift.stale_copy", Severity.WARNING, (member,))
    assert (found.pointer, found.live_pointer) == (f"/{member}", f"/{of_card}")


def test_words_that_the_card_took_up_again_are_no_stale_copy() -> None:
    assert compared(a2a(), a2a(name="Climate"), a2a(name="Weather"), displayName="Weather") == []


def test_a_server_is_known_by_its_title_and_by_its_name() -> None:
    assert compared(mcp(), displayName="Weather") == []
    assert compared(mcp(), displayName="example.acme/weather") == []
    stale = compared(mcp(), mcp(title="Rain"), displayName="Rain")
    assert brief(stale) == [("drift.stale_copy", "/displayName")]


def test_fr63_a_description_with_running_figures_is_no_stale_copy() -> None:
    live, before = (a2a(description=f"Lists {count} items, 3.5k of them new.") for count in (813, 812))
    found = only(compared(live, before, description="Lists 812 items, 3.5k of them new."))
    assert (found.code, found.is_drift) == ("drift.description_differs", False)


def test_fr63_a_changed_address_is_drift_whatever_the_figures_do() -> None:
    live = a2a(description="Lists 813 items.", supportedInterfaces=[interface("https://new.example/a2a")])
    found = compared(live, description="Lists 812 items.", metadata={"endpoint": "https://acme.example/a2a"})
    assert brief(drifts(found)) == [("drift.interface_changed", "/metadata/endpoint")]


# --- tags and capabilities --------------------------------------------------------------------------------------------


def test_each_tag_that_the_card_no_longer_has_is_drift_of_its_own() -> None:
    found = drifts(compared(a2a(), tags=["weather", "maps", "TRAVEL", "storms", "fishing"]))
    assert brief(found) == [("drift.tag_removed", "/tags/1"), ("drift.tag_removed", "/tags/4")]
    assert {(item.kind, item.severity) for item in found} == {(ChangeClass.SEARCH, Severity.WARNING)}
    assert [item.catalog for item in found] == ["maps", "fishing"]


def test_a_tag_that_the_entry_lacks_is_an_observation() -> None:
    found = compared(a2a(), tags=["weather", "travel"])
    assert [(item.code, item.live, item.live_pointer, item.is_drift) for item in found] == [
        ("drift.tag_missing", "storms", "/skills/1/tags/0", False)
    ]


def test_tags_are_compared_only_where_the_card_has_some_to_compare() -> None:
    assert compared(a2a(skills=[]), tags=["maps"]) == []
    assert compared(mcp(), tags=["maps"]) == []
    assert compared(a2a()) == []


def test_a_drift_keeps_its_key_when_lists_change_their_order() -> None:
    one = drifts(compared(a2a(), tags=["maps", "weather", "travel", "storms"], capabilities=["forecast", "radar"]))
    shuffled = a2a(skills=[skill("alerts", tags=["storms"]), skill("forecast", tags=["travel", "weather"])])
    two = drifts(compared(shuffled, tags=["storms", "travel", "weather", "maps"], capabilities=["radar", "forecast"]))
    assert [item.pointer for item in one] != [item.pointer for item in two]
    assert {item.key for item in one} == {item.key for item in two}


def test_a_drift_keeps_its_key_while_the_values_move_on() -> None:
    one, two = (only(drifts(compared(a2a(version=live), version="1.0"))) for live in ("2.0", "3.0"))
    assert one.key == two.key


def test_a_key_is_short_whatever_the_value_is() -> None:
    keys = {item.key for item in drifts(compared(a2a(), tags=["x" * 5000, "x" * 5001, "x" * 5000 + "\ud800"]))}
    assert len(keys) == 3
    assert all(len(key) <= 200 for key in keys)


@pytest.mark.parametrize("name", ["forecast", "Forecast", "FORECAST", "alerts"])
def test_a_capability_is_found_by_id_or_name_in_any_case(name: str) -> None:
    assert compared(a2a(), capabilities=[name]) == []


def test_separators_in_a_capability_do_not_matter() -> None:
    live = a2a(skills=[skill("book-flight"), skill("x", name="Träger finden")])
    assert compared(live, capabilities=["book_flight", "Book Flight", "bookFlight", "trager-finden"]) == []


def test_a_capability_that_an_older_card_had_is_removed() -> None:
    before = a2a(skills=[skill("forecast"), skill("radar")])
    found = only(compared(a2a(skills=[skill("forecast")]), before, capabilities=["radar"]))
    assert (found.code, found.kind, found.pointer) == (
        "drift.capability_removed",
        ChangeClass.BREAKING,
        "/capabilities/0",
    )
    assert found.is_drift


def test_a_capability_beside_one_that_names_a_skill_is_removed() -> None:
    found = drifts(compared(a2a(), capabilities=["forecast", "radar"]))
    assert brief(found) == [("drift.capability_removed", "/capabilities/1")]


def test_words_that_never_named_a_skill_are_an_observation() -> None:
    found = compared(a2a(), capabilities=["realtime", "multi-turn"])
    assert {(item.code, item.is_drift) for item in found} == {("drift.capability_unknown", False)}


def test_words_of_the_protocol_are_no_skills_even_beside_some() -> None:
    assert compared(a2a(), capabilities=["forecast", "streaming"]) == []
    found = only(compared(a2a(), capabilities=["forecast", "push-notifications"]))
    assert (found.code, found.is_drift) == ("drift.capability_unknown", False)


def test_the_tools_of_a_server_are_capabilities_where_its_card_lists_them() -> None:
    listed = mcp(tools=[{"name": "lookup"}, "fetch"])
    assert compared(listed, capabilities=["lookup", "fetch"]) == []
    assert brief(drifts(compared(listed, capabilities=["lookup", "report"]))) == [
        ("drift.capability_removed", "/capabilities/1")
    ]
    # A card that stopped to list tools says nothing about them.
    assert compared(mcp(), listed, capabilities=["lookup"]) == []
    assert compared(mcp(tools="dynamic"), listed, capabilities=["lookup"]) == []


def test_the_names_of_an_agent_file_are_capabilities() -> None:
    live = CardView("madp.agent", "agent-seo/1.0", {"capabilities": ["search", "compare"]}, None)
    found = only(compared(live, declared="application/madp+json", capabilities=["search", "buy"]))
    assert (found.code, found.live_pointer) == ("drift.capability_removed", "/capabilities")


# --- addresses --------------------------------------------------------------------------------------------------------

OLD = "https://old.example/a2a"


@pytest.mark.parametrize(
    ("members", "pointer"),
    [
        ({"metadata": {"endpoint": OLD}}, "/metadata/endpoint"),
        ({"metadata": {"interfaceUrl": OLD}}, "/metadata/interfaceUrl"),
        ({"metadata": {"service_url": OLD}}, "/metadata/service_url"),
        ({"metadata": {"preferredInterface": OLD}}, "/metadata/preferredInterface"),
        ({"metadata": {"preferredInterface": {"url": OLD}}}, "/metadata/preferredInterface/url"),
        ({"metadata": {"a2a": {"endpoint": {"url": OLD}}}}, "/metadata/a2a/endpoint/url"),
        ({"endpoint": OLD}, "/endpoint"),
        ({"acme:serviceUrl": OLD}, "/acme:serviceUrl"),
        ({"acme:preferredInterface": {"acme:url": OLD}}, "/acme:preferredInterface/acme:url"),
        ({"https://acme.example/ns#endpoint": OLD}, "/https:~1~1acme.example~1ns#endpoint"),
        (
            {"extensions": {"https://acme.example/x": {"endpoint": OLD}}},
            "/extensions/https:~1~1acme.example~1x/endpoint",
        ),
        ({"metadata": {"interfaces": [{"url": OLD}]}}, "/metadata/interfaces/0/url"),
    ],
)
def test_an_address_that_the_card_does_not_have_is_drift(members: dict[str, Any], pointer: str) -> None:
    found = only(compared(a2a(), **members))
    assert (found.code, found.pointer, found.severity) == ("drift.interface_changed", pointer, Severity.ERROR)
    assert (found.catalog, found.live, found.live_pointer) == (
        OLD,
        "https://acme.example/a2a",
        "/supportedInterfaces/0",
    )
    assert (found.kind, found.members) == (ChangeClass.BREAKING, ("url",))


@pytest.mark.parametrize(
    "members",
    [
        {"metadata": {"endpoint": "https://ACME.example:443/a2a"}},
        {"metadata": {"endpoint": "/a2a"}},
        {"metadata": {"endpoint": "primary"}},
        {"metadata": {"endpoint": 7}},
        {"metadata": {"telemetry": {"endpoint": OLD}}},
        {"metadata": {"documentationUrl": OLD}},
        {"trustManifest": {"endpoint": OLD}},
        {"data": {"endpoint": OLD}},
        {"metadata": {"preferredInterface": {"name": "x"}}},
    ],
)
def test_what_is_no_other_address_of_the_agent_is_no_drift(members: dict[str, Any]) -> None:
    assert compared(a2a(), **members) == []


@pytest.mark.parametrize(
    ("stated", "member", "catalog"),
    [
        (interface("https://acme.example/a2a", "GRPC"), "protocolBinding", "GRPC"),
        (interface("https://acme.example/a2a", version="0.3"), "protocolVersion", "0.3"),
        ({"url": "https://acme.example/a2a", "version": "0.3"}, "protocolVersion", "0.3"),
        (interface("https://acme.example/a2a", "json-rpc", "1.0.2"), None, None),
        ({"url": "https://acme.example/a2a", "version": "api-v7"}, None, None),
    ],
)
def test_what_is_spoken_at_an_address_is_compared_as_far_as_it_is_stated(
    stated: dict[str, str], member: str | None, catalog: str | None
) -> None:
    found = compared(a2a(), metadata={"preferredInterface": stated})
    assert [(item.code, item.members, item.catalog) for item in found] == (
        [("drift.interface_changed", (member,), catalog)] if member else []
    )


def test_flat_terms_beside_an_address_say_what_is_spoken_there() -> None:
    flat = {"endpoint": "https://acme.example/a2a", "protocolBinding": "GRPC", "protocolVersion": "1.0"}
    assert brief(compared(a2a(), metadata=flat)) == [("drift.interface_changed", "/metadata/protocolBinding")]
    assert compared(a2a(), metadata={**flat, "protocolBinding": "JSONRPC", "type": "agent", "version": "9.9"}) == []


def test_another_interface_than_the_preferred_one_is_an_observation() -> None:
    live = a2a(supportedInterfaces=[interface("https://acme.example/v2"), interface("https://acme.example/v1")])
    found = only(compared(live, metadata={"preferredInterface": "https://acme.example/v1"}))
    assert (found.code, found.is_drift, found.live) == (
        "drift.interface_not_preferred",
        False,
        "https://acme.example/v2",
    )


def test_the_older_block_of_a_hybrid_is_an_address_too() -> None:
    live = a2a(url="https://acme.example/v03", protocolVersion="0.3.0", preferredTransport="JSONRPC")
    assert live.shape == "hybrid"
    assert compared(live, metadata={"endpoint": "https://acme.example/v03"}) == []


def test_an_address_of_grpc_is_a_host_and_port() -> None:
    live = a2a(supportedInterfaces=[interface("grpc.acme.example:443", "GRPC")])
    assert compared(live, metadata={"endpoint": "grpc.acme.example:443"}) == []
    assert brief(compared(live, metadata={"endpoint": "grpc.acme.example:444"})) == [
        ("drift.interface_changed", "/metadata/endpoint")
    ]


def test_a_card_without_any_address_contradicts_only_what_an_older_one_offered() -> None:
    bare = a2a(supportedInterfaces=[])
    assert compared(bare, metadata={"endpoint": OLD}) == []
    found = only(compared(bare, a2a(supportedInterfaces=[interface(OLD)]), metadata={"endpoint": OLD}))
    assert (found.code, found.live) == ("drift.interface_changed", None)


def test_each_address_of_a_list_is_drift_of_its_own_and_is_known_again() -> None:
    urls = ["https://a.example/", "https://b.example/", "https://acme.example/a2a"]
    one, two = (
        drifts(compared(a2a(), metadata={"interfaces": [interface(url) for url in order]}))
        for order in (urls, urls[::-1])
    )
    assert len(one) == 2
    assert {item.key for item in one} == {item.key for item in two}


def test_an_entry_of_thousands_of_addresses_and_tags_is_compared_up_to_a_bound() -> None:
    many = {f"x{number}:endpoint": f"https://e{number}.example/" for number in range(5000)}
    found = compared(a2a(), metadata=many, tags=[f"t{number}" for number in range(5000)])
    assert [sum(item.code == code for item in found) for code in ("drift.interface_changed", "drift.tag_removed")] == [
        50,
        100,
    ]


def test_an_empty_term_states_nothing() -> None:
    empty = {"endpoint": "https://acme.example/a2a", "protocolBinding": "", "protocolVersion": ""}
    assert compared(a2a(), metadata=empty) == []
    assert compared(a2a(), metadata={"protocolVersion": " ", "authentication": " "}) == []


# --- servers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metadata", "drifted"),
    [
        ({"remotes": [{"type": "streamable-http", "url": "https://acme.example/mcp"}]}, []),
        ({"remotes": [{"type": "http", "url": "https://acme.example/mcp"}]}, []),
        (
            {"remotes": [{"type": "sse", "url": "https://acme.example/mcp"}]},
            [("drift.interface_changed", "/metadata/remotes/0/type")],
        ),
        (
            {"remotes": [{"type": "sse", "url": "https://acme.example/sse"}]},
            [("drift.interface_changed", "/metadata/remotes/0/url")],
        ),
        (
            {
                "remotes": [
                    {"url": "https://acme.example/mcp", "supportedProtocolVersions": ["2025-11-25", "2024-11-05"]}
                ]
            },
            [("drift.interface_changed", "/metadata/remotes/0/supportedProtocolVersions/1")],
        ),
        ({"transport": {"type": "streamable-http", "endpoint": "/mcp"}}, []),
        (
            {"transport": {"type": "sse", "endpoint": "https://acme.example/mcp"}},
            [("drift.interface_changed", "/metadata/transport/type")],
        ),
        ({"protocolVersion": "2025-11-25"}, []),
        ({"protocolVersions": ["2024-11-05"]}, [("drift.protocol_version_removed", "/metadata/protocolVersions/0")]),
        (
            {"mcp": {"protocolVersion": "2024-11-05"}},
            [("drift.protocol_version_removed", "/metadata/mcp/protocolVersion")],
        ),
    ],
)
def test_what_an_entry_states_of_a_server_is_held_against_its_card(
    metadata: dict[str, Any], drifted: list[tuple[str, str]]
) -> None:
    found = compared(mcp(), metadata=metadata)
    assert brief(found) == drifted
    assert all(item.is_drift and item.kind is ChangeClass.BREAKING for item in found)


def test_a_remote_with_variables_is_where_its_fixed_parts_are() -> None:
    live = mcp(remotes=[{"type": "sse", "url": "https://{tenant}.acme.example/{path}/mcp"}])
    assert compared(live, metadata={"endpoint": "https://blue.acme.example/x/mcp"}) == []
    assert len(drifts(compared(live, metadata={"endpoint": "https://blue.other.example/x/sse"}))) == 1


@pytest.mark.parametrize(
    ("metadata", "live", "code", "is_drift"),
    [
        ({"authRequired": False}, {"authentication": {"required": True}}, "drift.auth_required", True),
        ({"authentication": "none"}, {"authentication": {"required": True}}, "drift.auth_required", True),
        ({"auth": {"required": False}}, {"authentication": {"required": True}}, "drift.auth_required", True),
        ({"authRequired": True}, {"authentication": {"required": False}}, "drift.auth_dropped", False),
        ({"authentication": "oauth2"}, {"authentication": {"required": True}}, None, None),
        ({"authRequired": False}, {}, None, None),
    ],
)
def test_credentials_that_a_server_asks_for_are_drift_where_the_entry_says_none(
    metadata: dict[str, Any], live: dict[str, Any], code: str | None, is_drift: bool | None
) -> None:
    older_shape = {
        "serverInfo": {"name": "Weather", "version": "2.0.0"},
        "transport": {"type": "streamable-http", "endpoint": "/mcp"},
        **live,
    }
    found = compared(mcp(older_shape), metadata=metadata)
    assert [(item.code, item.is_drift) for item in found] == ([(code, is_drift)] if code else [])


def test_a_required_authorization_header_or_a_requirement_of_a_card_asks_for_credentials() -> None:
    remote = {
        "type": "sse",
        "url": "https://acme.example/mcp",
        "headers": [{"name": "Authorization", "isRequired": True}],
    }
    assert brief(compared(mcp(remotes=[remote]), metadata={"authRequired": False})) == [
        ("drift.auth_required", "/metadata/authRequired")
    ]
    secured = a2a(securitySchemes={"k": {"type": "http", "scheme": "bearer"}}, security=[{"k": []}])
    assert [item.code for item in compared(secured, metadata={"auth": "none"})] == ["drift.auth_required"]
    optional = a2a(securitySchemes={"k": {"type": "http", "scheme": "bearer"}}, security=[{"k": []}, {}])
    assert compared(optional, metadata={"auth": "none"}) == []


# --- provider and secrets ---------------------------------------------------------------------------------------------


def test_a_provider_elsewhere_than_the_publisher_is_an_observation() -> None:
    live = a2a(
        provider={"organization": "Host", "url": "https://host.example/about"},
        supportedInterfaces=[interface("https://run.host.example/a"), interface("https://api.acme.example/a")],
    )
    found = compared(live)
    assert [(item.code, item.live, item.live_pointer) for item in found] == [
        ("drift.provider_differs", "host.example", "/provider/url"),
        ("drift.provider_differs", "run.host.example", "/supportedInterfaces/0"),
    ]
    assert drifts(found) == []


def test_what_looks_like_a_credential_is_masked_in_a_report() -> None:
    secret = "ghp_" + "a1" * 15
    found = compared(a2a(), metadata={"endpoint": f"https://old.example/{secret}"}, description=f"Use {secret}.")
    assert len(found) == 2
    assert secret not in repr(found)


# --- inline copies ----------------------------------------------------------------------------------------------------


def test_an_inline_copy_names_the_members_that_differ() -> None:
    live = a2a(version="2.1.0", skills=[skill("forecast", tags=["weather", "travel"])])
    found = only(compare_inline(a2a(), live))
    assert (found.code, found.kind, found.pointer) == ("drift.inline_stale", ChangeClass.BREAKING, "/data")
    assert sorted(found.members) == ["skills", "version"]
    assert (found.catalog["version"], found.live["version"]) == ("2.0.0", "2.1.0")
    assert found.is_drift


def test_an_inline_copy_of_another_order_or_form_is_the_same() -> None:
    other_order = card(skills=card()["skills"][::-1])
    assert compare_inline(a2a(), a2a(other_order)) == []
    older_form = {**card(), "url": "https://acme.example/a2a", "protocolVersion": "1.0"}
    del older_form["supportedInterfaces"]
    assert compare_inline(a2a(older_form), a2a()) == []


def test_fr63_an_inline_copy_with_other_figures_is_an_observation() -> None:
    found = only(compare_inline(a2a(description="Lists 812 items"), a2a(description="Lists 813 items")))
    assert (found.members, found.is_drift) == (("description",), False)


@pytest.mark.parametrize("live", [nothing("gone"), nothing("unknown"), mcp()])
def test_an_inline_copy_is_compared_with_documents_of_its_kind_alone(live: CardView) -> None:
    assert compare_inline(a2a(), live) == []
    assert compare_inline(nothing("unknown"), live) == []


# --- hybrids ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "transport", "member"),
    [
        ("https://acme.example/a2a", "JSONRPC", None),
        ("https://acme.example/old", "JSONRPC", "url"),
        ("https://acme.example/a2a", "GRPC", "protocolBinding"),
    ],
)
def test_the_older_block_of_a_hybrid_is_held_against_its_list(url: str, transport: str, member: str | None) -> None:
    live = a2a(url=url, preferredTransport=transport, protocolVersion="0.3.0")
    found = compare_hybrid(live)
    assert [(item.code, item.pointer, item.members) for item in found] == (
        [("drift.hybrid_mismatch", "/url", (member,))] if member else []
    )
    assert all(item.live == {"url": "https://acme.example/a2a", "protocolBinding": "JSONRPC"} for item in found)


def test_a_further_interface_of_the_older_block_is_known_again_in_another_order() -> None:
    more = [{"url": f"https://acme.example/{name}", "transport": "GRPC"} for name in ("x", "y")]
    one, two = (
        compare_hybrid(a2a(url="https://acme.example/a2a", additionalInterfaces=order)) for order in (more, more[::-1])
    )
    assert {item.pointer for item in one} == {"/additionalInterfaces"}
    assert len({item.key for item in one} & {item.key for item in two}) == 2


def test_a_card_of_one_form_has_nothing_to_contradict() -> None:
    assert compare_hybrid(a2a()) == []
    assert compare_hybrid(mcp()) == []


# --- two documents of one origin --------------------------------------------------------------------------------------


def test_manifests_of_one_origin_differ_by_member_and_by_entry() -> None:
    first = {"urn:a": entry(version="1", tags=["x", "y"]), "urn:b": entry(), "urn:d": entry()}
    second = {"urn:a": entry(version="2", tags=["y", "x"], description="New."), "urn:c": entry(), "urn:d": entry()}
    found = compare_manifests(first, second)
    assert [(key, item.pointer, item.catalog is None, item.live is None) for key, item in found] == [
        ("urn:a", "/version", False, False),
        ("urn:a", "/description", True, False),
        ("urn:b", "", False, True),
        ("urn:c", "", True, False),
    ]
    assert {item.code for _, item in found} == {"drift.manifests_differ"}
    assert all(item.is_drift for _, item in found)


def test_manifests_that_differ_in_an_address_break_callers() -> None:
    found = compare_manifests({"urn:a": entry()}, {"urn:a": entry(url="https://acme.example/other.json")})
    assert [(item.kind, item.live) for _, item in found] == [(ChangeClass.BREAKING, "https://acme.example/other.json")]


def test_a_secret_of_a_manifest_is_masked_even_as_a_name() -> None:
    secret = "ghp_" + "a1" * 15
    [(_, found)] = compare_manifests({"urn:a": entry()}, {"urn:a": entry(**{secret: {"token": secret}})})
    assert secret not in repr(found)
    assert secret not in found.key


def test_manifests_with_the_same_content_agree() -> None:
    assert compare_manifests({"urn:a": entry()}, {"urn:a": entry()}) == []
    assert compare_manifests({}, {}) == []


def test_fr66_two_cards_of_one_name_contradict_each_other_once() -> None:
    first = a2a({"name": "Weather", "version": "2.0.0", "url": "https://o.example/v2", "skills": []})
    second = a2a({"name": "weather ", "version": "1.4.0", "url": "https://o.example/v1", "skills": []})
    found = only(compare_cards_of_origin(first, second))
    assert (found.code, found.members) == ("drift.cards_contradict", ("version", "supportedInterfaces"))
    assert found.catalog == {"version": "2.0.0", "supportedInterfaces": ["https://o.example/v2"]}
    assert found.live == {"version": "1.4.0", "supportedInterfaces": ["https://o.example/v1"]}
    assert (found.kind, found.is_drift) == (ChangeClass.BREAKING, True)


def test_fr66_what_is_wrong_with_two_cards_may_change_and_stays_one_contradiction() -> None:
    first = a2a({"name": "W", "version": "2", "url": "https://o.example/v2"})
    one, two = (
        only(compare_cards_of_origin(first, a2a({"name": "W", "version": version, "url": "https://o.example/v1"})))
        for version in ("1", "2")
    )
    assert one.members != two.members
    assert one.key == two.key


def test_a_card_for_older_clients_may_list_less() -> None:
    both = a2a(
        supportedInterfaces=[interface("https://o.example/v2"), interface("https://o.example/v1", version="0.3")]
    )
    legacy = a2a({"name": "Weather", "version": "2.0.0", "url": "https://o.example/v1", "protocolVersion": "0.3.0"})
    assert compare_cards_of_origin(both, legacy) == []
    assert compare_cards_of_origin(legacy, both) == []


@pytest.mark.parametrize("other", [a2a(name="Climate", version="1"), mcp(version="1"), nothing("gone")])
def test_documents_about_different_things_do_not_contradict_each_other(other: CardView) -> None:
    assert compare_cards_of_origin(a2a(), other) == []


# --- time -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("live_old", "live_new", "copy_old", "copy_new", "expected"),
    [
        (0, 1, 5, 6, Lag(4 * 3600, 6 * 3600, False)),
        (0, 1, 5, None, Lag(4 * 3600, 10 * 3600, True)),
        (None, 1, 5, 6, Lag(4 * 3600, None, False)),
        (None, 1, 5, None, Lag(4 * 3600, None, True)),
        (2, 4, 3, 5, Lag(0, 3 * 3600, False)),
        (4, 5, 2, 3, Lag(0, 0, False)),
    ],
)
def test_a_lag_lies_between_what_was_surely_and_what_was_possibly_stale(
    live_old: int | None, live_new: int, copy_old: int, copy_new: int | None, expected: Lag
) -> None:
    def at(hours: int | None) -> datetime | None:
        return None if hours is None else NOW + hours * HOUR

    now = NOW + 10 * HOUR
    assert lag(at(live_old), NOW + live_new * HOUR, NOW + copy_old * HOUR, at(copy_new), now) == expected


def history(*states: CardView) -> list[tuple[Mapping[str, Any], datetime, datetime]]:
    """Give states that were each seen for an hour, with an hour unseen between them."""
    return [(state.normal, NOW + 2 * n * HOUR, NOW + (2 * n + 1) * HOUR) for n, state in enumerate(states)]


CURRENT = NOW + 20 * HOUR


@pytest.mark.parametrize(
    ("members", "older", "expected"),
    [
        ({"version": "1.0"}, [a2a(version="1.0"), a2a(version="1.5")], Superseded(NOW + HOUR, NOW + 2 * HOUR)),
        ({"version": "1.0"}, [a2a(version="1.5"), a2a(version="1.0")], Superseded(NOW + 3 * HOUR, CURRENT)),
        (
            {"version": "1.0"},
            [a2a(version="1.0"), a2a(version="1.5"), a2a(version="1.0")],
            Superseded(NOW + 5 * HOUR, CURRENT),
        ),
        ({"version": "0.1"}, [a2a(version="1.0")], None),
        ({"version": "1.0"}, [], None),
        ({"displayName": "Rain"}, [a2a(name="Rain"), a2a(name="Snow")], Superseded(NOW + HOUR, NOW + 2 * HOUR)),
        (
            {"tags": ["weather", "travel", "storms", "maps"]},
            [a2a(skills=[skill("a", tags=["Maps"])])],
            Superseded(NOW + HOUR, CURRENT),
        ),
        ({"capabilities": ["radar"]}, [a2a(skills=[skill("radar")])], Superseded(NOW + HOUR, CURRENT)),
        (
            {"metadata": {"endpoint": OLD}},
            [a2a(supportedInterfaces=[interface(OLD)])],
            Superseded(NOW + HOUR, CURRENT),
        ),
        (
            {"metadata": {"preferredInterface": interface("https://acme.example/a2a", version="0.3")}},
            [a2a(supportedInterfaces=[interface("https://acme.example/a2a", version="0.3")])],
            Superseded(NOW + HOUR, CURRENT),
        ),
    ],
)
def test_the_live_side_gave_a_value_up_between_the_last_sight_of_it_and_the_next_state(
    members: dict[str, Any], older: list[CardView], expected: Superseded | None
) -> None:
    found = only(drifts(compared(a2a(), *older, **members)))
    states = history(*older)
    assert stale_since(found, states, CURRENT) == expected
    assert stale_since(found, states[::-1], CURRENT) == expected


def test_an_artifact_that_is_gone_was_given_up_after_it_was_last_seen() -> None:
    found = only(compared(nothing("gone")))
    assert stale_since(found, history(a2a()), CURRENT) == Superseded(NOW + HOUR, CURRENT)


def test_an_inline_copy_was_given_up_with_the_state_that_it_is_a_copy_of() -> None:
    copied, between, live = a2a(version="1.0"), a2a(version="1.5"), a2a()
    found = only(compare_inline(copied, live))
    assert stale_since(found, history(copied, between), CURRENT) == Superseded(NOW + HOUR, NOW + 2 * HOUR)
    assert stale_since(found, history(between), CURRENT) is None
