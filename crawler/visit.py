"""One visit: the pipeline from an origin's allowlist entry to what its documents say.

robots.txt, then the probes and known documents in order of precedence, each one fetched, judged by its shape, read,
and followed to what it points to. Every look at a document is recorded as it ends; nothing here touches a database.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from crawler.agenda import Agenda
from crawler.clock import Clock
from crawler.discover import (
    PROBED,
    ROW_MECHANISMS,
    Target,
    card_probes,
    control_url,
    leads_from_headers,
    leads_from_robots,
    probes,
    robots_url,
)
from crawler.fetch.client import FetchClient, Request
from crawler.fetch.robots import ParsedRobots, RobotsGate, RobotsPolicy
from crawler.judge import Judge, JudgeRules
from crawler.madp import MadpVisit
from crawler.policy.backoff import SILENT_AFTER, pause_after_silence, silence_after
from crawler.policy.cadence import Range
from crawler.policy.freshness import Verdict
from crawler.policy.scope import HOST_RESTS, Admitted, OriginRules, Refused, Scope
from crawler.policy.watch import WatchRules, after_failure, conditions_for, judge_304
from crawler.rendition import RenditionVisit
from crawler.shelf import Shelf
from crawler.signing import SignatureVisit, TrustedKeys
from crawler.surfaces import ard
from crawler.surfaces import artifact as artifacts
from index.documents import DocumentKind, DocumentState, DocumentVisit, FollowedLead, Observation, Outcome
from index.records import RANK_OF_MECHANISM, ArtifactDecision, ArtifactRef, Entry, Lead, Mechanism
from index.urls import origin_of

_CONTROL_INTERVAL = timedelta(days=1)
_TOO_MANY = "too_many_documents"


@dataclass(frozen=True, slots=True)
class VisitPolicy:
    """The settings that decide about visits."""

    robots: RobotsPolicy
    rules: JudgeRules
    manifest_size: int
    max_documents: int
    max_artifacts: int
    max_wait: timedelta = timedelta(minutes=2)
    trusted_keys: tuple[TrustedKeys, ...] = ()

    def for_origin(self, rules: OriginRules) -> "VisitPolicy":
        """Put the intervals of one origin in the place of the general ones."""
        if rules.min_interval is None and rules.max_interval is None:
            return self
        watched = replace(
            self.rules,
            manifest_watch=_with_intervals(self.rules.manifest_watch, rules),
            page_watch=_with_intervals(self.rules.page_watch, rules),
        )
        return replace(self, rules=watched)

    def at_price(self, price: float) -> "VisitPolicy":
        """Put what a look must be worth in the place of what it had to be."""
        rules = self.rules
        watched = replace(
            rules,
            manifest_watch=replace(rules.manifest_watch, price=price),
            page_watch=replace(rules.page_watch, price=price),
        )
        return replace(self, rules=watched)


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
    # Until when other hosts want to be left alone.
    rests: dict[str, datetime] = field(default_factory=dict)
    # How long we leave it alone because it does not answer.
    pause: timedelta | None = None
    postponed: int = 0
    unvisited: list[Target] = field(default_factory=list)
    owners: set[str] = field(default_factory=set)
    next_look_at: datetime | None = None
    # The MADP assessment of the origin, when it was made anew.
    madp: Mapping[str, Any] | None = None

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

    def use_price(self, price: float) -> None:
        """Choose intervals by this price from now on."""
        self._policy = self._policy.at_price(price)

    async def visit(
        self,
        rules: OriginRules,
        scope: Scope,
        shelf: Shelf,
        states: Mapping[str, DocumentState],
        *,
        force: bool = False,
        probe: bool = True,
        madp: Mapping[str, Any] | None = None,
        extra: Iterable[Target] = (),
        deadline: float | None = None,
    ) -> VisitReport:
        """Look at the documents of one origin that are due, or at all of them with `force`.

        `states` are its known documents, `madp` its last MADP assessment. Without `probe` only known documents and
        `extra` targets are looked at, which is how an origin is treated that a pattern merely admits. What a `deadline`
        of the event loop's clock cuts off is named in the report.
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
        visit = _Visit(self._client, self._clock, policy, rules, scope, shelf, gate, dict(states), force, madp)
        return await visit.run(probe=probe, extra=extra, deadline=deadline)


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
        madp: Mapping[str, Any] | None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._policy = policy
        self._rules = rules
        self._scope = scope
        self._shelf = shelf
        self._gate = gate
        self._states = states
        self._agenda = Agenda(self._states, clock, force, policy.max_documents, policy.max_artifacts)
        self._signing = SignatureVisit(
            rules.origin, scope, shelf, self._states, policy.trusted_keys, self._agenda, self._look_at_keys
        )
        verify = self._signing.verify
        self._judge = Judge(policy.rules, clock, shelf, self._fetch, self._is_catch_all, self._decide, verify)
        self._madp = MadpVisit(rules.origin, scope, shelf, self._states, madp)
        every, depth = policy.rules.manifest_watch.unconditional_every, policy.rules.bounds.json_depth
        self._renditions = RenditionVisit(clock, self._fetch_rendition, every, depth)
        self._report = VisitReport(rules.origin)
        self._silence = 0
        # Until when hosts of others asked to be left alone, of those that were to be asked.
        self._rests: dict[str, datetime | None] = {}
        self._rest: timedelta | None = None

    async def run(self, *, probe: bool, extra: Iterable[Target], deadline: float | None) -> VisitReport:
        """Look at everything that is due, and at what turns up meanwhile."""
        rows = card_probes(self._rules) if probe else []
        self._agenda.plan((*(probes(self._rules) if probe else ()), *extra), rows, self._is_wanted)
        self._keep_to_rate()
        try:
            async with asyncio.timeout_at(deadline):
                await self._ask_robots()
                await self._leave_out()
                await self._signing.plan()
                while self._agenda.queue and not self._must_leave():
                    await self._look(self._agenda.first(by_turn=self._is_slow()))
                    self._agenda.done()
                self._report.postponed = len(self._agenda.queue)
                self._report.madp = await self._madp.assessment()
        except TimeoutError:
            self._report.unvisited = list(self._agenda.queue)
        looks = [state.next_fetch_at for state in self._states.values() if self._is_wanted(state)]
        self._report.next_look_at = min((at for at in looks if at is not None), default=None)
        return self._report

    async def _ask_robots(self) -> None:
        decision = await self._gate.decision(self._rules.origin)
        self._report.robots = decision.reason
        self._report.wait = self._gate.retry_after
        if "ard" in self._rules.surfaces:
            leads = self._take_leads(leads_from_robots(decision.rules))
            if decision.reason == "robots":
                await self._shelf.record_leads(robots_url(self._rules.origin), leads)
        if self._policy.rules.withdraw_on_robots and decision.reason != "robots_unreachable":
            mine = [state for state in self._states.values() if state.url.startswith(f"{self._rules.origin}/")]
            # No request is made for these, so there is nothing to wait for.
            self._agenda.hasten(state for state in mine if state.is_shown and not decision.rules.allows(state.url))

    async def _leave_out(self) -> None:
        """Note of documents that other visits found here that they are too many."""
        now = self._clock.now()
        for state in self._agenda.excess:
            artifact = state.kind is DocumentKind.ARTIFACT
            most = self._policy.max_artifacts if artifact else self._policy.max_documents
            detail = f"only {most} {'artifacts' if artifact else 'documents'} of an origin are watched"
            observation = Observation(state.url, Outcome.REFUSED, now, now, reason=_TOO_MANY, detail=detail)
            visit = self._judge.missed(state, observation)
            await self._shelf.record(visit)
            self._states[state.url] = visit.state

    def _must_leave(self) -> bool:
        """Leave the rest for a later visit when the origin asks for it, or when the pause would hold this one up."""
        if self._is_slow() and self._report.outcomes:
            self._report.wait = max(self._report.wait or timedelta(0), self._gate.spacing(self._rules.origin))
        if self._silence >= SILENT_AFTER:
            self._report.pause = self._pause_after_silence()
            return True
        # While robots.txt cannot be had nothing is asked for, and what that means for each document is worth noting.
        return self._report.wait is not None and self._report.robots != "robots_unreachable"

    def _pause_after_silence(self) -> timedelta:
        times = max(state.failures for state in self._states.values())
        ceiling = self._policy.rules.manifest_watch.failure_ceiling
        return pause_after_silence(times, ceiling=ceiling, chance=self._clock.chance())

    def _is_slow(self) -> bool:
        return self._gate.spacing(self._rules.origin) > self._policy.max_wait

    async def _look(self, target: Target) -> None:
        """Fetch one document, judge it, record it and take up its leads, which may go to the end of the queue."""
        state = self._state_of(target)
        observation = await self._fetch(state)
        if state.url.startswith(f"{self._rules.origin}/"):
            self._silence = silence_after(self._silence, observation)
        visit = self._with_leads(await self._judge.judge(state, observation))
        await self._shelf.record(visit)
        self._states[state.url] = visit.state
        self._report.outcomes[state.url] = visit.state.outcome or Outcome.UNREACHABLE
        self._agenda.saw(state.url)
        self._take_artifacts(visit)
        await self._signing.saw(visit)
        if "madp" in self._rules.surfaces:
            for target in self._madp.further(visit):
                self._agenda.enqueue(target)
            self._keep_to_rate()
        if visit.state.kind is DocumentKind.ARTIFACT:
            self._agenda.advance_rows()
        self._let_rest(visit.observation)
        await self._compare_renditions(state, visit)

    async def _compare_renditions(self, before: DocumentState, visit: DocumentVisit) -> None:
        """See what a card is for older clients, unless the origin wants to be asked little."""
        if self._is_slow() or self._report.wait is not None or not self._shelf.keeps_drift:
            return
        rendition = await self._renditions.compare(before, visit)
        if rendition is not None:
            await self._shelf.record_rendition(rendition)

    async def _fetch_rendition(self, url: str, headers: Mapping[str, str]) -> Observation:
        request = Request(url, self._policy.manifest_size, headers=headers, robots=self._report.robots)
        observation = await self._client.fetch(request, self._approve, self._gate.spacing)
        self._let_rest(observation)
        return observation

    def _let_rest(self, observation: Observation) -> None:
        """Heed a Retry-After for the host that answered; what is on others, the visited origin too, goes on."""
        if observation.retry_after is None or observation.reason == HOST_RESTS:
            return
        host = origin_of(observation.final_url or observation.url)
        if host == self._rules.origin:
            self._report.wait = observation.retry_after
        else:
            self._rests[host] = self._report.rests[host] = observation.response_at + observation.retry_after

    async def _rest_of(self, host: str) -> timedelta | None:
        """Give how much longer a host of somebody else wants to be left alone, whoever was told so."""
        if host == self._rules.origin:
            return None
        if host not in self._rests:
            self._rests[host] = await self._shelf.load_rest(host)
        until, now = self._rests[host], self._clock.now()
        return None if until is None or until <= now else until - now

    def _is_wanted(self, state: DocumentState) -> bool:
        return self._madp.is_wanted(state) and self._signing.is_wanted(state)

    async def _look_at_keys(self, target: Target) -> None:
        """Look at a key set out of turn, for a card waits; where the origin wants to be asked little, in its turn."""
        if self._is_slow() or self._report.wait is not None:
            self._agenda.enqueue(target)
        else:
            self._agenda.take(target.lead.url)
            await self._look(target)

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
        if state.mechanism is Mechanism.KEY_SET and lead.mechanism not in PROBED:
            return state  # whatever else somebody takes it for
        if state.mechanism is Mechanism.ENTRY:
            better = lead.mechanism in ROW_MECHANISMS or target.kind is DocumentKind.MANIFEST
        else:
            better = lead.rank < state.rank or lead.mechanism in PROBED
        # What somebody else took for a catalog may be a page of ours.
        named: dict[str, Any] = {"kind": target.kind}
        if better:
            # A better recommendation than the one it was found by, or one that nobody else can withdraw.
            named |= {"mechanism": lead.mechanism, "rank": lead.rank, "depth": lead.depth, "ancestors": lead.ancestors}
        is_same = all(getattr(state, name) == value for name, value in named.items())
        return state if is_same else replace(state, **named)

    async def _fetch(self, state: DocumentState) -> Observation:
        page = state.kind is DocumentKind.PAGE
        artifact = state.kind is DocumentKind.ARTIFACT
        watch = self._policy.rules.page_watch if page else self._policy.rules.manifest_watch
        size = self._policy.rules.page_size if page else self._policy.manifest_size
        version = artifacts.VERSION if artifact else ard.SURFACE_VERSION
        conditions = conditions_for(state, watch, self._clock.now(), version)
        headers = artifacts.HEADERS if artifact else {}
        request = Request(state.url, size, conditions, truncate=page, headers=headers, robots=self._report.robots)
        observation = await self._client.fetch(request, self._approve, self._gate.spacing)
        again = observation.outcome is Outcome.NOT_MODIFIED and judge_304(state, observation) is not Verdict.CONFIRMED
        if again or (observation.status in (412, 428) and conditions):
            request = replace(request, conditions={}, reload=True)
            observation = await self._client.fetch(request, self._approve, self._gate.spacing)
            if observation.outcome is Outcome.NOT_MODIFIED:
                detail = "304 although nothing was asked that it could answer"
                observation = replace(observation, outcome=Outcome.UNREACHABLE, reason="protocol_error", detail=detail)
        return replace(observation, retry_after=self._rest) if observation.reason == HOST_RESTS else observation

    def _keep_to_rate(self) -> None:
        if self._madp.requests_per_minute is not None:
            self._gate.keep_to_rate(self._madp.requests_per_minute)

    async def _approve(self, url: str) -> Admitted | Refused:
        """Admit a URL by allowlist and by the robots.txt of its own origin, redirect targets included."""
        admitted = self._scope.admit(url, source=self._rules.origin)
        if isinstance(admitted, Refused) and admitted.reason == "not_allowlisted":
            anchor = self._madp.admits(url)
            admitted = anchor if isinstance(anchor, Admitted) else admitted
        if isinstance(admitted, Refused):
            return admitted
        self._rest = await self._rest_of(admitted.origin)
        if self._rest is not None:
            return Refused(HOST_RESTS, f"not asked, for {admitted.origin} wants to be left alone")
        decision = await self._gate.decision(admitted.origin)
        if not decision.rules.allows(admitted.url):
            reason = decision.reason if decision.reason == "robots_unreachable" else "robots"
            return Refused(reason, f"the robots.txt of {admitted.origin} forbids it")
        return admitted

    async def _is_catch_all(self, url: str) -> bool:
        """Ask once a day for a path that nobody publishes; a host that serves it serves anything."""
        if not url.startswith(self._rules.origin + "/"):
            return False
        control = control_url(self._rules.origin)
        state = self._states.get(control)
        now = self._clock.now()
        if state is None or state.attempted_at is None or now - state.attempted_at >= _CONTROL_INTERVAL:
            if state is None:
                state = DocumentState(control, self._rules.origin, DocumentKind.CONTROL, first_seen_at=now)
            request = Request(control, self._policy.rules.page_size, truncate=True)
            observation = await self._client.fetch(request, self._approve, self._gate.spacing)
            step = after_failure(state, replace(observation, body=b""), self._policy.rules.page_watch, 0.0)
            state = replace(step.state, next_fetch_at=None, failing_since=None, failures=0)
            await self._shelf.record(DocumentVisit(state, observation))
            self._states[control] = state
        return state.outcome is Outcome.FETCHED

    # --- artifacts ----------------------------------------------------------------------------------------------------

    def _decide(self, entry: Entry) -> ArtifactRef:
        """Decide whether an entry's artifact is read: on this origin, an allowlisted one or a host listed for it."""
        wanted = artifacts.decision_about(entry.type, self._rules.surfaces)
        if wanted is not ArtifactDecision.WATCHED:
            return ArtifactRef(wanted)
        if "data" in entry.value:
            return ArtifactRef(ArtifactDecision.INLINE)
        if entry.url is None or not entry.url.startswith(("https://", "http://")):
            return ArtifactRef(ArtifactDecision.NOT_A_CARD)
        admitted = self._scope.admit(entry.url, source=self._rules.origin)
        if isinstance(admitted, Refused):
            return ArtifactRef(admitted.reason, entry.url)
        listed = self._scope.rules(admitted.origin) is not None
        owner = admitted.origin if listed else self._rules.origin
        if owner == self._rules.origin and not self._agenda.enqueue(artifact_target(admitted.url)):
            return ArtifactRef(_TOO_MANY, admitted.url)
        return ArtifactRef(wanted, admitted.url, owner)

    def _take_artifacts(self, visit: DocumentVisit) -> None:
        """Name the origins that artifacts are on, and look at the catalogs again that a card has moved away from."""
        if visit.reading is not None:
            refs = [entry.artifact for entry in visit.reading.entries if entry.artifact is not None]
            self._report.owners.update(ref.owner for ref in refs if ref.owner and ref.owner != self._rules.origin)
        moved = (visit.changed or visit.presence_changed) and visit.before_at is not None
        if visit.state.kind is DocumentKind.ARTIFACT and moved and visit.state.mechanism is not Mechanism.KEY_SET:
            self._agenda.look_again()

    # --- leads --------------------------------------------------------------------------------------------------------

    def _with_leads(self, visit: DocumentVisit) -> DocumentVisit:
        """Follow the leads of an answer: those of its header fields, which a 304 confirms, and those of its reading."""
        if visit.observation.outcome not in (Outcome.FETCHED, Outcome.NOT_MODIFIED):
            return visit
        leads: list[Lead] = []
        if "ard" in self._rules.surfaces:
            most = self._policy.rules.bounds.links
            leads.extend(leads_from_headers(visit.state.headers, visit.observation.final_url, most))
        if visit.reading is not None:
            leads.extend(visit.reading.leads)
        elif not leads:
            return visit
        complete = visit.reading is not None and visit.reading.complete and visit.reading.all_leads
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
        elif not self._agenda.enqueue(Target(DocumentKind.MANIFEST, replace(lead, url=admitted.url))):
            return FollowedLead(lead, _TOO_MANY)
        return FollowedLead(replace(lead, url=admitted.url), "followed", owner)


def artifact_target(url: str) -> Target:
    """Make a target of the address that an entry names."""
    return Target(DocumentKind.ARTIFACT, Lead(url, Mechanism.ENTRY, RANK_OF_MECHANISM[Mechanism.ENTRY]))
