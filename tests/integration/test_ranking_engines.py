"""One answer from two engines: PostgreSQL finds, counts and orders as the embedded database does.

The database on PostgreSQL sorts text as English is sorted, where the server can, for many operators have such ones. The
two meet the entries in different orders, and no answer may show that.
"""

import json
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import HAS_POSTGRES, OpenCrawl
from tests.fakes.clock import FakeClock
from tests.fakes.collection import FACETS, FILTERS, LIST_FILTERS, NEEDS, ORDERS, collection
from tests.fakes.databases import ReusedDatabase
from tests.fakes.exam import Exam
from tests.fakes.harness import crawling, settings_for
from tests.fakes.registry import Registry, serving
from tests.fakes.web import FakeWeb, Site

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
CATALOGS = sorted(path for path in (DATA / "catalogs").glob("*.json") if not path.name.endswith(".cards.json"))
QUERIES = sorted((DATA / "eval").glob("*.jsonl"))
SMALL = 300_000

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.xdist_group("ranking_engines"),
    pytest.mark.skipif(not HAS_POSTGRES, reason="PostgreSQL does not answer on 127.0.0.1:5432"),
]


@dataclass
class Both:
    """The same registry on both engines, each with a clock of its own that shows the same time."""

    sqlite: Registry
    postgres: Registry
    clocks: tuple[FakeClock, FakeClock]

    async def crawl(self, sites: list[Site]) -> None:
        """Have both meet the sites one after the other, the one from the front and the other from the back."""
        for site in sites:
            await self.sqlite.crawl.run(site)
        for site in reversed(sites):
            await self.postgres.crawl.run(site)
        self.check_clocks()

    def check_clocks(self) -> None:
        assert self.clocks[0].now() == self.clocks[1].now()

    def advance(self, **duration: float) -> None:
        for clock in self.clocks:
            clock.advance(**duration)

    async def ask(self, question: Callable[[Registry], Awaitable[Any]], about: object) -> Any:
        """Ask both and give their one answer."""
        answer, other = await question(self.sqlite), await question(self.postgres)
        assert other == answer, about
        for registry in (self.sqlite, self.postgres):
            registry.answers.clear()  # what publishers say may name what we are made of
        return answer


@pytest.fixture(scope="module")
def english_database() -> Iterator[ReusedDatabase]:
    database = ReusedDatabase(f"ardvark_test_{uuid.uuid4().hex[:12]}", language="en-US")
    yield database
    database.drop()


@pytest.fixture
def open_postgres(english_database: ReusedDatabase) -> tuple[OpenCrawl, FakeClock]:
    url, clock = english_database.emptied(), FakeClock()

    def opened(*origins: Any, **sections: Any) -> Any:
        return crawling(settings_for(*origins, url=url, **sections), clock)

    return opened, clock


@pytest.fixture
async def open_both(crawl_sqlite: OpenCrawl, clock: FakeClock, open_postgres: tuple[OpenCrawl, FakeClock]) -> Any:
    """Open a registry of some sites on both engines, with nothing crawled yet."""
    async with AsyncExitStack() as stack:

        async def opened(sites: list[Site], **sections: Any) -> Both:
            def uncrawled(open_crawl: OpenCrawl) -> OpenCrawl:
                return lambda **more: open_crawl(*sites, **more)

            first = await stack.enter_async_context(serving(uncrawled(crawl_sqlite), **sections))
            second = await stack.enter_async_context(serving(uncrawled(open_postgres[0]), **sections))
            return Both(first, second, (clock, open_postgres[1]))

        yield opened


OpenBoth = Callable[..., Awaitable[Both]]


@pytest.fixture
async def both(web: FakeWeb, open_both: OpenBoth) -> Both:
    """The collection in its second edition, an hour after the first."""
    sites = {host: web.site(host) for host in collection()}
    opened = await open_both(list(sites.values()))
    for edition in (1, 2):
        for host, entries in collection(edition).items():
            sites[host].manifest(*entries)
        await opened.crawl(list(sites.values()))
        opened.advance(hours=1)
    return opened


async def test_every_need_is_answered_alike_with_ties_in_the_same_order(both: Both) -> None:
    for text in NEEDS:
        results = await both.ask(lambda registry, text=text: registry.pages(text, 100), text)
        scores = [result["score"] for result in results]
        assert scores == sorted(scores, reverse=True), text
    # These differ in nothing but their identifiers, whose characters decide.
    found = [result for result in await both.sqlite.pages("water high", 100) if "night" not in result["description"]]
    tied = [result["identifier"] for result in found if ":acme.example:" in result["identifier"]]
    assert tied == sorted(tied) != sorted(tied, key=str.lower)
    assert len(tied) > 5


async def test_pages_are_cut_alike_wherever_a_tie_is_cut(both: Both) -> None:
    for text in ("tides", "water high", "rain wind place", "letters", "starts with a sign", "tide-table@example"):
        whole = await both.ask(lambda registry, text=text: registry.pages(text, 100), text)
        for size in (1, 2, 3, 5, 7):
            cut = await both.ask(lambda registry, text=text, size=size: registry.pages(text, size), (text, size))
            assert cut == whole, (text, size)


async def test_filters_leave_the_same_entries_in_the_same_order(both: Both) -> None:
    found = 0
    for text in ("tides", "rain", "zurich trams", "letters", "map", "name of a street file departures tides rain snow"):
        for filter_ in FILTERS:
            results = await both.ask(
                lambda registry, text=text, filter_=filter_: registry.pages(text, 4, filter=filter_), (text, filter_)
            )
            found += len(results)
    assert found > 100


