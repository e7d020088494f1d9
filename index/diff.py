"""What changed between two states of one card or entry, and how much it matters. Pure.

Cards are compared in the normal form of their surface, whatever version they were published in.
"""

import base64
import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from index.change_classes import REQUIREMENTS, CardClasses, entry_class, host_of_text, is_item, major_minor
from index.edits import (
    GRAVITY,
    REPEAT,
    VERDICT,
    ChangeClass,
    Edit,
    Identity,
    Key,
    Operation,
    apply_edits,
    diff,
    mark_of,
    no_identity,
    same,
)

__all__ = [
    "GRAVITY",
    "REPEAT",
    "ChangeClass",
    "Edit",
    "Identity",
    "Operation",
    "apply_edits",
    "card_identity",
    "diff",
    "diff_cards",
    "diff_entries",
    "document_identity",
    "entry_identity",
    "is_silent",
    "no_identity",
    "same",
    "summary",
]
RESIGNED = "resigned"
_LONGEST_HEADER = 8192
_INTERFACES = "/supportedInterfaces"
_REMOTES = "/remotes"


# --- identities -------------------------------------------------------------------------------------------------------


def _member(name: str) -> Callable[[Any], Key | None]:
    return lambda item: item.get(name) if isinstance(item, Mapping) and isinstance(item.get(name), str) else None


def _members(*names: str) -> Callable[[Any], Key | None]:
    """Make an identity of several members; one that has none of them has no identity."""

    def key(item: Any) -> Key | None:
        found = [item.get(name) for name in names] if isinstance(item, Mapping) else []
        if all(part is None for part in found):
            return None
        return tuple(part if isinstance(part, str) else "" if part is None else mark_of(part) for part in found)

    return key


def _text(item: Any) -> Key | None:
    return item if isinstance(item, str) else None


def _interface(item: Any) -> Key | None:
    key = _members("url", "protocolBinding", "protocolVersion", "tenant")(item)
    return (*key[:2], str(major_minor(key[2])), key[3]) if key else None


def _requirement(item: Any) -> Key | None:
    """Know an alternative by its schemes; the scopes may change."""
    if not isinstance(item, Mapping):
        return None
    schemes = item.get("schemes")
    return ("schemes", *sorted(schemes if isinstance(schemes, Mapping) else item))


def _entry(item: Any) -> Key | None:
    return _members("identifier", "version")(item) if _member("identifier")(item) else None


_CARD_IDENTITIES: Mapping[str, Callable[[Any], Key | None]] = {
    _INTERFACES: _interface,
    "/additionalInterfaces": _members("url", "transport"),
    "/skills": _member("id"),
    "/skills/tags": _text,
    "/skills/examples": _text,
    "/skills/inputModes": _text,
    "/skills/outputModes": _text,
    "/capabilities": _text,
    "/capabilities/extensions": _member("uri"),
    "/defaultInputModes": _text,
    "/defaultOutputModes": _text,
    **dict.fromkeys(REQUIREMENTS, _requirement),
    _REMOTES: _members("type", "url"),
    "/remotes/supportedProtocolVersions": _text,
    "/protocolVersions": _text,
    "/packages": _members("registryType", "identifier"),
    "/authSchemes": _text,
    "/tools": _member("name"),
    "/keys": _members("kid", "thumbprint"),
}
_SCOPES = tuple(f"{members}/" for members in REQUIREMENTS)
_ENTRY_IDENTITIES: Mapping[str, Callable[[Any], Key | None]] = {
    "/tags": _text,
    "/capabilities": _text,
    "/representativeQueries": _text,
    "/entries": _entry,
}


def card_identity(members: str) -> Callable[[Any], Key | None] | None:
    """Know the identities within a card, normalised or as published."""
    return _text if members.startswith(_SCOPES) else _CARD_IDENTITIES.get(members)


def entry_identity(members: str) -> Callable[[Any], Key | None] | None:
    """Know the identities within an entry and a card inside it, or within a manifest."""
    if members.startswith("/data/"):
        return card_identity(members.removeprefix("/data"))
    if members.startswith("/entries/"):
        return entry_identity(members.removeprefix("/entries"))
    return _ENTRY_IDENTITIES.get(members)


def document_identity(members: str) -> Callable[[Any], Key | None] | None:
    """Know the identities within any document of a surface, as published."""
    return card_identity(members) or entry_identity(members)


# --- comparison -------------------------------------------------------------------------------------------------------


