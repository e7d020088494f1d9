"""Stored bodies, known by their digest; the same bytes are kept once."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import Connection, Row, Select, select

from index.store.among import among, rows_among
from index.store.engines import chunks, insert_new_rows, update_rows
from index.store.tables import snapshots
from index.strict_json import digest as digest_of

_LEVEL = 3


@dataclass(frozen=True, slots=True)
class NewSnapshot:
    """A body to keep."""

    digest: str
    body: bytes
    media_type: str | None
    at: datetime
    private: bool = False


@dataclass(frozen=True, slots=True)
class StoredBody:
    """A body that is kept, and whether its publisher keeps it from others."""

    body: bytes
    private: bool


def is_private(headers: Mapping[str, str]) -> bool:
    """Tell whether a publisher forbids to pass its answer on (RFC 9111 5.2.2.7)."""
    directives = headers.get("cache-control", "").lower().split(",")
    return any(directive.strip() == "private" for directive in directives)


def put_snapshots(connection: Connection, bodies: Sequence[NewSnapshot]) -> int:
    """Store bodies that aren't there yet; gives their number. A stored body that is damaged is put right."""
    wanted = {item.digest: item for item in bodies}
    # Pruning keeps its hands off rows that are locked, until what points to them is written as well.
    known = [row for chunk in chunks(list(wanted)) for row in _stored(connection, chunk, lock=True)]
    damaged = [_row(wanted[row.digest]) for row in known if _unpack(row) is None]
    update_rows(connection, snapshots, damaged, key="digest")
    for row in known:
        del wanted[row.digest]
    insert_new_rows(connection, snapshots, [_row(item) for item in wanted.values()])
    return len(wanted)


def _stored(connection: Connection, digests: Sequence[str], *, lock: bool = False) -> list[Row[Any]]:
    columns = (snapshots.c.digest, snapshots.c.codec, snapshots.c.body, snapshots.c.private)
    query: Select[Any] = select(*columns).where(snapshots.c.digest.in_(digests))
    if lock:
        query = query.with_for_update(read=True, key_share=True)
    return list(connection.execute(query))


def _row(item: NewSnapshot) -> dict[str, Any]:
    """Pack a body; small or incompressible ones are kept as they are."""
    packed = zlib.compress(item.body, _LEVEL)
    plain = len(packed) >= len(item.body)
    return {
        "digest": item.digest,
        "codec": "plain" if plain else "zlib",
        "body": item.body if plain else packed,
        "length": len(item.body),
        "media_type": item.media_type,
        "stored_at": item.at,
        "private": item.private,
    }


def mark_private(connection: Connection, seen: Mapping[str, bool]) -> None:
    """Note what the last look at a body said about passing it on; a 304 may say something new."""
    marked = [
        {"digest": digest, "private": seen[digest]}
        for digest, private in rows_among(connection, _privacy_of, seen)
        if private is not seen[digest]
    ]
    update_rows(connection, snapshots, marked, key="digest")


@cache
def _privacy_of(dialect: str) -> Select[Any]:
    return select(snapshots.c.digest, snapshots.c.private).where(among(dialect, snapshots.c.digest))


def load_snapshot(connection: Connection, digest: str) -> bytes | None:
    """Give a stored body; None when it is not there or damaged."""
    rows = _stored(connection, [digest])
    return _unpack(rows[0]) if rows else None


def load_shown(connection: Connection, digest: str) -> StoredBody | None:
    """Give a stored body with what its publisher said about it; None when it is not there or damaged."""
    rows = _stored(connection, [digest])
    body = _unpack(rows[0]) if rows else None
    return None if body is None else StoredBody(body, bool(rows[0].private))


def _unpack(row: Row[Any]) -> bytes | None:
    try:
        body = bytes(row.body) if row.codec == "plain" else zlib.decompress(row.body)
    except zlib.error:
        return None
    return body if digest_of(body) == row.digest else None
