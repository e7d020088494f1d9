"""A million due origins: what the store can claim and settle, against the bare engine on the same rows.

A visit here is what the store sees of one: a claim with the states of its documents, one look at each document answered
by 304, and the settlement. Ours goes through the claim, the batching writer and its transactions as the daemon's does;
bare is the engine's own driver with the three statements that cannot be left out (a line of the log, the document, the
origin), with as many visits to a transaction as the writer takes units. Never are more claims open than several busy
daemons have. Both write to the same database, in turn, and the best of the rounds counts: CPU is that of this process,
without the server's. What a visit has found is made up before the time of settling it runs.
"""

import asyncio
import random
import shutil
import sqlite3
import statistics
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg

from index.documents import DocumentState, DocumentVisit, Observation, Outcome
from index.store.database import Database
from index.store.documents import document_id
from index.store.frontier import Claim, Settlement, claim_due
from index.store.writer import RecordVisit, SettleVisit, Writer
from tests.bench import million

VISITS = 20_000
ROUNDS = 3
SINGLE_CLAIMS = 300
# Claims that are open at a time.
SLICE = 2_000
AT_A_TIME = 200
IN_FLIGHT = 1_000
BATCH = 1_000
BYTES_VISITS = 2_000
_SERVER = "postgresql://postgres@127.0.0.1:5432"
_LEASE = timedelta(minutes=10)
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Row:
    """A round of one kind: visits a second, and microseconds of CPU for each."""

    rate: float
    cpu: float


class Stopwatch:
    """Adds up the time and the CPU that parts of a round take."""

    def __init__(self) -> None:
        self.seconds = self.cpu_s = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        began, cpu = time.perf_counter(), time.process_time()
        yield
        self.seconds += time.perf_counter() - began
        self.cpu_s += time.process_time() - cpu


class Measured:
    """Rounds by name; the best of each is what counts."""

    def __init__(self) -> None:
        self.rounds: dict[str, list[Row]] = {}

    def add(self, name: str, count: int, watch: Stopwatch) -> None:
        self.rounds.setdefault(name, []).append(Row(count / watch.seconds, watch.cpu_s / count * 1e6))

    async def take(self, name: str, count: int, work: Awaitable[object]) -> None:
        watch = Stopwatch()
        with watch.running():
            await work
        self.add(name, count, watch)

    async def take_slices(
        self,
        prefix: str,
        claim: Callable[[int, int], Awaitable[list[Any]]],
        prepare: Callable[[list[Any]], Any],
        settle: Callable[[Any], Awaitable[object]],
    ) -> None:
        """Take a round of claims and one of settling them, a slice at a time; `prepare` says what visits found."""
        claiming, settling = Stopwatch(), Stopwatch()
        for _ in range(0, VISITS, SLICE):
            with claiming.running():
                claims = await claim(SLICE, AT_A_TIME)
            found = prepare(claims)
            with settling.running():
                await settle(found)
        self.add(f"{prefix}claim, {AT_A_TIME} at a time", VISITS, claiming)
        self.add(f"{prefix}settle", VISITS, settling)

    def show(self, engine: str) -> None:
        print(f"\n{engine:26} {'best/s':>8} {'median/s':>9} {'CPU µs':>7} {'ratio to bare':>14}")
        for name, rounds in self.rounds.items():
            best = max(row.rate for row in rounds)
            bare = self.rounds.get(f"bare {name}")
            ratio = f"{best / max(row.rate for row in bare):14.2f}" if bare else ""
            middle = statistics.median(row.rate for row in rounds)
            print(f"{name:26} {best:8.0f} {middle:9.0f} {min(row.cpu for row in rounds):7.0f} {ratio}", flush=True)


def bench_queue() -> None:
    """Print claims, settled visits and claim-to-settle a second on both engines, and the bytes of a revalidation."""
    import uvloop

    from crawler.commands.heap import settle_heap

    print(f"queue: {million.ORIGINS} due origins, {VISITS} visits a round, best of {ROUNDS}, {IN_FLIGHT} under way")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        settle_heap()
        runner.run(_sqlite())
        runner.run(_postgres())


# --- ours ------------------------------------------------------------------------------------------------------------


