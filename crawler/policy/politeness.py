"""How long to pause between two requests to one origin. Pure."""

import math
from dataclasses import dataclass
from datetime import timedelta

_MERCY_LASTS = timedelta(days=1)
_SLOWEST = 16.0


@dataclass(frozen=True, slots=True)
class Pause:
    """The spacing of requests to one origin; `capped` when the publisher asked for more than we honour."""

    spacing: timedelta
    capped: bool = False


@dataclass(frozen=True, slots=True)
class Mercy:
    """How many times slower an origin is asked that answered 429, and until when, in seconds of a steady clock."""

    slowdown: float
    until: float


def after_too_many_requests(before: Mercy | None, now: float, retry_after: timedelta | None = None) -> Mercy:
    """Halve the rate for a day from when we may ask again (RFC 6585 4); said once more meanwhile, halve it again."""
    wait = retry_after or timedelta(0)
    return Mercy(min(slowdown_at(before, now) * 2, _SLOWEST), now + (wait + _MERCY_LASTS).total_seconds())


def slowdown_at(mercy: Mercy | None, now: float) -> float:
    """Give the factor by which pauses are stretched."""
    return 1.0 if mercy is None or now >= mercy.until else mercy.slowdown


def pause_between_requests(
    crawl_delay_s: float | None, *, floor: timedelta, ceiling: timedelta, slowdown: float = 1.0
) -> Pause:
    """Combine our own floor with a Crawl-delay, which is no part of RFC 9309 and may only make us slower.

    Fractions of a second round up. `slowdown` above one stretches the pause of an origin that asked for mercy (429),
    as far as a Crawl-delay would be kept to.
    """
    pause = _pause(crawl_delay_s, floor, ceiling)
    stretched = min(pause.spacing * slowdown, max(ceiling, floor * slowdown))
    return Pause(max(stretched, pause.spacing), pause.capped)


def _pause(crawl_delay_s: float | None, floor: timedelta, ceiling: timedelta) -> Pause:
    if crawl_delay_s is None:
        return Pause(floor)
    asked = timedelta(seconds=min(math.ceil(crawl_delay_s), 366 * 86400))
    if asked > ceiling:
        return Pause(max(ceiling, floor), capped=True)
    # A delay below our floor changes nothing, so its rounding must not either.
    return Pause(floor if crawl_delay_s <= floor.total_seconds() else asked)
