"""Signatures of cards through a crawl: whose key verified them, and what is said when a card or a key changes."""

import ssl
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme
from joserfc.jws import JWSRegistry

from config.errors import OperatorError
from index.store.inspect import origin_row
from index.store.tables import artifacts
from index.views import change_json
from tests.conftest import OpenCrawl
from tests.fakes.cards import A2A, CARD, agent_card, agent_entry, cards_by_path, rows_of, urn, versions_of
from tests.fakes.clock import FakeClock
from tests.fakes.harness import ALL_SURFACES, Crawl
from tests.fakes.history import visit_due
from tests.fakes.registry import serving
from tests.fakes.signing import key_set, private_key, public_key, signature, signed
from tests.fakes.web import FakeWeb, Site, entry

JWKS = "/keys/jwks.json"
ARD = "/.well-known/ard.json"
SECOND = private_key("ES256", 2)
KEYS = key_set(public_key(private_key()))
SIGNATURE_CHANGES = ("security", "behavioural", "compatible")


def publish(site: Site, **members: Any) -> dict[str, Any]:
    """Publish a card that is signed with a key of the site's own set."""
    card = signed(agent_card(**members), jku=site.url(JWKS))
    site.json(CARD, card)
    site.json(JWKS, KEYS)
    return card


async def kept(crawl: Crawl, path: str = CARD) -> list[dict[str, Any]]:
    """Give what is kept of the signatures of a card."""
    found: list[dict[str, Any]] = (await cards_by_path(crawl))[path].signatures
    return found


async def outcomes(crawl: Crawl, path: str = CARD) -> list[tuple[str, str]]:
    """Give the outcome of each signature, with its profile or its reason."""
    return [(item["outcome"], item.get("profile") or item.get("reason", "")) for item in await kept(crawl, path)]


async def codes(crawl: Crawl, path: str = CARD) -> list[str]:
    found = (await cards_by_path(crawl))[path].problems
    return [item["code"] for item in found if item["code"].split(".")[0] in ("signature", "keys")]


async def told(crawl: Crawl, after: int = 0) -> list[tuple[str, str, str]]:
    """Give path, class and reason of what changed about cards and keys."""
    events = [change_json(event) for event in await crawl.changes(after)]
    return [
        ("/" + event["url"].split("/", 3)[3], event["class"], event["reason"])
        for event in events
        if event["kind"] == "artifact.changed"
    ]


@pytest.fixture
def acme(web: FakeWeb) -> Site:
    return web.site("acme")


def opened(open_crawl: OpenCrawl, *origins: Any, **sections: Any) -> AbstractAsyncContextManager[Crawl]:
    return open_crawl(*origins, surfaces=ALL_SURFACES, **sections)


# --- valid, and what ends it ------------------------------------------------------------------------------------------


async def test_a_card_is_verified_with_the_keys_that_its_publisher_serves(acme: Site, open_crawl: OpenCrawl) -> None:
    publish(acme)
    async with opened(open_crawl, acme) as crawl:
        await crawl.run()
        assert await kept(crawl) == [
            {
                "pointer": "/signatures/0",
                "outcome": "valid",
                "alg": "ES256",
                "kid": "key-1",
                "jkuHost": "acme.example",
                "keySource": "jku",
                "key": private_key().thumbprint(),
                "profile": "spec",
            }
        ]
        assert await codes(crawl) == []
        document = (await crawl.documents(acme))[JWKS]
        assert (document.kind, document.mechanism, document.outcome) == ("artifact", "key_set", "fetched")
        assert (await cards_by_path(crawl))[JWKS].kind == "jose.keys"
        assert len(acme.requests(JWKS)) == 1

        await crawl.run()
        assert [seen.status for seen in acme.requests(JWKS)] == [200, 304], "with its own validators"
        assert len(acme.requests(CARD)) == 2
        assert await told(crawl) == []


