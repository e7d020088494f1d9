"""The one HTTP client for everything outgoing: guarded, bounded, redirects by hand, faults as values."""

import asyncio
import math
import re
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
from aiohttp import ClientResponse, ClientSession, ClientTimeout, DummyCookieJar, TCPConnector
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_random
from yarl import URL

from crawler.clock import Clock
from crawler.fetch.body import Body, Enough, read_body, skip_body
from crawler.fetch.faults import (
    LONGEST_DETAIL,
    ConnectionFault,
    Fault,
    Progress,
    detail_of,
    flood,
    meaning,
    shorten,
    translate,
    translate_timeout,
)
from crawler.fetch.guard import GuardedResolver, GuardedSockets
from crawler.fetch.limiter import Limiter
from crawler.fetch.meter import measure
from crawler.policy.addresses import AddressPolicy
from crawler.policy.freshness import parse_retry_after
from crawler.policy.scope import HOST_RESTS, Admitted, Refused
from index.documents import Hop, Observation, Outcome
from index.http_date import parse_http_date
from index.urls import BadUrl, origin_of, resolve, scheme_of

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
# The others would turn what is no GET into one (RFC 9110 15.4).
_REDIRECTS_OF_OTHERS = frozenset({307, 308})
_SUCCESS = frozenset({200, 203})
_OFF_THE_ALLOWLIST = frozenset({"not_allowlisted", "port"})
_ACCEPT = "application/json, application/*+json;q=0.9, text/html;q=0.8, */*;q=0.5"
_ATTEMPTS = 2
_RETRY_WAIT_S = (0.2, 1.0)
_REDIRECT_PATIENCE = timedelta(seconds=10)
_WATCH_S = 0.25
_WIRE_FACTOR = 4
_WIRE_SLACK = 262_144
_TCP_INFO_BYTES_RECEIVED = 128  # offset in Linux's struct tcp_info
_SURROGATE = re.compile("[\ud800-\udfff]")
_URL_CHARACTERS = "".join(map(chr, range(0x21, 0x7F)))


@dataclass(frozen=True, slots=True)
class Limits:
    """Deadlines and counts for one fetch."""

    connect: timedelta = timedelta(seconds=10)
    headers: timedelta = timedelta(seconds=10)
    total: timedelta = timedelta(seconds=30)
    redirects: int = 5
    retry_after: timedelta = timedelta(hours=24)


# What the bare address of a server answers a GET with; it has no end.
_EVENT_STREAM = "text/event-stream"


@dataclass(frozen=True, slots=True)
class Request:
    """What to fetch: a canonical URL, its conditions, and how many decoded bytes are wanted.

    `truncate` keeps the first `max_size` bytes of a longer body; otherwise a longer body is `too_large`. `robots` names
    the robots decision that let the request through. A stream of events is read only for `enough`, which is told each
    piece of it and ends it by saying True.
    """

    url: str
    max_size: int
    conditions: Mapping[str, str] = field(default_factory=dict)
    truncate: bool = False
    reload: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    robots: str = ""
    method: str = "GET"
    body: bytes | None = None
    enough: Enough | None = None


# Decides about one URL before it is requested, redirect targets included.
Approve = Callable[[str], Awaitable[Admitted | Refused]]
# Gives the pause between requests to one origin.
Spacing = Callable[[str], timedelta]


@dataclass(slots=True)
class _Exchange:
    """One request and its answer, filled as far as it got."""

    max_wire: int
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: Body = field(default_factory=lambda: Body(b"", 0))
    peer: str | None = None
    transport: asyncio.Transport | None = None
    received_before: int = 0
    head_by: float = math.inf
    deadline: asyncio.Timeout | None = None
    flooded: bool = False
    closed: "asyncio.Future[None] | None" = None

    @property
    def broke_off(self) -> bool:
        """Tell whether the connection, whose end is the end of the body, ended in an error (RFC 9112 8)."""
        return self.closed is not None and self.closed.done() and self.closed.exception() is not None

    @property
    def progress(self) -> Progress:
        return Progress(self.transport is not None, self.status is not None, self.flooded)


