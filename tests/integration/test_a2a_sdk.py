"""An agent that runs the A2A SDK, and a catalog that lists it: drift opens, closes and is timed.

The test holds the clock, so it knows when the agent and the catalog changed; the crawl only knows when it looked.
"""

import copy
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import func, select

from index.drift import lag
from index.store.tables import changes, drifts, pending, snapshots, versions
from tests.conftest import OpenCrawl
from tests.fakes.agent import RPC, RealAgent
from tests.fakes.cards import CARD, agent_card, agent_entry, all_drifts, cards_by_path, feed, open_drifts, skill, urn
from tests.fakes.clock import FakeClock
from tests.fakes.harness import Crawl
from tests.fakes.web import FakeWeb, Site

SURFACES = ["ard", "a2a"]
Change = Callable[[dict[str, Any]], None]


@pytest.fixture
async def agent() -> AsyncIterator[RealAgent]:
    made = RealAgent()
    made.card = agent_card(
        description="Plans trips by rail and by sea",
        supportedInterfaces=[{"url": made.url(RPC), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        skills=[skill("route", "travel", "maps"), skill("book", "travel", "tickets")],
    )
    async with made:
        yield made


def listed(agent: RealAgent) -> Any:
    """The entry of a catalog that says what the agent says."""
    return agent_entry(
        url=agent.url(CARD),
        description="Plans trips by rail and by sea",
        tags=["travel", "tickets"],
        capabilities=["route", "book"],
        metadata={"endpoint": agent.url(RPC), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
        extensions={"urn:example:routing": {"preferredInterface": agent.url(RPC)}},
    )


def both(catalog: Site, agent: RealAgent) -> list[dict[str, Any]]:
    return [{"origin": origin, "surfaces": SURFACES} for origin in (catalog.origin, agent.origin)]


def retag(value: dict[str, Any]) -> None:
    value["skills"][1]["tags"] = ["travel", "booking"]


def untag(value: dict[str, Any]) -> None:
    value["tags"] = ["travel"]


def move(value: dict[str, Any]) -> None:
    value["supportedInterfaces"][0]["url"] += "/v2"


def follow(value: dict[str, Any]) -> None:
    value["metadata"]["endpoint"] += "/v2"
    value["extensions"]["urn:example:routing"]["preferredInterface"] += "/v2"


def drop_skill(value: dict[str, Any]) -> None:
    value["skills"][0]["tags"] = ["travel", "tickets", "maps"]
    del value["skills"][1]


def drop_capability(value: dict[str, Any]) -> None:
    value["capabilities"] = ["route"]


def raise_version(value: dict[str, Any]) -> None:
    value["version"] = "1.1.0"


CHANGES: dict[str, tuple[Change, Change, list[tuple[str, str, str]]]] = {
    "tag": (retag, untag, [("drift.tag_removed", "search", "/tags/1")]),
    "interface": (
        move,
        follow,
        [
            ("drift.interface_changed", "breaking", "/extensions/urn:example:routing/preferredInterface"),
            ("drift.interface_changed", "breaking", "/metadata/endpoint"),
        ],
    ),
    "skill": (drop_skill, drop_capability, [("drift.capability_removed", "breaking", "/capabilities/1")]),
    "version": (raise_version, raise_version, [("drift.version_mismatch", "version_only", "/version")]),
}


def bounds(row: Any, now: datetime) -> tuple[timedelta, timedelta | None]:
    """The lag that the stored times of a drift allow for."""
    found = lag(row.live_old_at, row.live_new_at, row.copy_old_at, row.copy_new_at, now)
    most = None if found.at_most_s is None else timedelta(seconds=found.at_most_s)
    return timedelta(seconds=found.at_least_s), most


async def test_the_card_of_the_sdk_is_read_in_both_its_forms_and_found_by_its_words(
    web: FakeWeb, open_crawl: OpenCrawl, agent: RealAgent
) -> None:
    acme = web.site("acme")
    acme.manifest(listed(agent))
    async with open_crawl(*both(acme, agent)) as crawl:
        await crawl.run()
        card = (await cards_by_path(crawl))[CARD]
        assert (card.kind, card.shape) == ("a2a.card", "1.0")
        assert [item["url"] for item in card.normal["supportedInterfaces"]] == [agent.url(RPC)]
        assert [hit.identifier for hit in await crawl.search("tickets")] == [urn()]
        assert await open_drifts(crawl) == []
        agent.card["supportedInterfaces"].append(
            {"url": agent.url(RPC), "protocolBinding": "JSONRPC", "protocolVersion": "0.3"}
        )
        await crawl.run()
        card = (await cards_by_path(crawl))[CARD]
        assert card.shape == "hybrid", "the SDK adds the older members for older clients"
        assert [item["url"] for item in card.legacy] == [agent.url(RPC)]
        assert await open_drifts(crawl) == []
    assert {seen.method for seen in agent.seen} == {"GET"}
    assert not agent.requests(RPC)


@pytest.mark.parametrize("name", CHANGES)
async def test_what_changes_in_an_agent_is_drift_until_the_catalog_follows(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock, agent: RealAgent, name: str
) -> None:
    change, follow_it, expected = CHANGES[name]
    acme = web.site("acme")
    entry = listed(agent)
    acme.manifest(entry)
    async with open_crawl(*both(acme, agent)) as crawl:
        await crawl.run()
        clock.advance(hours=3)
        await crawl.run()
        assert [seen.status for seen in agent.requests(CARD)] == [200, 304], "a 304 is a sight as well"
        agreed_at = clock.now()

        clock.advance(minutes=37)
        change(agent.card)
        changed_at = clock.now()
        clock.advance(minutes=23)
        await crawl.run()
        rows = await all_drifts(crawl)
        assert sorted((row.code, row.drift_class, row.pointer) for row in rows) == expected
        for row in rows:
            assert (row.identifier, row.moved, row.opened_at) == (urn(), "live", clock.now())
            assert (row.live_old_at, row.live_new_at) == (agreed_at, clock.now())
            assert bounds(row, clock.now()) == (timedelta(0), timedelta(hours=1)), "it may be as old as the last sight"

        for _ in range(4):
            clock.advance(hours=2)
            await crawl.run()
        assert {seen.status for seen in agent.requests(CARD)[-4:]} == {304}
        for row in await all_drifts(crawl):
            assert row.confirmed_at == row.copy_old_at == row.live_seen_at == clock.now()
            least, most = bounds(row, clock.now())
            assert most is not None
            assert least <= clock.now() - changed_at <= most
            assert most - least == timedelta(hours=1)

        clock.advance(minutes=50)
        followed = copy.deepcopy(entry)
        follow_it(followed)
        acme.manifest(followed)
        followed_at = clock.now()
        clock.advance(minutes=10)
        await crawl.run()
        assert await open_drifts(crawl) == []
        for row in await all_drifts(crawl):
            assert (row.closed_by, row.closed_at, row.copy_new_at) == ("catalog", clock.now(), clock.now())
            least, most = bounds(row, clock.now() + timedelta(days=1))
            assert most is not None
            assert least < followed_at - changed_at < most
            assert most - least == timedelta(hours=2), "no wider than the looks were apart"
        assert await feed(crawl, "drift.opened", "drift.closed") == [
            *[("drift.opened", urn())] * len(expected),
            *[("drift.closed", urn())] * len(expected),
        ]
        assert [len(version.edits) > 0 for version in await _versions(crawl)] == [True, True]


async def _versions(crawl: Crawl) -> list[Any]:
    return list(await crawl.database.read(lambda connection: connection.execute(select(versions)).all()))


async def test_an_agent_that_changes_back_ends_the_drift_without_the_catalog(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock, agent: RealAgent
) -> None:
    acme = web.site("acme")
    acme.manifest(listed(agent))
    async with open_crawl(*both(acme, agent)) as crawl:
        await crawl.run()
        before = copy.deepcopy(agent.card)
        raise_version(agent.card)
        clock.advance(hours=1)
        await crawl.run()
        agent.card = before
        clock.advance(hours=1)
        await crawl.run()
        (row,) = await all_drifts(crawl)
        assert (row.closed_by, row.closed_at, row.copy_new_at) == ("live", clock.now(), None)


async def test_a_catalog_that_is_ahead_of_the_agent_is_told_from_one_that_lags(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock, agent: RealAgent
) -> None:
    acme = web.site("acme")
    acme.manifest(listed(agent))
    async with open_crawl(*both(acme, agent)) as crawl:
        await crawl.run()
        clock.advance(hours=1)
        acme.manifest({**listed(agent), "version": "2.0.0"})
        await crawl.run()
        (row,) = await all_drifts(crawl)
        assert (row.code, row.moved) == ("drift.version_mismatch", "catalog")
        agent.card["version"] = "2.0.0"
        clock.advance(hours=1)
        await crawl.run()
        (row,) = await all_drifts(crawl)
        assert (row.closed_by, row.copy_new_at) == ("live", None)


async def test_a_pair_that_agrees_costs_nothing_but_the_looks(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock, agent: RealAgent
) -> None:
    acme = web.site("acme")
    acme.manifest(listed(agent))
    async with crawl_sqlite(*both(acme, agent)) as crawl:
        await crawl.run()
        before = await _counts(crawl)
        for _ in range(100):
            clock.advance(hours=1)
            summary = await crawl.run()
            assert (summary.tally.changes, summary.tally.snapshots, summary.failed) == (0, 0, 0)
        assert await _counts(crawl) == before
        assert (before["drifts"], before["versions"], before["pending"]) == (0, 0, 0)
        card = (await crawl.documents(agent.origin))[CARD]
        assert card.confirmed_at == clock.now()
    asked = agent.requests(CARD)
    statuses = [seen.status for seen in asked if "A2A-Version" in seen.headers]
    assert len(statuses) == 101
    assert 90 <= statuses.count(304) < 100, "now and then the whole card is asked for, in case its tag lies"
    again = len(asked) - len(statuses)
    assert again == statuses.count(200) - 1, "and then as well by the way of clients that name no version"


async def _counts(crawl: Crawl) -> dict[str, int]:
    counted = {}
    for table in (drifts, versions, snapshots, changes, pending):
        query = select(func.count()).select_from(table)
        counted[table.name] = await crawl.database.read(lambda connection, q=query: connection.execute(q).scalar_one())
    return counted