async def test_nothing_is_verified_that_did_not_change(
    acme: Site, open_crawl: OpenCrawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    algorithm = JWSRegistry.algorithms["ES256"]
    verified: list[bytes] = []

    class Counted(type(algorithm)):  # type: ignore[misc]
        def verify(self, msg: bytes, sig: bytes, key: Any) -> bool:
            verified.append(msg)
            return bool(algorithm.verify(msg, sig, key))

    monkeypatch.setitem(JWSRegistry.algorithms, "ES256", Counted("ES256", "P-256", 256))
    publish(acme)
    async with opened(open_crawl, acme) as crawl:
        await crawl.run()
        assert len(verified) == 1
        await crawl.run()
        acme.json(JWKS, key_set(public_key(SECOND, "key-2"), *KEYS["keys"]))
        await crawl.run()
        assert len(verified) == 1, "neither on a 304, nor because of a key that it does not name"
        publish(acme, version="2.0.0")
        await crawl.run()
        assert len(verified) == 2


async def test_a_card_that_changes_without_its_signature_is_invalid_and_that_concerns_security(
    acme: Site, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme.manifest(agent_entry())
    card = publish(acme)
    async with serving(open_crawl, {"origin": acme.origin, "surfaces": list(ALL_SURFACES)}) as registry:
        crawl = registry.crawl
        clock.advance(hours=1)
        acme.json(CARD, {**card, "iconUrl": "https://evil.example/icon.png"})
        await crawl.run()
        assert await outcomes(crawl) == [("invalid", "no_form_matches")]
        assert await codes(crawl) == ["signature.invalid"]
        answer = (await registry.get("/api/v1/changes")).json
        (event,) = [item for item in answer["items"] if item["kind"] == "artifact.changed"]
        assert (event["identifier"], event["class"]) == (urn(), "security")
        assert event["reason"] == "signature valid -> invalid"
        assert event["members"] == ["/signatures/0", "/iconUrl"]
        (version,) = await versions_of(crawl)
        assert version.change_class == "security"
        assert version.edits[0] == {
            "op": "replace",
            "pointer": "/signatures/0",
            "class": "security",
            "old": "valid",
            "new": "invalid",
            "note": "verdict",
        }
        clock.advance(hours=1)
        publish(acme)
        await crawl.run()
        assert await outcomes(crawl) == [("valid", "spec")]
        assert (await told(crawl))[-1][2] == "signature invalid -> valid"


async def test_a_key_that_is_replaced_under_its_name_makes_the_card_invalid_in_the_same_crawl(
    acme: Site, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    publish(acme)
    async with opened(open_crawl, acme) as crawl:
        await crawl.run()
        before = (await cards_by_path(crawl))[CARD]
        clock.advance(hours=1)
        acme.json(JWKS, key_set(public_key(SECOND)))
        await crawl.run()
        assert await outcomes(crawl) == [("invalid", "no_form_matches")]
        assert acme.requests(CARD)[-1].status == 304
        assert sorted(await told(crawl)) == [
            (CARD, "security", "signature valid -> invalid"),
            (JWKS, "security", ""),
        ]
        after = (await cards_by_path(crawl))[CARD]
        assert (after.digest, after.changed_at) == (before.digest, before.changed_at), "the card is what it was"
        versions = [row for row in await versions_of(crawl) if row.subject == after.id]
        assert versions == [], "and has no state before this one"
        await crawl.run()
        assert len(await told(crawl)) == 2, "said once"


async def test_a_key_that_is_taken_out_of_the_set_leaves_nobody_able_to_tell(
    acme: Site, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    publish(acme)
    async with opened(open_crawl, acme) as crawl:
        await crawl.run()
        clock.advance(hours=1)
        acme.json(JWKS, key_set(public_key(SECOND, "key-2")))
        await crawl.run()
        assert await outcomes(crawl) == [("key_unavailable", "no_such_key")]
        assert await codes(crawl) == ["signature.key_unavailable"]
        assert (CARD, "behavioural", "signature valid -> key_unavailable") in await told(crawl)
        # Behind it, another key for the old name: what was valid once is invalid now.
        clock.advance(hours=1)
        acme.json(JWKS, key_set(public_key(SECOND)))
        await crawl.run()
        assert (await told(crawl))[-1] == (CARD, "security", "signature valid -> invalid")


# --- key sets that cannot be had --------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [404, 403, 503])
async def test_a_key_set_that_fails_counts_by_its_last_good_copy(
    acme: Site, open_crawl: OpenCrawl, clock: FakeClock, status: int
) -> None:
    publish(acme)
    async with opened(open_crawl, acme) as crawl:
        await crawl.run()
        clock.advance(hours=1)
        acme.page(JWKS, status=status)
        await crawl.run()
        assert await outcomes(crawl) == [("valid", "spec")]
        assert await told(crawl) == []
        clock.advance(hours=1)
        card = signed(agent_card(version="2.0.0"), jku=acme.url(JWKS))
        acme.json(CARD, card)
        await crawl.run()
        assert await outcomes(crawl) == [("valid", "spec")], "the new card is verified with them too"
        clock.advance(hours=1)
        acme.json(CARD, {**card, "name": "Traps"})
        await crawl.run()
        assert await outcomes(crawl) == [("invalid", "no_form_matches")]


async def test_a_key_set_that_robots_txt_forbids_counts_by_its_last_good_copy(
    acme: Site, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    publish(acme)
    async with opened(open_crawl, acme) as crawl:
        await crawl.run()
        clock.advance(days=1)
        acme.robots(f"User-agent: *\nDisallow: {JWKS}\n")
        await crawl.run()
        assert await outcomes(crawl) == [("valid", "spec")]
        assert await told(crawl) == []


async def test_a_key_set_that_is_not_json_any_more_counts_by_its_last_good_copy(
    acme: Site, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    publish(acme)
    async with opened(open_crawl, acme) as crawl:
        await crawl.run()
        for body in ("<html>moved</html>", "{", '{"keys": {}}', "[]"):
            clock.advance(hours=1)
            acme.page(JWKS, body, headers={"Content-Type": "application/json"})
            await crawl.run()
            assert await outcomes(crawl) == [("valid", "spec")], body


async def test_a_key_set_that_its_publisher_took_away_for_good_is_gone(
    acme: Site, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    publish(acme)
    async with opened(open_crawl, acme) as crawl:
        await crawl.run()
        clock.advance(hours=1)
        acme.page(JWKS, status=410)
        await crawl.run()
        assert await outcomes(crawl) == [("key_unavailable", "key_set_missing")]
        assert await told(crawl) == [(CARD, "behavioural", "signature valid -> key_unavailable")]
        clock.advance(hours=1)
        acme.json(JWKS, KEYS)
        await crawl.run()
        assert await outcomes(crawl) == [("valid", "spec")]


async def test_a_key_set_that_never_was_makes_no_card_invalid(acme: Site, open_crawl: OpenCrawl) -> None:
    publish(acme)
    acme.gone(JWKS)
    async with opened(open_crawl, acme) as crawl:
        await crawl.run()
        assert await outcomes(crawl) == [("key_unavailable", "key_set_missing")]
        acme.json(JWKS, KEYS)
        await crawl.run()
        assert await outcomes(crawl) == [("valid", "spec")]
        assert await told(crawl) == [(CARD, "compatible", "signature key_unavailable -> valid")]


async def test_robots_txt_counts_for_key_sets(acme: Site, open_crawl: OpenCrawl) -> None:
    publish(acme)
    acme.robots("User-agent: *\nDisallow: /keys/\n")
    async with opened(open_crawl, acme) as crawl:
        await crawl.run()
        assert acme.requests(JWKS) == []
        assert await outcomes(crawl) == [("key_unavailable", "key_set_missing")]


async def test_a_key_set_that_must_not_be_stored_is_asked_for_when_a_card_needs_it(
    acme: Site, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    publish(acme)
    acme.json(JWKS, KEYS, headers={"Cache-Control": "no-store"})
    async with opened(open_crawl, acme) as crawl:
        await crawl.run()
        assert await outcomes(crawl) == [("valid", "spec")]
        clock.advance(hours=1)
        acme.page(JWKS, status=503)
        await crawl.run()
        assert await outcomes(crawl) == [("valid", "spec")], "nothing changed that would have to be verified"
        assert await told(crawl) == []


async def test_where_requests_are_hours_apart_the_key_set_waits_for_its_turn(
    web: FakeWeb, acme: Site, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    publish(acme)
    acme.robots("User-agent: *\nCrawl-delay: 3600\n")
    async with opened(open_crawl, acme) as crawl:
        began = clock.now()
        for _ in range(40):
            web.clear_log()
            await visit_due(crawl)
            looks = [seen for seen in acme.requests() if seen.path != "/robots.txt"]
            assert len(looks) <= 1, "no visit waits for an hour"
            clock.advance(hours=1)
            found = (await cards_by_path(crawl)).get(CARD)
            if found is not None and found.signatures[0]["outcome"] == "valid":
                break
        assert await outcomes(crawl) == [("valid", "spec")]
        assert clock.now() - began < timedelta(days=2)


# --- whose keys -------------------------------------------------------------------------------------------------------


async def test_keys_from_another_host_count_only_where_it_is_listed_for_the_origin(
    web: FakeWeb, acme: Site, open_crawl: OpenCrawl
) -> None:
    """That a host may be crawled says nothing about whose cards its keys may verify."""
    keys = web.site("keys")
    keys.json(JWKS, KEYS)
    acme.json(CARD, signed(agent_card(), jku=keys.url(JWKS)))
    async with opened(open_crawl, acme, keys) as crawl:
        await crawl.run()
        assert await outcomes(crawl) == [("key_unavailable", "key_set_elsewhere")]
        assert keys.requests(JWKS) == []
    listed = {"origin": acme.origin, "surfaces": ["a2a"], "artifact_hosts": [f"keys.example:{web.port}"]}
    async with open_crawl(listed) as crawl:
        acme.json(CARD, signed(agent_card(version="2.0.0"), jku=keys.url(JWKS)))
        await crawl.run()
        assert await outcomes(crawl) == [("valid", "spec")]


@pytest.mark.parametrize(
    "jku",
    [
        "http://169.254.169.254/latest/keys",
        "https://evil.example/jwks.json",
        "file:///etc/keys.json",
        "//evil.example/keys",
        "https://acme.example@evil.example/keys",
        "jwks.json",
        "http://acme.example:1/keys",
    ],
)
async def test_an_address_that_no_key_set_may_be_at_is_never_asked_for(
    web: FakeWeb, acme: Site, crawl_sqlite: OpenCrawl, jku: str
) -> None:
    evil = web.site("evil")
    evil.fallback = evil.json("/jwks.json", KEYS)
    acme.json(CARD, signed(agent_card(), jku=jku))
    async with opened(crawl_sqlite, acme) as crawl:
        await crawl.run()
        assert await outcomes(crawl) == [("key_unavailable", "key_set_elsewhere")]
        assert evil.requests() == []


@pytest.mark.parametrize("jku", [ARD, CARD, "/.well-known/agent.json", "/"])
async def test_a_key_set_takes_no_other_documents_place(acme: Site, crawl_sqlite: OpenCrawl, jku: str) -> None:
    acme.manifest(entry())
    acme.json(CARD, signed(agent_card(), jku=acme.url(jku)))
    async with opened(crawl_sqlite, acme) as crawl:
        for _ in range(3):
            await crawl.run()
        assert await outcomes(crawl) == [("key_unavailable", "key_set_missing")]
        assert await crawl.identifiers() == ["urn:air:acme.example:tool:echo"]
        found = await crawl.documents(acme)
        assert (found[ARD].kind, found[ARD].mechanism) == ("manifest", "well_known")
        assert found[CARD].mechanism == "agent_card"


@pytest.fixture
async def tls_web(tmp_path: Path) -> AsyncIterator[tuple[FakeWeb, Path]]:
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("acme.example").configure_cert(context)
    file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(file))
    async with FakeWeb(tls=context) as web:
        yield web, file


async def test_a_key_set_is_fetched_by_https_unless_its_origin_is_listed_with_plain_http(
    web: FakeWeb, tls_web: tuple[FakeWeb, Path], open_crawl: OpenCrawl
) -> None:
    secure, authority = tls_web
    acme, plain = secure.site("acme"), web.site("acme")
    plain.json(JWKS, KEYS)
    acme.json(CARD, signed(agent_card(), jku=plain.url(JWKS)))
    network = {"extra_ca_file": str(authority)}
    hosts = [f"acme.example:{web.port}"]
    origin = {"origin": acme.origin, "surfaces": ["a2a"], "artifact_hosts": hosts}
    async with open_crawl(origin, network=network) as crawl:
        await crawl.run()
        assert await outcomes(crawl) == [("key_unavailable", "key_set_elsewhere")]
        assert plain.requests() == []
        publish(acme)
        await crawl.run()
        assert await outcomes(crawl) == [("valid", "spec")]
    async with open_crawl(origin, plain, network=network) as crawl:
        acme.json(CARD, signed(agent_card(version="3.0.0"), jku=plain.url(JWKS)))
        await crawl.run()
        assert await outcomes(crawl) == [("valid", "spec")], "the operator listed this very origin"


async def test_a_key_set_that_redirects_elsewhere_is_not_taken(web: FakeWeb, acme: Site, open_crawl: OpenCrawl) -> None:
    other = web.site("other")
    other.json("/mine.json", KEYS)
    publish(acme)
    acme.redirect(JWKS, other.url("/mine.json"))
    async with opened(open_crawl, acme, other) as crawl:
        await crawl.run()
        assert await outcomes(crawl) == [("key_unavailable", "key_set_elsewhere")]


def keys_file(folder: Path, *keys: Any) -> str:
    import json

    file = folder / "keys.json"
    file.write_text(json.dumps(key_set(*keys)))
    return str(file)


async def test_keys_of_the_operator_count_first_and_for_their_hosts_alone(
    web: FakeWeb, acme: Site, open_crawl: OpenCrawl, tmp_path: Path
) -> None:
    other = web.site("other")
    publish(acme)
    acme.json(JWKS, key_set(public_key(SECOND)))
    other.json(CARD, signed(agent_card()))
    trusted = [{"file": keys_file(tmp_path, public_key(private_key())), "hosts": ["acme.example"]}]
    async with opened(open_crawl, acme, other, trusted_keys=trusted) as crawl:
        await crawl.run()
        rows = await rows_of(crawl, artifacts)
        found = {item.get("keySource", ""): item for row in rows for item in row.signatures or ()}
        assert found["trusted"]["outcome"] == "valid"
        assert acme.requests(JWKS) == [], "nobody else's word is needed"
        assert (found[""]["outcome"], found[""]["reason"]) == ("key_unavailable", "no_key_set")


async def test_other_keys_of_the_operator_take_effect_with_the_next_visit(
    acme: Site, open_crawl: OpenCrawl, tmp_path: Path
) -> None:
    publish(acme)
    async with opened(open_crawl, acme) as crawl:
        await crawl.run()
        assert await outcomes(crawl) == [("valid", "spec")]
    trusted = [{"file": keys_file(tmp_path, public_key(SECOND))}]
    async with opened(open_crawl, acme, trusted_keys=trusted) as crawl:
        await crawl.run()
        assert await outcomes(crawl) == [("invalid", "no_form_matches")]
        assert await told(crawl) == [(CARD, "security", "signature valid -> invalid")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "expected a JSON Web Key Set: "),
        ("[]", "no object with an array of keys"),
        ('{"keys": [{"kty": "EC", "kid": "a"}]}', "/keys/0: a key is left out: no usable crv"),
        ('{"keys": [{"kty": "oct", "kid": "a", "k": "x"}]}', "/keys/0: the private or secret part"),
    ],
)
async def test_a_file_of_keys_that_cannot_be_used_is_the_operators_to_mend(
    acme: Site, crawl_sqlite: OpenCrawl, tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "keys.json"
    file.write_text(text)
    with pytest.raises(OperatorError) as raised:
        async with opened(crawl_sqlite, acme, trusted_keys=[{"file": str(file)}]):
            pass
    assert message in str(raised.value)


async def test_a_private_key_that_was_published_proves_nothing_and_goes_no_further(
    acme: Site, open_crawl: OpenCrawl
) -> None:
    publish(acme)
    acme.json(JWKS, key_set({**private_key().as_dict(private=True), "kid": "key-1"}))
    async with serving(open_crawl, {"origin": acme.origin, "surfaces": ["a2a"]}) as registry:
        crawl = registry.crawl
        assert await outcomes(crawl) == [("key_unavailable", "unusable_key")]
        assert await codes(crawl, JWKS) == ["keys.private"]
        row = (await cards_by_path(crawl))[JWKS]
        assert row.normal == {"keys": []}
        assert (await registry.get(f"/api/v1/snapshots/{row.digest}")).status == 403


# --- inline cards, several signatures, the schedule -------------------------------------------------------------------


def inline(card: dict[str, Any]) -> dict[str, Any]:
    return entry("inline", type=A2A, url=None, data=card)


async def test_a_card_inside_an_entry_is_verified_and_follows_its_keys(
    acme: Site, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme.manifest(inline(signed(agent_card(), jku=acme.url(JWKS))))
    acme.json(JWKS, KEYS)

    async def verdicts(crawl: Crawl) -> list[str]:
        rows = await rows_of(crawl, artifacts, inline=True)
        return [item["outcome"] for row in rows for item in row.signatures]

    async with opened(open_crawl, acme) as crawl:
        await crawl.run()
        assert await verdicts(crawl) == ["valid"]
        clock.advance(hours=1)
        acme.json(JWKS, key_set(public_key(SECOND)))
        await crawl.run()
        assert await verdicts(crawl) == ["invalid"]
        changes = [event for event in await crawl.changes() if event.mechanism == "inline"]
        assert (changes[-1].kind, changes[-1].change_class) == ("artifact.changed", "security")
        assert changes[-1].identifier == "urn:air:acme.example:tool:inline"


async def test_each_signature_is_judged_by_itself(acme: Site, open_crawl: OpenCrawl) -> None:
    publish(acme)
    card = agent_card()
    card["signatures"] = [
        signature(card, jku=acme.url(JWKS)),
        signature(card, SECOND, jku=acme.url(JWKS)),
        signature(card, SECOND, kid="key-2", jku=acme.url("/others.json")),
    ]
    acme.json(CARD, card)
    acme.json("/others.json", key_set(public_key(SECOND, "key-2")))
    async with opened(open_crawl, acme) as crawl:
        await crawl.run()
        assert await outcomes(crawl) == [("valid", "spec"), ("invalid", "no_form_matches"), ("valid", "spec")]


async def test_only_so_many_key_sets_are_asked_for_in_a_visit(acme: Site, crawl_sqlite: OpenCrawl) -> None:
    acme.manifest(*(agent_entry(f"e{number}", url=f"/cards/{number}.json") for number in range(40)))
    for number in range(40):
        acme.json(f"/cards/{number}.json", signed(agent_card(), jku=acme.url(f"/keys/{number}.json")))
        acme.json(f"/keys/{number}.json", KEYS)
    async with opened(crawl_sqlite, acme) as crawl:
        await crawl.run()
        asked = [seen for seen in acme.requests() if seen.path.startswith("/keys/")]
        assert len(asked) == 16
        await crawl.run()
        await crawl.run()
        verdicts = [item["outcome"] for row in await rows_of(crawl, artifacts) for item in row.signatures or ()]
        assert verdicts == ["valid"] * 40, "the others had their turn in the visits after it"


async def test_a_key_set_is_looked_at_by_its_own_schedule_for_as_long_as_a_card_names_it(
    acme: Site, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    publish(acme)
    hourly = {"min_interval": "1h", "max_interval": "1h", "default_freshness": "1h"}
    async with opened(open_crawl, acme, crawl=hourly) as crawl:
        await visit_due(crawl)
        assert await outcomes(crawl) == [("valid", "spec")]
        web_before = len(acme.requests(JWKS))
        clock.advance(hours=1, minutes=10)
        acme.json(JWKS, key_set(public_key(SECOND)))
        await visit_due(crawl)
        assert len(acme.requests(JWKS)) == web_before + 1
        assert await outcomes(crawl) == [("invalid", "no_form_matches")]

        acme.json(CARD, agent_card())
        clock.advance(hours=1, minutes=10)
        await visit_due(crawl)
        asked = len(acme.requests(JWKS))
        for _ in range(3):
            clock.advance(hours=1, minutes=10)
            await visit_due(crawl)
        assert len(acme.requests(JWKS)) == asked, "no card names it any more"
        row = await crawl.database.read(origin_row, acme.origin)
        assert row is not None
        assert row.next_visit_at - clock.now() > timedelta(minutes=30), "nor is the origin visited for it"


# --- what is shown ----------------------------------------------------------------------------------------------------


async def test_what_became_of_signatures_is_shown_beside_the_entry_and_never_in_its_score(
    acme: Site, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme.manifest(agent_entry())
    card = publish(acme)
    async with serving(open_crawl, {"origin": acme.origin, "surfaces": list(ALL_SURFACES)}) as registry:

        async def result() -> Any:
            (found,) = (await registry.search("planner"))["results"]
            return found

        before = await result()
        best = {"outcome": "valid", "profile": "spec", "kid": "key-1", "jkuHost": "acme.example"}
        assert before["ardvark:artifact"]["signature"] == best
        history = (await registry.get(f"/api/v1/agents/{urn()}/history")).json
        assert [item["outcome"] for item in history["artifact"]["signatures"]] == ["valid"]
        provenance = (await registry.get(f"/api/v1/agents/{urn()}/provenance")).json
        assert provenance["artifact"]["signature"] == best
        assert provenance["artifact"]["signatures"][0]["key"] == private_key().thumbprint()

        clock.advance(hours=1)
        acme.json(CARD, {**card, "iconUrl": "https://x.example/i.png"})
        await registry.crawl.run()
        after = await result()
        assert after["ardvark:artifact"]["signature"] == {
            "outcome": "invalid",
            "kid": "key-1",
            "jkuHost": "acme.example",
        }
        assert after["score"] == before["score"]

        clock.advance(hours=1)
        acme.json(CARD, agent_card())
        await registry.crawl.run()
        assert (await result())["ardvark:artifact"]["signature"] == {"outcome": "unsigned"}
        assert (await told(registry.crawl))[-1][1] == "security", "signatures vanished"


async def test_a_private_card_says_nothing_of_its_signatures(acme: Site, open_crawl: OpenCrawl) -> None:
    card = signed(agent_card(), jku=acme.url(JWKS))
    acme.json(CARD, card, headers={"Cache-Control": "private"})
    acme.json(JWKS, KEYS)
    async with opened(open_crawl, acme) as crawl:
        await crawl.run()
        assert (await cards_by_path(crawl))[CARD].signatures is None
        assert acme.requests(JWKS) == []
