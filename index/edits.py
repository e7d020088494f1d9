"""What differs between two values of parsed JSON, member by member. Pure.

Lists whose items have an identity are compared as sets of it; other lists as multisets, so that a new order is told
apart from new content. Pointers lead into the old value; `-` is the end of a list, as in JSON Patch (RFC 6902), so that
applying the edits in their order to the old value gives the new one.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from json.encoder import encode_basestring_ascii
from typing import Any

from index.records import pointer_step

REPEAT = "repeat"
_MISSING = object()
_DEEPEST = 80
# Every edit carries its place: without a bound, one long name above many members would multiply the document.
_LONGEST_POINTER = 400
_LONGEST_NAME = 80


class Operation(StrEnum):
    ADD = "add"
    REMOVE = "remove"
    REPLACE = "replace"


class ChangeClass(StrEnum):
    """How much a change matters, the gravest first."""

    BREAKING = "breaking"
    SECURITY = "security"
    BEHAVIOURAL = "behavioural"
    SEARCH = "search"
    COMPATIBLE = "compatible"
    COSMETIC = "cosmetic"
    VERSION_ONLY = "version_only"
    ORDER_ONLY = "order_only"


# The note of a change that is none of the document: what became of a signature.
VERDICT = "verdict"
GRAVITY = {kind: number for number, kind in enumerate(ChangeClass)}


@dataclass(frozen=True, slots=True)
class Edit:
    """One change: where in the old value, what was there and what is there now.

    `members` is the pointer without its list indexes; `path` has the items' identities in their place, or `*`, and so
    names the same thing in every state of the document. Without the two they are guessed from the pointer.
    """

    operation: Operation
    pointer: str
    old: Any = None
    new: Any = None
    kind: ChangeClass = ChangeClass.BEHAVIOURAL
    note: str = ""
    members: str = field(default="", compare=False)
    path: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if self.pointer and not self.path:
            steps = self.pointer.split("/")
            object.__setattr__(self, "members", "/".join(step for step in steps if not _is_index(step)))
            object.__setattr__(self, "path", "/".join("*" if _is_index(step) else step for step in steps))


Key = str | tuple[str, ...]
# Gives the identity of a list's items by the list's members; None for lists without identity, and for such an item.
Identity = Callable[[str], Callable[[Any], Key | None] | None]


def no_identity(_: str) -> Callable[[Any], Key | None] | None:
    """Know no identities: every list is a multiset."""
    return None


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a value a walk stands."""

    pointer: str = ""
    members: str = ""
    path: str = ""
    depth: int = 0

    def member(self, name: str) -> "Place":
        step = pointer_step(name)
        return Place(self.pointer + step, self.members + step, self.path + step, self.depth + 1)

    def item(self, index: int | str, item: Any = None, key: Key | None = None) -> "Place":
        return Place(f"{self.pointer}/{index}", self.members, self.path + item_step(item, key), self.depth + 1)

    @property
    def is_too_far(self) -> bool:
        return self.depth >= _DEEPEST or len(self.pointer) > _LONGEST_POINTER


def item_step(item: Any, key: Key | None) -> str:
    """Write a list item's step of a path: its identity, cut when long; `*` when there is none beside its content."""
    if key is None or isinstance(item, str):
        return "/*"
    name = key if isinstance(key, str) else " ".join(part for part in key if part)
    if len(name) > _LONGEST_NAME:
        cut = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        name = f"{name[:40]}~{cut}"
    return pointer_step(name)


def diff(old: Any, new: Any, identity: Identity = no_identity) -> list[Edit]:
    """List the edits from one value to another, in the order of the old value.

    Within a list, edits of items that stay come first, then removals from the last to the first, then what was added.
    """
    walk = _Walk(identity)
    walk.compare(old, new, Place())
    return walk.edits


