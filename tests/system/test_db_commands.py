"""`ardvark db backup`, `restore`, `prune` and `vacuum` as an operator runs them."""

import asyncio
import json
import signal
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from crawler.clock import SystemClock
from index.store.changes import last_cursor, read_changes
from index.store.database import Database
from tests.fakes.contents import listed_digests, recount, replay
from tests.fakes.harness import crawling, settings_for
from tests.fakes.shell import ARDVARK, command
from tests.fakes.web import FakeWeb, Site, entry

pytestmark = pytest.mark.system
PATIENCE_S = 60


def publish(site: Site, edition: int) -> None:
    site.manifest(*(entry(f"e{number}", site.host, version=f"{edition}.0.0") for number in range(20)))


@pytest.fixture
async def sites(web: FakeWeb) -> list[Site]:
    found = [web.site(f"s{number}") for number in range(5)]
    for site in found:
        publish(site, 1)
    return found


async def crawl(sites: list[Site], url: str) -> None:
    async with crawling(settings_for(*sites, url=url), SystemClock()) as process:
        await process.run()


async def sound(url: str) -> int:
    """Check that an index holds together; gives its last cursor."""
    async with Database(url) as database:
        await database.prepare()
        await database.read(recount)
        feed = await database.read(read_changes, 0, 1_000_000)
        assert [change.cursor for change in feed] == list(range(1, len(feed) + 1))
        assert replay(feed) == await database.read(listed_digests)
        return await database.read(last_cursor)


def files(folder: Path, pattern: str) -> list[Path]:
    return list(folder.glob(pattern))


def file_url(path: Path) -> str:
    return f"sqlite+aiosqlite:///{path}"


async def run(sites: list[Site], url: str, *arguments: str) -> tuple[int, str]:
    return await command(url, *arguments, origins=[site.origin for site in sites])


