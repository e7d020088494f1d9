"""MADP: the level that an origin's documents reach, check by check, and what is taken from them."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.surfaces import madp
from crawler.surfaces.artifact import read_value
from crawler.surfaces.madp import Level, assess
from crawler.surfaces.recognise import Kind, recognise
from tests.surfaces.documents import anything, lookalikes

AT = "https://acme.example/.well-known/constellation.json"
AGENT = {
    "protocol": "agent-seo/1.0",
    "agent_type": "shop",
    "capabilities": ["search", "order"],
    "input_formats": ["application/json"],
    "output_formats": ["application/json", "text/html; charset=utf-8"],
    "trust_anchor": "https://trust.example/.well-known/trust-resolver.json",
    "rate_limits": {"requests_per_minute": 30},
}
DISCOVERY = {"feeds": ["https://acme.example/feed.json"]}
CONSTELLATION = {"members": []}
ABSENT = object()


def change(value: dict[str, Any], name: str, member: Any) -> dict[str, Any]:
    return {key: item for key, item in {**value, name: member}.items() if item is not ABSENT}


def failed(agent: Any, discovery: Any = DISCOVERY, constellation: Any = CONSTELLATION) -> tuple[str, ...]:
    return assess(agent, discovery, constellation).failed


# --- levels -----------------------------------------------------------------------------------------------------------


def test_all_checks_passed_is_the_highest_level() -> None:
    assert assess(AGENT, DISCOVERY, CONSTELLATION) == madp.Assessment(Level.AAA, ())


@pytest.mark.parametrize("agent", [None, [], "agent-seo/1.0", 1])
def test_a1_the_agent_file_is_an_object(agent: Any) -> None:
    assert failed(agent) == ("A1", "A2", "A3", "AA1", "AA2", "AAA3")
    assert assess(agent, DISCOVERY, CONSTELLATION).level is Level.NONE


@pytest.mark.parametrize(
    ("protocol", "passes"),
    [
        ("agent-seo/1.0", True),
        ("agent-seo/1", True),
        ("agent-seo/1.0.12", True),
        ("agent-seo/", False),
        ("agent-seo/1.", False),
        ("agent-seo/1.0-rc", False),
        ("agent-seo/1.0\n", False),
        ("agent-seo/１", False),
        ("Agent-SEO/1.0", False),
        ("a2a/1.0", False),
        (1.0, False),
        (ABSENT, False),
    ],
)
def test_a2_the_protocol_has_a_version(protocol: Any, passes: bool) -> None:
    assert failed(change(AGENT, "protocol", protocol)) == (() if passes else ("A2",))


@pytest.mark.parametrize(
    ("capabilities", "passes"),
    [
        (["search"], True),
        ([], False),
        ([""], False),
        (["search", 1], False),
        ({"search": True}, False),
        (ABSENT, False),
    ],
)
def test_a3_capabilities_are_names(capabilities: Any, passes: bool) -> None:
    assert failed(change(AGENT, "capabilities", capabilities)) == (() if passes else ("A3",))


@pytest.mark.parametrize(
    ("anchor", "passes"),
    [
        ("https://trust.example/resolver.json", True),
        ("HTTPS://Trust.example", True),
        ("http://trust.example/resolver.json", False),
        ("/.well-known/trust-resolver.json", False),
        ("trust.example", False),
        ("https://", False),
        (["https://trust.example/"], False),
        (ABSENT, False),
    ],
)
def test_aa1_the_trust_anchor_is_an_absolute_https_url(anchor: Any, passes: bool) -> None:
    agent = change(AGENT, "trust_anchor", anchor)
    assert failed(agent) == (() if passes else ("AA1",))
    assert (madp.trust_anchor(agent) is not None) is passes


@pytest.mark.parametrize(
    ("limits", "passes"),
    [
        ({"requests_per_minute": 1}, True),
        ({"requests_per_minute": 0.5}, True),
        ({"burst": 10}, True),
        ({}, False),
        ({"requests_per_minute": 0}, False),
        ({"requests_per_minute": -1}, False),
        ({"requests_per_minute": "60"}, False),
        ({"requests_per_minute": True}, False),
        ({"requests_per_minute": None}, False),
        ({"requests_per_minute": 10**400}, False),
        ([60], False),
        (60, False),
        (ABSENT, False),
    ],
)
def test_aa2_rate_limits_state_a_rate(limits: Any, passes: bool) -> None:
    assert failed(change(AGENT, "rate_limits", limits)) == (() if passes else ("AA2",))


@pytest.mark.parametrize("discovery", [None, [], "feeds"])
def test_aaa1_the_discovery_file_is_an_object(discovery: Any) -> None:
    assert failed(AGENT, discovery) == ("AAA1",)


@pytest.mark.parametrize(
    ("constellation", "member", "passes"),
    [
        ({}, ABSENT, True),
        ({"members": []}, ABSENT, True),
        (None, "https://acme.example/constellation.json", True),
        (None, "/constellation.json", True),
        (None, ["https://b.example/"], True),
        (None, {"href": "https://b.example/"}, True),
        ([], ABSENT, False),
        (None, ABSENT, False),
        (None, None, False),
        (None, False, False),
        (None, "", False),
        (None, "none", False),
        (None, [], False),
        (None, {}, False),
    ],
)
def test_aaa2_membership_of_a_constellation(constellation: Any, member: Any, passes: bool) -> None:
    for name in ("constellation", "constellations", "my_Constellation_links"):
        found = failed(AGENT, change(DISCOVERY, name, member), constellation)
        assert found == (() if passes else ("AAA2",))


@pytest.mark.parametrize(
    ("formats", "passes"),
    [(["text/plain"], True), ([], False), (["json"], False), (["text/plain", ""], False), ("text/plain", False)],
)
@pytest.mark.parametrize("name", ["input_formats", "output_formats"])
def test_aaa3_formats_are_media_types_in_either_file(name: str, formats: Any, passes: bool) -> None:
    expected = () if passes else ("AAA3",)
    assert failed(change(AGENT, name, formats)) == expected
    assert failed(change(AGENT, name, ABSENT), {**DISCOVERY, name: formats}) == expected
    assert failed(change(AGENT, name, ABSENT)) == ("AAA3",)


@pytest.mark.parametrize(
    ("agent", "discovery", "constellation", "level", "missed"),
    [
        (AGENT, None, None, Level.AA, ("AAA1", "AAA2")),
        (change(AGENT, "rate_limits", {}), DISCOVERY, CONSTELLATION, Level.A, ("AA2",)),
        (change(AGENT, "trust_anchor", ABSENT), None, None, Level.A, ("AA1", "AAA1", "AAA2")),
        (change(AGENT, "capabilities", {}), DISCOVERY, CONSTELLATION, Level.NONE, ("A3",)),
        (None, None, None, Level.NONE, ("A1", "A2", "A3", "AA1", "AA2", "AAA1", "AAA2", "AAA3")),
        ({"protocol": "agent-seo/1", "capabilities": ["x"]}, DISCOVERY, {}, Level.A, ("AA1", "AA2", "AAA3")),
    ],
)
def test_a_level_holds_all_levels_before_it(
    agent: Any, discovery: Any, constellation: Any, level: Level, missed: tuple[str, ...]
) -> None:
    assert assess(agent, discovery, constellation) == madp.Assessment(level, missed)


# --- the agent file ---------------------------------------------------------------------------------------------------


def test_a_sound_agent_file_has_no_problems() -> None:
    assert recognise(AGENT) is Kind.MADP_AGENT
    assert madp.read_agent(AGENT) == ()


@pytest.mark.parametrize(
    ("name", "member", "code"),
    [
        ("protocol", "agent-seo/draft", "protocol"),
        ("capabilities", {}, "capabilities"),
        ("trust_anchor", "trust.example", "trust_anchor"),
        ("rate_limits", {}, "rate_limits"),
        ("input_formats", ["json"], "formats"),
        ("output_formats", "text/plain", "formats"),
    ],
)
def test_what_is_doubtful_about_an_agent_file_is_named(name: str, member: Any, code: str) -> None:
    (problem,) = madp.read_agent({**AGENT, name: member})
    assert (problem.code, problem.severity, problem.pointer) == (f"madp.{code}", "warning", f"/{name}")


def test_a_document_that_is_an_a2a_card_as_well_is_said_to_be_both() -> None:
    both = {**AGENT, "name": "Shop", "url": "https://acme.example/a2a", "skills": [{"id": "order", "name": "Order"}]}
    assert recognise(both) is Kind.MADP_AGENT
    assert [problem.code for problem in madp.read_agent(both)] == ["madp.two_shapes"]


def test_a_name_that_is_no_text_is_left_out_and_said() -> None:
    read = read_value({**AGENT, "name": 7}, "https://acme.example/.well-known/agent.json")
    assert "name" not in read.normal
    assert [(problem.code, problem.pointer) for problem in read.problems] == [("madp.wrong_type", "/name")]


@pytest.mark.parametrize(
    ("limits", "rate"),
    [
        ({"requests_per_minute": 30}, 30.0),
        ({"requests_per_minute": 0.25}, 0.25),
        ({"requests_per_minute": 0}, None),
        ({"requests_per_minute": "30"}, None),
        ({"requests_per_minute": True}, None),
        ({"requests_per_minute": 10**400}, None),
        ({"requests_per_minute": float("inf")}, None),
        ({}, None),
        ([], None),
        (ABSENT, None),
    ],
)
def test_the_rate_that_a_publisher_allows(limits: Any, rate: float | None) -> None:
    assert madp.requests_per_minute(change(AGENT, "rate_limits", limits)) == rate


# --- the trust anchor -------------------------------------------------------------------------------------------------

ANCHOR = "https://trust.example/.well-known/trust-resolver.json"


@pytest.mark.parametrize(
    ("document", "following"),
    [
        ({"trust_anchor": "https://root.example/a.json"}, "https://root.example/a.json"),
        ({"parent": "/root.json"}, "https://trust.example/root.json"),
        ({"resolver": "root.json"}, "https://trust.example/.well-known/root.json"),
        ({"next": "https://Root.example"}, "https://root.example/"),
        ({"next": "https://b.example/", "parent": "https://a.example/"}, "https://a.example/"),
        ({"trust_anchor": "http://plain.example/", "next": "https://b.example/"}, "https://b.example/"),
        ({"trust_anchor": ANCHOR, "next": "https://b.example/"}, "https://b.example/"),
        ({"trust_anchor": ANCHOR}, None),
        ({"trust_anchor": "", "parent": 5, "next": ["https://b.example/"]}, None),
        ({"next": "ftp://b.example/"}, None),
        ({"next": "https://[::1]@"}, None),
        ({"up": "https://b.example/"}, None),
        ([{"next": "https://b.example/"}], None),
        (None, None),
    ],
)
def test_the_chain_goes_on_by_the_names_that_such_documents_use(document: Any, following: str | None) -> None:
    assert madp.next_anchor(document, ANCHOR) == following


@pytest.mark.parametrize(
    ("document", "listed"),
    [
        ({"domains": ["acme.example"]}, True),
        ({"domains": ["Acme.Example"]}, True),
        ({"a": {"b": [{"origin": "https://acme.example"}]}}, True),
        ({"a": "https://acme.example/"}, True),
        (["https://acme.example/.well-known/agent.json"], True),
        ("acme.example", True),
        ({"acme.example": True}, False),
        ({"a": "www.acme.example"}, False),
        ({"a": "https://acme.example.evil.example/"}, False),
        ({"a": "https://evil.example/?acme.example"}, False),
        ({"a": "http://acme.example/"}, False),
        ({"a": "https://acme.example:8443/"}, False),
        ({"a": "we trust acme.example"}, False),
        ({}, False),
        (None, False),
    ],
)
def test_a_domain_is_listed_when_a_value_names_it(document: Any, listed: bool) -> None:
    assert madp.lists_domain(document, "https://acme.example") is listed


def test_an_origin_with_a_port_or_an_address_is_found_by_its_host() -> None:
    assert madp.lists_domain(["acme.example"], "https://acme.example:8443")
    assert madp.lists_domain(["[2001:db8::1]"], "https://[2001:db8::1]:8443")
    assert not madp.lists_domain(["["], "https://[2001:db8::1]:8443")


def test_a_state_of_the_anchor_never_says_verified() -> None:
    assert [state.value for state in madp.AnchorState] == ["absent", "declared", "fetched", "parsed", "lists_domain"]


def test_a_huge_document_is_searched_to_a_bound() -> None:
    assert not madp.lists_domain([*["acme.example"], *[0] * 20_000], "https://acme.example")


# --- the constellation ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "members"),
    [
        ({"members": ["b.example", "https://c.example/x"]}, ["https://b.example/", "https://c.example/x"]),
        (["B.Example", "d.example"], ["https://b.example/", "https://d.example/"]),
        (
            {"members": [{"url": "https://b.example/"}, {"domain": "c.example"}, {"agent": "/agents/d.json"}]},
            ["https://b.example/", "https://c.example/", "https://acme.example/agents/d.json"],
        ),
        ({"hub": {"agent_url": "https://b.example/agent.json"}}, ["https://b.example/agent.json"]),
        ({"members": ["b.example", "https://b.example", "b.example"]}, ["https://b.example/"]),
        ({"members": [{"url": "https://b.example/", "logo_url": "https://cdn.example/l.png"}]}, ["https://b.example/"]),
        ({"name": "b.example", "members": ["Acme Shop", "", "10.0.0.1", "ftp://b.example", "https://[", 5, None]}, []),
        ({}, []),
        ("b.example", ["https://b.example/"]),
        (None, []),
    ],
)
def test_the_members_of_a_constellation_in_its_order(document: Any, members: list[str]) -> None:
    assert madp.constellation_members(document, AT) == members


def test_a_constellation_has_a_bound() -> None:
    members = madp.constellation_members([f"m{number}.example" for number in range(600)], AT)
    assert (len(members), members[0], members[-1]) == (500, "https://m0.example/", "https://m499.example/")


# --- any input --------------------------------------------------------------------------------------------------------

VALUES = anything() | lookalikes()


@given(VALUES, VALUES, VALUES)
def test_any_documents_are_graded_and_left_as_they_were(agent: Any, discovery: Any, constellation: Any) -> None:
    before = copy.deepcopy((agent, discovery, constellation))
    assessment = assess(agent, discovery, constellation)
    assert (assessment.level is Level.AAA) == (assessment.failed == ())
    for document in (agent, discovery, constellation):
        assert all("://" in member for member in madp.constellation_members(document, AT))
        assert (madp.next_anchor(document, ANCHOR) or "https://").startswith("https://")
        assert madp.lists_domain(document, "https://acme.example") in (True, False)
        if isinstance(document, dict):
            madp.read_agent(document)
            assert (madp.requests_per_minute(document) or 1) > 0
            assert (madp.trust_anchor(document) or "https://").startswith("https://")
    assert (agent, discovery, constellation) == before


@given(st.text(max_size=40))
def test_any_text_is_an_anchor_or_none(text: str) -> None:
    found = madp.next_anchor({"next": text}, ANCHOR)
    assert found is None or found.startswith("https://")
