"""The bounds that hold when the operator sets none: how much is read of what, how deep, how long it may take."""

import json
from datetime import timedelta
from typing import Any

import pytest

from config.loading import load_settings
from config.settings import Settings
from crawler.assembly import make_bounds, make_policy
from crawler.surfaces.ard import read_manifest
from crawler.surfaces.base import Source
from index.records import Standing
from tests.conftest import OpenCrawl
from tests.fakes.fetching import answer, by_path, fetching
from tests.fakes.web import FakeWeb, RawServer, entry

ARD = "/.well-known/ard.json"
ECHO = "urn:air:acme.example:tool:echo"
MIB = 1_048_576
SOURCE = Source("https://acme.example/.well-known/ard.json", 10)


def defaults() -> Settings:
    return load_settings()


def test_the_defaults_are_the_documented_ones() -> None:
    settings = defaults()
    assert (settings.network.connect_timeout, settings.network.header_timeout) == (timedelta(seconds=10),) * 2
    assert settings.network.total_timeout == timedelta(seconds=30)
    assert settings.network.max_redirects == 5
    assert settings.limits.manifest_size == MIB
    assert settings.limits.page_size == 512 * 1024
    assert settings.limits.robots_size == 500 * 1024
    assert settings.limits.entries == 10_000
    assert settings.limits.json_depth == 64
    assert settings.limits.string_size == 64 * 1024
    assert settings.politeness.min_delay == timedelta(seconds=1)
    assert settings.crawl.nesting_depth == 4


def test_every_door_is_closed_by_default() -> None:
    network = defaults().network
    assert network.allow_http is False
    assert network.allow_private == ()
    assert network.hosts == {}
    assert network.extra_ca_file is None


def test_visits_go_by_the_settings() -> None:
    settings = defaults()
    policy = make_policy(settings)
    assert policy.manifest_size == settings.limits.manifest_size
    assert policy.rules.page_size == settings.limits.page_size
    assert policy.robots.max_size == settings.limits.robots_size
    assert policy.robots.min_delay == settings.politeness.min_delay
    assert policy.rules.bounds == make_bounds(settings)
    assert (policy.rules.bounds.entries, policy.rules.bounds.json_depth) == (
        settings.limits.entries,
        settings.limits.json_depth,
    )
    assert policy.rules.bounds.string_size == settings.limits.string_size


async def test_nothing_on_this_machine_can_be_reached_by_default(web: FakeWeb) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"))
    closed = {"allow_private": [], "hosts": {"*.example": "127.0.0.1"}}
    async with fetching(acme, network=closed) as fetch:
        seen = await fetch.get(acme.url(ARD))
    assert (seen.outcome, seen.reason, seen.detail) == ("refused", "address", "127.0.0.1 is loopback")
    assert web.seen == []


# --- sizes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "outcome"), [(MIB, "fetched"), (MIB + 1, "too_large")])
@pytest.mark.parametrize("way", ["announced", "chunked", "gzip"])
async def test_a_manifest_may_have_one_mebibyte_and_no_byte_more(
    web: FakeWeb, crawl_sqlite: OpenCrawl, size: int, outcome: str, way: str
) -> None:
    acme = web.site("acme")
    body = json.dumps({"entries": [entry("echo")]}).encode()
    body += b" " * (size - len(body))
    if way == "chunked":
        body = f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"
        said = by_path({ARD: answer(body, "Transfer-Encoding: chunked", length=None)})
        async with RawServer(said) as raw, crawl_sqlite(f"http://acme.example:{raw.port}") as crawl:
            await crawl.run()
            document = (await crawl.documents(f"http://acme.example:{raw.port}"))[ARD]
    else:
        acme.page(ARD, body, gzip=way == "gzip")
        async with crawl_sqlite(acme) as crawl:
            await crawl.run()
            document = (await crawl.documents(acme))[ARD]
    assert document.outcome == outcome


