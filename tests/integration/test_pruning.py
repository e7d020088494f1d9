"""Retention: what goes, what stays, and that the room comes back."""

import asyncio
import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, event, func, insert, select, update
from sqlalchemy.ext.asyncio import create_async_engine

from config.loading import load_settings
from crawler.upkeep import Pruned, Upkeep
from index.store import pruning
from index.store.changes import Change, append_changes, last_cursor, oldest_cursor, read_changes
from index.store.database import Database
from index.store.pruning import (
    file_size,
    prune_fetches,
    prune_long_logs,
    prune_snapshots,
    release_snapshots,
    used_size,
)
from index.store.snapshots import NewSnapshot, load_snapshot, put_snapshots
from index.store.tables import (
    artifacts,
    documents,
    drifts,
    fetches,
    pending,
    released,
    snapshots,
    versions,
)
from index.strict_json import digest
from tests.conftest import OpenCrawl
from tests.fakes.clock import FakeClock
from tests.fakes.harness import ALL_SURFACES, Crawl
from tests.fakes.web import FakeWeb, Site, entry

CARD_PATH = "/.well-known/agent-card.json"
PLANNER = "urn:air:acme.example:agent:planner"
BATCH = 7
AT_A_TIME = pruning.BATCH


def card(version: int = 1, **members: Any) -> dict[str, Any]:
    return {
        "name": "Planner",
        "description": "Plans trips over land",
        "version": f"{version}.0.0",
        "supportedInterfaces": [
            {"url": "https://acme.example/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        ],
        "capabilities": {},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "route", "name": "Route", "description": "Finds a route", "tags": ["travel"]}],
        **members,
    }


def publish(site: Site, edition: int) -> None:
    """A manifest and the card behind it; both say something else in each edition, and not the same."""
    kind = "application/a2a-agent-card+json"
    site.manifest(entry("planner", identifier=PLANNER, type=kind, url=CARD_PATH, version="0.0.0", tags=[f"e{edition}"]))
    site.json(CARD_PATH, card(edition))


async def prune(crawl: Crawl, **retention: Any) -> Pruned:
    """Prune as the daemon does, under another retention."""
    settings = load_settings(overrides={"retention": retention})
    pruned = await Upkeep(settings, crawl.clock, crawl.database).prune()
    assert pruned is not None
    return pruned


async def count(database: Database, table: Any) -> int:
    return await database.read(lambda c: c.execute(select(func.count()).select_from(table)).scalar_one())


async def stored_digests(database: Database) -> set[str]:
    return set(await database.read(lambda c: c.execute(select(snapshots.c.digest)).scalars().all()))


@pytest.fixture
def site(web: FakeWeb) -> Site:
    found = web.site("acme")
    publish(found, 1)
    return found


# --- the fetch log ----------------------------------------------------------------------------------------------------


async def test_the_log_is_pruned_by_age_and_the_newest_line_of_a_document_stays(
    open_crawl: OpenCrawl, site: Site, clock: FakeClock
) -> None:
    async with open_crawl(site) as crawl:
        for _ in range(4):
            await crawl.run()
            clock.advance(days=40)
        clock.advance(days=400)
        watched = await count(crawl.database, documents)
        before = await count(crawl.database, fetches)
        pruned = await prune(crawl)
        assert await count(crawl.database, fetches) == before - pruned.fetches
        assert before > await count(crawl.database, fetches) >= 3
        left = await crawl.database.read(lambda c: c.execute(select(fetches.c.document_id)).scalars().all())
        assert len(left) == len(set(left)) <= watched
        assert (await prune(crawl)).fetches == 0


async def test_the_log_of_one_document_is_pruned_by_count(open_crawl: OpenCrawl, site: Site, clock: FakeClock) -> None:
    async with open_crawl(site) as crawl:
        for _ in range(5):
            await crawl.run()
            clock.advance(hours=1)
        pruned = await prune(crawl, fetch_log_per_document=2)
        assert pruned.fetches > 0

        def lines(connection: Connection) -> dict[int, int]:
            rows = connection.execute(select(fetches.c.document_id, func.count()).group_by(fetches.c.document_id))
            return {row[0]: row[1] for row in rows}

        found = await crawl.database.read(lines)
        assert max(found.values()) == 2
        newest = await crawl.database.read(lambda c: c.execute(select(func.max(fetches.c.response_at))).scalar())
        assert newest is not None
        assert newest > clock.now() - timedelta(hours=2), "the newest stay, the oldest go"


