"""A2A agent cards of every version, brought to the form of 1.0 (A2A 4.4, 5.7, 8.3). Pure.

The shape decides what a card is, its labels only confirm it. The raw text stays the evidence: the form made here
serves search, filters and comparison, and no card is ever rebuilt from it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crawler.surfaces.members import Notes, flag, mapping, objects, text, texts, without_none
from crawler.surfaces.recognise import Kind
from index.records import Problem, pointer_step

CARD_PATH = "/.well-known/agent-card.json"
LEGACY_PATH = "/.well-known/agent.json"
VERSION_HEADER = {"A2A-Version": "1.0"}
DEFAULT_BINDING = "JSONRPC"
_BEFORE_VERSIONS = "0.3"  # an interface without a version speaks this one (A2A 3.6.2)
_REQUIRED_TEXTS = ("description", "version")
_SNAKE_CASE = {
    "supported_interfaces": "supportedInterfaces",
    "default_input_modes": "defaultInputModes",
    "default_output_modes": "defaultOutputModes",
    "security_schemes": "securitySchemes",
    "documentation_url": "documentationUrl",
    "icon_url": "iconUrl",
    "protocol_version": "protocolVersion",
    "preferred_transport": "preferredTransport",
    "additional_interfaces": "additionalInterfaces",
}
_SCHEMES_1_0 = {
    "apiKeySecurityScheme": "apiKey",
    "httpAuthSecurityScheme": "http",
    "oauth2SecurityScheme": "oauth2",
    "openIdConnectSecurityScheme": "openIdConnect",
    "mtlsSecurityScheme": "mutualTLS",
}
_MAJOR_MINOR = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})(?:\.[0-9A-Za-z.+-]*)?")


@dataclass(frozen=True, slots=True)
class Card:
    """A card in the form of 1.0, with what it was before.

    `shape` is `1.0`, `hybrid`, `0.3`, `0.2.4`, `0.2`, `0.1` or `unversioned`; `legacy_interfaces` are those of a
    hybrid's old block.
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
    value = _camel_case(value, notes)
    shape = _shape(value, notes)
    legacy = _legacy_interfaces(value, notes)
    interfaces = _interfaces(value, notes) if shape in ("1.0", "hybrid") else legacy
    capabilities = mapping(value, "capabilities", "", notes)
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
    _check(value, normal, shape, notes)
    return Card(
        kind=Kind.A2A_CARD,
        shape=shape,
        versions=_versions(value, interfaces),
        normal=normal,
        legacy_interfaces=tuple(legacy) if shape == "hybrid" else (),
        problems=tuple(notes.problems),
    )


def _camel_case(value: Mapping[str, Any], notes: Notes) -> Mapping[str, Any]:
    """Read the names that ProtoJSON also allows (A2A 1.0, ProtoJSON)."""
    renamed = {
        _SNAKE_CASE[name]: member
        for name, member in value.items()
        if name in _SNAKE_CASE and _SNAKE_CASE[name] not in value
    }
    for name in value:
        if name in _SNAKE_CASE:
            notes.warn("snake_case", pointer_step(name), f"{name} should be written {_SNAKE_CASE[name]}", "ProtoJSON")
    return {**value, **renamed} if renamed else value


def _shape(value: Mapping[str, Any], notes: Notes) -> str:
    """Tell the version by the members it brought, oldest last."""
    label = value.get("protocolVersion")
    if isinstance(value.get("supportedInterfaces"), list):
        if isinstance(value.get("url"), str):
            notes.info("hybrid", "/url", "a card of 1.0 that carries the older form beside it", "A2A 8.3.2")
            return "hybrid"
        return "1.0"
    if not isinstance(value.get("url"), str):
        return "unversioned"
    match = _MAJOR_MINOR.fullmatch(label) if isinstance(label, str) else None
    if match is not None:
        if int(match[1]) >= 1:
            notes.warn("version_label", "/protocolVersion", "a card of 1.0 lists supportedInterfaces", "A2A 8.3.1")
            return "0.3"
        return f"0.{match[2]}" if match[2] != "2" else "0.2.4"
    skills = value.get("skills")
    secured = isinstance(skills, list) and any(isinstance(skill, Mapping) and "security" in skill for skill in skills)
    if "signatures" in value or secured:
        return "0.3"
    if "preferredTransport" in value or "additionalInterfaces" in value:
        return "0.2.4"
    if "securitySchemes" in value or "security" in value:
        return "0.2"
    return "0.1" if "authentication" in value else "unversioned"


