"""MCP server cards of four shapes and the registry's server.json, brought to one form (protocol notes 4.1). Pure.

Contents are advisory. The bare endpoint is never asked for a card: a GET there opens an event stream.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crawler.surfaces.members import Notes, flag, mapping, objects, text, texts, without_none
from crawler.surfaces.recognise import SLASH_NAME, Kind, mcp_shape
from index.records import Problem, pointer_step
from index.urls import BadUrl, is_relative, origin_of, resolve, scheme_of

CARD_PATHS = (
    "/.well-known/mcp/server-card.json",
    "/.well-known/mcp.json",
    "/.well-known/mcp-server-card",
    "/.well-known/mcp/server-card",
)
CARD_SCHEMA = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
_LONGEST = {"name": 200, "title": 100, "version": 255, "description": 100}
_SHORTEST_NAME = 3
_TRANSPORTS = {"streamable-http", "sse"}
_OLD_ENDPOINTS = {"streamable_http": "streamable-http", "sse": "sse", "websocket": "websocket"}
_SCHEMES = {"http", "https", "ws", "wss"}
_RANGE = re.compile(r"[\^~*<>=|]|(?:^|\.)x(?:\.|$)|\s-\s")
_REQUIRED = {
    "2127": (("name", "version", "description"), "SEP-2127"),
    "2127-like": (("name", "version", "description"), "SEP-2127"),
    "1649": (("name", "version", "protocolVersions"), "SEP-1649"),
    "1960": (("name", "protocolVersions"), "SEP-1960"),
    "server.json": (("name", "version", "description"), "server.json"),
}
_PUBLISHED_AS = {
    "1649": {"name": "/serverInfo/name", "version": "/serverInfo/version", "protocolVersions": "/protocolVersion"},
    "1960": {"name": "/server_name", "protocolVersions": "/mcp_version"},
}


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
    shape = mcp_shape(value) or "unversioned"
    normal = _READERS.get(shape, _read_2127)(value, url, notes)
    normal["tools"] = _tools(value, notes)
    _check(value, normal, shape, notes)
    kind = Kind.MCP_SERVER if shape == "server.json" else Kind.MCP_CARD
    return ServerCard(kind, shape, without_none(normal), tuple(notes.problems))


def _check(value: Mapping[str, Any], normal: Mapping[str, Any], shape: str, notes: Notes) -> None:
    """Name what the card's shape requires and it does not have, and what goes beyond its bounds."""
    required, clause = _REQUIRED.get(shape, (("name",), "SEP-2127"))
    places = _PUBLISHED_AS.get(shape, {})
    for name in required:
        if not normal.get(name):
            place = places.get(name, pointer_step(name))
            notes.warn("missing", place, f"{place.rpartition('/')[2]} is required", clause)
    if shape in ("2127", "2127-like", "server.json"):
        _check_bounds(normal, clause, notes)
    if shape in ("2127", "2127-like"):
        _check_2127(value, normal, notes)
    if not normal["remotes"] and not normal.get("packages"):
        notes.warn("no_remote", "", "the card names no endpoint", clause)


def _check_bounds(normal: Mapping[str, Any], clause: str, notes: Notes) -> None:
    for name, longest in _LONGEST.items():
        if len(normal.get(name) or "") > longest:
            notes.warn("long", pointer_step(name), f"more than {longest} characters", clause)
    full_name = normal.get("name")
    if full_name and (len(full_name) < _SHORTEST_NAME or not SLASH_NAME.fullmatch(full_name)):
        notes.warn("name", "/name", "expected a reversed domain name, one slash and a name", clause)
    if _RANGE.search((normal.get("version") or "")[: _LONGEST["version"]]):
        notes.warn("version_range", "/version", "expected one version, not a range", clause)


def _check_2127(value: Mapping[str, Any], normal: Mapping[str, Any], notes: Notes) -> None:
    if value.get("$schema") != CARD_SCHEMA:
        notes.warn("schema", "/$schema", f"expected {CARD_SCHEMA}", "SEP-2127")
    if "packages" in value:
        notes.warn("mixed_shapes", "/packages", "packages belong to server.json", "SEP-2127")
    for name in ("transport", "serverInfo", "endpoints"):
        if name in value:
            notes.warn("mixed_shapes", pointer_step(name), f"remotes count; {name} is of another shape", "SEP-2127")
    if isinstance(value.get("tools"), list):
        notes.info("mixed_shapes", "/tools", "a card of this shape lists no tools; they are read", "SEP-2127")


