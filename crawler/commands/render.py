"""Output for people: aligned tables, and foreign text that cannot move the cursor."""

import json
import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import click
import orjson

_LONGEST_CELL = 72
# Controls of the second kind and characters that change the direction or cannot be seen.
_UNSEEN = re.compile("[\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


def clean(text: object, longest: int = _LONGEST_CELL) -> str:
    """Make foreign text safe for a terminal: one line, no control or direction characters, bounded."""
    kept = "".join(map(_harmless, str(text)[: longest + 1]))
    return kept if len(kept) <= longest else kept[: longest - 1] + "…"


def _harmless(character: str) -> str:
    if character in "\n\r\t\u2028\u2029":
        return " "
    return "\ufffd" if unicodedata.category(character) in ("Cc", "Cf", "Cs") else character


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Lay out rows under headings; columns of numbers stand right."""
    rows = list(rows)
    cells = [[clean("" if cell is None else shown(cell)) for cell in row] for row in rows]
    widths = [max([len(heading), *(len(row[index]) for row in cells)]) for index, heading in enumerate(headings)]
    right = [bool(rows) and all(isinstance(row[index], int) for row in rows) for index in range(len(headings))]
    lines = [_line(headings, widths, right), "  ".join("-" * width for width in widths)]
    lines += [_line(row, widths, right) for row in cells]
    return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = (
        cell.rjust(width) if to_the_right else cell.ljust(width)
        for cell, width, to_the_right in zip(cells, widths, right, strict=True)
    )
    return "  ".join(padded).rstrip()


def shown(value: object) -> str:
    """Write a value for people: times to the second in UTC, lists joined."""
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, list | tuple):
        return ", ".join(str(item) for item in value)
    return str(value)


_SPAN_PARTS = (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1))


def span(seconds: float) -> str:
    """Write a length of time for people, in its two largest units."""
    left = round(seconds)
    parts: list[str] = []
    for unit, size in _SPAN_PARTS:
        number, left = divmod(left, size)
        if number or (unit == "s" and not parts):
            parts.append(f"{number}{unit}")
        elif parts:
            break
    return " ".join(parts[:2])


def lag_text(lag: Mapping[str, Any] | None) -> str:
    """Write a lag for people: an interval, or how long it is at least."""
    if lag is None:
        return ""
    least, most = lag["atLeastS"], lag["atMostS"]
    if most is None:
        return f"at least {span(least)}"
    return span(most) if round(least) == round(most) else f"{span(least)} to {span(most)}"


def value_text(value: Any, longest: int = _LONGEST_CELL) -> str:
    """Write a value of a document for people: texts in quotes, anything else as JSON, cut when long."""
    return clean(json.dumps(value, ensure_ascii=False), longest)


def coloured(text: str, colour: str) -> str:
    """Colour a line on a terminal, unless NO_COLOR is set; `text` must be clean."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    return click.style(text, fg=colour)


def print_json(value: Any) -> None:
    """Print a value as JSON, for programs; what could move the cursor of somebody who looks on is escaped."""
    try:
        text = orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    except TypeError:  # an integer past 64 bits, out of somebody's card
        text = json.dumps(value, indent=2)
    click.echo(_UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text))
