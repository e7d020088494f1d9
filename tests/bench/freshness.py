"""The visit budget against looking at everything equally often, and against an oracle that knows every rate.

Simulated origins change at heavy-tailed rates: half of them less than once in twenty days, three in a hundred more than
twice a day. All policies see the same changes with the same budget, floor and ceiling, and are measured in the second
half of the time. The oracle looks at each origin at the age that is worth the price when its true rate is known.
"""

import random
import time
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import exp, expm1, sqrt

from crawler.policy.cadence import (
    LISTING,
    Range,
    interval_after_success,
    next_after_success,
    price_within_budget,
    price_without_budget,
)
from crawler.policy.change_rate import Belief

ORIGINS = 10_000
DAYS = 180
BUDGET = 1.0
_MINUTES = 1440
_DAY = timedelta(days=1)
_ALLOWED = Range(timedelta(minutes=5), timedelta(days=14))
_START = datetime(2026, 1, 1, tzinfo=UTC)
_MEDIAN, _SPREAD = 1 / 20, 1.958


def bench_freshness() -> None:
    """Print how fresh copies are, how late changes are seen and what it takes, with ratios to the oracle."""
    chance = random.Random(11)
    world = make_world(ORIGINS, DAYS, chance)
    print(f"freshness: {ORIGINS} origins, {DAYS} days, {BUDGET:g} requests an origin and day")
    print(f"{'':8} {'fresh %':>8} {'ratio':>8} {'lag h':>7} {'ratio':>8} {'requests':>9} {'longest d':>10} {'s':>6}")
    oracle = look_at_intervals(world, oracle_intervals(world, BUDGET), chance)
    rows = {
        "uniform": look_at_intervals(world, [1 / BUDGET] * ORIGINS, chance),
        "ours": look_by_price(world, BUDGET, chance),
        "oracle": oracle,
    }
    for name, row in rows.items():
        print(
            f"{name:8} {row.freshness * 100:8.2f} {row.freshness / oracle.freshness:8.4f} {row.lag_h:7.2f} "
            f"{row.lag_h / oracle.lag_h:8.3f} {row.requests_a_day:9.4f} {row.longest:10.2f} {row.seconds:6.1f}"
        )


# --- the world --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class World:
    """The changes of every origin, as sorted times in days."""

    days: int
    rates: Sequence[float]
    changes: Sequence[Sequence[float]]


def make_world(origins: int, days: int, chance: random.Random) -> World:
    """Draw rates and, from them, changes."""
    rates = [_MEDIAN * exp(_SPREAD * chance.gauss(0, 1)) for _ in range(origins)]
    return World(days, rates, [_changes(rate, days, chance) for rate in rates])


def _changes(rate: float, days: int, chance: random.Random) -> list[float]:
    times = []
    at = chance.expovariate(rate)
    while at < days:
        times.append(at)
        at += chance.expovariate(rate)
    return times


@dataclass(slots=True)
class Measured:
    """What a policy came to: time with a wrong copy, delays of detection, requests and the longest wait, in days."""

    world: World
    stale: float = 0.0
    delay: float = 0.0
    seen: int = 0
    requests: int = 0
    longest: float = 0.0
    seconds: float = 0.0

    def look(self, origin: int, before: float, now: float) -> bool:
        """Look at an origin; tells whether it changed since the look before."""
        changes = self.world.changes[origin]
        first = bisect_right(changes, before)
        end = bisect_right(changes, now, first)
        middle = self.world.days / 2
        if now >= middle:
            self.requests += 1
            self.longest = max(self.longest, now - before)
            if end > first:
                self.stale += now - max(changes[first], middle)
                self.delay += now * (end - first) - sum(changes[first:end])
                self.seen += end - first
        return end > first

    def end(self, last: Sequence[float]) -> None:
        """Count what is stale when the time runs out."""
        for origin, before in enumerate(last):
            changes = self.world.changes[origin]
            first = bisect_right(changes, before)
            if first < len(changes):
                self.stale += self.world.days - max(changes[first], self.world.days / 2)

    @property
    def freshness(self) -> float:
        return 1 - self.stale / self._origin_days

    @property
    def lag_h(self) -> float:
        return self.delay / self.seen * 24

    @property
    def requests_a_day(self) -> float:
        return self.requests / self._origin_days

    @property
    def _origin_days(self) -> float:
        return len(self.world.rates) * self.world.days / 2


