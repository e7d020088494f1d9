"""The store, on both engines: its schema, its writer, its claims, its counts, and the same answers from either."""

import asyncio
import json
import random
import socket
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp.web
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, inspect, select, text
from structlog.testing import capture_logs

from config.errors import OperatorError
from crawler.names import worker_name
from index.documents import FollowedLead
from index.query import parse_list_order
from index.records import Lead, Mechanism
from index.store import search as store
from index.store.changes import read_changes
from index.store.database import Database
from index.store.documents import load_states
from index.store.frontier import Claim, Settlement, claim_due, load_rest, renew_claims, settle_origins
from index.store.inspect import origin_row
from index.store.schema import HEAD
from index.store.search import Question
from index.store.tables import (
    documents,
    listings,
    metadata,
    origins,
)
from index.store.writer import RecordLeads, SettleVisit, Writer
from tests.conftest import OpenCrawl
from tests.fakes.clock import FakeClock
from tests.fakes.contents import index_of, recount
from tests.fakes.harness import crawling, settings_for
from tests.fakes.web import FakeWeb, Site, entry

ARD = "/.well-known/ard.json"
LEASE = timedelta(minutes=5)


# --- schema and migrations --------------------------------------------------------------------------------------------


def alembic(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(sys.modules["index.store"].__path__[0]) / "migrations"))
    config.attributes["connection"] = connection
    return config


def tables_of(connection: Connection) -> set[str]:
    return set(inspect(connection).get_table_names())


async def test_the_migrations_make_exactly_the_tables_of_the_models(database_url: str) -> None:
    def differences(connection: Connection) -> Any:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        return compare_metadata(context, metadata)

    async with Database(database_url) as database:
        before, after = await database.upgrade()
        assert (before, after) == (None, HEAD)
        assert ScriptDirectory.from_config(await database.read(alembic)).get_current_head() == HEAD
        assert await database.read(differences) == []
        assert await database.read(tables_of) == {*metadata.tables, "alembic_version"}


async def test_upgrading_twice_is_upgrading_once_and_loses_nothing(database_url: str) -> None:
    async with Database(database_url) as database:
        _, head = await database.upgrade()
        secret = await database.read(store.token_secret)
        assert len(secret) >= 16
        assert await database.upgrade() == (head, head)
        await database.prepare()
        assert await database.read(store.token_secret) == secret


async def test_a_downgrade_leaves_nothing_and_the_way_up_is_open_again(database_url: str) -> None:
    async with Database(database_url) as database:
        _, head = await database.upgrade()

        def down(connection: Connection) -> None:
            command.downgrade(alembic(connection), "base")

        await database.write(down)
        assert await database.read(tables_of) == {"alembic_version"}
        assert await database.upgrade() == (None, head)
        assert await database.read(store.entry_count) == 0


async def test_processes_that_start_at_once_create_the_schema_once(database_url: str) -> None:
    async with Database(database_url) as first, Database(database_url) as second:
        await asyncio.gather(first.prepare(), second.prepare())
        assert await first.read(store.token_secret) == await second.read(store.token_secret)


@pytest.mark.parametrize("revision", ["0000", "9999"])
async def test_a_schema_of_another_version_is_refused_in_plain_words(database_url: str, revision: str) -> None:
    """A shared database is never changed behind the back of processes that still run the other version."""
    async with Database(database_url) as database:
        await database.upgrade()
        await database.write(
            lambda connection: connection.execute(text("UPDATE alembic_version SET version_num = :r"), {"r": revision})
        )
        with pytest.raises(OperatorError, match=revision) as caught:
            await database.prepare()
        if not database.is_sqlite:
            assert "ardvark db upgrade" in str(caught.value)
        with pytest.raises(OperatorError, match=f"{revision}.*does not know"):
            await database.upgrade()


