"""Answering questions from the index: Search, Explore, List and Retrieve, the same statements on both engines.

Search is one grouping of postings. A query's words are weighed by how rare they are; the commonest are set aside as
long as they carry little of the weight, and an entry must hold one of the others. What such an entry scores, over the
weight of the whole query, is S; the entries whose S reaches the cutoff are the matched set, which Search pages through
and Explore counts.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Row,
    Select,
    Subquery,
    and_,
    case,
    desc,
    func,
    literal,
    or_,
    select,
    type_coerce,
    union_all,
)

from index.identity import is_ard_identifier
from index.query import Constraint, ListClause, ListOrder
from index.store.tables import (
    attribute_listings,
    attributes,
    documents,
    facts,
    listing_bodies,
    listings,
    postings,
    storable,
    words,
)
from index.terms import PUBLISHER_PATH, TYPE_IRI
from index.text import IMPACT_SCALE, fold_name, query_words

# Words that together carry at most this share of a query's weight cannot make a match alone.
_COMMON_SHARE = 0.2
_WEIGHT_SCALE = 1000
# The chance in a hundred that a person calls the entry a match, fitted on judged queries.
_SCORE_POWER = 2.2
_SCORE_HALF = 1.2
_EXACT = 2_000_000_000
_MOST_EXACT = 200
_NARROW: Mapping[str, ColumnElement[str]] = {TYPE_IRI: listings.c.type, PUBLISHER_PATH: listings.c.publisher}
_live = listings.c.removed_at.is_(None)


def score_of(strength: float) -> int:
    """Turn the strength S of a match into a score from 0 to 99; 100 is for exact names only."""
    power = float(strength**_SCORE_POWER)
    return min(99, round(100 * power / (_SCORE_HALF + power)))


def least_strength(score: int) -> float:
    """Give the least strength S that reaches a score."""
    share = min(score, 99) / 100
    return float((_SCORE_HALF * share / (1 - share)) ** (1 / _SCORE_POWER))


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: a need in words, constraints, or both; neither asks for everything."""

    text: str | None
    constraints: tuple[Constraint, ...] = ()
    min_score: int = 2


@dataclass(frozen=True, slots=True)
class Hit:
    """One listing that answers a search."""

    identifier: str
    score: int
    projection: str
    stale_since: datetime | None


@dataclass(frozen=True, slots=True)
class SearchPage:
    """One page of hits; `after` continues it."""

    hits: list[Hit] = field(default_factory=list)
    after: tuple[int, str] | None = None


@dataclass(frozen=True, slots=True)
class _Weights:
    """The known words of a query with their weights; `total` is what strength is measured against."""

    of: Mapping[int, int]
    essential: tuple[int, ...]
    total: int


@dataclass(frozen=True, slots=True)
class _Matched:
    """The matched set: rows of listing and strength, and what full strength would be."""

    rows: Subquery
    total: int


def search(connection: Connection, question: Question, size: int, after: tuple[int, str] | None) -> SearchPage:
    """Give one page of the matched set, best first; equal strength is ordered by identifier."""
    matched = _match(connection, question)
    if matched is None:
        return SearchPage()
    rows = connection.execute(_page(matched, size, after)).all()
    more = len(rows) > size
    hits = [_hit(row, matched.total) for row in rows[:size]]
    return SearchPage(hits, (rows[size - 1].strength, rows[size - 1].identifier) if more else None)


def search_statement(connection: Connection, question: Question, size: int) -> Select[Any] | None:
    """Give the one statement that answers a first page, for those who measure it; None when nothing can match."""
    matched = _match(connection, question)
    return None if matched is None else _page(matched, size, None)


