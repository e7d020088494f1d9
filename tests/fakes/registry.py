"""A registry under test: an index crawled from the fake web, behind the real API server on a loopback port."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import ClientSession
from yarl import URL

from index.api.app import ApiServer
from tests.conftest import OpenCrawl
from tests.fakes.harness import Crawl
from tests.fakes.web import Site

PUBLIC_URL = "https://registry.example/api/v1/"


@dataclass(frozen=True)
class Answer:
    """One HTTP answer, read to its end."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def error(self) -> tuple[int, str]:
        """Check the one error shape and give status and code."""
        assert self.headers["content-type"].startswith("application/json"), self.headers
        value = self.json
        assert set(value) == {"errorCode", "message"}, value
        assert value["message"]
        assert isinstance(value["message"], str)
        return self.status, value["errorCode"]


@dataclass
class Registry:
    """The registry as its clients see it."""

    crawl: Crawl
    address: str
    session: ClientSession
    answers: list[Answer] = field(default_factory=list)

    async def request(self, method: str, path: str, **options: Any) -> Answer:
        """Ask for a path exactly as it is written here: nothing is encoded or decoded on the way."""
        url = URL(f"http://{self.address}{path}", encoded=True)
        async with self.session.request(method, url, **options) as response:
            headers = {name.lower(): value for name, value in response.headers.items()}
            answer = Answer(response.status, headers, await response.read())
        self.answers.append(answer)
        return answer

    async def get(self, path: str, **headers: str) -> Answer:
        return await self.request("GET", path, headers={name.replace("_", "-"): text for name, text in headers.items()})

    async def post(self, path: str, value: Any) -> Answer:
        body = value if isinstance(value, bytes) else json.dumps(value).encode("utf-8", "surrogatepass")
        return await self.request("POST", path, data=body, headers={"Content-Type": "application/json"})

    async def search(self, text: str, *, context: Any = None, **members: Any) -> Any:
        """Search and give the answer; `filter` goes into the query, everything else beside it."""
        query: dict[str, Any] = {"text": text, "filter": members.pop("filter", {})}
        if context is not None:
            query["@context"] = context
        answer = await self.post("/api/v1/search", {"query": query, **members})
        assert answer.status == 200, answer.body
        return answer.json

    async def found(self, text: str, **members: Any) -> list[str]:
        """Search and give the identifiers found, best first."""
        answer = await self.search(text, **{"pageSize": 100, **members})
        return [result["identifier"] for result in answer["results"]]

    async def pages(self, text: str, size: int, **members: Any) -> list[dict[str, Any]]:
        """Search page by page to the end and give all results."""
        results: list[dict[str, Any]] = []
        token: dict[str, str] = {}
        while True:
            answer = await self.search(text, pageSize=size, **members, **token)
            results += answer["results"]
            if "pageToken" not in answer:
                return results
            assert len(answer["results"]) == size
            token = {"pageToken": answer["pageToken"]}

    async def explore(self, *fields: str | dict[str, Any], **query: Any) -> Any:
        """Explore and give the facets."""
        facets = [{"field": item} if isinstance(item, str) else item for item in fields]
        answer = await self.post("/api/v1/explore", {"query": query, "resultType": {"facets": facets}})
        assert answer.status == 200, answer.body
        assert answer.json["resultType"] == "facets"
        return answer.json["facets"]

    async def counts(self, facet: str, **query: Any) -> dict[str, int]:
        """Explore one field and give its buckets as a mapping."""
        facets = await self.explore({"field": facet, "limit": 1000}, **query)
        return {bucket["value"]: bucket["count"] for bucket in facets[facet]["buckets"]}

    async def listed(self, **parameters: str) -> Answer:
        """List and give the answer, whatever it is."""
        return await self.get(str(URL("/api/v1/agents").with_query(parameters)))

    async def listing(self, **parameters: str) -> Any:
        """List and give the page."""
        answer = await self.listed(**parameters)
        assert answer.status == 200, answer.body
        return answer.json

    async def names(self, **parameters: str) -> list[str]:
        """List and give the last part of each identifier, in order."""
        answer = await self.listing(**parameters)
        return [item["identifier"].rpartition(":")[2] for item in answer["items"]]

    async def raw(self, sent: bytes) -> Answer:
        """Send bytes as they are, and read the answer until the server closes."""
        host, _, port = self.address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            writer.write(sent)
            await writer.drain()
            received = await asyncio.wait_for(reader.read(), 5)
        finally:
            writer.close()
            await writer.wait_closed()
        head, _, body = received.partition(b"\r\n\r\n")
        status, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        answer = Answer(int(status.split()[1]), headers, body)
        self.answers.append(answer)
        return answer


@asynccontextmanager
async def serving(open_crawl: OpenCrawl, *sites: Site, **sections: Any) -> AsyncIterator[Registry]:
    """Crawl sites once and serve what was found."""
    api = {"listen": "127.0.0.1:0", "public_url": PUBLIC_URL, **sections.pop("api", {})}
    async with open_crawl(*sites, api=api, **sections) as crawl:
        if sites:
            await crawl.run()
        now = crawl.clock.now
        async with (
            ApiServer(crawl.settings, crawl.database, now) as server,
            ClientSession(auto_decompress=False) as session,
        ):
            registry = Registry(crawl, server.address, session)
            yield registry
            for answer in registry.answers:
                _assert_no_framework_text(answer)


def _assert_no_framework_text(answer: Answer) -> None:
    """No answer, whatever it is about, may tell what the server is made of."""
    shown = (repr(answer.headers) + answer.body.decode("utf-8", "replace")).lower()
    for word in ("aiohttp", "python", "traceback", "sqlalchemy", "sqlite", "asyncpg", "pydantic"):
        assert word not in shown, (word, answer)
    assert answer.headers.get("server") == "ardvark", answer
