"""The shelves that remember by the database: one writes what is new, the other keeps it for a rehearsal alone."""

import asyncio
from collections import Counter
from dataclasses import replace
from datetime import datetime

from crawler.clock import Clock
from index.documents import DocumentState, DocumentVisit, FollowedLead
from index.renditions import Rendition
from index.store.database import Database
from index.store.documents import load_state
from index.store.frontier import Hold, load_rest
from index.store.snapshots import load_snapshot
from index.store.writer import Came, RecordLeads, RecordRendition, RecordVisit, Writer


class StoredShelf:
    """Remembers what one visit finds in the database.

    Records are queued, not awaited one by one: their order is kept, and `settled` waits for all of them. An outage of
    the database holds the visit up and doesn't end it. Counted are the documents that changed, those of them with an
    artifact, and, once they are settled, what became of entries.
    """

    keeps_drift = True

    def __init__(self, database: Database, writer: Writer, clock: Clock, hold: Hold) -> None:
        self._database = database
        self._writer = writer
        self._clock = clock
        self._hold = hold
        self._pending: list[asyncio.Future[Came]] = []
        self.changed = 0
        self.artifacts = 0
        self.entries: Came = Counter()

    async def load_rest(self, origin: str) -> datetime | None:
        return await self._database.wait_and_read(load_rest, origin)

    async def load_document(self, url: str) -> DocumentState | None:
        return await self._database.wait_and_read(load_state, url)

    async def load_body(self, digest: str) -> bytes | None:
        return await self._database.wait_and_read(load_snapshot, digest)

    async def record(self, visit: DocumentVisit) -> None:
        self._pending.append(await self._writer.submit(RecordVisit(visit, self._hold)))
        self.changed += visit.changed
        self.artifacts += visit.changed and visit.artifact is not None

    async def record_leads(self, url: str, leads: tuple[FollowedLead, ...]) -> None:
        self._pending.append(await self._writer.submit(RecordLeads(url, leads, self._clock.now(), self._hold)))

    async def record_rendition(self, rendition: Rendition) -> None:
        self._pending.append(await self._writer.submit(RecordRendition(rendition, self._hold)))

    async def settled(self) -> None:
        """Wait until everything recorded is committed; raises what kept a record from being written."""
        pending, self._pending = self._pending, []
        fault: Exception | None = None
        for done in pending:
            try:
                self.entries.update(await done)
            except Exception as error:
                fault = fault or error
        if fault is not None:
            raise fault


class RehearsalShelf:
    """Remembers what the database holds, and what was found since in memory; nothing is written.

    `units` are the writes that a visit would have queued, in their order.
    """

    keeps_drift = True

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._states: dict[str, DocumentState] = {}
        self._bodies: dict[str, bytes] = {}
        self.units: list[RecordVisit | RecordLeads | RecordRendition] = []

    @property
    def visits(self) -> list[DocumentVisit]:
        """Give every look at a document, in order."""
        return [unit.visit for unit in self.units if isinstance(unit, RecordVisit)]

    async def load_rest(self, origin: str) -> datetime | None:
        return await self._database.read(load_rest, origin)

    async def load_document(self, url: str) -> DocumentState | None:
        return self._states.get(url) or await self._database.read(load_state, url)

    async def load_body(self, digest: str) -> bytes | None:
        return self._bodies.get(digest) or await self._database.read(load_snapshot, digest)

    async def record(self, visit: DocumentVisit) -> None:
        if visit.body is not None and visit.state.digest is not None:
            self._bodies[visit.state.digest] = visit.body
        self._states[visit.state.url] = visit.state
        self.units.append(RecordVisit(replace(visit, observation=replace(visit.observation, body=b""))))

    async def record_leads(self, url: str, leads: tuple[FollowedLead, ...]) -> None:
        self.units.append(RecordLeads(url, leads, self._clock.now()))

    async def record_rendition(self, rendition: Rendition) -> None:
        self.units.append(RecordRendition(rendition))
