"""Watched documents, the leads between them, and the append-only log of fetches."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from functools import cache, lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, bindparam, case, func, or_, select, update

from index.documents import DocumentKind, DocumentState, DocumentVisit, FollowedLead, Hop, Outcome
from index.records import RANK_OF_MECHANISM, Lead, Mechanism, Problem, Signer
from index.store.among import among, rows_among
from index.store.engines import chunks, insert_new_rows, insert_rows, update_rows, upsert_rows
from index.store.tables import documents, fetches, key_of, leads, origins, snapshots, storable

# What a document is never changes; the rest follows its state.
_FIXED = ("origin_id", "url", "first_seen_at")
_OF_LISTINGS = ("applied_digest", "held", "entry_count", "signers")
# What only a body changes; two of them are in indexes.
_OF_BODIES = ("digest", "content_digest", "length", "fetched_at", "full_at", "changed_at")
_LOOKED_FOR = frozenset({Mechanism.AGENT_CARD, Mechanism.LEGACY_CARD, Mechanism.SERVER_CARD, Mechanism.KEY_SET})
# A lead that a complete reading lacks this often has been withdrawn.
_WITHDRAWN_AFTER = 2


@lru_cache(maxsize=65_536)
def document_id(url: str) -> int:
    """Compute the key of a watched URL."""
    return key_of("document", url)


@lru_cache(maxsize=65_536)
def origin_id(origin: str) -> int:
    """Compute the key of an origin."""
    return key_of("origin", origin)


def load_states(connection: Connection, names: Sequence[str]) -> dict[str, dict[str, DocumentState]]:
    """Give the known documents of origins, by origin and URL."""
    found: dict[str, dict[str, DocumentState]] = {name: {} for name in names}
    for row in rows_among(connection, _states_of, (origin_id(name) for name in names)):
        state = _state(row)
        found[state.origin][state.url] = state
    return found


def load_state(connection: Connection, url: str) -> DocumentState | None:
    """Give one known document."""
    row = connection.execute(_STATE, {"id": document_id(url)}).first()
    return None if row is None else _state(row)


def _states() -> Select[Any]:
    """Select documents as `_state` reads them; a digest without its stored body counts as none (RFC 9111 4.3.3)."""
    elsewhere = {"origin": origins.c.origin, "digest": snapshots.c.digest, "interval": documents.c.interval_s}
    return (
        select(*(elsewhere[name] if name in elsewhere else documents.c[name] for name in _MEMBERS))
        .select_from(documents)
        .join(origins, origins.c.id == documents.c.origin_id)
        .outerjoin(snapshots, snapshots.c.digest == documents.c.digest)
    )


@cache
def _states_of(dialect: str) -> Select[Any]:
    return _states().where(among(dialect, documents.c.origin_id), documents.c.watched)


_MEMBERS = [member.name for member in fields(DocumentState)]
_READ: dict[str, Callable[[Any], Any]] = {
    "kind": {kind.value: kind for kind in DocumentKind}.__getitem__,
    "mechanism": {mechanism.value: mechanism for mechanism in Mechanism}.__getitem__,
    "ancestors": tuple,
    "outcome": {outcome.value: outcome for outcome in Outcome}.get,
    "hops": lambda hops: tuple(Hop(url, status) for url, status in hops),
    "interval": lambda seconds: None if seconds is None else timedelta(seconds=seconds),
    "signers": lambda signers: tuple(Signer(*named) for named in signers or ()),
}
_PLACES = [(_MEMBERS.index(name), read) for name, read in _READ.items()]
_STATE = _states().where(documents.c.id == bindparam("id"))


def _state(row: Row[Any]) -> DocumentState:
    values = list(row)
    for place, read in _PLACES:
        values[place] = read(values[place])
    return DocumentState(*values)


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
        "hops": [[hop.url, hop.status] for hop in state.hops] if state.hops else [],
        "digest": state.digest,
        "content_digest": state.content_digest,
        "length": state.length,
        "parser_version": state.parser_version,
        "fresh_until": state.fresh_until,
        "next_fetch_at": state.next_fetch_at,
        "interval_s": None if state.interval is None else state.interval.total_seconds(),
        "rate_a": state.rate_a,
        "rate_b": state.rate_b,
        "failures": state.failures,
        "failing_since": state.failing_since,
        "absences": state.absences,
        "absent_since": state.absent_since,
        "applied_digest": state.applied_digest,
        "held": state.held,
        "entry_count": state.entry_count,
        "signers": [[storable(signer.kid), storable(signer.jku), signer.key] for signer in state.signers]
        if state.signers
        else None,
    }


def put_documents(connection: Connection, states: Sequence[DocumentState], applied: Collection[str]) -> None:
    """Insert documents or bring them up to date; their origins are made known first.

    What the listings reflect is renewed for those alone whose reading is `applied` now: of the others it may have been
    taken away since their states were loaded.
    """
    confirmed = [state for state in states if state.outcome is Outcome.NOT_MODIFIED and state.url not in applied]
    _confirm_documents(connection, confirmed)
    states = [state for state in states if state.outcome is not Outcome.NOT_MODIFIED or state.url in applied]
    ensure_origins(connection, {state.origin: state.attempted_at or state.first_seen_at for state in states})
    for never, part in (
        ((), [state for state in states if state.url in applied]),
        (_OF_LISTINGS, [state for state in states if state.url not in applied]),
    ):
        rows = [state_row(state) for state in part if state.mechanism not in _LOOKED_FOR]
        upsert_rows(connection, documents, rows, never=(*_FIXED, *never))
        # What we look for of our own accord stays watched and is the origin's own, whoever pointed to it before.
        rows = [{**state_row(state), "watched": True} for state in part if state.mechanism in _LOOKED_FOR]
        upsert_rows(connection, documents, rows, never=(*_FIXED[1:], *never))


def _confirm_documents(connection: Connection, states: Sequence[DocumentState]) -> None:
    """Bring documents up to date that were found unchanged: they are there, and so are their bodies and origins."""
    kept = ("first_seen_at", "url", *_OF_LISTINGS, *_OF_BODIES)
    rows = [state_row(state) for state in states if state.mechanism not in _LOOKED_FOR]
    update_rows(connection, documents, rows, never=("origin_id", *kept))
    rows = [{**state_row(state), "watched": True} for state in states if state.mechanism in _LOOKED_FOR]
    update_rows(connection, documents, rows, never=kept)


def forgotten_documents(connection: Connection, urls: Iterable[str]) -> set[str]:
    """Name the documents among these that are known and watched no longer."""
    return {url for (url,) in rows_among(connection, _forgotten, (document_id(url) for url in urls))}


@cache
def _forgotten(dialect: str) -> Select[Any]:
    return select(documents.c.url).where(among(dialect, documents.c.id), ~documents.c.watched)


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
    insert_new_rows(connection, origins, rows)


def put_fetches(connection: Connection, visits: Sequence[DocumentVisit]) -> None:
    """Append to the log of fetches."""
    rows = [_fetch_row(visit) for visit in visits]
    insert_rows(connection, fetches, rows)


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
        "hops": [[hop.url, hop.status] for hop in observation.hops] if observation.hops else [],
        "conditional": bool(observation.conditions),
        "headers": dict(visit.state.headers) if observation.outcome is Outcome.FETCHED else {},
        "wire_size": observation.wire_size,
        "digest": visit.state.digest if observation.outcome in (Outcome.FETCHED, Outcome.NOT_MODIFIED) else None,
        "peer": observation.peer,
        "robots": observation.robots,
        "parser_version": visit.state.parser_version,
        "notes": list(visit.notes),
    }


# A document, its leads, when they were seen, and whether these are all it has.
FoundLeads = tuple[str, Sequence[FollowedLead], datetime, bool]


def put_leads(
    connection: Connection, found: Sequence[FoundLeads], confirmed: Sequence[str], now: datetime
) -> list[str]:
    """Take the leads of documents; where these are all of a document, others it had count as missed once more.

    The same goes for what the last reading of a `confirmed` document lacked. What a followed lead points to becomes a
    watched document at once, so that it survives the end of this visit. Gives the URLs of nested catalogs that nothing
    leads to any more.
    """
    rows = [_lead_row(document_id(url), item, at) for url, items, at, _ in found for item in items]
    rows = list({row["id"]: row for row in rows}.values())
    upsert_rows(connection, leads, rows, never=("document_id", "url", "mechanism", "first_seen_at"))
    _watch_targets(connection, [(item, at) for _, items, at, _ in found for item in items if item.owner is not None])
    seen = {row["id"] for row in rows}
    missing = _held_leads(connection, [url for url, _, _, complete in found if complete], _leads_of)
    missing += _held_leads(connection, confirmed, _missed_leads_of)
    return _miss(connection, [row for row in missing if row.id not in seen], now)


def _held_leads(connection: Connection, urls: Sequence[str], build: Callable[[str], Select[Any]]) -> list[Row[Any]]:
    return list(rows_among(connection, build, (document_id(url) for url in urls)))


@cache
def _leads_of(dialect: str) -> Select[Any]:
    columns = (leads.c.id, leads.c.missed, leads.c.url, leads.c.mechanism)
    return select(*columns).where(among(dialect, leads.c.document_id), leads.c.withdrawn_at.is_(None))


@cache
def _missed_leads_of(dialect: str) -> Select[Any]:
    return _leads_of(dialect).where(leads.c.missed > 0)


def _miss(connection: Connection, missing: Sequence[Row[Any]], now: datetime) -> list[str]:
    """Count leads that complete readings lack; what was missed often enough is withdrawn."""
    for chunk in chunks(row.id for row in missing):
        connection.execute(update(leads).where(leads.c.id.in_(chunk)).values(missed=leads.c.missed + 1))
    gone = [row for row in missing if row.missed + 1 >= _WITHDRAWN_AFTER]
    for chunk in chunks(row.id for row in gone):
        connection.execute(update(leads).where(leads.c.id.in_(chunk)).values(withdrawn_at=now))
    return _orphans(connection, [row.url for row in gone if row.mechanism == Mechanism.NESTED])


def withdraw_leads(connection: Connection, urls: Sequence[str], now: datetime) -> list[str]:
    """Withdraw the catalogs that documents nest which are gone themselves; gives those that nothing leads to now."""
    nested: list[str] = []
    for chunk in chunks(document_id(url) for url in urls):
        mine = leads.c.document_id.in_(chunk) & leads.c.withdrawn_at.is_(None) & (leads.c.mechanism == Mechanism.NESTED)
        nested += connection.execute(select(leads.c.url).where(mine)).scalars()
        connection.execute(update(leads).where(mine).values(withdrawn_at=now))
    return _orphans(connection, nested)


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


def _watch_targets(connection: Connection, targets: Sequence[tuple[FollowedLead, datetime]]) -> None:
    """Make documents of what leads point to; an origin with a document that was never looked at is due."""
    if not targets:
        return
    owners = {item.owner: at for item, at in targets if item.owner is not None}
    ensure_origins(connection, owners)
    insert_new_rows(
        connection, documents, [state_row(_new_target(item.lead, item.owner or "", at)) for item, at in targets]
    )
    now = max(owners.values())
    for chunk in chunks(document_id(item.lead.url) for item, _ in targets):
        again = documents.c.id.in_(chunk) & ~documents.c.watched
        connection.execute(update(documents).where(again).values(watched=True, next_fetch_at=None))
    _turn_into_catalogs(connection, {document_id(item.lead.url): item.lead for item, _ in targets})
    for chunk in chunks(origin_id(owner) for owner in owners):
        unseen = (
            (documents.c.origin_id == origins.c.id)
            & (documents.c.kind == DocumentKind.MANIFEST)
            & documents.c.next_fetch_at.is_(None)
            & documents.c.watched
        )
        waiting = or_(origins.c.next_visit_at.is_(None), origins.c.next_visit_at > now)
        due = origins.c.id.in_(chunk) & waiting & select(documents.c.id).where(unseen).exists()
        connection.execute(update(origins).where(due).values(active=True, next_visit_at=soonest(now)))


def _turn_into_catalogs(connection: Connection, wanted: Mapping[int, Lead]) -> None:
    """Read as catalogs what was only taken for cards because entries name it."""
    named = (documents.c.kind == DocumentKind.ARTIFACT) & (documents.c.mechanism == Mechanism.ENTRY)
    for chunk in chunks(wanted):
        keys = connection.execute(select(documents.c.id).where(documents.c.id.in_(chunk), named)).scalars().all()
        rows = [
            {
                "id": key,
                "kind": DocumentKind.MANIFEST,
                "mechanism": wanted[key].mechanism,
                "rank": wanted[key].rank,
                "depth": wanted[key].depth,
                "ancestors": list(wanted[key].ancestors),
                "next_fetch_at": None,
            }
            for key in keys
        ]
        update_rows(connection, documents, rows)


def soonest(now: datetime) -> ColumnElement[datetime]:
    """Say when an origin may be visited at the earliest: at once, or when it no longer wants to be left alone."""
    return case((origins.c.not_before > now, origins.c.not_before), else_=now)


def decided_leads(connection: Connection) -> list[Row[Any]]:
    """Give what was decided about the leads of watched documents, each with its document and the origin it is on."""
    query: Select[Any] = (
        select(leads.c.document_id, leads.c.url, leads.c.decision, origins.c.origin)
        .join(documents, documents.c.id == leads.c.document_id)
        .join(origins, origins.c.id == documents.c.origin_id)
        .where(leads.c.withdrawn_at.is_(None), documents.c.watched, origins.c.active)
    )
    return list(connection.execute(query))


def read_again(connection: Connection, keys: Iterable[int], now: datetime) -> None:
    """Have documents read again at once, whether they changed or not."""
    for chunk in chunks(keys):
        mine = documents.c.id.in_(chunk)
        connection.execute(update(documents).where(mine).values(applied_digest=None, next_fetch_at=None))
        owners = select(documents.c.origin_id).where(mine)
        late = origins.c.id.in_(owners) & origins.c.active & (origins.c.next_visit_at > now)
        connection.execute(update(origins).where(late).values(next_visit_at=soonest(now)))


def new_target(url: str, owner: str, now: datetime, kind: DocumentKind, mechanism: Mechanism) -> DocumentState:
    """Make the state of a document that is known and was never looked at."""
    return DocumentState(url, owner, kind, first_seen_at=now, mechanism=mechanism, rank=RANK_OF_MECHANISM[mechanism])


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
    """Name the nested catalogs, of these and those below them, that nothing leads to any more.

    Catalogs that only lead to one another are orphans too. What was found by itself, or by a hint, is none.
    """
    below: dict[int, str] = {}
    level = list(urls)
    while level:
        found = _nested_documents(connection, level)
        level = [url for url in _nested_in(connection, found) if document_id(url) not in below and url not in level]
        below.update(found)
    leading: dict[int, set[int]] = {}
    for chunk in chunks(below.values()):
        query = select(leads.c.document_id, leads.c.url).where(leads.c.url.in_(chunk), leads.c.withdrawn_at.is_(None))
        for row in connection.execute(query):
            leading.setdefault(row.document_id, set()).add(document_id(row.url))
    reached = [key for source, targets in leading.items() if source not in below for key in targets]
    alive: set[int] = set()
    while reached:
        key = reached.pop()
        if key not in alive:
            alive.add(key)
            reached.extend(leading.get(key, ()))
    return [url for key, url in below.items() if key not in alive]


def _nested_documents(connection: Connection, urls: Sequence[str]) -> dict[int, str]:
    found: dict[int, str] = {}
    for chunk in chunks(document_id(url) for url in urls):
        nested = documents.c.id.in_(chunk) & documents.c.watched & (documents.c.mechanism == Mechanism.NESTED)
        found.update(
            (row.id, row.url) for row in connection.execute(select(documents.c.id, documents.c.url).where(nested))
        )
    return found


def _nested_in(connection: Connection, keys: Iterable[int]) -> list[str]:
    found: list[str] = []
    for chunk in chunks(keys):
        mine = leads.c.document_id.in_(chunk) & leads.c.withdrawn_at.is_(None) & (leads.c.mechanism == Mechanism.NESTED)
        found += connection.execute(select(leads.c.url).where(mine)).scalars()
    return found


def forget_documents(connection: Connection, urls: Sequence[str], now: datetime) -> None:
    """Stop looking at documents and at what they lead to; what they brought stays in the log."""
    for chunk in chunks(document_id(url) for url in urls):
        connection.execute(update(documents).where(documents.c.id.in_(chunk)).values(watched=False))
        led = leads.c.document_id.in_(chunk) & leads.c.withdrawn_at.is_(None)
        connection.execute(update(leads).where(led).values(withdrawn_at=now))


def next_look_at(connection: Connection, origin: str) -> datetime | None:
    """Give the time of the earliest look that the documents of an origin are waiting for."""
    statement = select(func.min(documents.c.next_fetch_at)).where(
        documents.c.origin_id == origin_id(origin), documents.c.watched
    )
    found: datetime | None = connection.execute(statement).scalar_one()
    return found


def put_document_problems(connection: Connection, found: Sequence[tuple[str, Sequence[Problem]]]) -> None:
    """Keep the faults of documents as a whole, from their last readings."""
    rows = [{"id": document_id(url), "problems": [problem_row(item) for item in problems]} for url, problems in found]
    update_rows(connection, documents, rows)


def problem_row(problem: Problem) -> dict[str, str]:
    """Lay out a problem as JSON."""
    return {
        "code": problem.code,
        "severity": problem.severity,
        "pointer": storable(problem.pointer),
        "message": storable(problem.message),
        "clause": problem.clause,
    }
