"""A disagreement between two documents about one thing, as a value. Pure."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from index.diff import GRAVITY, ChangeClass
from index.offered import Offer
from index.records import Severity

_LONGEST_KEY = 200
_LONGEST_TEXT = 500
_MOST_MEMBERS = 20
_DEEPEST = 4
_Found = TypeVar("_Found")


@dataclass(frozen=True)
class CardView:
    """A document as last observed.

    `kind` is what it turned out to be, or the word for what stood in its place: `gone`, `absent`, `not_a_document`,
    `malformed`, `wrong_kind`, `catch_all`. With any other word nothing was observed and nothing is compared.
    """

    kind: str
    shape: str
    normal: Mapping[str, Any]
    digest: str | None
    legacy_interfaces: Sequence[Mapping[str, str]] = ()

    @cached_property
    def offer(self) -> Offer:
        """What the document offers, worked out once for all that is compared with it."""
        return Offer(self.normal, self.legacy_interfaces)


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two values for one thing: where each stands and what it is.

    `pointer` leads into the catalog's side and `live_pointer` into the normal form of the live one. `identity` names
    what stands in a list by its value, so that it is the same wherever in the list it is met.
    """

    code: str
    kind: ChangeClass
    severity: Severity
    pointer: str
    live_pointer: str
    catalog: Any
    live: Any
    members: tuple[str, ...] = ()
    identity: str = ""

    @property
    def key(self) -> str:
        """Name this disagreement so that a later visit knows it again, whatever the order of lists."""
        name = f"{self.code} {self.identity or self.pointer}"
        if len(name) <= _LONGEST_KEY:
            return name
        mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return f"{name[: _LONGEST_KEY - 33]}~{mark}"

    @property
    def is_drift(self) -> bool:
        """Tell drift from an observation that is merely worth knowing."""
        return self.severity is not Severity.INFO


def once(found: Iterable[Disagreement]) -> list[Disagreement]:
    """Keep the first of those that are the same disagreement, such as a tag that an entry has twice."""
    kept: dict[str, Disagreement] = {}
    for disagreement in found:
        kept.setdefault(disagreement.key, disagreement)
    return list(kept.values())


def gravest(found: Sequence[_Found], most: int, item_of: Callable[[_Found], Disagreement]) -> Sequence[_Found]:
    """Keep so many, the gravest first and always the same ones."""
    if len(found) <= most:
        return found
    return sorted(found, key=lambda one: (GRAVITY[item_of(one).kind], item_of(one).key))[:most]


def small(value: Any, depth: int = 0) -> Any:
    """Cut a value to what a report can show."""
    if isinstance(value, str):
        return value if len(value) <= _LONGEST_TEXT else value[: _LONGEST_TEXT - 1] + "…"
    if isinstance(value, Mapping | list | tuple) and depth >= _DEEPEST:
        return "…"
    if isinstance(value, Mapping):
        return {name: small(member, depth + 1) for name, member in list(value.items())[:_MOST_MEMBERS]}
    if isinstance(value, list | tuple):
        return [small(item, depth + 1) for item in value[:_MOST_MEMBERS]]
    return value
