"""HTTP caching as a revalidating crawler needs it: validators, freshness, what a 304 updates. Pure.

The rules are those of a shared cache (RFC 9111), for what we fetch we serve on. Sections stand beside their rule.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache

from index.http_date import parse_http_date

MAX_DELTA_S = 2**31  # RFC 9111 1.2.2: a larger number means this one
_HEURISTIC_STATUS = frozenset({200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501})  # RFC 9110 15.1
_HEURISTIC_FLOOR = timedelta(minutes=5)
_HEURISTIC_CEILING = timedelta(hours=24)
_CREDIBLE_SKEW = timedelta(days=1)
_LONGEST = timedelta(seconds=MAX_DELTA_S)
_STORED = (
    "age", "cache-control", "content-encoding", "content-language", "content-type", "date", "etag", "expires",
    "last-modified", "link", "pragma", "vary",
)  # fmt: skip
# RFC 9111 3.2: what describes the stored body itself is not replaced by a 304.
_NOT_UPDATED = frozenset({"content-length", "content-encoding", "content-type", "content-range"})
_ETAG = re.compile(r'(W/)?"([\x21\x23-\x7e\x80-\xff]*)"')
_DIRECTIVE = re.compile(r'\s*([!#$%&\'*+.^_`|~0-9A-Za-z-]+)(?:\s*=\s*("(?:[^"\\]|\\.)*"|[^\s,"]*))?\s*(?:,|$)')

Headers = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ETag:
    """An entity tag: its raw field value, which is what we send back, and how it compares (RFC 9110 8.8.3)."""

    raw: str
    opaque: str
    weak: bool
    well_formed: bool


def parse_etag(raw: str) -> ETag:
    """Read an entity tag; a malformed one keeps its raw value and counts as weak."""
    match = _ETAG.fullmatch(raw.strip(" \t"))
    if match is None:
        return ETag(raw, raw, weak=True, well_formed=False)
    return ETag(raw, match[2], weak=match[1] is not None, well_formed=True)


def strong_equal(first: ETag, second: ETag) -> bool:
    """Compare strongly: neither is weak and they are identical (RFC 9110 8.8.3.2)."""
    return not first.weak and not second.weak and first.opaque == second.opaque


def weak_equal(first: ETag, second: ETag) -> bool:
    """Compare weakly: the opaque parts are identical (RFC 9110 8.8.3.2)."""
    return first.opaque == second.opaque


@dataclass(frozen=True, slots=True)
class CacheControl:
    """The directives of a response that matter to us; lifetimes in seconds (RFC 9111 5.2.2)."""

    max_age: int | None = None
    s_maxage: int | None = None
    no_store: bool = False
    no_cache: bool = False
    private: bool = False
    must_revalidate: bool = False
    stale_if_error: int | None = None
    stale_while_revalidate: int | None = None


@lru_cache(maxsize=1024)
def parse_cache_control(value: str | None, *, pragma: str | None = None) -> CacheControl:
    """Read Cache-Control; without it `Pragma: no-cache` counts (RFC 9111 5.4).

    Names fold, values may be quoted, unknown directives are ignored. Of a repeated number the first counts, of a flag
    any. An invalid number means zero: stale at once (RFC 9111 4.2.1). Qualified `private` and `no-cache` name single
    fields that we don't serve, so only the unqualified forms matter.
    """
    if value is None:
        return CacheControl(no_cache="no-cache" in (pragma or "").lower())
    found: dict[str, str | None] = {}
    position = 0
    while position < len(value):
        match = _DIRECTIVE.match(value, position)
        if match is None:
            comma = value.find(",", position)
            position = len(value) if comma < 0 else comma + 1
            continue
        position = match.end()
        argument = match[2]
        if argument is not None and argument.startswith('"'):
            argument = re.sub(r"\\(.)", r"\1", argument[1:-1])
        found.setdefault(match[1].lower(), argument)
    return CacheControl(
        max_age=_delta(found, "max-age"),
        s_maxage=_delta(found, "s-maxage"),
        no_store="no-store" in found,
        no_cache="no-cache" in found and not found["no-cache"],
        private="private" in found and not found["private"],
        must_revalidate="must-revalidate" in found or "proxy-revalidate" in found or "s-maxage" in found,
        stale_if_error=_delta(found, "stale-if-error"),
        stale_while_revalidate=_delta(found, "stale-while-revalidate"),
    )


def _delta(found: Mapping[str, str | None], name: str) -> int | None:
    if name not in found:
        return None
    return _seconds(found[name] or "") or 0


def _seconds(text: str) -> int | None:
    """Read delta-seconds; None when the text is none (RFC 9111 1.2.2)."""
    if not re.fullmatch(r"[0-9]+", text, re.ASCII):
        return None
    return MAX_DELTA_S if len(text) > 10 else min(int(text), MAX_DELTA_S)


def stored_headers(headers: Headers) -> dict[str, str]:
    """Pick the response fields that later decisions need; names are lower case, values raw."""
    return {name: headers[name] for name in _STORED if name in headers}


@dataclass(frozen=True, slots=True)
class Freshness:
    """How long a response may be reused without asking, and whether it may be used when it is stale."""

    lifetime: timedelta
    age: timedelta
    explicit: bool
    may_serve_stale: bool
    stale_if_error: timedelta | None = None
    date_distrusted: bool = False

    def fresh_until(self, response_at: datetime) -> datetime:
        """Give the instant at which the response, received at `response_at`, turns stale."""
        return response_at + max(self.lifetime - self.age, timedelta(0))

    def usable_on_error_until(self, response_at: datetime) -> datetime | None:
        """Give the end of the time in which a failed revalidation may be answered from the copy (RFC 5861 4)."""
        if self.stale_if_error is None or not self.may_serve_stale:
            return None
        return response_at + min(self.lifetime - self.age + self.stale_if_error, _LONGEST)


def freshness(
    headers: Headers, status: int, *, request_at: datetime, response_at: datetime, default: timedelta
) -> Freshness:
    """Compute lifetime and age of a response just received (RFC 9111 4.2).

    `default` is the lifetime where nothing is stated and no heuristic applies.
    """
    control = parse_cache_control(headers.get("cache-control"), pragma=headers.get("pragma"))
    date, distrusted = _credible_date(headers, response_at)
    lifetime, explicit = _lifetime(headers, status, control, date, default)
    if control.no_cache or control.no_store:
        lifetime = timedelta(0)
    return Freshness(
        lifetime=lifetime,
        age=_age(headers, date, request_at, response_at),
        explicit=explicit,
        may_serve_stale=not (control.must_revalidate or control.no_cache or control.no_store),
        stale_if_error=None if control.stale_if_error is None else timedelta(seconds=control.stale_if_error),
        date_distrusted=distrusted,
    )


def _credible_date(headers: Headers, response_at: datetime) -> tuple[datetime, bool]:
    """Use the origin's Date unless its clock is more than a day away from ours."""
    date = parse_http_date(headers.get("date"))
    if date is None:
        return response_at, False
    if abs(date - response_at) > _CREDIBLE_SKEW:
        return response_at, True
    return date, False


