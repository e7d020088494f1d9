"""How an observation changes what is remembered of a document. Pure.

Everything that depends on the history of one URL is decided here: which conditions to send, whether a 304 can be
believed, when the copy turns stale and when a missing document counts as taken away.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from crawler.policy.backoff import backoff_after, next_try
from crawler.policy.cadence import (
    CARD,
    LISTING,
    OTHER,
    Range,
    interval_after_success,
    next_after_success,
)
from crawler.policy.change_rate import Belief
from crawler.policy.freshness import (
    Validators,
    Verdict,
    conditional_headers,
    freshness,
    judge_not_modified,
    stored_headers,
    update_stored,
    validators_of,
)
from index.documents import VALIDATOR_LIES, DocumentKind, DocumentState, Observation, Outcome
from index.http_date import parse_http_date

# After so many 200s with the same bytes the entity tag is known to match nothing, as behind compressing servers.
_INEFFECTIVE_AFTER = 3
_DISTRUST = timedelta(days=7)
_SOONEST_RETRY = timedelta(seconds=1)
# A date of change that is as good as now is made for the answer.
_JUST_NOW = timedelta(minutes=1)
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class WatchRules:
    """The settings that decide about one document."""

    allowed: Range
    absent_ceiling: timedelta
    failure_ceiling: timedelta
    default_freshness: timedelta
    unconditional_every: int
    unconditional_after: timedelta
    removal_sightings: int
    removal_period: timedelta
    # What a look must be worth; None where no budget says so.
    price: float | None = None


def belief_of(state: DocumentState) -> Belief:
    """Give what is believed about how often a document changes."""
    return Belief() if state.rate_a is None or state.rate_b is None else Belief(state.rate_a, state.rate_b)


def importance(kind: DocumentKind, entry_count: int) -> float:
    """Weigh a document by what depends on it."""
    if entry_count > 0:
        return LISTING
    return CARD if kind is DocumentKind.ARTIFACT else OTHER


def conditions_for(state: DocumentState, rules: WatchRules, now: datetime, parser_version: str) -> Mapping[str, str]:
    """Choose the conditions of the next request; none where the whole document is wanted.

    Conditions need the stored body. They are left out when the parser changed, on every Nth look and after a week, for
    validators can lie; and while they were caught lying.
    """
    if state.digest is None or state.parser_version != parser_version:
        return {}
    if state.distrust_until is not None and now < state.distrust_until:
        return {}
    if state.not_modified_streak >= rules.unconditional_every:
        return {}
    if state.full_at is None or now - state.full_at >= rules.unconditional_after:
        return {}
    validators = validators_of(state.headers)
    if state.ineffective_streak >= _INEFFECTIVE_AFTER and validators.last_modified is not None:
        # With If-None-Match present a server ignores the date (RFC 9110 13.1.3), so the useless tag must go.
        validators = Validators(None, validators.last_modified)
    return conditional_headers(validators, state.headers.get("vary"))


def is_worth_comparing(
    before: DocumentState, after: DocumentState, observation: Observation, field: str, *, every: int, chance: float
) -> bool:
    """Tell whether to look a second time, without a request field that the answer may depend on.

    Rarely: when an answer that names the field is a new one, when the whole document was asked for although a copy is
    held, and now and then where it always is, for want of anything to ask by.
    """
    named = field in {name.strip().lower() for name in observation.headers.get("vary", "").split(",")}
    if named and after.digest != before.digest:
        return True
    if observation.conditions or before.digest is None:
        return False
    distrusted = before.distrust_until is not None and observation.request_at < before.distrust_until
    could_ask = conditional_headers(validators_of(before.headers), before.headers.get("vary"))
    return (bool(could_ask) and not distrusted) or chance < 1 / every


def judge_304(state: DocumentState, observation: Observation) -> Verdict:
    """Decide whether a 304 confirms what is stored; one of another redirect target cannot (RFC 9111 4)."""
    if state.final_url and observation.final_url and state.final_url != observation.final_url:
        return Verdict.UNEXPECTED
    return judge_not_modified(
        observation.conditions, state.headers, observation.headers, have_body=state.digest is not None
    )


@dataclass(frozen=True, slots=True)
class Content:
    """The identity of a body that was fetched and read; `updated_at` is the latest time of change that it states."""

    digest: str
    content_digest: str | None
    length: int
    parser_version: str
    entry_count: int | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """The state after an observation, and what was noticed on the way."""

    state: DocumentState
    changed: bool = False
    taken_away: bool = False
    notes: tuple[str, ...] = ()


def after_content(
    state: DocumentState, observation: Observation, content: Content, rules: WatchRules, chance: float
) -> Step:
    """Remember a body: validators and freshness are replaced whatever the digest says (RFC 9111 4.3.4)."""
    now = observation.response_at
    same = state.digest == content.digest
    changed = not same and (state.content_digest is None or state.content_digest != content.content_digest)
    unconditional = not observation.conditions
    notes = []
    lied = (
        unconditional
        and not same
        and (state.not_modified_streak > 0 or state.distrust_until is not None)
        and bool(validators_of(state.headers))
        and validators_of(state.headers) == validators_of(observation.headers)
    )
    if lied:
        notes.append(VALIDATOR_LIES)
    tagged = "If-None-Match" in observation.conditions
    ineffective = state.ineffective_streak + tagged if same else 0
    if tagged and ineffective == _INEFFECTIVE_AFTER:
        notes.append("revalidation_ineffective")
    headers = stored_headers(observation.headers)
    belief = _after_comparison(state, observation, content, changed=changed)
    count = state.entry_count if content.entry_count is None else content.entry_count
    after = replace(
        state,
        **_success(state, observation, headers, rules, chance, belief, count, changed=changed),
        digest=content.digest,
        content_digest=content.content_digest,
        length=content.length,
        parser_version=content.parser_version,
        fetched_at=now,
        full_at=now,
        changed_at=now if changed else state.changed_at,
        not_modified_streak=0,
        ineffective_streak=ineffective,
        distrust_until=now + _DISTRUST if lied else state.distrust_until,
    )
    return Step(after, changed, notes=tuple(notes))


def after_not_modified(state: DocumentState, observation: Observation, rules: WatchRules, chance: float) -> Step:
    """Remember a confirming 304: it is an observation, and it may refresh the stored fields."""
    headers = update_stored(state.headers, observation.headers)
    belief = belief_of(state)
    if state.confirmed_at is not None:
        belief = belief.after_unchanged((observation.response_at - state.confirmed_at) / _DAY)
    after = replace(
        state,
        **_success(state, observation, headers, rules, chance, belief, state.entry_count, changed=False),
        not_modified_streak=state.not_modified_streak + 1,
        # What the date alone achieved says nothing for the tag.
        ineffective_streak=0 if "If-None-Match" in observation.conditions else state.ineffective_streak,
    )
    return Step(after)


def _after_comparison(state: DocumentState, observation: Observation, content: Content, *, changed: bool) -> Belief:
    """Learn from a body that was compared with the one before; another parser's reading cannot be."""
    belief = belief_of(state)
    if state.confirmed_at is None:
        return belief
    gap = (observation.response_at - state.confirmed_at) / _DAY
    if not changed:
        return belief.after_unchanged(gap)
    if state.parser_version != content.parser_version:
        return belief
    return belief.after_changed(gap, _age_of_change(state.confirmed_at, observation, content))


