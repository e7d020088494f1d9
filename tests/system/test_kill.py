"""Killed at any moment: nothing settled is lost, and the next start carries on where the last one ended.

The installed command crawls a real web on loopback and is killed without warning, again and again; what it leaves in
the end is what an undisturbed crawl leaves. The daemon stops gently, then at once, and takes over what the dead held.
"""

import asyncio
import json
import os
import random
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web as server
from sqlalchemy import Connection, select

from index.store.inspect import origin_row
from index.store.tables import origins
from tests.fakes.contents import contents_of, listed_digests, unsettled
from tests.fakes.operator import PATIENCE_S, Operator, Requests, operator_of
from tests.fakes.web import FakeWeb, Site, entry

pytestmark = pytest.mark.system

ARD = "/.well-known/ard.json"
PREDECESSOR = "/.well-known/ai-catalog.json"
CATALOG = "application/ai-catalog+json"


# --- a crawl ----------------------------------------------------------------------------------------------------------


def publish(web: FakeWeb, edition: int) -> list[Site]:
    """Two dozen publishers; in the second edition most of them have changed something."""
    sites = [web.site(f"s{number:02}") for number in range(24)]
    for number, site in enumerate(sites):
        version = f"{edition if number % 3 else 1}.0.0"
        kept = [entry(f"e{item}", site.host, version=version) for item in range(4 + number % 4)]
        site.manifest(*(kept[edition - 1 :] if number % 4 == 1 else kept), validator=number % 2 == 0)
        if number % 5 == 0:
            site.manifest(entry("e1", site.host, displayName="Older"), entry("old", site.host), path=PREDECESSOR)
        if number % 6 == 0:
            more = entry("more", site.host, type=CATALOG, url=sites[number + 1].url("/nested.json"))
            site.manifest(*kept, more)
            nested = [entry(f"nested-{item}", site.host, version=version) for item in range(edition + 1)]
            sites[number + 1].manifest(*nested, path="/nested.json")
        if number % 7 == 3:
            page = entry("page", site.host, version=version)
            site.html("/", f'<html><script type="application/ld+json">{json.dumps(page)}</script></html>')
        if number == 11 and edition == 2:
            site.page(ARD, status=410)
    return sites


async def contents(operator: Operator) -> dict[str, Any]:
    """Check what must hold in any case, and give the rest to be compared."""
    await operator.check()
    assert await operator.read(unsettled) == {"claimed": 0, "never visited": 0, "pending": 0}
    found: dict[str, Any] = await operator.read(contents_of)
    return found


