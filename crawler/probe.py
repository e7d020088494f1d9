"""A probe: one advertised MCP endpoint is asked which tools it serves, and its card is compared with the answer.

Never part of a crawl, and only where the operator has switched it on. Every request goes through the client of the
crawl, with its guard, its pacing and the robots.txt of the endpoint's host; nothing of the handshake is kept.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from config.errors import OperatorError
from config.settings import Settings
from crawler.assembly import VERSION, build_scope, make_policy, origin_rules
from crawler.clock import Clock
from crawler.discover import robots_url
from crawler.fetch.client import Approve, FetchClient, Request, Spacing
from crawler.fetch.robots import ParsedRobots, RobotsGate
from crawler.policy.scope import Admitted, Refused, Scope
from crawler.stored import RehearsalShelf
from crawler.surfaces import mcp_endpoint
from crawler.surfaces.mcp_endpoint import Answer, EndpointState, EventReader
from index.documents import Observation, Outcome
from index.store.database import Database
from index.store.drift_reads import StoredRow
from index.store.frontier import managed_origins, resting_origins
from index.store.probes import HeldCard, find_held, settle_probe
from index.tool_drift import MOST_TOOLS, tool_names

_TRANSPORT = "streamable-http"
_MOST_PAGES = 20
_SHORT = 65_536
_LEAVE_S = 10.0


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of asking: `tools` are all that the endpoint serves, None when that was not found out."""

    state: EndpointState
    reason: str = ""
    detail: str = ""
    url: str | None = None
    status: int | None = None
    version: str | None = None
    asked_at: datetime | None = None
    tools: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class Probed:
    """A finding about the endpoint of a card, and the drift that it opened, confirmed or closed."""

    card: HeldCard
    finding: Finding
    drift: Sequence[StoredRow]


async def probe(
    settings: Settings, clock: Clock, client: FetchClient, database: Database, target: str, *, keep: bool = True
) -> Probed:
    """Ask the endpoint of a server card, named by its URL or by an entry that leads to it; raises OperatorError."""
    if not settings.probe.enabled:
        raise OperatorError("probes are off; probe.enabled = true lets them ask the endpoints that cards advertise")
    card = await database.read(find_held, target)
    if card is None:
        raise OperatorError(f"{target}: expected a listed identifier or a URL with an MCP server card that is held")
    added = await database.read(managed_origins, "operator")
    scope = build_scope(settings, (origin_rules(name, options) for name, options in added.items()))
    finding = await _ask(settings, clock, client, database, scope, card)
    if finding.tools is None or finding.url is None or finding.asked_at is None:
        return Probed(card, finding, ())
    run = database.write if keep else database.rehearse
    drift = await run(settle_probe, card.live.key, finding.url, finding.tools, finding.asked_at, clock.now())
    return Probed(card, finding, drift)


async def _ask(
    settings: Settings, clock: Clock, client: FetchClient, database: Database, scope: Scope, card: HeldCard
) -> Finding:
    chosen = choose_endpoint(scope, card)
    if isinstance(chosen, Refused):
        return Finding(EndpointState.NOT_MEASURED, chosen.reason, chosen.detail)
    if await database.read(resting_origins, [chosen.origin], clock.now()):
        detail = f"{chosen.origin} asked to be left alone for longer"
        return Finding(EndpointState.NOT_MEASURED, "resting", detail, chosen.url)
    shelf, rules = RehearsalShelf(database, clock), make_policy(settings).robots
    gate = RobotsGate(client, clock, scope, shelf, ParsedRobots(), rules, owner="", known={})
    way = _Way(scope, gate, shelf, card.origin, chosen.origin)
    talk = _Talk(client, clock, way.approve, gate.spacing, chosen.url, settings.limits.manifest_size)
    return await talk.run(settings.probe.timeout)


def choose_endpoint(scope: Scope, card: HeldCard) -> Admitted | Refused:
    """Choose the first endpoint that may be asked: on an allowlisted origin or a further host of the publisher."""
    urls = [remote["url"] for remote in card.live.view.normal.get("remotes", ()) if remote["type"] == _TRANSPORT]
    if scope.rules(card.origin) is None:
        return Refused("not_allowlisted", f"{card.origin}, which published the card, is not on the allowlist")
    decisions = [scope.admit(url, source=card.origin) for url in urls if "{" not in url]
    first = next((item for item in decisions if isinstance(item, Admitted)), None)
    return first or next(iter(decisions), Refused("no_endpoint", f"the card names no endpoint of {_TRANSPORT}"))


