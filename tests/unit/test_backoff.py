"""What a miss calls for: one row for everything that can stand in the way of a document."""

from datetime import UTC, datetime, timedelta

import pytest

from crawler.policy.backoff import BACKOFFS, CRASHED, Backoff, backoff_after, next_try
from index.documents import ABSENCES, SUCCESSES, Outcome

NOW = datetime(2026, 5, 5, 12, 0, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
OUTAGE, ABSENT, GONE = (BACKOFFS[outcome] for outcome in (Outcome.UNREACHABLE, Outcome.ABSENT, Outcome.GONE))


def test_every_miss_has_a_row() -> None:
    assert set(BACKOFFS) == set(Outcome) - SUCCESSES
    assert all(not BACKOFFS[outcome].is_failure for outcome in ABSENCES)


@pytest.mark.parametrize(
    ("outcome", "reason", "first", "is_failure"),
    [
        (Outcome.UNREACHABLE, "http_503", 5 * MINUTE, True),
        (Outcome.UNREACHABLE, "tls", 5 * MINUTE, True),
        (Outcome.TOO_LARGE, "flood", 5 * MINUTE, True),
        (Outcome.MALFORMED, "json.syntax", 5 * MINUTE, True),
        (Outcome.ABSENT, "http_404", HOUR, False),
        (Outcome.CATCH_ALL, "not_json", HOUR, False),
        (Outcome.GONE, "http_410", DAY, False),
        (Outcome.WITHHELD, "http_403", DAY, False),
        (Outcome.REFUSED, "address", DAY, False),
        (Outcome.DISALLOWED, "robots", DAY, False),
        # FR-44: an unreachable robots.txt is no answer of the publisher.
        (Outcome.DISALLOWED, "robots_unreachable", 5 * MINUTE, True),
    ],
)
def test_failures_are_tried_again_soon_and_answers_are_not(
    outcome: Outcome, reason: str, first: timedelta, is_failure: bool
) -> None:
    assert backoff_after(outcome, reason) == Backoff(first, is_failure)


@pytest.mark.parametrize(
    ("absences", "backoff", "wait"),
    [
        (1, ABSENT, HOUR),
        (2, ABSENT, 2 * HOUR),
        (4, ABSENT, 8 * HOUR),
        (8, ABSENT, 128 * HOUR),
        (9, ABSENT, 7 * DAY),
        (10**9, ABSENT, 7 * DAY),
        (1, GONE, DAY),
        (2, GONE, 2 * DAY),
        (4, GONE, 7 * DAY),
    ],
)
def test_H20_what_is_absent_is_looked_for_less_and_less(absences: int, backoff: Backoff, wait: timedelta) -> None:
    assert next_try(backoff, NOW, absences, ceiling=7 * DAY, chance=0) == NOW + wait
    assert next_try(backoff, NOW, absences, ceiling=7 * DAY, chance=1) == NOW + 1.1 * wait


@pytest.mark.parametrize(("fresh", "wait"), [(MINUTE, HOUR), (3 * HOUR, 3 * HOUR), (365 * DAY, 7 * DAY), (-HOUR, HOUR)])
def test_H20_a_negative_answer_may_state_a_freshness(fresh: timedelta, wait: timedelta) -> None:
    assert next_try(ABSENT, NOW, 1, fresh_until=NOW + fresh, ceiling=7 * DAY, chance=0) == NOW + wait


def test_FR60_an_absent_path_is_asked_for_at_most_a_dozen_times_in_a_month() -> None:
    now, looks = NOW, 0
    while now < NOW + 30 * DAY:
        looks += 1
        now = next_try(ABSENT, now, looks, ceiling=7 * DAY, chance=0)
    assert looks == 11


@pytest.mark.parametrize(
    ("failures", "shortest", "longest"),
    [
        (1, 2.5 * MINUTE, 7.5 * MINUTE),
        (2, 5 * MINUTE, 15 * MINUTE),
        (5, 40 * MINUTE, 2 * HOUR),
        (50, 12 * HOUR, 36 * HOUR),
        (10**9, 12 * HOUR, 36 * HOUR),
    ],
)
def test_H24_failures_back_off_exponentially_with_jitter(
    failures: int, shortest: timedelta, longest: timedelta
) -> None:
    waits = [next_try(OUTAGE, NOW, failures, ceiling=DAY, chance=chance) - NOW for chance in (0, 1)]
    assert waits == [shortest, longest]


def test_only_a_failure_is_tried_again_as_soon_as_the_operator_wants_the_document_watched() -> None:
    for backoff, wait in ((OUTAGE, MINUTE), (CRASHED, MINUTE), (ABSENT, HOUR)):
        assert next_try(backoff, NOW, 1, ceiling=DAY, chance=0.5, closely=MINUTE) - NOW <= 1.1 * wait
        assert next_try(backoff, NOW, 1, ceiling=DAY, chance=0.5, closely=MINUTE) - NOW >= wait
