from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import aiohttp
import click

from config.settings import Settings
from config.values import reachable
from crawler.clock import SystemClock
from crawler.commands.render import clean, coloured, print_json, span, table
from crawler.commands.session import run_async, settings_of
from crawler.names import is_dead
from index.store.database import Database, FileSizes
from index.store.outage import StoreUnavailable
from index.store.processes import SILENT_FOR, StoredRow, processes_since
from index.store.status import StoreStatus, store_status, try_write
from index.views import instant

# A lock that lasts longer is worth telling of.
_BUSY_TIMEOUT_S = 1.0
_ANSWER_TIMEOUT_S = 2.0
_LEAST_FREE = 16 * 1024 * 1024
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def status(context: click.Context, as_json: bool) -> None:
    """Show backlog, health, slow origins, storage, cadence, drift and claims, and what is wrong with the store."""
    settings = settings_of(context)
    found = run_async(_look(settings))
    shown = status_json(found)
    if as_json:
        print_json(shown)
    else:
        click.echo("\n".join(_lines(found, shown)))


@dataclass(frozen=True, slots=True)
class Found:
    """How the store is doing, what is wrong with it, who is at work on it, and what the daemon says."""

    store: StoreStatus
    processes: Sequence[StoredRow]
    sizes: FileSizes | None
    problem: str | None
    daemon: Mapping[str, Any]
    at: datetime


async def _look(settings: Settings) -> Found:
    now = SystemClock().now()
    async with Database(settings.storage.url, busy_timeout_s=_BUSY_TIMEOUT_S) as database:
        await database.prepare()
        found = await database.read(store_status, now)
        heard_of = await database.read(processes_since, now - SILENT_FOR)
        sizes = await database.sizes()
        problem = await _problem(database, sizes)
    at_work = [row for row in heard_of if not is_dead(row.name)]
    return Found(found, at_work, sizes, problem, await _ask_daemon(settings), now)


async def _problem(database: Database, sizes: FileSizes | None) -> str | None:
    try:
        await database.rehearse(try_write)
    except StoreUnavailable as fault:
        return str(fault)
    if sizes is not None and sizes.free < _LEAST_FREE:
        return f"the disk is nearly full: {_size(sizes.free)} left"
    return None


async def _ask_daemon(settings: Settings) -> dict[str, Any]:
    """Ask whoever listens where the settings say; a daemon knows best what it waits for."""
    url = f"http://{reachable(settings.api.listen)}/readyz"
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_ANSWER_TIMEOUT_S), trust_env=False) as session,
            session.get(url, allow_redirects=False) as response,
        ):
            answer = await response.json()
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
        return {"listen": settings.api.listen, "status": "not_answering", "problem": None, "since": None}
    known = answer if isinstance(answer, dict) else {}
    problem = known.get("problem") or known.get("message")
    return {
        "listen": settings.api.listen,
        "status": str(known.get("status", "not_ready")),
        "problem": None if problem is None else str(problem),
        "since": known.get("since"),
    }


# --- as JSON ----------------------------------------------------------------------------------------------------------


def status_json(found: Found) -> dict[str, Any]:
    """Write all of it; times in UTC, sizes in bytes, lengths of time in seconds."""
    store, sizes = found.store, found.sizes
    oldest_due = store.backlog.oldest_due_at
    last = store.last_visit
    return {
        "at": instant(found.at),
        "problem": found.problem,
        "daemon": found.daemon,
        "processes": [
            {"name": row.name, "role": row.role, "startedAt": instant(row.started_at), "seenAt": instant(row.seen_at)}
            for row in found.processes
        ],
        "backlog": {
            "due": store.backlog.origins,
            "oldestDueAt": instant(oldest_due),
            "oldestDueS": None if oldest_due is None else max(0.0, (found.at - oldest_due).total_seconds()),
        },
        "lastVisit": last and {"origin": last.origin, "at": instant(last.at), "outcome": last.outcome},
        "origins": store.origins,
        "claims": [
            {
                "worker": holder.worker,
                "claims": holder.claims,
                "oldestAt": instant(holder.oldest_at),
                "firstLeaseEndsAt": instant(holder.first_end_at),
                "expired": holder.first_end_at <= found.at,
            }
            for holder in store.holders
        ],
        "slowest": [
            {"origin": item.origin, "fetches": item.fetches, "p50S": round(item.p50_s, 3), "p95S": round(item.p95_s, 3)}
            for item in store.slowest
        ],
        "index": {"listings": store.listings, "cursor": store.cursor},
        "drift": {
            "open": store.drift,
            "lagMedianS": round(store.lag.median_s, 3),
            "lagMaxS": round(store.lag.max_s, 3),
        },
        "cadence": store.cadence,
        "storage": {
            "databaseBytes": store.size if sizes is None else sizes.file,
            "walBytes": None if sizes is None else sizes.wal,
            "freeBytes": None if sizes is None else sizes.free,
            "snapshots": store.bodies.number,
            "snapshotsBytes": store.bodies.size,
            "fetches": store.fetch_log.rows,
            "oldestFetchAt": instant(store.fetch_log.oldest_at),
        },
    }


