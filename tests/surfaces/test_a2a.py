"""A2A agent cards of every version: which version they are, the one form they are brought to, and their faults."""

import copy
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.surfaces.a2a import Card, read_card
from crawler.surfaces.a2a_versions import major_minor
from index.records import Severity
from tests.surfaces.documents import anything, lookalikes

URL = "https://o.example/rpc"
SKILL = {"id": "plan", "name": "Plan", "description": "Plans.", "tags": ["planning"]}
COMMON = {
    "name": "Planner",
    "description": "Plans journeys.",
    "version": "1.4.0",
    "capabilities": {},
    "skills": [SKILL],
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
}
INTERFACE = {"url": URL, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
V1 = {**COMMON, "supportedInterfaces": [INTERFACE]}
V03 = {**COMMON, "url": URL, "protocolVersion": "0.3.0", "preferredTransport": "JSONRPC"}


def problems(card: Card) -> list[tuple[str, str]]:
    return [(problem.code, problem.pointer) for problem in card.problems]


def without(value: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: member for name, member in value.items() if name not in names}


# --- which version ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("members", "shape"),
    [
        # A list of interfaces is the family 1.x, whatever else is said.
        ({"supportedInterfaces": [INTERFACE]}, "1.0"),
        ({"supportedInterfaces": [INTERFACE], "protocolVersion": "0.3.0"}, "1.0"),
        ({"supportedInterfaces": [{**INTERFACE, "protocolVersion": "0.3"}]}, "1.0"),
        ({"supportedInterfaces": [INTERFACE], "url": URL}, "hybrid"),
        ({"supportedInterfaces": [], "url": URL}, "hybrid"),
        # Else an address is the family 0.x: its label first, then its members, newest first.
        ({"url": URL, "protocolVersion": "0.3.0"}, "0.3"),
        ({"url": URL, "protocolVersion": "0.3"}, "0.3"),
        ({"url": URL, "protocolVersion": "0.4.0"}, "0.3"),
        ({"url": URL, "protocolVersion": "0.2.6"}, "0.2.4"),
        ({"url": URL, "protocolVersion": "0.2.1"}, "0.2"),
        ({"url": URL, "protocolVersion": "0.1.0", "signatures": []}, "0.1"),
        ({"url": URL, "protocolVersion": "1.0"}, "0.3"),
        ({"url": URL, "signatures": [{"protected": "a", "signature": "b"}]}, "0.3"),
        ({"url": URL, "skills": [{**SKILL, "security": [{"k": []}]}], "preferredTransport": "GRPC"}, "0.3"),
        ({"url": URL, "preferredTransport": "GRPC", "security": []}, "0.2.4"),
        ({"url": URL, "additionalInterfaces": [], "authentication": {}}, "0.2.4"),
        ({"url": URL, "securitySchemes": {}, "authentication": {}}, "0.2"),
        ({"url": URL, "security": []}, "0.2"),
        ({"url": URL, "authentication": {"schemes": ["bearer"]}}, "0.1"),
        ({"url": URL}, "0.x"),
        ({"url": URL, "protocolVersion": "latest"}, "0.x"),
        ({"url": URL, "supportedInterfaces": {"url": URL}}, "0.x"),
        # An excerpt without any address is told by what only one family has.
        ({"supportedInterfaces": {"url": URL}}, "1.0"),
        ({"capabilities": {"extendedAgentCard": False}}, "1.0"),
        ({"securityRequirements": []}, "1.0"),
        ({"capabilities": {"stateTransitionHistory": False}}, "0.x"),
        ({"supportsAuthenticatedExtendedCard": False}, "0.x"),
        ({"protocolVersion": "0.2.6"}, "0.2.4"),
        ({"protocolVersion": "1.0.1"}, "1.0"),
        ({}, "unversioned"),
        ({"capabilities": {"streaming": True}}, "unversioned"),
    ],
)
def test_the_shape_tells_the_version_and_the_label_comes_second(members: dict[str, Any], shape: str) -> None:
    assert read_card({**COMMON, **members}).shape == shape


