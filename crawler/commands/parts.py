"""The parts of a process that crawls; apart from what all commands share, for most of them only read."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

from config.settings import Settings
from crawler.allowlist import Allowlist, Role
from crawler.assembly import make_client
from crawler.clock import Clock, SystemClock
from crawler.commands.session import opened_database
from crawler.fetch.client import FetchClient
from crawler.worker import Crew
from index.store.database import Database
from index.store.writer import Writer


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