def diff_cards(
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    *,
    legacy_dropped: bool = False,
    legacy: Sequence[Mapping[str, Any]] = (),
) -> list[Edit]:
    """List and class the changes between two states of a card in normal form.

    `legacy` holds the interfaces that the new card's older block still offers; `legacy_dropped` says that the old card
    had such a block and the new one has none.
    """
    inner_old, inner_new = old.get("card"), new.get("card")
    if isinstance(inner_old, Mapping) and isinstance(inner_new, Mapping):  # an agent file that is a card as well
        around = diff_cards({**old, "card": None}, {**new, "card": None})
        inside = diff_cards(inner_old, inner_new, legacy_dropped=legacy_dropped, legacy=legacy)
        return around + [_below("/card", edit) for edit in inside]
    edits = _with_kept_interfaces(diff(old, new, card_identity), legacy)
    edits = _with_pairs(_with_pairs(edits, _INTERFACES, _INTERFACE_PAIRS), _REMOTES, _REMOTE_PAIRS)
    classes = CardClasses(old, new)
    edits = [edit if edit.note == _KEPT else classes.classed(edit) for edit in edits]
    edits = _with_signers(edits, old, new)
    edits = _with_order(_with_preferred(_with_renames(edits), old, new), old, new)
    return [*edits, *_dropped(old)] if legacy_dropped else edits


def diff_entries(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Edit]:
    """List and class the changes between two states of an entry as published; a card inside it is judged as a card."""
    edits = diff(old, new, entry_identity)
    data_old, data_new = old.get("data"), new.get("data")
    if not isinstance(data_old, Mapping) or not isinstance(data_new, Mapping):
        return [replace(edit, kind=entry_class(edit)) for edit in edits]
    classes = CardClasses(data_old, data_new)
    found = []
    for edit in edits:
        if edit.members.startswith("/data/"):
            inside = replace(edit, members=edit.members.removeprefix("/data"))
            found.append(replace(edit, kind=classes.classed(inside).kind))
        else:
            found.append(replace(edit, kind=entry_class(edit)))
    return found


def summary(edits: Sequence[Edit]) -> ChangeClass | None:
    """Give the gravest class of a set of edits; None when there are none."""
    return min((edit.kind for edit in edits), key=GRAVITY.__getitem__, default=None)


def is_silent(edits: Sequence[Edit]) -> bool:
    """Tell whether content changed while the version stayed the same."""
    other = (ChangeClass.VERSION_ONLY, ChangeClass.ORDER_ONLY)
    content = [edit for edit in edits if edit.kind not in other and edit.note != VERDICT]
    return bool(content) and not any(edit.pointer in ("/version", "/card/version") for edit in edits)


def _below(pointer: str, edit: Edit) -> Edit:
    return replace(edit, pointer=pointer + edit.pointer, members=pointer + edit.members, path=pointer + edit.path)


# --- interfaces -------------------------------------------------------------------------------------------------------

_KEPT = "legacy"
# What two items must share to be one that was altered, the closest likeness first.
_INTERFACE_PAIRS = (
    ("url", "protocolBinding", "protocolVersion"),
    ("url", "protocolBinding", "tenant"),
    ("protocolBinding", "protocolVersion", "tenant"),
    ("url", "protocolVersion", "tenant"),
    ("url",),
)
_REMOTE_PAIRS = (("url",), ("type",))


def _with_kept_interfaces(edits: list[Edit], legacy: Sequence[Mapping[str, Any]]) -> list[Edit]:
    """Clear interfaces that only moved: from the list into the older block, where their clients look for them."""
    kept = {_interface(item) for item in legacy}
    return [
        replace(edit, kind=ChangeClass.COMPATIBLE, note=_KEPT)
        if edit.members == _INTERFACES and edit.operation is Operation.REMOVE and _interface(edit.old) in kept
        else edit
        for edit in edits
    ]


def _with_pairs(edits: list[Edit], members: str, likenesses: Sequence[tuple[str, ...]]) -> list[Edit]:
    """Read an item that went and a like one that came as one item that was altered."""
    items = {
        operation: {
            place: edit
            for place, edit in enumerate(edits)
            if edit.members == members and edit.operation is operation and is_item(edit) and not edit.note
        }
        for operation in (Operation.REMOVE, Operation.ADD)
    }
    gone, come = items[Operation.REMOVE], items[Operation.ADD]
    altered: dict[int, list[Edit]] = {}
    for names in likenesses:
        waiting: dict[Any, deque[int]] = {}
        for place, edit in come.items():
            waiting.setdefault(_likeness(edit.new, names), deque()).append(place)
        for place in sorted(gone, reverse=True):  # removals stand from the last to the first
            twins = waiting.get(_likeness(gone[place].old, names))
            if twins:
                before, after = gone.pop(place), come.pop(twin := twins.popleft())
                changes = diff(before.old, after.new, lambda inner: card_identity(members + inner))
                altered[place] = [_within(before, edit) for edit in changes]
                altered[twin] = []
    return [edit for place, found in enumerate(edits) for edit in altered.get(place, [found])]


def _likeness(item: Any, names: tuple[str, ...]) -> Any:
    if not isinstance(item, Mapping):
        return None
    return tuple(
        mark_of(major_minor(item.get(name)) if name == "protocolVersion" else item.get(name)) for name in names
    )


def _within(item: Edit, edit: Edit) -> Edit:
    return replace(
        edit,
        pointer=item.pointer + edit.pointer,
        members=item.members + edit.members,
        path=item.path + edit.path,
    )


