"""The client alone against hostile servers: what to send them, and a trap that nothing may ever reach."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from crawler.assembly import build_scope, make_client
from crawler.clock import Clock
from crawler.fetch.client import FetchClient, Request
from crawler.policy.scope import Admitted, Refused, Scope
from index.documents import Observation
from index.urls import origin_of
from tests.fakes.clock import FakeClock
from tests.fakes.harness import settings_for
from tests.fakes.web import Site, read_request

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Fetching:
    """A client as a crawl would have it, and the allowlist it goes by."""

    client: FetchClient
    scope: Scope

    async def get(self, url: str, *, spacing: timedelta = timedelta(0), **options: Any) -> Observation:
        """Fetch one URL by the allowlist."""
        request = Request(url, options.pop("max_size", 65_536), **options)
        return await self.client.fetch(request, self._approve, lambda _: spacing)

    async def get_unasked(self, url: str) -> Observation:
        """Fetch one URL as if every check before the connection had let it pass."""

        async def approve(target: str) -> Admitted | Refused:
            return Admitted(target, origin_of(target))

        return await self.client.fetch(Request(url, 65_536), approve, lambda _: timedelta(0))

    async def _approve(self, url: str) -> Admitted | Refused:
        return self.scope.admit(url)


@asynccontextmanager
async def fetching(*origins: Site | str, clock: Clock | None = None, **sections: Any) -> AsyncIterator[Fetching]:
    """Open a client for these origins, with the settings of the tests."""
    settings = settings_for(*origins, **sections)
    async with make_client(settings, clock or FakeClock()) as client:
        yield Fetching(client, build_scope(settings))


def answer(
    body: bytes = b"{}", *fields: str, status: str = "200 OK", length: int | None = -1, last: bool = True
) -> bytes:
    """Write an answer by hand, the `last` one of its connection unless said otherwise.

    `length` is what Content-Length claims: the true length by default, None for no such field.
    """
    lines = [f"HTTP/1.1 {status}", *fields, *(["Connection: close"] if last else [])]
    if length is not None:
        lines.append(f"Content-Length: {len(body) if length == -1 else length}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def saying(*pieces: bytes, pause_s: float = 0.0, hang: bool = False) -> Talk:
    """Read one request, say the pieces and close; `hang` keeps the connection open until the client leaves."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause_s)
        if hang:
            await reader.read()

    return talk


def flooding(head: bytes, piece: bytes, *, pause_s: float = 0.0, left: asyncio.Event | None = None) -> Talk:
    """Read one request, say the head and then one piece after the other until the client leaves; `left` is set then."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        try:
            writer.write(head)
            while not writer.is_closing():
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(pause_s)
        except ConnectionError:
            pass
        finally:
            if left is not None:
                left.set()

    return talk


class _Heard(asyncio.StreamReader):
    """A reader whose request somebody has read already."""

    def __init__(self, head: bytes, reader: asyncio.StreamReader) -> None:
        super().__init__()
        self._head = head
        self._reader = reader

    async def readuntil(self, separator: Any = b"\n") -> bytes:
        return self._head

    async def read(self, n: int = -1) -> bytes:
        return await self._reader.read(n)


def by_path(answers: Mapping[str, Talk | bytes], rest: bytes = answer(b"", status="404 Not Found")) -> Talk:
    """Answer each path in its own way, and all others with `rest`."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await read_request(reader)
        said = answers.get(head.split(b" ", 2)[1].decode(), rest)
        await (saying(said) if isinstance(said, bytes) else said)(_Heard(head, reader), writer)

    return talk


class Trap:
    """A listener inside the private network. Whoever reaches it is counted."""

    ADDRESS = "127.0.0.66"
    NUMBER = 0x7F000042

    def __init__(self, port: int = 0) -> None:
        self.reached = 0
        self.port = port
        self._servers: list[asyncio.Server] = []

    async def __aenter__(self) -> "Trap":
        self._servers.append(await asyncio.start_server(self._connected, self.ADDRESS, self.port))
        self.port = self._servers[0].sockets[0].getsockname()[1]
        if socket.has_ipv6:
            with suppress(OSError):
                self._servers.append(await asyncio.start_server(self._connected, "::1", self.port))
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._servers:
            server.close()

    async def _connected(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reached += 1
        writer.write(answer(b'{"entries": []}'))
        writer.close()
