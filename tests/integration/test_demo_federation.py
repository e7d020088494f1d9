"""The sample federation of the demo shows what its guide says."""

import json
from collections.abc import AsyncIterator

import aiohttp
import pytest

from crawler.demo.federation import PUBLISHERS, read_changes
from crawler.demo.server import FederationServer
from index.store.drift_reads import DriftFilter, list_drifts
from index.store.inspect import StoredRow
from tests.conftest import OpenCrawl
from tests.fakes.clock import FakeClock
from tests.fakes.harness import ALL_SURFACES, Crawl


@pytest.fixture
async def federation() -> AsyncIterator[FederationServer]:
    async with FederationServer() as server:
        yield server


@pytest.fixture
async def crawl(federation: FederationServer, crawl_sqlite: OpenCrawl) -> AsyncIterator[Crawl]:
    """The whole federation, crawled once."""
    async with crawl_sqlite(*(publisher.origin(federation.port) for publisher in PUBLISHERS)) as opened:
        await opened.run()
        yield opened


@pytest.fixture
async def whole_crawl(federation: FederationServer, crawl_sqlite: OpenCrawl) -> AsyncIterator[Crawl]:
    """The same with the cards that entries point to, as the demo crawls it."""
    origins = [publisher.origin(federation.port) for publisher in PUBLISHERS]
    async with crawl_sqlite(*origins, surfaces=ALL_SURFACES) as opened:
        await opened.run()
        yield opened


async def documents(crawl: Crawl, federation: FederationServer, name: str) -> dict[str, StoredRow]:
    return await crawl.documents(f"http://{name}.example:{federation.port}")


async def test_each_publisher_is_found_by_the_mechanism_it_stands_for(
    crawl: Crawl, federation: FederationServer
) -> None:
    found = {}
    for publisher in PUBLISHERS:
        rows = await documents(crawl, federation, publisher.name)
        found[publisher.name] = {row.mechanism: row.entry_count for row in rows.values() if row.entry_count}
    assert found == {
        "tides": {"well_known": 5},
        "huts": {"predecessor_path": 4},
        "letters": {"link_header": 3},
        "loaf": {"html_link": 3},
        "stars": {"agentmap": 3},
        "museum": {"in_page": 3},
        "atlas": {"well_known": 6},
        "guild": {"nested": 2},
        "archive": {},
        "parlour": {},
        "parts": {"well_known": 4},
        "attic": {"well_known": 2},
        "ferries": {},
    }


async def test_the_faults_of_the_faulty_ones_are_found(crawl: Crawl, federation: FederationServer) -> None:
    outcomes = {}
    for name in ("archive", "parlour", "ferries"):
        outcomes[name] = (await documents(crawl, federation, name))["/.well-known/ard.json"].outcome
    assert outcomes == {"archive": "disallowed", "parlour": "catch_all", "ferries": "unreachable"}
    atlas = await documents(crawl, federation, "atlas")
    assert atlas["/.well-known/ard.json"].problems == []
    shown = await crawl.entry("urn:air:tides.example:mcp:tables")
    assert shown is not None
    assert json.loads(shown)["displayName"] == "Tide tables"
    old = await crawl.entry("urn:air:attic.example:mcp:auction-results")
    assert old is not None
    assert json.loads(old)["ardvark:adapted"] == ["type", "data", "identifier"]
    assert await crawl.entry("urn:air:parts.example:agent:quotes") is None
    assert not [name for name in await crawl.identifiers() if "archive.example" in name or "parlour.example" in name]


async def test_the_busy_publisher_recovers(crawl: Crawl, federation: FederationServer, clock: FakeClock) -> None:
    clock.advance(minutes=10)
    await crawl.run(f"http://ferries.example:{federation.port}")
    assert "urn:air:ferries.example:mcp:timetable" in await crawl.identifiers()


