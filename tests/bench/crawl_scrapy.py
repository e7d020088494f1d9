"""Scrapy as the third client of the crawl bench, run in a process of its own."""

import json
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import scrapy
from scrapy import signals
from scrapy.crawler import CrawlerProcess
from scrapy.http import Response
from scrapy.resolver import CachingThreadedResolver
from twisted.internet import defer

from tests.bench.visits import AT_A_TIME, ENTRIES, MANIFEST, ORIGINS, ROBOTS, Job, conditions, read_job

_SETTINGS = {
    # Of Scrapy's advice on broad crawls what saves it work here; uvloop was the cheapest of its reactors.
    "ASYNCIO_EVENT_LOOP": "uvloop.Loop",
    "COOKIES_ENABLED": False,
    "RETRY_ENABLED": False,
    "REDIRECT_ENABLED": False,
    "LOG_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "CONCURRENT_REQUESTS": AT_A_TIME,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
    "DOWNLOAD_DELAY": 0,
    "ROBOTSTXT_OBEY": True,
    "USER_AGENT": "bench",
    # What is not there is an answer like any other.
    "HTTPERROR_ALLOW_ALL": True,
    "DOWNLOAD_VERIFY_CERTIFICATES": True,
    "DNS_RESOLVER": "tests.bench.crawl_scrapy.Loopback",
}


class Loopback(CachingThreadedResolver):
    """Every name is this machine."""

    def getHostByName(self, name: str, timeout: Any = ()) -> Any:
        return defer.succeed("127.0.0.1")


class Visits(scrapy.Spider):
    """Makes the requests of a visit one after the other; robots.txt is asked for by Scrapy's own middleware."""

    name = "visits"

    def __init__(self, job: Job) -> None:
        super().__init__()
        self.job, self.origins = job, job.origins
        self.paths = [path for path in job.paths if path != ROBOTS]
        self.entries = 0
        self.measured: dict[str, float] = {}

    @classmethod
    def from_crawler(cls, crawler: Any, *args: Any, **kwargs: Any) -> Any:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.begin, signals.spider_opened)
        crawler.signals.connect(spider.end, signals.spider_idle)
        return spider

    def begin(self) -> None:
        self._began, self._cpu = time.perf_counter(), time.process_time()

    def end(self) -> None:
        seconds, cpu_s = time.perf_counter() - self._began, time.process_time() - self._cpu
        self.measured = {"seconds": seconds, "cpu_s": cpu_s}

    async def start(self) -> AsyncIterator[Any]:
        for number in range(len(self.origins)):
            yield self._request(number, 0)

    def _request(self, number: int, step: int) -> scrapy.Request:
        path = self.paths[step]
        return scrapy.Request(
            self.origins[number] + path,
            headers=conditions(self.job, number, path),
            cb_kwargs={"number": number, "step": step},
            dont_filter=True,
        )

    def parse(self, response: Response, number: int, step: int) -> Iterator[Any]:
        if self.paths[step] == MANIFEST and response.status == 200:
            self.entries += len(response.json()["entries"])
        if step + 1 < len(self.paths):
            yield self._request(number, step + 1)


def _main(job: Job) -> None:
    # Scrapy has no setting for an authority; OpenSSL does.
    os.environ["SSL_CERT_FILE"] = job.authority
    process = CrawlerProcess(_SETTINGS)
    crawler = process.create_crawler(Visits)
    process.crawl(crawler, job=job)
    process.start()
    assert isinstance(crawler.spider, Visits)
    assert crawler.spider.entries == (0 if job.crawl == "304" else ORIGINS * ENTRIES), "not every manifest was read"
    print(json.dumps(crawler.spider.measured))


if __name__ == "__main__":
    _main(read_job(sys.argv[1]))
