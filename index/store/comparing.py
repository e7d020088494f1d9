"""The end of a visit compares what it read anew: entries with cards, documents of one origin with each other."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row

from index.store.artifacts import take_pending
from index.store.changes import Change, append_changes
from index.store.documents import origin_id
from index.store.drifts import Sighted, settle_drifts
from index.store.pairs import judge_pairs


def compare_pending(connection: Connection, visited: Mapping[str, datetime], now: datetime) -> None:
    """Judge what origins have waiting, by origin and end of the visit.

    `now` is when the feed shows the outcome.
    """
    if not visited:
        return
    keys = [origin_id(origin) for origin in visited]
    waiting = take_pending(connection, keys)
    if waiting:
        append_changes(connection, _judge(connection, waiting, max(visited.values())), now)


def _judge(connection: Connection, waiting: Sequence[Row[Any]], at: datetime) -> list[Change]:
    times = {kind: {row.subject: row.at for row in waiting if row.kind == kind} for kind in _KINDS}
    sighted = Sighted(times["entry"], list(times["removed"]), times["artifact"])
    pairs = judge_pairs(connection, times["manifest"], times["artifact"])
    return settle_drifts(connection, at, sighted, pairs)


_KINDS = ("entry", "removed", "artifact", "manifest")
