"""Every problem code that the source can give is explained in docs/problems.md, with its severity, and no other."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = [*ROOT.glob("crawler/**/*.py"), *ROOT.glob("index/**/*.py")]
# What makes a problem: the function's name, and the severity where the name alone says it.
MAKERS = {
    "Problem": None,
    "note": None,
    "_with_problem": None,
    "_add": None,
    "error": "error",
    "warn": "warning",
    "info": "info",
    "MalformedJson": "error",
    "_note": "warning",
}
CODE = re.compile(r"[a-z]+\.[a-z_*]+")
ROW = re.compile(r"^\| `([a-z]+\.[a-z_]+)` \| ([a-z, ]+) \|", re.MULTILINE)


def codes_in(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Give each code with its severity; what is filled in at run time is a star."""
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if name not in MAKERS or is_log(call.func):
            continue
        severity = MAKERS[name] or next((found for found in map(severity_of, call.args) if found), None)
        for argument in call.args[:2]:
            code = text_of(argument)
            if severity and code and CODE.fullmatch(code):
                yield code, severity


def is_log(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and getattr(function.value, "id", "") == "_log"


def text_of(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "*" for part in node.values)
    return None


def severity_of(node: ast.expr) -> str | None:
    named = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Severity"
    return node.attr.lower() if named and isinstance(node, ast.Attribute) else None


def given() -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for path in SOURCES:
        for code, severity in codes_in(ast.parse(path.read_text(encoding="utf-8"))):
            found[code].add(severity)
    return found


def explained() -> dict[str, set[str]]:
    text = (ROOT / "docs" / "problems.md").read_text(encoding="utf-8")
    return {code: set(severities.split(", ")) for code, severities in ROW.findall(text)}


def test_the_source_is_read_as_it_is_written() -> None:
    found = given()
    assert found["entry.url_and_data"] == {"error"}
    assert found["trust.*"] == {"error"}
    assert len(found) > 40


def test_every_code_is_explained_with_its_severity() -> None:
    table = explained()
    for code, severities in given().items():
        pattern = re.compile(re.escape(code).replace(r"\*", "[a-z_]+"))
        rows = [name for name in table if pattern.fullmatch(name)]
        assert rows, f"{code} is missing in docs/problems.md"
        if "*" not in code:
            assert severities <= table[code], f"{code} can be {severities}"


def test_nothing_is_explained_that_cannot_happen() -> None:
    patterns = [re.compile(re.escape(code).replace(r"\*", "[a-z_]+")) for code in given()]
    strangers = [code for code in explained() if not any(pattern.fullmatch(code) for pattern in patterns)]
    assert strangers == []
