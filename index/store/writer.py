"""All writes of a crawl go through one queue and end in few, small transactions.

What arrives while a transaction runs is written in the next one, so the more there is to write, the cheaper each write
becomes. A unit that fails is tried alone, so that it fails nobody else. While the database doesn't answer, all of them
wait, and whoever has more to write waits in the queue.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from index import metrics
from index.documents import SUCCESSES, VALIDATOR_LIES, DocumentKind, DocumentVisit, FollowedLead, Observation, Outcome
from index.records import Mechanism
from index.renditions import Rendition
from index.store.artifacts import (
    NewArtifact,
    PutArtifacts,
    append_events,
    has_pending,
    put_artifacts,
    put_pending,
    remove_artifacts,
)
from index.store.comparing import compare_pending
from index.store.database import Database
from index.store.documents import (
    FoundLeads,
    document_id,
    forgotten_documents,
    origin_id,
    put_document_problems,
    put_documents,
    put_fetches,
    put_leads,
)
from index.store.drift_rows import confirm_drifts, retract_sights
from index.store.entries import NewReading, apply_readings, take_away, withdraw
from index.store.frontier import Hold, Settlement, lost_holds, settle_origins
from index.store.listings import lock_listings
from index.store.renditions import settle_renditions
from index.store.snapshots import NewSnapshot, is_private, mark_private, put_snapshots

_log = structlog.get_logger("ardvark.store")
_MOST_UNITS = 1_000
# The ways by which a document is watched for as long as something names it.
_NAMED = frozenset({Mechanism.NESTED, Mechanism.ENTRY})
_LAST_PATIENCE_S = 5.0


@dataclass(frozen=True, slots=True)
class RecordVisit:
    """One look at a document, by whoever holds the claim."""

    visit: DocumentVisit
    hold: Hold | None = None


@dataclass(frozen=True, slots=True)
class RecordLeads:
    """All the leads of a document that was recorded before."""

    url: str
    leads: tuple[FollowedLead, ...]
    at: datetime
    hold: Hold | None = None


@dataclass(frozen=True, slots=True)
class RecordRendition:
    """What a card that was recorded before is for clients of older versions."""

    rendition: Rendition
    hold: Hold | None = None


@dataclass(frozen=True, slots=True)
class SettleVisit:
    """The end of a visit to an origin."""

    settlement: Settlement


Unit = RecordVisit | RecordLeads | RecordRendition | SettleVisit
# What became of the entries of the document that a unit is about: how many were added, changed and removed.
Came = Counter[str]
_NOTHING: Came = Counter()
_Item = tuple[Unit, asyncio.Future[Came]]


@dataclass
class Tally:
    """What was written, counted since the start."""

    documents: Counter[str] = field(default_factory=Counter)
    not_listed: Counter[str] = field(default_factory=Counter)
    # Cards read at an address of their own, and those of them that came, changed and went.
    artifacts: Counter[str] = field(default_factory=Counter)
    listed: int = 0
    rejected: int = 0
    unchanged: int = 0
    changes: int = 0
    snapshots: int = 0
    transactions: int = 0
    held: int = 0
    # Of one transaction: by document, what its entries came to.
    entries: dict[str, Came] = field(default_factory=dict)

    def add(self, other: "Tally") -> None:
        """Add the counts of one transaction."""
        self.documents.update(other.documents)
        self.not_listed.update(other.not_listed)
        self.artifacts.update(other.artifacts)
        for name in ("listed", "rejected", "unchanged", "changes", "snapshots", "transactions", "held"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Writer:
    """The queue. Use as an asynchronous context manager; leaving it writes what is left.

    `now` is the clock by which our own lag is measured.
    """

    def __init__(self, database: Database, now: Callable[[], datetime] = _utc_now) -> None:
        self._database = database
        self._now = now
        self._queue: asyncio.Queue[_Item | None] = asyncio.Queue(maxsize=_MOST_UNITS * 2)
        self._task: asyncio.Task[None] | None = None
        self._batch: Sequence[_Item] = ()
        self.tally = Tally()

    @property
    def is_stuck(self) -> bool:
        """Tell whether units wait for the end of an outage."""
        return bool(self._batch) and self._database.outage.stops_writes

    async def __aenter__(self) -> "Writer":
        self._task = asyncio.create_task(self._run(), name="writer")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is None:
            return
        last = asyncio.create_task(self._queue.put(None), name="end of the queue")
        while not self._task.done():
            await asyncio.wait({self._task}, timeout=_LAST_PATIENCE_S)
            if not self._task.done() and self.is_stuck:
                self._give_up(self._task)
        last.cancel()
        await asyncio.gather(self._task, last, return_exceptions=True)

    def _give_up(self, task: asyncio.Task[None]) -> None:
        """End although the outage goes on; what is lost is found again, for its origins stay due."""
        task.cancel()
        lost = list(self._batch)
        while not self._queue.empty():
            item = self._queue.get_nowait()
            lost += [] if item is None else [item]
        for _, done in lost:
            done.cancel()
        _log.error("store.units_lost", units=len(lost))

    async def submit(self, unit: Unit) -> asyncio.Future[Came]:
        """Queue a unit; the future ends when it is committed, or carries why it could not be."""
        done: asyncio.Future[Came] = asyncio.get_running_loop().create_future()
        if self._queue.full():
            await self._queue.put((unit, done))
        else:
            self._queue.put_nowait((unit, done))
        return done

    async def write(self, unit: Unit) -> None:
        """Queue a unit and wait until it is committed."""
        await (await self.submit(unit))

    async def _run(self) -> None:
        ended = False
        while not ended:
            batch, ended = await self._gather()
            self._batch = batch
            if batch:
                await self._commit(batch)
            self._batch = ()

    async def _gather(self) -> tuple[list[_Item], bool]:
        batch = []
        item = await self._queue.get()
        while item is not None:
            batch.append(item)
            if len(batch) >= _MOST_UNITS or self._queue.empty():
                return batch, False
            item = self._queue.get_nowait()
        return batch, True

    async def _commit(self, batch: Sequence[_Item]) -> None:
        units = [unit for unit, _ in batch]
        began = time.monotonic()
        try:
            # The time is that of the attempt which succeeds: what waited was not to be seen meanwhile.
            tally = await self._database.insist(lambda connection: write_units(connection, units, self._now()))
            self.tally.add(tally)
        except Exception as error:
            if len(batch) > 1:
                _log.warning("store.batch_failed", units=len(batch), error=_reason(error))
                for item in batch:
                    await self._commit([item])
                return
            _log.error("store.unit_failed", unit=type(units[0]).__name__, error=_reason(error))
            if not batch[0][1].cancelled():
                batch[0][1].set_exception(error)
            return
        metrics.WRITER_BATCH_UNITS.observe(len(units))
        metrics.WRITER_COMMIT_SECONDS.observe(time.monotonic() - began)
        _measure(units, self._now())
        for unit, done in batch:
            if not done.cancelled():
                # Several looks at one document share what came of it.
                url = unit.visit.state.url if tally.entries and isinstance(unit, RecordVisit) else ""
                done.set_result(tally.entries.pop(url, _NOTHING))


def _measure(units: Sequence[Unit], now: datetime) -> None:
    """Count what committed looks took to get here, and what they didn't have to transfer."""
    saved = 0
    for unit in units:
        if isinstance(unit, RecordVisit):
            state = unit.visit.state
            metrics.OWN_LAG_SECONDS.observe(max(0.0, (now - unit.visit.observation.response_at).total_seconds()))
            if state.outcome is Outcome.NOT_MODIFIED:
                saved += state.length or 0
    metrics.SAVED_BYTES.inc(saved)


