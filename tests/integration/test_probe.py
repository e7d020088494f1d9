"""Probes of live MCP endpoints: what is asked, what answers mean, and what must not come of one."""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web as server

from config.errors import OperatorError
from crawler.assembly import make_client
from crawler.probe import Probed, probe
from crawler.surfaces.mcp_endpoint import EventReader
from tests.conftest import OpenCrawl
from tests.fakes.cards import MCP, agent_entry, all_drifts, cards_by_path, feed, open_drifts, server_card, urn
from tests.fakes.clock import FakeClock
from tests.fakes.harness import Crawl
from tests.fakes.shell import command
from tests.fakes.tools import RealServer
from tests.fakes.web import FakeWeb, Site

CARD = "/server.json"
ENDPOINT = "/mcp"
SURFACES = ("ard", "mcp")
DECLARED = ["lookup", "fetch"]
ON = {"enabled": True}
Respond = Callable[[dict[str, Any]], Any]
Handler = Callable[[server.Request], Awaitable[server.StreamResponse]]


def publish(site: Site, url: str | None = None, tools: Any = DECLARED) -> None:
    """A catalog with one entry, the server card behind it, and the endpoint that this names."""
    remotes = [{"type": "streamable-http", "url": url or site.url(ENDPOINT)}]
    site.json(CARD, server_card(remotes=remotes, tools=tools))
    site.manifest(agent_entry("echo", url=CARD, type=MCP, version="1.2.0", tags=None, capabilities=None))


def listed(site: Site, *hosts: str) -> dict[str, Any]:
    return {"origin": site.origin, "surfaces": list(SURFACES), "artifact_hosts": list(hosts)}


def endpoint(site: Site, respond: Respond) -> list[dict[str, Any]]:
    """Answer the messages of JSON-RPC at the endpoint; `respond` gives the result of all but the handshake."""
    heard: list[dict[str, Any]] = []

    async def answer(request: server.Request) -> server.StreamResponse:
        message = await request.json()
        heard.append(message)
        if "id" not in message:
            return server.Response(status=202)
        if message["method"] == "initialize":
            result: Any = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "x"}}
        else:
            result = respond(message)
        return server.json_response({"jsonrpc": "2.0", "id": message["id"], "result": result})

    site.handle(ENDPOINT, answer)
    return heard


def tools(*names: str, **members: Any) -> dict[str, Any]:
    return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names], **members}


async def probed(crawl: Crawl, target: str = urn("echo"), **options: Any) -> Probed:
    async with make_client(crawl.settings, crawl.clock) as client:
        return await probe(crawl.settings, crawl.clock, client, crawl.database, target, **options)


def fixed(status: int = 200, text: str = "", **headers: str) -> Handler:
    async def answer(_: server.Request) -> server.StreamResponse:
        return server.Response(status=status, text=text, headers={n.replace("_", "-"): v for n, v in headers.items()})

    return answer


async def endless(request: server.Request, kind: str, piece: bytes) -> server.StreamResponse:
    response = server.StreamResponse(headers={"Content-Type": kind})
    await response.prepare(request)
    try:
        while True:
            await response.write(piece)
    except ConnectionError:
        return response


async def never(_: server.Request) -> server.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


async def endless_text(request: server.Request) -> server.StreamResponse:
    return await endless(request, "application/json", b'"' + b"x" * 50_000)


async def endless_events(request: server.Request) -> server.StreamResponse:
    return await endless(request, "text/event-stream", b": still here\n\n" * 2_000)