def _remotes(value: Mapping[str, Any], url: str, notes: Notes) -> list[dict[str, Any]]:
    remotes: dict[tuple[str, str], dict[str, Any]] = {}
    for place, item in objects(value, "remotes", "", notes):
        address = _address(text(item, "url", place, notes), url, place + "/url", notes)
        transport = text(item, "type", place, notes) or "streamable-http"
        if transport not in _TRANSPORTS:
            notes.warn("transport", place + "/type", "expected streamable-http or sse", "SEP-2127")
        if address:
            headers = {
                name: header.get("isRequired") is True
                for _, header in objects(item, "headers", place, notes)
                if isinstance(name := header.get("name"), str)
            }
            remote = {
                "type": transport,
                "url": address,
                "headers": headers or None,
                "supportedProtocolVersions": texts(item, "supportedProtocolVersions", place, notes) or None,
            }
            remotes.setdefault((transport, address), without_none(remote))
    return list(remotes.values())


def _read_2127(value: Mapping[str, Any], url: str, notes: Notes) -> dict[str, Any]:
    remotes = _remotes(value, url, notes)
    if not remotes and isinstance(value.get("transport"), Mapping):
        remotes = _transport(value, url, notes)
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


def _read_1649(value: Mapping[str, Any], url: str, notes: Notes) -> dict[str, Any]:
    info = mapping(value, "serverInfo", "", notes)
    authentication = mapping(value, "authentication", "", notes)
    older = _transport(value, url, notes)
    version = text(value, "protocolVersion", "", notes)
    return {
        "name": text(info, "name", "/serverInfo", notes),
        "title": text(info, "title", "/serverInfo", notes),
        "version": text(info, "version", "/serverInfo", notes),
        "description": text(value, "description", "", notes),
        "websiteUrl": text(value, "documentationUrl", "", notes),
        "remotes": _newer_remotes(value, "transport", url, notes) or older,
        "protocolVersions": [version] if version else [],
        "authRequired": flag(authentication, "required", "/authentication", notes),
        "authSchemes": texts(authentication, "schemes", "/authentication", notes) or None,
        "instructions": text(value, "instructions", "", notes),
    }


def _transport(value: Mapping[str, Any], url: str, notes: Notes) -> list[dict[str, Any]]:
    """Read the one endpoint of an older card."""
    transport = mapping(value, "transport", "", notes)
    address = _address(text(transport, "endpoint", "/transport", notes), url, "/transport/endpoint", notes)
    kind = text(transport, "type", "/transport", notes) or "streamable-http"
    return [{"type": kind, "url": address}] if address else []


def _read_1960(value: Mapping[str, Any], url: str, notes: Notes) -> dict[str, Any]:
    endpoints = mapping(value, "endpoints", "", notes)
    later = _newer_remotes(value, "endpoints", url, notes)
    remotes = []
    for member, kind in _OLD_ENDPOINTS.items():
        place = "/endpoints" + pointer_step(member)
        address = _address(text(endpoints, member, "/endpoints", notes), url, place, notes)
        if address:
            remotes.append({"type": kind, "url": address})
    version = text(value, "mcp_version", "", notes)
    return {
        "name": text(value, "server_name", "", notes) or text(value, "name", "", notes),
        "version": text(value, "server_version", "", notes) or text(value, "version", "", notes),
        "description": text(value, "description", "", notes),
        "remotes": later or remotes,
        "protocolVersions": [version] if version else [],
    }


_READERS = {"1649": _read_1649, "1960": _read_1960}


def _newer_remotes(value: Mapping[str, Any], older: str, url: str, notes: Notes) -> list[dict[str, Any]]:
    """Read `remotes` of a card that mixes shapes: they count before the older member."""
    if "remotes" not in value:
        return []
    remotes = _remotes(value, url, notes)
    if older in value and remotes:
        notes.warn("mixed_shapes", pointer_step(older), f"remotes count; {older} is of an older shape", "SEP-2127")
    return remotes


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
    """Resolve an endpoint against the origin of its card; templates with variables keep them as they are written."""
    address = (address or "").strip()
    if not address:
        return None
    if address.startswith("{"):
        return address
    if not is_relative(address):
        if scheme_of(address) in _SCHEMES:
            return address
        notes.warn("endpoint", pointer, "expected an http or https URL", "SEP-2127")
        return None
    try:
        resolved = resolve(origin_of(url) + "/", address)
    except BadUrl as error:
        notes.warn("endpoint", pointer, f"expected {error}", "SEP-2127")
        return None
    return resolved.replace("%7B", "{").replace("%7D", "}") if "{" in address else resolved
