"""Disagreements between entries and the artifacts they point to, judged wherever one of the two was read anew."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, func, or_, select

from index.disagreement import gravest
from index.drift import CardView, Disagreement, compare_entry, compare_hybrid
from index.records import Standing
from index.served import members_of
from index.store.changes import Change
from index.store.drift_rows import MISSING, Live, Older, Side, Verdict, close_moved, close_removed, reconcile
from index.store.endpoints import judge_endpoints
from index.store.engines import chunks
from index.store.tables import artifacts, copy_key, documents, entries, versions

_MOST_OLDER = 10
_MOST_OF_AN_ENTRY = 50


@dataclass(frozen=True, slots=True)
class Sighted:
    """What was read in one transaction, with the times of the observations.

    `written` are entries that are new or changed, `removed` copies that are gone, `artifacts` those whose content or
    presence changed.
    """

    written: Mapping[int, datetime]
    removed: Iterable[int]
    artifacts: Mapping[int, datetime]


def settle_drifts(
    connection: Connection, now: datetime, sighted: Sighted, further: Sequence[Verdict] = ()
) -> list[Change]:
    """Judge entries and artifacts that were read anew, and take `further` verdicts; gives the events for the feed."""
    rows = _entries(connection, sighted)
    lives = load_lives(connection, {row.artifact_id for row in rows} | set(sighted.artifacts))
    verdicts = [_judge_entry(row, lives[row.artifact_id], sighted) for row in rows if row.artifact_id in lives]
    there = {key: live for key, live in lives.items() if live.is_there}
    verdicts += [_judge_hybrid(there[key], at) for key, at in sighted.artifacts.items() if key in there]
    verdicts += judge_endpoints(connection, there, sighted.artifacts)
    events = close_removed(connection, sighted.removed, now)
    events += close_moved(connection, _pointing(connection, sighted.written), now)
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


def _pointing(connection: Connection, written: Iterable[int]) -> dict[int, int | None]:
    """Give for each copy that was read anew the artifact it points to now; none when it is no candidate any more."""
    found: dict[int, int | None] = {}
    columns = (entries.c.key, entries.c.standing, entries.c.artifact_id, documents.c.url)
    for chunk in chunks(written):
        named = select(entries.c.document_id, entries.c.key).where(entries.c.id.in_(chunk)).subquery()
        query: Select[Any] = (
            select(*columns)
            .join(named, (named.c.document_id == entries.c.document_id) & (named.c.key == entries.c.key))
            .join(documents, documents.c.id == entries.c.document_id)
        )
        for row in connection.execute(query):
            copy = copy_key(row.url, row.key)
            if row.standing == Standing.CANDIDATE:
                found[copy] = row.artifact_id
            else:
                found.setdefault(copy, None)
    return found


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
    if card is not None and card.inline:
        return _there(card, state, older)
    if state.outcome in MISSING:
        return _missing(key, card, state, older)
    # While nothing can be seen after the card had gone, neither its presence nor its absence can be told.
    return None if card is None or state.absences else _there(card, state, older)


def _there(card: Row[Any], state: Row[Any], older: tuple[Older, ...]) -> Live:
    return Live(
        key=card.id,
        view=CardView(card.kind, card.shape, card.normal, card.digest, card.legacy),
        document=state.id,
        url=state.url,
        seen_at=state.confirmed_at or state.attempted_at,
        changed_at=card.changed_at,
        origin_id=state.origin_id,
        mechanism=state.mechanism,
        older=older,
        inline=card.inline,
    )


def _missing(key: int, card: Row[Any] | None, state: Row[Any], older: tuple[Older, ...]) -> Live:
    since = state.absent_since or state.attempted_at
    if card is not None and state.confirmed_at is not None:
        older = (Older(card.normal, card.digest, state.confirmed_at, since), *older)
    return Live(
        key=key,
        view=CardView(_in_its_place(state), "", {}, None),
        document=state.id,
        url=state.url,
        seen_at=state.attempted_at,
        changed_at=since,
        origin_id=state.origin_id,
        mechanism=state.mechanism,
        older=older,
        is_there=False,
    )


def _in_its_place(state: Row[Any]) -> str:
    """Say what stands where a card was expected: nothing, something else, or no document at all."""
    if state.outcome == "wrong_kind" and state.reason != "event_stream":
        return "unknown"
    is_nothing = state.outcome == "gone" or (state.outcome == "absent" and state.status in (404, 410, None))
    return "gone" if is_nothing else "not_a_document"


def _older(connection: Connection, keys: Sequence[int]) -> dict[int, tuple[Older, ...]]:
    """Give the earlier states of artifacts, the newest first."""
    place = func.row_number().over(partition_by=versions.c.subject, order_by=versions.c.id.desc())
    columns = (
        versions.c.subject,
        versions.c.content,
        versions.c.digest,
        versions.c.last_seen_at,
        versions.c.replaced_at,
    )
    mine = versions.c.subject.in_(keys) & (versions.c.kind == "artifact")
    ranked = select(*columns, place.label("place")).where(mine).subquery()
    query = select(ranked).where(ranked.c.place <= _MOST_OLDER).order_by(ranked.c.place)
    found: dict[int, list[Older]] = {}
    for row in connection.execute(query):
        state = Older(json.loads(row.content), row.digest, row.last_seen_at, row.replaced_at)
        found.setdefault(row.subject, []).append(state)
    return {key: tuple(states) for key, states in found.items()}


# --- verdicts ---------------------------------------------------------------------------------------------------------


def _judge_entry(row: Row[Any], live: Live, sighted: Sighted) -> Verdict:
    members = members_of(json.loads(row.raw), row.derived)
    declared = row.derived["type"]
    found = gravest(_drift_of(members, declared, live.view, live.past), _MOST_OF_AN_ENTRY, lambda item: item)
    side = Side(
        key=copy_key(row.url, row.key),
        document=row.document_id,
        url=row.url,
        digest=row.digest,
        seen_at=row.confirmed_at,
        identifier=row.key,
        publisher=row.derived["publisher"] or "",
    )
    verdict = Verdict(side, live, found, row.id in sighted.written, live.key in sighted.artifacts)
    if found:
        verdict.agreed_with = _agreed(members, declared, live, {item.key for item in found})
    return verdict


def _agreed(members: Mapping[str, Any], declared: str, live: Live, keys: set[str]) -> dict[str, Older]:
    """Find for each disagreement the newest earlier state of the card that the entry did agree with."""
    agreed: dict[str, Older] = {}
    for index, state in enumerate(live.older):
        still = {item.key for item in _drift_of(members, declared, live.past[index], live.past[index + 1 :])}
        for key in keys - still - agreed.keys():
            agreed[key] = state
        if len(agreed) == len(keys):
            break
    return agreed


def _drift_of(
    members: Mapping[str, Any], declared: str, view: CardView, past: Sequence[CardView]
) -> list[Disagreement]:
    older = [state.offer for state in past]
    return [item for item in compare_entry(members, declared, view, older, drift_only=True) if item.is_drift]


def _judge_hybrid(live: Live, at: datetime) -> Verdict:
    """Compare the older block of a hybrid card with its list; without such a block nothing can disagree."""
    side = Side(live.key, live.document, live.url, live.view.digest, at)
    found = [item for item in compare_hybrid(live.view) if item.is_drift]
    return Verdict(side, live, found, True, True)
