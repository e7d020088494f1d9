"""What a database holds, told so that two of them can be compared, whatever numbers and times they gave."""

import struct
from collections import Counter
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Select, case, func, select

from index.store.changes import Change, read_changes
from index.store.search import entry_count
from index.store.tables import (
    artifacts,
    attribute_listings,
    attributes,
    changes,
    documents,
    drifts,
    entries,
    facts,
    listing_bodies,
    listing_words,
    listings,
    origins,
    pending,
    postings,
    words,
)


def replay(feed: Sequence[Change]) -> dict[str, str | None]:
    """Do what a follower of the feed does: from the first event on, keep identifiers with their digests."""
    held: dict[str, str | None] = {}
    for change in feed:
        if not change.kind.startswith("entry."):
            continue  # what is told of artifacts and drift changes no listing
        if change.kind == "entry.added":
            assert change.identifier not in held
            held[change.identifier] = change.new_digest
        elif change.kind == "entry.changed":
            assert held[change.identifier] == change.old_digest
            held[change.identifier] = change.new_digest
        else:
            assert change.kind == "entry.removed"
            assert held.pop(change.identifier) == change.old_digest
    return held


def listed_digests(connection: Connection) -> dict[str, str]:
    """Give what the feed should lead to."""
    rows = connection.execute(select(listings.c.identifier, listings.c.digest).where(listings.c.removed_at.is_(None)))
    return {row.identifier: row.digest for row in rows}


def recount(connection: Connection) -> None:
    """Compare every count that is kept with one that is made anew."""
    for kept, rows, key in (
        (words, postings, postings.c.word_id),
        (attributes, attribute_listings, attribute_listings.c.attribute_id),
    ):
        stated = connection.execute(select(kept.c.id, kept.c.entry_count).where(kept.c.entry_count != 0))
        counted = connection.execute(select(key, func.count()).select_from(rows).group_by(key))
        assert sorted(map(tuple, stated)) == sorted(map(tuple, counted)), kept.name
    live = set(connection.execute(select(listings.c.id).where(listings.c.removed_at.is_(None))).scalars())
    assert entry_count(connection) == len(live)
    assert set(connection.execute(select(postings.c.listing_id).distinct()).scalars()) == live
    assert set(connection.execute(select(attribute_listings.c.listing_id).distinct()).scalars()) == live
    packed = {
        (word, row.listing_id, impact)
        for row in connection.execute(select(listing_words))
        for word, impact in struct.iter_unpack("=II", row.words)
    }
    assert packed == {tuple(row) for row in connection.execute(select(postings))}
    last = connection.execute(select(func.max(changes.c.cursor))).scalar_one() or 0
    assert connection.execute(select(func.count()).select_from(changes)).scalar_one() == last
    assert connection.execute(select(facts.c.number).where(facts.c.name == "cursor")).scalar_one() == last


def index_of(connection: Connection) -> dict[str, Any]:
    """Everything that search knows, in terms that do not depend on the numbers given."""
    live = listings.c.removed_at.is_(None)
    by_word = (
        select(listings.c.identifier, words.c.stem, postings.c.impact)
        .join(postings, postings.c.listing_id == listings.c.id)
        .join(words, words.c.id == postings.c.word_id)
    )
    by_attribute = (
        select(listings.c.identifier, attributes.c.path, attributes.c.value)
        .join(attribute_listings, attribute_listings.c.listing_id == listings.c.id)
        .join(attributes, attributes.c.id == attribute_listings.c.attribute_id)
    )
    bodies = select(listings.c.identifier, listings.c.digest, listing_bodies.c.entry, listing_bodies.c.projection).join(
        listing_bodies, listing_bodies.c.listing_id == listings.c.id
    )
    return {
        "words": sorted(tuple(row) for row in connection.execute(by_word)),
        "attributes": sorted(tuple(row) for row in connection.execute(by_attribute)),
        "bodies": sorted(tuple(row) for row in connection.execute(bodies.where(live))),
    }


