"""A whole crawl among hostile publishers: nobody is held up, nothing of theirs reaches the log, delays are kept."""

import logging
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from aiohttp import web as server
from structlog.testing import capture_logs

from tests.conftest import OpenCrawl
from tests.fakes.clock import FakeClock
from tests.fakes.fetching import Trap, answer, by_path, saying
from tests.fakes.history import pass_time
from tests.fakes.web import FakeWeb, RawServer, Site, entry

ARD = "/.well-known/ard.json"
PREDECESSOR = "/.well-known/ai-catalog.json"
MARK = "hostile-marker"
HOSTILE = f"{MARK}\x1b[31m\x00\r\n\u202e\u2028 level=critical"


def texts(value: Any) -> list[str]:
    """Give every text in a log event, names included."""
    if isinstance(value, dict):
        return [text for item in value.items() for text in texts(item)]
    if isinstance(value, list | tuple | set):
        return [text for item in value for text in texts(item)]
    return [str(value)]


def hostile_site(web: FakeWeb) -> Site:
    """A publisher that puts the mark wherever text can be put."""
    site = web.site("evil")
    site.json(
        ARD,
        {
            HOSTILE: HOSTILE,
            "entries": [
                entry("bad", displayName=HOSTILE, description=HOSTILE, tags=[HOSTILE], **{HOSTILE: HOSTILE}),
                entry("worse", identifier=f"urn:air:{HOSTILE}:tool:x"),
                entry("link", url=f"http://{HOSTILE}/"),
                entry("nested", type="application/ai-catalog+json", url=f"/{MARK}\x1b[31m.json"),
                HOSTILE,
            ],
        },
        headers={"Link": f'</{MARK}%1b.json>; rel="ard {MARK}"', "X-Note": MARK},
    )
    site.page(PREDECESSOR, f'{{"entries": "{HOSTILE}"'.encode(), headers={"Content-Type": "application/json"})
    site.robots(f"User-agent: *\n{HOSTILE}\nAgentmap: http://{MARK}.test/\x1b[31m\nCrawl-delay: {HOSTILE}\n")
    site.html("/", f'<title>{HOSTILE}</title><link rel="ard" href="//{MARK}.test/\x1b">')
    site.redirect(f"/{MARK}%1B[31m.json", f"http://{MARK}.test/%1b")
    return site


RAW = [
    f"{MARK}\x1b[2J rubbish\r\n\r\n".encode(),
    f"HTTP/1.1 200 {MARK}\r\n{MARK}: {MARK}\r\nContent-Length: {MARK}\r\n\r\n".encode(),
    f"HTTP/1.1 302 {MARK}\r\nLocation: {MARK}://\x7f\x1b[31m{MARK}\r\nContent-Length: 0\r\n\r\n".encode(),
    f"HTTP/1.1 302 {MARK}\r\nLocation: http://[{MARK}\r\nContent-Length: 0\r\n\r\n".encode(),
    answer(MARK.encode(), f"Content-Encoding: {MARK}"),
    answer(MARK.encode(), "Content-Encoding: gzip"),
    answer(b"[" * 10_000, "Content-Type: application/json"),
    b'HTTP/1.1 200 OK\r\nETag: "\xff"\r\nLast-Modified: \xfe\r\nContent-Type: \xff/\xc3\r\nDate: \xff\r\n'
    b"Link: </\xff%ff.json>; rel=ard\r\nVary: \xff\r\nContent-Length: 15\r\n\r\n" + b'{"entries": []}',
    b"HTTP/1.1 302 Found\r\nLocation: /\xff\xfe\xc3\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 302 Found\r\nLocation: http://\xff.example/\r\nContent-Length: 0\r\n\r\n",
    answer(f'{{"{MARK}": NaN}}'.encode(), f"ETag: {MARK}", f"Last-Modified: {MARK}", f"Cache-Control: {MARK}"),
]


