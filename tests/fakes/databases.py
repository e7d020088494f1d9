"""A PostgreSQL database that tests use one after the other: emptying one takes a moment, making one a second."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from index.store.database import Database

POSTGRES = "postgresql+asyncpg://postgres@127.0.0.1:5432"
_SERVER = "postgresql://postgres@127.0.0.1:5432"
# What the migrations put there themselves.
_KEPT = ("alembic_version", "facts")


async def prepare(url: str) -> None:
    """Put the schema in place."""
    async with Database(url) as database:
        await database.prepare()


@asynccontextmanager
async def fresh_database() -> AsyncIterator[str]:
    """Give the address of an empty database without tables, and drop it in the end."""
    name = f"ardvark_test_{uuid.uuid4().hex[:12]}"
    server = await asyncpg.connect(f"{_SERVER}/postgres")
    try:
        await server.execute(f"CREATE DATABASE {name}")
        try:
            yield f"{POSTGRES}/{name}"
        finally:
            await server.execute(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        await server.close()


class ReusedDatabase:
    """One database for all the tests of a process, made when the first of them asks for it.

    With a `language` it sorts text as that language does, where the server is new enough (PostgreSQL 15).
    """

    def __init__(self, name: str, *, language: str | None = None) -> None:
        self._name = name
        self._language = language
        self._facts: list[Any] = []
        self._is_made = False

    @property
    def url(self) -> str:
        return f"{POSTGRES}/{self._name}"

    def emptied(self) -> str:
        """Give the address of the database as the migrations leave it."""
        asyncio.run(self._empty() if self._is_made else self._make())
        return self.url

    def drop(self) -> None:
        if self._is_made:
            asyncio.run(self._drop())

    async def _make(self) -> None:
        server = await asyncpg.connect(f"{_SERVER}/postgres")
        try:
            options = ""
            if self._language is not None and server.get_server_version().major >= 15:
                options = f" TEMPLATE template0 ENCODING UTF8 LOCALE_PROVIDER icu ICU_LOCALE '{self._language}'"
            await server.execute(f"CREATE DATABASE {self._name}{options}")
        finally:
            await server.close()
        await prepare(self.url)
        connection = await asyncpg.connect(f"{_SERVER}/{self._name}")
        try:
            self._facts = await connection.fetch("SELECT name, number, value FROM facts")
        finally:
            await connection.close()
        self._is_made = True

    async def _empty(self) -> None:
        connection = await asyncpg.connect(f"{_SERVER}/{self._name}")
        try:
            # Whatever a test left behind must not hold a lock.
            await connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            tables = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
            names = [row["tablename"] for row in tables if row["tablename"] not in _KEPT]
            # Emptying row by row is quicker than new files for two dozen tables with their indexes.
            script = "SET session_replication_role = replica;" + "".join(f"DELETE FROM {name};" for name in names)
            script += "DELETE FROM facts;"
            script += (
                "SELECT setval(format('%I.%I', schemaname, sequencename), 1, false) FROM pg_sequences "
                "WHERE schemaname = 'public';"
            )
            await connection.execute(script)
            rows = [(row["name"], row["number"], row["value"]) for row in self._facts]
            await connection.executemany("INSERT INTO facts (name, number, value) VALUES ($1, $2, $3)", rows)
        finally:
            await connection.close()

    async def _drop(self) -> None:
        server = await asyncpg.connect(f"{_SERVER}/postgres")
        try:
            await server.execute(f"DROP DATABASE {self._name} WITH (FORCE)")
        finally:
            await server.close()
