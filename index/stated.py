"""What an entry states about the way to its artifact: addresses, protocol versions, access. Pure.

No catalog format has members for these; publishers put them into `metadata`, extension bags and prefixed terms. They
are known by the last part of their name, and only where such terms stand: an endpoint deep inside something else, such
as a telemetry block, is none of the agent's.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from index.records import pointer_step

_CORE = frozenset(
    """
    identifier displayName type mediaType url data inline representativeQueries capabilities tags description version
    updatedAt trustManifest trustManifests publisher digest id @context @id @type
    """.split()
)
_ENDPOINTS = frozenset(
    """
    endpoint endpoints endpointurl interfaceurl preferredinterface serviceurl interfaces supportedinterfaces remotes
    """.split()
)
_CONTAINERS = frozenset("a2a agent card connection interface mcp server transport".split())
_BAGS = frozenset({"metadata", "extensions"})
_URLS = ("url", "endpoint", "href", "interfaceurl", "serviceurl")
_BINDINGS = ("protocolbinding", "binding", "preferredtransport", "transport", "type")
# Beside an address that is a plain text these could as well be about something else.
_VAGUE = frozenset({"binding", "type", "version"})
_VERSIONS = ("protocolversion", "protocolversions", "supportedprotocolversions", "version")
_ACCESS = frozenset(
    "auth authentication authrequired authenticationrequired requiresauth requiresauthentication".split()
)
_OPEN = frozenset({"none", "no", "open", "optional", "public", "anonymous"})
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+|/\S*|[A-Za-z0-9.-]+:[0-9]{1,5}")
# A protocol's version, where `version` alone could be that of the interface.
_PROTOCOL_VERSION = re.compile(r"[0-9]{1,4}\.[0-9]{1,4}|[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOST = 100
_DEEPEST = 4
_LONGEST_NAME = 300


@dataclass(frozen=True, slots=True)
class Term:
    """One value and where it stands; `place` is the pointer with a star for every list index."""

    pointer: str
    place: str
    value: Any


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address as an entry states it, with what the entry says about what is spoken there."""

    url: Term
    binding: Term | None = None
    versions: tuple[Term, ...] = ()
    preferred: bool = False


@dataclass(slots=True)
class Stated:
    """All that an entry states about the way to its artifact; `versions` are those said of no endpoint alone."""

    endpoints: list[Endpoint]
    versions: list[Term]
    access: list[Term]


def stated_by(entry: Mapping[str, Any]) -> Stated:
    """Collect what an entry states; `access` terms have the value true where credentials are needed."""
    found = Stated([], [], [])
    own = {name: member for name, member in entry.items() if name not in _CORE}
    _collect(own, "", "", 0, found)
    return Stated(found.endpoints[:_MOST], found.versions[:_MOST], found.access[:_MOST])


def local_name(name: str) -> str:
    """Cut a member name to its last part, folded, so that prefixed terms, IRIs and snake case read alike."""
    return re.split(r"[:/#]", name)[-1].replace("_", "").replace("-", "").lower()


def _collect(node: Mapping[str, Any], pointer: str, place: str, depth: int, found: Stated) -> None:
    has_endpoint = False
    for name, value, term in _members(node, pointer, place):
        if name in _ENDPOINTS:
            endpoints = list(_endpoints(name, value, term, node, pointer, place))
            has_endpoint = has_endpoint or bool(endpoints)
            found.endpoints += endpoints
        elif name in _ACCESS:
            found.access += _access(value, term)
        elif isinstance(value, Mapping) and depth < _DEEPEST and _leads_on(name, place):
            _collect(value, term.pointer, term.place, depth + 1, found)
    if not has_endpoint:
        found.versions += _versions(node, pointer, place, vague=False)


def _leads_on(name: str, place: str) -> bool:
    """Tell whether terms about the agent may stand inside a member; the keys of an extension bag are free."""
    return name in _BAGS or name in _CONTAINERS or local_name(place) == "extensions"


def _members(node: Mapping[str, Any], pointer: str, place: str) -> Iterator[tuple[str, Any, Term]]:
    for name, value in node.items():
        if len(name) <= _LONGEST_NAME:
            step = pointer_step(name)
            yield local_name(name), value, Term(pointer + step, place + step, value)


def _endpoints(
    name: str, value: Any, term: Term, node: Mapping[str, Any], pointer: str, place: str
) -> Iterator[Endpoint]:
    preferred = name == "preferredinterface"
    if isinstance(value, str):
        if _ADDRESS.fullmatch(value.strip()):
            vague = local_name(pointer) == "transport"
            yield Endpoint(
                term,
                _binding(node, pointer, place, vague=vague),
                _versions(node, pointer, place, vague=False),
                preferred,
            )
    elif isinstance(value, Mapping):
        yield from _of_object(value, term.pointer, term.place, preferred=preferred)
    elif isinstance(value, list):
        for index, item in enumerate(value[:_MOST]):
            at, where = f"{term.pointer}/{index}", f"{term.place}/*"
            if isinstance(item, Mapping):
                yield from _of_object(item, at, where, preferred=False)
            elif isinstance(item, str) and _ADDRESS.fullmatch(item.strip()):
                yield Endpoint(Term(at, where, item))


def _of_object(node: Mapping[str, Any], pointer: str, place: str, *, preferred: bool) -> Iterator[Endpoint]:
    for name, value, term in _members(node, pointer, place):
        if name in _URLS and isinstance(value, str) and _ADDRESS.fullmatch(value.strip()):
            binding = _binding(node, pointer, place, vague=True)
            yield Endpoint(term, binding, _versions(node, pointer, place, vague=True), preferred)
            return


def _binding(node: Mapping[str, Any], pointer: str, place: str, *, vague: bool) -> Term | None:
    found = {
        name: term
        for name, value, term in _members(node, pointer, place)
        if name in _BINDINGS and isinstance(value, str) and value and (vague or name not in _VAGUE)
    }
    return next((found[name] for name in _BINDINGS if name in found), None)


def _versions(node: Mapping[str, Any], pointer: str, place: str, *, vague: bool) -> tuple[Term, ...]:
    found: list[Term] = []
    for name, value, term in _members(node, pointer, place):
        if name not in _VERSIONS or (name in _VAGUE and not vague):
            continue
        if isinstance(value, str) and value:
            if name not in _VAGUE or _PROTOCOL_VERSION.fullmatch(value):
                found.append(term)
        elif isinstance(value, list):
            found += [
                Term(f"{term.pointer}/{index}", f"{term.place}/*", item)
                for index, item in enumerate(value[:_MOST])
                if isinstance(item, str) and item
            ]
    return tuple(found)


def _access(value: Any, term: Term) -> Iterator[Term]:
    if isinstance(value, bool):
        yield term
    elif isinstance(value, str) and value.strip():
        yield Term(term.pointer, term.place, value.strip().lower() not in _OPEN)
    elif isinstance(value, Mapping) and isinstance(value.get("required"), bool):
        yield Term(term.pointer + "/required", term.place + "/required", value["required"])
