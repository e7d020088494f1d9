"""`ardvark status`: how crawler and index are doing, for people and for programs."""

import asyncio
import json
import re
from datetime import timedelta
from typing import Any

from aiohttp import web as server

from crawler.allowlist import Role
from crawler.clock import SystemClock
from crawler.names import worker_name
from index.api.app import ApiServer
from index.store.processes import put_process
from index.store.status import slowest_origins
from tests.fakes.harness import Crawl, crawling, settings_for
from tests.fakes.shell import command
from tests.fakes.web import FakeWeb, Site, entry

ARD = "/.well-known/ard.json"


async def status_of(crawl: Crawl, *options: str) -> dict[str, Any]:
    code, out = await command(str(crawl.settings.storage.url), *options, "status", "--json")
    assert code == 0, out
    value: dict[str, Any] = json.loads(out)
    return value


async def test_status_tells_what_a_crawl_left(web: FakeWeb, database_url: str) -> None:
    acme, down = web.site("acme"), web.site("down")
    acme.manifest(entry("one"), entry("two"))
    down.robots("", status=503)
    async with crawling(settings_for(acme, down, url=database_url), SystemClock()) as crawl:
        await crawl.run()
        shown = await status_of(crawl)
        assert shown["problem"] is None
        assert shown["backlog"] == {"due": 0, "oldestDueAt": None, "oldestDueS": None}
        assert (shown["origins"]["done"], shown["origins"]["failed"]) == (1, 1)
        assert shown["lastVisit"]["origin"] in (acme.origin, down.origin)
        assert shown["index"] == {"listings": 2, "cursor": 2}
        assert shown["storage"]["fetches"] == len(web.seen) + 3, "with what robots.txt kept us from asking for"
        assert shown["storage"]["snapshots"] == 1
        assert shown["storage"]["databaseBytes"] > shown["storage"]["snapshotsBytes"] > 0
        assert (shown["storage"]["walBytes"] is not None) == database_url.startswith("sqlite")
        assert sum(shown["cadence"].values()) >= 1
        assert {item["origin"] for item in shown["slowest"]} == {acme.origin, down.origin}
        assert shown["claims"] == []

        (claim,) = await crawl.crew.claim(5, [acme.origin])
        (held,) = (await status_of(crawl))["claims"]
        assert (held["claims"], held["expired"]) == (1, False)
        assert shown["at"] <= held["oldestAt"] < held["firstLeaseEndsAt"]
        assert held["worker"].count(":") == 3
        code, text = await command(database_url, "status")
        assert code == 0
        for part in (
            "backlog    0 due",
            "origins    1 done, 1 failed",
            "2 listed, 2 changes",
            held["worker"],
            acme.origin,
        ):
            assert part in text
        assert "\x1b" not in text
        await crawl.crew.release([claim])


async def test_status_names_the_processes_that_are_at_work(database_url: str) -> None:
    now = SystemClock().now()
    mine, elsewhere = worker_name(), "elsewhere:1:1:aaaaaa"
    seen = {
        mine: (Role.ALL, now),
        elsewhere: (Role.CRAWLER, now - timedelta(seconds=60)),
        "elsewhere:2:1:bbbbbb": (Role.CRAWLER, now - timedelta(minutes=2)),
        dead_name(): (Role.SCHEDULER, now),
    }
    async with crawling(settings_for(url=database_url), SystemClock()) as crawl:
        assert (await status_of(crawl))["processes"] == []
        for name, (role, at) in seen.items():
            await crawl.database.write(put_process, name, role, "", at)
        shown = (await status_of(crawl))["processes"]
        assert {(item["name"], item["role"]) for item in shown} == {(mine, "all"), (elsewhere, "crawler")}
        assert all(item["startedAt"] <= item["seenAt"] for item in shown)
        code, text = await command(database_url, "status")
        assert code == 0
        assert re.search(r"^processes  1 (all, 1 crawler|crawler, 1 all)$", text, re.MULTILINE)


def dead_name() -> str:
    """Name a process of this machine that has ended: its number is that of another one by now."""
    host, pid, _, token = worker_name().split(":")
    return f"{host}:{pid}:1:{token}"


async def test_status_passes_on_what_the_daemon_says(web: FakeWeb, sqlite_url: str) -> None:
    settings = settings_for(url=sqlite_url, api={"listen": "127.0.0.1:0"})
    async with crawling(settings, SystemClock()) as crawl:
        assert (await status_of(crawl, "--set", "api.listen=127.0.0.1:1"))["daemon"]["status"] == "not_answering"
        async with ApiServer(settings, crawl.database) as api:
            daemon = (await status_of(crawl, "--set", f"api.listen={api.address}"))["daemon"]
            assert daemon == {"listen": api.address, "status": "ready", "problem": None, "since": None}


async def test_the_slowest_origins_come_first(web: FakeWeb, sqlite_url: str) -> None:
    """By the slowest answers but one in twenty; answers that never came count for nothing."""
    quick, slow, dead = web.site("quick"), web.site("slow"), web.site("dead")
    quick.manifest(entry("quick", quick.host))

    def dawdling(site: Site) -> Any:
        async def answer(_: server.Request) -> server.StreamResponse:
            await asyncio.sleep(0.3)
            return server.json_response({"entries": [entry("slow", site.host)]})

        return answer

    slow.handle(ARD, dawdling(slow))
    settings = settings_for(quick, slow, dead.origin.replace(str(web.port), "1"), url=sqlite_url)
    async with crawling(settings, SystemClock()) as crawl:
        await crawl.run()
        found = await crawl.database.read(slowest_origins)
    assert [item.origin for item in found] == [slow.origin, quick.origin]
    assert found[0].p50_s < found[0].p95_s
    assert found[0].p95_s >= timedelta(seconds=0.3).total_seconds()


async def test_status_of_a_database_that_cannot_be_opened_is_one_message(tmp_path: Any) -> None:
    code, out = await command(f"sqlite+aiosqlite:///{tmp_path}/none/ardvark.db", "status")
    assert code == 2
    assert re.fullmatch(r"ardvark: storage.url: the folder \S+ does not exist\n", out)