def _long_log(connection: Connection, at: datetime, lines: int) -> None:
    key = connection.execute(select(documents.c.id).limit(1)).scalar_one()
    template = connection.execute(select(fetches).limit(1)).one()._asdict()
    del template["id"]
    row = {**template, "document_id": key, "request_at": at, "response_at": at}
    connection.execute(insert(fetches), [row] * lines)


async def test_a_batch_deletes_no_more_than_it_may_and_tells_where_to_go_on(
    open_crawl: OpenCrawl, site: Site, clock: FakeClock
) -> None:
    async with open_crawl(site) as crawl:
        await crawl.run()
        await crawl.database.write(_long_log, clock.now(), 30)
        step = await crawl.database.write(prune_long_logs, 3, None, -1, BATCH)
        assert (step.deleted, step.more) == (BATCH, True)
        deleted = step.deleted
        while step.more:
            step = await crawl.database.write(prune_long_logs, 3, None, step.position, BATCH)
            assert step.deleted <= BATCH
            deleted += step.deleted
        assert deleted == 28

        await crawl.database.write(_long_log, clock.now() - timedelta(days=1), 30)
        await crawl.database.write(_long_log, clock.now(), 1)
        step = await crawl.database.write(prune_fetches, clock.now(), 0, BATCH)
        assert step.deleted <= BATCH
        assert step.more
        assert step.position is not None


async def test_a_daemon_that_has_pruned_looks_again_at_what_was_visited_since(
    open_crawl: OpenCrawl, site: Site, clock: FakeClock
) -> None:
    """The first run looks through everything, a later one at the documents that can have grown."""
    async with open_crawl(site) as crawl:
        settings = load_settings(overrides={"retention": {"fetch_log_per_document": 2, "snapshot_age": "0s"}})
        upkeep = Upkeep(settings, clock, crawl.database)
        found = []
        for edition in range(1, 6):
            publish(site, edition)
            await crawl.run()
            clock.advance(hours=3)
            pruned = await upkeep.prune()
            assert pruned is not None
            found.append((pruned.fetches > 0, pruned.snapshots))
        # A body is noted as spare in one run and goes in the next.
        assert found == [(False, 0), (False, 0), (True, 1), (True, 1), (True, 1)]


async def test_one_run_prunes_faster_than_anybody_writes(open_crawl: OpenCrawl, site: Site, clock: FakeClock) -> None:
    """A purge of a thousand rows an hour would lose against a log that grows by five thousand."""
    async with open_crawl(site) as crawl:
        await crawl.run()
        await crawl.database.write(_long_log, clock.now() - timedelta(days=91), 5_000)
        await crawl.database.write(_long_log, clock.now(), 1)
        assert (await prune(crawl)).fetches == 5_000


# --- bodies -----------------------------------------------------------------------------------------------------------


async def test_a_body_goes_so_long_after_the_last_thing_that_pointed_to_it(
    open_crawl: OpenCrawl, site: Site, clock: FakeClock
) -> None:
    """It has stood for a year when it is replaced; its time begins then."""
    async with open_crawl(site) as crawl:
        await crawl.run()
        first = (await crawl.documents(site))["/.well-known/ard.json"].digest
        clock.advance(days=365)
        publish(site, 2)
        await crawl.run()
        second = (await crawl.documents(site))["/.well-known/ard.json"].digest
        assert first != second
        assert (await prune(crawl)).snapshots == 0
        assert await crawl.database.read(load_snapshot, first) is not None
        clock.advance(days=29)
        assert (await prune(crawl)).snapshots == 0
        clock.advance(days=2)
        assert (await prune(crawl)).snapshots == 1
        assert await crawl.database.read(load_snapshot, first) is None
        assert await crawl.database.read(load_snapshot, second) is not None
        assert await count(crawl.database, released) == 0


async def test_a_body_that_is_pointed_to_again_begins_anew(open_crawl: OpenCrawl, site: Site, clock: FakeClock) -> None:
    async with open_crawl(site) as crawl:
        await crawl.run()
        first = (await crawl.documents(site))["/.well-known/ard.json"].digest
        publish(site, 2)
        await crawl.run()
        await prune(crawl)
        publish(site, 1)
        clock.advance(days=31)
        await crawl.run()
        await prune(crawl)
        assert await crawl.database.read(load_snapshot, first) is not None
        publish(site, 2)
        await crawl.run()
        clock.advance(days=1)
        await prune(crawl)
        clock.advance(days=29)
        await prune(crawl)
        assert await crawl.database.read(load_snapshot, first) is not None


