"""Artifacts as they were last read, and the states they had before."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import Connection, Row, Select, delete, or_, select, update

from index.diff import GRAVITY, ChangeClass, Edit, diff_cards, is_silent, summary
from index.documents import DocumentKind, DocumentVisit
from index.edits import VERDICT
from index.records import RANK_OF_MECHANISM, Artifact, Mechanism
from index.signature_changes import diff_verdicts, remembered
from index.store.among import among, rows_among
from index.store.changes import Change, append_changes
from index.store.documents import document_id, ensure_origins, new_target, origin_id, problem_row, soonest, state_row
from index.store.engines import chunks, insert_new_rows, insert_rows, update_rows
from index.store.history import MOST_EDITS, edit_row
from index.store.tables import (
    artifacts,
    documents,
    entries,
    json_text,
    key_of,
    origins,
    pending,
    storable,
    storable_json,
    versions,
)
from index.volatile import from_json, learn, settle, to_json

_PRIVATE = "private"
_MOST_IDENTIFIERS = 20
# What comparisons look at beside the content that counts.
_COMPARED = ("kind", "shape", "digest", "legacy")


def inline_key(entry: int) -> int:
    """Compute the key of the artifact that an entry holds inline."""
    return key_of("inline", str(entry))


@dataclass(frozen=True, slots=True)
class NewArtifact:
    """An artifact that was just read; `before_at` is the last sight of its document before."""

    key: int
    document: int
    url: str
    artifact: Artifact
    at: datetime
    before_at: datetime | None
    inline: bool = False


@dataclass(slots=True)
class PutArtifacts:
    """What reading artifacts came to: those that are new or say something else, and the events for the feed."""

    changed: set[int] = field(default_factory=set)
    events: dict[int, Change] = field(default_factory=dict)


def put_artifacts(connection: Connection, found: Sequence[NewArtifact]) -> PutArtifacts:
    """Bring artifacts in line with what was read, and keep the states that are superseded."""
    put = PutArtifacts()
    if not found:
        return put
    stored = _stored(connection, [item.key for item in found])
    rows, updates, old_states = [], [], []
    for item in found:
        before = stored.get(item.key)
        if before is None:
            rows.append({**_row(item), "churn": {}, "first_seen_at": item.at, "changed_at": item.at, "before_at": None})
            put.changed.add(item.key)
            put.events[item.key] = _event(item, "artifact.added")
            continue
        after, edits = _compare(before, item)
        verdicts = _judged(before, after)
        updates.append(after)
        if edits:
            old_states.append(_version(before, item, [*verdicts, *edits]))
        if edits or verdicts:
            put.events[item.key] = _event(item, "artifact.changed", before.digest, [*verdicts, *edits])
        if edits or any(getattr(before, name) != after[name] for name in _COMPARED):
            put.changed.add(item.key)
    insert_new_rows(connection, artifacts, rows)
    update_rows(connection, artifacts, updates)
    insert_rows(connection, versions, old_states)
    return put


def _stored(connection: Connection, keys: Iterable[int]) -> dict[int, Row[Any]]:
    stored: dict[int, Row[Any]] = {}
    for chunk in chunks(keys):
        stored.update((row.id, row) for row in connection.execute(select(artifacts).where(artifacts.c.id.in_(chunk))))
    return stored


def _row(item: NewArtifact) -> dict[str, Any]:
    read = item.artifact
    return {
        "id": item.key,
        "document_id": item.document,
        "inline": item.inline,
        "kind": read.kind,
        "shape": read.shape,
        "normal": storable_json(read.normal),
        "legacy": storable_json([dict(interface) for interface in read.legacy]),
        "digest": read.digest,
        "content_digest": read.content_digest,
        "secret": read.secret,
        "problems": [problem_row(problem) for problem in read.problems],
        "findings": [problem_row(problem) for problem in read.findings],
        "signatures": None if read.signatures is None else storable_json(list(read.signatures)),
    }


def _compare(before: Row[Any], item: NewArtifact) -> tuple[dict[str, Any], list[Edit]]:
    """Give the row as it is now and the edits that count; what changes at every look is learnt instead."""
    row = _row(item)
    churn = from_json(before.churn)
    edits: list[Edit] = []
    same = before.digest == row["digest"] and before.normal == row["normal"]
    # A card that turns private, or public again, changes what we show of it and nothing else.
    if not same and _PRIVATE not in (before.kind, row["kind"]):
        dropped = bool(before.legacy) and not row["legacy"]
        found = diff_cards(before.normal, row["normal"], legacy_dropped=dropped, legacy=item.artifact.legacy)
        churn = learn(churn, found)
        edits, _ = settle(found, churn)
        edits = [edit for edit in edits if edit.kind is not ChangeClass.ORDER_ONLY]
    # What stands beside the normal form, or was hidden until now, is compared as well: it is as new as its first sight.
    moved = edits or any(getattr(before, name) != row[name] for name in ("kind", "shape", "legacy"))
    row["churn"] = to_json(churn)
    row["changed_at"] = item.at if moved else before.changed_at
    row["before_at"] = item.before_at if moved else before.before_at
    return row, edits


def _judged(before: Row[Any], after: dict[str, Any]) -> list[Edit]:
    """Give what became of signatures that were judged before, be it the card that changed or a key."""
    if not before.signatures or after["signatures"] is None:
        return []
    after["signatures"] = remembered(before.signatures, after["signatures"])
    return diff_verdicts(before.signatures, after["signatures"])


def _version(before: Row[Any], item: NewArtifact, edits: Sequence[Edit]) -> dict[str, Any]:
    return {
        **_state_row(before, item.before_at or before.changed_at, item.at),
        # Where there are too many, the gravest stay.
        "edits": [edit_row(edit) for edit in sorted(edits, key=lambda edit: GRAVITY[edit.kind])[:MOST_EDITS]],
        "change_class": summary(edits),
        "silent": is_silent(edits),
    }


def _state_row(before: Row[Any], seen_at: datetime, replaced_at: datetime) -> dict[str, Any]:
    return {
        "subject": before.id,
        "kind": "artifact",
        "identifier": None,
        "digest": before.digest,
        "content": json_text(before.normal),
        "first_seen_at": before.changed_at,
        "last_seen_at": seen_at,
        "replaced_at": replaced_at,
    }


def remove_artifacts(connection: Connection, gone: Mapping[int, DocumentVisit], now: datetime) -> set[int]:
    """Take artifacts out whose documents are gone for good, and keep their last states; gives those there were."""
    stored = _stored(connection, gone)
    rows, events = [], {}
    for key, before in stored.items():
        state = gone[key].state
        at = state.absent_since or gone[key].observation.response_at
        seen_at = state.confirmed_at or before.changed_at
        rows.append({**_state_row(before, seen_at, at), "edits": [], "change_class": None, "silent": False})
        events[key] = Change(
            kind="artifact.removed",
            identifier="",
            at=gone[key].observation.response_at,
            url=state.url,
            old_digest=before.digest,
            reason=state.reason,
        )
    insert_rows(connection, versions, rows)
    append_changes(connection, _named(connection, events), now)
    for chunk in chunks(stored):
        connection.execute(delete(artifacts).where(artifacts.c.id.in_(chunk)))
    return set(stored)


def _event(item: NewArtifact, kind: str, old: str | None = None, edits: Sequence[Edit] = ()) -> Change:
    return Change(
        kind=kind,
        identifier="",
        at=item.at,
        url=item.url,
        mechanism="inline" if item.inline else None,
        members=tuple(dict.fromkeys(storable(edit.pointer) for edit in edits[:MOST_EDITS])),
        old_digest=old,
        new_digest=item.artifact.digest,
        reason="; ".join(f"signature {edit.old} -> {edit.new}" for edit in edits if edit.note == VERDICT),
        change_class=summary(edits),
        silent=is_silent(edits),
    )


def append_events(connection: Connection, put: PutArtifacts, now: datetime) -> None:
    """Tell the feed what came of artifacts: of each listing that is concerned, or of the address by itself."""
    append_changes(connection, _named(connection, put.events), now)


def _named(connection: Connection, events: Mapping[int, Change]) -> list[Change]:
    names: dict[int, list[str]] = {}
    for chunk in chunks(events):
        query = select(entries.c.artifact_id, entries.c.key).where(
            entries.c.artifact_id.in_(chunk), entries.c.state == "listed"
        )
        for row in connection.execute(query.order_by(entries.c.key)):
            names.setdefault(row.artifact_id, []).append(row.key)
    return [
        replace(event, identifier=name)
        for key, event in events.items()
        for name in names.get(key, [""])[:_MOST_IDENTIFIERS]
    ]


def listed_with(connection: Connection, keys: Iterable[int]) -> set[str]:
    """Name the identifiers whose entries point to these artifacts."""
    names: set[str] = set()
    for chunk in chunks(keys):
        query = select(entries.c.key).where(entries.c.artifact_id.in_(chunk), entries.c.key.is_not(None))
        names.update(connection.execute(query).scalars())
    return names


def cards_of(connection: Connection, keys: Iterable[int]) -> dict[int, Row[Any]]:
    """Give artifacts by key: their kind, normal form and content digest."""
    columns = (artifacts.c.id, artifacts.c.kind, artifacts.c.normal, artifacts.c.content_digest)
    found: dict[int, Row[Any]] = {}
    for chunk in chunks(keys):
        query: Select[Any] = select(*columns).where(artifacts.c.id.in_(chunk))
        found.update((row.id, row) for row in connection.execute(query))
    return found


# --- what entries point to --------------------------------------------------------------------------------------------


def watch_artifacts(connection: Connection, wanted: Mapping[str, str], now: datetime) -> None:
    """Make documents of the addresses that entries name, by URL and owner; their origins are due when one is new."""
    if not wanted:
        return
    keys = {document_id(url): url for url in wanted}
    known: dict[int, Row[Any]] = {}
    for chunk in chunks(keys):
        query: Select[Any] = select(documents.c.id, documents.c.watched, documents.c.origin_id, origins.c.active)
        query = query.join(origins, origins.c.id == documents.c.origin_id).where(documents.c.id.in_(chunk))
        known.update((row.id, row) for row in connection.execute(query))
    new = [url for key, url in keys.items() if key not in known]
    # Whoever fetched it before may be on the allowlist no longer.
    lost = [key for key, row in known.items() if not row.active and row.origin_id != origin_id(wanted[keys[key]])]
    again = [key for key, row in known.items() if not row.watched or key in lost]
    if not new and not again:
        return
    owners = {wanted[url] for url in new} | {wanted[keys[key]] for key in again}
    ensure_origins(connection, dict.fromkeys(owners, now))
    rows = [state_row(new_target(url, wanted[url], now, DocumentKind.ARTIFACT, Mechanism.ENTRY)) for url in new]
    insert_new_rows(connection, documents, rows)
    update_rows(connection, documents, [{"id": key, "origin_id": origin_id(wanted[keys[key]])} for key in lost])
    for chunk in chunks(again):
        connection.execute(update(documents).where(documents.c.id.in_(chunk)).values(watched=True, next_fetch_at=None))
    for chunk in chunks(origin_id(owner) for owner in owners):
        late = or_(origins.c.next_visit_at.is_(None), origins.c.next_visit_at > now)
        due = update(origins).where(origins.c.id.in_(chunk), late)
        connection.execute(due.values(active=True, next_visit_at=soonest(now)))


def hand_over_artifacts(connection: Connection, origin_ids: Collection[int], now: datetime) -> None:
    """Give the artifacts of origins that go to other origins whose entries name them as well."""
    naming = documents.alias("naming")
    heirs: dict[int, int] = {}
    for chunk in chunks(origin_ids):
        query = (
            select(documents.c.id, naming.c.origin_id)
            .join(entries, entries.c.artifact_id == documents.c.id)
            .join(naming, naming.c.id == entries.c.document_id)
            .join(origins, origins.c.id == naming.c.origin_id)
            .where(documents.c.origin_id.in_(chunk), naming.c.origin_id.not_in(origin_ids), origins.c.active)
        )
        heirs.update(connection.execute(query.order_by(origins.c.added_at.desc())).all())
    named = {"mechanism": Mechanism.ENTRY, "rank": RANK_OF_MECHANISM[Mechanism.ENTRY], "next_fetch_at": None}
    update_rows(connection, documents, [{"id": key, "origin_id": heir, **named} for key, heir in heirs.items()])
    for chunk in chunks(set(heirs.values())):
        late = origins.c.id.in_(chunk) & (origins.c.next_visit_at > now)
        connection.execute(update(origins).where(late).values(next_visit_at=soonest(now)))


def forget_artifacts(connection: Connection, keys: Collection[int]) -> set[int]:
    """Stop looking at documents that were watched only because entries named them, once no entry does; gives those.

    An inline artifact has no document of its own and goes with its entry.
    """
    forgotten: set[int] = set()
    for chunk in chunks(keys):
        named = select(entries.c.id).where(entries.c.artifact_id == documents.c.id).exists()
        mine = documents.c.id.in_(chunk) & (documents.c.mechanism == Mechanism.ENTRY) & ~named
        forgotten.update(connection.execute(select(documents.c.id).where(mine)).scalars())
    for chunk in chunks(forgotten):
        connection.execute(update(documents).where(documents.c.id.in_(chunk)).values(watched=False, next_fetch_at=None))
    for chunk in chunks(keys):
        inline = artifacts.c.id.in_(chunk) & artifacts.c.inline
        forgotten.update(connection.execute(select(artifacts.c.id).where(inline)).scalars())
        connection.execute(delete(artifacts).where(inline))
    return forgotten


def copies_of(keys: Iterable[int]) -> set[int]:
    """Give the keys under which artifacts are the copies in comparisons with each other, and with themselves."""
    return {name for key in keys for name in (key, card_copy(key))}


def card_copy(key: int) -> int:
    """Compute the key of an artifact as the copy of another one."""
    return key_of("card", str(key))


def decided_artifacts(connection: Connection) -> list[Row[Any]]:
    """Give what was decided about the addresses that entries name, with their documents and the origins of those."""
    query: Select[Any] = (
        select(
            entries.c.document_id,
            entries.c.artifact_url.label("url"),
            entries.c.artifact_decision.label("decision"),
            origins.c.origin,
        )
        .join(documents, documents.c.id == entries.c.document_id)
        .join(origins, origins.c.id == documents.c.origin_id)
        .where(entries.c.artifact_url.is_not(None), documents.c.watched, origins.c.active)
    )
    return list(connection.execute(query))


# --- what has to be compared ------------------------------------------------------------------------------------------


def put_pending(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Note what was read anew, for the end of the visit to compare."""
    unique = {(row["origin_id"], row["kind"], row["subject"]): row for row in rows}
    insert_new_rows(connection, pending, list(unique.values()))


def has_pending(connection: Connection, origin_ids: Collection[int]) -> bool:
    """Tell whether origins have anything waiting to be compared."""
    return any(True for _ in rows_among(connection, _some_pending, origin_ids))


@cache
def _some_pending(dialect: str) -> Select[Any]:
    return select(pending.c.subject).where(among(dialect, pending.c.origin_id)).limit(1)


def take_pending(connection: Connection, origin_ids: Iterable[int]) -> list[Row[Any]]:
    """Give what origins have waiting to be compared, and forget it."""
    found = list(rows_among(connection, _pending_of, origin_ids))
    for chunk in chunks({row.origin_id for row in found}):
        connection.execute(delete(pending).where(pending.c.origin_id.in_(chunk)))
    return found


@cache
def _pending_of(dialect: str) -> Select[Any]:
    return select(pending).where(among(dialect, pending.c.origin_id))
