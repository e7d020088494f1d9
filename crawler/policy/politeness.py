"""How long to pause between two requests to one origin. Pure."""

import math
from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Pause:
    """The spacing of requests to one origin; `capped` when the publisher asked for more than we honour."""

    spacing: timedelta
    capped: bool = False


def pause_between_requests(
    crawl_delay_s: float | None, *, floor: timedelta, ceiling: timedelta, slowdown: float = 1.0
) -> Pause:
    """Combine our own floor with a Crawl-delay, which is no part of RFC 9309 and may only make us slower.

    Fractions of a second round up. `slowdown` above one stretches the pause of an origin that asked for mercy (429).
    """
    spacing = floor * slowdown
    if crawl_delay_s is None:
        return Pause(spacing)
    asked = timedelta(seconds=min(math.ceil(crawl_delay_s), 366 * 86400))
    if asked > ceiling:
        return Pause(max(ceiling, spacing), capped=True)
    # A delay below our floor changes nothing, so its rounding must not either.
    return Pause(spacing if crawl_delay_s <= spacing.total_seconds() else asked)