def _page(matched: _Matched, size: int, after: tuple[int, str] | None) -> Select[Any]:
    """Choose the page among narrow rows, then fetch the wide parts of its few entries."""
    strength, identifier = matched.rows.c.strength, listings.c.identifier
    chosen = (
        select(listings.c.id, identifier, listings.c.document_id, strength)
        .select_from(matched.rows)
        .join(listings, listings.c.id == matched.rows.c.listing_id)
        .order_by(desc(strength), identifier)
        .limit(size + 1)
    )
    if after is not None:
        chosen = chosen.where(or_(strength < after[0], and_(strength == after[0], identifier > after[1])))
    page = chosen.subquery("page")
    return (
        select(page.c.identifier, page.c.strength, listing_bodies.c.projection, documents.c.failing_since)
        .select_from(page)
        .join(listing_bodies, listing_bodies.c.listing_id == page.c.id)
        .outerjoin(documents, documents.c.id == page.c.document_id)
        .order_by(desc(page.c.strength), page.c.identifier)
    )


def _hit(row: Row[Any], total: int) -> Hit:
    score = 100 if row.strength >= _EXACT else score_of(row.strength / total if total else 0.0)
    return Hit(row.identifier, score, row.projection, row.failing_since)


def _match(connection: Connection, question: Question) -> _Matched | None:
    """Build the matched set of a question; None when it is empty."""
    conditions = _conditions(connection, question.constraints)
    if conditions is None:
        return None
    if question.text is None:
        rows = select(listings.c.id.label("listing_id"), literal(0).label("strength")).where(_live, *conditions)
        return _Matched(rows.subquery("matched"), 0)
    weights = _weigh(connection, query_words(question.text))
    exact = _resolve(connection, question.text)
    parts = []
    if weights.of:
        parts.append(_scored(weights, least_strength(question.min_score)))
    if exact:
        parts.append(
            select(listings.c.id.label("listing_id"), literal(_EXACT).label("strength")).where(listings.c.id.in_(exact))
        )
    if not parts:
        return None
    if len(parts) == 1:
        scored = parts[0].subquery("scored")
    else:
        both = union_all(*parts).subquery("both")
        scored = (
            select(both.c.listing_id, func.max(both.c.strength).label("strength"))
            .group_by(both.c.listing_id)
            .subquery("scored")
        )
    if not conditions:
        return _Matched(scored, weights.total)
    kept = (
        select(scored.c.listing_id, scored.c.strength)
        .join(listings, listings.c.id == scored.c.listing_id)
        .where(*conditions)
    )
    return _Matched(kept.subquery("matched"), weights.total)


def _weigh(connection: Connection, stems: Sequence[str]) -> _Weights:
    """Weigh the words of a query by inverse entry frequency; an unknown word weighs most and matches nothing."""
    if not stems:
        return _Weights({}, (), 0)
    count = select(facts.c.number).where(facts.c.name == "entries").scalar_subquery()
    query = select(words.c.id, words.c.entry_count, count.label("entries")).where(words.c.stem.in_(stems))
    known = [row for row in connection.execute(query) if row.entry_count > 0]
    entries = known[0].entries if known else 0
    of = {row.id: _weight(entries, row.entry_count) for row in known}
    total = sum(of.values()) + (len(stems) - len(of)) * _weight(entries, 0)
    return _Weights(of, _essential(of), total * IMPACT_SCALE)


def _essential(of: Mapping[int, int]) -> tuple[int, ...]:
    """Choose the words of which an entry must hold one.

    Words that weigh the same are all set aside or all kept: their numbers only tell which of them came first.
    """
    spare = _COMMON_SHARE * sum(of.values())
    least = 0
    for weight, alike in groupby(sorted(of.values())):
        spare -= sum(alike)
        if spare < 0:
            least = weight
            break
    return tuple(sorted(word for word, weight in of.items() if weight >= least))


def _weight(entries: int, with_word: int) -> int:
    return max(1, round(_WEIGHT_SCALE * math.log(1 + (entries - with_word + 0.5) / (with_word + 0.5))))


def _scored(weights: _Weights, cutoff: float) -> Any:
    weight = (
        case(weights.of, value=postings.c.word_id) if len(weights.of) > 1 else literal(next(iter(weights.of.values())))
    )
    # Impacts are small numbers and their sum is not: without the coercion a bound would be sent as one of 16 bits.
    strength = type_coerce(func.sum(postings.c.impact * weight), BigInteger())
    query = (
        select(postings.c.listing_id, strength.label("strength"))
        .where(postings.c.word_id.in_(list(weights.of)))
        .group_by(postings.c.listing_id)
        .having(strength >= math.ceil(cutoff * weights.total))
    )
    if len(weights.essential) < len(weights.of):
        holds = func.max(case((postings.c.word_id.in_(weights.essential), 1), else_=0))
        query = query.having(holds == 1)
    return query


