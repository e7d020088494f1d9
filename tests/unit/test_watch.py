"""How an observation changes what is remembered of a document."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from crawler.policy.cadence import Range
from crawler.policy.change_rate import Belief
from crawler.policy.freshness import Verdict
from crawler.policy.watch import (
    Content,
    Step,
    WatchRules,
    after_absence,
    after_content,
    after_failure,
    after_not_modified,
    belief_of,
    conditions_for,
    is_worth_comparing,
    judge_304,
)
from index.documents import DocumentKind, DocumentState, Observation, Outcome
from tests.fakes.web import http_date

NOW = datetime(2026, 5, 5, 12, 0, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
URL = "https://acme.example/.well-known/ard.json"
VERSION = "ard-1"
RULES = WatchRules(
    allowed=Range(5 * MINUTE, DAY),
    absent_ceiling=7 * DAY,
    failure_ceiling=DAY,
    default_freshness=HOUR,
    unconditional_every=20,
    unconditional_after=7 * DAY,
    removal_sightings=3,
    removal_period=DAY,
)
NEW = DocumentState(URL, "https://acme.example", DocumentKind.MANIFEST, first_seen_at=NOW)
MODIFIED = "Tue, 05 May 2026 10:00:07 GMT"


def saw(outcome: Outcome, at: datetime = NOW, **members: Any) -> Observation:
    """An observation made at a time."""
    headers = {"date": http_date(at), **members.pop("headers", {})}
    return Observation(URL, outcome, at, at, headers=headers, **members)


def body(name: str, content: str | None = None) -> Content:
    return Content(name, content or name, 100, VERSION)


def fetched(
    state: DocumentState, name: str, headers: Mapping[str, str] | None = None, at: datetime = NOW, **members: Any
) -> Step:
    """The step after a 200 with a body of this digest."""
    observation = saw(Outcome.FETCHED, at, status=200, headers=headers or {}, **members)
    return after_content(state, observation, body(name), RULES, 0.5)


def confirmed(state: DocumentState, at: datetime, headers: Mapping[str, str] | None = None) -> DocumentState:
    observation = saw(Outcome.NOT_MODIFIED, at, status=304, headers=headers or {}, conditions={"If-None-Match": "x"})
    return after_not_modified(state, observation, RULES, 0.5).state


HELD = fetched(NEW, "one", {"etag": '"1"', "last-modified": MODIFIED}).state
BOTH = {"If-None-Match": '"1"', "If-Modified-Since": MODIFIED}


# --- which conditions to send -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "conditions"),
    [
        ({}, BOTH),
        # FR-37: conditions need the stored body.
        ({"digest": None}, {}),
        # Another parser reads the whole document again.
        ({"parser_version": "ard-0"}, {}),
        # H5, FR-36: validators can lie, so the whole document is wanted every Nth time and after a week.
        ({"not_modified_streak": 19}, BOTH),
        ({"not_modified_streak": 20}, {}),
        ({"full_at": NOW - 7 * DAY + MINUTE}, BOTH),
        ({"full_at": NOW - 7 * DAY}, {}),
        ({"full_at": None}, {}),
        ({"distrust_until": NOW + MINUTE}, {}),
        ({"distrust_until": NOW}, BOTH),
        # FR-32: a tag that never matches goes, where a date can stand in for it.
        ({"ineffective_streak": 2}, BOTH),
        ({"ineffective_streak": 3}, {"If-Modified-Since": MODIFIED}),
        ({"ineffective_streak": 3, "headers": {"etag": '"1"'}}, {"If-None-Match": '"1"'}),
        # FR-35: verbatim, or not at all.
        ({"headers": {"last-modified": MODIFIED}}, {"If-Modified-Since": MODIFIED}),
        ({"headers": {"date": http_date(NOW)}}, {}),
        ({"headers": {"etag": '"1"', "vary": "*"}}, {}),
        # FR-36: a date after the Date of the response is no validator.
        ({"headers": {"last-modified": http_date(NOW + DAY), "date": http_date(NOW)}}, {}),
        # H3: one that was cleared stays cleared.
        ({"headers": {}}, {}),
    ],
)
def test_conditions_are_sent_where_the_answer_can_be_believed(
    changes: dict[str, Any], conditions: dict[str, str]
) -> None:
    assert conditions_for(replace(HELD, **changes), RULES, NOW, VERSION) == conditions


@pytest.mark.parametrize(
    ("state", "conditions", "headers", "verdict"),
    [
        (HELD, BOTH, {"etag": '"1"'}, Verdict.CONFIRMED),
        (HELD, BOTH, {}, Verdict.CONFIRMED),
        (HELD, {}, {"etag": '"1"'}, Verdict.UNEXPECTED),
        (replace(HELD, digest=None), BOTH, {"etag": '"1"'}, Verdict.UNEXPECTED),
        (NEW, {}, {}, Verdict.UNEXPECTED),
        (HELD, BOTH, {"etag": '"2"'}, Verdict.INCONSISTENT),
    ],
)
def test_H5_H11_FR37_a_304_is_believed_only_about_what_was_asked(
    state: DocumentState, conditions: dict[str, str], headers: dict[str, str], verdict: Verdict
) -> None:
    observation = saw(Outcome.NOT_MODIFIED, status=304, conditions=conditions, headers=headers)
    assert judge_304(state, observation) is verdict


# --- a body -----------------------------------------------------------------------------------------------------------


def test_the_first_body_is_a_change_and_is_remembered() -> None:
    step = fetched(NEW, "one", {"etag": '"1"', "cache-control": "max-age=7200", "set-cookie": "a=b"})
    assert (step.changed, step.taken_away, step.notes) == (True, False, ())
    state = step.state
    assert state.headers == {"etag": '"1"', "cache-control": "max-age=7200", "date": http_date(NOW)}
    assert (state.digest, state.content_digest, state.length, state.parser_version) == ("one", "one", 100, VERSION)
    assert state.fetched_at == state.full_at == state.changed_at == state.confirmed_at == state.attempted_at == NOW
    assert state.fresh_until == NOW + 2 * HOUR
    assert state.next_fetch_at == NOW + 2 * HOUR


@pytest.mark.parametrize(
    ("digest", "content", "changed"),
    [("one", "one", False), ("two", "two", True), ("two", "one", False)],
    ids=["same bytes", "other bytes", "other formatting"],
)
def test_H8_the_digest_is_a_validator_of_our_own(digest: str, content: str, changed: bool) -> None:
    later = NOW + HOUR
    observation = saw(Outcome.FETCHED, later, status=200)
    step = after_content(HELD, observation, body(digest, content), RULES, 0.5)
    assert step.changed is changed
    assert step.state.changed_at == (later if changed else NOW)
    assert (step.state.digest, step.state.confirmed_at) == (digest, later)


def test_FR33_validators_and_freshness_are_replaced_although_the_body_is_the_same() -> None:
    step = fetched(HELD, "one", {"etag": '"2"', "cache-control": "max-age=600"}, NOW + HOUR)
    assert not step.changed
    assert conditions_for(step.state, RULES, NOW + HOUR, VERSION) == {"If-None-Match": '"2"'}
    assert step.state.fresh_until == NOW + HOUR + timedelta(seconds=600)


def test_H3_validators_are_cleared_when_a_body_comes_without_any() -> None:
    step = fetched(HELD, "one", {}, NOW + HOUR)
    assert conditions_for(step.state, RULES, NOW + HOUR, VERSION) == {}


def test_FR32_a_tag_that_never_matches_is_noticed_and_left_out() -> None:
    headers = {"etag": '"v1-gzip"', "last-modified": MODIFIED}
    state, notes, sent, intervals = NEW, [], [], []
    for cycle in range(6):
        at = NOW + cycle * DAY / 8
        conditions = conditions_for(state, RULES, at, VERSION)
        step = fetched(state, "one", headers, at, conditions=conditions)
        assert step.changed is (cycle == 0)
        state = step.state
        notes.append(step.notes)
        sent.append(sorted(conditions))
        intervals.append(state.interval)
    assert notes == [(), (), (), ("revalidation_ineffective",), (), ()]
    assert sent == [[], *[["If-Modified-Since", "If-None-Match"]] * 3, *[["If-Modified-Since"]] * 2]
    assert intervals == sorted(intervals)


def test_FR36_a_validator_that_stands_still_while_the_body_moves_is_not_used_for_a_week() -> None:
    headers = {"etag": '"1"'}
    state = fetched(NEW, "one", headers).state
    for look in range(1, 21):
        state = confirmed(state, NOW + look * HOUR, headers)
    at = NOW + 21 * HOUR
    assert conditions_for(state, RULES, at, VERSION) == {}
    step = fetched(state, "two", headers, at)
    assert (step.changed, step.notes) == (True, ("validator_lies",))
    assert conditions_for(step.state, RULES, at + 6 * DAY, VERSION) == {}
    assert conditions_for(replace(step.state, full_at=at + 7 * DAY), RULES, at + 7 * DAY, VERSION) == {
        "If-None-Match": '"1"'
    }


def test_FR36_a_validator_caught_lying_is_not_believed_again_while_it_lies() -> None:
    suspect = replace(HELD, headers={"etag": '"1"'}, distrust_until=NOW - HOUR)
    step = fetched(suspect, "two", {"etag": '"1"'}, NOW)
    assert (step.notes, step.state.distrust_until) == (("validator_lies",), NOW + 7 * DAY)


@pytest.mark.parametrize(
    ("streak", "headers", "digest", "conditions"),
    [
        (20, {"etag": '"2"'}, "two", {}),
        (20, {"etag": '"1"'}, "one", {}),
        (0, {"etag": '"1"'}, "two", {}),
        (20, {}, "two", {}),
        (20, {"etag": '"1"'}, "two", {"If-None-Match": '"1"'}),
    ],
    ids=["the tag changed too", "the body did not", "no 304 before", "no validator", "the answer was to a condition"],
)
def test_FR36_an_honest_change_is_no_lie(
    streak: int, headers: dict[str, str], digest: str, conditions: dict[str, str]
) -> None:
    state = replace(HELD, headers={"etag": '"1"'}, not_modified_streak=streak)
    step = fetched(state, digest, headers, NOW + DAY, conditions=conditions)
    assert (step.notes, step.state.distrust_until, step.state.not_modified_streak) == ((), None, 0)


def test_FR39_without_validators_the_digest_decides_and_the_interval_grows_to_its_ceiling() -> None:
    state, at = NEW, NOW
    for cycle in range(12):
        assert conditions_for(state, RULES, at, VERSION) == {}
        step = fetched(state, "one", {}, at)
        assert (step.changed, step.notes) == (cycle == 0, ())
        state, at = step.state, step.state.next_fetch_at or at
    assert state.interval == RULES.allowed.ceiling


# --- how often it changes ---------------------------------------------------------------------------------------------


def test_the_first_body_shows_nothing_of_the_changes() -> None:
    assert belief_of(NEW) == belief_of(HELD) == Belief()


def test_H12_a_304_and_the_same_content_are_both_looks_without_a_change() -> None:
    later = NOW + 2 * DAY
    by_status = confirmed(HELD, later)
    by_digest = fetched(HELD, "one", {"etag": '"2"'}, later).state
    assert belief_of(by_status) == belief_of(by_digest) == Belief().after_unchanged(2)


def test_a_change_counts_with_the_time_that_the_publisher_states_for_it() -> None:
    later = NOW + 2 * DAY
    unknown = fetched(HELD, "two", {}, later).state
    assert belief_of(unknown) == Belief().after_changed(2)
    dated = fetched(HELD, "two", {"last-modified": http_date(later - 6 * HOUR)}, later).state
    assert belief_of(dated).rate == pytest.approx(Belief().after_changed(2, 0.25).rate)
    content = replace(body("two"), updated_at=later - 12 * HOUR)
    stated = after_content(HELD, saw(Outcome.FETCHED, later, status=200), content, RULES, 0.5).state
    assert belief_of(stated) == Belief().after_changed(2, 0.5)


@pytest.mark.parametrize(
    "modified",
    [NOW - DAY, NOW, NOW + 2 * DAY - timedelta(seconds=5), NOW + 3 * DAY],
    ids=["before the last look", "at the last look", "made for the answer", "in the future"],
)
def test_a_time_of_change_that_cannot_be_true_does_not_count(modified: datetime) -> None:
    state = fetched(HELD, "two", {"last-modified": http_date(modified)}, NOW + 2 * DAY).state
    assert belief_of(state) == Belief().after_changed(2)


def test_what_another_parser_reads_differently_is_no_change_of_the_document() -> None:
    older = replace(HELD, parser_version="ard-0")
    assert belief_of(fetched(older, "two", {}, NOW + DAY).state) == Belief()


def test_outages_and_absences_show_nothing_and_the_next_success_compares_over_all_of_it() -> None:
    state = HELD
    for day in range(1, 20):
        state = failed(state, NOW + day * DAY, Outcome.UNREACHABLE)
        state = absent(state, NOW + day * DAY + HOUR).state
        assert belief_of(state) == belief_of(HELD)
    assert belief_of(confirmed(state, NOW + 20 * DAY)) == Belief().after_unchanged(20)


def test_within_a_budget_documents_that_listings_come_from_are_looked_at_first() -> None:
    rules = replace(RULES, price=0.01)
    observation = saw(Outcome.FETCHED, status=200, headers={"cache-control": "max-age=0"})
    state = replace(NEW, confirmed_at=NOW - DAY)
    card = replace(state, kind=DocumentKind.ARTIFACT)
    waits = [
        after_content(seen, observation, replace(body("one"), entry_count=count), rules, 0.5).state.interval
        for seen, count in ((state, 3), (card, 0), (state, 0))
    ]
    assert None not in waits
    assert waits == sorted(set(waits), key=lambda wait: wait or DAY)


@pytest.mark.parametrize(("stated", "wait"), [("max-age=43200", 12 * HOUR), ("max-age=31536000", DAY)])
def test_H17_no_price_makes_a_look_come_before_the_stated_freshness_ends(stated: str, wait: timedelta) -> None:
    observation = saw(Outcome.FETCHED, status=200, headers={"cache-control": stated})
    state = after_content(NEW, observation, body("one"), replace(RULES, price=1e-9), 0.5).state
    assert (state.interval, state.next_fetch_at) == (RULES.allowed.floor, NOW + wait)


# --- a 304 ------------------------------------------------------------------------------------------------------------


def test_H12_a_304_is_an_observation_and_renews_the_stored_fields() -> None:
    later = NOW + 2 * HOUR
    held = replace(HELD, failures=3, failing_since=NOW + HOUR, absences=2, absent_since=NOW + HOUR)
    state = confirmed(held, later, {"cache-control": "max-age=600", "content-type": "text/html"})
    assert (state.confirmed_at, state.attempted_at) == (later, later)
    assert (state.fetched_at, state.full_at, state.changed_at, state.digest) == (NOW, NOW, NOW, "one")
    assert state.headers == {**HELD.headers, "cache-control": "max-age=600", "date": http_date(later)}
    assert state.fresh_until == later + timedelta(seconds=600)
    assert (state.failures, state.failing_since, state.absences, state.absent_since) == (0, None, 0, None)
    assert (state.not_modified_streak, state.outcome, state.status) == (1, Outcome.NOT_MODIFIED, 304)


def test_a_304_shows_that_the_tag_matches_after_all() -> None:
    assert confirmed(replace(HELD, ineffective_streak=3), NOW + HOUR).ineffective_streak == 0


# --- nothing there ----------------------------------------------------------------------------------------------------


def absent(
    state: DocumentState, at: datetime, outcome: Outcome = Outcome.ABSENT, status: int | None = 404, **members: Any
) -> Step:
    return after_absence(state, saw(outcome, at, status=status, **members), RULES, 0.0)


def test_H24_a_404_takes_entries_away_only_when_seen_often_enough_over_long_enough() -> None:
    state, taken = HELD, []
    for hours in (1, 2, 3, 24, 25):
        step = absent(state, NOW + hours * HOUR)
        state = step.state
        taken.append(step.taken_away)
    assert taken == [False, False, False, False, True]
    assert (state.digest, state.absent_since) == ("one", NOW + HOUR)

    early = absent(absent(HELD, NOW + HOUR).state, NOW + 2 * DAY)
    assert not early.taken_away
    assert absent(early.state, NOW + 3 * DAY).taken_away


def test_H24_a_410_takes_entries_away_at_once() -> None:
    step = absent(HELD, NOW + HOUR, Outcome.GONE, 410)
    assert step.taken_away
    assert step.state.next_fetch_at == NOW + HOUR + DAY


@pytest.mark.parametrize(
    ("outcome", "status"),
    [(Outcome.CATCH_ALL, 200), (Outcome.WRONG_KIND, 200), (Outcome.ABSENT, 200), (Outcome.ABSENT, 400)],
)
def test_H24_a_page_where_the_manifest_should_be_takes_nothing_away(outcome: Outcome, status: int) -> None:
    state = HELD
    for day in range(1, 30):
        step = absent(state, NOW + day * DAY, outcome, status)
        state = step.state
        assert (step.taken_away, state.absent_since) == (False, None)
    assert state.failing_since == NOW + DAY


def test_H24_other_absences_are_no_sightings_of_a_404() -> None:
    state = HELD
    for hours in (1, 2, 3):
        state = absent(state, NOW + hours * HOUR, Outcome.CATCH_ALL, 200).state
    first = absent(state, NOW + 4 * HOUR)
    second = absent(first.state, NOW + 29 * HOUR)
    third = absent(second.state, NOW + 30 * HOUR)
    assert [step.taken_away for step in (first, second, third)] == [False, False, True]


def test_H24_a_success_in_between_starts_the_count_again() -> None:
    twice = absent(absent(HELD, NOW + HOUR).state, NOW + 30 * HOUR).state
    back = confirmed(twice, NOW + 31 * HOUR)
    assert not absent(back, NOW + 32 * HOUR).taken_away


def test_H20_a_missing_document_goes_stale_and_its_copy_is_kept() -> None:
    state = absent(replace(HELD, failures=4), NOW + HOUR).state
    assert (state.failing_since, state.failures, state.absences) == (NOW + HOUR, 0, 1)
    assert (state.digest, state.headers, state.confirmed_at) == (HELD.digest, HELD.headers, NOW)


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({}, HOUR),
        ({"cache-control": "max-age=10800"}, 3 * HOUR),
        ({"expires": http_date(NOW + 2 * HOUR)}, 2 * HOUR),
        ({"cache-control": "max-age=99999999"}, 7 * DAY),
        ({"cache-control": "no-store"}, HOUR),
        ({"last-modified": http_date(NOW - 300 * DAY)}, HOUR),
    ],
)
def test_H20_a_404_may_state_how_long_it_holds(headers: dict[str, str], wait: timedelta) -> None:
    assert absent(NEW, NOW, headers=headers).state.next_fetch_at == NOW + wait


def test_FR60_an_absent_path_is_asked_for_at_most_a_dozen_times_in_a_month() -> None:
    state, at, looks = NEW, NOW, 0
    while at < NOW + 30 * DAY:
        looks += 1
        state = absent(state, at).state
        assert state.next_fetch_at is not None
        at = state.next_fetch_at
    assert looks <= 12


# --- a failure --------------------------------------------------------------------------------------------------------


def failed(state: DocumentState, at: datetime, outcome: Outcome, **members: Any) -> DocumentState:
    step = after_failure(state, saw(outcome, at, **members), RULES, 0.5)
    assert (step.changed, step.taken_away, step.notes) == (False, False, ())
    return step.state


@pytest.mark.parametrize("outcome", [Outcome.UNREACHABLE, Outcome.TOO_LARGE, Outcome.MALFORMED, Outcome.DISALLOWED])
def test_H24_a_failure_removes_nothing_and_marks_the_copy_as_stale(outcome: Outcome) -> None:
    state = HELD
    for hours in (1, 30, 300):
        state = failed(state, NOW + hours * HOUR, outcome)
    assert (state.digest, state.headers, state.confirmed_at) == (HELD.digest, HELD.headers, NOW)
    assert (state.failing_since, state.failures) == (NOW + HOUR, 3)
    assert (state.absences, state.absent_since) == (0, None)


def test_H24_tries_after_failures_wait_longer_each_time() -> None:
    state, waits = HELD, []
    for _ in range(12):
        state = failed(state, NOW, Outcome.UNREACHABLE)
        waits.append((state.next_fetch_at or NOW) - NOW)
    assert waits[:4] == [5 * MINUTE, 10 * MINUTE, 20 * MINUTE, 40 * MINUTE]
    assert waits[-1] == RULES.failure_ceiling


@pytest.mark.parametrize(
    ("outcome", "reason", "wait"),
    [
        (Outcome.WITHHELD, "401", DAY),
        (Outcome.WITHHELD, "403", DAY),
        (Outcome.DISALLOWED, "robots", DAY),
        (Outcome.REFUSED, "address", DAY),
        # FR-44: an unreachable robots.txt is no answer of the publisher; it is tried again soon.
        (Outcome.DISALLOWED, "robots_unreachable", 5 * MINUTE),
        (Outcome.UNREACHABLE, "timeout_total", 5 * MINUTE),
    ],
)
def test_H20_an_answer_that_we_do_not_like_is_not_asked_for_again_soon(
    outcome: Outcome, reason: str, wait: timedelta
) -> None:
    state = failed(HELD, NOW, outcome, reason=reason)
    assert state.next_fetch_at is not None
    assert wait <= state.next_fetch_at - NOW <= 1.1 * wait


@pytest.mark.parametrize(
    ("retry_after", "wait"), [(HOUR, HOUR), (10 * DAY, 10 * DAY), (MINUTE, 5 * MINUTE), (timedelta(0), 5 * MINUTE)]
)
def test_H23_retry_after_can_only_make_the_wait_longer(retry_after: timedelta, wait: timedelta) -> None:
    state = failed(HELD, NOW, Outcome.UNREACHABLE, retry_after=retry_after)
    assert state.next_fetch_at == NOW + wait


def test_a_success_ends_a_row_of_failures() -> None:
    failing = failed(HELD, NOW + HOUR, Outcome.UNREACHABLE)
    state = fetched(failing, "one", {}, NOW + 2 * HOUR).state
    assert (state.failures, state.failing_since) == (0, None)


# --- what every look leaves behind ------------------------------------------------------------------------------------


def test_every_look_leaves_what_became_of_it() -> None:
    observation = saw(
        Outcome.UNREACHABLE, NOW + HOUR, reason="status_503", detail="x", status=503, final_url="https://b.example/"
    )
    state = after_failure(HELD, observation, RULES, 0.5).state
    seen = (state.outcome, state.reason, state.detail, state.status, state.final_url, state.attempted_at)
    assert seen == (Outcome.UNREACHABLE, "status_503", "x", 503, "https://b.example/", NOW + HOUR)


@pytest.mark.parametrize("outcome", [Outcome.FETCHED, Outcome.NOT_MODIFIED, Outcome.ABSENT, Outcome.UNREACHABLE])
def test_a_robots_file_has_no_schedule_of_its_own(outcome: Outcome) -> None:
    state = replace(HELD, kind=DocumentKind.ROBOTS)
    step = {
        Outcome.FETCHED: lambda: fetched(state, "one"),
        Outcome.NOT_MODIFIED: lambda: Step(confirmed(state, NOW)),
        Outcome.ABSENT: lambda: absent(state, NOW),
        Outcome.UNREACHABLE: lambda: Step(failed(state, NOW, Outcome.UNREACHABLE)),
    }[outcome]()
    assert step.state.next_fetch_at is None


# --- a second look without a request field ----------------------------------------------------------------------------

WITHOUT = fetched(NEW, "one").state
NAMING = {"vary": "Accept-Encoding, A2A-Version"}


@pytest.mark.parametrize(
    ("before", "digest", "headers", "conditions", "chance", "worth"),
    [
        (NEW, "one", {}, {}, 0.0, False),
        (NEW, "one", NAMING, {}, 0.9, True),
        (HELD, "one", {}, {}, 0.9, True),
        (HELD, "two", NAMING, BOTH, 0.9, True),
        (HELD, "two", {}, BOTH, 0.0, False),
        (WITHOUT, "one", {}, {}, 0.9, False),
        (WITHOUT, "one", {}, {}, 0.04, True),
        (WITHOUT, "one", NAMING, {}, 0.9, False),
        (WITHOUT, "two", NAMING, {}, 0.9, True),
        (WITHOUT, "two", {}, {}, 0.9, False),
        (replace(HELD, distrust_until=NOW + DAY), "one", {}, {}, 0.9, False),
        (replace(HELD, headers={**HELD.headers, "vary": "*"}), "one", {}, {}, 0.9, False),
    ],
)
def test_a_second_look_without_a_field_is_rare(
    before: DocumentState,
    digest: str,
    headers: dict[str, str],
    conditions: dict[str, str],
    chance: float,
    worth: bool,
) -> None:
    observation = saw(Outcome.FETCHED, status=200, headers=headers, conditions=conditions)
    after = replace(before, digest=digest)
    assert is_worth_comparing(before, after, observation, "a2a-version", every=20, chance=chance) is worth
