"""The crash exam: daemons are killed at random moments while publishers go on publishing, and nothing shows it.

On SQLite one daemon crawls, on PostgreSQL three share the work. After every kill the database is in one piece and the
feed leads to it; in the end everything is as one undisturbed crawl leaves it.
"""

import asyncio
import signal
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from index.store.changes import last_cursor
from tests.fakes.cards import A2A, agent_card, agent_entry
from tests.fakes.contents import state_of, unsettled
from tests.fakes.exam import Exam, table
from tests.fakes.operator import Operator, Requests, operator_of
from tests.fakes.web import FakeWeb, Site, entry

pytestmark = [pytest.mark.system, pytest.mark.timeout(3600)]

ARD = "/.well-known/ard.json"
PREDECESSOR = "/.well-known/ai-catalog.json"
CATALOG = "application/ai-catalog+json"
PATIENCE_S = 120
# Everything is due again at once, so that a daemon never rests.
RESTLESS = "\n".join(
    f'{name} = "1s"'
    for name in ("min_interval", "max_interval", "default_freshness", "page_interval", "absent_max_interval")
)


def publish(sites: list[Site], edition: int) -> None:
    """Let every publisher say what it says in an edition: entries, cards that lag behind or run ahead, and faults."""
    for number, site in enumerate(sites):
        version = f"{edition if number % 3 else 1}.0.0"
        agents = [_agent(site, item, version) for item in range(2 + number % 3)]
        tools = [entry(f"t{item}", site.host, version=version) for item in range(1 + (number + edition) % 3)]
        site.manifest(*agents, *tools, validator=number % 2 == 0)
        for item in range(2 + number % 3):
            site.json(f"/cards/a{item}.json", agent_card(version=_live_version(number + item, edition, version)))
        if number % 5 == 0:
            site.manifest(entry("t0", site.host, displayName="Older"), entry("old", site.host), path=PREDECESSOR)
        if number % 6 == 0:
            nested = sites[(number + 1) % len(sites)]
            more = entry("more", site.host, type=CATALOG, url=nested.url("/nested.json"))
            site.manifest(*agents, *tools, more)
            nested.manifest(*(entry(f"n{item}", site.host, version=version) for item in range(3)), path="/nested.json")
        if (number + edition) % 11 == 0:
            site.page(ARD, status=410)


def _agent(site: Site, item: int, version: str) -> Any:
    return agent_entry(f"a{item}", f"/cards/a{item}.json", site.host, version=version, type=A2A)


def _live_version(number: int, edition: int, stated: str) -> str:
    """Some cards agree with their entries, some never do, and some only in every other edition."""
    return (stated, "0.9.0", stated if edition % 2 else f"{edition}.1.0")[number % 3]


@dataclass
class Ordeal:
    """Daemons on one database, and how often they were killed."""

    operator: Operator
    log: Requests
    chance: Random
    daemons: list[asyncio.subprocess.Process] = field(default_factory=list)
    killed: int = 0

    async def complete(self, number: int) -> None:
        """Start as many daemons as are missing."""
        while len(self.daemons) < number:
            self.daemons.append(await self.operator.start_daemon())

    async def kill_some(self, within: int) -> None:
        """Kill one or more daemons after a random number of requests, and see that what they leave is sound."""
        await self.go_on(self.chance.randint(1, within))
        for daemon in self.chance.sample(self.daemons, self.chance.randint(1, len(self.daemons))):
            assert daemon.returncode is None, self.operator.log.read_text()[-3000:]
            daemon.send_signal(signal.SIGKILL)
            await daemon.wait()
            self.daemons.remove(daemon)
            self.killed += 1
        await self.operator.check()

    async def go_on(self, requests: int) -> None:
        """Let the daemons make so many more requests; none of them may end by itself or come to rest."""
        reached = asyncio.create_task(self.log.reach(len(self.log) + requests))
        ends = [asyncio.create_task(daemon.wait()) for daemon in self.daemons]
        await asyncio.wait({reached, *ends}, timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
        for task in (reached, *ends):
            task.cancel()
        assert reached.done(), self.operator.log.read_text()[-3000:]

    async def stop(self) -> None:
        """Stop as an operator does; who has not begun yet dies of it."""
        for daemon in self.daemons:
            daemon.send_signal(signal.SIGTERM)
        for daemon in self.daemons:
            assert await asyncio.wait_for(daemon.wait(), PATIENCE_S) in (0, -signal.SIGTERM)
        self.daemons.clear()


async def test_daemons_killed_at_random_moments_leave_what_an_undisturbed_crawl_leaves(
    web: FakeWeb, database_url: str, tmp_path: Path, exam: Exam
) -> None:
    rounds, origins = (50, 300) if exam.long else (3, 40)
    engine, number = ("SQLite", 1) if database_url.startswith("sqlite") else ("PostgreSQL", 3)
    chance = exam.chance(f"crash, {engine}")
    log = web.seen = Requests()
    sites = [web.site(f"s{item:03}") for item in range(origins)]
    async with operator_of(tmp_path / "killed", database_url) as operator:
        operator.configure(sites, crawl=RESTLESS)
        ordeal = Ordeal(operator, log, chance)
        for edition in range(1, rounds + 1):
            publish(sites, edition)
            await ordeal.complete(number)
            await ordeal.kill_some(within=origins * 20)
        await ordeal.complete(number)
        await ordeal.go_on(origins)
        await ordeal.stop()
        requests = len(log)
        await operator.crawl(PATIENCE_S)
        await operator.check()
        assert await operator.read(unsettled) == {"claimed": 0, "never visited": 0, "pending": 0}
        state = await operator.read(state_of)
        events = await operator.read(last_cursor)
        trouble = [line for line in operator.log.read_text().splitlines() if '"level":"error"' in line]
        assert trouble == []
    async with operator_of(tmp_path / "calm", f"sqlite+aiosqlite:///{tmp_path}/calm.db") as calm:
        calm.configure(sites, crawl=RESTLESS)
        await calm.crawl(PATIENCE_S)
        undisturbed = await calm.read(state_of)
    for part, expected in undisturbed.items():
        assert state[part] == expected, part
    assert undisturbed["drifts"]
    counts = [len(state[name]) for name in ("listings", "cards", "drifts")]
    head = ("engine", "processes", "origins", "rounds", "killed", "requests", "listings", "cards", "drift", "events")
    exam.say(*table(head, [(engine, number, origins, rounds, ordeal.killed, requests, *counts, events)]))