@asynccontextmanager
async def daemon(sites: list[Site], url: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A daemon that has visited everything once."""
    await run(sites, url, "db", "upgrade")
    process = await asyncio.create_subprocess_exec(
        ARDVARK,
        *("--set", "logging.format=json", "--set", "api.listen=127.0.0.1:0", "run"),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        seen = 0
        async with asyncio.timeout(PATIENCE_S):
            while seen < len(sites):
                line = await process.stderr.readline()
                assert line, "the daemon ended"
                seen += json.loads(line)["event"] == "visit.done"
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(process.communicate(), PATIENCE_S)


# --- backup -----------------------------------------------------------------------------------------------------------


async def test_a_backup_made_while_a_crawl_writes_is_one_moment_of_it(
    sites: list[Site], sqlite_url: str, tmp_path: Path
) -> None:
    """Every copy is whole, in itself consistent and a state that the database had."""
    await crawl(sites, sqlite_url)
    enough = asyncio.Event()

    async def keep_writing() -> None:
        edition = 1
        while not enough.is_set():
            edition += 1
            for site in sites:
                publish(site, edition)
            await crawl(sites, sqlite_url)

    writing = asyncio.create_task(keep_writing())
    cursors = []
    for number in range(3):
        status, out = await run(sites, sqlite_url, "db", "backup", f"copy-{number}.db")
        assert status == 0, out
        assert "checked" in out
    enough.set()
    await writing
    for number in range(3):
        copy = tmp_path / f"copy-{number}.db"
        cursors.append(await sound(file_url(copy)))
    assert cursors == sorted(cursors)
    assert 100 <= cursors[0] < cursors[-1] <= await sound(sqlite_url)
    assert files(tmp_path, "*.part*") == []


async def test_a_backup_is_one_file_that_nobody_else_needs(sites: list[Site], sqlite_url: str, tmp_path: Path) -> None:
    await crawl(sites, sqlite_url)
    assert (await run(sites, sqlite_url, "db", "backup", "copy.db"))[0] == 0
    copy = tmp_path / "copy.db"
    assert not copy.with_name("copy.db-wal").exists()
    with closing(sqlite3.connect(f"file:{copy}?mode=ro&immutable=1", uri=True)) as connection:
        assert connection.execute("SELECT count(*) FROM listings").fetchone() == (100,)


async def test_a_backup_replaces_no_file_unasked(sites: list[Site], sqlite_url: str, tmp_path: Path) -> None:
    await crawl(sites, sqlite_url)
    (tmp_path / "copy.db").write_text("mine")
    status, out = await run(sites, sqlite_url, "db", "backup", "copy.db")
    assert (status, (tmp_path / "copy.db").read_text()) == (2, "mine")
    assert "--overwrite" in out
    assert (await run(sites, sqlite_url, "db", "backup", "copy.db", "--overwrite"))[0] == 0
    assert await sound(file_url(tmp_path / "copy.db")) == 100
    status, out = await run(sites, sqlite_url, "db", "backup", "ardvark.db", "--overwrite")
    assert (status, "the database itself" in out) == (2, True)


async def test_a_backup_of_nothing_or_to_nowhere_is_a_mistake_and_makes_no_file(
    sites: list[Site], sqlite_url: str, tmp_path: Path
) -> None:
    assert (await run(sites, sqlite_url, "db", "backup", "copy.db"))[0] == 2
    await crawl(sites, sqlite_url)
    assert (await run(sites, sqlite_url, "db", "backup", "absent/copy.db"))[0] == 2
    assert files(tmp_path, "*.db") == [tmp_path / "ardvark.db"]


async def test_a_damaged_database_makes_no_backup(sites: list[Site], sqlite_url: str, tmp_path: Path) -> None:
    await crawl(sites, sqlite_url)
    damage(tmp_path / "ardvark.db")
    status, out = await run(sites, sqlite_url, "db", "backup", "copy.db")
    assert status == 2, out
    assert not (tmp_path / "copy.db").exists()


def damage(path: Path) -> None:
    """Overwrite most of the pages behind the first ones."""
    with path.open("r+b") as file:
        size = file.seek(0, 2)
        file.seek(5 * 4096)
        file.write(b"\xa5" * (size - 6 * 4096))


@pytest.mark.postgres
@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
@pytest.mark.parametrize("verb", ["backup", "restore"])
async def test_of_postgresql_the_right_tool_is_named(database_url: str, verb: str) -> None:
    status, out = await command(database_url, "db", verb, "copy.db")
    assert status == 2
    assert "pg_dump" in out
    assert "pg_restore" in out
    assert "postgres@" not in out


# --- restore ----------------------------------------------------------------------------------------------------------


async def test_a_restore_brings_the_old_state_back_and_keeps_the_other_beside(
    sites: list[Site], sqlite_url: str, tmp_path: Path
) -> None:
    await crawl(sites, sqlite_url)
    assert (await run(sites, sqlite_url, "db", "backup", "copy.db"))[0] == 0
    for site in sites:
        publish(site, 2)
    await crawl(sites, sqlite_url)
    later = await sound(sqlite_url)
    status, out = await run(sites, sqlite_url, "db", "restore", "copy.db")
    assert status == 0, out
    assert await sound(sqlite_url) == 100 < later
    (before,) = files(tmp_path, "ardvark.db.before-*Z")
    assert str(before) in out
    assert await sound(file_url(before)) == later
    # What the publishers say now is found again by the next crawl.
    await crawl(sites, sqlite_url)
    assert await sound(sqlite_url) == later


async def test_a_restore_where_nothing_is_yet(sites: list[Site], sqlite_url: str, tmp_path: Path) -> None:
    await crawl(sites, sqlite_url)
    await run(sites, sqlite_url, "db", "backup", "copy.db")
    fresh = file_url(tmp_path / "fresh.db")
    assert (await run(sites, fresh, "db", "restore", "copy.db"))[0] == 0
    assert await sound(fresh) == 100
    assert files(tmp_path, "fresh.db.*") == []


async def test_a_restore_over_a_file_that_is_damaged(sites: list[Site], sqlite_url: str, tmp_path: Path) -> None:
    """That is what backups are for."""
    await crawl(sites, sqlite_url)
    await run(sites, sqlite_url, "db", "backup", "copy.db")
    (tmp_path / "ardvark.db").write_bytes(b"\xa5" * 50_000)
    status, out = await run(sites, sqlite_url, "db", "restore", "copy.db")
    assert status == 0, out
    assert await sound(sqlite_url) == 100
    (before,) = files(tmp_path, "ardvark.db.before-*Z")
    assert before.read_bytes() == b"\xa5" * 50_000


async def test_while_a_daemon_runs_a_backup_is_made_and_a_restore_refused(
    sites: list[Site], sqlite_url: str, tmp_path: Path
) -> None:
    async with daemon(sites, sqlite_url) as process:
        assert (await run(sites, sqlite_url, "db", "backup", "copy.db"))[0] == 0
        status, out = await run(sites, sqlite_url, "db", "restore", "copy.db")
        assert status == 2
        assert "in use" in out
        assert process.returncode is None
    assert files(tmp_path, "ardvark.db.before*") == []
    assert await sound(sqlite_url) == await sound(file_url(tmp_path / "copy.db")) == 100
    assert (await run(sites, sqlite_url, "db", "restore", "copy.db"))[0] == 0


@pytest.mark.parametrize("of", ["text", "foreign", "later", "damaged", "absent"])
async def test_a_restore_of_what_is_no_sound_backup_changes_nothing(
    sites: list[Site], sqlite_url: str, tmp_path: Path, of: str
) -> None:
    await crawl(sites, sqlite_url)
    await run(sites, sqlite_url, "db", "backup", "copy.db")
    copy = tmp_path / "copy.db"
    if of == "text":
        copy.write_text("not a database, though longer than a hundred bytes" * 10)
    elif of == "damaged":
        damage(copy)
    elif of == "absent":
        copy.unlink()
    else:
        with closing(sqlite3.connect(copy)) as connection:
            statement = (
                "DROP TABLE alembic_version" if of == "foreign" else "UPDATE alembic_version SET version_num = 'x'"
            )
            connection.execute(statement)
            connection.commit()
    status, out = await run(sites, sqlite_url, "db", "restore", "copy.db")
    assert status == 2, out
    assert "Traceback" not in out
    assert await sound(sqlite_url) == 100
    assert {path.name for path in files(tmp_path, "*")} <= {"ardvark.db", "ardvark.toml", "copy.db"}


# --- prune ------------------------------------------------------------------------------------------------------------


async def test_prune_deletes_at_once_what_a_shorter_retention_no_longer_wants(
    sites: list[Site], sqlite_url: str
) -> None:
    for edition in (1, 2, 3):
        for site in sites:
            publish(site, edition)
        await crawl(sites, sqlite_url)
    status, out = await run(sites, sqlite_url, "db", "prune", "--json")
    assert status == 0, out
    told = json.loads(out)
    assert set(told["deleted"].values()) == {0}
    assert told["size"] > 0
    assert told["oldestFetchAt"]
    assert told["overLimit"] is False
    short = [f"--set=retention.{name}=0s" for name in ("fetch_log_age", "snapshot_age", "version_age", "change_age")]
    status, out = await run(sites, sqlite_url, *short, "--set=retention.changes_kept=10", "db", "prune", "--json")
    assert status == 0, out
    deleted = json.loads(out)["deleted"]
    assert (deleted["changes"], deleted["versions"]) == (290, 200)
    assert deleted["snapshots"] >= 10
    status, out = await run(sites, sqlite_url, "db", "prune")
    assert status == 0
    assert "snapshots" in out
    status, out = await run(sites, sqlite_url, "changes", "--json")
    assert [item["cursor"] for item in json.loads(out)["items"]] == list(range(291, 301))
    assert (await run(sites, sqlite_url, "changes", "--after", "290"))[0] == 0
    status, out = await run(sites, sqlite_url, "changes", "--after", "289")
    assert (status, "goes back to 291" in out) == (2, True)


async def test_a_daemon_prunes_by_itself(sites: list[Site], sqlite_url: str) -> None:
    for edition in (1, 2):
        for site in sites:
            publish(site, edition)
        await crawl(sites, sqlite_url)
    await run(sites, sqlite_url, "db", "upgrade")
    process = await asyncio.create_subprocess_exec(
        ARDVARK,
        *("--set", "logging.format=json", "--set", "retention.version_age=0s", "run", "--role", "scheduler"),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    async with asyncio.timeout(PATIENCE_S):
        while line := await process.stderr.readline():
            event = json.loads(line)
            if event["event"] == "retention.pruned":
                break
        assert event["versions"] == 100
        process.send_signal(signal.SIGTERM)
        await process.communicate()
    assert process.returncode == 0


def mode_and_size(path: Path) -> tuple[int, int]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("PRAGMA auto_vacuum").fetchone()[0], path.stat().st_size


async def remark(*arguments: str) -> str:
    """Run a command that succeeds; gives what it has to say beside its result."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(ARDVARK, *arguments, stdout=pipe, stderr=pipe)
    out, err = await process.communicate()
    assert process.returncode == 0
    assert out
    return err.decode()


async def test_a_file_that_cannot_shrink_is_told_of_and_mended_while_a_daemon_has_it_open(
    sites: list[Site], tmp_path: Path
) -> None:
    path = tmp_path / "ardvark.db"
    url = file_url(path)
    await run(sites, url, "db", "upgrade")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:  # as older versions made it
        for statement in ("PRAGMA journal_mode = DELETE", "PRAGMA auto_vacuum = NONE", "VACUUM"):
            connection.execute(statement)
        connection.execute("CREATE TABLE filler (body BLOB)")
        connection.execute("INSERT INTO filler VALUES (zeroblob(3000000))")
        connection.execute("DROP TABLE filler")
    await crawl(sites, url)
    assert mode_and_size(path)[0] == 0
    for arguments in (("db", "upgrade"), ("db", "prune"), ("db", "prune", "--json")):
        assert "`ardvark db vacuum`" in await remark(*arguments), arguments
    cursor = await sound(url)
    async with daemon(sites, url):
        status, said = await run(sites, url, "db", "vacuum")
        assert status == 0, said
    mode, size = mode_and_size(path)
    assert mode == 2
    assert size < 1_500_000
    assert await sound(url) >= cursor
    for arguments in (("db", "upgrade"), ("db", "prune")):
        assert await remark(*arguments) == "", arguments


@pytest.mark.postgres
async def test_vacuum_is_for_files(sites: list[Site]) -> None:
    status, said = await run(sites, "postgresql+asyncpg://postgres@127.0.0.1:5432/postgres", "db", "vacuum")
    assert status == 2
    assert "PostgreSQL" in said
