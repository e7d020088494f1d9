"""One visit: the pipeline from an origin's allowlist entry to what its documents say.

robots.txt, then the probes and known documents in order of precedence, each one fetched, judged by its shape, read,
and followed to what it points to. Every look at a document is recorded as it ends; nothing here touches a database.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from crawler.clock import Clock
from crawler.discover import (
    PROBED,
    RELATIONS,
    Target,
    control_url,
    leads_from_headers,
    leads_from_page,
    leads_from_robots,
    probes,
    robots_url,
)
from crawler.fetch.client import FetchClient, Request
from crawler.fetch.robots import ParsedRobots, RobotsGate, RobotsPolicy
from crawler.policy.cadence import Range
from crawler.policy.freshness import CacheControl, Verdict, parse_cache_control
from crawler.policy.scope import Admitted, OriginRules, Refused, Scope
from crawler.policy.watch import (
    Content,
    Step,
    WatchRules,
    after_absence,
    after_content,
    after_failure,
    after_not_modified,
    conditions_for,
    judge_304,
)
from crawler.shelf import Shelf
from crawler.surfaces import ard
from crawler.surfaces.base import Bounds, Source
from crawler.surfaces.html import Page, read_page
from index.documents import ABSENCES, DocumentKind, DocumentState, DocumentVisit, FollowedLead, Observation, Outcome
from index.identity import essence, is_json_type
from index.records import Lead, Mechanism, Problem, Reading
from index.strict_json import canonical, digest

_IN_THREAD_FROM = 65_536
_CONTROL_INTERVAL = timedelta(days=1)
_TOO_MANY = "too_many_documents"
_WATCHED = frozenset({DocumentKind.MANIFEST, DocumentKind.PAGE})


@dataclass(frozen=True, slots=True)
class VisitPolicy:
    """The settings that decide about visits."""

    robots: RobotsPolicy
    bounds: Bounds
    manifest_watch: WatchRules
    page_watch: WatchRules
    manifest_size: int
    page_size: int
    max_documents: int
    list_private: bool = False
    max_wait: timedelta = timedelta(minutes=2)

    def for_origin(self, rules: OriginRules) -> "VisitPolicy":
        """Put the intervals of one origin in the place of the general ones."""
        if rules.min_interval is None and rules.max_interval is None:
            return self
        return replace(
            self,
            manifest_watch=_with_intervals(self.manifest_watch, rules),
            page_watch=_with_intervals(self.page_watch, rules),
        )


def _with_intervals(watch: WatchRules, rules: OriginRules) -> WatchRules:
    floor = rules.min_interval or watch.allowed.floor
    ceiling = rules.max_interval or watch.allowed.ceiling
    return replace(watch, allowed=Range(min(floor, ceiling), max(floor, ceiling)))


@dataclass(slots=True)
class VisitReport:
    """What a visit came to."""

    origin: str
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    robots: str = ""
    # How long the origin wants to be left alone: its Retry-After, or the pause before documents left for later.
    wait: timedelta | None = None
    postponed: int = 0
    unvisited: list[Target] = field(default_factory=list)
    owners: set[str] = field(default_factory=set)

    next_look_at: datetime | None = None

    @property
    def failed(self) -> bool:
        """Tell whether nothing at all could be reached."""
        return self.robots == "robots_unreachable" or (
            bool(self.outcomes) and all(outcome is Outcome.UNREACHABLE for outcome in self.outcomes.values())
        )


class Visitor:
    """Visits origins; one for the whole process."""

    def __init__(self, client: FetchClient, clock: Clock, policy: VisitPolicy) -> None:
        self._client = client
        self._clock = clock
        self._policy = policy
        self._parsed_robots = ParsedRobots()

    async def visit(
        self,
        rules: OriginRules,
        scope: Scope,
        shelf: Shelf,
        states: Mapping[str, DocumentState],
        *,
        force: bool = False,
        probe: bool = True,
        extra: Iterable[Target] = (),
        deadline: float | None = None,
    ) -> VisitReport:
        """Look at the documents of one origin that are due, or at all of them with `force`.

        `states` are its known documents. Without `probe` only known documents and `extra` targets are looked at, which
        is how an origin is treated that a pattern merely admits. What a `deadline` of the event loop's clock cuts off
        is named in the report.
        """
        gate = RobotsGate(
            self._client,
            self._clock,
            scope,
            shelf,
            self._parsed_robots,
            self._policy.robots,
            owner=rules.origin,
            known=states,
            force=force,
        )
        policy = self._policy.for_origin(rules)
        visit = _Visit(self._client, self._clock, policy, rules, scope, shelf, gate, dict(states), force)
        return await visit.run(probe=probe, extra=extra, deadline=deadline)


def _cache_control(headers: Mapping[str, str]) -> CacheControl:
    return parse_cache_control(headers.get("cache-control"), pragma=headers.get("pragma"))


class _Visit:
    """One visit under way."""

    def __init__(
        self,
        client: FetchClient,
        clock: Clock,
        policy: VisitPolicy,
        rules: OriginRules,
        scope: Scope,
        shelf: Shelf,
        gate: RobotsGate,
        states: dict[str, DocumentState],
        force: bool,
    ) -> None:
        self._client = client
        self._clock = clock
        self._policy = policy
        self._rules = rules
        self._scope = scope
        self._shelf = shelf
        self._gate = gate
        self._states = states
        self._force = force
        self._queue: list[Target] = []
        self._planned: set[str] = set()
        self._excess: list[DocumentState] = []
        self._report = VisitReport(rules.origin)

    async def run(self, *, probe: bool, extra: Iterable[Target], deadline: float | None) -> VisitReport:
        """Look at everything that is due, and at what turns up meanwhile."""
        self._plan(probe, extra)
        try:
            async with asyncio.timeout_at(deadline):
                await self._ask_robots()
                await self._leave_out()
                while self._queue and not self._must_leave():
                    self._queue.sort(key=self._urgency)
                    await self._look(self._queue[0])
                    self._queue.pop(0)
                self._report.postponed = len(self._queue)
        except TimeoutError:
            self._report.unvisited = list(self._queue)
        looks = [state.next_fetch_at for state in self._states.values() if state.next_fetch_at is not None]
        self._report.next_look_at = min(looks, default=None)
        return self._report

    async def _ask_robots(self) -> None:
        decision = await self._gate.decision(self._rules.origin)
        self._report.robots = decision.reason
        self._report.wait = self._gate.retry_after
        if "ard" in self._rules.surfaces:
            leads = self._take_leads(leads_from_robots(decision.rules))
            if decision.reason == "robots":
                await self._shelf.record_leads(robots_url(self._rules.origin), leads)

    def _plan(self, probe: bool, extra: Iterable[Target]) -> None:
        for target in (*(probes(self._rules) if probe else ()), *extra):
            self._enqueue(target)
        known = [state for state in self._states.values() if state.kind in _WATCHED]
        # Where there are too many, those that brought something stay.
        for state in sorted(known, key=lambda state: (state.digest is None, state.rank, state.url)):
            lead = Lead(state.url, state.mechanism, state.rank, depth=state.depth, ancestors=state.ancestors)
            if not self._enqueue(Target(state.kind, lead)) and self._is_due(state):
                self._excess.append(state)

    def _enqueue(self, target: Target) -> bool:
        """Plan to look at a document; false when the origin has as many as we watch."""
        url = target.lead.url
        if url in self._planned:
            return True
        if len(self._planned) >= self._policy.max_documents:
            return False
        self._planned.add(url)
        state = self._states.get(url)
        if state is None or self._force or self._is_due(state):
            self._queue.append(target)
        return True

    def _is_due(self, state: DocumentState) -> bool:
        return state.next_fetch_at is None or state.next_fetch_at <= self._clock.now()

    async def _leave_out(self) -> None:
        """Note of documents that other visits found here that they are too many."""
        now = self._clock.now()
        detail = f"only {self._policy.max_documents} documents of an origin are watched"
        for state in self._excess:
            observation = Observation(state.url, Outcome.REFUSED, now, now, reason=_TOO_MANY, detail=detail)
            visit = self._missed(state, observation, self._policy.manifest_watch)
            await self._shelf.record(visit)
            self._states[state.url] = visit.state

    def _must_leave(self) -> bool:
        """Leave the rest for a later visit when the origin asks for it, or when the pause would hold this one up."""
        if self._is_slow() and self._report.outcomes:
            self._report.wait = max(self._report.wait or timedelta(0), self._gate.spacing(self._rules.origin))
        # While robots.txt cannot be had nothing is asked for, and what that means for each document is worth noting.
        return self._report.wait is not None and self._report.robots != "robots_unreachable"

    def _is_slow(self) -> bool:
        return self._gate.spacing(self._rules.origin) > self._policy.max_wait

    def _urgency(self, target: Target) -> tuple[Any, ...]:
        """Order the queue: the most telling first, or whose turn it is where one visit can look at one document."""
        state = self._states.get(target.lead.url)
        seen_at = state.attempted_at if state is not None and self._is_slow() else None
        return (seen_at is not None, seen_at, target.lead.rank, target.lead.url)

    async def _look(self, target: Target) -> None:
        """Fetch one document, judge it, record it and take up its leads, which may go to the end of the queue."""
        state = self._state_of(target)
        observation = await self._fetch(state, target.kind)
        if target.kind is DocumentKind.PAGE:
            visit = await self._page(state, observation)
        else:
            visit = await self._manifest(state, observation)
        visit = self._with_leads(visit)
        await self._shelf.record(visit)
        self._states[state.url] = visit.state
        self._report.outcomes[state.url] = visit.state.outcome or Outcome.UNREACHABLE
        if visit.observation.retry_after is not None:
            self._report.wait = visit.observation.retry_after

    def _state_of(self, target: Target) -> DocumentState:
        lead = target.lead
        state = self._states.get(lead.url)
        if state is None:
            return DocumentState(
                url=lead.url,
                origin=self._rules.origin,
                kind=target.kind,
                first_seen_at=self._clock.now(),
                mechanism=lead.mechanism,
                rank=lead.rank,
                depth=lead.depth,
                ancestors=lead.ancestors,
            )
        if lead.rank < state.rank or lead.mechanism in PROBED:
            # A better recommendation than the one it was found by, or one that nobody else can withdraw.
            return replace(state, mechanism=lead.mechanism, rank=lead.rank, depth=lead.depth, ancestors=lead.ancestors)
        return state

    async def _fetch(self, state: DocumentState, kind: DocumentKind) -> Observation:
        page = kind is DocumentKind.PAGE
        watch = self._policy.page_watch if page else self._policy.manifest_watch
        size = self._policy.page_size if page else self._policy.manifest_size
        conditions = conditions_for(state, watch, self._clock.now(), ard.SURFACE_VERSION)
        request = Request(state.url, size, conditions, truncate=page, robots=self._report.robots)
        observation = await self._client.fetch(request, self._approve, self._gate.spacing)
        again = observation.outcome is Outcome.NOT_MODIFIED and judge_304(state, observation) is not Verdict.CONFIRMED
        if again or (observation.status in (412, 428) and conditions):
            request = replace(request, conditions={}, reload=True)
            observation = await self._client.fetch(request, self._approve, self._gate.spacing)
            if observation.outcome is Outcome.NOT_MODIFIED:
                detail = "304 although nothing was asked that it could answer"
                observation = replace(observation, outcome=Outcome.UNREACHABLE, reason="protocol_error", detail=detail)
        return observation

    async def _approve(self, url: str) -> Admitted | Refused:
        """Admit a URL by allowlist and by the robots.txt of its own origin, redirect targets included."""
        admitted = self._scope.admit(url, source=self._rules.origin)
        if isinstance(admitted, Refused):
            return admitted
        decision = await self._gate.decision(admitted.origin)
        if not decision.rules.allows(admitted.url):
            reason = decision.reason if decision.reason == "robots_unreachable" else "robots"
            return Refused(reason, f"the robots.txt of {admitted.origin} forbids it")
        return admitted

    # --- manifests ----------------------------------------------------------------------------------------------------

    async def _manifest(self, state: DocumentState, observation: Observation) -> DocumentVisit:
        if observation.outcome is Outcome.NOT_MODIFIED:
            return await self._manifest_confirmed(state, observation)
        if observation.outcome is Outcome.FETCHED:
            return await self._manifest_fetched(state, observation)
        return self._missed(state, observation, self._policy.manifest_watch)

    async def _manifest_confirmed(self, state: DocumentState, observation: Observation) -> DocumentVisit:
        step = after_not_modified(state, observation, self._policy.manifest_watch, self._clock.chance())
        if self._is_settled(state, step.state.headers):
            return DocumentVisit(step.state, observation, notes=step.notes)
        body = await self._shelf.load_body(state.digest or "")
        if body is None:
            # A copy that cannot be read is none, and a 304 confirms nothing then (RFC 9111 4.3.3).
            lost = replace(state, digest=None)
            return await self._manifest(lost, await self._fetch(lost, DocumentKind.MANIFEST))
        reading = self._honoured(await self._read(body, step.state, observation), step.state.headers)
        return self._applied(step, observation, reading, None, held=state.held)

    @staticmethod
    def _is_settled(state: DocumentState, headers: Mapping[str, str]) -> bool:
        """Tell whether the listings reflect what is stored, so that a 304 leaves nothing to read."""
        private = _cache_control(state.headers).private == _cache_control(headers).private
        return state.applied_digest == state.digest and not state.held and private

    async def _manifest_fetched(self, state: DocumentState, observation: Observation) -> DocumentVisit:
        name = digest(observation.body)
        if self._is_applied(state, name, observation):
            # The same bytes as those the listings reflect: nothing to read.
            content = Content(name, state.content_digest, len(observation.body), ard.SURFACE_VERSION)
            step = after_content(state, observation, content, self._policy.manifest_watch, self._clock.chance())
            return DocumentVisit(step.state, observation, notes=step.notes)
        reading = await self._read(observation.body, state, observation)
        if reading.fatal:
            return await self._unusable(state, observation, *reading.problems, kind=reading.kind)
        reading = self._honoured(reading, observation.headers)
        content = Content(name, reading.content_digest, len(observation.body), ard.SURFACE_VERSION)
        step = after_content(state, observation, content, self._policy.manifest_watch, self._clock.chance())
        # What may not be stored is read and forgotten (RFC 9111 5.2.2.5).
        body = None if _cache_control(observation.headers).no_store else observation.body
        return self._applied(step, observation, reading, body, held=state.held)

    def _applied(
        self, step: Step, observation: Observation, reading: Reading, body: bytes | None, *, held: bool
    ) -> DocumentVisit:
        return DocumentVisit(
            replace(step.state, applied_digest=step.state.digest, held=False, entry_count=len(reading.entries)),
            observation,
            reading=reading,
            body=body,
            changed=step.changed,
            confirm_removals=held,
            notes=step.notes,
        )

    def _is_applied(self, state: DocumentState, name: str, observation: Observation) -> bool:
        current = state.digest == name and state.parser_version == ard.SURFACE_VERSION
        return current and self._is_settled(state, observation.headers)

    async def _unusable(
        self, state: DocumentState, observation: Observation, *problems: Problem, kind: str = "malformed"
    ) -> DocumentVisit:
        """Judge a success that is no manifest: damaged, of another kind, or the page that answers everything (H48)."""
        problem = next(iter(problems), None)
        looks_json = observation.body.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")
        if kind == "malformed" and (looks_json or is_json_type(observation.headers.get("content-type"))):
            outcome = Outcome.MALFORMED
        elif await self._answers_everything(observation.final_url):
            outcome = Outcome.CATCH_ALL
        else:
            outcome = Outcome.WRONG_KIND if kind == "unknown" else Outcome.ABSENT
        observation = replace(
            observation,
            outcome=outcome,
            reason=problem.code if problem and outcome in (Outcome.MALFORMED, Outcome.WRONG_KIND) else "not_json",
            detail=problem.message if problem else "",
        )
        if kind == "manifest":
            observation = replace(observation, outcome=Outcome.MALFORMED, reason=problem.code if problem else "")
        reading = Reading(kind, problems=problems, complete=False)
        missed = self._missed(state, observation, self._policy.manifest_watch)
        return replace(missed, reading=reading)

    async def _answers_everything(self, url: str) -> bool:
        """Ask once a day for a path that nobody publishes; a host that serves it serves anything."""
        if not url.startswith(self._rules.origin + "/"):
            return False
        control = control_url(self._rules.origin)
        state = self._states.get(control)
        now = self._clock.now()
        if state is None or state.attempted_at is None or now - state.attempted_at >= _CONTROL_INTERVAL:
            if state is None:
                state = DocumentState(control, self._rules.origin, DocumentKind.CONTROL, first_seen_at=now)
            request = Request(control, self._policy.page_size, truncate=True)
            observation = await self._client.fetch(request, self._approve, self._gate.spacing)
            step = after_failure(state, replace(observation, body=b""), self._policy.page_watch, 0.0)
            state = replace(step.state, next_fetch_at=None, failing_since=None, failures=0)
            await self._shelf.record(DocumentVisit(state, observation))
            self._states[control] = state
        return state.outcome is Outcome.FETCHED

    # --- pages --------------------------------------------------------------------------------------------------------

    async def _page(self, state: DocumentState, observation: Observation) -> DocumentVisit:
        watch = self._policy.page_watch
        if observation.outcome is Outcome.NOT_MODIFIED:
            return await self._page_confirmed(state, observation)
        if observation.outcome is not Outcome.FETCHED:
            return self._missed(state, observation, watch)
        page = await self._parse_page(observation)
        seen = digest(canonical([page.base_url, [[link.url, link.relations] for link in page.links], page.scripts]))
        # What counts of a page is what it offers to discovery; a nonce elsewhere in it is no change.
        unchanged = state.content_digest == seen and state.applied_digest is not None and not state.held
        name = state.digest if unchanged and state.digest else digest(observation.body)
        content = Content(name, seen, len(observation.body), ard.SURFACE_VERSION)
        step = after_content(state, observation, content, watch, self._clock.chance())
        if unchanged and state.parser_version == ard.SURFACE_VERSION:
            return DocumentVisit(step.state, observation, notes=step.notes)
        reading = await self._read_page(page, state, observation)
        return self._applied(step, observation, reading, observation.body, held=state.held)

    async def _page_confirmed(self, state: DocumentState, observation: Observation) -> DocumentVisit:
        step = after_not_modified(state, observation, self._policy.page_watch, self._clock.chance())
        body = None if self._is_settled(state, state.headers) else await self._shelf.load_body(state.digest or "")
        if body is None:
            return DocumentVisit(step.state, observation, notes=step.notes)
        truncated = len(body) >= self._policy.page_size
        stored = replace(observation, body=body, headers=step.state.headers, truncated=truncated)
        reading = await self._read_page(await self._parse_page(stored), state, stored)
        return self._applied(step, observation, reading, None, held=state.held)

    async def _read_page(self, page: Page, state: DocumentState, observation: Observation) -> Reading:
        arguments = (page.scripts, page.base_url, self._source(state, observation), self._policy.bounds)
        if sum(map(len, page.scripts)) > _IN_THREAD_FROM:
            reading = await asyncio.to_thread(ard.read_in_page, *arguments)
        else:
            reading = ard.read_in_page(*arguments)
        return replace(
            reading,
            leads=tuple(leads_from_page(page, self._policy.bounds.links)),
            complete=reading.complete and not observation.truncated,
        )

    async def _parse_page(self, observation: Observation) -> Page:
        content_type = observation.headers.get("content-type")
        if essence(content_type) not in ("", "text/html", "application/xhtml+xml"):
            return Page(observation.final_url, (), ())
        arguments = (observation.body, observation.final_url, content_type, RELATIONS)
        if len(observation.body) > _IN_THREAD_FROM:
            return await asyncio.to_thread(read_page, *arguments)
        return read_page(*arguments)

    # --- both ---------------------------------------------------------------------------------------------------------

    def _missed(self, state: DocumentState, observation: Observation, watch: WatchRules) -> DocumentVisit:
        chance = self._clock.chance()
        if observation.outcome in ABSENCES:
            step = after_absence(state, observation, watch, chance)
        else:
            step = after_failure(state, observation, watch, chance)
        after = replace(step.state, applied_digest=None, entry_count=0) if step.taken_away else step.state
        return DocumentVisit(after, observation, taken_away=step.taken_away, notes=step.notes)

    async def _read(self, body: bytes, state: DocumentState, observation: Observation) -> Reading:
        """Read a manifest, a large one off the event loop."""
        source = self._source(state, observation)
        if len(body) > _IN_THREAD_FROM:
            return await asyncio.to_thread(ard.read_manifest, body, source, self._policy.bounds)
        return ard.read_manifest(body, source, self._policy.bounds)

    def _honoured(self, reading: Reading, headers: Mapping[str, str]) -> Reading:
        """Keep what is private to us out of what we serve to others."""
        private = _cache_control(headers).private and not self._policy.list_private
        return ard.withhold_private(reading) if private else reading

    @staticmethod
    def _source(state: DocumentState, observation: Observation) -> Source:
        return Source(
            url=observation.final_url or state.url,
            rank=state.rank,
            depth=state.depth,
            ancestors=(*state.ancestors, state.url),
            predecessor=state.mechanism in (Mechanism.PREDECESSOR_PATH, Mechanism.PREDECESSOR_LINK),
        )

    def _with_leads(self, visit: DocumentVisit) -> DocumentVisit:
        """Follow the leads of an answer: those of its header fields, which a 304 confirms, and those of its reading."""
        if visit.observation.outcome not in (Outcome.FETCHED, Outcome.NOT_MODIFIED):
            return visit
        leads: list[Lead] = []
        if "ard" in self._rules.surfaces:
            most = self._policy.bounds.links
            leads.extend(leads_from_headers(visit.state.headers, visit.observation.final_url, most))
        if visit.reading is not None:
            leads.extend(visit.reading.leads)
        elif not leads:
            return visit
        complete = visit.reading is not None and visit.reading.complete
        return replace(visit, leads=self._take_leads(leads), leads_complete=complete)

    def _take_leads(self, leads: Iterable[Lead]) -> tuple[FollowedLead, ...]:
        """Decide about each lead; what is ours joins the queue of this visit."""
        return tuple(self._follow(lead) for lead in leads)

    def _follow(self, lead: Lead) -> FollowedLead:
        admitted = self._scope.admit(lead.url, source=self._rules.origin)
        if isinstance(admitted, Refused):
            return FollowedLead(lead, admitted.reason)
        listed = self._scope.rules(admitted.origin) is not None
        owner = admitted.origin if listed else self._rules.origin
        if owner != self._rules.origin:
            self._report.owners.add(owner)
        elif not self._enqueue(Target(DocumentKind.MANIFEST, replace(lead, url=admitted.url))):
            return FollowedLead(lead, _TOO_MANY)
        return FollowedLead(replace(lead, url=admitted.url), "followed", owner)
