"""A daemon that starts before its database: it waits, says so, can be asked meanwhile, and gives up in time."""

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession
from sqlalchemy.engine import make_url

from tests.fakes.faults import Relay
from tests.fakes.operator import PATIENCE_S, Operator, operator_of
from tests.fakes.watched import Watched, named
from tests.fakes.web import FakeWeb, entry

pytestmark = [
    pytest.mark.system,
    pytest.mark.parametrize(
        "database_url", [pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True, ids=["postgres"]
    ),
]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def at_port(url: str, port: int, **parts: str) -> str:
    return make_url(url).set(port=port, **parts).render_as_string(hide_password=False)


@pytest.fixture
async def operator(database_url: str, tmp_path: Path) -> AsyncIterator[Operator]:
    async with operator_of(tmp_path / "operator", database_url) as somebody:
        yield somebody


async def watched(operator: Operator, *arguments: str) -> Watched:
    process = Watched(await operator.start(*arguments))
    process.reading = asyncio.create_task(process.read())
    return process


async def answer(session: ClientSession, address: str, path: str) -> tuple[int, Any]:
    async with session.get(f"http://{address}{path}") as response:
        if path == "/metrics":
            return response.status, await response.text()
        return response.status, await response.json()


@pytest.mark.parametrize("role", ["all", "api", "crawler"])
async def test_a_database_that_comes_later_is_waited_for(web: FakeWeb, operator: Operator, role: str) -> None:
    site = web.site("acme")
    site.manifest(entry("tool"))
    api = f"127.0.0.1:{free_port()}"
    serves_api = role != "crawler"
    operator.configure([site], metrics='listen = "127.0.0.1:0"', api=f'listen = "{api}"')
    await (await operator.start("db", "upgrade")).communicate()
    async with Relay("127.0.0.1", make_url(operator.url).port or 5432) as relay:
        relay.cut()
        late = f'storage.url="{at_port(operator.url, relay.port)}"'
        process = await watched(operator, "--set", late, "run", "--role", role)
        await process.until(named("store.awaited"))
        listening = next(event["address"] for event in process.events if event["event"] == "metrics.listening")
        places = [listening, api] if serves_api else [listening]
        async with ClientSession() as session, asyncio.timeout(PATIENCE_S):
            for place in places:
                assert await answer(session, place, "/healthz") == (200, {"status": "ok"})
                status, said = await answer(session, place, "/readyz")
                assert (status, said["errorCode"]) == (503, "UNAVAILABLE")
                assert "waits for its database" in said["message"]
                status, text = await answer(session, place, "/metrics")
                assert status == 200
                assert "ardvark_store_available 0.0" in text
                assert "ardvark_listings" not in text
            if serves_api:
                status, said = await answer(session, api, "/api/v1/agents")
                assert (status, said["errorCode"]) == (503, "UNAVAILABLE")
            assert not named("daemon.started")(process.events)
            await relay.open()
            await process.until(named("api.listening" if serves_api else "daemon.started"))
            for place in places:
                status, said = await answer(session, place, "/readyz")
                assert (status, said["status"]) == (200, "ready")
                assert "ardvark_store_available 1.0" in (await answer(session, place, "/metrics"))[1]
            if serves_api:
                assert (await answer(session, api, "/api/v1/agents"))[0] == 200
            if role != "api":
                await process.until(lambda _: bool(process.visited()))
        await process.stop()


@pytest.mark.parametrize(("wait", "awaited"), [("0s", False), ("1s", True)])
async def test_a_database_that_never_comes_ends_the_daemon_with_a_status_to_start_it_again_by(
    web: FakeWeb, operator: Operator, wait: str, awaited: bool
) -> None:
    operator.configure([web.site("acme")])
    nobody = f'storage.url="{at_port(operator.url, free_port(), username="ardvark", password="secret")}"'
    process = await operator.start("--set", nobody, "--set", f'storage.wait="{wait}"', "run")
    _, err = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    assert process.returncode == 1
    text = err.decode()
    assert ("store.awaited" in text) == awaited
    assert "Traceback" not in text
    assert "secret" not in text
    last = text.splitlines()[-1]
    assert last.startswith("ardvark: postgresql+asyncpg://ardvark:***@127.0.0.1:")
    assert ("did not answer within 1s" if awaited else "did not answer: ") in last
    assert "unreachable" in last


@pytest.mark.parametrize("wrong", [{"database": "no_such_database"}, {"username": "no_such_role"}])
async def test_a_server_that_refuses_us_is_not_waited_for(
    web: FakeWeb, operator: Operator, wrong: dict[str, str]
) -> None:
    operator.configure([web.site("acme")])
    url = at_port(operator.url, make_url(operator.url).port or 5432, **wrong)
    process = await operator.start("--set", f'storage.url="{url}"', "run")
    _, err = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    assert process.returncode == 2
    text = err.decode()
    assert "store.awaited" not in text
    assert f"cannot be opened: {'database' if 'database' in wrong else 'role'} " in text.splitlines()[-1]


async def test_a_signal_ends_the_wait(web: FakeWeb, operator: Operator) -> None:
    operator.configure([web.site("acme")])
    nobody = f'storage.url="{at_port(operator.url, free_port())}"'
    process = await watched(operator, "--set", nobody, "run")
    await process.until(named("store.awaited"))
    await process.stop()
