"""When a document is fetched next. Pure; randomness comes in as a number between 0 and 1.

Intervals grow while nothing changes and shrink when something does, between the floor and the ceiling that apply; a
stated freshness is a floor, never an estimate. Absent documents are asked less and less.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

GROWTH = 1.5
SHRINK = 0.5
JITTER = 0.1
_ABSENT_FIRST = timedelta(hours=1)
_GONE_FIRST = timedelta(hours=24)
FAILED_FIRST = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Range:
    """The shortest and longest interval that apply to one document."""

    floor: timedelta
    ceiling: timedelta

    def clamp(self, interval: timedelta) -> timedelta:
        return max(self.floor, min(interval, self.ceiling))


def interval_after_success(last: timedelta | None, *, changed: bool, first: timedelta, allowed: Range) -> timedelta:
    """Adapt the interval after a successful look."""
    if last is None:
        return allowed.clamp(first)
    return allowed.clamp(last * (SHRINK if changed else GROWTH))


def next_after_success(
    now: datetime, interval: timedelta, fresh_until: datetime | None, *, allowed: Range, chance: float
) -> datetime:
    """Choose the next look: not before the stated freshness ends, never past the ceiling (H17)."""
    due = max(now + interval, min(fresh_until or now, now + allowed.ceiling))
    wait = (due - now) * (1 + JITTER * (2 * chance - 1))
    # What would pass a bound is mirrored at it: documents that all wait the longest must not fall into step.
    if wait > allowed.ceiling:
        wait = 2 * allowed.ceiling - wait
    elif wait < allowed.floor:
        wait = 2 * allowed.floor - wait
    return now + allowed.clamp(wait)


def next_after_absence(
    now: datetime, absences: int, *, gone: bool, fresh_until: datetime | None, ceiling: timedelta, chance: float
) -> datetime:
    """Choose when to look again for something that is not there: twice as late each time (H20).

    `absences` counts this one.
    """
    first = _GONE_FIRST if gone else _ABSENT_FIRST
    wait = min(first * (1 << min(absences - 1, 20)), ceiling)
    due = max(now + wait, min(fresh_until or now, now + ceiling))
    return now + (due - now) * (1 + JITTER * chance)


def next_after_failure(
    now: datetime, failures: int, *, ceiling: timedelta, chance: float, first: timedelta = FAILED_FIRST
) -> datetime:
    """Choose when to try again: exponential with jitter, from `first` on (H24). `failures` counts this one."""
    wait = min(first * (1 << min(failures - 1, 20)), ceiling)
    return now + wait * (0.5 + chance)
