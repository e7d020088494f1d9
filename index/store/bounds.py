"""The bounds by which it was decided what of an origin is watched, so that higher ones decide anew."""

from collections.abc import Mapping

from sqlalchemy import Connection, select

from index.store.engines import upsert_rows
from index.store.tables import facts


def raised_bounds(connection: Connection, bounds: Mapping[str, int]) -> set[str]:
    """Name those of these bounds that are higher than when they were kept last."""
    query = select(facts.c.name, facts.c.number).where(facts.c.name.in_(bounds))
    return {row.name for row in connection.execute(query) if bounds[row.name] > row.number}


def keep_bounds(connection: Connection, bounds: Mapping[str, int]) -> None:
    """Keep the bounds that decide from now on."""
    rows = [{"name": name, "number": number} for name, number in bounds.items()]
    upsert_rows(connection, facts, rows, key="name")
