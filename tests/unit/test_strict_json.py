"""The gate that foreign JSON passes."""

import json
from collections.abc import Callable
from typing import Any

import orjson
import pytest
import rfc8785
from hypothesis import assume, given
from hypothesis import strategies as st

from index.records import Severity, pointer_step
from index.strict_json import (
    MalformedJson,
    canonical,
    canonical_digest,
    digest,
    element_texts,
    member_text,
    parse,
    place_of,
)
from tests.fakes.work import FAR_FROM_SQUARE, growth


def refusal(body: bytes, max_depth: int = 64) -> MalformedJson:
    with pytest.raises(MalformedJson) as caught:
        parse(body, max_depth=max_depth)
    return caught.value


# --- what is no JSON at all -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        (b"", "json.empty", "the document is empty"),
        (b" \n\t\r", "json.empty", "the document is empty"),
        (b"\xef\xbb\xbf", "json.empty", "the document is empty"),
        (b"{", "json.syntax", "(line 1, column 2)"),
        (b'{"a": 1,}', "json.syntax", "(line 1, column"),
        (b'{"a" 1}', "json.syntax", "(line 1, column 6)"),
        (b'{\n  "a": 1\n  "b": 2\n}', "json.syntax", "(line 3, column 3)"),
        (b"[1, 2] x", "json.syntax", "(line 1, column 8)"),
        (b"{} {}", "json.syntax", "(line 1, column 4)"),
        (b"// note\n{}", "json.syntax", "(line 1, column 1)"),
        (b"{'a': 1}", "json.syntax", "(line 1, column 2)"),
        (b'"a\nb"', "json.syntax", "(line 1, column 3)"),
        (b'"abcd\x00"', "json.syntax", "(line 1, column 6)"),
        (b'"\\x"', "json.syntax", "(line 1, column"),
        (b'"\\u12"', "json.syntax", "(line 1, column"),
        (b"01", "json.syntax", "(line 1, column 2)"),
        (b"+1", "json.syntax", "(line 1, column 1)"),
        (b".5", "json.syntax", "(line 1, column 1)"),
        (b"1.", "json.syntax", "(line 1, column 2)"),
        (b"0x1", "json.syntax", "(line 1, column 2)"),
        (b"True", "json.syntax", "(line 1, column 1)"),
        (b"<!doctype html>", "json.syntax", "(line 1, column 1)"),
        (b"\xef\xbb\xbf\xef\xbb\xbf{}", "json.syntax", "(line 1, column 1)"),
        (b'\xa0{}', "json.encoding", "not UTF-8 at byte 0"),
        (b'{"a": "caf\xe9"}', "json.encoding", "not UTF-8 at byte 10"),
        (b'"\xed\xa0\x80"', "json.encoding", "not UTF-8 at byte 1"),
        (b'"\xc0\xaf"', "json.encoding", "not UTF-8 at byte 1"),
        ('{"a": 1}'.encode("utf-16"), "json.encoding", "UTF-16"),
        ('{"é": 1}'.encode("utf-16-le"), "json.encoding", "UTF-16"),
        ('{"é": 1}'.encode("utf-16-be"), "json.encoding", "UTF-16"),
        (b"NaN", "json.not_a_number", "NaN is not JSON (line 1, column 1)"),
        (b'{\n"a": [1,\n  Infinity]}', "json.not_a_number", "Infinity is not JSON (line 3, column 3)"),
        (b"[-Infinity]", "json.not_a_number", "-Infinity is not JSON (line 1, column 2)"),
        (b'{"NaN \\" NaN": "Infinity", "b": NaN}', "json.not_a_number", "NaN is not JSON (line 1, column 33)"),
    ],
)  # fmt: skip
def test_what_is_no_json_is_refused_with_its_place(body: bytes, code: str, message: str) -> None:
    error = refusal(body)
    assert error.code == code
    assert message in error.message
    problem = error.problem()
    assert (problem.code, problem.severity, problem.pointer, problem.clause) == (code, Severity.ERROR, "", "RFC 8259")


