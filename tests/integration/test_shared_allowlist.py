"""Several processes on one database whose settings name different origins: nobody withdraws what another one wants."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from crawler.allowlist import Allowlist, Role
from crawler.assembly import make_client
from crawler.worker import Crew
from index.store.database import Database
from index.store.frontier import managed_origins
from index.store.processes import processes_since, put_process
from index.store.writer import Writer
from tests.fakes.clock import FakeClock
from tests.fakes.harness import settings_for

ACME, OTHER, THIRD = "https://acme.example", "https://other.example", "https://third.example"
DIFFER = "origins.settings_differ"


@asynccontextmanager
async def process(url: str, clock: FakeClock, role: Role | None, *origins: str | dict[str, Any]) -> AsyncIterator[Any]:
    """A process with settings of its own; gives its part in the allowlist."""
    settings = settings_for(*origins, url=url)
    async with (
        Database(url) as database,
        make_client(settings, clock) as client,
        Writer(database, clock.now) as writer,
    ):
        await database.prepare()
        crew = Crew(settings, clock, client, database, writer)
        async with Allowlist(settings, clock, database, crew, role) as allowlist:
            yield allowlist


async def listed(url: str) -> dict[str, Any]:
    async with Database(url) as database:
        return dict(await database.read(managed_origins, "config"))


def differing(logs: list[Any]) -> list[Any]:
    return [event for event in logs if event["event"] == DIFFER]


async def test_one_process_alone_withdraws_what_its_settings_no_longer_name(
    database_url: str, clock: FakeClock
) -> None:
    async with process(database_url, clock, Role.ALL, ACME, OTHER):
        assert set(await listed(database_url)) == {ACME, OTHER}
    async with process(database_url, clock, Role.ALL, ACME):
        assert set(await listed(database_url)) == {ACME}


@pytest.mark.parametrize("role", [Role.ALL, Role.SCHEDULER, Role.ONCE])
async def test_with_other_settings_at_work_a_process_warns_and_withdraws_nothing_until_they_agree(
    database_url: str, clock: FakeClock, role: Role
) -> None:
    async with process(database_url, clock, Role.ALL, ACME, OTHER) as old:
        with capture_logs() as logs:
            async with process(database_url, clock, role, ACME, THIRD) as new:
                assert set(await listed(database_url)) == {ACME, OTHER, THIRD}, "what is new is added all the same"
                await new.ring()
                await old.ring()
                assert set(await listed(database_url)) == {ACME, OTHER, THIRD}
        # Each says so once, however often it looks.
        assert len(differing(logs)) == 2
        assert all(event["log_level"] == "warning" and event["others"] for event in differing(logs))


async def test_what_waited_is_withdrawn_when_the_last_process_with_old_settings_has_ended(
    database_url: str, clock: FakeClock
) -> None:
    async with process(database_url, clock, Role.CRAWLER, ACME, OTHER):
        scheduler = process(database_url, clock, Role.SCHEDULER, ACME)
        new = await scheduler.__aenter__()
        assert set(await listed(database_url)) == {ACME, OTHER}
    async with process(database_url, clock, Role.CRAWLER, ACME) as crawler:
        await new.ring()
        assert set(await listed(database_url)) == {ACME}
        await crawler.ring()
    await scheduler.__aexit__(None, None, None)


async def test_a_crawler_adds_what_is_missing_and_takes_nothing_away(database_url: str, clock: FakeClock) -> None:
    changed = {"origin": ACME, "surfaces": ["ard"], "pages": ["/elsewhere"]}
    async with process(database_url, clock, Role.CRAWLER, ACME, OTHER):
        assert set(await listed(database_url)) == {ACME, OTHER}
    async with process(database_url, clock, Role.CRAWLER, changed):
        found = await listed(database_url)
        assert set(found) == {ACME, OTHER}
        assert found[ACME]["pages"] == ["/"]


async def test_a_crawler_with_old_settings_does_not_bring_back_what_the_scheduler_withdrew(
    database_url: str, clock: FakeClock
) -> None:
    async with process(database_url, clock, Role.SCHEDULER, ACME):
        with capture_logs() as logs:
            async with process(database_url, clock, Role.CRAWLER, ACME, OTHER):
                assert set(await listed(database_url)) == {ACME}
        assert differing(logs)


async def test_a_process_that_names_no_origin_has_no_opinion(database_url: str, clock: FakeClock) -> None:
    async with process(database_url, clock, Role.CRAWLER), process(database_url, clock, Role.ALL, ACME, OTHER):
        pass
    with capture_logs() as logs:
        async with process(database_url, clock, Role.CRAWLER), process(database_url, clock, Role.ALL, ACME):
            assert set(await listed(database_url)) == {ACME}
    assert not differing(logs)


async def test_a_process_that_was_killed_stands_in_nobodys_way(database_url: str, clock: FakeClock) -> None:
    """One of this machine is known to be dead; one of another machine is when it has been silent for long."""
    async with process(database_url, clock, Role.ALL, ACME, OTHER):
        pass
    async with Database(database_url) as database:
        await database.write(put_process, "elsewhere:1:1:abc", Role.ALL, "other", clock.now())
        async with process(database_url, clock, Role.ALL, ACME) as new:
            assert set(await listed(database_url)) == {ACME, OTHER}
            clock.advance(seconds=91)
            await new.ring()
            assert set(await listed(database_url)) == {ACME}
        assert await database.read(processes_since, clock.now()) == [], "who ends well takes itself out"
        await database.write(put_process, f"{socket.gethostname()}:1:0:abc", Role.ALL, "other", clock.now())
        async with process(database_url, clock, Role.ALL, OTHER):
            assert set(await listed(database_url)) == {OTHER}
