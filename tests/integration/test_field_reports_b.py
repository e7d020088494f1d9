"""Field reports of kind B: what comes over the wire, in which wrapping, how slowly and by which way."""

import asyncio
import gzip
import json
import tracemalloc
import zlib
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web as server

from index.store.snapshots import load_snapshot
from index.strict_json import digest
from tests.conftest import OpenCrawl
from tests.fakes.cards import CARD, agent_card, cards_by_path
from tests.fakes.clock import FakeClock
from tests.fakes.fetching import answer, by_path, flooding, saying
from tests.fakes.harness import Crawl
from tests.fakes.history import fetch_log, notes_of, pass_time, visit_due
from tests.fakes.web import FakeWeb, Page, RawServer, Site, entry, read_request

ARD = "/.well-known/ard.json"
ECHO = "urn:air:acme.example:tool:echo"
WEATHER = "urn:air:acme.example:tool:weather"
BOM = b"\xef\xbb\xbf"
MIB = 1_048_576
SHORT = {"connect_timeout": "400ms", "header_timeout": "400ms", "total_timeout": "500ms"}


def manifest(*entries: Any) -> bytes:
    return json.dumps({"entries": list(entries)}).encode()


async def document_of(crawl: Crawl, site: Site | str, path: str = ARD) -> Any:
    return (await crawl.documents(site))[path]


async def problem_codes(crawl: Crawl, site: Site, path: str = ARD) -> list[str]:
    return [problem["code"] for problem in (await document_of(crawl, site, path)).problems]


# --- FR-16: a byte-order mark -----------------------------------------------------------------------------------------


async def test_fr_16_a_manifest_that_starts_with_a_byte_order_mark_is_read_with_a_warning(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme = web.site("acme")
    body = BOM + manifest(entry("echo"))
    acme.page(ARD, body, headers={"Content-Type": "application/json"})
    async with open_crawl(acme) as crawl:
        summary = await crawl.run()
        assert summary.as_json()["entries"] == {"listed": 1, "rejected": 0, "unchanged": 0}
        assert await problem_codes(crawl, acme) == ["json.bom"]
        document = await document_of(crawl, acme)
        assert document.digest == digest(body), "the digest is of the bytes as they came"
        assert await crawl.database.read(load_snapshot, document.digest) == body


@pytest.mark.parametrize("first", [True, False], ids=["taken off", "put on"])
async def test_fr_16_a_mark_that_comes_or_goes_changes_bytes_and_no_content(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock, first: bool
) -> None:
    acme = web.site("acme")
    plain = manifest(entry("echo"))
    page = acme.page(ARD, BOM + plain if first else plain, headers={"Content-Type": "application/json"})
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        before = await document_of(crawl, acme)
        clock.advance(hours=1)
        page.body = plain if first else BOM + plain
        second = await crawl.run()
        after = await document_of(crawl, acme)
        assert (second.tally.changes, second.tally.snapshots) == (0, 1)
        assert before.digest != after.digest
        assert before.content_digest == after.content_digest
        assert before.changed_at == after.changed_at
        assert await problem_codes(crawl, acme) == ([] if first else ["json.bom"])


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (BOM + BOM + b'{"entries": []}', "json.syntax"),
        (b" " + BOM + b'{"entries": []}', "json.syntax"),
        (BOM, "json.empty"),
        ('{"entries": []}'.encode("utf-16"), "json.encoding"),
        ('{"entries": []}'.encode("utf-16-le"), "json.encoding"),
        ('{"entries": []}'.encode("utf-32-be"), "json.encoding"),
        (b'{"entries": [], "x": "\xe9"}', "json.encoding"),
    ],
    ids=["two marks", "a mark further on", "nothing else", "UTF-16", "UTF-16 without mark", "UTF-32", "Latin-1"],
)
async def test_fr_16_other_marks_and_encodings_are_located_faults(
    web: FakeWeb, crawl_sqlite: OpenCrawl, body: bytes, reason: str
) -> None:
    acme = web.site("acme")
    acme.page(ARD, body, headers={"Content-Type": "application/json"})
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        document = await document_of(crawl, acme)
        assert (document.outcome, document.reason) == ("malformed", reason)
        assert document.detail


