"""What holds of every comparison, whatever is compared, and what it costs."""

import copy
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.surfaces.a2a import read_card
from index.change_classes import is_item
from index.diff import (
    ChangeClass,
    apply_edits,
    card_identity,
    diff,
    diff_cards,
    diff_entries,
    document_identity,
    is_silent,
    same,
    summary,
)
from index.edits import Operation, mark_of
from tests.fakes.work import FAR_FROM_SQUARE, growth

NUMBERS = (
    st.integers() | st.floats(allow_nan=False) | st.sampled_from([0, -0.0, 1, 1.0, True, 2**53, 2.0**53, 2**53 + 1])
)
SCALARS = st.none() | st.booleans() | NUMBERS | st.text(max_size=4) | st.sampled_from(["\ud800", "", "-", "0"])
NAMES = st.sampled_from(
    """
    a 0 - ~/ skills tags id url supportedInterfaces capabilities extensions uri signatures protected header
    securityRequirements schemes remotes headers type card entries identifier data version protocolVersion
    protocolBinding tenant required
    """.split()
)
JSON: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(NAMES, JSON, max_size=5)
WORDS = st.lists(st.sampled_from("abcd"), max_size=4, unique=True)
INTERFACES: st.SearchStrategy[Any] = st.builds(
    lambda url, binding, version, tenant: {
        "url": url,
        "protocolBinding": binding,
        "protocolVersion": version,
        **({"tenant": tenant} if tenant else {}),
    },
    st.sampled_from(["https://a.example", "https://b.example", "https://c.example"]),
    st.sampled_from(["JSONRPC", "GRPC"]),
    st.sampled_from(["0.3", "1.0", "1.0.1", "2.0"]),
    st.sampled_from(["", "north", "south"]),
)
SKILLS: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {"id": st.sampled_from("abcdef"), "name": st.sampled_from(["A", "B"]), "tags": WORDS},
    optional={"examples": WORDS, "inputModes": WORDS, "outputModes": WORDS},
)
CARDS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["A", "B"]),
        "version": st.sampled_from(["1", "2"]),
        "supportedInterfaces": st.lists(INTERFACES, max_size=4, unique_by=lambda item: card_identity_of(item)),
        "capabilities": st.fixed_dictionaries(
            {},
            optional={
                "streaming": st.booleans(),
                "extensions": st.lists(
                    st.fixed_dictionaries({"uri": st.sampled_from("xyz"), "required": st.booleans()}),
                    max_size=3,
                    unique_by=lambda item: item["uri"],
                ),
            },
        ),
        "skills": st.lists(SKILLS, max_size=4, unique_by=lambda skill: skill["id"]),
        "defaultInputModes": WORDS,
    },
    optional={
        "provider": st.fixed_dictionaries({"organization": st.sampled_from("PQ")}),
        "securitySchemes": st.dictionaries(
            st.sampled_from(["k", "0"]), st.fixed_dictionaries({"type": st.sampled_from(["http", "apiKey"])})
        ),
        "securityRequirements": st.lists(
            st.fixed_dictionaries({"schemes": st.dictionaries(st.sampled_from("kl"), st.builds(dict, list=WORDS))}),
            max_size=3,
            unique_by=lambda item: frozenset(item["schemes"]),
        ),
        "signatures": st.lists(st.fixed_dictionaries({"protected": st.sampled_from("rst")}), max_size=3),
    },
)


def card_identity_of(item: Any) -> Any:
    key = card_identity("/supportedInterfaces")
    assert key is not None
    return key(item)


def without_order(value: Any) -> Any:
    """Bring every list into one order, for comparing content alone."""
    if isinstance(value, dict):
        return {name: without_order(member) for name, member in value.items()}
    if isinstance(value, list):
        return sorted((without_order(item) for item in value), key=mark_of)
    return value


def turned(value: Any) -> Any:
    """Turn the members of every object around, and the lists that have identities."""

    def turn(node: Any, members: str) -> Any:
        if isinstance(node, dict):
            return {name: turn(node[name], f"{members}/{name}") for name in reversed(node)}
        if isinstance(node, list):
            items = [turn(item, members) for item in node]
            return items[::-1] if card_identity(members) is not None else items
        return node

    return turn(value, "")


