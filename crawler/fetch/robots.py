"""The robots.txt of every origin that a visit touches: fetched when stale, asked before every request."""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from config.units import format_duration
from crawler.clock import Clock
from crawler.discover import robots_url
from crawler.fetch.client import FetchClient, Request
from crawler.policy.freshness import Verdict, parse_cache_control
from crawler.policy.politeness import pause_between_requests
from crawler.policy.robots import RobotsDecision, RobotsRules, decide, parse_robots
from crawler.policy.scope import Admitted, Refused, Scope
from crawler.policy.watch import (
    Content,
    WatchRules,
    after_absence,
    after_content,
    after_failure,
    after_not_modified,
    conditions_for,
    judge_304,
)
from crawler.shelf import Shelf
from index.documents import ABSENCES, DocumentKind, DocumentState, DocumentVisit, Observation, Outcome
from index.records import Problem, Reading, Severity
from index.strict_json import digest

PARSER_VERSION = "robots-1"
_LONGEST_CACHE = timedelta(hours=24)  # RFC 9309 2.4
_RETRY_AFTER_FAILURE = timedelta(minutes=5)
_IN_THREAD_FROM = 50_000


class ParsedRobots:
    """Parsed files by digest, the most recently used of them."""

    def __init__(self, most: int = 5000) -> None:
        self._most = most
        self._rules: OrderedDict[tuple[str, str], RobotsRules] = OrderedDict()

    async def parse(self, body: bytes, url: str, name: str) -> RobotsRules:
        """Parse a file, large ones off the event loop."""
        known = self.get(url, name)
        if known is not None:
            return known
        if len(body) > _IN_THREAD_FROM:
            rules = await asyncio.to_thread(parse_robots, body, url)
        else:
            rules = parse_robots(body, url)
        self._rules[url, name] = rules
        if len(self._rules) > self._most:
            self._rules.popitem(last=False)
        return rules

    def get(self, url: str, name: str) -> RobotsRules | None:
        rules = self._rules.get((url, name))
        if rules is not None:
            self._rules.move_to_end((url, name))
        return rules


_LEAST_RATE = 1e-3


@dataclass(frozen=True, slots=True)
class RobotsPolicy:
    """The settings that concern robots.txt and pacing."""

    max_size: int
    watch: WatchRules
    min_delay: timedelta
    max_delay: timedelta


