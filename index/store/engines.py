"""Writing many rows at once, the same on SQLite and PostgreSQL.

A statement is built and compiled once for the columns of its rows; the rows are then laid out for the driver without
the per-row machinery that is most of the cost of a small write. It is run once for each row; on PostgreSQL, for the
tables that every visit writes to, once for all of them with a column of values for each parameter, which spares the
server most of its work for a row.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Dialect,
    String,
    Table,
    and_,
    bindparam,
    column,
    delete,
    func,
    literal_column,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.types import TypeEngine

_Item = TypeVar("_Item")
_Given = Callable[[str], ColumnElement[Any]]
_Types = Mapping[str, TypeEngine[Any]]
_POSTGRES: Dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
_Process = Callable[[Any], Any] | None
CHUNK = 500
# Their rows are small and come by the hundred; the lists of wide ones would not fit into a message.
_TAKE_COLUMNS = frozenset({"origins", "documents", "fetches"})


@dataclass(frozen=True, slots=True)
class _Plan:
    """A compiled statement, with the values it takes in their order and how each is laid out.

    One that takes `columns` is run once for all rows.
    """

    sql: str
    values: tuple[tuple[str, _Process], ...]
    columns: bool = False

    def run(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        if self.columns:
            for chunk in chunks(rows):
                connection.exec_driver_sql(self.sql, tuple(_laid_out(chunk, *value) for value in self.values))
            return
        # Laid out by columns: a processor is then called from within the interpreter, row after row.
        columns = [_laid_out(rows, *value) for value in self.values]
        connection.exec_driver_sql(self.sql, list(zip(*columns, strict=True)))


def _laid_out(rows: Sequence[Mapping[str, Any]], name: str, process: _Process) -> list[Any]:
    values = [row[name] for row in rows]
    return values if process is None else list(map(process, values))


_plans: dict[tuple[Any, ...], _Plan] = {}


def chunks(items: Iterable[_Item], size: int = CHUNK) -> Iterator[list[_Item]]:
    """Cut a sequence into lists that fit into one IN clause."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def insert_rows(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows."""
    _insert(connection, ("insert",), lambda insert: insert, table, rows)


