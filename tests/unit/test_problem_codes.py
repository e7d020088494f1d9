"""Every problem code that the source can give is explained in docs/problems.md, with its severity, and no other."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
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
# The methods of Notes, which put the name of a protocol before each code.
NOTE_METHODS = {"error": "error", "warn": "warning", "info": "info", "add": None}
CODE = re.compile(r"[a-z][a-z0-9]*\.[a-z_*]+")
ROW = re.compile(r"^\| `([a-z][a-z0-9]*\.[a-z_]+)` \| ([a-z, ]+) \|", re.MULTILINE)

Function = ast.FunctionDef | ast.AsyncFunctionDef
Place = tuple[str, str]


def codes_in(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Give each code with its severity; what is filled in at run time is a star."""
    for call in calls_in(tree):
        name = called(call)
        if name not in MAKERS or is_log(call.func):
            continue
        severity = MAKERS[name] or severity_among(call)
        for argument in call.args[:2]:
            code = text_of(argument)
            if severity and code and CODE.fullmatch(code):
                yield code, severity


def calls_in(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


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


def severity_among(call: ast.Call) -> str | None:
    return next((found for found in map(severity_of, call.args) if found), None)


# --- codes whose prefix one function adds to what its callers say -----------------------------------------------------


def codes_of_prefixing_functions(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Give the codes that the callers of `def f(code, …): Problem(f"prefix.{code}", …)` complete."""
    prefixes = dict(filter(None, map(prefixed_by, functions_in(tree))))
    for call in calls_in(tree):
        if called(call) in prefixes and call.args:
            prefix, severity = prefixes[called(call)]
            yield prefix + (text_of(call.args[0]) or "*"), severity or severity_among(call) or "unknown"


def functions_in(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def prefixed_by(function: Function) -> tuple[str, tuple[str, str | None]] | None:
    """Give the prefix, and the severity if it is fixed, that a function adds to its first argument."""
    first = function.args.args[0].arg if function.args.args else ""
    for call in calls_in(function):
        code = call.args[0] if called(call) == "Problem" and call.args else None
        if isinstance(code, ast.JoinedStr) and len(code.values) == 2:
            prefix, filled = code.values
            if isinstance(prefix, ast.Constant) and getattr(getattr(filled, "value", None), "id", "") == first:
                return function.name, (str(prefix.value), severity_among(call))
    return None


# --- codes of Notes, whose prefix is said where they begin -----------------------------------------------------------


def codes_of_notes(trees: dict[str, ast.Module]) -> Iterator[tuple[str, str]]:
    """Follow the notes of each protocol from where they begin to every function that they are handed to."""
    functions = {(name, function.name): function for name, tree in trees.items() for function in functions_in(tree)}
    imports = {name: imported_by(tree) for name, tree in trees.items()}
    for module, tree in trees.items():
        prefix = prefix_of_notes(tree)
        if prefix is None:
            continue
        # Within a module notes also go through tables of functions, so all that take some are reached.
        reached = [place for place, function in functions.items() if place[0] == module and notes_names(function)]
        for place in reached:
            for code, severity in noted_in(functions[place]):
                yield f"{prefix}.{code}", severity
            for name in handed_on(functions[place]):
                target = imports[place[0]].get(name, (place[0], name))
                if target in functions and target not in reached:
                    reached.append(target)


def imported_by(tree: ast.Module) -> dict[str, Place]:
    """Give the names that a module imports, each with the module and the name it comes from."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {alias.asname or alias.name: (node.module, alias.name) for alias in node.names}
    return found


def prefix_of_notes(tree: ast.Module) -> str | None:
    prefixes = {text_of(call.args[0]) for call in calls_in(tree) if called(call) == "Notes" and call.args}
    assert len(prefixes) < 2, f"one module, one prefix: {prefixes}"
    return next(iter(prefixes), None)


def notes_names(function: Function) -> set[str]:
    """Give the names that hold notes within a function: arguments, and those that begin there."""
    names = {argument.arg for argument in function.args.args if getattr(argument.annotation, "id", "") == "Notes"}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and called(node.value) == "Notes":
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


def noted_in(function: Function) -> Iterator[tuple[str, str]]:
    names = notes_names(function)
    for call in calls_in(function):
        method = call.func
        if not isinstance(method, ast.Attribute) or getattr(method.value, "id", "") not in names:
            continue
        if method.attr in NOTE_METHODS:
            yield text_of(call.args[0]) or "*", NOTE_METHODS[method.attr] or severity_among(call) or "unknown"


def handed_on(function: Function) -> Iterator[str]:
    """Give the names of the functions that are called with notes."""
    names = notes_names(function)
    for call in calls_in(function):
        if isinstance(call.func, ast.Name) and any(getattr(argument, "id", "") in names for argument in call.args):
            yield call.func.id


# --- the comparison ---------------------------------------------------------------------------------------------------


@lru_cache
def given() -> dict[str, set[str]]:
    trees = {module_name(path): ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES}
    found: dict[str, set[str]] = defaultdict(set)
    for tree in trees.values():
        for code, severity in (*codes_in(tree), *codes_of_prefixing_functions(tree)):
            found[code].add(severity)
    for code, severity in codes_of_notes(trees):
        found[code].add(severity)
    return dict(found)


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def explained() -> dict[str, set[str]]:
    text = (ROOT / "docs" / "problems.md").read_text(encoding="utf-8")
    return {code: set(severities.split(", ")) for code, severities in ROW.findall(text)}


def test_the_source_is_read_as_it_is_written() -> None:
    found = given()
    assert found["entry.url_and_data"] == {"error"}
    assert found["trust.*"] == {"error"}
    assert len(found) > 40


def test_codes_are_found_whose_prefix_is_added_at_run_time() -> None:
    found = given()
    assert found["a2a.no_interface"] == {"error"}
    assert found["a2a.snake_case"] == {"warning"}  # noted in another module than the one that names the protocol
    assert found["mcp.too_many"] == {"warning"}  # noted by a reader that all protocols share
    assert found["mcp.mixed_shapes"] == {"warning", "info"}
    assert found["finding.secret"] == {"error"}
    # What no agent file is read by cannot be noted of one.
    assert "madp.wrong_type" in found
    assert "madp.too_many" not in found
    severities = set().union(*found.values())
    assert severities == {"error", "warning", "info"}


def test_every_code_is_explained_with_its_severity() -> None:
    table = explained()
    missing = []
    for code, severities in given().items():
        pattern = re.compile(re.escape(code).replace(r"\*", "[a-z_]+"))
        rows = [name for name in table if pattern.fullmatch(name)]
        if not rows or ("*" not in code and not severities <= table[code]):
            missing.append((code, sorted(severities)))
    assert missing == []


def test_nothing_is_explained_that_cannot_happen() -> None:
    found = given()
    patterns = [re.compile(re.escape(code).replace(r"\*", "[a-z_]+")) for code in found]
    strangers = [code for code in explained() if not any(pattern.fullmatch(code) for pattern in patterns)]
    assert strangers == []