def _with_preferred(edits: list[Edit], old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Edit]:
    """Note what took the first interface from whoever relied on it, or put another before it (A2A 5.6)."""
    before, after = _items(old), _items(new)
    if not before or not after or _interface(before[0]) == _interface(after[0]):
        return edits
    first = f"{_INTERFACES}/0"
    touching = [edit for edit in edits if f"{edit.pointer}/".startswith(f"{first}/")]
    if any(edit.note == _KEPT for edit in touching):
        return edits
    mark = mark_of(after[0])
    found = []
    for edit in edits:
        came = edit.members == _INTERFACES and edit.operation is Operation.ADD and is_item(edit)
        if (came and mark_of(edit.new) == mark) or f"{edit.pointer}/".startswith(f"{first}/"):
            edit = replace(edit, kind=ChangeClass.BREAKING, note="preferred")
        found.append(edit)
    return found


def _with_order(edits: list[Edit], old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Edit]:
    """Find a new order of the interfaces that stay: the first is the preferred one, so behaviour changes (A2A 5.6)."""
    before, after = _items(old), _items(new)
    left, right = [_interface(item) for item in before], [_interface(item) for item in after]
    stay = set(left) & set(right)
    if [key for key in left if key in stay] == [key for key in right if key in stay]:
        return edits
    order = Edit(
        Operation.REPLACE, _INTERFACES, before, after, ChangeClass.BEHAVIOURAL, "order", _INTERFACES, _INTERFACES
    )
    return [*edits, order]


def _items(card: Mapping[str, Any]) -> list[Any]:
    found = card.get("supportedInterfaces")
    return found if isinstance(found, list) else []


def _dropped(old: Mapping[str, Any]) -> list[Edit]:
    """Report the older block that a hybrid lost: clients of 0.3 find no address any more (A2A 8.3.2)."""
    return [Edit(Operation.REMOVE, "/url", kind=ChangeClass.BREAKING, note="legacy_dropped")]


# --- skills and signatures --------------------------------------------------------------------------------------------


def _with_renames(edits: list[Edit]) -> list[Edit]:
    """Note a skill that went and came back under another id; it breaks callers all the same."""
    come: dict[Any, deque[Any]] = {}
    for edit in edits:
        if edit.members == "/skills" and edit.operation is Operation.ADD and (text := _skill_text(edit.new)):
            come.setdefault(text, deque()).append(edit.new.get("id"))
    found = []
    for edit in edits:
        if edit.members == "/skills" and edit.operation is Operation.REMOVE:
            twins = come.get(_skill_text(edit.old))
            if twins:
                edit = replace(edit, note=f"renamed to {twins.popleft()}")
        found.append(edit)
    return found


def _skill_text(skill: Any) -> Any:
    if not isinstance(skill, Mapping) or not isinstance(skill.get("name"), str):
        return None
    return skill["name"], mark_of(skill.get("description"))


def _with_signers(edits: list[Edit], old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Edit]:
    """Class changes of signatures by who signs: one made anew by the same key follows any change of the content."""
    if not any(edit.members.startswith("/signatures") for edit in edits):
        return edits
    before, after = _signers(old), _signers(new)
    return [_signed(edit, before, after) if edit.members.startswith("/signatures") else edit for edit in edits]


def _signed(edit: Edit, before: frozenset[Any], after: frozenset[Any]) -> Edit:
    if edit.kind is ChangeClass.ORDER_ONLY:
        return edit
    if before - after:
        return replace(edit, kind=ChangeClass.SECURITY)
    if before == after:
        return replace(edit, kind=ChangeClass.VERSION_ONLY, note=RESIGNED)
    known = is_item(edit) and _signer(edit.new if edit.operation is Operation.ADD else edit.old) in before
    return (
        replace(edit, kind=ChangeClass.VERSION_ONLY, note=RESIGNED)
        if known
        else replace(edit, kind=ChangeClass.COMPATIBLE)
    )


def _signers(card: Mapping[str, Any]) -> frozenset[Any]:
    found = card.get("signatures")
    return frozenset(_signer(item) for item in found) if isinstance(found, list) else frozenset()


def _signer(signature: Any) -> tuple[str, str, str]:
    """Name who signed: algorithm, key and the host that its key set is on (RFC 7515 4.1)."""
    if not isinstance(signature, Mapping):
        return "", "", ""
    beside = signature.get("header")
    header = {**(beside if isinstance(beside, Mapping) else {}), **_protected(signature.get("protected"))}
    return mark_of(header.get("alg")), mark_of(header.get("kid")), host_of_text(header.get("jku")).lower()


def _protected(text: Any) -> Mapping[str, Any]:
    """Read a protected header; one that cannot be read is known by its text alone."""
    if not isinstance(text, str):
        return {}
    try:
        if len(text) > _LONGEST_HEADER:
            raise ValueError("too long")
        header = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, RecursionError):
        return {"kid": text}
    return header if isinstance(header, Mapping) else {"kid": text}