@dataclass(slots=True)
class _Walk:
    identity: Identity
    edits: list[Edit] = field(default_factory=list)

    def add(self, operation: Operation, place: Place, old: Any = None, new: Any = None, **more: Any) -> None:
        self.edits.append(Edit(operation, place.pointer, old, new, members=place.members, path=place.path, **more))

    def compare(self, old: Any, new: Any, place: Place) -> None:
        if isinstance(old, Mapping) and isinstance(new, Mapping) and not place.is_too_far:
            self._compare_members(old, new, place)
        elif isinstance(old, list | tuple) and isinstance(new, list | tuple) and not place.is_too_far:
            key = self.identity(place.members)
            if key is None:
                self._compare_items(old, new, place)
            else:
                self._compare_keyed(*_by_key(old, new, key), place)
        elif not same(old, new):
            self.add(Operation.REPLACE, place, old, new)

    def _compare_members(self, old: Mapping[str, Any], new: Mapping[str, Any], place: Place) -> None:
        for name, before in old.items():
            after = new.get(name, _MISSING)
            if after is _MISSING:
                self.add(Operation.REMOVE, place.member(name), old=before)
            elif not _is_same_scalar(before, after):
                self.compare(before, after, place.member(name))
        for name, after in new.items():
            if name not in old:
                self.add(Operation.ADD, place.member(name), new=after)

    def _compare_items(self, old: Sequence[Any], new: Sequence[Any], place: Place) -> None:
        marks_old, marks_new = [mark_of(item) for item in old], [mark_of(item) for item in new]
        if marks_old == marks_new:
            return
        gone, come = Counter(marks_old) - Counter(marks_new), Counter(marks_new) - Counter(marks_old)
        if not gone and not come:
            self.add(Operation.REPLACE, place, list(old), list(new), kind=ChangeClass.ORDER_ONLY)
            return
        for index in reversed(_take(marks_old, gone)):
            self.add(Operation.REMOVE, place.item(index), old=old[index])
        for index in _take(marks_new, come):
            self.add(Operation.ADD, place.item("-"), new=new[index])

    def _compare_keyed(self, old: Mapping[Any, "_Item"], new: Mapping[Any, "_Item"], place: Place) -> None:
        for name, item in old.items():
            if name in new and not _is_same_scalar(item.value, new[name].value):
                self.compare(item.value, new[name].value, place.item(item.index, item.value, item.key))
        for name, item in reversed(list(old.items())):
            if name not in new:
                where = place.item(item.index, item.value, item.key)
                self.add(Operation.REMOVE, where, old=item.value, **item.marking)
        for name, item in new.items():
            if name not in old:
                self.add(Operation.ADD, place.item("-", item.value, item.key), new=item.value, **item.marking)


@dataclass(frozen=True, slots=True)
class _Item:
    index: int
    value: Any
    key: Key | None
    is_repeat: bool

    @property
    def marking(self) -> dict[str, Any]:
        """Class one more of what stays: a set is the same with it and without it."""
        return {"kind": ChangeClass.COSMETIC, "note": REPEAT} if self.is_repeat else {}


def _by_key(
    old: Sequence[Any], new: Sequence[Any], key: Callable[[Any], Key | None]
) -> tuple[dict[Any, _Item], dict[Any, _Item]]:
    """Name the items of two lists so that those of one name belong together.

    That is by identity, and by content where there is none. Where an identity occurs twice in a list, equal items
    belong together first and the others as they come.
    """
    sides = [[(key(value), value) for value in items] for items in (old, new)]
    names = [[own if own is not None else (mark_of(value), None) for own, value in items] for items in sides]
    twice = {name for side in names for name, times in Counter(side).items() if times > 1}
    marks = [
        [mark_of(value) if name in twice else "" for name, (_, value) in zip(side, items, strict=True)]
        for side, items in zip(names, sides, strict=True)
    ]
    before, after = (Counter(zip(side, found, strict=True)) for side, found in zip(names, marks, strict=True))
    both = before & after
    return (
        _named(sides[0], names[0], marks[0], both),
        _named(sides[1], names[1], marks[1], both),
    )