@pytest.mark.parametrize(
    ("members", "pointer"),
    [
        ({"supportedInterfaces": [{**INTERFACE, "protocolVersion": "0.3.0"}]}, "/supportedInterfaces"),
        ({"url": URL, "protocolVersion": "1.0"}, "/protocolVersion"),
    ],
)
def test_a_label_that_contradicts_the_shape_is_a_warning(members: dict[str, Any], pointer: str) -> None:
    found = [problem for problem in read_card({**COMMON, **members}).problems if problem.code == "a2a.version_label"]
    assert [(problem.severity, problem.pointer, problem.clause) for problem in found] == [
        (Severity.WARNING, pointer, "A2A 8.3.1")
    ]


@pytest.mark.parametrize(
    ("card", "versions"),
    [
        (V1, ("1.0",)),
        ({**V1, "supportedInterfaces": [{**INTERFACE, "protocolVersion": "1.0.1"}, INTERFACE]}, ("1.0",)),
        ({**V1, "supportedInterfaces": [INTERFACE, {**INTERFACE, "protocolVersion": "0.3"}]}, ("1.0", "0.3")),
        ({**V1, "supportedInterfaces": [without(INTERFACE, "protocolVersion")]}, ("0.3",)),
        ({**V1, "supportedInterfaces": [{**INTERFACE, "protocolVersion": ""}]}, ("0.3",)),
        ({**V1, "url": URL, "protocolVersion": "0.3.0"}, ("1.0", "0.3")),
        (V03, ("0.3",)),
        ({**V03, "protocolVersion": "0.2.6"}, ("0.2",)),
        ({**COMMON, "url": URL, "authentication": {}}, ("0.1",)),
        ({**COMMON, "url": URL}, ("0.3",)),
        (COMMON, ()),
    ],
)
def test_the_versions_are_those_that_the_interfaces_speak(card: dict[str, Any], versions: tuple[str, ...]) -> None:
    assert read_card(card).versions == versions


@pytest.mark.parametrize(
    ("version", "cut"),
    [("1.0", "1.0"), ("1.0.1", "1.0"), ("0.3.0-rc.1", "0.3"), ("draft", "draft"), ("1", "1"), ("1.0\n", "1.0\n")],
)
def test_patch_numbers_of_a_protocol_version_do_not_count(version: str, cut: str) -> None:
    assert major_minor(version) == cut


# --- the form of 1.0 --------------------------------------------------------------------------------------------------


def test_a_card_without_faults_has_no_problems() -> None:
    assert problems(read_card(V1)) == []
    assert problems(read_card(V03)) == []
    assert problems(read_card({**without(COMMON, "description", "defaultInputModes"), "url": URL})) == []


def test_the_interfaces_of_1_0_keep_their_order_and_lose_repeats() -> None:
    grpc = {"url": "o.example:443", "protocolBinding": "GRPC", "protocolVersion": "1.0", "tenant": "t1"}
    custom = {"url": "wss://o.example/x", "protocolBinding": "https://b.example/ws", "protocolVersion": "1.0"}
    card = read_card({**V1, "supportedInterfaces": [custom, grpc, INTERFACE, grpc, {**INTERFACE, "tenant": ""}]})
    assert card.normal["supportedInterfaces"] == [custom, grpc, INTERFACE]
    assert problems(card) == []


def test_fr97_the_older_members_become_one_list_in_their_order() -> None:
    card = read_card(
        {
            "name": "T",
            "version": "1",
            "protocolVersion": "0.3.0",
            "url": "https://o.example/rpc",
            "preferredTransport": "JSONRPC",
            "additionalInterfaces": [
                {"transport": "JSONRPC", "url": "https://o.example/rpc"},
                {"transport": "HTTP+JSON", "url": "https://o.example/rest"},
            ],
            "skills": [],
            "capabilities": {},
        }
    )
    assert [(i["protocolBinding"], i["protocolVersion"], i["url"]) for i in card.normal["supportedInterfaces"]] == [
        ("JSONRPC", "0.3.0", "https://o.example/rpc"),
        ("HTTP+JSON", "0.3.0", "https://o.example/rest"),
    ]
    assert (card.shape, card.legacy_interfaces) == ("0.3", ())


