"""MCP server cards of four shapes and the registry's server.json, brought to one form (protocol notes 4.1). Pure.

Contents are advisory. The bare endpoint is never asked for a card: a GET there opens an event stream.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crawler.surfaces.members import Notes, flag, mapping, objects, text, texts, without_none
from crawler.surfaces.recognise import MCP_CARD_SCHEMA, Kind
from index.records import Problem, pointer_step
from index.urls import BadUrl, is_relative, resolve

CARD_PATHS = (
    "/.well-known/mcp/server-card.json",
    "/.well-known/mcp.json",
    "/.well-known/mcp-server-card",
    "/.well-known/mcp/server-card",
)
ACCEPT = {"Accept": "application/mcp-server-card+json, application/json;q=0.9, */*;q=0.5"}
_LONGEST_DESCRIPTION = 100
_LONGEST_VERSION = 255
_TRANSPORTS = {"streamable-http", "sse"}
_OLD_ENDPOINTS = {"streamable_http": "streamable-http", "sse": "sse", "websocket": "websocket"}


@dataclass(frozen=True, slots=True)
class ServerCard:
    """A server card in one form; `shape` is `2127`, `2127-like`, `1649`, `1960`, `server.json` or `unversioned`."""

    kind: Kind
    shape: str
    normal: Mapping[str, Any]
    problems: tuple[Problem, ...]


def read_server_card(value: Mapping[str, Any], url: str) -> ServerCard:
    """Read a card of any shape; relative endpoints resolve against `url`, where the card was found."""
    notes = Notes("mcp")
    shape = _shape(value)
    if shape == "1649":
        normal = _read_1649(value, url, notes)
    elif shape == "1960":
        normal = _read_1960(value, url, notes)
    else:
        normal = _read_2127(value, url, notes)
        if shape in ("2127", "2127-like"):
            _check_2127(value, normal, shape, notes)
    normal["tools"] = _tools(value, notes)
    kind = Kind.MCP_SERVER if shape == "server.json" else Kind.MCP_CARD
    if not normal["remotes"] and not normal.get("packages"):
        notes.warn("no_remote", "", "the card names no endpoint", "SEP-2127")
    return ServerCard(kind, shape, without_none(normal), tuple(notes.problems))


def _shape(value: Mapping[str, Any]) -> str:
    schema = value.get("$schema")
    if isinstance(schema, str) and schema.endswith(MCP_CARD_SCHEMA):
        return "2127"
    if isinstance(value.get("serverInfo"), Mapping):
        return "1649"
    if "mcp_version" in value or isinstance(value.get("endpoints"), Mapping):
        return "1960"
    if isinstance(value.get("packages"), list) or (isinstance(schema, str) and schema.endswith("server.schema.json")):
        return "server.json"
    return "2127-like" if isinstance(value.get("remotes"), list) else "unversioned"


def _read_2127(value: Mapping[str, Any], url: str, notes: Notes) -> dict[str, Any]:
    remotes = []
    for place, item in objects(value, "remotes", "", notes):
        address = _address(text(item, "url", place, notes), url, place + "/url", notes)
        if address:
            headers = {
                name: bool(header.get("isRequired"))
                for _, header in objects(item, "headers", place, notes)
                if isinstance(name := header.get("name"), str)
            }
            remotes.append(
                without_none(
                    {
                        "type": text(item, "type", place, notes) or "streamable-http",
                        "url": address,
                        "headers": headers or None,
                        "supportedProtocolVersions": texts(item, "supportedProtocolVersions", place, notes) or None,
                    }
                )
            )
    repository = mapping(value, "repository", "", notes)
    packages = [
        without_none({name: text(item, name, place, notes) for name in ("registryType", "identifier", "version")})
        for place, item in objects(value, "packages", "", notes)
    ]
    return {
        "name": text(value, "name", "", notes),
        "title": text(value, "title", "", notes),
        "version": text(value, "version", "", notes),
        "description": text(value, "description", "", notes),
        "websiteUrl": text(value, "websiteUrl", "", notes),
        "repository": text(repository, "url", "/repository", notes),
        "remotes": remotes,
        "packages": packages or None,
        "protocolVersions": list(
            dict.fromkeys(version for remote in remotes for version in remote.get("supportedProtocolVersions", ()))
        ),
    }


def _check_2127(value: Mapping[str, Any], normal: Mapping[str, Any], shape: str, notes: Notes) -> None:
    if shape == "2127-like":
        notes.warn("schema_missing", "", "$schema should name the server card schema", "SEP-2127")
    for name in ("name", "version", "description"):
        if not normal.get(name):
            notes.warn("missing", pointer_step(name), f"{name} is required", "SEP-2127")
    if len(normal.get("description") or "") > _LONGEST_DESCRIPTION:
        notes.warn("long", "/description", f"more than {_LONGEST_DESCRIPTION} characters", "SEP-2127")
    if len(normal.get("version") or "") > _LONGEST_VERSION:
        notes.warn("long", "/version", f"more than {_LONGEST_VERSION} characters", "SEP-2127")
    for index, remote in enumerate(normal["remotes"]):
        if remote["type"] not in _TRANSPORTS:
            notes.warn("transport", f"/remotes/{index}/type", "expected streamable-http or sse", "SEP-2127")
    if "transport" in value:
        notes.warn("mixed_shapes", "/transport", "remotes count; transport belongs to an older shape", "SEP-1649")


def _read_1649(value: Mapping[str, Any], url: str, notes: Notes) -> dict[str, Any]:
    info = mapping(value, "serverInfo", "", notes)
    transport = mapping(value, "transport", "", notes)
    authentication = mapping(value, "authentication", "", notes)
    place = "/transport/endpoint"
    address = _address(text(transport, "endpoint", "/transport", notes), url, place, notes)
    kind = text(transport, "type", "/transport", notes) or "streamable-http"
    later = _read_2127(value, url, notes)
    version = text(value, "protocolVersion", "", notes)
    return {
        "name": text(info, "name", "/serverInfo", notes),
        "title": text(info, "title", "/serverInfo", notes),
        "version": text(info, "version", "/serverInfo", notes),
        "description": text(value, "description", "", notes),
        "websiteUrl": text(value, "documentationUrl", "", notes),
        # Wild cards mix shapes; the newer member wins.
        "remotes": later["remotes"] or ([{"type": kind, "url": address}] if address else []),
        "protocolVersions": [version] if version else [],
        "authRequired": flag(authentication, "required", "/authentication", notes),
        "authSchemes": texts(authentication, "schemes", "/authentication", notes) or None,
        "instructions": text(value, "instructions", "", notes),
    }


def _read_1960(value: Mapping[str, Any], url: str, notes: Notes) -> dict[str, Any]:
    endpoints = mapping(value, "endpoints", "", notes)
    remotes = []
    for member, kind in _OLD_ENDPOINTS.items():
        place = "/endpoints" + pointer_step(member)
        address = _address(text(endpoints, member, "/endpoints", notes), url, place, notes)
        if address:
            remotes.append({"type": kind, "url": address})
    version = text(value, "mcp_version", "", notes)
    return {
        "name": text(value, "server_name", "", notes) or text(value, "name", "", notes),
        "version": text(value, "server_version", "", notes),
        "description": text(value, "description", "", notes),
        "remotes": remotes,
        "protocolVersions": [version] if version else [],
    }


def _tools(value: Mapping[str, Any], notes: Notes) -> list[dict[str, Any]] | None:
    """Read the tools that a card lists; "dynamic" lists none."""
    if not isinstance(value.get("tools"), list):
        return None
    found = []
    for index, item in enumerate(value["tools"][:2000]):
        if isinstance(item, str):
            found.append({"name": item})
        elif isinstance(item, Mapping) and isinstance(item.get("name"), str):
            place = f"/tools/{index}"
            found.append(without_none({"name": item["name"], "description": text(item, "description", place, notes)}))
        else:
            notes.warn("wrong_type", f"/tools/{index}", "a tool needs its name; it is left out")
    return found


def _address(address: str | None, url: str, pointer: str, notes: Notes) -> str | None:
    """Resolve an endpoint; templates with variables stay as they are written."""
    if not address:
        return None
    if not is_relative(address):
        return address
    try:
        return resolve(url, address)
    except BadUrl as error:
        notes.warn("endpoint", pointer, f"expected {error}")
        return None
