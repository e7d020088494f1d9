"""Field reports of kind D: robots.txt, politeness, and when an origin is visited again."""

import asyncio
import random
from collections import Counter
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from aiohttp import web as server
from sqlalchemy import Connection, select

from index.store.frontier import next_due_at
from index.store.inspect import origin_row
from index.store.tables import documents, fetches, origins
from tests.conftest import OpenCrawl
from tests.fakes.cards import agent_card, agent_entry
from tests.fakes.clock import FakeClock
from tests.fakes.harness import Crawl
from tests.fakes.history import fetch_log, pass_time, visit_due
from tests.fakes.web import FakeWeb, RawServer, Site, entry, http_date, read_request

ARD = "/.well-known/ard.json"
PREDECESSOR = "/.well-known/ai-catalog.json"
ROBOTS = "/robots.txt"
ECHO = "urn:air:acme.example:tool:echo"


def paths(site: Site) -> list[str]:
    """What was asked of a site, in order."""
    return [seen.path for seen in site.requests()]


async def reasons(crawl: Crawl, site: Site) -> dict[str, tuple[str, str]]:
    """Outcome and reason of each document but robots.txt."""
    found = await crawl.documents(site)
    return {path: (row.outcome, row.reason) for path, row in found.items() if path != ROBOTS}


async def request_times(crawl: Crawl, site: Site) -> list[datetime]:
    """When the documents of a site were asked for."""

    def times(connection: Connection) -> list[datetime]:
        mine = select(fetches.c.request_at, fetches.c.status).join(documents, documents.c.id == fetches.c.document_id)
        rows = connection.execute(mine.where(documents.c.url.startswith(site.origin + "/")))
        return sorted(row.request_at for row in rows if row.status is not None)

    return await crawl.database.read(times)


# --- FR-44: robots.txt fails ------------------------------------------------------------------------------------------


async def _reset(request: server.Request) -> server.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return server.Response()


@pytest.mark.parametrize("fault", [503, 500, 502, 504, 429, 507, "reset"])
async def test_fr_44_robots_txt_that_fails_forbids_everything_for_now(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock, fault: int | str
) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"))
    if isinstance(fault, int):
        acme.robots("User-agent: *\nAllow: /\n", status=fault)
    else:
        acme.handle(ROBOTS, _reset)
    async with crawl_sqlite(acme) as crawl:
        summary = await crawl.run()
        assert set(paths(acme)) == {ROBOTS}
        assert set((await reasons(crawl, acme)).values()) == {("disallowed", "robots_unreachable")}
        assert summary.as_json()["origins"]["robotsUnreachable"] == 1
        row = await crawl.database.read(origin_row, acme.origin)
        assert row is not None
        assert row.robots == "robots_unreachable"

        acme.robots("User-agent: *\nAllow: /\n")
        await pass_time(crawl, clock, minutes=10)
        assert ARD in paths(acme), "the failure is not remembered for long"
        assert await crawl.identifiers() == [ECHO]


