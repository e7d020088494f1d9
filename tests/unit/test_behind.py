"""How far an entry's `updatedAt` lies behind the change of its card (protocol row: freshness)."""

from datetime import UTC, datetime, timedelta

import pytest

from index.behind import behind

NOON = datetime(2026, 5, 5, 12, tzinfo=UTC)
HOUR = 3600.0


def at(hours: float) -> datetime:
    return NOON + timedelta(hours=hours)


@pytest.mark.parametrize(
    ("updated", "before", "changed", "modified", "expected"),
    [
        pytest.param(-5, None, 0, -2, (3 * HOUR, 3 * HOUR, "last-modified"), id="the time of the file"),
        pytest.param(-5, -2, 0, None, (3 * HOUR, 5 * HOUR, "observed"), id="between two looks"),
        pytest.param(-5, -2, 0, -1, (4 * HOUR, 4 * HOUR, "last-modified"), id="the file tells when between them"),
        pytest.param(-5, -2, 0, 1, (3 * HOUR, 5 * HOUR, "observed"), id="delivered anew without a change"),
        pytest.param(-5, -2, 0, -4, (3 * HOUR, 5 * HOUR, "observed"), id="an older time that a copy has kept"),
        pytest.param(-5, None, 0, 1, None, id="only delivered anew"),
        pytest.param(-5, None, 0, None, None, id="nothing tells when it changed"),
        pytest.param(-1, -2, 0, None, None, id="written while it changed"),
        pytest.param(1, -2, 0, None, None, id="written after the change"),
        pytest.param(-2, None, 0, -2, None, id="at the same moment"),
        pytest.param(None, -2, 0, -1, None, id="no time stated"),
    ],
)
def test_the_lag_of_an_entry_is_bounded_by_what_tells_when_its_card_changed(
    updated: float | None, before: float | None, changed: float, modified: float | None, expected: object
) -> None:
    found = behind(
        None if updated is None else at(updated),
        before_at=None if before is None else at(before),
        changed_at=at(changed),
        last_modified_at=None if modified is None else at(modified),
    )
    assert (None if found is None else (found.at_least_s, found.at_most_s, found.basis)) == expected
