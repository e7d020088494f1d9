"""`drift`, `history`, `changes`, `show`, `origins show`, `visit` and `trace` as an operator runs them."""

import asyncio
import json
import os
import pty
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from aiohttp import web as server
from sqlalchemy import Connection, select

from crawler.clock import SystemClock
from index.store.database import Database
from index.store.tables import metadata
from tests.fakes.harness import ALL_SURFACES, crawling, settings_for
from tests.fakes.shell import ARDVARK, command
from tests.fakes.signing import key_set, private_key, public_key, signed
from tests.fakes.web import FakeWeb, Site, entry

pytestmark = pytest.mark.system
PLANNER = "urn:air:acme.example:agent:planner"
CARD_PATH = "/.well-known/agent-card.json"
CARD: dict[str, Any] = {
    "name": "Planner",
    "description": "Plans trips over land",
    "version": "1.0.0",
    "supportedInterfaces": [
        {"url": "https://acme.example/grpc", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
        {"url": "https://acme.example/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
    ],
    "capabilities": {},
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
    "skills": [{"id": "route", "name": "Route", "description": "Finds a route", "tags": ["travel", "maps"]}],
}


def planner(**members: Any) -> dict[str, Any]:
    own = {"type": "application/a2a-agent-card+json", "url": CARD_PATH, "version": "1.0.0", "tags": ["travel"]}
    return entry("planner", **{"identifier": PLANNER, **own, **members})


@dataclass
class Acme:
    """A publisher with one agent, and the database and settings of an operator who crawls it."""

    site: Site
    url: str
    status: int = 0
    out: str = ""

    def publish(self, card: dict[str, Any] | None = None, **members: Any) -> None:
        self.site.manifest(planner(**members))
        self.site.json(CARD_PATH, card or CARD)

    async def crawl(self) -> None:
        """Crawl in this process, which is quicker than by command."""
        settings = settings_for(self.site, surfaces=ALL_SURFACES, url=self.url)
        async with crawling(settings, SystemClock()) as crawl:
            await crawl.run()

    async def run(self, *arguments: str) -> int:
        self.status, self.out = await command(self.url, *arguments, origins=[self.site.origin])
        assert "Traceback" not in self.out, self.out
        return self.status

    async def json(self, *arguments: str, status: int = 0) -> Any:
        assert await self.run(*arguments, "--json") == status, self.out
        return json.loads(self.out)


@pytest.fixture
async def acme(web: FakeWeb, sqlite_url: str) -> Acme:
    found = Acme(web.site("acme"), sqlite_url)
    found.publish()
    return found


@pytest.fixture
async def acme_anywhere(web: FakeWeb, database_url: str) -> Acme:
    """The same on each engine."""
    found = Acme(web.site("acme"), database_url)
    found.publish()
    return found


def moved(**members: Any) -> dict[str, Any]:
    """The card after a release: another version, a tag less."""
    skill = {**CARD["skills"][0], "tags": ["maps"]}
    return {**CARD, "version": "1.1.0", "skills": [skill], **members}


# --- drift ------------------------------------------------------------------------------------------------------------


async def test_drift_is_a_gate_that_closes_while_a_catalog_and_its_card_disagree(acme: Acme) -> None:
    await acme.crawl()
    assert await acme.json("drift") == {"items": []}
    acme.publish(moved())
    await acme.crawl()
    items = (await acme.json("drift", status=1))["items"]
    assert {item["code"] for item in items} == {"drift.version_mismatch", "drift.tag_removed"}
    found = next(item for item in items if item["code"] == "drift.version_mismatch")
    assert (found["class"], found["identifier"], found["pointer"]) == ("version_only", PLANNER, "/version")
    assert (found["catalog"], found["live"], found["state"]) == ("1.0.0", "1.1.0", "open")
    assert found["lag"]["open"] is True
    assert found["lag"]["atMostS"] >= found["lag"]["atLeastS"] >= 0

    acme.publish(moved(), version="1.1.0", tags=["maps"])
    await acme.crawl()
    assert await acme.json("drift") == {"items": []}
    closed = (await acme.json("drift", "--state", "closed"))["items"]
    assert {item["closedBy"] for item in closed} == {"catalog"}
    assert len((await acme.json("drift", "--state", "all"))["items"]) == 2
    assert await acme.run("drift", "--state", "closed") == 0
    assert "closed (catalog)" in acme.out


async def test_what_is_only_worth_knowing_closes_the_gate_only_when_it_is_asked_for(acme: Acme) -> None:
    """A card that is negotiated on the version of the protocol is no fault of its publisher."""
    card, headers = acme.site.pages[CARD_PATH], {"Vary": "A2A-Version"}
    older = acme.site.json("/older.json", {**CARD, "version": "0.9.0"}, headers=headers)
    card.headers = {**card.headers, **headers}

    async def answer(request: server.Request) -> server.StreamResponse:
        return (card if request.headers.get("A2A-Version") else older).answer(request)

    acme.site.handle(CARD_PATH, answer)
    await acme.crawl()
    assert [item["severity"] for item in (await acme.json("drift"))["items"]] == ["info"]
    assert await acme.run("drift", "--state", "all") == 0
    assert await acme.run("drift", "--code", "representation_varies") == 1


async def test_drift_is_narrowed_by_each_of_its_options(acme: Acme) -> None:
    await acme.crawl()
    acme.publish(moved())
    await acme.crawl()

    async def codes(*options: str) -> Sequence[str]:
        await acme.run("drift", "--json", *options)
        found = [item["code"].removeprefix("drift.") for item in json.loads(acme.out)["items"]]
        assert acme.status == (1 if found else 0)
        return sorted(found)

    both = ["tag_removed", "version_mismatch"]
    assert await codes("--class", "version_only") == ["version_mismatch"]
    assert await codes("--class", "breaking") == []
    assert await codes("--code", "tag_removed") == await codes("--code", "drift.tag_removed") == ["tag_removed"]
    assert await codes("--publisher", "ACME.example") == both
    assert await codes("--origin", acme.site.origin + "/") == both
    assert await codes("--identifier", PLANNER) == both
    assert await codes("--since", "1h") == both
    assert await codes("--since", "2999-01-01") == []
    assert len(await codes("--limit", "1")) == 1
    # The newest page may hold none that is open, and the gate closes all the same.
    assert len(await codes("--state", "all", "--limit", "1")) == 1


async def test_a_table_of_drift_shows_both_values_and_how_long(acme: Acme) -> None:
    await acme.crawl()
    acme.publish(moved())
    await acme.crawl()
    assert await acme.run("drift", "--code", "version_mismatch") == 1
    headings, _, row = acme.out.splitlines()
    assert headings.split() == ["class", "code", "identifier", "pointer", "catalog", "live", "since", "lag", "state"]
    assert '"1.0.0"' in row
    assert '-> "1.1.0"' in row
    assert " to " in row or row.rstrip().endswith("s  open")


async def test_a_slip_in_an_option_of_drift_is_two_and_no_open_gate(acme: Acme) -> None:
    for options in (
        ("--class", "grave"),
        ("--since", "yesterday"),
        ("--origin", "https://nobody.example"),
        ("--publisher", "nobody.example"),
        ("--identifier", "urn:air:nobody.example:agent:none"),
    ):
        assert await acme.run("drift", *options) == 2
        assert options[1] in acme.out


# --- history and changes ----------------------------------------------------------------------------------------------


async def test_history_shows_the_states_of_entry_and_card_newest_first(acme: Acme) -> None:
    await acme.crawl()
    acme.publish(moved())
    await acme.crawl()
    acme.publish(moved(), version="1.1.0", tags=["maps"])
    await acme.crawl()
    shown = await acme.json("history", PLANNER)
    assert [item["of"] for item in shown["items"]] == ["entry", "artifact"]
    assert shown["artifact"]["kind"] == "a2a.card"
    edit = next(item for item in shown["items"][1]["edits"] if item["pointer"] == "/version")
    assert (edit["old"], edit["new"], edit["class"]) == ("1.0.0", "1.1.0", "version_only")

    assert await acme.run("history", PLANNER) == 0
    lines = acme.out.splitlines()
    assert lines[0] == f"{PLANNER}  listed"
    place = next(number for number, line in enumerate(lines) if line.strip() == "version_only  /version")
    assert [line.strip() for line in lines[place + 1 : place + 3]] == ['- "1.0.0"', '+ "1.1.0"']
    assert "\x1b" not in acme.out
    assert await acme.run("history", "urn:air:nobody.example:agent:none") == 1


async def test_a_diff_is_coloured_on_a_terminal_unless_no_color_is_set(acme: Acme) -> None:
    await acme.crawl()
    acme.publish(moved())
    await acme.crawl()
    assert "\x1b[31m    - " in await on_a_terminal("history", PLANNER)
    assert "\x1b" not in await on_a_terminal("history", PLANNER, NO_COLOR="1")


async def on_a_terminal(*arguments: str, **environment: str) -> str:
    """Run a command with a terminal for its output."""
    ours, theirs = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        ARDVARK, *arguments, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm", **environment}
    )
    os.close(theirs)

    def read() -> bytes:
        parts = []
        try:
            while part := os.read(ours, 65_536):
                parts.append(part)
        except OSError:  # how Linux says that the other end is closed
            pass
        os.close(ours)
        return b"".join(parts)

    out = await asyncio.to_thread(read)
    assert await process.wait() == 0, out
    return out.decode()


async def test_long_values_of_a_history_are_cut(acme: Acme) -> None:
    await acme.crawl()
    acme.publish({**CARD, "description": "long " * 2000})
    await acme.crawl()
    assert await acme.run("history", PLANNER) == 0
    assert max(map(len, acme.out.splitlines())) < 250
    assert "…" in acme.out


async def test_changes_has_cards_and_drift_and_its_newest_end(acme: Acme) -> None:
    await acme.crawl()
    acme.publish(moved())
    await acme.crawl()
    feed = (await acme.json("changes"))["items"]
    kinds = [item["kind"] for item in feed]
    assert kinds[:2] == ["entry.added", "artifact.added"]
    assert {"artifact.changed", "drift.opened"} <= set(kinds)
    changed = next(item for item in feed if item["kind"] == "artifact.changed")
    assert (changed["class"], changed["silent"], changed["identifier"]) == ("search", False, PLANNER)
    newest = await acme.json("changes", "--last", "2")
    assert newest["items"] == feed[-2:]
    assert newest["next"] == feed[-1]["cursor"]
    assert await acme.run("changes", "--last", "1") == 0
    assert "drift.opened" in acme.out
    assert await acme.run("changes", "--last", "1", "--after", "1") == 2


# --- visit ------------------------------------------------------------------------------------------------------------


async def everything(acme: Acme) -> dict[str, Any]:
    """All rows of the database, so that nothing can have been kept without being seen."""

    def rows(connection: Connection) -> dict[str, Any]:
        return {
            name: sorted(map(tuple, connection.execute(select(table))), key=repr)
            for name, table in metadata.tables.items()
        }

    async with Database(acme.url) as database:
        await database.prepare()
        return await database.read(rows)


def told(report: Any) -> Any:
    """What a visit says of the difference, without the times and cursors of the moment."""
    return {
        "documents": {look["url"]: look["outcome"] for origin in report["origins"] for look in origin["documents"]},
        "changes": [(item["kind"], item["identifier"], item["class"], item["members"]) for item in report["changes"]],
        "edits": [(item["identifier"], item["of"], item["class"], item["edits"]) for item in report["edits"]],
        "drift": {
            name: [(item["code"], item["pointer"], item["catalog"], item["live"]) for item in items]
            for name, items in report["drift"].items()
        },
    }


async def test_a_dry_run_tells_what_the_visit_then_does_and_keeps_nothing(acme_anywhere: Acme) -> None:
    acme = acme_anywhere
    await acme.crawl()
    acme.publish(moved())
    before = await everything(acme)
    rehearsed = await acme.json("visit", acme.site.origin, "--now", "--dry-run")
    assert rehearsed["dryRun"] is True
    assert await everything(acme) == before

    made = await acme.json("visit", acme.site.origin, "--now")
    assert made["dryRun"] is False
    assert told(rehearsed) == told(made)
    assert {item["code"] for item in made["drift"]["opened"]} == {"drift.version_mismatch", "drift.tag_removed"}
    assert [item["of"] for item in made["edits"]] == ["artifact"]
    assert "cursor" in made["changes"][0]
    assert "cursor" not in rehearsed["changes"][0]

    acme.publish(moved(), version="1.1.0", tags=["maps"])
    rehearsed = await acme.json("visit", PLANNER, "--dry-run")
    made = await acme.json("visit", PLANNER)
    assert told(rehearsed) == told(made)
    assert len(made["drift"]["closed"]) == 2
    assert await acme.run("drift") == 0


async def test_a_dry_run_shows_an_origin_that_was_never_visited(acme_anywhere: Acme) -> None:
    acme = acme_anywhere
    rehearsed = await acme.json("visit", acme.site.origin, "--dry-run")
    assert [item["kind"] for item in rehearsed["changes"]] == ["entry.added", "artifact.added"]
    kept = await everything(acme)
    assert not any(kept[name] for name in ("origins", "documents", "entries", "listings", "changes", "fetches"))


async def test_a_visit_looks_at_what_is_due_or_at_everything_with_now(acme: Acme) -> None:
    await acme.crawl()
    acme.site._web.clear_log()
    assert await acme.run("visit", acme.site.origin) == 0
    assert "nothing was due" in acme.out
    assert acme.site.requests(CARD_PATH) == []
    assert await acme.run("visit", acme.site.origin, "--now") == 0
    assert len(acme.site.requests(CARD_PATH)) == 1
    assert "no difference" in acme.out


async def test_a_visit_to_an_entry_asks_for_its_document_and_its_card_alone(acme: Acme) -> None:
    acme.site.manifest(planner(), planner(identifier="urn:air:acme.example:agent:other", url="/cards/other.json"))
    acme.site.json("/cards/other.json", {**CARD, "name": "Other"})
    await acme.crawl()
    acme.site._web.clear_log()
    assert await acme.run("visit", PLANNER) == 0
    asked = [seen.path for seen in acme.site.requests()]
    assert sorted(path for path in asked if path != "/robots.txt") == [
        "/.well-known/agent-card.json",
        "/.well-known/ard.json",
    ]
    assert all(seen.status == 304 for seen in acme.site.requests() if seen.path != "/robots.txt")
    # The others are due when they were.
    assert await acme.run("visit", acme.site.origin) == 0
    assert "nothing was due" in acme.out


async def test_a_visit_to_an_entry_follows_it_to_a_card_elsewhere(web: FakeWeb, acme: Acme) -> None:
    cards = web.site("cards")
    cards.json("/planner.json", moved())
    acme.publish()

    async def run(*arguments: str) -> Any:
        status, out = await command(acme.url, *arguments, origins=[acme.site.origin, cards.origin])
        assert status == 0, out
        return json.loads(out)

    await run("crawl", "--json")
    acme.site.manifest(planner(url=cards.url("/planner.json")))
    cards_asked = len(cards.requests("/planner.json"))
    rehearsed = await run("visit", PLANNER, "--dry-run", "--json")
    made = await run("visit", PLANNER, "--json")
    assert len(cards.requests("/planner.json")) == cards_asked + 2
    assert told(rehearsed)["drift"] == told(made)["drift"]
    assert {item["code"] for item in made["drift"]["opened"]} == {"drift.version_mismatch", "drift.tag_removed"}
    assert {origin["origin"] for origin in made["origins"]} == {acme.site.origin, cards.origin}


async def test_a_visit_to_what_is_not_ours_is_two(acme: Acme) -> None:
    for target in ("https://nobody.example", "urn:air:nobody.example:agent:none", "https://", f"{acme.site.origin}/x"):
        assert await acme.run("visit", target) == 2
    assert await acme.run("visit", "https://nobody.example", "--dry-run") == 2
    assert acme.site.requests() == []


async def test_an_origin_that_asked_for_patience_gets_no_request(acme: Acme) -> None:
    await acme.crawl()
    acme.site.page(CARD_PATH, status=503, headers={"Retry-After": "3600"})
    await acme.run("visit", acme.site.origin, "--now")
    acme.site._web.clear_log()
    for options in ((), ("--dry-run",)):
        report = await acme.json("visit", acme.site.origin, "--now", *options)
        assert report["resting"] == [acme.site.origin]
    assert acme.site.requests() == []


# --- show and origins show --------------------------------------------------------------------------------------------


async def test_show_tells_of_the_card_the_drift_and_the_endorsement(acme: Acme) -> None:
    claim = {"@context": {"osd": "https://opensupportdiscovery.org/ns#"}, "osd:brandDomain": "acme.example"}
    acme.publish(**claim)
    await acme.crawl()
    acme.publish(moved(), **claim)
    await acme.crawl()
    shown = await acme.json("show", PLANNER)
    assert (shown["identifier"], shown["state"], shown["entry"]["displayName"]) == (PLANNER, "current", "Planner")
    assert shown["provenance"]["freshness"]["state"] == "fresh"
    artifact = shown["artifact"]
    assert (artifact["state"], artifact["kind"], artifact["url"]) == ("read", "a2a.card", acme.site.url(CARD_PATH))
    assert artifact["summary"]["version"] == "1.1.0"
    assert {item["code"] for item in shown["drift"]} == {"drift.version_mismatch", "drift.tag_removed"}
    assert (shown["endorsement"]["verdict"], shown["endorsement"]["brandDomain"]) == ("match", "acme.example")

    assert await acme.run("show", PLANNER) == 0
    for words in ("The planner tool of acme.example", "match by acme.example", "a2a.card", "version_mismatch", "fresh"):
        assert words in acme.out


async def test_show_says_what_became_of_each_signature(acme: Acme) -> None:
    keys = "/keys/jwks.json"
    card = signed(CARD, jku=acme.site.url(keys))
    acme.publish(card)
    acme.site.json(keys, key_set(public_key(private_key())))
    await acme.crawl()
    (verdict,) = (await acme.json("show", PLANNER))["artifact"]["signatures"]
    assert (verdict["outcome"], verdict["profile"]) == ("valid", "spec")
    assert await acme.run("show", PLANNER) == 0
    assert "valid (spec), kid key-1, keys jku, on acme.example" in acme.out
    acme.publish({**card, "description": "Plans traps"})
    await acme.crawl()
    assert await acme.run("show", PLANNER) == 0
    assert "invalid (no_form_matches), kid key-1, keys jku, on acme.example" in acme.out
    assert "signature.invalid" in acme.out
    events = (await acme.json("changes"))["items"]
    assert "signature valid -> invalid" in [event["reason"] for event in events if event["class"] == "security"]


async def test_show_judges_no_brand_that_is_not_on_the_allowlist(acme: Acme) -> None:
    acme.publish(**{"osd:brandDomain": "elsewhere.example"})
    await acme.crawl()
    assert (await acme.json("show", PLANNER))["endorsement"] is None


async def test_origins_show_has_cards_drift_and_what_is_not_listed(acme: Acme) -> None:
    broken = planner(identifier="urn:air:acme.example:agent:broken", type=None)
    acme.site.manifest(planner(), broken)
    acme.site.json(CARD_PATH, CARD)
    await acme.crawl()
    acme.site.json(CARD_PATH, moved(securitySchemes={"key": {"apiKeySecurityScheme": {"in": "header", "name": "X"}}}))
    await acme.crawl()
    shown = await acme.json("origins", "show", acme.site.origin)
    assert {"documents", "notListed", "leads", "artifacts", "drift", "madp", "robots"} <= shown.keys()
    card = next(item for item in shown["artifacts"] if item["identifier"] == PLANNER)
    assert (card["state"], card["kind"]) == ("read", "a2a.card")
    assert [item["identifier"] for item in shown["notListed"]] == [broken["identifier"]]
    assert "drift.version_mismatch" in {item["code"] for item in shown["drift"]}
    assert all(item["freshness"]["state"] for item in shown["documents"])

    assert await acme.run("origins", "show", acme.site.origin) == 0
    for words in ("Artifacts:", "Open drift:", "Not listed:", "version_mismatch", "a2a.card", "fresh"):
        assert words in acme.out


# --- trace ------------------------------------------------------------------------------------------------------------


async def test_a_trace_shows_hits_the_live_card_and_the_interface_a_client_takes(acme: Acme) -> None:
    await acme.crawl()
    acme.publish(moved())
    kept = await everything(acme)
    acme.site._web.clear_log()
    report = await acme.json("trace", "plan", "travel", "route")
    assert await everything(acme) == kept
    assert [seen.path for seen in acme.site.requests()].count(CARD_PATH) == 1
    assert (report["contract"], report["query"]["bindings"]) == ("ardvark.trace.v1", ["JSONRPC", "HTTP+JSON", "GRPC"])
    (hit,) = report["hits"]
    assert (hit["identifier"], hit["cardUrl"]) == (PLANNER, acme.site.url(CARD_PATH))
    assert hit["score"] > 0
    assert hit["matched"]["tags"] == ["travel"]
    assert hit["matched"]["skill"]["id"] == "route"
    assert (hit["card"]["read"], hit["card"]["outcome"]) == ("fetched", "fetched")
    assert hit["card"]["digest"] != hit["card"]["storedDigest"]
    assert {"drift.version_mismatch", "drift.tag_removed"} <= {item["code"] for item in hit["disagreements"]}
    # The card's order decides, not the client's.
    assert report["choice"]["interface"]["protocolBinding"] == "GRPC"
    assert report["choice"]["identifier"] == PLANNER
    assert hit["passedOver"] is None

    report = await acme.json("trace", "plan", "travel", "--binding", "JSONRPC")
    assert report["choice"]["interface"]["url"] == "https://acme.example/a2a"


async def test_a_trace_says_of_every_other_hit_why_it_was_passed_over(acme: Acme) -> None:
    def named(name: str, **members: Any) -> dict[str, Any]:
        members = {"url": f"/cards/{name}.json", "displayName": f"Harbour {name}", **members}
        return planner(identifier=f"urn:air:acme.example:agent:{name}", **members)

    def card(*interfaces: Any) -> dict[str, Any]:
        return {**CARD, "supportedInterfaces": [dict(item) for item in interfaces]}

    good = {"url": "https://acme.example/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    acme.site.manifest(
        named("gone"),
        named("mute"),
        named("template"),
        named("good", tags=["harbour"]),
        named("second"),
        named("endpoint", type="application/vnd.acme+json"),
    )
    for name, found in {
        "gone": card(good),
        "mute": card({**good, "protocolBinding": "SMOKE"}),
        "template": card({**good, "url": "https://{tenant}.acme.example/a2a"}),
        "good": card({**good, "url": "not an address"}, good),
        "second": card(good),
    }.items():
        acme.site.json(f"/cards/{name}.json", found)
    await acme.crawl()
    acme.site.gone("/cards/gone.json")
    report = await acme.json("trace", "harbour", "--limit", "10")
    over = {hit["identifier"].rpartition(":")[2]: hit["passedOver"] for hit in report["hits"]}
    codes = {name: None if item is None else item["code"] for name, item in over.items()}
    assert codes == {
        "gone": "card_not_read",
        "mute": "binding_not_spoken",
        "template": "url_unusable",
        "good": None,
        "second": "ranked_lower",
        "endpoint": "not_a_card",
    }
    assert report["choice"]["identifier"] == "urn:air:acme.example:agent:good"
    assert report["choice"]["interface"]["pointer"] == "/supportedInterfaces/1"
    assert await acme.run("trace", "harbour", "--limit", "10") == 0
    assert "SMOKE" in acme.out


async def test_a_trace_that_ends_in_no_call_is_one(acme: Acme) -> None:
    await acme.crawl()
    report = await acme.json("trace", "plan travel", "--binding", "SMOKE", status=1)
    assert report["choice"] is None
    assert await acme.run("trace", "zanzibar") == 1
    assert "nothing matches" in acme.out


async def test_a_trace_keeps_to_robots_and_asks_conditionally(acme: Acme) -> None:
    await acme.crawl()
    acme.site._web.clear_log()
    report = await acme.json("trace", "plan travel")
    assert report["hits"][0]["card"]["outcome"] == "not_modified"
    assert report["choice"]["identifier"] == PLANNER
    assert [seen.status for seen in acme.site.requests(CARD_PATH)] == [304]

    acme.site.robots(f"User-agent: *\nDisallow: {CARD_PATH}\n", headers={"Cache-Control": "max-age=0"})
    await acme.crawl()
    acme.site._web.clear_log()
    report = await acme.json("trace", "plan travel", status=1)
    assert report["hits"][0]["passedOver"]["code"] == "card_not_read"
    assert "disallowed" in report["hits"][0]["passedOver"]["detail"]
    assert acme.site.requests(CARD_PATH) == []


# --- hostile texts ----------------------------------------------------------------------------------------------------


async def test_texts_of_publishers_never_reach_the_terminal_raw(acme: Acme) -> None:
    bell = "\x1b]0;owned\x07\x1b[2J\u202e\x9b31m"
    hostile = {**CARD, "name": f"Planner{bell}", "description": f"Plans{bell}", "version": f"1{bell}"}
    interfaces = [{"url": f"https://acme.example/{bell}", "protocolBinding": f"JSONRPC{bell}", "protocolVersion": bell}]
    skills = [{**CARD["skills"][0], "id": f"route{bell}", "tags": [f"maps{bell}"]}]
    acme.publish({**hostile, "supportedInterfaces": interfaces}, description=f"old{bell}", tags=[f"travel{bell}"])
    await acme.crawl()
    acme.publish({**hostile, "version": f"2{bell}", "skills": skills}, description=f"new{bell}", tags=[f"sea{bell}"])
    rehearsed = ("visit", acme.site.origin, "--now", "--dry-run")
    commands: Sequence[Sequence[str]] = (
        rehearsed,
        (*rehearsed, "--json"),
        ("drift",),
        ("drift", "--json"),
        ("history", PLANNER),
        ("history", PLANNER, "--json"),
        ("changes",),
        ("show", PLANNER),
        ("show", PLANNER, "--json"),
        ("origins", "show", acme.site.origin),
        ("trace", "plans", "maps", bell),
        ("trace", "plans", "maps", "--json"),
    )
    for number, arguments in enumerate(commands):
        assert await acme.run(*arguments) in (0, 1)
        assert acme.out
        for character in "\x1b\x07\x9b\u202e":
            assert character not in acme.out, arguments
        if number == 1:
            await acme.crawl()


async def test_half_a_surrogate_and_a_huge_number_break_no_command(acme: Acme) -> None:
    torn = json.dumps({**moved(), "description": "half \ud800 of a pair", "capabilities": {"\ud800": 10**30}})
    inline = planner(identifier="urn:air:acme.example:agent:inline", url=None, data={**moved(), "version": 10**30})
    await acme.crawl()
    acme.site.manifest(planner(metadata={"acme:count": 10**30}), inline)
    acme.site.page(CARD_PATH, torn, headers={"Content-Type": "application/json"})
    rehearsed = ("visit", acme.site.origin, "--now", "--dry-run")
    for arguments in (rehearsed, ("show", PLANNER), ("trace", "planner"), ("drift",), ("history", PLANNER)):
        assert await acme.run(*arguments, "--json") in (0, 1), acme.out
        assert json.loads(acme.out)
        assert await acme.run(*arguments) in (0, 1), acme.out
        if arguments == rehearsed:
            await acme.crawl()
