"""Members that change at every look."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.surfaces.a2a import read_card
from index.diff import ChangeClass, Edit, Operation, diff, diff_cards, diff_entries, document_identity, summary
from index.volatile import (
    Churn,
    from_json,
    is_live_figure,
    is_structural,
    learn,
    settle,
    to_json,
    volatile,
    without_volatile,
)
from tests.fakes.work import FAR_FROM_SQUARE, growth


def edits_of(*documents: Any) -> list[list[Edit]]:
    """Compare each document with the one before it."""
    return [diff(old, new, document_identity) for old, new in pairwise(documents)]


def learnt(*documents: Any) -> dict[str, Churn]:
    """Look at documents one after the other."""
    known: dict[str, Churn] = {}
    for edits in edits_of(*documents):
        known = learn(known, edits)
    return known


def moods(count: int, start: int = 0) -> list[dict[str, Any]]:
    """Give documents with a member that is never the same and is no figure."""
    return [{"mood": chr(ord("a") + start + number), "note": "fixed"} for number in range(count)]


# --- the whole --------------------------------------------------------------------------------------------------------

CARD: dict[str, Any] = {
    "name": "Deals",
    "description": "Lists 812 items",
    "version": "1.0.0",
    "generatedAt": "2026-10-01T00:00:00Z",
    "supportedInterfaces": [
        {"url": "https://deals.example/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    ],
    "capabilities": {"streaming": True},
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
    "skills": [{"id": "find", "name": "Find", "description": "Searches 812 deals.", "tags": ["deals", "search"]}],
}


def test_fr63_live_figures_and_key_order_raise_no_alert_and_a_moved_interface_does() -> None:
    first = CARD
    second = {
        **{name: CARD[name] for name in reversed(CARD)},
        "description": "Lists 813 items",
        "generatedAt": "2026-10-02T06:30:00Z",
        "skills": [{"tags": ["search", "deals"], **CARD["skills"][0], "description": "Searches 813 deals."}],
    }
    moved = {**CARD["supportedInterfaces"][0], "url": "https://elsewhere.example/a2a"}
    third = {**second, "supportedInterfaces": [moved]}

    published = diff(first, second, document_identity)
    counting, passing = settle(published, {})
    assert counting == []
    assert {edit.pointer for edit in passing} == {"/description", "/generatedAt", "/skills/0/description"}
    normal, _ = settle(diff_cards(read_card(first).normal, read_card(second).normal), {})
    assert normal == []

    counting, passing = settle(diff_cards(read_card(second).normal, read_card(third).normal), {})
    assert [(edit.pointer, edit.kind) for edit in counting] == [("/supportedInterfaces/0/url", ChangeClass.BREAKING)]
    assert passing == []
    counting, _ = settle(diff(first, third, document_identity), learnt(first, second, third))
    assert {edit.path.split("/")[1] for edit in counting} == {"supportedInterfaces"}


def test_fr63_a_figure_and_a_real_change_in_one_push_are_told_apart() -> None:
    new = {**CARD, "description": "Lists 900 items", "name": "Bargains", "skills": []}
    counting, passing = settle(diff_cards(read_card(CARD).normal, read_card(new).normal), {})
    assert [edit.pointer for edit in counting] == ["/name", "/skills/0"]
    assert [edit.pointer for edit in passing] == ["/description"]
    assert summary(counting) is ChangeClass.BREAKING


# --- learning ---------------------------------------------------------------------------------------------------------


def test_what_changed_at_three_looks_in_a_row_is_volatile() -> None:
    assert volatile(learnt(*moods(3))) == frozenset()
    known = learnt(*moods(4))
    assert known == {"/mood": Churn(3, 3)}
    assert volatile(known) == {"/mood"}


def test_a_look_without_the_change_ends_it_until_three_in_a_row_again() -> None:
    known = learnt(*moods(4))
    known = learn(known, edits_of({"other": 1}, {"other": 2})[0])
    assert known["/mood"] == Churn(3, 4)
    assert volatile(known) == frozenset()
    for edits in edits_of(*moods(3)):
        known = learn(known, edits)
    assert known["/mood"] == Churn(2, 2)
    assert volatile(known) == frozenset()
    known = learn(known, edits_of(*moods(2))[0])
    assert "/mood" in volatile(known)


def test_what_stays_the_same_three_times_is_forgotten() -> None:
    known = learnt(*moods(5))
    for count in range(3):
        assert "/mood" in known
        known = learn(known, edits_of({"other": count}, {"other": count + 1})[0])
    assert "/mood" not in known


def test_a_member_changed_now_and_then_is_never_volatile() -> None:
    known: dict[str, Churn] = {}
    for round_ in range(30):
        known = learn(known, edits_of(*moods(2))[0] if round_ % 3 else [])
        assert volatile(known) == frozenset()


def test_a_new_order_is_not_learnt() -> None:
    lists = [{"x": [1, 2, 3]}, {"x": [3, 2, 1]}, {"x": [1, 2, 3]}, {"x": [3, 2, 1]}, {"x": [1, 2, 3]}]
    assert learnt(*lists) == {}


@pytest.mark.parametrize("member", ["version", "url", "name", "tags", "capabilities", "supportedInterfaces"])
def test_what_callers_rely_on_is_never_learnt(member: str) -> None:
    documents = [{member: [mood["mood"]]} for mood in moods(9)]
    known = learnt(*documents)
    assert known == {}
    counting, passing = settle(edits_of(*documents[:2])[0], known)
    assert counting
    assert passing == []


def test_a_grave_change_is_never_learnt_nor_passed_over() -> None:
    cards = [{"authSchemes": ["a"], "x-realm": mood["mood"]} for mood in moods(5)]
    known = learnt(*cards)
    assert volatile(known) == {"/x-realm"}
    grave = Edit(Operation.REPLACE, "/x-realm", 1, 2, ChangeClass.SECURITY)
    assert settle([grave], known) == ([grave], [])
    assert learn({}, [grave]) == {}


def test_items_are_known_by_their_identity_wherever_they_stand() -> None:
    def skills(mood: str, other: str, turn: bool) -> dict[str, Any]:
        found = [{"id": "a", "description": mood}, {"id": "b", "description": other}]
        return {"skills": found[::-1] if turn else found}

    documents = [skills(mood["mood"], "fixed", index % 2 == 0) for index, mood in enumerate(moods(5))]
    known = learnt(*documents)
    assert volatile(known) == {"/skills/a/description"}
    counting, passing = settle(edits_of(documents[0], skills("z", "changed", False))[0], known)
    assert [edit.path for edit in counting] == ["/skills/b/description"]
    assert [edit.path for edit in passing] == ["/skills/a/description"]


def test_a_member_below_or_instead_of_a_volatile_one_passes() -> None:
    known = {"/stats": Churn(3, 3)}
    for old, new in (({"stats": {"a": "x"}}, {"stats": {"a": "y"}}), ({"stats": "x"}, {})):
        counting, passing = settle(edits_of(old, new)[0], known)
        assert counting == []
        assert len(passing) == 1
    counting, _ = settle(edits_of({"statsPage": "x"}, {"statsPage": "y"})[0], known)
    assert len(counting) == 1


def test_a_signature_made_anew_passes_and_another_key_counts() -> None:
    def card(kid: str, text: str) -> dict[str, Any]:
        return {"signatures": [{"protected": "e30", "header": {"kid": kid}, "signature": text}]}

    counting, passing = settle(diff_cards(card("a", "x"), card("a", "y")), {})
    assert counting == []
    assert len(passing) == 2
    counting, _ = settle(diff_cards(card("a", "x"), card("b", "y")), {})
    assert summary(counting) is ChangeClass.SECURITY


# --- at first sight ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Lists 812 items", "Lists 813 items"),
        ("Lists 812 items", "Lists 1,203 items"),
        ("Lists 9\u202f999 items", "Lists 10\u202f000 items"),
        ("Rated 4.5 of 5 by 12 people", "Rated 4.75 of 5 by 13 people"),
        ("Updated 2026-10-01", "Updated 2026-11-12"),
        ("Updated 2026-10-01T00:00:00Z", "Updated 2026-11-12T10:20:30.123+02:00"),
        ("As of Oct 3, 2026", "As of November 12, 2026"),
        ("As of 3 May 2026", "As of 12 June 2026"),
        ("Sat, 10 Oct 2026 12:00:00 GMT", "Sun, 11 Oct 2026 09:30:00 GMT"),
        ("2026-10-01T00:00:00Z", "2026-10-01T00:00:01.5Z"),
        ("1791234567", "1791234568"),
        (812, 813),
        (1, 1.5),
        (1791234567, 1791234568),
    ],
)
def test_a_running_figure_is_told_at_first_sight(old: Any, new: Any) -> None:
    assert is_live_figure(old, new)
    assert is_live_figure(new, old)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Lists 812 items", "Sells 812 items"),
        ("Lists 812 items", "Lists items"),
        ("Lists many items", "Lists few items"),
        ("Lists many items", "Lists 812 items"),
        ("You may ask", "You june ask"),
        ("See https://acme.example/v1", "See https://acme.example/v2"),
        ("https://10.0.0.1/", "https://10.0.0.2/"),
        (True, False),
        (0, False),
        (1, True),
        (812, "813"),
        (None, 1),
        ([1], [2]),
        ({"a": 1}, {"a": 2}),
        ("x1" * 20_000, "x2" * 20_000),
    ],
)
def test_another_change_is_no_figure(old: Any, new: Any) -> None:
    assert not is_live_figure(old, new)
    assert not is_live_figure(new, old)


@pytest.mark.parametrize(
    "pointer",
    """
    /version /protocolVersion /url /id /name /identifier /type /data /supportedInterfaces /supportedInterfaces/0/url
    /supportedInterfaces/-/x-weight /interfaces/1 /securitySchemes/key/description /securityRequirements/0
    /security/0/key /skills /skills/0 /skills/find /skills/- /skills/description /skills/3/id /skills/3/name
    /skills/find/tags /skills/find/tags/* /tags/2 /capabilities/streaming /capabilities/extensions/0/params/limit
    /defaultInputModes/0 /skills/0/outputModes/1 /signatures/0/signature /trustManifest/identity /provider/url
    /remotes/0 /transport/endpoint /authentication/required /tools/- /tools/x/inputSchema/maximum /serverInfo/version
    /entries/urn:x /entries/0/url /entries/0/data /entries/0/data/version /rate_limits/requests_per_minute
    """.split(),
)
def test_what_callers_rely_on_is_structural(pointer: str) -> None:
    assert is_structural(pointer)
    assert is_structural("/entries/0" + pointer)
    counting, passing = settle([Edit(Operation.REPLACE, pointer, 1, 2)], {pointer: Churn(9, 9)})
    assert len(counting) == 1
    assert passing == []


@pytest.mark.parametrize(
    "pointer",
    """
    /description /generatedAt /updatedAt /stats/count /x-uptime /title /displayName /documentationUrl /iconUrl
    /skills/0/description /skills/version/description /skills/tags/examples/0 /skills/find/x-calls
    /tools/url/description /entries/urn:x/description /entries/0/metadata/calls
    /data/description /metadata/rating /representativeQueries/0
    /instructions
    """.split(),
)
def test_what_describes_or_is_unknown_is_not_structural(pointer: str) -> None:
    assert not is_structural(pointer)
    edit = Edit(Operation.REPLACE, pointer, 1, 2)
    assert settle([edit], {}) == ([], [edit])


def test_the_whole_document_is_structural() -> None:
    assert is_structural("")
    edit = Edit(Operation.REPLACE, "", 1, 2)
    assert settle([edit], {}) == ([edit], [])


def test_a_text_of_a_list_with_a_moved_figure_passes_and_other_items_count() -> None:
    old = {"representativeQueries": ["Search 812 items", "Find 3 shops", "Any rain?"]}
    new = {"representativeQueries": ["Search 813 items", "Any snow?", "Find 4 shops"]}
    counting, passing = settle(diff_entries(old, new), {})
    assert sorted((edit.operation, edit.old or edit.new) for edit in counting) == [
        (Operation.ADD, "Any snow?"),
        (Operation.REMOVE, "Any rain?"),
    ]
    assert len(passing) == 4


def test_a_text_that_comes_without_one_that_went_counts() -> None:
    old = {"representativeQueries": ["Search 812 items"]}
    new = {"representativeQueries": ["Search 813 items", "Search 814 items"]}
    counting, passing = settle(diff_entries(old, new), {})
    assert len(counting) == 3
    assert passing == []


def test_a_moved_figure_among_tags_counts() -> None:
    counting, _ = settle(diff_entries({"tags": ["top 10"]}, {"tags": ["top 20"]}), {})
    assert len(counting) == 2


def test_a_new_order_counts_as_such() -> None:
    edits = diff({"x": [1, 2]}, {"x": [2, 1]})
    assert settle(edits, {}) == (edits, [])
    assert summary(edits) is ChangeClass.ORDER_ONLY


# --- content ----------------------------------------------------------------------------------------------------------


def test_content_is_compared_without_what_is_volatile() -> None:
    known = {
        path: Churn(3, 3)
        for path in ("/mood", "/skills/a/mood", "/log/*", "/stats/now", "/a~1b", "/interfaces/*/mood", "/skills/~0")
    }
    value = {
        "mood": 1,
        "a/b": 2,
        "log": ["x", "y"],
        "stats": {"now": 1, "total": 2},
        "skills": [{"id": "a", "mood": 1}, {"id": "b", "mood": 1}],
        "kept": {"mood": 1},
    }
    before = json.dumps(value)
    assert without_volatile(value, known) == {
        "log": [],
        "stats": {"total": 2},
        "skills": [{"id": "a"}, {"id": "b", "mood": 1}],
        "kept": {"mood": 1},
    }
    assert json.dumps(value) == before