def test_fr97_the_newer_list_counts_when_a_card_carries_both() -> None:
    card = read_card(
        {**V1, "url": "https://o.example/old", "preferredTransport": "HTTP+JSON", "protocolVersion": "0.3.0"}
    )
    assert card.normal["supportedInterfaces"] == [INTERFACE]
    assert card.legacy_interfaces == (
        {"url": "https://o.example/old", "protocolBinding": "HTTP+JSON", "protocolVersion": "0.3.0"},
    )
    assert problems(card) == [("a2a.hybrid", "/url"), ("a2a.hybrid_differs", "/url")]


def test_a_hybrid_whose_blocks_agree_is_only_remarked() -> None:
    card = read_card({**V1, "url": URL, "protocolVersion": "0.3.0"})
    assert [(problem.code, problem.severity) for problem in card.problems] == [("a2a.hybrid", Severity.INFO)]


def test_fr97_the_extended_card_is_read_from_either_place() -> None:
    assert read_card({**V03, "supportsAuthenticatedExtendedCard": True}).normal["capabilities"] == {
        "extendedAgentCard": True
    }
    both = {**V1, "capabilities": {"extendedAgentCard": False}, "supportsAuthenticatedExtendedCard": True}
    assert read_card(both).normal["capabilities"] == {"extendedAgentCard": False}


SCHEMES = [
    (
        {"type": "apiKey", "in": "header", "name": "X-Api-Key"},
        {"apiKeySecurityScheme": {"location": "header", "name": "X-Api-Key"}},
        {"kind": "apiKey", "location": "header", "name": "X-Api-Key"},
    ),
    (
        {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
        {"httpAuthSecurityScheme": {"scheme": "bearer", "bearerFormat": "JWT"}},
        {"kind": "http", "scheme": "bearer", "bearerFormat": "JWT"},
    ),
    (
        {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "https://o.example/token", "scopes": {}}}},
        {
            "oauth2SecurityScheme": {
                "flows": {"clientCredentials": {"tokenUrl": "https://o.example/token", "scopes": {}}}
            }
        },
        {"kind": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "https://o.example/token", "scopes": {}}}},
    ),
    (
        {"type": "openIdConnect", "openIdConnectUrl": "https://o.example/.well-known/openid-configuration"},
        {"openIdConnectSecurityScheme": {"openIdConnectUrl": "https://o.example/.well-known/openid-configuration"}},
        {"kind": "openIdConnect", "openIdConnectUrl": "https://o.example/.well-known/openid-configuration"},
    ),
    ({"type": "mutualTLS"}, {"mtlsSecurityScheme": {}}, {"kind": "mutualTLS"}),
]


@pytest.mark.parametrize(("older", "newer", "normal"), SCHEMES)
def test_security_schemes_of_both_ways_come_to_one_form(
    older: dict[str, Any], newer: dict[str, Any], normal: dict[str, Any]
) -> None:
    for card, scheme in ((V03, older), (V1, newer)):
        read = read_card({**card, "securitySchemes": {"main": scheme}})
        assert read.normal["securitySchemes"] == {"main": normal}
        assert problems(read) == []


def test_security_requirements_of_both_ways_come_to_one_form() -> None:
    older = [{"oauth": ["read", "write"], "key": []}, {}]
    newer = [{"schemes": {"oauth": {"list": ["read", "write"]}, "key": {"list": []}}}, {"schemes": {}}]
    assert read_card({**V03, "security": older}).normal["securityRequirements"] == older
    assert read_card({**V1, "securityRequirements": newer}).normal["securityRequirements"] == older
    with_skill = read_card({**V1, "skills": [{**SKILL, "securityRequirements": newer}]})
    assert with_skill.normal["skills"][0]["securityRequirements"] == older


@pytest.mark.parametrize(
    "scheme",
    [{"type": "magic"}, {}, {"type": 3}, {"apiKeySecurityScheme": {}, "mtlsSecurityScheme": {}}, {"kind": "apiKey"}],
)
def test_a_scheme_without_one_known_kind_is_a_warning(scheme: dict[str, Any]) -> None:
    read = read_card({**V1, "securitySchemes": {"a/b": scheme}})
    assert problems(read) == [("a2a.scheme_kind", "/securitySchemes/a~1b")]


