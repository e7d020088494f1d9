"""`make bench`: what Ardvark costs, as ratios against something bare that is measured in the same run."""

import sys

from tests.bench.crawl import bench_crawl
from tests.bench.search import bench_search

_BENCHES = {"crawl": bench_crawl, "search": bench_search}


def main() -> None:
    """Run all benchmarks, or those named."""
    for name in sys.argv[1:] or _BENCHES:
        _BENCHES[name]()


if __name__ == "__main__":
    main()