async def test_a_database_that_cannot_be_reached_is_the_operators_matter(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        async with Database(f"postgresql+asyncpg://me:secret-word@127.0.0.1:{port}/x") as database:
            with pytest.raises(OperatorError, match="cannot be opened") as caught:
                await database.prepare()
            assert "secret-word" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "why"), [("", "unable to open"), ("notes.txt", "not a database"), ("no/x", "no does")]
)
async def test_a_file_that_cannot_be_a_database_is_the_operators_matter(tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / "notes.txt").write_bytes(b"these are notes and no database " * 100)
    with pytest.raises(OperatorError, match=why):
        async with Database(f"sqlite+aiosqlite:///{tmp_path}/{name}"):
            pass


# --- the writer -------------------------------------------------------------------------------------------------------


def break_snapshots_of(connection: Connection, length: int) -> None:
    """Let the database fail whenever a body of this length is stored, as a full disk would."""
    if connection.dialect.name == "sqlite":
        body = f"WHEN NEW.length = {length} BEGIN SELECT RAISE(ABORT, 'disk full'); END"
        connection.execute(text(f"CREATE TRIGGER broken BEFORE INSERT ON snapshots {body}"))
    else:
        connection.execute(
            text(
                "CREATE FUNCTION broken() RETURNS trigger AS $$ BEGIN IF NEW.length = "
                f"{length} THEN RAISE 'disk full'; END IF; RETURN NEW; END $$ LANGUAGE plpgsql"
            )
        )
        connection.execute(
            text("CREATE TRIGGER broken BEFORE INSERT ON snapshots FOR EACH ROW EXECUTE FUNCTION broken()")
        )


def mend_snapshots(connection: Connection) -> None:
    connection.execute(text("DROP TRIGGER broken" + ("" if connection.dialect.name == "sqlite" else " ON snapshots")))