def test_what_a_card_says_of_itself_comes_over() -> None:
    capabilities = {
        "streaming": True,
        "pushNotifications": False,
        "extensions": [
            {"uri": "https://e.example/1", "required": True, "params": {"a": 1}},
            {"uri": "https://e.example/2"},
        ],
    }
    card = read_card(
        {
            **V1,
            "provider": {"organization": "Acme", "url": "https://acme.example"},
            "iconUrl": "https://o.example/i.png",
            "documentationUrl": "https://o.example/docs",
            "capabilities": capabilities,
            "signatures": [{"protected": "eyJ", "signature": "abc", "header": {"kid": "1"}}],
            "skills": [{**SKILL, "examples": ["To Rome"], "inputModes": ["text/plain"], "outputModes": ["text/html"]}],
        }
    )
    assert problems(card) == []
    assert card.normal == {
        **V1,
        "provider": {"organization": "Acme", "url": "https://acme.example"},
        "iconUrl": "https://o.example/i.png",
        "documentationUrl": "https://o.example/docs",
        "capabilities": {
            "streaming": True,
            "pushNotifications": False,
            "extensions": [
                {"uri": "https://e.example/1", "required": True, "params": {"a": 1}},
                {"uri": "https://e.example/2", "required": False},
            ],
        },
        "signatures": [{"protected": "eyJ", "signature": "abc", "header": {"kid": "1"}}],
        "skills": [{**SKILL, "examples": ["To Rome"], "inputModes": ["text/plain"], "outputModes": ["text/html"]}],
    }


def test_names_in_snake_case_are_read_wherever_they_stand() -> None:
    card = read_card(
        {
            **without(COMMON, "defaultInputModes", "defaultOutputModes"),
            "default_input_modes": ["text/plain"],
            "default_output_modes": ["text/plain"],
            "supported_interfaces": [{"url": URL, "protocol_binding": "JSONRPC", "protocol_version": "1.0"}],
            "capabilities": {"push_notifications": True, "extended_agent_card": True},
            "skills": [{**SKILL, "input_modes": ["text/plain"]}],
            "security_schemes": {"my_key": {"api_key_security_scheme": {"location": "header", "name": "k"}}},
            "security_requirements": [{"schemes": {"my_key": {"list": []}}}],
        }
    )
    assert card.shape == "1.0"
    assert card.normal == {
        **V1,
        "capabilities": {"pushNotifications": True, "extendedAgentCard": True},
        "skills": [{**SKILL, "inputModes": ["text/plain"]}],
        "securitySchemes": {"my_key": {"kind": "apiKey", "location": "header", "name": "k"}},
        "securityRequirements": [{"my_key": []}],
    }
    assert {(problem.code, problem.severity) for problem in card.problems} == {("a2a.snake_case", Severity.WARNING)}
    assert len(card.problems) == 11


def test_the_usual_name_counts_when_both_stand() -> None:
    card = read_card({**V1, "supported_interfaces": [{**INTERFACE, "url": "https://other.example/"}]})
    assert card.normal["supportedInterfaces"] == [INTERFACE]
    assert problems(card) == [("a2a.snake_case", "/supported_interfaces")]


# --- faults -----------------------------------------------------------------------------------------------------------

EVERY_VERSION = ("name", "version", "capabilities", "skills")
LATER = (*EVERY_VERSION, "description", "defaultInputModes", "defaultOutputModes")


@pytest.mark.parametrize(
    ("members", "required", "clause"),
    [
        ({"supportedInterfaces": [INTERFACE]}, LATER, "A2A 4.4.1"),
        ({"supportedInterfaces": [INTERFACE], "url": URL}, LATER, "A2A 4.4.1"),
        ({"url": URL, "signatures": []}, (*LATER, "protocolVersion"), "A2A 0.3 5.5"),
        ({"url": URL, "preferredTransport": "JSONRPC"}, LATER, "A2A 0.2 5.5"),
        ({"url": URL, "securitySchemes": {}}, LATER, "A2A 0.2 5.5"),
        ({"url": URL, "authentication": {}}, EVERY_VERSION, "A2A 0.1 5.5"),
        ({"url": URL}, EVERY_VERSION, "A2A 0.1 5.5"),
    ],
)
def test_each_version_requires_its_own_members(members: dict[str, Any], required: tuple[str, ...], clause: str) -> None:
    missing = [problem for problem in read_card(members).problems if problem.code == "a2a.missing"]
    assert {problem.pointer for problem in missing} == {f"/{name}" for name in required}
    assert {problem.clause for problem in missing} == {clause}
    assert {problem.severity for problem in missing} == {Severity.WARNING}