def write_units(connection: Connection, units: Sequence[Unit], now: datetime) -> Tally:
    """Write units, those of one kind together; what concerns one document keeps its order."""
    tally = Tally(transactions=1)
    units = _still_claimed(connection, units)
    looks = [unit.visit for unit in units if isinstance(unit, RecordVisit)]
    settlements = [unit.settlement for unit in units if isinstance(unit, SettleVisit)]
    compares = any(
        visit.reading or visit.artifact or visit.taken_away or visit.presence_changed for visit in looks
    ) or (has_pending(connection, [origin_id(item.origin) for item in settlements]))
    if compares:
        lock_listings(connection)
    for visits in _rounds(looks):
        _write_visits(connection, visits, tally, now)
    leads = [(unit.url, unit.leads, unit.at, True) for unit in units if isinstance(unit, RecordLeads)]
    _take_leads(connection, leads, (), tally)
    renditions = [unit.rendition for unit in units if isinstance(unit, RecordRendition)]
    if renditions:
        settle_renditions(connection, renditions, now)
    settle_origins(connection, settlements)
    visited = {item.origin: item.at for item in settlements}
    if compares:
        compare_pending(connection, visited, now)
    confirm_drifts(connection, [origin_id(origin) for origin in visited])
    return tally


def _still_claimed(connection: Connection, units: Sequence[Unit]) -> Sequence[Unit]:
    """Leave out what was found under claims that are somebody else's by now, or whose origin was removed meanwhile."""
    held = {unit.hold for unit in units if not isinstance(unit, SettleVisit) and unit.hold is not None}
    lost = lost_holds(connection, held)
    if not lost:
        return units
    _log.warning("store.claims_lost", origins=sorted(hold.origin for hold in lost))
    return [unit for unit in units if isinstance(unit, SettleVisit) or unit.hold not in lost]


