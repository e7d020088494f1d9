"""Fixtures: a fake web, databases of both kinds, and a crawl over both."""

import asyncio
import os
import random
import shutil
import socket
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
import structlog

from tests.fakes.clock import FakeClock
from tests.fakes.databases import POSTGRES, ReusedDatabase, prepare
from tests.fakes.exam import Exam
from tests.fakes.harness import Crawl, crawling, settings_for
from tests.fakes.web import FakeWeb, Site


def _postgres_answers() -> bool:
    try:
        with socket.create_connection(("127.0.0.1", 5432), timeout=1):
            return True
    except OSError:
        return False


HAS_POSTGRES = _postgres_answers()


def pytest_report_header() -> str:
    if HAS_POSTGRES:
        return "PostgreSQL: answers on 127.0.0.1:5432, store tests run on both engines"
    return "PostgreSQL: DOES NOT ANSWER on 127.0.0.1:5432, its tests are SKIPPED"


_EXAM_LINES = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("exams")
    group.addoption("--exam", action="store_true", help="take the long form of the exams")
    group.addoption("--exam-seed", type=int, help="the dice of the exams, as a failed run named them")
    group.addoption("--exam-write", action="store_true", help="write what exams found into docs/operations.md")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    lines = config.stash.get(_EXAM_LINES, [])
    if lines and config.getoption("--exam"):
        terminalreporter.section("exams")
        terminalreporter.write_line("\n".join(lines))


@pytest.fixture
def exam(pytestconfig: pytest.Config) -> Exam:
    """How exams are to be taken in this run."""
    seed = pytestconfig.getoption("--exam-seed")
    lines = pytestconfig.stash.setdefault(_EXAM_LINES, [])
    return Exam(
        long=pytestconfig.getoption("--exam"),
        seed=random.SystemRandom().randrange(1_000_000) if seed is None else seed,
        writes=pytestconfig.getoption("--exam-write"),
        lines=lines,
    )


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Tests see neither the developer's settings nor the developer's folder."""
    for name in list(os.environ):
        if name.startswith("ARDVARK_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def _own_logging() -> Iterator[None]:
    """Take back what a command that ran inside a test set up for the log."""
    yield
    structlog.reset_defaults()


@pytest.fixture
async def web() -> AsyncIterator[FakeWeb]:
    async with FakeWeb() as fake:
        yield fake


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest, tmp_path: Any) -> Iterator[str]:
    """An empty database on each engine."""
    if request.param == "sqlite":
        yield f"sqlite+aiosqlite:///{tmp_path}/ardvark.db"
        return
    if not HAS_POSTGRES:
        pytest.skip("PostgreSQL does not answer on 127.0.0.1:5432")
    name = f"ardvark_test_{uuid.uuid4().hex[:12]}"
    asyncio.run(_statement(f"CREATE DATABASE {name}"))
    yield f"{POSTGRES}/{name}"
    asyncio.run(_statement(f"DROP DATABASE {name} WITH (FORCE)"))


async def _statement(statement: str) -> None:
    import asyncpg

    connection = await asyncpg.connect("postgresql://postgres@127.0.0.1:5432/postgres")
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def prepared_url(request: pytest.FixtureRequest, tmp_path: Any) -> Iterator[str]:
    """A database on each engine with its schema in place and nothing in it; the one on PostgreSQL is used again."""
    if request.param == "sqlite":
        shutil.copy(request.getfixturevalue("_sqlite_template"), tmp_path / "ardvark.db")
        yield f"sqlite+aiosqlite:///{tmp_path}/ardvark.db"
        return
    if not HAS_POSTGRES:
        pytest.skip("PostgreSQL does not answer on 127.0.0.1:5432")
    yield request.getfixturevalue("_reused_database").emptied()


@pytest.fixture(scope="session")
def _sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file as the migrations leave it, to be copied."""
    file = tmp_path_factory.mktemp("template") / "ardvark.db"
    asyncio.run(prepare(f"sqlite+aiosqlite:///{file}"))
    return file


@pytest.fixture(scope="session")
def _reused_database() -> Iterator[ReusedDatabase]:
    database = ReusedDatabase(f"ardvark_test_{uuid.uuid4().hex[:12]}")
    yield database
    database.drop()


@pytest.fixture
def sqlite_url(tmp_path: Any) -> str:
    return f"sqlite+aiosqlite:///{tmp_path}/ardvark.db"


OpenCrawl = Callable[..., AbstractAsyncContextManager[Crawl]]


@pytest.fixture
def open_crawl(prepared_url: str, clock: FakeClock) -> OpenCrawl:
    """Open a crawl of sites on each engine: `async with open_crawl(site) as crawl`."""

    def opened(*origins: Site | str | dict[str, Any], **sections: Any) -> AbstractAsyncContextManager[Crawl]:
        return crawling(settings_for(*origins, url=prepared_url, **sections), clock)

    return opened


@pytest.fixture
def crawl_sqlite(sqlite_url: str, clock: FakeClock, tmp_path: Path, _sqlite_template: Path) -> OpenCrawl:
    """The same on SQLite alone, for what the engine cannot change."""
    shutil.copy(_sqlite_template, tmp_path / "ardvark.db")

    def opened(*origins: Site | str | dict[str, Any], **sections: Any) -> AbstractAsyncContextManager[Crawl]:
        return crawling(settings_for(*origins, url=sqlite_url, **sections), clock)

    return opened