@pytest.mark.parametrize(
    ("change", "code", "severity", "pointer", "clause"),
    [
        ({"supportedInterfaces": []}, "no_interface", "error", "", "A2A 4.4.1"),
        ({"supportedInterfaces": [{}]}, "interface_url", "warning", "/supportedInterfaces/0", "A2A 4.4.6"),
        (
            {"supportedInterfaces": [without(INTERFACE, "protocolBinding")]},
            "interface_binding",
            "warning",
            "/supportedInterfaces/0",
            "A2A 4.4.6",
        ),
        (
            {"supportedInterfaces": [without(INTERFACE, "protocolVersion")]},
            "interface_version",
            "warning",
            "/supportedInterfaces/0",
            "A2A 3.6.2",
        ),
        (
            {"supportedInterfaces": [{**INTERFACE, "url": "/rpc"}]},
            "interface_address",
            "warning",
            "/supportedInterfaces/0/url",
            "A2A 4.4.6",
        ),
        ({"skills": []}, "empty", "warning", "/skills", "A2A 5.7"),
        ({"defaultInputModes": []}, "empty", "warning", "/defaultInputModes", "A2A 5.7"),
        ({"skills": [{**SKILL, "tags": []}]}, "empty", "warning", "/skills/0/tags", "A2A 5.7"),
        ({"skills": [without(SKILL, "tags")]}, "missing", "warning", "/skills/0/tags", "A2A 4.4.5"),
        ({"skills": [{"description": "d", "tags": ["t"]}]}, "skill_id", "warning", "/skills/0", "A2A 4.4.5"),
        ({"skills": [SKILL, SKILL]}, "skill_twice", "warning", "/skills/1", "A2A 4.4.5"),
        ({"provider": {"organization": "Acme"}}, "missing", "warning", "/provider/url", "A2A 4.4.2"),
        ({"preferredTransport": "JSONRPC"}, "old_member", "info", "/preferredTransport", "A2A 4.4.1"),
        ({"security": []}, "old_member", "info", "/security", "A2A 4.4.1"),
    ],
)
def test_faults_of_a_card_of_1_0(change: dict[str, Any], code: str, severity: str, pointer: str, clause: str) -> None:
    found = [(p.code, p.severity, p.pointer, p.clause) for p in read_card({**V1, **change}).problems]
    assert (f"a2a.{code}", severity, pointer, clause) in found


@pytest.mark.parametrize(
    ("card", "code", "severity", "pointer", "clause"),
    [
        (without(V03, "preferredTransport"), "transport_default", "info", "/preferredTransport", "A2A 0.3 5.6.1"),
        ({**V03, "url": ""}, "no_interface", "error", "", "A2A 4.4.1"),
        ({**V03, "url": "rpc"}, "interface_address", "warning", "/url", "A2A 4.4.6"),
        (
            {**V03, "additionalInterfaces": [{"transport": "GRPC"}]},
            "interface_url",
            "warning",
            "/additionalInterfaces/0",
            "A2A 0.3 5.5.5",
        ),
        (
            {**V03, "additionalInterfaces": [{"url": "https://o.example/rest"}]},
            "interface_binding",
            "warning",
            "/additionalInterfaces/0",
            "A2A 0.3 5.5.5",
        ),
        (
            {**V03, "provider": {"url": "https://a.example"}},
            "missing",
            "warning",
            "/provider/organization",
            "A2A 0.3 5.5.1",
        ),
        (
            {**V03, "skills": [without(SKILL, "description")]},
            "missing",
            "warning",
            "/skills/0/description",
            "A2A 0.3 5.5.4",
        ),
    ],
)
def test_faults_of_older_cards(card: dict[str, Any], code: str, severity: str, pointer: str, clause: str) -> None:
    assert [(p.code, p.severity, p.pointer, p.clause) for p in read_card(card).problems] == [
        (f"a2a.{code}", severity, pointer, clause)
    ]


def test_what_only_1_0_demands_is_not_asked_of_older_cards() -> None:
    """0.x allows empty arrays, and its first version had neither modes nor descriptions that one must give."""
    assert problems(read_card({**V03, "skills": [], "defaultInputModes": []})) == []