async def test_fr_16_a_mark_before_robots_and_page_is_taken_off_too(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.robots(BOM + b"Disallow: /nothing\nUser-agent: *\nDisallow: /.well-known/\n")
    acme.page("/", BOM + b'<link rel="ard" href="/a.json">', headers={"Content-Type": "text/html; charset=latin-1"})
    acme.manifest(entry("echo"), path="/a.json")
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        assert acme.requests(ARD) == []
        assert await crawl.identifiers() == [ECHO]


# --- FR-17: media types that differ -----------------------------------------------------------------------------------

SERVED = [
    "application/json",
    "application/ai-catalog+json; charset=utf-8",
    "application/octet-stream",
    "text/plain; charset=iso-8859-1",
    "text/html",
    "application/x-unheard-of",
    "not a media type",
    "",
    None,
]


@pytest.mark.parametrize("served", SERVED)
async def test_fr_17_a_manifest_is_read_whatever_type_it_is_served_with(
    crawl_sqlite: OpenCrawl, served: str | None
) -> None:
    fields = [] if served is None else [f"Content-Type: {served}"]
    said = answer(manifest(entry("echo", displayName="Größe")), *fields)
    async with RawServer(by_path({ARD: said})) as acme:
        origin = f"http://acme.example:{acme.port}"
        async with crawl_sqlite(origin) as crawl:
            await crawl.run()
            assert await crawl.identifiers() == [ECHO]
            assert json.loads(await crawl.entry(ECHO) or "")["displayName"] == "Größe"
            document = await document_of(crawl, origin)
            assert document.headers.get("content-type") == served, "the served type is kept as it came"
            codes = {problem["code"] for problem in document.problems}
            assert ("manifest.media_type" in codes) is ("json" not in (served or ""))


@pytest.mark.parametrize("served", ["application/json", "application/a2a+json", "application/octet-stream", None])
async def test_fr_17_a_card_is_read_whatever_type_it_is_served_with(
    web: FakeWeb, crawl_sqlite: OpenCrawl, served: str | None
) -> None:
    acme = web.site("acme")
    acme.page(CARD, json.dumps(agent_card()), headers={} if served is None else {"Content-Type": served})
    async with crawl_sqlite({"origin": acme.origin, "surfaces": ["a2a"]}) as crawl:
        await crawl.run()
        card = (await cards_by_path(crawl))[CARD]
        named = [problem["code"] for problem in card.problems]
        assert named == ([] if served is not None and "json" in served else ["artifact.media_type"])


async def test_fr_17_a_catalog_is_followed_whatever_type_its_link_declares_and_both_types_are_kept(
    web: FakeWeb, crawl_sqlite: OpenCrawl
) -> None:
    acme = web.site("acme")
    acme.html("/", '<link rel="ard" type="application/ai-catalog+json" href="/a.json">')
    acme.page("/a.json", manifest(entry("echo")), headers={"Content-Type": "text/plain"})
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        assert await crawl.identifiers() == [ECHO]
        assert [lead.media_type for lead in await crawl.leads(acme)] == ["application/ai-catalog+json"]
        assert (await document_of(crawl, acme, "/a.json")).headers["content-type"] == "text/plain"


@pytest.mark.parametrize("served", ["application/json", "text/html", "text/plain", None])
async def test_fr_17_html_is_no_manifest_whatever_type_it_is_served_with(
    web: FakeWeb, crawl_sqlite: OpenCrawl, served: str | None
) -> None:
    """Said to be JSON it is a damaged manifest, else there simply is none."""
    acme = web.site("acme")
    acme.page(ARD, "<!doctype html><h1>Hello</h1>", headers={} if served is None else {"Content-Type": served})
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        document = await document_of(crawl, acme)
        expected = ("malformed", "json.syntax") if served == "application/json" else ("absent", "not_json")
        assert (document.outcome, document.reason) == expected


# --- FR-18: refused for the library's name ----------------------------------------------------------------------------


def edge(page: Page) -> Any:
    """An edge that turns HTTP libraries away by their names."""

    async def guard(request: server.Request) -> server.StreamResponse:
        agent = request.headers.get("User-Agent", "")
        if not agent or agent.lower().startswith(("python", "aiohttp", "curl", "mozilla")):
            return server.Response(status=403, text="edge rule 41")
        return page.answer(request)

    return guard


async def test_fr_18_an_honest_name_with_a_contact_passes_an_edge_that_refuses_libraries(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    acme = web.site("acme")
    acme.handle(ARD, edge(Page(manifest(entry("echo")))))
    acme.handle("/robots.txt", edge(Page(b"User-agent: *\nAllow: /\n")))
    async with open_crawl(acme) as crawl:
        await crawl.run()
        assert await crawl.identifiers() == [ECHO]


async def test_fr_18_an_edge_that_refuses_us_is_believed_and_nothing_is_lost(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"))
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        web.clear_log()
        acme.page(ARD, b"edge rule 41", status=403)
        clock.advance(days=1)
        await pass_time(crawl, clock, days=30)
        document = await document_of(crawl, acme)
        assert (document.outcome, document.reason, document.status) == ("withheld", "http_403", 403)
        assert await crawl.identifiers() == [ECHO]
        assert 5 <= len(acme.requests(ARD)) <= 31, "asked about daily at most"
        assert len({seen.headers["User-Agent"] for seen in web.seen}) == 1, "no other name is tried"
        acme.manifest(entry("echo"))
        await pass_time(crawl, clock, days=8)
        assert (await document_of(crawl, acme)).failing_since is None


# --- FR-20: compressed bodies that expand without limit ---------------------------------------------------------------


def bomb(mebibytes: int, head: bytes = b"") -> tuple[bytes, ...]:
    """An answer whose body is so many mebibytes of spaces, with the right length of what is sent."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    first = packer.compress(head + b" " * MIB) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(b" " * MIB) + packer.flush(zlib.Z_FULL_FLUSH)
    blocks = [first, *[block] * (mebibytes - 1)]
    return (answer(b"", "Content-Encoding: gzip", length=sum(map(len, blocks))), *blocks)


async def test_fr_20_a_bomb_is_cut_in_bounded_memory_and_the_others_are_crawled(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    talk = by_path({ARD: saying(*bomb(1024))})
    others = [web.site(name) for name in ("acme", "globex", "initech")]
    for site in others:
        site.manifest(entry("echo", publisher=site.host))
    async with RawServer(talk) as evil:
        origin = f"http://evil.example:{evil.port}"
        async with open_crawl(origin, *others) as crawl:
            tracemalloc.start()
            try:
                await crawl.run()
                _, peak = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            document = await document_of(crawl, origin)
            assert (document.outcome, document.reason) == ("too_large", "too_large")
            assert document.digest is None
            assert peak < 16 * MIB, "nowhere near the gibibyte, whatever else a crawl holds"
            assert len(await crawl.identifiers()) == 3


@pytest.mark.parametrize("path", ["/robots.txt", "/"])
async def test_fr_20_the_same_cap_guards_robots_and_pages(crawl_sqlite: OpenCrawl, path: str) -> None:
    """What is read up to the cap counts; the rest is never unpacked."""
    head = {
        "/robots.txt": b"User-agent: *\nDisallow: /.well-known/\n",
        "/": b'<link rel="ard" href="/a.json"><p>',
    }[path]
    pages = {ARD: manifest(entry("weather")), "/a.json": manifest(entry("echo"))}
    talk = by_path({path: saying(*bomb(64, head)), **{name: answer(body) for name, body in pages.items()}})
    async with RawServer(talk) as evil:
        origin = f"http://evil.example:{evil.port}"
        async with crawl_sqlite(origin) as crawl:
            await crawl.run()
            document = await document_of(crawl, origin, path)
            assert document.outcome == "fetched"
            assert document.length == {"/robots.txt": 512_000, "/": 524_288}[path]
            expected = {"/robots.txt": [], "/": [ECHO, WEATHER]}[path]
            assert await crawl.identifiers() == expected


@pytest.mark.parametrize("coding", ["br", "zstd", "deflate", "compress", "gzip, gzip", "br, gzip", "aws-chunked"])
async def test_fr_20_a_coding_that_was_not_offered_is_a_failure_and_keeps_the_entries(
    web: FakeWeb, crawl_sqlite: OpenCrawl, coding: str
) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"))
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        acme.page(ARD, manifest(entry("echo")), headers={"Content-Encoding": coding})
        await crawl.run()
        document = await document_of(crawl, acme)
        assert (document.outcome, document.reason) == ("malformed", "content_encoding")
        assert await crawl.identifiers() == [ECHO]


async def test_fr_20_honest_compression_is_no_bomb(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    """A manifest just below the cap that packs a hundred to one."""
    acme = web.site("acme")
    body = manifest(entry("echo", metadata={"note": " " * (MIB - 1000)}))
    assert MIB - 1000 < len(body) <= MIB
    assert len(gzip.compress(body)) * 100 < len(body)
    acme.page(ARD, body, gzip=True)
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        assert await crawl.identifiers() == [ECHO]


# --- FR-21: headers at once, and then nothing, drop by drop -----------------------------------------------------------

SLOW = {
    "a byte at a time": (
        flooding(answer(b"", "Content-Type: application/json", length=None), b" ", pause_s=0.02),
        "timeout_body",
    ),
    "nothing more": (saying(answer(b"{", length=1000), hang=True), "timeout_body"),
    "not even headers": (saying(hang=True), "timeout_headers"),
}


@pytest.mark.parametrize("kind", SLOW)
async def test_fr_21_a_dripping_server_holds_nobody_up(web: FakeWeb, crawl_sqlite: OpenCrawl, kind: str) -> None:
    healthy = [web.site(name) for name in ("acme", "globex", "initech")]
    for site in healthy:
        site.manifest(entry("echo", publisher=site.host))
    reached = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.set()
        await SLOW[kind][0](reader, writer)

    async with RawServer(by_path({ARD: talk})) as drip:
        origin = f"http://drip.example:{drip.port}"
        patient = {"header_timeout": "60s", "total_timeout": "60s"}
        async with crawl_sqlite(origin, *healthy, network=patient) as crawl:
            (claim,) = await crawl.crew.claim(1, [origin])
            dripping = asyncio.create_task(crawl.crew.visit(claim))
            await asyncio.wait_for(reached.wait(), 10)
            await crawl.run(*healthy)
            assert len(await crawl.identifiers()) == 3
            assert not dripping.done()
            dripping.cancel()
            with pytest.raises(asyncio.CancelledError):
                await dripping


@pytest.mark.parametrize("kind", SLOW)
async def test_fr_21_a_dripping_server_fails_at_the_deadline_and_keeps_its_entries(
    open_crawl: OpenCrawl, kind: str
) -> None:
    talk, reason = SLOW[kind]
    answers: dict[str, Any] = {ARD: answer(manifest(entry("echo")))}
    async with RawServer(by_path(answers)) as drip:
        origin = f"http://drip.example:{drip.port}"
        async with open_crawl(origin, network=SHORT) as crawl:
            await crawl.run()
            answers[ARD] = talk
            loop = asyncio.get_running_loop()
            began = loop.time()
            await crawl.run()
            assert loop.time() - began < 5
            document = await document_of(crawl, origin)
            assert (document.outcome, document.reason) == ("unreachable", reason)
            assert document.failing_since is not None
            assert await crawl.identifiers() == [ECHO]


async def test_fr_21_a_stalled_robots_txt_forbids_everything_for_now(crawl_sqlite: OpenCrawl) -> None:
    answers = {ARD: answer(manifest(entry("echo"))), "/robots.txt": SLOW["nothing more"][0]}
    async with RawServer(by_path(answers)) as drip:
        origin = f"http://drip.example:{drip.port}"
        async with crawl_sqlite(origin, network=SHORT) as crawl:
            summary = await crawl.run()
            assert summary.as_json()["origins"]["robotsUnreachable"] == 1
            assert (await document_of(crawl, origin)).reason == "robots_unreachable"
            assert await crawl.identifiers() == []


# --- FR-23: deep nesting ----------------------------------------------------------------------------------------------

DEEP = {
    "arrays without end": b"[" * 100_000,
    "objects without end": b'{"a":' * 100_000,
    "arrays, closed": b"[" * 50_000 + b"]" * 50_000,
    "below entries": b'{"entries": ' + b"[" * 30_000 + b"]" * 30_000 + b"}",
    "inside an entry": manifest(entry("echo", metadata="@")).replace(b'"@"', b'{"a":' * 90 + b"1" + b"}" * 90),
}


@pytest.mark.parametrize("kind", DEEP)
async def test_fr_23_deep_nesting_is_a_fault_of_the_document_and_nothing_more(
    web: FakeWeb, crawl_sqlite: OpenCrawl, kind: str
) -> None:
    acme, globex = web.site("acme"), web.site("globex")
    acme.page(ARD, DEEP[kind], headers={"Content-Type": "application/json"})
    globex.manifest(entry("echo", publisher="globex.example"))
    async with crawl_sqlite(acme, globex) as crawl:
        first = await crawl.run()
        document = await document_of(crawl, acme)
        assert (document.outcome, document.reason) == ("malformed", "json.too_deep")
        assert first.crashed == 0
        assert await crawl.identifiers() == ["urn:air:globex.example:tool:echo"]
        acme.manifest(entry("echo"))
        await crawl.run()
        assert await crawl.identifiers() == [ECHO, "urn:air:globex.example:tool:echo"]


async def test_fr_23_brackets_in_texts_are_no_nesting(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(
        entry("echo", description='"' + "[{" * 5000 + "\\"), *(entry(f"e{n}", tags=[["x"]]) for n in range(100))
    )
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        assert len(await crawl.identifiers()) == 101


@pytest.mark.parametrize("damage", ["gone", "rotten"])
async def test_fr_23_a_stored_body_that_cannot_be_read_is_fetched_again_and_never_fatal(
    web: FakeWeb, crawl_sqlite: OpenCrawl, damage: str
) -> None:
    from sqlalchemy import delete, update

    from index.store.tables import documents, snapshots

    acme = web.site("acme")
    acme.manifest(entry("echo"))
    acme.robots("User-agent: *\nDisallow: /private/\n")
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        spoil = update(snapshots).values(codec="zlib", body=b"rotten") if damage == "rotten" else delete(snapshots)
        await crawl.database.write(lambda connection: connection.execute(spoil))
        # What the listings reflect is no longer known, so the body will be wanted.
        forget = update(documents).values(applied_digest=None)
        await crawl.database.write(lambda connection: connection.execute(forget))
        for _ in range(2):
            summary = await crawl.run()
            assert (summary.crashed, summary.failed) == (0, 0)
        assert await crawl.identifiers() == [ECHO]
        assert (await document_of(crawl, acme)).applied_digest == digest(manifest(entry("echo")))
        assert [change.kind for change in await crawl.changes()] == ["entry.added"]


# --- FR-25: over two redirects to another host ------------------------------------------------------------------------


def moved(acme: Site, catalogs: Site) -> None:
    acme.redirect(ARD, "ard-v2.json", 301)
    acme.redirect("/.well-known/ard-v2.json", catalogs.url("/acme.json"), 307)
    catalogs.manifest(entry("echo"), path="/acme.json")


@pytest.mark.parametrize("way", ["listed", "artifact host", "pattern"])
async def test_fr_25_a_manifest_behind_two_redirects_is_read_where_the_operator_allows_the_host(
    web: FakeWeb, open_crawl: OpenCrawl, way: str
) -> None:
    acme, catalogs = web.site("acme"), web.site("w.catalogs.example")
    moved(acme, catalogs)
    origins: dict[str, list[Any]] = {
        "listed": [acme, catalogs],
        "artifact host": [{"origin": acme.origin, "artifact_hosts": [f"w.catalogs.example:{web.port}"]}],
        "pattern": [acme, {"origin": f"http://*.catalogs.example:{web.port}"}],
    }
    async with open_crawl(*origins[way]) as crawl:
        await crawl.run(acme)
        document = await document_of(crawl, acme)
        assert document.outcome == "fetched"
        assert document.url == acme.url(ARD)
        assert document.final_url == catalogs.url("/acme.json")
        assert [(url.removeprefix(acme.origin), status) for url, status in document.hops] == [
            (ARD, 301),
            ("/.well-known/ard-v2.json", 307),
        ]
        assert (await fetch_log(crawl, acme.url(ARD)))[-1].hops == document.hops
        assert await crawl.identifiers() == [ECHO]


async def test_fr_25_a_host_outside_the_allowlist_is_named_and_the_last_copy_stays(
    web: FakeWeb, crawl_sqlite: OpenCrawl
) -> None:
    acme, catalogs = web.site("acme"), web.site("w.catalogs.example")
    acme.manifest(entry("echo"))
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        moved(acme, catalogs)
        await crawl.run()
        document = await document_of(crawl, acme)
        assert (document.outcome, document.reason) == ("refused", "redirect_offsite")
        assert document.final_url == catalogs.url("/acme.json")
        assert document.failing_since is not None
        assert await crawl.identifiers() == [ECHO]
    assert catalogs.requests() == []


async def test_fr_25_the_robots_txt_of_the_final_host_is_obeyed(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme, catalogs = web.site("acme"), web.site("w.catalogs.example")
    moved(acme, catalogs)
    catalogs.robots("User-agent: *\nDisallow: /acme.json\n")
    async with crawl_sqlite(acme, catalogs) as crawl:
        await crawl.run(acme)
        document = await document_of(crawl, acme)
        assert (document.outcome, document.reason) == ("disallowed", "robots")
        assert catalogs.origin in document.detail
    assert catalogs.requests("/acme.json") == []


async def test_fr_25_relative_addresses_of_entries_resolve_against_where_the_bytes_are(
    web: FakeWeb, crawl_sqlite: OpenCrawl
) -> None:
    acme = web.site("acme")
    acme.redirect(ARD, "/agents/ard.json", 308)
    acme.manifest(entry("echo", url="cards/echo.json"), path="/agents/ard.json")
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        assert json.loads(await crawl.entry(ECHO) or "")["url"] == acme.url("/agents/cards/echo.json")


# --- FR-27: a permanent redirect --------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 308])
async def test_fr_27_a_permanent_redirect_is_followed_and_the_well_known_path_asked_all_the_same(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock, status: int
) -> None:
    """The origin is the identity (RFC 8615); where the bytes lie is provenance and may change back any day."""
    acme = web.site("acme")
    acme.redirect(ARD, "/agents/ard.json", status)
    acme.manifest(entry("echo"), path="/agents/ard.json")
    async with open_crawl(acme) as crawl:
        for _ in range(3):
            await crawl.run()
            document = await document_of(crawl, acme)
            assert document.final_url == acme.url("/agents/ard.json")
            assert "/agents/ard.json" not in await crawl.documents(acme)
            clock.advance(days=1)
        acme.gone("/agents/ard.json")
        acme.manifest(entry("echo"))
        await crawl.run()
        document = await document_of(crawl, acme)
        assert (document.final_url, document.hops) == (acme.url(ARD), [])
        # The 304 was that of another address, so the document was asked for once more.
        assert [seen.status for seen in acme.requests(ARD)] == [status] * 3 + [304, 200]
        assert [change.kind for change in await crawl.changes()] == ["entry.added"]


async def test_fr_27_a_redirect_that_appears_for_a_day_leaves_nothing_behind(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock
) -> None:
    """A captive network or a wrong rule redirects everything, permanently, to a page."""
    acme = web.site("acme")
    acme.manifest(entry("echo"))
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        acme.redirect(ARD, "/login", 301)
        acme.html("/login", "<h1>Sign in</h1>")
        clock.advance(days=1)
        await crawl.run()
        assert await crawl.identifiers() == [ECHO]
        acme.manifest(entry("echo"))
        clock.advance(days=1)
        await crawl.run()
        document = await document_of(crawl, acme)
        assert (document.outcome, document.final_url, document.failing_since) in [
            ("fetched", acme.url(ARD), None),
            ("not_modified", acme.url(ARD), None),
        ]
        assert [change.kind for change in await crawl.changes()] == ["entry.added"]


# --- FR-28: cookies ---------------------------------------------------------------------------------------------------


async def test_fr_28_no_request_of_a_crawl_carries_a_cookie(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    cookies = {"Set-Cookie": "k=1; Domain=.example; Path=/"}
    one, two = web.site("a"), web.site("b")
    for site in (one, two):
        site.manifest(entry("echo", publisher=site.host), headers=cookies)
        site.html("/", "<title>Home</title>", headers=cookies)
        site.robots("User-agent: *\nAllow: /\n", headers=cookies)
        site.redirect("/.well-known/ai-catalog.json", "/catalog.json").headers.update(cookies)
        site.manifest(path="/catalog.json")
    async with open_crawl(one, two) as crawl:
        for _ in range(2):
            await crawl.run()
            await crawl.run(two)
    assert len(web.seen) >= 20
    assert {seen.headers.get("Cookie") for seen in web.seen} == {None}


# --- FR-31: a host that sleeps ----------------------------------------------------------------------------------------


async def test_fr_31_a_host_that_wakes_up_on_the_second_request_is_healthy(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    """The first request wakes it and is dropped; one more try in the same visit finds it well."""
    awake: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await read_request(reader)
        if not awake:
            awake.append(head)
            await asyncio.sleep(0.1)
            return
        found = head.split(b" ", 2)[1].decode() == ARD
        writer.write(answer(manifest(entry("echo"))) if found else answer(b"", status="404 Not Found"))

    async with RawServer(talk) as sleepy:
        origin = f"http://sleepy.example:{sleepy.port}"
        async with open_crawl(origin) as crawl:
            summary = await crawl.run()
            assert summary.failed == 0
            assert await crawl.identifiers() == [ECHO]
            assert (await document_of(crawl, origin, "/robots.txt")).outcome == "absent"


async def test_fr_31_a_single_timeout_changes_nothing_that_anybody_sees(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock
) -> None:
    """The copy turns stale, the next look comes within minutes, and no change is told to anybody."""
    awake = asyncio.Event()
    awake.set()
    page = Page(manifest(entry("echo")))

    async def sleepy(request: server.Request) -> server.StreamResponse:
        await awake.wait()
        return page.answer(request)

    acme = web.site("acme")
    acme.handle(ARD, sleepy)
    async with crawl_sqlite(acme, network=SHORT) as crawl:
        await crawl.run()
        awake.clear()
        clock.advance(days=1)
        began = clock.now()
        assert await visit_due(crawl) == 1
        document = await document_of(crawl, acme)
        assert (document.outcome, document.reason) == ("unreachable", "timeout_headers")
        assert document.next_fetch_at - began <= timedelta(minutes=10)
        assert await crawl.identifiers() == [ECHO]
        awake.set()
        await pass_time(crawl, clock, minutes=10)
        assert (await document_of(crawl, acme)).failing_since is None
        assert [change.kind for change in await crawl.changes()] == ["entry.added"]
        assert await notes_of(crawl, acme.url(ARD)) == []