async def _claim(database: Database, limit: int) -> list[Claim]:
    return await database.insist(lambda connection: claim_due(connection, "bench", _now(), _LEASE, limit))


async def _claim_many(database: Database, count: int, at_a_time: int) -> list[Claim]:
    claims: list[Claim] = []
    while len(claims) < count:
        claims += await _claim(database, at_a_time)
    return claims


def _looked_at(state: DocumentState, claim: Claim) -> RecordVisit:
    """Make of a document what a visit makes of it after a 304."""
    now = _now()
    observation = Observation(
        state.url,
        Outcome.NOT_MODIFIED,
        now,
        now,
        status=304,
        final_url=state.url,
        conditions={"If-None-Match": '"m1"'},
        peer="127.0.0.1",
        robots="absent",
    )
    after = replace(
        state,
        outcome=Outcome.NOT_MODIFIED,
        status=304,
        attempted_at=now,
        confirmed_at=now,
        fresh_until=now + timedelta(hours=1),
        next_fetch_at=now + _DAY,
        not_modified_streak=state.not_modified_streak + 1,
        rate_b=(state.rate_b or 0) + 1.0,
        final_url=state.url,
    )
    return RecordVisit(DocumentVisit(after, observation), claim.hold)


def _settlement(claim: Claim) -> SettleVisit:
    now = _now()
    next_at = now + _DAY * random.uniform(0.9, 1.1)
    return SettleVisit(Settlement(claim.origin, claim.fence, now, "done", "absent", False, next_at))


async def _visit(writer: Writer, claim: Claim, looks: Sequence[RecordVisit]) -> None:
    for done in [await writer.submit(look) for look in looks]:
        await done
    await writer.write(_settlement(claim))


_Visited = tuple[Claim, list[RecordVisit]]


def _visited(claims: Sequence[Claim]) -> list[_Visited]:
    return [(claim, [_looked_at(state, claim) for state in claim.states.values()]) for claim in claims]


async def _settle_all(database: Database, visited: Sequence[_Visited], in_flight: int = IN_FLIGHT) -> None:
    """Settle visits, so many of them under way at a time."""
    visits = iter(visited)

    async def worker(writer: Writer) -> None:
        for claim, looks in visits:
            await _visit(writer, claim, looks)

    async with Writer(database) as writer:
        await asyncio.gather(*(worker(writer) for _ in range(in_flight)))


async def _claim_to_settle(database: Database, count: int) -> None:
    """Claim, look and settle as a daemon with room for so many visits does: claims fill what has become free."""
    running: set[asyncio.Task[None]] = set()
    claimed = 0
    async with Writer(database) as writer:
        while claimed < count:
            for claim, looks in _visited(await _claim(database, min(AT_A_TIME, count - claimed))):
                task = asyncio.create_task(_visit(writer, claim, looks))
                running.add(task)
                task.add_done_callback(running.discard)
                claimed += 1
            while len(running) > IN_FLIGHT - AT_A_TIME:
                await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.gather(*running)


async def _round_of_ours(measured: Measured, database: Database) -> None:
    async def claim(count: int, at_a_time: int) -> list[Claim]:
        return await _claim_many(database, count, at_a_time)

    async def settle(visited: Sequence[_Visited]) -> None:
        await _settle_all(database, visited)

    await measured.take("claim, 1 at a time", SINGLE_CLAIMS, claim(SINGLE_CLAIMS, 1))
    await measured.take_slices("", claim, _visited, settle)
    await measured.take("claim to settle", VISITS, _claim_to_settle(database, VISITS))


async def _round_of_bare(
    measured: Measured,
    claim: Callable[[int, int], Awaitable[list[Any]]],
    settle: Callable[[list[Any]], Awaitable[object]],
) -> None:
    async def claim_to_settle() -> None:
        for _ in range(0, VISITS, SLICE):
            await settle(_bare_rows(await claim(SLICE, AT_A_TIME)))

    await measured.take("bare claim, 1 at a time", SINGLE_CLAIMS, claim(SINGLE_CLAIMS, 1))
    await measured.take_slices("bare ", claim, _bare_rows, settle)
    await measured.take("bare claim to settle", VISITS, claim_to_settle())


def _now() -> datetime:
    return datetime.now(UTC)


