"""Bringing the entries of documents in line with what was read.

Only a complete reading removes entries, and a large drop waits until it is seen twice. Many readings are applied
together, in one transaction, and each of them whole.
"""

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from operator import attrgetter, itemgetter
from typing import Any

from sqlalchemy import Connection, Row, Select, delete, select, update

from index.documents import DocumentState
from index.precedence import source_rank
from index.records import Artifact, ArtifactDecision, ArtifactRef, Entry, Mechanism, Reading, Standing
from index.served import ServedEntry, derive, serve_entry
from index.store.among import among, rows_among
from index.store.artifacts import (
    NewArtifact,
    PutArtifacts,
    append_events,
    copies_of,
    forget_artifacts,
    inline_key,
    listed_with,
    put_artifacts,
    put_pending,
    watch_artifacts,
)
from index.store.changes import append_changes
from index.store.documents import document_id, forget_documents, origin_id, problem_row, withdraw_leads
from index.store.drift_rows import close_removed, close_with_documents
from index.store.engines import chunks, upsert_rows
from index.store.history import Alteration, keep_versions, texts_of
from index.store.listings import same_text, settle_listings
from index.store.tables import copy_key, documents, entries, key_of, storable
from index.strict_json import digest

HOLD_FROM = 10
# The two places of one manifest, which should say the same.
_PAIRED = frozenset({Mechanism.WELL_KNOWN, Mechanism.PREDECESSOR_PATH})


@dataclass(frozen=True, slots=True)
class NewReading:
    """A reading to apply; `confirm_removals` says that a large drop was already seen once before."""

    state: DocumentState
    reading: Reading
    at: datetime
    confirm_removals: bool = False
    before_at: datetime | None = None


@dataclass
class Applied:
    """What applying readings came to, each entry counted once; `not_listed` parts the rejected ones by state.

    `entries` tells by document how many were added, changed and removed, listed or not.
    """

    listed: int = 0
    rejected: int = 0
    not_listed: Counter[str] = field(default_factory=Counter)
    unchanged: int = 0
    changes: int = 0
    held: int = 0
    entries: dict[str, Counter[str]] = field(default_factory=dict)


@dataclass
class _Difference:
    """How one reading differs from what is stored."""

    new: dict[int, dict[str, Any]]
    written: list[dict[str, Any]]
    same: set[int]
    missing: list[Row[Any]]
    held: bool
    keys: set[str] = field(default_factory=set)
    altered: list[Alteration] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


def apply_readings(
    connection: Connection, readings: Sequence[NewReading], cards: Set[int] = frozenset(), now: datetime | None = None
) -> Applied:
    """Bring entries and listings in line with readings of different documents, and with `cards` that changed.

    `now` is when the work is done, from which search shows it.
    """
    applied = Applied()
    if not readings and not cards:
        return applied
    stored = _stored(connection, [item.state.url for item in readings])
    fresh: dict[int, ServedEntry] = {}
    differences = [
        _difference(connection, item, stored.get(document_id(item.state.url), {}), fresh) for item in readings
    ]
    upsert_rows(
        connection,
        entries,
        [row for item in differences for row in item.written],
        never=("document_id", "first_seen_at"),
    )
    _delete(connection, [row.id for item in differences for row in item.missing])
    for reading, found in zip(readings, differences, strict=True):
        keep_versions(connection, reading.state.url, found.altered, before_at=reading.before_at, at=reading.at)
    inline = _take_artifacts(connection, readings, differences, stored)
    cards = cards | inline.changed
    keys = {key for item in differences for key in item.keys} | listed_with(connection, cards)
    at = max((item.at for item in readings), default=now or datetime.now(UTC))
    settled = settle_listings(connection, keys, at, fresh=fresh, indexed_at=now)
    append_events(connection, inline, now or at)
    for item in differences:
        _count(applied, item, settled.states)
    applied.changes = settled.changes
    held = [document_id(reading.state.url) for reading, found in zip(readings, differences, strict=True) if found.held]
    if held:
        connection.execute(update(documents).where(documents.c.id.in_(held)).values(held=True))
    applied.held = len(held)
    applied.entries = {item.state.url: found.counts for item, found in zip(readings, differences, strict=True)}
    return applied


