"""`GET /drift`, `/lag` and `/agents/{identifier}/drift`: what disagrees, since when, and how long copies lag."""

from datetime import datetime
from typing import Any

import pytest
from yarl import URL

from tests.conftest import OpenCrawl
from tests.fakes.cards import CARD, agent_card, agent_entry, server_card, urn
from tests.fakes.clock import FakeClock
from tests.fakes.described import complaints
from tests.fakes.harness import ALL_SURFACES
from tests.fakes.registry import Answer, Registry, serving
from tests.fakes.web import FakeWeb, Site

MEMBERS = {
    *("code", "class", "severity", "identifier", "publisher", "pointer", "livePointer", "members", "catalog", "live"),
    *("catalogUrl", "liveUrl", "catalogDigest", "liveDigest", "state", "openedAt", "confirmedAt", "closedAt"),
    *("closedBy", "moved", "lag", "observations"),
}
VERSION = "drift.version_mismatch"
WRONG_TYPE = "drift.type_mismatch"


def origin(site: Site) -> Any:
    return {"origin": site.origin, "surfaces": list(ALL_SURFACES)}


async def ask(registry: Registry, resource: str, **parameters: str) -> Answer:
    return await registry.get(str(URL(f"/api/v1/{resource}").with_query(parameters)))


async def page(registry: Registry, resource: str, **parameters: str) -> Any:
    answer = await ask(registry, resource, **parameters)
    assert answer.status == 200, answer.body
    return answer.json


async def codes(registry: Registry, **parameters: str) -> list[str]:
    return [item["code"] for item in (await page(registry, "drift", **parameters))["items"]]


def seconds(first: str, second: str) -> float:
    return (datetime.fromisoformat(second) - datetime.fromisoformat(first)).total_seconds()


