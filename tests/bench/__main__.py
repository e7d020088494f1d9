"""`make bench`: what Ardvark costs and what its visits bring, as ratios against something measured in the same run."""

import sys

from tests.bench.crawl import bench_crawl
from tests.bench.freshness import bench_freshness
from tests.bench.queue import bench_queue
from tests.bench.relevance import bench_relevance
from tests.bench.search import bench_search
from tests.bench.steady import bench_steady

_BENCHES = {
    "crawl": bench_crawl,
    "queue": bench_queue,
    "search": bench_search,
    "relevance": bench_relevance,
    "freshness": bench_freshness,
    "steady": bench_steady,
}


def main() -> None:
    """Run the benchmarks named, or all but the long one, which is part of `make exam`."""
    for name in sys.argv[1:] or [name for name in _BENCHES if name != "steady"]:
        _BENCHES[name]()


if __name__ == "__main__":
    main()
