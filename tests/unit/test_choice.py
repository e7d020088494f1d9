"""From a hit to a call: what a question met, and which interface a client takes."""

from typing import Any

import pytest

from crawler.commands.render import lag_text, span
from index.choice import BINDINGS, is_usable, matched_by, take_interface
from index.offered import Address


def interface(url: str = "https://acme.example/a2a", binding: str = "JSONRPC", version: str = "1.0") -> dict[str, Any]:
    return {"url": url, "protocolBinding": binding, "protocolVersion": version}


def card(*interfaces: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"name": "Planner", "supportedInterfaces": list(interfaces), **members}


@pytest.mark.parametrize(
    ("url", "binding", "usable"),
    [
        ("https://acme.example/a2a", "JSONRPC", True),
        ("http://acme.example:8080", "HTTP+JSON", True),
        ("grpc.acme.example:443", "GRPC", True),
        ("https://grpc.acme.example", "GRPC", True),
        ("grpc.acme.example:443", "JSONRPC", False),
        ("grpc.acme.example", "GRPC", False),
        (":443", "GRPC", False),
        ("https://{tenant}.acme.example/a2a", "JSONRPC", False),
        ("https://user:secret@acme.example/a2a", "JSONRPC", False),
        ("ftp://acme.example/a2a", "JSONRPC", False),
        ("/a2a", "JSONRPC", False),
        ("javascript:alert(1)", "JSONRPC", False),
    ],
)
def test_an_address_can_be_called_as_it_stands_or_not(url: str, binding: str, usable: bool) -> None:
    assert is_usable(Address("", url, binding, ())) is usable


def test_the_order_of_the_card_decides_and_not_that_of_the_client() -> None:
    offered = card(interface(binding="GRPC", url="acme.example:443"), interface())
    taken = take_interface(offered, (), ("JSONRPC", "GRPC"))
    assert taken.interface is not None
    assert (taken.interface.pointer, taken.interface.binding) == ("/supportedInterfaces/0", "GRPC")


def test_a_client_passes_over_what_it_does_not_speak_or_cannot_call() -> None:
    offered = card(interface(binding="SMOKE"), interface(url="https://{host}/a2a"), interface(binding="http+json"))
    taken = take_interface(offered, (), BINDINGS)
    assert taken.interface is not None
    assert taken.interface.pointer == "/supportedInterfaces/2"


@pytest.mark.parametrize(
    ("offered", "reason"),
    [
        (card(), "no_interfaces"),
        ({"supportedInterfaces": "none"}, "no_interfaces"),
        (card(interface(binding="SMOKE")), "binding_not_spoken"),
        (card(interface(binding="")), "binding_not_spoken"),
        (card(interface(url="https://{host}/")), "url_unusable"),
    ],
)
def test_a_card_that_cannot_be_called_says_why(offered: dict[str, Any], reason: str) -> None:
    choice = take_interface(offered, (), BINDINGS)
    assert choice.interface is None
    assert choice.reason == reason
    assert choice.detail


def test_the_older_block_of_a_hybrid_card_and_the_card_in_an_agent_file_count_too() -> None:
    legacy = [{"url": "https://acme.example/v03", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"}]
    assert take_interface(card(interface(binding="SMOKE")), legacy, BINDINGS).interface is not None
    assert take_interface({"name": "Planner", "card": card(interface())}, (), BINDINGS).interface is not None


def test_a_question_meets_words_tags_and_the_skill_that_has_most_of_them() -> None:
    entry = {"displayName": "Planner", "tags": ["travel", "finance"], "description": "Plans trips"}
    skills = [
        {"id": "pay", "name": "Pay", "tags": ["finance"]},
        {"id": "route", "name": "Find routes", "tags": ["travel", "maps"], "examples": ["a route to the sea"]},
    ]
    matched = matched_by("travel routes, unknownword", entry, card(skills=skills))
    assert matched.words == ("travel", "routes,")
    assert matched.tags == ("travel",)
    assert matched.skill == {"id": "route", "name": "Find routes", "tags": ["travel"], "words": ["travel", "routes,"]}


def test_a_question_that_met_no_skill_names_none() -> None:
    matched = matched_by("zanzibar", {"displayName": "Zanzibar", "tags": "no list"}, {"skills": [7, {"name": None}]})
    assert (matched.words, matched.tags, matched.skill) == (("zanzibar",), (), None)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (0.4, "0s"), (59, "59s"), (60, "1m"), (3661, "1h 1m"), (86_400 * 3 + 7200, "3d 2h"), (86_405, "1d")],
)
def test_a_length_of_time_is_written_in_its_two_largest_units(seconds: float, text: str) -> None:
    assert span(seconds) == text


@pytest.mark.parametrize(
    ("lag", "text"),
    [
        (None, ""),
        ({"atLeastS": 5.0, "atMostS": None}, "at least 5s"),
        ({"atLeastS": 5.0, "atMostS": 65.0}, "5s to 1m 5s"),
        ({"atLeastS": 5.1, "atMostS": 5.2}, "5s"),
    ],
)
def test_a_lag_is_an_interval_for_people_too(lag: dict[str, Any] | None, text: str) -> None:
    assert lag_text(lag) == text