def _interfaces(value: Mapping[str, Any], notes: Notes) -> list[dict[str, str]]:
    found = []
    for place, item in objects(value, "supportedInterfaces", "", notes):
        url = text(item, "url", place, notes)
        if not url:
            notes.error("interface_url", place, "an interface needs its url", "A2A 4.4.6")
            continue
        binding = text(item, "protocolBinding", place, notes) or text(item, "transport", place, notes)
        if not binding:
            notes.warn(
                "interface_binding", place, f"without a protocolBinding it is read as {DEFAULT_BINDING}", "A2A 4.4.6"
            )
        version = text(item, "protocolVersion", place, notes)
        if not version:
            notes.warn("interface_version", place, f"without a version it speaks {_BEFORE_VERSIONS}", "A2A 3.6.2")
        found.append(
            without_none(
                {
                    "url": url,
                    "protocolBinding": binding or DEFAULT_BINDING,
                    "protocolVersion": version or _BEFORE_VERSIONS,
                    "tenant": text(item, "tenant", place, notes) or None,
                }
            )
        )
    if found and all(item["protocolVersion"].startswith("0.") for item in found):
        notes.warn("version_label", "/supportedInterfaces", "a list of 1.0 whose interfaces all speak 0.x", "A2A 8.3.1")
    return found


def _legacy_interfaces(value: Mapping[str, Any], notes: Notes) -> list[dict[str, str]]:
    """Map the address members of 0.x to a list, order kept, repeats dropped (A2A 8.3.2)."""
    url = value.get("url")
    if not isinstance(url, str):
        return []
    label = value.get("protocolVersion")
    version = label if isinstance(label, str) else _BEFORE_VERSIONS
    preferred = value.get("preferredTransport")
    found = [
        {
            "url": url,
            "protocolBinding": preferred if isinstance(preferred, str) and preferred else DEFAULT_BINDING,
            "protocolVersion": version,
        }
    ]
    for place, item in objects(value, "additionalInterfaces", "", notes):
        address = text(item, "url", place, notes)
        binding = text(item, "transport", place, notes) or text(item, "protocolBinding", place, notes)
        if address:
            found.append({"url": address, "protocolBinding": binding or DEFAULT_BINDING, "protocolVersion": version})
    return [item for index, item in enumerate(found) if item not in found[:index]]


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
        if not isinstance(scheme, Mapping):
            notes.warn("wrong_type", place, "a security scheme must be an object; it is left out")
            continue
        wrapped = next((member for member in _SCHEMES_1_0 if isinstance(scheme.get(member), Mapping)), None)
        kind = _SCHEMES_1_0[wrapped] if wrapped else scheme.get("type")
        members = dict(scheme[wrapped] if wrapped else scheme)
        members.pop("type", None)
        if "in" in members:
            members["location"] = members.pop("in")
        if not isinstance(kind, str):
            notes.warn("scheme_kind", place, "the kind of the security scheme is not known", "A2A 4.5")
        schemes[name] = {"kind": kind if isinstance(kind, str) else "unknown", **members}
    return schemes or None


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
    for place, item in objects(value, "skills", "", notes):
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
        without_none({name: item.get(name) for name in ("protected", "signature", "header")})
        for _, item in objects(value, "signatures", "", notes)
    ]
    return found or None


def _check(value: Mapping[str, Any], normal: Mapping[str, Any], shape: str, notes: Notes) -> None:
    """Name what the card's version requires and it does not have (A2A 4.4.1, 5.7)."""
    for name in _REQUIRED_TEXTS:
        if not normal.get(name):
            notes.warn("missing", pointer_step(name), f"{name} is required", "A2A 4.4.1")
    if not normal["supportedInterfaces"]:
        notes.error("no_interface", "", "the card names no interface that could be called", "A2A 4.4.1")
    for name in ("skills", "defaultInputModes", "defaultOutputModes"):
        if name not in value:
            notes.warn("missing", pointer_step(name), f"{name} is required", "A2A 4.4.1")
        elif not normal[name]:
            notes.warn("empty", pointer_step(name), f"{name} should not be empty", "A2A 5.7")
    if "capabilities" not in value:
        notes.warn("missing", "/capabilities", "capabilities is required", "A2A 4.4.1")
    if shape == "0.3" and "preferredTransport" not in value:
        notes.info("transport_default", "/preferredTransport", f"read as {DEFAULT_BINDING}", "A2A 0.3 5.6.1")


def _versions(value: Mapping[str, Any], interfaces: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    label = value.get("protocolVersion")
    stated = [item["protocolVersion"] for item in interfaces]
    if not stated and isinstance(label, str):
        stated = [label]
    return tuple(dict.fromkeys(major_minor(version) for version in stated))


def major_minor(version: str) -> str:
    """Cut a protocol version to what counts: patch numbers do not (A2A 3.6)."""
    match = _MAJOR_MINOR.fullmatch(version)
    return f"{match[1]}.{match[2]}" if match else version
