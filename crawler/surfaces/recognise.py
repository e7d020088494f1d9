"""What a JSON document is, judged by its shape; the path and the declared type only say what was asked for. Pure."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from index.identity import parse_urn

MADP_PROTOCOL = re.compile(r"agent-seo/[0-9]+(?:\.[0-9]+)*")
_SLASH_NAME = re.compile(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+")
MCP_CARD_SCHEMA = "/v1/server-card.schema.json"
_MCP_REGISTRY_SCHEMA = "server.schema.json"
_SKILLS_SCHEMA = "schemas.agentskills.io"


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
    if _is_mcp_card(value):
        return Kind.MCP_CARD
    if isinstance(value.get("packages"), list) and _has_slash_name(value):
        return Kind.MCP_SERVER
    if isinstance(value.get("$schema"), str) and value["$schema"].endswith(_MCP_REGISTRY_SCHEMA):
        return Kind.MCP_SERVER
    if isinstance(value.get("identifier"), str) and parse_urn(value["identifier"]) and "type" in value:
        return Kind.ENTRY
    if isinstance(value.get("skills"), list):
        return _with_skills(value)
    return Kind.MCP_CARD if _names_itself(value) and isinstance(value.get("tools"), list) else Kind.UNKNOWN


def is_madp_agent(value: Mapping[str, Any]) -> bool:
    """Tell a MADP agent file by its protocol, for an A2A card of old may stand at the same path."""
    protocol = value.get("protocol")
    return isinstance(protocol, str) and MADP_PROTOCOL.fullmatch(protocol) is not None


def is_a2a_card(value: Mapping[str, Any]) -> bool:
    """Tell an A2A card of any version by its interfaces, or by its address and skills."""
    if not _names_itself(value):
        return False
    if isinstance(value.get("supportedInterfaces", value.get("supported_interfaces")), list):
        return True
    if not isinstance(value.get("url"), str):
        return False
    return isinstance(value.get("skills"), list) or isinstance(value.get("capabilities"), Mapping)


def _is_mcp_card(value: Mapping[str, Any]) -> bool:
    schema = value.get("$schema")
    if isinstance(schema, str) and schema.endswith(MCP_CARD_SCHEMA):
        return True
    if isinstance(value.get("remotes"), list) and _has_slash_name(value) and "packages" not in value:
        return True
    if isinstance(value.get("serverInfo"), Mapping):
        return True
    endpoints = value.get("endpoints")
    return "mcp_version" in value or (isinstance(endpoints, Mapping) and "streamable_http" in endpoints)


def _with_skills(value: Mapping[str, Any]) -> Kind:
    if isinstance(value.get("$schema"), str) and _SKILLS_SCHEMA in value["$schema"]:
        return Kind.SKILLS_INDEX
    return Kind.A2A_CARD if _names_itself(value) else Kind.UNKNOWN


def _has_slash_name(value: Mapping[str, Any]) -> bool:
    name = value.get("name")
    return isinstance(name, str) and _SLASH_NAME.fullmatch(name) is not None


def _names_itself(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("name"), str) and bool(value["name"].strip())