async def test_fr_44_the_last_good_copy_stays_in_force_for_thirty_days(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.robots(f"User-agent: *\nDisallow: {PREDECESSOR}\n")
    acme.manifest(entry("echo"))
    async with open_crawl(acme) as crawl:
        await crawl.run()
        acme.robots("<html>oops</html>", status=503)
        for day in (1, 10, 29):
            web.clear_log()
            clock.advance(days=1 if day == 1 else day / 2)
            await crawl.run()
            assert ARD in paths(acme), f"day {day}"
            assert PREDECESSOR not in paths(acme)
            row = await crawl.database.read(origin_row, acme.origin)
            assert row is not None
            assert row.robots == "robots_copy"
        clock.advance(days=31)
        web.clear_log()
        await crawl.run()
        assert paths(acme) == [ROBOTS]
        assert await crawl.identifiers() == [ECHO], "nothing is removed on that account"


# --- FR-45: robots.txt is missing or elsewhere ------------------------------------------------------------------------


@pytest.mark.parametrize("status", [404, 410, 401, 403, 400, 418])
async def test_fr_45_robots_txt_that_is_not_there_forbids_nothing(
    web: FakeWeb, crawl_sqlite: OpenCrawl, status: int
) -> None:
    acme = web.site("acme")
    acme.robots("User-agent: *\nDisallow: /\n", status=status)
    acme.manifest(entry("echo"))
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        assert await crawl.identifiers() == [ECHO]


async def test_fr_45_rules_behind_a_redirect_hold_for_the_host_that_redirects(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme, static = web.site("acme"), web.site("static")
    acme.redirect(ROBOTS, static.url("/r.txt"), status=301)
    static.page("/r.txt", "User-agent: *\nDisallow: /.well-known/\n", headers={"Content-Type": "text/plain"})
    acme.manifest(entry("echo"))
    static.manifest(entry("echo"))
    async with open_crawl(acme, static) as crawl:
        await crawl.run()
        assert paths(acme) == [ROBOTS, "/"]
        assert ARD in paths(static), "the file is not the one of the host that keeps it"
        assert (await reasons(crawl, acme))[ARD] == ("disallowed", "robots")


@pytest.mark.parametrize(("hops", "obeyed"), [(1, True), (5, True), (6, False), (0, False)])
async def test_fr_45_five_redirects_are_followed_and_more_count_as_missing(
    web: FakeWeb, crawl_sqlite: OpenCrawl, hops: int, obeyed: bool
) -> None:
    acme = web.site("acme")
    acme.redirect(ROBOTS, "/r1" if hops else ROBOTS)
    for hop in range(1, hops):
        acme.redirect(f"/r{hop}", f"/r{hop + 1}")
    if hops:
        acme.page(f"/r{hops}", "User-agent: *\nDisallow: /\n", headers={"Content-Type": "text/plain"})
    acme.manifest(entry("echo"))
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        assert (ARD not in paths(acme)) is obeyed


# --- FR-47, FR-48: how the file is read -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"\xef\xbb\xbfUser-agent: *\nDisallow: /\n",
        b"\xef\xbb\xbfuser-agent: ardvark\r\ndisallow: /\r\n",
        b"\xef\xbb\xbf# comment\n\nUSER-AGENT:*\nDisallow:/",
        b"\xff\xfe garbage \x00\nUser-agent: *\nDisallow: /\n",
        b"User-agent: *\rDisallow: /\r",
    ],
)
async def test_fr_47_a_byte_order_mark_hides_no_group(web: FakeWeb, crawl_sqlite: OpenCrawl, body: bytes) -> None:
    acme = web.site("acme")
    acme.robots(body)
    acme.manifest(entry("echo"))
    acme.html("/", "<html></html>")
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        assert paths(acme) == [ROBOTS]


async def test_fr_48_groups_merge_blank_lines_end_nothing_and_the_longest_rule_wins(
    web: FakeWeb, crawl_sqlite: OpenCrawl
) -> None:
    acme = web.site("acme")
    acme.robots(
        f"User-agent: *\n\nUser-agent: Ardvark\nDisallow: /\nAllow: {ARD}\n\n"
        f"User-agent: ARDVARK\nDisallow: {PREDECESSOR}\nAllow: /*.catalog$\n"
        f"Agentmap: {acme.url('/x.catalog')}\nAgentmap: {acme.url('/x.catalog?y')}\n"
    )
    acme.manifest(entry("echo"))
    acme.manifest(entry("mapped"), path="/x.catalog")
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        assert paths(acme) == [ROBOTS, ARD, "/x.catalog"]
        assert (await reasons(crawl, acme))["/x.catalog?y"] == ("disallowed", "robots")


@pytest.mark.parametrize(
    ("rules", "allowed"),
    [
        (f"Disallow: {ARD}\nAllow: {ARD}", True),
        (f"Allow: /.well-known/\nDisallow: {ARD}", False),
        ("Disallow:", True),
        ("Disallow: /*.json$", False),
        ("Disallow: /*.jso$", True),
        ("Disallow: /.WELL-KNOWN/", True),
        ("Disallow: /%2Ewell-known/", False),
    ],
)
async def test_fr_48_allow_wins_ties_and_wildcards_work(
    web: FakeWeb, crawl_sqlite: OpenCrawl, rules: str, allowed: bool
) -> None:
    acme = web.site("acme")
    acme.robots(f"User-agent: ardvark\n{rules}\nUser-agent: *\nDisallow: /\n")
    acme.manifest(entry("echo"))
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        assert (await crawl.identifiers() == [ECHO]) is allowed


