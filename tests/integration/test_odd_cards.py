"""Cards that are well-formed JSON and hold what no honest card does: they are kept like any other, on both engines."""

import json

import pytest

from tests.conftest import OpenCrawl
from tests.fakes.cards import CARD, LEGACY, agent_card, agent_entry, cards_by_path, open_drifts, urn, versions_of
from tests.fakes.clock import FakeClock
from tests.fakes.harness import ALL_SURFACES
from tests.fakes.web import FakeWeb, Site

HUGE = 10**30 + 7


def origin(site: Site) -> dict[str, object]:
    return {"origin": site.origin, "surfaces": list(ALL_SURFACES)}


@pytest.mark.parametrize("version", ["1" * 60, "one \u2028", "1\x00", "x" * 5000])
async def test_an_agent_file_of_any_protocol_version_is_kept(web: FakeWeb, open_crawl: OpenCrawl, version: str) -> None:
    acme = web.site("acme")
    acme.json(LEGACY, {"protocol": f"agent-seo/{version}", "capabilities": ["plan"]})
    async with open_crawl(origin(acme)) as crawl:
        summary = await crawl.run()
        card = (await cards_by_path(crawl))[LEGACY]
        assert (card.kind, card.shape) == ("madp.agent", "agent-seo")
        assert summary.crashed == 0


async def test_a_number_past_64_bits_is_no_change_in_another_formatting_and_no_hindrance_to_one(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.manifest(agent_entry())
    capabilities = {"extensions": [{"uri": "https://acme.example/limits", "params": {"most": HUGE}}]}
    acme.json(CARD, agent_card(capabilities=capabilities))
    async with open_crawl(origin(acme)) as crawl:
        await crawl.run()
        acme.page(CARD, json.dumps(agent_card(capabilities=capabilities), indent=1))
        clock.advance(days=1)
        await crawl.run()
        assert await versions_of(crawl) == []
        acme.json(CARD, agent_card(capabilities=capabilities, version="2.0.0"))
        clock.advance(days=1)
        await crawl.run()
        (version,) = await versions_of(crawl)
        assert [edit["pointer"] for edit in version.edits] == ["/version"]
        assert str(HUGE) in version.content
        assert await open_drifts(crawl) == [("drift.version_mismatch", urn(), "/version")]