async def test_a_crawl_among_hostile_publishers_logs_nothing_of_theirs_and_crashes_nowhere(
    web: FakeWeb, crawl_sqlite: OpenCrawl, caplog: pytest.LogCaptureFixture
) -> None:
    evil, good = hostile_site(web), web.site("acme")
    good.manifest(entry("echo"))
    answers = {f"/{number}": said for number, said in enumerate(RAW)}
    hints = "".join(f"Agentmap: {path}\n" for path in answers).encode()
    async with RawServer(by_path({**answers, "/robots.txt": answer(hints)})) as raw:
        origins = [evil, good, f"http://raw.example:{raw.port}"]
        async with crawl_sqlite(*origins) as crawl:
            with capture_logs() as events, caplog.at_level(logging.WARNING):
                for _ in range(2):
                    summary = await crawl.run()
                    assert (summary.crashed, summary.visited) == (0, 3)
            outcomes = {row.outcome for row in (await crawl.documents(origins[2])).values()}
            assert await crawl.identifiers() != []
    assert {"unreachable", "refused", "malformed"} <= outcomes
    assert {event["event"] for event in events} == {"visit.done"}
    for text in (text for event in events for text in texts(event)):
        assert MARK not in text
        assert text.isprintable()
    assert MARK not in caplog.text


async def test_a_hostile_publisher_reaches_neither_the_private_network_nor_other_origins_through_us(
    web: FakeWeb, crawl_sqlite: OpenCrawl
) -> None:
    """Wherever an address can hide it points to the trap or to a stranger; only the origin itself is asked."""
    evil, stranger = web.site("evil"), web.site("stranger")
    async with Trap() as trap:
        inside, outside = f"http://127.0.0.66:{trap.port}/x", stranger.url("/x")
        for number, bait in enumerate((inside, outside)):
            nested = entry(f"n{number}", type="application/ai-catalog+json", url=bait)
            evil.manifest(
                entry("a", url=bait, icon=bait, homepage=bait, **{"@id": bait}), nested, path=f"/{number}.json"
            )
            evil.redirect(f"/moved/{number}", bait, 301)
        evil.json(
            ARD,
            {
                "$schema": inside,
                "@context": [inside, outside],
                "host": {"documentationUrl": inside, "logo": outside},
                "collections": [{"url": inside}, {"url": outside}, inside],
                "entries": [
                    entry(f"c{number}", type="application/ai-catalog+json", url=path)
                    for number, path in enumerate(["/0.json", "/1.json", "/moved/0", "/moved/1"])
                ],
            },
            headers={"Link": f'<{inside}>; rel="ard", <{outside}>; rel="ard preload"', "Refresh": f"0; url={inside}"},
        )
        evil.html(
            "/",
            f'<meta http-equiv="refresh" content="0; url={inside}"><link rel="ard stylesheet" href="{outside}">'
            f'<base href="{inside}"><link rel="ard" href="y"><script src="{inside}"></script><img src="{outside}">'
            f'<iframe src="{inside}"></iframe><script type="application/ld+json">{{"@context": "{inside}"}}</script>',
        )
        evil.robots(f"Sitemap: {inside}\nAgentmap: {inside}\nAgentmap: {outside}\n")
        async with crawl_sqlite(evil, network={"allow_private": ["127.0.0.1/32"]}) as crawl:
            for _ in range(2):
                await crawl.run()
        assert trap.reached == 0
    assert {seen.host for seen in web.seen} == {"evil.example"}
    assert {"/0.json", "/1.json", "/moved/0", "/moved/1"} <= {seen.path for seen in web.seen}


# --- delays that a robots.txt asks for --------------------------------------------------------------------------------


class Timed:
    """A site that writes down when it was asked, by the fake clock."""

    def __init__(self, site: Site, clock: FakeClock) -> None:
        self.site = site
        self.times: list[datetime] = []
        self._clock = clock
        self._pages = dict(site.pages)
        site.pages.clear()
        site.fallback = self._answer

    async def _answer(self, request: server.Request) -> server.StreamResponse:
        self.times.append(self._clock.now())
        page: Any = self._pages.get(request.raw_path)
        return server.Response(status=404) if page is None else page.answer(request)

    def gaps_s(self) -> list[float]:
        return [(later - earlier).total_seconds() for earlier, later in pairwise(self.times)]