_exchange: ContextVar[_Exchange | None] = ContextVar("exchange", default=None)


class _Response(ClientResponse):
    """Shows the connection before the first byte of the answer is read, reused connections included."""

    async def start(self, connection: Any) -> ClientResponse:
        exchange = _exchange.get()
        transport = connection.transport
        if exchange is not None and transport is not None:
            exchange.transport = transport
            # A reused connection has a past that is not this answer's.
            exchange.received_before = _bytes_received(transport) or 0
            name = transport.get_extra_info("peername")
            exchange.peer = name[0] if isinstance(name, tuple) else None
        protocol = connection.protocol
        await super().start(connection)
        framed = "Content-Length" in self.headers or "Transfer-Encoding" in self.headers
        if exchange is not None and protocol is not None and not framed:
            exchange.closed = protocol.closed
            if exchange.closed is not None:
                # Whoever leaves a body unread never asks how its connection ended.
                exchange.closed.add_done_callback(asyncio.Future.exception)
        return self


class FetchClient:
    """Fetches documents. Use as an asynchronous context manager; one for the whole process."""

    def __init__(
        self,
        *,
        clock: Clock,
        limiter: Limiter,
        addresses: AddressPolicy,
        user_agent: str,
        limits: Limits | None = None,
        hosts: Mapping[str, str] | None = None,
        nameservers: tuple[str, ...] = (),
        extra_ca_file: Path | None = None,
        connections: int = 200,
    ) -> None:
        self._clock = clock
        self._limiter = limiter
        self._addresses = addresses
        self._user_agent = user_agent
        self._limits = limits or Limits()
        self._hosts = hosts
        self._nameservers = nameservers
        self._ssl = ssl.create_default_context()
        if extra_ca_file is not None:
            self._ssl.load_verify_locations(extra_ca_file)
        self._connections = connections
        self._session: ClientSession | None = None
        self._watch = _Watch()

    async def __aenter__(self) -> "FetchClient":
        resolver = GuardedResolver(self._addresses, self._hosts, self._nameservers)
        connector = TCPConnector(
            resolver=resolver,
            socket_factory=GuardedSockets(self._addresses),
            ssl=self._ssl,
            limit=self._connections,
            ttl_dns_cache=30,
            keepalive_timeout=5,
        )
        self._resolver = resolver
        self._session = ClientSession(
            connector=connector,
            cookie_jar=DummyCookieJar(),
            headers={"User-Agent": self._user_agent, "Accept": _ACCEPT, "Accept-Encoding": "gzip"},
            timeout=ClientTimeout(total=None, sock_connect=self._limits.connect.total_seconds()),
            auto_decompress=False,
            trust_env=False,
            response_class=_Response,
        )
        # aiohttp would repeat a failed request by itself, at once and unpaced; trying again is for us to decide.
        self._session._retry_connection = False
        return self

    async def __aexit__(self, *_: object) -> None:
        self._watch.stop()
        if self._session is not None:
            await self._session.close()
            await self._resolver.close()
            self._session = None

    @property
    def limiter(self) -> Limiter:
        """What paces the requests to each origin."""
        return self._limiter

    def slowdown(self, origin: str) -> float:
        """Say how many times longer than usual the pauses at an origin have to be."""
        return self._limiter.slowdown(origin)

    async def fetch(self, request: Request, approve: Approve, spacing: Spacing) -> Observation:
        """Fetch one document; whatever the other side does comes back as an observation.

        Each hop is approved, paced and guarded on its own. The deadline counts working time, not the waits for a turn.
        """
        walk = _Walk(request, self._clock.now())
        try:
            observation = self._conclude(walk, await self._follow(walk, approve, spacing))
        except Fault as fault:
            observation = walk.missed(fault.outcome, fault.reason, fault.detail, self._clock.now())
        if observation.status == 429:
            self._limiter.slow_down(origin_of(walk.url), observation.retry_after)
        measure(observation, walk.requests, walk.worked_s)
        return observation

    async def _follow(self, walk: "_Walk", approve: Approve, spacing: Spacing) -> _Exchange:
        budget_s = self._limits.total.total_seconds()
        while True:
            admitted = await approve(walk.url)
            if isinstance(admitted, Refused):
                outcome = _outcome_of(admitted)
                offsite = walk.hops and admitted.reason in _OFF_THE_ALLOWLIST
                reason = "redirect_offsite" if offsite else admitted.reason
                raise Fault(outcome, reason, admitted.detail)
            walk.url = admitted.url
            async with self._limiter.turn(admitted.origin, spacing(admitted.origin)):
                began = self._clock.monotonic()
                if not walk.hops:
                    walk.request_at = self._clock.now()
                try:
                    exchange = await self._exchange(walk, budget_s - walk.worked_s)
                finally:
                    walk.worked_s += self._clock.monotonic() - began
            if exchange.status not in walk.redirects:
                return exchange
            walk.redirect(exchange, self._limits.redirects)
            await self._wait_before_redirect(exchange)
            if walk.worked_s >= budget_s:
                raise Fault(Outcome.UNREACHABLE, "timeout_total", "the redirects took too long")

    async def _exchange(self, walk: "_Walk", budget_s: float) -> _Exchange:
        """Make one request, and a second one when the connection failed before any answer, within one deadline."""
        ends = self._clock.monotonic() + budget_s
        try:
            return await self._attempt(walk, budget_s)
        except ConnectionFault as first:
            fault = first
            if walk.request.method != "GET":
                # What may have been done already is not asked for twice (RFC 9110 9.2.2).
                raise Fault(Outcome.UNREACHABLE, fault.reason, fault.detail) from None
        pause_s = _RETRY_WAIT_S[0] + self._clock.chance() * (_RETRY_WAIT_S[1] - _RETRY_WAIT_S[0])
        if self._clock.monotonic() + pause_s >= ends:
            raise Fault(Outcome.UNREACHABLE, fault.reason, fault.detail)
        retrying = AsyncRetrying(
            stop=stop_after_attempt(_ATTEMPTS - 1),
            wait=wait_random(*_RETRY_WAIT_S),
            retry=retry_if_exception_type(ConnectionFault),
            sleep=self._clock.sleep,
            reraise=True,
        )
        await self._clock.sleep(pause_s)
        try:
            async for attempt in retrying:
                with attempt:
                    return await self._attempt(walk, ends - self._clock.monotonic())
        except ConnectionFault as last:
            fault = last
        raise Fault(Outcome.UNREACHABLE, fault.reason, fault.detail)

    async def _attempt(self, walk: "_Walk", budget_s: float) -> _Exchange:
        if self._session is None:
            raise RuntimeError("the client is used before it is entered")
        walk.requests += 1
        exchange = walk.last = _Exchange(max_wire=walk.request.max_size * _WIRE_FACTOR + _WIRE_SLACK)
        token = _exchange.set(exchange)
        self._watch.add(exchange)
        try:
            await self._request(self._session, walk, exchange, budget_s)
            if exchange.flooded:
                # A body that ends with the connection looks whole when the watch has cut it.
                raise flood()
        except TimeoutError as error:
            raise translate_timeout(exchange.progress, error) from None
        except aiohttp.ClientError as error:
            raise translate(error, exchange.progress) from None
        except (OSError, ValueError) as error:
            raise Fault(Outcome.UNREACHABLE, "protocol_error", detail_of(error)) from None
        finally:
            self._watch.discard(exchange)
            _exchange.reset(token)
        return exchange

    async def _request(self, session: ClientSession, walk: "_Walk", exchange: _Exchange, budget_s: float) -> None:
        """Send the request and read the answer within the budget; the watch minds the deadline of the head."""
        exchange.head_by = asyncio.get_running_loop().time() + self._limits.headers.total_seconds()
        async with asyncio.timeout(budget_s) as exchange.deadline:
            response = await session.request(
                walk.request.method,
                URL(walk.url, encoded=True),
                headers=walk.request_headers(),
                data=walk.request.body,
                allow_redirects=False,
            )
            await self._read(response, walk, exchange)

    @staticmethod
    async def _read(response: ClientResponse, walk: "_Walk", exchange: _Exchange) -> None:
        try:
            exchange.status = response.status
            exchange.headers = _fields(response)
            if response.status in _SUCCESS:
                request = walk.request
                is_stream = exchange.headers.get("content-type", "").lower().startswith(_EVENT_STREAM)
                if is_stream and request.enough is None:
                    raise Fault(Outcome.WRONG_KIND, "event_stream", "a stream of events, which is no document")
                exchange.body = await read_body(
                    response,
                    exchange.headers.get("content-encoding", ""),
                    max_size=request.max_size,
                    truncate=request.truncate,
                    enough=request.enough if is_stream else None,
                )
                if exchange.broke_off:
                    raise Fault(Outcome.UNREACHABLE, "incomplete", "the connection broke off")
            else:
                await skip_body(response)
        except BaseException:
            response.close()
            raise
        # What is left unread would have to be drained before the connection could serve another request.
        if response.content.at_eof():
            response.release()
        else:
            response.close()

    def _conclude(self, walk: "_Walk", exchange: _Exchange) -> Observation:
        now = self._clock.now()
        status = exchange.status or 0
        if status == 304:
            return walk.answered(Outcome.NOT_MODIFIED, exchange, now)
        if status in _SUCCESS:
            return walk.answered(Outcome.FETCHED, exchange, now)
        outcome, reason = meaning(status)
        observation = walk.missed(outcome, reason, "", now)
        return replace(observation, retry_after=self._retry_after(exchange)) if status in (429, 503) else observation

    def _retry_after(self, exchange: _Exchange) -> timedelta | None:
        date = parse_http_date(exchange.headers.get("date")) or self._clock.now()
        return parse_retry_after(exchange.headers.get("retry-after"), date=date, ceiling=self._limits.retry_after)

    async def _wait_before_redirect(self, exchange: _Exchange) -> None:
        """Wait before the redirected request as its Retry-After asks (RFC 9110 10.2.3), as long as a visit can wait."""
        wait = min(self._retry_after(exchange) or timedelta(0), _REDIRECT_PATIENCE)
        if wait:
            await self._clock.sleep(wait.total_seconds())