# --- equality ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (1, 1.0, True),
        (0, -0.0, True),
        (0.0, -0.0, True),
        (10**30, 1e30, False),  # the float is another integer
        (2**53, 2.0**53, True),
        (1, True, False),
        (0, False, False),
        (0, None, False),
        ("1", 1, False),
        ("", None, False),
        (2**53, 2**53 + 1, False),
        (2.0**53, 2**53 + 1, False),
        ({"a": None}, {}, False),
        ({"a": 1, "b": 2}, {"b": 2.0, "a": 1.0}, True),
        ([1, 2], [2, 1], False),
        ([1, 2], [12], False),
        ([[1], 2], [[1, 2]], False),
        ([], {}, False),
        ([], [[]], False),
        ({"a": {}}, {"a": []}, False),
        ({"a": "b,"}, {"a": "b"}, False),
        ({'a":1,"b': 2}, {"a": 1, "b": 2}, False),
        ("True", True, False),
        ("\ud800", "\udfff", False),
        (math.inf, -math.inf, False),
        (math.nan, math.nan, True),
    ],
)
def test_equality_is_strict(first: Any, second: Any, expected: bool) -> None:
    assert same(first, second) is expected
    assert same(second, first) is expected
    assert same([{"x": first}], [{"x": second}]) is expected
    assert (diff({"x": first}, {"x": second}) == []) is expected
    assert (diff([first], [second]) == []) is expected


def test_integers_of_many_digits_are_compared() -> None:
    assert same(10**5000, 10**5000 + 0)
    assert not same(10**5000, 10**5000 + 1)


@given(JSON)
def test_a_value_is_the_same_as_its_copy(value: Any) -> None:
    assert same(value, copy.deepcopy(value))
    assert diff(value, copy.deepcopy(value), document_identity) == []


@given(JSON, JSON)
def test_equality_goes_both_ways(first: Any, second: Any) -> None:
    assert same(first, second) is same(second, first)


@given(st.lists(SCALARS, min_size=3, max_size=8))
def test_what_equals_the_same_is_equal(values: list[Any]) -> None:
    for first in values:
        for second in values:
            for third in values:
                if same(first, second) and same(second, third):
                    assert same(first, third)


@given(JSON, JSON)
def test_values_are_the_same_exactly_when_nothing_differs(first: Any, second: Any) -> None:
    assert same(first, second) is (diff(first, second) == [])


# --- comparison -------------------------------------------------------------------------------------------------------


@given(JSON, JSON)
def test_edits_lead_from_the_old_to_the_new(old: Any, new: Any) -> None:
    before = copy.deepcopy(old)
    for identity in (document_identity, card_identity):
        edits = diff(old, new, identity)
        assert same(without_order(apply_edits(old, edits)), without_order(new))
    plain = diff(old, new)
    assert same(without_order(apply_edits(old, plain)), without_order(new))
    if all(edit.kind is ChangeClass.ORDER_ONLY or not is_item(edit) for edit in plain):
        assert same(apply_edits(old, plain), new)
    assert same(old, before)


@given(CARDS, CARDS)
def test_edits_lead_from_the_old_card_to_the_new(old: dict[str, Any], new: dict[str, Any]) -> None:
    before, after = read_card(old).normal, read_card(new).normal
    edits = diff_cards(before, after)
    assert same(without_order(apply_edits(before, edits)), without_order(after))
    assert (summary(edits) is None) is (edits == [])


@given(CARDS)
def test_the_order_of_members_and_of_identities_is_no_change(card: dict[str, Any]) -> None:
    normal = read_card(card).normal
    assert [edit for edit in diff_cards(normal, turned(normal)) if edit.note != "order"] == []
    assert diff(card, turned(card), card_identity) == []


@given(st.permutations(range(5)), st.permutations(range(5)))
def test_a_new_order_without_identity_is_told_from_new_content(old: list[int], new: list[int]) -> None:
    edits = diff({"x": old}, {"x": new})
    expected = [] if old == new else [(ChangeClass.ORDER_ONLY, "/x")]
    assert [(edit.kind, edit.pointer) for edit in edits] == expected
    assert apply_edits({"x": old}, edits) == {"x": new}


@given(OBJECTS, OBJECTS, st.booleans(), st.lists(OBJECTS, max_size=2))
def test_no_document_is_beyond_comparison(
    old: dict[str, Any], new: dict[str, Any], dropped: bool, legacy: list[Any]
) -> None:
    for edits in (diff_cards(old, new, legacy_dropped=dropped, legacy=legacy), diff_entries(old, new)):
        assert all(isinstance(edit.kind, ChangeClass) for edit in edits)
        assert isinstance(is_silent(edits), bool)
    if not same(old, new):
        assert diff_entries(old, new) != []


