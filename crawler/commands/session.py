"""What commands share: settings, the database, the parts of a crawl."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from config.loading import load_settings
from config.logging import configure_logging
from config.settings import Settings
from crawler.allowlist import Allowlist, Role
from crawler.assembly import make_client
from crawler.clock import Clock, SystemClock
from crawler.fetch.client import FetchClient
from crawler.worker import Crew
from index.store.database import Database
from index.store.writer import Writer

_Result = TypeVar("_Result")


def settings_of(context: click.Context, *, quiet: bool = True, **sections: Any) -> Settings:
    """Load the settings of a command; `sections` are its own options, over everything else."""
    root = context.find_root().obj
    overrides = dict(root["overrides"])
    for name, values in sections.items():
        given = {key: value for key, value in values.items() if value is not None}
        if given:
            overrides[name] = {**overrides.get(name, {}), **given}
    settings = load_settings(root["file"], overrides)
    configure_logging(settings.logging, quiet=quiet)
    return settings


def run_async(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Run a command's coroutine, on the faster event loop where it is installed."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(work)


def _loop_factory() -> Any:
    try:
        import uvloop
    except ModuleNotFoundError:
        return None
    return uvloop.new_event_loop


@asynccontextmanager
async def opened_database(settings: Settings) -> AsyncIterator[Database]:
    """Open the database with its schema in place."""
    async with Database(settings.storage.url) as database:
        await database.prepare()
        yield database


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a process that crawls."""

    settings: Settings
    clock: Clock
    database: Database
    client: FetchClient
    writer: Writer
    crew: Crew
    allowlist: Allowlist


@asynccontextmanager
async def crawling(
    settings: Settings, role: Role | None = None, opening: AbstractAsyncContextManager[Database] | None = None
) -> AsyncIterator[Parts]:
    """Open all that a crawl needs, and close it in order.

    The role says what the process may do to the allowlist; commands that only look in have none.
    """
    clock = SystemClock()
    async with (
        opening or opened_database(settings) as database,
        make_client(settings, clock) as client,
        Writer(database, clock.now) as writer,
    ):
        crew = Crew(settings, clock, client, database, writer)
        await crew.break_dead_claims()
        async with Allowlist(settings, clock, database, crew, role) as allowlist:
            keepers = [asyncio.create_task(crew.keep_claims(), name="keep claims")]
            if role is Role.ONCE:  # a daemon has a bell for it
                keepers.append(asyncio.create_task(allowlist.keep(), name="allowlist"))
            try:
                yield Parts(settings, clock, database, client, writer, crew, allowlist)
            finally:
                for keeper in keepers:
                    keeper.cancel()
                await asyncio.gather(*keepers, return_exceptions=True)
