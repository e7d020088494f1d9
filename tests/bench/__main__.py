"""`make bench`: what Ardvark costs and what its visits bring, as ratios against something measured in the same run."""

import sys

from tests.bench.crawl import bench_crawl
from tests.bench.freshness import bench_freshness
from tests.bench.search import bench_search

_BENCHES = {"crawl": bench_crawl, "search": bench_search, "freshness": bench_freshness}


def main() -> None:
    """Run all benchmarks, or those named."""
    for name in sys.argv[1:] or _BENCHES:
        _BENCHES[name]()


if __name__ == "__main__":
    main()