async def test_a_drift_is_told_from_its_beginning_to_its_end_with_the_lag_between(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.manifest(agent_entry())
    acme.json(CARD, agent_card())
    async with serving(open_crawl, origin(acme)) as registry:
        assert (await page(registry, "drift"))["items"] == []
        clock.advance(hours=3)
        acme.json(CARD, agent_card(version="1.1.0"))
        await registry.crawl.run()
        (item,) = (await page(registry, "drift"))["items"]
        assert set(item) == MEMBERS
        assert (item["code"], item["class"], item["identifier"]) == (VERSION, "version_only", urn())
        assert (item["pointer"], item["livePointer"]) == ("/version", "/version")
        assert (item["catalog"], item["live"], item["publisher"]) == ("1.0.0", "1.1.0", "acme.example")
        assert (item["catalogUrl"], item["liveUrl"]) == (acme.url("/.well-known/ard.json"), acme.url(CARD))
        assert (item["state"], item["moved"], item["closedAt"], item["closedBy"]) == ("open", "live", None, None)
        assert item["lag"]["open"] is True
        assert item["lag"]["atLeastS"] < 60 < 3 * 3600 - 60 < item["lag"]["atMostS"] < 3 * 3600 + 60
        clock.advance(hours=2)
        later = (await page(registry, "drift"))["items"][0]["lag"]
        assert later["atMostS"] == pytest.approx(item["lag"]["atMostS"] + 7200, abs=5)
        acme.manifest(agent_entry(version="1.1.0"))
        await registry.crawl.run()
        assert (await page(registry, "drift"))["items"] == []
        (ended,) = (await page(registry, "drift", state="closed"))["items"]
        assert (ended["state"], ended["closedBy"]) == ("closed", "catalog")
        assert ended["lag"]["open"] is False
        times = ended["observations"]
        assert ended["lag"]["atLeastS"] == pytest.approx(seconds(times["liveNewAt"], times["copyOldAt"]), abs=0.01)
        assert ended["lag"]["atMostS"] == pytest.approx(seconds(times["liveOldAt"], times["copyNewAt"]), abs=0.01)
        assert (await page(registry, "drift", state="all"))["items"] == [ended]
        clock.advance(days=9)
        assert (await page(registry, "drift", state="all"))["items"] == [ended], "what ended grows no older"
        for name, schema in (("drift", "DriftPage"), ("lag", "LagPage"), (f"agents/{urn()}/drift", "DriftOf")):
            parameters = {} if "/" in name else {"state": "all"}
            assert await complaints(registry, schema, await page(registry, name, **parameters)) == [], name


async def test_a_lag_that_the_live_side_ended_lasted_until_then(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.manifest(agent_entry())
    acme.json(CARD, agent_card())
    async with serving(open_crawl, origin(acme)) as registry:
        for version in ("2.0.0", "1.0.0"):
            clock.advance(hours=3)
            acme.json(CARD, agent_card(version=version))
            await registry.crawl.run()
        (item,) = (await page(registry, "drift", state="closed", code=VERSION))["items"]
        assert (item["closedBy"], item["observations"]["copyNewAt"]) == ("live", None)
        assert item["lag"]["open"] is False
        assert item["lag"]["atMostS"] == pytest.approx(
            seconds(item["observations"]["liveOldAt"], item["closedAt"]), abs=1
        )


async def test_drift_is_filtered_by_what_it_is_about(web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock) -> None:
    acme, other = web.site("acme"), web.site("other")
    acme.manifest(agent_entry(), agent_entry("remote", other.url("/card.json")))
    acme.json(CARD, agent_card(version="1.1.0"))
    other.json("/card.json", server_card())
    async with serving(open_crawl, origin(acme), origin(other)) as registry:
        await registry.crawl.run()
        everything = (await page(registry, "drift"))["items"]
        found = {(item["code"], item["identifier"]) for item in everything}
        assert {(VERSION, urn()), (WRONG_TYPE, urn("remote"))} <= found
        assert set(await codes(registry, code=VERSION)) == {VERSION}
        assert set(await codes(registry, **{"class": "version_only"})) == {VERSION}
        assert WRONG_TYPE in await codes(registry, **{"class": "breaking"})
        assert VERSION not in await codes(registry, **{"class": "breaking"})
        assert WRONG_TYPE in await codes(registry, identifier=urn("remote"))
        assert set(await codes(registry, identifier=urn())) == {VERSION}
        assert len(await codes(registry, publisher="ACME.example.")) == len(everything)
        assert await codes(registry, publisher="other.example") == []
        of_card = await page(registry, "drift", origin=other.origin)
        assert {item["identifier"] for item in of_card["items"]} == {urn("remote")}, "the side of the card counts"
        assert len(await codes(registry, origin=f"{acme.origin}/")) == len(everything), "and that of the catalog"
        assert await codes(registry, origin="https://nobody.example") == []
        assert await codes(registry, identifier="\x00") == []
        opened = everything[0]["openedAt"]
        assert len(await codes(registry, since=opened)) == len(everything)
        clock.advance(hours=1)
        for since in (clock.now().isoformat().replace("+00:00", "Z"), "9999-12-31T23:59:59.999-23:00"):
            assert await codes(registry, since=since) == [], since
        for since in ("0000-01-01T00:00:00Z", "0001-01-01t00:00:00.123456789+23:59", "2016-12-31T23:59:60 00:00"):
            assert len(await codes(registry, since=since)) == len(everything), since


async def test_drift_is_paged_and_a_token_belongs_to_its_query(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(agent_entry(tags=[f"t{number}" for number in range(5)]))
    acme.json(CARD, agent_card())
    acme.json("/second.json", agent_card())
    async with serving(open_crawl, origin(acme)) as registry:
        acme.manifest(
            *(agent_entry(f"n{number}", "/second.json", version=f"0.{number}.0") for number in range(1, 8)),
        )
        await registry.crawl.run()
        everything = (await page(registry, "drift", limit="100"))["items"]
        assert len(everything) >= 7
        collected: list[Any] = []
        token: dict[str, str] = {}
        while True:
            part = await page(registry, "drift", limit="3", **token)
            collected += part["items"]
            if "pageToken" not in part:
                break
            assert len(part["items"]) == 3
            token = {"pageToken": part["pageToken"]}
        assert collected == everything
        assert collected == sorted(collected, key=lambda item: item["openedAt"], reverse=True)
        both = await page(registry, "drift", limit="3", pageSize="2")
        assert len(both["items"]) == 2
        for resource, parameters in (
            ("drift", {"state": "all", **token}),
            ("drift", {"code": VERSION, **token}),
            ("lag", token),
            (f"agents/{urn('n1')}/drift", token),
            ("origins", token),
            ("agents", token),
            ("drift", {"pageToken": ""}),
            ("drift", {"pageToken": "AAAA"}),
        ):
            assert (await ask(registry, resource, **parameters)).error() == (400, "INVALID_ARGUMENT"), resource


MISTAKES = (
    "state=ajar",
    "state=",
    "class=terrible",
    "class=Breaking",
    "since=yesterday",
    "since=2026-01-01",
    "since=2026-13-01T00:00:00Z",
    "since=2026-01-01T00:00:00",
    "since=2026-W01-1T00:00:00Z",
    "limit=0",
    "limit=-1",
    "limit=x",
    "pageSize=1.5",
    "limit=%D9%A1",
    "sort=asc",
    "state=open&state=open",
    "code=a&code=b",
    "code=version_mismatch",
    "code=drift.%00",
    "publisher=" + "x" * 501,
    "State=open",
)


async def test_what_is_not_well_formed_is_refused_in_the_one_shape(crawl_sqlite: OpenCrawl) -> None:
    async with serving(crawl_sqlite) as registry:
        for resource in ("drift", "lag"):
            for query in MISTAKES:
                answer = await registry.get(f"/api/v1/{resource}?{query}")
                assert answer.error() == (400, "INVALID_ARGUMENT"), query
            assert (await registry.request("POST", f"/api/v1/{resource}")).error() == (405, "METHOD_NOT_ALLOWED")


async def test_lag_lists_copies_that_stayed_behind_and_tells_our_own(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.manifest(agent_entry(), agent_entry("wrong", CARD, version="0.1.0"))
    acme.json(CARD, agent_card())
    async with serving(open_crawl, origin(acme)) as registry:
        clock.advance(hours=3)
        acme.json(CARD, agent_card(version="1.1.0"))
        await registry.crawl.run()
        answer = await page(registry, "lag")
        assert [(item["identifier"], item["moved"]) for item in answer["items"]] == [(urn(), "live")]
        assert answer["items"][0]["lag"]["atLeastS"] >= 0
        assert answer["open"] == 1
        own = answer["own"]
        assert set(own) == {"count", "p50S", "p95S", "maxS"}
        assert own["count"] == len(await registry.crawl.changes())
        assert 0 <= own["p50S"] <= own["p95S"] <= own["maxS"]
        acme.manifest(agent_entry(version="1.1.0"), agent_entry("wrong", CARD, version="0.1.0"))
        await registry.crawl.run()
        assert (await page(registry, "lag"))["open"] == 0
        assert (await page(registry, "lag"))["items"] == []
        assert [item["identifier"] for item in (await page(registry, "lag", state="all"))["items"]] == [urn()]


async def test_without_events_our_own_lag_has_no_figures(crawl_sqlite: OpenCrawl) -> None:
    async with serving(crawl_sqlite) as registry:
        answer = await page(registry, "lag")
        assert answer["own"] == {"count": 0, "p50S": None, "p95S": None, "maxS": None}


async def test_credentials_are_masked_in_what_drift_shows(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    token = "ghp_" + "a1B2" * 9
    acme = web.site("acme")
    acme.manifest(agent_entry(version=token))
    acme.json(CARD, agent_card())
    async with serving(open_crawl, origin(acme)) as registry:
        answer = await ask(registry, "drift")
        assert answer.json["items"]
        assert token.encode() not in answer.body
        assert b"[redacted]" in answer.body


async def test_the_drift_of_one_entry_is_open_and_closed(web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock) -> None:
    acme = web.site("acme")
    acme.manifest(agent_entry(), agent_entry("other", None, data=agent_card()))
    acme.json(CARD, agent_card())
    async with serving(open_crawl, origin(acme)) as registry:
        for version, tags in (("1.1.0", ["travel"]), ("1.1.0", ["sea"])):
            clock.advance(hours=3)
            acme.manifest(agent_entry(version="1.1.0" if tags == ["sea"] else "1.0.0", tags=tags))
            acme.json(CARD, agent_card(version=version))
            await registry.crawl.run()
        answer = await page(registry, f"agents/{urn()}/drift")
        states = [(item["code"], item["state"]) for item in answer["items"]]
        assert (VERSION, "closed") in states
        assert answer["open"] == sum(state == "open" for _, state in states)
        short = await page(registry, f"agents/{urn()}/drift", limit="1")
        assert short["items"] == answer["items"][:1]
        assert (await page(registry, f"agents/{urn('other')}/drift"))["items"] == []
        assert (await ask(registry, f"agents/{urn('nobody')}/drift")).error() == (404, "NOT_FOUND")
