"""How much it matters that a signature has another outcome than before."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.diff import ChangeClass, diff_cards, is_silent, summary
from index.edits import VERDICT, Edit, Operation
from index.signature_changes import diff_verdicts, remembered
from index.verdicts import MOST_SIGNATURES, SignatureOutcome

Verdicts = list[dict[str, Any]]


def verdict(outcome: str, kid: str = "key-1", host: str = "acme.example", place: int = 0, **more: Any) -> Any:
    return {"pointer": f"/signatures/{place}", "outcome": outcome, "alg": "ES256", "kid": kid, "jkuHost": host, **more}


WHOLE = {"pointer": "/signatures/0", "outcome": "malformed", "reason": "not_exact"}
OTHER = verdict("valid", "key-2", place=1)
ROWS: list[tuple[str, Verdicts | None, Verdicts, list[str]]] = [
    ("nothing changed", [verdict("valid")], [verdict("valid")], []),
    ("valid, then invalid", [verdict("valid")], [verdict("invalid")], ["security valid -> invalid /signatures/0"]),
    (
        "valid, then signed with what nobody accepts",
        [verdict("valid")],
        [verdict("unsupported_alg")],
        ["security valid -> unsupported_alg /signatures/0"],
    ),
    (
        "valid, then with a value that cannot be read",
        [verdict("valid")],
        [verdict("malformed")],
        ["security valid -> malformed /signatures/0"],
    ),
    (
        "valid, then in a card that no two parsers read alike",
        [verdict("valid")],
        [WHOLE],
        ["security valid -> malformed /signatures/0"],
    ),
    (
        "valid, then behind more signatures than are looked at",
        [verdict("valid")],
        [verdict("invalid", f"new-{n}", place=n) for n in range(MOST_SIGNATURES)],
        ["security valid -> malformed /signatures"],
    ),
    (
        "valid, then without its key",
        [verdict("valid")],
        [verdict("key_unavailable")],
        ["behavioural valid -> key_unavailable /signatures/0"],
    ),
    (
        "valid, without its key for a time, then invalid",
        [verdict("key_unavailable", known="valid")],
        [verdict("invalid")],
        ["security valid -> invalid /signatures/0"],
    ),
    ("still without its key", [verdict("key_unavailable", known="valid")], [verdict("key_unavailable")], []),
    (
        "its key is back",
        [verdict("key_unavailable", known="valid")],
        [verdict("valid")],
        ["compatible key_unavailable -> valid /signatures/0"],
    ),
    ("invalid as soon as anybody could tell", [verdict("key_unavailable")], [verdict("invalid")], []),
    ("put right", [verdict("invalid")], [verdict("valid")], ["compatible invalid -> valid /signatures/0"]),
    ("invalid, then without its key", [verdict("invalid")], [verdict("key_unavailable")], []),
    ("never looked at before", None, [verdict("invalid")], []),
    ("unsigned before", [], [verdict("invalid")], []),
    ("signatures gone, which the card shows", [verdict("valid")], [], []),
    ("another key, which the card shows", [verdict("valid")], [verdict("invalid", "key-9")], []),
    ("another host of keys, which the card shows", [verdict("valid")], [verdict("invalid", host="evil.example")], []),
    (
        "one of two",
        [verdict("valid"), OTHER],
        [OTHER, verdict("invalid", place=1)],
        ["security valid -> invalid /signatures/1"],
    ),
    (
        "the worse of two by one signer",
        [verdict("valid"), verdict("invalid", place=1)],
        [verdict("invalid"), verdict("valid", place=1)],
        [],
    ),
]


def told(edits: list[Edit]) -> list[str]:
    return [f"{edit.kind} {edit.old} -> {edit.new} {edit.pointer}" for edit in edits]


@pytest.mark.parametrize(("old", "new", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_every_turn_of_a_verdict_has_its_class(old: Verdicts | None, new: Verdicts, expected: list[str]) -> None:
    edits = diff_verdicts(old, new)
    assert told(edits) == expected
    assert all(edit.note == VERDICT and edit.operation is Operation.REPLACE for edit in edits)


CARD = {"name": "Trips", "version": "1", "signatures": [{"protected": "e30", "signature": "AA"}]}


def test_that_signatures_vanish_or_change_hands_is_for_the_comparison_of_the_cards() -> None:
    """The rows of the three that the card itself shows; `tests/unit/test_diff.py` has them all."""
    gone = diff_cards(CARD, {"name": "Trips", "version": "1"})
    assert summary(gone) is ChangeClass.SECURITY
    keys = diff_cards(
        {"keys": [{"kid": "a", "thumbprint": "x"}]},
        {"keys": [{"kid": "a", "thumbprint": "y"}, {"kid": "b", "thumbprint": "z"}]},
    )
    assert {edit.kind for edit in keys} == {ChangeClass.SECURITY}
    assert len(keys) == 3


def test_a_verdict_is_no_content_that_could_change_in_silence() -> None:
    edits = diff_verdicts([verdict("valid")], [verdict("invalid")])
    assert not is_silent(edits)
    assert is_silent([*edits, *diff_cards(CARD, {**CARD, "name": "Traps"})])


def test_what_was_known_is_remembered_through_any_number_of_outages() -> None:
    first = remembered([verdict("valid")], [verdict("key_unavailable")])
    assert first == [verdict("key_unavailable", known="valid")]
    second = remembered(first, [verdict("key_unavailable")])
    assert second == first
    assert remembered(second, [verdict("invalid")]) == [verdict("invalid")]
    assert remembered(None, [verdict("key_unavailable")]) == [verdict("key_unavailable")]
    assert remembered([verdict("malformed")], [verdict("key_unavailable", "key-2")]) == [
        verdict("key_unavailable", "key-2")
    ]


VERDICTS = st.lists(
    st.builds(
        lambda outcome, kid, place, known: {
            **verdict(outcome, kid, place=place),
            **({"known": known} if known else {}),
        },
        st.sampled_from(list(SignatureOutcome)).map(str),
        st.sampled_from(["", "a", "b"]),
        st.integers(0, 7),
        st.sampled_from(["", "valid", "invalid"]),
    ),
    max_size=MOST_SIGNATURES,
)


@given(VERDICTS, VERDICTS)
def test_a_comparison_ends_and_finds_nothing_where_nothing_changed(old: Verdicts, new: Verdicts) -> None:
    assert diff_verdicts(new, new) == [] or any(not item["kid"] for item in new) or len(new) == MOST_SIGNATURES
    assert all(edit.kind in ChangeClass for edit in diff_verdicts(old, remembered(old, new)))
    assert [item["outcome"] for item in remembered(old, new)] == [item["outcome"] for item in new]
