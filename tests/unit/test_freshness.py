"""HTTP caching, clause by clause: validators, freshness, what a 304 updates, Retry-After."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest
from hishel._core._headers import Headers
from hishel._core._spec import get_age, get_freshness_lifetime, refresh_response_headers
from hishel._core.models import Response
from hypothesis import given
from hypothesis import strategies as st

from crawler.policy.freshness import (
    MAX_DELTA_S,
    CacheControl,
    Freshness,
    Validators,
    Verdict,
    conditional_headers,
    freshness,
    judge_not_modified,
    parse_cache_control,
    parse_etag,
    parse_retry_after,
    stored_headers,
    strong_equal,
    update_stored,
    validators_of,
    weak_equal,
)
from index.http_date import parse_http_date
from tests.fakes.web import http_date

NOW = datetime(2026, 5, 5, 12, 0, 0, tzinfo=UTC)
DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
DEFAULT = HOUR


def at(offset: timedelta) -> str:
    """An HTTP date before or after now."""
    return http_date(NOW + offset)


def fresh(headers: Mapping[str, str], status: int = 200, delay_s: float = 0) -> Freshness:
    """The freshness of a response received now."""
    return freshness(headers, status, request_at=NOW - timedelta(seconds=delay_s), response_at=NOW, default=DEFAULT)


# --- validators -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "weak", "well_formed"),
    [
        ('"abc"', False, True),
        ('""', False, True),
        ('W/"abc"', True, True),
        ('"a,b;c=d"', False, True),
        ('"\\"', False, True),
        ('"caf\xe9"', False, True),
        ('"abc-gzip"', False, True),
        ('w/"abc"', True, False),
        ("abc", True, False),
        ('"a"b"', True, False),
        ('"a", "b"', True, False),
        ('"a b"', True, False),
        ("W/abc", True, False),
        ('"abc', True, False),
        ("", True, False),
    ],
    ids=repr,
)
def test_H1_an_entity_tag_keeps_its_raw_value_and_is_weak_when_malformed(
    raw: str, weak: bool, well_formed: bool
) -> None:
    tag = parse_etag(raw)
    assert (tag.raw, tag.weak, tag.well_formed) == (raw, weak, well_formed)


@pytest.mark.parametrize(
    ("first", "second", "strong", "weak"),
    [
        # The four rows of RFC 9110 8.8.3.2.
        ('W/"1"', 'W/"1"', False, True),
        ('W/"1"', 'W/"2"', False, False),
        ('W/"1"', '"1"', False, True),
        ('"1"', '"1"', True, True),
        ('"1"', '"1-gzip"', False, False),
        ("1", "1", False, True),
        ("1", '"1"', False, True),
        ('"a"', '"A"', False, False),
    ],
)
def test_H2_tags_compare_strongly_and_weakly(first: str, second: str, strong: bool, weak: bool) -> None:
    for one, other in ((first, second), (second, first)):
        assert strong_equal(parse_etag(one), parse_etag(other)) is strong
        assert weak_equal(parse_etag(one), parse_etag(other)) is weak


@pytest.mark.parametrize(
    ("headers", "conditions"),
    [
        ({"etag": '"1"'}, {"If-None-Match": '"1"'}),
        ({"etag": ' W/"1-gzip" '}, {"If-None-Match": ' W/"1-gzip" '}),
        ({"etag": "not a tag, at all"}, {"If-None-Match": "not a tag, at all"}),
        ({"last-modified": "Tue, 05 May 2026 10:00:07 GMT"}, {"If-Modified-Since": "Tue, 05 May 2026 10:00:07 GMT"}),
        ({"last-modified": "5 May 2026"}, {"If-Modified-Since": "5 May 2026"}),
        (
            {"etag": '"1"', "last-modified": "Tue, 05 May 2026 10:00:07 GMT"},
            {"If-None-Match": '"1"', "If-Modified-Since": "Tue, 05 May 2026 10:00:07 GMT"},
        ),
        ({}, {}),
    ],
)
def test_H3_validators_are_sent_back_byte_for_byte(headers: dict[str, str], conditions: dict[str, str]) -> None:
    assert conditional_headers(validators_of(headers)) == conditions


def test_H4_no_date_of_our_own_making_is_ever_sent() -> None:
    assert conditional_headers(validators_of({"date": at(-HOUR), "expires": at(HOUR)})) == {}


@pytest.mark.parametrize(
    ("sent", "have_body", "verdict"),
    [
        ({"If-None-Match": '"1"'}, True, Verdict.CONFIRMED),
        ({}, True, Verdict.UNEXPECTED),
        ({"If-None-Match": '"1"'}, False, Verdict.UNEXPECTED),
        ({}, False, Verdict.UNEXPECTED),
    ],
)
def test_H5_a_304_confirms_only_what_was_asked_about_and_is_held(
    sent: dict[str, str], have_body: bool, verdict: Verdict
) -> None:
    assert judge_not_modified(sent, {"etag": '"1"'}, {}, have_body=have_body) is verdict


@pytest.mark.parametrize(
    ("stored", "response", "verdict"),
    [
        ({"etag": '"1"'}, {"etag": '"1"'}, Verdict.CONFIRMED),
        ({"etag": '"1"'}, {"etag": 'W/"1"'}, Verdict.CONFIRMED),
        ({"etag": 'W/"1"'}, {"etag": '"1"'}, Verdict.CONFIRMED),
        ({"etag": '"1"'}, {}, Verdict.CONFIRMED),
        ({"etag": '"1"', "last-modified": "a"}, {"last-modified": "a"}, Verdict.CONFIRMED),
        ({"last-modified": "a"}, {"last-modified": "a"}, Verdict.CONFIRMED),
        ({"last-modified": "a"}, {}, Verdict.CONFIRMED),
        ({"etag": '"1"'}, {"last-modified": "a"}, Verdict.CONFIRMED),
        ({"etag": '"1"', "last-modified": "a"}, {"etag": '"1"', "last-modified": "b"}, Verdict.CONFIRMED),
        ({"etag": '"1"'}, {"etag": '"2"'}, Verdict.INCONSISTENT),
        ({"etag": '"1"'}, {"etag": '"1-gzip"'}, Verdict.INCONSISTENT),
        ({"last-modified": "a"}, {"etag": '"2"'}, Verdict.INCONSISTENT),
        ({"last-modified": "a"}, {"last-modified": "b"}, Verdict.INCONSISTENT),
        ({"etag": '"1"', "last-modified": "a"}, {"last-modified": "b"}, Verdict.INCONSISTENT),
    ],
)
def test_H9_H11_a_304_about_another_response_confirms_nothing(
    stored: dict[str, str], response: dict[str, str], verdict: Verdict
) -> None:
    assert judge_not_modified({"If-None-Match": '"1"'}, stored, response, have_body=True) is verdict


STORED = {
    "etag": '"1"',
    "date": at(-DAY),
    "age": "100",
    "cache-control": "max-age=60",
    "content-type": "application/json",
    "content-encoding": "gzip",
    "last-modified": at(-2 * DAY),
}


@pytest.mark.parametrize(
    ("response", "changes"),
    [
        ({"date": at(HOUR)}, {"date": at(HOUR), "age": None}),
        (
            {"date": at(HOUR), "cache-control": "max-age=5"},
            {"date": at(HOUR), "age": None, "cache-control": "max-age=5"},
        ),
        ({"date": at(HOUR), "age": "3"}, {"date": at(HOUR), "age": "3"}),
        ({"date": at(HOUR), "expires": "0"}, {"date": at(HOUR), "age": None, "expires": "0"}),
        (
            {"date": at(HOUR), "etag": 'W/"1"', "vary": "Origin"},
            {"date": at(HOUR), "age": None, "etag": 'W/"1"', "vary": "Origin"},
        ),
        # What describes the stored body stays, and so does what belonged to the connection.
        (
            {"date": at(HOUR), "content-type": "text/html", "content-encoding": "br", "content-length": "0"},
            {"date": at(HOUR), "age": None},
        ),
        ({"date": at(HOUR), "connection": "close, ETag", "etag": '"2"'}, {"date": at(HOUR), "age": None}),
        ({"date": at(HOUR), "set-cookie": "a=b", "server": "x"}, {"date": at(HOUR), "age": None}),
        # Without a Date of its own the answer is as old as its receipt.
        ({}, {"date": None, "age": None}),
    ],
)
def test_H10_a_304_renews_the_stored_fields(response: dict[str, str], changes: dict[str, str | None]) -> None:
    merged: dict[str, str | None] = {**STORED, **changes}
    assert update_stored(STORED, response) == {name: value for name, value in merged.items() if value is not None}


def test_H10_freshness_is_counted_from_the_304() -> None:
    yesterday = {"date": at(-DAY), "cache-control": "max-age=3600", "age": "3000"}
    assert fresh(yesterday).fresh_until(NOW) == NOW
    assert fresh(update_stored(yesterday, {"date": at(timedelta(0))})).fresh_until(NOW) == NOW + HOUR
    assert fresh(update_stored(yesterday, {})).fresh_until(NOW) == NOW + HOUR


def test_only_the_fields_that_decisions_need_are_kept() -> None:
    headers = {"etag": '"1"', "set-cookie": "a=b", "link": "</x>; rel=ard", "content-length": "5", "server": "x"}
    assert stored_headers(headers) == {"etag": '"1"', "link": "</x>; rel=ard"}


@pytest.mark.parametrize(
    ("headers", "validators"),
    [
        ({"last-modified": at(-HOUR), "date": at(timedelta(0))}, Validators(None, at(-HOUR))),
        ({"last-modified": at(timedelta(0)), "date": at(timedelta(0))}, Validators(None, at(timedelta(0)))),
        ({"last-modified": at(HOUR), "date": at(timedelta(0))}, Validators()),
        ({"last-modified": at(HOUR), "date": at(timedelta(0)), "etag": '"1"'}, Validators('"1"')),
        ({"last-modified": at(HOUR)}, Validators(None, at(HOUR))),
        ({}, Validators()),
    ],
)
def test_FR36_a_last_modified_after_the_date_is_no_validator(headers: dict[str, str], validators: Validators) -> None:
    assert validators_of(headers) == validators
    assert bool(validators) is (validators != Validators())


# --- freshness --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "lifetime_s"),
    [
        ({"cache-control": "max-age=60, s-maxage=10", "expires": at(HOUR)}, 10),
        ({"cache-control": "max-age=60", "expires": at(HOUR)}, 60),
        ({"cache-control": "public", "expires": at(HOUR)}, 3600),
        ({"expires": at(HOUR)}, 3600),
        ({"expires": at(-HOUR)}, 0),
        ({"cache-control": "s-maxage=0, max-age=60"}, 0),
        ({"cache-control": "max-age=60, no-cache"}, 0),
        ({"cache-control": "max-age=60, no-store"}, 0),
        ({"cache-control": 'max-age=60, no-cache="set-cookie"'}, 60),
        ({"cache-control": "max-age=60, must-revalidate, private"}, 60),
        ({"cache-control": "max-age=31536000, immutable"}, 31_536_000),
    ],
)
def test_H13_the_lifetime_is_that_of_a_shared_cache(headers: dict[str, str], lifetime_s: int) -> None:
    answer = fresh({"date": at(timedelta(0)), **headers})
    assert answer.lifetime == timedelta(seconds=lifetime_s)


@pytest.mark.parametrize(
    ("cache_control", "may_serve_stale"),
    [
        ("max-age=1", True),
        ("max-age=1, private", True),
        ("max-age=1, must-revalidate", False),
        ("max-age=1, proxy-revalidate", False),
        ("s-maxage=1", False),
        ("no-cache", False),
        ("no-store", False),
    ],
)
def test_H13_some_responses_are_never_served_stale(cache_control: str, may_serve_stale: bool) -> None:
    assert fresh({"cache-control": cache_control}).may_serve_stale is may_serve_stale


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("max-age=60", CacheControl(max_age=60)),
        ("MAX-AGE=60, No-Store", CacheControl(max_age=60, no_store=True)),
        ('max-age="60"', CacheControl(max_age=60)),
        ('max-age="6\\0"', CacheControl(max_age=60)),
        (" max-age = 60 ,, no-cache ,", CacheControl(max_age=60, no_cache=True)),
        ("max-age=60\t,\tno-cache", CacheControl(max_age=60, no_cache=True)),
        ("max-age=0", CacheControl(max_age=0)),
        ("max-age=007", CacheControl(max_age=7)),
        ("max-age=2147483649", CacheControl(max_age=MAX_DELTA_S)),
        ("max-age=" + "9" * 500, CacheControl(max_age=MAX_DELTA_S)),
        ("max-age", CacheControl(max_age=0)),
        ("max-age=", CacheControl(max_age=0)),
        ("max-age=x", CacheControl(max_age=0)),
        ('max-age="x"', CacheControl(max_age=0)),
        ("max-age=-1", CacheControl(max_age=0)),
        ("max-age=1.5", CacheControl(max_age=0)),
        ("max-age=+5", CacheControl(max_age=0)),
        ("max-age=٥", CacheControl(max_age=0)),
        ("max-age=60, max-age=5", CacheControl(max_age=60)),
        ("no-store, no-store", CacheControl(no_store=True)),
        ("private", CacheControl(private=True)),
        ('private="x-user"', CacheControl()),
        ('no-cache="a, no-store, b", max-age=5', CacheControl(max_age=5)),
        ("must-revalidate", CacheControl(must_revalidate=True)),
        ("proxy-revalidate", CacheControl(must_revalidate=True)),
        ("s-maxage=5", CacheControl(s_maxage=5, must_revalidate=True)),
        ("stale-if-error=600, stale-while-revalidate=30", CacheControl(stale_if_error=600, stale_while_revalidate=30)),
        ('immutable, ext="a, max-age=9, b", x=y, max-age=60', CacheControl(max_age=60)),
        ("???, max-age=60", CacheControl(max_age=60)),
        ('broken="no end, max-age=60', CacheControl(max_age=60)),
        ("", CacheControl()),
        (",,,", CacheControl()),
    ],
)
def test_H14_cache_control_is_read_directive_by_directive(value: str, expected: CacheControl) -> None:
    assert parse_cache_control(value) == expected


DATES = datetime(1994, 11, 6, 8, 49, 37, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("Sun, 06 Nov 1994 08:49:37 GMT", DATES),
        ("Sunday, 06-Nov-94 08:49:37 GMT", DATES),
        ("Sun Nov  6 08:49:37 1994", DATES),
        ("Sun, 6 Nov 1994 08:49:37 GMT", DATES),
        ("sun, 06 nov 1994 08:49:37 gmt", DATES),
        ("Mon, 06 Nov 1994 08:49:37 GMT", DATES),
        ("Sun, 06 Nov 1994 08:49:37", DATES),
        # Whatever zone is written, an HTTP date is UTC.
        ("Sun, 06 Nov 1994 08:49:37 +0200", DATES),
        ("Tuesday, 05-May-26 10:00:07 GMT", datetime(2026, 5, 5, 10, 0, 7, tzinfo=UTC)),
        ("Thursday, 01-Jan-70 00:00:00 GMT", datetime(1970, 1, 1, tzinfo=UTC)),
        ("Saturday, 31-Dec-99 00:00:00 GMT", datetime(1999, 12, 31, tzinfo=UTC)),
        ("Monday, 01-Jan-68 00:00:00 GMT", datetime(2068, 1, 1, tzinfo=UTC)),
        ("Sat, 31 Dec 2016 23:59:60 GMT", datetime(2016, 12, 31, 23, 59, 59, tzinfo=UTC)),
        ("Fri, 31 Dec 9999 23:59:59 GMT", datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)),
        ("0", None),
        ("-1", None),
        ("", None),
        (None, None),
        ("never", None),
        ("Sun, 32 Nov 1994 08:49:37 GMT", None),
        ("Sun, 06 Foo 1994 08:49:37 GMT", None),
        ("Sun, 06 Nov 1994 24:49:37 GMT", None),
        ("2026-05-05T10:00:07Z", None),
        ("1777975207", None),
        ("Sun, 06 Nov 99999 08:49:37 GMT", None),
        ("Sun, " + "0" * 500, None),
    ],
)
def test_H14_an_http_date_has_three_forms(text: str | None, instant: datetime | None) -> None:
    assert parse_http_date(text) == instant


@given(st.text("MonTueSat, 0123456789:-+.GMT\t/é", max_size=40).map("Mon, ".__add__) | st.text(max_size=70))
def test_H14_no_text_at_all_breaks_the_reading_of_a_date(text: str) -> None:
    instant = parse_http_date(text)
    assert instant is None or instant.tzinfo is UTC


@pytest.mark.parametrize("expires", ["0", "-1", "", "now", "2026-05-05T10:00:07Z", "Thu, 99 Foo 2030 00:00:00 GMT"])
def test_H14_an_invalid_expires_means_expired(expires: str) -> None:
    answer = fresh({"date": at(timedelta(0)), "expires": expires, "last-modified": at(-30 * DAY)})
    assert (answer.lifetime, answer.explicit) == (timedelta(0), True)


@pytest.mark.parametrize(
    ("headers", "delay_s", "age_s"),
    [
        ({"date": at(timedelta(0))}, 0, 0),
        ({"date": at(-timedelta(seconds=30))}, 0, 30),
        ({"date": at(timedelta(seconds=30))}, 0, 0),
        ({"date": at(timedelta(0)), "age": "100"}, 0, 100),
        ({"date": at(timedelta(0)), "age": "100"}, 5, 105),
        ({"date": at(-timedelta(seconds=300)), "age": "100"}, 5, 300),
        ({"date": at(timedelta(0))}, 5, 5),
        ({}, 5, 5),
        ({"age": "100"}, 5, 105),
        ({"age": " 100 "}, 0, 100),
        ({"age": "-1"}, 0, 0),
        ({"age": "1.5"}, 0, 0),
        ({"age": "100, 200"}, 0, 0),
        ({"age": "9" * 30}, 0, MAX_DELTA_S),
    ],
)
def test_H15_age_is_the_larger_of_the_apparent_and_the_stated_one(
    headers: dict[str, str], delay_s: float, age_s: int
) -> None:
    assert fresh(headers, delay_s=delay_s).age == timedelta(seconds=age_s)


@pytest.mark.parametrize(
    ("skew", "distrusted", "age"),
    [
        (-DAY, False, DAY),
        (-DAY - HOUR, True, timedelta(0)),
        (DAY, False, timedelta(0)),
        (DAY + HOUR, True, timedelta(0)),
    ],
)
def test_H15_a_clock_more_than_a_day_off_is_not_believed(skew: timedelta, distrusted: bool, age: timedelta) -> None:
    answer = fresh({"date": at(skew), "cache-control": "max-age=60"})
    assert (answer.date_distrusted, answer.age) == (distrusted, age)


def test_H15_what_is_left_of_the_lifetime_is_counted_from_receipt() -> None:
    answer = fresh({"date": at(-timedelta(seconds=40)), "cache-control": "max-age=100"})
    assert answer.fresh_until(NOW) == NOW + timedelta(seconds=60)
    old = fresh({"date": at(-timedelta(seconds=400)), "cache-control": "max-age=100"})
    assert old.fresh_until(NOW) == NOW


@pytest.mark.parametrize(
    ("modified", "lifetime"),
    [
        (-10 * HOUR, HOUR),
        (-timedelta(minutes=1), timedelta(minutes=5)),
        (-365 * DAY, DAY),
        (timedelta(0), DEFAULT),
        (HOUR, DEFAULT),
        (None, DEFAULT),
    ],
)
def test_H16_without_a_statement_a_tenth_of_the_time_since_the_last_change_counts(
    modified: timedelta | None, lifetime: timedelta
) -> None:
    headers = {"date": at(timedelta(0))}
    if modified is not None:
        headers["last-modified"] = at(modified)
    answer = fresh(headers)
    assert (answer.lifetime, answer.explicit) == (lifetime, False)


@pytest.mark.parametrize(
    ("status", "heuristic"),
    [(code, True) for code in (200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501)]
    + [(code, False) for code in (201, 302, 303, 307, 400, 401, 403, 429, 500, 502, 503, 504)],
)
def test_H16_only_some_statuses_have_a_heuristic_freshness(status: int, heuristic: bool) -> None:
    headers = {"date": at(timedelta(0)), "last-modified": at(-10 * HOUR)}
    assert fresh(headers, status).lifetime == (HOUR if heuristic else timedelta(0))
    assert fresh({**headers, "cache-control": "max-age=7"}, status).lifetime == timedelta(seconds=7)


@pytest.mark.parametrize(
    ("vary", "conditional"),
    [(None, True), ("Accept-Encoding", True), ("*", False), ("Accept, *", False), ("Origin", True)],
)
def test_H18_a_response_that_varies_on_everything_is_never_asked_about(vary: str | None, conditional: bool) -> None:
    assert bool(conditional_headers(Validators('"1"'), vary)) is conditional


@pytest.mark.parametrize(
    ("cache_control", "pragma", "no_cache"),
    [
        (None, "no-cache", True),
        (None, "No-Cache, x", True),
        (None, "x", False),
        (None, None, False),
        ("max-age=60", "no-cache", False),
        ("", "no-cache", False),
    ],
)
def test_H19_pragma_counts_only_without_cache_control(
    cache_control: str | None, pragma: str | None, no_cache: bool
) -> None:
    assert parse_cache_control(cache_control, pragma=pragma).no_cache is no_cache


def test_H19_immutable_and_clear_site_data_change_nothing() -> None:
    plain = {"date": at(timedelta(0)), "cache-control": "max-age=60"}
    assert fresh({**plain, "cache-control": "max-age=60, immutable", "clear-site-data": '"*"'}) == fresh(plain)


@pytest.mark.parametrize("status", [404, 410])
def test_H20_negative_answers_have_a_freshness_of_their_own(status: int) -> None:
    assert fresh({"cache-control": "max-age=600"}, status) == fresh({"cache-control": "max-age=600"})


@pytest.mark.parametrize(
    ("cache_control", "age_s", "usable_s"),
    [
        ("max-age=60, stale-if-error=600", 0, 660),
        ("max-age=60, stale-if-error=600", 50, 610),
        # Counted from the end of the freshness, even where that was over before we got the copy.
        ("max-age=60, stale-if-error=600", 500, 160),
        ("max-age=60, stale-if-error=600", 700, -40),
        ("stale-if-error=0, max-age=60", 0, 60),
        ("max-age=60, stale-if-error=" + "9" * 20, 0, MAX_DELTA_S),
        ("max-age=60", 0, None),
        ("max-age=60, stale-if-error=600, must-revalidate", 0, None),
        ("s-maxage=60, stale-if-error=600", 0, None),
        ("no-cache, stale-if-error=600", 0, None),
    ],
)
def test_H21_a_copy_may_stand_in_for_an_error_as_long_as_it_says(
    cache_control: str, age_s: int, usable_s: int | None
) -> None:
    answer = fresh({"cache-control": cache_control, "age": str(age_s), "date": at(timedelta(0))})
    expected = None if usable_s is None else NOW + timedelta(seconds=usable_s)
    assert answer.usable_on_error_until(NOW) == expected


def test_H22_stale_while_revalidate_leaves_the_lifetime_alone() -> None:
    with_it = fresh({"cache-control": "max-age=60, stale-while-revalidate=600"})
    assert with_it.fresh_until(NOW) == NOW + timedelta(seconds=60)


# --- Retry-After ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120),
        (" 120 ", 120),
        ("0", 0),
        (at(timedelta(seconds=90)), 90),
        ("Tuesday, 05-May-26 12:01:30 GMT", 90),
        ("Tue May  5 12:01:30 2026", 90),
        (at(-HOUR), 0),
        (at(400 * DAY), 86_400),
        ("999999", 86_400),
        ("9" * 400, 86_400),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("٥", None),
        ("", None),
        (None, None),
    ],
)
def test_H23_FR51_retry_after_is_a_number_of_seconds_or_a_date(value: str | None, seconds: int | None) -> None:
    expected = None if seconds is None else timedelta(seconds=seconds)
    assert parse_retry_after(value, date=NOW, ceiling=DAY) == expected


def test_H23_a_date_is_measured_against_the_clock_of_the_server() -> None:
    theirs = NOW - timedelta(hours=5)
    assert parse_retry_after(http_date(theirs + HOUR), date=theirs, ceiling=DAY) == HOUR


# --- a second opinion -------------------------------------------------------------------------------------------------

numbers = st.integers(0, 3_000_000_000)
directives = st.one_of(
    st.sampled_from(["public", "immutable", "no-transform", "must-revalidate", "x-unknown", 'x-list="a, b"']),
    numbers.map("stale-if-error={}".format),
)


@st.composite
def statements(draw: st.DrawFn) -> dict[str, str]:
    """Fields about freshness, each directive at most once: which of two counts is a choice of ours."""
    parts = draw(st.lists(directives, max_size=3, unique_by=lambda text: text.partition("=")[0]))
    for name in ("max-age", "s-maxage"):
        if draw(st.booleans()):
            quoted = draw(st.booleans())
            number = draw(st.integers(0, MAX_DELTA_S - 1))
            parts.append(f'{name}="{number}"' if quoted else f"{name}={number}")
    headers = {"date": at(timedelta(seconds=draw(st.integers(-80_000, 80_000))))}
    if parts:
        separator = draw(st.sampled_from([",", ", ", " , "]))
        headers["cache-control"] = separator.join(draw(st.permutations(parts)))
    stated = any("max" in part for part in parts)
    if not stated or draw(st.booleans()):
        headers["expires"] = draw(
            st.integers(-100_000, 10**8).map(lambda s: at(timedelta(seconds=s))) | st.sampled_from(["0", "-1", "never"])
        )
    return headers


@given(statements())
def test_hishel_computes_the_same_lifetime(headers: dict[str, str]) -> None:
    theirs = get_freshness_lifetime(Response(200, Headers(headers)), is_cache_shared=True)
    assert theirs is not None
    ours = fresh(headers)
    assert ours.explicit
    assert ours.lifetime == timedelta(seconds=max(theirs, 0))


@given(st.integers(-80_000, 80_000))
def test_hishel_computes_the_same_apparent_age(seconds: int) -> None:
    now = datetime.fromtimestamp(int(time.time()), UTC)
    headers = {"date": http_date(now - timedelta(seconds=seconds))}
    ours = freshness(headers, 200, request_at=now, response_at=now, default=DEFAULT).age
    assert abs(get_age(Response(200, Headers(headers))) - ours.total_seconds()) <= 2


FIELDS = ("cache-control", "content-encoding", "content-type", "etag", "expires", "last-modified", "link", "vary")
fields = st.dictionaries(st.sampled_from(FIELDS), st.sampled_from(["a", "b", '"1"']))


@given(fields, fields)
def test_hishel_merges_a_304_the_same_way(stored: dict[str, str], response: dict[str, str]) -> None:
    stored, response = {**stored, "date": at(-DAY)}, {**response, "date": at(timedelta(0)), "content-length": "0"}
    theirs = refresh_response_headers(Response(200, Headers(stored)), Response(304, Headers(response)), True)
    assert update_stored(stored, response) == dict(theirs.headers)