def _named(
    items: Sequence[tuple[Key | None, Any]], names: Sequence[Any], marks: Sequence[str], both: Counter[Any]
) -> dict[Any, _Item]:
    times: Counter[Any] = Counter()
    found = {}
    for index, ((key, value), name, mark) in enumerate(zip(items, names, marks, strict=True)):
        is_equal = bool(mark) and times[name, mark] < both[name, mark]
        full = (name, mark) if is_equal else (name, "")
        found[full, times[full]] = _Item(index, value, key, bool(mark) and not is_equal and both[name, mark] > 0)
        times[full] += 1
    return found


def _take(marks: Sequence[str], wanted: Counter[str]) -> list[int]:
    left = Counter(wanted)
    indexes = []
    for index, mark in enumerate(marks):
        if left[mark] > 0:
            left[mark] -= 1
            indexes.append(index)
    return indexes


# --- equality ---------------------------------------------------------------------------------------------------------


class _Written(str):
    """Text of a mark, as opposed to a value still to be marked."""

    __slots__ = ()


_END_OF_OBJECT, _END_OF_LIST = _Written("}"), _Written("]")
_PLAIN = (str, int, bool, type(None))


def mark_of(value: Any) -> str:
    """Write a value so that equal values, and only they, get equal texts.

    Numbers are written by value, not by spelling, and integers in hexadecimal: decimals of many digits take quadratic
    time. Nothing recurses, so no nesting is too deep.
    """
    parts: list[str] = []
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, _Written):
            parts.append(item)
        elif isinstance(item, str):
            parts.append(encode_basestring_ascii(item) + ",")
        elif isinstance(item, Mapping):
            parts.append("{")
            pending.append(_END_OF_OBJECT)
            for name in sorted(item, reverse=True):
                pending += (item[name], _Written(encode_basestring_ascii(name) + ":"))
        elif isinstance(item, list | tuple):
            parts.append("[")
            pending.append(_END_OF_LIST)
            pending.extend(reversed(item))
        else:
            parts.append(_mark_scalar(item))
    return "".join(parts)


def _mark_scalar(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return f"{value},"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"{value:x}," if isinstance(value, int) else f"{value!r},"


def _is_same_scalar(first: Any, second: Any) -> bool:
    """Tell quickly that two values are surely the same; False means that they may not be."""
    return first is second or (type(first) is type(second) and isinstance(first, _PLAIN) and bool(first == second))


def same(first: Any, second: Any) -> bool:
    """Compare JSON values strictly: `true` is not 1, 1 is 1.0, absent is not null."""
    return _is_same_scalar(first, second) or mark_of(first) == mark_of(second)


# --- application ------------------------------------------------------------------------------------------------------


def apply_edits(old: Any, edits: Iterable[Edit]) -> Any:
    """Apply edits to the old value, which stays as it is.

    The result equals the new value but for the order within lists that items came to or went from, and within lists of
    identities.
    """
    holder: list[Any] = [old]
    # Kept whole, so that no other value can get the number of one that is ours.
    own: dict[int, Any] = {}
    for edit in edits:
        node: Any = holder
        step: Any = 0
        for text in edit.pointer.split("/")[1:]:
            child = node[step]
            if id(child) not in own:
                child = dict(child) if isinstance(child, Mapping) else list(child)
                own[id(child)] = child
                node[step] = child
            node, step = child, _step(text, child)
        if edit.operation is Operation.REMOVE:
            del node[step]
        elif edit.operation is Operation.ADD and isinstance(node, list):
            node.append(edit.new)
        else:
            node[step] = edit.new
    return holder[0]


def _step(text: str, node: Any) -> str | int:
    if isinstance(node, list) and text != "-":
        return int(text)
    return text.replace("~1", "/").replace("~0", "~")


def _is_index(step: str) -> bool:
    return step == "-" or (step.isascii() and step.isdigit())
