"""From entries to listings: for each identifier one entry is listed, and search and the change feed follow.

Several sources may name one identifier; the best one is listed, the others are kept beside it, as duplicates or in
conflict. Everything here works on many identifiers at once, for a crawl brings them in batches.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any

import orjson
from sqlalchemy import Connection, Row, Select, select, update

from index.diff import diff_entries, is_silent, summary
from index.records import Standing, pointer_step
from index.served import ServedEntry, serve, with_card
from index.store.among import among, rows_among
from index.store.artifacts import cards_of
from index.store.changes import Change, append_changes
from index.store.engines import chunks, insert_new_rows, update_rows, upsert_rows
from index.store.postings import IndexedListing, add_to_entry_count, index_listings
from index.store.tables import documents, entries, listing_bodies, listings, origins, storable
from index.strict_json import digest

_MAX_MEMBERS = 50
_LISTINGS_LOCK = 7_239_004_512


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of the entries of a set of identifiers, by entry key, and how many events the feed got."""

    states: Mapping[int, str]
    changed: Mapping[str, int]

    @property
    def changes(self) -> int:
        return len(self.changed)


@dataclass
class _Plan:
    """The writes that a set of identifiers needs."""

    now: datetime
    reason: str
    fresh: Mapping[int, ServedEntry]
    rows: list[dict[str, Any]] = field(default_factory=list)
    served: dict[str, ServedEntry] = field(default_factory=dict)
    indexed: dict[str, ServedEntry] = field(default_factory=dict)
    removed: list[int] = field(default_factory=list)
    states: dict[int, str] = field(default_factory=dict)
    new_states: list[dict[str, Any]] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    count: int = 0


