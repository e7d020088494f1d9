"""When a document is fetched next, and how long requests to one origin are apart."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.policy.cadence import (
    Range,
    interval_after_success,
    next_after_absence,
    next_after_failure,
    next_after_success,
)
from crawler.policy.politeness import Pause, pause_between_requests

NOW = datetime(2026, 5, 5, 12, 0, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
RANGE = Range(5 * MINUTE, DAY)
chances = st.floats(0, 1)


@pytest.mark.parametrize(
    ("last", "changed", "interval"),
    [
        (None, False, HOUR),
        (None, True, HOUR),
        (HOUR, False, 1.5 * HOUR),
        (HOUR, True, HOUR / 2),
        (20 * HOUR, False, DAY),
        (DAY, False, DAY),
        (6 * MINUTE, True, 5 * MINUTE),
    ],
)
def test_an_interval_grows_while_nothing_changes_and_shrinks_when_something_does(
    last: timedelta | None, changed: bool, interval: timedelta
) -> None:
    assert interval_after_success(last, changed=changed, first=HOUR, allowed=RANGE) == interval


@pytest.mark.parametrize(
    ("interval", "fresh", "wait"),
    [
        (HOUR, None, HOUR),
        (HOUR, -HOUR, HOUR),
        (HOUR, 10 * MINUTE, HOUR),
        # A stated freshness is a floor ...
        (HOUR, 6 * HOUR, 6 * HOUR),
        # ... and never more than the ceiling: a year of max-age must not hide a change.
        (HOUR, 365 * DAY, DAY),
        # max-age=0 does not make us hammer.
        (5 * MINUTE, timedelta(0), 5 * MINUTE),
    ],
)
def test_H17_the_next_look_waits_for_the_stated_freshness_within_bounds(
    interval: timedelta, fresh: timedelta | None, wait: timedelta
) -> None:
    fresh_until = None if fresh is None else NOW + fresh
    assert next_after_success(NOW, interval, fresh_until, allowed=RANGE, chance=0.5) == NOW + wait


@given(st.timedeltas(5 * MINUTE, DAY), st.timedeltas(-DAY, 400 * DAY), chances)
def test_H17_the_next_look_is_jittered_and_stays_in_its_range(
    interval: timedelta, fresh: timedelta, chance: float
) -> None:
    wait = next_after_success(NOW, interval, NOW + fresh, allowed=RANGE, chance=chance) - NOW
    assert RANGE.floor <= wait <= RANGE.ceiling
    middle = next_after_success(NOW, interval, NOW + fresh, allowed=RANGE, chance=0.5) - NOW
    assert 0.89 * middle <= wait <= 1.11 * middle


@pytest.mark.parametrize(
    ("absences", "gone", "wait"),
    [
        (1, False, HOUR),
        (2, False, 2 * HOUR),
        (4, False, 8 * HOUR),
        (8, False, 128 * HOUR),
        (9, False, 7 * DAY),
        (10**9, False, 7 * DAY),
        (1, True, DAY),
        (2, True, 2 * DAY),
        (4, True, 7 * DAY),
    ],
)
def test_H20_what_is_absent_is_looked_for_less_and_less(absences: int, gone: bool, wait: timedelta) -> None:
    assert next_after_absence(NOW, absences, gone=gone, fresh_until=None, ceiling=7 * DAY, chance=0) == NOW + wait


@pytest.mark.parametrize(("fresh", "wait"), [(MINUTE, HOUR), (3 * HOUR, 3 * HOUR), (365 * DAY, 7 * DAY), (-HOUR, HOUR)])
def test_H20_a_negative_answer_may_state_a_freshness(fresh: timedelta, wait: timedelta) -> None:
    due = next_after_absence(NOW, 1, gone=False, fresh_until=NOW + fresh, ceiling=7 * DAY, chance=0)
    assert due == NOW + wait


def test_FR60_an_absent_path_is_asked_for_at_most_a_dozen_times_in_a_month() -> None:
    now, looks = NOW, 0
    while now < NOW + 30 * DAY:
        looks += 1
        now = next_after_absence(now, looks, gone=False, fresh_until=None, ceiling=7 * DAY, chance=0)
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
    waits = [next_after_failure(NOW, failures, ceiling=DAY, chance=chance) - NOW for chance in (0, 1)]
    assert waits == [shortest, longest]


SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("delay", "pause"),
    [
        (None, Pause(SECOND)),
        (0, Pause(SECOND)),
        (0.001, Pause(SECOND)),
        (1, Pause(SECOND)),
        # Fractions round up.
        (1.001, Pause(2 * SECOND)),
        (9.5, Pause(10 * SECOND)),
        (3600, Pause(HOUR)),
        # What is above the ceiling is honoured up to it, and said so.
        (7 * 3600, Pause(6 * HOUR, capped=True)),
        (1e300, Pause(6 * HOUR, capped=True)),
    ],
)
def test_FR50_a_crawl_delay_can_only_slow_us_down(delay: float | None, pause: Pause) -> None:
    assert pause_between_requests(delay, floor=SECOND, ceiling=6 * HOUR) == pause


@pytest.mark.parametrize(
    ("delay", "floor", "spacing"),
    [(None, 1.5, 1.5), (1.2, 1.5, 1.5), (1.6, 1.5, 2), (None, 0, 0), (0.2, 0, 1), (1e300, 0, 366 * 86_400)],
)
def test_FR50_the_floor_of_the_operator_is_kept_exactly(delay: float | None, floor: float, spacing: float) -> None:
    pause = pause_between_requests(delay, floor=timedelta(seconds=floor), ceiling=366 * DAY)
    assert pause.spacing == timedelta(seconds=spacing)


def test_H25_an_origin_that_asked_for_mercy_is_asked_more_slowly() -> None:
    assert pause_between_requests(None, floor=SECOND, ceiling=HOUR, slowdown=4) == Pause(4 * SECOND)
    assert pause_between_requests(3, floor=SECOND, ceiling=HOUR, slowdown=4) == Pause(4 * SECOND)
    assert pause_between_requests(9, floor=SECOND, ceiling=HOUR, slowdown=4) == Pause(9 * SECOND)