def _rounds(visits: Sequence[DocumentVisit]) -> list[list[DocumentVisit]]:
    """Part visits so that no document comes twice in one round."""
    if len({visit.state.url for visit in visits}) == len(visits):
        return [list(visits)] if visits else []
    rounds: list[list[DocumentVisit]] = []
    seen: Counter[str] = Counter()
    for visit in visits:
        turn = seen[visit.state.url]
        seen[visit.state.url] += 1
        if turn == len(rounds):
            rounds.append([])
        rounds[turn].append(visit)
    return rounds


def _write_visits(connection: Connection, visits: Sequence[DocumentVisit], tally: Tally, now: datetime) -> None:
    wanted = _still_wanted(connection, visits)
    put_documents(
        connection,
        [visit.state for visit in wanted],
        applied={visit.state.url for visit in wanted if _is_applied(visit)},
    )
    put_fetches(connection, visits)
    tally.documents.update(str(visit.observation.outcome) for visit in visits)
    visits = wanted
    tally.snapshots += put_snapshots(connection, _snapshots(visits))
    mark_private(connection, _privacy(visits))
    put_document_problems(
        connection,
        [
            *((visit.state.url, visit.reading.problems) for visit in visits if visit.reading is not None),
            *((visit.state.url, ()) for visit in visits if visit.artifact is not None and visit.reading is None),
        ],
    )
    lied = {document_id(visit.state.url): visit.before_at for visit in visits if VALIDATOR_LIES in visit.notes}
    retract_sights(connection, {key: at for key, at in lied.items() if at is not None})
    cards = _take_cards(connection, visits, now)
    tally.artifacts["read"] += sum(_is_card(visit) for visit in visits)
    tally.artifacts.update(event.kind.removeprefix("artifact.") for event in cards.events.values())
    readings = []
    confirmed = []
    for visit in visits:
        taken_over = visit.state.outcome in (Outcome.FETCHED, Outcome.NOT_MODIFIED)
        # An unusable answer comes with a reading too, for its problems; only a body that was taken over has entries.
        if visit.reading is not None and taken_over:
            at = visit.observation.response_at
            readings.append(NewReading(visit.state, visit.reading, at, visit.confirm_removals, visit.before_at))
        elif taken_over and visit.artifact is None:
            tally.unchanged += visit.state.entry_count
            confirmed.append((visit.state.url, visit.observation.response_at))
    applied = apply_readings(connection, readings, cards.changed, now)
    append_events(connection, cards, now)
    tally.not_listed.update(applied.not_listed)
    for name in ("listed", "rejected", "unchanged", "changes", "held"):
        setattr(tally, name, getattr(tally, name) + getattr(applied, name))
    for url, came in applied.entries.items():
        tally.entries.setdefault(url, Counter()).update(came)
    for visit in visits:
        if visit.taken_away:
            observation = visit.observation
            gone = take_away(connection, [visit.state.url], observation.response_at, observation.reason)
            tally.changes += gone
            tally.entries.setdefault(visit.state.url, Counter())["removed"] += gone
    leads = [
        (visit.state.url, visit.leads, visit.observation.response_at, visit.leads_complete)
        for visit in visits
        if visit.leads or visit.leads_complete
    ]
    _take_leads(connection, leads, confirmed, tally)