@dataclass(frozen=True, slots=True)
class _Way:
    """Decides about the requests of a probe: to the endpoint's own origin alone, as far as its robots.txt allows."""

    scope: Scope
    gate: RobotsGate
    shelf: RehearsalShelf
    source: str
    origin: str

    async def approve(self, url: str) -> Admitted | Refused:
        admitted = self.scope.admit(url, source=self.source)
        if isinstance(admitted, Refused):
            return admitted
        if admitted.origin != self.origin:
            return Refused("redirect_offsite", f"redirected to {admitted.origin}, and a probe stays on one origin")
        decision = await self.gate.decision(self.origin)
        if decision.rules.allows(admitted.url):
            return admitted
        url = robots_url(self.origin)
        if decision.reason != "robots_unreachable":
            return Refused("robots", f"{url} forbids it")
        look = await self.shelf.load_document(url)
        if look is not None and look.outcome is Outcome.REFUSED:
            return Refused(look.reason, look.detail)
        silent = look is not None and look.status is None
        return Refused(mcp_endpoint.SILENT_HOST if silent else decision.reason, f"{url} cannot be had")


class _Ended(Exception):
    """The talk ends here, with this finding."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.reason)
        self.finding = finding


@dataclass(slots=True)
class _Talk:
    """One talk with an endpoint: the handshake, every page of tools, and an end to the session."""

    client: FetchClient
    clock: Clock
    approve: Approve
    spacing: Spacing
    url: str
    max_size: int
    fields: Mapping[str, str] = field(default_factory=dict)
    number: int = 0

    async def run(self, timeout: timedelta) -> Finding:
        # What takes longer than we give it, our own pauses included, is not found out.
        finding = self._finding(EndpointState.NOT_MEASURED, "timeout_total", f"not done within {timeout}")
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout.total_seconds()):
                finding = await self._talk()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE_S):
                await self._leave()
        return finding

    async def _talk(self) -> Finding:
        try:
            await self._greet()
            names, reason = await self._all_pages()
        except _Ended as ended:
            return ended.finding
        if reason:
            return self._finding(EndpointState.OPEN, reason, "not all of its tools were listed, so none is compared")
        return self._finding(EndpointState.OPEN, tools=names)

    async def _greet(self) -> None:
        observation, answer = await self._answer(mcp_endpoint.initialize(self._next(), VERSION))
        fields = mcp_endpoint.negotiated(answer, observation.headers)
        if fields is None:
            raise _Ended(self._wrong("initialize", answer, observation))
        self.fields = fields
        await self._send(mcp_endpoint.initialized())

    async def _all_pages(self) -> tuple[list[str], str]:
        """Give the names on every page, and why there may be more of them."""
        names: list[str] = []
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            observation, answer = await self._answer(mcp_endpoint.list_tools(self._next(), cursor))
            page = mcp_endpoint.read_tools(answer, first=cursor is None)
            if page is None:
                raise _Ended(self._wrong("tools/list", answer, observation))
            names = tool_names([*names, *page.names[: MOST_TOOLS + 1]])
            if len(names) > MOST_TOOLS:
                return names, "too_many_tools"
            if page.is_cut:
                return names, "unreadable_page"
            if page.cursor is None:
                return names, ""
            if page.cursor == cursor:
                return names, "same_page"
            cursor = page.cursor
        return names, "too_many_pages"

    async def _leave(self) -> None:
        """Let the server forget the session, where it made one."""
        if "Mcp-Session-Id" in self.fields:
            await self._fetch(Request(self.url, _SHORT, truncate=True, headers=self.fields, method="DELETE"))

    async def _send(self, body: bytes) -> None:
        """Send what has no answer; what becomes of it, the next request will show."""
        headers = {**mcp_endpoint.HEADERS, **self.fields}
        await self._fetch(Request(self.url, _SHORT, truncate=True, headers=headers, method="POST", body=body))

    async def _answer(self, body: bytes) -> tuple[Observation, Answer]:
        reader = EventReader(self.number)
        headers = {**mcp_endpoint.HEADERS, **self.fields}
        request = Request(self.url, self.max_size, headers=headers, method="POST", body=body, enough=reader.feed)
        observation = await self._fetch(request)
        if observation.outcome is not Outcome.FETCHED:
            state = mcp_endpoint.state_without_answer(observation)
            raise _Ended(self._finding(state, observation.reason, observation.detail, observation.status))
        answer = reader.answer or mcp_endpoint.read_message(observation.body, self.number)
        if answer is None:
            detail = "the answer is no message of JSON-RPC"
            raise _Ended(self._finding(EndpointState.WRONG_PROTOCOL, "not_mcp", detail, observation.status))
        return observation, answer

    async def _fetch(self, request: Request) -> Observation:
        return await self.client.fetch(request, self.approve, self.spacing)

    def _next(self) -> int:
        self.number += 1
        return self.number

    def _wrong(self, method: str, answer: Answer, observation: Observation) -> Finding:
        said = f"the error {answer.error}" if answer.error is not None else "something else than it asks for"
        detail = f"{method} is answered by {said}"
        return self._finding(EndpointState.WRONG_PROTOCOL, "not_mcp", detail, observation.status)

    def _finding(
        self,
        state: EndpointState,
        reason: str = "",
        detail: str = "",
        status: int | None = None,
        tools: Sequence[str] | None = None,
    ) -> Finding:
        version = self.fields.get("MCP-Protocol-Version")
        return Finding(state, reason, detail, self.url, status, version, self.clock.now(), tools)
