"""Clauses of the protocol that no other test is about; `docs/conformance.md` says which test is about which."""

from tests.conftest import OpenCrawl
from tests.fakes.registry import serving
from tests.fakes.web import FakeWeb, entry

IDENTITY = {"identity": "https://acme.example"}


async def test_an_entry_that_claims_another_trust_domain_is_not_served(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    """ARD 4.5.1: the identity must align with the publisher; asserted is all that an aligned one is."""
    acme = web.site("acme")
    acme.manifest(
        entry("exact", trustManifest=IDENTITY),
        entry("did", trustManifest={"identity": "did:web:acme.example"}),
        entry("below", trustManifest={"identity": "spiffe://prod.acme.example/agent"}),
        entry("other", trustManifest={"identity": "https://evil.example"}),
        entry("above", "sub.acme.example", trustManifest=IDENTITY),
        entry("none"),
    )
    async with serving(open_crawl, acme) as registry:
        assert await registry.names(orderBy="displayName") == ["below", "did", "exact", "none"]
        for name in ("other", "above"):
            publisher = "acme.example" if name == "other" else "sub.acme.example"
            identifier = f"urn:air:{publisher}:tool:{name}"
            assert (await registry.get(f"/api/v1/agents/{identifier}")).error() == (404, "NOT_FOUND")
            assert identifier not in await registry.found(f"{name} tool")
        assert await registry.counts("trustManifest.identity") == {
            "did:web:acme.example": 1,
            "https://acme.example": 1,
            "spiffe://prod.acme.example/agent": 1,
        }
        kept = {row.identifier: row.problems for row in await registry.crawl.not_listed(acme)}
        assert {identifier: [p["code"] for p in problems] for identifier, problems in kept.items()} == {
            "urn:air:acme.example:tool:other": ["trust.misaligned"],
            "urn:air:sub.acme.example:tool:above": ["trust.misaligned"],
        }
    async with serving(open_crawl, acme, trust={"alignment": "exact"}) as registry:
        acme.manifest(
            entry("exact", trustManifest=IDENTITY), entry("below", trustManifest={"identity": "b.acme.example"})
        )
        await registry.crawl.run()
        assert await registry.names() == ["exact"]


async def test_trust_age_and_completeness_leave_the_score_alone(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    """ARD 4.5.2, 5.3.2: the score is relevance and nothing else."""
    acme = web.site("acme")
    attested = {**IDENTITY, "attestations": [{"type": "SOC2-Type2", "uri": "https://acme.example/soc2"}]}
    acme.manifest(
        entry("radar-1", displayName="Radar one"),
        entry("radar-2", displayName="Radar two", trustManifest=attested, version="9.9"),
        entry("radar-3", displayName="Radar six", updatedAt="2026-11-28T00:00:00Z", metadata={"tier": "gold"}),
        *(entry(f"other-{number}") for number in range(10)),
    )
    async with serving(open_crawl, acme) as registry:
        results = (await registry.search("radar for rain"))["results"]
        assert len(results) == 3
        assert len({result["score"] for result in results}) == 1


async def test_the_well_known_manifest_is_asked_for_first(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    """ARD 5.1, after the robots.txt that may forbid it."""
    acme = web.site("acme")
    acme.manifest(entry("echo"))
    async with crawl_sqlite(acme) as crawl:
        await crawl.run()
    assert [seen.path for seen in acme.requests()][:2] == ["/robots.txt", "/.well-known/ard.json"]


async def test_an_entry_is_served_whatever_its_type_is(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    """ARD 3.3: a type names the artifact and constrains nothing; unregistered ones are the rule."""
    acme = web.site("acme")
    types = [
        "application/a2a-agent-card+json",
        "application/vnd.acme.thing",
        "x/y",
        "no media type",
        "Skill",
        "a/b;c=d",
    ]
    acme.manifest(*(entry(f"n{number}", type=type_) for number, type_ in enumerate(types)))
    async with serving(open_crawl, acme) as registry:
        for number, type_ in enumerate(types):
            answer = await registry.get(f"/api/v1/agents/urn:air:acme.example:tool:n{number}")
            assert answer.json["type"] == type_


async def test_entries_in_the_markup_of_a_page_are_ingested(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    """ARD 5.2: every registry reads hosted manifests and in-page markup."""
    acme = web.site("acme")
    acme.html(
        "/",
        "<html><body><script type='application/ld+json'>"
        '{"@context":["https://agenticresourcediscovery.org/context/v1",{"ex":"https://ex.example/#"}],'
        '"identifier":"urn:air:acme.example:tool:page","displayName":"In the page","type":"a/b",'
        '"url":"/card.json","ex:level":"high"}</script></body></html>',
    )
    async with serving(open_crawl, acme) as registry:
        assert await registry.names() == ["page"]
        context = {"z": "https://ex.example/#"}
        found = await registry.found("page", context=context, filter={"z:level": "high"})
        assert found == ["urn:air:acme.example:tool:page"]
        (shown,) = (await registry.listing())["items"]
        assert shown["url"] == acme.url("/card.json")