class RobotsGate:
    """The robots decisions of one visit."""

    def __init__(
        self,
        client: FetchClient,
        clock: Clock,
        scope: Scope,
        shelf: Shelf,
        parsed: ParsedRobots,
        policy: RobotsPolicy,
        *,
        owner: str,
        known: Mapping[str, DocumentState],
        force: bool = False,
    ) -> None:
        self._client = client
        self._clock = clock
        self._scope = scope
        self._shelf = shelf
        self._parsed = parsed
        self._policy = policy
        self._force = force
        self._owner = owner
        self._known = known
        self._decisions: dict[str, RobotsDecision] = {}
        self._rate_pause = timedelta(0)
        self.retry_after: timedelta | None = None

    async def decision(self, origin: str) -> RobotsDecision:
        """Give the rules in force for an origin, looking at its file first when the copy is stale."""
        known = self._decisions.get(origin)
        if known is None:
            known = self._decisions[origin] = await self._look(origin)
        return known

    def spacing(self, origin: str) -> timedelta:
        """Give the pause between two requests to an origin, as far as its file is known."""
        decision = self._decisions.get(origin)
        delay = None if decision is None else decision.rules.crawl_delay_s
        floor = self._policy.min_delay
        if origin == self._owner:
            floor = max(floor, self._rate_pause)
        slowdown = self._client.slowdown(origin)
        if delay is None and slowdown == 1:
            return floor  # the usual case; nearly every step of a visit asks
        return pause_between_requests(delay, floor=floor, ceiling=self._policy.max_delay, slowdown=slowdown).spacing

    def keep_to_rate(self, requests_per_minute: float) -> None:
        """Keep to the rate that the visited publisher states, as far as a Crawl-delay would be kept to (MADP)."""
        stated = timedelta(minutes=1) / max(requests_per_minute, _LEAST_RATE)
        self._rate_pause = min(stated, self._policy.max_delay)

    async def _look(self, origin: str) -> RobotsDecision:
        url = robots_url(origin)
        now = self._clock.now()
        state = await self._remembered(origin, url)
        if state is None:
            state = DocumentState(url=url, origin=origin, kind=DocumentKind.ROBOTS, first_seen_at=now)
        rules = await self._stored_rules(state)
        if not self._force and _is_current(state, now) and (rules is not None or state.outcome in ABSENCES):
            return decide(state.outcome or Outcome.UNREACHABLE, rules, confirmed_at=state.confirmed_at, now=now)
        if rules is None and state.digest is not None:
            state = replace(state, digest=None)
        observation = await self._fetch(state)
        if origin == self._owner:
            self.retry_after = observation.retry_after
        visit, rules = await self._settle(state, observation, rules)
        await self._shelf.record(visit)
        return decide(
            visit.state.outcome or Outcome.UNREACHABLE,
            rules,
            confirmed_at=visit.state.confirmed_at,
            now=self._clock.now(),
        )

    async def _remembered(self, origin: str, url: str) -> DocumentState | None:
        """Find what is known of a file; that of the visited origin came with the claim."""
        return self._known.get(url) if origin == self._owner else await self._shelf.load_document(url)

    async def _stored_rules(self, state: DocumentState) -> RobotsRules | None:
        if state.digest is None:
            return None
        known = self._parsed.get(state.url, state.digest)
        if known is not None:
            return known
        body = await self._shelf.load_body(state.digest)
        return None if body is None else await self._parsed.parse(body, state.url, state.digest)

    async def _fetch(self, state: DocumentState) -> Observation:
        conditions = conditions_for(state, self._policy.watch, self._clock.now(), PARSER_VERSION)
        request = Request(state.url, self._policy.max_size, conditions, truncate=True)
        observation = await self._client.fetch(request, self._approve, self.spacing)
        if observation.outcome is Outcome.NOT_MODIFIED and judge_304(state, observation) is not Verdict.CONFIRMED:
            request = replace(request, conditions={}, reload=True)
            observation = await self._client.fetch(request, self._approve, self.spacing)
            if observation.outcome is Outcome.NOT_MODIFIED:
                observation = replace(observation, outcome=Outcome.UNREACHABLE, reason="protocol_error")
        return observation

    async def _approve(self, url: str) -> Admitted | Refused:
        """Follow redirects of a robots.txt to other hosts too; the rules apply to this origin (RFC 9309 2.3.1.2)."""
        return self._scope.check_public(url)

    async def _settle(
        self, state: DocumentState, observation: Observation, rules: RobotsRules | None
    ) -> tuple[DocumentVisit, RobotsRules | None]:
        chance = self._clock.chance()
        watch = self._policy.watch
        if observation.outcome is Outcome.FETCHED:
            name = digest(observation.body)
            rules = await self._parsed.parse(observation.body, state.url, name)
            content = Content(name, None, len(observation.body), PARSER_VERSION)
            step = after_content(state, observation, content, watch, chance)
            if state.digest == name:
                return DocumentVisit(step.state, observation, notes=step.notes), rules
            problems = (*rules.problems, *self._about_ceiling(rules))
            reading = Reading("robots", problems=problems, complete=False)
            visit = DocumentVisit(step.state, observation, reading, observation.body, step.changed, notes=step.notes)
            return visit, rules
        if observation.outcome is Outcome.NOT_MODIFIED:
            return DocumentVisit(after_not_modified(state, observation, watch, chance).state, observation), rules
        if observation.reason in ("too_many_redirects", "redirect_loop"):
            # RFC 9309 2.3.1.2: the file then counts as unavailable.
            observation = replace(observation, outcome=Outcome.ABSENT)
        if observation.outcome in ABSENCES or observation.outcome is Outcome.WITHHELD:
            return DocumentVisit(after_absence(state, observation, watch, chance).state, observation), rules
        return DocumentVisit(after_failure(state, observation, watch, chance).state, observation), rules

    def _about_ceiling(self, rules: RobotsRules) -> list[Problem]:
        """Say so when a publisher asks for longer pauses than we make."""
        most = self._policy.max_delay
        if not pause_between_requests(rules.crawl_delay_s, floor=self._policy.min_delay, ceiling=most).capped:
            return []
        message = f"Crawl-delay is longer than {format_duration(most)}; we make pauses of that length"
        return [Problem("robots.crawl_delay_ceiling", Severity.WARNING, "", message, "RFC 9309 2.2.4")]


def _is_current(state: DocumentState, now: datetime) -> bool:
    """Tell whether the last look still counts: a day at most, less when the file says so, minutes after a failure."""
    if state.attempted_at is None:
        return False
    age = now - state.attempted_at
    if state.outcome in (Outcome.FETCHED, Outcome.NOT_MODIFIED):
        control = parse_cache_control(state.headers.get("cache-control"), pragma=state.headers.get("pragma"))
        stated = control.no_cache or control.no_store or control.max_age is not None or "expires" in state.headers
        fresh = state.fresh_until is not None and now < state.fresh_until
        return age < _LONGEST_CACHE and (fresh or not stated)
    if state.outcome in ABSENCES or state.outcome is Outcome.WITHHELD:
        return age < _LONGEST_CACHE
    return age < _RETRY_AFTER_FAILURE
