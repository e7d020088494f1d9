"""What a look is worth, and the price that a budget makes."""

from collections.abc import Callable
from math import exp, expm1, log1p

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.policy.change_rate import Belief
from crawler.policy.price import adjust, age_worth, worth

beliefs = st.builds(Belief, st.floats(0.5, 5000), st.floats(2, 400))
ages = st.floats(1e-5, 1000)


def integral(curve: Callable[[float], float], end: float, pieces: int = 400) -> float:
    """Simpson's rule."""
    width = end / pieces
    inner = sum(curve(width * number) * (4 if number % 2 else 2) for number in range(1, pieces))
    return width / 3 * (curve(0.0) + inner + curve(end))


def harmonic_cost(belief: Belief, age: float) -> float:
    """The expected cost at an age, from its definition: Ein of the expected changes, over the rates believed in."""
    a, b = belief.changes, belief.days

    def slope(at: float) -> float:
        return a / b if at == 0 else -expm1(-a * log1p(at / b)) / at

    return integral(slope, age)


@pytest.mark.parametrize("age", [0.01, 0.3, 1, 5, 20])
@pytest.mark.parametrize("belief", [Belief(), Belief(1, 3), Belief(1 + 1e-9, 3), Belief(4, 30), Belief(40, 20)])
def test_the_worth_of_a_look_is_what_it_saves(belief: Belief, age: float) -> None:
    saved = age * harmonic_cost(belief, age) - integral(lambda at: harmonic_cost(belief, at), age)
    assert worth(belief, age) == pytest.approx(saved, rel=1e-6)


def test_a_belief_that_is_certain_gives_the_worth_of_a_known_rate() -> None:
    """Ein and its integral for one rate, against the belief with a million changes behind it."""
    rate, age = 0.7, 3.0

    def ein(at: float) -> float:
        return integral(lambda x: 1.0 if x == 0 else -expm1(-x) / x, rate * at)

    saved = age * ein(age) - integral(ein, age)
    assert saved == pytest.approx(age - (1 - exp(-rate * age)) / rate, rel=1e-6)
    assert worth(Belief(rate * 1e7, 1e7), age) == pytest.approx(saved, rel=1e-5)


@given(beliefs, ages, st.sampled_from([1.0, 2.0, 4.0]))
def test_the_age_that_is_worth_a_price_is_the_inverse(belief: Belief, age: float, weight: float) -> None:
    assert age_worth(worth(belief, age, weight), belief, weight) == pytest.approx(age, rel=1e-6)


@given(beliefs, ages, st.floats(1.001, 10))
def test_worth_grows_with_age_with_importance_and_with_what_is_expected(
    belief: Belief, age: float, more: float
) -> None:
    assert worth(belief, age * more) > worth(belief, age)
    assert worth(belief, age, more) == pytest.approx(more * worth(belief, age))
    assert worth(Belief(belief.changes * more, belief.days), age) > worth(belief, age)


def test_free_looks_are_worth_it_at_once() -> None:
    assert age_worth(0, Belief()) == 0


@pytest.mark.parametrize(("due", "direction"), [(0, -1), (5, -1), (10, 0), (15, 1), (10_000, 1)])
def test_the_price_rises_when_too_much_falls_due_and_falls_when_too_little_does(due: float, direction: int) -> None:
    moved = adjust(0.05, due, 10, 1000)
    assert (moved > 0.05) - (moved < 0.05) == direction
    assert 0.97 < moved / 0.05 < 1.03
