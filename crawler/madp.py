"""What a MADP agent file leads to: the origin's entry points, its constellation, and the chain of its trust anchor.

Part of a visit. The level is assessed from the three documents as they were last read; a trust anchor is followed a
few hops on allowlisted origins and on the publisher's own domain, and never called verified (protocol notes 5).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from crawler.discover import Target
from crawler.policy.scope import Admitted, Refused, Scope
from crawler.shelf import Shelf
from crawler.surfaces import madp
from crawler.surfaces.madp import AnchorState
from index.documents import SUCCESSES, DocumentKind, DocumentState, DocumentVisit
from index.findings import redact
from index.records import RANK_OF_MECHANISM, Lead, Mechanism
from index.strict_json import MalformedJson, parse
from index.trust import registrable_domain
from index.urls import host_of, origin_of

MECHANISMS = frozenset({Mechanism.AGENT_DISCOVERY, Mechanism.CONSTELLATION, Mechanism.TRUST_ANCHOR})
_AGENT_KIND = "madp.agent"
_MAX_DEPTH = 32
_MOST_POINTERS = 100


@dataclass(slots=True)
class MadpVisit:
    """The MADP side of one visit.

    `known` is the assessment that earlier visits left; there is one as long as the origin's agent file is MADP.
    """

    origin: str
    scope: Scope
    shelf: Shelf
    states: Mapping[str, DocumentState]
    known: Mapping[str, Any] | None = None
    anchors: list[str] = field(default_factory=list)
    # The rate that the publisher allows, which bounds ours.
    requests_per_minute: float | None = None
    _touched: bool = False
    _is_madp: bool = False
    # What this visit read may not be committed yet.
    _bodies: dict[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = self.known or {}
        self._is_madp = bool(known) and not {"A1", "A2"} & set(known.get("failed", ()))
        rate = known.get("requestsPerMinute")
        self.requests_per_minute = float(rate) if isinstance(rate, int | float) else None

    def is_wanted(self, state: DocumentState) -> bool:
        """Tell whether a document that only an agent file leads to is still worth a look."""
        return state.mechanism not in MECHANISMS or self._is_madp

    def admits(self, url: str) -> Admitted | Refused:
        """Admit an address of the trust chain: https on the publisher's own registrable domain (allowlisted or not)."""
        checked = self.scope.check_public(url)
        if isinstance(checked, Refused) or url not in self.anchors or not checked.url.startswith("https://"):
            return Refused("not_allowlisted", "not a trust anchor of this publisher")
        domain = registrable_domain(host_of(self.origin))
        if domain is None or registrable_domain(host_of(checked.url)) != domain:
            return Refused("not_allowlisted", f"{checked.origin} is not on the allowlist")
        return checked

    def further(self, visit: DocumentVisit) -> list[Target]:
        """Give the documents that one which was just looked at leads to."""
        url = visit.state.url
        is_agent_file = url == self.origin + madp.AGENT_PATH
        if not is_agent_file and visit.state.mechanism not in MECHANISMS:
            return []
        if visit.observation.body:
            self._bodies[url] = visit.observation.body
        if is_agent_file:
            return self._after_agent_file(visit)
        self._touched = True
        if visit.state.mechanism is Mechanism.TRUST_ANCHOR and visit.artifact is not None:
            following = madp.next_anchor(visit.artifact.normal, visit.observation.final_url)
            return self._anchor(following)
        return []

    def _after_agent_file(self, visit: DocumentVisit) -> list[Target]:
        if visit.artifact is None:
            return []
        self._is_madp = visit.artifact.kind == _AGENT_KIND
        self._touched = True
        if not self._is_madp:
            return []
        self.requests_per_minute = visit.artifact.normal.get("requestsPerMinute")
        found = [
            _target(self.origin + madp.DISCOVERY_PATH, Mechanism.AGENT_DISCOVERY),
            _target(self.origin + madp.CONSTELLATION_PATH, Mechanism.CONSTELLATION),
        ]
        return found + self._anchor(visit.artifact.normal.get("trustAnchor"))

    def _anchor(self, url: Any) -> list[Target]:
        """Follow a trust chain: so many hops, each address once."""
        if not isinstance(url, str) or url in self.anchors or len(self.anchors) >= madp.MAX_HOPS:
            return []
        self.anchors.append(url)
        admitted = self.scope.admit(url, source=self.origin)
        if isinstance(admitted, Refused):
            admitted = self.admits(url)
        return [] if isinstance(admitted, Refused) else [_target(admitted.url, Mechanism.TRUST_ANCHOR)]

    # --- the assessment -----------------------------------------------------------------------------------------------

    async def assessment(self) -> dict[str, Any] | None:
        """Assess the origin anew when one of its documents was read; None when nothing has changed.

        An origin whose agent file is no MADP file any more has the level `none` and nothing else.
        """
        if not self._touched or (self.known is None and not self._is_madp):
            return None
        agent = await self._document(self.origin + madp.AGENT_PATH) if self._is_madp else None
        discovery = await self._document(self.origin + madp.DISCOVERY_PATH)
        constellation = await self._document(self.origin + madp.CONSTELLATION_PATH)
        assessed = madp.assess(agent, discovery, constellation)
        found: dict[str, Any] = {"level": str(assessed.level), "failed": list(assessed.failed)}
        if isinstance(agent, Mapping):
            found["requestsPerMinute"] = madp.requests_per_minute(agent)
            found["trustAnchor"] = await self._anchor_state(agent)
        if constellation is not None:
            found |= self._members(constellation)
        return found

    async def _document(self, url: str) -> Any:
        """Give the last good copy of a document; None when there is none or it is no JSON."""
        state = self.states.get(url)
        if state is None or state.outcome not in SUCCESSES or state.digest is None:
            return None
        body = self._bodies.get(url) or await self.shelf.load_body(state.digest)
        try:
            return None if body is None else parse(body, max_depth=_MAX_DEPTH).value
        except MalformedJson:
            return None

    async def _anchor_state(self, agent: Mapping[str, Any]) -> dict[str, Any]:
        """Follow the chain through what was fetched, and say how far it was seen."""
        url = madp.trust_anchor(agent)
        if url is None:
            return {"state": str(AnchorState.ABSENT), "hops": []}
        hops: list[str] = []
        reached = AnchorState.DECLARED
        while url is not None and url not in hops and len(hops) < madp.MAX_HOPS:
            state = self.states.get(url)
            if state is None or state.outcome not in SUCCESSES:
                break
            hops.append(url)
            reached = AnchorState.FETCHED if reached is AnchorState.DECLARED else reached
            document = await self._document(url)
            if document is None:
                break
            reached = AnchorState.PARSED
            if madp.lists_domain(document, self.origin):
                return {"url": madp.trust_anchor(agent), "state": str(AnchorState.LISTS_DOMAIN), "hops": hops}
            url = madp.next_anchor(document, state.final_url or url)
        return {"url": madp.trust_anchor(agent), "state": str(reached), "hops": hops}

    def _members(self, constellation: Any) -> dict[str, Any]:
        """Record the members of a constellation; only allowlisted ones are visited, in visits of their own."""
        urls = madp.constellation_members(constellation, self.origin + madp.CONSTELLATION_PATH)
        own = [url for url in urls if origin_of(url) != self.origin]
        members = [
            {"url": redact(url), "decision": "allowlisted" if self._is_listed(url) else "not_allowlisted"}
            for url in own[:_MOST_POINTERS]
        ]
        return {"members": members, "membersOmitted": max(0, len(own) - _MOST_POINTERS)}

    def _is_listed(self, url: str) -> bool:
        admitted = self.scope.check(url)
        return isinstance(admitted, Admitted) and self.scope.rules(admitted.origin) is not None


def _target(url: str, mechanism: Mechanism) -> Target:
    return Target(DocumentKind.ARTIFACT, Lead(url, mechanism, RANK_OF_MECHANISM[mechanism]))