def insert_new_rows(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows, leaving those that are there already."""
    _insert(connection, ("insert new",), lambda insert: insert.on_conflict_do_nothing(), table, rows)


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

    def build(insert: Any) -> Any:
        names = rows[0] if only is None else only
        values = {name: insert.excluded[name] for name in names if name not in kept}
        return insert.on_conflict_do_update(index_elements=[key], set_=values)

    _insert(connection, ("upsert", key, *(only or ()), "but", *never), build, table, rows, key)


def update_rows(
    connection: Connection,
    table: Table,
    rows: Sequence[Mapping[str, Any]],
    *,
    key: str = "id",
    never: Iterable[str] = (),
) -> None:
    """Set columns of the rows with these keys, all that are given but `never` some; each row holds its key too."""
    if not rows:
        return
    names = [name for name in rows[0] if name not in set(never)]

    def build(given: _Given) -> Any:
        values = {name: given(name) for name in names if name != key}
        return update(table).where(table.c[key] == given(key)).values(values)

    types = {name: table.c[name].type for name in names}
    change_rows(connection, ("update", key), table, types, rows, build, key=key)


def change_rows(
    connection: Connection,
    kind: tuple[str, ...],
    table: Table,
    types: _Types,
    rows: Sequence[Mapping[str, Any]],
    build: Callable[[_Given], Any],
    *,
    key: str,
) -> None:
    """Run an update for each row; `build` makes it of the values that are given, which `types` names.

    The statement is known by its kind and those values, and holds no other parameters. Rows with the same `key` are
    taken one after the other.
    """
    if not rows:
        return
    at_once = _takes_columns(connection, table, rows, key)
    kind = (*kind, table.name, connection.dialect.name, str(at_once), *types)
    known = _plans.get(kind)
    if known is None:
        values = {name: bindparam(f"b_{name}", type_=types[name]) for name in types}
        given = _columns(connection.dialect, types).c if at_once else values
        known = _plans[kind] = _compile(connection.dialect, build(lambda name: given[name]), types, columns=at_once)
    known.run(connection, rows)


def insert_numbers(connection: Connection, table: Table, rows: Sequence[tuple[int, ...]]) -> None:
    """Insert rows of plain numbers in the order of the table's columns."""
    names = [item.name for item in table.c]
    values = {name: bindparam(f"b_{name}", type_=table.c[name].type) for name in names}
    _write_tuples(
        connection, ("insert", table.name), lambda: _dialect_insert(connection, table).values(values), names, rows
    )


def delete_numbers(connection: Connection, table: Table, rows: Sequence[tuple[int, ...]]) -> None:
    """Delete rows by their primary key."""
    keys = list(table.primary_key)

    def build() -> Any:
        return delete(table).where(and_(*(item == bindparam(f"b_{item.name}") for item in keys)))

    _write_tuples(connection, ("delete", table.name), build, [item.name for item in keys], rows)


def add_numbers(connection: Connection, table: Table, name: str, rows: Sequence[tuple[int, int]]) -> None:
    """Add numbers to a column: rows of (change, id)."""

    def build() -> Any:
        statement = update(table).where(table.c.id == bindparam("b_id"))
        return statement.values({name: table.c[name] + bindparam(f"b_{name}")})

    _write_tuples(connection, ("add", table.name), build, [name, "id"], rows)


def _insert(
    connection: Connection,
    kind: tuple[str, ...],
    build: Callable[[Any], Any],
    table: Table,
    rows: Sequence[Mapping[str, Any]],
    key: str | None = None,
) -> None:
    if not rows:
        return
    at_once = _takes_columns(connection, table, rows, key)
    kind = (*kind, table.name, connection.dialect.name, str(at_once), *rows[0])
    known = _plans.get(kind)
    if known is None:
        types = {name: table.c[name].type for name in rows[0]}
        insert = _dialect_insert(connection, table)
        if at_once:
            values = _columns(connection.dialect, types)
            insert = insert.from_select(list(types), select(*values.c), include_defaults=False)
        else:
            insert = insert.values({name: bindparam(f"b_{name}", type_=types[name]) for name in types})
        known = _plans[kind] = _compile(connection.dialect, build(insert), types, columns=at_once)
    known.run(connection, rows)


def _dialect_insert(connection: Connection, table: Table) -> Any:
    module = postgresql if connection.dialect.name == "postgresql" else sqlite
    return module.insert(table)


def _takes_columns(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]], key: str | None) -> bool:
    """Tell whether one statement takes all rows: PostgreSQL changes no row twice in one."""
    if connection.dialect.name != "postgresql" or table.name not in _TAKE_COLUMNS:
        return False
    return key is None or len({row[key] for row in rows}) == len(rows)


def _columns(dialect: Dialect, types: _Types) -> Any:
    """Make a table of the parameters, each of which is a list."""
    lists: list[ColumnElement[Any]] = [
        literal_column(f"CAST(${place} AS {plain_type(kind).compile(dialect=dialect)}[])")
        for place, kind in enumerate(types.values(), 1)
    ]
    names = [column(name, kind) for name, kind in types.items()]
    return func.unnest(*lists).table_valued(*names, name="given").render_derived(name="given")


def plain_type(kind: TypeEngine[Any]) -> TypeEngine[Any]:
    """Give a type without its length and collation, which lists have none of."""
    stored = kind.dialect_impl(_POSTGRES)
    inner = getattr(stored, "impl", stored)
    return postgresql.TEXT() if isinstance(inner, String) else inner


def _compile(dialect: Dialect, statement: Any, types: _Types, *, columns: bool = False) -> _Plan:
    compiled = statement.compile(dialect=dialect)
    names = list(types) if columns else [bind.removeprefix("b_") for bind in compiled.positiontup]
    processes = [types[name].dialect_impl(dialect).bind_processor(dialect) for name in names]
    return _Plan(str(compiled), tuple(zip(names, processes, strict=True)), columns)


def _write_tuples(
    connection: Connection,
    kind: tuple[str, ...],
    build: Callable[[], Any],
    names: Sequence[str],
    rows: Sequence[tuple[int, ...]],
) -> None:
    if not rows:
        return
    known = _plans.get(kind := (*kind, connection.dialect.name, *names))
    if known is None:
        compiled = build().compile(dialect=connection.dialect)
        values = tuple((bind.removeprefix("b_"), None) for bind in compiled.positiontup)
        known = _plans[kind] = _Plan(str(compiled), values)
    order = [names.index(name) for name, _ in known.values]
    if order != list(range(len(names))):
        rows = [tuple([row[index] for index in order]) for row in rows]
    connection.exec_driver_sql(known.sql, list(rows))
