"""How much one change of a card or an entry matters to whoever uses it. Pure.

Cards are judged in the normal form of their surface; members that no rule knows are behavioural.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from index.edits import REPEAT, ChangeClass, Edit, Operation

REQUIREMENTS = ("/securityRequirements", "/skills/securityRequirements", "/security", "/skills/security")
_BREAKING, _SECURITY, _SEARCH = ChangeClass.BREAKING, ChangeClass.SECURITY, ChangeClass.SEARCH
_BEHAVIOURAL, _COMPATIBLE = ChangeClass.BEHAVIOURAL, ChangeClass.COMPATIBLE
_COSMETIC, _VERSION = ChangeClass.COSMETIC, ChangeClass.VERSION_ONLY
_Row = tuple[ChangeClass, ChangeClass, ChangeClass]
_ALWAYS_BREAKING: _Row = (_BREAKING, _BREAKING, _BREAKING)
_ALWAYS_SECURITY: _Row = (_SECURITY, _SECURITY, _SECURITY)
_ALWAYS_COSMETIC: _Row = (_COSMETIC, _COSMETIC, _COSMETIC)
_ALWAYS_VERSION: _Row = (_VERSION, _VERSION, _VERSION)
_OFFER: _Row = (_COMPATIBLE, _BREAKING, _BREAKING)
_FINDABLE: _Row = (_COMPATIBLE, _SEARCH, _SEARCH)

# Class when added, when removed, when its value changes.
_CARD: Mapping[str, _Row] = {
    "/supportedInterfaces": _OFFER,
    "/supportedInterfaces/url": _ALWAYS_BREAKING,
    "/supportedInterfaces/protocolBinding": _ALWAYS_BREAKING,
    "/supportedInterfaces/tenant": _ALWAYS_BREAKING,
    "/url": _ALWAYS_BREAKING,
    "/skills": _OFFER,
    "/skills/tags": _FINDABLE,
    "/skills/examples": (_COMPATIBLE, _COSMETIC, _COSMETIC),
    "/skills/name": _ALWAYS_COSMETIC,
    "/skills/description": _ALWAYS_COSMETIC,
    "/defaultInputModes": _OFFER,
    "/defaultOutputModes": _OFFER,
    "/provider": _ALWAYS_SECURITY,
    "/provider/organization": _ALWAYS_SECURITY,
    "/trustAnchor": _ALWAYS_SECURITY,
    "/keys": _ALWAYS_SECURITY,
    "/name": _ALWAYS_COSMETIC,
    "/title": _ALWAYS_COSMETIC,
    "/description": _ALWAYS_COSMETIC,
    "/iconUrl": _ALWAYS_COSMETIC,
    "/documentationUrl": _ALWAYS_COSMETIC,
    "/websiteUrl": _ALWAYS_COSMETIC,
    "/version": _ALWAYS_VERSION,
    "/remotes": _OFFER,
    "/remotes/url": _ALWAYS_BREAKING,
    "/remotes/type": _ALWAYS_BREAKING,
    "/remotes/supportedProtocolVersions": _OFFER,
    "/protocolVersions": _OFFER,
    "/packages": _OFFER,
    "/authSchemes": _OFFER,
    "/tools": _OFFER,
    "/tools/description": _ALWAYS_COSMETIC,
}
_ENTRY: Mapping[str, _Row] = {
    "/url": _ALWAYS_BREAKING,
    "/data": _ALWAYS_BREAKING,
    "/type": _ALWAYS_BREAKING,
    "/trustManifest": _ALWAYS_SECURITY,
    "/tags": _FINDABLE,
    "/capabilities": _FINDABLE,
    "/representativeQueries": _FINDABLE,
    "/displayName": _ALWAYS_COSMETIC,
    "/description": _ALWAYS_COSMETIC,
    "/version": _ALWAYS_VERSION,
    "/updatedAt": _ALWAYS_VERSION,
}
# What it means that a signature has another outcome than before; other turns tell nothing new.
VERDICT_CLASSES: Mapping[tuple[str, str], ChangeClass] = {
    ("valid", "invalid"): _SECURITY,
    ("valid", "malformed"): _SECURITY,
    ("valid", "unsupported_alg"): _SECURITY,
    ("valid", "key_unavailable"): _BEHAVIOURAL,
    ("invalid", "valid"): _COMPATIBLE,
    ("key_unavailable", "valid"): _COMPATIBLE,
    ("malformed", "valid"): _COMPATIBLE,
    ("unsupported_alg", "valid"): _COMPATIBLE,
}
_SCHEME_MEMBERS = frozenset(
    {"kind", "type", "location", "in", "name", "scheme", "flows", "openIdConnectUrl", "oauth2MetadataUrl"}
)
_SCHEME_TEXTS = frozenset({"description", "bearerFormat"})
_MODES = {"/skills/inputModes": "defaultInputModes", "/skills/outputModes": "defaultOutputModes"}


class CardClasses:
    """The rules for the change from one state of a card to another."""

    def __init__(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        self._needs_auth = new.get("authRequired") is True
        self._modes_before = {name: _text_set(old.get(name)) for name in _MODES.values()}
        self._modes_after = {name: _text_set(new.get(name)) for name in _MODES.values()}
        self._rules: Sequence[tuple[str, Callable[[Edit, str], ChangeClass]]] = (
            *((prefix, _requirement_class) for prefix in REQUIREMENTS),
            ("/capabilities/extensions", _extension_class),
            ("/capabilities", _capability_class),
            ("/securitySchemes", _scheme_class),
            ("/remotes/headers", _header_class),
            ("/provider/url", _provider_url_class),
            ("/supportedInterfaces/protocolVersion", _protocol_version_class),
            ("/authRequired", _flag_class),
            ("/authSchemes", self._auth_schemes_class),
            ("/skills/inputModes", self._modes_class),
            ("/skills/outputModes", self._modes_class),
            ("/tools", _tools_class),
        )

    def classed(self, edit: Edit) -> Edit:
        """Give an edit its class; a new order and a repeat have theirs already."""
        if edit.kind is ChangeClass.ORDER_ONLY or edit.note == REPEAT:
            return edit
        for prefix, rule in self._rules:
            if edit.members == prefix or edit.members.startswith(prefix + "/"):
                return replace(edit, kind=rule(edit, edit.members[len(prefix) :]))
        return replace(edit, kind=_by_table(_CARD, edit, edit.members))

    def _auth_schemes_class(self, edit: Edit, rest: str) -> ChangeClass:
        if is_item(edit) or edit.operation is not Operation.REMOVE:
            return _by_table(_CARD, edit, edit.members)
        return _BREAKING if self._needs_auth else _COMPATIBLE

    def _modes_class(self, edit: Edit, rest: str) -> ChangeClass:
        """Class the modes of a skill; a skill without its own has those of the card (A2A 4.4.5)."""
        default = _MODES[edit.members]
        if is_item(edit):
            lost = edit.operation is not Operation.ADD
        elif edit.operation is Operation.ADD:
            lost = bool(self._modes_before[default] - _text_set(edit.new))
        else:
            lost = not self._modes_after[default] >= _text_set(edit.old)
        return _BREAKING if lost else _COMPATIBLE


def entry_class(edit: Edit) -> ChangeClass:
    """Class a change of an entry's own member."""
    if edit.kind is ChangeClass.ORDER_ONLY or edit.note == REPEAT:
        return edit.kind
    return _by_table(_ENTRY, edit, "/" + edit.members.split("/")[1] if edit.members else "")


