"""A crawl under test: real client, real database, the fake web, and a clock to move."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from config.loading import load_settings
from config.settings import Settings
from crawler.assembly import make_client
from crawler.clock import Clock
from crawler.crawl import CrawlSummary, crawl_once
from crawler.worker import Crew
from index.query import constraints, parse_search
from index.store import search as store
from index.store.changes import Change, read_changes
from index.store.database import Database
from index.store.frontier import managed_origins
from index.store.inspect import StoredRow, documents_of, entries_not_listed, leads_of
from index.store.writer import Tally, Writer
from tests.fakes.clock import FakeClock
from tests.fakes.web import FakeWeb, Site

LOOPBACK: dict[str, Any] = {
    "network": {
        "allow_http": True,
        "allow_private": ["127.0.0.0/8"],
        "hosts": {"*.example": "127.0.0.1"},
        "connect_timeout": "2s",
        "header_timeout": "2s",
        "total_timeout": "3s",
    },
    "politeness": {"min_delay": "0s", "contact_url": "https://registry.example/crawler"},
}


ALL_SURFACES = ("ard", "a2a", "mcp", "madp")


def settings_for(
    *origins: Site | str | dict[str, Any], url: str = "", surfaces: Sequence[str] = ("ard",), **sections: Any
) -> Settings:
    """Settings that reach the fake web; sections are merged over the defaults of the tests.

    Tests about manifests look for nothing else, so that they can count every request.
    """
    merged: dict[str, Any] = {name: dict(values) for name, values in LOOPBACK.items()}
    if url:
        merged["storage"] = {"url": url}
    for name, values in sections.items():
        merged[name] = {**merged.get(name, {}), **values} if isinstance(values, dict) else values
    merged["origins"] = [
        item
        if isinstance(item, dict)
        else {"origin": item.origin if isinstance(item, Site) else item, "surfaces": list(surfaces)}
        for item in origins
    ]
    return load_settings(overrides=merged)


@dataclass
class Crawl:
    """One process that crawls the fake web."""

    settings: Settings
    clock: Clock
    database: Database
    writer: Writer
    crew: Crew
    summaries: list[CrawlSummary] = field(default_factory=list)

    async def run(self, *origins: Site | str) -> CrawlSummary:
        """Crawl once, all origins or the named ones; the summary counts this crawl alone."""
        names = [item.origin if isinstance(item, Site) else item for item in origins]
        self.writer.tally = Tally()
        wanted = names or list(await self.database.read(managed_origins, "config"))
        summary = await crawl_once(self.crew, wanted, self.writer.tally, visits=20)
        self.summaries.append(summary)
        return summary

    async def identifiers(self) -> list[str]:
        """All listed identifiers, sorted."""
        page = await self.database.read(store.list_entries, (), store_orders(), 1000, None)
        return [projection_identifier(text) for text in page.projections]

    async def entry(self, identifier: str) -> str | None:
        """The entry as Retrieve serves it."""
        stored = await self.database.read(store.retrieve, identifier)
        return None if stored is None else stored.entry

    async def search(self, text: str, **filters: Any) -> list[store.Hit]:
        request = parse_search({"query": {"text": text, "filter": filters}})
        question = store.Question(request.query.text, constraints(request.query), 2)
        page = await self.database.read(store.search, question, 50, None)
        return page.hits

    async def changes(self, after: int = 0) -> list[Change]:
        return await self.database.read(read_changes, after, 10_000)

    async def documents(self, origin: Site | str) -> dict[str, StoredRow]:
        """The watched documents of an origin by path."""
        name = origin.origin if isinstance(origin, Site) else origin
        rows = await self.database.read(documents_of, name)
        return {row.url.removeprefix(name) if row.url.startswith(name + "/") else row.url: row for row in rows}

    async def not_listed(self, origin: Site) -> list[StoredRow]:
        return list(await self.database.read(entries_not_listed, origin.origin))

    async def leads(self, origin: Site) -> list[StoredRow]:
        return list(await self.database.read(leads_of, origin.origin))


def store_orders() -> Any:
    from index.query import parse_list_order

    return parse_list_order(None)


def projection_identifier(text: str) -> str:
    import json

    return str(json.loads(text)["identifier"])


@asynccontextmanager
async def crawling(settings: Settings, clock: Clock | None = None) -> AsyncIterator[Crawl]:
    """Open everything a crawl needs."""
    clock = clock or FakeClock()
    async with Database(settings.storage.url) as database:
        await database.prepare()
        async with make_client(settings, clock) as client, Writer(database, clock.now) as writer:
            crew = Crew(settings, clock, client, database, writer)
            await crew.break_dead_claims()
            await crew.sync_origins()
            yield Crawl(settings, clock, database, writer, crew)


__all__ = ["Crawl", "FakeWeb", "crawling", "settings_for"]
