"""What tells the versions of an A2A card apart, and what each of them requires (protocol notes 3.1-3.3). Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crawler.surfaces.members import Notes
from index.records import pointer_step

SCHEMES_1_0 = {
    "apiKeySecurityScheme": "apiKey",
    "httpAuthSecurityScheme": "http",
    "oauth2SecurityScheme": "oauth2",
    "openIdConnectSecurityScheme": "openIdConnect",
    "mtlsSecurityScheme": "mutualTLS",
}
_CAMEL_CASE = (
    "supportedInterfaces",
    "protocolBinding",
    "protocolVersion",
    "preferredTransport",
    "additionalInterfaces",
    "supportsAuthenticatedExtendedCard",
    "documentationUrl",
    "iconUrl",
    "pushNotifications",
    "extendedAgentCard",
    "stateTransitionHistory",
    "defaultInputModes",
    "defaultOutputModes",
    "inputModes",
    "outputModes",
    "securitySchemes",
    "securityRequirements",
    *SCHEMES_1_0,
    "bearerFormat",
    "openIdConnectUrl",
    "oauth2MetadataUrl",
)
_SNAKE_CASE = {re.sub("([A-Z])", lambda match: f"_{match[0].lower()}", name): name for name in _CAMEL_CASE}
_MAJOR_MINOR = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})(?:\.([0-9A-Za-z.+-]*))?", re.ASCII)
_OF_1_0 = ("extendedAgentCard",)
_BEFORE_1_0 = ("stateTransitionHistory",)
_GONE_WITH_1_0 = (
    "protocolVersion",
    "preferredTransport",
    "additionalInterfaces",
    "supportsAuthenticatedExtendedCard",
    "security",
)


@dataclass(frozen=True, slots=True)
class _Rules:
    """The members that a version requires, and the clauses that say so."""

    members: tuple[str, ...]
    clause: str
    skill_members: tuple[str, ...] = ()
    skill_clause: str = ""
    provider_clause: str = ""
    no_empty_arrays: bool = False


_FROM_THE_FIRST = ("name", "version", "capabilities", "skills")
_FROM_0_2 = ("name", "description", "version", "capabilities", "skills", "defaultInputModes", "defaultOutputModes")
_SKILL = ("name", "description", "tags")
_RULES_1_0 = _Rules(_FROM_0_2, "A2A 4.4.1", _SKILL, "A2A 4.4.5", "A2A 4.4.2", no_empty_arrays=True)
_RULES_0_2 = _Rules(_FROM_0_2, "A2A 0.2 5.5", _SKILL, "A2A 0.2 5.5.4", "A2A 0.2 5.5.1")
_RULES = {
    "1.0": _RULES_1_0,
    "hybrid": _RULES_1_0,
    "0.3": _Rules((*_FROM_0_2, "protocolVersion"), "A2A 0.3 5.5", _SKILL, "A2A 0.3 5.5.4", "A2A 0.3 5.5.1"),
    "0.2.4": _RULES_0_2,
    "0.2": _RULES_0_2,
}
# What every version requires is asked of a card whose version is not known.
_RULES_0_1 = _Rules(_FROM_THE_FIRST, "A2A 0.1 5.5")


def camel_case(value: Mapping[str, Any], pointer: str, notes: Notes) -> Mapping[str, Any]:
    """Read the names that ProtoJSON also allows; where both stand, the usual one counts."""
    written = [name for name in value if name in _SNAKE_CASE]
    for name in written:
        message = f"{name} should be written {_SNAKE_CASE[name]}"
        notes.warn("snake_case", pointer + pointer_step(name), message, "ProtoJSON")
    renamed = {_SNAKE_CASE[name]: value[name] for name in written if _SNAKE_CASE[name] not in value}
    return {**value, **renamed} if written else value


def tell_shape(value: Mapping[str, Any], notes: Notes) -> str:
    """Tell the version by the members it brought, oldest last; the label decides only among the older ones."""
    addressed = isinstance(value.get("url"), str)
    if isinstance(value.get("supportedInterfaces"), list):
        if addressed:
            notes.info("hybrid", "/url", "a card of 1.0 that carries the older form beside it", "A2A 8.3.2")
            return "hybrid"
        _name_old_members(value, notes)
        return "1.0"
    if "supportedInterfaces" in value and not addressed:
        return "1.0"
    label = value.get("protocolVersion")
    match = _MAJOR_MINOR.fullmatch(label) if isinstance(label, str) else None
    if match is not None:
        return _shape_of_label(match, addressed, notes)
    return _shape_with_address(value) if addressed else _shape_without_address(value)


def _name_old_members(value: Mapping[str, Any], notes: Notes) -> None:
    for name in _GONE_WITH_1_0:
        if name in value:
            notes.info("old_member", pointer_step(name), f"{name} has no meaning in a card of 1.0", "A2A 4.4.1")


def _shape_of_label(match: re.Match[str], addressed: bool, notes: Notes) -> str:
    major, minor = int(match[1]), int(match[2])
    if major >= 1:
        notes.warn("version_label", "/protocolVersion", "a card of 1.0 lists supportedInterfaces", "A2A 8.3.1")
        return "0.3" if addressed else "1.0"
    if minor != 2:
        return "0.3" if minor > 2 else "0.1"
    return "0.2" if match[3] in ("0", "1", "2", "3") else "0.2.4"


def _shape_with_address(value: Mapping[str, Any]) -> str:
    skills = value.get("skills")
    secured = isinstance(skills, list) and any(isinstance(skill, Mapping) and "security" in skill for skill in skills)
    if "signatures" in value or secured:
        return "0.3"
    if "preferredTransport" in value or "additionalInterfaces" in value:
        return "0.2.4"
    if "securitySchemes" in value or "security" in value:
        return "0.2"
    return "0.1" if "authentication" in value else "0.x"


def _shape_without_address(value: Mapping[str, Any]) -> str:
    """Tell what can be told of a card without its address, such as an excerpt: before 1.0, of 1.0, or nothing."""
    found = value.get("capabilities")
    capabilities = found if isinstance(found, Mapping) else {}
    if "securityRequirements" in value or any(name in capabilities for name in _OF_1_0):
        return "1.0"
    old = any(name in value for name in _GONE_WITH_1_0) or any(name in capabilities for name in _BEFORE_1_0)
    return "0.x" if old else "unversioned"


def check_members(value: Mapping[str, Any], shape: str, notes: Notes) -> None:
    """Name what the card's version requires and it does not have; what has the wrong type was named before."""
    rules = _RULES.get(shape, _RULES_0_1)
    for name in rules.members:
        _check_member(value, name, "", rules.clause, rules, notes)
    provider = value.get("provider")
    if isinstance(provider, Mapping) and rules.provider_clause:
        for name in ("organization", "url"):
            _check_member(provider, name, "/provider", rules.provider_clause, rules, notes)
    skills = value.get("skills")
    for index, skill in enumerate(skills if isinstance(skills, list) else ()):
        for name in rules.skill_members if isinstance(skill, Mapping) else ():
            _check_member(skill, name, f"/skills/{index}", rules.skill_clause, rules, notes)
    if shape == "0.3" and "preferredTransport" not in value:
        notes.info("transport_default", "/preferredTransport", "read as JSONRPC", "A2A 0.3 5.6.1")


def _check_member(value: Mapping[str, Any], name: str, pointer: str, clause: str, rules: _Rules, notes: Notes) -> None:
    found = value.get(name)
    if found is None or found == "":
        notes.warn("missing", pointer + pointer_step(name), f"{name} is required", clause)
    elif found == [] and rules.no_empty_arrays:
        notes.warn("empty", pointer + pointer_step(name), f"{name} should not be empty", "A2A 5.7")


def major_minor(version: str) -> str:
    """Cut a protocol version to what counts: patch numbers do not (A2A 3.6)."""
    match = _MAJOR_MINOR.fullmatch(version)
    return f"{match[1]}.{match[2]}" if match else version
