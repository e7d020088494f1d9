"""Connections: many readers, one writer at a time; SQLite in one file, or PostgreSQL.

On SQLite a write transaction takes the write lock when it begins, so that it never has to be upgraded and two processes
queue up instead of failing; readers see the last commit and are never blocked (WAL). A transaction of many statements
runs as a whole in a thread of its own: handing over each of them costs more than most of them do.
"""

import asyncio
import shutil
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import AsyncAdaptedQueuePool, StaticPool

from config.errors import OperatorError
from index.store.outage import GONE, REPLACED, Outage, Pauses, StoreUnavailable, outage_in
from index.store.schema import HEAD, UnknownRevision, current_revision, upgrade_schema

_BUSY_TIMEOUT_S = 30
_READERS = 4
_OLDEST_SQLITE = (3, 35, 0)
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class FileSizes:
    """An embedded database on its disk, in bytes."""

    file: int
    wal: int
    free: int


def _file_sizes(path: Path) -> FileSizes:
    wal = path.with_name(path.name + "-wal")
    return FileSizes(
        path.stat().st_size, wal.stat().st_size if wal.exists() else 0, shutil.disk_usage(path.parent).free
    )


class Database:
    """The engines of one process. Use as an asynchronous context manager.

    `busy_timeout_s` is how long a write waits for other processes to end theirs, on SQLite.
    """

    def __init__(self, url: str, *, busy_timeout_s: float = _BUSY_TIMEOUT_S) -> None:
        self.url = make_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self.outage = Outage()
        self._busy_timeout_s = busy_timeout_s
        self._file: tuple[int, int] | None = None
        self._reader: AsyncEngine | None = None
        self._writer: AsyncEngine | None = None
        self._file_writer: _FileWriter | None = None

    async def __aenter__(self) -> "Database":
        if self.is_sqlite:
            if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
                raise OperatorError(f"SQLite {sqlite3.sqlite_version} is too old; 3.35 or newer is needed")
            await asyncio.to_thread(self._check_file)
            self._reader = _sqlite_engine(self.url, _READERS, "BEGIN", self._busy_timeout_s)
            self._file_writer = _FileWriter(self.url, self._busy_timeout_s, self._check_identity)
        else:
            self._reader = self._writer = _postgres_engine(self.url)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._file_writer is not None:
            await asyncio.to_thread(self._file_writer.close)
            self._file_writer = None
        if self._reader is not None:
            await self._reader.dispose()
        self._reader = self._writer = None

    def _check_file(self) -> None:
        """Find out what is wrong with the file before connections with threads of their own do."""
        path = Path(self.url.database or "")
        if not path.parent.is_dir():
            raise OperatorError(f"storage.url: the folder {path.parent} does not exist")
        try:
            with closing(sqlite3.connect(path)) as connection:
                connection.execute("PRAGMA schema_version")
                _let_shrink(connection)
        except sqlite3.Error as error:
            raise OperatorError(f"the database {self._shown()} cannot be opened: {error}") from error
        self._file = self._identity()

    def _identity(self) -> tuple[int, int] | None:
        try:
            found = Path(self.url.database or "").stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    async def sizes(self) -> FileSizes | None:
        """Give what the files of an embedded database take, and what is free beside them."""
        return await asyncio.to_thread(_file_sizes, Path(self.url.database or "")) if self.is_sqlite else None

    def _check_identity(self) -> None:
        """Refuse to write to a file that has lost its name: nobody would read it again, and SQLite doesn't say so."""
        found = self._identity()
        if self._file is not None and found != self._file:
            raise StoreUnavailable(GONE if found is None else REPLACED)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """Give a connection that sees one consistent state."""
        if self._reader is None:
            raise RuntimeError("the database is used before it is opened")
        async with self._reader.connect() as connection:
            yield connection

    @property
    def write_engine(self) -> Engine:
        """The engine that writes go through."""
        if self._file_writer is not None:
            return self._file_writer.engine
        if self._writer is None:
            raise RuntimeError("the database is used before it is opened")
        return self._writer.sync_engine

    async def _transact(self, commits: bool, work: Callable[..., _Result], *arguments: Any) -> _Result:
        if self._file_writer is not None:
            return await self._file_writer.run(commits, work, *arguments)
        if self._writer is None:
            raise RuntimeError("the database is used before it is opened")
        async with self._writer.connect() as connection:
            result = await connection.run_sync(work, *arguments)
            if commits:
                await connection.commit()
        return result

    async def write(self, work: Callable[..., _Result], *arguments: Any) -> _Result:
        """Run one piece of work in a write transaction of its own; raises StoreUnavailable during an outage."""
        with self._noting(writing=True):
            return await self._transact(True, work, *arguments)

    async def insist(self, work: Callable[..., _Result], *arguments: Any) -> _Result:
        """Write like `write`, and during an outage again and again until it is over."""
        try:
            return await self.write(work, *arguments)
        except StoreUnavailable:
            with self.outage.insisting() as pauses:
                result = await _again(pauses, lambda: self.write(work, *arguments))
            self.outage.succeeded(writing=True)
            return result

    async def wait_and_read(self, work: Callable[..., _Result], *arguments: Any) -> _Result:
        """Read like `read`, and during an outage again and again until it is over."""
        try:
            return await self.read(work, *arguments)
        except StoreUnavailable:
            return await _again(self.outage.pauses(), lambda: self.read(work, *arguments))

    @contextmanager
    def _noting(self, *, writing: bool) -> Iterator[None]:
        """Tell outages from other faults, and keep account of them."""
        try:
            yield
        except Exception as error:
            fault = outage_in(error)
            if fault is None:
                raise
            self.outage.failed(fault, writing=writing)
            raise fault from error
        self.outage.succeeded(writing=writing)

    async def rehearse(self, work: Callable[..., _Result], *arguments: Any) -> _Result:
        """Run one piece of work in a write transaction that is rolled back; what it gives is what would have been."""
        with self._noting(writing=True):
            return await self._transact(False, work, *arguments)

    async def read(self, work: Callable[..., _Result], *arguments: Any) -> _Result:
        """Run one piece of work that only reads; raises StoreUnavailable during an outage."""
        with self._noting(writing=False):
            async with self.reading() as connection:
                result = await connection.run_sync(work, *arguments)
        return result

    # --- schema -------------------------------------------------------------------------------------------------------

    async def upgrade(self) -> tuple[str | None, str | None]:
        """Bring the schema to its head; gives the revisions before and after."""
        try:
            return await self._transact(True, upgrade_schema)
        except UnknownRevision:
            revision = await self._revision()
            raise OperatorError(
                f"the database schema is at {revision}, which this version of Ardvark does not know; "
                "it was made by a later one"
            ) from None
        except (DBAPIError, OSError) as error:
            raise OperatorError(f"the database {self._shown()} cannot be opened: {_reason(error)}") from error

    async def prepare(self) -> None:
        """Make the database ready for use: create it, or check that its schema is the one this version expects.

        An embedded database is upgraded in place. A shared one is not: other processes may still run the old version.
        """
        current = await self._revision()
        if current == HEAD:
            return
        if current is not None and not self.is_sqlite:
            raise OperatorError(f"the database schema is at {current}; run `ardvark db upgrade` to bring it to {HEAD}")
        await self.upgrade()

    async def _revision(self) -> str | None:
        try:
            async with self.reading() as connection:
                return await connection.run_sync(current_revision)
        except (DBAPIError, OSError) as error:
            raise OperatorError(f"the database {self._shown()} cannot be opened: {_reason(error)}") from error

    def _shown(self) -> str:
        return self.url.render_as_string(hide_password=True)


