"""`POST /endorsement`, answered from what a crawl left of the brand's own manifest."""

import json
from datetime import UTC, datetime
from typing import Any

import jsonschema_rs
import pytest

from tests.conftest import OpenCrawl
from tests.fakes.clock import FakeClock
from tests.fakes.registry import Registry, serving
from tests.fakes.web import FakeWeb, Site, entry

OSD = "https://opensupportdiscovery.org/ns#"
BRAND = "acme.example"
HOUR = {"Cache-Control": "max-age=3600"}


@pytest.fixture
def clock() -> FakeClock:
    """The API asks for the real time, so the crawl happens now."""
    return FakeClock(datetime.now(UTC))


def branded(name: str = "echo", **members: Any) -> dict[str, Any]:
    return entry(name, **{"@context": {"osd": OSD}, "osd:brandDomain": BRAND, **members})


def acme(web: FakeWeb, *entries: Any, headers: dict[str, str] | None = None) -> Site:
    site = web.site("acme")
    site.manifest(*(entries or [branded()]), headers=HOUR if headers is None else headers)
    return site


async def ask(registry: Registry, candidate: Any, brand: str = BRAND) -> dict[str, Any]:
    """Ask and give the verdict's record; a text is sent as it is."""
    text = candidate if isinstance(candidate, str) else json.dumps(candidate)
    answer = await registry.post("/api/v1/endorsement", f'{{"brandDomain": "{brand}", "entry": {text}}}'.encode())
    assert answer.status == 200, answer.body
    assert answer.headers["cache-control"] == "no-store"
    record: dict[str, Any] = answer.json
    return record