def _is_card(visit: DocumentVisit) -> bool:
    """Tell whether a look showed a card, new or still the same."""
    return visit.state.kind is DocumentKind.ARTIFACT and visit.state.outcome in SUCCESSES


def _still_wanted(connection: Connection, visits: Sequence[DocumentVisit]) -> Sequence[DocumentVisit]:
    """Leave out what was only looked at because somebody named it, which nobody does any more."""
    led = [visit.state.url for visit in visits if visit.state.mechanism in _NAMED]
    forgotten = forgotten_documents(connection, led)
    if forgotten:
        for visit in visits:
            forgotten -= {item.lead.url for item in visit.leads if item.owner is not None}
            entries = visit.reading.entries if visit.reading is not None else ()
            forgotten -= {entry.artifact.url for entry in entries if entry.artifact and entry.artifact.url}
    return [visit for visit in visits if visit.state.url not in forgotten] if forgotten else visits


def _is_applied(visit: DocumentVisit) -> bool:
    """Tell whether listings are brought in line with what was read, or lose what is gone."""
    is_read = visit.reading is not None or visit.artifact is not None
    return visit.taken_away or (is_read and visit.state.outcome in SUCCESSES)


def _take_cards(connection: Connection, visits: Sequence[DocumentVisit], now: datetime) -> PutArtifacts:
    """Bring artifacts in line with what was read of them, and have those judged that changed, came or went."""
    looks = {document_id(visit.state.url): visit for visit in visits if visit.state.kind is DocumentKind.ARTIFACT}
    found = [
        NewArtifact(key, key, visit.state.url, visit.artifact, visit.observation.response_at, visit.before_at)
        for key, visit in looks.items()
        if visit.artifact is not None and visit.state.outcome in SUCCESSES
    ]
    put = put_artifacts(connection, found)
    moved = put.changed | {key for key, visit in looks.items() if visit.presence_changed}
    waiting = [
        {
            "origin_id": origin_id(looks[key].state.origin),
            "kind": "artifact",
            "subject": key,
            "at": looks[key].observation.response_at,
        }
        for key in moved
    ]
    put_pending(connection, waiting)
    gone = {key: visit for key, visit in looks.items() if visit.taken_away}
    put.changed |= remove_artifacts(connection, gone, now)
    return put


def _snapshots(visits: Sequence[DocumentVisit]) -> list[NewSnapshot]:
    return [
        NewSnapshot(
            visit.state.digest,
            visit.body,
            visit.state.headers.get("content-type"),
            visit.observation.response_at,
            private=is_private(visit.state.headers),
        )
        for visit in visits
        if visit.body is not None and visit.state.digest is not None
    ]


def _privacy(visits: Sequence[DocumentVisit]) -> dict[str, bool]:
    return {
        visit.state.digest: is_private(visit.state.headers)
        for visit in visits
        if visit.state.digest is not None and visit.state.outcome in SUCCESSES and _says_whose(visit.observation)
    }


def _says_whose(observation: Observation) -> bool:
    """Tell whether an answer says anything about passing its body on; a 304 may leave that as it was."""
    return observation.outcome is not Outcome.NOT_MODIFIED or "cache-control" in observation.headers


def _take_leads(
    connection: Connection, found: Sequence[FoundLeads], confirmed: Sequence[tuple[str, datetime]], tally: Tally
) -> None:
    if found or confirmed:
        now = max([*(at for _, _, at, _ in found), *(at for _, at in confirmed)])
        orphans = put_leads(connection, found, [url for url, _ in confirmed], now)
        if orphans:
            tally.changes += withdraw(connection, orphans, now)


def _reason(error: Exception) -> str:
    cause = error.orig if isinstance(error, DBAPIError) else error
    return f"{type(cause).__name__}: {str(cause).partition(chr(10))[0][:200]}"
