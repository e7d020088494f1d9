"""Independent ARD software: it accepts what we publish, searches us, and is crawled by us. All on loopback."""

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession
from ard_kit import doctor
from ard_publish import validate

from index.store.inspect import entries_not_listed
from tests.conftest import OpenCrawl
from tests.fakes.registry import Registry, serving
from tests.fakes.web import FakeWeb, entry

COMMANDS = Path(sys.executable).parent
# Their clients take the host of the manifest as evidence, so the registry is named after the address it is reached by.
LOOPBACK_URL = {"public_url": "http://127.0.0.1/api/v1/"}


async def _run(command: str, *arguments: str, **environment: str) -> tuple[int, str, str]:
    """Run an installed command with nothing in its environment that could lead it elsewhere."""
    process = await asyncio.create_subprocess_exec(
        COMMANDS / command,
        *arguments,
        env={"PATH": f"{COMMANDS}:/usr/bin:/bin", "no_proxy": "*", "PYTHONUNBUFFERED": "1", **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


# --- what we publish --------------------------------------------------------------------------------------------------


async def test_ard_publish_accepts_our_manifest(web: FakeWeb, crawl_sqlite: OpenCrawl, tmp_path: Path) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"), entry("inline", url=None, data={"name": "Inline"}))
    for listings, entries in ((False, 1), (True, 3)):
        async with serving(crawl_sqlite, acme, api={"publish_listings": listings}) as registry:
            for name in ("ard.json", "ai-catalog.json"):
                answer = await registry.get(f"/.well-known/{name}")
                assert validate(answer.json) == []
                assert len(answer.json["entries"]) == entries
                (tmp_path / name).write_bytes(answer.body)
                status, out, _ = await _run("ard-publish", "validate", str(tmp_path / name))
                assert (status, out.strip()) == (0, "valid, publishable")


async def test_ard_verify_accepts_our_manifest_where_it_is_served(crawl_sqlite: OpenCrawl) -> None:
    """Served by the host that its identifier names: nothing suspect, nothing unsupported."""
    async with serving(crawl_sqlite, api=LOOPBACK_URL) as registry:
        status, out, err = await _run("ard-verify", "--url", f"http://{registry.address}", "--json")
    assert status == 0, err
    report = json.loads(out)
    assert report["hostedFrom"] == "127.0.0.1"
    assert report["counts"] == {"VERIFIED": 0, "UNVERIFIED": 1, "SUSPECT": 0, "UNSUPPORTED": 0}
    assert [verdict["identifier"] for verdict in report["verdicts"]] == ["urn:air:127.0.0.1:registry:search"]


async def test_ard_verify_accepts_our_listings_as_a_catalog(
    web: FakeWeb, crawl_sqlite: OpenCrawl, tmp_path: Path
) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo", trustManifest={"identity": "did:web:acme.example"}), entry("weather"))
    async with serving(crawl_sqlite, acme, api={"publish_listings": True}) as registry:
        (tmp_path / "catalog.json").write_bytes((await registry.get("/.well-known/ard.json")).body)
    status, out, err = await _run("ard-verify", "--catalog", str(tmp_path / "catalog.json"), "--json")
    assert status == 0, err
    assert json.loads(out)["counts"] == {"VERIFIED": 0, "UNVERIFIED": 3, "SUSPECT": 0, "UNSUPPORTED": 0}


# --- searching us -----------------------------------------------------------------------------------------------------


@asynccontextmanager
async def _weather(web: FakeWeb, crawl_sqlite: OpenCrawl) -> AsyncIterator[Registry]:
    acme = web.site("acme")
    acme.manifest(
        entry("weather", description="Forecasts rain and wind"),
        entry("echo", type="application/a2a-agent-card+json"),
        *(entry(f"other-{number}") for number in range(10)),
    )
    async with serving(crawl_sqlite, acme) as registry:
        yield registry


async def test_the_neuronto_client_finds_an_entry(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    async with _weather(web, crawl_sqlite) as registry:
        base = {"NEURONTO_BASE": f"http://{registry.address}/api/v1"}
        status, out, err = await _run("neuronto", "find", "will it rain", "--json", **base)
        assert status == 0, err
        (found,) = json.loads(out)["results"]
        assert found["identifier"] == "urn:air:acme.example:tool:weather"
        assert type(found["score"]) is int

        # Its kinds are older names of the media types.
        status, out, _ = await _run("neuronto", "find", "tool", "--kind", "mcp", "--limit", "20", "--json", **base)
        assert len(json.loads(out)["results"]) == 11
        status, out, _ = await _run("neuronto", "find", "tool", "--local", "--limit", "3", **base)
        assert (status, out.splitlines()[0]) == (0, '3 match(es) for "tool":')
        status, out, _ = await _run("neuronto", "find", "xyzzyqwrtp", **base)
        assert (status, "Nothing matched" in out) == (1, True)
        status, _, err = await _run("neuronto", "find", "tool", "--limit", "0", **base)
        assert (status, "400" in err) == (1, True)


async def test_the_search_probe_of_ard_doctor_finds_an_entry(
    web: FakeWeb, crawl_sqlite: OpenCrawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its other probes ask for that kit's own extensions, `/health` and `/inspect`, which ARD does not know."""
    monkeypatch.setenv("no_proxy", "*")
    async with _weather(web, crawl_sqlite) as registry:
        check = await asyncio.to_thread(
            doctor.check_search,
            f"http://{registry.address}/api/v1/",
            None,
            {"status": "ok"},
            "Weather",
            "urn:air:acme.example:tool:weather",
        )
        assert check.status == doctor.OK, check
        missing = await asyncio.to_thread(
            doctor.check_search, f"http://{registry.address}/api/v1", None, {"status": "ok"}, "xyzzyqwrtp"
        )
        assert missing.status == doctor.FAIL


# --- their registry ---------------------------------------------------------------------------------------------------


@asynccontextmanager
async def _ard_registry(tmp_path: Path, entries: list[Any], *upstreams: str) -> AsyncIterator[int]:
    """Run `ard-registry` with a catalog; gives its port."""
    catalog = tmp_path / "kit.json"
    catalog.write_text(json.dumps({"specVersion": "1.0", "host": {"displayName": "Kit"}, "entries": entries}))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        COMMANDS / "ard-registry",
        f"--catalog={catalog}",
        f"--port={port}",
        "--domain=kit.example",
        f"--public-url=http://kit.example:{port}",
        f"--upstreams={','.join(upstreams)}",
        env={"PATH": "/usr/bin:/bin", "no_proxy": "*", "PYTHONUNBUFFERED": "1"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    try:
        # It says so once its socket listens.
        assert b"ARD registry on" in await asyncio.wait_for(process.stdout.readline(), 30)
        yield port
    finally:
        process.terminate()
        await process.communicate()


async def test_we_crawl_the_manifest_of_ard_registry(crawl_sqlite: OpenCrawl, tmp_path: Path) -> None:
    published = [entry("scan", "kit.example", aliases=["sweep"]), entry("report", "kit.example")]
    async with _ard_registry(tmp_path, published) as port:
        origin = f"http://kit.example:{port}"
        async with crawl_sqlite(origin) as crawl:
            summary = await crawl.run()
            # It serves one document under both well-known paths: the second time each entry is a duplicate.
            assert summary.as_json()["entries"]["listed"] == 3
            others = await crawl.database.read(entries_not_listed, origin)
            assert [row.state for row in others] == ["duplicate"] * 3
            assert await crawl.identifiers() == [
                "urn:air:kit.example:registry:ard-kit",
                "urn:air:kit.example:tool:report",
                "urn:air:kit.example:tool:scan",
            ]
            for item in published:
                assert json.loads(await crawl.entry(item["identifier"]) or "") == item
            again = await crawl.run()
            # It offers no validators: the body's own digest tells that nothing changed.
            assert (again.tally.changes, again.tally.snapshots) == (0, 0)
            documents = await crawl.documents(origin)
            assert documents["/.well-known/ard.json"].outcome == "fetched"


async def test_ard_registry_federates_our_results(web: FakeWeb, crawl_sqlite: OpenCrawl, tmp_path: Path) -> None:
    async with _weather(web, crawl_sqlite) as registry:
        ours = f"http://{registry.address}/api/v1"
        own = [entry("rain-gauge", "kit.example", description="Measures rain")]
        async with _ard_registry(tmp_path, own, ours) as port, ClientSession() as session:
            body = {"query": {"text": "rain"}, "federation": "auto"}
            async with session.post(f"http://127.0.0.1:{port}/search", json=body) as response:
                found = {item["identifier"]: item["source"] for item in (await response.json())["results"]}
    assert found == {
        "urn:air:kit.example:tool:rain-gauge": f"http://kit.example:{port}",
        "urn:air:acme.example:tool:weather": ours,
    }
