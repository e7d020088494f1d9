"""When a document is fetched next. Pure; randomness comes in as a number between 0 and 1.

A document is looked at when a look is worth the price of looks, between the floor and the ceiling that apply; a stated
freshness is a floor, never an estimate. Where no budget makes a price, one is made of the ceiling, and intervals also
grow while nothing changes and shrink when something does.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from crawler.policy.change_rate import Belief
from crawler.policy.price import adjust, age_worth, worth

GROWTH = 1.5
SHRINK = 0.5
JITTER = 0.1
# What listings come from is worth the most, then what they point to.
LISTING, CARD, OTHER = 4.0, 2.0, 1.0
_SETTLED_AFTER = 2
_CALM = 365.0
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Range:
    """The shortest and longest interval that apply to one document."""

    floor: timedelta
    ceiling: timedelta

    def clamp(self, interval: timedelta) -> timedelta:
        return max(self.floor, min(interval, self.ceiling))


def price_without_budget(allowed: Range) -> float:
    """Make a price at which what listings come from settles at the ceiling when nothing changes for a while."""
    ceiling = allowed.ceiling / _DAY
    return worth(Belief().after_unchanged(_SETTLED_AFTER * ceiling), ceiling, LISTING)


def price_range(allowed: Range) -> tuple[float, float]:
    """Give the prices at which every document is at its floor, and every one at its ceiling."""
    calm = Belief().after_unchanged(_CALM)
    return worth(calm, allowed.floor / _DAY, OTHER), LISTING * allowed.ceiling / _DAY


def price_within_budget(price: float, due: float, affordable: float, documents: int, *, allowed: Range) -> float:
    """Adjust the price to how many looks fall due in a while and how many are affordable in it."""
    lowest, highest = price_range(allowed)
    return max(lowest, min(adjust(price, due, affordable, documents), highest))


def price_paid(interval: timedelta, belief: Belief, weight: float) -> float:
    """Give the price from which an interval within its bounds was made."""
    return worth(belief, interval / _DAY, weight)


def interval_after_success(
    last: timedelta | None,
    belief: Belief,
    *,
    changed: bool,
    first: timedelta,
    allowed: Range,
    price: float | None,
    weight: float,
) -> timedelta:
    """Choose the interval after a successful look.

    Without a budget nobody asks us to save, so a document is also watched closely at first and after a change.
    """
    worthwhile = age_worth(price_without_budget(allowed) if price is None else price, belief, weight)
    wanted = timedelta(days=min(worthwhile, allowed.ceiling / _DAY))
    if price is None:
        wanted = min(wanted, first if last is None else last * (SHRINK if changed else GROWTH))
    return allowed.clamp(wanted)


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
