"""Keeping: what is listed stays listed until its publisher takes it out, and everything that happened can be told."""

import asyncio
import json
import random
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from aiohttp import web as aioweb
from sqlalchemy import Connection, func, select, update

from index.documents import Outcome
from index.store import search as store
from index.store.inspect import last_fetch, listing_row, sources_of
from index.store.snapshots import load_snapshot
from index.store.tables import changes, documents, entries, fetches, leads, snapshots
from tests.conftest import OpenCrawl
from tests.fakes.clock import FakeClock
from tests.fakes.contents import listed_digests, replay
from tests.fakes.harness import Crawl
from tests.fakes.shell import command
from tests.fakes.web import FakeWeb, Page, Site, entry

ARD = "/.well-known/ard.json"
PREDECESSOR = "/.well-known/ai-catalog.json"
CATALOG = "application/ai-catalog+json"


def urn(name: str, publisher: str = "acme.example") -> str:
    return f"urn:air:{publisher}:tool:{name}"


def many(count: int, first: int = 0) -> list[dict[str, Any]]:
    return [entry(f"tool-{number}") for number in range(first, first + count)]


def nested(url: str, name: str = "more", publisher: str = "acme.example") -> dict[str, Any]:
    return entry(name, publisher, type=CATALOG, url=url)


async def stored(crawl: Crawl, identifier: str) -> store.StoredEntry | None:
    return await crawl.database.read(store.retrieve, identifier)


async def stale_since(crawl: Crawl, identifier: str) -> datetime | None:
    """Since when the entry cannot be confirmed, as search and retrieve both say."""
    found = await stored(crawl, identifier)
    assert found is not None, f"{identifier} is not listed"
    hits = [hit for hit in await crawl.search(identifier) if hit.identifier == identifier]
    assert [hit.stale_since for hit in hits] == [found.stale_since]
    return found.stale_since


def snapshot_count(connection: Connection) -> int:
    return int(connection.execute(select(func.count()).select_from(snapshots)).scalar_one())


async def show(url: str, identifier: str) -> dict[str, Any]:
    status, out = await command(url, "show", identifier, "--json")
    assert status == 0, out
    shown: dict[str, Any] = json.loads(out)
    return shown


# --- what removes nothing ---------------------------------------------------------------------------------------------


async def _reset(request: aioweb.Request) -> aioweb.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return aioweb.Response()


async def _cut_short(request: aioweb.Request) -> aioweb.StreamResponse:
    response = aioweb.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": "5000"})
    await response.prepare(request)
    await response.write(b'{"entries": []')
    assert request.transport is not None
    request.transport.close()
    return response


def _answer(status: int) -> Callable[[Site], None]:
    def fault(site: Site) -> None:
        site.page(ARD, b"{}", status=status, headers={"Content-Type": "application/json"})

    return fault


def _body(body: bytes, content_type: str = "application/json") -> Callable[[Site], None]:
    def fault(site: Site) -> None:
        site.page(ARD, body, headers={"Content-Type": content_type})

    return fault


def _robots(text: str, status: int = 200) -> Callable[[Site], None]:
    def fault(site: Site) -> None:
        site.robots(text, status=status)

    return fault


def _catch_all(site: Site) -> None:
    site.gone(ARD)
    site.fallback = Page(b"<!doctype html><title>App</title>", headers={"Content-Type": "text/html"})


FAULTS: dict[str, tuple[Callable[[Site], None], Outcome]] = {
    "the connection is reset": (lambda site: site.handle(ARD, _reset), Outcome.UNREACHABLE),
    "the body is cut short": (lambda site: site.handle(ARD, _cut_short), Outcome.UNREACHABLE),
    "500": (_answer(500), Outcome.UNREACHABLE),
    "502": (_answer(502), Outcome.UNREACHABLE),
    "503": (_answer(503), Outcome.UNREACHABLE),
    "429": (_answer(429), Outcome.UNREACHABLE),
    "204": (_answer(204), Outcome.UNREACHABLE),
    "401": (_answer(401), Outcome.WITHHELD),
    "403": (_answer(403), Outcome.WITHHELD),
    "451": (_answer(451), Outcome.WITHHELD),
    "robots.txt answers 503": (_robots("busy", 503), Outcome.DISALLOWED),
    "too large": (_body(b'{"entries": []' + b" " * 1_100_000 + b"}"), Outcome.TOO_LARGE),
    "damaged JSON": (_body(b'{"entries": ['), Outcome.MALFORMED),
    "an empty body": (_body(b""), Outcome.MALFORMED),
    "NaN": (_body(b'{"entries": [], "x": NaN}'), Outcome.MALFORMED),
    "entries is no array": (_body(b'{"entries": {}}'), Outcome.MALFORMED),
    "entries is null": (_body(b'{"entries": null}'), Outcome.MALFORMED),
    "JSON of another kind": (_body(b'{"error": "try later"}'), Outcome.WRONG_KIND),
    "an HTML page": (_body(b"<h1>Maintenance</h1>", "text/html"), Outcome.ABSENT),
    "a page for every path": (_catch_all, Outcome.CATCH_ALL),
    "a redirect to a stranger": (
        lambda site: site.redirect(ARD, "https://stranger.test/ard.json"),
        Outcome.REFUSED,
    ),
    "a redirect loop": (lambda site: site.redirect(ARD, ARD), Outcome.UNREACHABLE),
    "gzip that breaks off": (
        lambda site: site.page(
            ARD, b"\x1f\x8b\x08\x00", headers={"Content-Encoding": "gzip", "Content-Type": "application/json"}
        ),
        Outcome.UNREACHABLE,
    ),
}


@pytest.mark.parametrize("name", FAULTS)
async def test_a_failure_removes_nothing_and_marks_the_listing_stale(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock, name: str
) -> None:
    fault, outcome = FAULTS[name]
    acme = web.site("acme")
    acme.manifest(entry("echo"), entry("weather"))
    good = dict(acme.pages)
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        assert await stale_since(crawl, urn("echo")) is None
        before = await crawl.changes()

        fault(acme)
        clock.advance(hours=2)
        failed_at = clock.now()
        for _ in range(5):
            await crawl.run()
            clock.advance(hours=12)
        document = (await crawl.documents(acme))[ARD]
        assert document.outcome == outcome, document.detail
        assert await crawl.identifiers() == [urn("echo"), urn("weather")]
        since = await stale_since(crawl, urn("echo"))
        assert since is not None
        assert failed_at <= since < failed_at + timedelta(minutes=5), "since the first failure, not the last"
        assert await crawl.changes() == before

        acme.pages, acme.fallback = good, None
        clock.advance(days=1)
        summary = await crawl.run()
        assert summary.tally.snapshots == 0
        assert await stale_since(crawl, urn("echo")) is None
        assert await crawl.changes() == before


