"""What a daemon with a budget may begin by now."""

from crawler.budget import Allowance

A_MINUTE = 1440.0  # a day, which is one a minute


def visit_all(allowance: Allowance, seconds: int, *, requests: int, room: int = 100) -> int:
    """Begin all visits that may begin, each second, and end them within it; gives the requests made."""
    made = 0
    for now in range(seconds + 1):
        for _ in range(min(room, allowance.visits(0, now))):
            allowance.spend(requests, now)
            made += requests
    return made


def test_what_is_due_all_at_once_is_worked_off_no_faster_than_the_budget_allows() -> None:
    for seconds in (60, 600, 3600):
        allowance = Allowance(60 * A_MINUTE, 0)
        made = visit_all(allowance, seconds, requests=5)
        assert seconds - 5 <= made <= seconds + 8, "one visit more, whose length was only guessed"


def test_the_first_visit_does_not_wait_until_all_of_it_is_earned() -> None:
    allowance = Allowance(A_MINUTE, 0)
    assert allowance.visits(0, 0) == 0
    assert allowance.visits(0, 1) == 1
    assert allowance.visits(1, 2) == 0, "it is under way"
    allowance.spend(10, 3)
    assert allowance.visits(0, 540) == 0
    assert allowance.visits(0, 660) == 1


def test_visits_under_way_are_reckoned_with() -> None:
    allowance = Allowance(60 * A_MINUTE, 0)
    assert allowance.visits(0, 40) == 5
    assert allowance.visits(4, 40) == 1
    assert allowance.visits(5, 40) == 0


def test_a_quiet_hour_is_not_followed_by_a_storm() -> None:
    allowance = Allowance(60 * A_MINUTE, 0)
    assert allowance.visits(0, 36_000) == 600 / 8


def test_visits_are_reckoned_by_what_they_took() -> None:
    allowance = Allowance(600 * A_MINUTE, 0)
    visit_all(allowance, 60, requests=2)
    assert 1.9 < allowance.per_visit < 2.5
    allowance.spend(0, 60)
    assert allowance.per_visit >= 1


def test_processes_share_and_what_was_earned_alone_is_kept() -> None:
    alone, one_of_two = Allowance(60 * A_MINUTE, 0), Allowance(60 * A_MINUTE, 0)
    one_of_two.share(2, 0)
    assert (alone.visits(0, 160), one_of_two.visits(0, 160)) == (20, 10)
    one_of_two.share(0, 160)
    assert one_of_two.visits(0, 240) == 20


def test_a_clock_that_stands_still_or_goes_back_earns_nothing() -> None:
    allowance = Allowance(60 * A_MINUTE, 100)
    assert allowance.visits(0, 100) == allowance.visits(0, 50) == 0
