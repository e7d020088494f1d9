"""MADP: agent.json, agent-discovery.json and constellation.json of agent-seo, and the level they reach. Pure.

Only what the specification's page states is checked; a trust anchor is reported as far as it was seen and is never
called verified.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from crawler.surfaces.members import Notes
from crawler.surfaces.recognise import MADP_PROTOCOL, is_a2a_card
from index.identity import is_domain, media_type
from index.records import Problem
from index.urls import BadUrl, host_of, origin_of, parse_url, resolve

AGENT_PATH = "/.well-known/agent.json"
DISCOVERY_PATH = "/.well-known/agent-discovery.json"
CONSTELLATION_PATH = "/.well-known/constellation.json"
MAX_HOPS = 3
_NEXT_MEMBERS = ("trust_anchor", "parent", "resolver", "next")
_MEMBER_URL_NAMES = ("url", "agent", "origin", "domain", "href", "endpoint")
_NO_MEMBERS = ("icon", "logo", "image", "documentation", "docs")
_MOST_MEMBERS = 500
_MOST_NODES = 10_000


class Level(StrEnum):
    """The conformance levels, each of which holds those before it."""

    NONE = "none"
    A = "A"
    AA = "AA"
    AAA = "AAA"


class AnchorState(StrEnum):
    """How much of a trust anchor was seen; the last one still proves nothing."""

    ABSENT = "absent"
    DECLARED = "declared"
    FETCHED = "fetched"
    PARSED = "parsed"
    LISTS_DOMAIN = "lists_domain"


@dataclass(frozen=True, slots=True)
class Assessment:
    """The level of an origin and the checks that failed, in order."""

    level: Level
    failed: tuple[str, ...]


_CHECKS_OF_LEVEL = {
    Level.A: ("A1", "A2", "A3"),
    Level.AA: ("AA1", "AA2"),
    Level.AAA: ("AAA1", "AAA2", "AAA3"),
}


def assess(agent: Any, discovery: Any, constellation: Any) -> Assessment:
    """Grade an origin by its three documents; None stands for one that is not there or no JSON."""
    results = dict(_checks(agent, discovery, constellation))
    level = Level.NONE
    for step, checks in _CHECKS_OF_LEVEL.items():
        if not all(results[check] for check in checks):
            break
        level = step
    return Assessment(level, tuple(check for check, passed in results.items() if not passed))


def _checks(agent: Any, discovery: Any, constellation: Any) -> Iterator[tuple[str, bool]]:
    found = agent if isinstance(agent, Mapping) else {}
    capabilities = found.get("capabilities")
    yield "A1", isinstance(agent, Mapping)
    yield "A2", _names_protocol(found.get("protocol"))
    yield "A3", _non_empty_texts(capabilities)
    yield "AA1", _absolute_https(found.get("trust_anchor")) is not None
    yield "AA2", _states_rate(found.get("rate_limits"))
    entry_points = discovery if isinstance(discovery, Mapping) else {}
    yield "AAA1", isinstance(discovery, Mapping)
    yield "AAA2", isinstance(constellation, Mapping) or _points_to_constellation(entry_points)
    yield (
        "AAA3",
        all(
            _media_types(entry_points.get(name)) or _media_types(found.get(name))
            for name in ("input_formats", "output_formats")
        ),
    )


def _names_protocol(value: Any) -> bool:
    return isinstance(value, str) and MADP_PROTOCOL.fullmatch(value) is not None


def _points_to_constellation(entry_points: Mapping[str, Any]) -> bool:
    """Look for a member that names a constellation: a URL, a list or an object that holds something."""
    for name, member in entry_points.items():
        if "constellation" not in name.lower():
            continue
        if isinstance(member, list | Mapping) and member:
            return True
        if isinstance(member, str) and (member.startswith("/") or _absolute(member) is not None):
            return True
    return False


def _non_empty_texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, str) and item.strip() for item in value)


def _states_rate(value: Any) -> bool:
    if not isinstance(value, Mapping) or not value:
        return False
    return "requests_per_minute" not in value or _positive(value["requests_per_minute"]) is not None


def _positive(value: Any) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _media_types(value: Any) -> bool:
    return _non_empty_texts(value) and all(media_type(item) is not None for item in value)


def _absolute(value: Any) -> str | None:
    try:
        return str(parse_url(value)) if isinstance(value, str) else None
    except BadUrl:
        return None


def _absolute_https(value: Any) -> str | None:
    url = _absolute(value)
    return url if url is not None and url.startswith("https://") else None


def requests_per_minute(agent: Mapping[str, Any]) -> float | None:
    """Give the request rate that a publisher allows, which bounds our own."""
    limits = agent.get("rate_limits")
    return _positive(limits.get("requests_per_minute")) if isinstance(limits, Mapping) else None


def read_agent(value: Mapping[str, Any]) -> tuple[Problem, ...]:
    """Name what is doubtful about an agent file."""
    notes = Notes("madp")
    if is_a2a_card(value):
        notes.warn("two_shapes", "", "the document is an agent file and an A2A card at once; it is read as both")
    if not _names_protocol(value.get("protocol")):
        notes.warn("protocol", "/protocol", "expected agent-seo/ and a version number")
    if not _non_empty_texts(value.get("capabilities")):
        notes.warn("capabilities", "/capabilities", "expected a list of names")
    if "trust_anchor" in value and _absolute_https(value["trust_anchor"]) is None:
        notes.warn("trust_anchor", "/trust_anchor", "expected an absolute https URL")
    if "rate_limits" in value and not _states_rate(value["rate_limits"]):
        notes.warn("rate_limits", "/rate_limits", "expected an object with a positive rate")
    for name in ("input_formats", "output_formats"):
        if name in value and not _media_types(value[name]):
            notes.warn("formats", f"/{name}", "expected a list of media types")
    return tuple(notes.problems)


def trust_anchor(agent: Mapping[str, Any]) -> str | None:
    """Give the address of the trust anchor that an agent file declares."""
    return _absolute_https(agent.get("trust_anchor"))


def next_anchor(document: Any, url: str) -> str | None:
    """Give the next address of a trust chain, by the member names that such documents use."""
    for name in _NEXT_MEMBERS:
        reference = document.get(name) if isinstance(document, Mapping) else None
        if isinstance(reference, str) and reference:
            try:
                found = resolve(url, reference)
            except BadUrl:
                continue
            if found.startswith("https://") and found != url:
                return found
    return None


def lists_domain(document: Any, origin: str) -> bool:
    """Tell whether a document names an origin, or its host, as a value anywhere in it."""
    names = (origin, host_of(origin))
    stack, seen = [document], 0
    while stack and seen < _MOST_NODES:
        node = stack.pop()
        seen += 1
        if isinstance(node, Mapping):
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
        elif isinstance(node, str) and (node.strip().rstrip("/").lower() in names or _origin_or_none(node) == origin):
            return True
    return False


def _origin_or_none(text: str) -> str | None:
    url = _absolute(text) if "://" in text else None
    return origin_of(url) if url is not None else None


def constellation_members(document: Any, url: str) -> list[str]:
    """Give the addresses of the members that a constellation names, in its order; bare domains as https origins."""
    found: dict[str, None] = {}
    stack: list[tuple[str, Any]] = [("url", document)]
    while stack and len(found) < _MOST_MEMBERS:
        name, node = stack.pop()
        if isinstance(node, Mapping):
            stack.extend((key, node[key]) for key in reversed(list(node)))
        elif isinstance(node, list):
            # What a list holds is a member, whatever the list is called.
            stack.extend(("url", item) for item in reversed(node))
        elif isinstance(node, str) and _names_member(name):
            _take_member(node, url, found)
    return list(found)


def _names_member(name: str) -> bool:
    if name in _MEMBER_URL_NAMES:
        return True
    return name.endswith(("_url", "Url")) and not name.lower().startswith(_NO_MEMBERS)


def _take_member(text: str, url: str, found: dict[str, None]) -> None:
    try:
        if is_domain(text):
            found[resolve(url, f"https://{text}/")] = None
        elif "://" in text or text.startswith("/"):
            found[resolve(url, text)] = None
    except BadUrl:
        return
