"""A crawl against a bare aiohttp client that makes the same requests on the same servers.

Both run in processes of their own, in turn, several rounds; CPU is that of the client process. The bare client makes
the GETs of a visit one after the other on one connection per origin, as many origins at a time as the crawl, and does
nothing with the answers. Its request list is what the crawl was seen to ask for.
"""

import asyncio
import json
import resource
import shutil
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import trustme

ORIGINS = 1500
ENTRIES = 4
VISITS = 100
ROUNDS = 3
_PATHS = ("/robots.txt", "/.well-known/ard.json", "/", "/.well-known/ai-catalog.json")
_RUNS = (("bare, first", "bare"), ("crawl, first", "crawl"), ("bare, 304", "bare304"), ("crawl, 304", "crawl"))


def bench_crawl() -> None:
    """Print requests per second and CPU per request, first crawl and all-304 crawl, plain and over TLS."""
    print(f"crawl: {ORIGINS} origins, {len(_PATHS)} requests each, {ENTRIES} entries each, {VISITS} visits at a time")
    with _served() as (plain, secure, authority):
        for scheme, port in (("http", plain), ("https", secure)):
            _compare(scheme, port, authority)


@contextmanager
def _served() -> Iterator[tuple[int, int, Path]]:
    folder = Path(tempfile.mkdtemp(prefix="ardvark-bench-"))
    try:
        authority = trustme.CA(key_type=trustme.KeyType.ECDSA)
        certificate = authority.issue_cert("*.bench.example", key_type=trustme.KeyType.ECDSA)
        certificate.private_key_and_cert_chain_pem.write_to_path(str(folder / "server.pem"))
        authority.cert_pem.write_to_path(str(folder / "ca.pem"))
        command = [sys.executable, "-m", "tests.bench.server", str(folder), str(ENTRIES)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            plain, secure = server.stdout.readline().split()
            yield int(plain), int(secure), folder / "ca.pem"
            server.communicate("")
    finally:
        shutil.rmtree(folder)


def _compare(scheme: str, port: int, authority: Path) -> None:
    results: dict[str, list[dict[str, float]]] = {}
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory(prefix="ardvark-bench-") as folder:
            for name, mode in _RUNS:
                arguments = [mode, scheme, str(port), str(authority), folder]
                command = [sys.executable, "-m", "tests.bench.crawl", *arguments]
                output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                results.setdefault(name, []).append(json.loads(output.splitlines()[-1]))
    print(f"\n{scheme:14} {'req/s':>8} {'CPU µs/req':>11} {'CPU ratio':>10} {'rate ratio':>11}")
    best = {name: _best(rounds) for name, rounds in results.items()}
    for kind in ("first", "304"):
        bare, ours = best[f"bare, {kind}"], best[f"crawl, {kind}"]
        for name, row in ((f"bare, {kind}", bare), (f"crawl, {kind}", ours)):
            ratios = f"{bare['cpu'] / row['cpu']:10.2f} {row['rate'] / bare['rate']:11.2f}" if row is ours else ""
            print(f"{name:14} {row['rate']:8.0f} {row['cpu']:11.0f} {ratios}")


def _best(rounds: list[dict[str, float]]) -> dict[str, float]:
    return {
        "rate": max(row["requests"] / row["seconds"] for row in rounds),
        "cpu": min(row["cpu_s"] / row["requests"] * 1e6 for row in rounds),
        "median": statistics.median(row["seconds"] for row in rounds),
    }


# --- the two clients, each run in a process of its own ----------------------------------------------------------------


def _client(mode: str, scheme: str, port: str, authority: str, folder: str) -> None:
    import uvloop

    origins = [f"{scheme}://o{number}.bench.example:{port}" for number in range(ORIGINS)]
    if mode == "crawl":
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            measured = runner.run(_crawl(origins, authority, folder))
    else:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            measured = runner.run(_bare(origins, authority, conditional=mode == "bare304"))
    measured["rss_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(measured))


async def _bare(origins: list[str], authority: str, *, conditional: bool) -> dict[str, float]:
    import aiohttp
    from aiohttp.abc import AbstractResolver

    class Loopback(AbstractResolver):
        async def resolve(self, host: str, port: int = 0, family: Any = 0) -> list[Any]:
            return [{"hostname": host, "host": "127.0.0.1", "port": port, "family": 2, "proto": 0, "flags": 0}]

        async def close(self) -> None:
            pass

    context = ssl.create_default_context(cafile=authority)
    connector = aiohttp.TCPConnector(resolver=Loopback(), limit=VISITS, ssl=context)
    made = 0
    waiting = iter(enumerate(origins))

    async def visit(session: aiohttp.ClientSession) -> None:
        nonlocal made
        for number, origin in waiting:
            for path in _PATHS:
                headers = {}
                if conditional and path == "/.well-known/ard.json":
                    headers = {"If-None-Match": f'"m{number}"'}
                elif conditional and path == "/":
                    headers = {"If-None-Match": '"page"'}
                async with session.get(origin + path, headers=headers) as response:
                    await response.read()
                made += 1

    async with aiohttp.ClientSession(connector=connector) as session:
        began, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(visit(session) for _ in range(VISITS)))
        return {"requests": made, "seconds": time.perf_counter() - began, "cpu_s": time.process_time() - cpu}


async def _crawl(origins: list[str], authority: str, folder: str) -> dict[str, float]:
    from config.loading import load_settings
    from config.logging import configure_logging
    from crawler.commands.session import crawling
    from crawler.crawl import crawl_once

    settings = load_settings(
        overrides={
            # Only what the bare client asks for as well.
            "origins": [{"origin": origin, "surfaces": ["ard"]} for origin in origins],
            "storage": {"url": f"sqlite+aiosqlite:///{folder}/bench.db"},
            "network": {
                "allow_http": True,
                "allow_private": ["127.0.0.0/8"],
                "hosts": {"*.example": "127.0.0.1"},
                "extra_ca_file": authority,
            },
            "politeness": {"min_delay": "0s"},
            "logging": {"level": "warning"},
        }
    )
    configure_logging(settings.logging)
    async with crawling(settings) as parts:
        began, cpu = time.perf_counter(), time.process_time()
        await crawl_once(parts.crew, origins, parts.writer.tally, visits=VISITS)
        made = sum(parts.writer.tally.documents.values())
        assert made == len(origins) * len(_PATHS), f"{made} requests are not those of the bare client"
        return {"requests": made, "seconds": time.perf_counter() - began, "cpu_s": time.process_time() - cpu}


if __name__ == "__main__":
    _client(*sys.argv[1:])
