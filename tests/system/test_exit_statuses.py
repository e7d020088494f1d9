"""0 done, 1 found what the command looks for, 2 the operator's mistake or nothing accepted."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.web import FakeWeb, entry

pytestmark = pytest.mark.system
ARDVARK = str(Path(sys.executable).parent / "ardvark")
LOOPBACK = (
    "--set",
    "network.allow_http=true",
    "--set",
    'network.allow_private=["127.0.0.0/8"]',
    "--set",
    'network.hosts={"*.example"="127.0.0.1"}',
    "--set",
    'politeness.min_delay="0s"',
)


async def status_of(*arguments: str) -> int:
    process = await asyncio.create_subprocess_exec(
        ARDVARK, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    _, errors = await process.communicate()
    assert b"Traceback" not in errors
    return process.returncode if process.returncode is not None else -1


@pytest.mark.parametrize(
    ("entries", "options", "status"),
    [
        ([entry()], (), 0),
        ([entry(representativeQueries=["only one"])], (), 0),
        ([entry(representativeQueries=["only one"])], ("--strict",), 1),
        ([entry(), entry("two", type=None)], (), 1),
    ],
)
async def test_check_says_by_its_status_whether_there_are_faults(
    tmp_path: Path, entries: list[Any], options: tuple[str, ...], status: int
) -> None:
    manifest = tmp_path / "ard.json"
    manifest.write_text(json.dumps({"entries": entries}))
    assert await status_of("check", *options, str(manifest)) == status


async def test_what_is_not_there_is_one_and_what_cannot_be_read_is_two() -> None:
    assert await status_of("show", "urn:air:acme.example:tool:echo") == 1
    assert await status_of("check", "nowhere.json") == 2
    assert await status_of("crawl", "https://nobody.example") == 2
    assert await status_of("no-such-command") == 2
    assert await status_of("--help") == 0


async def test_discover_is_two_when_no_catalog_was_accepted(web: FakeWeb) -> None:
    empty, full = web.site("empty"), web.site("full")
    full.manifest(entry("echo", "full.example"))
    assert await status_of(*LOOPBACK, "discover", empty.origin) == 2
    assert await status_of(*LOOPBACK, "discover", full.origin) == 0
