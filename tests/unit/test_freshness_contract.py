"""What is said about the freshness of a copy, for every outcome and on the wire."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.policy.cadence import Range
from crawler.policy.watch import Content, WatchRules, after_absence, after_content, after_failure
from index.documents import DocumentKind, DocumentState, Observation, Outcome
from index.freshness import Freshness, FreshnessState, header, judge, to_json

NOW = datetime(2026, 5, 5, 12, 0, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
EARLIER = NOW - 3 * HOUR
RULES = WatchRules(
    allowed=Range(timedelta(minutes=5), 7 * DAY),
    absent_ceiling=7 * DAY,
    failure_ceiling=DAY,
    default_freshness=HOUR,
    unconditional_every=10,
    unconditional_after=7 * DAY,
    removal_sightings=3,
    removal_period=DAY,
)


def judged(outcome: Outcome | str | None, reason: str = "", *, now: datetime = NOW, **known: Any) -> Freshness:
    facts: dict[str, Any] = {
        "has_copy": True,
        "attempted_at": NOW,
        "confirmed_at": None,
        "fresh_until": None,
        "next_fetch_at": None,
        "failing_since": None,
        "absent_since": None,
        **known,
    }
    return judge(outcome, reason, now=now, **facts)


def judged_state(state: DocumentState, now: datetime) -> Freshness:
    return judge(
        state.outcome,
        state.reason,
        has_copy=state.digest is not None,
        attempted_at=state.attempted_at,
        confirmed_at=state.confirmed_at,
        fresh_until=state.fresh_until,
        next_fetch_at=state.next_fetch_at,
        failing_since=state.failing_since,
        absent_since=state.absent_since,
        now=now,
    )


@pytest.mark.parametrize("outcome", [Outcome.FETCHED, Outcome.NOT_MODIFIED, "fetched", "not_modified"])
@pytest.mark.parametrize(("fresh_until", "next_fetch_at"), [(1, 2), (2, 1), (2, None), (None, 2)])
def test_a_confirmed_copy_is_fresh_until_the_later_of_its_lifetime_and_the_next_look(
    outcome: Outcome | str, fresh_until: int | None, next_fetch_at: int | None
) -> None:
    promises = {
        "fresh_until": NOW + fresh_until * HOUR if fresh_until else None,
        "next_fetch_at": NOW + next_fetch_at * HOUR if next_fetch_at else None,
        "confirmed_at": EARLIER,
    }
    until = NOW + 2 * HOUR
    assert judged(outcome, **promises) == Freshness(FreshnessState.FRESH, until=until, since=EARLIER)
    # A tenth of the promise, for a visit that is due and on its way.
    grace = until + (until - EARLIER) * 0.1
    assert judged(outcome, now=until, **promises) == Freshness(FreshnessState.FRESH, until=grace, since=EARLIER)
    for late in (grace, grace + HOUR):
        assert judged(outcome, now=late, **promises) == Freshness(FreshnessState.STALE, since=until, why="overdue")


def test_a_confirmed_copy_without_any_promise_is_fresh_without_an_end() -> None:
    assert judged(Outcome.FETCHED, confirmed_at=EARLIER) == Freshness(FreshnessState.FRESH, since=EARLIER)


MISSES = [
    (Outcome.UNREACHABLE, "timeout"),
    (Outcome.TOO_LARGE, "body"),
    (Outcome.MALFORMED, "json.syntax"),
    (Outcome.WRONG_KIND, "not_json"),
    (Outcome.CATCH_ALL, "not_json"),
    (Outcome.DISALLOWED, "robots_unreachable"),
]


@pytest.mark.parametrize(("outcome", "reason"), MISSES)
def test_fr69_a_miss_leaves_a_copy_stale_since_the_first_one(outcome: Outcome, reason: str) -> None:
    known = {
        "failing_since": EARLIER,
        "confirmed_at": EARLIER - DAY,
        "fresh_until": NOW + DAY,
        "next_fetch_at": NOW + HOUR,
    }
    assert judged(outcome, reason, **known) == Freshness(FreshnessState.STALE, since=EARLIER, why=reason)


@pytest.mark.parametrize(("outcome", "reason"), MISSES)
def test_a_miss_without_a_copy_is_a_failure(outcome: Outcome, reason: str) -> None:
    found = judged(outcome, reason, has_copy=False, failing_since=EARLIER, next_fetch_at=NOW + HOUR)
    assert found == Freshness(FreshnessState.FAILED, since=EARLIER, why=reason)


def test_a_miss_without_a_reason_is_explained_by_its_outcome() -> None:
    assert judged(Outcome.UNREACHABLE).why == "unreachable"
    assert judged("a_word_of_tomorrow").why == "a_word_of_tomorrow"
    assert judged("a_word_of_tomorrow").state is FreshnessState.STALE


@pytest.mark.parametrize("has_copy", [True, False])
@pytest.mark.parametrize(
    ("outcome", "reason", "state"),
    [
        (Outcome.ABSENT, "status_404", FreshnessState.ABSENT),
        (Outcome.GONE, "status_410", FreshnessState.GONE),
        (Outcome.WITHHELD, "status_401", FreshnessState.WITHHELD),
        (Outcome.DISALLOWED, "robots", FreshnessState.DISALLOWED),
        (Outcome.REFUSED, "private_address", FreshnessState.REFUSED),
    ],
)
def test_an_answer_that_says_why_there_is_nothing_is_said_with_a_copy_and_without(
    has_copy: bool, outcome: Outcome, reason: str, state: FreshnessState
) -> None:
    found = judged(outcome, reason, has_copy=has_copy, failing_since=EARLIER)
    assert found == Freshness(state, since=EARLIER, why=reason)
    assert judged(str(outcome), reason, has_copy=has_copy, failing_since=EARLIER) == found


@pytest.mark.parametrize("outcome", [Outcome.ABSENT, Outcome.GONE])
def test_what_is_absent_is_so_since_the_publisher_said_it(outcome: Outcome) -> None:
    assert judged(outcome, failing_since=EARLIER - DAY, absent_since=EARLIER).since == EARLIER


def test_what_was_never_fetched_is_said_to_be_so() -> None:
    assert judged(None, has_copy=False, attempted_at=None) == Freshness(FreshnessState.NEVER_FETCHED)


def test_a_copy_from_elsewhere_is_as_fresh_as_what_is_known_of_it() -> None:
    assert judged(None).state is FreshnessState.STALE
    assert judged(None).why == "unconfirmed"
    known = {"confirmed_at": EARLIER, "fresh_until": NOW + HOUR}
    assert judged(None, **known) == Freshness(FreshnessState.FRESH, until=NOW + HOUR, since=EARLIER)
    assert judged(None, now=NOW + DAY, **known).why == "overdue"


def seen(outcome: Outcome, at: datetime, reason: str = "", status: int | None = None) -> Observation:
    return Observation("https://acme.example/c", outcome, at, at, reason=reason, status=status)


def fetched(at: datetime) -> DocumentState:
    state = DocumentState("https://acme.example/c", "https://acme.example", DocumentKind.MANIFEST, at)
    return after_content(state, seen(Outcome.FETCHED, at, status=200), Content("d", "c", 1, "1"), RULES, 0.5).state


def test_fr69_an_outage_as_the_watch_remembers_it_is_one_stale_interval() -> None:
    state = fetched(NOW)
    assert state.next_fetch_at is not None
    assert judged_state(state, NOW + timedelta(minutes=1)).state is FreshnessState.FRESH
    assert judged_state(state, state.next_fetch_at + DAY).why == "overdue"
    for hours, reason in ((2, "connection_reset"), (3, "status_502")):
        at = NOW + hours * HOUR
        state = after_failure(state, seen(Outcome.UNREACHABLE, at, reason), RULES, 0.5).state
        assert judged_state(state, at) == Freshness(FreshnessState.STALE, since=NOW + 2 * HOUR, why=reason)
    state = after_content(state, seen(Outcome.FETCHED, NOW + 4 * HOUR), Content("d", "c", 1, "1"), RULES, 0.5).state
    assert judged_state(state, NOW + 4 * HOUR).state is FreshnessState.FRESH


def test_an_absence_as_the_watch_remembers_it_is_told_with_its_beginning() -> None:
    state = fetched(NOW)
    for hours in (2, 3):
        absent = seen(Outcome.ABSENT, NOW + hours * HOUR, "status_404", 404)
        state = after_absence(state, absent, RULES, 0.5).state
    found = judged_state(state, NOW + 3 * HOUR)
    assert found == Freshness(FreshnessState.ABSENT, since=NOW + 2 * HOUR, why="status_404")


# --- on the wire ------------------------------------------------------------------------------------------------------


def test_json_leaves_out_what_is_not_known() -> None:
    berlin = NOW.astimezone(timezone(2 * HOUR))
    fresh = Freshness(FreshnessState.FRESH, until=berlin, since=EARLIER + timedelta(milliseconds=5))
    assert to_json(fresh) == {
        "state": "fresh",
        "until": "2026-05-05T12:00:00Z",
        "since": "2026-05-05T09:00:00.005000Z",
    }
    assert to_json(Freshness(FreshnessState.NEVER_FETCHED)) == {"state": "never_fetched"}


@pytest.mark.parametrize(
    ("freshness", "field"),
    [
        (Freshness(FreshnessState.FRESH, until=NOW), 'fresh; until="2026-05-05T12:00:00Z"'),
        (
            Freshness(FreshnessState.STALE, since=NOW, why="status_502"),
            'stale; since="2026-05-05T12:00:00Z"; why="status_502"',
        ),
        (Freshness(FreshnessState.NEVER_FETCHED), "never_fetched"),
        (Freshness(FreshnessState.REFUSED, why='a "b" \\ c\r\nX: é'), 'refused; why="a \\"b\\" \\\\ c??X: ?"'),
    ],
)
def test_the_header_is_a_token_with_parameters(freshness: Freshness, field: str) -> None:
    assert header(freshness) == field


times = st.none() | st.integers(-100, 100).map(lambda hours: NOW + hours * HOUR)


@given(
    st.none() | st.sampled_from(list(Outcome)) | st.text(max_size=8),
    st.text(max_size=8),
    st.fixed_dictionaries(
        {
            "has_copy": st.booleans(),
            "attempted_at": times,
            "confirmed_at": times,
            "fresh_until": times,
            "next_fetch_at": times,
            "failing_since": times,
            "absent_since": times,
        }
    ),
)
def test_every_state_can_be_judged_and_written(outcome: Any, reason: str, known: dict[str, Any]) -> None:
    found = judge(outcome, reason, now=NOW, **known)
    assert (found.until is None) or (found.state is FreshnessState.FRESH and found.until > NOW)
    assert found.state is not FreshnessState.STALE or found.why
    assert header(found).isascii()
    assert header(found).isprintable()
    assert set(to_json(found)) <= {"state", "until", "since", "why"}
