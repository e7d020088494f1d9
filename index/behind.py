"""How far the time that an entry states for its last update lies behind the last change of its card. Pure.

Such an entry need not be wrong: its words may still be true. It was not looked after when the card was, which is worth
knowing and no drift.
"""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Behind:
    """When the entry says that it was updated, when the card changed at the latest, and how far apart they are."""

    updated_at: datetime
    changed_at: datetime
    at_least_s: float
    at_most_s: float
    basis: str


def behind(
    updated_at: datetime | None,
    *,
    before_at: datetime | None,
    changed_at: datetime,
    last_modified_at: datetime | None,
) -> Behind | None:
    """Measure how far an entry's `updatedAt` lies behind the change that made its card what it is.

    `before_at` is the last sight of the content before, `changed_at` the first of the present one. None when the entry
    states no time, when nothing tells when the card changed, and unless the change surely came later: a catalog that is
    written in the hour of the change is not behind.
    """
    if updated_at is None:
        return None
    if last_modified_at is not None and _is_of_the_change(last_modified_at, before_at, changed_at):
        earliest = latest = last_modified_at
        basis = "last-modified"
    elif before_at is not None:
        earliest, latest, basis = before_at, changed_at, "observed"
    else:
        return None
    at_least_s = (earliest - updated_at).total_seconds()
    if at_least_s <= 0:
        return None
    return Behind(updated_at, latest, at_least_s, (latest - updated_at).total_seconds(), basis)


def _is_of_the_change(modified_at: datetime, before_at: datetime | None, changed_at: datetime) -> bool:
    """Tell a time of the present content from one of another delivery of it, such as a deployment."""
    return modified_at <= changed_at and (before_at is None or before_at <= modified_at)
