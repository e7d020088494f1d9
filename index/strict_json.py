"""The gate that foreign JSON passes: strict about what is JSON, exact about where it isn't. Pure.

Text that the JSON grammar does not allow (RFC 8259) is refused as a whole. Text that the grammar allows and I-JSON
(RFC 7493) does not, such as duplicate members or lone surrogates, parses, and the faults come back with their place.
"""

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

import orjson
import rfc8785

from index.records import Problem, Severity, pointer_step

MAX_SAFE_INTEGER = 2**53 - 1
_BOM = b"\xef\xbb\xbf"
# A string that never ends counts to the end of the text; looking for its start again would cost quadratic time.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_ONE_KIND = bytes.maketrans(b"{}", b"[]")
_OPEN = ord("[")
_CONSTANT = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|(-?Infinity|NaN)', re.DOTALL)
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_WHITESPACE = re.compile(r"[ \t\n\r]*")
_LONGEST_NUMBER = 400
_POINTER_INDEX = re.compile(r"0|[1-9][0-9]{0,9}", re.ASCII)
# Finds where a value ends. Its numbers stay text: Python refuses to convert a very long one.
_decoder = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)
_scan_once: Callable[[str, int], tuple[Any, int]] = json.scanner.make_scanner(_decoder)  # type: ignore[attr-defined]


class MalformedJson(Exception):
    """Not JSON, or deeper than the bound: nothing of the document can be used."""

    def __init__(self, code: str, message: str, *, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message if line is None else f"{message} (line {line}, column {column})"

    def problem(self) -> Problem:
        """Describe the fault as a problem of the whole document."""
        return Problem(self.code, Severity.ERROR, "", self.message, "RFC 8259")


@dataclass(frozen=True, slots=True)
class ParsedJson:
    """A parsed document: its value, its text without a byte-order mark, and the faults found on the way."""

    value: Any
    text: str
    problems: tuple[Problem, ...] = ()
    exact: bool = True


@dataclass(slots=True)
class _Watch:
    """What the decoder's hooks noticed during one parse."""

    duplicates: dict[int, list[str]] = field(default_factory=dict)
    holders: list[dict[str, Any]] = field(default_factory=list)
    floats: bool = False
    unsafe: bool = False
    non_finite: bool = False

    def pairs(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) != len(pairs):
            seen: set[str] = set()
            twice = [name for name, _ in pairs if name in seen or seen.add(name)]  # type: ignore[func-returns-value]
            self.duplicates[id(members)] = twice
            self.holders.append(members)
        return members

    def number(self, text: str) -> float:
        self.floats = True
        value = float(text)
        if math.isinf(value):
            self.non_finite = True
        return value

    def integer(self, text: str) -> int | float:
        if len(text) > 15:
            self.unsafe = True
            if len(text) > _LONGEST_NUMBER:
                return self.number(text)
        return int(text)


class _NotANumber(Exception):
    pass


def _refuse_constant(name: str) -> NoReturn:
    raise _NotANumber(name)


def parse(body: bytes, *, max_depth: int = 64) -> ParsedJson:
    """Parse a document strictly; raises MalformedJson when it is not JSON or nests deeper than `max_depth`."""
    problems = []
    if body.startswith(_BOM):
        body = body[len(_BOM) :]
        problems.append(
            Problem("json.bom", Severity.WARNING, "", "the document starts with a byte-order mark", "RFC 8259 8.1")
        )
    text = _decode(body)
    _check_depth(body, max_depth)
    watch = _Watch()
    value = _decode_json(text, watch)
    if watch.duplicates or watch.non_finite or _SURROGATE_ESCAPE.search(text):
        problems.extend(_faults(value, watch))
    return ParsedJson(value, text, tuple(problems), exact=not (watch.floats or watch.unsafe))


def _decode(body: bytes) -> str:
    # Plain text in UTF-16 passes for UTF-8 with NULs, which JSON cannot begin with.
    if body.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\x00" in body[:4]:
        raise MalformedJson("json.encoding", "the text is UTF-16 or UTF-32; JSON is UTF-8")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MalformedJson("json.encoding", f"the text is not UTF-8 at byte {error.start}; JSON is UTF-8") from None


def _check_depth(body: bytes, max_depth: int) -> None:
    """Refuse deep nesting before the parser recurses into it, by cancelling bracket pairs from the inside out."""
    if body.count(b"[") + body.count(b"{") <= max_depth:
        return
    brackets = _STRING.sub(b"", body).translate(_ONE_KIND, _NOT_BRACKETS)
    rest = brackets
    for _ in range(max_depth):
        rest = rest.replace(b"[]", b"")
        if not rest:
            return
    # Too deep, or brackets that don't pair up, which is for the parser to say.
    depth = 0
    for bracket in brackets:
        depth += 1 if bracket == _OPEN else -1
        if depth > max_depth:
            raise MalformedJson("json.too_deep", f"the document nests deeper than {max_depth} levels")


def _decode_json(text: str, watch: _Watch) -> Any:
    decoder = json.JSONDecoder(
        object_pairs_hook=watch.pairs,
        parse_float=watch.number,
        parse_int=watch.integer,
        parse_constant=_refuse_constant,
    )
    try:
        return decoder.decode(text)
    except json.JSONDecodeError as error:
        if not text.strip():
            raise MalformedJson("json.empty", "the document is empty") from None
        raise MalformedJson("json.syntax", error.msg, line=error.lineno, column=error.colno) from None
    except _NotANumber as error:
        line, column = _place_of_constant(text)
        raise MalformedJson("json.not_a_number", f"{error} is not JSON", line=line, column=column) from None
    except RecursionError:
        raise MalformedJson("json.too_deep", "the document nests too deeply") from None


def _place_of_constant(text: str) -> tuple[int, int]:
    offset = next((match.start() for match in _CONSTANT.finditer(text) if match[1]), 0)
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def _faults(value: Any, watch: _Watch) -> Iterator[Problem]:
    """Walk the value once to say where the faults are that the hooks only noticed."""
    stack: list[tuple[str, Any]] = [("", value)]
    while stack:
        pointer, node = stack.pop()
        if isinstance(node, dict):
            for name in watch.duplicates.get(id(node), ()):
                yield Problem(
                    "json.duplicate_member",
                    Severity.WARNING,
                    pointer if _LONE_SURROGATE.search(name) else pointer + pointer_step(name),
                    f"the member {json.dumps(name)} occurs twice; the last one counts",
                    "RFC 7493 2.3",
                )
            for name, member in reversed(node.items()):
                if _LONE_SURROGATE.search(name):
                    yield _surrogate(pointer)
                else:
                    stack.append((pointer + pointer_step(name), member))
        elif isinstance(node, list):
            stack.extend((pointer + pointer_step(index), node[index]) for index in range(len(node) - 1, -1, -1))
        elif isinstance(node, str):
            if _LONE_SURROGATE.search(node):
                yield _surrogate(pointer)
        elif isinstance(node, float) and not math.isfinite(node):
            yield Problem(
                "json.number_range", Severity.ERROR, pointer, "the number is too large to be kept", "RFC 7493 2.2"
            )


def _surrogate(pointer: str) -> Problem:
    return Problem(
        "json.lone_surrogate", Severity.ERROR, pointer, "the text holds half of a surrogate pair", "RFC 7493 2.1"
    )


def digest(body: bytes) -> str:
    """Name bytes by their SHA-256, in lower-case hexadecimal."""
    return hashlib.sha256(body).hexdigest()


def canonical(value: Any, *, plain: bool = False) -> bytes:
    """Write a value in its canonical form (RFC 8785); numbers outside its domain keep their Python spelling.

    `plain` says that the value is known to hold no floats and no integers past 2^53; the quick writer then gives the
    same bytes, as long as every name and text is in the basic plane, where UTF-8 and UTF-16 order agree.
    """
    if plain:
        try:
            written = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        except orjson.JSONEncodeError:  # a lone surrogate, or nesting past its own bound
            written = b"\xff"
        if written.isascii():
            return written
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, RecursionError, UnicodeEncodeError):
        # Outside the domain of RFC 8785: a tagged form that cannot be mistaken for a canonical one.
        return b"\x00" + json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode()


