"""Every way a request can fail has one shape: `{"errorCode", "message"}` (ARD 5.3)."""

import asyncio
import gzip
import json
import sqlite3
import zlib
from pathlib import Path

from structlog.testing import capture_logs

from tests.conftest import OpenCrawl
from tests.fakes.events import logged
from tests.fakes.registry import serving
from tests.fakes.web import FakeWeb, entry

SEARCH = b'{"query":{"text":"echo"}}'


async def test_what_is_not_there_is_404(crawl_sqlite: OpenCrawl) -> None:
    async with serving(crawl_sqlite) as registry:
        for path in (
            "/none",
            "/api",
            "/api/v1",
            "/api/v1/",
            "/api/v1/none",
            "/api/v2/search",
            "/api/v1/search/",
            "/api/v1/search/x",
            "/API/V1/SEARCH",
            "//api/v1/agents",
            "/api/v1/agents%2F",
            "/%zz",
            "/%ff",
            "/<script>",
            "/.well-known/",
            "/.well-known/agent.json",
            "/favicon.ico",
            "/" + "x" * 4000,
        ):
            answer = await registry.get(path)
            assert answer.error() == (404, "NOT_FOUND"), path
            assert answer.headers["cache-control"] == "no-cache"
            assert path.strip("/")[:12] not in answer.json["message"] or path == "/api", "nothing sent is echoed"


async def test_a_method_that_a_resource_lacks_is_405_with_what_it_has(crawl_sqlite: OpenCrawl) -> None:
    async with serving(crawl_sqlite) as registry:
        for method, path, allowed in (
            ("GET", "/api/v1/search", {"POST"}),
            ("HEAD", "/api/v1/search", {"POST"}),
            ("PUT", "/api/v1/search", {"POST"}),
            ("OPTIONS", "/api/v1/search", {"POST"}),
            ("GET", "/api/v1/explore", {"POST"}),
            ("POST", "/api/v1/agents", {"GET", "HEAD"}),
            ("DELETE", "/api/v1/agents", {"GET", "HEAD"}),
            ("DELETE", "/api/v1/agents/urn:air:acme.example:tool:echo", {"GET", "HEAD"}),
            ("PATCH", "/api/v1/agents/urn:air:acme.example:tool:echo", {"GET", "HEAD"}),
            ("POST", "/.well-known/ard.json", {"GET", "HEAD"}),
            ("TRACE", "/healthz", {"GET", "HEAD"}),
            ("PURGE", "/openapi.json", {"GET", "HEAD"}),
        ):
            answer = await registry.request(method, path)
            assert answer.status == 405, (method, path)
            assert {name.strip() for name in answer.headers["allow"].split(",")} == allowed, (method, path)
            if method != "HEAD":
                assert answer.error() == (405, "METHOD_NOT_ALLOWED")


