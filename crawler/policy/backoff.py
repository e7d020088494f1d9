"""When a document that brought nothing is asked for again. Pure; randomness comes in as a number between 0 and 1.

One table over all that can stand in the way. A failure may be over in minutes and is tried again soon; an answer,
though not the one we want, is the publisher's word, and asking again soon would be rude and useless.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType

from index.documents import Observation, Outcome

_MOST_STEPS = 20
_ANSWER_JITTER = 0.1
_MINUTES, _HOUR, _DAY = timedelta(minutes=5), timedelta(hours=1), timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Backoff:
    """The first wait after a miss, how it grows with each further one, and whether the miss is a failure or an answer.

    Failures wait no longer than the ceiling of failures, answers no longer than that of what is absent.
    """

    first: timedelta
    is_failure: bool
    growth: int = 2


_FAILURE = Backoff(_MINUTES, is_failure=True)
BACKOFFS: Mapping[Outcome, Backoff] = MappingProxyType(
    {
        Outcome.UNREACHABLE: _FAILURE,
        Outcome.TOO_LARGE: _FAILURE,
        Outcome.MALFORMED: _FAILURE,
        Outcome.ABSENT: Backoff(_HOUR, is_failure=False),
        Outcome.WRONG_KIND: Backoff(_HOUR, is_failure=False),
        Outcome.CATCH_ALL: Backoff(_HOUR, is_failure=False),
        Outcome.GONE: Backoff(_DAY, is_failure=False),
        Outcome.WITHHELD: Backoff(_DAY, is_failure=False),
        Outcome.DISALLOWED: Backoff(_DAY, is_failure=False),
        Outcome.REFUSED: Backoff(_DAY, is_failure=False),
    }
)
# What has a reason of its own to be treated otherwise: a robots.txt that cannot be had is no word of the publisher.
_BY_REASON: Mapping[str, Backoff] = MappingProxyType({"robots_unreachable": _FAILURE})
# After so many requests in a row without any answer an origin is left alone, for the others would get none either.
SILENT_AFTER = 3
# A visit that a fault of ours ended.
CRASHED = _FAILURE


def backoff_after(outcome: Outcome, reason: str) -> Backoff:
    """Give what a miss calls for (H20, H24)."""
    return _BY_REASON.get(reason) or BACKOFFS.get(outcome, _FAILURE)


def next_try(
    backoff: Backoff,
    now: datetime,
    times: int,
    *,
    ceiling: timedelta,
    chance: float,
    fresh_until: datetime | None = None,
    closely: timedelta | None = None,
) -> datetime:
    """Choose when to ask again; `times` is how often this happened in a row, this one included.

    An answer may state how long it holds. A document that the operator wants watched `closely` is tried again as soon
    after a failure.
    """
    first = backoff.first if closely is None or not backoff.is_failure else min(backoff.first, closely)
    steps: int = backoff.growth ** min(times - 1, _MOST_STEPS)
    wait = min(first * steps, ceiling)
    if backoff.is_failure:
        return now + wait * (0.5 + chance)
    due = max(now + wait, min(fresh_until or now, now + ceiling))
    return now + (due - now) * (1 + _ANSWER_JITTER * chance)


def silence_after(silence: int, observation: Observation) -> int:
    """Count the requests in a row that got no answer; what was not asked for at all counts for nothing."""
    if observation.status is not None:
        return 0
    return silence + (observation.outcome is Outcome.UNREACHABLE)


def pause_after_silence(times: int, *, ceiling: timedelta, chance: float) -> timedelta:
    """Choose how long a silent origin is left alone; `times` is how often the document that failed most has done so."""
    steps: int = 2 ** min(max(times, 1) - 1, _MOST_STEPS)
    return min(_FAILURE.first * steps, ceiling) * (0.5 + chance)
