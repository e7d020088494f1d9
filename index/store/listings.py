"""Bringing entries and listings in line with what a document said.

One document's reading is applied in one transaction: its entries, the listings of the identifiers concerned, the search
index and the change feed. Several sources may name one identifier; the best one is listed, the others are kept beside
it. Only a complete reading removes, and a large drop waits until it is seen twice.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson
from sqlalchemy import Connection, Row, Select, bindparam, delete, select, update

from index.documents import DocumentState
from index.precedence import source_rank
from index.records import Entry, Reading, Standing, pointer_step
from index.served import ServedEntry, derive, serve
from index.store.changes import Change, append_changes
from index.store.documents import document_id, problem_row
from index.store.engines import chunks, insert_ignore, upsert
from index.store.postings import IndexedListing, add_to_entry_count, index_listings
from index.store.tables import documents, entries, key_of, listing_bodies, listings, storable
from index.strict_json import digest

HOLD_FROM = 10
_MAX_MEMBERS = 50


@dataclass
class Applied:
    """What applying a reading came to."""

    listed: int = 0
    rejected: int = 0
    unchanged: int = 0
    changes: int = 0
    held: bool = False
    keys: set[str] = field(default_factory=set)


def apply_reading(
    connection: Connection, state: DocumentState, reading: Reading, now: datetime, *, confirm_removals: bool
) -> Applied:
    """Bring the entries of a document and their listings in line with a reading."""
    old = {row.id: row for row in _entries_of(connection, state.url)}
    new = _rows(state, reading, now)
    applied = Applied()
    missing = [row for key, row in old.items() if key not in new] if reading.complete else []
    if _is_large_drop(old.values(), missing) and not confirm_removals:
        applied.held = True
        missing = []
    written = [row for key, row in new.items() if _differs(old.get(key), row)]
    same = {key for key in new if key in old and not _content_differs(connection, old[key], new[key])}
    for row in written:
        if row["id"] in same:
            row["changed_at"] = old[row["id"]].changed_at
    _write_entries(connection, written)
    _delete_entries(connection, [row.id for row in missing])
    touched = {row["key"] for row in written} | {row.key for row in missing}
    touched |= {old[row["id"]].key for row in written if row["id"] in old}
    states = settle_listings(connection, touched - {None}, now, applied)
    _count(applied, new, same, states)
    if applied.held:
        connection.execute(update(documents).where(documents.c.id == document_id(state.url)).values(held=True))
    return applied


def take_away(connection: Connection, urls: Sequence[str], now: datetime, reason: str) -> int:
    """Remove all entries of documents that their publisher took away; gives the number of changes."""
    applied = Applied()
    for url in urls:
        rows = _entries_of(connection, url)
        _delete_entries(connection, [row.id for row in rows])
        settle_listings(connection, {row.key for row in rows} - {None}, now, applied, reason=reason)
    return applied.changes


def _entries_of(connection: Connection, url: str) -> Sequence[Row[Any]]:
    columns = (
        entries.c.id,
        entries.c.key,
        entries.c.position,
        entries.c.pointer,
        entries.c.standing,
        entries.c.state,
        entries.c.digest,
        entries.c.source_rank,
        entries.c.changed_at,
        entries.c.problems,
    )
    query: Select[Any] = select(*columns).where(entries.c.document_id == document_id(url))
    return connection.execute(query).all()


def _rows(state: DocumentState, reading: Reading, now: datetime) -> dict[int, dict[str, Any]]:
    """Lay out the entries of a reading; the same entry has the same key in every reading."""
    seen: Counter[tuple[str, str]] = Counter()
    rows = {}
    for position, entry in enumerate(reading.entries):
        name = (
            entry.key or entry.identifier or digest(entry.raw.encode("utf-8", "surrogatepass")),
            entry.version or "",
        )
        seen[name] += 1
        key = key_of("entry", state.url, *name, str(seen[name]))
        rows[key] = _row(key, position, state, entry, now)
    return rows


def _row(key: int, position: int, state: DocumentState, entry: Entry, now: datetime) -> dict[str, Any]:
    published = json.loads(entry.raw) if entry.standing is not Standing.REJECTED else {}
    return {
        "id": key,
        "document_id": document_id(state.url),
        "pointer": storable(entry.pointer),
        "position": position,
        "identifier": storable(entry.identifier) if entry.identifier else None,
        "key": entry.key,
        "version": storable(entry.version) if entry.version else None,
        "standing": entry.standing,
        "state": entry.standing,
        "digest": digest(entry.raw.encode("utf-8", "surrogatepass")),
        "raw": storable(entry.raw),
        "derived": derive(entry, published) if entry.standing is not Standing.REJECTED else {},
        "problems": [problem_row(problem) for problem in entry.problems],
        "source_rank": source_rank(entry.publisher, state.url, state.rank),
        "first_seen_at": now,
        "changed_at": now,
    }


def _is_large_drop(old: Iterable[Row[Any]], missing: Sequence[Row[Any]]) -> bool:
    """Tell whether more than half of ten or more entries would go at once."""
    before = sum(1 for row in old if row.standing == Standing.CANDIDATE)
    lost = sum(1 for row in missing if row.standing == Standing.CANDIDATE)
    return before >= HOLD_FROM and 2 * lost > before


def _differs(old: Row[Any] | None, new: Mapping[str, Any]) -> bool:
    return old is None or any(
        getattr(old, name) != new[name]
        for name in ("digest", "standing", "pointer", "position", "source_rank", "problems")
    )


def _content_differs(connection: Connection, old: Row[Any], new: Mapping[str, Any]) -> bool:
    """Compare contents, not formatting: another spelling of the same JSON is no change."""
    if old.digest == new["digest"]:
        return False
    raw = connection.execute(select(entries.c.raw).where(entries.c.id == old.id)).scalar_one()
    return not same_json(json.loads(raw), json.loads(new["raw"]))


def same_json(first: Any, second: Any) -> bool:
    """Compare JSON values strictly: `true` is not 1, absent is not null."""
    return json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)


def _write_entries(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    if rows:
        updated = [name for name in rows[0] if name not in ("id", "document_id", "first_seen_at")]
        connection.execute(upsert(connection, entries, ["id"], updated), list(rows))


def _delete_entries(connection: Connection, ids: Sequence[int]) -> None:
    for chunk in chunks(ids):
        connection.execute(delete(entries).where(entries.c.id.in_(chunk)))


def _count(applied: Applied, new: Mapping[int, Mapping[str, Any]], same: set[int], states: Mapping[int, str]) -> None:
    """Count every entry once: as unchanged, as listed, or as kept out of the index for a reason."""
    for key in new:
        if key in same:
            applied.unchanged += 1
        elif states.get(key) == "listed":
            applied.listed += 1
        else:
            applied.rejected += 1


# --- listings ---------------------------------------------------------------------------------------------------------


@dataclass
class _Plan:
    """The writes that a set of identifiers needs."""

    now: datetime
    reason: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    served: dict[str, ServedEntry] = field(default_factory=dict)
    removed: list[int] = field(default_factory=list)
    states: dict[int, str] = field(default_factory=dict)
    new_states: dict[int, str] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    count: int = 0


def settle_listings(
    connection: Connection, keys: Iterable[str], now: datetime, applied: Applied, *, reason: str = ""
) -> dict[int, str]:
    """Choose for each identifier the entry that is listed, and bring listing, index and feed in line.

    Gives the state of every entry concerned: `listed`, `conflict` or `duplicate`.
    """
    plan = _Plan(now, reason)
    for chunk in chunks(sorted(keys)):
        _plan_chunk(connection, chunk, plan)
    _write_states(connection, plan.new_states)
    _write_listings(connection, plan)
    append_changes(connection, plan.changes)
    add_to_entry_count(connection, plan.count)
    applied.changes += len(plan.changes)
    applied.keys.update(plan.served)
    return plan.states


def _plan_chunk(connection: Connection, keys: Sequence[str], plan: _Plan) -> None:
    candidates: dict[str, list[Row[Any]]] = {key: [] for key in keys}
    order = (entries.c.key, entries.c.source_rank, entries.c.first_seen_at, entries.c.document_id, entries.c.position)
    query = (
        select(entries, documents.c.url, documents.c.mechanism)
        .join(documents, documents.c.id == entries.c.document_id)
        .where(entries.c.key.in_(keys), entries.c.standing == Standing.CANDIDATE)
        .order_by(*order)
    )
    for row in connection.execute(query):
        candidates[row.key].append(row)
    current = {
        row.identifier: row
        for row in connection.execute(
            select(listings, listing_bodies.c.entry)
            .outerjoin(listing_bodies, listing_bodies.c.listing_id == listings.c.id)
            .where(listings.c.identifier.in_(keys))
        )
    }
    for key, rows in candidates.items():
        listing = current.get(key)
        if rows:
            _plan_listing(plan, key, rows, listing)
        elif listing is not None and listing.removed_at is None:
            _plan_removal(plan, listing)


def _plan_listing(plan: _Plan, key: str, rows: Sequence[Row[Any]], listing: Row[Any] | None) -> None:
    best, *others = rows
    _state(plan, best, "listed")
    for other in others:
        same = other.digest == best.digest or same_json(json.loads(other.raw), json.loads(best.raw))
        _state(plan, other, "duplicate" if same else "conflict")
    served = serve(key, best.raw, best.derived)
    name = digest(served.entry.encode())
    live = listing is not None and listing.removed_at is None
    changed = listing is None or not live or listing.digest != name
    row = {
        "identifier": key,
        "entry_id": best.id,
        "document_id": best.document_id,
        "display_name": storable(served.display_name),
        "folded_name": storable(served.folded_name),
        "type": storable(served.type),
        "publisher": served.publisher,
        "leaf": served.leaf,
        "digest": name,
        "sources": len(rows),
        "first_seen_at": listing.first_seen_at if listing is not None else plan.now,
        "changed_at": plan.now if changed or listing is None else listing.changed_at,
        "updated_at": datetime.fromisoformat(served.updated_at) if served.updated_at else best.changed_at,
        "removed_at": None,
    }
    if not changed and listing is not None and all(getattr(listing, item) == row[item] for item in row):
        return
    plan.rows.append(row)
    if not changed:
        return
    plan.served[key] = served
    plan.count += 0 if live else 1
    old = json.loads(listing.entry) if live and listing is not None and listing.entry else None
    plan.changes.append(
        Change(
            kind="entry.changed" if live else "entry.added",
            identifier=key,
            at=plan.now,
            url=best.url,
            mechanism=best.mechanism,
            members=_changed_members(old, json.loads(served.entry)) if old is not None else (),
            old_digest=listing.digest if live and listing is not None else None,
            new_digest=name,
            reason=plan.reason,
        )
    )


def _plan_removal(plan: _Plan, listing: Row[Any]) -> None:
    plan.removed.append(listing.id)
    plan.count -= 1
    plan.changes.append(
        Change(
            kind="entry.removed",
            identifier=listing.identifier,
            at=plan.now,
            old_digest=listing.digest,
            reason=plan.reason or "absent_from_source",
        )
    )


def _state(plan: _Plan, row: Row[Any], state: str) -> None:
    plan.states[row.id] = state
    if row.state != state:
        plan.new_states[row.id] = state


def _changed_members(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[str, ...]:
    """Name the members that differ, as JSON Pointers; what is added or gone counts too."""
    names = [
        name for name in {**old, **new} if name not in old or name not in new or not same_json(old[name], new[name])
    ]
    return tuple(storable(pointer_step(name)) for name in names[:_MAX_MEMBERS])


def _write_states(connection: Connection, states: Mapping[int, str]) -> None:
    if states:
        statement = update(entries).where(entries.c.id == bindparam("entry")).values(state=bindparam("new_state"))
        connection.execute(statement, [{"entry": key, "new_state": state} for key, state in sorted(states.items())])


def _write_listings(connection: Connection, plan: _Plan) -> None:
    if plan.rows:
        connection.execute(insert_ignore(connection, listings), plan.rows)
        updated = [name for name in plan.rows[0] if name not in ("identifier", "first_seen_at")]
        values: dict[str, Any] = {name: bindparam(f"new_{name}") for name in updated}
        connection.execute(
            update(listings).where(listings.c.identifier == bindparam("key")).values(values),
            [{"key": row["identifier"], **{f"new_{name}": row[name] for name in updated}} for row in plan.rows],
        )
    numbers: dict[str, int] = {}
    for chunk in chunks(plan.served):
        rows = connection.execute(select(listings.c.identifier, listings.c.id).where(listings.c.identifier.in_(chunk)))
        numbers.update((identifier, number) for identifier, number in rows)
    bodies = [
        {
            "listing_id": numbers[key],
            "entry": storable(served.entry),
            "projection": orjson.dumps(served.projection).decode(),
        }
        for key, served in plan.served.items()
    ]
    if bodies:
        connection.execute(upsert(connection, listing_bodies, ["listing_id"], ("entry", "projection")), bodies)
    for ids in chunks(plan.removed):
        connection.execute(update(listings).where(listings.c.id.in_(ids)).values(removed_at=plan.now, entry_id=None))
    batch = [IndexedListing(numbers[key], served.impacts(), served.attributes()) for key, served in plan.served.items()]
    index_listings(connection, batch, plan.removed)
