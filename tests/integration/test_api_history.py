"""What is known of one identifier beside its entry: `/history`, `/provenance`; and `GET /snapshots/{digest}`."""

import hashlib
import json
from datetime import timedelta
from typing import Any

import pytest

from tests.conftest import OpenCrawl
from tests.fakes.cards import CARD, agent_card, agent_entry, skill, urn
from tests.fakes.clock import FakeClock
from tests.fakes.described import complaints
from tests.fakes.harness import ALL_SURFACES
from tests.fakes.registry import Registry, serving
from tests.fakes.web import FakeWeb, Site, entry, http_date

ARD = "/.well-known/ard.json"
ECHO = "urn:air:acme.example:tool:echo"


def origin(site: Site) -> Any:
    return {"origin": site.origin, "surfaces": list(ALL_SURFACES)}


async def told(registry: Registry, resource: str, identifier: str = urn(), query: str = "") -> Any:
    answer = await registry.get(f"/api/v1/agents/{identifier}/{resource}{query}")
    assert answer.status == 200, answer.body
    return answer.json


# --- history ----------------------------------------------------------------------------------------------------------


async def test_history_has_the_states_of_entry_and_card_with_what_each_next_one_changed(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.manifest(agent_entry())
    acme.json(CARD, agent_card())
    async with serving(open_crawl, origin(acme)) as registry:
        fresh = await told(registry, "history")
        assert fresh["items"] == []
        assert (fresh["state"], fresh["removedAt"]) == ("listed", None)
        began = clock.now()
        clock.advance(hours=3)
        acme.manifest(agent_entry(tags=["travel", "sea"]))
        await registry.crawl.run()
        clock.advance(hours=3)
        acme.json(CARD, agent_card(skills=[skill("route", "travel", "maps")]))
        await registry.crawl.run()
        history = await told(registry, "history")
        assert [item["of"] for item in history["items"]] == ["artifact", "entry"], "newest first"
        card, old_entry = history["items"]
        assert (card["class"], card["silent"]) == ("breaking", True)
        assert [(edit["op"], edit["pointer"]) for edit in card["edits"]] == [("remove", "/skills/1")]
        assert card["edits"][0]["old"]["id"] == "book"
        assert (old_entry["class"], old_entry["edits"][0]["new"]) == ("compatible", "sea")
        assert old_entry["firstSeenAt"] <= old_entry["lastSeenAt"] < old_entry["replacedAt"]
        assert old_entry["lastSeenAt"][:16] == began.isoformat()[:16]
        assert history["entry"]["url"] == acme.url(ARD)
        assert history["entry"]["changedAt"] == old_entry["replacedAt"]
        assert (history["artifact"]["url"], history["artifact"]["kind"]) == (acme.url(CARD), "a2a.card")
        assert history["artifact"]["changedAt"] == card["replacedAt"]
        assert await complaints(registry, "History", history) == []
        first = await told(registry, "history", query="?limit=1")
        assert first["items"] == history["items"][:1]
        second = await told(registry, "history", query=f"?limit=1&pageToken={first['pageToken']}")
        assert second["items"] == history["items"][1:]
        assert "pageToken" not in second
        answer = await registry.get(f"/api/v1/agents/{ECHO}/history?pageToken={first['pageToken']}")
        assert answer.error() == (400, "INVALID_ARGUMENT")


async def test_an_entry_that_is_gone_keeps_its_history(web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock) -> None:
    acme = web.site("acme")
    acme.manifest(agent_entry(), entry("echo"))
    acme.json(CARD, agent_card())
    async with serving(open_crawl, acme) as registry:
        for entries in ((agent_entry(), entry("echo", tags=["new"])), (agent_entry(),)):
            clock.advance(hours=3)
            acme.manifest(*entries)
            await registry.crawl.run()
        assert (await registry.get(f"/api/v1/agents/{ECHO}")).status == 404
        history = await told(registry, "history", ECHO)
        assert (history["state"], history["artifact"]) == ("removed", None)
        assert history["removedAt"] is not None
        assert [item["of"] for item in history["items"]] == ["entry"]
        provenance = await told(registry, "provenance", ECHO)
        assert (provenance["state"], provenance["sources"], provenance["artifact"]) == ("removed", [], None)
        assert await complaints(registry, "Provenance", provenance) == []
        assert await complaints(registry, "History", history) == []


async def test_history_masks_credentials_and_carries_every_number(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    token = "ghp_" + "a1B2" * 9
    acme = web.site("acme")
    acme.manifest(agent_entry(**{"ex:count": 2**70, "ex:note": f"key {token}"}))
    acme.json(CARD, agent_card(description=f"call with {token}"))
    async with serving(open_crawl, origin(acme)) as registry:
        clock.advance(hours=3)
        acme.manifest(agent_entry(**{"ex:count": 1, "ex:note": "gone"}))
        acme.json(CARD, agent_card())
        await registry.crawl.run()
        answer = await registry.get(f"/api/v1/agents/{urn()}/history")
        assert token.encode() not in answer.body
        edits = [edit for item in answer.json["items"] for edit in item["edits"]]
        assert 2**70 in [edit.get("old") for edit in edits]
        assert "key [redacted]" in [edit.get("old") for edit in edits]


SUFFIXES = ("history", "provenance", "drift")
# Behind the base of the resource: the path, and the status that it answers.
PATHS = (
    (f"{urn()}/{{}}", 200),
    (f"{urn()}/{{}}?", 200),
    (urn().replace(":", "%3A") + "/{}", 200),
    (urn().replace("planner", "%70lanner") + "/{}", 200),
    (f"{urn()}%2F{{}}", 400),
    (f"{urn()}%2f{{}}", 400),
    (f"{urn()}/%68istory", 400),
    (f"{urn()}/%64rift", 400),
    (f"{urn()}/{{}}/", 400),
    (f"{urn()}//{{}}", 400),
    (f"{urn()}/x/{{}}", 400),
    (f"{urn()}%2Fx/{{}}", 400),
    (urn().replace(":", "%253A") + "/{}", 400),
    (f"{urn()}%00/{{}}", 400),
    (f"{urn()}%/{{}}", 400),
    (f"{urn()}%ff/{{}}", 400),
    ("/{}", 400),
    ("{}", 400),
    ("urn:air:acme.example:tool:nobody/{}", 404),
    (f"{urn()}/{{}}?version=2", 400),
    (f"{urn()}/nothing", 400),
)


async def test_the_identifier_before_a_suffix_is_decoded_once_and_the_suffix_never(
    web: FakeWeb, crawl_sqlite: OpenCrawl
) -> None:
    acme = web.site("acme")
    acme.manifest(agent_entry())
    async with serving(crawl_sqlite, acme) as registry:
        for suffix in SUFFIXES:
            for pattern, status in PATHS:
                path = f"/api/v1/agents/{pattern.format(suffix)}"
                answer = await registry.get(path)
                assert answer.status == status, path
                if status == 200:
                    assert answer.json["identifier"] == urn(), path
                else:
                    assert answer.error() == (status, {400: "INVALID_ARGUMENT", 404: "NOT_FOUND"}[status]), path
        for suffix in SUFFIXES:
            answer = await registry.request("POST", f"/api/v1/agents/{urn()}/{suffix}")
            assert answer.error() == (405, "METHOD_NOT_ALLOWED")


# --- provenance -------------------------------------------------------------------------------------------------------


async def test_provenance_says_where_a_listing_comes_from_and_who_else_claims_it(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme, other = web.site("acme"), web.site("other")
    acme.redirect(ARD, "/manifest.json")
    acme.manifest(entry("echo"), path="/manifest.json")
    other.manifest(entry("echo", description="Something else"))
    acme.robots("User-agent: *\nAllow: /\n")
    async with serving(open_crawl, acme, other) as registry:
        answer = await told(registry, "provenance", ECHO)
        assert await complaints(registry, "Provenance", answer) == []
        origin_ = answer["provenance"]
        assert (answer["state"], origin_["mechanism"], origin_["robots"]) == ("current", "well_known", "robots")
        assert (origin_["url"], origin_["finalUrl"]) == (acme.url(ARD), acme.url("/manifest.json"))
        assert origin_["redirects"] == [[acme.url(ARD), 302]]
        assert origin_["pointer"] == "/entries/0"
        assert origin_["freshness"]["state"] == "fresh"
        assert origin_["firstSeenAt"] == origin_["lastChangedAt"]
        assert [(source["url"], source["state"]) for source in answer["sources"]] == [
            (acme.url(ARD), "listed"),
            (other.url(ARD), "conflict"),
        ]
        assert [source["url"] for source in answer["conflicts"]] == [other.url(ARD)]
        snapshot = await registry.get(f"/api/v1/snapshots/{origin_['snapshot']}")
        assert snapshot.body == acme.pages["/manifest.json"].body  # type: ignore[union-attr]
        entry_ = await registry.get(f"/api/v1/agents/{ECHO}")
        assert hashlib.sha256(entry_.body).hexdigest() == origin_["digest"]
        clock.advance(hours=5)
        acme.page(ARD, status=503)
        await registry.crawl.run()
        stale = await told(registry, "provenance", ECHO)
        assert (stale["state"], stale["provenance"]["staleReason"]) == ("stale", "unreachable: http_503")
        assert stale["provenance"]["freshness"]["state"] == "stale"
        assert stale["provenance"]["lastConfirmedAt"] == origin_["lastConfirmedAt"]


async def test_provenance_tells_what_became_of_the_artifact(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    """Each way in which an artifact can come out has a word of its own."""
    acme = web.site("acme")
    ways = {
        "read": (agent_card(), {}),
        "absent": (None, {"status": 404}),
        "gone": (None, {"status": 410}),
        "auth_required": (None, {"status": 401}),
        "auth_required-2": (None, {"status": 402}),
        "auth_required-3": (None, {"status": 403}),
        "not_a_document": (None, {"status": 405}),
        "not_a_document-2": (None, {"status": 406}),
        "not_a_document-3": (b"hello", {"headers": {"Content-Type": "text/plain"}}),
        "not_a_document-4": (b"data: {}\n\n", {"headers": {"Content-Type": "text/event-stream"}}),
        "unknown_kind": ({"hello": "world"}, {}),
        "malformed": (b'{"name": ', {"headers": {"Content-Type": "application/json"}}),
        "unreachable": (None, {"status": 500}),
    }
    for name, (body, options) in ways.items():
        if isinstance(body, dict):
            acme.json(f"/{name}.json", body, **options)
        else:
            acme.page(f"/{name}.json", body or b"", **options)
    entries = [agent_entry(name, f"{acme.origin}/{name}.json") for name in ways]
    entries += [
        agent_entry("not_allowlisted", "https://elsewhere.test.example/card.json"),
        agent_entry("not_a_card", f"{acme.origin}/x", type="application/ai-skill+md"),
        agent_entry("surface_off", f"{acme.origin}/x", type="application/mcp-server-card+json"),
        agent_entry("inline", None, data=agent_card()),
    ]
    acme.manifest(*entries)
    async with serving(open_crawl, {"origin": acme.origin, "surfaces": ["ard", "a2a"]}) as registry:
        for item in entries:
            answer = await told(registry, "provenance", item["identifier"])
            artifact = answer["artifact"]
            name = item["identifier"].rpartition(":")[2]
            assert artifact["state"] == name.partition("-")[0], (name, artifact)
            assert artifact["declaredType"] == item["type"]
            assert await complaints(registry, "Provenance", answer) == []
            assert ("kind" in artifact) is (name in ("read", "inline")), name
        read = (await told(registry, "provenance", urn("read")))["artifact"]
        assert (read["kind"], read["freshness"]["state"]) == ("a2a.card", "fresh")
        assert read["summary"]["name"] == "Planner"
        assert {"findings", "problems", "shape", "digest"} <= set(read)


# --- stored bodies ----------------------------------------------------------------------------------------------------


def digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


async def test_a_stored_body_comes_byte_for_byte_and_harmless(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    manifest = b'{ "entries" : [' + json.dumps(entry("echo")).encode() + b"]\n}"
    markup = b"<!doctype html><script>alert(1)</script><link rel=ai-catalog href=/x.json>"
    acme = web.site("acme")
    acme.page(ARD, manifest, headers={"Content-Type": "text/html"})
    acme.html("/", markup.decode())
    async with serving(open_crawl, acme) as registry:
        for body, content_type in ((manifest, "application/json"), (markup, "application/octet-stream")):
            path = f"/api/v1/snapshots/{digest(body)}"
            answer = await registry.get(path)
            assert (answer.status, answer.body) == (200, body)
            assert answer.headers["content-type"].partition(";")[0] == content_type
            assert answer.headers["content-disposition"] == "attachment"
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"
            assert answer.headers["etag"] == f'"{digest(body)}"'
            assert "immutable" in answer.headers["cache-control"]
            again = await registry.get(path, If_None_Match=f'W/"{digest(body)}"')
            assert (again.status, again.body) == (304, b"")
            head = await registry.request("HEAD", path)
            assert (head.status, head.body) == (200, b"")
        unknown = await registry.get(f"/api/v1/snapshots/{'0' * 64}")
        assert unknown.error() == (404, "NOT_FOUND")


@pytest.mark.parametrize(
    "name",
    ["", "x", "A" * 64, "0" * 63, "0" * 65, "0" * 64 + "/", "0" * 64 + "%0A", "..%2F" + "0" * 59, "g" * 64, "%00", "%"],
)
async def test_what_is_no_digest_is_refused(crawl_sqlite: OpenCrawl, name: str) -> None:
    async with serving(crawl_sqlite) as registry:
        assert (await registry.get(f"/api/v1/snapshots/{name}")).error() == (400, "INVALID_ARGUMENT")


TOKEN = "ghp_" + "a1B2" * 9
SECRETS = {
    "in a value": json.dumps({"entries": [], "note": TOKEN}).encode(),
    "in a name": json.dumps({"entries": [], TOKEN: 1}).encode(),
    "escaped": json.dumps({"entries": [], "note": TOKEN}).replace("ghp_", "\\u0067hp_").encode(),
    "under its name": json.dumps({"entries": [], "config": {"apiKey": "q9ZtK2mXw7RbV4nL"}}).encode(),
    "behind a repeated name": b'{"entries": [], "a": "' + TOKEN.encode() + b'", "a": 1}',
    "with a mark in front": b"\xef\xbb\xbf" + json.dumps({"entries": [], "note": TOKEN}).encode(),
    "in no JSON": f"<html><!-- {TOKEN} --></html>".encode(),
    "in wide letters": f'{{"note": "{TOKEN}"}}'.encode("utf-16"),
    "in deep JSON": b'{"a":' * 5000 + b'"' + TOKEN.encode() + b'"' + b"}" * 5000,
    "far behind": json.dumps({"entries": [], "pad": "x" * 200_000, "note": TOKEN}).encode(),
}


@pytest.mark.parametrize("body", SECRETS.values(), ids=SECRETS.keys())
async def test_a_body_with_a_credential_is_withheld(web: FakeWeb, crawl_sqlite: OpenCrawl, body: bytes) -> None:
    acme = web.site("acme")
    acme.page("/", body, headers={"Content-Type": "text/html"})
    async with serving(crawl_sqlite, acme) as registry:
        rows = await registry.crawl.documents(acme)
        assert rows["/"].digest == digest(body)
        answer = await registry.get(f"/api/v1/snapshots/{digest(body)}")
        assert answer.error() == (403, "PERMISSION_DENIED")
        assert TOKEN.encode() not in answer.body


async def test_a_body_that_its_publisher_keeps_private_is_withheld(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    acme = web.site("acme")
    page = acme.manifest(entry("echo"), headers={"Cache-Control": "max-age=5, Private"})
    path = f"/api/v1/snapshots/{digest(page.body)}"
    async with serving(open_crawl, acme) as registry:
        assert (await registry.get(path)).error() == (403, "PERMISSION_DENIED")
        page.headers["Cache-Control"] = 'private="set-cookie"'
        await registry.crawl.run()
        assert (await registry.get(path)).status == 200
        page.headers["Cache-Control"] = "private"
        await registry.crawl.run()
        assert (await registry.get(path)).error() == (403, "PERMISSION_DENIED")


async def test_an_operator_may_pass_private_bodies_on(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    page = acme.manifest(entry("echo"), headers={"Cache-Control": "private"})
    async with serving(crawl_sqlite, acme, crawl={"list_private": True}) as registry:
        assert (await registry.get(f"/api/v1/snapshots/{digest(page.body)}")).body == page.body


async def test_provenance_says_how_long_before_the_change_of_its_card_an_entry_was_updated(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    updated = clock.now() - timedelta(hours=1)
    acme.manifest(agent_entry(updatedAt=updated.isoformat()))
    acme.json(CARD, agent_card())
    async with serving(open_crawl, origin(acme)) as registry:
        assert (await told(registry, "provenance"))["artifact"]["updatedAtLag"] is None, "nobody saw it change"
        clock.advance(hours=3)
        acme.json(CARD, agent_card(version="1.1.0"))
        await registry.crawl.run()
        provenance = await told(registry, "provenance")
        lag = provenance["artifact"]["updatedAtLag"]
        assert lag["basis"] == "observed"
        assert lag["atLeastS"] == pytest.approx(3600, abs=60)
        assert lag["atMostS"] == pytest.approx(4 * 3600, abs=60)
        assert await complaints(registry, "Provenance", provenance) == []
        clock.advance(hours=3)
        modified = clock.now() - timedelta(hours=2)
        acme.json(CARD, agent_card(version="1.2.0"), last_modified=http_date(modified))
        await registry.crawl.run()
        lag = (await told(registry, "provenance"))["artifact"]["updatedAtLag"]
        assert lag["basis"] == "last-modified"
        assert lag["atLeastS"] == lag["atMostS"] == pytest.approx((modified - updated).total_seconds(), abs=1)
        acme.manifest(agent_entry(updatedAt=clock.now().isoformat(), version="1.2.0"))
        clock.advance(hours=3)
        await registry.crawl.run()
        assert (await told(registry, "provenance"))["artifact"]["updatedAtLag"] is None, "the catalog has followed"