async def test_publishers_with_a_validator_answer_304_and_the_others_do_not(
    crawl: Crawl, federation: FederationServer, clock: FakeClock
) -> None:
    clock.advance(minutes=10)
    summary = await crawl.run()
    assert summary.tally.snapshots == 2  # page and manifest of the publisher that was busy the first time
    outcomes = {
        (publisher.name, path): row.outcome
        for publisher in PUBLISHERS
        for path, row in (await documents(crawl, federation, publisher.name)).items()
        if row.entry_count
    }
    again = {name for name, outcome in outcomes.items() if outcome == "fetched"}
    assert again == {("stars", "/agentmap.json"), ("ferries", "/.well-known/ard.json")}


async def test_every_address_that_an_entry_gives_answers(crawl: Crawl, federation: FederationServer) -> None:
    entries = [json.loads(await crawl.entry(identifier) or "") for identifier in await crawl.identifiers()]
    addresses = [entry["url"] for entry in entries if "url" in entry]
    assert len(addresses) == len(entries) - 1  # one entry carries its card inline
    async with aiohttp.ClientSession() as session:
        for address in addresses:
            host, _, path = address.removeprefix("http://").partition(f":{federation.port}")
            local = f"http://127.0.0.1:{federation.port}{path}"
            async with session.get(local, headers={"Host": host}) as response:
                assert response.status == 200, address


async def test_each_change_is_seen_as_what_it_is(whole_crawl: Crawl, federation: FederationServer) -> None:
    crawl = whole_crawl
    seen = []
    for change in read_changes(federation.port):
        before = (await crawl.changes())[-1].cursor
        federation.change(change)
        await crawl.run(f"http://{change.publisher}.example:{federation.port}")
        seen.append(
            {(event.kind, event.identifier.rpartition(":")[2], event.members) for event in await crawl.changes(before)}
        )
    assert seen == [
        {
            ("entry.changed", "tables", ("/description", "/version")),
            ("entry.added", "storm-surge", ()),
            ("entry.removed", "moorings", ()),
            ("artifact.added", "storm-surge", ()),
            ("artifact.changed", "tables", ("/version", "/description")),
        },
        {
            ("artifact.changed", "harbour-pilot", ("/version", "/skills/0/description", "/skills/0/tags/2")),
            ("drift.opened", "harbour-pilot", ("/version",)),
            ("drift.opened", "harbour-pilot", ("/tags/2",)),
        },
        {
            ("entry.changed", "warden", ("/version",)),
            ("entry.changed", "trail-conditions", ("/description",)),
            ("artifact.changed", "warden", ("/version",)),
            ("artifact.changed", "trail-conditions", ("/description",)),
        },
        {
            ("entry.changed", "harbour-pilot", ("/version", "/tags")),
            ("drift.closed", "harbour-pilot", ("/version",)),
            ("drift.closed", "harbour-pilot", ("/tags/2",)),
        },
    ]


async def test_the_sample_federation_starts_with_one_outdated_copy(whole_crawl: Crawl) -> None:
    drift = await whole_crawl.database.read(list_drifts, DriftFilter(state="all"), 100, None)
    assert [(row.code, row.identifier, row.catalog_url.rpartition("//")[2].partition(".")[0]) for row in drift] == [
        ("drift.version_mismatch", "urn:air:tides.example:mcp:tables", "atlas")
    ]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("tide tables", "urn:air:tides.example:mcp:tables"),
        ("book a mountain hut", "urn:air:huts.example:agent:warden"),
        ("my sourdough smells strange", "urn:air:loaf.example:agent:starter-coach"),
        ("which planets are up tonight", "urn:air:stars.example:mcp:sky-tonight"),
        ("glaze without barium", "urn:air:guild.example:mcp:glazes"),
        ("fix a wooden boat", "urn:air:atlas.example:water-crafts:boatyard"),
    ],
)
async def test_searches_that_a_visitor_may_try_find_the_right_one(crawl: Crawl, text: str, first: str) -> None:
    assert (await crawl.search(text))[0].identifier == first


async def test_terms_of_a_publisher_can_be_filtered_by_their_iri(crawl: Crawl) -> None:
    hits = await crawl.search("harbour", **{"https://vocab.tides.example/sea#region": "Amber Bay"})
    assert {hit.identifier for hit in hits} == {
        "urn:air:tides.example:mcp:tables",
        "urn:air:tides.example:agent:harbour-pilot",
    }
