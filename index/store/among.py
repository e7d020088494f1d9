"""Looking many rows up by their keys, in statements that are built once and are the same however many keys there are.

To build a statement takes longer than to run it on a few rows, and a list that is spelt out has it compiled anew for
every length.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import orjson
from sqlalchemy import ColumnElement, Connection, Executable, String, any_, bindparam, func, select
from sqlalchemy.dialects import postgresql

from index.store.engines import chunks, plain_type


def among(dialect: str, key: ColumnElement[Any], name: str = "keys") -> ColumnElement[bool]:
    """Compare a column with the list of that name, given as `key_list` lays it out when the statement is run."""
    if dialect == "postgresql":
        return key == any_(bindparam(name, type_=postgresql.ARRAY(plain_type(key.type))))
    given = func.json_each(bindparam(name, type_=String())).table_valued("value")
    return key.in_(select(given.c.value))


def key_list(connection: Connection, keys: Iterable[Any]) -> Any:
    """Lay keys out as the parameter that `among` names; texts are storable, for SQLite would cut them at a NUL."""
    return list(keys) if connection.dialect.name == "postgresql" else orjson.dumps(list(keys)).decode()


def rows_among(
    connection: Connection, build: Callable[[str], Executable], keys: Iterable[Any], **values: Any
) -> Iterator[Any]:
    """Give the rows of a statement for the keys, some hundreds at a time.

    `build` makes it for a dialect and remembers it; `values` are its other parameters.
    """
    statement = build(connection.dialect.name)
    for chunk in chunks(keys):
        yield from connection.execute(statement, {**values, "keys": key_list(connection, chunk)}).all()
