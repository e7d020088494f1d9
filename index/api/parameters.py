"""Query parameters and parts of paths: each is known, given once and well formed, or the answer is a 400."""

import re
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from urllib.parse import unquote_to_bytes

from aiohttp import web

from index.query import LONGEST_PARAMETER, MAX_PAGE_SIZE, InvalidArgument, parse_page_size
from index.store.tables import storable

_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
# RFC 3339 5.6; a plus sign that was not encoded arrives as a space.
_INSTANT = re.compile(
    r"([0-9]{4})-([0-9]{2}-[0-9]{2})[Tt]([0-9]{2}:[0-9]{2}):([0-9]{2})(\.[0-9]{1,50})?([Zz]|[+ -][0-9]{2}:[0-9]{2})"
)
_LONGEST_CURSOR = 18
_MICROSECONDS = 7
_FIRST, _LAST = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)


def read_parameters(request: web.Request, known: Collection[str]) -> Mapping[str, str]:
    """Give the query parameters; raises InvalidArgument for one that is unknown or given twice."""
    query = request.query
    unknown = sorted(set(query) - set(known))
    if unknown:
        raise InvalidArgument(f"'{unknown[0][:40]}' is not a parameter of this resource")
    repeated = [name for name in query if len(query.getall(name)) > 1]
    if repeated:
        raise InvalidArgument(f"{repeated[0]} must be given once")
    return query


def page_size(query: Mapping[str, str], default: int, most: int = MAX_PAGE_SIZE) -> int:
    """Read the size of a page, which has two names; the smaller counts where both are given."""
    given = [name for name in ("limit", "pageSize") if name in query]
    return min((parse_page_size(query[name], most, name, most) for name in given), default=default)


def one_of(query: Mapping[str, str], name: str, values: Collection[str]) -> str | None:
    """Read a parameter with a closed set of values."""
    value = query.get(name)
    if value is not None and value not in values:
        raise InvalidArgument(f"{name} must be one of {', '.join(values)}")
    return value


def text(query: Mapping[str, str], name: str) -> str | None:
    """Read a text to compare with stored ones."""
    value = query.get(name)
    if value is not None and len(value) > LONGEST_PARAMETER:
        raise InvalidArgument(f"{name} must have at most {LONGEST_PARAMETER} characters")
    return None if value is None else storable(value)


def cursor(query: Mapping[str, str], name: str) -> int | None:
    """Read a cursor of the change feed."""
    value = query.get(name)
    if value is None:
        return None
    if not re.fullmatch(rf"[0-9]{{1,{_LONGEST_CURSOR}}}", value, re.ASCII):
        raise InvalidArgument(f"{name} must be a cursor, a whole number")
    return int(value)


def instant(query: Mapping[str, str], name: str) -> datetime | None:
    """Read a time (RFC 3339); one that lies outside of the calendar counts as its beginning or end."""
    value = query.get(name)
    if value is None:
        return None
    match = _INSTANT.fullmatch(value)
    if match is None:
        raise InvalidArgument(f"{name} must be a time such as 2026-01-31T12:00:00Z")
    year, day, time, second, fraction, offset = match.groups()
    if year == "0000":
        return _FIRST
    # A leap second counts as the one before it.
    second = "59" if second == "60" else second
    written = f"{year}-{day}T{time}:{second}{(fraction or '')[:_MICROSECONDS]}{offset.upper().replace(' ', '+')}"
    try:
        return datetime.fromisoformat(written).astimezone(UTC)
    except OverflowError:
        return _FIRST if year == "0001" else _LAST
    except ValueError:
        raise InvalidArgument(f"{name} must be a time such as 2026-01-31T12:00:00Z") from None


def decoded_once(raw: str, what: str) -> str:
    """Decode a part of a raw path exactly once."""
    if _BAD_ESCAPE.search(raw):
        raise InvalidArgument(f"the {what} is not percent-encoded correctly")
    try:
        return unquote_to_bytes(raw).decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidArgument(f"the {what} is not percent-encoded UTF-8") from None
