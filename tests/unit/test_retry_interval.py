"""How soon a failed document is tried again follows how closely the operator wants it watched."""

from datetime import UTC, datetime, timedelta

import pytest

from crawler.policy.cadence import Range
from crawler.policy.watch import WatchRules, after_failure
from index.documents import DocumentKind, DocumentState, Observation, Outcome

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
URL = "https://acme.example/.well-known/ard.json"


def waits(floor: timedelta, failures: int, *, retry_after: timedelta | None = None) -> timedelta:
    rules = WatchRules(
        allowed=Range(floor, timedelta(days=1)),
        absent_ceiling=timedelta(days=7),
        failure_ceiling=timedelta(hours=24),
        default_freshness=timedelta(hours=1),
        unconditional_every=20,
        unconditional_after=timedelta(days=7),
        removal_sightings=3,
        removal_period=timedelta(hours=24),
    )
    state = DocumentState(URL, "https://acme.example", DocumentKind.MANIFEST, NOW, failures=failures - 1)
    seen = Observation(URL, Outcome.UNREACHABLE, NOW, NOW, reason="http_503", status=503, retry_after=retry_after)
    next_at = after_failure(state, seen, rules, chance=0.5).state.next_fetch_at
    assert next_at is not None
    return next_at - NOW


@pytest.mark.parametrize(
    ("floor", "failures", "wait"),
    [
        (timedelta(minutes=5), 1, timedelta(minutes=5)),
        (timedelta(minutes=5), 3, timedelta(minutes=20)),
        (timedelta(seconds=30), 1, timedelta(seconds=30)),
        (timedelta(seconds=30), 2, timedelta(minutes=1)),
        (timedelta(days=1), 1, timedelta(minutes=5)),
        (timedelta(0), 1, timedelta(seconds=1)),
        (timedelta(seconds=30), 40, timedelta(hours=24)),
    ],
)
def test_the_first_retry_comes_after_the_shortest_interval_and_the_next_ones_twice_as_late(
    floor: timedelta, failures: int, wait: timedelta
) -> None:
    assert waits(floor, failures) == wait


def test_a_publisher_that_asks_for_patience_gets_it() -> None:
    assert waits(timedelta(seconds=30), 1, retry_after=timedelta(hours=2)) == timedelta(hours=2)
