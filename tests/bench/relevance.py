"""How well search ranks the real catalogs for judged queries, where that data, which is not ours, is at hand."""

import asyncio
import json
import math
import tempfile
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
_DEPTH = 10
_EVERY = 10  # of the queries that a model wrote


def bench_relevance() -> None:
    """Print nDCG, reciprocal rank and hits among ten results, by kind of query."""
    catalogs = sorted(path for path in (_DATA / "catalogs").glob("*.json") if not path.name.endswith(".cards.json"))
    queries = sorted((_DATA / "eval").glob("*.jsonl"))
    if not (catalogs and queries):
        print(f"relevance: SKIPPED, no catalogs or queries in {_DATA}")
        return
    asyncio.run(_bench(catalogs, queries))


async def _bench(catalogs: list[Path], queries: list[Path]) -> None:
    from index.store import search
    from index.store.database import Database

    measured: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="ardvark-bench-") as folder:
        async with Database(f"sqlite+aiosqlite:///{folder}/relevance.db") as database:
            await database.prepare()
            await _index(database, catalogs)
            print(f"relevance: {await database.read(search.entry_count)} entries of {len(catalogs)} catalogs")
            for file in queries:
                judged = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
                for item in judged[:: _EVERY if len(judged) > 1000 else 1]:
                    if not item["relevant"]:
                        continue  # asked for nothing that is there
                    page = await database.read(search.search, search.Question(item["query"]), _DEPTH, None)
                    measured[item["kind"]].append(measures([hit.identifier for hit in page.hits], item["relevant"]))
    print(f"{'kind':16} {'queries':>8} {'nDCG@10':>8} {'MRR@10':>8} {'hit@10':>8}")
    for kind, values in measured.items():
        means = [sum(column) / len(values) for column in zip(*values, strict=True)]
        print(f"{kind:16} {len(values):8} {means[0]:8.3f} {means[1]:8.3f} {means[2]:8.3f}")


def measures(found: list[str], relevant: Any) -> tuple[float, float, float]:
    """Give nDCG, reciprocal rank and hit of the results found; `relevant` are identifiers, graded or not."""
    grades: dict[str, int] = relevant if isinstance(relevant, dict) else dict.fromkeys(relevant, 1)
    gains = [grades.get(name, 0) for name in found[:_DEPTH]]
    ideal = _discounted(sorted(grades.values(), reverse=True)[:_DEPTH])
    first = next((rank for rank, gain in enumerate(gains, 1) if gain), None)
    return (_discounted(gains) / ideal if ideal else 0.0, 1 / first if first else 0.0, float(first is not None))


def _discounted(gains: list[int]) -> float:
    return sum((2.0**gain - 1) / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


async def _index(database: Any, catalogs: list[Path]) -> None:
    from crawler.surfaces.ard import read_manifest
    from crawler.surfaces.base import Bounds, Source
    from index.documents import DocumentKind, DocumentState, DocumentVisit, Observation, Outcome
    from index.store.writer import RecordVisit, Writer

    now = datetime.now(UTC)
    async with Writer(database) as writer:
        for file in catalogs:
            origin = f"https://{file.stem.lower().replace('_', '-')}.example"
            url = f"{origin}/.well-known/ard.json"
            reading = read_manifest(file.read_bytes(), Source(url, 10), Bounds())
            state = DocumentState(url, origin, DocumentKind.MANIFEST, now, outcome=Outcome.FETCHED)
            visit = DocumentVisit(state, Observation(url, Outcome.FETCHED, now, now), reading=reading)
            await writer.write(RecordVisit(visit))
