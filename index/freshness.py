"""The freshness contract: what we may claim about a copy of a document, until when or since when, and why. Pure.

Everything that leaves us says whether what it rests on is still confirmed. A claim is never better than the last look:
a copy that could not be confirmed is stale, whatever it once was promised to last.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from index.documents import SUCCESSES, Outcome


class FreshnessState(StrEnum):
    """What became of the last look at a document, as far as it matters to who reads the copy."""

    FRESH = "fresh"
    STALE = "stale"
    FAILED = "failed"
    NEVER_FETCHED = "never_fetched"
    ABSENT = "absent"
    GONE = "gone"
    WITHHELD = "withheld"
    DISALLOWED = "disallowed"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Freshness:
    """The state of a copy: `until` when it is vouched for, `since` when it is as it is, and the word for the cause."""

    state: FreshnessState
    until: datetime | None = None
    since: datetime | None = None
    why: str = ""


# These say what they are with a copy and without one; every other miss leaves a copy stale.
_STATE_OF_OUTCOME = {
    Outcome.ABSENT: FreshnessState.ABSENT,
    Outcome.GONE: FreshnessState.GONE,
    Outcome.WITHHELD: FreshnessState.WITHHELD,
    Outcome.DISALLOWED: FreshnessState.DISALLOWED,
    Outcome.REFUSED: FreshnessState.REFUSED,
}
_OVERDUE = "overdue"
_GRACE = 0.1
_LEAST_GRACE = timedelta(minutes=1)
_UNCONFIRMED = "unconfirmed"
# Disallowed until robots.txt can be read again (RFC 9309 2.3.1.4): nobody said no.
_TRANSIENT = frozenset({"robots_unreachable"})


def judge(
    outcome: Outcome | str | None,
    reason: str,
    *,
    has_copy: bool,
    attempted_at: datetime | None,
    confirmed_at: datetime | None,
    fresh_until: datetime | None,
    next_fetch_at: datetime | None,
    failing_since: datetime | None,
    absent_since: datetime | None,
    now: datetime,
) -> Freshness:
    """Judge the copy of a document by what is remembered of its fetches.

    `next_fetch_at` counts as a promise only after a success; after a miss it is the time of the next try.
    """
    if outcome is None:
        return _untried(has_copy=has_copy, confirmed_at=confirmed_at, fresh_until=fresh_until, now=now)
    if outcome in SUCCESSES:
        return _confirmed(confirmed_at or attempted_at, (fresh_until, next_fetch_at), now)
    state = None if reason in _TRANSIENT else _state_of(outcome)
    since = failing_since or absent_since or attempted_at
    if state in (FreshnessState.ABSENT, FreshnessState.GONE):
        since = absent_since or since
    if state is None:
        state = FreshnessState.STALE if has_copy else FreshnessState.FAILED
    return Freshness(state, since=since, why=reason or str(outcome))


def _state_of(outcome: Outcome | str) -> FreshnessState | None:
    return next((state for known, state in _STATE_OF_OUTCOME.items() if known == outcome), None)


def _untried(
    *, has_copy: bool, confirmed_at: datetime | None, fresh_until: datetime | None, now: datetime
) -> Freshness:
    """Judge what was never looked at by ourselves; a copy may have come from elsewhere."""
    if not has_copy:
        return Freshness(FreshnessState.NEVER_FETCHED)
    if confirmed_at is None or fresh_until is None:
        return Freshness(FreshnessState.STALE, since=confirmed_at, why=_UNCONFIRMED)
    return _confirmed(confirmed_at, (fresh_until,), now)


def _confirmed(since: datetime | None, promises: tuple[datetime | None, ...], now: datetime) -> Freshness:
    until = max((promise for promise in promises if promise is not None), default=None)
    if until is None or now < until:
        return Freshness(FreshnessState.FRESH, until=until, since=since)
    # A visit begins when it is due; a copy is not overdue while that visit is on its way.
    grace = until + max(_LEAST_GRACE, (until - (since or until)) * _GRACE)
    if now < grace:
        return Freshness(FreshnessState.FRESH, until=grace, since=since)
    return Freshness(FreshnessState.STALE, since=until, why=_OVERDUE)


def to_json(freshness: Freshness) -> dict[str, str]:
    """Write a freshness as JSON members, leaving out what is not known."""
    members = {
        "state": freshness.state.value,
        "until": _time(freshness.until),
        "since": _time(freshness.since),
        "why": freshness.why,
    }
    return {name: value for name, value in members.items() if value}


def header(freshness: Freshness) -> str:
    """Write a freshness as a field value: a token with parameters (RFC 9651 3.3)."""
    members = to_json(freshness)
    parameters = [f'; {name}="{_quotable(members[name])}"' for name in ("until", "since", "why") if name in members]
    return members["state"] + "".join(parameters)


def _quotable(text: str) -> str:
    """Escape a text for a quoted string, which holds printable ASCII alone (RFC 9651 3.3.3)."""
    printable = "".join(character if " " <= character <= "~" else "?" for character in text)
    return printable.replace("\\", "\\\\").replace('"', '\\"')


def _time(instant: datetime | None) -> str:
    """Write a time as RFC 3339 in UTC."""
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z") if instant is not None else ""
