"""Stored bodies, known by their digest; the same bytes are kept once."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select

from index.store.engines import chunks, insert_new_rows
from index.store.tables import snapshots

_LEVEL = 3


@dataclass(frozen=True, slots=True)
class NewSnapshot:
    """A body to keep."""

    digest: str
    body: bytes
    media_type: str | None
    at: datetime


def put_snapshots(connection: Connection, bodies: Sequence[NewSnapshot]) -> int:
    """Store bodies that aren't there yet; gives their number."""
    wanted = {item.digest: item for item in bodies}
    for chunk in chunks(list(wanted)):
        for known in connection.execute(select(snapshots.c.digest).where(snapshots.c.digest.in_(chunk))).scalars():
            del wanted[known]
    insert_new_rows(connection, snapshots, [_row(item) for item in wanted.values()])
    return len(wanted)


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
    }


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
