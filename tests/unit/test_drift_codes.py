"""Every code of a disagreement is explained in docs/drift.md, with its class where that is fixed, and no other."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from index.diff import ChangeClass
from index.drift_codes import CODES

ROOT = Path(__file__).parents[2]
COMPARISONS = [ROOT / "index" / name for name in ("drift.py", "entry_drift.py", "tool_drift.py")]
CODE = re.compile(r"drift\.[a-z_]+")
ROW = re.compile(r"^\| `(drift\.[a-z_]+)` \|(.+)\|$", re.MULTILINE)
# What a row may say of a class beside its name: that the difference decides.
BY_THE_DIFFERENCE = "the gravest of the changes"


def texts_in(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))


def given() -> set[str]:
    return {text for path in COMPARISONS for text in texts_in(path) if CODE.fullmatch(text)}


def test_those_that_can_open_are_the_ones_in_the_first_table_of_the_page() -> None:
    text = (ROOT / "docs" / "drift.md").read_text(encoding="utf-8")
    opening, _, _ = text.partition("\nObservations are worth knowing")
    assert {match[1] for match in ROW.finditer(opening)} == CODES


def classes_given() -> dict[str, set[str]]:
    """Give the classes of codes whose class is written beside them."""
    found: dict[str, set[str]] = {}
    for path in COMPARISONS:
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and len(call.args) > 1:
                code, kind = call.args[:2]
                fixed = isinstance(kind, ast.Attribute) and getattr(kind.value, "id", "") == ChangeClass.__name__
                if isinstance(code, ast.Constant) and CODE.fullmatch(str(code.value)) and fixed:
                    found.setdefault(str(code.value), set()).add(str(ChangeClass[kind.attr]))
    return found


def explained() -> dict[str, list[str]]:
    """Give the further cells of each row that explains a code."""
    rows = ROW.findall((ROOT / "docs" / "drift.md").read_text(encoding="utf-8"))
    return {code: [cell.strip() for cell in cells.split("|")] for code, cells in rows}


def test_the_source_is_read_as_it_is_written() -> None:
    found = given()
    assert {"drift.version_mismatch", "drift.stale_copy", "drift.inline_stale", "drift.manifests_differ"} <= found
    assert len(found) > 20


def test_no_code_is_put_together_at_run_time() -> None:
    """Otherwise those that can occur could not be told from the source."""
    begun = [
        text for path in COMPARISONS for text in texts_in(path) if text.startswith("drift.") and text not in given()
    ]
    assert begun == []


def test_every_code_of_a_disagreement_is_explained() -> None:
    table = explained()
    assert sorted(given() - table.keys()) == []
    assert [code for code, cells in table.items() if not all(cells)] == []


def test_no_code_is_explained_that_cannot_occur() -> None:
    assert sorted(explained().keys() - given()) == []


def test_every_class_that_a_row_names_is_one() -> None:
    classes = {str(kind) for kind in ChangeClass} | {BY_THE_DIFFERENCE}
    named = {name for cells in explained().values() for name in cells[-1].split(" or ")}
    assert named
    assert named - classes == set()


def test_every_row_names_the_class_that_its_code_has() -> None:
    table, fixed = explained(), classes_given()
    assert fixed["drift.tag_removed"] == {"search"}
    wrong = {code: kinds for code, kinds in fixed.items() if not kinds & set(table[code][-1].split(" or "))}
    assert wrong == {}
