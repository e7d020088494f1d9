"""Looking into the store for people: where a listing comes from, what an origin answered."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, select

from index.store.documents import origin_id
from index.store.engines import chunks
from index.store.tables import (
    attributes,
    documents,
    drifts,
    entries,
    fetches,
    leads,
    listing_bodies,
    listings,
    origins,
    storable,
)
from index.terms import PUBLISHER_PATH

StoredRow = Row[Any]


def listing_row(connection: Connection, identifier: str) -> StoredRow | None:
    """Give a listing, removed ones included, with its entry and its document."""
    query = (
        select(
            listings,
            listing_bodies.c.entry,
            documents.c.url,
            documents.c.mechanism,
            documents.c.final_url,
            documents.c.hops,
            documents.c.confirmed_at,
            documents.c.failing_since,
            documents.c.absent_since,
            documents.c.attempted_at,
            documents.c.fresh_until,
            documents.c.next_fetch_at,
            documents.c.outcome,
            documents.c.reason,
            documents.c.digest.label("snapshot"),
        )
        .outerjoin(listing_bodies, listing_bodies.c.listing_id == listings.c.id)
        .outerjoin(documents, documents.c.id == listings.c.document_id)
        .where(listings.c.identifier == storable(identifier))
    )
    return connection.execute(query).first()


def documents_behind(connection: Connection, identifier: str) -> list[tuple[str, str]]:
    """Give origin and URL of the document that a listing is or was taken from, and of the artifact it points to."""
    query = (
        select(listings.c.document_id, entries.c.artifact_id)
        .outerjoin(entries, entries.c.id == listings.c.entry_id)
        .where(listings.c.identifier == storable(identifier))
    )
    row = connection.execute(query).first()
    if row is None:
        return []
    wanted = [key for key in (row.document_id, row.artifact_id) if key is not None]
    found = (
        select(documents.c.id, documents.c.url, origins.c.origin)
        .join(origins, origins.c.id == documents.c.origin_id)
        .where(documents.c.id.in_(wanted))
    )
    places = {item.id: (item.origin, item.url) for item in connection.execute(found)}
    return [places[key] for key in wanted if key in places]


def listed_entries(connection: Connection, identifiers: Sequence[str]) -> dict[str, StoredRow]:
    """Give the listed entries of identifiers, each with the document of its artifact where that has one."""
    live = documents.alias("live")
    query = (
        select(entries, live.c.url.label("live_url"), origins.c.origin.label("live_origin"))
        .join(listings, listings.c.entry_id == entries.c.id)
        .outerjoin(live, live.c.id == entries.c.artifact_id)
        .outerjoin(origins, origins.c.id == live.c.origin_id)
        .where(listings.c.removed_at.is_(None))
    )
    found: dict[str, StoredRow] = {}
    for chunk in chunks(identifiers):
        for row in connection.execute(query.where(listings.c.identifier.in_(chunk))):
            found[row.key] = row
    return found


def sources_of(connection: Connection, identifier: str) -> Sequence[StoredRow]:
    """Give every entry with this identifier, the listed one first."""
    query = (
        select(entries, documents.c.url, documents.c.mechanism, documents.c.outcome, documents.c.confirmed_at)
        .join(documents, documents.c.id == entries.c.document_id)
        .join(origins, origins.c.id == documents.c.origin_id)
        .where(entries.c.key == storable(identifier))
        .order_by(entries.c.source_rank, origins.c.added_at, documents.c.url, entries.c.position)
    )
    rows: Sequence[StoredRow] = connection.execute(query).all()
    return rows


def last_fetch(connection: Connection, document: int) -> StoredRow | None:
    """Give the newest line of the fetch log of a document."""
    query = select(fetches).where(fetches.c.document_id == document).order_by(fetches.c.id.desc()).limit(1)
    row: StoredRow | None = connection.execute(query).first()
    return row


def documents_of(connection: Connection, origin: str) -> Sequence[StoredRow]:
    """Give the watched documents of an origin."""
    query = (
        select(documents).where(documents.c.origin_id == origin_id(origin)).order_by(documents.c.rank, documents.c.url)
    )
    rows: Sequence[StoredRow] = connection.execute(query).all()
    return rows


def entries_not_listed(connection: Connection, origin: str) -> Sequence[StoredRow]:
    """Give the entries of an origin's documents that are not listed, with their problems."""
    query = (
        select(entries, documents.c.url)
        .join(documents, documents.c.id == entries.c.document_id)
        .where(documents.c.origin_id == origin_id(origin), entries.c.state != "listed")
        .order_by(documents.c.url, entries.c.position)
    )
    rows: Sequence[StoredRow] = connection.execute(query).all()
    return rows


def leads_of(connection: Connection, origin: str) -> Sequence[StoredRow]:
    """Give the leads that an origin's documents hold, with what was decided about each."""
    query = (
        select(leads, documents.c.url.label("source"))
        .join(documents, documents.c.id == leads.c.document_id)
        .where(documents.c.origin_id == origin_id(origin))
        .order_by(documents.c.url, leads.c.url)
    )
    rows: Sequence[StoredRow] = connection.execute(query).all()
    return rows


def knows_publisher(connection: Connection, publisher: str) -> bool:
    """Tell whether anything of a publisher is or was listed, or has drifted."""
    listed = select(attributes.c.id).where(attributes.c.path == PUBLISHER_PATH, attributes.c.value == publisher)
    drifted = select(drifts.c.id).where(drifts.c.publisher == publisher)
    return any(connection.execute(query.limit(1)).first() for query in (listed, drifted))


def origin_row(connection: Connection, origin: str) -> StoredRow | None:
    """Give one origin."""
    row: StoredRow | None = connection.execute(select(origins).where(origins.c.id == origin_id(origin))).first()
    return row
