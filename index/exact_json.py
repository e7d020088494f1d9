"""JSON compared exactly: numbers by their mathematical value, everything else as it stands. Pure.

Every number is a decimal here, so that 2^53 and 2^53+1 differ and 1, 1.0 and 1e0 don't; with numbers apart, values are
equal only when their kinds are. Nothing is normalised.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from index.records import pointer_step
from index.strict_json import MalformedJson, parse


class NotExact(ValueError):
    """Not I-JSON, so that it has no one meaning and equals nothing; the message says what is wrong."""


def read_exact(text: str | bytes, *, max_depth: int = 64) -> Any:
    """Parse a text with every number as a decimal; raises NotExact."""
    body = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    try:
        parsed = parse(body, max_depth=max_depth)
        fault = next((problem for problem in parsed.problems if problem.code != "json.bom"), None)
        if fault is not None:
            raise NotExact(f"{fault.message} (at {fault.pointer or '/'})")
        return json.loads(parsed.text, parse_int=Decimal, parse_float=Decimal)
    except MalformedJson as error:
        raise NotExact(error.message) from None
    except InvalidOperation:
        raise NotExact("a number has an exponent that nobody can compare") from None


def exact(value: Any) -> Any:
    """Take a value that a plain parser read; what it rounded stays rounded."""
    if isinstance(value, Mapping):
        return {name: exact(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [exact(item) for item in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return Decimal(value) if isinstance(value, int) else Decimal(repr(value))


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where two values differ: `missing` from the first, `extra` in it, or `changed`."""

    steps: tuple[str | int, ...]
    kind: str

    @property
    def pointer(self) -> str:
        """The place as a JSON Pointer (RFC 6901)."""
        return "".join(map(pointer_step, self.steps))


def differences(first: Any, second: Any, steps: tuple[str | int, ...] = ()) -> Iterator[Difference]:
    """Find every place where the first value is not the second; none at all means that they are equal."""
    if isinstance(first, dict) and isinstance(second, dict):
        for name, member in second.items():
            if name in first:
                yield from differences(first[name], member, (*steps, name))
            else:
                yield Difference((*steps, name), "missing")
        yield from (Difference((*steps, name), "extra") for name in first if name not in second)
    elif isinstance(first, list) and isinstance(second, list):
        for index, (item, other) in enumerate(zip(first, second, strict=False)):
            yield from differences(item, other, (*steps, index))
        yield from (Difference((*steps, index), "missing") for index in range(len(first), len(second)))
        yield from (Difference((*steps, index), "extra") for index in range(len(second), len(first)))
    elif type(first) is not type(second) or first != second:
        yield Difference(steps, "changed")


def equal(first: Any, second: Any) -> bool:
    """Tell whether two values are the same JSON value."""
    return next(differences(first, second), None) is None


def sorted_text(value: Any) -> str:
    """Write a value so that two have the same text when they are equal but for the order of their lists."""
    if isinstance(value, dict):
        members = (f"{json.dumps(name)}:{sorted_text(value[name])}" for name in sorted(value))
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(sorted(map(sorted_text, value))) + "]"
    return _one_spelling(value) if isinstance(value, Decimal) else json.dumps(value)


def _one_spelling(number: Decimal) -> str:
    # Decimal.normalize would round to the precision of its context.
    sign, digits, exponent = number.as_tuple()
    written = "".join(map(str, digits)).lstrip("0")
    kept = written.rstrip("0")
    if not kept or not isinstance(exponent, int):
        return "0"
    return f"{'-' if sign else ''}{kept}e{exponent + len(written) - len(kept)}"


def written(value: Any) -> str:
    """Write a value as JSON, its numbers exactly."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_quoted(name)}: {written(member)}" for name, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    return str(value) if isinstance(value, Decimal) else _quoted(value)


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def at(value: Any, steps: tuple[str | int, ...]) -> Any:
    """Follow steps into a value."""
    for step in steps:
        value = value[step]
    return value
