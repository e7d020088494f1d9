"""Writing many rows at once, the same on SQLite and PostgreSQL.

A statement is built and compiled once for the columns of its rows; the rows are then laid out for the driver without
the per-row machinery that is most of the cost of a small write.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import Connection, Table, and_, bindparam, delete, update
from sqlalchemy.dialects import postgresql, sqlite

_Item = TypeVar("_Item")
_Build = Callable[[Any, Sequence[str]], Any]
_Plan = tuple[str, tuple[tuple[str, Callable[[Any], Any] | None], ...]]
CHUNK = 500
_plans: dict[tuple[Any, ...], _Plan] = {}


def chunks(items: Iterable[_Item], size: int = CHUNK) -> Iterator[list[_Item]]:
    """Cut a sequence into lists that fit into one IN clause."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def insert_rows(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows."""
    _write(connection, ("insert", table.name), lambda insert, _: insert, table, rows)


def insert_new_rows(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows, leaving those that are there already."""
    _write(connection, ("insert new", table.name), lambda insert, _: insert.on_conflict_do_nothing(), table, rows)


def upsert_rows(
    connection: Connection,
    table: Table,
    rows: Sequence[Mapping[str, Any]],
    *,
    key: str = "id",
    only: Iterable[str] | None = None,
    never: Iterable[str] = (),
) -> None:
    """Insert rows, or bring those with the same key up to date: all columns, `only` some, or `never` some."""
    kept = {key, *never}

    def build(insert: Any, names: Sequence[str]) -> Any:
        columns = names if only is None else only
        values = {name: insert.excluded[name] for name in columns if name not in kept}
        return insert.on_conflict_do_update(index_elements=[key], set_=values)

    _write(connection, ("upsert", table.name, key, *(only or ()), "but", *never), build, table, rows)


def update_rows(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]], *, key: str = "id") -> None:
    """Set columns of the rows with these keys; each row holds its key and the new values."""

    def build(_: Any, names: Sequence[str]) -> Any:
        values = {name: bindparam(f"b_{name}", type_=table.c[name].type) for name in names if name != key}
        return update(table).where(table.c[key] == bindparam(f"b_{key}")).values(values)

    _write(connection, ("update", table.name, key), build, table, rows)


def insert_numbers(connection: Connection, table: Table, rows: Sequence[tuple[int, ...]]) -> None:
    """Insert rows of plain numbers in the order of the table's columns."""
    names = [column.name for column in table.c]
    _write_tuples(connection, ("insert", table.name), lambda insert, _: insert, table, names, rows)


def delete_numbers(connection: Connection, table: Table, rows: Sequence[tuple[int, ...]]) -> None:
    """Delete rows by their primary key."""
    keys = list(table.primary_key)

    def build(_: Any, __: Sequence[str]) -> Any:
        return delete(table).where(and_(*(column == bindparam(f"b_{column.name}") for column in keys)))

    _write_tuples(connection, ("delete", table.name), build, table, [column.name for column in keys], rows)


def add_numbers(connection: Connection, table: Table, column: str, rows: Sequence[tuple[int, int]]) -> None:
    """Add numbers to a column: rows of (change, id)."""

    def build(_: Any, __: Sequence[str]) -> Any:
        statement = update(table).where(table.c.id == bindparam("b_id"))
        return statement.values({column: table.c[column] + bindparam(f"b_{column}")})

    _write_tuples(connection, ("add", table.name), build, table, [column, "id"], rows)


def _write(
    connection: Connection, kind: tuple[str, ...], build: _Build, table: Table, rows: Sequence[Mapping[str, Any]]
) -> None:
    if not rows:
        return
    sql, columns = _plan(connection, kind, build, table, tuple(rows[0]))
    laid_out = [
        tuple([row[name] if process is None else process(row[name]) for name, process in columns]) for row in rows
    ]
    connection.exec_driver_sql(sql, laid_out)


def _write_tuples(
    connection: Connection,
    kind: tuple[str, ...],
    build: _Build,
    table: Table,
    names: Sequence[str],
    rows: Sequence[tuple[int, ...]],
) -> None:
    if not rows:
        return
    sql, columns = _plan(connection, kind, build, table, tuple(names))
    order = [names.index(name) for name, _ in columns]
    if order != list(range(len(names))):
        rows = [tuple([row[index] for index in order]) for row in rows]
    connection.exec_driver_sql(sql, list(rows))


def _plan(connection: Connection, kind: tuple[str, ...], build: _Build, table: Table, names: tuple[str, ...]) -> _Plan:
    dialect = connection.dialect
    known = _plans.get((*kind, dialect.name, names))
    if known is None:
        module = postgresql if dialect.name == "postgresql" else sqlite
        insert = module.insert(table).values({name: bindparam(name, type_=table.c[name].type) for name in names})
        compiled = build(insert, names).compile(dialect=dialect)
        columns = []
        for bind in compiled.positiontup:
            process = compiled.binds[bind].type.dialect_impl(dialect).bind_processor(dialect)
            columns.append((bind.removeprefix("b_"), process))
        known = _plans[(*kind, dialect.name, names)] = (str(compiled), tuple(columns))
    return known
