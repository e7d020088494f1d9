"""How the store is doing, in numbers: for `/metrics`, where each is one bounded statement, and for `ardvark status`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, case, func, or_, select, text

from index.edits import ChangeClass
from index.metrics import Sample
from index.store.changes import last_cursor
from index.store.search import entry_count
from index.store.tables import documents, drifts, facts, fetches, origins, snapshots

ORIGIN_STATES = ("unvisited", "resting", "done", "failed", "crashed", "inactive")
# Upper ends of the classes of intervals, in seconds.
CADENCE = (("5m", 300), ("15m", 900), ("1h", 3600), ("6h", 21_600), ("1d", 86_400), ("7d", 604_800))
_BEYOND = "longer"
_NEWEST_FETCHES = 20_000
_FETCHES_OF_ORIGIN = 100
_SLOWEST = 10


# --- in one statement each --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Backlog:
    """The origins that are due and free, and since when the first of them is."""

    origins: int
    oldest_due_at: datetime | None


def backlog(connection: Connection, now: datetime) -> Backlog:
    """Count what is due and waits for a worker."""
    free = or_(origins.c.claimed_until.is_(None), origins.c.claimed_until <= now)
    patient = or_(origins.c.not_before.is_(None), origins.c.not_before <= now)
    due = and_(origins.c.active, free, origins.c.next_visit_at <= now, patient)
    row = connection.execute(select(func.count(), func.min(origins.c.next_visit_at)).where(due)).one()
    return Backlog(row[0], row[1])


@dataclass(frozen=True, slots=True)
class Holder:
    """A worker with claims, since when it holds the oldest, and when the first of its leases ends."""

    worker: str
    claims: int
    oldest_at: datetime | None
    first_end_at: datetime


def holders(connection: Connection) -> list[Holder]:
    """Tell who holds claims."""
    claimed = (
        select(
            origins.c.claimed_by,
            func.count(),
            func.min(origins.c.claimed_at),
            func.min(origins.c.claimed_until),
        )
        .where(origins.c.claimed_by.is_not(None))
        .group_by(origins.c.claimed_by)
        .order_by(origins.c.claimed_by)
    )
    return [Holder(*row) for row in connection.execute(claimed)]


def origins_by_state(connection: Connection, now: datetime) -> dict[str, int]:
    """Count origins by what became of their last visit, and by why there is none."""
    state = case(
        (~origins.c.active, "inactive"),
        (origins.c.last_visit_at.is_(None), "unvisited"),
        (and_(origins.c.not_before.is_not(None), origins.c.not_before > now), "resting"),
        else_=origins.c.last_outcome,
    )
    return _counts(connection, state, ORIGIN_STATES)


def open_drift(connection: Connection) -> dict[str, int]:
    """Count open drifts by class."""
    return _counts(connection, drifts.c.drift_class, [str(kind) for kind in ChangeClass], drifts.c.closed_at.is_(None))


def _counts(
    connection: Connection, name: ColumnElement[Any], expected: Sequence[str], *conditions: ColumnElement[bool]
) -> dict[str, int]:
    named = select(name.label("name")).where(*conditions).subquery()
    found = connection.execute(select(named.c.name, func.count()).group_by(named.c.name))
    return {**dict.fromkeys(expected, 0), **{str(row[0]): row[1] for row in found}}


@dataclass(frozen=True, slots=True)
class OpenLag:
    """How long copies have gone on showing old values, in seconds."""

    median_s: float
    max_s: float


def open_lag(connection: Connection, now: datetime) -> OpenLag:
    """Measure from when the new value was first seen at its source."""
    lagging = (drifts.c.closed_at.is_(None), drifts.c.moved == "live")
    half = select(func.count() // 2).where(*lagging).scalar_subquery()
    times = select(drifts.c.live_new_at).where(*lagging).order_by(drifts.c.live_new_at)
    middle = times.limit(1).offset(half).scalar_subquery()
    oldest = select(func.min(drifts.c.live_new_at)).where(*lagging).scalar_subquery()
    row = connection.execute(select(middle, oldest)).one()
    return OpenLag(_age(row[0], now), _age(row[1], now))


@dataclass(frozen=True, slots=True)
class Bodies:
    """The stored bodies and what they take, compressed."""

    number: int
    size: int


def bodies(connection: Connection) -> Bodies:
    """Measure the snapshots by the lengths that stand in their rows; no body is read for it."""
    row = connection.execute(select(func.count(), func.sum(func.length(snapshots.c.body)))).one()
    return Bodies(row[0], int(row[1] or 0))


def database_size(connection: Connection) -> int:
    """Give the size of the database in bytes; with SQLite that of its file, once everything is written back."""
    if connection.dialect.name == "postgresql":
        return int(connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one())
    pages = text("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()")
    return int(connection.execute(pages).scalar_one())


def gauges(connection: Connection, now: datetime) -> dict[str, Sample]:
    """Read what `/metrics` shows of the database, apart from `body_gauges`."""
    due = backlog(connection, now)
    held = holders(connection)
    lag = open_lag(connection, now)
    return {
        "ardvark_due_origins": due.origins,
        "ardvark_oldest_due_age_seconds": _age(due.oldest_due_at, now),
        "ardvark_claims": sum(holder.claims for holder in held),
        "ardvark_oldest_claim_age_seconds": max((_age(holder.oldest_at, now) for holder in held), default=0.0),
        "ardvark_origins": dict(origins_by_state(connection, now)),
        "ardvark_listings": entry_count(connection),
        "ardvark_open_drift": dict(open_drift(connection)),
        "ardvark_open_lag_max_seconds": lag.max_s,
        "ardvark_open_lag_median_seconds": lag.median_s,
        "ardvark_database_size_bytes": database_size(connection),
        "ardvark_last_cursor": last_cursor(connection),
    }


def body_gauges(connection: Connection, _: datetime) -> dict[str, Sample]:
    """Read what takes a tenth of a second for every hundred thousand stored bodies, and so is asked for less often."""
    stored = bodies(connection)
    return {"ardvark_snapshots": stored.number, "ardvark_snapshots_bytes": stored.size}


def _age(since: datetime | None, now: datetime) -> float:
    return 0.0 if since is None else max(0.0, (now - since).total_seconds())


# --- for people -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SlowOrigin:
    """How long an origin took to answer."""

    origin: str
    fetches: int
    p50_s: float
    p95_s: float


def slowest_origins(connection: Connection) -> list[SlowOrigin]:
    """Give the origins that answer slowest, by the newest lines of the fetch log, so many of each at most."""
    newest: Select[Any] = select(fetches).order_by(fetches.c.id.desc()).limit(_NEWEST_FETCHES)
    logged = newest.subquery("newest")
    query = (
        select(origins.c.origin, logged.c.request_at, logged.c.response_at)
        .join(documents, documents.c.id == logged.c.document_id)
        .join(origins, origins.c.id == documents.c.origin_id)
        .where(logged.c.status.is_not(None))
        .order_by(logged.c.id.desc())
    )
    times: dict[str, list[float]] = {}
    for row in connection.execute(query):
        taken = times.setdefault(row.origin, [])
        if len(taken) < _FETCHES_OF_ORIGIN:
            taken.append(max(0.0, (row.response_at - row.request_at).total_seconds()))
    slow = [
        SlowOrigin(origin, len(taken), _quantile(taken, 0.5), _quantile(taken, 0.95)) for origin, taken in times.items()
    ]
    return sorted(slow, key=lambda item: (-item.p95_s, -item.p50_s, item.origin))[:_SLOWEST]


def _quantile(values: Sequence[float], share: float) -> float:
    """Give the least of the values that so great a share is not above."""
    return sorted(values)[max(0, ceil(share * len(values)) - 1)]


def cadence(connection: Connection) -> dict[str, int]:
    """Count the watched documents by the interval at which they are looked at."""
    ends = [(documents.c.interval_s <= most, name) for name, most in CADENCE]
    known = (documents.c.watched, documents.c.interval_s.is_not(None), documents.c.next_fetch_at.is_not(None))
    return _counts(connection, case(*ends, else_=_BEYOND), [*(name for name, _ in CADENCE), _BEYOND], *known)


@dataclass(frozen=True, slots=True)
class LastVisit:
    """The visit that ended last."""

    origin: str
    at: datetime
    outcome: str


def last_visit(connection: Connection) -> LastVisit | None:
    """Give the visit that ended last, of whichever worker."""
    query = (
        select(origins.c.origin, origins.c.last_visit_at, origins.c.last_outcome)
        .where(origins.c.last_visit_at.is_not(None))
        .order_by(origins.c.last_visit_at.desc())
        .limit(1)
    )
    row = connection.execute(query).first()
    return None if row is None else LastVisit(*row)


@dataclass(frozen=True, slots=True)
class FetchLog:
    """How long the fetch log is and how far it goes back."""

    rows: int
    oldest_at: datetime | None


def fetch_log(connection: Connection) -> FetchLog:
    """Measure the fetch log; its oldest line is the one that was written first."""
    oldest = select(fetches.c.request_at).order_by(fetches.c.id).limit(1)
    rows = connection.execute(select(func.count()).select_from(fetches)).scalar_one()
    return FetchLog(rows, connection.execute(oldest).scalar())


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """How the store is doing at one moment."""

    backlog: Backlog
    holders: Sequence[Holder]
    origins: Mapping[str, int]
    listings: int
    cursor: int
    drift: Mapping[str, int]
    lag: OpenLag
    slowest: Sequence[SlowOrigin]
    cadence: Mapping[str, int]
    last_visit: LastVisit | None
    fetch_log: FetchLog
    bodies: Bodies
    size: int


def store_status(connection: Connection, now: datetime) -> StoreStatus:
    """Read all of it."""
    return StoreStatus(
        backlog=backlog(connection, now),
        holders=holders(connection),
        origins=origins_by_state(connection, now),
        listings=entry_count(connection),
        cursor=last_cursor(connection),
        drift=open_drift(connection),
        lag=open_lag(connection, now),
        slowest=slowest_origins(connection),
        cadence=cadence(connection),
        last_visit=last_visit(connection),
        fetch_log=fetch_log(connection),
        bodies=bodies(connection),
        size=database_size(connection),
    )


def try_write(connection: Connection) -> None:
    """Do as little as shows whether writing is possible, without waiting for anybody's row."""
    connection.execute(select(facts.c.name).with_for_update(skip_locked=True).limit(1)).all()
