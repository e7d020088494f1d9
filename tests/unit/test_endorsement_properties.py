"""The verdict on generated pairs of entries is deep equality, told by a second definition of it."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from index.ard_schema import manifest_fault
from index.brand_manifest import Manifest, read_manifest
from index.documents import DocumentKind, DocumentState, Outcome
from index.endorsement import Verdict, endorse, read_candidate, record
from index.exact_json import differences, read_exact, sorted_text, written
from tests.fakes.web import entry

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
OSD = "https://opensupportdiscovery.org/ns#"
BRAND = "acme.example"
URL = "https://acme.example/.well-known/ard.json"
ARD = Path(__file__).resolve().parents[3] / "shared" / "data" / "ard" / "derived" / "ard-entry.schema.json"


@dataclass(frozen=True)
class Number:
    """A number as it is spelled."""

    text: str


# Few values, in many spellings, so that equal ones meet often.
SPELLINGS = ("0", "-0", "0.0", "0e7", "1", "1.0", "1e0", "10e-1", "-1", "2", "0.1", "1e-1", "0.10", "1E+2", "100",
             "9007199254740992", "9007199254740993", "9007199254740993.0", "0.1000000000000000055511151231257827",
             "1e-400", "10e-401", "123456789012345678901234567890", "1.0000000000000000000000000000001")  # fmt: skip
TEXTS = st.sampled_from(["", "a", "A", "é", "e\u0301", "1", "true", " a", "😀", "\x00", "/", "~"])
SCALARS = st.one_of(st.none(), st.booleans(), TEXTS, st.sampled_from(SPELLINGS).map(Number))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=6,
)
NAMES = st.sampled_from(["x:a", "x:b", "https://x.example/#a", "X:A", "x:é"])
EXTENSIONS = st.dictionaries(NAMES, VALUES, max_size=3)


def text_of(value: Any) -> str:
    if isinstance(value, Number):
        return value.text
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{text_of(member)}" for name, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(text_of, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def meaning(value: Any) -> Any:
    """Equality by another road: exact fractions, kinds as tags, members as a set."""
    if isinstance(value, Number):
        return "number", Fraction(value.text)
    if isinstance(value, dict):
        return "object", frozenset((name, meaning(member)) for name, member in value.items())
    if isinstance(value, list):
        return "array", tuple(map(meaning, value))
    return type(value).__name__, value


@st.composite
def twins(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two entries of one identifier: equal ones in other spellings, near ones and unrelated ones."""
    first = {**ECHO, **draw(EXTENSIONS)}
    if draw(st.booleans()):
        return first, {**ECHO, **draw(EXTENSIONS)}
    second = {name: respelled(draw, member) for name, member in draw(st.permutations(list(first.items())))}
    return first, second


def respelled(draw: st.DrawFn, value: Any) -> Any:
    if isinstance(value, Number):
        equal = [text for text in SPELLINGS if Fraction(text) == Fraction(value.text)]
        return Number(draw(st.sampled_from(equal)))
    if isinstance(value, dict):
        return {name: respelled(draw, member) for name, member in draw(st.permutations(list(value.items())))}
    if isinstance(value, list):
        items = [respelled(draw, item) for item in value]
        return draw(st.permutations(items)) if draw(st.integers(0, 3)) == 0 else items
    return value


ECHO: dict[str, Any] = {**entry(), "osd:brandDomain": BRAND}


def manifest_with(text: str) -> Manifest:
    at = NOW - timedelta(minutes=1)
    state = DocumentState(
        url=URL,
        origin="https://acme.example",
        kind=DocumentKind.MANIFEST,
        first_seen_at=at,
        outcome=Outcome.FETCHED,
        status=200,
        attempted_at=at,
        confirmed_at=at,
        final_url=URL,
        digest="d" * 64,
        fresh_until=NOW + timedelta(hours=1),
    )
    manifest = read_manifest(state, f'{{"entries":[{text}]}}'.encode(), (), now=NOW)
    assert isinstance(manifest, Manifest), manifest
    return manifest


@settings(max_examples=500)
@given(twins())
def test_the_verdict_is_deep_equality(pair: tuple[dict[str, Any], dict[str, Any]]) -> None:
    candidate, published = pair
    result = endorse(
        read_candidate(text_of(candidate)), BRAND, manifest_with(text_of(published)), namespace=OSD, now=NOW
    )
    expected = Verdict.MATCH if meaning(candidate) == meaning(published) else Verdict.MISMATCH
    assert result.verdict is expected
    assert bool(result.differences) is (expected is Verdict.MISMATCH)
    json.dumps(record(result))


