"""What the registry says of itself: its manifest, its description, its health (ARD 5.1, 5.3)."""

import json
from typing import Any

import pytest
from aiohttp import ClientSession

from index.api.app import ApiServer
from tests.conftest import OpenCrawl
from tests.fakes.registry import PUBLIC_URL, serving
from tests.fakes.web import FakeWeb, entry

MANIFEST = "/.well-known/ard.json"
PREDECESSOR = "/.well-known/ai-catalog.json"


async def test_the_registry_announces_itself_by_its_base_url(crawl_sqlite: OpenCrawl) -> None:
    """FR-93: the URL is the base that routes are appended to, without a route of its own at the end."""
    async with serving(crawl_sqlite) as registry:
        document = (await registry.get(MANIFEST)).json
        assert document["specVersion"] == "1.0"
        assert document["host"]["identifier"] == "urn:air:registry.example:registry:search"
        (own,) = document["entries"]
        assert own["identifier"] == "urn:air:registry.example:registry:search"
        assert own["type"] == "application/ai-registry+json"
        assert own["url"] == PUBLIC_URL
        assert "data" not in own
        assert own["displayName"]
        assert own["description"]
        assert 2 <= len(own["representativeQueries"]) <= 5


@pytest.mark.parametrize(
    ("listen", "host"),
    [("127.0.0.1:0", "127.0.0.1"), ("0.0.0.0:0", "127.0.0.1"), ("[::]:0", "[::1]"), ("localhost:0", "localhost")],
)
async def test_without_a_public_url_the_registry_names_an_address_at_which_it_answers(
    crawl_sqlite: OpenCrawl, listen: str, host: str
) -> None:
    settings_api = {"listen": listen, "public_url": None}
    async with crawl_sqlite(api=settings_api) as crawl, ApiServer(crawl.settings, crawl.database) as server:
        port = server.address.rpartition(":")[2]
        assert server.base_url == f"http://{host}:{port}/api/v1/"
        async with ClientSession() as session, session.get(f"http://{host}:{port}{MANIFEST}") as answer:
            (own,) = (await answer.json())["entries"]
            assert own["url"] == server.base_url


async def test_both_paths_serve_the_same_document(crawl_sqlite: OpenCrawl) -> None:
    async with serving(crawl_sqlite) as registry:
        new, old = await registry.get(MANIFEST), await registry.get(PREDECESSOR)
        assert new.body == old.body
        assert new.headers["etag"] == old.headers["etag"]


@pytest.mark.parametrize(
    ("api", "identifier", "url"),
    [
        (
            {"public_url": "https://finder.example"},
            "urn:air:finder.example:registry:search",
            "https://finder.example/",
        ),
        (
            {"public_url": "https://finder.example:8443/ard/v1"},
            "urn:air:finder.example:registry:search",
            "https://finder.example:8443/ard/v1/",
        ),
        (
            {"identifier": "urn:air:corp.example:registry:inner", "display_name": "Inner"},
            "urn:air:corp.example:registry:inner",
            PUBLIC_URL,
        ),
    ],
)
async def test_the_settings_name_the_registry(
    crawl_sqlite: OpenCrawl, api: dict[str, Any], identifier: str, url: str
) -> None:
    async with serving(crawl_sqlite, api=api) as registry:
        (own,) = (await registry.get(MANIFEST)).json["entries"]
        assert (own["identifier"], own["url"]) == (identifier, url)
        assert own["displayName"] == api.get("display_name", "Ardvark registry")


async def test_listings_are_published_only_where_the_operator_wants_it(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    published = [entry("one"), entry("two", **{"ex:more": [1, {"a": None}]})]
    acme.manifest(*published)
    async with serving(open_crawl, acme) as registry:
        assert len((await registry.get(MANIFEST)).json["entries"]) == 1
        assert (await registry.get("/api/v1/catalogs/0.json")).error() == (404, "NOT_FOUND")
    async with serving(open_crawl, acme, api={"publish_listings": True}) as registry:
        document = (await registry.get(MANIFEST)).json
        assert document["entries"][0]["type"] == "application/ai-registry+json"
        # As published, to the last member.
        assert document["entries"][1:] == published
        acme.manifest(entry("one"))
        await registry.crawl.run()
        assert (await registry.get(MANIFEST)).json["entries"][1:] == [entry("one")]


async def test_many_listings_are_cut_into_nested_catalogs_that_another_crawler_can_read(
    web: FakeWeb, crawl_sqlite: OpenCrawl
) -> None:
    acme = web.site("acme")
    acme.manifest(*(entry(f"n{n:04}") for n in range(1010)))
    async with serving(crawl_sqlite, acme, api={"publish_listings": True}) as registry:
        document = (await registry.get(MANIFEST)).json
        pointers = document["entries"][1:]
        assert [pointer["type"] for pointer in pointers] == ["application/ai-catalog+json"] * len(pointers)
        assert len({pointer["identifier"] for pointer in pointers}) == len(pointers) >= 2
        seen = []
        for pointer in pointers:
            assert pointer["url"].startswith(PUBLIC_URL)
            part = await registry.get("/api/v1/" + pointer["url"].removeprefix(PUBLIC_URL))
            assert part.headers["etag"]
            seen += [item["identifier"] for item in part.json["entries"]]
        assert sorted(seen) == [f"urn:air:acme.example:tool:n{n:04}" for n in range(1010)]
        for number in ("9", "00000000000", "-1", "x"):
            assert (await registry.get(f"/api/v1/catalogs/{number}.json")).error() == (404, "NOT_FOUND")

        # Another registry crawls us: a mirror sees every entry, and the original publisher stays the publisher.
        mirror = web.site("mirror")
        for pointer in pointers:
            path = "/api/v1/" + pointer["url"].removeprefix(PUBLIC_URL)
            mirror.page(path, (await registry.get(path)).body, headers={"Content-Type": "application/json"})
            pointer["url"] = mirror.url(path)
        mirror.json(MANIFEST, document)
    async with serving(crawl_sqlite, mirror) as other:
        assert (await other.listing(filter="publisherId = acme.example"))["total"] == 1010


async def test_health_and_readiness(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(entry("one"), entry("two"))
    async with serving(open_crawl, acme) as registry:
        health, ready = await registry.get("/healthz"), await registry.get("/readyz")
        assert (health.status, health.json) == (200, {"status": "ok"})
        assert (ready.status, ready.json) == (200, {"status": "ready", "entries": 2})
        for answer in (health, ready):
            assert answer.headers["cache-control"] == "no-store"


async def test_the_root_points_to_what_is_there(crawl_sqlite: OpenCrawl) -> None:
    async with serving(crawl_sqlite) as registry:
        root = (await registry.get("/")).json
        assert root["api"] == PUBLIC_URL
        for path in (root["manifest"], root["openapi"], *root["health"]):
            assert (await registry.get(path)).status == 200, path


async def test_the_description_names_every_route_of_the_protocol(crawl_sqlite: OpenCrawl) -> None:
    async with serving(crawl_sqlite) as registry:
        document = json.loads((await registry.get("/openapi.json")).body)
    assert document["servers"] == [{"url": PUBLIC_URL.rstrip("/")}]
    routes = {(path, method) for path, item in document["paths"].items() for method in item}
    assert {("/search", "post"), ("/explore", "post"), ("/agents", "get"), ("/agents/{identifier}", "get")} <= routes