def canonical_digest(parsed: ParsedJson) -> str:
    """Name the content of a document whatever its formatting: SHA-256 over the canonical form."""
    return digest(canonical(parsed.value, plain=parsed.exact))


def element_texts(text: str, steps: tuple[str | int, ...]) -> list[str]:
    """Cut the elements of the array at `steps` out of a valid document, as published, without rewriting them."""
    scan = _scan_once
    position = _skip(text, 0)
    for step in steps:
        position = _descend(text, position, step, scan)
    texts = []
    position = _skip(text, position + 1)
    while text[position] != "]":
        _, end = scan(text, position)
        texts.append(text[position:end])
        position = _skip(text, end)
        if text[position] == ",":
            position = _skip(text, position + 1)
    return texts


def member_text(text: str, steps: tuple[str | int, ...]) -> str:
    """Cut one value out of a valid document, as published."""
    scan = _scan_once
    position = _skip(text, 0)
    for step in steps:
        position = _descend(text, position, step, scan)
    _, end = scan(text, position)
    return text[position:end]


def place_of(text: str, pointer: str) -> tuple[int, int] | None:
    """Give line and column of the value that a JSON Pointer names in a valid document; None when there is none."""
    position = _skip(text, 0)
    try:
        for step in pointer.split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if text[position] not in "[{":
                return None
            is_index = text[position] == "["
            if is_index and not _POINTER_INDEX.fullmatch(name):
                return None
            position = _descend(text, position, int(name) if is_index else name, _scan_once)
            if position < 0:
                return None
    except (IndexError, StopIteration):
        return None
    return text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position)


def _skip(text: str, position: int) -> int:
    match = _WHITESPACE.match(text, position)
    return match.end() if match else position


def _descend(text: str, position: int, step: str | int, scan: Any) -> int:
    """Find the value of a member or element, -1 without one; of a member that occurs twice the last, as the parser."""
    if isinstance(step, int):
        position = _skip(text, position + 1)
        for _ in range(step):
            if text[position] == "]":
                return -1
            _, position = scan(text, position)
            position = _skip(text, position)
            if text[position] == ",":
                position = _skip(text, position + 1)
        return -1 if text[position] == "]" else position
    found = -1
    position = _skip(text, position + 1)
    while text[position] != "}":
        name, position = scan(text, position)
        position = _skip(text, _skip(text, position) + 1)
        if name == step:
            found = position
        _, position = scan(text, position)
        position = _skip(text, position)
        if text[position] == ",":
            position = _skip(text, position + 1)
    return found