# --- what an answer means ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("handler", "state", "reason"),
    [
        (fixed(401, WWW_Authenticate="Bearer"), "auth_required", "http_401"),
        (fixed(402), "auth_required", "http_402"),
        (fixed(403), "auth_required", "http_403"),
        (fixed(405), "wrong_transport", "http_405"),
        (fixed(202), "wrong_transport", "unexpected_status_202"),
        (fixed(200, "<title>App</title>", Content_Type="text/html"), "wrong_protocol", "not_mcp"),
        (fixed(200, '{"status": "ok"}', Content_Type="application/json"), "wrong_protocol", "not_mcp"),
        (fixed(404), "wrong_protocol", "http_404"),
        (fixed(302, Location="/login"), "wrong_protocol", "unexpected_status_302"),
        (fixed(503), "unreachable", "http_503"),
        (never, "unreachable", "timeout_headers"),
        (endless_text, "not_measured", "too_large"),
        (endless_events, "not_measured", "too_large"),
        (fixed(307, Location="http://10.0.0.1/mcp"), "not_measured", "address"),
        (fixed(307, Location="http://elsewhere.example/mcp"), "not_measured", "redirect_offsite"),
    ],
)
async def test_fr_68_the_states_of_endpoints_are_told_apart_and_none_of_them_changes_what_is_kept(
    crawl_sqlite: OpenCrawl, web: FakeWeb, handler: Handler, state: str, reason: str
) -> None:
    acme = web.site("acme")
    publish(acme)
    heard = endpoint(acme, lambda _: tools("lookup", "fetch", "report"))
    limits = {"manifest_size": "64KiB"}
    timing = {"header_timeout": "300ms"}
    async with crawl_sqlite(listed(acme), probe=ON, limits=limits, network=timing) as crawl:
        await crawl.run()
        await probed(crawl)
        before = await kept(crawl)
        assert before[0] == [("drift.endpoint_tools", urn("echo"), "/tools")]
        heard.clear()
        acme.handle(ENDPOINT, handler)
        found = await probed(crawl)
        assert (found.finding.state, found.finding.reason) == (state, reason)
        assert (found.finding.tools, found.drift) == (None, ())
        assert await kept(crawl) == before


async def kept(crawl: Crawl) -> tuple[Any, ...]:
    return await open_drifts(crawl), await crawl.identifiers(), await cards_by_path(crawl), await crawl.changes()


async def test_fr_68_an_endpoint_that_nobody_answers_at_is_unreachable(crawl_sqlite: OpenCrawl, web: FakeWeb) -> None:
    acme = web.site("acme")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        authority = f"closed.example:{closed.getsockname()[1]}"
    publish(acme, f"http://{authority}/mcp")
    async with crawl_sqlite(listed(acme, authority), probe=ON) as crawl:
        await crawl.run()
        assert (await probed(crawl)).finding.state == "unreachable"


async def test_a_session_is_used_and_ended_and_the_version_named_as_it_was_agreed(
    crawl_sqlite: OpenCrawl, web: FakeWeb
) -> None:
    acme = web.site("acme")
    async with RealServer(*DECLARED) as real:
        publish(acme, real.url)
        async with crawl_sqlite(listed(acme, real.authority), probe=ON) as crawl:
            await crawl.run()
            found = await probed(crawl)
            assert (found.finding.state, found.drift) == ("open", [])
    asked = [seen for seen in real.seen if seen.path == ENDPOINT]
    assert [seen.method for seen in asked] == ["POST", "POST", "POST", "DELETE"]
    assert "Mcp-Session-Id" not in asked[0].headers
    assert len({seen.headers["Mcp-Session-Id"] for seen in asked[1:]}) == 1
    assert {seen.headers["Mcp-Protocol-Version"] for seen in asked[1:]} == {found.finding.version}
    assert real.seen[0].path == "/robots.txt"


@pytest.mark.parametrize("piece", [1, 3, 1000])
def test_a_stream_of_events_is_read_however_it_is_cut(piece: int) -> None:
    message = json.dumps({"jsonrpc": "2.0", "id": 7, "result": {"tools": []}})
    noise = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})
    first, second = message.split(" ", 1)
    before = f": hello\r\n\r\nevent: message\r\ndata: {noise}\r\n\r\n"
    stream = f"{before}id: 4\ndata: {first}\ndata:{second}\n\nrest".encode()
    reader = EventReader(7)
    ended = [reader.feed(stream[at : at + piece]) for at in range(0, len(stream), piece)]
    assert reader.answer is not None
    assert reader.answer.result == {"tools": []}
    assert any(ended)


# --- what a probe must not do -----------------------------------------------------------------------------------------


async def test_nothing_is_asked_while_probes_are_off(crawl_sqlite: OpenCrawl, web: FakeWeb) -> None:
    acme = web.site("acme")
    publish(acme)
    async with crawl_sqlite(listed(acme)) as crawl:
        await crawl.run()
        web.clear_log()
        with pytest.raises(OperatorError, match=r"probe\.enabled"):
            await probed(crawl)
        assert web.seen == []


async def test_an_endpoint_off_the_allowlist_is_not_asked(crawl_sqlite: OpenCrawl, web: FakeWeb) -> None:
    acme, other = web.site("acme"), web.site("other")
    publish(acme, other.url(ENDPOINT))
    async with crawl_sqlite(listed(acme), probe=ON) as crawl:
        await crawl.run()
        web.clear_log()
        finding = (await probed(crawl)).finding
        assert (finding.state, finding.reason) == ("not_measured", "port")
        publish(acme, "https://foreign.example/mcp")
        await crawl.run()
        finding = (await probed(crawl)).finding
        assert (finding.state, finding.reason) == ("not_measured", "not_allowlisted")
    assert other.requests() == []