@pytest.mark.parametrize(("before", "counts"), [(512_000 - 40, True), (512_000, False)])
async def test_of_a_robots_txt_the_first_500_kibibytes_count(
    web: FakeWeb, crawl_sqlite: OpenCrawl, before: int, counts: bool
) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"))
    rule = "User-agent: *\nDisallow: /.well-known\n"
    comment = "# " + "x" * 77 + "\n"
    padding = (comment * (before // len(comment) + 1))[: before - 1] + "\n"
    acme.robots(padding + rule + comment * 10)
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        assert (acme.requests(ARD) == []) == counts
        assert (await crawl.documents(acme))["/robots.txt"].length == 512_000


@pytest.mark.parametrize(("before", "counts"), [(500_000, True), (524_288, False)])
async def test_of_a_page_the_first_512_kibibytes_count(
    web: FakeWeb, crawl_sqlite: OpenCrawl, before: int, counts: bool
) -> None:
    acme = web.site("acme")
    script = f'<script type="application/ld+json">{json.dumps(entry("echo"))}</script>'
    acme.html("/", "<title>Acme</title><body><p>" + "x" * before + script)
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
        assert await crawl.identifiers() == ([ECHO] if counts else [])


def minimal(number: int) -> dict[str, Any]:
    return {"identifier": f"urn:air:a.example:t:{number}", "displayName": "x", "type": "a/b", "url": "/x"}


def test_of_a_manifest_ten_thousand_entries_are_read_and_the_rest_is_named() -> None:
    bounds = make_bounds(defaults())
    body = json.dumps({"entries": [minimal(number) for number in range(10_001)]}).encode()
    reading = read_manifest(body, SOURCE, bounds)
    assert len(reading.entries) == 10_000
    assert reading.complete is False, "what was not read must not count as taken out"
    assert [problem.code for problem in reading.problems] == ["manifest.too_many_entries"]
    assert read_manifest(json.dumps({"entries": [minimal(1)] * 3}).encode(), SOURCE, bounds).complete is True


def nested(depth: int, *openers: str) -> bytes:
    """A manifest of that depth; the root, the array of entries and the entry are its first levels."""
    inner = [openers[level % len(openers)] for level in range(depth - 3)]
    closers = {"[": "]", '{"a":': "}"}
    value = "".join(inner) + "1" + "".join(closers[opener] for opener in reversed(inner))
    return json.dumps({"entries": [entry("echo", metadata="@")]}).replace('"@"', value).encode()


@pytest.mark.parametrize("openers", [("[",), ('{"a":',), ("[", '{"a":')], ids=["arrays", "objects", "both"])
@pytest.mark.parametrize(("depth", "kind"), [(64, "manifest"), (65, "malformed")])
def test_json_may_nest_64_levels(depth: int, kind: str, openers: tuple[str, ...]) -> None:
    assert read_manifest(nested(depth, *openers), SOURCE, make_bounds(defaults())).kind == kind


def test_a_manifest_that_breaks_off_is_not_taken_for_a_deep_one() -> None:
    body = json.dumps({"entries": [minimal(number) for number in range(200)]}).encode()
    reading = read_manifest(body[:-20], SOURCE, make_bounds(defaults()))
    assert [problem.code for problem in reading.problems] == ["json.syntax"]


@pytest.mark.parametrize(("length", "problems"), [(65_536, []), (65_537, ["entry.text_long"])])
def test_a_text_may_have_64_kibibytes_before_it_is_cut_with_a_mark(length: int, problems: list[str]) -> None:
    body = json.dumps({"entries": [entry("echo", description="x" * length)]}).encode()
    (read,) = read_manifest(body, SOURCE, make_bounds(defaults())).entries
    assert [problem.code for problem in read.problems] == problems
    assert read.standing is Standing.CANDIDATE
    assert read.value["description"].startswith("x" * 65_536)
    assert read.value["description"].endswith(" […]" if problems else "x")
