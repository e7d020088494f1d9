"""Field reports of kind C: revalidation against servers that compare, forget, freeze or offer nothing."""

import json
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import aiohttp
import pytest
from aiohttp import web as server
from sqlalchemy import delete, func, select

from index.api.app import ApiServer
from index.store.tables import snapshots
from tests.conftest import OpenCrawl
from tests.fakes.clock import FakeClock
from tests.fakes.harness import Crawl
from tests.fakes.history import fetch_log, notes_of, pass_time, visit_due
from tests.fakes.web import FakeWeb, Page, Seen, Site, entry, http_date

ARD = "/.well-known/ard.json"
ECHO = "urn:air:acme.example:tool:echo"
MODIFIED = "Tue, 05 May 2026 10:00:07 GMT"


def manifest(*entries: Any) -> bytes:
    return json.dumps({"entries": list(entries)}).encode()


def conditions(seen: Seen) -> dict[str, str]:
    return {name: value for name, value in seen.headers.items() if name.startswith("If-")}


async def document_of(crawl: Crawl, site: Site, path: str = ARD) -> Any:
    return (await crawl.documents(site))[path]


async def stored_bodies(crawl: Crawl) -> int:
    query = select(func.count()).select_from(snapshots)
    return await crawl.database.read(lambda connection: connection.execute(query).scalar_one())


async def visit_times(crawl: Crawl, site: Site, path: str = ARD) -> list[datetime]:
    return [row.response_at for row in await fetch_log(crawl, site.url(path))]


def dated(clock: FakeClock, **headers: str) -> dict[str, str]:
    """Head fields with the date of the fake clock, as a server with the same time would send."""
    return {"Date": http_date(clock.now()), **headers}


# --- FR-32: a tag with the suffix of a compression --------------------------------------------------------------------


def suffixed(clock: FakeClock, body: bytes, last_modified: str | None = None) -> Any:
    """A server that adds `-gzip` to the tag it sends and compares without it."""

    async def answer(request: server.Request) -> server.StreamResponse:
        sent = request.headers.get("If-None-Match")
        since = request.headers.get("If-Modified-Since")
        if sent == '"v1"' or (sent is None and since is not None and since == last_modified):
            return server.Response(status=304, headers=dated(clock))
        page = Page(body, etag='"v1-gzip"', last_modified=last_modified, gzip=True, headers=dated(clock))
        return page.answer(request.clone(headers={}))

    return answer


