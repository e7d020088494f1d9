"""The due-queue: which origin is visited next, and by whom.

A claimed origin is a leased row. The lease ends by itself, so a worker that died loses it; the fence number makes a
worker that was only slow unable to settle what somebody else has claimed since.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Connection,
    Integer,
    Row,
    Select,
    Update,
    and_,
    bindparam,
    case,
    func,
    literal_column,
    null,
    or_,
    select,
    update,
)
from sqlalchemy.sql.dml import ReturningUpdate

from index.documents import DocumentKind, DocumentState
from index.store.among import among, key_list, rows_among
from index.store.artifacts import hand_over_artifacts
from index.store.documents import load_states, origin_id, read_again, soonest
from index.store.engines import change_rows, chunks, upsert_rows
from index.store.entries import take_away
from index.store.tables import documents, listings, origins, storable_json

_ROBOTS_LIFE = timedelta(days=1)
_CLAIMED = ("origin", "managed_by", "options", "fence", "madp", "slowdown", "slow_until", "not_before")


@dataclass(frozen=True, slots=True)
class Hold:
    """Proof of a claim: the origin and the number that the claim had."""

    origin: str
    fence: int


@dataclass(frozen=True, slots=True)
class Slowdown:
    """How many times longer the pauses at an origin are that answered 429, and until when."""

    factor: float
    until: datetime


@dataclass(frozen=True, slots=True)
class Claim:
    """An origin that is ours to visit until the lease ends, with its known documents by URL.

    `managed_by` says who wants it visited, `rest` until when it wanted to be left alone, be it past.
    """

    origin: str
    managed_by: str
    options: Mapping[str, Any]
    fence: int
    until: datetime
    states: Mapping[str, DocumentState]
    madp: Mapping[str, Any] | None = None
    slowdown: Slowdown | None = None
    rest: datetime | None = None

    @property
    def hold(self) -> Hold:
        return Hold(self.origin, self.fence)


@dataclass(frozen=True, slots=True)
class Settlement:
    """The end of a visit; a `silent` origin stopped answering on the way.

    `slowdowns` are those of any origin that this process came to know of, `rests` until when other origins want to be
    left alone. `known_rest` is that of the claim: another one was noted by the visit of somebody else, and outlasts a
    sooner one.
    """

    origin: str
    fence: int
    at: datetime
    outcome: str
    robots: str
    failed: bool
    next_visit_at: datetime
    not_before: datetime | None = None
    madp: Mapping[str, Any] | None = None
    silent: bool = False
    slowdowns: Mapping[str, Slowdown] = field(default_factory=dict)
    rests: Mapping[str, datetime] = field(default_factory=dict)
    known_rest: datetime | None = None


def put_origins(
    connection: Connection, managed_by: str, wanted: Mapping[str, Mapping[str, Any]], now: datetime
) -> None:
    """Add origins to the allowlist, or change their options; new ones are due at once."""
    rows = [
        {
            "id": origin_id(origin),
            "origin": origin,
            "managed_by": managed_by,
            "active": True,
            "options": dict(options),
            "added_at": now,
            "next_visit_at": now,
        }
        for origin, options in wanted.items()
    ]
    _read_with_other_surfaces(connection, wanted, now)
    upsert_rows(connection, origins, rows, only=("managed_by", "active", "options"))
    fresh = origins.c.next_visit_at.is_(None) & origins.c.active
    connection.execute(update(origins).where(fresh).values(next_visit_at=now))


def _read_with_other_surfaces(connection: Connection, wanted: Mapping[str, Mapping[str, Any]], now: datetime) -> None:
    """Have documents read again whose entries point to cards of a surface that is switched on or off now."""
    for chunk in chunks(origin_id(origin) for origin in wanted):
        known = connection.execute(
            select(origins.c.id, origins.c.origin, origins.c.options).where(origins.c.id.in_(chunk))
        )
        changed = [row.id for row in known if row.options.get("surfaces") != wanted[row.origin].get("surfaces")]
        offering = documents.c.origin_id.in_(changed) & (documents.c.entry_count > 0)
        read_again(connection, connection.execute(select(documents.c.id).where(offering)).scalars().all(), now)


def managed_origins(connection: Connection, managed_by: str) -> dict[str, Mapping[str, Any]]:
    """Give the active origins of one kind with their options."""
    query = select(origins.c.origin, origins.c.options).where(origins.c.managed_by == managed_by, origins.c.active)
    return {row.origin: row.options for row in connection.execute(query)}


def remove_origins(connection: Connection, names: Sequence[str], now: datetime) -> int:
    """Take origins off the allowlist and their entries out of the index; gives the number of changes.

    What is known of their documents stays, for the operator may take them up again.
    """
    urls: list[str] = []
    hand_over_artifacts(connection, [origin_id(name) for name in names], now)
    for chunk in chunks(origin_id(name) for name in names):
        # The new fence ends visits under way: what they still bring is no longer wanted.
        connection.execute(
            update(origins)
            .where(origins.c.id.in_(chunk))
            .values(
                active=False,
                next_visit_at=None,
                managed_by="lead",
                claimed_by=None,
                claimed_until=None,
                fence=origins.c.fence + 1,
            )
        )
        mine = documents.c.origin_id.in_(chunk)
        connection.execute(update(documents).where(mine).values(next_fetch_at=None))
        urls += connection.execute(select(documents.c.url).where(mine)).scalars()
    return take_away(connection, urls, now, "origin_removed")


def claim_due(
    connection: Connection,
    worker: str,
    now: datetime,
    lease: timedelta,
    limit: int,
    only: Sequence[str] | None = None,
    *,
    held: Sequence[Claim] = (),
) -> list[Claim]:
    """Claim up to `limit` due origins, the longest due first; `only` names origins to claim whether due or not.

    What the worker `held` before is prolonged first, so that it isn't taken for free.
    """
    renew_claims(connection, held, now + lease)
    until = now + lease
    values: dict[str, Any] = {"worker": worker, "now": now, "until": until, "most": limit}
    if only is not None:
        values["keys"] = key_list(connection, [origin_id(name) for name in only])
    rows = connection.execute(_claiming(connection.dialect.name, named=only is not None), values).all()
    states = load_states(connection, [row.origin for row in rows])
    return [
        Claim(
            row.origin,
            row.managed_by,
            row.options,
            row.fence,
            until,
            states[row.origin],
            row.madp,
            _slowdown(row, now),
            row.not_before,
        )
        for row in rows
    ]


@cache
def _claiming(dialect: str, *, named: bool) -> ReturningUpdate[Any]:
    now = bindparam("now", type_=origins.c.claimed_at.type)
    free = or_(origins.c.claimed_until.is_(None), origins.c.claimed_until <= now)
    patient = or_(origins.c.not_before.is_(None), origins.c.not_before <= now)
    due = and_(origins.c.active, free, origins.c.next_visit_at <= now, patient)
    if named:
        due = and_(among(dialect, origins.c.id), free)
    most = bindparam("most", type_=Integer())
    ids = select(origins.c.id).where(due).order_by(origins.c.next_visit_at, origins.c.id).limit(most)
    if dialect == "postgresql":
        ids = ids.with_for_update(skip_locked=True)
    claim = {
        "claimed_by": bindparam("worker"),
        "claimed_at": now,
        "claimed_until": bindparam("until"),
        "fence": origins.c.fence + 1,
    }
    returned = (origins.c[name] for name in _CLAIMED)
    return update(origins).where(origins.c.id.in_(ids)).values(claim).returning(*returned)


def _slowdown(row: Row[Any], now: datetime) -> Slowdown | None:
    return None if row.slow_until is None or row.slow_until <= now else Slowdown(row.slowdown, row.slow_until)


def _put_slowdowns(connection: Connection, slowdowns: Mapping[str, Slowdown]) -> None:
    """Keep the milder pace of origins; of two that learnt of it, who has to be patient for longer is right."""
    for origin, slow in slowdowns.items():
        shorter = or_(origins.c.slow_until.is_(None), origins.c.slow_until < slow.until)
        row = (origins.c.id == origin_id(origin)) & shorter
        connection.execute(update(origins).where(row).values(slowdown=slow.factor, slow_until=slow.until))


def _put_rests(connection: Connection, rests: Mapping[str, datetime]) -> None:
    for origin, until in rests.items():
        sooner = or_(origins.c.not_before.is_(None), origins.c.not_before < until)
        row = (origins.c.id == origin_id(origin)) & sooner
        connection.execute(update(origins).where(row).values(not_before=until))


def load_rest(connection: Connection, name: str) -> datetime | None:
    """Give the time until which an origin asked to be left alone, be it past."""
    until: datetime | None = connection.execute(
        select(origins.c.not_before).where(origins.c.id == origin_id(name))
    ).scalar()
    return until


def lost_holds(connection: Connection, holds: Collection[Hold]) -> set[Hold]:
    """Name the claims among these that somebody else has taken over, or that ended with their origin."""
    found = rows_among(connection, _fences, (origin_id(hold.origin) for hold in holds))
    current = dict(found)
    return {hold for hold in holds if current.get(hold.origin) != hold.fence}


@cache
def _fences(dialect: str) -> Select[Any]:
    return select(origins.c.origin, origins.c.fence).where(among(dialect, origins.c.id))


def resting_origins(connection: Connection, names: Sequence[str], now: datetime) -> set[str]:
    """Name the origins among these that asked not to be visited before a time that is still to come."""
    asleep: set[str] = set()
    for chunk in chunks(origin_id(name) for name in names):
        query = select(origins.c.origin).where(origins.c.id.in_(chunk), origins.c.not_before > now)
        asleep.update(connection.execute(query).scalars())
    return asleep


def renew_claims(connection: Connection, claims: Sequence[Claim], until: datetime) -> None:
    """Prolong leases that are still ours; a claim that was settled meanwhile has its fence but no holder."""
    held = and_(origins.c.fence == bindparam("held"), origins.c.claimed_by.is_not(None))
    mine = and_(origins.c.id == bindparam("key"), held)
    if claims:
        connection.execute(
            update(origins).where(mine).values(claimed_until=until),
            [{"key": origin_id(claim.origin), "held": claim.fence} for claim in claims],
        )


def release_claims(connection: Connection, claims: Sequence[Claim]) -> None:
    """Give claims back unsettled: the origins stay due."""
    mine = and_(origins.c.id == bindparam("key"), origins.c.fence == bindparam("held"))
    if claims:
        connection.execute(
            update(origins).where(mine).values(claimed_by=None, claimed_until=None),
            [{"key": origin_id(claim.origin), "held": claim.fence} for claim in claims],
        )


def break_claims(connection: Connection, workers: Sequence[str]) -> int:
    """Free what workers held that are known to be dead; gives the number of origins."""
    freed = 0
    for chunk in chunks(workers):
        result = connection.execute(
            update(origins).where(origins.c.claimed_by.in_(chunk)).values(claimed_by=None, claimed_until=None)
        )
        freed += result.rowcount
    return freed


def claiming_workers(connection: Connection) -> list[str]:
    """Name the workers that hold claims."""
    query = select(origins.c.claimed_by).where(origins.c.claimed_by.is_not(None)).distinct()
    return list(connection.execute(query).scalars())


_SETTLED = ("last_visit_at", "last_outcome", "robots", "next_visit_at", "not_before")
_SETTLEMENT = {
    **{name: origins.c[name].type for name in ("id", "fence", *_SETTLED)},
    "failed": Boolean(),
    "known_rest": origins.c.not_before.type,
}


def _settle(given: Callable[[str], ColumnElement[Any]]) -> Update:
    none: ColumnElement[int] = literal_column("0")
    one: ColumnElement[int] = literal_column("1")
    is_news = origins.c.not_before.is_distinct_from(given("known_rest"))
    is_later = or_(given("not_before").is_(None), given("not_before") < origins.c.not_before)
    return (
        update(origins)
        .where(origins.c.id == given("id"), origins.c.fence == given("fence"))
        .values({name: given(name) for name in _SETTLED if name != "not_before"})
        .values(
            not_before=case((is_news & is_later, origins.c.not_before), else_=given("not_before")),
            claimed_by=null(),
            claimed_until=null(),
            visits=origins.c.visits + one,
            failures=case((given("failed"), origins.c.failures + one), else_=none),
        )
    )


def settle_origins(connection: Connection, settlements: Sequence[Settlement]) -> None:
    """End visits; a settlement whose fence has passed to somebody else changes nothing."""
    rows = [
        {
            "id": origin_id(item.origin),
            "fence": item.fence,
            "last_visit_at": item.at,
            "last_outcome": item.outcome,
            "robots": item.robots,
            "failed": item.failed,
            "next_visit_at": item.next_visit_at,
            "not_before": item.not_before,
            "known_rest": item.known_rest,
        }
        for item in settlements
    ]
    change_rows(connection, ("settle",), origins, _SETTLEMENT, rows, _settle, key="id")
    for item in settlements:
        _put_slowdowns(connection, item.slowdowns)
        _put_rests(connection, item.rests)
        if item.madp is not None:
            held = (origins.c.id == origin_id(item.origin)) & (origins.c.fence == item.fence)
            connection.execute(update(origins).where(held).values(madp=storable_json(item.madp)))
    # What other visits found on the origin meanwhile was never looked at, so it is due again.
    ended = [origin_id(item.origin) for item in settlements if not (item.failed or item.silent)]
    for waiting in chunks(key for (key,) in rows_among(connection, _unseen, ended)):
        due = origins.c.id.in_(waiting) & origins.c.active
        connection.execute(update(origins).where(due).values(next_visit_at=soonest(settlements[-1].at)))


@cache
def _unseen(dialect: str) -> Select[Any]:
    mine = among(dialect, documents.c.origin_id) & documents.c.attempted_at.is_(None) & documents.c.watched
    return select(documents.c.origin_id).where(mine).distinct()


def next_due_at(connection: Connection) -> datetime | None:
    """Give the time at which the next origin is due."""
    found: datetime | None = connection.execute(
        select(func.min(origins.c.next_visit_at)).where(origins.c.active, origins.c.next_visit_at.is_not(None))
    ).scalar_one()
    return found


def looks_ahead(connection: Connection, after: datetime, until: datetime) -> tuple[int, int]:
    """Count the looks that fall due in a time, and the documents there are.

    What is overdue does not count: an origin that wants long pauses would have all others wait for it.
    """

    def within(at: ColumnElement[datetime], before: timedelta = timedelta(0)) -> ColumnElement[bool]:
        return (at > after - before) & (at <= until - before)

    # robots.txt has no schedule: it is asked for when its copy is stale, or what is known of it is a day old.
    unstated = documents.c.fresh_until.is_(None) & within(documents.c.attempted_at, _ROBOTS_LIFE)
    stale = (documents.c.kind == DocumentKind.ROBOTS) & or_(within(documents.c.fresh_until), unstated)
    due = or_(within(documents.c.next_fetch_at), stale)
    counted = (
        select(func.count())
        .select_from(documents.join(origins, origins.c.id == documents.c.origin_id))
        .where(due, documents.c.watched, origins.c.active)
    )
    total = connection.execute(select(func.count()).select_from(documents)).scalar_one()
    return connection.execute(counted).scalar_one(), total


def latest_intervals(connection: Connection, limit: int = 200) -> list[Row[Any]]:
    """Give the intervals that were chosen last, with what they were chosen by."""
    columns = ("kind", "entry_count", "interval_s", "rate_a", "rate_b")
    query: Select[Any] = (
        select(*(documents.c[name] for name in columns))
        .where(documents.c.rate_a.is_not(None), documents.c.interval_s.is_not(None), documents.c.watched)
        .order_by(documents.c.confirmed_at.desc())
        .limit(limit)
    )
    return list(connection.execute(query))


def list_origins(connection: Connection) -> Sequence[Row[Any]]:
    """Give every known origin with the number of its documents and listings."""
    return connection.execute(counted_origins()).all()


def counted_origins() -> Select[Any]:
    """Select origins by name, with the number of their documents and listings."""
    documents_of = (
        select(func.count()).where(documents.c.origin_id == origins.c.id).correlate(origins).scalar_subquery()
    )
    # As a condition, SQLite would go through all listings that are not removed, and once more for each origin.
    listings_of = (
        select(func.count().filter(listings.c.removed_at.is_(None)))
        .select_from(listings.join(documents, documents.c.id == listings.c.document_id))
        .where(documents.c.origin_id == origins.c.id)
        .correlate(origins)
        .scalar_subquery()
    )
    return select(origins, documents_of.label("documents"), listings_of.label("listings")).order_by(origins.c.origin)
