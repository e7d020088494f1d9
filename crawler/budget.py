"""The visit budget: one price for looks, moved once a minute so that no more fall due than the operator allows.

Nothing of it is stored but the intervals that it led to. Processes that share a database count the same looks and come
to the same price; a process that starts takes up the price that the latest intervals were made from.
"""

from collections.abc import Iterable
from datetime import timedelta
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

_log = structlog.get_logger("ardvark.crawl")
PERIOD = timedelta(minutes=1)
_DAY = timedelta(days=1)
# A bound says nothing about the price, nor does what was nearly one.
_NEAR = 1.02


class Budget:
    """So many looks a day, and the price that keeps to them."""

    def __init__(self, looks_a_day: int, allowed: Range, database: Database, clock: Clock) -> None:
        self._affordable = looks_a_day * (PERIOD / _DAY)
        self._allowed = allowed
        self._database = database
        self._clock = clock
        self._too_small = False
        self.price = price_without_budget(allowed)

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
        due, documents = await self._database.read(looks_ahead, now, now + ahead)
        self.price = price_within_budget(
            self.price, due * (PERIOD / ahead), self._affordable, documents, allowed=self._allowed
        )
        self._say_if_too_small()
        return self.price

    def _say_if_too_small(self) -> None:
        too_small = self.price >= price_range(self._allowed)[1]
        if too_small and not self._too_small:
            _log.warning("budget.too_small", max_interval=str(self._allowed.ceiling))
        self._too_small = too_small
