"""When a document is fetched next, and how long requests to one origin are apart."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.policy.cadence import (
    CARD,
    LISTING,
    OTHER,
    Range,
    interval_after_success,
    next_after_success,
    price_paid,
    price_range,
    price_within_budget,
    price_without_budget,
)
from crawler.policy.change_rate import Belief
from crawler.policy.politeness import Pause, pause_between_requests

NOW = datetime(2026, 5, 5, 12, 0, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
RANGE = Range(5 * MINUTE, DAY)
chances = st.floats(0, 1)
CALM = Belief(0.5, 60)
beliefs = st.builds(Belief, st.floats(0.5, 5000), st.floats(2, 400))


def interval(
    belief: Belief,
    price: float | None = None,
    last: timedelta | None = None,
    *,
    changed: bool = False,
    weight: float = LISTING,
    allowed: Range = RANGE,
) -> timedelta:
    return interval_after_success(
        last, belief, changed=changed, first=HOUR, allowed=allowed, price=price, weight=weight
    )


@pytest.mark.parametrize(
    ("last", "changed", "expected"),
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
def test_without_a_budget_an_interval_grows_while_nothing_changes_and_shrinks_when_something_does(
    last: timedelta | None, changed: bool, expected: timedelta
) -> None:
    assert interval(CALM, None, last, changed=changed) == expected


def test_without_a_budget_what_is_known_to_change_often_never_waits_for_long() -> None:
    waits = [interval(Belief(rate * 30, 30), None, DAY) for rate in (0.01, 0.5, 1, 4, 24)]
    assert waits[0] == DAY
    assert waits == sorted(waits, reverse=True)
    assert waits[2] < 10 * HOUR
    assert waits[4] < 3 * HOUR


@pytest.mark.parametrize("ceiling", [HOUR, 6 * HOUR, DAY, 7 * DAY, 30 * DAY])
def test_without_a_budget_what_never_changes_comes_to_any_ceiling(ceiling: timedelta) -> None:
    allowed, belief, last = Range(5 * MINUTE, ceiling), Belief(), None
    for _ in range(40):
        last = interval(belief, None, last, allowed=allowed)
        belief = belief.after_unchanged(last / DAY)
    assert last == ceiling


def test_with_a_budget_the_price_alone_decides_and_importance_with_it() -> None:
    price = price_without_budget(RANGE) / 10
    belief = Belief(10, 20)
    looks = [interval(belief, price, last, changed=changed) for last in (None, HOUR, DAY) for changed in (True, False)]
    assert len(set(looks)) == 1
    by_importance = [interval(belief, price, weight=weight) for weight in (LISTING, CARD, OTHER)]
    assert by_importance == sorted(set(by_importance))


@given(beliefs, st.floats(0, 1e12), st.one_of(st.none(), st.timedeltas(timedelta(0), 400 * DAY)), st.booleans())
def test_no_price_and_no_belief_lead_past_the_bounds(
    belief: Belief, price: float, last: timedelta | None, changed: bool
) -> None:
    assert RANGE.floor <= interval(belief, price, last, changed=changed) <= RANGE.ceiling
    assert RANGE.floor <= interval(belief, None, last, changed=changed) <= RANGE.ceiling


@given(beliefs, st.floats(1e-6, 10))
def test_the_price_of_an_interval_can_be_told_from_it(belief: Belief, price: float) -> None:
    wide = Range(timedelta(0), 10_000 * DAY)
    waited = interval(belief, price, allowed=wide)
    if HOUR < waited < wide.ceiling:
        assert price_paid(waited, belief, LISTING) == pytest.approx(price, rel=1e-5)


def test_the_price_moves_with_what_falls_due_and_ends_at_the_bounds() -> None:
    price = price_without_budget(RANGE)
    lowest, highest = price_range(RANGE)
    assert lowest < price < highest
    dear = cheap = price
    for _ in range(10_000):
        dear = price_within_budget(dear, 50, 10, 100, allowed=RANGE)
        cheap = price_within_budget(cheap, 0, 10, 100, allowed=RANGE)
    assert (dear, cheap) == (highest, lowest)
    assert interval(Belief(400, 20), dear) == RANGE.ceiling
    assert interval(CALM, cheap, weight=OTHER) == RANGE.floor
    assert price_within_budget(price, 10, 10, 100, allowed=RANGE) == price


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
    assert pause_between_requests(9, floor=SECOND, ceiling=HOUR, slowdown=4) == Pause(36 * SECOND)
    assert pause_between_requests(1200, floor=SECOND, ceiling=HOUR, slowdown=4) == Pause(HOUR)
    assert pause_between_requests(7200, floor=SECOND, ceiling=HOUR, slowdown=4) == Pause(HOUR, capped=True)
    assert pause_between_requests(1, floor=HOUR, ceiling=SECOND, slowdown=4) == Pause(4 * HOUR)