def is_item(edit: Edit) -> bool:
    """Tell an edit of a list's item from one of the list, or of a member."""
    return edit.pointer.rpartition("/")[2] != edit.members.rpartition("/")[2]


def _by_table(table: Mapping[str, _Row], edit: Edit, members: str) -> ChangeClass:
    row = table.get(members)
    return row[(Operation.ADD, Operation.REMOVE, Operation.REPLACE).index(edit.operation)] if row else _BEHAVIOURAL


def _requirement_class(edit: Edit, rest: str) -> ChangeClass:
    """Class a change of requirements, a list of alternatives, each a map of schemes to scopes (A2A 4.5)."""
    if rest:  # within an alternative: its scopes
        return _COMPATIBLE if edit.operation is Operation.REMOVE else _BREAKING
    if is_item(edit):
        return _COMPATIBLE if edit.operation is Operation.ADD else _BREAKING
    if edit.operation is Operation.REMOVE:
        return _COMPATIBLE
    anonymous = isinstance(edit.new, list) and any(item == {} for item in edit.new)
    return _COMPATIBLE if anonymous else _BREAKING


def _extension_class(edit: Edit, rest: str) -> ChangeClass:
    """Class a change of extensions: one that goes, or that becomes required, breaks clients."""
    if rest == "/required":
        return _BREAKING if edit.new is True else _COMPATIBLE
    if rest == "/description":
        return _COSMETIC
    if rest:
        return _BEHAVIOURAL
    if edit.operation is not Operation.ADD:
        return _BREAKING
    come = edit.new if isinstance(edit.new, list) else [edit.new]
    required = any(isinstance(item, Mapping) and item.get("required") is True for item in come)
    return _BREAKING if required else _COMPATIBLE