async def test_an_endpoint_in_a_private_network_is_not_connected_to(crawl_sqlite: OpenCrawl, web: FakeWeb) -> None:
    acme = web.site("acme")
    publish(acme, "http://inner.example:80/mcp")
    network = {"hosts": {"inner.example": "10.0.0.1", "*.example": "127.0.0.1"}}
    async with crawl_sqlite(listed(acme, "inner.example"), probe=ON, network=network) as crawl:
        await crawl.run()
        finding = (await probed(crawl)).finding
        assert (finding.state, finding.reason) == ("not_measured", "address")


async def test_robots_txt_of_the_endpoints_host_is_obeyed(crawl_sqlite: OpenCrawl, web: FakeWeb) -> None:
    acme = web.site("acme")
    publish(acme)
    heard = endpoint(acme, lambda _: tools(*DECLARED))
    acme.robots("User-agent: *\nDisallow: /mcp\n")
    async with crawl_sqlite(listed(acme), probe=ON) as crawl:
        await crawl.run()
        finding = (await probed(crawl)).finding
        assert (finding.state, finding.reason) == ("not_measured", "robots")
        assert heard == []


async def test_an_origin_that_wants_to_be_left_alone_gets_no_probe(crawl_sqlite: OpenCrawl, web: FakeWeb) -> None:
    acme = web.site("acme")
    publish(acme)
    heard = endpoint(acme, lambda _: tools(*DECLARED))
    async with crawl_sqlite(listed(acme), probe=ON) as crawl:
        await crawl.run()
        acme.page("/.well-known/ard.json", status=503, headers={"Retry-After": "7200"})
        await crawl.run()
        assert (await probed(crawl)).finding.reason == "resting"
        assert heard == []


# --- what is kept -----------------------------------------------------------------------------------------------------


async def test_a_declared_tool_that_is_not_served_is_graver_and_a_probe_that_sees_it_again_ends_the_drift(
    open_crawl: OpenCrawl, web: FakeWeb, clock: FakeClock
) -> None:
    acme = web.site("acme")
    publish(acme)
    served = ["lookup"]
    endpoint(acme, lambda _: tools(*served))
    async with open_crawl(listed(acme), probe=ON) as crawl:
        await crawl.run()
        await probed(crawl, acme.url(CARD))
        (row,) = await all_drifts(crawl)
        assert (row.drift_class, row.identifier) == ("breaking", urn("echo")), "whatever the card was named by"
        assert row.catalog_value["missing_at_endpoint"] == ["fetch"]
        clock.advance(hours=1)
        await crawl.run()
        assert [item.closed_at for item in await all_drifts(crawl)] == [None], "no crawl has seen the endpoint"
        served.append("fetch")
        found = await probed(crawl)
        (row,) = await all_drifts(crawl)
        assert (row.closed_at, row.closed_by) == (clock.now(), "live")
        assert [item.id for item in found.drift] == [row.id]
        assert await feed(crawl, "drift.opened", "drift.closed") == [
            ("drift.opened", urn("echo")),
            ("drift.closed", urn("echo")),
        ]


async def test_a_card_that_changes_and_still_disagrees_keeps_one_drift_with_its_new_words(
    open_crawl: OpenCrawl, web: FakeWeb, clock: FakeClock
) -> None:
    acme = web.site("acme")
    publish(acme)
    endpoint(acme, lambda _: tools("lookup", "fetch", "report", "undo"))
    async with open_crawl(listed(acme), probe=ON) as crawl:
        await crawl.run()
        await probed(crawl)
        publish(acme, tools=[*DECLARED, "undo"])
        clock.advance(hours=1)
        await crawl.run()
        (row,) = await all_drifts(crawl)
        assert (row.closed_at, row.live_value["missing_in_card"]) == (None, ["report"])
        publish(acme, acme.url("/other"))
        await crawl.run()
        (row,) = await all_drifts(crawl)
        assert row.closed_by == "catalog", "it names that endpoint no longer"


async def test_a_card_without_a_list_of_tools_claims_nothing(crawl_sqlite: OpenCrawl, web: FakeWeb) -> None:
    acme = web.site("acme")
    publish(acme, tools=None)
    endpoint(acme, lambda _: tools("report"))
    async with crawl_sqlite(listed(acme), probe=ON) as crawl:
        await crawl.run()
        assert (await probed(crawl)).finding.tools == ["report"]
        assert await all_drifts(crawl) == []


