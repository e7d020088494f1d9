"""What can go wrong between a publisher and us, done to a site of the fake web that was well before."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

from aiohttp import web as server

from tests.fakes.clock import FakeClock
from tests.fakes.fetching import answer
from tests.fakes.web import Handler, Page, http_date

REST = timedelta(hours=2)
JSON = "Content-Type: application/json"
BODY = b'{"entries": []}' + b" " * 200


async def stall(_: server.Request) -> server.StreamResponse:
    """Take the request and never answer."""
    await asyncio.Event().wait()
    raise AssertionError("nobody ends the wait")


async def stall_in_the_body(request: server.Request) -> server.StreamResponse:
    """Begin to answer and never end."""
    response = server.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b"{")
    await asyncio.Event().wait()
    return response


def _saying(said: bytes) -> Handler:
    """Say these bytes, whatever HTTP makes of them, and hang up."""

    async def handle(request: server.Request) -> server.StreamResponse:
        assert isinstance(request.transport, asyncio.Transport)
        request.transport.write(said)
        request.transport.close()
        return server.Response()

    return handle


async def reset(request: server.Request) -> server.StreamResponse:
    """Cut the connection instead of answering."""
    assert request.transport is not None
    request.transport.abort()
    return server.Response()


async def endless(request: server.Request) -> server.StreamResponse:
    """Send a body until the client leaves."""
    response = server.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    try:
        while True:
            await response.write(b"[" * 65_536)
    except ConnectionError:
        return response


def flapping(well: Page) -> Handler:
    """Fail at every other request, the first one included."""
    asked = 0

    async def handle(request: server.Request) -> server.StreamResponse:
        nonlocal asked
        asked += 1
        return server.Response(status=502) if asked % 2 else well.answer(request)

    return handle


def _too_many(clock: FakeClock, *, by_date: bool) -> Handler:
    """Ask to be left alone for two hours."""

    async def handle(_: server.Request) -> server.StreamResponse:
        now = clock.now()
        later = http_date(now + REST) if by_date else str(round(REST.total_seconds()))
        return server.Response(status=429, headers={"Date": http_date(now), "Retry-After": later})

    return handle


def remote_faults(clock: FakeClock) -> dict[str, Callable[[Page], Page | Handler]]:
    """Give what each fault puts in the place of a page, by what an operator would call it."""
    return {
        "no answer": lambda _: stall,
        "a body that stops": lambda _: stall_in_the_body,
        "connection reset": lambda _: reset,
        "500": lambda _: Page(status=500),
        "503": lambda _: Page(status=503),
        "429 with seconds": lambda _: _too_many(clock, by_date=False),
        "429 with a date": lambda _: _too_many(clock, by_date=True),
        "every other answer a 502": flapping,
        "a body cut short": lambda _: _saying(answer(BODY, JSON, length=len(BODY) + 500)),
        "a body without end": lambda _: endless,
        "a length shorter than the body": lambda _: _saying(answer(BODY, JSON, length=7)),
        "a length that is no number": lambda _: _saying(answer(BODY, JSON, "Content-Length: many", length=None)),
    }


class Relay:
    """A way to a database server that can be cut and opened again, as when that server is killed and restarted."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self.port = 0

    async def __aenter__(self) -> "Relay":
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cut()

    async def open(self) -> None:
        """Let connections through, at the same port as before."""
        self._server = await asyncio.start_server(self._relay, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        """Break all connections and refuse new ones."""
        if self._server is not None:
            self._server.close()
        for writer in self._open:
            writer.transport.abort()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(*self._target)
        self._open |= {writer, back}
        await asyncio.gather(_pump(reader, back), _pump(there, writer))
        self._open -= {writer, back}


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()
