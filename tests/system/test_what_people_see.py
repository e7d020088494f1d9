"""What commands tell people: nothing left out that matters, nothing that misleads, and no traceback for a slip."""

from crawler.clock import SystemClock
from tests.fakes.harness import crawling, settings_for
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