def _age_of_change(confirmed_at: datetime, observation: Observation, content: Content) -> float | None:
    """Give the age of the last change where the publisher states a time for it that can be true."""
    now = observation.response_at
    stated = (content.updated_at, parse_http_date(observation.headers.get("last-modified")))
    ages = [now - at for at in stated if at is not None and confirmed_at < at <= now - _JUST_NOW]
    return min(ages) / _DAY if ages else None


def _success(
    state: DocumentState,
    observation: Observation,
    headers: dict[str, str],
    rules: WatchRules,
    chance: float,
    belief: Belief,
    entry_count: int,
    *,
    changed: bool,
) -> dict[str, Any]:
    """Give the members that every success renews."""
    now = observation.response_at
    fresh = freshness(
        headers,
        200,
        request_at=observation.request_at,
        response_at=now,
        default=rules.default_freshness,
    )
    fresh_until = fresh.fresh_until(now)
    interval = interval_after_success(
        state.interval,
        belief,
        changed=changed,
        first=rules.default_freshness,
        allowed=rules.allowed,
        price=rules.price,
        weight=importance(state.kind, entry_count),
    )
    # robots.txt has no schedule of its own; it is looked at before each visit once it is stale.
    scheduled = state.kind is not DocumentKind.ROBOTS
    next_fetch_at = next_after_success(now, interval, fresh_until, allowed=rules.allowed, chance=chance)
    return {
        **_attempt(state, observation),
        "headers": headers,
        "confirmed_at": now,
        "fresh_until": fresh_until,
        "interval": interval,
        "rate_a": belief.changes,
        "rate_b": belief.days,
        "next_fetch_at": next_fetch_at if scheduled else None,
        "failures": 0,
        "failing_since": None,
        "absences": 0,
        "absent_since": None,
    }


