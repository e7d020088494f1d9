"""The listings as catalogs that others can crawl, cut into blocks that stay the same while nothing in them changes."""

from sqlalchemy import Connection, func, select

from index.store.tables import listing_bodies, listings

BLOCK = 1000
_live = listings.c.removed_at.is_(None)


def catalog_blocks(connection: Connection) -> list[tuple[int, int]]:
    """Give the number and size of each block of listings that is not empty."""
    first = (listings.c.id - listings.c.id % BLOCK).label("first")
    query = select(first, func.count()).where(_live).group_by(first).order_by(first)
    return [(int(number) // BLOCK, int(size)) for number, size in connection.execute(query)]


def catalog_block(connection: Connection, number: int) -> list[str]:
    """Give the entries of one block, as published."""
    query = (
        select(listing_bodies.c.entry)
        .join(listings, listings.c.id == listing_bodies.c.listing_id)
        .where(_live, listings.c.id >= number * BLOCK, listings.c.id < (number + 1) * BLOCK)
        .order_by(listings.c.identifier)
    )
    return list(connection.execute(query).scalars())