async def test_a_published_entry_matches_with_the_evidence_for_it(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    site = acme(web)
    async with serving(open_crawl, site) as registry:
        record = await ask(registry, branded())
        document = (await registry.crawl.documents(site))["/.well-known/ard.json"]
    assert (record["verdict"], record["reason"], record["differences"]) == ("match", None, [])
    assert (record["brandDomain"], record["identifier"]) == (BRAND, branded()["identifier"])
    evidence = record["manifest"]
    assert evidence["url"] == evidence["finalUrl"] == site.url("/.well-known/ard.json")
    assert (evidence["digest"], evidence["etag"]) == (document.digest, document.headers["etag"])
    assert evidence["fetchedAt"] is not None
    assert record["validUntil"] == evidence["freshUntil"]
    assert datetime.fromisoformat(record["validUntil"]) == document.fresh_until.replace(
        microsecond=document.fresh_until.microsecond // 1000 * 1000
    )


async def test_our_own_answers_can_be_judged(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    """A Retrieve copy is complete; a search result lacks what results leave out."""
    async with serving(crawl_sqlite, acme(web)) as registry:
        copy = (await registry.get(f"/api/v1/agents/{branded()['identifier']}")).json
        assert (await ask(registry, copy))["verdict"] == "match"
        (result,) = (await registry.search("echo"))["results"]
        assert (await ask(registry, {**copy, "score": result["score"], "source": result["source"]}))[
            "verdict"
        ] == "match"
        # What stands beside the entry in our results, under a context of ours, is no part of what the brand publishes.
        assert (await ask(registry, result))["reason"] == "differs"
        (item,) = (await registry.get("/api/v1/agents")).json["items"]
        projected = await ask(registry, item)
        assert (projected["verdict"], projected["reason"]) == ("mismatch", "candidate_incomplete")
        assert [item["pointer"] for item in projected["differences"]] == ["/representativeQueries"]


async def test_a_differing_entry_is_a_mismatch_with_the_places(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    async with serving(crawl_sqlite, acme(web, branded(tags=["a", "b"]))) as registry:
        record = await ask(registry, branded(tags=["b", "a"]))
        assert (record["verdict"], record["reason"]) == ("mismatch", "differs")
        assert record["diagnostics"] == [{"code": "equal_unordered"}]
        assert record["differences"][0] == {"pointer": "/tags/0", "candidate": '"b"', "manifest": '"a"'}
        assert (await ask(registry, branded("other")))["reason"] == "no_such_identifier"
        assert (await ask(registry, entry("echo")))["reason"] == "brand_domain"
        assert (await ask(registry, {}))["reason"] == "brand_domain"


async def test_numbers_keep_their_last_digit_on_the_way(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    def written(number: str) -> str:
        return json.dumps(branded(metadata={"n": 0})).replace('"n": 0', f'"n": {number}')

    site = web.site("acme")
    site.page(
        "/.well-known/ard.json",
        '{"entries": [' + written("9007199254740993") + "]}",
        headers={"Content-Type": "application/json", **HOUR},
    )
    async with serving(crawl_sqlite, site) as registry:
        for number, verdict in (
            ("9007199254740993", "match"),
            ("9007199254740993.0", "match"),
            ("9007199254740992", "mismatch"),
        ):
            record = await ask(registry, written(number))
            assert record["verdict"] == verdict, number
        assert record["differences"] == [
            {"pointer": "/metadata/n", "candidate": "9007199254740992", "manifest": "9007199254740993"}
        ]


async def test_the_request_is_closed_and_strict(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    text = json.dumps(branded())
    async with serving(crawl_sqlite, acme(web)) as registry:
        for body in (
            "",
            "{}",
            "[]",
            f'{{"brandDomain": "{BRAND}"}}',
            f'{{"entry": {text}}}',
            f'{{"brandDomain": "{BRAND}", "entry": {text}, "more": 1}}',
            f'{{"brandDomain": "{BRAND}", "brandDomain": "{BRAND}", "entry": {text}}}',
            f'{{"brandDomain": "{BRAND}", "entry": {text[:-1]}, "type": "again"}}}}',
            f'{{"brandDomain": "{BRAND}", "entry": {text[:-1]}, "x": 1e400}}}}',
            f'{{"brandDomain": "{BRAND}", "entry": {text[:-1]}, "x": NaN}}}}',
            f'{{"brandDomain": "{BRAND}", "entry": "{BRAND}"}}',
            f'{{"brandDomain": "{BRAND}", "entry": null}}',
            *(
                json.dumps({"brandDomain": brand, "entry": branded()})
                for brand in (
                    "",
                    None,
                    "acme",
                    "ACME.example",
                    "acme.example.",
                    "https://acme.example",
                    "acme.example:443",
                    "acme.example\n",
                    "bücher.example",
                    "192.0.2.1",
                    "a." * 130 + "example",
                )
            ),
        ):
            answer = await registry.post("/api/v1/endorsement", body.encode())
            assert answer.error() == (400, "INVALID_ARGUMENT"), body


async def test_a_brand_off_the_allowlist_is_never_asked_about(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    other = web.site("other")
    other.manifest(branded(**{"osd:brandDomain": "other.example"}))
    pattern = {"origin": "https://*.corp.example"}
    async with serving(crawl_sqlite, acme(web), api={}) as registry:
        record = await ask(registry, branded(**{"osd:brandDomain": "other.example"}), "other.example")
        assert (record["verdict"], record["reason"]) == ("inconclusive", "not_allowlisted")
        assert record["manifest"]["url"] == "https://other.example/.well-known/ard.json"
        assert record["validUntil"] is None
    assert other.requests() == []
    async with serving(crawl_sqlite, pattern) as registry:  # type: ignore[arg-type]
        claimed = branded(**{"osd:brandDomain": "a.corp.example"})
        assert (await ask(registry, claimed, "a.corp.example"))["reason"] == "never_fetched"
        assert (await ask(registry, {**claimed, "osd:brandDomain": "corp.example"}, "corp.example"))["reason"] == (
            "not_allowlisted"
        )


async def test_a_brand_that_was_not_visited_yet_decides_nothing(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    site = acme(web)
    api = {"listen": "127.0.0.1:0"}
    async with crawl_sqlite(site, api=api), serving(crawl_sqlite, api=api) as registry:
        assert (await ask(registry, branded()))["reason"] == "never_fetched"


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ([branded(), branded("two", type=None)], "manifest_invalid"),
        ([branded(), branded("two", displayName=None)], "manifest_invalid"),
        ([branded(), branded()], "manifest_invalid"),
        ([branded(), branded("two", trustManifest={"identity": "https://evil.example"})], "manifest_invalid"),
    ],
)
async def test_another_entrys_fault_makes_the_manifest_decide_nothing(
    web: FakeWeb, crawl_sqlite: OpenCrawl, entries: list[Any], reason: str
) -> None:
    """The echo is listed all the same: a crawler is more lenient than a judge."""
    async with serving(crawl_sqlite, acme(web, *entries)) as registry:
        assert "echo" in await registry.names()
        assert (await ask(registry, branded()))["reason"] == reason


async def test_a_manifest_that_fails_later_decides_nothing(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    site = acme(web)
    async with serving(crawl_sqlite, site) as registry:
        assert (await ask(registry, branded()))["verdict"] == "match"
        # Unreachable within its lifetime: what we hold still counts (RFC 9111 4.2).
        site.page("/.well-known/ard.json", status=503)
        await registry.crawl.run()
        assert (await ask(registry, branded()))["verdict"] == "match"
        site.page("/.well-known/ard.json", "{", headers={"Content-Type": "application/json"})
        await registry.crawl.run()
        assert (await ask(registry, branded()))["reason"] == "manifest_invalid"
        site.gone("/.well-known/ard.json")
        await registry.crawl.run()
        record = await ask(registry, branded())
        assert (record["verdict"], record["reason"]) == ("inconclusive", "manifest_absent")


async def test_a_copy_past_its_freshness_decides_nothing(
    web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock
) -> None:
    clock.advance(hours=-2)
    for headers in (HOUR, {"Cache-Control": "max-age=3600, stale-if-error=86400"}, {"Cache-Control": "no-cache"}):
        site = acme(web, headers=headers)
        async with serving(crawl_sqlite, site) as registry:
            record = await ask(registry, branded())
            assert (record["verdict"], record["reason"]) == ("inconclusive", "manifest_stale"), headers
            assert record["validUntil"] is None


async def test_a_304_makes_it_fresh_again(web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock) -> None:
    clock.advance(hours=-2)
    site = acme(web)
    async with serving(crawl_sqlite, site) as registry:
        assert (await ask(registry, branded()))["reason"] == "manifest_stale"
        clock.advance(hours=2)
        await registry.crawl.run()
        assert [seen.status for seen in site.requests("/.well-known/ard.json")] == [200, 304]
        record = await ask(registry, branded())
    assert record["verdict"] == "match"
    assert record["manifest"]["fetchedAt"] < record["manifest"]["confirmedAt"]


async def test_redirects_within_the_domain_count_and_others_do_not(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    site, www, cdn = web.site("acme"), web.site("www.acme.example"), web.site("cdn.acme.example")
    for host in (site, www, cdn):
        host.manifest(branded(), path="/ard.json", headers=HOUR)
    for target, verdict, reason in (
        (site.url("/ard.json"), "match", None),
        (www.url("/ard.json"), "match", None),
        (cdn.url("/ard.json"), "inconclusive", "redirected_off_domain"),
    ):
        site.redirect("/.well-known/ard.json", target)
        async with serving(crawl_sqlite, site, www, cdn) as registry:
            record = await ask(registry, branded())
        assert (record["verdict"], record["reason"]) == (verdict, reason), target
        assert record["manifest"]["redirects"] == [site.url("/.well-known/ard.json")]
        assert record["manifest"]["finalUrl"] == target


async def test_what_may_not_be_kept_or_served_on_decides_nothing(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    for control in ("no-store", "private, max-age=3600"):
        async with serving(crawl_sqlite, acme(web, headers={"Cache-Control": control})) as registry:
            record = await ask(registry, branded())
            assert record["verdict"] == "inconclusive", control
            assert record["reason"] in ("manifest_unavailable", "manifest_stale"), control
            assert record["differences"] == [], control
    private = acme(web, headers={"Cache-Control": "private, max-age=3600"})
    async with serving(crawl_sqlite, private, crawl={"list_private": True}) as registry:
        assert (await ask(registry, branded()))["verdict"] == "match"


async def test_the_namespace_is_a_setting(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    mine = branded(
        **{"@context": {"s": "https://vocabulary.example/osd#"}, "osd:brandDomain": None, "s:brandDomain": BRAND}
    )
    async with serving(crawl_sqlite, acme(web, mine), osd={"namespace": "https://vocabulary.example/osd#"}) as registry:
        assert (await ask(registry, mine))["verdict"] == "match"
    async with serving(crawl_sqlite, acme(web, mine)) as registry:
        assert (await ask(registry, mine))["reason"] == "brand_domain"


async def test_a_large_manifest_is_judged_off_the_event_loop(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    many = [branded(f"n{number}", description="x" * 200) for number in range(400)]
    async with serving(crawl_sqlite, acme(web, *many)) as registry:
        assert (await ask(registry, many[399]))["verdict"] == "match"
        assert (await ask(registry, {**many[399], "x": 1}))["reason"] == "differs"


async def test_a_copy_that_lags_is_told_with_the_times(web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock) -> None:
    """The registry still shows what the brand replaced between the looks three and one hours ago."""
    clock.advance(hours=-5)
    old = branded(description="as it was", version="1.0")
    site = acme(web, old)
    async with serving(open_crawl, site) as registry:
        clock.advance(hours=2)
        await registry.crawl.run()
        site.manifest(branded(description="as it is", version="1.1"), headers={"Cache-Control": "max-age=86400"})
        clock.advance(hours=2)
        await registry.crawl.run()
        assert (await ask(registry, branded(description="as it is", version="1.1")))["verdict"] == "match"
        for candidate in (old, {"result": old, "score": 3}):
            record = await ask(registry, candidate)
            assert (record["verdict"], record["reason"]) == ("mismatch", "differs")
            (found,) = record["diagnostics"]
            assert found["code"] == "equal_to_older_snapshot"
            assert found["firstSeenAt"] < found["lastSeenAt"]
            assert 3600 <= found["lag"]["atLeastS"] < 3700
            assert 3 * 3600 <= found["lag"]["atMostS"] < 3 * 3600 + 100
        unknown = await ask(registry, branded(description="as it will be", version="2.0"))
        assert unknown["diagnostics"] == [{"code": "newer_than_manifest"}]


async def test_every_kind_of_answer_is_as_described(web: FakeWeb, crawl_sqlite: OpenCrawl, clock: FakeClock) -> None:
    clock.advance(hours=-1)
    site = acme(web, branded(description="as it was"), headers={"Cache-Control": "max-age=86400"})
    async with serving(crawl_sqlite, site) as registry:
        site.manifest(branded(), headers={"Cache-Control": "max-age=86400"})
        clock.advance(hours=1)
        await registry.crawl.run()
        document = (await registry.get("/openapi.json")).json
        answers = [
            await ask(registry, branded()),
            await ask(registry, branded(description="as it was")),
            await ask(registry, branded(extra=[None, {"a": 1.5}])),
            await ask(registry, {"osd:brandDomain": BRAND}),
            await ask(registry, {}),
            await ask(registry, {"osd:brandDomain": "other.example"}, "other.example"),
        ]
    validator = jsonschema_rs.Draft202012Validator(
        {"$ref": "#/components/schemas/Endorsement", "components": document["components"]}
    )
    for answer in answers:
        assert [error.message for error in validator.iter_errors(answer)] == []
    assert not validator.is_valid({**answers[0], "verdict": "maybe"})
    assert not validator.is_valid({**answers[0], "more": 1})


async def test_a_listing_carries_the_endorsement_of_the_brand_that_it_claims(
    web: FakeWeb, open_crawl: OpenCrawl
) -> None:
    site, other = acme(web, branded(), entry("plain")), web.site("other")
    other.manifest(branded("copied", description="not what the brand says"), headers=HOUR)
    async with serving(open_crawl, site, other) as registry:
        identifier = branded()["identifier"]
        listed = (await registry.get(f"/api/v1/agents/{identifier}/provenance")).json
        assert (listed["endorsement"]["verdict"], listed["endorsement"]["brandDomain"]) == ("match", BRAND)
        plain = entry("plain")["identifier"]
        assert (await registry.get(f"/api/v1/agents/{plain}/provenance")).json["endorsement"] is None
        copied = branded("copied")["identifier"]
        foreign = (await registry.get(f"/api/v1/agents/{copied}/provenance")).json["endorsement"]
        assert (foreign["verdict"], foreign["reason"]) == ("mismatch", "no_such_identifier")