def _resolve(connection: Connection, text: str) -> list[int]:
    """Find the listings that a text names exactly: by identifier, by display name, or as `name@publisher`."""
    stripped = storable(text.strip())
    if len(stripped) > 500:
        return []
    names = listings.c.folded_name == fold_name(stripped)
    if is_ard_identifier(stripped):
        names = listings.c.identifier == stripped
    leaf, at, publisher = stripped.lower().rpartition("@")
    if at and leaf and publisher and " " not in stripped:
        names = or_(names, listings.c.leaf == leaf)
    query = select(listings.c.id, listings.c.folded_name, listings.c.publisher, listings.c.identifier).where(
        names, _live
    )
    # In order, so that every page and every count takes the same ones.
    rows = connection.execute(query.order_by(listings.c.identifier).limit(_MOST_EXACT)).all()
    return [
        row.id
        for row in rows
        if row.identifier == stripped
        or row.folded_name == fold_name(stripped)
        or publisher == row.publisher
        or publisher in row.publisher.split(".")[:-1]
    ]


def _conditions(connection: Connection, wanted: Sequence[Constraint]) -> list[ColumnElement[bool]] | None:
    """Turn constraints into conditions on listings; None when one of them can match nothing."""
    conditions: list[ColumnElement[bool]] = []
    for constraint in wanted:
        path, values = storable(constraint.path.path), [storable(value) for value in constraint.values]
        column = _NARROW.get(path)
        if column is not None:
            if not values:
                return None
            conditions.append(column.in_(values))
            continue
        mine = (attributes.c.path == path) & attributes.c.value.in_(values)
        ids = list(connection.execute(select(attributes.c.id).where(mine, attributes.c.entry_count > 0)).scalars())
        if not ids:
            return None
        having = select(attribute_listings.c.listing_id).where(attribute_listings.c.attribute_id.in_(ids))
        conditions.append(listings.c.id.in_(having))
    return conditions


# --- Explore ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Facet:
    """The counts of one field: buckets in order, and the sum of those past the limit."""

    buckets: list[tuple[str, int]]
    other_count: int


def explore(connection: Connection, question: Question, fields: Sequence[tuple[str, int, int]]) -> list[Facet]:
    """Count the values of fields over the matched set: fields are (path, limit, least count)."""
    everything = question.text is None and not question.constraints
    matched = None if everything else _match(connection, question)
    if matched is None and not everything:
        return [Facet([], 0) for _ in fields]
    return [_facet(connection, matched, storable(path), limit, least) for path, limit, least in fields]


def _facet(connection: Connection, matched: _Matched | None, path: str, limit: int, least: int) -> Facet:
    if matched is None:
        counts = select(attributes.c.value, attributes.c.entry_count.label("entries")).where(
            attributes.c.path == path, attributes.c.entry_count > 0
        )
    elif path in _NARROW:
        column = _NARROW[path]
        counts = (
            select(column.label("value"), func.count().label("entries"))
            .select_from(matched.rows)
            .join(listings, listings.c.id == matched.rows.c.listing_id)
            .where(column != "")
            .group_by(column)
        )
    else:
        counts = (
            select(attributes.c.value, func.count().label("entries"))
            .select_from(matched.rows)
            .join(attribute_listings, attribute_listings.c.listing_id == matched.rows.c.listing_id)
            .join(attributes, attributes.c.id == attribute_listings.c.attribute_id)
            .where(attributes.c.path == path)
            .group_by(attributes.c.id, attributes.c.value)
        )
    counted = counts.subquery("counted")
    kept = counted.c.entries >= least
    top = select(counted.c.value, counted.c.entries).where(kept).order_by(desc(counted.c.entries), counted.c.value)
    buckets = [(row.value, row.entries) for row in connection.execute(top.limit(limit))]
    other = 0
    if len(buckets) == limit:
        total = connection.execute(select(func.sum(counted.c.entries)).where(kept)).scalar_one() or 0
        other = int(total) - sum(count for _, count in buckets)
    return Facet(buckets, other)


