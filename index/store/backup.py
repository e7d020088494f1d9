"""Copies of an embedded database: made while it is written, checked before they count, put back when nobody uses it.

PostgreSQL has its own tools for this.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy.engine import make_url

from config.errors import OperatorError
from index.store.schema import known_revisions

_BUSY_TIMEOUT_S = 30
_BESIDE = ("-wal", "-shm")


@dataclass(frozen=True, slots=True)
class Restored:
    """What came of a restore: the revision of the schema, and where the database that was there before is now."""

    revision: str
    before: Path | None


def database_file(url: str) -> Path:
    """Give the file of an embedded database; an operator who has none is told what to use instead."""
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        raise OperatorError(
            "this database is PostgreSQL, which has tools of its own: back up with "
            f"`pg_dump --format=custom --file FILE {parsed.database}` and restore with "
            f"`pg_restore --clean --if-exists --dbname {parsed.database} FILE`"
        )
    return Path(parsed.database or "")


def back_up(url: str, target: Path, *, overwrite: bool = False) -> int:
    """Copy a database as it is at one moment, whoever writes to it meanwhile; gives the size of the copy.

    The copy appears under its name when it is whole and checked, never before.
    """
    source = database_file(url)
    _must_exist(source, "storage.url")
    if target.exists() and not overwrite:
        raise OperatorError(f"{target} exists already; name another file, or use --overwrite")
    if target.exists() and target.samefile(source):
        raise OperatorError(f"{target} is the database itself")
    with _part_of(target) as part:
        _copy(source, part)
        _check(part, str(source))
        part.replace(target)
    _sync_folder(target.parent)
    return target.stat().st_size


def restore(url: str, copy: Path, now: datetime) -> Restored:
    """Put a copy in the place of the database that nobody uses, and keep that one beside it."""
    target = database_file(url)
    _must_exist(copy, "FILE")
    if not target.parent.is_dir():
        raise OperatorError(f"storage.url: the folder {target.parent} does not exist")
    if target.exists() and target.samefile(copy):
        raise OperatorError(f"{copy} is the database itself")
    with _part_of(target) as part:
        _copy(copy, part)
        revision = _check(part, str(copy))
        before = _set_aside(target, now) if target.exists() else None
        part.replace(target)
    _sync_folder(target.parent)
    return Restored(revision, before)


def _must_exist(path: Path, what: str) -> None:
    if not path.is_file():
        raise OperatorError(f"{what}: there is no file {path}")


@contextmanager
def _part_of(target: Path) -> Iterator[Path]:
    """Give a name beside a file for what is to become it; nothing is left under that name."""
    if not target.parent.is_dir():
        raise OperatorError(f"the folder {target.parent} does not exist")
    part = target.with_name(f"{target.name}.part-{os.getpid()}")
    try:
        yield part
    finally:
        for suffix in ("", "-journal", *_BESIDE):
            part.with_name(part.name + suffix).unlink(missing_ok=True)


def _copy(source: Path, target: Path) -> None:
    """Copy a database in one read transaction, which holds up no writer, into one file without a log."""
    try:
        with closing(_opened(source)) as reader, closing(sqlite3.connect(target)) as writer:
            reader.backup(writer)
            writer.execute("PRAGMA journal_mode = DELETE")
        with target.open("rb+") as file:
            os.fsync(file.fileno())
    except (sqlite3.Error, OSError) as error:
        raise OperatorError(f"{source} cannot be copied to {target.parent}: {error}") from error


def _opened(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_BUSY_TIMEOUT_S, isolation_level=None)
    connection.execute("PRAGMA query_only = ON")
    return connection


def _check(path: Path, shown: str) -> str:
    """Have a database look itself over; gives the revision of its schema, which must be one that we know."""
    try:
        with closing(_opened(path)) as connection:
            faults = [row[0] for row in connection.execute("PRAGMA integrity_check(10)")]
            dangling = connection.execute("PRAGMA foreign_key_check").fetchone()
            tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            query = "SELECT version_num FROM alembic_version"
            revisions = [row[0] for row in connection.execute(query)] if "alembic_version" in tables else []
    except sqlite3.Error as error:
        raise OperatorError(f"{shown} is no sound database: {error}") from error
    if faults != ["ok"] or dangling is not None:
        raise OperatorError(f"{shown} is damaged: {'; '.join(faults)}")
    if len(revisions) != 1 or revisions[0] not in known_revisions():
        raise OperatorError(
            f"{shown} is no database of this version of Ardvark or an earlier one: "
            f"its schema is at {', '.join(revisions) or 'nothing'}"
        )
    return str(revisions[0])


def _set_aside(path: Path, now: datetime) -> Path:
    """Give a database another name, with all of its log in it; refuses while anybody has it open."""
    aside = path.with_name(f"{path.name}.before-{now:%Y%m%dT%H%M%SZ}")
    if aside.exists():
        raise OperatorError(f"{aside} exists already")
    try:
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as connection:
            # Leaving the mode with a log needs the file for oneself: it fails while any process has it open.
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("BEGIN EXCLUSIVE")
            path.rename(aside)
            connection.execute("ROLLBACK")
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            raise OperatorError(f"{path} cannot be set aside: {error}") from error
        raise OperatorError(f"{path} is in use: stop the daemon and everything else that has it open") from None
    except sqlite3.DatabaseError:
        # What is there is no database any more; it is kept as it is.
        path.rename(aside)
        for suffix in _BESIDE:
            with suppress(FileNotFoundError):
                path.with_name(path.name + suffix).rename(aside.with_name(aside.name + suffix))
    return aside


def _sync_folder(folder: Path) -> None:
    """Make a new name last through a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
