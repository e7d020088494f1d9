"""What fetches cost: counted for the whole process, and for the visit that they are part of."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from index import metrics
from index.documents import Observation, Outcome


@dataclass(slots=True)
class Meter:
    """What the fetches of one visit came to, those of robots.txt included."""

    requests: int = 0
    bytes: int = 0
    not_modified: int = 0


_meter: ContextVar[Meter | None] = ContextVar("meter", default=None)


@contextmanager
def metering() -> Iterator[Meter]:
    """Count the fetches made within."""
    meter = Meter()
    token = _meter.set(meter)
    try:
        yield meter
    finally:
        _meter.reset(token)


def measure(observation: Observation, requests: int, seconds: float) -> None:
    """Count a fetch that has ended; one that was never allowed to ask took no time worth knowing."""
    metrics.FETCHES_BY_OUTCOME[observation.outcome].inc()
    if requests:
        metrics.FETCH_SECONDS.observe(seconds)
        metrics.REQUESTS.inc(requests)
        metrics.WIRE_BYTES.inc(observation.wire_size)
    meter = _meter.get()
    if meter is not None:
        meter.requests += requests
        meter.bytes += observation.wire_size
        meter.not_modified += observation.outcome is Outcome.NOT_MODIFIED