async def test_the_last_good_body_of_a_document_outlives_its_publisher(
    open_crawl: OpenCrawl, site: Site, clock: FakeClock
) -> None:
    """Broken for years, then off the allowlist: what it last said well is still there."""
    async with open_crawl(site) as crawl:
        await crawl.run()
        good = (await crawl.documents(site))["/.well-known/ard.json"].digest
        site.page("/.well-known/ard.json", b"{", headers={"Content-Type": "application/json"})
        clock.advance(days=800)
        await crawl.run()
        everything = {
            "fetch_log_age": "0s",
            "snapshot_age": "0s",
            "version_age": "0s",
            "drift_age": "0s",
            "change_age": "0s",
            "changes_kept": 1,
            "fetch_log_per_document": 1,
        }
        for _ in range(2):
            clock.advance(days=1)
            await prune(crawl, **everything)
        assert await crawl.database.read(load_snapshot, good) is not None
        await crawl.crew.remove_origins([site.origin])
        for _ in range(2):
            clock.advance(days=1)
            await prune(crawl, **everything, max_size=1)
        assert await crawl.database.read(load_snapshot, good) is not None


async def test_what_a_card_an_earlier_state_or_a_drift_names_stays(
    open_crawl: OpenCrawl, site: Site, clock: FakeClock
) -> None:
    async with open_crawl({"origin": site.origin, "surfaces": list(ALL_SURFACES)}) as crawl:
        for edition in (1, 2, 3):
            publish(site, edition)
            await crawl.run()
            clock.advance(hours=1)
        database = crawl.database
        clock.advance(days=60)
        await prune(crawl)
        clock.advance(days=60)
        await prune(crawl)
        kept = await stored_digests(database)

        def named(connection: Connection) -> set[str]:
            found: set[str] = set()
            for query in (
                select(artifacts.c.digest).where(~artifacts.c.inline),
                select(versions.c.digest).where(versions.c.kind == "artifact"),
                select(drifts.c.live_digest).where(drifts.c.live_digest.is_not(None)),
            ):
                names = set(connection.execute(query).scalars())
                assert names
                found |= names
            return found

        assert await database.read(named) <= kept
        assert await count(database, drifts) > 0
        # The manifests of the first two editions are named by nothing.
        await prune(crawl, snapshot_age="0s")
        clock.advance(days=400)
        pruned = await prune(crawl)
        assert pruned.versions > 0
        assert await database.read(
            lambda c: c.execute(select(func.count()).select_from(drifts).where(drifts.c.closed_at.is_(None))).scalar()
        ), "what is open stays, however old"


async def test_a_body_is_found_again_while_it_is_being_pruned(open_crawl: OpenCrawl, clock: FakeClock) -> None:
    """Whoever is about to point to a stored body keeps it from going (PostgreSQL; SQLite has one writer)."""
    body = b'{"entries": []}'
    name = digest(body)
    async with open_crawl() as crawl:
        database = crawl.database
        await database.write(put_snapshots, [NewSnapshot(name, body, None, clock.now())])
        await database.write(release_snapshots, clock.now())
        if database.is_sqlite:
            step = await database.write(prune_snapshots, clock.now() + timedelta(days=1))
            assert step.deleted == 1
            return
        other = create_async_engine(database.url)
        async with other.begin() as connection:
            assert await connection.run_sync(put_snapshots, [NewSnapshot(name, body, None, clock.now())]) == 0
            step = await database.write(prune_snapshots, clock.now() + timedelta(days=1))
            assert (step.deleted, step.more) == (0, False)
        await other.dispose()
        assert await database.read(load_snapshot, name) == body
        assert (await database.write(prune_snapshots, clock.now() + timedelta(days=1))).deleted == 1


# --- the feed, drift and the rest -------------------------------------------------------------------------------------