def take_away(connection: Connection, urls: Sequence[str], now: datetime, reason: str) -> int:
    """Remove all entries of documents that are gone, and of the catalogs that only they led to.

    Gives the number of changes.
    """
    changes = _empty(connection, urls, now, reason)
    return changes + withdraw(connection, withdraw_leads(connection, urls, now), now)


def withdraw(connection: Connection, catalogs: Sequence[str], now: datetime) -> int:
    """Give up nested catalogs that nothing leads to any more; gives the number of changes."""
    forget_documents(connection, catalogs, now)
    return _empty(connection, catalogs, now, "catalog_withdrawn")


def _empty(connection: Connection, urls: Sequence[str], now: datetime, reason: str) -> int:
    """Remove the entries of documents; when a document returns unchanged, it has to be read again."""
    stored = _stored(connection, urls)
    rows = [row for found in stored.values() for row in found.values()]
    _delete(connection, [row.id for row in rows])
    forgotten = forget_artifacts(connection, {row.artifact_id for row in rows if row.artifact_id})
    keys = [document_id(url) for url in urls]
    ended = close_with_documents(connection, keys, now) + close_removed(connection, copies_of(forgotten), now)
    append_changes(connection, ended, now)
    for chunk in chunks(keys):
        emptied = update(documents).where(documents.c.id.in_(chunk))
        connection.execute(emptied.values(applied_digest=None, held=False, entry_count=0))
    return settle_listings(connection, {row.key for row in rows} - {None}, now, reason=reason).changes


def _stored(connection: Connection, urls: Sequence[str]) -> dict[int, dict[int, Row[Any]]]:
    """Give the entries of documents by document and entry key."""
    stored: dict[int, dict[int, Row[Any]]] = {}
    for row in rows_among(connection, _entries_of, (document_id(url) for url in urls)):
        stored.setdefault(row.document_id, {})[row.id] = row
    return stored


@cache
def _entries_of(dialect: str) -> Select[Any]:
    names = ("document_id", "id", "key", "changed_at", *_COMPARED)
    return select(*(entries.c[name] for name in names)).where(among(dialect, entries.c.document_id))


def _difference(
    connection: Connection, item: NewReading, old: Mapping[int, Row[Any]], fresh: dict[int, ServedEntry]
) -> _Difference:
    new = _rows(item)
    lost = _lost(old, new, complete=item.reading.complete)
    held = _is_large_drop(old, lost) and not item.confirm_removals
    kept = lost if held else set()
    missing = [row for key, row in old.items() if item.reading.complete and key not in new and row.key not in kept]
    written = [
        row for key, row in new.items() if _differs(old.get(key), row) and not (key in old and row["key"] in kept)
    ]
    for row in written:
        _derive(row, item.reading.entries[row["position"]], fresh)
    same, altered = _same_content(connection, old, new)
    for row in written:
        if row["id"] in same:
            row["changed_at"] = old[row["id"]].changed_at
    keys = {row["key"] for row in written} | {row.key for row in missing}
    keys |= {old[row["id"]].key for row in written if row["id"] in old}
    followed = _followed(missing, new, old)
    texts = {**altered, **texts_of(connection, followed)}
    alterations = [
        Alteration(new[key]["key"], raw, old[followed.get(key, key)].changed_at, new[key]["raw"])
        for key, raw in texts.items()
    ]
    added = sum(key not in old and key not in followed for key in new)
    counts = Counter(added=added, changed=len(alterations), removed=len(missing) - len(followed))
    return _Difference(new, written, same, missing, held, keys - {None}, alterations, counts)


def _followed(
    missing: Sequence[Row[Any]], new: Mapping[int, Mapping[str, Any]], old: Mapping[int, Row[Any]]
) -> dict[int, int]:
    """Find the entries that follow others of their identifier, as with a new version: new key to old key."""
    gone = {row.key: row.id for row in missing if row.standing == Standing.CANDIDATE}
    return {
        key: gone[row["key"]]
        for key, row in new.items()
        if key not in old and row["standing"] == Standing.CANDIDATE and row["key"] in gone
    }