# --- for people -------------------------------------------------------------------------------------------------------


def _lines(found: Found, shown: Mapping[str, Any]) -> Iterator[str]:
    store = found.store
    if found.problem is not None:
        yield coloured(clean(f"problem    {found.problem}", 300), "red")
    yield f"daemon     {_daemon(found.daemon)}"
    yield f"processes  {_counts(Counter(row.role for row in found.processes))}"
    overdue = shown["backlog"]["oldestDueS"]
    yield f"backlog    {store.backlog.origins} due" + ("" if overdue is None else f", the first for {span(overdue)}")
    last = store.last_visit
    if last is not None:
        yield clean(f"last visit {span((found.at - last.at).total_seconds())} ago: {last.origin} ({last.outcome})", 200)
    yield f"origins    {_counts(store.origins)}"
    yield f"index      {store.listings} listed, {store.cursor} changes"
    lag = f"; lag {span(store.lag.median_s)} (median), {span(store.lag.max_s)} (longest)" if store.lag.max_s else ""
    yield f"drift      {_counts(store.drift)}{lag}"
    yield f"intervals  {_counts(store.cadence)}"
    yield f"storage    {_storage(shown['storage'])}"
    yield ""
    yield _claims(shown)
    if store.slowest:
        rows = [(item.origin, item.fetches, f"{item.p50_s:.3f}", f"{item.p95_s:.3f}") for item in store.slowest]
        yield "\n" + table(("slowest origins", "fetches", "p50 s", "p95 s"), rows)


def _daemon(daemon: Mapping[str, Any]) -> str:
    words = daemon["status"].replace("_", " ")
    since = f" since {daemon['since']}" if daemon["since"] else ""
    why = f": {daemon['problem']}{since}" if daemon["problem"] else ""
    return clean(f"{words} at {daemon['listen']}{why}", 300)


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {clean(name)}" for name, number in counts.items() if number) or "none"


def _storage(storage: Mapping[str, Any]) -> str:
    parts = [f"database {_size(storage['databaseBytes'])}"]
    if storage["walBytes"] is not None:
        parts[0] += f" and {_size(storage['walBytes'])} of -wal, {_size(storage['freeBytes'])} free"
    parts.append(f"{storage['snapshots']} snapshots ({_size(storage['snapshotsBytes'])})")
    oldest = f" since {storage['oldestFetchAt'][:10]}" if storage["oldestFetchAt"] else ""
    parts.append(f"{storage['fetches']} fetches{oldest}")
    return "; ".join(parts)


def _size(size: float) -> str:
    number = 0
    while size >= 1024 and number < len(_UNITS) - 1:
        size, number = size / 1024, number + 1
    return f"{size:.0f} {_UNITS[number]}" if number == 0 else f"{size:.1f} {_UNITS[number]}"


def _claims(shown: Mapping[str, Any]) -> str:
    if not shown["claims"]:
        return "No claims are held."
    rows = [
        (
            item["worker"],
            item["claims"],
            (item["oldestAt"] or "")[:19].replace("T", " "),
            item["firstLeaseEndsAt"][:19].replace("T", " ") + (" (ended)" if item["expired"] else ""),
        )
        for item in shown["claims"]
    ]
    return table(("claims held by", "origins", "since", "first lease ends"), rows)
