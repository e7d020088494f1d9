"""Documents of one origin compared with each other: both manifest paths, cards of one name, inline copies of a card."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, Select, func, select

from index.disagreement import gravest
from index.documents import DocumentKind
from index.drift import CardView, Disagreement, compare_cards_of_origin, compare_inline, compare_manifests
from index.records import Mechanism, Standing
from index.served import members_of
from index.store.artifacts import card_copy, put_pending
from index.store.drift_rows import Live, Side, Verdict
from index.store.drifts import load_lives
from index.store.engines import chunks
from index.store.tables import artifacts, documents, entries, key_of
from index.text import fold_name

_READ = ("fetched", "not_modified")
# The places where an origin keeps its own cards, the current name first.
_OWN_PLACES = (Mechanism.AGENT_CARD, Mechanism.SERVER_CARD, Mechanism.LEGACY_CARD)
# The two paths of a manifest, the current one first.
_PATHS = (Mechanism.WELL_KNOWN, Mechanism.PREDECESSOR_PATH)
_MOST_CARDS = 200
# So many cards are held at a time, and those of one origin in any case.
_PORTION = 500
_MOST_OF_MANIFESTS = 1000
# So much text of cards is compared for one origin at a time: everybody else who writes waits meanwhile.
_MOST_COMPARED = 10_000_000


def judge_pairs(connection: Connection, manifests: Collection[int], cards: Iterable[int]) -> list[Verdict]:
    """Compare manifests that were read anew with their twins, and cards with the other cards of their origins."""
    origins = _origins_of(connection, manifests)
    verdicts = [
        verdict for rows in _twins(connection, origins) for verdict in _manifests_of(connection, rows, manifests)
    ]
    changed = load_lives(connection, cards)
    by_origin: dict[int, set[int]] = {}
    for key, live in changed.items():
        by_origin.setdefault(live.origin_id, set()).add(key)
    wanted = _to_compare(connection, by_origin, changed)
    for some in _portions(wanted):
        keys = {key for origin in some for key in wanted[origin]}
        lives = changed | load_lives(connection, keys - changed.keys())
        identifiers = _identifiers(connection, keys)
        for origin in some:
            mine = {key: lives[key] for key in wanted[origin] if key in lives}
            verdicts += _cards_of(mine, by_origin[origin], identifiers)
    return verdicts


def _origins_of(connection: Connection, keys: Iterable[int]) -> set[int]:
    found: set[int] = set()
    for chunk in chunks(keys):
        found.update(connection.execute(select(documents.c.origin_id).where(documents.c.id.in_(chunk))).scalars())
    return found


# --- manifests --------------------------------------------------------------------------------------------------------


def _twins(connection: Connection, origins: Iterable[int]) -> Iterator[dict[str, Row[Any]]]:
    """Give the manifests at the two paths of each origin, by mechanism."""
    for chunk in chunks(origins):
        query: Select[Any] = select(documents).where(
            documents.c.origin_id.in_(chunk),
            documents.c.kind == DocumentKind.MANIFEST,
            documents.c.mechanism.in_(_PATHS),
        )
        found: dict[int, dict[str, Row[Any]]] = {}
        for row in connection.execute(query):
            found.setdefault(row.origin_id, {})[row.mechanism] = row
        yield from found.values()


def _manifests_of(connection: Connection, rows: Mapping[str, Row[Any]], read: Collection[int]) -> list[Verdict]:
    """Compare the predecessor's path, the copy, with the current one; nothing is told while one cannot be seen."""
    current, older = (rows.get(mechanism) for mechanism in _PATHS)
    if current is None or older is None:
        return []
    unseen = [row for row in (current, older) if not _is_seen(row)]
    if unseen:
        if all(row.applied_digest is not None for row in unseen):
            _put_off(connection, current)
        return []
    found: list[tuple[str, Disagreement]] = []
    if current.digest != older.digest:
        found = compare_manifests(*_apart(connection, older.id, current.id))
    found = list(gravest([one for one in found if one[1].is_drift], _MOST_OF_MANIFESTS, lambda one: one[1]))
    seen_at = older.confirmed_at or older.first_seen_at
    copy = Side(key_of("manifest", older.url), older.id, older.url, older.digest, seen_at)
    news = (older.id in read, current.id in read)
    verdict = Verdict(copy, _document(current), [item for _, item in found], *news)
    verdict.names = [name for name, _ in found]
    return [verdict]


def _put_off(connection: Connection, row: Row[Any]) -> None:
    at = row.confirmed_at or row.first_seen_at
    put_pending(connection, [{"origin_id": row.origin_id, "kind": "manifest", "subject": row.id, "at": at}])


def _is_seen(row: Row[Any]) -> bool:
    return row.outcome in _READ and not row.held