# --- List and Retrieve ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ListPage:
    """One page of the listing; `after` holds the order key that continues it."""

    projections: list[str]
    total: int
    after: list[Any] | None


_ORDER_COLUMNS: Mapping[str, Any] = {
    "displayName": listings.c.folded_name,
    "createdAt": listings.c.first_seen_at,
    "updatedAt": listings.c.updated_at,
    "identifier": listings.c.identifier,
}


def list_entries(
    connection: Connection,
    clauses: Sequence[ListClause],
    orders: Sequence[ListOrder],
    size: int,
    after: Sequence[Any] | None,
) -> ListPage:
    """Give one page of the entries that satisfy a List filter, in a total order."""
    conditions = [_live, *(_list_condition(clause) for clause in clauses)]
    columns = [_ORDER_COLUMNS[order.field] for order in orders]
    query = (
        select(listing_bodies.c.projection, *columns)
        .join(listing_bodies, listing_bodies.c.listing_id == listings.c.id)
        .where(*conditions)
        .order_by(*map(_directed, columns, orders))
        .limit(size + 1)
    )
    if after is not None:
        query = query.where(_beyond(columns, orders, [_order_value(value) for value in after]))
    rows = connection.execute(query).all()
    total = int(connection.execute(select(func.count()).select_from(listings).where(*conditions)).scalar_one())
    last = [_token_value(value) for value in rows[size - 1][1:]] if len(rows) > size else None
    return ListPage([row.projection for row in rows[:size]], total, last)


def _directed(column: Any, order: ListOrder) -> Any:
    return desc(column) if order.descending else column


def _list_condition(clause: ListClause) -> ColumnElement[bool]:
    texts = [storable(text) for text in clause.texts]
    if clause.field == "displayName":
        return or_(*(listings.c.folded_name.contains(fold_name(text), autoescape=True) for text in texts))
    if clause.field == "type":
        return listings.c.type.in_(texts)
    if clause.field == "publisherId":
        return listings.c.publisher.in_(texts)
    column = listings.c.first_seen_at if clause.field == "createdAfter" else listings.c.updated_at
    return column > clause.after


def _beyond(columns: Sequence[Any], orders: Sequence[ListOrder], values: Sequence[Any]) -> ColumnElement[bool]:
    """Say "comes after this row" for keys that may run in different directions."""
    alternatives = []
    for index, (column, order, value) in enumerate(zip(columns, orders, values, strict=True)):
        equal = [columns[before] == values[before] for before in range(index)]
        alternatives.append(and_(*equal, column < value if order.descending else column > value))
    return or_(*alternatives)


def _token_value(value: Any) -> Any:
    return {"at": value.isoformat()} if isinstance(value, datetime) else value


def _order_value(value: Any) -> Any:
    return datetime.fromisoformat(value["at"]) if isinstance(value, dict) else value


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """A listing as Retrieve serves it."""

    entry: str
    digest: str
    changed_at: datetime
    stale_since: datetime | None


def retrieve(connection: Connection, identifier: str) -> StoredEntry | None:
    """Give one listing by its exact identifier."""
    query = (
        select(listing_bodies.c.entry, listings.c.digest, listings.c.changed_at, documents.c.failing_since)
        .join(listing_bodies, listing_bodies.c.listing_id == listings.c.id)
        .outerjoin(documents, documents.c.id == listings.c.document_id)
        .where(listings.c.identifier == identifier, _live)
    )
    row = connection.execute(query).first()
    return None if row is None else StoredEntry(row.entry, row.digest, row.changed_at, row.failing_since)


def token_secret(connection: Connection) -> bytes:
    """Give the secret that seals page tokens; processes that share the database share it."""
    return bytes(connection.execute(select(facts.c.value).where(facts.c.name == "secret")).scalar_one())


def entry_count(connection: Connection) -> int:
    """Give the number of listings that search knows."""
    return int(connection.execute(select(facts.c.number).where(facts.c.name == "entries")).scalar_one())