async def test_a_record_that_cannot_be_written_fails_its_visit_and_no_other(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    sites = [web.site(f"s{number}") for number in range(6)]
    for site in sites:
        site.manifest(entry("one", site.host))
    bad = sites[2]
    page = bad.manifest(entry("one", bad.host), entry("extra", bad.host))
    async with open_crawl(*sites) as crawl:
        await crawl.database.write(break_snapshots_of, len(page.body))
        with capture_logs() as events:
            summary = await crawl.run()
        assert (summary.crashed, summary.visited) == (1, 5)
        assert [event["origin"] for event in events if event["event"] == "visit.crashed"] == [bad.origin]
        assert await crawl.identifiers() == sorted(f"urn:air:{site.host}:tool:one" for site in sites if site is not bad)
        row = await crawl.database.read(origin_row, bad.origin)
        assert row is not None
        assert (row.last_outcome, row.failures, row.claimed_by) == ("crashed", 1, None)
        assert clock.now() < row.next_visit_at < clock.now() + timedelta(minutes=10)
        assert ARD not in await crawl.documents(bad), "nothing of it was half written"

        await crawl.database.write(mend_snapshots)
        summary = await crawl.run()
        assert summary.crashed == 0
        assert len(await crawl.identifiers()) == 7
        row = await crawl.database.read(origin_row, bad.origin)
        assert row is not None
        assert (row.last_outcome, row.failures) == ("done", 0)


async def test_a_batch_is_one_transaction_and_its_good_units_survive_a_bad_one(database_url: str) -> None:
    def settlement(origin: Any) -> SettleVisit:
        at = FakeClock().now()
        return SettleVisit(Settlement(origin, 0, at, "done", "robots", False, at))

    async with Database(database_url) as database:
        await database.prepare()
        async with Writer(database) as writer:
            done = [await writer.submit(settlement(f"http://s{number}.example")) for number in range(50)]
            await asyncio.gather(*done)
            assert writer.tally.transactions <= 2
            units = [settlement(f"http://s{number}.example") for number in range(5)]
            units[3] = settlement(None)
            outcomes = await asyncio.gather(*[await writer.submit(unit) for unit in units], return_exceptions=True)
        assert [isinstance(outcome, Exception) for outcome in outcomes] == [False, False, False, True, False]


async def test_what_is_queued_when_the_writer_is_left_is_still_written(
    web: FakeWeb, sqlite_url: str, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"))
    async with crawling(settings_for(acme, url=sqlite_url), clock) as crawl:
        await crawl.run()
        written = await crawl.documents(acme)
        state = next(iter((await crawl.database.read(load_states, [acme.origin]))[acme.origin].values()))
        lead = FollowedLead(Lead(acme.url("/late.json"), Mechanism.AGENTMAP, 40), "followed", acme.origin)
        for number in range(5):
            await crawl.writer.submit(RecordLeads(state.url, (lead,), clock.now() + timedelta(seconds=number)))
        assert "/late.json" not in written
    async with Database(sqlite_url) as database:
        assert acme.url("/late.json") in (await database.read(load_states, [acme.origin]))[acme.origin]


async def test_a_cancelled_visit_gives_its_claim_back_and_the_origin_stays_due(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme = web.site("acme")
    asked, never = asyncio.Event(), asyncio.Event()

    async def wait(_: Any) -> Any:
        asked.set()
        await never.wait()

    acme.handle(ARD, wait)
    async with open_crawl(acme) as crawl:
        (claim,) = await crawl.crew.claim(1)
        visit = asyncio.create_task(crawl.crew.visit(claim))
        await asked.wait()
        visit.cancel()
        with pytest.raises(asyncio.CancelledError):
            await visit
        row = await crawl.database.read(origin_row, acme.origin)
        assert row is not None
        assert (row.claimed_by, row.visits) == (None, 0)
        (again,) = await crawl.crew.claim(1)
        assert again.fence > claim.fence
        never.set()


async def test_what_a_visit_still_brings_when_its_origin_was_removed_is_not_taken(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme = web.site("acme")
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def wait(_: Any) -> Any:
        asked.set()
        await go_on.wait()
        return aiohttp.web.json_response({"specVersion": "1.0", "entries": [entry("echo")]})

    acme.handle(ARD, wait)
    async with open_crawl(acme) as crawl:
        (claim,) = await crawl.crew.claim(1)
        visit = asyncio.create_task(crawl.crew.visit(claim))
        await asked.wait()
        await crawl.crew.remove_origins([acme.origin])
        go_on.set()
        with capture_logs() as logs:
            await visit
        assert [acme.origin] in [event["origins"] for event in logs if event["event"] == "store.claims_lost"]
        assert await crawl.identifiers() == []
        row = await crawl.database.read(origin_row, acme.origin)
        assert row is not None
        assert (row.active, row.claimed_by, row.visits) == (False, None, 0)


# --- claims -----------------------------------------------------------------------------------------------------------


async def test_crews_that_claim_at_once_never_hold_the_same_origin(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    names = [web.site(f"s{number}").origin for number in range(40)]
    async with open_crawl(*names) as first, open_crawl(*names) as second, open_crawl(*names) as third:
        crews = [first.crew, second.crew, third.crew]
        rounds = await asyncio.gather(*(crew.claim(5) for _ in range(4) for crew in crews))
        held = Counter(claim.origin for claims in rounds for claim in claims)
        assert set(held) == set(names)
        assert set(held.values()) == {1}
        assert await first.crew.claim(100) == []
        named = await asyncio.gather(*(crew.claim(5, names[:3]) for crew in crews))
        assert named == [[], [], []], "by name no more than by their turn"


async def test_an_expired_claim_is_taken_over_and_its_late_settlement_changes_nothing(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"))
    async with open_crawl(acme) as first, open_crawl(acme) as second:
        (old,) = await first.crew.claim(1)
        clock.advance(seconds=LEASE.total_seconds() - 1)
        assert await second.crew.claim(1) == []
        clock.advance(seconds=1)
        (new,) = await second.crew.claim(1)
        assert new.fence == old.fence + 1

        await first.crew.visit(old)
        row = await first.database.read(origin_row, acme.origin)
        assert row is not None
        assert (row.visits, row.last_outcome, row.fence) == (0, None, new.fence)
        assert row.claimed_by is not None, "the origin is still the second crew's"
        await first.crew.release([old])
        await first.database.write(renew_claims, [old], clock.now() + timedelta(days=9))
        row = await first.database.read(origin_row, acme.origin)
        assert row is not None
        assert row.claimed_until == new.until

        await second.crew.visit(new)
        row = await first.database.read(origin_row, acme.origin)
        assert row is not None
        assert (row.visits, row.last_outcome, row.claimed_by) == (1, "done", None)
        assert await first.identifiers() == ["urn:air:acme.example:tool:echo"]
        assert [change.kind for change in await first.changes()] == ["entry.added"], "looked at twice, applied once"


async def test_a_renewed_claim_does_not_expire(web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock) -> None:
    acme = web.site("acme")
    async with open_crawl(acme) as first, open_crawl(acme) as second:
        claims = await first.crew.claim(1)
        for _ in range(5):
            clock.advance(minutes=4)
            await first.database.write(renew_claims, claims, clock.now() + LEASE)
        assert await second.crew.claim(1) == []
        clock.advance(minutes=6)
        assert len(await second.crew.claim(1)) == 1


def ended_process() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


DEAD: dict[str, tuple[Callable[[], str], bool]] = {
    "a process that ended": (lambda: f"{socket.gethostname()}:{ended_process()}:4711:abc", True),
    "a process whose number is used again": (lambda: _own_name(start="1"), True),
    "this process": (lambda: worker_name(), False),
    "a process elsewhere": (lambda: f"elsewhere.{socket.gethostname()}:{ended_process()}:4711:abc", False),
    "a name nobody can read": (lambda: "who knows", False),
}


def _own_name(*, start: str) -> str:
    host, pid, _, token = worker_name().split(":")
    return f"{host}:{pid}:{start}:{token}"


@pytest.mark.parametrize("name", DEAD)
async def test_claims_of_dead_processes_of_this_machine_are_taken_over_at_once(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock, name: str
) -> None:
    make, dead = DEAD[name]
    acme, other = web.site("acme"), web.site("other")
    async with open_crawl(acme, other) as crawl:
        held = await crawl.database.write(claim_due, make(), clock.now(), LEASE, 1, [acme.origin])
        assert len(held) == 1
    async with open_crawl(acme, other) as crawl:
        assert {claim.origin for claim in await crawl.crew.claim(10)} == (
            {acme.origin, other.origin} if dead else {other.origin}
        )


@pytest.mark.parametrize("own_hours", [None, 1, 3])
async def test_a_rest_that_another_visit_was_told_of_meanwhile_outlasts_a_sooner_one(
    open_crawl: OpenCrawl, clock: FakeClock, own_hours: int | None
) -> None:
    acme, cards = "http://acme.example", "http://cards.example"
    async with open_crawl(acme, cards) as crawl:
        claims = {claim.origin: claim for claim in await crawl.crew.claim(10)}
        now = clock.now()
        told = now + timedelta(hours=2)

        def settled(claim: Claim, rest: datetime | None, rests: dict[str, datetime]) -> Settlement:
            return Settlement(
                claim.origin,
                claim.fence,
                clock.now(),
                "done",
                "robots",
                False,
                clock.now(),
                rest,
                rests=rests,
                known_rest=claim.rest,
            )

        await crawl.database.write(settle_origins, [settled(claims[acme], None, {cards: told})])
        own = None if own_hours is None else now + timedelta(hours=own_hours)
        await crawl.database.write(settle_origins, [settled(claims[cards], own, {})])
        assert await crawl.database.read(load_rest, cards) == max(told, own or told)

        clock.advance(hours=3)
        (claim,) = [claim for claim in await crawl.crew.claim(10) if claim.origin == cards]
        assert claim.rest == max(told, own or told)
        await crawl.database.write(settle_origins, [settled(claim, None, {})])
        assert await crawl.database.read(load_rest, cards) is None, "the visit that came after it ends it"


async def test_the_longest_due_come_first_and_the_patient_wait(open_crawl: OpenCrawl, clock: FakeClock) -> None:
    names = [f"http://s{number}.example" for number in range(4)]
    async with open_crawl(*names) as crawl:
        claims = {claim.origin: claim for claim in await crawl.crew.claim(10)}
        now = clock.now()
        dues = [now + timedelta(hours=hours) for hours in (3, 1, 2, 1)]
        waits = [None, None, None, now + timedelta(hours=9)]
        settlements = [
            Settlement(name, claims[name].fence, now, "done", "robots", False, due, wait)
            for name, due, wait in zip(names, dues, waits, strict=True)
        ]
        await crawl.database.write(settle_origins, settlements)
        clock.advance(hours=4)
        order = []
        while claimed := await crawl.crew.claim(1):
            order += [claim.origin for claim in claimed]
        assert order == [names[1], names[2], names[0]]
        clock.advance(hours=5)
        assert names[3] in [claim.origin for claim in await crawl.crew.claim(10)]


async def test_a_claim_brings_what_is_known_of_the_documents(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"), entry("more", type="application/ai-catalog+json", url="/more.json"))
    acme.redirect("/more.json", "/moved.json", 308)
    acme.manifest(entry("inner"), path="/moved.json", last_modified="Sun, 29 Nov 2026 10:00:00 GMT")
    async with open_crawl(acme) as crawl:
        await crawl.run()
        claims: list[Claim] = await crawl.crew.claim(1, [acme.origin])
        states = claims[0].states
        assert states == (await crawl.database.read(load_states, [acme.origin]))[acme.origin]
        more = states[acme.url("/more.json")]
        assert (more.mechanism, more.rank, more.depth) == ("nested", 11, 2)
        assert set(more.ancestors) == {acme.url(ARD)}
        assert [(hop.url, hop.status) for hop in more.hops] == [(acme.url("/more.json"), 308)]
        assert more.headers["last-modified"] == "Sun, 29 Nov 2026 10:00:00 GMT"
        assert more.digest == more.applied_digest is not None
        assert (more.outcome, more.status, more.entry_count) == ("fetched", 200, 1)


# --- SQLite with a second process (FR-123) ----------------------------------------------------------------------------

HOLDER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA busy_timeout = 10000")
connection.execute("BEGIN IMMEDIATE")
connection.execute("UPDATE facts SET number = number WHERE name = 'entries'")
print("held", flush=True)
sys.stdin.readline()
connection.execute("COMMIT")
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Start a process that holds the write lock of the test's SQLite file until it is told to let go."""
    started: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, f"{tmp_path}/ardvark.db"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        return process

    yield start
    for process in started:
        with process:
            process.kill()


async def test_fr_123_nothing_is_lost_while_another_process_holds_the_write_lock(
    web: FakeWeb, crawl_sqlite: OpenCrawl, holder: Callable[[], subprocess.Popen[str]]
) -> None:
    sites = [web.site(f"s{number}") for number in range(20)]
    for site in sites:
        site.manifest(entry("one", site.host, description="first"))
    async with crawl_sqlite(*sites) as crawl:
        await crawl.run()
        for site in sites:
            site.manifest(entry("one", site.host, description="second"))
        web.clear_log()
        claims = await crawl.crew.claim(100, [site.origin for site in sites])
        process = await asyncio.to_thread(holder)
        visits = [asyncio.create_task(crawl.crew.visit(claim, force=True)) for claim in claims]
        while not all(site.requests("/") for site in sites):
            # All is fetched and waits to be written; whoever only reads is not held up.
            assert len(await crawl.search("first")) == 20
        assert not any(visit.done() for visit in visits)
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.close()
        reports = await asyncio.gather(*visits)
        assert all(report is not None and not report.failed for report in reports)
        assert len(await crawl.search("second")) == 20
        assert await crawl.search("first") == []


async def test_a_second_process_may_read_and_write_between_our_transactions(
    web: FakeWeb, crawl_sqlite: OpenCrawl, tmp_path: Path
) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"))
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()

        def elsewhere() -> tuple[str, int]:
            connection = sqlite3.connect(tmp_path / "ardvark.db")
            try:
                mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
                with connection:
                    connection.execute("UPDATE facts SET number = number")
                return mode, connection.execute("SELECT count(*) FROM listings").fetchone()[0]
            finally:
                connection.close()

        assert await asyncio.to_thread(elsewhere) == ("wal", 1)
        acme.manifest(entry("echo"), entry("weather"))
        await crawl.run()
        assert (await asyncio.to_thread(elsewhere))[1] == 2


# --- counts of the index ----------------------------------------------------------------------------------------------


NAMES = [f"n{number}" for number in range(6)]
entries_of_a_manifest = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(["red", "red green", "blue sky over the sea", ""])),
    max_size=6,
    unique_by=lambda pair: pair[0],
)
histories = st.lists(
    st.tuples(st.sampled_from(["acme", "other"]), st.one_of(st.none(), entries_of_a_manifest)), min_size=1, max_size=6
)


def manifest(site: Site, chosen: list[tuple[str, str]] | None) -> None:
    if chosen is None:
        site.page(ARD, status=410)
    else:
        site.manifest(*(entry(name, description=said, tags=said.split()) for name, said in chosen))


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=histories)
def test_counts_are_right_and_the_index_is_that_of_a_fresh_crawl_whatever_happened(
    tmp_path_factory: pytest.TempPathFactory, history: list[tuple[str, list[tuple[str, str]] | None]]
) -> None:
    folder = tmp_path_factory.mktemp("history")

    async def live_through() -> None:
        async with FakeWeb() as web:
            sites = {name: web.site(name) for name in ("acme", "other")}
            async with crawling(settings_for(*sites.values(), url=f"sqlite+aiosqlite:///{folder}/a.db")) as crawl:
                for name, chosen in history:
                    manifest(sites[name], chosen)
                    await crawl.run(sites[name])
                    await crawl.database.read(recount)
                await crawl.run()
                lived = await crawl.database.read(index_of)
            async with crawling(settings_for(*sites.values(), url=f"sqlite+aiosqlite:///{folder}/b.db")) as crawl:
                await crawl.run()
                assert lived == await crawl.database.read(index_of)

    asyncio.run(live_through())


async def test_counts_hold_on_both_engines_through_many_changes_of_two_processes(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    chance = random.Random(5)
    sites = [web.site(f"s{number}") for number in range(6)]
    async with open_crawl(*sites) as first, open_crawl(*sites) as second:
        for _ in range(4):
            for site in sites:
                chosen = chance.sample(NAMES, chance.randrange(len(NAMES) + 1))
                manifest(site, [(name, chance.choice(["red", "green sea", "blue"])) for name in chosen])
            await asyncio.gather(first.run(*sites[:3]), second.run(*sites[3:]))
            await first.database.read(recount)
        feed = await first.database.read(read_changes, 0, 10_000)
        assert [change.cursor for change in feed] == list(range(1, len(feed) + 1))


# --- pages of answers -------------------------------------------------------------------------------------------------


async def test_pages_hold_what_was_there_all_the_time_once_though_the_index_changes_between_them(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme = web.site("acme")
    names = [f"tool-{number:02}" for number in range(20)]
    said = {name: "rope " * (number % 4 + 1) for number, name in enumerate(names)}
    acme.manifest(*(entry(name, description=said[name]) for name in names))
    async with open_crawl(acme) as crawl:
        await crawl.run()
        question = Question("rope", (), 2)
        whole = [hit.identifier for hit in (await crawl.database.read(store.search, question, 50, None)).hits]
        assert len(whole) == 20
        gone, come = whole[10].rpartition(":")[2], "tool-99"
        searched: list[str] = []
        listed: list[str] = []
        after: Any = None
        list_after: Any = None
        orders = parse_list_order("displayName desc")
        for turn in range(20):
            page = await crawl.database.read(store.search, question, 3, after)
            searched += [hit.identifier for hit in page.hits]
            list_page = await crawl.database.read(store.list_entries, (), orders, 3, list_after)
            listed += [json.loads(item)["identifier"] for item in list_page.projections]
            if turn == 1:
                kept = [name for name in names if name != gone]
                acme.manifest(*(entry(name, description=said[name]) for name in kept), entry(come, description="rope"))
                await crawl.run()
            after, list_after = page.after, list_page.after
            if after is None and list_after is None:
                break
            assert after is not None, "both have the same number of pages"
        always = {identifier for identifier in whole if not identifier.endswith(gone)}
        for seen in (searched, listed):
            assert len(seen) == len(set(seen))
            assert always <= set(seen)
        assert [identifier for identifier in searched if identifier in always] == [
            identifier for identifier in whole if identifier in always
        ]


# --- the same answers from both engines -------------------------------------------------------------------------------

CORPUS: list[dict[str, Any]] = [
    entry("weather", description="Forecasts of rain and wind for sailors", tags=["weather", "sea"]),
    entry("storms", description="Warns sailors of storms and of high wind", tags=["weather"]),
    entry("tides", description="Tide tables", representativeQueries=["when is high tide", "sailors' tide table"]),
    entry("recipes", description="Recipes with fish", type="application/a2a-agent-card+json"),
    entry("Éclair", identifier="urn:air:acme.example:tool:eclair", displayName="Éclair", description="Süße Rezepte"),
    entry("ecole", displayName="école", description="Lessons for sailors and cooks"),
    entry("zebra", displayName="zebra Z", description="wind wind wind wind wind"),
    entry("Zulu", identifier="urn:air:acme.example:tool:Zulu", displayName="Zulu", description="rain"),
    entry("_private", identifier="urn:air:acme.example:tool:_private", displayName="_private", description="rain"),
    entry("weather", "other.example", description="Forecasts of rain", metadata={"region": "north", "size": 3}),
    entry("nihongo", "other.example", displayName="天気予報", description="明日の天気予報を教えます"),
    entry("million", "other.example", displayName="$1,000,000", description="money, and 100% rain"),
]
QUERIES = [
    "weather",
    "forecast of rain for sailors",
    "storm warnings",
    "high tide",
    "fish recipes",
    "eclair",
    "ÉCOLE",
    "天気",
    "weather@other.example",
    "urn:air:acme.example:tool:Zulu",
    "the of and",
    "rain wind sailors tide fish money",
    "nothing like it",
    "100% _private",
]


@pytest.mark.postgres
@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
async def test_both_engines_give_the_same_answers_in_the_same_order(
    web: FakeWeb, database_url: str, sqlite_url: str
) -> None:
    acme, other = web.site("acme"), web.site("other")
    acme.manifest(*CORPUS[:9])
    other.manifest(*CORPUS[9:])

    async def answers(url: str) -> dict[str, Any]:
        async with crawling(settings_for(acme, other, url=url), FakeClock()) as crawl:
            await crawl.run()
            given: dict[str, Any] = {}
            for query in QUERIES:
                given[query] = [(hit.identifier, hit.score) for hit in await crawl.search(query)]
                narrowed = await crawl.search(query, publisher="other.example")
                given["other: " + query] = [(hit.identifier, hit.score) for hit in narrowed]
            for order in ("displayName", "displayName desc", "identifier", "createdAt, displayName"):
                page = await crawl.database.read(store.list_entries, (), parse_list_order(order), 50, None)
                given[order] = [json.loads(item)["identifier"] for item in page.projections]
            fields = [("publisher", 10, 1), ("https://agenticresourcediscovery.org/ns#tags", 10, 1)]
            for asked in (Question(None), Question("rain sailors")):
                facets = await crawl.database.read(store.explore, asked, fields)
                given[f"facets of {asked.text}"] = [(facet.buckets, facet.other_count) for facet in facets]
            given["index"] = await crawl.database.read(index_of)
            return given

    from_sqlite, from_postgres = await answers(sqlite_url), await answers(database_url)
    for question, answer in from_sqlite.items():
        assert from_postgres[question] == answer, question
    assert from_sqlite["weather"], "the comparison is of something"
    assert from_sqlite["天気"] == [("urn:air:other.example:tool:nihongo", from_sqlite["天気"][0][1])]
    assert from_sqlite["nothing like it"] == []


async def test_every_stored_time_is_an_aware_instant_in_utc(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo", updatedAt="2026-05-05T10:00:00+02:00"))
    async with open_crawl(acme) as crawl:
        await crawl.run()

        def instants(connection: Connection) -> list[datetime]:
            rows = [
                *connection.execute(select(documents)).all(),
                *connection.execute(select(listings)).all(),
                *connection.execute(select(origins)).all(),
            ]
            return [value for row in rows for value in row if isinstance(value, datetime)]

        found = await crawl.database.read(instants)
        assert len(found) > 20
        assert {value.utcoffset() for value in found} == {timedelta(0)}
        assert datetime.fromisoformat("2026-05-05T08:00:00+00:00") in found