def _apart(connection: Connection, first: int, second: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Give the entries of two documents by identifier, without those that are the same text in both."""
    query: Select[Any] = select(entries.c.document_id, entries.c.key, entries.c.digest, entries.c.id).where(
        entries.c.document_id.in_((first, second)), entries.c.standing == Standing.CANDIDATE
    )
    sides: dict[int, dict[str, Row[Any]]] = {first: {}, second: {}}
    for row in connection.execute(query):
        sides[row.document_id][row.key] = row
    one, other = sides[first], sides[second]
    same = {key for key, row in one.items() if key in other and other[key].digest == row.digest}
    members = _members(connection, [row.id for side in (one, other) for key, row in side.items() if key not in same])
    apart = [{key: members[row.id] for key, row in side.items() if key not in same} for side in (one, other)]
    return apart[0], apart[1]


def _members(connection: Connection, keys: Iterable[int]) -> dict[int, Mapping[str, Any]]:
    found: dict[int, Mapping[str, Any]] = {}
    for chunk in chunks(keys):
        query: Select[Any] = select(entries.c.id, entries.c.raw, entries.c.derived).where(entries.c.id.in_(chunk))
        for row in connection.execute(query):
            found[row.id] = members_of(json.loads(row.raw), row.derived)
    return found


def _document(row: Row[Any]) -> Live:
    seen_at = row.confirmed_at or row.first_seen_at
    view = CardView("ard.manifest", "", {}, row.digest)
    return Live(
        key=row.id,
        view=view,
        document=row.id,
        url=row.url,
        seen_at=seen_at,
        changed_at=row.changed_at or seen_at,
        origin_id=row.origin_id,
        mechanism=row.mechanism,
    )


# --- cards ------------------------------------------------------------------------------------------------------------


def _to_compare(
    connection: Connection, changed: Mapping[int, Collection[int]], lives: Mapping[int, Live]
) -> dict[int, set[int]]:
    """Give for each origin the cards that changed and those that they are compared with.

    Each card is compared with those in the origin's own places, so when one of these has changed, all of them are.
    """
    own = _card_keys(connection, changed, _OWN_PLACES)
    all_over = [origin for origin, keys in changed.items() if any(lives[key].mechanism in _OWN_PLACES for key in keys)]
    every = _card_keys(connection, all_over)
    return {origin: {*keys, *own.get(origin, ()), *every.get(origin, ())} for origin, keys in changed.items()}


def _portions(wanted: Mapping[int, Collection[int]]) -> Iterator[list[int]]:
    portion: list[int] = []
    size = 0
    for origin, keys in wanted.items():
        if portion and size + len(keys) > _PORTION:
            yield portion
            portion, size = [], 0
        portion.append(origin)
        size += len(keys)
    if portion:
        yield portion


def _cards_of(lives: Mapping[int, Live], changed: set[int], identifiers: Mapping[int, str]) -> list[Verdict]:
    """Compare the cards of an origin with those in its own places, as far as one of the two is new.

    Two that are of one agent no longer contradict each other no longer; nothing is told while one is not there.
    """
    own = sorted(
        (live for live in lives.values() if live.mechanism in _OWN_PLACES),
        key=lambda live: _OWN_PLACES.index(Mechanism(live.mechanism)),
    )
    verdicts = []
    compared = 0
    for live, other in _pairs(own, sorted(lives.values(), key=lambda live: (live.inline, live.key))):
        if not (live.key in changed or other.key in changed) or not (live.is_there and other.is_there):
            continue
        if _is_same_agent(live, other):
            compared += live.size + other.size
            if compared > _MOST_COMPARED:
                break
        verdicts.append(_pair(live, other, changed, identifiers.get(other.key)))
    return verdicts


def _pairs(own: Sequence[Live], lives: Sequence[Live]) -> Iterator[tuple[Live, Live]]:
    """Give each card of an origin's own places with every other card, and each two of them once."""
    for place, live in enumerate(own):
        before = {item.key for item in own[: place + 1]}
        yield from ((live, other) for other in lives if other.key not in before)


def _card_keys(connection: Connection, origins: Iterable[int], places: Sequence[Mechanism] = ()) -> dict[int, set[int]]:
    """Give the cards of origins, or those in some places of theirs, up to a number for each."""
    found: dict[int, set[int]] = {}
    for chunk in chunks(origins):
        rank = func.row_number().over(partition_by=documents.c.origin_id, order_by=artifacts.c.id)
        query = (
            select(artifacts.c.id, documents.c.origin_id, rank.label("place"))
            .join(documents, documents.c.id == artifacts.c.document_id)
            .where(documents.c.origin_id.in_(chunk), documents.c.watched)
        )
        if places:
            query = query.where(documents.c.mechanism.in_(places), ~artifacts.c.inline)
        ranked = query.subquery()
        rows = select(ranked.c.id, ranked.c.origin_id).where(ranked.c.place <= _MOST_CARDS)
        for row in connection.execute(rows):
            found.setdefault(row.origin_id, set()).add(row.id)
    return found


def _identifiers(connection: Connection, keys: Iterable[int]) -> dict[int, str]:
    found: dict[int, str] = {}
    for chunk in chunks(keys):
        query = select(entries.c.artifact_id, entries.c.key).where(
            entries.c.artifact_id.in_(chunk), entries.c.state == "listed"
        )
        found.update((row.artifact_id, row.key) for row in connection.execute(query.order_by(entries.c.key.desc())))
    return found


def _is_same_agent(first: Live, second: Live) -> bool:
    names = [fold_name(str(live.view.normal.get("name") or "")) for live in (first, second)]
    return bool(names[0]) and names[0] == names[1]


def _pair(live: Live, other: Live, changed: set[int], identifier: str | None) -> Verdict:
    compare = compare_inline if other.inline else compare_cards_of_origin
    same = _is_same_agent(live, other)
    found = [item for item in compare(other.view, live.view) if item.is_drift] if same else []
    side = Side(card_copy(other.key), other.document, other.url, other.view.digest, other.seen_at, identifier)
    return Verdict(side, live, found, other.key in changed, live.key in changed)
