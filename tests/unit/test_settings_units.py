"""Durations and sizes as operators write them."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.units import format_duration, format_size, parse_age, parse_duration, parse_size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("500ms", 0.5),
        ("0s", 0),
        ("30s", 30),
        ("1.5s", 1.5),
        ("5m", 300),
        ("12h", 43_200),
        ("7d", 604_800),
        ("2w", 1_209_600),
        ("1h30m", 5400),
        ("366d", 366 * 86_400),
    ],
)
def test_a_duration_is_a_number_with_its_unit(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "value",
    ["30", 30, 1.5, "", "s", "5 m", "-5m", "5M", "5y", "5m!", "٥m", "5m\n", "1h 30m", True, None, ["5m"]],
)
def test_a_duration_without_a_clear_unit_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match='with its unit, such as "500ms"'):
        parse_duration(value)


@pytest.mark.parametrize("text", ["367d", "9" * 300 + "d", "53w"])
def test_a_duration_of_more_than_a_year_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="at most 366d"):
        parse_duration(text)


@given(st.integers(0, 366 * 86_400_000))
def test_a_written_duration_reads_back_the_same(milliseconds: int) -> None:
    duration = timedelta(milliseconds=milliseconds)
    assert parse_duration(format_duration(duration)) == duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (0.25, "250ms"), (90, "90s"), (60, "1m"), (5400, "90m"), (86_400, "1d"), (604_800, "7d")],
)
def test_a_duration_is_written_in_the_largest_unit_that_keeps_it_whole(seconds: float, text: str) -> None:
    assert format_duration(timedelta(seconds=seconds)) == text


@pytest.mark.parametrize(
    ("value", "size"),
    [
        (0, 0),
        (4096, 4096),
        ("4096", 4096),
        ("1B", 1),
        ("512KiB", 524_288),
        ("512 KiB", 524_288),
        ("1MiB", 1_048_576),
        ("2GiB", 2 * 1024**3),
        ("5KB", 5000),
        ("5MB", 5_000_000),
    ],
)
def test_a_size_is_a_number_of_bytes_plain_or_with_its_unit(value: object, size: int) -> None:
    assert parse_size(value) == size


@pytest.mark.parametrize("value", [-1, 1.5, True, None, "", "1.5MiB", "-1", "1TiB", "1kib", "1M", "٤KiB", "KiB", [1]])
def test_anything_else_is_no_size(value: object) -> None:
    with pytest.raises(ValueError, match="a size in bytes"):
        parse_size(value)


@given(st.integers(0, 2**40))
def test_a_written_size_reads_back_the_same(size: int) -> None:
    assert parse_size(format_size(size)) == size


def test_an_age_may_be_far_longer_than_any_wait() -> None:
    assert parse_age("20000d") == timedelta(days=20_000)
    with pytest.raises(ValueError, match="at most 36500d"):
        parse_age("40000d")