async def test_what_is_not_to_be_kept_is_shown_and_forgotten(open_crawl: OpenCrawl, web: FakeWeb) -> None:
    acme = web.site("acme")
    publish(acme)
    endpoint(acme, lambda _: tools("lookup"))
    async with open_crawl(listed(acme), probe=ON) as crawl:
        await crawl.run()
        found = await probed(crawl, keep=False)
        assert [row.code for row in found.drift] == ["drift.endpoint_tools"]
        assert await all_drifts(crawl) == []
        assert await feed(crawl, "drift.opened") == []


async def test_pages_are_followed_and_names_are_bounded_and_masked(open_crawl: OpenCrawl, web: FakeWeb) -> None:
    acme = web.site("acme")
    publish(acme)
    token = "ghp_" + "a1B2" * 9
    pages = {
        None: tools("lookup", "fetch", "nul\x00", nextCursor="2"),
        "2": tools("x" * 5000, "\x1b[2Jred\ud800", token, nextCursor="3"),
        "3": {"tools": [{"name": 5}, "text", {}, {"name": "last"}], "nextCursor": ""},
    }
    endpoint(acme, lambda message: pages[message["params"].get("cursor")])
    async with open_crawl(listed(acme), probe=ON) as crawl:
        await crawl.run()
        await probed(crawl)
        (row,) = await all_drifts(crawl)
        missing = row.live_value["missing_in_card"]
        assert len(missing) == 5
        assert max(map(len, missing)) == 128
        assert missing[-1] == "last"
        assert token not in json.dumps(row.live_value)
        await probed(crawl)
        assert len(await all_drifts(crawl)) == 1, "what was cut and masked is the same the next time"


@pytest.mark.parametrize(
    ("respond", "reason"),
    [
        (lambda message: tools(*map(str, range(5000))), "too_many_tools"),
        (lambda message: tools("lookup", nextCursor="again"), "same_page"),
        (lambda message: tools("lookup", nextCursor=5), "unreadable_page"),
        (lambda message: tools("lookup", nextCursor="x" * 5000), "unreadable_page"),
        (lambda message: tools("lookup", nextCursor=str(message["id"])), "too_many_pages"),
    ],
)
async def test_a_list_without_end_is_left_and_nothing_is_made_of_its_beginning(
    crawl_sqlite: OpenCrawl, web: FakeWeb, respond: Respond, reason: str
) -> None:
    acme = web.site("acme")
    publish(acme)
    heard = endpoint(acme, respond)
    async with crawl_sqlite(listed(acme), probe=ON) as crawl:
        await crawl.run()
        finding = (await probed(crawl)).finding
        assert (finding.state, finding.reason, finding.tools) == ("open", reason, None)
        assert len(heard) <= 23
        assert await all_drifts(crawl) == []


# --- the command ------------------------------------------------------------------------------------------------------


async def test_the_command_says_what_it_saw_by_its_words_and_its_status(
    crawl_sqlite: OpenCrawl, web: FakeWeb, sqlite_url: str
) -> None:
    acme = web.site("acme")
    publish(acme)
    endpoint(acme, lambda _: tools("lookup", "fetch", "re\x1b[2Jport"))
    async with crawl_sqlite(listed(acme)) as crawl:
        await crawl.run()
    on = ("--set", "probe.enabled=true")
    status, text = await command(sqlite_url, "probe", urn("echo"), origins=[acme.origin])
    assert (status, "probe.enabled" in text) == (2, True)
    status, text = await command(sqlite_url, *on, "probe", urn("nothing"), origins=[acme.origin])
    assert status == 2
    status, text = await command(sqlite_url, *on, "probe", urn("echo"), origins=[acme.origin])
    assert status == 1, text
    assert "\x1b" not in text
    assert "observed, not declared  re\ufffd[2Jport" in text
    status, text = await command(sqlite_url, *on, "probe", "--json", acme.url(CARD), origins=[acme.origin])
    report = json.loads(text)
    assert (report["endpoint"]["state"], report["missing_in_card"]) == ("open", ["re\x1b[2Jport"])
    status, text = await command(sqlite_url, "show", urn("echo"), origins=[acme.origin])
    assert (status, "observed, not declared  re\ufffd[2Jport" in text) == (0, True)
    status, text = await command(sqlite_url, "drift", "--code", "endpoint_tools", origins=[acme.origin])
    assert (status, "endpoint_tools" in text) == (1, True)