@pytest.mark.parametrize(
    ("rules", "gap_s"),
    [
        ("User-agent: *\nCrawl-delay: 7\n", 7),
        ("User-agent: *\nCrawl-delay: 2.5\n", 3),
        ("User-agent: ardvark\nCrawl-delay: 9\n\nUser-agent: *\nCrawl-delay: 3\n", 9),
        ("User-agent: other\nCrawl-delay: 99\n", 2),
        ("User-agent: *\nCrawl-delay: 0.001\n", 2),
        ("User-agent: *\nCrawl-delay: 0\n", 2),
        ("User-agent: *\nCrawl-delay: soon\n", 2),
        ("User-agent: *\nCrawl-delay: -5\n", 2),
        ("User-agent: *\nCrawl-delay: nan\n", 2),
        ("", 2),
    ],
)
async def test_requests_are_spaced_by_our_floor_or_the_delay_asked_for(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock, rules: str, gap_s: float
) -> None:
    """An own file sets the pace from the second request after it on; a smaller wish changes nothing."""
    acme = web.site("acme")
    acme.manifest(entry("nested", type="application/ai-catalog+json", url="/n.json"))
    acme.manifest(entry("echo"), path="/n.json")
    acme.robots(rules)
    timed = Timed(acme, clock)
    async with crawl_sqlite(acme, politeness={"min_delay": "2s"}) as crawl:
        await crawl.run()
    first, *rest = timed.gaps_s()
    assert first == pytest.approx(2), "before its robots.txt is known our own floor applies"
    assert rest == [pytest.approx(gap_s)] * 3


async def test_an_hour_of_delay_spreads_the_documents_of_one_origin_and_holds_up_no_other(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock
) -> None:
    slow, quick = web.site("slow"), web.site("quick")
    slow.manifest(entry("echo", publisher="slow.example"))
    slow.robots("User-agent: *\nCrawl-delay: 3600\n")
    quick.manifest(entry("echo", publisher="quick.example"))
    started = clock.now()
    slow_timed, quick_timed = Timed(slow, clock), Timed(quick, clock)
    async with crawl_sqlite(slow, quick) as crawl:
        await crawl.run()
        assert clock.now() - started < timedelta(minutes=2)
        assert len(quick_timed.times) == 4
        assert len(slow_timed.times) == 2
        await pass_time(crawl, clock, hours=12)
    assert all(gap >= 3600 for gap in slow_timed.gaps_s()[1:])
    assert len(slow_timed.times) >= 4


async def test_a_redirect_to_another_origin_is_paced_by_that_origin(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock
) -> None:
    acme, catalogs = web.site("acme"), web.site("catalogs")
    acme.redirect(ARD, catalogs.url("/acme.json"))
    acme.redirect(PREDECESSOR, catalogs.url("/acme.json"))
    catalogs.manifest(entry("echo"), path="/acme.json")
    catalogs.robots("User-agent: *\nCrawl-delay: 20\n")
    timed = Timed(catalogs, clock)
    async with crawl_sqlite(acme, catalogs) as crawl:
        await crawl.run(acme)
    assert timed.gaps_s() == [pytest.approx(0, abs=0.1), pytest.approx(20)]


async def test_a_silent_origin_costs_one_visit_and_no_more(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    good = web.site("acme")
    good.manifest(entry("echo"))
    network = {"connect_timeout": "300ms", "header_timeout": "300ms", "total_timeout": "400ms"}
    async with (
        RawServer(saying(hang=True)) as silent,
        crawl_sqlite(f"http://silent.example:{silent.port}", good, network=network) as crawl,
    ):
        summary = await crawl.run()
        assert (summary.visited, summary.failed) == (2, 1)
        assert silent.connections == 1, "an unreachable robots.txt forbids the rest"
