"""What a visit costs our crawl, a bare aiohttp client and Scrapy that make the same requests on the same servers.

Each runs in a process of its own, in turn, several rounds; CPU is that of the client process. What was asked is counted
by the server, which must have seen the same from all three: one connection an origin, and on it the requests of a
visit. Over TLS each connection is a full handshake with a verified certificate, so the price of that is in all three.

- Bare aiohttp does nothing with the answers.
- Scrapy obeys robots.txt and parses manifests, and keeps nothing. In the second crawl its spider is told the entity
  tags. Its own cache would be nearer to what a crawler that looks again needs, but writes six files for an answer: this
  way the comparison flatters Scrapy, not us.
- Ours is the whole visit: guard, robots.txt, strict reading, every change and every look in the database.

A visit of one document is that of an origin which leads named and no setting: robots.txt and the manifest. One of four
requests looks at the older path and the home page too, as at an origin of the settings. The first crawl puts every
entry into the index. Before the second, each manifest was edited around its entries: it is fetched, read and compared
as a whole, and nothing is put into the index. In the third every document is answered by 304. robots.txt and the older
path are not there, which takes a 404 each time.
"""

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import trustme

from tests.bench.visits import AT_A_TIME, CRAWLS, ENTRIES, KINDS, ORIGINS, Crawl, Job, expected

ROUNDS = {"https": 2, "http": 1}
# Over TLS: at most so many times bare aiohttp, for a whole visit and for one answered by 304, and Scrapy against ours.
_AIMS: dict[Crawl, float] = {"first": 1.8, "edited": 1.8, "304": 1.6}
_AIM_SCRAPY = 3.0
_CLIENTS = {
    "bare": ("tests.bench.crawl_clients", "bare"),
    "ardvark": ("tests.bench.crawl_clients", "ardvark"),
    "scrapy": ("tests.bench.crawl_scrapy",),
}


@dataclass(frozen=True, slots=True)
class Served:
    """The web that is crawled, and how to ask it what it has seen."""

    process: "subprocess.Popen[str]"
    ports: dict[str, int]
    authority: str

    def turn(self, edition: int) -> dict[str, int]:
        """Say what was asked since the last time, and serve an edition from now on."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{edition}\n")
        self.process.stdin.flush()
        counts: dict[str, int] = json.loads(self.process.stdout.readline())
        return counts


@dataclass(frozen=True, slots=True)
class Round:
    """What the visits of one client in one process came to, each."""

    rate: float
    cpu_ms: float


def bench_crawl() -> None:
    """Print visits a second and CPU a visit, of each crawl, over TLS and plain, and their ratios."""
    print(f"crawl: {ORIGINS} origins of {ENTRIES} entries, {AT_A_TIME} visits at a time; ratios of the least CPU")
    with _served() as served:
        for scheme in ROUNDS:
            for kind in KINDS:
                _compare(served, scheme, kind)


@contextmanager
def _served() -> Iterator[Served]:
    folder = Path(tempfile.mkdtemp(prefix="ardvark-bench-"))
    try:
        authority = trustme.CA(key_type=trustme.KeyType.ECDSA)
        certificate = authority.issue_cert("*.bench.example", key_type=trustme.KeyType.ECDSA)
        certificate.private_key_and_cert_chain_pem.write_to_path(str(folder / "server.pem"))
        authority.cert_pem.write_to_path(str(folder / "ca.pem"))
        command = [sys.executable, "-m", "tests.bench.server", str(folder), str(ENTRIES)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            plain, secure = map(int, server.stdout.readline().split())
            yield Served(server, {"http": plain, "https": secure}, str(folder / "ca.pem"))
            server.communicate("")
    finally:
        shutil.rmtree(folder)


def _compare(served: Served, scheme: str, kind: str) -> None:
    rounds: dict[tuple[Crawl, str], list[Round]] = {}
    for _ in range(ROUNDS[scheme]):
        with tempfile.TemporaryDirectory(prefix="ardvark-bench-") as folder:
            for crawl in CRAWLS:
                job = Job(scheme, served.ports[scheme], kind, crawl, served.authority, folder)
                served.turn(job.edition)
                for client in _CLIENTS:
                    rounds.setdefault((crawl, client), []).append(_run(served, client, job))
    _show(f"{scheme}, {kind}", rounds, aimed=scheme == "https")


def _run(served: Served, client: str, job: Job) -> Round:
    command = [sys.executable, "-m", *_CLIENTS[client], job.write()]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    measured = json.loads(output.splitlines()[-1])
    seen, wanted = served.turn(job.edition), expected(job)
    assert seen == wanted, f"{client} made other requests than a visit has: {seen}, not {wanted}"
    return Round(ORIGINS / measured["seconds"], measured["cpu_s"] / ORIGINS * 1000)


def _show(title: str, rounds: dict[tuple[Crawl, str], list[Round]], *, aimed: bool) -> None:
    print(f"\n{title:24} {'visits/s':>8} {'median':>7} {'CPU ms':>7} {'median':>7}  ratio")
    for crawl in CRAWLS:
        least = {client: min(row.cpu_ms for row in rounds[crawl, client]) for client in _CLIENTS}
        ratios = {
            "bare": "",
            "ardvark": f"{least['ardvark'] / least['bare']:5.2f} x bare" + _aim(f"<= {_AIMS[crawl]}", aimed),
            "scrapy": f"{least['scrapy'] / least['ardvark']:5.2f} x ardvark" + _aim(f">= {_AIM_SCRAPY}", aimed),
        }
        for client in _CLIENTS:
            taken = rounds[crawl, client]
            print(
                f"{crawl + ',':7} {client:16} {max(row.rate for row in taken):8.0f} "
                f"{statistics.median(row.rate for row in taken):7.0f} {least[client]:7.2f} "
                f"{statistics.median(row.cpu_ms for row in taken):7.2f}  {ratios[client]}".rstrip(),
                flush=True,
            )


def _aim(bound: str, aimed: bool) -> str:
    return f" (aim {bound})" if aimed else ""
