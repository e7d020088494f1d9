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
# Members in which terms about the agent may stand; in an extension bag all of them.
_LEADING = frozenset("a2a agent card connection extensions interface mcp metadata server transport".split())
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
_MOST = 50
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


# A member: its local name and where it stands.
_Member = tuple[str, Term]


def stated_by(entry: Mapping[str, Any]) -> Stated:
    """Collect what an entry states; `access` terms have the value true where credentials are needed."""
    found = Stated([], [], [])
    own = {name: member for name, member in entry.items() if name not in _CORE}
    _collect(_members(own, "", ""), "", 0, found)
    return Stated(found.endpoints[:_MOST], found.versions[:_MOST], found.access[:_MOST])


def local_name(name: str) -> str:
    """Cut a member name to its last part, folded, so that prefixed terms, IRIs and snake case read alike."""
    return re.split(r"[:/#]", name)[-1].replace("_", "").replace("-", "").lower()


def _collect(members: list[_Member], place: str, depth: int, found: Stated) -> None:
    above = local_name(place)
    beside = Endpoint(Term("", "", ""), _binding(members, vague=above == "transport"), _versions(members, vague=False))
    endpoints: list[Endpoint] = []
    for name, term in members:
        if name in _ENDPOINTS and len(endpoints) < _MOST:
            endpoints += _endpoints(name, term, beside)
        elif name in _ACCESS:
            found.access += _access(term)
        elif isinstance(term.value, Mapping) and depth < _DEEPEST and (name in _LEADING or above == "extensions"):
            _collect(_members(term.value, term.pointer, term.place), term.place, depth + 1, found)
    found.endpoints += endpoints
    if not endpoints:
        found.versions += beside.versions


def _members(node: Mapping[str, Any], pointer: str, place: str) -> list[_Member]:
    found = []
    for name, value in node.items():
        if len(name) <= _LONGEST_NAME:
            step = pointer_step(name)
            found.append((local_name(name), Term(pointer + step, place + step, value)))
    return found


def _endpoints(name: str, term: Term, beside: Endpoint) -> Iterator[Endpoint]:
    """Read an endpoint: a text, of which the terms beside it speak, an object, or a list of either."""
    preferred = name == "preferredinterface"
    if isinstance(term.value, list):
        for index, item in enumerate(term.value[:_MOST]):
            at = Term(f"{term.pointer}/{index}", f"{term.place}/*", item)
            if isinstance(item, Mapping):
                yield from _of_object(at, preferred=False)
            elif _is_address(item):
                yield Endpoint(at)
    elif isinstance(term.value, Mapping):
        yield from _of_object(term, preferred=preferred)
    elif _is_address(term.value):
        yield Endpoint(term, beside.binding, beside.versions, preferred)


def _of_object(node: Term, *, preferred: bool) -> Iterator[Endpoint]:
    members = _members(node.value, node.pointer, node.place)
    url = next((term for name, term in members if name in _URLS and _is_address(term.value)), None)
    if url is not None:
        yield Endpoint(url, _binding(members, vague=True), _versions(members, vague=True), preferred)


def _is_address(value: Any) -> bool:
    return isinstance(value, str) and _ADDRESS.fullmatch(value.strip()) is not None


def _binding(members: list[_Member], *, vague: bool) -> Term | None:
    found = {
        name: term
        for name, term in members
        if name in _BINDINGS and isinstance(term.value, str) and term.value and (vague or name not in _VAGUE)
    }
    return next((found[name] for name in _BINDINGS if name in found), None)


def _versions(members: list[_Member], *, vague: bool) -> tuple[Term, ...]:
    found: list[Term] = []
    for name, term in members:
        if name not in _VERSIONS or (name in _VAGUE and not vague):
            continue
        if isinstance(term.value, list):
            items = [
                Term(f"{term.pointer}/{index}", f"{term.place}/*", item)
                for index, item in enumerate(term.value[:_MOST])
            ]
            found += [item for item in items if _is_version(name, item.value)]
        elif _is_version(name, term.value):
            found.append(term)
    return tuple(found[:_MOST])


def _is_version(name: str, value: Any) -> bool:
    if not isinstance(value, str) or not value.strip():
        return False
    return name not in _VAGUE or _PROTOCOL_VERSION.fullmatch(value) is not None


def _access(term: Term) -> Iterator[Term]:
    value = term.value
    if isinstance(value, bool):
        yield term
    elif isinstance(value, str) and value.strip():
        yield Term(term.pointer, term.place, value.strip().lower() not in _OPEN)
    elif isinstance(value, Mapping) and isinstance(value.get("required"), bool):
        yield Term(term.pointer + "/required", term.place + "/required", value["required"])