def _outcome_of(refused: Refused) -> Outcome:
    if refused.reason == HOST_RESTS:
        return Outcome.UNREACHABLE
    return Outcome.DISALLOWED if refused.reason.startswith("robots") else Outcome.REFUSED


class _Walk:
    """One fetch along its redirects."""

    def __init__(self, request: Request, started: datetime) -> None:
        self.request = request
        self.url = request.url
        self.hops: list[Hop] = []
        self.request_at = started
        self.last: _Exchange | None = None
        self.requests = 0
        self.worked_s = 0.0

    @property
    def redirects(self) -> frozenset[int]:
        """Give the statuses after which the same request is made elsewhere."""
        return _REDIRECTS if self.request.method == "GET" else _REDIRECTS_OF_OTHERS

    def request_headers(self) -> dict[str, str]:
        headers = dict(self.request.headers)
        headers.update(self.request.conditions)
        if self.request.reload:
            headers["Cache-Control"] = "no-cache"
        return headers

    def redirect(self, exchange: _Exchange, most: int) -> None:
        """Take the next hop (RFC 9110 15.4); a relative Location resolves against the current URL."""
        location = exchange.headers.get("location", "")
        status = exchange.status or 0
        if not location:
            raise Fault(Outcome.UNREACHABLE, "protocol_error", f"{status} without Location")
        self.hops.append(Hop(self.url, status))
        try:
            target = resolve(self.url, location)
        except BadUrl as error:
            shown = shorten(quote(location, safe=_URL_CHARACTERS))
            reason = "scheme" if scheme_of(location) not in ("", "http", "https") else "url"
            raise Fault(Outcome.REFUSED, reason, f"redirected to {shown}, expected {error}") from None
        if self.url.startswith("https:") and target.startswith("http:"):
            raise Fault(Outcome.REFUSED, "redirect_downgrade", f"from https to {shorten(target)}")
        if any(hop.url == target for hop in self.hops):
            raise Fault(Outcome.UNREACHABLE, "redirect_loop", f"back to {shorten(target)}")
        if len(self.hops) > most:
            raise Fault(Outcome.UNREACHABLE, "too_many_redirects", f"more than {most}")
        self.url = target

    def answered(self, outcome: Outcome, exchange: _Exchange, now: datetime) -> Observation:
        return Observation(
            url=self.request.url,
            outcome=outcome,
            request_at=self.request_at,
            response_at=now,
            status=exchange.status,
            headers=exchange.headers,
            body=exchange.body.content,
            final_url=self.url,
            hops=tuple(self.hops),
            conditions=self.request.conditions,
            wire_size=exchange.body.wire_size,
            truncated=exchange.body.truncated,
            peer=exchange.peer,
            robots=self.request.robots,
        )

    def missed(self, outcome: Outcome, reason: str, detail: str, now: datetime) -> Observation:
        last = self.last or _Exchange(0)
        return Observation(
            url=self.request.url,
            outcome=outcome,
            request_at=self.request_at,
            response_at=now,
            reason=reason,
            detail=detail[:LONGEST_DETAIL],
            status=last.status,
            headers=last.headers,
            final_url=self.url,
            hops=tuple(self.hops),
            conditions=self.request.conditions,
            wire_size=last.body.wire_size,
            peer=last.peer,
            robots=self.request.robots,
        )


