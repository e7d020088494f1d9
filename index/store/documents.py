"""Watched documents, the leads between them, and the append-only log of fetches."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, func, insert, select, update

from index.documents import DocumentKind, DocumentState, DocumentVisit, FollowedLead, Hop, Outcome
from index.records import Lead, Mechanism, Problem
from index.store.engines import chunks, insert_ignore, upsert
from index.store.tables import documents, fetches, key_of, leads, origins, snapshots, storable

_STATE_COLUMNS = tuple(
    column.name for column in documents.c if column.name not in ("id", "first_seen_at", "problems", "watched")
)
_INSERTED = frozenset({"origin_id", "url", "kind"})
_UPDATED = tuple(name for name in _STATE_COLUMNS if name not in _INSERTED)
# A lead that a complete reading lacks this often has been withdrawn.
_WITHDRAWN_AFTER = 2


def document_id(url: str) -> int:
    """Compute the key of a watched URL."""
    return key_of("document", url)


def origin_id(origin: str) -> int:
    """Compute the key of an origin."""
    return key_of("origin", origin)


def load_states(connection: Connection, origin: str) -> dict[str, DocumentState]:
    """Give the known documents of an origin by URL."""
    mine = (documents.c.origin_id == origin_id(origin)) & documents.c.watched
    rows = connection.execute(_states().where(mine))
    return {row.url: _state(row) for row in rows}


def load_state(connection: Connection, url: str) -> DocumentState | None:
    """Give one known document."""
    row = connection.execute(_states().where(documents.c.id == document_id(url))).first()
    return None if row is None else _state(row)


def _states() -> Select[Any]:
    """Select documents with their origin; a digest without its stored body counts as none (RFC 9111 4.3.3)."""
    return (
        select(documents, origins.c.origin, snapshots.c.digest.label("stored"))
        .join(origins, origins.c.id == documents.c.origin_id)
        .outerjoin(snapshots, snapshots.c.digest == documents.c.digest)
    )


def _state(row: Row[Any]) -> DocumentState:
    return DocumentState(
        url=row.url,
        origin=row.origin,
        kind=DocumentKind(row.kind),
        first_seen_at=row.first_seen_at,
        mechanism=Mechanism(row.mechanism),
        rank=row.rank,
        depth=row.depth,
        ancestors=tuple(row.ancestors),
        outcome=Outcome(row.outcome) if row.outcome else None,
        reason=row.reason,
        detail=row.detail,
        status=row.status,
        attempted_at=row.attempted_at,
        fetched_at=row.fetched_at,
        confirmed_at=row.confirmed_at,
        changed_at=row.changed_at,
        full_at=row.full_at,
        not_modified_streak=row.not_modified_streak,
        ineffective_streak=row.ineffective_streak,
        distrust_until=row.distrust_until,
        headers=row.headers,
        final_url=row.final_url,
        hops=tuple(Hop(url, status) for url, status in row.hops),
        digest=row.digest if row.stored else None,
        content_digest=row.content_digest if row.stored else None,
        length=row.length,
        parser_version=row.parser_version,
        fresh_until=row.fresh_until,
        next_fetch_at=row.next_fetch_at,
        interval=None if row.interval_s is None else timedelta(seconds=row.interval_s),
        failures=row.failures,
        failing_since=row.failing_since,
        absences=row.absences,
        absent_since=row.absent_since,
        applied_digest=row.applied_digest if row.stored else None,
        held=row.held,
        entry_count=row.entry_count,
    )


def state_row(state: DocumentState) -> dict[str, Any]:
    """Lay out a document as its row."""
    return {
        "id": document_id(state.url),
        "origin_id": origin_id(state.origin),
        "url": state.url,
        "kind": state.kind,
        "mechanism": state.mechanism,
        "rank": state.rank,
        "depth": state.depth,
        "ancestors": list(state.ancestors),
        "first_seen_at": state.first_seen_at,
        "outcome": state.outcome,
        "reason": state.reason,
        "detail": storable(state.detail),
        "status": state.status,
        "attempted_at": state.attempted_at,
        "fetched_at": state.fetched_at,
        "confirmed_at": state.confirmed_at,
        "changed_at": state.changed_at,
        "full_at": state.full_at,
        "not_modified_streak": state.not_modified_streak,
        "ineffective_streak": state.ineffective_streak,
        "distrust_until": state.distrust_until,
        "headers": dict(state.headers),
        "final_url": storable(state.final_url),
        "hops": [[hop.url, hop.status] for hop in state.hops],
        "digest": state.digest,
        "content_digest": state.content_digest,
        "length": state.length,
        "parser_version": state.parser_version,
        "fresh_until": state.fresh_until,
        "next_fetch_at": state.next_fetch_at,
        "interval_s": None if state.interval is None else state.interval.total_seconds(),
        "failures": state.failures,
        "failing_since": state.failing_since,
        "absences": state.absences,
        "absent_since": state.absent_since,
        "applied_digest": state.applied_digest,
        "held": state.held,
        "entry_count": state.entry_count,
    }


def put_documents(connection: Connection, states: Sequence[DocumentState]) -> None:
    """Insert documents or bring them up to date; their origins are made known first."""
    if not states:
        return
    ensure_origins(connection, {state.origin: state.attempted_at or state.first_seen_at for state in states})
    connection.execute(upsert(connection, documents, ["id"], _UPDATED), [state_row(state) for state in states])


def ensure_origins(connection: Connection, named: dict[str, datetime]) -> None:
    """Make origins known that are only written about so far; they are not visited on their own."""
    rows = [
        {
            "id": origin_id(origin),
            "origin": origin,
            "managed_by": "lead",
            "active": False,
            "options": {},
            "added_at": now,
        }
        for origin, now in named.items()
    ]
    if rows:
        connection.execute(insert_ignore(connection, origins), rows)


def put_fetches(connection: Connection, visits: Sequence[DocumentVisit]) -> None:
    """Append to the log of fetches."""
    if visits:
        connection.execute(insert(fetches), [_fetch_row(visit) for visit in visits])


def _fetch_row(visit: DocumentVisit) -> dict[str, Any]:
    observation = visit.observation
    return {
        "document_id": document_id(visit.state.url),
        "request_at": observation.request_at,
        "response_at": observation.response_at,
        "outcome": observation.outcome,
        "reason": observation.reason,
        "detail": storable(observation.detail),
        "status": observation.status,
        "final_url": storable(observation.final_url),
        "hops": [[hop.url, hop.status] for hop in observation.hops],
        "conditional": bool(observation.conditions),
        "headers": dict(visit.state.headers) if observation.outcome is Outcome.FETCHED else {},
        "wire_size": observation.wire_size,
        "digest": visit.state.digest if observation.outcome in (Outcome.FETCHED, Outcome.NOT_MODIFIED) else None,
        "peer": observation.peer,
        "robots": observation.robots,
        "parser_version": visit.state.parser_version,
        "notes": list(visit.notes),
    }


def put_leads(
    connection: Connection, url: str, found: Iterable[FollowedLead], now: datetime, *, complete: bool
) -> list[str]:
    """Take the leads of a document; with `complete`, leads it no longer has count as missed once more.

    What a followed lead points to becomes a watched document at once, so that it survives the end of this visit. Gives
    the URLs of nested catalogs whose last lead has been withdrawn.
    """
    source = document_id(url)
    followed = list(found)
    rows = [_lead_row(source, item, now) for item in followed]
    if rows:
        updated = ("media_type", "pointer", "decision", "last_seen_at", "withdrawn_at", "missed")
        connection.execute(upsert(connection, leads, ["id"], updated), rows)
        _watch_targets(connection, followed, now)
    if not complete:
        return []
    seen = {row["id"] for row in rows}
    held = connection.execute(
        select(leads.c.id, leads.c.missed, leads.c.url, leads.c.mechanism).where(
            leads.c.document_id == source, leads.c.withdrawn_at.is_(None)
        )
    ).all()
    missing = [row for row in held if row.id not in seen]
    if not missing:
        return []
    gone = [row for row in missing if row.missed + 1 >= _WITHDRAWN_AFTER]
    ids = [row.id for row in missing]
    connection.execute(update(leads).where(leads.c.id.in_(ids)).values(missed=leads.c.missed + 1))
    if gone:
        connection.execute(update(leads).where(leads.c.id.in_([row.id for row in gone])).values(withdrawn_at=now))
    return _orphans(connection, [row.url for row in gone if row.mechanism == Mechanism.NESTED])


def _lead_row(source: int, item: FollowedLead, now: datetime) -> dict[str, Any]:
    lead = item.lead
    return {
        "id": key_of("lead", str(source), lead.mechanism, lead.url),
        "document_id": source,
        "url": storable(lead.url),
        "mechanism": lead.mechanism,
        "media_type": storable(lead.media_type) if lead.media_type else None,
        "pointer": storable(lead.pointer),
        "decision": item.decision,
        "first_seen_at": now,
        "last_seen_at": now,
        "withdrawn_at": None,
        "missed": 0,
    }


def _watch_targets(connection: Connection, followed: Sequence[FollowedLead], now: datetime) -> None:
    targets = [item for item in followed if item.owner is not None]
    if not targets:
        return
    owners = {item.owner: now for item in targets if item.owner is not None}
    ensure_origins(connection, owners)
    rows = [state_row(_new_target(item.lead, item.owner or "", now)) for item in targets]
    connection.execute(insert_ignore(connection, documents), rows)
    again = documents.c.id.in_([row["id"] for row in rows]) & ~documents.c.watched
    connection.execute(update(documents).where(again).values(watched=True, next_fetch_at=now))
    # An origin that only leads name becomes due when one does.
    connection.execute(
        update(origins)
        .where(
            origins.c.id == bindparam("owner_id"),
            origins.c.next_visit_at.is_(None),
            origins.c.claimed_until.is_(None),
        )
        .values(active=True, next_visit_at=now),
        [{"owner_id": origin_id(owner)} for owner in owners],
    )


def _new_target(lead: Lead, owner: str, now: datetime) -> DocumentState:
    return DocumentState(
        url=lead.url,
        origin=owner,
        kind=DocumentKind.MANIFEST,
        first_seen_at=now,
        mechanism=lead.mechanism,
        rank=lead.rank,
        depth=lead.depth,
        ancestors=lead.ancestors,
    )


def _orphans(connection: Connection, urls: Sequence[str]) -> list[str]:
    """Name the nested catalogs that no lead points to any more."""
    orphans: list[str] = []
    for chunk in chunks(urls):
        led = select(leads.c.url).where(leads.c.url.in_(chunk), leads.c.withdrawn_at.is_(None))
        alive = set(connection.execute(led).scalars())
        orphans.extend(url for url in chunk if url not in alive)
    return orphans


def forget_documents(connection: Connection, urls: Sequence[str]) -> None:
    """Stop looking at documents; what they brought stays in the log."""
    for chunk in chunks(document_id(url) for url in urls):
        connection.execute(
            update(documents).where(documents.c.id.in_(chunk)).values(watched=False, applied_digest=None)
        )


def next_look_at(connection: Connection, origin: str) -> datetime | None:
    """Give the time of the earliest look that the documents of an origin are waiting for."""
    statement = select(func.min(documents.c.next_fetch_at)).where(
        documents.c.origin_id == origin_id(origin), documents.c.watched
    )
    found: datetime | None = connection.execute(statement).scalar_one()
    return found


def put_document_problems(connection: Connection, url: str, problems: Sequence[Problem]) -> None:
    """Keep the faults of a document as a whole, from its last reading."""
    statement = update(documents).where(documents.c.id == document_id(url))
    connection.execute(statement.values(problems=[problem_row(problem) for problem in problems]))


def problem_row(problem: Problem) -> dict[str, str]:
    """Lay out a problem as JSON."""
    return {
        "code": problem.code,
        "severity": problem.severity,
        "pointer": storable(problem.pointer),
        "message": storable(problem.message),
        "clause": problem.clause,
    }
