"""What a database holds, told so that two of them can be compared, whatever numbers and times they gave."""

import struct
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, case, func, select

from index.store.changes import Change
from index.store.search import entry_count
from index.store.tables import (
    attribute_listings,
    attributes,
    changes,
    documents,
    entries,
    facts,
    listing_bodies,
    listing_words,
    listings,
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


def contents_of(connection: Connection) -> dict[str, Any]:
    """Everything that a crawl left, but for times, numbers and the log of fetches."""
    of_documents = select(
        documents.c.url,
        documents.c.kind,
        # Looked at once or twice, it is there.
        case((documents.c.outcome == "not_modified", "fetched"), else_=documents.c.outcome),
        documents.c.digest,
        documents.c.applied_digest,
        documents.c.held,
        documents.c.watched,
        documents.c.entry_count,
        documents.c.mechanism,
    )
    of_entries = select(
        documents.c.url, entries.c.pointer, entries.c.key, entries.c.standing, entries.c.state, entries.c.raw
    ).join(documents, documents.c.id == entries.c.document_id)
    of_listings = select(
        listings.c.identifier, documents.c.url, listings.c.sources, listings.c.removed_at.is_(None)
    ).outerjoin(documents, documents.c.id == listings.c.document_id)
    of_changes = select(changes.c.kind, changes.c.identifier, changes.c.old_digest, changes.c.new_digest)
    return {
        **index_of(connection),
        **{
            name: sorted((tuple(row) for row in connection.execute(query)), key=repr)
            for name, query in (
                ("documents", of_documents),
                ("entries", of_entries),
                ("listings", of_listings),
                ("changes", of_changes),
            )
        },
    }
