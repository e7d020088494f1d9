"""The few statements that SQLite and PostgreSQL spell alike but SQLAlchemy keeps apart."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite

_Item = TypeVar("_Item")
CHUNK = 500


def insert_ignore(connection: Connection, table: Table) -> Any:
    """Insert rows, leaving those that are there already."""
    return _insert(connection, table).on_conflict_do_nothing()


def upsert(connection: Connection, table: Table, keys: Sequence[str], columns: Iterable[str]) -> Any:
    """Insert rows, or bring those with the same keys up to date."""
    statement = _insert(connection, table)
    return statement.on_conflict_do_update(
        index_elements=list(keys), set_={name: statement.excluded[name] for name in columns}
    )


def _insert(connection: Connection, table: Table) -> Any:
    return (postgresql if connection.dialect.name == "postgresql" else sqlite).insert(table)


def chunks(items: Iterable[_Item], size: int = CHUNK) -> Iterator[list[_Item]]:
    """Cut a sequence into lists that fit into one IN clause."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk
