"""The few statements that SQLite and PostgreSQL spell alike but SQLAlchemy keeps apart."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import Connection, Table, and_, bindparam, delete, insert, update
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


class Bulk:
    """Statements over many rows of plain numbers.

    Handing the rows to the driver as they are skips the per-row work that types and names would need, which is most of
    the cost of a posting.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def insert(self, table: Table, rows: Sequence[tuple[int, ...]]) -> None:
        """Insert rows given in the order of the table's columns."""
        names = [column.name for column in table.c]
        self._run(insert(table).values({name: bindparam(name) for name in names}), names, rows)

    def delete(self, table: Table, rows: Sequence[tuple[int, ...]]) -> None:
        """Delete rows by their primary key."""
        keys = list(table.primary_key)
        names = [f"b_{column.name}" for column in keys]
        mine = and_(*(column == bindparam(name) for column, name in zip(keys, names, strict=True)))
        self._run(delete(table).where(mine), names, rows)

    def add(self, table: Table, column: str, rows: Sequence[tuple[int, int]]) -> None:
        """Add numbers to a column: rows of (change, id)."""
        statement = update(table).where(table.c.id == bindparam("b_id"))
        self._run(statement.values({column: table.c[column] + bindparam("b_change")}), ["b_change", "b_id"], rows)

    def _run(self, statement: Any, names: Sequence[str], rows: Sequence[tuple[int, ...]]) -> None:
        if not rows:
            return
        compiled = statement.compile(dialect=self._connection.dialect)
        order = [names.index(name) for name in compiled.positiontup or ()]
        if order != list(range(len(names))):
            rows = [tuple(row[index] for index in order) for row in rows]
        self._connection.exec_driver_sql(str(compiled), rows)
