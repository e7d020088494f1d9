"""Search through the API against the bare engine query, at ten thousand entries.

The bare query is the engine's own statement, with its parameters, sent to the same file by the standard library's
driver in the same process; the API answer adds text analysis, resolution, ten documents, JSON and HTTP on loopback.
"""

import asyncio
import json
import random
import sqlite3
import statistics
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ENTRIES = 10_000
QUERIES = 300
_SUBJECTS = (
    "weather tide wind snow avalanche river flood harbour ferry train tram bus taxi bicycle parking invoice receipt "
    "payroll ledger contract tender archive museum concert theatre recipe allergy vitamin clinic dentist vaccine "
    "soil seed harvest orchard vineyard beehive star planet comet telescope crystal mineral fossil glacier volcano"
).split()
_VERBS = "find book check compare translate summarise forecast measure plot schedule track cancel renew order".split()


def bench_search() -> None:
    """Print latencies and their ratio."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_bench())


def _entry(number: int, chance: random.Random) -> dict[str, Any]:
    first, second, third = chance.sample(_SUBJECTS, 3)
    verb = chance.choice(_VERBS)
    words = " ".join(chance.choices(_SUBJECTS, weights=range(len(_SUBJECTS), 0, -1), k=14))
    return {
        "identifier": f"urn:air:p{number % 700}.example:tool:{first}-{number}",
        "displayName": f"{verb.title()} {first} {number}",
        "type": chance.choice(["application/mcp-server-card+json", "application/a2a-agent-card+json"]),
        "url": f"https://p{number % 700}.example/cards/{number}.json",
        "description": f"Helps to {verb} {first} and {second}. {words}.",
        "tags": [first, second, third],
        "representativeQueries": [f"{verb} the {first} near me", f"is there {second} in {third} season"],
    }


async def _bench() -> None:
    from config.loading import load_settings
    from config.logging import configure_logging
    from crawler.surfaces.ard import read_manifest
    from crawler.surfaces.base import Bounds, Source
    from index.api.app import ApiServer
    from index.documents import DocumentKind, DocumentState, DocumentVisit, Observation, Outcome
    from index.store.database import Database
    from index.store.writer import RecordVisit, Writer

    chance = random.Random(7)
    with tempfile.TemporaryDirectory(prefix="ardvark-bench-") as folder:
        path = Path(folder) / "bench.db"
        settings = load_settings(
            overrides={
                "storage": {"url": f"sqlite+aiosqlite:///{path}"},
                "api": {"listen": "127.0.0.1:0"},
                "logging": {"level": "warning"},
            }
        )
        configure_logging(settings.logging)
        async with Database(settings.storage.url) as database:
            await database.prepare()
            began = time.perf_counter()
            async with Writer(database) as writer:
                for first in range(0, ENTRIES, 500):
                    now = datetime.now(UTC)
                    origin = f"https://c{first}.example"
                    url = f"{origin}/.well-known/ard.json"
                    body = json.dumps({"entries": [_entry(first + n, chance) for n in range(500)]}).encode()
                    reading = read_manifest(body, Source(url, 10), Bounds())
                    state = DocumentState(url, origin, DocumentKind.MANIFEST, now, outcome=Outcome.FETCHED)
                    observation = Observation(url, Outcome.FETCHED, now, now)
                    await writer.write(RecordVisit(DocumentVisit(state, observation, reading=reading)))
            print(f"search: {ENTRIES} entries indexed in {time.perf_counter() - began:.1f} s")
            async with ApiServer(settings, database) as server:
                await _compare(f"http://{server.address}/api/v1/search", path, chance)


async def _compare(url: str, path: Path, chance: random.Random) -> None:
    import aiohttp

    needs = [
        f"{chance.choice(_VERBS)} the {' and '.join(chance.sample(_SUBJECTS, chance.randint(1, 4)))} for tomorrow"
        for _ in range(QUERIES)
    ]
    bare = _bare_queries(path, needs)
    took: list[float] = []
    async with aiohttp.ClientSession() as session:
        for need in [*needs[:20], *needs]:
            began = time.perf_counter()
            async with session.post(url, json={"query": {"text": need}}) as response:
                await response.read()
                assert response.status == 200, await response.text()
            took.append(time.perf_counter() - began)
    api = took[20:]
    print(f"{'':12} {'p50 ms':>8} {'p95 ms':>8}")
    for name, times in (("bare query", bare), ("API search", api)):
        print(f"{name:12} {_quantile(times, 0.5):8.2f} {_quantile(times, 0.95):8.2f}")
    ratios = [_quantile(api, share) / _quantile(bare, share) for share in (0.5, 0.95)]
    print(f"{'ratio':12} {ratios[0]:8.2f} {ratios[1]:8.2f}")


def _bare_queries(path: Path, needs: list[str]) -> list[float]:
    """Time the engine's statement alone, as the standard library's driver runs it."""
    from sqlalchemy import create_engine
    from sqlalchemy.dialects import sqlite

    from index.store import search

    statements = []
    engine = create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        for need in needs:
            query = search.search_statement(connection, search.Question(need), 10)
            if query is not None:
                compiled = query.compile(dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True})
                statements.append(str(compiled))
    times = []
    with sqlite3.connect(path) as connection:
        for statement in statements:
            began = time.perf_counter()
            connection.execute(statement).fetchall()
            times.append(time.perf_counter() - began)
    return times


def _quantile(times: list[float], share: float) -> float:
    return statistics.quantiles(times, n=100)[round(share * 100) - 1] * 1000