@settings(max_examples=300)
@given(twins(), st.sampled_from([Number("73"), None, "x"]))
def test_what_search_added_never_changes_the_verdict(pair: tuple[dict[str, Any], dict[str, Any]], score: Any) -> None:
    candidate, published = pair
    flat = {"score": score, **candidate, "source": "https://registry.example/api/v1/"}
    manifest = manifest_with(text_of(published))
    plain = endorse(read_candidate(text_of(candidate)), BRAND, manifest, namespace=OSD, now=NOW)
    result = endorse(read_candidate(text_of(flat)), BRAND, manifest, namespace=OSD, now=NOW)
    assert (result.verdict, result.reason, result.differences) == (plain.verdict, plain.reason, plain.differences)
    copy = endorse(read_candidate(text_of(flat), copy=True), BRAND, manifest, namespace=OSD, now=NOW)
    assert copy.verdict is Verdict.MISMATCH


@given(VALUES, VALUES)
def test_differences_are_none_exactly_between_equals(first: Any, second: Any) -> None:
    found = list(differences(read_exact(text_of(first)), read_exact(text_of(second))))
    assert (not found) is (meaning(first) == meaning(second))
    back = list(differences(read_exact(text_of(second)), read_exact(text_of(first))))
    assert {item.pointer for item in found} == {item.pointer for item in back}


@given(VALUES)
def test_what_is_written_reads_back_the_same(value: Any) -> None:
    first = read_exact(text_of(value))
    assert meaning_of(read_exact(written(first))) == meaning(value)


def meaning_of(value: Any) -> Any:
    if isinstance(value, Decimal):
        return "number", Fraction(value)
    if isinstance(value, dict):
        return "object", frozenset((name, meaning_of(member)) for name, member in value.items())
    if isinstance(value, list):
        return "array", tuple(map(meaning_of, value))
    return type(value).__name__, value


def unordered(value: Any) -> Any:
    tag, inner = meaning(value)
    if isinstance(value, list):
        return tag, tuple(sorted((unordered(item) for item in value), key=repr))
    if isinstance(value, dict):
        return tag, tuple(sorted(((name, unordered(member)) for name, member in value.items()), key=repr))
    return tag, inner


@given(VALUES, VALUES)
def test_sorted_texts_are_equal_exactly_when_only_the_order_differs(first: Any, second: Any) -> None:
    texts = [sorted_text(read_exact(text_of(value))) for value in (first, second)]
    assert (texts[0] == texts[1]) is (unordered(first) == unordered(second))


# --- the schema -------------------------------------------------------------------------------------------------------

MEMBERS = ["@context", "@id", "identifier", "displayName", "type", "url", "data", "representativeQueries",
           "capabilities", "description", "tags", "version", "updatedAt", "metadata", "trustManifest", "x"]  # fmt: skip
SHAPES = st.sampled_from(
    ["", "x", "urn:air:a.example:x", "urn:air:a:", 1, 1.5, True, None, [], {}, ["x"], [1], [[]], {"a": 1}, {"a": []},
     {"identity": "x"}, {"identity": 1}, {"identity": "x", "identityType": 1}, {"identity": "x", "trustSchema": []},
     {"identity": "x", "trustSchema": {"version": 1}}, {"identity": "x", "trustSchema": {"verificationMethods": ["x"]}},
     {"identity": "x", "attestations": [{"type": "x"}]}, {"identity": "x", "attestations": [{"type": "x", "uri": "y"}]},
     {"identity": "x", "attestations": {}}, {"identity": "x", "provenance": [{"relation": "x", "sourceId": "y"}]},
     {"identity": "x", "provenance": [{"relation": "x", "sourceId": 1}]}, {"identity": "x", "signature": {}}]
)  # fmt: skip


@cache
def protocol_validator() -> Any:
    schema = json.loads(ARD.read_text("utf-8"))
    return jsonschema_rs.Draft202012Validator({"$ref": "#/$defs/ArdManifest", "$defs": schema["$defs"]})


@pytest.mark.skipif(not ARD.is_file(), reason=f"THE PROTOCOL'S SCHEMA IS ABSENT: no file {ARD}")
@settings(max_examples=1000)
@given(st.dictionaries(st.sampled_from(MEMBERS), SHAPES, max_size=2), st.sets(st.sampled_from(MEMBERS), max_size=1))
def test_our_reading_of_the_schema_is_the_protocols(changed: dict[str, Any], taken: set[str]) -> None:
    value = {name: member for name, member in {**entry(), **changed}.items() if name not in taken}
    assume("\n" not in str(value.get("identifier")))
    manifest = {"entries": [entry(), value]}
    exact = read_exact(json.dumps(manifest))
    assert (manifest_fault(exact) is None) is protocol_validator().is_valid(manifest)
