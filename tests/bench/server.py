"""The web that the benchmarks crawl: a process of its own that spends as little as it can on each answer.

Every host `o<number>.bench.example` serves a small manifest with an entity tag; `/` is a page without links, robots.txt
and the predecessor path are absent. For each line on its standard input it says what it has answered since the last
one; the line is the edition that manifests have from then on: another title around the same entries.
"""

import asyncio
import json
import ssl
import sys
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import uvloop

from tests.bench.visits import entity_tag

_PAGE = b"<!doctype html><html><head><title>Home</title></head><body>Welcome</body></html>"
_TOPICS = (
    "tide tables", "mountain huts", "invoice checks", "star charts", "train seats", "bird calls", "soil samples",
    "concert halls", "spare parts", "parking permits", "wind forecasts", "recipe swaps",
)  # fmt: skip


@lru_cache(maxsize=100_000)
def manifest(number: int, entries: int, edition: int) -> tuple[bytes, bytes]:
    """Give an edition of the manifest of one origin, and its entity tag."""
    host = f"o{number}.bench.example"
    listed = []
    for index in range(entries):
        topic = _TOPICS[(number * 7 + index) % len(_TOPICS)]
        listed.append(
            {
                "identifier": f"urn:air:{host}:tool:n{index}",
                "displayName": f"{topic.title()} {number}-{index}",
                "type": "application/mcp-server-card+json",
                "url": f"https://{host}/cards/{index}.json",
                "description": f"Answers questions about {topic} near station {number * 31 % 977}, day and night. "
                f"Covers region {number % 53} with data refreshed every {index + 2} hours by its keepers.",
                "tags": [topic.split()[0], topic.split()[1], f"region-{number % 53}"],
                "capabilities": [f"Lookup{index}", "Subscribe"],
                "representativeQueries": [f"what are the {topic} here", f"tell me about {topic} tomorrow"],
                "version": f"1.{index}.0",
                "updatedAt": "2026-10-01T08:00:00Z",
                "metadata": {"region": number % 53, "open": True},
            }
        )
    title = {"displayName": f"Station {number}, edition {edition}"}
    return json.dumps({"host": title, "entries": listed}).encode(), entity_tag(number, edition).encode()


class _Server(asyncio.Protocol):
    entries = 4
    edition: ClassVar[int] = 0
    answered: ClassVar[Counter[bytes]] = Counter()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.answered[b"connections"] += 1
        self._transport = transport
        self._buffer = b""

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head, self._buffer = self._buffer[:end], self._buffer[end + 4 :]
            path = head.split(b" ", 2)[1]
            answer = self._answer(path, head)
            self.answered[b"%s %s" % (path, answer[9:12])] += 1
            self._transport.write(answer)  # type: ignore[attr-defined]

    def _answer(self, path: bytes, head: bytes) -> bytes:
        lines = head.split(b"\r\n")
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines[1:])}
        if path == b"/.well-known/ard.json":
            number = int(fields[b"host"].partition(b".")[0][1:])
            body, etag = manifest(number, self.entries, self.edition)
            if fields.get(b"if-none-match") == etag:
                return b"HTTP/1.1 304 Not Modified\r\nETag: %s\r\nCache-Control: max-age=60\r\n\r\n" % etag
            return _ok(b"application/json", body, b"ETag: %s\r\nCache-Control: max-age=60\r\n" % etag)
        if path == b"/":
            if fields.get(b"if-none-match") == b'"page"':
                return b'HTTP/1.1 304 Not Modified\r\nETag: "page"\r\n\r\n'
            return _ok(b"text/html", _PAGE, b'ETag: "page"\r\n')
        return b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\nContent-Type: text/plain\r\n\r\nnone"


def _ok(content_type: bytes, body: bytes, extra: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n%s\r\n%s" % (
        content_type,
        len(body),
        extra,
        body,
    )


async def _serve(folder: Path, entries: int) -> None:
    _Server.entries = entries
    loop = asyncio.get_running_loop()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    plain = await loop.create_server(_Server, "127.0.0.1", 0, backlog=4096)
    secure = await loop.create_server(_Server, "127.0.0.1", 0, ssl=context, backlog=4096)
    print(plain.sockets[0].getsockname()[1], secure.sockets[0].getsockname()[1], flush=True)
    # The parent closes our standard input when it is done with us.
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        _Server.edition = int(line)
        print(json.dumps({name.decode(): count for name, count in _Server.answered.items()}), flush=True)
        _Server.answered.clear()


if __name__ == "__main__":
    uvloop.run(_serve(Path(sys.argv[1]), int(sys.argv[2])))
