"""The allowlist of a database that several processes share: who changes it, and what if they were told differently.

Every process that crawls makes itself known with a digest of the origins that its settings name. What the settings no
longer name is withdrawn only by a process that keeps the allowlist, and only while all that are at work agree.
"""

from collections.abc import Collection
from contextlib import suppress
from datetime import timedelta
from enum import StrEnum

import orjson
import structlog

from config.settings import Settings
from crawler.assembly import origin_options
from crawler.clock import Clock
from crawler.names import is_dead
from crawler.worker import Crew
from index.store.database import Database
from index.store.outage import StoreUnavailable
from index.store.processes import SILENT_FOR, processes_since, put_process, remove_processes
from index.strict_json import digest

_log = structlog.get_logger("ardvark.crawl")
ANNOUNCE_EVERY = timedelta(seconds=15)


class Role(StrEnum):
    """What a process is there for."""

    ALL = "all"
    CRAWLER = "crawler"
    API = "api"
    SCHEDULER = "scheduler"
    # One crawl by command.
    ONCE = "once"


_KEEPERS = frozenset({Role.ALL, Role.SCHEDULER, Role.ONCE})
_CRAWLING = frozenset({Role.ALL, Role.CRAWLER})


def origins_digest(settings: Settings) -> str:
    """Name what settings say about origins; empty when they name none, which is no opinion."""
    named = {entry.origin: origin_options(entry) for entry in settings.origins}
    return digest(orjson.dumps(named, option=orjson.OPT_SORT_KEYS)) if named else ""


class Allowlist:
    """The part of one process in it; without a role it only looks in. Use as an asynchronous context manager."""

    def __init__(self, settings: Settings, clock: Clock, database: Database, crew: Crew, role: Role | None) -> None:
        self._clock = clock
        self._database = database
        self._crew = crew
        self._role = role
        self._digest = origins_digest(settings)
        self._known: Collection[str] = ()
        self._owes_withdrawal = False

    async def __aenter__(self) -> "Allowlist":
        differing = await self._differing()
        if self._role in _KEEPERS:
            await self._crew.sync_origins(withdraw=not differing)
            self._owes_withdrawal = bool(differing)
        else:
            await self._crew.sync_origins(withdraw=False, add=not _KEEPERS & set(differing.values()), replace=False)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._role is not None:
            with suppress(StoreUnavailable):
                await self._database.write(remove_processes, [self._crew.name])

    async def keep(self) -> None:
        """Ring for as long as this runs."""
        while True:
            await self._clock.sleep(ANNOUNCE_EVERY.total_seconds())
            with suppress(StoreUnavailable):
                await self.ring()

    async def ring(self) -> None:
        """Tell that this process is still at work, and withdraw what waited for the others to agree."""
        differing = await self._differing()
        if self._owes_withdrawal and not differing:
            self._owes_withdrawal = False
            await self._crew.sync_origins(withdraw=True)

    async def _differing(self) -> dict[str, str]:
        """Give the processes at work that were told of other origins, with their roles."""
        now = self._clock.now()
        if self._role is not None:
            await self._database.write(put_process, self._crew.name, self._role, self._digest, now)
        others = await self._database.read(processes_since, now - SILENT_FOR)
        dead = [row.name for row in others if is_dead(row.name)]
        if dead:
            await self._database.write(remove_processes, dead)
        self._crew.share_budget(sum(row.role in _CRAWLING and row.name not in dead for row in others))
        differing = {
            row.name: row.role
            for row in others
            if row.name not in (self._crew.name, *dead)
            and self._digest
            and row.origins_digest not in ("", self._digest)
        }
        if not differing.keys() <= set(self._known):
            _log.warning("origins.settings_differ", others=sorted(differing))
        self._known = differing.keys()
        return differing