@pytest.mark.parametrize("name", ["403"])
async def test_stale_is_stale_on_both_engines_and_show_says_why(
    web: FakeWeb, open_crawl: OpenCrawl, prepared_url: str, name: str
) -> None:
    fault, outcome = FAULTS[name]
    acme = web.site("acme")
    acme.manifest(entry("echo"))
    async with open_crawl(acme) as crawl:
        await crawl.run()
        fault(acme)
        await crawl.run()
        since = await stale_since(crawl, urn("echo"))
        assert since is not None
    shown = await show(prepared_url, urn("echo"))
    assert shown["state"] == "stale"
    assert shown["entry"]["identifier"] == urn("echo")
    assert shown["provenance"]["staleReason"].startswith(f"{outcome}: ")
    assert datetime.fromisoformat(shown["provenance"]["staleSince"]) == since.replace(
        microsecond=since.microsecond // 1000 * 1000
    )


async def test_an_incomplete_reading_adds_but_does_not_remove(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(*many(3))
    async with open_crawl(acme, limits={"entries": 4}) as crawl:
        await crawl.run()
        acme.manifest(*many(9, first=3))
        await crawl.run()
        assert await crawl.identifiers() == sorted(urn(f"tool-{number}") for number in range(7))
        problems = (await crawl.documents(acme))[ARD].problems
        assert "manifest.too_many_entries" in [problem["code"] for problem in problems]

        acme.manifest(*many(2, first=5))
        await crawl.run()
        assert await crawl.identifiers() == [urn("tool-5"), urn("tool-6")]


async def test_a_page_that_is_cut_off_or_has_a_damaged_script_removes_nothing(
    web: FakeWeb, crawl_sqlite: OpenCrawl
) -> None:
    acme = web.site("acme")
    script = '<script type="application/ld+json">{}</script>'
    both = script.format(json.dumps(entry("one"))) + script.format(json.dumps(entry("two")))
    acme.html("/", f"<html><body>{both}</body></html>")
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        assert await crawl.identifiers() == [urn("one"), urn("two")]

        damaged = script.format(json.dumps(entry("one"))) + script.format(json.dumps(entry("two"))[:-5])
        acme.html("/", f"<html><body>{damaged}</body></html>")
        await crawl.run()
        assert await crawl.identifiers() == [urn("one"), urn("two")]

        acme.html("/", f"<html><body>{script.format(json.dumps(entry('one')))}</body></html>")
        await crawl.run()
        assert await crawl.identifiers() == [urn("one")]


# --- FR-69, FR-70, FR-72: outages and complete readings ---------------------------------------------------------------


SCRIPT = '<script type="application/ld+json">{}</script>'
OTHERS = {
    "more scripts than are read": SCRIPT.format("{}") * 60 + SCRIPT.format(json.dumps(entry("echo"))),
    "a longer script than is read": SCRIPT.format(json.dumps([{"x": "y" * 300_000}, entry("echo")])),
    "a script without an end": "<script>" + SCRIPT.format(json.dumps(entry("echo"))).removesuffix("</script>"),
    "a comment without an end": "<!--" + SCRIPT.format(json.dumps(entry("echo"))),
}


@pytest.mark.parametrize("name", OTHERS)
async def test_a_page_with_more_than_is_read_removes_nothing(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock, name: str
) -> None:
    acme = web.site("acme")
    acme.html("/", SCRIPT.format(json.dumps(entry("echo"))))
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        assert await crawl.identifiers() == [urn("echo")]
        acme.html("/", OTHERS[name])
        clock.advance(days=2)
        await crawl.run()
        assert await crawl.identifiers() == [urn("echo")]
        acme.html("/", "<p>nothing any more</p>")
        clock.advance(days=2)
        await crawl.run()
        assert await crawl.identifiers() == []


async def test_a_manifest_with_more_catalogs_than_are_followed_withdraws_none(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    for number in range(3):
        acme.manifest(entry(f"tool-{number}"), path=f"/{number}.json")
    acme.manifest(nested("/0.json", "n0"), nested("/1.json", "n1"))
    async with open_crawl(acme, limits={"links": 2}) as crawl:
        await crawl.run()
        acme.manifest(nested("/2.json", "n2"), nested("/0.json", "n0"), nested("/1.json", "n1"))
        for _ in range(3):
            clock.advance(days=1)
            await crawl.run()
        assert await crawl.identifiers() == [urn(f"tool-{number}") for number in range(3)]
        acme.manifest(nested("/2.json", "n2"))
        for _ in range(3):
            clock.advance(days=1)
            await crawl.run()
        assert await crawl.identifiers() == [urn("tool-2")]


async def test_fr_69_a_short_outage_leaves_good_entries_searchable(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    good = acme.manifest(entry("echo"))
    async with open_crawl(acme) as crawl:
        await crawl.run()
        clock.advance(hours=1)
        acme.handle(ARD, _reset)
        await crawl.run()
        began = await stale_since(crawl, urn("echo"))
        clock.advance(hours=1)
        acme.page(ARD, status=502)
        await crawl.run()
        assert began is not None
        assert await stale_since(crawl, urn("echo")) == began

        clock.advance(hours=1)
        acme.pages[ARD] = good
        await crawl.run()
        assert acme.requests(ARD)[-1].status == 304
        assert await stale_since(crawl, urn("echo")) is None
        assert [change.kind for change in await crawl.changes()] == ["entry.added"]

        def log(connection: Connection) -> list[tuple[str, str]]:
            mine = select(fetches.c.outcome, fetches.c.reason).join(documents, documents.c.id == fetches.c.document_id)
            rows = connection.execute(mine.where(documents.c.url == acme.url(ARD)).order_by(fetches.c.id))
            return [(row.outcome, row.reason) for row in rows]

        assert await crawl.database.read(log) == [
            ("fetched", ""),
            ("unreachable", "reset"),
            ("unreachable", "http_502"),
            ("not_modified", ""),
        ]


async def test_fr_70_a_failed_source_keeps_its_entries_and_is_tried_again_early(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    first, second = web.site("first"), web.site("second")
    first.manifest(entry("one", "first.example"))
    second.manifest(entry("two", "second.example"))
    async with open_crawl(first, second) as crawl:
        assert (await crawl.run()).as_json()["entries"]["listed"] == 2
        first.page(ARD, status=500)
        second.manifest(entry("two", "second.example"), entry("three", "second.example"))
        clock.advance(hours=3)
        summary = (await crawl.run()).as_json()
        assert summary["documents"]["unreachable"] == 1, "the run says that it is not complete"
        assert await crawl.identifiers() == [
            urn("one", "first.example"),
            urn("three", "second.example"),
            urn("two", "second.example"),
        ]
        failed, good = (await crawl.documents(first))[ARD], (await crawl.documents(second))[ARD]
        assert failed.next_fetch_at < good.next_fetch_at
        assert failed.next_fetch_at <= clock.now() + timedelta(minutes=10)

        clock.advance(minutes=10)
        claims = await crawl.crew.claim(10)
        assert [claim.origin for claim in claims] == [first.origin]


async def test_fr_72_what_a_complete_reading_lacks_leaves_search_and_stays_in_history(
    web: FakeWeb, open_crawl: OpenCrawl, prepared_url: str, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.manifest(entry("apple"), entry("birch"), entry("cedar"))
    async with open_crawl(acme) as crawl:
        await crawl.run()
        clock.advance(hours=1)
        page = acme.manifest(entry("apple"), entry("cedar"))
        await crawl.run()
        assert await crawl.identifiers() == [urn("apple"), urn("cedar")]
        assert await crawl.search("birch") == []
        assert await stored(crawl, urn("birch")) is None
        (tombstone,) = await crawl.changes(3)
        assert (tombstone.kind, tombstone.identifier) == ("entry.removed", urn("birch"))
        assert tombstone.reason == "absent_from_source"
        assert tombstone.old_digest is not None
        assert tombstone.new_digest is None
        assert tombstone.at == clock.now()
        row = await crawl.database.read(listing_row, urn("birch"))
        assert row is not None
        assert row.removed_at == clock.now()
        assert page.body
    shown = await show(prepared_url, urn("birch"))
    assert shown["state"] == "removed"
    assert shown["entry"]["displayName"] == "Birch"
    assert shown["provenance"]["url"] == acme.url(ARD)
    status, out = await command(prepared_url, "changes", "--identifier", urn("birch"), "--json")
    assert status == 0
    assert [item["kind"] for item in json.loads(out)["items"]] == ["entry.added", "entry.removed"]


async def test_fr_61_listings_follow_the_live_document(
    web: FakeWeb, open_crawl: OpenCrawl, prepared_url: str, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.manifest(entry("agent", displayName="Alpha", version="3.0.1"))
    async with open_crawl(acme) as crawl:
        await crawl.run()
        first = await stored(crawl, urn("agent"))
        clock.advance(hours=1)
        acme.manifest(entry("agent", displayName="Beta", version="3.1.0"))
        await crawl.run()
        second = await stored(crawl, urn("agent"))
        assert first is not None
        assert second is not None
        assert json.loads(second.entry)["displayName"] == "Beta"
        assert second.changed_at == clock.now() > first.changed_at
        (hit,) = await crawl.search("beta")
        assert json.loads(hit.projection)["version"] == "3.1.0"
        assert await crawl.search("alpha") == [], "no index word of the old name stays behind"
        (change,) = await crawl.changes(1)
        assert change.kind == "entry.changed"
        assert set(change.members) == {"/displayName", "/version"}
        assert (change.old_digest, change.new_digest) == (first.digest, second.digest)

    # A publisher who does not want to wait asks the operator for a look right now.
    acme.manifest(entry("agent", displayName="Gamma", version="3.1.0"))
    status, out = await command(prepared_url, "origins", "visit", acme.origin, "--json", origins=[acme.origin])
    assert status == 0, out
    assert (await show(prepared_url, urn("agent")))["entry"]["displayName"] == "Gamma"


# --- FR-73: a large drop is held until it is seen twice ---------------------------------------------------------------


async def test_fr_73_a_manifest_that_suddenly_loses_most_entries_is_held_until_seen_twice(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme = web.site("acme")
    acme.manifest(*many(40))
    async with open_crawl(acme) as crawl:
        await crawl.run()
        acme.manifest()
        second = await crawl.run()
        assert second.as_json()["held"] == 1
        assert second.tally.changes == 0
        assert (await crawl.documents(acme))[ARD].held
        assert len(await crawl.identifiers()) == 40

        third = await crawl.run()
        assert third.as_json()["held"] == 0, "raised once"
        assert third.tally.changes == 40
        assert await crawl.identifiers() == []
        assert not (await crawl.documents(acme))[ARD].held


@pytest.mark.parametrize(
    ("before", "after", "held"),
    [(10, 4, True), (10, 5, False), (12, 5, True), (12, 6, False), (9, 0, False), (10, 0, True), (11, 5, True)],
)
async def test_the_hold_begins_above_half_of_ten_or_more(
    web: FakeWeb, crawl_sqlite: OpenCrawl, before: int, after: int, held: bool
) -> None:
    acme = web.site("acme")
    acme.manifest(*many(before))
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        acme.manifest(*many(after))
        await crawl.run()
        assert len(await crawl.identifiers()) == (before if held else after)
        await crawl.run()
        assert len(await crawl.identifiers()) == after


SECOND_SIGHTINGS: dict[str, Callable[[Site], Any]] = {
    "a 304": lambda site: None,
    "the same bytes without a validator": lambda site: site.manifest(*many(3), validator=False),
    "other formatting": lambda site: site.page(
        ARD, json.dumps({"entries": many(3)}, indent=2), headers={"Content-Type": "application/json"}
    ),
    "other content": lambda site: site.manifest(*many(2), entry("late")),
}


@pytest.mark.parametrize("name", SECOND_SIGHTINGS)
async def test_a_second_sighting_confirms_a_large_drop(web: FakeWeb, crawl_sqlite: OpenCrawl, name: str) -> None:
    acme = web.site("acme")
    acme.manifest(*many(12))
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        acme.manifest(*many(3))
        await crawl.run()
        assert len(await crawl.identifiers()) == 12
        SECOND_SIGHTINGS[name](acme)
        await crawl.run()
        if name == "a 304":
            assert acme.requests(ARD)[-1].status == 304
        wanted = [*many(2), entry("late")] if name == "other content" else many(3)
        assert await crawl.identifiers() == sorted(item["identifier"] for item in wanted)
        assert not (await crawl.documents(acme))[ARD].held


async def test_additions_and_updates_of_a_held_manifest_still_apply(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(*many(12))
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        acme.manifest(entry("tool-0", description="renewed"), entry("newcomer"))
        summary = await crawl.run()
        assert summary.tally.changes == 2
        assert len(await crawl.identifiers()) == 13
        found = await stored(crawl, urn("tool-0"))
        assert found is not None
        assert json.loads(found.entry)["description"] == "renewed"


async def test_a_hold_outlives_an_outage_and_ends_when_the_entries_are_back(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme = web.site("acme")
    good = acme.manifest(*many(12))
    async with open_crawl(acme) as crawl:
        await crawl.run()
        empty = acme.manifest()
        await crawl.run()
        acme.page(ARD, status=503)
        await crawl.run()
        assert len(await crawl.identifiers()) == 12, "an outage confirms nothing"
        acme.pages[ARD] = good
        await crawl.run()
        assert not (await crawl.documents(acme))[ARD].held
        acme.pages[ARD] = empty
        await crawl.run()
        assert len(await crawl.identifiers()) == 12, "the next large drop is held anew"
        acme.page(ARD, status=503)
        await crawl.run()
        acme.pages[ARD] = empty
        await crawl.run()
        assert await crawl.identifiers() == []


async def test_entries_that_all_turn_invalid_at_once_are_a_large_drop(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(*many(12))
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        acme.manifest(*({**item, "url": None} for item in many(12)))
        summary = await crawl.run()
        assert summary.tally.held == 1
        assert len(await crawl.identifiers()) == 12
        await crawl.run()
        assert await crawl.identifiers() == []
        assert len(await crawl.not_listed(acme)) == 12


async def test_a_new_version_of_every_entry_is_no_loss(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(*({**item, "version": "1.0.0"} for item in many(12)))
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        acme.manifest(*({**item, "version": "2.0.0"} for item in many(12)))
        summary = await crawl.run()
        assert summary.tally.held == 0
        assert [change.kind for change in await crawl.changes(12)] == ["entry.changed"] * 12
        found = await stored(crawl, urn("tool-0"))
        assert found is not None
        assert json.loads(found.entry)["version"] == "2.0.0"


async def test_a_page_that_loses_most_of_its_entries_is_held_until_seen_twice(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme = web.site("acme")

    def page(*items: dict[str, Any]) -> None:
        script = f'<script type="application/ld+json">{json.dumps(items)}</script>'
        acme.html("/", f"<html><head>{script}</head></html>", etag=f'"{len(items)}"')

    page(*many(12))
    async with open_crawl(acme) as crawl:
        await crawl.run()
        page(*many(2))
        await crawl.run()
        assert len(await crawl.identifiers()) == 12
        await crawl.run()
        assert acme.requests("/")[-1].status == 304
        assert await crawl.identifiers() == [urn("tool-0"), urn("tool-1")]

        page(*many(12))
        await crawl.run()
        acme.html("/", "<html><head></head></html>")
        await crawl.run()
        assert len(await crawl.identifiers()) == 12
        await crawl.run()
        assert await crawl.identifiers() == []


# --- a missing document -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hours", "listed"),
    [
        ([0, 1, 2, 3], [True, True, True, True]),
        ([0, 30], [True, True]),
        ([0, 12, 24], [True, True, False]),
        ([0, 1, 2, 23, 25], [True, True, True, True, False]),
    ],
)
async def test_404_takes_entries_away_after_three_sightings_over_a_day(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock, hours: list[int], listed: list[bool]
) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"))
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        acme.gone(ARD)
        start = clock.now()
        seen = []
        for hour in hours:
            clock.advance(seconds=(start + timedelta(hours=hour) - clock.now()).total_seconds())
            await crawl.run()
            seen.append(await crawl.identifiers() == [urn("echo")])
        assert seen == listed


async def test_404_begins_anew_once_the_document_was_there_again(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    good = acme.manifest(entry("echo"))
    async with open_crawl(acme) as crawl:
        await crawl.run()
        for _ in range(2):
            acme.gone(ARD)
            for _ in range(2):
                clock.advance(hours=30)
                await crawl.run()
            assert await stale_since(crawl, urn("echo")) is not None
            acme.pages[ARD] = good
            await crawl.run()
            assert await stale_since(crawl, urn("echo")) is None
        acme.gone(ARD)
        for _ in range(3):
            clock.advance(hours=13)
            await crawl.run()
        assert await crawl.identifiers() == []
        assert (await crawl.changes())[-1].reason == "http_404"


async def test_410_takes_entries_away_at_once(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(*many(12))
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        acme.page(ARD, status=410)
        await crawl.run()
        assert await crawl.identifiers() == []
        removed = await crawl.changes(12)
        assert {(change.kind, change.reason) for change in removed} == {("entry.removed", "http_410")}
        assert len(removed) == 12


@pytest.mark.parametrize("validator", [True, False], ids=["304", "same bytes"])
async def test_entries_return_when_the_document_does(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock, validator: bool
) -> None:
    acme = web.site("acme")
    good = acme.manifest(entry("echo"), validator=validator)
    async with open_crawl(acme) as crawl:
        await crawl.run()
        first = await crawl.database.read(listing_row, urn("echo"))
        acme.page(ARD, status=410)
        clock.advance(days=2)
        await crawl.run()
        assert await crawl.search("echo") == []

        clock.advance(days=2)
        acme.pages[ARD] = good
        summary = await crawl.run()
        assert acme.requests(ARD)[-1].status == (304 if validator else 200)
        assert summary.tally.snapshots == 0
        assert [hit.identifier for hit in await crawl.search("echo")] == [urn("echo")]
        assert [change.kind for change in await crawl.changes()] == ["entry.added", "entry.removed", "entry.added"]
        row = await crawl.database.read(listing_row, urn("echo"))
        assert row is not None
        assert first is not None
        assert row.first_seen_at == first.first_seen_at
        assert row.changed_at == clock.now()
        assert row.removed_at is None


# --- the change feed --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2])
async def test_replaying_the_feed_gives_the_listings_whatever_happened(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock, seed: int
) -> None:
    """Sources of one identifier come and go in any order, on the publisher's own origin and elsewhere."""
    chance = random.Random(seed)
    acme, other = web.site("acme"), web.site("other")
    places = [(acme, ARD), (acme, PREDECESSOR), (other, ARD)]
    names = [f"n{number}" for number in range(15)]
    async with open_crawl(acme, other) as crawl:
        for _ in range(12):
            for site, path in places:
                what = chance.random()
                if what < 0.6:
                    chosen = chance.sample(names, chance.randrange(len(names)))
                    site.manifest(*(entry(name, description=chance.choice("xyz")) for name in chosen), path=path)
                elif what < 0.75:
                    site.page(path, status=chance.choice([404, 410, 500]))
            clock.advance(hours=chance.choice([1, 30]))
            await crawl.run(*chance.sample([acme, other], chance.choice([1, 2])))
            feed = await crawl.changes()
            assert [change.cursor for change in feed] == list(range(1, len(feed) + 1))
            assert [change.at for change in feed] == sorted(change.at for change in feed)
            assert replay(feed) == await crawl.database.read(listed_digests)
        kinds = {change.kind for change in feed if change.kind.startswith("entry.")}
        assert kinds == {"entry.added", "entry.changed", "entry.removed"}
        middle = len(feed) // 2
        assert await crawl.changes(middle) == feed[middle:]


async def test_the_feed_has_no_gap_when_two_processes_write_it(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    sites = [web.site(f"s{number}") for number in range(8)]
    for site in sites:
        site.manifest(entry("one", site.host), entry("two", site.host))
    async with open_crawl(*sites) as first, open_crawl(*sites) as second:
        await asyncio.gather(first.run(*sites[:5]), second.run(*sites[3:]))
        feed = await first.changes()
        assert [change.cursor for change in feed] == list(range(1, 17))
        assert replay(feed) == await first.database.read(listed_digests)
        assert first.summaries[0].visited + second.summaries[0].visited >= 8


# --- snapshots and changes of form ------------------------------------------------------------------------------------


async def test_identical_content_never_writes_a_snapshot(web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock) -> None:
    acme, twin = web.site("acme"), web.site("twin")
    page = acme.manifest(entry("echo"), validator=False)
    async with open_crawl(acme, twin) as crawl:
        await crawl.run()
        assert await crawl.database.read(snapshot_count) == 1
        for tag in (None, '"a"', '"b"', None):
            page.etag = tag
            clock.advance(days=3)
            summary = await crawl.run()
            assert acme.requests(ARD)[-1].status == 200
            assert summary.tally.snapshots == 0
            assert summary.tally.changes == 0
            assert summary.tally.unchanged == 1
        # The same bytes at another address are the same snapshot.
        twin.pages[ARD] = page
        await crawl.run()
        assert await crawl.database.read(snapshot_count) == 1


FORMATS: dict[str, Callable[[dict[str, Any]], str]] = {
    "indented": lambda value: json.dumps(value, indent=4),
    "members in another order": lambda value: json.dumps(
        {"entries": [dict(sorted(item.items())) for item in value["entries"]]}
    ),
    "escaped": lambda value: json.dumps(value, ensure_ascii=True),
    "byte-order mark and final newline": lambda value: "\ufeff" + json.dumps(value, ensure_ascii=False) + "\n",
    "another member at the root": lambda value: json.dumps({**value, "generatedAt": "2026-11-29T12:00:00Z"}),
    "entries in another order": lambda value: json.dumps({"entries": value["entries"][::-1]}),
}


@pytest.mark.parametrize("name", FORMATS)
async def test_a_change_of_form_is_no_change_of_an_entry(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock, name: str
) -> None:
    acme = web.site("acme")
    value = {"entries": [entry("echo", displayName="Écho"), entry("weather", metadata={"b": 1, "a": [True, None]})]}
    acme.json(ARD, value)
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        first = await stored(crawl, urn("echo"))
        feed = await crawl.changes()
        clock.advance(hours=1)
        acme.page(ARD, FORMATS[name](value), headers={"Content-Type": "application/json"})
        summary = await crawl.run()
        assert summary.tally.snapshots == 1, "the bytes are others, and are kept"
        assert summary.as_json()["entries"] == {"listed": 0, "rejected": 0, "unchanged": 2}
        assert await crawl.changes() == feed
        second = await stored(crawl, urn("echo"))
        assert first is not None
        assert second is not None
        assert (second.digest, second.changed_at) == (first.digest, first.changed_at)


@pytest.mark.parametrize(
    ("old", "new"),
    [(1, True), (1, "1"), (None, 0), ([1, 2], [2, 1]), ({"a": 1}, {"a": 1, "b": None}), (1, 1.5)],
    ids=str,
)
async def test_a_change_of_value_is_a_change(web: FakeWeb, crawl_sqlite: OpenCrawl, old: Any, new: Any) -> None:
    acme = web.site("acme")
    value = entry("echo")
    acme.json(ARD, {"entries": [{**value, "corp:member": old}]})
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        acme.json(ARD, {"entries": [{**value, "corp:member": new}]})
        await crawl.run()
        assert [change.members for change in await crawl.changes(1)] == [("/corp:member",)]


async def test_a_new_parser_version_fetches_unconditionally_and_reads_again(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo", representativeQueries=None))
    async with open_crawl(acme) as crawl:
        await crawl.run()
        await crawl.run()
        assert acme.requests(ARD)[-1].status == 304

        def as_an_older_version_left_it(connection: Connection) -> None:
            connection.execute(update(documents).values(parser_version="ard-0"))
            connection.execute(update(entries).values(problems=[]))

        await crawl.database.write(as_an_older_version_left_it)
        summary = await crawl.run()
        assert acme.requests(ARD)[-1].status == 200
        assert "If-None-Match" not in acme.requests(ARD)[-1].headers
        (source,) = await crawl.database.read(sources_of, urn("echo"))
        assert [problem["code"] for problem in source.problems] == ["queries.missing"], "it was read again"
        assert summary.tally.changes == 0
        assert await crawl.database.read(snapshot_count) == 1

        await crawl.run()
        assert acme.requests(ARD)[-1].status == 304, "once is enough"


async def test_a_lost_snapshot_is_fetched_again(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"))
    async with open_crawl(acme) as crawl:
        await crawl.run()
        await crawl.database.write(lambda connection: connection.execute(snapshots.delete()))
        await crawl.run()
        assert acme.requests(ARD)[-1].status == 200
        assert await crawl.database.read(snapshot_count) == 1
        assert len(await crawl.changes()) == 1


async def test_a_damaged_snapshot_is_put_right_when_it_is_needed(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"))
    async with open_crawl(acme) as crawl:
        await crawl.run()
        (name,) = await crawl.database.read(lambda connection: connection.execute(select(snapshots.c.digest)).scalars())
        whole = await crawl.database.read(load_snapshot, name)
        await crawl.database.write(lambda connection: connection.execute(snapshots.update().values(body=b"damaged")))
        await crawl.database.write(
            lambda connection: connection.execute(documents.update().values(applied_digest=None))
        )
        assert await crawl.database.read(load_snapshot, name) is None
        await crawl.run()
        assert [seen.status for seen in acme.requests(ARD)] == [200, 304, 200], "a copy that cannot be read is none"
        assert await crawl.database.read(load_snapshot, name) == whole
        assert len(await crawl.changes()) == 1


# --- several sources of one identifier --------------------------------------------------------------------------------


async def states(crawl: Crawl, identifier: str) -> list[tuple[str, str]]:
    """The sources of an identifier, the best one first, with what became of each."""
    rows = await crawl.database.read(sources_of, identifier)
    return [(row.url, row.state) for row in rows]


async def shown_name(crawl: Crawl, identifier: str) -> str:
    found = await stored(crawl, identifier)
    assert found is not None
    return str(json.loads(found.entry)["displayName"])


async def test_two_sources_of_one_identifier_are_one_listing_and_a_recorded_conflict(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo", displayName="New"))
    acme.manifest(entry("echo", displayName="Old"), entry("extra"), path=PREDECESSOR)
    async with open_crawl(acme) as crawl:
        summary = await crawl.run()
        assert await crawl.identifiers() == [urn("echo"), urn("extra")]
        assert await shown_name(crawl, urn("echo")) == "New"
        assert await states(crawl, urn("echo")) == [(acme.url(ARD), "listed"), (acme.url(PREDECESSOR), "conflict")]
        (row,) = await crawl.not_listed(acme)
        assert (row.identifier, row.state) == (urn("echo"), "conflict")
        assert summary.as_json()["entries"] == {"listed": 2, "rejected": 1, "unchanged": 0}

        acme.manifest(entry("echo", displayName="New"), path=PREDECESSOR)
        await crawl.run()
        assert await states(crawl, urn("echo")) == [(acme.url(ARD), "listed"), (acme.url(PREDECESSOR), "duplicate")]


async def test_precedence_flips_when_the_better_source_disappears_and_back(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    good = acme.manifest(entry("echo", displayName="New"))
    acme.manifest(entry("echo", displayName="Old"), path=PREDECESSOR)
    async with open_crawl(acme) as crawl:
        await crawl.run()
        acme.page(ARD, status=503)
        await crawl.run()
        assert await shown_name(crawl, urn("echo")) == "New", "a failure decides nothing"

        acme.manifest()
        await crawl.run()
        assert await shown_name(crawl, urn("echo")) == "Old"
        assert await states(crawl, urn("echo")) == [(acme.url(PREDECESSOR), "listed")]

        acme.pages[ARD] = good
        await crawl.run()
        assert await shown_name(crawl, urn("echo")) == "New"
        feed = [change for change in await crawl.changes() if change.kind.startswith("entry.")]
        assert [change.kind for change in feed] == ["entry.added", "entry.changed", "entry.changed"]
        assert [change.url for change in feed] == [acme.url(ARD), acme.url(PREDECESSOR), acme.url(ARD)]
        assert [change.members for change in feed[1:]] == [("/displayName",)] * 2


@pytest.mark.parametrize("first", ["acme", "other"])
async def test_the_own_domain_comes_before_any_other_whatever_was_crawled_first(
    web: FakeWeb, open_crawl: OpenCrawl, first: str
) -> None:
    acme, other = web.site("acme"), web.site("other")
    other.manifest(entry("echo", displayName="Squatter"))
    acme.manifest(entry("echo", displayName="Own"), path=PREDECESSOR)
    async with open_crawl(acme, other) as crawl:
        for site in (acme, other) if first == "acme" else (other, acme):
            await crawl.run(site)
        assert await shown_name(crawl, urn("echo")) == "Own"
        assert await states(crawl, urn("echo")) == [(acme.url(PREDECESSOR), "listed"), (other.url(ARD), "conflict")]


async def test_every_mechanism_has_its_place_in_the_order(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    """ard.json, Link header, link element, Agentmap, in-page, predecessor path; taken away one by one."""
    acme = web.site("acme")
    acme.robots(f"Agentmap: {acme.url('/agentmap.json')}\n")
    in_page = f'<script type="application/ld+json">{json.dumps(entry("echo", displayName="page"))}</script>'
    head = f'<link rel="ard" href="/element.json">{in_page}'
    acme.html("/", f"<html><head>{head}</head></html>", headers={"Link": '</header.json>; rel="ard"'})
    order = [ARD, "/header.json", "/element.json", "/agentmap.json", "/", PREDECESSOR]
    for path in order:
        if path != "/":
            acme.manifest(entry("echo", displayName=path), path=path)
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        assert [url for url, _ in await states(crawl, urn("echo"))] == [acme.url(path) for path in order]
        for path in order:
            assert await shown_name(crawl, urn("echo")) == (path if path != "/" else "page")
            if path == "/":
                acme.html("/", '<html><head><link rel="ard" href="/element.json"></head></html>')
            else:
                acme.manifest(path=path)
            await crawl.run()
        assert await crawl.identifiers() == []


# --- leads that are withdrawn -----------------------------------------------------------------------------------------


async def test_a_nested_catalog_that_its_parent_withdraws_goes_with_its_entries(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.manifest(entry("kept"), nested("/more.json"))
    acme.manifest(entry("inner"), nested("/deep.json", "deep"), path="/more.json")
    acme.manifest(entry("deep-one"), path="/deep.json")
    async with open_crawl(acme) as crawl:
        await crawl.run()
        assert await crawl.identifiers() == [urn("deep-one"), urn("inner"), urn("kept")]
        acme.manifest(entry("kept"))
        for _ in range(2):
            clock.advance(hours=1)
            await crawl.run()
        assert await crawl.identifiers() == [urn("kept")]
        assert {change.reason for change in (await crawl.changes())[-2:]} == {"catalog_withdrawn"}
        web.clear_log()
        await crawl.run()
        assert acme.requests("/more.json") == []
        assert acme.requests("/deep.json") == []

        # The publisher changes its mind.
        acme.manifest(entry("kept"), nested("/more.json"))
        await crawl.run()
        assert await crawl.identifiers() == [urn("deep-one"), urn("inner"), urn("kept")]


async def test_one_reading_without_the_pointer_is_not_enough(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(nested("/more.json"))
    acme.manifest(entry("inner"), path="/more.json")
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        acme.manifest()
        await crawl.run()
        assert await crawl.identifiers() == [urn("inner")]
        acme.page(ARD, status=500)
        await crawl.run()
        assert await crawl.identifiers() == [urn("inner")], "a failure confirms no withdrawal"
        acme.manifest(nested("/more.json"))
        await crawl.run()
        acme.manifest()
        await crawl.run()
        assert await crawl.identifiers() == [urn("inner")], "the count begins anew"
        await crawl.run()
        assert await crawl.identifiers() == []


async def test_a_catalog_that_another_parent_still_names_stays(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(nested("/more.json"))
    acme.manifest(nested("/more.json"), path=PREDECESSOR)
    acme.manifest(entry("inner"), path="/more.json")
    async with open_crawl(acme) as crawl:
        await crawl.run()
        acme.manifest()
        for _ in range(3):
            await crawl.run()
        assert await crawl.identifiers() == [urn("inner")]
        acme.manifest(path=PREDECESSOR)
        for _ in range(2):
            await crawl.run()
        assert await crawl.identifiers() == []


async def test_a_parent_that_is_gone_takes_its_nested_catalogs_along(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(entry("outer"), nested("/more.json"))
    acme.manifest(entry("inner"), path="/more.json")
    async with open_crawl(acme) as crawl:
        await crawl.run()
        acme.page(ARD, status=410)
        await crawl.run()
        assert await crawl.identifiers() == []
        assert (await crawl.changes())[-1].reason == "catalog_withdrawn"


async def test_catalogs_that_only_name_each_other_go_together(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(nested("/left.json", "left"), nested("/right.json", "right"))
    acme.manifest(entry("one"), nested("/right.json", "right"), path="/left.json")
    acme.manifest(entry("two"), nested("/left.json", "left"), path="/right.json")
    async with open_crawl(acme) as crawl:
        await crawl.run()
        await crawl.run()
        assert await crawl.identifiers() == [urn("one"), urn("two")]
        acme.manifest()
        await crawl.run()
        await crawl.run()
        assert await crawl.identifiers() == []


@pytest.mark.parametrize("path", [ARD, PREDECESSOR, "/"])
async def test_another_publishers_pointer_cannot_take_a_well_known_document_away(
    web: FakeWeb, open_crawl: OpenCrawl, path: str
) -> None:
    """A catalog that is looked at on its own account is nobody's to withdraw."""
    acme, other = web.site("acme"), web.site("other")
    if path == "/":
        script = f'<script type="application/ld+json">{json.dumps(entry("own"))}</script>'
        acme.html("/", f"<html><head>{script}</head></html>", etag='"1"')
    else:
        acme.manifest(entry("own"), path=path)
    other.manifest(nested(acme.url(path), publisher="other.example"))
    async with open_crawl(acme, other) as crawl:
        await crawl.run(other)
        await crawl.run()
        other.manifest()
        for _ in range(3):
            await crawl.run()
        assert await crawl.identifiers() == [urn("own")]
        assert "entry.removed" not in [change.kind for change in await crawl.changes()]
        assert acme.requests(path)[-1].status == 304


async def test_fr_09_a_withdrawn_agentmap_hint_keeps_the_document(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    hint = f"Agentmap: {acme.url('/x/entries.json')}\n"
    acme.robots("User-agent: *\nAllow: /\n" + hint)
    acme.manifest(entry("hinted"), path="/x/entries.json")
    async with open_crawl(acme) as crawl:
        await crawl.run()
        acme.robots("User-agent: *\nAllow: /\n")
        for _ in range(5):
            clock.advance(days=2)
            await crawl.run()
        assert [hit.identifier for hit in await crawl.search("hinted")] == [urn("hinted")]
        assert await stale_since(crawl, urn("hinted")) is None
        assert len(acme.requests("/x/entries.json")) == 6, "the known address is polled on"
        (lead,) = await crawl.leads(acme)
        assert (lead.mechanism, lead.withdrawn_at is not None) == ("agentmap", True)

        acme.page("/x/entries.json", status=410)
        await crawl.run()
        assert await crawl.identifiers() == [], "the address itself decides"


@pytest.mark.parametrize("mechanism", ["link element", "Link header"])
async def test_other_withdrawn_hints_keep_their_document_too(
    web: FakeWeb, crawl_sqlite: OpenCrawl, mechanism: str
) -> None:
    acme = web.site("acme")
    if mechanism == "link element":
        acme.html("/", '<html><head><link rel="ard" href="/x.json"></head></html>')
    else:
        acme.html("/", "<html></html>", headers={"Link": '</x.json>; rel="ard"'})
    acme.manifest(entry("hinted"), path="/x.json")
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        acme.html("/", "<html></html>")
        for _ in range(3):
            await crawl.run()
        assert await crawl.identifiers() == [urn("hinted")]
        assert len(acme.requests("/x.json")) == 4


# --- the operator's allowlist -----------------------------------------------------------------------------------------


async def test_an_origin_taken_out_of_the_settings_leaves_the_index_and_may_come_back(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme, other = web.site("acme"), web.site("other")
    acme.manifest(entry("echo"), nested("/more.json"))
    acme.manifest(entry("inner"), path="/more.json")
    other.manifest(entry("stays", "other.example"))
    async with open_crawl(acme, other) as crawl:
        await crawl.run()
        assert len(await crawl.identifiers()) == 3
    clock.advance(days=1)
    async with open_crawl(other) as crawl:
        assert await crawl.identifiers() == [urn("stays", "other.example")]
        removed = (await crawl.changes())[-2:]
        assert {(change.kind, change.reason) for change in removed} == {("entry.removed", "origin_removed")}
        web.clear_log()
        await crawl.run()
        clock.advance(days=3)
        assert [claim.origin for claim in await crawl.crew.claim(10)] == [other.origin]
        assert acme.requests() == []
    async with open_crawl(acme, other) as crawl:
        await crawl.run(acme)
        assert acme.requests(ARD)[-1].status == 304, "what is known of the document is still known"
        assert await crawl.identifiers() == [urn("echo"), urn("inner"), urn("stays", "other.example")]


async def test_what_a_pattern_admitted_goes_with_the_pattern(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    hub, leaf = web.site("hub"), web.site("leaf.corp.example")
    pattern = {"origin": f"http://*.corp.example:{web.port}"}
    hub.manifest(entry("own", "hub.example"), nested(leaf.url("/more.json"), publisher="hub.example"))
    leaf.manifest(entry("inner", "leaf.corp.example"), path="/more.json")
    inner = urn("inner", "leaf.corp.example")
    async with open_crawl(hub, pattern) as crawl:
        await crawl.run()
        assert inner in await crawl.identifiers()
    async with open_crawl(hub) as crawl:
        assert inner not in await crawl.identifiers()
        clock.advance(days=3)
        web.clear_log()
        await crawl.run()
        assert [claim.origin for claim in await crawl.crew.claim(10)] == []
        assert leaf.requests() == []
    async with open_crawl(hub, pattern) as crawl:
        assert [claim.origin for claim in await crawl.crew.claim(10)] == [hub.origin]
    clock.advance(hours=1)
    async with open_crawl(hub, pattern) as crawl:
        await crawl.run()
        assert hub.requests(ARD)[-1].status == 304
        assert inner in await crawl.identifiers()


async def test_a_lead_is_followed_once_the_operator_admits_its_target(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    """The document that holds the lead need not change for that."""
    acme, other = web.site("acme"), web.site("other")
    acme.manifest(entry("own"), nested(other.url("/more.json")))
    acme.html("/", f'<html><head><link rel="ard" href="{other.url("/hinted.json")}"></head></html>', etag='"1"')
    other.manifest(entry("inner"), path="/more.json")
    other.manifest(entry("hinted"), path="/hinted.json")
    async with open_crawl(acme) as crawl:
        await crawl.run()
        assert await crawl.identifiers() == [urn("own")]
        assert [lead.decision for lead in await crawl.leads(acme)] == ["port", "port"], "both refused"
    async with open_crawl(acme, {"origin": f"http://*.example:{web.port}"}) as crawl:
        for _ in range(2):
            for claim in await crawl.crew.claim(10):
                await crawl.crew.visit(claim)
        assert await crawl.identifiers() == [urn("hinted"), urn("inner"), urn("own")]
        assert other.requests(ARD) == [], "a pattern admits leads and suggests no probes"
        before = len(web.seen)
        assert await crawl.crew.claim(10) == []
        await crawl.crew.refresh_scope()
        assert (await crawl.crew.claim(10), len(web.seen)) == ([], before), "once is enough"


async def test_removing_an_origin_frees_the_identifiers_it_conflicted_on(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme, other = web.site("acme"), web.site("other")
    acme.manifest(entry("echo", displayName="Own"))
    other.manifest(entry("echo", displayName="Copy"))
    async with open_crawl(acme, other) as crawl:
        await crawl.run()
        assert await shown_name(crawl, urn("echo")) == "Own"
    async with open_crawl(other) as crawl:
        assert await shown_name(crawl, urn("echo")) == "Copy"
        assert await states(crawl, urn("echo")) == [(other.url(ARD), "listed")]


async def test_origins_added_by_command_are_removed_by_command(web: FakeWeb, sqlite_url: str) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"))
    status, out = await command(sqlite_url, "origins", "add", acme.origin)
    assert status == 0, out
    status, out = await command(sqlite_url, "crawl", "--json")
    assert status == 0, out
    assert json.loads(out)["entries"]["listed"] == 1
    status, out = await command(sqlite_url, "origins", "remove", acme.origin)
    assert (status, out.strip()) == (0, "1 removed, 1 entries withdrawn")
    shown = await show(sqlite_url, urn("echo"))
    assert shown["state"] == "removed"
    status, out = await command(sqlite_url, "origins", "remove", acme.origin)
    assert status == 2
    assert "not on the allowlist" in out


# --- provenance -------------------------------------------------------------------------------------------------------


async def test_show_tells_where_a_listing_comes_from(
    web: FakeWeb, open_crawl: OpenCrawl, prepared_url: str, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.robots(f"User-agent: *\nDisallow: /private\nAgentmap: {acme.url('/hint')}\n")
    acme.redirect("/hint", "/moved", status=308)
    acme.redirect("/moved", "/real.json", status=302)
    acme.manifest(entry("first"), entry("echo"), path="/real.json")
    started_at = clock.now()
    async with open_crawl(acme) as crawl:
        await crawl.run()
        first_seen_at = clock.now()
        clock.advance(hours=1)
        page = acme.manifest(entry("first"), entry("echo", description="changed"), path="/real.json")
        await crawl.run()
        changed_at = clock.now()
        clock.advance(hours=1)
        await crawl.run()
        confirmed_at = clock.now()
        row = await crawl.database.read(listing_row, urn("echo"))
        assert row is not None
        fetch = await crawl.database.read(last_fetch, row.document_id)
        assert fetch is not None
        assert (fetch.outcome, fetch.conditional, fetch.robots) == ("not_modified", True, "robots")
        entry_digest, snapshot = row.digest, row.snapshot
    shown = await show(prepared_url, urn("echo"))
    assert shown["state"] == "current"
    assert shown["entry"] == entry("echo", description="changed")
    provenance = shown["provenance"]
    assert provenance["url"] == acme.url("/hint")
    assert provenance["finalUrl"] == acme.url("/real.json")
    assert provenance["redirects"] == [[acme.url("/hint"), 308], [acme.url("/moved"), 302]]
    assert provenance["mechanism"] == "agentmap"
    assert provenance["pointer"] == "/entries/1"
    assert provenance["robots"] == "robots"
    assert provenance["digest"] == entry_digest
    assert provenance["snapshot"] == snapshot
    assert len(page.body) > 0
    times = [provenance[name] for name in ("firstSeenAt", "lastChangedAt", "lastConfirmedAt")]
    assert [datetime.fromisoformat(text) for text in times] == [first_seen_at, changed_at, confirmed_at]
    assert first_seen_at >= started_at
    assert provenance["staleSince"] is None
    assert provenance["removedAt"] is None
    assert [(source["url"], source["state"]) for source in shown["sources"]] == [(acme.url("/hint"), "listed")]


async def test_every_look_is_in_the_append_only_log(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"))
    async with crawl_sqlite(acme) as crawl:
        for _ in range(3):
            await crawl.run()

        def log(connection: Connection) -> list[tuple[str, int]]:
            query = (
                select(documents.c.url, func.count())
                .join(fetches, fetches.c.document_id == documents.c.id)
                .group_by(documents.c.url)
            )
            return sorted((url.removeprefix(acme.origin), count) for url, count in connection.execute(query))

        requested: dict[str, int] = {}
        for seen in acme.requests():
            requested[seen.path] = requested.get(seen.path, 0) + 1
        assert await crawl.database.read(log) == sorted(requested.items())
        assert requested[ARD] == 3


async def test_leads_and_changes_name_the_mechanism(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(entry("outer"), nested("/more.json"))
    acme.manifest(entry("inner"), path="/more.json")
    async with open_crawl(acme) as crawl:
        await crawl.run()

        def named(connection: Connection) -> tuple[list[Any], list[Any]]:
            return (
                [tuple(row) for row in connection.execute(select(leads.c.url, leads.c.mechanism, leads.c.decision))],
                [tuple(row) for row in connection.execute(select(changes.c.identifier, changes.c.mechanism))],
            )

        found, feed = await crawl.database.read(named)
        assert found == [(acme.url("/more.json"), "nested", "followed")]
        assert sorted(feed) == [(urn("inner"), "nested"), (urn("outer"), "well_known")]
