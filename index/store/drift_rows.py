"""The rows of drift: opened when first seen, confirmed while the disagreement lasts, closed when it ends."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, cached_property
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, case, or_, select, update

from index.drift import CardView, Disagreement
from index.findings import redact
from index.store.among import among, rows_among
from index.store.changes import Change
from index.store.engines import chunks, insert_rows, update_rows
from index.store.tables import documents, drifts, json_text, key_of, storable, storable_json

# Outcomes that say that there is nothing, or nothing of the kind.
MISSING = ("absent", "gone", "wrong_kind", "catch_all")
# What nothing in the place of a card disagrees about; all else waits until the card is seen again, or gone for good.
_OF_ABSENCE = ("drift.artifact_gone", "drift.type_mismatch")
_copies, _lives = documents.alias("copies"), documents.alias("lives")


@dataclass(frozen=True, slots=True)
class Older:
    """An earlier state of a card, and the sights between which it was replaced."""

    normal: Mapping[str, Any]
    digest: str
    last_seen_at: datetime
    replaced_at: datetime


@dataclass(frozen=True)
class Live:
    """The live side of a comparison, as last observed."""

    key: int
    view: CardView
    document: int
    url: str
    seen_at: datetime
    changed_at: datetime
    origin_id: int
    mechanism: str
    older: tuple[Older, ...] = ()
    inline: bool = False
    is_there: bool = True

    @cached_property
    def size(self) -> int:
        """How long the normal form is as text."""
        return len(json_text(self.view.normal))

    @cached_property
    def past(self) -> Sequence[CardView]:
        """The earlier states as documents, the newest first."""
        return [CardView(self._kind_of(state), self.view.shape, state.normal, state.digest) for state in self.older]

    def _kind_of(self, state: Older) -> str:
        if self.is_there:
            return self.view.kind
        return "a2a.card" if "skills" in state.normal else "mcp.card" if "remotes" in state.normal else "madp.agent"


@dataclass(frozen=True, slots=True)
class Side:
    """The side that may lag: an entry, or a document with the same things in it."""

    key: int
    document: int
    url: str
    digest: str | None
    seen_at: datetime
    identifier: str | None = None
    publisher: str = ""


@dataclass(slots=True)
class Verdict:
    """What two sides disagree about now, and which of them was read anew."""

    copy: Side
    live: Live
    found: Sequence[Disagreement]
    copy_is_new: bool
    live_is_new: bool
    agreed_with: dict[str, Older] = field(default_factory=dict)
    # The identifiers of what was found, where it is about several.
    names: Sequence[str] = ()

    def is_about(self, row: Row[Any]) -> bool:
        """Tell whether this says something about what stands open."""
        if self.live.is_there:
            return True
        # A card of another kind was one all the same.
        return row.code in _OF_ABSENCE and (row.code != "drift.type_mismatch" or row.live_value == "unknown")

    def items(self) -> dict[int, tuple[Disagreement, str | None]]:
        """Give what was found by the name that it has from visit to visit, with its identifier."""
        names: Sequence[str | None] = self.names or [self.copy.identifier] * len(self.found)
        found: dict[int, tuple[Disagreement, str | None]] = {}
        for item, identifier in zip(self.found, names, strict=True):
            apart = [identifier or ""] if self.names else []
            found[key_of("drift", str(self.copy.key), str(self.live.key), item.key, *apart)] = (item, identifier)
        return found


def reconcile(connection: Connection, verdicts: Sequence[Verdict], now: datetime) -> list[Change]:
    """Open what is new, confirm what goes on and close what ended, for the pairs of sides that were judged."""
    standing = _open_rows(connection, [verdict.copy.key for verdict in verdicts])
    opened, confirmed, closed, events = [], [], [], []
    for verdict in verdicts:
        before = standing.get((verdict.copy.key, verdict.live.key), {})
        now_found = verdict.items()
        for name, (item, identifier) in now_found.items():
            row = before.get(name)
            if row is None:
                opened.append({**_new_row(name, verdict, item), "identifier": identifier})
                events.append(_event("drift.opened", opened[-1], now))
            else:
                confirmed.append(_confirmation(row, verdict, item))
        for name, row in before.items():
            if name not in now_found and verdict.is_about(row):
                closed.append(_closing(row, verdict, now))
                events.append(_event("drift.closed", row._asdict(), now, closed[-1]["closed_by"]))
    insert_rows(connection, drifts, opened)
    update_rows(connection, drifts, confirmed)
    update_rows(connection, drifts, closed)
    return events


def _open_rows(connection: Connection, keys: Iterable[int]) -> dict[tuple[int, int], dict[int, Row[Any]]]:
    found: dict[tuple[int, int], dict[int, Row[Any]]] = {}
    for row in _standing(connection, drifts.c.catalog_id, keys):
        found.setdefault((row.catalog_id, row.live_id), {})[row.name] = row
    return found


def _standing(connection: Connection, column: ColumnElement[int], keys: Iterable[int]) -> list[Row[Any]]:
    found: list[Row[Any]] = []
    for chunk in chunks(set(keys)):
        found += connection.execute(select(drifts).where(column.in_(chunk), drifts.c.closed_at.is_(None)))
    return found


def _new_row(name: int, verdict: Verdict, item: Disagreement) -> dict[str, Any]:
    copy, live = verdict.copy, verdict.live
    at = max(copy.seen_at, live.seen_at)
    agreed = verdict.agreed_with.get(item.key)
    if agreed is not None:
        moved, live_old_at, live_new_at = "live", agreed.last_seen_at, agreed.replaced_at
    else:
        moved = "catalog" if verdict.copy_is_new and not verdict.live_is_new else "unknown"
        # The same content in other bytes is an older sight than these bytes.
        is_about_bytes = item.code == "drift.digest_mismatch"
        live_old_at, live_new_at = None, live.seen_at if is_about_bytes else live.changed_at
    return {
        "name": name,
        "identifier": copy.identifier,
        "publisher": copy.publisher,
        "code": item.code,
        "drift_class": item.kind,
        "severity": item.severity,
        "pointer": storable(item.pointer),
        "live_pointer": storable(item.live_pointer),
        "members": [storable(member) for member in item.members],
        "catalog_value": storable_json(redact(item.catalog)),
        "live_value": storable_json(redact(item.live)),
        "catalog_id": copy.key,
        "live_id": live.key,
        "catalog_document": copy.document,
        "live_document": live.document,
        "catalog_url": copy.url,
        "live_url": live.url,
        "catalog_digest": copy.digest,
        "live_digest": live.view.digest,
        "opened_at": at,
        "confirmed_at": at,
        "closed_at": None,
        "closed_by": None,
        "moved": moved,
        "live_old_at": live_old_at,
        "live_new_at": live_new_at,
        "copy_old_at": copy.seen_at,
        "copy_new_at": None,
        "live_seen_at": live.seen_at,
    }


def _confirmation(row: Row[Any], verdict: Verdict, item: Disagreement) -> dict[str, Any]:
    """Renew a drift that goes on; the values may have moved on without agreeing."""
    return {
        "id": row.id,
        "pointer": storable(item.pointer),
        "live_pointer": storable(item.live_pointer),
        "catalog_value": storable_json(redact(item.catalog)),
        "live_value": storable_json(redact(item.live)),
        "catalog_digest": verdict.copy.digest,
        "live_digest": verdict.live.view.digest,
        "confirmed_at": max(verdict.copy.seen_at, verdict.live.seen_at, row.confirmed_at),
        "copy_old_at": verdict.copy.seen_at,
        "live_seen_at": verdict.live.seen_at,
    }


def _closing(row: Row[Any], verdict: Verdict, now: datetime) -> dict[str, Any]:
    """End a drift by the side that was read anew; when both were, the copy has followed."""
    by_copy = verdict.copy_is_new
    return {
        "id": row.id,
        "closed_at": now,
        "closed_by": "catalog" if by_copy else "live",
        "copy_new_at": verdict.copy.seen_at if by_copy else None,
    }


# --- what ends because a side is gone ---------------------------------------------------------------------------------


def close_removed(connection: Connection, removed: Iterable[int], now: datetime) -> list[Change]:
    """Close what copies disagreed about that are no longer there."""
    return _close(connection, _standing(connection, drifts.c.catalog_id, removed), now)


def close_moved(connection: Connection, current: Mapping[int, int | None], now: datetime) -> list[Change]:
    """Close what copies disagreed about with artifacts that they no longer point to."""
    rows = _standing(connection, drifts.c.catalog_id, current)
    return _close(connection, [row for row in rows if row.live_id != current[row.catalog_id]], now)


def close_with_documents(connection: Connection, keys: Collection[int], now: datetime) -> list[Change]:
    """Close what documents disagreed about that are gone for good; that a card is gone is a disagreement of its own."""
    rows = _standing(connection, drifts.c.catalog_document, keys)
    other = _standing(connection, drifts.c.live_document, keys)
    known = {row.id for row in rows}
    rows += [row for row in other if row.code not in _OF_ABSENCE and row.id not in known]
    return _close(connection, rows, now)


def _close(connection: Connection, rows: Sequence[Row[Any]], now: datetime) -> list[Change]:
    ended = [{"id": row.id, "closed_at": now, "closed_by": "removed", "copy_new_at": now} for row in rows]
    update_rows(connection, drifts, ended)
    return [_event("drift.closed", row._asdict(), now, "removed") for row in rows]


# --- what goes on -----------------------------------------------------------------------------------------------------


def confirm_drifts(connection: Connection, origin_ids: Sequence[int]) -> None:
    """Note for what is still open when its documents on these origins were last seen; a 304 is a sight as well.

    Comes after everything that was read anew on these origins is judged. What is held back says neither. What somebody
    else is writing to is left to them, so that nobody waits for anybody here.
    """
    updates = []
    for row in rows_among(connection, _sights, origin_ids):
        times = {
            "copy_old_at": _later(row.copy_old_at, row.copy_at),
            "live_seen_at": _later(row.live_seen_at, row.live_at),
        }
        if times["copy_old_at"] > row.copy_old_at or times["live_seen_at"] > row.live_seen_at:
            updates.append({"id": row.id, "confirmed_at": max(row.confirmed_at, *times.values()), **times})
    update_rows(connection, drifts, updates)


def retract_sights(connection: Connection, seen_at: Mapping[int, datetime]) -> None:
    """Take back sights of documents since a time: a 304 said that they were the same, and they were not."""
    for document, at in seen_at.items():
        for side, sight in (
            (drifts.c.catalog_document, drifts.c.copy_old_at),
            (drifts.c.live_document, drifts.c.live_seen_at),
        ):
            mine = (side == document) & drifts.c.closed_at.is_(None) & (sight > at)
            connection.execute(update(drifts).where(mine).values({sight: at}))


def _later(known: datetime, seen: datetime | None) -> datetime:
    return known if seen is None else max(known, seen)


@cache
def _sights(dialect: str) -> Select[Any]:
    """Select what is open on origins, with the last sights of those of its two documents that are on them."""
    mine = and_(among(dialect, _copies.c.origin_id), ~_copies.c.held)
    ids = select(documents.c.id).where(among(dialect, documents.c.origin_id))
    missing = _lives.c.outcome.in_(MISSING) & drifts.c.code.in_(_OF_ABSENCE)
    theirs = among(dialect, _lives.c.origin_id)
    return (
        select(
            drifts.c.id,
            drifts.c.confirmed_at,
            drifts.c.copy_old_at,
            drifts.c.live_seen_at,
            case((mine, _copies.c.confirmed_at)).label("copy_at"),
            case((and_(theirs, missing), _lives.c.attempted_at), (theirs, _lives.c.confirmed_at)).label("live_at"),
        )
        .join(_copies, _copies.c.id == drifts.c.catalog_document)
        .join(_lives, _lives.c.id == drifts.c.live_document)
        .where(
            drifts.c.closed_at.is_(None),
            or_(drifts.c.catalog_document.in_(ids), drifts.c.live_document.in_(ids)),
        )
        .with_for_update(of=drifts, skip_locked=True)
    )


def _event(kind: str, row: Mapping[str, Any], at: datetime, reason: str = "") -> Change:
    return Change(
        kind=kind,
        identifier=row["identifier"] or "",
        at=at,
        url=row["live_url"],
        members=(row["pointer"],) if row["pointer"] else (),
        reason=f"{row['code']}{', ' + reason if reason else ''}",
        change_class=row["drift_class"],
    )
