"""The server that plays the sample federation: many publishers on one loopback port, told apart by the Host field."""

import gzip
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from typing import Any

from aiohttp import web

from crawler.demo.federation import PUBLISHERS, Change, Document, Publisher, artifacts, body_of, written

_AGE_AT_START = timedelta(days=30)
_MAX_AGE = "max-age=2"


@dataclass(frozen=True, slots=True)
class _Page:
    """A document as it is served now."""

    document: Document
    body: bytes
    changed_at: datetime

    def headers(self) -> dict[str, str]:
        headers = {"Content-Type": self.document.content_type, **dict(self.document.headers)}
        if self.document.validators:
            headers["Cache-Control"] = _MAX_AGE
        name = hashlib.sha256(self.body).hexdigest()[:16]
        for validator in self.document.validators:
            if validator == "strong":
                headers["ETag"] = f'"{name}"'
            elif validator == "weak":
                headers["ETag"] = f'W/"{name}"'
            else:
                headers["Last-Modified"] = format_datetime(self.changed_at, usegmt=True)
        return headers


class FederationServer:
    """The federation on a loopback port, a free one unless told. Use as an asynchronous context manager."""

    def __init__(self, port: int = 0) -> None:
        self._publishers = {publisher.host: publisher for publisher in PUBLISHERS}
        self._pages: dict[tuple[str, str], _Page] = {}
        self._busy = {publisher.host: publisher.busy for publisher in PUBLISHERS}
        self._runner: web.AppRunner | None = None
        self.port = port

    async def __aenter__(self) -> "FederationServer":
        app = web.Application()
        app.router.add_get("/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        self.port = self._runner.addresses[0][1]
        self._fill(datetime.now(UTC) - _AGE_AT_START)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    def change(self, change: Change) -> None:
        """Let a publisher change its cards and its manifest."""
        host = f"{change.publisher}.example"
        for path, members in change.cards.items():
            self._replace(host, path, {**json.loads(self._pages[host, path].body), **members})
        if change.path:
            self._replace(host, change.path, change.apply(json.loads(self._pages[host, change.path].body)))

    def _replace(self, host: str, path: str, value: Mapping[str, Any]) -> None:
        page = self._pages[host, path]
        self._pages[host, path] = replace(page, body=written(value), changed_at=datetime.now(UTC))

    def _fill(self, at: datetime) -> None:
        for publisher in PUBLISHERS:
            home = Document("/", text=f"<!doctype html><title>{publisher.title}</title>", content_type="text/html")
            for document in (home, *publisher.documents):
                page = _Page(document, body_of(publisher, document, self.port), at)
                self._pages[publisher.host, document.path] = page
        for url, (content_type, body) in artifacts(self.port).items():
            host, _, path = url.removeprefix("http://").partition(f":{self.port}/")
            document = Document(f"/{path}", content_type=content_type, validators=("strong",))
            self._pages[host, document.path] = _Page(document, body, at)

    async def _answer(self, request: web.Request) -> web.Response:
        publisher = self._publishers.get(request.host.partition(":")[0].lower())
        if publisher is None:
            return web.Response(status=421, text="No publisher of this name; send its name in the Host field.\n")
        page = self._page(publisher, request.path)
        if page is None:
            return web.Response(status=404, text="Not found.\n")
        if self._is_busy(publisher, request.path):
            return web.Response(status=503, headers={"Retry-After": str(publisher.retry_after_s)}, text="Later.\n")
        headers = page.headers()
        if _is_current(request.headers, headers):
            return web.Response(status=304, headers={name: headers[name] for name in headers if name != "Content-Type"})
        body = page.body
        if page.document.gzip and "gzip" in request.headers.get("Accept-Encoding", ""):
            body = gzip.compress(body)
            headers |= {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
        return web.Response(body=body, headers=headers)

    def _page(self, publisher: Publisher, path: str) -> _Page | None:
        if publisher.answers_everything is not None:
            body = body_of(publisher, publisher.answers_everything, self.port)
            return _Page(publisher.answers_everything, body, datetime.now(UTC))
        return self._pages.get((publisher.host, path))

    def _is_busy(self, publisher: Publisher, path: str) -> bool:
        """Count down the requests for manifests that a publisher cannot serve yet."""
        if not path.startswith("/.well-known/") or self._busy[publisher.host] <= 0:
            return False
        self._busy[publisher.host] -= 1
        return True


def _is_current(sent: Mapping[str, str], stored: Mapping[str, str]) -> bool:
    """Answer the conditions of a request; with If-None-Match the date does not count (RFC 9110 13.1.3)."""
    tags = sent.get("If-None-Match")
    if tags is not None:
        return "ETag" in stored and stored["ETag"].removeprefix("W/") in tags
    since, changed = sent.get("If-Modified-Since"), stored.get("Last-Modified")
    if since is None or changed is None:
        return False
    try:
        return parsedate_to_datetime(changed) <= parsedate_to_datetime(since)
    except ValueError:
        return False
