"""What a process counts and measures of itself and of its database: every metric, once, with its help.

No label takes a text of a publisher or the name of an origin: both are without bound.
"""

import asyncio
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from stat import S_ISSOCK

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from index.documents import Outcome

# A sample more for each series, of no use here.
disable_created_metrics()  # type: ignore[no-untyped-call]  # the package has types, this function has none

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
REGISTRY = CollectorRegistry(auto_describe=True)

# --- crawling ---------------------------------------------------------------------------------------------------------

VISITS = Counter(
    "ardvark_visits_total",
    "Visits that ended: done, failed (nothing could be reached), crashed (a fault of ours), broken_off (by a stop).",
    ["outcome"],
    registry=REGISTRY,
)
VISIT_SECONDS = Histogram(
    "ardvark_visit_seconds",
    "Time from the claim of an origin to the commit of its visit, pauses for politeness included.",
    buckets=(0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 900, 3600),
    registry=REGISTRY,
)
FETCHES = Counter("ardvark_fetches_total", "Fetches that ended, by outcome.", ["outcome"], registry=REGISTRY)
FETCH_SECONDS = Histogram(
    "ardvark_fetch_seconds",
    "Time that fetches took from the first request to the end of the answer, without the waits for a turn.",
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
    registry=REGISTRY,
)
REQUESTS = Counter(
    "ardvark_requests_total", "Requests sent to publishers, redirects and second attempts included.", registry=REGISTRY
)
WIRE_BYTES = Counter(
    "ardvark_wire_bytes_total", "Payload received from publishers, as it was transferred.", registry=REGISTRY
)
SAVED_BYTES = Counter(
    "ardvark_saved_bytes_total",
    "Length of the stored bodies that answers of 304 made it needless to transfer.",
    registry=REGISTRY,
)

# --- writing ----------------------------------------------------------------------------------------------------------

WRITER_BATCH_UNITS = Histogram(
    "ardvark_writer_batch_units",
    "Units written in one transaction.",
    buckets=(1, 2, 5, 10, 25, 50, 100, 250, 500),
    registry=REGISTRY,
)
WRITER_COMMIT_SECONDS = Histogram(
    "ardvark_writer_commit_seconds",
    "Time that a transaction of the writer took, waits for an outage to end included.",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60),
    registry=REGISTRY,
)
OWN_LAG_SECONDS = Histogram(
    "ardvark_own_lag_seconds",
    "Our own lag: from the end of an answer to the commit by which search shows what was in it.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600),
    registry=REGISTRY,
)
STORE_AVAILABLE = Gauge(
    "ardvark_store_available",
    "1 while the database answers this process, 0 while work waits for it.",
    registry=REGISTRY,
)

# --- the process ------------------------------------------------------------------------------------------------------

# Memory, processor time, open files, and when the process began.
ProcessCollector(namespace="ardvark", registry=REGISTRY)


def _live_tasks() -> int:
    try:
        return len(asyncio.all_tasks())
    except RuntimeError:  # no loop runs here
        return 0


def _open_sockets() -> int:
    count = 0
    with suppress(OSError), os.scandir("/proc/self/fd") as files:
        for file in files:
            with suppress(OSError):  # the folder's own, closed meanwhile
                count += S_ISSOCK(file.stat().st_mode)
    return count


TASKS = Gauge("ardvark_tasks", "Tasks of the event loop that have not ended.", registry=REGISTRY)
TASKS.set_function(_live_tasks)
OPEN_SOCKETS = Gauge(
    "ardvark_open_sockets",
    "Open sockets: connections to publishers and the database, those of clients, and what listens.",
    registry=REGISTRY,
)
OPEN_SOCKETS.set_function(_open_sockets)
VISITS_UNDER_WAY = Gauge(
    "ardvark_visits_under_way", "Visits that this process has begun and not ended.", registry=REGISTRY
)
LOOP_LAG_SECONDS = Histogram(
    "ardvark_loop_lag_seconds",
    "How late the event loop came to a bell that rings every second.",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
    registry=REGISTRY,
)

# --- answering --------------------------------------------------------------------------------------------------------

API_REQUEST_SECONDS = Histogram(
    "ardvark_api_request_seconds",
    "Time to answer a request, by route and status; `none` stands for paths without a route.",
    ["route", "status"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
    registry=REGISTRY,
)

# Resolving a label costs more than counting, and these are all there are.
FETCHES_BY_OUTCOME = {outcome: FETCHES.labels(str(outcome)) for outcome in Outcome}
VISITS_BY_OUTCOME = {name: VISITS.labels(name) for name in ("done", "failed", "crashed", "broken_off")}

# --- read from the database -------------------------------------------------------------------------------------------

Sample = float | Mapping[str, float]


@dataclass(frozen=True, slots=True)
class StoredGauge:
    """A gauge whose value is read from the database when it is asked for; with a label, a value for each."""

    name: str
    help: str
    label: str = ""


STORED = (
    StoredGauge("ardvark_due_origins", "Origins that are due and that nobody visits yet."),
    StoredGauge("ardvark_oldest_due_age_seconds", "How long the origin that is due longest has been due."),
    StoredGauge("ardvark_claims", "Origins that are claimed by some process."),
    StoredGauge("ardvark_oldest_claim_age_seconds", "How long the oldest claim has been held."),
    StoredGauge("ardvark_origins", "Known origins by state.", "state"),
    StoredGauge("ardvark_listings", "Entries that search knows."),
    StoredGauge("ardvark_open_drift", "Open drifts by class.", "class"),
    StoredGauge("ardvark_open_lag_max_seconds", "Longest time for which a copy goes on showing an old value."),
    StoredGauge("ardvark_open_lag_median_seconds", "Median time for which copies go on showing an old value."),
    StoredGauge("ardvark_snapshots", "Stored bodies."),
    StoredGauge("ardvark_snapshots_bytes", "Size of the stored bodies, compressed."),
    StoredGauge("ardvark_database_size_bytes", "Size of the database; of an embedded one, of its file."),
    StoredGauge("ardvark_last_cursor", "Cursor of the newest event of the change feed."),
)


class _Read(Collector):
    def __init__(self, samples: Mapping[str, Sample]) -> None:
        self._samples = samples

    def collect(self) -> Iterator[Metric]:
        for gauge in STORED:
            sample = self._samples.get(gauge.name)
            if isinstance(sample, Mapping):
                family = GaugeMetricFamily(gauge.name, gauge.help, labels=[gauge.label])
                for label, value in sorted(sample.items()):
                    family.add_metric([label], value)
                yield family
            elif sample is not None:
                yield GaugeMetricFamily(gauge.name, gauge.help, value=sample)


def exposition(stored: Mapping[str, Sample]) -> bytes:
    """Write all metrics as text; those of the database that could not be read are left out."""
    return generate_latest(REGISTRY) + generate_latest(_Read(stored))


def names() -> set[str]:
    """Name every metric as it is written."""
    counted = {f"{metric.name}_total" if metric.type == "counter" else metric.name for metric in REGISTRY.collect()}
    return counted | {gauge.name for gauge in STORED}
