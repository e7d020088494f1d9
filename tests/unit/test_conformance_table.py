"""The conformance table is complete, and every test it names exists."""

import ast
import re
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The normative statements that speak to consumers or registries, by their numbers.
EXPECTED = {2, 3, 4, 6, 7, *range(15, 22), 23, 24, *range(25, 35), 36, 37, 38, *range(40, 46), 47, 48, 49}
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def _rows() -> list[list[str]]:
    text = (ROOT / "docs" / "conformance.md").read_text("utf-8")
    lines = [line for line in text.splitlines() if re.match(r"\| \d+ \|", line)]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@lru_cache
def _tests_in(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(node.name for node in functions if node.name.startswith("test_"))


def test_every_statement_about_consumers_and_registries_has_its_row() -> None:
    numbers = [int(row[0]) for row in _rows()]
    assert numbers == sorted(EXPECTED)
    for row in _rows():
        assert len(row) == 6, row
        assert row[2] in ("C", "R", "C R", "all"), row
        assert all(row[:5]), row


def test_every_row_names_tests_or_says_why_it_has_none() -> None:
    for row in _rows():
        named = _TEST.findall(row[5])
        assert _TEST.sub("", row[5]).strip() == "", row
        if not named:
            assert row[4].startswith(("not done", "not applicable")), row


def test_every_test_that_the_table_names_exists() -> None:
    for row in _rows():
        for path, name in _TEST.findall(row[5]):
            assert name in _tests_in(path), f"row {row[0]}: {path}::{name}"
