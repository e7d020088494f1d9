"""The client against servers that lie, stall, flood and break off: every end is a value, and the next fetch works."""

import asyncio
import gzip
import logging
import socket
import struct
import tracemalloc
import zlib
from datetime import timedelta

import pytest

from crawler.clock import SystemClock
from index.documents import Outcome
from tests.fakes.clock import FakeClock
from tests.fakes.fetching import Fetching, answer, fetching, flooding, saying
from tests.fakes.web import FakeWeb, RawServer, read_request

SHORT = {"connect_timeout": "300ms", "header_timeout": "300ms", "total_timeout": "400ms"}
DOCUMENT = b'{"entries": []}'
PACKED = gzip.compress(DOCUMENT)
MIB = 1_048_576


def origin_of(server: RawServer) -> str:
    return f"http://raw.example:{server.port}"


async def assert_works(fetch: Fetching, web: FakeWeb) -> None:
    """Whatever happened before, another origin is fetched as ever."""
    other = web.site("other")
    other.page("/ok", DOCUMENT)
    assert (await fetch.get(other.url("/ok"))).body == DOCUMENT


# --- one answer, told wrongly -----------------------------------------------------------------------------------------

BROKEN = {
    # Compressed bodies: the end and the checksum must be there.
    "gzip cut in the data": (answer(PACKED[:-12], "Content-Encoding: gzip"), Outcome.UNREACHABLE, "incomplete"),
    "gzip cut in the trailer": (answer(PACKED[:-3], "Content-Encoding: gzip"), Outcome.UNREACHABLE, "incomplete"),
    "gzip without trailer": (answer(PACKED[:-8], "Content-Encoding: gzip"), Outcome.UNREACHABLE, "incomplete"),
    "gzip with a wrong checksum": (
        answer(PACKED[:-8] + bytes([PACKED[-8] ^ 1]) + PACKED[-7:], "Content-Encoding: gzip"),
        Outcome.UNREACHABLE,
        "incomplete",
    ),
    "gzip with a wrong length": (
        answer(PACKED[:-1] + b"\x07", "Content-Encoding: gzip"),
        Outcome.UNREACHABLE,
        "incomplete",
    ),
    "gzip with rubbish behind it": (
        answer(PACKED + b"rubbish", "Content-Encoding: gzip"),
        Outcome.UNREACHABLE,
        "incomplete",
    ),
    "plain text said to be gzip": (
        answer(DOCUMENT, "Content-Encoding: gzip"),
        Outcome.MALFORMED,
        "content_encoding",
    ),
    # Codings that nobody asked for.
    "brotli": (answer(b"\x0b\x07\x80{}\x03", "Content-Encoding: br"), Outcome.MALFORMED, "content_encoding"),
    "zstd": (answer(b"\x28\xb5\x2f\xfd", "Content-Encoding: zstd"), Outcome.MALFORMED, "content_encoding"),
    "deflate": (answer(zlib.compress(DOCUMENT), "Content-Encoding: deflate"), Outcome.MALFORMED, "content_encoding"),
    "a coding of its own": (answer(DOCUMENT, "Content-Encoding: rot13"), Outcome.MALFORMED, "content_encoding"),
    "gzip twice": (
        answer(gzip.compress(PACKED), "Content-Encoding: gzip, gzip"),
        Outcome.MALFORMED,
        "content_encoding",
    ),
    "gzip and brotli in two lines": (
        answer(PACKED, "Content-Encoding: gzip", "Content-Encoding: br"),
        Outcome.MALFORMED,
        "content_encoding",
    ),
    # Framing (RFC 9112 6.3, 8).
    "fewer bytes than Content-Length": (answer(DOCUMENT, length=500), Outcome.UNREACHABLE, "incomplete"),
    "a chunk that breaks off": (
        answer(b"40\r\n{}", "Transfer-Encoding: chunked", length=None),
        Outcome.UNREACHABLE,
        "incomplete",
    ),
    "chunks without the last one": (
        answer(b"2\r\n{}\r\n", "Transfer-Encoding: chunked", length=None),
        Outcome.UNREACHABLE,
        "incomplete",
    ),
    "a chunk size that is no number": (
        answer(b"zz\r\n{}\r\n0\r\n\r\n", "Transfer-Encoding: chunked", length=None),
        Outcome.UNREACHABLE,
        "protocol_error",
    ),
    "a chunk size past all numbers": (
        answer(b"fffffffffffffffff\r\n{}\r\n0\r\n\r\n", "Transfer-Encoding: chunked", length=None),
        Outcome.UNREACHABLE,
        "protocol_error",
    ),
    "a Content-Length that is no number": (
        answer(DOCUMENT, "Content-Length: many", length=None),
        Outcome.UNREACHABLE,
        "protocol_error",
    ),
    "a negative Content-Length": (answer(DOCUMENT, length=-2), Outcome.UNREACHABLE, "protocol_error"),
    "two Content-Lengths": (answer(DOCUMENT, "Content-Length: 3"), Outcome.UNREACHABLE, "protocol_error"),
    "Content-Length beside chunks": (
        answer(b"2\r\n{}\r\n0\r\n\r\n", "Transfer-Encoding: chunked", length=2),
        Outcome.UNREACHABLE,
        "protocol_error",
    ),
    # Heads.
    "rubbish": (b"\x00\xff\x01rubbish\r\n\r\n", Outcome.UNREACHABLE, "protocol_error"),
    "a page without any head": (b"<!doctype html><title>hello</title>", Outcome.UNREACHABLE, "protocol_error"),
    "HTTP/2": (b"HTTP/2 200 OK\r\nContent-Length: 2\r\n\r\n{}", Outcome.UNREACHABLE, "protocol_error"),
    "a status of two digits": (answer(status="99 Odd"), Outcome.UNREACHABLE, "protocol_error"),
    "a status of four digits": (answer(status="2000 Odd"), Outcome.UNREACHABLE, "protocol_error"),
    "a status that is no number": (answer(status="abc Odd"), Outcome.UNREACHABLE, "protocol_error"),
    "a field without colon": (answer(DOCUMENT, "no colon"), Outcome.UNREACHABLE, "protocol_error"),
    "a NUL in a field": (answer(DOCUMENT, "X-A: a\x00b"), Outcome.UNREACHABLE, "protocol_error"),
    "a field of 100 KB": (answer(DOCUMENT, f"X-A: {'a' * 100_000}"), Outcome.UNREACHABLE, "protocol_error"),
    "a field name of 100 KB": (answer(DOCUMENT, f"{'a' * 100_000}: b"), Outcome.UNREACHABLE, "protocol_error"),
    "a reason of 100 KB": (answer(status=f"200 {'a' * 100_000}"), Outcome.UNREACHABLE, "protocol_error"),
    "5000 fields": (answer(DOCUMENT, *["X-A: a"] * 5000), Outcome.UNREACHABLE, "protocol_error"),
    # Statuses that bring no document.
    "switching protocols": (
        b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nabc",
        Outcome.UNREACHABLE,
        "unexpected_status_101",
    ),
    "no content": (answer(b"", status="204 No Content", length=None), Outcome.UNREACHABLE, "unexpected_status_204"),
    "a part nobody asked for": (answer(status="206 Partial"), Outcome.UNREACHABLE, "unexpected_status_206"),
    "created": (answer(DOCUMENT, "Location: /x", status="201 Created"), Outcome.UNREACHABLE, "unexpected_status_201"),
    "a choice": (answer(DOCUMENT, "Location: /x", status="300 Choices"), Outcome.UNREACHABLE, "unexpected_status_300"),
    "a proxy to use": (answer(b"", "Location: /x", status="305 Proxy"), Outcome.UNREACHABLE, "unexpected_status_305"),
    "a redirect to nowhere": (answer(b"", status="302 Found"), Outcome.UNREACHABLE, "protocol_error"),
    "unauthorized": (answer(status="401 No", body=b""), Outcome.WITHHELD, "http_401"),
    "forbidden": (answer(status="403 No", body=b""), Outcome.WITHHELD, "http_403"),
    "legal reasons": (answer(status="451 No", body=b""), Outcome.WITHHELD, "http_451"),
    "absent": (answer(status="404 No", body=b""), Outcome.ABSENT, "http_404"),
    "gone": (answer(status="410 No", body=b""), Outcome.GONE, "http_410"),
    "too many requests": (answer(status="429 No", body=b""), Outcome.UNREACHABLE, "http_429"),
    "a server error": (answer(status="500 No", body=b""), Outcome.UNREACHABLE, "http_500"),
    "an unknown status": (answer(status="799 No", body=b""), Outcome.UNREACHABLE, "http_799"),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_a_broken_answer_is_an_outcome_with_a_reason_and_brings_no_content(web: FakeWeb, name: str) -> None:
    said, outcome, reason = BROKEN[name]
    async with RawServer(saying(said)) as server, fetching(origin_of(server), web.site("other")) as fetch:
        seen = await fetch.get(origin_of(server) + "/ard.json")
        assert (seen.outcome, seen.reason) == (outcome, reason)
        assert seen.body == b""
        assert seen.final_url == origin_of(server) + "/ard.json"
        assert server.connections == 1, "what was answered is not asked again"
        assert seen.detail.isprintable()
        assert len(seen.detail) <= 300
        await assert_works(fetch, web)


SOUND = {
    "plain": answer(DOCUMENT),
    "identity": answer(DOCUMENT, "Content-Encoding: identity"),
    "gzip": answer(PACKED, "Content-Encoding: gzip"),
    "gzip in capitals": answer(PACKED, "Content-Encoding: GZIP"),
    "x-gzip": answer(PACKED, "Content-Encoding: x-gzip"),
    "gzip in two members": answer(gzip.compress(DOCUMENT[:5]) + gzip.compress(DOCUMENT[5:]), "Content-Encoding: gzip"),
    "chunks": answer(
        b"5\r\n" + DOCUMENT[:5] + b"\r\na\r\n" + DOCUMENT[5:] + b"\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked",
        length=None,
    ),
    "until the connection closes": answer(DOCUMENT, length=None),
    "after interim answers": b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + answer(DOCUMENT),
    "transformed by a proxy": answer(DOCUMENT, status="203 Other"),
}


@pytest.mark.parametrize("name", SOUND)
async def test_an_unusual_but_sound_answer_is_read(name: str) -> None:
    async with RawServer(saying(SOUND[name])) as server, fetching(origin_of(server)) as fetch:
        seen = await fetch.get(origin_of(server) + "/ard.json")
        assert (seen.outcome, seen.body) == (Outcome.FETCHED, DOCUMENT)


@pytest.mark.parametrize("size", [1, 2, 7])
async def test_gzip_in_tiny_pieces_is_decoded_whole(size: int) -> None:
    body = bytes(range(256)) * 40
    packed = gzip.compress(body)
    pieces = [packed[start : start + size] for start in range(0, len(packed), size)]
    said = (answer(b"", "Content-Encoding: gzip", length=len(packed)), *pieces)
    async with RawServer(saying(*said)) as server, fetching(origin_of(server)) as fetch:
        seen = await fetch.get(origin_of(server) + "/ard.json")
        assert seen.body == body
        assert seen.wire_size == len(packed)


async def test_the_status_of_the_answer_that_failed_is_reported_not_that_of_the_redirect_before_it() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        moved = b"GET /old " in await read_request(reader)
        fields = ("Location: /new", "X-Hop: one")
        writer.write(answer(b"", *fields, status="301 Moved") if moved else answer(b"x" * 200))

    async with RawServer(talk) as server, fetching(origin_of(server)) as fetch:
        seen = await fetch.get(origin_of(server) + "/old", max_size=100)
        assert (seen.outcome, seen.reason, seen.status) == (Outcome.TOO_LARGE, "too_large", 200)
        assert "x-hop" not in seen.headers
        assert [hop.status for hop in seen.hops] == [301]


async def test_an_answer_sent_ahead_is_never_taken_for_the_answer_to_the_next_request() -> None:
    """A second answer pushed onto the connection would let one path of an origin speak for another."""
    poison = answer(b'{"entries": ["poison"]}', last=False)
    asked = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            asked.append((await read_request(reader)).split(b" ", 2)[1])
            first = answer(b'{"first": 1}', last=False) + poison
            writer.write(first if len(asked) == 1 else answer(b'{"second": 2}'))
            await writer.drain()

    async with RawServer(talk) as server, fetching(origin_of(server)) as fetch:
        await fetch.get(origin_of(server) + "/one")
        second = await fetch.get(origin_of(server) + "/two")
        assert second.body == b'{"second": 2}'
        assert asked == [b"/one", b"/two"]
        assert server.connections == 2


# --- too much ---------------------------------------------------------------------------------------------------------


def packed_spaces(mebibytes: int) -> list[bytes]:
    """A gzip stream of spaces, one block of it compressed and repeated."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    head = packer.compress(b" " * MIB) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(b" " * MIB) + packer.flush(zlib.Z_FULL_FLUSH)
    return [head, *[block] * (mebibytes - 1)]


async def test_a_gzip_bomb_is_cut_at_the_limit_in_bounded_memory(web: FakeWeb) -> None:
    """A gibibyte in a megabyte: what is decoded is counted while it streams, and never held whole."""
    bomb = packed_spaces(1024)
    size = sum(map(len, bomb))
    said = (answer(b"", "Content-Encoding: gzip", length=size), *bomb)
    async with RawServer(saying(*said)) as server, fetching(origin_of(server), web.site("other")) as fetch:
        tracemalloc.start()
        try:
            seen = await fetch.get(origin_of(server) + "/ard.json", max_size=MIB)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert (seen.outcome, seen.reason, seen.body) == (Outcome.TOO_LARGE, "too_large", b"")
        assert peak < 2 * MIB
        await assert_works(fetch, web)


async def test_the_part_of_a_bomb_that_is_wanted_is_kept_and_said_to_be_a_part() -> None:
    """Pages and robots.txt are read up to their limit, whatever comes behind it."""
    bomb = packed_spaces(64)
    said = (answer(b"", "Content-Encoding: gzip", length=sum(map(len, bomb))), *bomb)
    async with RawServer(saying(*said)) as server, fetching(origin_of(server)) as fetch:
        seen = await fetch.get(origin_of(server) + "/robots.txt", max_size=100_000, truncate=True)
        assert (seen.outcome, seen.truncated) == (Outcome.FETCHED, True)
        assert seen.body == b" " * 100_000


async def test_an_endless_body_is_cut_and_its_connection_closed() -> None:
    left = asyncio.Event()
    talk = flooding(answer(b"", length=None), b"[" * 10_000, left=left)
    async with RawServer(talk) as server, fetching(origin_of(server)) as fetch:
        seen = await fetch.get(origin_of(server) + "/ard.json", max_size=100_000)
        assert (seen.outcome, seen.reason) == (Outcome.TOO_LARGE, "too_large")
        await asyncio.wait_for(left.wait(), 5)


async def test_a_body_announced_too_large_is_not_read() -> None:
    async with (
        RawServer(saying(answer(b"{", length=10**12), hang=True)) as server,
        fetching(origin_of(server)) as fetch,
    ):
        seen = await fetch.get(origin_of(server) + "/ard.json", max_size=MIB)
        assert (seen.outcome, seen.reason) == (Outcome.TOO_LARGE, "too_large")


@pytest.mark.parametrize(("size", "outcome"), [(1000, Outcome.FETCHED), (1001, Outcome.TOO_LARGE)])
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
async def test_the_limit_counts_decoded_bytes_to_the_last_one(size: int, outcome: Outcome, packed: bool) -> None:
    body = b"x" * size
    said = answer(gzip.compress(body), "Content-Encoding: gzip") if packed else answer(body)
    async with RawServer(saying(said)) as server, fetching(origin_of(server)) as fetch:
        seen = await fetch.get(origin_of(server) + "/ard.json", max_size=1000)
        assert (seen.outcome, len(seen.body)) == (outcome, size if outcome is Outcome.FETCHED else 0)


FLOODS = {
    "chunk extensions": (
        answer(b"", "Transfer-Encoding: chunked", length=None),
        b"1;" + b"a" * 8000 + b"\r\n \r\n",
        "flood",
        200,
    ),
    "interim answers": (b"", b"HTTP/1.1 102 Processing\r\nX-A: " + b"a" * 4000 + b"\r\n\r\n", "flood", None),
    "empty gzip members": (
        answer(b"", "Content-Encoding: gzip", length=None),
        gzip.compress(b"") * 1000,
        "flood",
        200,
    ),
}


@pytest.mark.parametrize("name", FLOODS)
async def test_bytes_without_payload_are_counted_too(web: FakeWeb, name: str) -> None:
    head, piece, reason, status = FLOODS[name]
    left = asyncio.Event()
    async with (
        RawServer(flooding(head, piece, left=left)) as server,
        fetching(origin_of(server), web.site("other")) as fetch,
    ):
        # A limit that the payload, an octet in thousands, does not come near before somebody looks.
        seen = await fetch.get(origin_of(server) + "/ard.json", max_size=MIB)
        assert (seen.outcome, seen.reason, seen.status) == (Outcome.TOO_LARGE, reason, status)
        assert server.connections == 1
        await asyncio.wait_for(left.wait(), 5)
        await assert_works(fetch, web)


# --- too slow ---------------------------------------------------------------------------------------------------------

STALLS = {
    "silence": (saying(hang=True), "timeout_headers"),
    "half a status line": (saying(b"HTTP/1.1 2", hang=True), "timeout_headers"),
    "a head a byte at a time": (flooding(b"HTTP/1.1 200 OK\r\nX-A: ", b"a", pause_s=0.02), "timeout_headers"),
    "fields one by one": (flooding(b"HTTP/1.1 200 OK\r\n", b"X-A: a\r\n", pause_s=0.02), "timeout_headers"),
    "interim answers one by one": (flooding(b"", b"HTTP/1.1 100 Continue\r\n\r\n", pause_s=0.02), "timeout_headers"),
    "a head and then nothing": (saying(answer(b"", length=100), hang=True), "timeout_body"),
    "a body a byte at a time": (flooding(answer(b"", length=None), b" ", pause_s=0.02), "timeout_body"),
    "chunks one by one": (
        flooding(answer(b"", "Transfer-Encoding: chunked", length=None), b"1\r\n \r\n", pause_s=0.02),
        "timeout_body",
    ),
}


@pytest.mark.parametrize("name", STALLS)
async def test_a_stall_ends_at_the_deadline_and_is_not_tried_again(web: FakeWeb, name: str) -> None:
    """Every byte moves a stalled server's answer on, but none moves the deadline."""
    talk, reason = STALLS[name]
    async with RawServer(talk) as server, fetching(origin_of(server), web.site("other"), network=SHORT) as fetch:
        loop = asyncio.get_running_loop()
        began = loop.time()
        seen = await fetch.get(origin_of(server) + "/ard.json")
        assert (seen.outcome, seen.reason, seen.body) == (Outcome.UNREACHABLE, reason, b"")
        assert 0.25 < loop.time() - began < 2
        assert server.connections == 1
        await assert_works(fetch, web)


async def test_redirects_share_one_deadline() -> None:
    """Each hop is quick enough for itself, all of them together are not."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await read_request(reader)).split(b" ", 2)[1].decode()
        await asyncio.sleep(0.15)
        writer.write(answer(b"", f"Location: {path}x", status="302 Found"))

    async with (
        RawServer(talk) as server,
        fetching(origin_of(server), clock=SystemClock(), network={**SHORT, "max_redirects": 20}) as fetch,
    ):
        seen = await fetch.get(origin_of(server) + "/x")
        assert seen.outcome is Outcome.UNREACHABLE
        assert seen.reason.startswith("timeout_")
        assert len(seen.hops) <= 3


async def test_a_second_try_gets_what_the_first_one_left_of_the_deadline() -> None:
    """Otherwise a server that drops the first connection late holds a visit for nearly twice the time allowed."""
    turns = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        turns.append(len(turns))
        if len(turns) == 1:
            await asyncio.sleep(0.5)
            return
        writer.write(answer(b"", length=100))
        await reader.read()

    network = {"header_timeout": "1s", "total_timeout": "1s"}
    async with RawServer(talk) as server, fetching(origin_of(server), clock=QuickClock(), network=network) as fetch:
        loop = asyncio.get_running_loop()
        began = loop.time()
        seen = await fetch.get(origin_of(server) + "/ard.json")
        assert (seen.reason, turns) == ("timeout_body", [0, 1])
        assert loop.time() - began < 1.3


class QuickClock(SystemClock):
    """Real time, but hardly any pauses."""

    def chance(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


# --- connections ------------------------------------------------------------------------------------------------------


async def test_a_connection_closed_before_any_answer_is_tried_once_more_after_a_pause() -> None:
    clock = FakeClock()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        if server.connections > 1:
            writer.write(answer(DOCUMENT))

    async with RawServer(talk) as server, fetching(origin_of(server), clock=clock) as fetch:
        seen = await fetch.get(origin_of(server) + "/ard.json")
        assert (seen.outcome, seen.body) == (Outcome.FETCHED, DOCUMENT)
        assert server.connections == 2
        assert len(clock.slept) == 1
        assert 0.2 <= clock.slept[0] <= 1


async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_request(reader)
    writer.transport.abort()


@pytest.mark.parametrize(
    "talk", [saying(), reset, saying(b"HTTP/1.1 100 Continue\r\n\r\n")], ids=["closed", "reset", "interim"]
)
async def test_a_server_that_never_answers_is_tried_twice_and_no_more(talk: object) -> None:
    async with RawServer(talk) as server, fetching(origin_of(server)) as fetch:  # type: ignore[arg-type]
        seen = await fetch.get(origin_of(server) + "/ard.json")
        assert (seen.outcome, seen.reason) == (Outcome.UNREACHABLE, "reset")
        assert server.connections == 2


async def test_a_refused_connection_is_an_outcome() -> None:
    async with RawServer(saying()) as server:
        port = server.port
    async with fetching(f"http://raw.example:{port}") as fetch:
        seen = await fetch.get(f"http://raw.example:{port}/ard.json")
        assert (seen.outcome, seen.reason) == (Outcome.UNREACHABLE, "connect")
        assert seen.detail == "Connection refused"


@pytest.mark.parametrize(
    "head",
    [
        answer(DOCUMENT, length=100),
        answer(b"2\r\n{}\r\n", "Transfer-Encoding: chunked", length=None),
        answer(PACKED, "Content-Encoding: gzip", length=None),
        answer(DOCUMENT, length=None),
    ],
    ids=["length", "chunks", "gzip", "until close"],
)
async def test_a_reset_in_the_middle_of_the_body_is_a_failure_and_not_tried_again(head: bytes) -> None:
    """Also where only the end of the connection ends the body, which then looks whole (RFC 9112 8)."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(head)
        await writer.drain()
        await asyncio.sleep(0.02)
        no_lingering = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, no_lingering)
        writer.transport.abort()

    async with RawServer(talk) as server, fetching(origin_of(server)) as fetch:
        seen = await fetch.get(origin_of(server) + "/ard.json")
        assert (seen.outcome, seen.reason, seen.body) == (Outcome.UNREACHABLE, "incomplete", b"")
        assert server.connections == 1


