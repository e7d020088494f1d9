"""What changed between two states of one document, member by member, and how much it matters. Pure.

Parsed JSON is compared, never text. Lists whose items have an identity are compared as sets of it; other lists as
multisets, so that a new order is told apart from new content. Pointers lead into the old value; `-` is the end of a
list, as in JSON Patch (RFC 6902), so that applying the edits to the old value gives the new one.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from index.records import pointer_step

_MISSING = object()
_DEEPEST = 80


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


GRAVITY = {kind: number for number, kind in enumerate(ChangeClass)}


@dataclass(frozen=True, slots=True)
class Edit:
    """One change: where in the old value, what was there and what is there now."""

    operation: Operation
    pointer: str
    old: Any = None
    new: Any = None
    kind: ChangeClass = ChangeClass.BEHAVIOURAL
    note: str = ""


# Gives the identity of a list's items by the list's path, indexes left out; None for lists without identity.
Identity = Callable[[str], Callable[[Any], Any] | None]


def no_identity(_: str) -> Callable[[Any], Any] | None:
    """Know no identities: every list is a multiset."""
    return None


def diff(old: Any, new: Any, identity: Identity = no_identity) -> list[Edit]:
    """List the edits from one value to another, in the order of the old value; removals of a list come last first."""
    return list(_diff(old, new, "", "", identity, 0))


def _diff(old: Any, new: Any, pointer: str, path: str, identity: Identity, depth: int) -> Iterator[Edit]:
    if isinstance(old, Mapping) and isinstance(new, Mapping) and depth < _DEEPEST:
        for name in (*old, *(name for name in new if name not in old)):
            before, after = old.get(name, _MISSING), new.get(name, _MISSING)
            place = pointer + pointer_step(name)
            if before is _MISSING:
                yield Edit(Operation.ADD, place, new=after)
            elif after is _MISSING:
                yield Edit(Operation.REMOVE, place, old=before)
            else:
                yield from _diff(before, after, place, f"{path}/{name}", identity, depth + 1)
    elif isinstance(old, list) and isinstance(new, list) and depth < _DEEPEST:
        yield from _diff_lists(old, new, pointer, path, identity, depth)
    elif not same(old, new):
        yield Edit(Operation.REPLACE, pointer, old, new)


def _diff_lists(
    old: Sequence[Any], new: Sequence[Any], pointer: str, path: str, identity: Identity, depth: int
) -> Iterator[Edit]:
    key = identity(path)
    before = _by_key(old, key) if key is not None else None
    after = _by_key(new, key) if key is not None else None
    if before is not None and after is not None:
        yield from _diff_keyed(before, after, pointer, path, identity, depth)
        return
    marks_old, marks_new = [_mark(item) for item in old], [_mark(item) for item in new]
    if marks_old == marks_new:
        return
    gone, come = Counter(marks_old) - Counter(marks_new), Counter(marks_new) - Counter(marks_old)
    if not gone and not come:
        yield Edit(Operation.REPLACE, pointer, list(old), list(new), ChangeClass.ORDER_ONLY)
        return
    removed = _take(marks_old, gone)
    added = [new[index] for index in _take(marks_new, come)]
    for index in reversed(removed):
        yield Edit(Operation.REMOVE, f"{pointer}/{index}", old=old[index])
    for item in added:
        yield Edit(Operation.ADD, f"{pointer}/-", new=item)


def _diff_keyed(
    before: Mapping[Any, tuple[int, Any]],
    after: Mapping[Any, tuple[int, Any]],
    pointer: str,
    path: str,
    identity: Identity,
    depth: int,
) -> Iterator[Edit]:
    for key, (index, item) in before.items():
        if key in after:
            yield from _diff(item, after[key][1], f"{pointer}/{index}", path, identity, depth + 1)
    for key, (index, item) in reversed(list(before.items())):
        if key not in after:
            yield Edit(Operation.REMOVE, f"{pointer}/{index}", old=item)
    for key, (_, item) in after.items():
        if key not in before:
            yield Edit(Operation.ADD, f"{pointer}/-", new=item)


def _by_key(items: Sequence[Any], key: Callable[[Any], Any]) -> dict[Any, tuple[int, Any]] | None:
    """Index items by identity; None when one has none or two share it, so that nothing is compared by guess."""
    found: dict[Any, tuple[int, Any]] = {}
    for index, item in enumerate(items):
        name = key(item)
        if name is None or name in found:
            return None
        found[name] = (index, item)
    return found


def _take(marks: Sequence[str], wanted: Counter[str]) -> list[int]:
    left = Counter(wanted)
    indexes = []
    for index, mark in enumerate(marks):
        if left[mark] > 0:
            left[mark] -= 1
            indexes.append(index)
    return indexes


def _mark(value: Any) -> str:
    """Write a value so that equal values, and only they, get equal texts; numbers compare by value, not spelling."""
    return json.dumps(_plain(value, 0), sort_keys=True)


def _plain(value: Any, depth: int) -> Any:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping) and depth < _DEEPEST:
        return {name: _plain(member, depth + 1) for name, member in value.items()}
    if isinstance(value, list | tuple) and depth < _DEEPEST:
        return [_plain(item, depth + 1) for item in value]
    return value


def same(first: Any, second: Any) -> bool:
    """Compare JSON values strictly: `true` is not 1, 1 is 1.0, absent is not null."""
    return _mark(first) == _mark(second)


def apply_edits(old: Any, edits: Sequence[Edit]) -> Any:
    """Apply edits to the old value; the result equals the new value but for the order within lists of identities."""
    value = json.loads(json.dumps(old))
    for edit in edits:
        if not edit.pointer:
            value = edit.new
            continue
        *parents, last = [step.replace("~1", "/").replace("~0", "~") for step in edit.pointer.split("/")[1:]]
        node = value
        for step in parents:
            node = node[int(step)] if isinstance(node, list) else node[step]
        if isinstance(node, list):
            if edit.operation is Operation.ADD:
                node.append(edit.new)
            elif edit.operation is Operation.REMOVE:
                del node[int(last)]
            else:
                node[int(last)] = edit.new
        elif edit.operation is Operation.REMOVE:
            del node[last]
        else:
            node[last] = edit.new
    return value


# --- identities and classes -------------------------------------------------------------------------------------------


def _member(name: str) -> Callable[[Any], Any]:
    return lambda item: item.get(name) if isinstance(item, Mapping) and isinstance(item.get(name), str) else None


def _text(item: Any) -> Any:
    return item if isinstance(item, str) else None


def _interface(item: Any) -> Any:
    if not isinstance(item, Mapping):
        return None
    return tuple(item.get(name) for name in ("url", "protocolBinding", "protocolVersion", "tenant"))


def _remote(item: Any) -> Any:
    return (item.get("type"), item.get("url")) if isinstance(item, Mapping) else None


def _entry(item: Any) -> Any:
    return (item.get("identifier"), item.get("version")) if isinstance(item, Mapping) else None


_CARD_IDENTITIES: Mapping[str, Callable[[Any], Any]] = {
    "/supportedInterfaces": _interface,
    "/skills": _member("id"),
    "/skills/tags": _text,
    "/skills/examples": _text,
    "/skills/inputModes": _text,
    "/skills/outputModes": _text,
    "/capabilities/extensions": _member("uri"),
    "/defaultInputModes": _text,
    "/defaultOutputModes": _text,
    "/remotes": _remote,
    "/remotes/supportedProtocolVersions": _text,
    "/protocolVersions": _text,
    "/tools": _member("name"),
}
_ENTRY_IDENTITIES: Mapping[str, Callable[[Any], Any]] = {
    "/tags": _text,
    "/capabilities": _text,
    "/representativeQueries": _text,
    "/entries": _entry,
}


def card_identity(path: str) -> Callable[[Any], Any] | None:
    """Know the identities within a normalised card."""
    return _CARD_IDENTITIES.get(path)


def entry_identity(path: str) -> Callable[[Any], Any] | None:
    """Know the identities within an entry, or a manifest."""
    return _ENTRY_IDENTITIES.get(path)


def diff_cards(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Edit]:
    """List and class the changes between two states of a card in normalised form."""
    edits = [_classed(edit, old, new) for edit in diff(old, new, card_identity)]
    edits += _order_of_interfaces(old, new, edits)
    return _with_renames(_with_first_interface(edits, old, new), old, new)


def diff_entries(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Edit]:
    """List and class the changes between two states of an entry as published."""
    return [replace(edit, kind=_entry_class(edit)) for edit in diff(old, new, entry_identity)]


def summary(edits: Sequence[Edit]) -> ChangeClass | None:
    """Give the gravest class of a set of edits; None when there are none."""
    return min((edit.kind for edit in edits), key=GRAVITY.__getitem__, default=None)


def is_silent(edits: Sequence[Edit]) -> bool:
    """Tell whether content changed while the version stayed the same."""
    content = [edit for edit in edits if edit.kind not in (ChangeClass.VERSION_ONLY, ChangeClass.ORDER_ONLY)]
    return bool(content) and not any(edit.pointer == "/version" for edit in edits)


_ADDED_REMOVED_CHANGED: Mapping[str, tuple[ChangeClass, ChangeClass, ChangeClass]] = {
    # path: class when added, when removed, when its value changes
    "/supportedInterfaces": (ChangeClass.COMPATIBLE, ChangeClass.BREAKING, ChangeClass.BREAKING),
    "/skills": (ChangeClass.COMPATIBLE, ChangeClass.BREAKING, ChangeClass.BREAKING),
    "/skills/tags": (ChangeClass.COMPATIBLE, ChangeClass.SEARCH, ChangeClass.SEARCH),
    "/skills/examples": (ChangeClass.COMPATIBLE, ChangeClass.COSMETIC, ChangeClass.COSMETIC),
    "/skills/inputModes": (ChangeClass.COMPATIBLE, ChangeClass.BREAKING, ChangeClass.BREAKING),
    "/skills/outputModes": (ChangeClass.COMPATIBLE, ChangeClass.BREAKING, ChangeClass.BREAKING),
    "/skills/name": (ChangeClass.COSMETIC, ChangeClass.COSMETIC, ChangeClass.COSMETIC),
    "/skills/description": (ChangeClass.COSMETIC, ChangeClass.COSMETIC, ChangeClass.COSMETIC),
    "/defaultInputModes": (ChangeClass.COMPATIBLE, ChangeClass.BREAKING, ChangeClass.BREAKING),
    "/defaultOutputModes": (ChangeClass.COMPATIBLE, ChangeClass.BREAKING, ChangeClass.BREAKING),
    "/provider/organization": (ChangeClass.SECURITY, ChangeClass.SECURITY, ChangeClass.SECURITY),
    "/provider": (ChangeClass.SECURITY, ChangeClass.SECURITY, ChangeClass.SECURITY),
    "/signatures": (ChangeClass.COMPATIBLE, ChangeClass.SECURITY, ChangeClass.SECURITY),
    "/name": (ChangeClass.COSMETIC, ChangeClass.COSMETIC, ChangeClass.COSMETIC),
    "/title": (ChangeClass.COSMETIC, ChangeClass.COSMETIC, ChangeClass.COSMETIC),
    "/description": (ChangeClass.COSMETIC, ChangeClass.COSMETIC, ChangeClass.COSMETIC),
    "/iconUrl": (ChangeClass.COSMETIC, ChangeClass.COSMETIC, ChangeClass.COSMETIC),
    "/documentationUrl": (ChangeClass.COSMETIC, ChangeClass.COSMETIC, ChangeClass.COSMETIC),
    "/websiteUrl": (ChangeClass.COSMETIC, ChangeClass.COSMETIC, ChangeClass.COSMETIC),
    "/version": (ChangeClass.VERSION_ONLY, ChangeClass.VERSION_ONLY, ChangeClass.VERSION_ONLY),
    "/remotes": (ChangeClass.COMPATIBLE, ChangeClass.BREAKING, ChangeClass.BREAKING),
    "/remotes/supportedProtocolVersions": (ChangeClass.COMPATIBLE, ChangeClass.BREAKING, ChangeClass.BREAKING),
    "/protocolVersions": (ChangeClass.COMPATIBLE, ChangeClass.BREAKING, ChangeClass.BREAKING),
    "/tools": (ChangeClass.COMPATIBLE, ChangeClass.BREAKING, ChangeClass.BREAKING),
    "/tools/description": (ChangeClass.COSMETIC, ChangeClass.COSMETIC, ChangeClass.COSMETIC),
}
_ENTRY_CLASSES: Mapping[str, tuple[ChangeClass, ChangeClass, ChangeClass]] = {
    "/url": (ChangeClass.BREAKING, ChangeClass.BREAKING, ChangeClass.BREAKING),
    "/data": (ChangeClass.BREAKING, ChangeClass.BREAKING, ChangeClass.BREAKING),
    "/type": (ChangeClass.BREAKING, ChangeClass.BREAKING, ChangeClass.BREAKING),
    "/trustManifest": (ChangeClass.SECURITY, ChangeClass.SECURITY, ChangeClass.SECURITY),
    "/tags": (ChangeClass.COMPATIBLE, ChangeClass.SEARCH, ChangeClass.SEARCH),
    "/capabilities": (ChangeClass.COMPATIBLE, ChangeClass.SEARCH, ChangeClass.SEARCH),
    "/representativeQueries": (ChangeClass.COMPATIBLE, ChangeClass.SEARCH, ChangeClass.SEARCH),
    "/displayName": (ChangeClass.COSMETIC, ChangeClass.COSMETIC, ChangeClass.COSMETIC),
    "/description": (ChangeClass.COSMETIC, ChangeClass.COSMETIC, ChangeClass.COSMETIC),
    "/version": (ChangeClass.VERSION_ONLY, ChangeClass.VERSION_ONLY, ChangeClass.VERSION_ONLY),
    "/updatedAt": (ChangeClass.VERSION_ONLY, ChangeClass.VERSION_ONLY, ChangeClass.VERSION_ONLY),
}


def _column(edit: Edit) -> int:
    return (Operation.ADD, Operation.REMOVE, Operation.REPLACE).index(edit.operation)


def _path(pointer: str) -> str:
    """Drop list indexes from a pointer: what is left names the member whatever its place."""
    return "/".join(step for step in pointer.split("/") if not step.isdigit() and step != "-")


def _classed(edit: Edit, old: Mapping[str, Any], new: Mapping[str, Any]) -> Edit:
    path = _path(edit.pointer)
    if edit.kind is ChangeClass.ORDER_ONLY:
        return edit
    if path.startswith("/capabilities"):
        return replace(edit, kind=_capability_class(edit, path))
    if path.startswith("/securityRequirements") or path == "/skills/securityRequirements":
        return replace(edit, kind=_requirement_class(edit, path, old, new))
    if path.startswith("/securitySchemes"):
        added = edit.operation is Operation.ADD and path.count("/") == 2
        cosmetic = path.endswith("/description")
        kind = ChangeClass.COMPATIBLE if added else ChangeClass.COSMETIC if cosmetic else ChangeClass.BREAKING
        return replace(edit, kind=kind)
    if path == "/provider/url":
        return replace(edit, kind=ChangeClass.SECURITY if _host(edit.old) != _host(edit.new) else ChangeClass.COSMETIC)
    if path == "/authRequired":
        return replace(edit, kind=ChangeClass.BREAKING if edit.new is True else ChangeClass.COMPATIBLE)
    if path.startswith("/remotes/headers"):
        return replace(edit, kind=ChangeClass.BREAKING if _requires(edit.new) else ChangeClass.COMPATIBLE)
    if path.startswith("/signatures"):
        return replace(edit, kind=ChangeClass.SECURITY)
    classes = _ADDED_REMOVED_CHANGED.get(path)
    return replace(edit, kind=classes[_column(edit)] if classes else ChangeClass.BEHAVIOURAL)


def _capability_class(edit: Edit, path: str) -> ChangeClass:
    """Class a change of capabilities: one that goes, or an extension that becomes required, breaks clients."""
    if path.startswith("/capabilities/extensions"):
        if path == "/capabilities/extensions/required":
            return ChangeClass.BREAKING if edit.new is True else ChangeClass.COMPATIBLE
        if edit.operation is Operation.REMOVE:
            return ChangeClass.BREAKING
        required = any(item.get("required") is True for item in _extensions(edit.new))
        return ChangeClass.BREAKING if required else ChangeClass.COMPATIBLE
    return ChangeClass.BREAKING if edit.old is True and edit.new is not True else ChangeClass.COMPATIBLE


def _extensions(value: Any) -> list[Mapping[str, Any]]:
    found = value if isinstance(value, list) else [value]
    return [item for item in found if isinstance(item, Mapping)]


def _requirement_class(edit: Edit, path: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> ChangeClass:
    """Class a change of requirements: a further alternative helps, all else asks for more (A2A 4.5: OR of ANDs)."""
    if edit.operation is Operation.ADD:
        whole = edit.pointer.endswith("securityRequirements")
        return ChangeClass.BREAKING if whole else ChangeClass.COMPATIBLE
    if edit.operation is Operation.REMOVE and edit.pointer.endswith("securityRequirements"):
        return ChangeClass.COMPATIBLE
    return ChangeClass.BREAKING


def _requires(value: Any) -> bool:
    return value is True or (isinstance(value, Mapping) and any(item is True for item in value.values()))


def _host(value: Any) -> str:
    text = value if isinstance(value, str) else ""
    return text.partition("://")[2].partition("/")[0].lower()


def _order_of_interfaces(old: Mapping[str, Any], new: Mapping[str, Any], edits: Sequence[Edit]) -> list[Edit]:
    """Find a new order of the same interfaces: the first is the preferred one, so behaviour changes (A2A 5.6)."""
    before, after = old.get("supportedInterfaces"), new.get("supportedInterfaces")
    if not isinstance(before, list) or not isinstance(after, list) or same(before, after):
        return []
    if any(edit.pointer.startswith("/supportedInterfaces") for edit in edits):
        return []
    return [Edit(Operation.REPLACE, "/supportedInterfaces", before, after, ChangeClass.BEHAVIOURAL, "order")]


def _with_first_interface(edits: list[Edit], old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Edit]:
    """Whoever took the first interface is served another one when something new stands before it."""
    before, after = old.get("supportedInterfaces") or [], new.get("supportedInterfaces") or []
    if not before or not after or same(before[0], after[0]):
        return edits
    return [
        replace(edit, kind=ChangeClass.BREAKING, note="preferred")
        if edit.pointer == "/supportedInterfaces/-" and same(edit.new, after[0])
        else edit
        for edit in edits
    ]


def _with_renames(edits: list[Edit], old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Edit]:
    """Note a skill that went and came back under another id; it breaks callers all the same."""
    gone = [edit for edit in edits if edit.operation is Operation.REMOVE and _path(edit.pointer) == "/skills"]
    come = [edit for edit in edits if edit.operation is Operation.ADD and edit.pointer == "/skills/-"]
    renamed = {}
    for edit in gone:
        twin = next((other for other in come if _same_skill(edit.old, other.new)), None)
        if twin is not None:
            renamed[edit.pointer] = f"renamed to {twin.new.get('id')}"
    return [
        replace(edit, note=renamed[edit.pointer])
        if edit.operation is Operation.REMOVE and edit.pointer in renamed
        else edit
        for edit in edits
    ]


def _same_skill(first: Any, second: Any) -> bool:
    if not isinstance(first, Mapping) or not isinstance(second, Mapping):
        return False
    return all(first.get(name) == second.get(name) for name in ("name", "description")) and bool(first.get("name"))


def _entry_class(edit: Edit) -> ChangeClass:
    if edit.kind is ChangeClass.ORDER_ONLY:
        return edit.kind
    top = "/" + edit.pointer.split("/")[1] if edit.pointer else ""
    classes = _ENTRY_CLASSES.get(top)
    return classes[_column(edit)] if classes else ChangeClass.BEHAVIOURAL
