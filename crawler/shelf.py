"""What a visit needs from whoever remembers: the database, or plain memory when nothing is kept."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol

from index.documents import DocumentState, DocumentVisit, FollowedLead
from index.renditions import Rendition


class Shelf(Protocol):
    """Remembers documents between visits; where it keeps no drift, there is no need to look for any."""

    @property
    def keeps_drift(self) -> bool: ...

    async def load_rest(self, origin: str) -> datetime | None:
        """Give the time until which an origin asked to be left alone, as far as it is known."""

    async def load_document(self, url: str) -> DocumentState | None:
        """Give what is remembered of a URL."""

    async def load_body(self, digest: str) -> bytes | None:
        """Give a stored body."""

    async def record(self, visit: DocumentVisit) -> None:
        """Take what one look at a document brought."""

    async def record_leads(self, url: str, leads: tuple[FollowedLead, ...]) -> None:
        """Take all the leads of a document that was recorded before."""

    async def record_rendition(self, rendition: Rendition) -> None:
        """Take what a card that was recorded before is for clients of older versions."""


@dataclass
class MemoryShelf:
    """Remembers for one run only."""

    visits: list[DocumentVisit] = field(default_factory=list)
    leads: dict[str, tuple[FollowedLead, ...]] = field(default_factory=dict)
    _states: dict[str, DocumentState] = field(default_factory=dict)
    _bodies: dict[str, bytes] = field(default_factory=dict)
    keeps_drift = False

    async def load_rest(self, origin: str) -> datetime | None:
        return None

    async def load_document(self, url: str) -> DocumentState | None:
        return self._states.get(url)

    async def load_body(self, digest: str) -> bytes | None:
        return self._bodies.get(digest)

    async def record(self, visit: DocumentVisit) -> None:
        if visit.body is not None and visit.state.digest is not None:
            self._bodies[visit.state.digest] = visit.body
        self._states[visit.state.url] = visit.state
        observation = replace(visit.observation, body=b"")
        self.visits.append(replace(visit, observation=observation, body=None))

    async def record_leads(self, url: str, leads: tuple[FollowedLead, ...]) -> None:
        self.leads[url] = leads

    async def record_rendition(self, rendition: Rendition) -> None:
        """Forget it: there is no drift where nothing is kept."""