async def test_fr_32_a_tag_that_never_matches_is_echoed_as_it_came_and_found_out(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.handle(ARD, suffixed(clock, manifest(entry("echo"))))
    async with open_crawl(acme) as crawl:
        for _ in range(6):
            await crawl.run()
            clock.advance(hours=30)
        assert [seen.status for seen in acme.requests(ARD)] == [200] * 6
        assert [conditions(seen) for seen in acme.requests(ARD)[1:]] == [{"If-None-Match": '"v1-gzip"'}] * 5
        assert [change.kind for change in await crawl.changes()] == ["entry.added"]
        assert await notes_of(crawl, acme.url(ARD)) == ["revalidation_ineffective"]
        assert (await document_of(crawl, acme)).ineffective_streak == 5
        assert await stored_bodies(crawl) == 1


async def test_fr_32_the_interval_grows_although_every_answer_is_a_200(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.handle(ARD, suffixed(clock, manifest(entry("echo"))))
    async with crawl_sqlite(acme) as crawl:
        await pass_time(crawl, clock, days=10)
        times = await visit_times(crawl, acme)
        gaps = [later - earlier for earlier, later in pairwise(times)]
        assert gaps[0] < timedelta(hours=2)
        assert gaps == sorted(gaps)
        assert gaps[-1] == timedelta(hours=24)


async def test_fr_32_a_useless_tag_gives_way_to_the_date_alone(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock
) -> None:
    """With a tag in the request a server ignores the date (RFC 9110 13.1.3); what works once is kept to."""
    acme = web.site("acme")
    acme.handle(ARD, suffixed(clock, manifest(entry("echo")), MODIFIED))
    async with crawl_sqlite(acme) as crawl:
        for _ in range(10):
            await crawl.run()
            clock.advance(hours=2)
        assert [seen.status for seen in acme.requests(ARD)] == [200] * 4 + [304] * 6
        both = {"If-None-Match": '"v1-gzip"', "If-Modified-Since": MODIFIED}
        sent = [conditions(seen) for seen in acme.requests(ARD)]
        assert sent == [{}, both, both, both, *[{"If-Modified-Since": MODIFIED}] * 6]


async def test_fr_32_a_change_behind_a_useless_tag_is_seen_at_once_and_the_tag_gets_another_chance(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.handle(ARD, suffixed(clock, manifest(entry("echo")), MODIFIED))
    async with crawl_sqlite(acme) as crawl:
        for _ in range(5):
            await crawl.run()
            clock.advance(hours=2)
        later = "Wed, 06 May 2026 10:00:07 GMT"
        acme.page(ARD, manifest(entry("echo", version="2")), etag='"two"', last_modified=later)
        await crawl.run()
        assert [change.kind for change in await crawl.changes()] == ["entry.added", "entry.changed"]
        await crawl.run()
        assert conditions(acme.requests(ARD)[-1]) == {"If-None-Match": '"two"', "If-Modified-Since": later}
        assert acme.requests(ARD)[-1].status == 304


TAGS = ['"v1-gzip"', '"v1;br"', 'W/"v1--gzip"', '"a,b"', '"ä"', "unquoted", '"a" "b"', 'w/"v1"', '""', '"a", "b"']


@pytest.mark.parametrize("tag", TAGS)
async def test_fr_32_a_tag_is_sent_back_byte_for_byte(web: FakeWeb, crawl_sqlite: OpenCrawl, tag: str) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"), etag=tag)
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        await crawl.run()
    assert conditions(acme.requests(ARD)[1]) == {"If-None-Match": tag}
    assert acme.requests(ARD)[1].status == 304


# --- FR-33: validators that change while the body does not ------------------------------------------------------------


async def test_fr_33_validators_and_freshness_are_renewed_with_every_200(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    page = acme.page(ARD, manifest(entry("echo")), etag='"1"', headers=dated(clock, **{"Cache-Control": "max-age=600"}))
    async with open_crawl(acme) as crawl:
        await crawl.run()
        clock.advance(hours=1)
        page.etag = '"2"'
        page.headers = dated(clock, **{"Cache-Control": "max-age=7200"})
        await crawl.run()
        document = await document_of(crawl, acme)
        assert document.headers["etag"] == '"2"'
        assert document.fresh_until == clock.now() + timedelta(hours=2)
        clock.advance(hours=1)
        await crawl.run()
        sent = [conditions(seen) for seen in acme.requests(ARD)]
        assert sent == [{}, {"If-None-Match": '"1"'}, {"If-None-Match": '"2"'}]
        assert [seen.status for seen in acme.requests(ARD)] == [200, 200, 304]
        assert [change.kind for change in await crawl.changes()] == ["entry.added"]
        assert await stored_bodies(crawl) == 1


async def test_fr_33_a_200_without_validators_clears_the_stored_ones(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    page = acme.page(ARD, manifest(entry("echo")), etag='"1"', last_modified=MODIFIED)
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        page.etag = page.last_modified = None
        await crawl.run()
        await crawl.run()
    assert [sorted(conditions(seen)) for seen in acme.requests(ARD)] == [[], ["If-Modified-Since", "If-None-Match"], []]


async def test_fr_33_a_304_renews_freshness_and_the_spelling_of_the_tag(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    page = acme.page(ARD, manifest(entry("echo")), etag='"1"', headers=dated(clock))

    async def weaker(request: server.Request) -> server.StreamResponse:
        assert request.headers["If-None-Match"] in ('"1"', 'W/"1"')
        return server.Response(status=304, headers=dated(clock, ETag='W/"1"', **{"Cache-Control": "max-age=10800"}))

    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        acme.handle(ARD, weaker)
        clock.advance(hours=1)
        await crawl.run()
        document = await document_of(crawl, acme)
        assert document.fresh_until == clock.now() + timedelta(hours=3)
        assert document.confirmed_at == clock.now()
        await crawl.run()
        assert conditions(acme.requests(ARD)[-1]) == {"If-None-Match": 'W/"1"'}
    assert page.body


# --- FR-35: the date of the poller ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "modified",
    [
        MODIFIED,
        "Tuesday, 05-May-26 10:00:07 GMT",
        "Tue May  5 10:00:07 2026",
        "Tue, 5 May 2026 10:00:07 +0000",
        "tue, 05 may 2026 10:00:07 gmt",
        "2026-05-05T10:00:07Z",
        "yesterday",
    ],
)
async def test_fr_35_the_date_goes_back_exactly_as_it_came(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock, modified: str
) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"), validator=False, last_modified=modified, headers=dated(clock))
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        clock.advance(days=1)
        await crawl.run()
    assert [conditions(seen) for seen in acme.requests(ARD)] == [{}, {"If-Modified-Since": modified}]
    assert [seen.status for seen in acme.requests(ARD)] == [200, 304]


async def test_fr_35_no_date_is_made_up_where_none_was_given(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    for path in (ARD, "/robots.txt", "/"):
        acme.page(path, manifest(entry("echo")), headers=dated(clock, Expires=http_date(clock.now()), Age="5"))
    async with crawl_sqlite(acme) as crawl:
        for _ in range(3):
            await crawl.run()
            clock.advance(days=2)
    assert len(web.seen) == 12
    assert [seen for seen in web.seen if conditions(seen)] == []


# --- FR-36: a date in the future and an endless 304 -------------------------------------------------------------------


class Frozen:
    """A server that answers every condition with 304 while its content moves on."""

    def __init__(self, clock: FakeClock, **validators: str) -> None:
        self.body = manifest(entry("echo", version="1"))
        self._clock = clock
        self._validators = validators

    async def __call__(self, request: server.Request) -> server.StreamResponse:
        headers = dated(self._clock, **self._validators)
        if any(name.startswith("If-") for name in request.headers):
            return server.Response(status=304, headers=headers)
        return server.Response(body=self.body, headers=headers)


FUTURE = "Mon, 01 Jan 2046 00:00:00 GMT"


async def test_fr_36_a_date_after_the_date_of_the_answer_is_no_validator(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    frozen = Frozen(clock, **{"Last-Modified": FUTURE})
    acme.handle(ARD, frozen)
    async with open_crawl(acme) as crawl:
        await crawl.run()
        frozen.body = manifest(entry("echo", version="2"))
        clock.advance(days=1)
        await crawl.run()
        assert [conditions(seen) for seen in acme.requests(ARD)] == [{}, {}]
        assert json.loads(await crawl.entry(ECHO) or "")["version"] == "2"


async def test_fr_36_an_endless_304_is_found_out_within_the_forced_refresh(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    """A tag copied from the date freezes the copy; a look without conditions is due once a week at least."""
    acme = web.site("acme")
    frozen = Frozen(clock, **{"Last-Modified": FUTURE, "ETag": f'"{FUTURE}"'})
    acme.handle(ARD, frozen)
    async with open_crawl(acme) as crawl:
        await pass_time(crawl, clock, hours=6)
        frozen.body = manifest(entry("echo", version="2"))
        changed_at = clock.now()
        await pass_time(crawl, clock, days=8, hours=2)
        assert json.loads(await crawl.entry(ECHO) or "")["version"] == "2"
        log = await fetch_log(crawl, acme.url(ARD))
        found = next(row for row in log if "validator_lies" in row.notes)
        assert found.response_at - changed_at <= timedelta(days=8)
        assert found.conditional is False
        # From now on the validators are not believed, and further changes are seen at the next look.
        web.clear_log()
        frozen.body = manifest(entry("echo", version="3"))
        await pass_time(crawl, clock, days=2)
        assert json.loads(await crawl.entry(ECHO) or "")["version"] == "3"
        assert [seen for seen in acme.requests(ARD) if conditions(seen)] == []


async def test_fr_36_who_was_caught_lying_stays_suspected_while_it_goes_on(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock
) -> None:
    """Over weeks a document that changes daily behind a frozen tag is found stale once, not every other week."""
    acme = web.site("acme")
    frozen = Frozen(clock, ETag='"frozen"')
    acme.handle(ARD, frozen)
    async with crawl_sqlite(acme, crawl={"min_interval": "11h"}) as crawl:
        await crawl.run()
        stale = []
        for day in range(20):
            frozen.body = manifest(entry("echo", version=f"day {day}"))
            await pass_time(crawl, clock, days=1)
            stale.append(json.loads(await crawl.entry(ECHO) or "")["version"] != f"day {day}")
        assert 1 <= stale.index(False) <= 8
        assert True not in stale[stale.index(False) :]


async def test_fr_36_many_304s_in_a_row_bring_a_whole_fetch_before_the_week_is_over(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"))
    often = {"origin": acme.origin, "min_interval": "1h", "max_interval": "1h"}
    async with crawl_sqlite(often, crawl={"unconditional_every": 5}) as crawl:
        await pass_time(crawl, clock, hours=20)
        statuses = [seen.status for seen in acme.requests(ARD)]
        assert statuses[:13] == [200, *[304] * 5] * 2 + [200]


async def test_fr_36_an_honest_document_is_fetched_whole_once_a_week_and_never_suspected(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"))
    async with crawl_sqlite(acme) as crawl:
        await pass_time(crawl, clock, days=22)
        log = await fetch_log(crawl, acme.url(ARD))
        whole = [row.response_at for row in log if row.outcome == "fetched"]
        assert 3 <= len(whole) <= 4
        assert all(later - earlier <= timedelta(days=8) for earlier, later in pairwise(whole))
        assert [note for row in log for note in row.notes] == []
        assert [change.kind for change in await crawl.changes()] == ["entry.added"]


# --- FR-37: a 304 that cannot be true ---------------------------------------------------------------------------------


class Refusing304:
    """A server that answers so many requests with 304, whatever they asked."""

    def __init__(self, page: Page, times: int) -> None:
        self._page = page
        self.times = times

    async def __call__(self, request: server.Request) -> server.StreamResponse:
        if self.times > 0:
            self.times -= 1
            return server.Response(status=304, headers={"ETag": '"lost"'})
        return self._page.answer(request)


@pytest.mark.parametrize("path", [ARD, "/", "/robots.txt"])
async def test_fr_37_a_304_to_a_first_request_is_asked_again_without_caches(
    web: FakeWeb, open_crawl: OpenCrawl, path: str
) -> None:
    acme = web.site("acme")
    bodies = {
        ARD: manifest(entry("echo")),
        "/": b'<link rel="ard" href="/.well-known/ard.json">',
        "/robots.txt": b"User-agent: *\nAllow: /\n",
    }
    for name, body in bodies.items():
        acme.page(name, body, headers={"Content-Type": "text/html"} if name == "/" else {})
    page = acme.pages[path]
    assert isinstance(page, Page)
    acme.handle(path, Refusing304(page, 1))
    async with open_crawl(acme) as crawl:
        await crawl.run()
        document = await document_of(crawl, acme, path)
        assert document.outcome == "fetched"
        assert document.length == len(bodies[path])
        first, second = acme.requests(path)
        assert (conditions(first), first.headers.get("Cache-Control")) == ({}, None)
        assert (conditions(second), second.headers.get("Cache-Control")) == ({}, "no-cache")
        assert await crawl.identifiers() == [ECHO]


@pytest.mark.parametrize("path", [ARD, "/", "/robots.txt"])
async def test_fr_37_a_304_for_ever_is_an_error_and_nothing_is_stored(
    web: FakeWeb, crawl_sqlite: OpenCrawl, path: str
) -> None:
    acme = web.site("acme")
    acme.handle(path, Refusing304(Page(), 1000))
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        document = await document_of(crawl, acme, path)
        assert (document.outcome, document.reason) == ("unreachable", "protocol_error")
        assert (document.digest, document.fetched_at, document.confirmed_at) == (None, None, None)
        assert await stored_bodies(crawl) == 0
        assert len(acme.requests(path)) == 2
        assert (len(acme.requests(ARD)) == 0) == (path == "/robots.txt"), "an unreadable robots.txt forbids the rest"


async def test_fr_37_a_304_never_replaces_a_good_document(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"), validator=False)
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        acme.handle(ARD, Refusing304(Page(), 1000))
        await crawl.run()
        document = await document_of(crawl, acme)
        assert (document.outcome, document.reason) == ("unreachable", "protocol_error")
        assert document.digest is not None
        assert await crawl.identifiers() == [ECHO]


async def test_fr_37_without_the_stored_body_no_validators_are_sent(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"), last_modified=MODIFIED)
    acme.robots("User-agent: *\nAllow: /\n", etag='"r"')
    async with open_crawl(acme) as crawl:
        await crawl.run()
        await crawl.database.write(lambda connection: connection.execute(delete(snapshots)))
        web.clear_log()
        await crawl.run()
        assert [conditions(seen) for seen in (*acme.requests(ARD), *acme.requests("/robots.txt"))] == [{}, {}]
        assert await stored_bodies(crawl) == 2
        assert [change.kind for change in await crawl.changes()] == ["entry.added"]
        await crawl.run()
        assert acme.requests(ARD)[-1].status == 304


@pytest.mark.parametrize("headers", [{"ETag": '"other"'}, {"ETag": 'W/"other"'}], ids=["strong", "weak"])
async def test_fr_37_a_304_with_another_tag_is_not_believed(
    web: FakeWeb, crawl_sqlite: OpenCrawl, headers: dict[str, str]
) -> None:
    """It confirms a copy that we do not have (RFC 9111 4.3.4)."""
    acme = web.site("acme")
    acme.manifest(entry("echo"), etag='"mine"')

    async def confused(request: server.Request) -> server.StreamResponse:
        if conditions(Seen("", "GET", "", dict(request.headers))):
            return server.Response(status=304, headers=headers)
        return Page(manifest(entry("echo", version="2")), etag='"other"').answer(request)

    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        acme.handle(ARD, confused)
        await crawl.run()
        assert json.loads(await crawl.entry(ECHO) or "")["version"] == "2"
        assert [conditions(seen) for seen in acme.requests(ARD)] == [{}, {"If-None-Match": '"mine"'}, {}]


async def test_fr_37_a_304_of_one_redirect_target_does_not_confirm_the_body_of_another(
    web: FakeWeb, crawl_sqlite: OpenCrawl
) -> None:
    """Both versions carry the same poor tag; validators belong to the address that gave them."""
    acme = web.site("acme")
    for version in ("1", "2"):
        acme.manifest(entry("echo", version=version), path=f"/v{version}/ard.json", etag='"0"')
    acme.redirect(ARD, "/v1/ard.json")
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        acme.redirect(ARD, "/v2/ard.json")
        await crawl.run()
        assert json.loads(await crawl.entry(ECHO) or "")["version"] == "2"
        web.clear_log()
        await crawl.run()
        assert [seen.status for seen in acme.requests("/v2/ard.json")] == [304]


@pytest.mark.parametrize("status", [412, 428])
async def test_fr_37_conditions_that_a_server_rejects_are_left_out(
    web: FakeWeb, crawl_sqlite: OpenCrawl, status: int
) -> None:
    acme = web.site("acme")
    page = acme.manifest(entry("echo"))

    async def strict(request: server.Request) -> server.StreamResponse:
        if "If-None-Match" in request.headers:
            return server.Response(status=status)
        return page.answer(request)

    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        acme.handle(ARD, strict)
        await crawl.run()
        assert [seen.status for seen in acme.requests(ARD)] == [200, status, 200]
        assert (await document_of(crawl, acme)).failing_since is None


# --- FR-39: no validators at all --------------------------------------------------------------------------------------


async def test_fr_39_a_document_without_validators_is_compared_by_its_digest(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"), validator=False)
    async with open_crawl(acme) as crawl:
        for _ in range(5):
            await crawl.run()
            clock.advance(days=1)
        assert len(acme.requests(ARD)) == 5
        assert [seen for seen in web.seen if conditions(seen)] == []
        assert [change.kind for change in await crawl.changes()] == ["entry.added"]
        assert await stored_bodies(crawl) == 1
        assert crawl.summaries[-1].as_json()["entries"] == {"listed": 0, "rejected": 0, "unchanged": 1}


@pytest.mark.parametrize(("ceiling_h", "days"), [(24, 12), (6, 5)])
async def test_fr_39_the_interval_grows_to_its_ceiling_and_stays_there(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock, ceiling_h: int, days: int
) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"), validator=False)
    async with crawl_sqlite(acme, crawl={"max_interval": f"{ceiling_h}h"}) as crawl:
        await pass_time(crawl, clock, days=days)
        times = await visit_times(crawl, acme)
        gaps = [later - earlier for earlier, later in pairwise(times)]
        ceiling = timedelta(hours=ceiling_h)
        assert gaps[0] == timedelta(hours=1), "an hour is assumed where nothing is stated"
        assert gaps == sorted(gaps)
        assert max(gaps) == ceiling
        assert gaps[9:] == [ceiling] * len(gaps[9:])
        assert len(gaps) > 14


async def test_fr_39_a_change_shortens_the_interval_again(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"), validator=False)
    async with crawl_sqlite(acme) as crawl:
        await pass_time(crawl, clock, days=10)
        acme.manifest(entry("echo", version="2"), validator=False)
        await pass_time(crawl, clock, days=2)
        times = await visit_times(crawl, acme)
        changed_at = (await document_of(crawl, acme)).changed_at
        after = [time for time in times if time > changed_at]
        assert after[0] - changed_at == timedelta(hours=12)


@pytest.mark.parametrize(
    ("caching", "shortest", "longest"),
    [
        ({"Cache-Control": "max-age=0"}, timedelta(minutes=5), timedelta(hours=24)),
        ({"Cache-Control": "no-store"}, timedelta(minutes=5), timedelta(hours=24)),
        ({"Expires": "0"}, timedelta(minutes=5), timedelta(hours=24)),
        ({"Cache-Control": "max-age=43200"}, timedelta(hours=12), timedelta(hours=24)),
        ({"Cache-Control": "max-age=31536000"}, timedelta(hours=24), timedelta(hours=24)),
        ({"Cache-Control": "max-age=999999999999999999999"}, timedelta(hours=24), timedelta(hours=24)),
        ({"Expires": "Fri, 31 Dec 9999 23:59:59 GMT", "Age": "0"}, timedelta(hours=24), timedelta(hours=24)),
        (
            {"Cache-Control": "stale-if-error=99999999999", "Expires": "Fri, 31 Dec 9999 23:59:59 GMT"},
            timedelta(hours=24),
            timedelta(hours=24),
        ),
        ({"Cache-Control": "max-age=60", "Age": "999999999999"}, timedelta(minutes=5), timedelta(hours=24)),
    ],
)
async def test_fr_39_a_stated_freshness_is_a_floor_within_our_own_bounds(
    web: FakeWeb,
    crawl_sqlite: OpenCrawl,
    clock: FakeClock,
    caching: dict[str, str],
    shortest: timedelta,
    longest: timedelta,
) -> None:
    """Neither `max-age=0` makes us hammer, nor a year of it makes us blind."""

    async def page(request: server.Request) -> server.StreamResponse:
        return Page(manifest(entry("echo")), headers=dated(clock, **caching)).answer(request)

    acme = web.site("acme")
    acme.handle(ARD, page)
    async with crawl_sqlite(acme) as crawl:
        await pass_time(crawl, clock, days=6)
        times = await visit_times(crawl, acme)
        gaps = [later - earlier for earlier, later in pairwise(times)]
        assert shortest <= min(gaps)
        assert max(gaps) <= longest


# --- FR-40: our own answers to conditions -----------------------------------------------------------------------------


async def test_fr_40_our_api_compares_tags_as_lists_and_weakly(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"))
    async with open_crawl(acme, api={"listen": "127.0.0.1:0"}) as crawl:
        await crawl.run()
        async with ApiServer(crawl.settings, crawl.database) as api, aiohttp.ClientSession() as session:
            for path in (f"agents/{ECHO}", "agents"):
                url = f"http://{api.address}/api/v1/{path}"
                async with session.get(url) as plain:
                    etag = plain.headers["ETag"]
                    assert plain.status == 200
                    assert not etag.startswith("W/")
                for sent in (etag, f'"zzz", W/{etag}', f'W/"a",{etag} , "b"', "*", f"W/{etag}"):
                    async with session.get(url, headers={"If-None-Match": sent}) as same:
                        assert same.status == 304, sent
                        assert await same.read() == b""
                        for name in ("ETag", "Cache-Control", "Vary"):
                            assert same.headers[name] == plain.headers[name]
                for sent in ('"zzz"', 'W/"zzz", "yyy"', etag.strip('"'), f'"{etag[1:-2]}"', ""):
                    async with session.get(url, headers={"If-None-Match": sent}) as other:
                        assert other.status == 200, sent
            async with session.get(f"http://{api.address}/api/v1/agents/urn:air:acme.example:tool:none") as unknown:
                assert unknown.status == 404
                assert (await unknown.json())["errorCode"] == "NOT_FOUND"
                assert unknown.headers["Cache-Control"] == "no-cache"


# --- FR-42: different entries for different callers -------------------------------------------------------------------


async def test_fr_42_the_public_view_alone_is_crawled_even_of_a_peer(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")

    async def by_caller(request: server.Request) -> server.StreamResponse:
        entries = [entry("echo")]
        if {"Authorization", "Cookie"} & set(request.headers) or request.url.user:
            entries.append(entry("private"))
        headers = {"Vary": "Authorization", "Cache-Control": "public, max-age=60"}
        return server.json_response({"entries": entries}, headers=headers)

    acme.handle(ARD, by_caller)
    peer = {"url": acme.url("/api/v1/"), "roles": ["search", "refer", "mirror"]}
    async with open_crawl(acme, peers=[peer]) as crawl:
        for _ in range(2):
            await crawl.run()
        assert await crawl.identifiers() == [ECHO]
        assert [seen.headers.get("Authorization") for seen in acme.requests()] == [None] * len(acme.requests())
        assert [hit.identifier for hit in await crawl.search("private")] == []


async def test_fr_42_what_varies_with_everything_is_never_revalidated(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"), headers={"Vary": "Accept-Encoding, *"})
    async with crawl_sqlite(acme) as crawl:
        for _ in range(3):
            await crawl.run()
    assert [conditions(seen) for seen in acme.requests(ARD)] == [{}, {}, {}]


async def test_fr_42_a_private_answer_is_read_and_not_served_to_others(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    page = acme.manifest(entry("echo"), headers={"Cache-Control": "private, max-age=60"})
    async with open_crawl(acme) as crawl:
        await crawl.run()
        assert await crawl.identifiers() == []
        [row] = await crawl.not_listed(acme)
        assert [problem["code"] for problem in row.problems] == ["entry.private"]
        # The same bytes without the directive are for everybody, and the other way round.
        page.headers["Cache-Control"] = "max-age=60"
        await crawl.run()
        assert await crawl.identifiers() == [ECHO]
        page.headers["Cache-Control"] = "private"
        await crawl.run()
        assert await crawl.identifiers() == []


async def test_private_answers_are_listed_where_the_operator_says_so(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"), headers={"Cache-Control": "private"})
    async with crawl_sqlite(acme, crawl={"list_private": True}) as crawl:
        await crawl.run()
        assert await crawl.identifiers() == [ECHO]


async def test_what_may_not_be_stored_leaves_no_snapshot(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"), headers={"Cache-Control": "no-store"})
    async with open_crawl(acme) as crawl:
        first = await crawl.run()
        second = await crawl.run()
        assert await crawl.identifiers() == [ECHO]
        assert (first.tally.snapshots, second.tally.snapshots) == (0, 0)
        assert second.tally.changes == 0
        # Without a body there is nothing that a 304 could confirm.
        assert [conditions(seen) for seen in acme.requests(ARD)] == [{}, {}]


async def test_only_what_is_due_is_asked_for(web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"))
    async with crawl_sqlite(acme) as crawl:
        assert await visit_due(crawl) == 1
        web.clear_log()
        clock.advance(minutes=59)
        assert await visit_due(crawl) == 0
        clock.advance(minutes=2)
        assert await visit_due(crawl) == 1
        assert [seen.path for seen in web.seen if seen.status == 304] == [ARD]
