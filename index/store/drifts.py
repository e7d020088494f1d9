"""Disagreements between two documents: opened when first seen, confirmed while they last, closed when they end.

Judged wherever one of the two sides was read anew; what merely was confirmed confirms what is open.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, or_, select, update

from index.drift import CardView, Disagreement, compare_entry, compare_hybrid
from index.findings import redact
from index.records import Standing
from index.served import members_of
from index.store.changes import Change
from index.store.engines import chunks, insert_rows, update_rows
from index.store.tables import (
    artifacts,
    copy_key,
    documents,
    drifts,
    entries,
    key_of,
    storable,
    storable_json,
    versions,
)

_MOST_OLDER = 10
# What is left of a card when its address answers that there is none.
_KIND_OF_OUTCOME = {"absent": "gone", "gone": "gone", "wrong_kind": "unknown", "catch_all": "not_a_document"}


@dataclass(frozen=True, slots=True)
class Sighted:
    """What was read in one transaction, with the times of the observations.

    `written` are entries that are new or changed, `removed` copies that are gone, `artifacts` those whose content or
    presence changed.
    """

    written: Mapping[int, datetime]
    removed: Iterable[int]
    artifacts: Mapping[int, datetime]


@dataclass(frozen=True, slots=True)
class Older:
    """An earlier state of a card, and the sights between which it was replaced."""

    normal: Mapping[str, Any]
    last_seen_at: datetime
    replaced_at: datetime


@dataclass(frozen=True, slots=True)
class Live:
    """The live side of a comparison, as last observed."""

    key: int
    view: CardView
    document: int
    url: str
    seen_at: datetime
    changed_at: datetime
    last_good_at: datetime | None
    origin_id: int
    mechanism: str
    older: tuple[Older, ...] = ()
    inline: bool = False

    @property
    def is_there(self) -> bool:
        return self.view.kind not in _KIND_OF_OUTCOME.values()


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
    is_entry: bool = False


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

    def items(self) -> dict[int, tuple[Disagreement, str | None]]:
        """Give what was found by the name that it has from visit to visit, with its identifier."""
        names: Sequence[str | None] = self.names or [self.copy.identifier] * len(self.found)
        found: dict[int, tuple[Disagreement, str | None]] = {}
        for item, identifier in zip(self.found, names, strict=True):
            apart = [identifier or ""] if self.names else []
            found[key_of("drift", str(self.copy.key), str(self.live.key), item.key, *apart)] = (item, identifier)
        return found


def settle_drifts(
    connection: Connection, now: datetime, sighted: Sighted, further: Sequence["Verdict"] = ()
) -> list[Change]:
    """Judge entries and artifacts that were read anew, and take `further` verdicts; gives the events for the feed."""
    rows = _entries(connection, sighted)
    lives = load_lives(connection, {row.artifact_id for row in rows} | set(sighted.artifacts))
    verdicts = [_judge_entry(row, lives[row.artifact_id], sighted) for row in rows if row.artifact_id in lives]
    verdicts += [_judge_hybrid(lives[key], at) for key, at in sighted.artifacts.items() if key in lives]
    events = close_removed(connection, sighted.removed, now)
    return events + reconcile(connection, [*verdicts, *further], now)


def _entries(connection: Connection, sighted: Sighted) -> list[Row[Any]]:
    found: dict[int, Row[Any]] = {}
    query: Select[Any] = (
        select(
            entries.c.id,
            entries.c.key,
            entries.c.raw,
            entries.c.derived,
            entries.c.artifact_id,
            entries.c.document_id,
            documents.c.url,
            documents.c.digest,
            documents.c.confirmed_at,
        )
        .join(documents, documents.c.id == entries.c.document_id)
        .where(entries.c.standing == Standing.CANDIDATE, entries.c.artifact_id.is_not(None))
    )
    for chunk in chunks(sighted.written):
        found.update((row.id, row) for row in connection.execute(query.where(entries.c.id.in_(chunk))))
    for chunk in chunks(sighted.artifacts):
        found.update((row.id, row) for row in connection.execute(query.where(entries.c.artifact_id.in_(chunk))))
    return list(found.values())


def load_lives(connection: Connection, keys: Iterable[int]) -> dict[int, Live]:
    """Give artifacts as the live side of comparisons, with their newest earlier states; unread ones are left out."""
    found: dict[int, Live] = {}
    for chunk in chunks(keys):
        older = _older(connection, chunk)
        inline = select(artifacts.c.document_id).where(artifacts.c.id.in_(chunk))
        states = {
            row.id: row
            for row in connection.execute(
                select(documents).where(or_(documents.c.id.in_(chunk), documents.c.id.in_(inline)))
            )
        }
        cards = {row.id: row for row in connection.execute(select(artifacts).where(artifacts.c.id.in_(chunk)))}
        for key in chunk:
            live = _live(key, cards.get(key), states, older.get(key, ()))
            if live is not None:
                found[key] = live
    return found


def _live(key: int, card: Row[Any] | None, states: Mapping[int, Row[Any]], older: tuple[Older, ...]) -> Live | None:
    state = states.get(card.document_id if card is not None else key)
    if state is None or state.attempted_at is None:
        return None
    inline = card is not None and card.inline
    lost = None if inline else _KIND_OF_OUTCOME.get(state.outcome)
    if card is None and lost is None:
        return None
    if card is None or lost is not None:
        view = CardView(lost or "unknown", "", {}, None)
    else:
        view = CardView(card.kind, card.shape, card.normal, card.digest, card.legacy)
    last_good = state.confirmed_at
    if lost is not None and card is not None and last_good is not None:
        older = (Older(card.normal, last_good, state.absent_since or state.attempted_at), *older)
    return Live(
        key=key,
        view=view,
        document=state.id,
        url=state.url,
        seen_at=state.attempted_at if lost is not None else state.confirmed_at or state.attempted_at,
        changed_at=state.attempted_at if card is None or lost is not None else card.changed_at,
        last_good_at=last_good,
        origin_id=state.origin_id,
        mechanism=state.mechanism,
        older=older,
        inline=inline,
    )


def _older(connection: Connection, keys: Sequence[int]) -> dict[int, tuple[Older, ...]]:
    """Give the earlier states of artifacts, the newest first."""
    query = (
        select(versions.c.subject, versions.c.content, versions.c.last_seen_at, versions.c.replaced_at)
        .where(versions.c.subject.in_(keys), versions.c.kind == "artifact")
        .order_by(versions.c.id.desc())
        .limit(_MOST_OLDER * len(keys))
    )
    found: dict[int, list[Older]] = {}
    for row in connection.execute(query):
        states = found.setdefault(row.subject, [])
        if len(states) < _MOST_OLDER:
            states.append(Older(json.loads(row.content), row.last_seen_at, row.replaced_at))
    return {key: tuple(states) for key, states in found.items()}


def _judge_entry(row: Row[Any], live: Live, sighted: Sighted) -> Verdict:
    members = members_of(json.loads(row.raw), row.derived)
    declared = row.derived["type"]
    older = [state.normal for state in live.older]
    found = [item for item in compare_entry(members, declared, live.view, older) if item.is_drift]
    side = Side(
        key=copy_key(row.url, row.key),
        document=row.document_id,
        url=row.url,
        digest=row.digest,
        seen_at=row.confirmed_at,
        identifier=row.key,
        publisher=row.derived["publisher"] or "",
        is_entry=True,
    )
    verdict = Verdict(side, live, found, row.id in sighted.written, live.key in sighted.artifacts)
    if found:
        verdict.agreed_with = _agreed(members, declared, live, {item.key for item in found})
    return verdict


def _agreed(members: Mapping[str, Any], declared: str, live: Live, keys: set[str]) -> dict[str, Older]:
    """Find for each disagreement the newest earlier state of the card that the entry did agree with."""
    agreed: dict[str, Older] = {}
    for index, state in enumerate(live.older):
        view = CardView("" if not state.normal else _kind_of(live), live.view.shape, state.normal, None)
        before = [item.normal for item in live.older[index + 1 :]]
        still = {item.key for item in compare_entry(members, declared, view, before) if item.is_drift}
        for key in keys - still - agreed.keys():
            agreed[key] = state
    return agreed


def _kind_of(live: Live) -> str:
    if live.is_there:
        return live.view.kind
    normal = live.older[0].normal
    return "a2a.card" if "skills" in normal else "mcp.card" if "remotes" in normal else "madp.agent"


def _judge_hybrid(live: Live, at: datetime) -> Verdict:
    """Compare the older block of a hybrid card with its list; without such a block nothing can disagree."""
    side = Side(live.key, live.document, live.url, live.view.digest, at)
    found = [item for item in compare_hybrid(live.view) if item.is_drift] if live.is_there else []
    return Verdict(side, live, found, True, True)


# --- the rows ---------------------------------------------------------------------------------------------------------


def reconcile(connection: Connection, verdicts: Sequence[Verdict], now: datetime) -> list[Change]:
    """Open what is new, confirm what goes on and close what ended, for the pairs of sides that were judged."""
    standing = _open_rows(connection, [verdict.copy.key for verdict in verdicts])
    judged = {(verdict.copy.key, verdict.live.key) for verdict in verdicts}
    # An entry that points elsewhere now disagrees with its former artifact no longer.
    moved = {verdict.copy.key for verdict in verdicts if verdict.copy.is_entry and verdict.copy_is_new}
    left = [row for pair, rows in standing.items() if pair not in judged and pair[0] in moved for row in rows.values()]
    opened, confirmed, closed, events = [], [], [], []
    for verdict in verdicts:
        pair = (verdict.copy.key, verdict.live.key)
        before = standing.get(pair, {})
        now_found = verdict.items()
        for name, (item, identifier) in now_found.items():
            row = before.get(name)
            if row is None:
                opened.append({**_new_row(name, verdict, item), "identifier": identifier})
                events.append(_event("drift.opened", opened[-1], now))
            else:
                confirmed.append(_confirmation(row, verdict, item))
        for name, row in before.items():
            if name not in now_found:
                closed.append(_closing(row, verdict, now))
                events.append(_event("drift.closed", row._asdict(), now, closed[-1]["closed_by"]))
    closed += [_end(row, now) for row in left]
    events += [_event("drift.closed", row._asdict(), now, "removed") for row in left]
    insert_rows(connection, drifts, opened)
    update_rows(connection, drifts, confirmed)
    update_rows(connection, drifts, closed)
    return events


def _open_rows(connection: Connection, keys: Iterable[int]) -> dict[tuple[int, int], dict[int, Row[Any]]]:
    found: dict[tuple[int, int], dict[int, Row[Any]]] = {}
    for chunk in chunks(set(keys)):
        query = select(drifts).where(drifts.c.catalog_id.in_(chunk), drifts.c.closed_at.is_(None))
        for row in connection.execute(query):
            found.setdefault((row.catalog_id, row.live_id), {})[row.name] = row
    return found


def _new_row(name: int, verdict: Verdict, item: Disagreement) -> dict[str, Any]:
    copy, live = verdict.copy, verdict.live
    at = max(copy.seen_at, live.seen_at)
    agreed = verdict.agreed_with.get(item.key)
    if agreed is not None:
        moved, live_old_at, live_new_at = "live", agreed.last_seen_at, agreed.replaced_at
    else:
        moved = "catalog" if verdict.copy_is_new and not verdict.live_is_new else "unknown"
        live_old_at, live_new_at = None, live.changed_at
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
        "confirmed_at": max(verdict.copy.seen_at, verdict.live.seen_at),
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


def close_removed(connection: Connection, removed: Iterable[int], now: datetime) -> list[Change]:
    """Close what entries disagreed about that are no longer there."""
    rows = [row for found in _open_rows(connection, removed).values() for row in found.values()]
    update_rows(connection, drifts, [_end(row, now) for row in rows])
    return [_event("drift.closed", row._asdict(), now, "removed") for row in rows]


def _end(row: Row[Any], now: datetime) -> dict[str, Any]:
    return {"id": row.id, "closed_at": now, "closed_by": "removed", "copy_new_at": now}


def confirm_drifts(connection: Connection, seen: Mapping[int, datetime]) -> None:
    """Note that documents still say what they said, by document and time of the observation; a 304 is one."""
    updates: dict[int, dict[str, Any]] = {}
    for chunk in chunks(seen):
        query = select(drifts.c.id, drifts.c.catalog_document, drifts.c.live_document, drifts.c.confirmed_at).where(
            drifts.c.closed_at.is_(None),
            or_(drifts.c.catalog_document.in_(chunk), drifts.c.live_document.in_(chunk)),
        )
        for row in connection.execute(query):
            times = {
                "copy_old_at": seen.get(row.catalog_document),
                "live_seen_at": seen.get(row.live_document),
            }
            known = {name: at for name, at in times.items() if at is not None}
            updates[row.id] = {"confirmed_at": max(known.values()), **known}
    for number, values in updates.items():
        connection.execute(update(drifts).where(drifts.c.id == number).values(**values))


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