def _lifetime(
    headers: Headers, status: int, control: CacheControl, date: datetime, default: timedelta
) -> tuple[timedelta, bool]:
    for seconds in (control.s_maxage, control.max_age):
        if seconds is not None:
            return timedelta(seconds=seconds), True
    if "expires" in headers:
        expires = parse_http_date(headers["expires"])
        return (timedelta(0) if expires is None else max(expires - date, timedelta(0))), True
    if status not in _HEURISTIC_STATUS:
        return timedelta(0), False
    modified = parse_http_date(headers.get("last-modified"))
    if modified is None or modified >= date:
        return default, False
    return min(max((date - modified) / 10, _HEURISTIC_FLOOR), _HEURISTIC_CEILING), False  # RFC 9111 4.2.2


def _age(headers: Headers, date: datetime, request_at: datetime, response_at: datetime) -> timedelta:
    """Compute the corrected initial age (RFC 9111 4.2.3)."""
    apparent = max(response_at - date, timedelta(0))
    stated = _seconds(headers.get("age", "").strip()) or 0
    return max(apparent, timedelta(seconds=stated) + (response_at - request_at))


@dataclass(frozen=True, slots=True)
class Validators:
    """What we hold to ask "still the same?": raw field values, sent back byte for byte (RFC 9110 13.1)."""

    etag: str | None = None
    last_modified: str | None = None

    def __bool__(self) -> bool:
        return self.etag is not None or self.last_modified is not None