def _rows(item: NewReading) -> dict[int, dict[str, Any]]:
    """Lay out the entries of a reading; the same entry has the same key in every reading."""
    seen: Counter[tuple[str, str]] = Counter()
    rows = {}
    for position, entry in enumerate(item.reading.entries):
        raw_digest = digest(entry.raw.encode("utf-8", "surrogatepass"))
        name = (entry.key or entry.identifier or raw_digest, entry.version or "")
        seen[name] += 1
        key = key_of("entry", item.state.url, *name, str(seen[name]))
        rows[key] = _row(key, position, item, entry, raw_digest)
    return rows


def _derive(row: dict[str, Any], entry: Entry, fresh: dict[int, ServedEntry]) -> None:
    """Complete a row that is written by what reading it added; what is served of it is kept at hand."""
    row["derived"] = derive(entry) if entry.standing is not Standing.REJECTED else {}
    if entry.standing is Standing.CANDIDATE:
        fresh[row["id"]] = serve_entry(entry, row["derived"])


def _row(key: int, position: int, item: NewReading, entry: Entry, raw_digest: str) -> dict[str, Any]:
    return {
        "id": key,
        "document_id": document_id(item.state.url),
        "pointer": storable(entry.pointer),
        "position": position,
        "identifier": storable(entry.identifier) if entry.identifier else None,
        "key": entry.key,
        "version": storable(entry.version) if entry.version else None,
        "standing": entry.standing,
        "state": entry.standing,
        "digest": raw_digest,
        "raw": storable(entry.raw),
        "problems": [problem_row(problem) for problem in entry.problems],
        **_artifact_columns(key, entry.artifact),
        "source_rank": source_rank(entry.publisher, item.state.url, item.state.rank),
        "first_seen_at": item.at,
        "changed_at": item.at,
    }


def _artifact_columns(key: int, ref: ArtifactRef | None) -> dict[str, Any]:
    if ref is None:
        return {"artifact_decision": None, "artifact_id": None, "artifact_url": None}
    identity = None
    if ref.decision == ArtifactDecision.INLINE:
        identity = inline_key(key)
    elif ref.owner is not None and ref.url is not None:
        identity = document_id(ref.url)
    return {"artifact_decision": ref.decision, "artifact_id": identity, "artifact_url": ref.url}


def _lost(old: Mapping[int, Row[Any]], new: Mapping[int, Mapping[str, Any]], *, complete: bool) -> set[str]:
    """Name the identifiers that a document offered and offers no longer, be it that their entries turned invalid."""
    offered = {row["key"] for row in new.values() if row["standing"] == Standing.CANDIDATE}
    return {row.key for key, row in old.items() if row.standing == Standing.CANDIDATE and (complete or key in new)} - (
        offered
    )


def _is_large_drop(old: Mapping[int, Row[Any]], lost: set[str]) -> bool:
    """Tell whether more than half of ten or more identifiers would go at once."""
    before = len({row.key for row in old.values() if row.standing == Standing.CANDIDATE})
    return before >= HOLD_FROM and 2 * len(lost) > before


_COMPARED = (
    "digest",
    "standing",
    "pointer",
    "position",
    "source_rank",
    "problems",
    "artifact_decision",
    "artifact_id",
    "artifact_url",
)
_as_stored, _as_read = attrgetter(*_COMPARED), itemgetter(*_COMPARED)


def _differs(old: Row[Any] | None, new: Mapping[str, Any]) -> bool:
    return old is None or _as_stored(old) != _as_read(new)


def _same_content(
    connection: Connection, old: Mapping[int, Row[Any]], new: Mapping[int, Mapping[str, Any]]
) -> tuple[set[int], dict[int, str]]:
    """Name the entries whose content is the same as before, and give the former texts of the others that were there.

    Another formatting of the same JSON is no change.
    """
    altered: dict[int, str] = {}
    same = {key for key, row in new.items() if key in old and old[key].digest == row["digest"]}
    for chunk in chunks(key for key in new if key in old and key not in same):
        for row in connection.execute(select(entries.c.id, entries.c.raw).where(entries.c.id.in_(chunk))):
            if same_text(row.raw, new[row.id]["raw"]):
                same.add(row.id)
            else:
                altered[row.id] = row.raw
    return same, altered