def check_sound(connection: Connection) -> None:
    """Check what must hold at any moment: one state of everything, and a feed that leads to it without a gap."""
    if connection.dialect.name == "postgresql":
        # What a killed process had sent may still be committed while we read.
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    recount(connection)
    feed = read_changes(connection, 0, 1_000_000)
    assert [change.cursor for change in feed] == list(range(1, len(feed) + 1))
    assert replay(feed) == listed_digests(connection)
    rows = connection.execute(select(drifts).where(drifts.c.closed_at.is_(None))).all()
    assert max(Counter(row.name for row in rows).values(), default=1) == 1, "no drift is there twice"
    assert replay_drifts(feed) == Counter((row.code, row.identifier or "", row.live_url) for row in rows)


def replay_drifts(feed: Sequence[Change]) -> Counter[tuple[str, str, str]]:
    """Count what is open after a feed, by code, identifier and live side."""
    open_now: Counter[tuple[str, str, str]] = Counter()
    for change in feed:
        if change.kind.startswith("drift."):
            name = (change.reason.partition(",")[0], change.identifier, change.url or "")
            open_now[name] += 1 if change.kind == "drift.opened" else -1
            assert open_now[name] >= 0, name
    return +open_now


def unsettled(connection: Connection) -> dict[str, int]:
    """Count what a crash may leave behind and the next visit must take up."""
    claimed = select(func.count()).select_from(origins).where(origins.c.claimed_by.is_not(None))
    never = select(func.count()).select_from(origins).where(origins.c.active, origins.c.last_visit_at.is_(None))
    waiting = select(func.count()).select_from(pending)
    return {
        name: connection.execute(query).scalar_one()
        for name, query in (("claimed", claimed), ("never visited", never), ("pending", waiting))
    }


_OF_DOCUMENTS = select(
    documents.c.url,
    documents.c.kind,
    # Looked at once or twice, it is there.
    case((documents.c.outcome == "not_modified", "fetched"), else_=documents.c.outcome),
    documents.c.applied_digest,
    documents.c.held,
    documents.c.entry_count,
    documents.c.mechanism,
)
_OF_ENTRIES = select(
    documents.c.url,
    entries.c.pointer,
    entries.c.key,
    entries.c.standing,
    entries.c.state,
    entries.c.artifact_decision,
    entries.c.raw,
).join(documents, documents.c.id == entries.c.document_id)
_OF_LISTINGS = select(
    listings.c.identifier, documents.c.url, listings.c.sources, listings.c.removed_at.is_(None)
).outerjoin(documents, documents.c.id == listings.c.document_id)
_OF_CARDS = select(
    documents.c.url,
    artifacts.c.inline,
    artifacts.c.kind,
    artifacts.c.shape,
    artifacts.c.digest,
    artifacts.c.content_digest,
).join(documents, documents.c.id == artifacts.c.document_id)
_OF_DRIFTS = select(drifts.c.code, drifts.c.identifier, drifts.c.pointer, drifts.c.catalog_url, drifts.c.live_url)


def contents_of(connection: Connection) -> dict[str, Any]:
    """Everything that a crawl left, but for times, numbers and the log of fetches."""
    return {
        **index_of(connection),
        **_rows(
            connection,
            documents=_OF_DOCUMENTS.add_columns(documents.c.digest, documents.c.watched),
            entries=_OF_ENTRIES,
            listings=_OF_LISTINGS,
            cards=_OF_CARDS,
            drifts=_OF_DRIFTS.add_columns(drifts.c.closed_at.is_(None)),
            changes=select(changes.c.kind, changes.c.identifier, changes.c.old_digest, changes.c.new_digest),
        ),
    }


def state_of(connection: Connection) -> dict[str, Any]:
    """Everything that depends on what publishers say now, and not on what they said before."""
    return {
        **index_of(connection),
        **_rows(
            connection,
            documents=_OF_DOCUMENTS.where(documents.c.watched),
            entries=_OF_ENTRIES,
            listings=_OF_LISTINGS.where(listings.c.removed_at.is_(None)),
            cards=_OF_CARDS.where(documents.c.watched),
            drifts=_OF_DRIFTS.where(drifts.c.closed_at.is_(None)),
        ),
    }


def _rows(connection: Connection, **queries: Select[Any]) -> dict[str, Any]:
    return {
        name: sorted((tuple(row) for row in connection.execute(query)), key=repr) for name, query in queries.items()
    }