async def test_a_body_that_is_not_json_by_its_type_is_415(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"))
    async with serving(crawl_sqlite, acme) as registry:
        for content_type, status in (
            ("application/json", 200),
            ("Application/JSON; charset=utf-8", 200),
            ("application/vnd.ard+json", 200),
            ("text/plain", 415),
            ("application/x-www-form-urlencoded", 415),
            ("multipart/form-data; boundary=x", 415),
            ("text/json", 415),
            ("application/jsonp", 415),
            ("nonsense", 415),
        ):
            for path in ("/api/v1/search", "/api/v1/explore"):
                body = SEARCH if path.endswith("search") else b'{"resultType":{"facets":[]}}'
                answer = await registry.request("POST", path, data=body, headers={"Content-Type": content_type})
                assert answer.status == status, (path, content_type)
                if status == 415:
                    assert answer.error() == (415, "UNSUPPORTED_MEDIA_TYPE")
        bare = await registry.request("POST", "/api/v1/search", data=SEARCH, skip_auto_headers=["Content-Type"])
        assert bare.status == 200


async def test_a_body_beyond_the_bound_is_413_however_it_comes(crawl_sqlite: OpenCrawl) -> None:
    async def trickle() -> object:
        for _ in range(64):
            yield b" " * 100

    large = b" " * 4096 + SEARCH
    kind = {"Content-Type": "application/json"}
    async with serving(crawl_sqlite, api={"max_request_size": 2048}) as registry:
        fits = SEARCH.ljust(2048)
        assert (await registry.post("/api/v1/search", fits)).status == 200
        assert (await registry.post("/api/v1/search", large)).error() == (413, "PAYLOAD_TOO_LARGE")
        chunked = await registry.request("POST", "/api/v1/search", data=trickle(), headers=kind)
        assert chunked.error() == (413, "PAYLOAD_TOO_LARGE")
        for encoding, packed in (("gzip", gzip.compress(b" " * 10_000_000)), ("deflate", zlib.compress(large))):
            headers = {**kind, "Content-Encoding": encoding}
            bomb = await registry.request("POST", "/api/v1/search", data=packed, headers=headers)
            assert bomb.error()[0] == 413, encoding


async def test_a_packed_body_is_read_and_a_broken_one_is_the_clients_fault(
    web: FakeWeb, crawl_sqlite: OpenCrawl
) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"))
    kind = {"Content-Type": "application/json"}
    async with serving(crawl_sqlite, acme) as registry:
        headers = {**kind, "Content-Encoding": "gzip"}
        good = await registry.request("POST", "/api/v1/search", data=gzip.compress(SEARCH), headers=headers)
        assert len(good.json["results"]) == 1
        for packed in (SEARCH, gzip.compress(SEARCH)[:20], b"\x1f\x8b" + b"x" * 30):
            bad = await registry.request("POST", "/api/v1/search", data=packed, headers=headers)
            assert bad.error() == (400, "INVALID_ARGUMENT"), packed


async def test_malformed_http_is_answered_in_the_same_shape(crawl_sqlite: OpenCrawl) -> None:
    host = b"Host: registry.example\r\n"
    post = b"POST /api/v1/search HTTP/1.1\r\n" + host + b"Content-Type: application/json\r\n"
    async with serving(crawl_sqlite) as registry:
        for sent in (
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"GET\r\n\r\n",
            b"GET / HTTP/9.9\r\n" + host + b"\r\n",
            b"GET /a b HTTP/1.1\r\n" + host + b"\r\n",
            b"G\x00T / HTTP/1.1\r\n" + host + b"\r\n",
            b"GET / HTTP/1.1\r\nHost\r\n\r\n",
            b"GET / HTTP/1.1\r\n" + host + b"X: " + b"y" * 70_000 + b"\r\n\r\n",
            b"GET /" + b"y" * 70_000 + b" HTTP/1.1\r\n" + host + b"\r\n",
            post + b"Content-Length: ten\r\n\r\n",
            post + b"Content-Length: -5\r\n\r\n",
            post + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
            post + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
            post + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n{}\r\n0\r\n\r\n",
            post + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}XX0\r\n\r\n",
        ):
            answer = await registry.raw(sent)
            status, code = answer.error()
            assert 400 <= status < 500, sent[:60]
            assert code == "INVALID_ARGUMENT", sent[:60]
            assert answer.headers["cache-control"] == "no-cache"


async def test_a_post_without_a_body_is_a_request_for_nothing(crawl_sqlite: OpenCrawl) -> None:
    async with serving(crawl_sqlite) as registry:
        for length in (b"", b"Content-Length: 0\r\n", b"Transfer-Encoding: chunked\r\n"):
            end = b"0\r\n\r\n" if b"chunked" in length else b""
            head = b"POST /api/v1/search HTTP/1.1\r\nHost: r.example\r\nConnection: close\r\n"
            answer = await registry.raw(head + length + b"\r\n" + end)
            assert answer.error() == (400, "INVALID_ARGUMENT"), length


async def test_an_expectation_that_nobody_can_meet_is_refused_in_the_same_shape(crawl_sqlite: OpenCrawl) -> None:
    head = "POST {} HTTP/1.1\r\nHost: registry.example\r\nContent-Type: application/json\r\nConnection: close\r\n"
    async with serving(crawl_sqlite) as registry:
        for path in ("/api/v1/search", "/none", "/api/v1/agents"):
            sent = head.format(path) + f"Expect: the-moon\r\nContent-Length: {len(SEARCH)}\r\n\r\n"
            answer = await registry.raw(sent.encode() + SEARCH)
            assert answer.error() == (417, "EXPECTATION_FAILED"), path
        waits = head.format("/api/v1/search") + f"Expect: 100-continue\r\nContent-Length: {len(SEARCH)}\r\n\r\n"
        host, _, port = registry.address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(waits.encode())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
        writer.write(SEARCH)
        assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
        writer.close()
        await writer.wait_closed()


