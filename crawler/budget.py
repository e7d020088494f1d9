"""The visit budget: one price for looks, moved once a minute so that no more fall due than the operator allows.

Nothing of it is stored but the intervals that it led to. Processes that share a database count the same looks and come
to the same price; a process that starts takes up the price that the latest intervals were made from.

What is due all at once, as after an outage of ours, is worked off no faster than the budget allows either: requests
accrue evenly, and a visit may begin when some are left.
"""

from collections.abc import Iterable
from datetime import timedelta
from math import ceil
from statistics import median
from typing import Any

import structlog

from crawler.clock import Clock
from crawler.policy.cadence import Range, price_paid, price_range, price_within_budget, price_without_budget
from crawler.policy.change_rate import Belief
from crawler.policy.watch import importance
from index.documents import DocumentKind
from index.store.database import Database
from index.store.frontier import latest_intervals, looks_ahead
from index.store.status import backlog

_log = structlog.get_logger("ardvark.crawl")
PERIOD = timedelta(minutes=1)
_DAY = timedelta(days=1)
# What waits for its turn should have had it after so long; looks that fall due meanwhile become fewer.
_WORK_OFF = timedelta(hours=1)
# Requests that were not made are lost after so long, so that a quiet hour is not followed by a storm.
_SAVED = timedelta(minutes=10)
_FIRST_GUESS = 8.0
_WEIGHT_OF_ONE_VISIT = 0.1
# A bound says nothing about the price, nor does what was nearly one.
_NEAR = 1.02


class Allowance:
    """The requests that one process may make by now; times are seconds of a steady clock."""

    def __init__(self, requests_a_day: float, now: float) -> None:
        self._rate = requests_a_day / _DAY.total_seconds()
        self._processes = 1
        self._left = 0.0
        self._at = now
        self.per_visit = _FIRST_GUESS

    def share(self, processes: int, now: float) -> None:
        """Leave to others their part."""
        self._accrue(now)
        self._processes = max(processes, 1)

    def visits(self, under_way: int, now: float) -> int:
        """Give how many visits may begin, as far as it is known what one takes; the last of them is on credit."""
        self._accrue(now)
        free = self._left - under_way * self.per_visit
        return max(0, ceil(free / self.per_visit))

    def spend(self, requests: int, now: float) -> None:
        """Pay for a visit that has ended."""
        self._accrue(now)
        self._left -= requests
        self.per_visit = max(1.0, self.per_visit + _WEIGHT_OF_ONE_VISIT * (requests - self.per_visit))

    def _accrue(self, now: float) -> None:
        rate = self._rate / self._processes
        most = max(rate * _SAVED.total_seconds(), self.per_visit)
        self._left = min(self._left + rate * max(0.0, now - self._at), max(most, self._left))
        self._at = now


class Budget:
    """So many looks a day, the price that keeps to them, and what they allow of what is due at once."""

    def __init__(self, looks_a_day: int, allowed: Range, database: Database, clock: Clock) -> None:
        self._affordable = looks_a_day * (PERIOD / _DAY)
        self._allowed = allowed
        self._database = database
        self._clock = clock
        self._too_small = False
        self.price = price_without_budget(allowed)
        self.allowance = Allowance(looks_a_day, clock.monotonic())

    async def recall(self) -> float:
        """Take up the price of the latest intervals, wherever they were chosen."""
        paid = list(self._paid(await self._database.read(latest_intervals)))
        if paid:
            lowest, highest = price_range(self._allowed)
            self.price = max(lowest, min(median(paid), highest))
        return self.price

    def _paid(self, rows: Iterable[Any]) -> Iterable[float]:
        for row in rows:
            interval = timedelta(seconds=row.interval_s)
            if self._allowed.floor * _NEAR < interval < self._allowed.ceiling / _NEAR:
                weight = importance(DocumentKind(row.kind), row.entry_count)
                yield price_paid(interval, Belief(row.rate_a, row.rate_b), weight)

    async def adjust(self) -> float:
        """Move the price by what falls due; to be called once a period."""
        # No document is looked at twice within the shortest interval, so that none is counted too rarely.
        ahead = max(self._allowed.floor, PERIOD)
        now = self._clock.now()
        ahead_due, documents = await self._database.read(looks_ahead, now, now + ahead)
        waiting = (await self._database.read(backlog, now)).origins * self.allowance.per_visit
        due = ahead_due * (PERIOD / ahead) + waiting * (PERIOD / _WORK_OFF)
        self.price = price_within_budget(self.price, due, self._affordable, documents, allowed=self._allowed)
        self._say_if_too_small()
        return self.price

    def _say_if_too_small(self) -> None:
        too_small = self.price >= price_range(self._allowed)[1]
        if too_small and not self._too_small:
            _log.warning("budget.too_small", max_interval=str(self._allowed.ceiling))
        self._too_small = too_small
