"""Writing the search index: words with their impacts, attributes for filters, and the counts of both.

One row per word and listing holds the ready-made impact; how many entries have a word or attribute is kept beside it.
All counts of a batch are added at once, in key order, so that two writers cannot block each other.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Select, bindparam, delete, select, update

from index.store.among import among, rows_among
from index.store.engines import (
    add_numbers,
    chunks,
    delete_numbers,
    insert_new_rows,
    insert_numbers,
    insert_rows,
)
from index.store.tables import (
    attribute_listings,
    attributes,
    facts,
    listing_words,
    postings,
    storable,
    words,
)


@dataclass(frozen=True, slots=True)
class IndexedListing:
    """What search knows of a listing."""

    listing_id: int
    impacts: Mapping[str, int]
    attributes: Sequence[tuple[str, str]]


def index_listings(connection: Connection, batch: Sequence[IndexedListing], removed: Sequence[int] = ()) -> None:
    """Bring the index in line with listings that are new, changed or removed."""
    if not batch and not removed:
        return
    _index_words(connection, batch, removed)
    _index_attributes(connection, batch, removed)


def _index_words(connection: Connection, batch: Sequence[IndexedListing], removed: Sequence[int]) -> None:
    word_ids = _word_ids(connection, {stem for item in batch for stem in item.impacts})
    affected = [item.listing_id for item in batch] + list(removed)
    old = _stored_words(connection, affected)
    indexed = list(old)
    counts: Counter[int] = Counter()
    gone: list[tuple[int, int]] = []
    come: list[tuple[int, int, int]] = []
    packed: list[dict[str, Any]] = []
    for item in batch:
        new = {word_ids[stem]: impact for stem, impact in item.impacts.items()}
        before = old.pop(item.listing_id, {})
        gone += [(word, item.listing_id) for word, impact in before.items() if new.get(word) != impact]
        come += [(word, item.listing_id, impact) for word, impact in new.items() if before.get(word) != impact]
        counts.update(new.keys() - before.keys())
        counts.subtract(before.keys() - new.keys())
        packed.append({"listing_id": item.listing_id, "words": _pack(new)})
    for listing_id, before in old.items():
        gone += [(word, listing_id) for word in before]
        counts.subtract(before.keys())
    delete_numbers(connection, postings, sorted(gone))
    insert_numbers(connection, postings, sorted(come))
    for chunk in chunks(indexed):
        connection.execute(delete(listing_words).where(listing_words.c.listing_id.in_(chunk)))
    insert_rows(connection, listing_words, packed)
    add_numbers(connection, words, "entry_count", _changes(counts))


def _stored_words(connection: Connection, listing_ids: Sequence[int]) -> dict[int, dict[int, int]]:
    return {row.listing_id: _unpack(row.words) for row in rows_among(connection, _words_of, listing_ids)}


@cache
def _words_of(dialect: str) -> Select[Any]:
    return select(listing_words).where(among(dialect, listing_words.c.listing_id))


def _pack(impacts: Mapping[int, int]) -> bytes:
    """Pack word keys and impacts as pairs of 32-bit numbers."""
    numbers = array("I")
    for word, impact in sorted(impacts.items()):
        numbers.extend((word, impact))
    return numbers.tobytes()


def _unpack(packed: bytes) -> dict[int, int]:
    numbers = array("I")
    numbers.frombytes(bytes(packed))
    return dict(zip(numbers[::2], numbers[1::2], strict=True))


def _index_attributes(connection: Connection, batch: Sequence[IndexedListing], removed: Sequence[int]) -> None:
    cleaned = {
        item.listing_id: {(storable(path), storable(value)) for path, value in item.attributes} for item in batch
    }
    ids = _attribute_ids(connection, {pair for pairs in cleaned.values() for pair in pairs})
    affected = [item.listing_id for item in batch] + list(removed)
    old: dict[int, set[int]] = {}
    for row in rows_among(connection, _attributes_of, affected):
        old.setdefault(row.listing_id, set()).add(row.attribute_id)
    counts: Counter[int] = Counter()
    gone: list[tuple[int, int]] = []
    come: list[tuple[int, int]] = []
    for listing_id in affected:
        new = {ids[pair] for pair in cleaned.get(listing_id, ())}
        before = old.get(listing_id, set())
        gone += [(attribute, listing_id) for attribute in before - new]
        come += [(attribute, listing_id) for attribute in new - before]
        counts.update(new - before)
        counts.subtract(before - new)
    delete_numbers(connection, attribute_listings, sorted(gone))
    insert_numbers(connection, attribute_listings, sorted(come))
    add_numbers(connection, attributes, "entry_count", _changes(counts))


@cache
def _attributes_of(dialect: str) -> Select[Any]:
    return select(attribute_listings).where(among(dialect, attribute_listings.c.listing_id))


def _word_ids(connection: Connection, stems: Iterable[str]) -> dict[str, int]:
    """Give the numbers of words, making those that are new."""
    wanted = sorted(stems)
    found: dict[str, int] = dict(rows_among(connection, _numbers_of_words, wanted))
    new = [stem for stem in wanted if stem not in found]
    if new:
        insert_new_rows(connection, words, [{"stem": stem, "entry_count": 0} for stem in new])
        found.update(rows_among(connection, _numbers_of_words, new))
    return found


@cache
def _numbers_of_words(dialect: str) -> Select[Any]:
    return select(words.c.stem, words.c.id).where(among(dialect, words.c.stem))


def _attribute_ids(connection: Connection, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], int]:
    wanted = sorted(pairs)
    found = _lookup_attributes(connection, wanted)
    new = [pair for pair in wanted if pair not in found]
    if new:
        rows = [{"path": path, "value": value, "entry_count": 0} for path, value in new]
        insert_new_rows(connection, attributes, rows)
        found.update(_lookup_attributes(connection, new))
    return found


def _lookup_attributes(connection: Connection, pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """Look pairs up path by path: SQLite answers an IN over pairs by reading the whole table."""
    found: dict[tuple[str, str], int] = {}
    for path, group in groupby(pairs, key=itemgetter(0)):
        rows = rows_among(connection, _numbers_of_values, (value for _, value in group), path=path)
        found.update(((path, value), number) for value, number in rows)
    return found


@cache
def _numbers_of_values(dialect: str) -> Select[Any]:
    mine = (attributes.c.path == bindparam("path")) & among(dialect, attributes.c.value)
    return select(attributes.c.value, attributes.c.id).where(mine)


def _changes(counts: Mapping[int, int]) -> list[tuple[int, int]]:
    return [(change, key) for key, change in sorted(counts.items()) if change]


def add_to_entry_count(connection: Connection, change: int) -> None:
    """Keep the number of listings that search knows."""
    if change:
        connection.execute(update(facts).where(facts.c.name == "entries").values(number=facts.c.number + change))