async def crawl_killed_again_and_again(operator: Operator, log: Requests, moments: list[int]) -> int:
    """Kill the crawl once it has made so many requests, start it again, and let the last one finish.

    Gives how often the kill came before the end.
    """
    killed = 0
    for moment in moments:
        before = len(log)
        process = await operator.start("crawl", "--json")
        reached = asyncio.create_task(log.reach(before + moment))
        ended = asyncio.create_task(process.wait())
        await asyncio.wait({reached, ended}, timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
        reached.cancel()
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
        await ended
        assert process.returncode in (-signal.SIGKILL, 0)
        killed += process.returncode != 0
    await operator.crawl()
    return killed


async def test_a_crawl_killed_at_random_moments_ends_as_an_undisturbed_one(
    web: FakeWeb, database_url: str, tmp_path: Path
) -> None:
    """When everything is new, and on the embedded engine once more when the publishers have changed."""
    chance = random.Random(os.environ.get("PYTEST_XDIST_TESTRUNUID", "kill"))
    log = web.seen = Requests()
    editions = (1, 2) if database_url.startswith("sqlite") else (1,)
    async with (
        operator_of(tmp_path / "calm", f"sqlite+aiosqlite:///{tmp_path}/calm.db") as calm,
        operator_of(tmp_path / "killed", database_url) as killed,
    ):
        for edition in editions:
            sites = publish(web, edition)
            calm.configure(sites)
            killed.configure(sites)
            before = len(log)
            await calm.crawl()
            undisturbed = await contents(calm)
            needed = len(log) - before
            moments = [needed, chance.randint(1, needed), chance.randint(1, needed)]
            assert await crawl_killed_again_and_again(killed, log, moments) >= 1
            assert await contents(killed) == undisturbed, f"killed after {moments} requests"
            assert len(undisturbed["listings"]) > 100

        summary = await killed.crawl()
        assert (summary["changes"], summary["snapshots"]) == (0, 0), "nothing was left to do"


async def test_a_crawl_that_is_interrupted_by_its_operator_says_so_and_leaves_nothing_claimed(
    web: FakeWeb, sqlite_url: str, tmp_path: Path
) -> None:
    held = Held()
    site = web.site("acme")
    site.handle(ARD, held.answer)
    async with operator_of(tmp_path / "shell", sqlite_url) as operator:
        operator.configure([site])
        process = await operator.start("crawl")
        await asyncio.wait_for(held.asked.wait(), PATIENCE_S)
        process.send_signal(signal.SIGINT)
        out, err = await asyncio.wait_for(process.communicate(), PATIENCE_S)
        assert process.returncode == 130
        assert b"Traceback" not in err
        assert err.decode().strip().endswith("ardvark: stopped")
        assert out == b""
        row = await operator.read(origin_row, site.origin)
        assert (row.claimed_by, row.visits) == (None, 0)
        held.released.set()


# --- the daemon -------------------------------------------------------------------------------------------------------


class Held:
    """An answer that is held back until the test lets it go."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.released = asyncio.Event()

    async def answer(self, _: server.Request) -> server.StreamResponse:
        self.asked.set()
        await self.released.wait()
        return server.json_response({"entries": [entry("held")]})


async def event(process: asyncio.subprocess.Process, name: str, **wanted: Any) -> dict[str, Any]:
    """Read the daemon's log up to an event."""
    assert process.stderr is not None
    async with asyncio.timeout(PATIENCE_S):
        while line := await process.stderr.readline():
            logged: dict[str, Any] = json.loads(line)
            if logged["event"] == name and wanted.items() <= logged.items():
                return logged
    raise AssertionError(f"the daemon ended without {name}")


@pytest.fixture
async def daemon(web: FakeWeb, database_url: str, tmp_path: Path) -> AsyncIterator[tuple[Operator, Site, Held]]:
    """An operator with one publisher whose answer is held back."""
    held = Held()
    site = web.site("acme")
    site.handle(ARD, held.answer)
    patient = (
        'allow_http = true\nallow_private = ["127.0.0.0/8"]\nhosts = { "*.example" = "127.0.0.1" }\n'
        'header_timeout = "5m"\ntotal_timeout = "5m"'
    )
    async with operator_of(tmp_path / "daemon", database_url) as operator:
        operator.configure([site], network=patient, crawl='shutdown_grace = "10m"\nlease = "1h"')
        yield operator, site, held
        held.released.set()


sqlite_only = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@sqlite_only
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_the_first_signal_lets_visits_finish_and_ends_well(
    daemon: tuple[Operator, Site, Held], number: signal.Signals
) -> None:
    operator, site, held = daemon
    process = await operator.start("run")
    await asyncio.wait_for(held.asked.wait(), PATIENCE_S)
    process.send_signal(number)
    assert (await event(process, "daemon.stopping"))["visits"] == 1
    assert process.returncode is None, "it waits for the visit under way"
    held.released.set()
    await event(process, "visit.done", origin=site.origin)
    assert not (await event(process, "daemon.stopped"))["forced"]
    await asyncio.wait_for(process.communicate(), PATIENCE_S)
    assert process.returncode == 0
    row = await operator.read(origin_row, site.origin)
    assert (row.last_outcome, row.visits, row.claimed_by) == ("done", 1, None)
    assert list(await operator.read(listed_digests)) == ["urn:air:acme.example:tool:held"]


@sqlite_only
async def test_the_second_signal_ends_at_once_and_a_restart_carries_on(daemon: tuple[Operator, Site, Held]) -> None:
    operator, site, held = daemon
    process = await operator.start("run")
    await asyncio.wait_for(held.asked.wait(), PATIENCE_S)
    process.send_signal(signal.SIGTERM)
    await event(process, "daemon.stopping")
    process.send_signal(signal.SIGTERM)
    assert (await event(process, "daemon.stopped"))["forced"]
    _, err = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    assert process.returncode == 0
    assert b"Traceback" not in err
    assert not held.released.is_set(), "although the answer never came"
    row = await operator.read(origin_row, site.origin)
    assert (row.visits, row.claimed_by) == (0, None), "the origin is due and free"

    held.released.set()
    process = await operator.start("run")
    done = await event(process, "visit.done", origin=site.origin)
    assert done["documents"]["fetched"] == 1
    process.send_signal(signal.SIGTERM)
    await event(process, "daemon.stopped")
    await asyncio.wait_for(process.communicate(), PATIENCE_S)
    assert process.returncode == 0
    row = await operator.read(origin_row, site.origin)
    assert (row.last_outcome, row.visits) == ("done", 1)


async def test_what_a_killed_daemon_held_is_taken_over_at_once(daemon: tuple[Operator, Site, Held]) -> None:
    operator, site, held = daemon
    process = await operator.start("run")
    await asyncio.wait_for(held.asked.wait(), PATIENCE_S)
    process.kill()
    await process.communicate()
    row = await operator.read(origin_row, site.origin)
    assert row.claimed_by is not None, "the dead hold it, for an hour as the settings say"
    held.released.set()
    process = await operator.start("run")
    await event(process, "visit.done", origin=site.origin)
    process.send_signal(signal.SIGTERM)
    await event(process, "daemon.stopped")
    await asyncio.wait_for(process.communicate(), PATIENCE_S)
    after = await operator.read(origin_row, site.origin)
    assert (after.visits, after.claimed_by, after.fence) == (1, None, row.fence + 1)
    assert list(await operator.read(listed_digests)) == ["urn:air:acme.example:tool:held"]


@sqlite_only
async def test_two_daemons_on_one_database_share_the_work(
    daemon: tuple[Operator, Site, Held], web: FakeWeb, tmp_path: Path
) -> None:
    """What one of them holds the other leaves alone, however long it takes."""
    operator, site, held = daemon
    other = web.site("other")
    other.manifest(entry("other", "other.example"))
    async with operator_of(tmp_path / "second", operator.url) as second:
        first_process = await operator.start("run")
        await asyncio.wait_for(held.asked.wait(), PATIENCE_S)
        text = (operator.folder / "ardvark.toml").read_text()
        second.configure([])
        (second.folder / "ardvark.toml").write_text(f'{text}[[origins]]\norigin = "{other.origin}"\n')
        second_process = await second.start("run")
        # Whichever of them comes first; the one that waits at the other site goes on with what is due as well.
        visits_of_other = [
            asyncio.create_task(event(process, "visit.done", origin=other.origin))
            for process in (first_process, second_process)
        ]
        done, left = await asyncio.wait(visits_of_other, return_when=asyncio.FIRST_COMPLETED)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        for task in done:
            await task
        held.released.set()
        await event(first_process, "visit.done", origin=site.origin)
        for process in (first_process, second_process):
            process.send_signal(signal.SIGTERM)
            await event(process, "daemon.stopped")
            await asyncio.wait_for(process.communicate(), PATIENCE_S)
            assert process.returncode == 0
        assert len(site.requests(ARD)) == 1

    def visits(connection: Connection) -> list[int]:
        return list(connection.execute(select(origins.c.visits).where(origins.c.active)).scalars())

    assert await operator.read(visits) == [1, 1]