async def test_proxies_and_stored_passwords_of_the_environment_are_ignored(
    web: FakeWeb, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    site = web.site("acme")
    site.page("/ard.json", DOCUMENT)
    netrc = f"{tmp_path}/netrc"
    with open(netrc, "w") as stream:  # noqa: ASYNC230, PTH123
        stream.write("machine acme.example login me password secret\ndefault login me password secret\n")
    async with RawServer(saying(answer(b"from the proxy"))) as proxy:
        for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.setenv("NETRC", netrc)
        async with fetching(site) as fetch:
            seen = await fetch.get(site.url("/ard.json"))
        assert seen.body == DOCUMENT
        assert proxy.connections == 0
    assert "Authorization" not in site.requests()[0].headers


# --- what we say ------------------------------------------------------------------------------------------------------


async def test_a_request_says_who_asks_and_nothing_that_it_need_not_say(web: FakeWeb) -> None:
    site = web.site("acme")
    site.page("/ard.json", DOCUMENT)
    async with fetching(site) as fetch:
        for _ in range(2):
            await fetch.get(site.url("/ard.json"))
    first, second = (seen.headers for seen in site.requests())
    assert first == second
    assert set(first) == {"Host", "User-Agent", "Accept", "Accept-Encoding"}
    assert first["User-Agent"] == "ardvark/0.1.0 (+https://registry.example/crawler)"
    assert first["Accept-Encoding"] == "gzip"
    assert site.requests()[0].method == "GET"


async def test_cookies_are_neither_kept_nor_sent(web: FakeWeb) -> None:
    site, sister = web.site("a.shop.example"), web.site("b.shop.example")
    cookies = {"Set-Cookie": "k=1; Domain=.shop.example; Path=/"}
    site.page("/ard.json", DOCUMENT, headers=cookies)
    site.page("/moved", status=302, headers={**cookies, "Location": "/ard.json"})
    sister.page("/ard.json", DOCUMENT)
    async with fetching(site, sister) as fetch:
        for url in (site.url("/moved"), site.url("/ard.json"), sister.url("/ard.json")):
            assert (await fetch.get(url)).outcome is Outcome.FETCHED
    assert [seen.headers.get("Cookie") for seen in web.seen] == [None] * 4


# --- pacing -----------------------------------------------------------------------------------------------------------


async def test_requests_to_one_origin_are_spaced_and_those_to_another_are_not_held_up(web: FakeWeb) -> None:
    clock = HeldClock()
    slow, other = web.site("slow"), web.site("other")
    for site in (slow, other):
        site.page("/ard.json", DOCUMENT)
    async with fetching(slow, other, clock=clock) as fetch:
        spacing = timedelta(seconds=30)
        await fetch.get(slow.url("/ard.json"), spacing=spacing)
        waiting = asyncio.create_task(fetch.get(slow.url("/ard.json"), spacing=spacing))
        await clock.sleeping.wait()
        assert (await fetch.get(other.url("/ard.json"), spacing=spacing)).outcome is Outcome.FETCHED
        assert len(slow.requests()) == 1
        assert clock.asked == [pytest.approx(30)]
        clock.wake()
        assert (await waiting).outcome is Outcome.FETCHED
        assert len(slow.requests()) == 2


class HeldClock(FakeClock):
    """A clock on which a sleep ends only when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.sleeping = asyncio.Event()
        self.asked: list[float] = []
        self._awake = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.asked.append(seconds)
        self.sleeping.set()
        await self._awake.wait()
        self.advance(seconds=seconds)

    def wake(self) -> None:
        self._awake.set()


async def test_one_origin_gets_one_request_at_a_time_and_several_origins_are_served_at_once() -> None:
    running: dict[int, int] = {}
    most: dict[int, int] = {}
    both = asyncio.Barrier(2)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        me = writer.get_extra_info("sockname")[1]
        while True:
            await read_request(reader)
            running[me] = running.get(me, 0) + 1
            most[me] = max(most.get(me, 0), running[me])
            # Both origins are under way here, or nothing goes on.
            await asyncio.wait_for(both.wait(), 5)
            running[me] -= 1
            writer.write(answer(DOCUMENT, last=False))
            await writer.drain()

    async with RawServer(talk) as one, RawServer(talk) as two:
        origins = [origin_of(one), origin_of(two)]
        async with fetching(*origins, network={"header_timeout": "6s", "total_timeout": "6s"}) as fetch:
            seen = await asyncio.gather(*(fetch.get(f"{origin}/{n}") for n in range(4) for origin in origins))
    assert [item.outcome for item in seen] == [Outcome.FETCHED] * 8
    assert most == {one.port: 1, two.port: 1}


async def test_a_redirect_within_an_origin_waits_its_turn_like_any_request(web: FakeWeb) -> None:
    clock = FakeClock()
    site = web.site("acme")
    site.redirect("/old", "/new")
    site.page("/new", DOCUMENT)
    async with fetching(site, clock=clock) as fetch:
        seen = await fetch.get(site.url("/old"), spacing=timedelta(seconds=5))
    assert seen.outcome is Outcome.FETCHED
    assert clock.slept == [pytest.approx(5)]


# --- what is logged ---------------------------------------------------------------------------------------------------

MARK = "hostile-marker"


async def test_a_hostile_peer_writes_nothing_into_details_or_library_logs(caplog: pytest.LogCaptureFixture) -> None:
    """Parsers quote what they stumble over; none of it may reach whoever reads our words."""
    lines = [
        f"{MARK}\x1b[2J rubbish\r\n\r\n".encode(),
        f"HTTP/1.1 200 OK\r\n{MARK} no colon\r\n\r\n".encode(),
        f"HTTP/1.1 200 OK\r\nX-A: {MARK}\x00\r\n\r\n".encode(),
        f"HTTP/1.1 200 OK\r\nX-A: {MARK}{'a' * 100_000}\r\n\r\n".encode(),
        f"HTTP/1.1 200 OK\r\nContent-Length: {MARK}\r\n\r\n".encode(),
        answer(f"{MARK}\r\n{{}}".encode(), "Transfer-Encoding: chunked", length=None),
        answer(b"{}", f"Content-Encoding: {MARK}"),
        answer(MARK.encode(), "Content-Encoding: gzip"),
    ]
    with caplog.at_level(logging.DEBUG):
        for said in lines:
            async with RawServer(saying(said)) as server, fetching(origin_of(server)) as fetch:
                seen = await fetch.get(origin_of(server) + "/ard.json")
            assert seen.outcome in (Outcome.UNREACHABLE, Outcome.MALFORMED)
            assert MARK not in seen.reason + seen.detail, said[:60]
            assert seen.detail.isprintable()
    assert MARK not in caplog.text