def _take_artifacts(
    connection: Connection,
    readings: Sequence[NewReading],
    differences: Sequence[_Difference],
    stored: Mapping[int, Mapping[int, Row[Any]]],
) -> PutArtifacts:
    """Watch what entries point to and read what they hold; gives what came of the inline artifacts."""
    inline: list[NewArtifact] = []
    watched: dict[str, str] = {}
    left: dict[int, NewReading] = {}
    waiting: list[dict[str, Any]] = []
    for item, difference in zip(readings, differences, strict=True):
        source = document_id(item.state.url)
        old = stored.get(source, {})
        by_position = {row["position"]: row for row in difference.written}
        unwritten = {row["position"]: row for row in difference.new.values() if row["id"] in difference.same}
        for position, entry in enumerate(item.reading.entries):
            row = by_position.get(position)
            if row is None and entry.inline is not None and entry.inline.signatures:
                row = unwritten.get(position)  # its keys may have changed where the entry did not
            if row is None or entry.artifact is None:
                continue
            if entry.inline is not None:
                inline.append(_inline(row, item, entry.inline))
            elif entry.artifact.url is not None and entry.artifact.owner is not None:
                watched[entry.artifact.url] = entry.artifact.owner
        written = [row for row in difference.written if row["artifact_id"] or _had_artifact(old.get(row["id"]))]
        waiting += [
            _waiting(item, "entry", row["id"])
            for row in written
            # What merely moved within its document says what it said.
            if row["id"] not in difference.same or _points_elsewhere(row, old[row["id"]])
        ]
        offered = {row["key"] for row in difference.new.values() if row["standing"] == Standing.CANDIDATE}
        waiting += [
            _waiting(item, "removed", copy_key(item.state.url, row.key))
            for row in difference.missing
            if row.artifact_id and row.key not in offered
        ]
        dropped = {row.artifact_id for row in difference.missing if row.artifact_id}
        dropped |= {
            old[row["id"]].artifact_id
            for row in written
            if _had_artifact(old.get(row["id"])) and old[row["id"]].artifact_id != row["artifact_id"]
        }
        left |= dict.fromkeys(dropped, item)
        if item.state.mechanism in _PAIRED and (difference.written or difference.missing):
            waiting.append(_waiting(item, "manifest", source))
    if watched:
        watch_artifacts(connection, watched, max(item.at for item in readings))
    for key in forget_artifacts(connection, left):
        waiting += [_waiting(left[key], "removed", copy) for copy in copies_of([key])]
    put = put_artifacts(connection, inline)
    owners = {found.key: item for item in readings for found in inline if found.document == document_id(item.state.url)}
    put_pending(connection, [*waiting, *(_waiting(owners[key], "artifact", key) for key in put.changed)])
    return put


def _points_elsewhere(row: Mapping[str, Any], before: Row[Any]) -> bool:
    return bool(before.standing != row["standing"] or before.artifact_id != row["artifact_id"])


def _had_artifact(row: Row[Any] | None) -> bool:
    return row is not None and row.artifact_id is not None


def _inline(row: Mapping[str, Any], item: NewReading, read: Artifact) -> NewArtifact:
    url = f"{item.state.url}#{row['pointer']}/data"
    return NewArtifact(row["artifact_id"], row["document_id"], url, read, item.at, item.before_at, inline=True)


def _waiting(item: NewReading, kind: str, subject: int) -> dict[str, Any]:
    return {"origin_id": origin_id(item.state.origin), "kind": kind, "subject": subject, "at": item.at}


def _delete(connection: Connection, ids: Sequence[int]) -> None:
    for chunk in chunks(ids):
        connection.execute(delete(entries).where(entries.c.id.in_(chunk)))


def _count(applied: Applied, item: _Difference, states: Mapping[int, str]) -> None:
    """Count every entry once: as unchanged, as listed, or as kept out of the index for a reason."""
    for key in item.new:
        if key in item.same:
            applied.unchanged += 1
        elif states.get(key) == "listed":
            applied.listed += 1
        else:
            applied.rejected += 1
            applied.not_listed[str(states.get(key) or item.new[key]["standing"])] += 1