def test_one_bad_interface_does_not_sink_the_others() -> None:
    card = read_card({**V1, "supportedInterfaces": [{"url": 5}, "x", INTERFACE]})
    assert card.normal["supportedInterfaces"] == [INTERFACE]
    assert not [problem for problem in card.problems if problem.severity is Severity.ERROR]


def test_fr05_a_card_of_the_older_name_is_read_whole() -> None:
    card = read_card(
        {
            "name": "Planner",
            "protocolVersion": "0.3.0",
            "version": "1.0.0",
            "url": "https://origin.example/a2a",
            "capabilities": {},
            "skills": [],
            "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"],
        }
    )
    assert (card.shape, card.normal["name"], card.normal["skills"]) == ("0.3", "Planner", [])
    assert [item["url"] for item in card.normal["supportedInterfaces"]] == ["https://origin.example/a2a"]


def test_fr99_members_of_the_wrong_type_are_left_out_and_named() -> None:
    card = read_card(
        {
            "name": "Q",
            "version": 1,
            "provider": "Corp",
            "skills": None,
            "capabilities": ["streaming"],
            "supportedInterfaces": {"url": "https://o.example"},
        }
    )
    assert (card.shape, card.normal["name"]) == ("1.0", "Q")
    assert not {"version", "provider"} & card.normal.keys()
    assert card.normal["skills"] == card.normal["supportedInterfaces"] == []
    wrong = [problem.pointer for problem in card.problems if problem.code == "a2a.wrong_type"]
    assert sorted(wrong) == ["/capabilities", "/provider", "/supportedInterfaces", "/version"]
    assert [p.code for p in card.problems if p.severity is Severity.ERROR] == ["a2a.no_interface"]


def test_fr99_items_of_the_wrong_type_take_only_themselves_out() -> None:
    skill = {**SKILL, "examples": [{"input": "To Rome"}, "To Rome"], "tags": "planning", "inputModes": [1]}
    card = read_card(
        {
            **V1,
            "skills": ["plan", 7, skill],
            "securitySchemes": {"key": "apiKey"},
            "capabilities": {"streaming": "yes", "extensions": [{"uri": 1}, "x"]},
            "defaultInputModes": ["text/plain", 4],
            "signatures": [{"protected": {}, "signature": "s", "header": []}],
        }
    )
    assert card.normal["skills"] == [{**without(SKILL, "tags"), "examples": ["To Rome"]}]
    assert card.normal["capabilities"] == {}
    assert card.normal["defaultInputModes"] == ["text/plain"]
    assert card.normal["signatures"] == [{"signature": "s"}]
    assert "securitySchemes" not in card.normal
    assert Counter(problem.code for problem in card.problems) == {"a2a.wrong_type": 12}


def test_a_card_of_many_skills_is_cut_and_says_so() -> None:
    card = read_card({**V1, "skills": [{**SKILL, "id": str(number)} for number in range(2001)]})
    assert len(card.normal["skills"]) == 2000
    assert problems(card) == [("a2a.too_many", "/skills")]


def test_the_problems_of_one_card_are_bounded_but_for_errors() -> None:
    card = read_card({**COMMON, "supportedInterfaces": [], "skills": [1] * 2000})
    assert len(card.problems) == 201
    assert problems(card)[-1] == ("a2a.no_interface", "")


@given(st.dictionaries(st.text(max_size=6), anything(), max_size=4) | lookalikes())
def test_any_object_is_read_and_left_as_it_was(value: dict[str, Any]) -> None:
    before = copy.deepcopy(value)
    card = read_card(value)
    assert value == before
    assert card.shape in {"1.0", "hybrid", "0.3", "0.2.4", "0.2", "0.1", "0.x", "unversioned"}
    for interface in (*card.normal["supportedInterfaces"], *card.legacy_interfaces):
        assert interface["url"]
        assert interface.keys() >= {"protocolBinding", "protocolVersion"}


@given(lookalikes())
def test_nothing_to_call_is_always_an_error(value: dict[str, Any]) -> None:
    card = read_card(value)
    errors = [problem.code for problem in card.problems if problem.severity is Severity.ERROR]
    assert errors == ([] if card.normal["supportedInterfaces"] else ["a2a.no_interface"])
