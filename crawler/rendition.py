"""Whether a card is another document for whoever names no version: a second look, now and then.

Handlers of cards may negotiate on `A2A-Version` (protocol notes 3.4), and a client of an older version sends none. What
comes without it is compared with the copy that is held and is never one itself.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from crawler.clock import Clock
from crawler.policy.freshness import parse_cache_control
from crawler.policy.watch import is_worth_comparing
from crawler.surfaces import artifact
from crawler.surfaces.a2a import VERSION_HEADER
from crawler.surfaces.recognise import Kind
from index.documents import DocumentKind, DocumentState, DocumentVisit, Observation, Outcome
from index.records import Artifact, Mechanism
from index.renditions import Rendition

_NAMELESS = {name: value for name, value in artifact.HEADERS.items() if name not in VERSION_HEADER}
_ABOUT = next(iter(VERSION_HEADER)).lower()


@dataclass(frozen=True, slots=True)
class RenditionVisit:
    """The comparisons of one visit; `fetch` asks for a URL with the fields that it is given, and no conditions."""

    clock: Clock
    fetch: Callable[[str, Mapping[str, str]], Awaitable[Observation]]
    every: int
    max_depth: int

    async def compare(self, before: DocumentState, visit: DocumentVisit) -> Rendition | None:
        """Look a second time at a card that was just seen as a whole, where that is due; None where nothing is told."""
        seen = visit.observation
        if not self._is_due(before, visit) or (kept := self._card(seen, before.mechanism)) is None:
            return None
        other = await self.fetch(before.url, _NAMELESS)
        card = self._card(other, before.mechanism)
        if card is None:
            return None
        differs = card.content_digest != kept.content_digest
        if differs:
            # What is another document at every look says nothing about the field.
            again = self._card(await self.fetch(before.url, artifact.HEADERS), before.mechanism)
            if again is None or again.content_digest != kept.content_digest:
                return None
        return Rendition(before.url, card, kept.digest, other.response_at, differs)

    def _is_due(self, before: DocumentState, visit: DocumentVisit) -> bool:
        looked_for = before.kind is DocumentKind.ARTIFACT and before.mechanism is not Mechanism.KEY_SET
        if not looked_for or visit.state.outcome is not Outcome.FETCHED:
            return False
        return is_worth_comparing(
            before, visit.state, visit.observation, _ABOUT, every=self.every, chance=self.clock.chance()
        )

    def _card(self, observation: Observation, mechanism: Mechanism) -> Artifact | None:
        control = parse_cache_control(observation.headers.get("cache-control"))
        # What is private is not compared (RFC 9111 5.2.2.7).
        if observation.outcome is not Outcome.FETCHED or control.private:
            return None
        read = artifact.read_artifact(observation.body, observation.final_url, mechanism, max_depth=self.max_depth)
        return read if read.kind == Kind.A2A_CARD else None