# --- bytes -----------------------------------------------------------------------------------------------------------


async def _written_bytes(database: Database, written: Callable[[], Awaitable[int]]) -> None:
    """Print what a visit writes whose documents are all answered by 304, alone and among many."""
    print(f"{'bytes written a visit':26} {'1 document':>11} {f'{million.DOCUMENTS} documents':>12}")
    first = million.ORIGINS - million.WATCHED
    watched = [million.origin_of(first + number) for number in range(million.WATCHED)]
    single = [million.origin_of(first - 1 - number) for number in range(million.WATCHED)]
    for name, in_flight, count in (("one by one", 1, BYTES_VISITS // 10), (f"{IN_FLIGHT} under way", IN_FLIGHT, None)):
        found = []
        for names in (single, watched):
            chosen = [names.pop() for _ in range(count or BYTES_VISITS)]
            claims = await database.insist(
                lambda connection, chosen=chosen: claim_due(connection, "bench", _now(), _LEASE, len(chosen), chosen)
            )
            assert len(claims) == len(chosen)
            before = await written()
            await _settle_all(database, _visited(claims), in_flight)
            found.append((await written() - before) / len(claims))
        print(f"{name:26} {found[0]:11.0f} {found[1]:12.0f}", flush=True)


# --- SQLite ----------------------------------------------------------------------------------------------------------


async def _sqlite() -> None:
    with _folder() as folder:
        path = folder / "bench.db"
        async with Database(f"sqlite+aiosqlite:///{path}") as database:
            await database.prepare()
            began = time.perf_counter()
            million.fill_sqlite(path)
            print(f"\nSQLite filled in {time.perf_counter() - began:.0f} s, {path.stat().st_size / 2**20:.0f} MiB")
            measured = Measured()
            for _ in range(ROUNDS):
                await _round_of_ours(measured, database)
                await _round_of_bare_sqlite(measured, path)
            measured.show("SQLite")
            with _log_kept(path) as log:
                await _written_bytes(database, log)


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="ardvark-bench-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def _log_kept(path: Path) -> Iterator[Callable[[], Awaitable[int]]]:
    """Keep the write-ahead log from starting anew, so that its length is all that was written to it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM facts").fetchone()

        async def length() -> int:
            return path.with_name(path.name + "-wal").stat().st_size

        yield length


_CLAIM = (
    "UPDATE origins SET claimed_by = 'bare', claimed_at = {0}, claimed_until = {1}, fence = fence + 1 WHERE id IN ("
    "SELECT id FROM origins WHERE active = {4} AND next_visit_at <= {0} "
    "AND (claimed_until IS NULL OR claimed_until <= {0}) ORDER BY next_visit_at, id LIMIT {2} {3}) "
    "RETURNING id, origin, fence"
)
_LOG = (
    "INSERT INTO fetches (document_id, request_at, response_at, outcome, reason, detail, status, final_url, hops, "
    "conditional, headers, wire_size, digest, peer, robots, parser_version, notes) VALUES ({0}, {1}, {1}, "
    "'not_modified', '', '', 304, {2}, '[]', true, '{{}}', 0, {3}, '127.0.0.1', 'absent', '1', '[]')"
)
_DOCUMENT = (
    "UPDATE documents SET outcome = 'not_modified', status = 304, attempted_at = {0}, confirmed_at = {0}, "
    "fresh_until = {1}, next_fetch_at = {1}, not_modified_streak = not_modified_streak + 1, rate_b = rate_b + 1 "
    "WHERE id = {2}"
)
_SETTLE = (
    "UPDATE origins SET claimed_by = NULL, claimed_until = NULL, last_visit_at = {0}, last_outcome = 'done', "
    "visits = visits + 1, failures = 0, next_visit_at = {1} WHERE id = {2} AND fence = {3}"
)
_DIGEST = "0" * 64


async def _round_of_bare_sqlite(measured: Measured, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for pragma in ("synchronous = FULL", "cache_size = -65536", "journal_size_limit = 16777216"):
            connection.execute(f"PRAGMA {pragma}")

        async def claim(count: int, at_a_time: int) -> list[Any]:
            statement = _CLAIM.format("?1", "?2", "?3", "", 1)
            found: list[Any] = []
            while len(found) < count:
                connection.execute("BEGIN IMMEDIATE")
                times = (_stored(_now()), _stored(_now() + _LEASE), at_a_time)
                found += connection.execute(statement, times).fetchall()
                connection.execute("COMMIT")
            return found

        async def settle(claims: list[Any]) -> None:
            for batch in _batches(claims):
                now, later = _stored(_now()), _stored(_now() + _DAY)
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany(
                    _LOG.format("?", "?2", "?3", "?4"), [(key, now, name, _DIGEST) for key, _, name, _ in batch]
                )
                connection.executemany(_DOCUMENT.format("?1", "?2", "?3"), [(now, later, row[0]) for row in batch])
                connection.executemany(
                    _SETTLE.format("?1", "?2", "?3", "?4"), [(now, later, key, held) for _, key, _, held in batch]
                )
                connection.execute("COMMIT")

        await _round_of_bare(measured, claim, settle)


def _bare_rows(claims: Sequence[Any]) -> list[tuple[int, int, str, int]]:
    """Give for each claim its document, origin, name and fence."""
    return [(document_id(f"{name}/.well-known/ard.json"), key, name, held) for key, name, held in claims]


def _stored(at: datetime) -> str:
    return at.isoformat(timespec="microseconds")


def _batches(claims: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (claims[start : start + BATCH] for start in range(0, len(claims), BATCH))


# --- PostgreSQL ------------------------------------------------------------------------------------------------------


async def _postgres() -> None:
    try:
        server = await asyncpg.connect(f"{_SERVER}/postgres", timeout=5)
    except (OSError, asyncpg.PostgresError) as error:
        print(f"\nPostgreSQL: DOES NOT ANSWER on 127.0.0.1:5432, SKIPPED ({error})")
        return
    name = f"ardvark_bench_{uuid.uuid4().hex[:12]}"
    try:
        await server.execute(f"CREATE DATABASE {name}")
        await _on_postgres(name, server)
    finally:
        await server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        await server.close()


async def _on_postgres(name: str, server: Any) -> None:
    async with Database(f"postgresql+asyncpg://{_SERVER.partition('://')[2]}/{name}") as database:
        await database.prepare()
        began = time.perf_counter()
        await million.fill_postgres(f"{_SERVER}/{name}")
        size = await server.fetchval("SELECT pg_database_size($1)", name)
        print(f"\nPostgreSQL filled in {time.perf_counter() - began:.0f} s, {size / 2**20:.0f} MiB")
        measured = Measured()
        for _ in range(ROUNDS):
            await _round_of_ours(measured, database)
            await _round_of_bare_postgres(measured, f"{_SERVER}/{name}")
        measured.show("PostgreSQL")

        async def position() -> int:
            return int(await server.fetchval("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn"))

        await _written_bytes(database, position)


async def _round_of_bare_postgres(measured: Measured, url: str) -> None:
    async with _bare_postgres(url) as (claim, settle):
        await _round_of_bare(measured, claim, settle)


@asynccontextmanager
async def _bare_postgres(url: str) -> Any:
    connection = await asyncpg.connect(url)
    instant = "$1::timestamptz"
    claiming = _CLAIM.format(instant, "$2", "$3", "FOR UPDATE SKIP LOCKED", "true")
    log = _LOG.format("$1", "$2::timestamptz", "$3", "$4")
    document = _DOCUMENT.format(instant, "$2::timestamptz", "$3")
    settling = _SETTLE.format(instant, "$2::timestamptz", "$3", "$4")

    async def claim(count: int, at_a_time: int) -> list[Any]:
        found: list[Any] = []
        while len(found) < count:
            found += await connection.fetch(claiming, _now(), _now() + _LEASE, at_a_time)
        return found

    async def settle(claims: list[Any]) -> None:
        for batch in _batches(claims):
            now, later = _now(), _now() + _DAY
            async with connection.transaction():
                await connection.executemany(log, [(key, now, name, _DIGEST) for key, _, name, _ in batch])
                await connection.executemany(document, [(now, later, row[0]) for row in batch])
                await connection.executemany(settling, [(now, later, key, held) for _, key, _, held in batch])

    try:
        yield claim, settle
    finally:
        await connection.close()
