"""Stored bodies, known by their digest; the same bytes are kept once."""

import zlib
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select

from index.store.engines import insert_new_rows
from index.store.tables import snapshots

_LEVEL = 3


def snapshot_row(digest: str, body: bytes, media_type: str | None, now: datetime) -> dict[str, Any]:
    """Pack a body; small or incompressible ones are kept as they are."""
    packed = zlib.compress(body, _LEVEL)
    plain = len(packed) >= len(body)
    return {
        "digest": digest,
        "codec": "plain" if plain else "zlib",
        "body": body if plain else packed,
        "length": len(body),
        "media_type": media_type,
        "stored_at": now,
    }


def put_snapshots(connection: Connection, rows: list[dict[str, Any]]) -> None:
    """Store bodies that aren't there yet."""
    insert_new_rows(connection, snapshots, rows)


def load_snapshot(connection: Connection, digest: str) -> bytes | None:
    """Give a stored body; None when it is not there or cannot be unpacked."""
    row = connection.execute(select(snapshots.c.codec, snapshots.c.body).where(snapshots.c.digest == digest)).first()
    if row is None:
        return None
    if row.codec == "plain":
        return bytes(row.body)
    try:
        return zlib.decompress(row.body)
    except zlib.error:
        return None
