"""A fake web on loopback: real servers, many host names on one port, every request written down.

`web.site("acme")` is the host `acme.example`. Pages are set by path; a page may be bytes with headers, or a coroutine
that answers as it likes. What HTTP libraries refuse to send goes through `RawServer`.
"""

import asyncio
import gzip as gzip_module
import hashlib
import json
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import format_datetime
from typing import Any

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Seen:
    """One request as the server saw it."""

    host: str
    method: str
    path: str
    headers: dict[str, str]
    status: int = 0


@dataclass
class Page:
    """What a path answers."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    etag: str | None = None
    last_modified: str | None = None
    gzip: bool = False

    def answer(self, request: web.Request) -> web.Response:
        headers = dict(self.headers)
        if self.etag is not None:
            headers["ETag"] = self.etag
        if self.last_modified is not None:
            headers["Last-Modified"] = self.last_modified
        if self.status == 200 and self._is_current(request):
            return web.Response(status=304, headers={k: v for k, v in headers.items() if k != "Content-Type"})
        body = self.body
        if self.gzip:
            body = gzip_module.compress(body)
            headers["Content-Encoding"] = "gzip"
        response = web.Response(status=self.status, body=body, headers=headers)
        if "Content-Type" not in headers:
            response.headers.popall("Content-Type", None)
        return response

    def _is_current(self, request: web.Request) -> bool:
        sent = request.headers.get("If-None-Match")
        if sent is not None:
            return self.etag is not None and sent == self.etag
        since = request.headers.get("If-Modified-Since")
        return since is not None and since == self.last_modified


class Site:
    """One host of the fake web."""

    def __init__(self, web_: "FakeWeb", host: str) -> None:
        self.host = host
        self._web = web_
        self.pages: dict[str, Page | Handler] = {}
        self.fallback: Page | Handler | None = None

    @property
    def origin(self) -> str:
        return f"{self._web.scheme}://{self.host}:{self._web.port}"

    def url(self, path: str) -> str:
        return self.origin + path

    def page(self, path: str, body: bytes | str = b"", **options: Any) -> Page:
        """Serve bytes at a path."""
        page = Page(body.encode() if isinstance(body, str) else body, **options)
        self.pages[path] = page
        return page

    def json(self, path: str, value: Any, *, validator: bool = True, **options: Any) -> Page:
        """Serve a JSON value at a path, with an entity tag unless told otherwise."""
        body = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
        headers = {"Content-Type": "application/json", **options.pop("headers", {})}
        if validator:
            options.setdefault("etag", f'"{hashlib.sha256(body).hexdigest()[:16]}"')
        page = Page(body, headers=headers, **options)
        self.pages[path] = page
        return page

    def manifest(self, *entries: Any, path: str = "/.well-known/ard.json", **options: Any) -> Page:
        """Serve an ARD manifest."""
        return self.json(path, {"entries": list(entries)}, **options)

    def html(self, path: str, text: str, **options: Any) -> Page:
        headers = {"Content-Type": "text/html; charset=utf-8", **options.pop("headers", {})}
        return self.page(path, text, headers=headers, **options)

    def robots(self, text: str | bytes, **options: Any) -> Page:
        headers = {"Content-Type": "text/plain", **options.pop("headers", {})}
        return self.page("/robots.txt", text, headers=headers, **options)

    def redirect(self, path: str, location: str, status: int = 302) -> Page:
        return self.page(path, status=status, headers={"Location": location})

    def handle(self, path: str, handler: Handler) -> None:
        """Answer a path with a coroutine."""
        self.pages[path] = handler

    def gone(self, path: str) -> None:
        """Take a page away: 404 from now on."""
        self.pages.pop(path, None)

    def requests(self, path: str | None = None) -> list[Seen]:
        return [seen for seen in self._web.seen if seen.host == self.host and path in (None, seen.path)]


class FakeWeb:
    """Many hosts on one loopback port. Use as an asynchronous context manager."""

    def __init__(self, *, tls: ssl.SSLContext | None = None) -> None:
        self.sites: dict[str, Site] = {}
        self.seen: list[Seen] = []
        self._tls = tls
        self._runner: web.AppRunner | None = None
        self.port = 0

    @property
    def scheme(self) -> str:
        return "https" if self._tls else "http"

    def site(self, name: str) -> Site:
        """Give a host, `name.example` unless the name has a dot."""
        host = name if "." in name else f"{name}.example"
        return self.sites.setdefault(host, Site(self, host))

    def clear_log(self) -> None:
        self.seen.clear()

    async def __aenter__(self) -> "FakeWeb":
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._tls)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        host = request.host.partition(":")[0].lower()
        seen = Seen(host, request.method, request.raw_path, dict(request.headers))
        self.seen.append(seen)
        site = self.sites.get(host)
        page = None if site is None else site.pages.get(request.raw_path, site.fallback)
        if page is None:
            seen.status = 404
            return web.Response(status=404, text="nothing here")
        response = page.answer(request) if isinstance(page, Page) else await page(request)
        seen.status = response.status
        return response


class RawServer:
    """A server that says exactly the bytes it is told, for what no HTTP library would send."""

    def __init__(self, talk: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]) -> None:
        self._talk = talk
        self._server: asyncio.Server | None = None
        self.port = 0
        self.connections = 0

    async def __aenter__(self) -> "RawServer":
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await self._talk(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


async def read_request(reader: asyncio.StreamReader) -> bytes:
    """Read a request's head."""
    return await reader.readuntil(b"\r\n\r\n")


def entry(name: str = "echo", publisher: str = "acme.example", **members: Any) -> dict[str, Any]:
    """Make a conformant entry; members are added, replaced, or removed where they are None."""
    value: dict[str, Any] = {
        "identifier": f"urn:air:{publisher}:tool:{name}",
        "displayName": name.title(),
        "type": "application/mcp-server-card+json",
        "url": f"https://{publisher}/cards/{name}.json",
        "description": f"The {name} tool of {publisher}",
        "representativeQueries": [f"use {name}", f"what does {name} do"],
        **members,
    }
    return {key: member for key, member in value.items() if member is not None}


def http_date(instant: datetime) -> str:
    """Write an HTTP date."""
    return format_datetime(instant, usegmt=True)
