"""`ardvark endorse` as an operator runs it, with a candidate from a file or from a registry."""

import asyncio
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from config.errors import OperatorError
from crawler.cli import cli
from tests.conftest import OpenCrawl
from tests.fakes.registry import serving
from tests.fakes.web import FakeWeb, Site, entry

pytestmark = pytest.mark.system
ARDVARK = str(Path(sys.executable).parent / "ardvark")
OSD = "https://opensupportdiscovery.org/ns#"
BRAND = "acme.example"
ECHO = entry(**{"@context": {"osd": OSD}, "osd:brandDomain": BRAND})
IDENTIFIER = str(ECHO["identifier"])
SETTINGS = """
[network]
allow_http = true
allow_private = ["127.0.0.0/8"]
hosts = {{ "*.example" = "127.0.0.1" }}
total_timeout = "3s"
[politeness]
min_delay = "0s"
[[origins]]
origin = "{origin}"
{more}
"""


@dataclass
class Ran:
    status: int
    out: str
    errors: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def configure(site: Site, more: str) -> None:
    Path("ardvark.toml").write_text(SETTINGS.format(origin=site.origin, more=more))


def databases() -> list[Path]:
    return list(Path().glob("*.db"))


async def run(*arguments: str, site: Site | None = None, more: str = "") -> Ran:
    if site is not None:
        configure(site, more)
    process = await asyncio.create_subprocess_exec(
        ARDVARK, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, errors = await process.communicate()
    assert b"Traceback" not in errors, errors.decode()
    return Ran(process.returncode if process.returncode is not None else -1, out.decode(), errors.decode())


def candidate(value: Any) -> str:
    Path("entry.json").write_text(value if isinstance(value, str) else json.dumps(value))
    return "entry.json"


async def test_zero_is_a_match_one_a_mismatch_two_is_anything_else(web: FakeWeb) -> None:
    acme = web.site("acme")
    acme.manifest(ECHO)
    match = await run("endorse", "--brand", "ACME.example.", "--entry", candidate(ECHO), "--json", site=acme)
    assert (match.status, match.json["verdict"], match.json["brandDomain"]) == (0, "match", BRAND)
    assert match.json["manifest"]["url"] == acme.url("/.well-known/ard.json")
    assert match.json["validUntil"] is not None

    other = {**ECHO, "displayName": "Other"}
    mismatch = await run("endorse", "--brand", BRAND, "--entry", candidate(other), "--json")
    assert (mismatch.status, mismatch.json["reason"]) == (1, "differs")

    acme.gone("/.well-known/ard.json")
    absent = await run("endorse", "--brand", BRAND, "--entry", candidate(ECHO), "--json")
    assert (absent.status, absent.json["verdict"], absent.json["reason"]) == (2, "inconclusive", "manifest_absent")


async def test_people_read_the_verdict_and_the_places_with_credentials_masked(web: FakeWeb) -> None:
    acme = web.site("acme")
    acme.manifest({**ECHO, "tags": ["a"]})
    wrong = {**ECHO, "tags": ["b\x1b[31m"], "metadata": {"api_key": "hunter2hunter2"}}
    shown = await run("endorse", "--brand", BRAND, "--entry", candidate(wrong), site=acme)
    assert shown.status == 1
    assert shown.out.startswith("mismatch (differs): ")
    assert "/tags/0" in shown.out
    assert "/metadata" in shown.out
    assert "hunter2" not in shown.out
    assert "\x1b" not in shown.out
    fine = await run("endorse", "--brand", BRAND, "--entry", candidate({**ECHO, "tags": ["a"]}))
    assert fine.out.startswith("match\n")


async def test_the_candidate_can_come_from_a_registry(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(ECHO)
    async with serving(crawl_sqlite, acme) as registry:
        base = f"http://{registry.address}/api/v1"
        asked = ("endorse", "--brand", BRAND, "--registry", base, "--json", "--id")
        match = await run(*asked, IDENTIFIER, site=acme)
        assert (match.status, match.json["verdict"], match.json["identifier"]) == (0, "match", IDENTIFIER)

        acme.manifest({**ECHO, "displayName": "Renamed"})
        lagging = await run(*asked, IDENTIFIER)
        assert (lagging.status, lagging.json["reason"]) == (1, "differs")
        assert [item["pointer"] for item in lagging.json["differences"]] == ["/displayName"]

        unknown = await run(*asked, "urn:air:acme.example:tool:none")
        assert (unknown.status, unknown.json["reason"]) == (2, "candidate_unavailable")


async def test_a_candidate_that_equals_what_was_published_before_says_for_how_long_it_is_behind(
    web: FakeWeb, crawl_sqlite: OpenCrawl, sqlite_url: str
) -> None:
    acme = web.site("acme")
    more = f'[storage]\nurl = "{sqlite_url}"'
    asked = ("endorse", "--brand", BRAND, "--entry", candidate(ECHO))
    async with crawl_sqlite(acme) as crawl:
        acme.manifest(ECHO)
        await crawl.run()
        acme.manifest({**ECHO, "version": "2"})
        # What is stored last is behind as well, as long as nobody has looked again.
        for _ in range(2):
            result = await run(*asked, "--json", site=acme, more=more)
            (found,) = result.json["diagnostics"]
            assert (result.status, found["code"]) == (1, "equal_to_older_snapshot")
            assert 0 <= found["lag"]["atLeastS"] <= found["lag"]["atMostS"]
            await crawl.run()
    shown = await run(*asked)
    assert "equal_to_older_snapshot: last seen 20" in shown.out
    assert "the candidate has been behind for " in shown.out


async def test_without_a_database_none_is_made(web: FakeWeb) -> None:
    acme = web.site("acme")
    acme.manifest({**ECHO, "version": "2"})
    result = await run("endorse", "--brand", BRAND, "--entry", candidate(ECHO), "--json", site=acme)
    assert (result.status, result.json["diagnostics"], result.errors) == (1, [], "")
    assert not databases()


async def test_the_identifier_is_sent_as_one_encoded_segment(web: FakeWeb) -> None:
    acme, registry = web.site("acme"), web.site("registry")
    acme.manifest(ECHO)
    path = "/api/v1/agents/urn%3Aair%3Aacme.example%3Atool%3Aecho"
    registry.json(path, ECHO)
    arguments = ("endorse", "--brand", BRAND, "--registry", registry.url("/api/v1/"), "--id", IDENTIFIER, "--json")
    match = await run(*arguments, site=acme)
    assert (match.status, match.json["verdict"]) == (0, "match")
    assert [seen.path for seen in registry.requests()] == [path]
    # What else a registry puts into its answer is part of its answer.
    registry.json(path, {**ECHO, "score": 1, "source": registry.url("/api/v1/")})
    assert (await run(*arguments)).json["reason"] == "differs"
    # A wrapped entry is used as it is, and an answer under another contract not at all.
    registry.json(path, {"entry": ECHO, "contractVersion": "2"})
    assert (await run(*arguments)).status == 0
    discarded = await run(*arguments, site=acme, more='[osd]\ncontract_version = "1"')
    assert (discarded.status, discarded.out) == (2, "")
    assert "another contract version" in discarded.errors
    registry.json(path, {"entry": ECHO, "contractVersion": "1"})
    assert (await run(*arguments)).status == 0


async def test_a_registry_cannot_lead_elsewhere(web: FakeWeb) -> None:
    acme, registry, inner = web.site("acme"), web.site("registry"), web.site("inner")
    acme.manifest(ECHO)
    inner.json("/entry", ECHO)
    registry.redirect("/agents/urn%3Aair%3Aacme.example%3Atool%3Aecho", inner.url("/entry"))
    arguments = ("endorse", "--brand", BRAND, "--registry", registry.origin, "--id", IDENTIFIER, "--json")
    result = await run(*arguments, site=acme)
    assert (result.status, result.json["reason"]) == (2, "candidate_unavailable")
    assert inner.requests() == []


async def test_only_the_manifest_is_fetched_and_as_politely_as_ever(web: FakeWeb) -> None:
    acme = web.site("acme")
    nested = {**entry("more"), "type": "application/ai-catalog+json", "url": acme.url("/more.json")}
    acme.manifest(ECHO, nested, headers={"Link": '</other.json>; rel="ard"'})
    acme.robots(f"Agentmap: {acme.url('/map.json')}\n")
    match = await run("endorse", "--brand", BRAND, "--entry", candidate(ECHO), "--json", site=acme)
    assert match.status == 0
    assert [seen.path for seen in acme.requests()] == ["/robots.txt", "/.well-known/ard.json"]

    acme.robots("User-agent: *\nDisallow: /\n")
    withheld = await run("endorse", "--brand", BRAND, "--entry", candidate(ECHO), "--json")
    assert (withheld.status, withheld.json["reason"]) == (2, "manifest_unavailable")
    assert len(acme.requests("/.well-known/ard.json")) == 1


async def test_a_manifest_that_may_not_be_kept_can_be_judged_now(web: FakeWeb) -> None:
    acme = web.site("acme")
    for control in ("no-store", "private", "no-cache", "max-age=0"):
        acme.manifest(ECHO, headers={"Cache-Control": control})
        match = await run("endorse", "--brand", BRAND, "--entry", candidate(ECHO), "--json", site=acme)
        assert (match.status, match.json["verdict"]) == (0, "match"), control
        # Valid for the moment and no longer.
        if control != "private":
            assert match.json["validUntil"] == match.json["manifest"]["confirmedAt"], control


async def test_redirects_count_within_the_domain_only(web: FakeWeb) -> None:
    acme, www, cdn = web.site("acme"), web.site("www.acme.example"), web.site("cdn.acme.example")
    for host in (www, cdn):
        host.manifest(ECHO, path="/ard.json")
    acme.redirect("/.well-known/ard.json", www.url("/ard.json"))
    followed = await run("endorse", "--brand", BRAND, "--entry", candidate(ECHO), "--json", site=acme)
    assert (followed.status, followed.json["manifest"]["finalUrl"]) == (0, www.url("/ard.json"))
    acme.redirect("/.well-known/ard.json", cdn.url("/ard.json"))
    away = await run("endorse", "--brand", BRAND, "--entry", candidate(ECHO), "--json")
    assert (away.status, away.json["reason"]) == (2, "redirected_off_domain")
    assert cdn.requests() == []


async def test_an_invalid_manifest_is_inconclusive_and_an_invalid_candidate_a_mismatch(web: FakeWeb) -> None:
    acme = web.site("acme")
    acme.manifest(ECHO, entry("two", displayName=None))
    invalid = await run("endorse", "--brand", BRAND, "--entry", candidate(ECHO), "--json", site=acme)
    assert (invalid.status, invalid.json["reason"]) == (2, "manifest_invalid")
    acme.manifest(ECHO)
    twice = json.dumps(ECHO)[:-1] + ', "url": "x"}'
    mismatch = await run("endorse", "--brand", BRAND, "--entry", candidate(twice), "--json")
    assert (mismatch.status, mismatch.json["reason"]) == (1, "candidate_invalid")


async def test_an_operators_mistake_is_two_with_one_message(web: FakeWeb) -> None:
    acme = web.site("acme")
    result = await run("endorse", "--brand", BRAND, "--entry", "nowhere.json", site=acme)
    assert (result.status, result.out) == (2, "")
    assert result.errors == "ardvark: nowhere.json: cannot be read (No such file or directory)\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--brand", "https://acme.example", "--entry", "entry.json"), "--brand"),
        (("--brand", "acme", "--entry", "entry.json"), "--brand"),
        (("--brand", BRAND), "--entry"),
        (
            ("--brand", BRAND, "--entry", "entry.json", "--registry", "https://r.example/", "--id", IDENTIFIER),
            "--entry",
        ),
        (("--brand", BRAND, "--registry", "https://r.example/"), "--id"),
        (("--brand", BRAND, "--entry", "entry.json", "--id", IDENTIFIER), "--id"),
        (("--brand", BRAND, "--registry", "r.example", "--id", IDENTIFIER), "--registry"),
        (("--brand", BRAND, "--registry", "https://r.example/?a=b", "--id", IDENTIFIER), "--registry"),
        (("--brand", BRAND, "--registry", "https://r.example/", "--id", "echo"), "--id"),
    ],
)
def test_options_that_do_not_fit_together_are_named(arguments: tuple[str, ...], message: str) -> None:
    candidate(ECHO)
    result = CliRunner().invoke(cli, ["endorse", *arguments])
    assert isinstance(result.exception, OperatorError)
    assert message in str(result.exception)