def nest(depth: int, opening: bytes = b"[", closing: bytes = b"]") -> bytes:
    return opening * depth + closing * depth


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (nest(64), None),
        (nest(65), "json.too_deep"),
        (nest(32, b'{"a":[', b"]}"), None),
        (nest(33, b'{"a":[', b"]}"), "json.too_deep"),
        (nest(100_000), "json.too_deep"),
        (b"[" * 100_000, "json.too_deep"),
        (b"[" * 64, "json.syntax"),
        (b'{"a":' * 65, "json.too_deep"),
        # Breadth is no depth, and brackets in texts are none.
        (b"[" + b"[]," * 1000 + b"[]]", None),
        (b'["' + b"[" * 1000 + b'"]', None),
        (b'["\\"' + b"[" * 1000 + b'"]', None),
        (b'["\\\\", ' + nest(63) + b"]", None),
        (b'["\\\\", ' + nest(64) + b"]", "json.too_deep"),
        # What does not pair up is for the parser to say.
        (b"[" + b"[}," * 100 + b"]", "json.syntax"),
        (b"]" * 100, "json.syntax"),
        (b"[]" * 100, "json.syntax"),
        (b'"' + b"[" * 100, "json.syntax"),
    ],
)
def test_nesting_is_counted_before_the_parser_recurses(body: bytes, code: str | None) -> None:
    """FR-23: deep nesting is a fault of the document like any other."""
    if code is None:
        assert parse(body).value is not None
    else:
        assert refusal(body).code == code


@pytest.mark.parametrize("depth", [8, 64, 256])
def test_the_bound_on_nesting_is_the_operators(depth: int) -> None:
    assert parse(nest(depth), max_depth=depth).value
    assert refusal(nest(depth + 1), max_depth=depth).message == f"the document nests deeper than {depth} levels"


# --- what is JSON and has faults --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ('{"a": 1, "b": [{}, "x"]}', []),
        ('{"a": 1, "a": 2}', [("json.duplicate_member", "/a")]),
        ('{"a": 1, "a": 2, "a": 3}', [("json.duplicate_member", "/a"), ("json.duplicate_member", "/a")]),
        ('{"a": 1, "\\u0061": 2}', [("json.duplicate_member", "/a")]),
        ('[0, {"x": {"a/b~c": 1, "a/b~c": 2}}]', [("json.duplicate_member", "/1/x/a~1b~0c")]),
        ('{"": 1, "": 2}', [("json.duplicate_member", "/")]),
        # The object that the last one replaced is gone, and its faults with it.
        ('{"a": {"b": 1, "b": 2}, "a": 3}', [("json.duplicate_member", "/a")]),
        ('{"a": {"b": 1}, "c": {"b": 1}}', []),
        ('"\\ud800"', [("json.lone_surrogate", "")]),
        ('{"a": ["x", "\\udc00y"]}', [("json.lone_surrogate", "/a/1")]),
        ('{"a": "\\udc00\\ud800"}', [("json.lone_surrogate", "/a")]),
        ('{"a": "\\ud83d\\ude00"}', []),
        ('{"a": "\\\\ud800"}', []),
        ('{"a": {"\\ud800": {"b": "\\ud800"}}}', [("json.lone_surrogate", "/a")]),
        ('{"a": {"\\ud800": 1, "\\ud800": 2}}', [("json.duplicate_member", "/a"), ("json.lone_surrogate", "/a")]),
        ("1e400", [("json.number_range", "")]),
        ("[1e308, -1e309]", [("json.number_range", "/1")]),
        (f"[{'9' * 401}]", [("json.number_range", "/0")]),
        (f"[{'9' * 400}]", []),
        ("[1e-400]", []),
    ],
)  # fmt: skip
def test_what_json_allows_and_i_json_does_not_is_located(text: str, faults: list[tuple[str, str]]) -> None:
    parsed = parse(text.encode())
    assert [(problem.code, problem.pointer) for problem in parsed.problems] == faults
    assert parsed.text == text
    for problem in parsed.problems:
        assert problem.pointer.isascii()
        assert problem.severity == ("warning" if problem.code == "json.duplicate_member" else "error")


def test_the_last_of_two_members_counts() -> None:
    assert parse(b'{"a": 1, "b": 2, "a": 3}').value == {"a": 3, "b": 2}