def test_content_stays_whole_until_something_is_volatile() -> None:
    value = {"mood": 1}
    assert without_volatile(value, {}) == value
    assert without_volatile(value, {"/mood": Churn(2, 2)}) == value
    assert without_volatile(value, {"/mood": Churn(3, 4)}) == value


NAMES = st.sampled_from(["a", "b", "~/", "*", "0", "skills", "id", "description"])
VALUES = st.recursive(
    st.none() | st.integers(0, 3) | st.sampled_from(["x", "y"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(NAMES, VALUES, max_size=4), st.dictionaries(NAMES, VALUES, max_size=4))
def test_documents_that_differ_in_volatile_members_only_have_the_same_content(
    old: dict[str, Any], new: dict[str, Any]
) -> None:
    edits = diff(old, new, document_identity)
    known: dict[str, Churn] = {}
    for _ in range(3):
        known = learn(known, edits)
    counting, _ = settle(edits, known)
    left = diff(without_volatile(old, known), without_volatile(new, known), document_identity)
    if not counting:
        assert left == []
    assert {edit.path for edit in left} <= {edit.path for edit in counting}


# --- storage ----------------------------------------------------------------------------------------------------------


def test_what_was_learnt_survives_storage() -> None:
    known = learn(learnt(*moods(4)), edits_of({"x": 1}, {"x": 2})[0])
    assert from_json(json.loads(json.dumps(to_json(known)))) == known
    assert known == {"/mood": Churn(3, 4), "/x": Churn(1, 1)}


@pytest.mark.parametrize(
    "stored",
    [
        None,
        [],
        "x",
        {"/a": None},
        {"/a": [1]},
        {"/a": ["1", "1"]},
        {"/a": [True, True]},
        {"/a": [1.5, 2]},
        {"/a": [0, 0]},
        {"/a": [3, 2]},
        {"/a": [1, 9]},
        {"/a": [-1, 1]},
    ],
)
def test_what_is_not_in_order_was_never_learnt(stored: Any) -> None:
    assert from_json(stored) == {}


def test_no_more_than_a_hundred_members_are_remembered_and_the_steadiest_stay() -> None:
    known = learnt(*moods(6))
    flood = [{str(number): mood["mood"] for number in range(5000)} for mood in moods(4)]
    for edits in edits_of(*flood):
        known = learn({**known}, [*edits, Edit(Operation.REPLACE, "/mood", "a", "b")])
        assert len(known) == 100
        assert "/mood" in known
    assert len(to_json({str(number): Churn(1, 1) for number in range(500)})) == 100
    assert len(from_json({str(number): [1, 1] for number in range(500)})) == 100


def test_a_path_beyond_all_measure_is_not_remembered() -> None:
    assert learn({}, [Edit(Operation.REPLACE, "/" + "x" * 501, 1, 2)]) == {}


def test_counts_stay_small_for_ever() -> None:
    edits = edits_of(*moods(2))[0]
    known: dict[str, Churn] = {}
    for _ in range(1100):
        known = learn(known, edits)
    assert known == {"/mood": Churn(1000, 1000)}
    assert from_json(to_json(known)) == known
    assert volatile(known) == {"/mood"}


@pytest.mark.parametrize(
    "text", ["1" * 19_000, "1," * 9_500, "#" * 19_000, "may # " * 3_000, "mon " * 4_500, "2026-10-01T" * 1_700]
)
def test_telling_a_figure_takes_time_in_proportion(text: str) -> None:
    assert growth(lambda size: is_live_figure(text[:size] + "a", text[:size] + "b"), len(text) // 4) < FAR_FROM_SQUARE


def test_settling_takes_time_in_proportion() -> None:
    known = {f"/m{number}/x": Churn(3, 3) for number in range(100)}

    def run(size: int) -> None:
        old = {"log": [f"{number} apples of {number}x" for number in range(size)], **{f"m{n}": n for n in range(size)}}
        new = {"log": [f"{number}0 pears of {number}x" for number in range(size)], **{f"m{n}": -n for n in range(size)}}
        settle(diff(old, new), known)

    assert growth(run, 300) < FAR_FROM_SQUARE
