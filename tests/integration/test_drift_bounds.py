"""A publisher that makes documents disagree in as many ways as it can fills neither the disk nor anybody's time."""

from typing import Any

from tests.conftest import OpenCrawl
from tests.fakes.cards import CARD, agent_card, agent_entry, all_drifts, skill
from tests.fakes.harness import ALL_SURFACES
from tests.fakes.web import FakeWeb, Site, entry

PREDECESSOR = "/.well-known/ai-catalog.json"


def origin(site: Site) -> dict[str, object]:
    return {"origin": site.origin, "surfaces": list(ALL_SURFACES)}


def inline(number: int) -> Any:
    data = {"name": "Planner", "supportedInterfaces": [{"url": "https://old.example/a2a"}]}
    return entry(f"planner-{number}", type="application/json", url=None, data=data)


async def test_two_manifests_differ_in_so_many_members_and_entries(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    for path, name in (("/.well-known/ard.json", "a"), (PREDECESSOR, "b")):
        wide = entry("wide", **{f"{name}{number}": number for number in range(300)})
        others = [entry(f"{name}{number}", type="text/plain", representativeQueries=None) for number in range(600)]
        acme.manifest(wide, *others, path=path)
    async with crawl_sqlite(origin(acme)) as crawl:
        await crawl.run()
        rows = await all_drifts(crawl)
        assert len(rows) == 1000
        assert len([row for row in rows if row.identifier.endswith(":wide")]) == 50
        known = {row.id for row in rows}
        await crawl.run()
        assert {row.id for row in await all_drifts(crawl) if row.closed_at is None} == known


async def test_an_entry_and_its_card_disagree_in_so_many_ways(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(agent_entry(tags=[f"old-{number}" for number in range(90)], version="2.0.0"))
    acme.json(CARD, agent_card())
    async with crawl_sqlite(origin(acme)) as crawl:
        await crawl.run()
        assert len(await all_drifts(crawl)) == 50
        acme.json(CARD, agent_card(supportedInterfaces=[{"url": "https://acme.example/other"}]))
        await crawl.run()
        assert {row.closed_at for row in await all_drifts(crawl)} == {None}, "always the same ones are kept"


async def test_so_much_of_cards_is_compared_with_the_origins_own(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(*(inline(number) for number in range(60)))
    skills = [skill(f"skill-{number}", *(f"tag-{tag}" for tag in range(15))) for number in range(2000)]
    acme.json(CARD, agent_card(skills=skills))
    async with crawl_sqlite(origin(acme)) as crawl:
        await crawl.run()
        assert 10 < len(await all_drifts(crawl, code="drift.inline_stale")) < 60
        acme.json(CARD, agent_card(skills=skills[:10]))
        await crawl.run()
        assert len(await all_drifts(crawl, code="drift.inline_stale")) == 60