@given(OBJECTS, OBJECTS)
def test_every_pointer_leads_to_the_value_that_was_there(old: dict[str, Any], new: dict[str, Any]) -> None:
    for edit in diff(old, new, document_identity):
        if edit.old is not None:
            node: Any = old
            for step in edit.pointer.split("/")[1:]:
                node = node[int(step)] if isinstance(node, list) else node[step.replace("~1", "/").replace("~0", "~")]
            assert same(node, edit.old)


# --- hostile input ----------------------------------------------------------------------------------------------------


def interface(url: str) -> dict[str, str]:
    return {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}


def skills(count: int, offset: int) -> dict[str, Any]:
    return {"skills": [{"id": str(number + offset), "name": "same", "tags": []} for number in range(count)]}


def nested(size: int, leaf: Any) -> Any:
    """Nest lists 60 deep, each level with a share of the items."""
    value: Any = [leaf]
    for _ in range(60):
        value = [value, *range(size // 60)]
    return value


HOSTILE = {
    "skills that all look alike": lambda size: diff_cards(skills(size, 0), skills(size, size)),
    "interfaces that all moved": lambda size: diff_cards(
        {"supportedInterfaces": [interface(f"https://a{n}.example") for n in range(size)]},
        {"supportedInterfaces": [interface(f"https://b{n}.example") for n in range(size)]},
    ),
    "a first interface as long as the list": lambda size: diff_cards(
        {"supportedInterfaces": [interface("x" * size)]},
        {"supportedInterfaces": [interface("y" * size), *(interface(f"https://b{n}.example") for n in range(size))]},
    ),
    "signatures": lambda size: diff_cards(
        {"signatures": [{"protected": f"{n}"} for n in range(size)]},
        {"signatures": [{"protected": f"{n + 1}"} for n in range(size)]},
    ),
    "skills with modes of their own": lambda size: diff_cards(
        {"defaultInputModes": [str(n) for n in range(size)], "skills": [{"id": str(n)} for n in range(size)]},
        {
            "defaultInputModes": [str(n) for n in range(size)],
            "skills": [{"id": str(n), "inputModes": ["1"]} for n in range(size)],
        },
    ),
    "one identity over and over": lambda size: diff_cards(
        {"skills": [{"id": "a", "name": str(n)} for n in range(size)]},
        {"skills": [{"id": "a", "name": str(n + 1)} for n in range(size)]},
    ),
    "lists in lists": lambda size: diff({"x": nested(size, 1)}, {"x": nested(size, 2)}),
    "members in members": lambda size: diff(
        {str(n): {str(m): n for m in range(10)} for n in range(size)},
        {str(n): {str(m): n + m for m in range(10)} for n in range(size)},
    ),
    "one long name above many members": lambda size: diff(
        {"n" * size: {str(n): 1 for n in range(size)}}, {"n" * size: {str(n): 2 for n in range(size)}}
    ),
    "one long identity above many members": lambda size: diff_cards(
        {"skills": [{"id": "n" * size, **{str(n): 1 for n in range(size)}}]},
        {"skills": [{"id": "n" * size, **{str(n): 2 for n in range(size)}}]},
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_comparison_grows_with_the_documents_not_with_their_square(name: str) -> None:
    assert growth(HOSTILE[name], 300) < FAR_FROM_SQUARE


def test_a_long_name_above_many_members_is_compared_as_a_whole() -> None:
    name = "n" * 10_000
    edits = diff({name: {str(n): 1 for n in range(100)}}, {name: {str(n): 2 for n in range(100)}})
    assert [(edit.operation, edit.pointer) for edit in edits] == [(Operation.REPLACE, f"/{name}")]


def test_nesting_beyond_every_bound_is_compared() -> None:
    def deep(leaf: Any) -> Any:
        value = leaf
        for _ in range(5_000):
            value = {"x": [value]}
        return value

    assert diff(deep(1), deep(1.0), document_identity) == []
    edits = diff(deep(1), deep(True), document_identity)
    assert [edit.operation for edit in edits] == [Operation.REMOVE, Operation.ADD]
