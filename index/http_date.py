"""Dates in HTTP fields. Pure."""

import re
from datetime import UTC, datetime
from email.utils import parsedate_tz


def parse_http_date(text: str | None) -> datetime | None:
    """Read an HTTP date in any of its three forms, always as UTC (RFC 9110 5.6.7); None when it is none.

    A year of two digits is one from 1969 to 2068.
    """
    if text is None or len(text) > 64 or not re.match(r"[A-Za-z]{3,9},? ", text):
        return None
    parts = parsedate_tz(text)
    if parts is None:
        return None
    try:
        return datetime(*parts[:5], min(parts[5], 59), tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
