"""Room that pruning freed, given back to the disk: SQLite keeps it otherwise; PostgreSQL sees to it by itself."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from index.store.database import Database

# Left in the file for what is written next; a page is 4 KiB.
_SPARE_PAGES = 256
_PAGES_A_STEP = 2_000
_INCREMENTAL = 2
# A checkpoint that truncates holds up whoever writes until the last reader of an old state is done.
_PATIENCE_MS = 500
_USUAL_PATIENCE_MS = 30_000


async def give_back_room(database: Database) -> int:
    """Shorten the file by its free pages, a little at a time, and empty its log; gives the number of pages."""
    if not database.is_sqlite:
        return 0
    pages = 0
    async with _driver(database) as driver:
        # What another process keeps locked for long can wait for the next time.
        with suppress(sqlite3.OperationalError):
            pages = await _shorten(driver)
            await _empty_log(driver)
    return pages


async def _shorten(driver: Any) -> int:
    if await _number(driver, "auto_vacuum") != _INCREMENTAL:
        return 0
    before = spare = await _number(driver, "freelist_count")
    while spare > _SPARE_PAGES:
        # Only a script runs to its end; a statement would free a single page.
        await driver.executescript(f"PRAGMA incremental_vacuum({min(_PAGES_A_STEP, spare - _SPARE_PAGES)})")
        left = await _number(driver, "freelist_count")
        if left >= spare:
            break
        spare = left
    return before - spare


async def _empty_log(driver: Any) -> None:
    """Write the log into the file and cut it off; with a reader in the way it is only written as far as possible."""
    try:
        await driver.executescript(f"PRAGMA busy_timeout = {_PATIENCE_MS}; PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        await driver.executescript(f"PRAGMA busy_timeout = {_USUAL_PATIENCE_MS}")


async def _number(driver: Any, pragma: str) -> int:
    cursor = await driver.execute(f"PRAGMA {pragma}")
    row = await cursor.fetchone()
    await cursor.close()
    return int(row[0])


@asynccontextmanager
async def _driver(database: Database) -> AsyncIterator[Any]:
    """Give a connection of the driver's own, outside any transaction."""
    async with database.reading() as connection:
        raw = await connection.get_raw_connection()
        yield raw.driver_connection


@asynccontextmanager
async def alone(database: Database, key: int) -> AsyncIterator[bool]:
    """Tell whether this process may do what only one process may at a time; for as long as the block lasts.

    On SQLite it always may: there the processes are few, and their transactions queue up.
    """
    if database.is_sqlite:
        yield True
        return
    async with database.reading() as connection:
        got = bool((await connection.exec_driver_sql(f"SELECT pg_try_advisory_lock({key})")).scalar_one())
        await connection.commit()
        try:
            yield got
        finally:
            if got:
                await connection.exec_driver_sql(f"SELECT pg_advisory_unlock({key})")
                await connection.commit()
