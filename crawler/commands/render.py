"""Output for people: aligned tables, and foreign text that cannot move the cursor."""

import unicodedata
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import click
import orjson

_LONGEST_CELL = 72


def clean(text: object, longest: int = _LONGEST_CELL) -> str:
    """Make foreign text safe for a terminal: one line, no control or direction characters, bounded."""
    kept = "".join(
        " " if character in "\n\r\t" else "\ufffd" if unicodedata.category(character) in ("Cc", "Cf", "Cs") else character
        for character in str(text)
    )
    return kept if len(kept) <= longest else kept[: longest - 1] + "…"


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Lay out rows under headings; numbers stand right."""
    cells = [[clean("" if cell is None else shown(cell)) for cell in row] for row in rows]
    numeric = [all(isinstance(row[index], int | float) for row in rows_) for index, rows_ in _columns(cells)]
    widths = [max([len(heading), *(len(row[index]) for row in cells)]) for index, heading in enumerate(headings)]
    lines = ["  ".join(heading.ljust(width) for heading, width in zip(headings, widths, strict=True)).rstrip()]
    lines.append("  ".join("-" * width for width in widths))
    for row in cells:
        parts = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric or [False] * len(widths), strict=True)
        )
        lines.append("  ".join(parts).rstrip())
    return "\n".join(lines)


def _columns(cells: Sequence[Sequence[str]]) -> Iterable[tuple[int, Sequence[Sequence[object]]]]:
    if cells:
        for index in range(len(cells[0])):
            yield index, [[_number(cell) for cell in row] for row in cells]


def _number(cell: str) -> object:
    return int(cell) if cell.isdigit() else cell


def shown(value: object) -> str:
    """Write a value for people: times to the second in UTC, lists joined."""
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, list | tuple):
        return ", ".join(str(item) for item in value)
    return str(value)


def print_json(value: Any) -> None:
    """Print a value as JSON, for programs."""
    click.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())


def instant(value: datetime | None) -> str | None:
    """Write an instant for JSON: RFC 3339 in UTC."""
    return None if value is None else value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