# --- the policies -----------------------------------------------------------------------------------------------------


def look_at_intervals(world: World, intervals: Sequence[float], chance: random.Random) -> Measured:
    """Look at every origin at an interval of its own."""
    began = time.perf_counter()
    measured = Measured(world)
    last = []
    for origin, interval in enumerate(intervals):
        before, now = 0.0, interval * chance.random()
        while now < world.days:
            measured.look(origin, before, now)
            before, now = now, now + interval
        last.append(before)
    measured.end(last)
    measured.seconds = time.perf_counter() - began
    return measured


def oracle_intervals(world: World, budget: float) -> list[float]:
    """Give the intervals that spend the budget when every rate is known."""
    low, high = -30.0, 10.0
    intervals: list[float] = []
    for _ in range(60):
        middle = (low + high) / 2
        intervals = [_interval_of_rate(rate, exp(middle)) for rate in world.rates]
        if sum(1 / each for each in intervals) > budget * len(intervals):
            low = middle
        else:
            high = middle
    return intervals


def _interval_of_rate(rate: float, price: float) -> float:
    """Invert (x - 1 + exp(-x)) / rate, the worth of a look at the age x / rate."""
    target = price * rate
    x = target + sqrt(2 * target)
    for _ in range(50):
        step = (x + expm1(-x) - target) / -expm1(-x)
        x -= step
        if abs(step) < 1e-9 * x:
            break
    return min(max(x / rate, _ALLOWED.floor / _DAY), _ALLOWED.ceiling / _DAY)


def look_by_price(world: World, budget: float, chance: random.Random) -> Measured:
    """Look at origins as the daemon does: by what is believed of each, at one price that is adjusted every minute."""
    began = time.perf_counter()
    origins = len(world.rates)
    measured = Measured(world)
    beliefs = [Belief()] * origins
    last = [0.0] * origins
    due = [chance.random() for _ in range(origins)]
    end = world.days * _MINUTES
    calendar: list[list[int]] = [[] for _ in range(end + 1)]
    for origin, at in enumerate(due):
        calendar[int(at * _MINUTES)].append(origin)
    price = price_without_budget(_ALLOWED)
    ahead = _ALLOWED.floor // timedelta(minutes=1)
    affordable = budget * origins / _MINUTES
    for minute in range(end):
        soon = sum(map(len, calendar[minute : minute + ahead])) / ahead
        price = price_within_budget(price, soon, affordable, origins, allowed=_ALLOWED)
        for origin in calendar[minute]:
            now = due[origin]
            gap = now - last[origin]
            changed = measured.look(origin, last[origin], now)
            belief = beliefs[origin].after_changed(gap) if changed else beliefs[origin].after_unchanged(gap)
            beliefs[origin], last[origin] = belief, now
            due[origin] = now + _wait(belief, changed, price, chance.random())
            calendar[min(int(due[origin] * _MINUTES), end)].append(origin)
        calendar[minute] = []
    measured.end(last)
    measured.seconds = time.perf_counter() - began
    return measured


def _wait(belief: Belief, changed: bool, price: float, chance: float) -> float:
    interval = interval_after_success(
        None, belief, changed=changed, first=_DAY, allowed=_ALLOWED, price=price, weight=LISTING
    )
    return (next_after_success(_START, interval, None, allowed=_ALLOWED, chance=chance) - _START) / _DAY