def after_absence(state: DocumentState, observation: Observation, rules: WatchRules, chance: float) -> Step:
    """Remember that there is nothing, or nothing of the kind.

    Only 404 and 410 can take entries away: 410 at once, 404 when it was seen often enough over long enough (H24). A
    page where the manifest should be leaves them in place, stale.
    """
    now = observation.response_at
    outcome = observation.outcome
    gone = outcome is Outcome.GONE
    stated = outcome is Outcome.GONE or (outcome is Outcome.ABSENT and observation.status == 404)
    # Sightings of one kind alone are counted; absent_since tells which kind the last ones were.
    absences = 1 + (state.absences if stated == (state.absent_since is not None) else 0)
    absent_since = (state.absent_since or now) if stated else None
    confirmed = gone or (
        absent_since is not None and absences >= rules.removal_sightings and now - absent_since >= rules.removal_period
    )
    after = replace(
        state,
        **_attempt(state, observation),
        absences=absences,
        absent_since=absent_since,
        failures=0,
        failing_since=state.failing_since or now,
        not_modified_streak=0,
        next_fetch_at=None
        if state.kind is DocumentKind.ROBOTS
        else next_try(
            backoff_after(outcome, observation.reason),
            now,
            absences,
            fresh_until=_stated_freshness(observation),
            ceiling=rules.absent_ceiling,
            chance=chance,
        ),
    )
    return Step(after, taken_away=stated and confirmed)


def after_failure(state: DocumentState, observation: Observation, rules: WatchRules, chance: float) -> Step:
    """Remember a failure: nothing is removed, what is held turns stale, the next try waits longer."""
    now = observation.response_at
    failures = state.failures + 1
    backoff = backoff_after(observation.outcome, observation.reason)
    next_fetch_at = next_try(
        backoff,
        now,
        failures,
        ceiling=rules.failure_ceiling if backoff.is_failure else rules.absent_ceiling,
        chance=chance,
        closely=max(rules.allowed.floor, _SOONEST_RETRY),
    )
    if observation.retry_after is not None:
        next_fetch_at = max(next_fetch_at, now + observation.retry_after)
    after = replace(
        state,
        **_attempt(state, observation),
        failures=failures,
        failing_since=state.failing_since or now,
        next_fetch_at=None if state.kind is DocumentKind.ROBOTS else next_fetch_at,
    )
    return Step(after)


def _stated_freshness(observation: Observation) -> datetime | None:
    """Give the end of the freshness that a negative answer states for itself."""
    if "cache-control" not in observation.headers and "expires" not in observation.headers:
        return None
    now = observation.response_at
    fresh = freshness(
        observation.headers,
        observation.status or 404,
        request_at=observation.request_at,
        response_at=now,
        default=timedelta(0),
    )
    return fresh.fresh_until(now) if fresh.explicit else None


def _attempt(state: DocumentState, observation: Observation) -> dict[str, Any]:
    """Give the members that every look renews."""
    return {
        "outcome": observation.outcome,
        "reason": observation.reason,
        "detail": observation.detail,
        "status": observation.status,
        "attempted_at": observation.response_at,
        "final_url": observation.final_url or state.url,
        "hops": observation.hops,
    }
