"""Mercy for origins that say that they are asked too often."""

from datetime import timedelta

import pytest

from crawler.policy.politeness import Mercy, after_too_many_requests, slowdown_at

DAY_S = 86_400.0


def test_429_halves_the_rate_for_a_day() -> None:
    mercy = after_too_many_requests(None, 1000.0)
    assert slowdown_at(mercy, 1000.0) == slowdown_at(mercy, 1000.0 + DAY_S - 1) == 2
    assert slowdown_at(mercy, 1000.0 + DAY_S) == 1
    assert slowdown_at(None, 1000.0) == 1


def test_429_again_halves_it_again_down_to_a_sixteenth() -> None:
    mercy: Mercy | None = None
    slowdowns = []
    for hour in range(6):
        mercy = after_too_many_requests(mercy, hour * 3600.0)
        slowdowns.append(slowdown_at(mercy, hour * 3600.0))
    assert slowdowns == [2, 4, 8, 16, 16, 16]
    assert slowdown_at(mercy, 5 * 3600.0 + DAY_S) == 1


def test_429_after_the_day_is_over_begins_anew() -> None:
    mercy = after_too_many_requests(after_too_many_requests(None, 0.0), 1.0)
    assert slowdown_at(after_too_many_requests(mercy, 3 * DAY_S), 3 * DAY_S) == 2


@pytest.mark.parametrize("hours", [0, 1, 24])
def test_the_day_begins_when_we_may_ask_again(hours: int) -> None:
    mercy = after_too_many_requests(None, 0.0, timedelta(hours=hours))
    assert mercy.until == DAY_S + hours * 3600
