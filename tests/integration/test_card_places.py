"""The places where an origin keeps its own cards: what is asked for, in which order, and with what."""

from typing import Any

import pytest

from tests.conftest import OpenCrawl
from tests.fakes.cards import CARD, LEGACY, agent_card, agent_entry, server_card
from tests.fakes.harness import ALL_SURFACES
from tests.fakes.web import FakeWeb, Site

SERVER_CARDS = [
    "/.well-known/mcp/server-card.json",
    "/.well-known/mcp.json",
    "/.well-known/mcp-server-card",
    "/.well-known/mcp/server-card",
]
PLACES = [CARD, LEGACY, *SERVER_CARDS]


def asked(site: Site) -> list[str]:
    """Give the places of cards that were asked for, in order."""
    return [seen.path for seen in site.requests() if seen.path in PLACES]


def origin(site: Site, *surfaces: str) -> dict[str, Any]:
    return {"origin": site.origin, "surfaces": list(surfaces or ALL_SURFACES)}


async def test_all_places_are_tried_in_their_order_while_there_is_no_card(
    web: FakeWeb, crawl_sqlite: OpenCrawl
) -> None:
    acme = web.site("acme")
    async with crawl_sqlite(origin(acme, "a2a", "mcp")) as crawl:
        await crawl.run()
    assert [path for path in asked(acme) if path in SERVER_CARDS] == SERVER_CARDS
    assert [path for path in asked(acme) if path not in SERVER_CARDS] == [CARD, LEGACY]


async def test_a_catalog_is_read_before_the_cards_of_its_origin(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(agent_entry(url="/cards/planner.json"))
    acme.json("/cards/planner.json", agent_card())
    async with crawl_sqlite(origin(acme)) as crawl:
        await crawl.run()
    paths = [seen.path for seen in acme.requests()]
    manifests = ["/.well-known/ard.json", "/.well-known/ai-catalog.json", "/"]
    assert max(map(paths.index, manifests)) < min(paths.index(path) for path in (CARD, SERVER_CARDS[0]))
    assert paths[-1] == "/cards/planner.json", "the origin's own cards come before those of entries"


@pytest.mark.parametrize("place", SERVER_CARDS)
async def test_the_first_server_card_ends_the_search_for_one(web: FakeWeb, crawl_sqlite: OpenCrawl, place: str) -> None:
    acme = web.site("acme")
    acme.json(place, server_card())
    async with crawl_sqlite(origin(acme, "mcp")) as crawl:
        await crawl.run()
    assert asked(acme) == SERVER_CARDS[: SERVER_CARDS.index(place) + 1]


@pytest.mark.parametrize(
    ("surfaces", "places"),
    [(("a2a",), [CARD]), (("a2a", "madp"), [CARD, LEGACY]), (("madp",), [LEGACY]), (("ard",), [])],
)
async def test_a_card_under_the_current_name_leaves_the_older_one_to_madp(
    web: FakeWeb, crawl_sqlite: OpenCrawl, surfaces: tuple[str, ...], places: list[str]
) -> None:
    acme = web.site("acme")
    acme.json(CARD, agent_card())
    async with crawl_sqlite(origin(acme, *surfaces)) as crawl:
        await crawl.run()
    assert asked(acme) == places


@pytest.mark.parametrize("status", [401, 429, 503])
async def test_a_place_that_cannot_be_seen_says_nothing_about_the_next(
    web: FakeWeb, crawl_sqlite: OpenCrawl, status: int
) -> None:
    acme = web.site("acme")
    acme.page(CARD, status=status)
    acme.json(LEGACY, agent_card())
    async with crawl_sqlite(origin(acme, "a2a")) as crawl:
        await crawl.run()
    assert set(asked(acme)) == {CARD}


async def test_a_place_with_something_else_in_it_is_no_card(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.json(CARD, {"hello": "world"})
    acme.json(LEGACY, agent_card())
    async with crawl_sqlite(origin(acme, "a2a")) as crawl:
        await crawl.run()
        found = await crawl.documents(acme)
        assert {path: found[path].outcome for path in PLACES[:2]} == {CARD: "wrong_kind", LEGACY: "fetched"}


async def test_robots_rules_hold_for_the_places_of_cards(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.robots(f"User-agent: *\nDisallow: {CARD}\n")
    async with crawl_sqlite(origin(acme, "a2a")) as crawl:
        await crawl.run()
        found = await crawl.documents(acme)
        assert found[CARD].outcome == "disallowed"
    assert asked(acme) == []


async def test_every_request_says_who_asks_and_for_what(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(agent_entry())
    acme.json(CARD, agent_card())
    async with crawl_sqlite(origin(acme)) as crawl:
        await crawl.run()
    for seen in acme.requests():
        assert seen.headers["User-Agent"].startswith("ardvark/")
        assert "https://registry.example/crawler" in seen.headers["User-Agent"]
        assert seen.headers["Accept-Encoding"] == "gzip"
    for path in PLACES[:2] + SERVER_CARDS:
        (accept,) = {seen.headers["Accept"] for seen in acme.requests(path)}
        assert {"application/json", "application/mcp-server-card+json", "application/a2a-agent-card+json"} <= {
            item.strip() for item in accept.split(",")
        }
    (seen,) = acme.requests("/.well-known/ard.json")
    assert seen.headers["Accept"].startswith("application/json")
    assert "A2A-Version" not in seen.headers