class _FileWriter:
    """The one thread in which this process writes to its file, one transaction after the other.

    What is under way when its caller is cancelled ends as it would have: a commit cannot be taken back.
    """

    def __init__(self, url: Any, busy_timeout_s: float, check: Callable[[], None]) -> None:
        self.engine = create_engine(url.set(drivername="sqlite+pysqlite"), poolclass=StaticPool)
        _configure(self.engine, "BEGIN IMMEDIATE", busy_timeout_s)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")
        self._check = check

    async def run(self, commits: bool, work: Callable[..., _Result], *arguments: Any) -> _Result:
        """Run work in a transaction that is committed at its end, or else rolled back."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._run, commits, work, *arguments)

    def _run(self, commits: bool, work: Callable[..., _Result], *arguments: Any) -> _Result:
        self._check()
        with self.engine.connect() as connection:
            result = work(connection, *arguments)
            if commits:
                connection.commit()
        return result

    def close(self) -> None:
        """Wait for what is under way and close the file."""
        self._thread.shutdown()
        self.engine.dispose()


async def _again(pauses: Pauses, call: Callable[[], Awaitable[_Result]]) -> _Result:
    while True:
        await pauses.wait()
        try:
            return await call()
        except StoreUnavailable:
            continue


def _let_shrink(connection: sqlite3.Connection) -> None:
    """Have a new file give back room that is freed in it; one that has tables cannot be told any more."""
    if connection.execute("PRAGMA page_count").fetchone()[0] == 0:
        with suppress(sqlite3.OperationalError):  # another process is just making it, in the same way
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("PRAGMA journal_mode = WAL")


def _sqlite_engine(url: Any, size: int, begin: str, busy_timeout_s: float) -> AsyncEngine:
    engine = create_async_engine(url, poolclass=AsyncAdaptedQueuePool, pool_size=size, max_overflow=0)
    _configure(engine.sync_engine, begin, busy_timeout_s)
    return engine


def _configure(engine: Engine, begin: str, busy_timeout_s: float) -> None:
    @event.listens_for(engine, "connect")
    def _connected(connection: Any, _: Any) -> None:
        # Transactions begin where we say so, not where the driver guesses.
        connection.isolation_level = None
        cursor = connection.cursor()
        for pragma in (
            f"busy_timeout = {round(busy_timeout_s * 1000)}",
            "journal_mode = WAL",
            # The log is cut down to 16 MiB after a large transaction; nearly as long it may grow before its pages are
            # written to the file, each once for all of its changes meanwhile.
            "journal_size_limit = 16777216",
            "wal_autocheckpoint = 4000",
            "synchronous = FULL",
            "foreign_keys = ON",
            "temp_store = MEMORY",
            "cache_size = -65536",
        ):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)


def _postgres_engine(url: Any) -> AsyncEngine:
    try:
        return create_async_engine(url, pool_size=10, max_overflow=10, pool_pre_ping=True)
    except ModuleNotFoundError:
        raise OperatorError('PostgreSQL needs the extra: pip install "ardvark[postgres]"') from None


def _reason(error: Exception) -> str:
    cause = getattr(error, "orig", None) or error
    return str(cause).partition("\n")[0]
