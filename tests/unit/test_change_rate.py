"""What is believed about how often a document changes."""

import random
from math import isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.policy.change_rate import Belief

gaps = st.floats(1e-6, 4000)
looks = st.tuples(gaps, st.one_of(st.none(), st.just("unknown"), st.floats(0, 5000)))


def after(belief: Belief, gap: float, change: str | float | None) -> Belief:
    """One look: no change, one at an unknown time, or one of a known age."""
    if change is None:
        return belief.after_unchanged(gap)
    return belief.after_changed(gap, None if isinstance(change, str) else change)


def learned(rate: float, gap: float, days: float, chance: random.Random, *, known: bool = False) -> Belief:
    """What regular looks teach about a document with this rate."""
    belief = Belief()
    for _ in range(round(days / gap)):
        age, last = gap, None
        while (age := age - chance.expovariate(rate)) > 0:
            last = age
        belief = belief.after_unchanged(gap) if last is None else belief.after_changed(gap, last if known else None)
    return belief


def test_a_new_document_is_believed_to_change_every_fourth_day() -> None:
    assert Belief().rate == 0.25


@given(st.lists(looks, max_size=200))
def test_a_belief_is_always_a_positive_finite_rate(history: list[tuple[float, str | float | None]]) -> None:
    belief = Belief()
    for gap, change in history:
        belief = after(belief, gap, change)
        assert belief.changes >= 0.5
        assert belief.days >= 2
        assert isfinite(belief.rate)
        assert belief.rate > 0


@given(st.lists(looks, max_size=30), gaps)
def test_a_look_without_a_change_lowers_the_rate_and_one_with_a_change_raises_it_again(
    history: list[tuple[float, str | float | None]], gap: float
) -> None:
    belief = Belief()
    for past, change in history:
        belief = after(belief, past, change)
    assert belief.after_unchanged(gap).rate <= max(belief.rate, Belief().rate) * (1 + 1e-9)
    assert belief.after_changed(gap).rate > belief.after_unchanged(gap).rate


@given(st.floats(0.5, 100), st.floats(2, 100), gaps, st.integers(1, 50))
def test_one_long_look_without_a_change_teaches_what_many_short_ones_do(
    changes: float, days: float, gap: float, looks: int
) -> None:
    once, often = Belief(changes, days).after_unchanged(gap), Belief(changes, days)
    for _ in range(looks):
        often = often.after_unchanged(gap / looks)
    assert (often.changes, often.days) == pytest.approx((once.changes, once.days))


@pytest.mark.parametrize("gap", [0.0, -3.0])
def test_a_clock_that_stands_or_goes_back_shows_nothing(gap: float) -> None:
    belief = Belief(7, 30)
    assert belief.after_unchanged(gap) == belief.after_changed(gap) == belief.after_changed(gap, 0.1) == belief


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(("rate", "gap"), [(0.05, 1), (0.3, 0.5), (1, 0.5), (4, 0.2), (24, 1 / 24)])
def test_the_belief_comes_to_the_true_rate(rate: float, gap: float, known: bool) -> None:
    chance = random.Random(3)
    beliefs = [learned(rate, gap, 150, chance, known=known) for _ in range(40)]
    assert sum(belief.rate for belief in beliefs) / len(beliefs) == pytest.approx(rate, rel=0.15)


def test_a_document_that_never_changes_is_believed_to_be_quiet() -> None:
    belief = learned(1e-9, 1, 365, random.Random(0))
    assert belief.rate < 0.01


def test_more_changes_than_one_in_a_gap_are_reckoned_with() -> None:
    """Counting at most one change a look would say one a day."""
    assert learned(3, 1, 150, random.Random(1)).rate > 2


def test_a_rate_that_falls_is_believed_after_a_few_months() -> None:
    belief = learned(4, 0.25, 120, random.Random(2))
    for _ in range(180):
        belief = belief.after_unchanged(1)
    assert belief.rate < 0.4


def test_the_age_of_a_change_counts_only_within_the_gap() -> None:
    belief = Belief(3, 20)
    assert belief.after_changed(2, 50) == belief.after_changed(2, 2)
    assert belief.after_changed(2, -1) == belief.after_changed(2, 0)
    assert belief.after_changed(2, 0.1).rate > belief.after_changed(2, 1.9).rate
