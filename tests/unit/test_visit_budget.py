"""The visit budget on a few hundred simulated origins: the short form of `python -m tests.bench freshness`."""

import random

import pytest

from tests.bench.freshness import Measured, World, look_at_intervals, look_by_price, make_world, oracle_intervals

ORIGINS = 300


@pytest.fixture(scope="module")
def world() -> World:
    return make_world(ORIGINS, 120, random.Random(4))


@pytest.fixture(scope="module")
def uniform(world: World) -> Measured:
    return look_at_intervals(world, [1.0] * ORIGINS, random.Random(1))


@pytest.fixture(scope="module")
def oracle(world: World) -> Measured:
    return look_at_intervals(world, oracle_intervals(world, 1.0), random.Random(2))


@pytest.fixture(scope="module")
def ours(world: World) -> Measured:
    return look_by_price(world, 1.0, random.Random(3))


def test_the_budget_is_spent_and_not_exceeded(ours: Measured) -> None:
    assert ours.requests_a_day == pytest.approx(1, rel=0.02)


def test_changes_are_seen_in_less_than_half_the_time_that_equal_intervals_take(
    ours: Measured, uniform: Measured, oracle: Measured
) -> None:
    assert ours.lag_h < uniform.lag_h / 2
    assert ours.lag_h < 1.15 * oracle.lag_h


def test_copies_are_nearly_as_fresh_as_if_every_rate_were_known(
    ours: Measured, uniform: Measured, oracle: Measured
) -> None:
    assert ours.freshness > uniform.freshness + 0.01
    assert ours.freshness > 0.99 * oracle.freshness


def test_no_origin_waits_past_its_ceiling(ours: Measured) -> None:
    assert ours.longest <= 14 + 1e-9


def test_a_budget_that_is_too_small_gives_way_to_the_ceiling(world: World) -> None:
    starved = look_by_price(world, 0.01, random.Random(5))
    assert starved.longest <= 14 + 1e-9
    assert starved.requests_a_day > 1 / 14
