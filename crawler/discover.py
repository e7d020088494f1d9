"""Which URLs are worth trying on an origin, and which ones its answers point to (ARD 5.1). Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from crawler.policy.robots import RobotsRules
from crawler.policy.scope import OriginRules
from crawler.surfaces import a2a, ard, madp, mcp
from crawler.surfaces.html import Page
from crawler.surfaces.link_header import parse_link_header
from index.documents import DocumentKind
from index.records import RANK_OF_MECHANISM, Lead, Mechanism
from index.strict_json import digest
from index.urls import BadUrl, resolve

RELATIONS = frozenset({ard.RELATION, ard.PREDECESSOR_RELATION})
# How documents are found that we look for by ourselves, whoever points to them or no longer does.
PROBED = frozenset(
    {
        Mechanism.WELL_KNOWN,
        Mechanism.PREDECESSOR_PATH,
        Mechanism.IN_PAGE,
        Mechanism.AGENT_CARD,
        Mechanism.LEGACY_CARD,
        Mechanism.SERVER_CARD,
        Mechanism.AGENT_DISCOVERY,
        Mechanism.CONSTELLATION,
    }
)
# Whose places are tried one after the other.
ROW_MECHANISMS = frozenset({Mechanism.AGENT_CARD, Mechanism.LEGACY_CARD, Mechanism.SERVER_CARD})
ROBOTS_PATH = "/robots.txt"


@dataclass(frozen=True, slots=True)
class Target:
    """A URL to look at in a visit, and why."""

    kind: DocumentKind
    lead: Lead


def probes(rules: OriginRules) -> Iterator[Target]:
    """Give the URLs that the surfaces of an origin suggest, most telling first, then its pages."""
    if "ard" not in rules.surfaces:
        return
    for path, mechanism in (
        (ard.WELL_KNOWN_PATH, Mechanism.WELL_KNOWN),
        (ard.PREDECESSOR_PATH, Mechanism.PREDECESSOR_PATH),
    ):
        yield Target(DocumentKind.MANIFEST, _lead(rules.origin + path, mechanism))
    for page in rules.pages:
        try:
            yield Target(DocumentKind.PAGE, _lead(resolve(rules.origin + "/", page), Mechanism.IN_PAGE))
        except BadUrl:
            continue


def card_probes(rules: OriginRules) -> list[list[Target]]:
    """Give the paths of an origin's own cards, in rows: of each row the next is tried where the one before is not.

    A valid card on either of its names is enough (A2A 8.2); of the places of a server card the first valid one counts.
    A MADP agent file stands on the older name of the A2A card, so with that surface both names are looked at.
    """
    rows: list[list[tuple[str, Mechanism]]] = []
    surfaces = rules.surfaces
    if "a2a" in surfaces:
        older = [] if "madp" in surfaces else [(a2a.LEGACY_PATH, Mechanism.LEGACY_CARD)]
        rows.append([(a2a.CARD_PATH, Mechanism.AGENT_CARD), *older])
    if "madp" in surfaces:
        rows.append([(madp.AGENT_PATH, Mechanism.LEGACY_CARD)])
    if "mcp" in surfaces:
        rows.append([(path, Mechanism.SERVER_CARD) for path in mcp.CARD_PATHS])
    return [
        [Target(DocumentKind.ARTIFACT, _lead(rules.origin + path, mechanism)) for path, mechanism in row]
        for row in rows
    ]


def robots_url(origin: str) -> str:
    """Give the address of an origin's robots.txt (RFC 9309 2.3)."""
    return origin + ROBOTS_PATH


def control_url(origin: str) -> str:
    """Give a path that nobody publishes: a host that answers it with success answers everything."""
    return f"{origin}/.well-known/{digest(origin.encode())[:20]}.json"


def leads_from_robots(rules: RobotsRules) -> Iterator[Lead]:
    """Turn the Agentmap lines of a robots.txt into leads."""
    for url in rules.agentmaps:
        yield _lead(url, Mechanism.AGENTMAP)


def leads_from_headers(headers: Mapping[str, str], url: str, most: int) -> Iterator[Lead]:
    """Turn the Link field of a response from `url` into leads; links about something else don't count (RFC 8288)."""
    field = headers.get("link")
    if field is None:
        return
    found = 0
    for link in parse_link_header(field):
        mechanism = _mechanism(link.relations, Mechanism.LINK_HEADER)
        if mechanism is None or not link.reference or found >= most:
            continue
        try:
            if link.anchor is not None and resolve(url, link.anchor) != resolve(url, ""):
                continue
            yield _lead(resolve(url, link.reference), mechanism, link.media_type)
            found += 1
        except BadUrl:
            continue


def leads_from_page(page: Page, most: int) -> Iterator[Lead]:
    """Turn the link elements of a page's head into leads."""
    for link in page.links[:most]:
        mechanism = _mechanism(link.relations, Mechanism.HTML_LINK)
        if mechanism is not None:
            yield _lead(link.url, mechanism, link.media_type)


def _mechanism(relations: tuple[str, ...], current: Mechanism) -> Mechanism | None:
    if ard.RELATION in relations:
        return current
    return Mechanism.PREDECESSOR_LINK if ard.PREDECESSOR_RELATION in relations else None


def _lead(url: str, mechanism: Mechanism, media_type: str | None = None) -> Lead:
    return Lead(url, mechanism, RANK_OF_MECHANISM[mechanism], media_type)