class _Watch:
    """Looks at all exchanges under way, a few times a second, for what no deadline of its own would be cheap for.

    A head that is late ends its exchange. So does an answer that sends without end and without payload: 1xx floods,
    chunk extensions, endless headers. The kernel's counter sees every byte; where there is none, the deadline alone
    bounds it.
    """

    def __init__(self) -> None:
        self._exchanges: dict[int, _Exchange] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, exchange: _Exchange) -> None:
        """Look at an exchange from now on."""
        self._exchanges[id(exchange)] = exchange
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_WATCH_S, self._look)

    def discard(self, exchange: _Exchange) -> None:
        """Look at an exchange no longer."""
        self._exchanges.pop(id(exchange), None)

    def stop(self) -> None:
        """Stop looking."""
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for exchange in self._exchanges.values():
            if exchange.status is None and now >= exchange.head_by and exchange.deadline is not None:
                exchange.head_by = math.inf
                exchange.deadline.reschedule(now)
            elif exchange.transport is not None:
                _end_flood(exchange, exchange.transport)
        self._timer = loop.call_later(_WATCH_S, self._look) if self._exchanges else None


def _end_flood(exchange: _Exchange, transport: asyncio.Transport) -> None:
    received = _bytes_received(transport)
    if received is not None and received - exchange.received_before > exchange.max_wire:
        exchange.flooded = True
        transport.abort()


def _bytes_received(transport: asyncio.Transport) -> int | None:
    connection = transport.get_extra_info("socket")
    try:
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES_RECEIVED + 8)
        return int(struct.unpack_from("=Q", info, _TCP_INFO_BYTES_RECEIVED)[0])
    except (AttributeError, OSError, struct.error):
        return None


def _fields(response: ClientResponse) -> dict[str, str]:
    """Fold the fields to lower-case names; several lines become a list (RFC 9110 5.3).

    Bytes that are no UTF-8 cannot be echoed as they came, so such a value is no validator and is shown replaced.
    """
    fields: dict[str, str] = {}
    for name, value in response.headers.items():
        key = name.lower()
        if not value.isascii() and _SURROGATE.search(value):
            if key in ("etag", "last-modified"):
                continue
            value = _SURROGATE.sub("\ufffd", value)
        fields[key] = f"{fields[key]}, {value}" if key in fields else value
    return fields
