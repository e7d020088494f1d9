"""Durations and sizes as operators write them: `30s`, `5m`, `7d`, `512KiB`."""

import re
from datetime import timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

_DURATION_PARTS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|[smhdw]))+", re.ASCII)
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhdw])", re.ASCII)
_SIZE_PARTS = {"": 1, "B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "KB": 1000, "MB": 1000**2}
_SIZE = re.compile(r"(\d+)\s*(B|KiB|MiB|GiB|KB|MB)?", re.ASCII)
_LONGEST_D = 366
_LONGEST_AGE_D = 36_500


def parse_duration(value: Any, longest_d: int = _LONGEST_D) -> timedelta:
    """Read a duration; a number without a unit is refused because nobody can tell seconds from minutes."""
    if isinstance(value, timedelta):
        return value
    if not isinstance(value, str) or not _DURATION.fullmatch(value):
        raise ValueError('a duration with its unit, such as "500ms", "30s", "5m", "12h" or "7d"')
    seconds = sum(float(number) * _DURATION_PARTS[unit] for number, unit in _DURATION_PART.findall(value))
    if seconds > longest_d * 86400.0:
        raise ValueError(f"a duration of at most {longest_d}d")
    return timedelta(seconds=seconds)


def parse_age(value: Any) -> timedelta:
    """Read how long something is kept, which may be for ever as people count."""
    return parse_duration(value, _LONGEST_AGE_D)


def format_duration(value: timedelta) -> str:
    """Write a duration in the largest unit that keeps it whole."""
    milliseconds = round(value.total_seconds() * 1000)
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000)):
        if milliseconds and milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms" if milliseconds else "0s"


def parse_size(value: Any) -> int:
    """Read a number of bytes, plain or with a unit."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError('a size in bytes, plain or with a unit, such as 4096, "512KiB" or "1MiB"')
    return int(match[1]) * _SIZE_PARTS[match[2] or ""]


def format_size(value: int) -> str:
    """Write a size in the largest binary unit that keeps it whole."""
    for unit in ("GiB", "MiB", "KiB"):
        if value and value % _SIZE_PARTS[unit] == 0:
            return f"{value // _SIZE_PARTS[unit]}{unit}"
    return str(value)


Duration = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema({"type": "string", "format": "duration"}),
]
Age = Annotated[
    timedelta,
    BeforeValidator(parse_age),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema({"type": "string", "format": "duration"}),
]
Size = Annotated[
    int,
    BeforeValidator(parse_size),
    PlainSerializer(format_size, return_type=str),
    WithJsonSchema({"type": "string", "format": "size"}),
]