def test_FR16_a_byte_order_mark_is_skipped_with_a_warning() -> None:
    parsed = parse(b"\xef\xbb\xbf" + '{"a": "é"}'.encode())
    assert (parsed.value, parsed.text) == ({"a": "é"}, '{"a": "é"}')
    assert [(problem.code, problem.severity, problem.pointer) for problem in parsed.problems] == [
        ("json.bom", "warning", "")
    ]


@pytest.mark.parametrize(
    ("text", "value", "exact"),
    [
        ("0", 0, True),
        ("-0", 0, True),
        ("123456789012345", 123456789012345, True),
        ("9007199254740993", 9007199254740993, False),
        ("1" * 400, int("1" * 400), False),
        ("1.0", 1.0, False),
        ("1e2", 100.0, False),
        ("true", True, True),
        ("null", None, True),
    ],
)
def test_whole_numbers_are_kept_exactly_and_the_rest_is_marked(text: str, value: Any, exact: bool) -> None:
    parsed = parse(text.encode())
    assert (parsed.value, type(parsed.value), parsed.exact) == (value, type(value), exact)


# --- canonical form ---------------------------------------------------------------------------------------------------

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
plain_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@given(plain_values)
def test_the_quick_writer_gives_the_canonical_form(value: Any) -> None:
    assert canonical(value, plain=True) == canonical(value) == rfc8785.dumps(value)


@given(values)
def test_the_canonical_form_is_that_of_rfc_8785(value: Any) -> None:
    assert canonical(value) == rfc8785.dumps(value)


@given(values, st.integers(0, 4))
def test_the_content_of_a_document_has_one_name_whatever_its_formatting(value: Any, indent: int) -> None:
    compact = parse(json.dumps(value, separators=(",", ":")).encode())
    spaced = parse(json.dumps(value, indent=indent, ensure_ascii=False).encode())
    assert canonical_digest(compact) == canonical_digest(spaced)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("1", '"1"'),
        ("1", "2"),
        ("[1, 2]", "[2, 1]"),
        ("{}", "[]"),
        ('{"a": null}', "{}"),
        ("9007199254740993", "9007199254740992"),
        ("9007199254740993", "9007199254740993.0"),
        ("1e400", "-1e400"),
        ("1e400", '"Infinity"'),
        ('"\\ud800"', '"\\ud801"'),
        ('"\\ud800"', '"\\\\ud800"'),
        ('"é"', '"e\\u0301"'),
    ],
)
def test_other_content_has_another_name(first: str, second: str) -> None:
    assert canonical_digest(parse(first.encode())) != canonical_digest(parse(second.encode()))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("1.0", "1"),
        ("1e2", "100"),
        ("-0.0", "0"),
        ('{"b": 1, "a": 2}', '{"a":2,"b":1}'),
        ('"\\u00e9"', '"é"'),
        ('{"a": 1, "a": 2}', '{"a": 2}'),
        ('{"\\ud83d\\ude00": 1, "\\uffff": 2}', '{"\\uffff": 2, "\\ud83d\\ude00": 1}'),
        ("9007199254740993", " 9007199254740993 "),
    ],
)
def test_the_same_content_has_the_same_name(first: str, second: str) -> None:
    assert canonical_digest(parse(first.encode())) == canonical_digest(parse(second.encode()))


@pytest.mark.parametrize(
    "text",
    ['"\\ud800"', '{"\\ud800": 1}', "1e400", "9" * 400, nest(256).decode(), '[0.5, "\\udfff"]'],
    ids=lambda text: text[:20],
)
def test_what_rfc_8785_cannot_write_still_has_a_name(text: str) -> None:
    parsed = parse(text.encode(), max_depth=256)
    assert canonical_digest(parsed) == canonical_digest(parse(f" {text} ".encode(), max_depth=256))


