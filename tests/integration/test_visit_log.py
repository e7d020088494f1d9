"""The one line that a visit leaves in the log: what it came to and what it cost."""

import json
import os
import pty
import subprocess
import sys
from typing import Any

from aiohttp import web as server
from structlog.testing import capture_logs

from tests.conftest import OpenCrawl
from tests.fakes.cards import agent_card, agent_entry
from tests.fakes.clock import FakeClock
from tests.fakes.harness import ALL_SURFACES, Crawl
from tests.fakes.web import FakeWeb, entry

SCRIPT = """
import structlog
from config.logging import configure_logging
from config.settings import LoggingSettings

configure_logging(LoggingSettings())
structlog.get_logger("ardvark.test").info("visit.done", origin="https://acme.example", documents={"fetched": 1})
"""


async def test_a_visit_leaves_one_line_with_all_that_it_came_to(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.redirect("/.well-known/ard.json", "/moved.json")
    body = acme.manifest(entry("one"), path="/moved.json").body
    lines: list[dict[str, Any]] = []
    async with crawl_sqlite(acme) as crawl:
        for _ in range(2):
            with capture_logs() as events:
                await crawl.run()
            (line,) = events
            lines.append(dict(line))
            clock.advance(hours=2)
    first, second = lines
    assert {**first, "seconds": 0} == {
        "event": "visit.done",
        "log_level": "info",
        "origin": acme.origin,
        "failed": False,
        "robots": "robots_unavailable",
        "documents": {"fetched": 1, "absent": 2},
        "changed": 1,
        "entries": {"added": 1},
        "artifacts": 0,
        "postponed": 0,
        "requests": len(web.seen) / 2,
        "not_modified": 0,
        "bytes": len(body),
        "seconds": 0,
    }
    assert (second["documents"]["not_modified"], second["not_modified"], second["changed"]) == (1, 1, 0)
    assert (second["requests"], second["bytes"]) == (first["requests"], 0)


async def test_the_line_tells_what_the_visit_changed(web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock) -> None:
    """Entries by what became of them, cards that changed; another look at the same adds up to nothing."""
    acme = web.site("acme")
    acme.json("/card.json", agent_card())
    steps = [
        [agent_entry("agent", "/card.json"), entry("one"), entry("two")],
        [agent_entry("agent", "/card.json"), entry("one", description="Other words."), entry("three"), entry("four")],
        [agent_entry("agent", "/card.json"), entry("one", description="Other words."), entry("three"), entry("four")],
    ]
    cards = [agent_card(), agent_card(), agent_card(description="Does more than before.")]
    told = []
    async with open_crawl({"origin": acme.origin, "surfaces": list(ALL_SURFACES)}) as crawl:
        for entries, card in zip(steps, cards, strict=True):
            acme.manifest(*entries)
            acme.json("/card.json", card)
            told.append(await told_of_one_visit(crawl))
            clock.advance(hours=30)
        acme.handle("/.well-known/ard.json", gone)
        told.append(await told_of_one_visit(crawl))
    assert told == [
        ({"added": 3}, 1),
        ({"added": 2, "changed": 1, "removed": 1}, 0),
        ({}, 1),
        ({"removed": 4}, 0),
    ]


async def gone(_: server.Request) -> server.Response:
    return server.Response(status=410)


async def told_of_one_visit(crawl: Crawl) -> tuple[dict[str, int], int]:
    with capture_logs() as events:
        await crawl.run()
    (line,) = [event for event in events if event["event"] == "visit.done"]
    return line["entries"], line["artifacts"]


def test_the_log_is_json_in_a_pipe_and_text_on_a_terminal() -> None:
    command = [sys.executable, "-c", SCRIPT]
    piped = subprocess.run(command, stderr=subprocess.PIPE, check=True).stderr
    logged = json.loads(piped)
    assert (logged["event"], logged["documents"], logged["level"]) == ("visit.done", {"fetched": 1}, "info")

    ours, theirs = pty.openpty()
    try:
        subprocess.run(command, stderr=theirs, check=True)
        shown = os.read(ours, 65_536)
    finally:
        os.close(theirs)
        os.close(ours)
    assert b"visit.done" in shown
    assert b"\x1b[" in shown
    assert not shown.startswith(b"{")
