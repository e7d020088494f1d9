"""A2A agent cards of every version, brought to the form of 1.0 (A2A 4.4, 5.7, 8.3). Pure.

The shape decides what a card is, its labels only confirm it. The raw text stays the evidence: the form made here
serves search, filters and comparison, and no card is ever rebuilt from it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crawler.surfaces.a2a_versions import SCHEMES_1_0, camel_case, check_members, major_minor, tell_shape
from crawler.surfaces.members import Notes, flag, mapping, objects, text, texts, without_none
from crawler.surfaces.recognise import Kind
from index.records import Problem, pointer_step
from index.urls import BadUrl, parse_url

CARD_PATH = "/.well-known/agent-card.json"
LEGACY_PATH = "/.well-known/agent.json"
VERSION_HEADER = {"A2A-Version": "1.0"}
DEFAULT_BINDING = "JSONRPC"
_BEFORE_VERSIONS = "0.3"  # an interface without a version speaks this one (A2A 3.6.2)
_VERSION_OF_SHAPE = {"0.1": "0.1", "0.2": "0.2", "0.2.4": "0.2", "0.3": "0.3"}
_HTTP_BINDINGS = frozenset({"JSONRPC", "HTTP+JSON"})
_OLD_SCHEMES = frozenset(SCHEMES_1_0.values())


@dataclass(frozen=True, slots=True)
class Card:
    """A card in the form of 1.0, with what it was before.

    `shape` is `1.0`, `hybrid`, `0.3`, `0.2.4` (and later), `0.2`, `0.1`, `0.x` where nothing tells which of those, or
    `unversioned` where nothing tells at all; `legacy_interfaces` are those of a hybrid's old block.
    """

    kind: Kind
    shape: str
    versions: tuple[str, ...]
    normal: Mapping[str, Any]
    legacy_interfaces: tuple[Mapping[str, str], ...]
    problems: tuple[Problem, ...]


def read_card(value: Mapping[str, Any]) -> Card:
    """Read a card of any version."""
    notes = Notes("a2a")
    value = camel_case(value, "", notes)
    shape = tell_shape(value, notes)
    legacy = _legacy_interfaces(value, shape, notes)
    interfaces = _interfaces(value, notes)
    if shape == "hybrid":
        _compare_blocks(legacy, interfaces, notes)
    elif shape != "1.0":
        interfaces = legacy
    capabilities = camel_case(mapping(value, "capabilities", "", notes), "/capabilities", notes)
    normal = without_none(
        {
            "name": text(value, "name", "", notes),
            "description": text(value, "description", "", notes),
            "version": text(value, "version", "", notes),
            "provider": _provider(value, notes),
            "documentationUrl": text(value, "documentationUrl", "", notes),
            "iconUrl": text(value, "iconUrl", "", notes),
            "supportedInterfaces": interfaces,
            "capabilities": _capabilities(capabilities, value, notes),
            "securitySchemes": _schemes(value, notes),
            "securityRequirements": _requirements(value, "", notes),
            "defaultInputModes": texts(value, "defaultInputModes", "", notes),
            "defaultOutputModes": texts(value, "defaultOutputModes", "", notes),
            "skills": _skills(value, notes),
            "signatures": _signatures(value, notes),
        }
    )
    if not interfaces:
        notes.error("no_interface", "", "the card names no interface that could be called", "A2A 4.4.1")
    check_members(value, shape, notes)
    return Card(
        kind=Kind.A2A_CARD,
        shape=shape,
        versions=_versions(value, shape, [*interfaces, *legacy]),
        normal=normal,
        legacy_interfaces=tuple(legacy) if shape == "hybrid" else (),
        problems=tuple(notes.problems),
    )


def _interfaces(value: Mapping[str, Any], notes: Notes) -> list[dict[str, str]]:
    found = []
    for place, item in objects(value, "supportedInterfaces", "", notes):
        interface = _interface(camel_case(item, place, notes), place, notes)
        if interface is not None:
            found.append(interface)
    found = _without_repeats(found)
    if found and all(item["protocolVersion"].startswith("0.") for item in found):
        notes.warn("version_label", "/supportedInterfaces", "a list of 1.0 whose interfaces all speak 0.x", "A2A 8.3.1")
    return found


def _interface(item: Mapping[str, Any], place: str, notes: Notes) -> dict[str, str] | None:
    url = (text(item, "url", place, notes) or "").strip()
    if not url:
        notes.warn("interface_url", place, "an interface needs its url; it is left out", "A2A 4.4.6")
        return None
    binding = text(item, "protocolBinding", place, notes) or text(item, "transport", place, notes)
    if not binding:
        notes.warn(
            "interface_binding", place, f"without a protocolBinding it is read as {DEFAULT_BINDING}", "A2A 4.4.6"
        )
    version = text(item, "protocolVersion", place, notes)
    if not version:
        notes.warn("interface_version", place, f"without a version it speaks {_BEFORE_VERSIONS}", "A2A 3.6.2")
    interface = {
        "url": url,
        "protocolBinding": binding or DEFAULT_BINDING,
        "protocolVersion": version or _BEFORE_VERSIONS,
        "tenant": text(item, "tenant", place, notes) or None,
    }
    _check_address(url, interface["protocolBinding"], place + "/url", notes)
    return without_none(interface)


def _check_address(url: str, binding: str | None, pointer: str, notes: Notes) -> None:
    """Name an address that no client of its binding could use; gRPC has host and port, other bindings are open."""
    if binding not in _HTTP_BINDINGS:
        return
    try:
        parse_url(url)
    except BadUrl as error:
        notes.warn("interface_address", pointer, f"expected {error}", "A2A 4.4.6")


def _legacy_interfaces(value: Mapping[str, Any], shape: str, notes: Notes) -> list[dict[str, str]]:
    """Map the address members of 0.x to a list, order kept, repeats dropped (A2A 8.3.2)."""
    url = (text(value, "url", "", notes) or "").strip()
    if not url:
        return []
    version = text(value, "protocolVersion", "", notes) or _VERSION_OF_SHAPE.get(shape, _BEFORE_VERSIONS)
    binding = text(value, "preferredTransport", "", notes) or DEFAULT_BINDING
    _check_address(url, binding, "/url", notes)
    found = [{"url": url, "protocolBinding": binding, "protocolVersion": version}]
    for place, further in objects(value, "additionalInterfaces", "", notes):
        item = camel_case(further, place, notes)
        address = (text(item, "url", place, notes) or "").strip()
        if not address:
            notes.warn("interface_url", place, "an interface needs its url; it is left out", "A2A 0.3 5.5.5")
            continue
        transport = text(item, "transport", place, notes) or text(item, "protocolBinding", place, notes)
        if not transport:
            message = f"without a transport it is read as {DEFAULT_BINDING}"
            notes.warn("interface_binding", place, message, "A2A 0.3 5.5.5")
        _check_address(address, transport or DEFAULT_BINDING, place + "/url", notes)
        found.append({"url": address, "protocolBinding": transport or DEFAULT_BINDING, "protocolVersion": version})
    return _without_repeats(found)


def _without_repeats(interfaces: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    found: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
    for item in interfaces:
        found.setdefault(tuple(item.items()), item)
    return list(found.values())


def _compare_blocks(legacy: Sequence[Mapping[str, str]], listed: Sequence[Mapping[str, str]], notes: Notes) -> None:
    """Name a hybrid whose older clients are sent where no newer client is."""
    addresses = {item["url"] for item in listed}
    if listed and any(item["url"] not in addresses for item in legacy):
        message = "the older form names an address that supportedInterfaces does not"
        notes.warn("hybrid_differs", "/url", message, "A2A 8.3.2")


def _provider(value: Mapping[str, Any], notes: Notes) -> dict[str, Any] | None:
    found = mapping(value, "provider", "", notes)
    provider = without_none(
        {"organization": text(found, "organization", "/provider", notes), "url": text(found, "url", "/provider", notes)}
    )
    return provider or None


def _capabilities(found: Mapping[str, Any], value: Mapping[str, Any], notes: Notes) -> dict[str, Any]:
    extended = flag(found, "extendedAgentCard", "/capabilities", notes)
    if extended is None:
        extended = flag(value, "supportsAuthenticatedExtendedCard", "", notes)
    extensions = []
    for place, item in objects(found, "extensions", "/capabilities", notes):
        uri = text(item, "uri", place, notes)
        if uri:
            required = flag(item, "required", place, notes) or False
            extensions.append(without_none({"uri": uri, "required": required, "params": item.get("params")}))
    return without_none(
        {
            "streaming": flag(found, "streaming", "/capabilities", notes),
            "pushNotifications": flag(found, "pushNotifications", "/capabilities", notes),
            "extendedAgentCard": extended,
            "extensions": extensions or None,
        }
    )


def _schemes(value: Mapping[str, Any], notes: Notes) -> dict[str, Any] | None:
    """Bring both ways to write a security scheme to one: its kind and its members, `in` as `location`."""
    schemes = {}
    for name, scheme in mapping(value, "securitySchemes", "", notes).items():
        place = "/securitySchemes" + pointer_step(name)
        if isinstance(scheme, Mapping):
            schemes[name] = _scheme(camel_case(scheme, place, notes), place, notes)
        else:
            notes.warn("wrong_type", place, "a security scheme must be an object; it is left out")
    return schemes or None


def _scheme(scheme: Mapping[str, Any], place: str, notes: Notes) -> dict[str, Any]:
    wrapped = [member for member in SCHEMES_1_0 if isinstance(scheme.get(member), Mapping)]
    if len(wrapped) > 1:
        notes.warn("scheme_kind", place, "a security scheme has one kind; the first counts", "A2A 4.5")
    kind = SCHEMES_1_0[wrapped[0]] if wrapped else scheme.get("type")
    members = dict(camel_case(scheme[wrapped[0]], place + pointer_step(wrapped[0]), notes) if wrapped else scheme)
    members.pop("type", None)
    if "in" in members:
        members["location"] = members.pop("in")
    if kind not in _OLD_SCHEMES:
        notes.warn("scheme_kind", place, "the kind of the security scheme is not known", "A2A 4.5")
    return {**members, "kind": kind if isinstance(kind, str) else "unknown"}


def _requirements(value: Mapping[str, Any], pointer: str, notes: Notes) -> list[dict[str, list[str]]] | None:
    """Bring both ways to write requirements to one: alternatives, each a map of scheme to scopes."""
    found = []
    name = "securityRequirements" if "securityRequirements" in value else "security"
    for _, item in objects(value, name, pointer, notes):
        wrapped = item.get("schemes")
        schemes = wrapped if isinstance(wrapped, Mapping) else item
        alternative = {}
        for scheme, scopes in schemes.items():
            listed = scopes.get("list") if isinstance(scopes, Mapping) else scopes
            alternative[scheme] = (
                [scope for scope in listed if isinstance(scope, str)] if isinstance(listed, list) else []
            )
        found.append(alternative)
    return found or None


def _skills(value: Mapping[str, Any], notes: Notes) -> list[dict[str, Any]]:
    skills, seen = [], set()
    for place, skill in objects(value, "skills", "", notes):
        item = camel_case(skill, place, notes)
        identifier = text(item, "id", place, notes) or text(item, "name", place, notes)
        if not identifier:
            notes.warn("skill_id", place, "a skill needs an id; it is left out", "A2A 4.4.5")
            continue
        if identifier in seen:
            notes.warn("skill_twice", place, "another skill has the same id; it is left out", "A2A 4.4.5")
            continue
        seen.add(identifier)
        skills.append(
            without_none(
                {
                    "id": identifier,
                    "name": text(item, "name", place, notes),
                    "description": text(item, "description", place, notes),
                    "tags": texts(item, "tags", place, notes) or None,
                    "examples": texts(item, "examples", place, notes) or None,
                    "inputModes": texts(item, "inputModes", place, notes) or None,
                    "outputModes": texts(item, "outputModes", place, notes) or None,
                    "securityRequirements": _requirements(item, place, notes),
                }
            )
        )
    return skills


def _signatures(value: Mapping[str, Any], notes: Notes) -> list[dict[str, Any]] | None:
    found = [
        without_none(
            {
                "protected": text(item, "protected", place, notes),
                "signature": text(item, "signature", place, notes),
                "header": mapping(item, "header", place, notes) or None,
            }
        )
        for place, item in objects(value, "signatures", "", notes)
    ]
    return found or None


def _versions(value: Mapping[str, Any], shape: str, interfaces: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    """Give the versions that the interfaces speak; without any, what the label or the shape says."""
    label = value.get("protocolVersion")
    stated = [item["protocolVersion"] for item in interfaces]
    if not stated:
        stated = [label] if isinstance(label, str) and label else [shape] if shape == "1.0" else []
    return tuple(dict.fromkeys(major_minor(version) for version in stated))
