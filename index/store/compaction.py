"""Files made before files could shrink: written anew once, they give back the room that pruning frees.

Only an embedded database is one file; PostgreSQL sees to its room by itself.
"""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from config.errors import OperatorError
from index.store.backup import database_file

_BUSY_TIMEOUT_S = 30
_INCREMENTAL = 2


def keeps_its_size(url: str) -> bool:
    """Tell whether the file of a database never gives room back."""
    path = database_file(url)
    try:
        with closing(_opened(path)) as connection:
            return bool(connection.execute("PRAGMA auto_vacuum").fetchone()[0] != _INCREMENTAL)
    except sqlite3.Error as error:
        raise OperatorError(f"{path} cannot be read: {error}") from error


def compact(url: str) -> tuple[int, int]:
    """Write a file anew without the room that is free in it, so that it can shrink; gives the sizes before and after.

    Others may read meanwhile; who wants to write waits. It takes as much room on the disk as the database has.
    """
    path = database_file(url)
    if not path.is_file():
        raise OperatorError(f"storage.url: there is no file {path}")
    before = path.stat().st_size
    free = shutil.disk_usage(path.parent).free
    if free < 2 * before:
        raise OperatorError(
            f"{path.parent} has {free:,} bytes free; for the copy and its log {2 * before:,} are needed"
        )
    try:
        with closing(_opened(path)) as connection:
            connection.execute(f"PRAGMA auto_vacuum = {_INCREMENTAL}")
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error as error:
        raise OperatorError(f"{path} cannot be written anew: {error}") from error
    return before, path.stat().st_size


def _opened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=_BUSY_TIMEOUT_S, isolation_level=None)