def lock_listings(connection: Connection) -> None:
    """Decide about listings in one transaction at a time: two that name the same identifier must see each other.

    SQLite has one writer anyway. A transaction that will come to listings takes the lock before any row.
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LISTINGS_LOCK})")


def settle_listings(
    connection: Connection,
    keys: Iterable[str],
    now: datetime,
    *,
    fresh: Mapping[int, ServedEntry] | None = None,
    reason: str = "",
    indexed_at: datetime | None = None,
) -> Settled:
    """Choose for each identifier the entry that is listed, and bring listing, index and feed in line.

    `indexed_at` is when this is done. `fresh` holds what entries that were just read are served as, by entry key, so
    that they need not be read again.
    """
    lock_listings(connection)
    plan = _Plan(now, reason, fresh or {})
    for chunk in chunks(sorted(keys)):
        _plan_chunk(connection, chunk, plan)
    update_rows(connection, entries, plan.new_states)
    _write_listings(connection, plan)
    append_changes(connection, plan.changes, indexed_at)
    add_to_entry_count(connection, plan.count)
    return Settled(plan.states, {change.identifier: 1 for change in plan.changes})


def _plan_chunk(connection: Connection, keys: Sequence[str], plan: _Plan) -> None:
    candidates: dict[str, list[Row[Any]]] = {key: [] for key in keys}
    for row in rows_among(connection, _candidates, keys):
        candidates[row.key].append(row)
    current = {row.identifier: row for row in rows_among(connection, _listings_of, keys)}
    texts = _Texts(connection, plan, [row for rows in candidates.values() for row in rows], current)
    cards = cards_of(connection, {rows[0].artifact_id for rows in candidates.values() if rows and rows[0].artifact_id})
    for key, rows in candidates.items():
        listing = current.get(key)
        if rows:
            _plan_listing(plan, texts, key, rows, listing, cards.get(rows[0].artifact_id))
        elif listing is not None and listing.removed_at is None:
            _plan_removal(plan, listing)


@cache
def _candidates(dialect: str) -> Select[Any]:
    return (
        select(
            entries.c.id,
            entries.c.key,
            entries.c.state,
            entries.c.digest,
            entries.c.document_id,
            entries.c.changed_at,
            entries.c.artifact_id,
            documents.c.url,
            documents.c.mechanism,
        )
        .join(documents, documents.c.id == entries.c.document_id)
        .join(origins, origins.c.id == documents.c.origin_id)
        .where(among(dialect, entries.c.key), entries.c.standing == Standing.CANDIDATE)
        # Among equals the origin that was on the allowlist first wins, which no order of arrival can change.
        .order_by(
            entries.c.key,
            entries.c.source_rank,
            origins.c.added_at,
            documents.c.url,
            entries.c.position,
        )
    )


@cache
def _listings_of(dialect: str) -> Select[Any]:
    return select(listings).where(among(dialect, listings.c.identifier))


@cache
def _texts_of(dialect: str) -> Select[Any]:
    return select(entries.c.id, entries.c.raw, entries.c.derived).where(among(dialect, entries.c.id))


@cache
def _bodies_of(dialect: str) -> Select[Any]:
    return select(listing_bodies.c.listing_id, listing_bodies.c.entry).where(
        among(dialect, listing_bodies.c.listing_id)
    )


@cache
def _numbers_of(dialect: str) -> Select[Any]:
    return select(listings.c.identifier, listings.c.id).where(among(dialect, listings.c.identifier))


class _Texts:
    """The wide parts of the rows of one chunk, read together and only where they are needed."""

    def __init__(
        self, connection: Connection, plan: _Plan, rows: Sequence[Row[Any]], current: Mapping[str, Row[Any]]
    ) -> None:
        sources = Counter(row.key for row in rows)
        needed = [row.id for row in rows if row.id not in plan.fresh or sources[row.key] > 1]
        self._fresh = plan.fresh
        self._entries: dict[int, Row[Any]] = {row.id: row for row in rows_among(connection, _texts_of, needed)}
        live = (row.id for row in current.values() if row.removed_at is None)
        self._listed: dict[int, str] = dict(rows_among(connection, _bodies_of, live))

    def served(self, key: str, entry: int) -> ServedEntry:
        """Give what an entry is served as."""
        fresh = self._fresh.get(entry)
        if fresh is not None:
            return fresh
        row = self._entries[entry]
        return serve(key, row.raw, row.derived)

    def same(self, first: Row[Any], second: Row[Any]) -> bool:
        """Tell whether two entries say the same."""
        if first.digest == second.digest:
            return True
        return same_json(json.loads(self._entries[first.id].raw), json.loads(self._entries[second.id].raw))

    def listed(self, listing: int) -> str | None:
        """Give what a listing served until now."""
        return self._listed.get(listing)


def _plan_listing(
    plan: _Plan,
    texts: _Texts,
    key: str,
    rows: Sequence[Row[Any]],
    listing: Row[Any] | None,
    card: Row[Any] | None,
) -> None:
    best, *others = rows
    _state(plan, best, "listed")
    for other in others:
        _state(plan, other, "duplicate" if texts.same(other, best) else "conflict")
    served = texts.served(key, best.id)
    name = digest(served.entry.encode("utf-8", "replace"))
    live = listing is not None and listing.removed_at is None
    old = texts.listed(listing.id) if live and listing is not None else None
    # Another formatting of the same JSON is no change; what is served stays as it was.
    same = listing is not None and (listing.digest == name or (old is not None and same_text(old, served.entry)))
    changed = listing is None or not live or not same
    row = {
        "identifier": key,
        "entry_id": best.id,
        "document_id": best.document_id,
        "display_name": storable(served.display_name),
        "folded_name": storable(served.folded_name),
        "type": storable(served.type),
        "publisher": served.publisher,
        "leaf": served.leaf,
        "digest": name if changed or listing is None else listing.digest,
        "card_digest": card.content_digest if card is not None else None,
        "sources": len(rows),
        "first_seen_at": listing.first_seen_at if listing is not None else plan.now,
        "changed_at": plan.now if changed or listing is None else listing.changed_at,
        "updated_at": datetime.fromisoformat(served.updated_at) if served.updated_at else best.changed_at,
        "removed_at": None,
    }
    if not changed and listing is not None and all(getattr(listing, item) == row[item] for item in row):
        return
    plan.rows.append(row)
    if changed or listing is None or listing.card_digest != row["card_digest"]:
        plan.indexed[key] = with_card(served, card.kind, card.normal) if card is not None else served
    if not changed:
        return
    plan.served[key] = served
    plan.count += 0 if live else 1
    before, after = (json.loads(old), json.loads(served.entry)) if old is not None else ({}, {})
    edits = diff_entries(before, after)
    plan.changes.append(
        Change(
            kind="entry.changed" if live else "entry.added",
            identifier=key,
            at=plan.now,
            url=best.url,
            mechanism=best.mechanism,
            members=changed_members(before, after),
            old_digest=listing.digest if live and listing is not None else None,
            new_digest=name,
            reason=plan.reason,
            change_class=summary(edits),
            silent=is_silent(edits),
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
        plan.new_states.append({"id": row.id, "state": state})


def same_json(first: Any, second: Any) -> bool:
    """Compare JSON values strictly: `true` is not 1, absent is not null."""
    return json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)


def same_text(first: str, second: str) -> bool:
    """Compare JSON texts by what they say."""
    return same_json(json.loads(first), json.loads(second))


def changed_members(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[str, ...]:
    """Name the members that differ, as JSON Pointers; what is added or gone counts too."""
    names = [
        name for name in {**old, **new} if name not in old or name not in new or not same_json(old[name], new[name])
    ]
    return tuple(storable(pointer_step(name)) for name in names[:_MAX_MEMBERS])


def _write_listings(connection: Connection, plan: _Plan) -> None:
    known = _numbers(connection, [row["identifier"] for row in plan.rows])
    new = [row for row in plan.rows if row["identifier"] not in known]
    insert_new_rows(connection, listings, new)
    old = [row for row in plan.rows if row["identifier"] in known]
    update_rows(connection, listings, old, key="identifier")
    known.update(_numbers(connection, [row["identifier"] for row in new]))
    bodies = [
        {
            "listing_id": known[key],
            "entry": storable(served.entry),
            "projection": orjson.dumps(served.projection).decode(),
        }
        for key, served in plan.served.items()
    ]
    upsert_rows(connection, listing_bodies, bodies, key="listing_id")
    for ids in chunks(plan.removed):
        connection.execute(update(listings).where(listings.c.id.in_(ids)).values(removed_at=plan.now, entry_id=None))
    batch = [IndexedListing(known[key], served.impacts(), served.attributes()) for key, served in plan.indexed.items()]
    index_listings(connection, batch, plan.removed)


def _numbers(connection: Connection, keys: Sequence[str]) -> dict[str, int]:
    return dict(rows_among(connection, _numbers_of, keys))
