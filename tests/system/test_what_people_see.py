"""What commands tell people: nothing left out that matters, nothing that misleads, and no traceback for a slip."""

import json

import pytest

from crawler.clock import SystemClock
from tests.fakes.cards import CARD, agent_card, agent_entry, urn
from tests.fakes.harness import ALL_SURFACES, crawling, settings_for
from tests.fakes.shell import command
from tests.fakes.web import FakeWeb, entry


async def test_a_search_notes_what_speaks_against_a_result(web: FakeWeb, prepared_url: str) -> None:
    acme, other = web.site("acme"), web.site("other")
    acme.manifest(entry("own"))
    other.manifest(entry("pay", "bank.example"))
    settings = settings_for(acme, other, url=prepared_url)
    async with crawling(settings, SystemClock()) as crawl:
        await crawl.run()
        status, shown = await command(prepared_url, "search", "tool", "--filter", "publisher=acme.example")
        assert (status, shown.splitlines()[0].split()) == (0, ["score", "identifier", "name", "type"])
        acme.page("/.well-known/ard.json", b"", status=503)
        await crawl.run()
    _, shown = await command(prepared_url, "search", "tool")
    notes = {line.split()[1]: line for line in shown.splitlines()[2:]}
    assert notes["urn:air:acme.example:tool:own"].endswith("  stale")
    assert notes["urn:air:bank.example:tool:pay"].endswith("  publisher unproven")


async def test_drift_says_whose_catalog_it_is_where_that_is_not_the_publishers(web: FakeWeb, prepared_url: str) -> None:
    acme, other = web.site("acme"), web.site("other")
    acme.manifest(agent_entry())
    acme.json(CARD, agent_card())
    other.manifest(agent_entry(url=acme.url(CARD), version="0.1.0"))
    settings = settings_for(acme, other, surfaces=ALL_SURFACES, url=prepared_url)
    async with crawling(settings, SystemClock()) as crawl:
        await crawl.run()
    status, shown = await command(prepared_url, "drift")
    headings, _, row = shown.splitlines()
    assert status == 1
    assert headings.endswith("  catalog of")
    assert row.endswith("  other.example")


async def test_a_list_that_is_cut_off_says_so(web: FakeWeb, prepared_url: str) -> None:
    acme = web.site("acme")
    acme.json(CARD, agent_card())
    async with crawling(settings_for(acme, surfaces=ALL_SURFACES, url=prepared_url), SystemClock()) as crawl:
        for version in ("0.1.0", "0.2.0", "0.3.0"):
            acme.manifest(agent_entry(version=version), agent_entry("other", version=version))
            await crawl.run()
    for arguments, end in (
        (("drift",), "and 1 more"),
        (("changes",), "and more, with --after 1"),
        (("history", urn()), "and more, with a larger --limit"),
    ):
        _, cut = await command(prepared_url, *arguments, "--limit", "1")
        assert cut.splitlines()[-1] == end, arguments
        _, whole = await command(prepared_url, *arguments, "--limit", "50")
        assert "more" not in whole.splitlines()[-1], arguments
        _, exact = await command(prepared_url, *arguments, "--limit", "1", "--json")
        assert len(json.loads(exact.partition("ardvark:")[0])["items"]) == 1, arguments


async def test_a_crawl_counts_the_cards_that_it_read_and_those_that_changed(web: FakeWeb, prepared_url: str) -> None:
    acme = web.site("acme")
    acme.manifest(agent_entry(), agent_entry("other", "/other.json"))
    acme.json(CARD, agent_card())
    acme.json("/other.json", agent_card("Other"))

    async def cards() -> dict[str, str]:
        status, shown = await command(prepared_url, "crawl", origins=[acme.origin])
        assert status == 0, shown
        rows = [line.split() for line in shown.splitlines()]
        return {row[1]: row[2] for row in rows if row[0] == "artifacts"}

    assert await cards() == {"read": "2", "added": "2"}
    acme.json(CARD, agent_card(version="2.0.0"))
    assert await cards() == {"read": "2", "changed": "1"}


@pytest.mark.parametrize(
    "arguments",
    [
        ("drift", "--since", "9999-12-31T23:59:59-14:00"),
        ("drift", "--code", "versionmismatch"),
        ("drift", "--identifier", "a\udcff"),
        ("visit", "a\udcff"),
        ("changes", "--after", "9" * 30),
    ],
)
async def test_a_slip_in_an_argument_is_one_message(prepared_url: str, arguments: tuple[str, ...]) -> None:
    status, shown = await command(prepared_url, *arguments)
    assert status == 2
    assert "Traceback" not in shown
    assert arguments[-1].split("\udcff")[0] in shown


@pytest.mark.parametrize("arguments", [("show", "a\udcff"), ("history", "a\udcff")])
async def test_an_identifier_that_is_no_text_is_not_known(prepared_url: str, arguments: tuple[str, ...]) -> None:
    status, shown = await command(prepared_url, *arguments)
    assert (status, shown) == (1, "ardvark: no listing a\N{REPLACEMENT CHARACTER}\n")


async def test_no_event_has_an_identifier_that_is_no_text_or_a_cursor_beyond_all(prepared_url: str) -> None:
    for option, value in (("--identifier", "a\udcff"), ("--after", str(2**63 - 1))):
        assert await command(prepared_url, "changes", option, value) == (0, "no changes\n")