async def test_a_client_that_leaves_in_the_middle_of_its_request_is_no_fault_of_ours(crawl_sqlite: OpenCrawl) -> None:
    head = "POST /api/v1/search HTTP/1.1\r\nHost: r.example\r\nContent-Type: application/json\r\n"
    begun = f"{head}Content-Length: 99\r\n\r\n{{"
    async with serving(crawl_sqlite) as registry:
        with logged() as events:
            host, _, port = registry.address.rpartition(":")
            _, writer = await asyncio.open_connection(host, int(port))
            writer.write(begun.encode())
            await writer.drain()
            # Its answer tells that the beginning of the other one has arrived as well.
            assert (await registry.get("/healthz")).status == 200
            writer.close()
            await writer.wait_closed()
            event = await events.wait("api.connection_failed")
        assert event["level"] == "warning"
        assert events.named("api.failed") == []


async def test_a_connection_serves_on_after_a_refused_request(crawl_sqlite: OpenCrawl) -> None:
    request = "POST /api/v1/search HTTP/1.1\r\nHost: r.example\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}\r\n{}"
    first = request.format("text/plain", 5, "", "x" * 5)
    second = request.format("application/json", len(SEARCH), "Connection: close\r\n", SEARCH.decode())
    async with serving(crawl_sqlite) as registry:
        host, _, port = registry.address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write((first + second).encode())
        received = await asyncio.wait_for(reader.read(), 5)
        writer.close()
        await writer.wait_closed()
    assert received.count(b"HTTP/1.1 415 ") == 1
    assert received.endswith(b'{"results":[]}')


async def test_a_fault_of_ours_is_500_and_tells_nothing(web: FakeWeb, crawl_sqlite: OpenCrawl, tmp_path: Path) -> None:
    """The database is damaged under the running server."""
    acme = web.site("acme")
    acme.manifest(entry("echo"))
    async with serving(crawl_sqlite, acme) as registry:
        with sqlite3.connect(tmp_path / "ardvark.db") as damaged:
            for table in ("words", "attributes", "listing_bodies", "facts"):
                damaged.execute(f"DROP TABLE {table}")
        damaged.close()
        with capture_logs() as logged:
            answers = [
                await registry.post("/api/v1/search", {"query": {"text": "echo"}}),
                await registry.post("/api/v1/explore", {"resultType": {"facets": [{"field": "tags"}]}}),
                await registry.get("/api/v1/agents"),
                await registry.get("/api/v1/agents/urn:air:acme.example:tool:echo"),
            ]
            ready = await registry.get("/readyz")
        for answer in answers:
            assert answer.error() == (500, "INTERNAL_ERROR")
            assert answer.headers["cache-control"] == "no-cache"
        assert [event["event"] for event in logged] == ["api.failed"] * len(answers) + ["api.not_ready"]
        assert all(event["exc_info"] for event in logged[:-1])
        assert ready.error() == (503, "UNAVAILABLE")
        assert int(ready.headers["retry-after"]) > 0
        # The process itself lives.
        assert (await registry.get("/healthz")).status == 200


async def test_a_message_never_carries_markup_or_endless_text_back(crawl_sqlite: OpenCrawl) -> None:
    hostile = "<script>alert(1)</script>" + "x" * 3000
    async with serving(crawl_sqlite) as registry:
        answers = [
            await registry.post("/api/v1/search", {"query": {"text": "x"}, hostile: 1}),
            await registry.post("/api/v1/search", {"query": {"text": "x", "filter": {"@" + hostile: 1}}}),
            await registry.post("/api/v1/search", {"query": {"text": "x"}, "federation": hostile}),
            await registry.listed(filter=hostile),
            await registry.listed(orderBy=hostile),
            await registry.listed(**{hostile: "1"}),
        ]
        for answer in answers:
            assert answer.error() == (400, "INVALID_ARGUMENT")
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert len(answer.json["message"]) < 500, answer.json["message"]
            json.loads(answer.body)
