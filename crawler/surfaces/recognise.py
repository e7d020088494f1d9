"""What a JSON document is, judged by its shape; the path and the declared type only say what was asked for. Pure."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from index.identity import parse_urn

MADP_PROTOCOL = re.compile(r"agent-seo/[0-9]+(?:\.[0-9]+)*")
_MADP_PREFIX = "agent-seo/"
SLASH_NAME = re.compile(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+")
MCP_CARD_SCHEMA = "/v1/server-card.schema.json"
_MCP_REGISTRY_SCHEMA = "server.schema.json"
_SKILLS_SCHEMA = "schemas.agentskills.io"
# Members that only agent cards of 0.x have: with an address they tell one whose skills are missing or damaged.
_ONLY_IN_OLD_CARDS = (
    "protocolVersion",
    "protocol_version",
    "preferredTransport",
    "preferred_transport",
    "additionalInterfaces",
    "additional_interfaces",
    "defaultInputModes",
    "default_input_modes",
    "supportsAuthenticatedExtendedCard",
)


class Kind(StrEnum):
    """The kinds of document that a surface reads."""

    MANIFEST = "ard.manifest"
    ENTRY = "ard.entry"
    A2A_CARD = "a2a.card"
    MCP_CARD = "mcp.card"
    MCP_SERVER = "mcp.server"
    MADP_AGENT = "madp.agent"
    SKILLS_INDEX = "skills.index"
    UNKNOWN = "unknown"


def recognise(value: Any) -> Kind:
    """Name the kind of a document; the order of the tests decides what a document with several shapes is."""
    if not isinstance(value, Mapping):
        return Kind.UNKNOWN
    if is_madp_agent(value):
        return Kind.MADP_AGENT
    if isinstance(value.get("entries"), list):
        return Kind.MANIFEST
    if is_a2a_card(value):
        return Kind.A2A_CARD
    shape = mcp_shape(value)
    if shape is not None:
        return Kind.MCP_SERVER if shape == "server.json" else Kind.MCP_CARD
    if isinstance(value.get("identifier"), str) and parse_urn(value["identifier"]) and "type" in value:
        return Kind.ENTRY
    if isinstance(value.get("skills"), list) and _SKILLS_SCHEMA in _schema(value):
        return Kind.SKILLS_INDEX
    return _by_what_is_listed(value)


def is_madp_agent(value: Mapping[str, Any]) -> bool:
    """Tell a MADP agent file by its protocol, for an A2A card of old may stand at the same path."""
    protocol = value.get("protocol")
    return isinstance(protocol, str) and protocol.startswith(_MADP_PREFIX)


def is_a2a_card(value: Mapping[str, Any]) -> bool:
    """Tell an A2A card of any version by its interfaces, or by its address and what else only cards have."""
    if not _names_itself(value):
        return False
    if isinstance(value.get("supportedInterfaces", value.get("supported_interfaces")), list | Mapping):
        return True
    if not isinstance(value.get("url"), str):
        return False
    return isinstance(value.get("skills"), list) or any(name in value for name in _ONLY_IN_OLD_CARDS)


def mcp_shape(value: Mapping[str, Any]) -> str | None:
    """Name the proposal that a server card follows, or None; what says its shape outright comes first."""
    schema = _schema(value)
    if schema.endswith(MCP_CARD_SCHEMA):
        return "2127"
    if isinstance(value.get("serverInfo"), Mapping):
        return "1649"
    if _is_1960(value):
        return "1960"
    if schema.endswith(_MCP_REGISTRY_SCHEMA) or (isinstance(value.get("packages"), list) and _has_slash_name(value)):
        return "server.json"
    return "2127-like" if isinstance(value.get("remotes"), list) and _has_slash_name(value) else None


def _is_1960(value: Mapping[str, Any]) -> bool:
    version = value.get("mcp_version")
    if isinstance(version, str | int | float) and not isinstance(version, bool):
        return True
    endpoints = value.get("endpoints")
    if not isinstance(endpoints, Mapping):
        return False
    return "streamable_http" in endpoints or isinstance(value.get("server_name"), str)


def _by_what_is_listed(value: Mapping[str, Any]) -> Kind:
    """Tell a card that lacks its address by the skills or tools it lists; an empty list tells nothing."""
    if not _names_itself(value):
        return Kind.UNKNOWN
    if any(isinstance(skill, Mapping) and _names_itself(skill) for skill in _list(value, "skills")):
        return Kind.A2A_CARD
    if any(isinstance(tool, Mapping) and _names_itself(tool) for tool in _list(value, "tools")):
        return Kind.MCP_CARD
    return Kind.UNKNOWN


def _list(value: Mapping[str, Any], name: str) -> list[Any]:
    found = value.get(name)
    return found if isinstance(found, list) else []


def _schema(value: Mapping[str, Any]) -> str:
    found = value.get("$schema")
    return found if isinstance(found, str) else ""


def _has_slash_name(value: Mapping[str, Any]) -> bool:
    name = value.get("name")
    return isinstance(name, str) and SLASH_NAME.fullmatch(name) is not None


def _names_itself(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("name"), str) and bool(value["name"].strip())