def _capability_class(edit: Edit, rest: str) -> ChangeClass:
    """Class a change of a capability: a flag of a card, or a name that an agent file lists."""
    if _offers(edit.old):
        return _BREAKING
    if _offers(edit.new):
        return _COMPATIBLE
    nothing = all(value is None or value is False or value in ({}, []) for value in (edit.old, edit.new))
    return _COSMETIC if nothing else _BEHAVIOURAL  # false and absent say the same


def _offers(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_offers, value.values()))
    return bool(value) if isinstance(value, str | list) else value is True


def _scheme_class(edit: Edit, rest: str) -> ChangeClass:
    steps = rest.split("/")[1:]
    if len(steps) < 2:
        return _COMPATIBLE if edit.operation is Operation.ADD else _BREAKING
    if len(steps) == 2 and steps[1] in _SCHEME_TEXTS:
        return _COSMETIC
    if "flows" in steps[1:] and steps[-2] == "scopes":  # a scope on offer, with its description
        return (_COMPATIBLE, _BREAKING, _COSMETIC)[list(Operation).index(edit.operation)]
    return _BREAKING if _SCHEME_MEMBERS.intersection(steps[1:]) else _BEHAVIOURAL


def _header_class(edit: Edit, rest: str) -> ChangeClass:
    required = edit.new.values() if isinstance(edit.new, Mapping) else (edit.new,)
    return _BREAKING if any(item is True for item in required) else _COMPATIBLE


def _provider_url_class(edit: Edit, rest: str) -> ChangeClass:
    return _SECURITY if host_of_text(edit.old) != host_of_text(edit.new) else _COSMETIC


def _protocol_version_class(edit: Edit, rest: str) -> ChangeClass:
    return _COSMETIC if major_minor(edit.old) == major_minor(edit.new) else _BREAKING


def _flag_class(edit: Edit, rest: str) -> ChangeClass:
    if edit.new is True:
        return _BREAKING
    return _COMPATIBLE if edit.old is True else _COSMETIC


def _tools_class(edit: Edit, rest: str) -> ChangeClass:
    """Class a change of tools; a card that stops to list any does not say that they are gone."""
    unlisted = not rest and not is_item(edit) and edit.operation is Operation.REMOVE
    return _BEHAVIOURAL if unlisted else _by_table(_CARD, edit, edit.members)


def host_of_text(value: Any) -> str:
    """Name the host that a published address leads to; the text itself when none can be told."""
    text = value if isinstance(value, str) else ""
    try:
        host = urlsplit(text if "://" in text else f"//{text}").hostname
    except ValueError:
        host = None
    return (host or text).removesuffix(".")


def major_minor(version: Any) -> Any:
    """Cut a protocol version to what counts: patch numbers do not (A2A 3.6)."""
    return ".".join(version.split(".")[:2]) if isinstance(version, str) else version


def _text_set(value: Any) -> frozenset[str]:
    return frozenset(item for item in value if isinstance(item, str)) if isinstance(value, list) else frozenset()
