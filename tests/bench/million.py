"""A due-queue of a million origins, filled as fast as the engine takes it.

Every origin has a manifest that was fetched once and has a body; the last `WATCHED` of them to fall due have
`DOCUMENTS` of them. What differs from row to row is loaded into a table for the moment, and the rest is said once, in
an `INSERT … SELECT`.
"""

import hashlib
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
from sqlalchemy import Table
from sqlalchemy.dialects import postgresql, sqlite

from index.documents import DocumentKind, DocumentState, Outcome
from index.records import Rank
from index.store.documents import state_row
from index.store.tables import documents, key_of, origins, snapshots

ORIGINS = 1_000_000
WATCHED, DOCUMENTS = 5_000, 5
_HEADERS = {"content-type": "application/json", "etag": '"m1"', "cache-control": "max-age=3600"}
_SEED = "CREATE {} TABLE seed (origin_id BIGINT, origin TEXT, due {}, id BIGINT, url TEXT, digest TEXT, main BOOLEAN)"
_COLUMNS = ("origin_id", "origin", "due", "id", "url", "digest", "main")


def origin_of(number: int) -> str:
    """Name an origin."""
    return f"https://o{number}.bench.example"


def _seed(now: datetime, *, text: bool) -> Iterator[tuple[Any, ...]]:
    for number in range(ORIGINS):
        origin = origin_of(number)
        key = key_of("origin", origin)
        due: Any = now - timedelta(milliseconds=ORIGINS - number)
        due = due.isoformat(timespec="microseconds") if text else due
        for index in range(DOCUMENTS if number >= ORIGINS - WATCHED else 1):
            url = f"{origin}/.well-known/ard.json" if index == 0 else f"{origin}/catalogs/{index}.json"
            digest = hashlib.sha256(url.encode()).hexdigest()
            yield key, origin, due, key_of("document", url), url, digest, index == 0


def fill_sqlite(path: Path) -> None:
    """Fill the tables of a file whose schema is in place."""
    now = datetime.now(UTC)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for pragma in ("synchronous = OFF", "cache_size = -400000", "temp_store = MEMORY", "journal_size_limit = 0"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("BEGIN")
        connection.execute(_SEED.format("TEMPORARY", "TEXT"))
        connection.executemany("INSERT INTO seed VALUES (?, ?, ?, ?, ?, ?, ?)", _seed(now, text=True))
        indexes = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL "
            "AND tbl_name IN ('origins', 'documents')"
        ).fetchall()
        for name, _ in indexes:
            connection.execute(f"DROP INDEX {name}")
        for statement in _statements(now, sqlite.dialect()):
            connection.execute(statement)
        for _, sql in indexes:
            connection.execute(sql)
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


async def fill_postgres(url: str) -> None:
    """Fill the tables of a database whose schema is in place."""
    now = datetime.now(UTC)
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            await connection.execute("SET LOCAL maintenance_work_mem = '256MB'")
            await connection.execute(_SEED.format("TEMPORARY", "TIMESTAMPTZ"))
            await connection.copy_records_to_table("seed", records=_seed(now, text=False), columns=_COLUMNS)
            for statement in _statements(now, postgresql.dialect()):
                await connection.execute(statement)
        for table in (origins, documents, snapshots):
            await connection.execute(f"VACUUM (ANALYZE) {table.name}")
        await connection.execute("CHECKPOINT")
    finally:
        await connection.close()


def _statements(now: datetime, dialect: Any) -> Iterator[str]:
    """Say what all rows of a table have in common, in the order in which their keys lie in it."""
    origin = {
        "managed_by": "config",
        "active": True,
        "options": {"surfaces": ["ard"]},
        "added_at": now,
        "last_visit_at": now,
        "last_outcome": "done",
        "robots": "absent",
        "visits": 1,
        "failures": 0,
    }
    yield _insert(origins, {"id": "origin_id", "origin": "origin", "next_visit_at": "due"}, origin, "main", dialect)
    state = DocumentState(
        "",
        "",
        DocumentKind.MANIFEST,
        now - timedelta(days=30),
        rank=Rank.UNKNOWN,
        outcome=Outcome.FETCHED,
        status=200,
        attempted_at=now - timedelta(days=1),
        fetched_at=now - timedelta(days=1),
        confirmed_at=now - timedelta(days=1),
        changed_at=now - timedelta(days=1),
        full_at=now - timedelta(days=1),
        headers=_HEADERS,
        length=2048,
        parser_version="1",
        fresh_until=now - timedelta(hours=23),
        interval=timedelta(days=1),
        rate_a=0.5,
        rate_b=2.0,
        entry_count=4,
    )
    own = {"id": "id", "url": "url", "origin_id": "origin_id", "next_fetch_at": "due", "digest": "digest"}
    own |= {"content_digest": "digest", "applied_digest": "digest"}
    yield _insert(documents, own, state_row(state), "true", dialect)
    body = {"codec": "plain", "body": b"{}", "length": 2, "media_type": "application/json", "stored_at": now}
    yield _insert(snapshots, {"digest": "digest"}, {**body, "private": False}, "true", dialect)


def _insert(table: Table, own: Mapping[str, str], common: Mapping[str, Any], which: str, dialect: Any) -> str:
    values = {}
    for name, value in common.items():
        if name not in own and value is not None:
            kind = table.c[name].type.dialect_impl(dialect)
            process = kind.bind_processor(dialect)
            stored = value if process is None else process(value)
            values[name] = _literal(stored, dialect)
    names = ", ".join([*own, *values])
    selected = ", ".join([*own.values(), *values.values()])
    key = own.get("id", "digest")
    return f"INSERT INTO {table.name} ({names}) SELECT {selected} FROM seed WHERE {which} ORDER BY {key}"


def _literal(value: Any, dialect: Any) -> str:
    if isinstance(value, bytes):
        return f"X'{value.hex()}'" if dialect.name == "sqlite" else f"'\\x{value.hex()}'"
    if isinstance(value, bool):
        return str(value)
    return format(value) if isinstance(value, int | float) else f"'{value}'"