def test_bytes_are_named_by_their_sha_256() -> None:
    assert digest(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


# --- cutting and finding ----------------------------------------------------------------------------------------------

containers = values.filter(lambda value: isinstance(value, dict | list) and bool(value))


def places(value: Any, steps: tuple[str | int, ...] = ()) -> list[tuple[tuple[str | int, ...], Any]]:
    """Every place in a value, with what stands there."""
    found = [(steps, value)]
    if isinstance(value, dict):
        for name, member in value.items():
            found += places(member, (*steps, name))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            found += places(item, (*steps, number))
    return found


layouts = st.sampled_from(
    [
        lambda value: json.dumps(value),
        lambda value: json.dumps(value, ensure_ascii=False, separators=(" ,\n", " :\t")),
        lambda value: "\n\n " + json.dumps(value, indent=2) + "\r\n",
        lambda value: orjson.dumps(value).decode(),
    ]
)


@given(values, layouts)
def test_every_value_can_be_cut_out_and_found(value: Any, layout: Callable[[Any], str]) -> None:
    text = layout(value)
    lines = text.split("\n")
    for steps, inner in places(json.loads(text)):
        cut = member_text(text, steps)
        assert json.loads(cut) == inner
        assert cut == cut.strip()
        if isinstance(inner, list):
            assert [json.loads(item) for item in element_texts(text, steps)] == inner
        place = place_of(text, "".join(map(pointer_step, steps)))
        assert place is not None
        line, column = place
        assert "\n".join([lines[line - 1][column - 1 :], *lines[line:]]).startswith(cut)


@given(values, st.text("ab/~01-", max_size=6))
def test_a_pointer_to_nothing_has_no_place(value: Any, pointer: str) -> None:
    known = {"".join(map(pointer_step, steps)) for steps, _ in places(value)}
    wanted = "/" + pointer
    assume(wanted not in known)
    # An escape that RFC 6901 does not know stands for nothing in particular.
    assume("~" not in pointer.replace("~0", "").replace("~1", ""))
    assert place_of(json.dumps(value), wanted) is None


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        ("[[1], 2]", "/0/1"),
        ("[1]", "/-1"),
        ("[1, 2]", "/01"),
        ("[1]", "/1"),
        ("[1]", "/-"),
        ("[1]", "/٠"),
        ("[1]", "/9999999999"),
        ("[]", "/0"),
        ('{"a": 1}', "/b"),
        ('{"a": 1}', "/a/b"),
        ('{"a": "[1]"}', "/a/0"),
        ("5", "/0"),
    ],
)
def test_what_is_not_there_has_no_place(text: str, pointer: str) -> None:
    assert place_of(text, pointer) is None


def test_of_two_members_the_last_one_is_cut_and_found() -> None:
    text = '{"a": [1],\n "b": 0, "a": [2, 3]}'
    assert element_texts(text, ("a",)) == ["2", "3"]
    assert member_text(text, ("a", 1)) == "3"
    assert place_of(text, "/a") == (2, 15)


@pytest.mark.parametrize(
    "number", ["9" * 5000, "-" + "9" * 5000, "0." + "9" * 5000, "1e999", "1E-999", "1.50"], ids=len
)
def test_a_number_is_cut_as_published_however_long_it_is(number: str) -> None:
    assert element_texts(f"[ {number} , 1]", ()) == [number, "1"]


# --- hostile documents ------------------------------------------------------------------------------------------------

HOSTILE = {
    "open brackets": b"[",
    "open braces": b"{",
    "pairs": b"[],",
    "mismatched": b"[}",
    "escaped quotes": b'\\"',
    "quotes": b'"',
    "backslashes": b"\\",
    "numbers": b"9",
    "members": b'"a":1,',
    "surrogates": b'"\\ud800",',
    "zeros": b"\x00",
    "minus signs": b"-",
    "constants": b"NaN,",
}


@pytest.mark.parametrize("opening", [b"[", b"[" * 70 + b'"', b"{" * 70], ids=["array", "text", "deep"])
@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_document_is_judged_in_time_that_grows_with_its_size(piece: bytes, opening: bytes) -> None:
    def judge(size: int) -> None:
        for closing in (b"", b'"a":1}', b"1]"):
            try:
                parse(opening + piece * size + closing)
            except MalformedJson:
                continue

    assert growth(judge, 2000) < FAR_FROM_SQUARE


@given(st.binary(max_size=40) | st.text('[]{}",:0123.eE-+tfn\\u/ \x00é\ufeff', max_size=40).map(str.encode))
def test_no_bytes_at_all_break_the_gate(body: bytes) -> None:
    try:
        parsed = parse(body)
    except MalformedJson:
        return
    assert parsed.value == json.loads(body.decode("utf-8-sig"))
    assert canonical_digest(parsed)