async def test_the_feed_keeps_its_newest_events_and_says_how_far_back_it_goes(
    open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    async with open_crawl() as crawl:
        database = crawl.database
        assert await database.read(oldest_cursor) == 1
        for number in range(60):
            event = Change("entry.added", f"urn:air:acme.example:tool:t{number}", clock.now())
            await database.write(append_changes, [event], clock.now())
            clock.advance(days=2)
        assert (await prune(crawl, change_age="0s", changes_kept=1000)).changes == 0
        assert (await prune(crawl, change_age="60d", changes_kept=1)).changes == 30
        assert await database.read(oldest_cursor) == 31
        assert (await prune(crawl, change_age="0s", changes_kept=10)).changes == 20
        assert await database.read(oldest_cursor) == 51
        events = await database.read(read_changes, 50, 100)
        assert [event.cursor for event in events] == list(range(51, 61))
        assert await database.read(last_cursor) == 60
        await database.write(append_changes, [Change("entry.added", "urn:air:a.example:b:c", clock.now())], clock.now())
        assert await database.read(last_cursor) == 61, "a cursor is never given twice"


async def test_closed_drift_and_what_was_never_compared_go_after_their_time(
    open_crawl: OpenCrawl, site: Site, clock: FakeClock
) -> None:
    async with open_crawl({"origin": site.origin, "surfaces": list(ALL_SURFACES)}) as crawl:
        await crawl.run()
        database = crawl.database
        found = await count(database, drifts)
        assert found >= 1
        first = await database.read(lambda c: c.execute(select(func.min(drifts.c.id))).scalar_one())
        await database.write(
            lambda c: c.execute(update(drifts).where(drifts.c.id == first).values(closed_at=clock.now()))
        )
        waiting = {"origin_id": 1, "kind": "entry", "subject": 1, "at": clock.now()}
        await database.write(lambda c: c.execute(insert(pending), waiting))
        clock.advance(days=364)
        pruned = await prune(crawl)
        assert (pruned.drifts, pruned.pending) == (0, 1)
        clock.advance(days=2)
        assert (await prune(crawl)).drifts == 1
        assert await count(database, drifts) == found - 1


async def test_nothing_of_a_young_database_goes(open_crawl: OpenCrawl, site: Site, clock: FakeClock) -> None:
    async with open_crawl({"origin": site.origin, "surfaces": list(ALL_SURFACES)}) as crawl:
        for edition in (1, 2):
            publish(site, edition)
            await crawl.run()
            clock.advance(hours=1)
        pruned = await prune(crawl)
        assert set(pruned.counts().values()) == {0}
        assert pruned.size > 0
        assert not pruned.over_limit
        assert pruned.oldest_fetch_at is not None


async def test_only_one_process_prunes_at_a_time(open_crawl: OpenCrawl, site: Site) -> None:
    async with open_crawl(site) as crawl:
        await crawl.run()
        settings = load_settings()
        async with Database(crawl.settings.storage.url) as other:
            both = await asyncio.gather(
                *(Upkeep(settings, crawl.clock, database).prune() for database in (crawl.database, other, other))
            )
        done = [pruned for pruned in both if pruned is not None]
        assert done
        if not crawl.database.is_sqlite:
            assert len(done) < len(both)


# --- room -------------------------------------------------------------------------------------------------------------

LIMIT = 4 * 1024 * 1024
MARGIN = 2 * 1024 * 1024
BODY = 200 * 1024


def size_of(folder: Path) -> int:
    """Measure the database file with the log beside it."""
    return sum(path.stat().st_size for path in folder.glob("ardvark.db*"))


def noise(chance: random.Random) -> str:
    """Text of 200 KiB that packs badly."""
    return chance.randbytes(BODY // 2).hex()


@pytest.mark.parametrize("of", ["manifest", "card"])
async def test_fr76_history_and_bodies_do_not_fill_the_disk(
    crawl_sqlite: OpenCrawl, web: FakeWeb, clock: FakeClock, tmp_path: Path, of: str
) -> None:
    """A body of 200 KiB that is another one at every look, for many more looks than the limit has room for."""
    chance = random.Random(76)
    site = web.site("acme")
    publish(site, 1)
    retention = {"max_size": LIMIT, "snapshot_age": "1d", "fetch_log_per_document": 20}
    largest = 0
    async with crawl_sqlite({"origin": site.origin, "surfaces": list(ALL_SURFACES)}) as crawl:
        for cycle in range(80):
            if of == "manifest":
                body = {"entries": [entry("planner", description=f"look {cycle}")], "x-noise": noise(chance)}
                page = site.json("/.well-known/ard.json", body)
            else:
                page = site.json(CARD_PATH, card(cycle, description=noise(chance)))
            await crawl.run()
            clock.advance(minutes=5)
            if cycle % 10 == 9:
                assert not (await prune(crawl, **retention)).over_limit
                largest = max(largest, size_of(tmp_path))
        assert 0 < largest <= LIMIT + MARGIN
        assert await crawl.database.read(load_snapshot, digest(page.body)) == page.body
        assert await count(crawl.database, drifts) > 0 or of == "manifest"
        assert await crawl.database.read(file_size) <= LIMIT + MARGIN


async def test_room_is_measured_and_a_limit_is_kept_on_each_engine(
    open_crawl: OpenCrawl, site: Site, clock: FakeClock
) -> None:
    chance = random.Random(1)
    async with open_crawl(site) as crawl:
        await crawl.run()
        database = crawl.database
        empty = await database.read(used_size)
        bodies = [chance.randbytes(50_000) for _ in range(100)]
        new = [NewSnapshot(digest(body), body, None, clock.now()) for body in bodies]
        await database.write(put_snapshots, new)
        full = await database.read(used_size)
        assert full - empty >= 5_000_000
        limit = empty + 2_500_000
        pruned = await prune(crawl, max_size=limit)
        assert not pruned.over_limit
        assert 40 <= pruned.snapshots <= 100
        assert await database.read(used_size) <= limit
        good = (await crawl.documents(site))["/.well-known/ard.json"].digest
        assert await database.read(load_snapshot, good) is not None
        assert (await prune(crawl, max_size=1)).over_limit, "what is needed stays, and the operator is told"
        assert await database.read(load_snapshot, good) is not None


async def test_the_size_is_measured_far_less_often_than_batches_go(
    open_crawl: OpenCrawl, site: Site, clock: FakeClock
) -> None:
    """On PostgreSQL to measure is to read the large tables."""
    async with open_crawl(site) as crawl:
        await crawl.run()
        await crawl.database.write(_long_log, clock.now() - timedelta(hours=1), 40 * AT_A_TIME)
        used = await crawl.database.read(used_size)
        statements: list[str] = []

        def note(*arguments: Any) -> None:
            statements.append(arguments[2])

        async with crawl.database.reading() as connection:
            event.listen(connection.engine.sync_engine, "before_cursor_execute", note)
        pruned = await prune(crawl, max_size=used // 2, fetch_log_per_document=10**6)
        event.remove(connection.engine.sync_engine, "before_cursor_execute", note)
        assert not pruned.over_limit
        assert pruned.fetches >= 15 * AT_A_TIME
        measured = sum(
            "freelist_count" in statement or "pg_column_size(fetches" in statement for statement in statements
        )
        assert 4 <= measured <= 15, "one for each kind of thing that can go, and few for the one that makes the room"


async def test_a_first_batch_that_frees_little_says_nothing_about_the_next_ones(
    open_crawl: OpenCrawl, site: Site, clock: FakeClock
) -> None:
    chance = random.Random(3)
    tiny = [body for body in map(str.encode, map(str, range(40_000))) if digest(body).startswith("00")]
    large = [body for body in (chance.randbytes(20_000) for _ in range(800)) if not digest(body).startswith("00")]
    async with open_crawl(site) as crawl:
        await crawl.run()
        first = [NewSnapshot(digest(body), body, None, clock.now()) for body in tiny]
        assert len(first) >= pruning.BODIES
        rest = [NewSnapshot(digest(body), body, None, clock.now()) for body in large]
        await crawl.database.write(put_snapshots, first + rest)
        used = await crawl.database.read(used_size)
        pruned = await prune(crawl, max_size=used - 3_000_000)
        assert not pruned.over_limit
        assert pruned.snapshots <= 4 * pruning.BODIES, "little more than what had to go"


async def test_a_new_file_gives_room_back_and_an_old_one_goes_on(
    crawl_sqlite: OpenCrawl, site: Site, clock: FakeClock, tmp_path: Path
) -> None:
    async with crawl_sqlite(site) as crawl:
        mode = await crawl.database.read(lambda c: c.exec_driver_sql("PRAGMA auto_vacuum").scalar())
        assert mode == 2
        chance = random.Random(2)
        bodies = [chance.randbytes(100_000) for _ in range(60)]
        await crawl.database.write(
            put_snapshots, [NewSnapshot(digest(body), body, None, clock.now()) for body in bodies]
        )
        before = await crawl.database.read(file_size)
        await prune(crawl, snapshot_age="0s")
        clock.advance(hours=1)
        await prune(crawl, snapshot_age="0s")
        assert before - await crawl.database.read(file_size) > 4_000_000
        assert (tmp_path / "ardvark.db-wal").stat().st_size == 0
