"""The conformance tables are complete, and every test they name exists."""

import ast
import re
from functools import lru_cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# The normative statements of ARD that speak to consumers or registries, by their numbers.
EXPECTED = {2, 3, 4, 6, 7, *range(15, 22), 23, 24, *range(25, 35), 36, 37, 38, *range(40, 46), 47, 48, 49}
# The further tables: agent cards, server cards, agent files, drift, changes, endorsement.
LETTERS = "AMPDCO"
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def _rows(numbers: str = r"[A-Z]?\d+") -> list[list[str]]:
    text = (ROOT / "docs" / "conformance.md").read_text("utf-8")
    lines = [line for line in text.splitlines() if re.match(rf"\| {numbers} \|", line)]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@lru_cache
def _tests_in(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(node.name for node in functions if node.name.startswith("test_"))


def test_every_statement_about_consumers_and_registries_has_its_row() -> None:
    rows = _rows(r"\d+")
    numbers = [int(row[0]) for row in rows]
    assert numbers == sorted(EXPECTED)
    for row in rows:
        assert len(row) == 6, row
        assert row[2] in ("C", "R", "C R", "all"), row
        assert all(row[:5]), row


@pytest.mark.parametrize("letter", LETTERS)
def test_the_rows_of_a_further_table_are_numbered_and_whole(letter: str) -> None:
    rows = _rows(rf"{letter}\d+")
    assert [row[0] for row in rows] == [f"{letter}{number}" for number in range(1, len(rows) + 1)]
    assert len(rows) > 5
    for row in rows:
        assert len(row) == 5, row
        assert all(row[:4]), row


def test_no_row_stands_outside_the_known_tables() -> None:
    assert {row[0][0] for row in _rows(r"[A-Z]\d+")} == set(LETTERS)


def test_every_row_says_what_is_done() -> None:
    for row in _rows():
        assert row[-2].startswith(("done", "in part", "not done", "not applicable")) or "done" in row[-2], row


def test_every_row_names_tests_or_says_why_it_has_none() -> None:
    for row in _rows():
        named = _TEST.findall(row[-1])
        assert _TEST.sub("", row[-1]).strip() == "", row
        if not named:
            assert row[-2].startswith(("not done", "not applicable")), row


def test_every_test_that_the_tables_name_exists() -> None:
    for row in _rows():
        for path, name in _TEST.findall(row[-1]):
            assert name in _tests_in(path), f"row {row[0]}: {path}::{name}"