async def test_fr_48_a_group_for_somebody_else_is_not_ours(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.robots("User-agent: ardvarkish\nUser-agent: aardvark\nDisallow: /\n")
    acme.manifest(entry("echo"))
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        assert await crawl.identifiers() == [ECHO]


# --- FR-50, FR-51: how fast, and when to stop asking ------------------------------------------------------------------


async def test_fr_50_a_crawl_delay_makes_us_slower_and_never_faster_and_holds_nobody_else_up(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    delays = {"tiny": "0.001", "fraction": "1.5", "hour": "3600", "soon": "soon", "none": ""}
    sites = {name: web.site(name) for name in delays}
    for name, delay in delays.items():
        sites[name].robots(f"User-agent: *\nAllow: /\n{f'Crawl-delay: {delay}' if delay else ''}\n")
        sites[name].manifest(entry("echo", sites[name].host))
        sites[name].manifest(path=PREDECESSOR)
        sites[name].html("/", "<html></html>")
    began = clock.now()
    async with open_crawl(*sites.values(), politeness={"min_delay": "1s"}) as crawl:
        await visit_due(crawl)
        assert clock.now() - began < timedelta(minutes=1), "nobody waits for the hour of one of them"
        gaps = {}
        for name, site in sites.items():
            times = await request_times(crawl, site)
            # The first pause, after robots.txt, is our own: its wish was not known when it was asked for.
            gaps[name] = [(after - before).total_seconds() for before, after in pairwise(times)][1:]
        assert gaps["tiny"] == gaps["soon"] == gaps["none"] == pytest.approx([1, 1], abs=0.01)
        assert gaps["fraction"] == pytest.approx([2, 2], abs=0.01)
        assert gaps["hour"] == []
        problems = (await crawl.documents(sites["soon"]))[ROBOTS].problems
        assert [problem["code"] for problem in problems] == ["robots.crawl_delay"]

        await pass_time(crawl, clock, hours=3, minutes=30)
        hour = [seen for seen in paths(sites["hour"]) if seen != ROBOTS]
        assert set(hour) == {ARD, PREDECESSOR, "/"}
        times = await request_times(crawl, sites["hour"])
        assert all(after - before >= timedelta(hours=1) for before, after in pairwise(times[1:]))
        assert len(times) >= 4, "the few requests are spread over time, and made"


async def test_fr_50_a_delay_past_the_ceiling_becomes_the_ceiling(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.robots("User-agent: *\nAllow: /\nCrawl-delay: 999999999999\n")
    acme.manifest(entry("echo"))
    async with crawl_sqlite(acme, politeness={"max_delay": "2h"}) as crawl:
        await pass_time(crawl, clock, hours=9)
        times = await request_times(crawl, acme)
        assert all(after - before >= timedelta(hours=2) for before, after in pairwise(times[1:]))
        assert {ARD, PREDECESSOR, "/"} <= set(paths(acme))
        problems = (await crawl.documents(acme))[ROBOTS].problems
        assert [problem["code"] for problem in problems] == ["robots.crawl_delay_ceiling"], "and we say so"


RETRY_AFTERS: dict[str, tuple[dict[str, Any], float, float]] = {
    # name: header fields as seconds from now, the least and the most pause that follows
    "a date": ({"Retry-After": 90}, 90, 700),
    "a date against a clock that is wrong": ({"Date": 3600, "Retry-After": 3690}, 90, 700),
    "seconds": ({"Retry-After": "7200"}, 7200, 9000),
    "seconds of a week": ({"Retry-After": "604800"}, 86_400, 90_000),
    "a number past all bounds": ({"Retry-After": "9" * 40}, 86_400, 90_000),
    "a date that is past": ({"Retry-After": -90}, 0, 700),
    "zero": ({"Retry-After": "0"}, 0, 700),
    "nonsense": ({"Retry-After": "soon"}, 0, 700),
    "a negative number": ({"Retry-After": "-5"}, 0, 700),
    "nothing": ({}, 0, 700),
}


@pytest.mark.parametrize("status", [503, 429])
@pytest.mark.parametrize("name", RETRY_AFTERS)
async def test_fr_51_retry_after_is_heard_in_every_form_and_for_the_whole_host(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock, name: str, status: int
) -> None:
    fields, least, most = RETRY_AFTERS[name]
    headers = {
        field: value if isinstance(value, str) else http_date(clock.now() + timedelta(seconds=value))
        for field, value in fields.items()
    }
    acme = web.site("acme")
    acme.robots("User-agent: *\nAllow: /\n")
    acme.page(ARD, status=status, headers=headers)
    acme.manifest(entry("echo"), path=PREDECESSOR)
    async with crawl_sqlite(acme) as crawl:
        await visit_due(crawl)
        asked = len(acme.requests())
        if least:
            assert paths(acme) == [ROBOTS, ARD], "nothing else is asked of the host either"
            await pass_time(crawl, clock, seconds=least - 1)
            assert len(acme.requests()) == asked
        acme.manifest(entry("echo"))
        await pass_time(crawl, clock, seconds=most - least + 1)
        assert ARD in paths(acme)[asked:]
        assert await crawl.identifiers() == [ECHO]


@pytest.mark.parametrize("status", [503, 429])
async def test_fr_51_retry_after_of_robots_txt_counts_too(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock, status: int
) -> None:
    acme = web.site("acme")
    acme.robots("busy", status=status, headers={"Retry-After": "3600"})
    acme.manifest(entry("echo"))
    async with open_crawl(acme) as crawl:
        await visit_due(crawl)
        acme.robots("User-agent: *\nAllow: /\n")
        await pass_time(crawl, clock, seconds=3590)
        assert paths(acme) == [ROBOTS]
        await pass_time(crawl, clock, minutes=10)
        assert await crawl.identifiers() == [ECHO]


async def test_fr_51_retry_after_of_an_artifact_host_is_for_that_host_and_not_for_the_publisher(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme, cards = web.site("acme"), web.site("cards")
    number = 5
    acme.manifest(*(agent_entry(f"a{item}", url=cards.url(f"/{item}.json")) for item in range(number)))
    for item in range(number):
        cards.page(f"/{item}.json", status=503, headers={"Retry-After": "7200"})
    origin = {"origin": acme.origin, "surfaces": ["ard", "a2a"], "artifact_hosts": [f"{cards.host}:{web.port}"]}
    async with open_crawl(origin, crawl={"min_interval": "5m", "max_interval": "30m"}) as crawl:
        await visit_due(crawl)
        assert paths(cards) == [ROBOTS, "/0.json"]
        found = await crawl.documents(acme)
        looked_at = [(row.outcome, row.reason) for url, row in found.items() if url.startswith(cards.origin)]
        assert Counter(looked_at) == {("unreachable", "http_503"): 1, ("unreachable", "host_rests"): number - 1}
        assert found[ARD].outcome == "fetched"

        for item in range(number):
            cards.json(f"/{item}.json", agent_card(f"A{item}"))
        await pass_time(crawl, clock, seconds=7190)
        assert paths(cards) == [ROBOTS, "/0.json"], "none of its documents is asked for sooner"
        assert len(acme.requests(ARD)) > 2, "the publisher is visited as ever"
        await pass_time(crawl, clock, minutes=90)
        assert set(paths(cards)[2:]) >= {f"/{item}.json" for item in range(number)}


async def test_fr_51_what_a_host_asked_one_visit_is_heeded_by_the_next_and_through_redirects(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme, other, cards = web.site("acme"), web.site("other"), web.site("cards")
    cards.page("/0.json", status=429, headers={"Retry-After": "7200"})
    acme.manifest(agent_entry("a0", url=cards.url("/0.json")))
    surfaces, hosts = ["ard", "a2a"], [f"{cards.host}:{web.port}"]
    listed = [{"origin": site.origin, "surfaces": surfaces, "artifact_hosts": hosts} for site in (acme, other)]
    async with open_crawl(*listed) as crawl:
        await crawl.run(acme)
        assert paths(cards) == [ROBOTS, "/0.json"]
        for item in range(3):
            other.redirect(f"/{item}.json", cards.url(f"/{item + 1}.json"))
        other.manifest(*(agent_entry(f"b{item}", f"/{item}.json", other.host) for item in range(3)))
        await crawl.run(other)
        assert paths(cards) == [ROBOTS, "/0.json"], "other publishers leave it alone as well"
        found = await reasons(crawl, other)
        assert {found[f"/{item}.json"] for item in range(3)} == {("unreachable", "host_rests")}

        for item in range(4):
            cards.json(f"/{item}.json", agent_card())
        await pass_time(crawl, clock, hours=4)
        assert set(paths(cards)[2:]) >= {f"/{item}.json" for item in range(4)}


async def test_fr_51_a_rest_that_is_over_at_once_holds_nobody_up(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme, cards = web.site("acme"), web.site("cards")
    cards.page("/0.json", status=503, headers={"Retry-After": "0"})
    cards.json("/1.json", agent_card())
    acme.manifest(*(agent_entry(f"a{item}", url=cards.url(f"/{item}.json")) for item in range(2)))
    origin = {"origin": acme.origin, "surfaces": ["ard", "a2a"], "artifact_hosts": [f"{cards.host}:{web.port}"]}
    async with crawl_sqlite(origin) as crawl:
        await crawl.run()
        assert paths(cards) == [ROBOTS, "/0.json", "/1.json"]


@pytest.mark.parametrize(("stated", "waited"), [("3", 3), ("86400", 10), ("soon", 0)])
async def test_fr_51_a_redirect_is_followed_after_the_wait_it_asks_for_as_far_as_a_visit_can_wait(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock, stated: str, waited: int
) -> None:
    acme = web.site("acme")
    acme.page(ARD, status=307, headers={"Location": "/moved.json", "Retry-After": stated})
    acme.manifest(entry("echo"), path="/moved.json")
    async with crawl_sqlite(acme) as crawl:
        began = clock.now()
        await crawl.run()
        assert await crawl.identifiers() == [ECHO]
        assert (clock.now() - began).total_seconds() == waited


async def test_fr_51_a_crawl_by_command_is_as_patient_as_the_daemon(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme, other = web.site("acme"), web.site("other")
    acme.page(ARD, status=503, headers={"Retry-After": "90"})
    other.manifest(entry("other", "other.example"))
    async with open_crawl(acme, other) as crawl:
        await crawl.run()
        asked = len(acme.requests())
        clock.advance(seconds=60)
        summary = await crawl.run()
        assert len(acme.requests()) == asked
        assert other.requests(ARD)[-1].status == 304, "the others are crawled all the same"
        assert summary.as_json()["origins"]["postponed"] == 1
        assert summary.as_json()["origins"]["visited"] == 1
        clock.advance(seconds=31)
        summary = await crawl.run()
        assert len(acme.requests()) > asked
        assert summary.as_json()["origins"]["postponed"] == 0


# --- FR-53, FR-54: restarts and origins that hang ---------------------------------------------------------------------


class ChancyClock(FakeClock):
    """A clock whose chance is one."""

    def __init__(self) -> None:
        super().__init__()
        self._dice = random.Random(7)

    def chance(self) -> float:
        return self._dice.random()


@pytest.fixture
def clock(request: pytest.FixtureRequest) -> FakeClock:
    return ChancyClock() if "fr_53" in request.node.name else FakeClock()


async def test_fr_53_after_a_pause_every_source_is_visited_once_and_out_of_step(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    sites = [web.site(f"s{number}") for number in range(24)]
    for site in sites:
        site.manifest(entry("one", site.host))
    often = {"visits": 8, "min_interval": "60s", "max_interval": "90s", "default_freshness": "60s"}
    async with open_crawl(*sites, crawl=often) as crawl:
        await crawl.run()
    clock.advance(minutes=10)
    web.clear_log()
    async with open_crawl(*sites, crawl=often) as crawl:
        assert web.seen == [], "starting is no visit"
        began = clock.now()
        claimed = []
        while claims := await crawl.crew.claim(8):
            claimed.append(len(claims))
            await asyncio.gather(*(crawl.crew.visit(claim) for claim in claims))
        assert claimed == [8, 8, 8], "never more than there is room for"
        assert Counter(seen.host for seen in web.seen if seen.path == ARD) == {site.host: 1 for site in sites}

        def due(connection: Connection) -> list[datetime]:
            return list(connection.execute(select(origins.c.next_visit_at).order_by(origins.c.next_visit_at)).scalars())

        times = await crawl.database.read(due)
        assert began + timedelta(seconds=60) <= times[0]
        assert times[-1] <= clock.now() + timedelta(seconds=90)
        assert times[-1] - times[0] > timedelta(seconds=3), "they drift apart from each other"
        assert len(set(times)) > 20


async def test_fr_54_an_origin_that_hangs_is_tried_again_later_and_skips_nobody(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
        await reader.read()

    good = web.site("good")
    good.manifest(entry("one", "good.example"))
    fast = {"connect_timeout": "200ms", "header_timeout": "200ms", "total_timeout": "200ms"}
    async with RawServer(hang) as raw:
        hanging = f"http://hanging.example:{raw.port}"
        often = {"min_interval": "5m", "max_interval": "5m", "default_freshness": "5m"}
        async with open_crawl(good, hanging, network=fast, crawl=often) as crawl:
            await pass_time(crawl, clock, minutes=32)
            assert 6 <= len(good.requests(ARD)) <= 8
            log = await fetch_log(crawl, f"{hanging}{ROBOTS}")
            assert {(row.outcome, row.reason) for row in log} == {("unreachable", "timeout_body")}
            gaps = [after.request_at - before.request_at for before, after in pairwise(log)]
            assert len(gaps) >= 2
            assert all(later > earlier for earlier, later in pairwise(gaps)), "less and less often"
            due_at = await crawl.database.read(next_due_at)
            assert due_at is not None
            assert due_at >= clock.now(), "nothing is overdue"


# --- FR-56, FR-57: publishers who opt out -----------------------------------------------------------------------------


async def test_fr_56_a_new_disallow_is_seen_at_the_next_visit_where_robots_txt_must_be_revalidated(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    no_cache = {"Cache-Control": "no-cache"}
    acme.robots("User-agent: *\nAllow: /\n", headers=no_cache, etag='"allow"')
    acme.manifest(entry("echo"))
    async with open_crawl(acme) as crawl:
        await pass_time(crawl, clock, hours=3)
        assert acme.requests(ROBOTS)[-1].headers["If-None-Match"] == '"allow"'
        assert acme.requests(ROBOTS)[-1].status == 304

        acme.robots("User-agent: *\nDisallow: /\n", headers=no_cache, etag='"deny"')
        web.clear_log()
        await pass_time(crawl, clock, days=2)
        assert set(paths(acme)) == {ROBOTS}
        assert (await reasons(crawl, acme))[ARD] == ("disallowed", "robots")
        assert await crawl.search("echo") == []
        assert (await crawl.changes())[-1].reason == "robots"


@pytest.mark.parametrize(
    ("cache_control", "hours"),
    [("", 24), ("max-age=600", 1), ("max-age=31536000", 24), ("no-store", 1)],
    ids=["nothing stated", "ten minutes", "a year", "no-store"],
)
async def test_fr_56_no_copy_of_robots_txt_is_used_for_longer_than_a_day_or_its_own_lifetime(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock, cache_control: str, hours: float
) -> None:
    acme = web.site("acme")
    headers = {"Cache-Control": cache_control} if cache_control else {}
    acme.robots("User-agent: *\nAllow: /\n", headers=headers)
    acme.manifest(entry("echo"), headers={"Cache-Control": "max-age=300"})
    often = {"min_interval": "30m", "max_interval": "30m"}
    async with crawl_sqlite(acme, crawl=often) as crawl:
        await visit_due(crawl)
        acme.robots("User-agent: *\nDisallow: /\n", headers=headers)
        await pass_time(crawl, clock, hours=hours, minutes=35)
        assert acme.requests(ROBOTS)[-1].status == 200
        seen = len(acme.requests(ARD))
        await pass_time(crawl, clock, days=3)
        assert len(acme.requests(ARD)) == seen, "not asked for after the change was seen"
        assert (await reasons(crawl, acme))[ARD] == ("disallowed", "robots")


async def test_fr_57_an_origin_that_denies_all_robots_costs_it_one_request_and_is_counted(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.robots("User-agent: *\nDisallow: /\n")
    acme.manifest(entry("echo"))
    acme.html("/", "<html></html>")
    async with open_crawl(acme) as crawl:
        summary = (await crawl.run()).as_json()
        assert paths(acme) == [ROBOTS]
        assert summary["documents"] == {"disallowed": 3, "fetched": 1}
        assert summary["origins"]["failed"] == 0, "it is an answer, and no failure"
        assert set((await reasons(crawl, acme)).values()) == {("disallowed", "robots")}

        web.clear_log()
        visits = await pass_time(crawl, clock, days=10)
        assert set(paths(acme)) == {ROBOTS}
        assert 1 <= len(acme.requests()) <= visits

        acme.robots("User-agent: *\nDisallow: /private\n")
        await pass_time(crawl, clock, days=8)
        assert await crawl.identifiers() == [ECHO], "a change of mind is noticed"


# --- FR-60: absent and stable documents -------------------------------------------------------------------------------


async def test_fr_60_absent_paths_are_asked_for_less_and_less(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    async with crawl_sqlite(acme, crawl={"min_interval": "1h", "default_freshness": "1h"}) as crawl:
        await pass_time(crawl, clock, days=30)
        asked = Counter(paths(acme))
        absent = {path: count for path, count in asked.items() if path != ROBOTS}
        assert set(absent) == {ARD, PREDECESSOR, "/"}
        assert all(5 <= count <= 12 for count in absent.values()), absent
        assert asked[ROBOTS] <= 31

        acme.manifest(entry("echo"))
        await pass_time(crawl, clock, days=8)
        assert await crawl.identifiers() == [ECHO], "and found when it appears"


async def test_fr_60_stable_documents_slow_down_and_are_asked_for_with_their_validators(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.robots("User-agent: *\nAllow: /\n", etag='"r"')
    acme.manifest(entry("echo"))
    acme.html("/", "<html></html>", last_modified=http_date(clock.now() - timedelta(days=100)))
    limits = {"min_interval": "1h", "max_interval": "24h", "default_freshness": "1h"}
    async with crawl_sqlite(acme, crawl=limits) as crawl:
        await pass_time(crawl, clock, days=30)
        times = [row.request_at for row in await fetch_log(crawl, acme.url(ARD))]
        gaps = [after - before for before, after in pairwise(times)]
        assert gaps == sorted(gaps)
        assert gaps[-1] >= timedelta(hours=20)
        assert len(times) <= 42
        for path in (ARD, "/", ROBOTS):
            statuses = Counter(seen.status for seen in acme.requests(path))
            assert statuses[304] >= 4 * statuses[200], (path, statuses)
            conditional = [seen for seen in acme.requests(path) if seen.status == 304]
            assert all("If-None-Match" in s.headers or "If-Modified-Since" in s.headers for s in conditional)
        # A change brings it back to a closer watch.
        acme.manifest(entry("echo", description="new"))
        await pass_time(crawl, clock, hours=60)
        times = [row.request_at for row in (await fetch_log(crawl, acme.url(ARD)))[len(times) :]]
        assert min(after - before for before, after in pairwise(times)) < 0.6 * gaps[-1]


async def test_fr_60_a_path_is_asked_for_once_in_a_visit(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    """However many mechanisms lead to it, and whether it is there or not."""
    acme = web.site("acme")
    acme.robots(f"Agentmap: {acme.url(ARD)}\nAgentmap: {acme.url('/gone.json')}\n")
    links = (
        f'<link rel="ard" href="{ARD}"><link rel="ard" href="/gone.json"><link rel="ai-catalog" href="/gone.json#x">'
    )
    acme.html("/", f"<html><head>{links}</head></html>", headers={"Link": f'<{ARD}>; rel="ard"'})
    acme.manifest(entry("echo"), entry("more", type="application/ai-catalog+json", url="/gone.json"))
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        assert Counter(paths(acme)) == {ROBOTS: 1, ARD: 1, PREDECESSOR: 1, "/": 1, "/gone.json": 1}