def validators_of(headers: Headers) -> Validators:
    """Take the validators of a 200; what it does not have is cleared (RFC 9111 4.3.4).

    A Last-Modified later than Date is no validator: the content can change with the date standing still
    (RFC 9110 8.8.2.1).
    """
    modified = parse_http_date(headers.get("last-modified"))
    date = parse_http_date(headers.get("date"))
    future = modified is not None and date is not None and modified > date
    return Validators(headers.get("etag"), None if future else headers.get("last-modified"))


def conditional_headers(validators: Validators, vary: str | None = None) -> dict[str, str]:
    """Write the conditions of a revalidation; none when the stored response can match no request (`Vary: *`)."""
    if vary is not None and "*" in vary:
        return {}
    conditions = {}
    if validators.etag is not None:
        conditions["If-None-Match"] = validators.etag
    if validators.last_modified is not None:
        conditions["If-Modified-Since"] = validators.last_modified
    return conditions


class Verdict(StrEnum):
    """What to make of a 304."""

    CONFIRMED = "confirmed"
    UNEXPECTED = "unexpected"
    INCONSISTENT = "inconsistent"


def judge_not_modified(sent: Mapping[str, str], stored: Headers, response: Headers, *, have_body: bool) -> Verdict:
    """Decide whether a 304 confirms the stored response (RFC 9111 4.3.3, 4.3.4).

    `unexpected`: no condition was sent or nothing is stored, so there is nothing it could confirm. `inconsistent`: it
    carries a validator that contradicts the stored one.
    """
    if not sent or not have_body:
        return Verdict.UNEXPECTED
    new, old = response.get("etag"), stored.get("etag")
    if new is not None:
        if old is None or not weak_equal(parse_etag(new), parse_etag(old)):
            return Verdict.INCONSISTENT
        return Verdict.CONFIRMED
    modified = response.get("last-modified")
    if modified is not None and stored.get("last-modified") not in (None, modified):
        return Verdict.INCONSISTENT
    return Verdict.CONFIRMED


def update_stored(stored: Headers, response: Headers) -> dict[str, str]:
    """Merge the fields of a 304 into those stored; fields it lacks stay (RFC 9111 3.2)."""
    listed = {name.strip().lower() for name in response.get("connection", "").split(",")}
    fresh = {
        name: value
        for name, value in stored_headers(response).items()
        if name not in _NOT_UPDATED and name not in listed
    }
    # The stored age and date were those of the earlier response; a missing Date is the time of receipt.
    kept = {name: value for name, value in stored.items() if name not in ("age", "date")}
    return {**kept, **fresh}


def parse_retry_after(value: str | None, *, date: datetime, ceiling: timedelta) -> timedelta | None:
    """Read Retry-After as seconds or as a date measured against the response's Date (RFC 9110 10.2.3).

    A past date is zero, a huge value the ceiling, an unreadable one None.
    """
    if value is None:
        return None
    text = value.strip()
    if re.fullmatch(r"[0-9]+", text, re.ASCII):
        return ceiling if len(text) > 9 else min(timedelta(seconds=int(text)), ceiling)
    instant = parse_http_date(text)
    return None if instant is None else min(max(instant - date, timedelta(0)), ceiling)