async def test_facets_have_the_same_buckets_in_the_same_order(both: Both) -> None:
    queries: list[dict[str, Any]] = [{"filter": filter_} for filter_ in FILTERS[::2]]
    queries += [{"text": text} for text in NEEDS[::4]]
    queries += [{"text": "tides rain", "filter": filter_} for filter_ in FILTERS[1::2]]
    shapes = ({"limit": 3}, {"limit": 1000}, {"limit": 1}, {"limit": 0}, {"limit": 20, "minCount": 2})
    asked = [({}, shape) for shape in shapes]
    asked += [(query, shapes[number % 2]) for number, query in enumerate(queries)]
    for query, shape in asked:
        fields = [{"field": name, **shape} for name in FACETS]
        await both.ask(lambda registry, query=query, fields=fields: registry.explore(*fields, **query), (query, shape))
    tags = (await both.sqlite.explore({"field": "tags", "limit": 1000}))["tags"]["buckets"]
    assert len({bucket["count"] for bucket in tags}) < len(tags) / 4, "tags have no ties to speak of"


async def test_lists_come_in_the_same_order_under_every_filter_page_by_page(both: Both) -> None:
    asked = [({"orderBy": order} if order else {}, size) for order in ORDERS for size in ("7", "25")]
    asked += [({"filter": expression}, "3") for expression in LIST_FILTERS]
    asked += [({"filter": expression, "orderBy": "displayName DESC"}, "1") for expression in LIST_FILTERS]
    for parameters, size in asked:
        whole = await both.ask(lambda registry, parameters=parameters: _listed(registry, "100", parameters), parameters)
        cut = await both.ask(
            lambda registry, size=size, parameters=parameters: _listed(registry, size, parameters), (size, parameters)
        )
        assert cut == whole, (size, parameters)


async def test_the_common_words_that_are_set_aside_do_not_depend_on_who_came_first(
    web: FakeWeb, open_both: OpenBoth
) -> None:
    """Four words that are equally rare: none of them may count for less than the others."""
    words = ("lantern", "meadow", "copper", "violin")
    sites = [web.site(f"s{number}") for number in range(8)]
    for number, site in enumerate(sites):
        text = f"{words[number % 4]} {' '.join(f'filler{number}{item}' for item in range(2))}"
        site.manifest(entry_of(site, text))
    opened = await open_both(sites)
    await opened.crawl(sites)
    rare = "filler00 filler01"
    for need in (f"{rare} {' '.join(words)}", " ".join(words), f"filler00 filler01 filler10 filler11 {words[0]}"):
        await opened.ask(lambda registry, need=need: registry.pages(need, 100), need)


def entry_of(site: Site, text: str) -> dict[str, Any]:
    return {
        "identifier": f"urn:air:{site.host}:tool:x",
        "displayName": text,
        "type": "application/mcp-server-card+json",
        "url": site.url("/card.json"),
    }


async def _listed(registry: Registry, size: str, parameters: dict[str, str]) -> tuple[list[Any], int]:
    """List to the end and give the items with the total."""
    items: list[Any] = []
    token: dict[str, str] = {}
    while True:
        page = await registry.listing(pageSize=size, **parameters, **token)
        items += page["items"]
        if "pageToken" not in page:
            return items, page["total"]
        token = {"pageToken": page["pageToken"]}


@pytest.mark.timeout(900)
@pytest.mark.skipif(not (CATALOGS and QUERIES), reason=f"REAL CATALOGS OR THEIR QUERIES ARE ABSENT: nothing in {DATA}")
async def test_real_catalogs_are_ranked_alike_for_every_judged_query(
    web: FakeWeb, open_both: OpenBoth, exam: Exam
) -> None:
    """Eight thousand entries as published, two thousand queries; in short the smaller catalogs and fewer queries."""
    files = [file for file in CATALOGS if exam.long or file.stat().st_size < SMALL]
    sites = [web.site(file.stem.lower().replace("_", "-")) for file in files]
    for file, site in zip(files, sites, strict=True):
        site.page("/.well-known/ard.json", file.read_bytes(), headers={"Content-Type": "application/json"})
    opened = await open_both(sites, limits={"manifest_size": "8MiB"})
    await opened.crawl(sites)
    ranks: dict[str, list[float]] = {}
    for file in QUERIES:
        judged = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
        for item in judged if exam.long else judged[:: 1 + len(judged) // 100]:
            text = item["query"]
            answer = await opened.ask(lambda registry, text=text: _first_hundred(registry, text), text)
            found = [rank for rank, (name, *_) in enumerate(answer[:10], 1) if name in item["relevant"]]
            ranks.setdefault(f"{file.stem}, {item['kind']}", []).append(1 / found[0] if found else 0.0)
            facets = [{"field": name, "limit": 30} for name in ("type", "publisher", "tags")]
            await opened.ask(lambda registry, text=text, facets=facets: registry.explore(*facets, text=text), text)
    for kind, values in ranks.items() if exam.long else ():
        exam.say(
            f"ranking, {kind}: {len(values)} queries alike on both engines, MRR@10 {sum(values) / len(values):.3f}"
        )


async def _first_hundred(registry: Registry, text: str) -> list[tuple[Any, ...]]:
    results = (await registry.search(text, pageSize=100))["results"]
    return [(result["identifier"], result["score"], result["displayName"]) for result in results]
