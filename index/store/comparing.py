"""The end of a visit compares what it read anew: entries with cards, documents of one origin with each other."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import Connection

from index.store.artifacts import take_pending
from index.store.changes import append_changes
from index.store.documents import origin_id
from index.store.drifts import Sighted, settle_drifts
from index.store.pairs import judge_pairs


def compare_pending(connection: Connection, visited: Mapping[str, datetime], now: datetime) -> None:
    """Judge what origins have waiting, by origin and end of the visit; `now` is when the feed shows the outcome."""
    if not visited:
        return
    waiting = take_pending(connection, [origin_id(origin) for origin in visited])
    if not waiting:
        return
    times = {kind: {row.subject: row.at for row in waiting if row.kind == kind} for kind in _KINDS}
    sighted = Sighted(times["entry"], list(times["removed"]), times["artifact"])
    pairs = judge_pairs(connection, times["manifest"], times["artifact"])
    events = settle_drifts(connection, max(visited.values()), sighted, pairs)
    append_changes(connection, events, now)


_KINDS = ("entry", "removed", "artifact", "manifest")
