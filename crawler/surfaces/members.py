"""Reading members of foreign objects: what has the wrong type is left out and said, never fatal. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from index.records import Problem, Severity, pointer_step

_MOST_PROBLEMS = 200
_MOST_ITEMS = 2000


@dataclass(slots=True)
class Notes:
    """The problems of one document as they are found; `prefix` is the protocol's name in every code."""

    prefix: str
    problems: list[Problem] = field(default_factory=list)

    def add(self, code: str, severity: Severity, pointer: str, message: str, clause: str = "") -> None:
        # An error decides about the whole document, so it is never cut off.
        if len(self.problems) < _MOST_PROBLEMS or severity is Severity.ERROR:
            self.problems.append(Problem(f"{self.prefix}.{code}", severity, pointer, message, clause))

    def error(self, code: str, pointer: str, message: str, clause: str = "") -> None:
        self.add(code, Severity.ERROR, pointer, message, clause)

    def warn(self, code: str, pointer: str, message: str, clause: str = "") -> None:
        self.add(code, Severity.WARNING, pointer, message, clause)

    def info(self, code: str, pointer: str, message: str, clause: str = "") -> None:
        self.add(code, Severity.INFO, pointer, message, clause)


def text(value: Mapping[str, Any], name: str, pointer: str, notes: Notes) -> str | None:
    """Read a text member; null counts as absent."""
    found = value.get(name)
    if found is None or isinstance(found, str):
        return found
    notes.warn("wrong_type", pointer + pointer_step(name), f"{name} must be a text; it is left out")
    return None


def flag(value: Mapping[str, Any], name: str, pointer: str, notes: Notes) -> bool | None:
    """Read a true-or-false member."""
    found = value.get(name)
    if found is None or isinstance(found, bool):
        return found
    notes.warn("wrong_type", pointer + pointer_step(name), f"{name} must be true or false; it is left out")
    return None


def mapping(value: Mapping[str, Any], name: str, pointer: str, notes: Notes) -> Mapping[str, Any]:
    """Read an object member; what is absent or of another type counts as empty."""
    found = value.get(name)
    if isinstance(found, Mapping):
        return found
    if found is not None:
        notes.warn("wrong_type", pointer + pointer_step(name), f"{name} must be an object; it is left out")
    return {}


def items(value: Mapping[str, Any], name: str, pointer: str, notes: Notes) -> Sequence[Any]:
    """Read an array member; what is absent or of another type counts as empty."""
    found = value.get(name)
    if isinstance(found, list):
        if len(found) > _MOST_ITEMS:
            notes.warn("too_many", pointer + pointer_step(name), f"only {_MOST_ITEMS} of {name} are read")
        return found[:_MOST_ITEMS]
    if found is not None:
        notes.warn("wrong_type", pointer + pointer_step(name), f"{name} must be an array; it is left out")
    return ()


def texts(value: Mapping[str, Any], name: str, pointer: str, notes: Notes) -> list[str]:
    """Read an array of texts; other items are left out."""
    found = []
    for index, item in enumerate(items(value, name, pointer, notes)):
        if isinstance(item, str):
            found.append(item)
        else:
            place = pointer + pointer_step(name) + pointer_step(index)
            notes.warn("wrong_type", place, f"{name} must hold texts only; it is left out")
    return found


def objects(value: Mapping[str, Any], name: str, pointer: str, notes: Notes) -> list[tuple[str, Mapping[str, Any]]]:
    """Read an array of objects with the place of each; other items are left out."""
    found = []
    for index, item in enumerate(items(value, name, pointer, notes)):
        place = pointer + pointer_step(name) + pointer_step(index)
        if isinstance(item, Mapping):
            found.append((place, item))
        else:
            notes.warn("wrong_type", place, f"{name} must hold objects only; it is left out")
    return found


def without_none(value: Mapping[str, Any]) -> dict[str, Any]:
    """Drop members that are absent, so that absent and null are one thing in what we derive."""
    return {name: member for name, member in value.items() if member is not None}
