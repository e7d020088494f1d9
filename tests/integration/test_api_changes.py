"""`GET /changes`: the change feed, replayed from a cursor, and as Atom for feed readers."""

import asyncio
import json
import re
from typing import Any
from xml.etree import ElementTree

import pytest
from sqlalchemy import Connection, delete

from index.store.changes import Change, append_changes
from index.store.tables import changes as change_rows
from tests.conftest import OpenCrawl
from tests.fakes.cards import CARD, agent_card, agent_entry, urn
from tests.fakes.clock import FakeClock
from tests.fakes.described import complaints
from tests.fakes.harness import ALL_SURFACES
from tests.fakes.registry import Answer, Registry, serving
from tests.fakes.web import FakeWeb, Site, entry

ATOM = "application/atom+xml"
NAMES = {"a": "http://www.w3.org/2005/Atom"}


def origin(site: Site) -> Any:
    return {"origin": site.origin, "surfaces": list(ALL_SURFACES)}


async def changes(registry: Registry, query: str = "") -> Any:
    answer = await registry.get(f"/api/v1/changes{query}")
    assert answer.status == 200, answer.body
    assert answer.headers["content-type"].startswith("application/json")
    return answer.json


async def atom(registry: Registry, query: str = "") -> ElementTree.Element:
    answer = await registry.get(f"/api/v1/changes{query}", Accept=ATOM)
    assert answer.status == 200, answer.body
    return parsed(answer)


def parsed(answer: Answer) -> ElementTree.Element:
    assert answer.headers["content-type"].startswith(ATOM)
    return ElementTree.fromstring(answer.body)


def texts(feed: ElementTree.Element, path: str) -> list[str]:
    return [element.text or "" for element in feed.findall(path, NAMES)]


async def test_the_feed_is_ordered_and_can_be_replayed_from_any_cursor(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.manifest(agent_entry(), *(entry(f"n{number}") for number in range(4)))
    acme.json(CARD, agent_card())
    async with serving(open_crawl, origin(acme)) as registry:
        clock.advance(hours=1)
        acme.manifest(agent_entry(tags=["sea"]), *(entry(f"n{number}") for number in range(3)))
        acme.json(CARD, agent_card(version="1.1.0"))
        await registry.crawl.run()
        whole = await changes(registry)
        cursors = [item["cursor"] for item in whole["items"]]
        assert cursors == list(range(1, len(cursors) + 1)), "in order and without gaps"
        assert whole["next"] == whole["last"] == cursors[-1]
        assert await complaints(registry, "ChangePage", whole) == []
        replayed: list[Any] = []
        after = 0
        while True:
            part = await changes(registry, f"?after={after}&limit=2")
            if not part["items"]:
                break
            assert part["next"] == part["items"][-1]["cursor"]
            replayed += part["items"]
            after = part["next"]
        assert replayed == whole["items"]
        assert await changes(registry, f"?after={after}") == {"items": [], "next": after, "last": after, "oldest": 1}
        both = await changes(registry, "?limit=3&pageSize=2")
        assert both["items"] == whole["items"][:2], "of two sizes the smaller counts"
        ahead = await changes(registry, f"?after={after + 7}")
        assert ahead == {"items": [], "next": after + 7, "last": after, "oldest": 1}, (
            "whoever is ahead of the feed can tell"
        )


async def test_every_kind_of_event_says_what_it_is_about(web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock) -> None:
    acme = web.site("acme")
    acme.manifest(agent_entry(), entry("gone"))
    acme.json(CARD, agent_card())
    acme.json("/.well-known/agent.json", agent_card("Somebody else"))
    async with serving(open_crawl, origin(acme)) as registry:
        clock.advance(hours=1)
        acme.manifest(agent_entry(tags=["travel", "sea"]))
        acme.json(CARD, agent_card(supportedInterfaces=[]))
        await registry.crawl.run()
        items = (await changes(registry))["items"]
        by_kind = {item["kind"]: item for item in items}
        assert {"entry.added", "entry.changed", "entry.removed", "artifact.added", "artifact.changed"} <= set(by_kind)
        changed = by_kind["entry.changed"]
        assert (changed["identifier"], changed["members"]) == (urn(), ["/tags"])
        assert changed["oldDigest"] != changed["newDigest"]
        tombstone = by_kind["entry.removed"]
        assert tombstone["identifier"] == "urn:air:acme.example:tool:gone"
        assert (tombstone["newDigest"], tombstone["reason"]) == (None, "absent_from_source")
        assert tombstone["oldDigest"] is not None
        card = by_kind["artifact.changed"]
        assert (card["identifier"], card["url"], card["class"]) == (urn(), acme.url(CARD), "breaking")
        assert card["silent"] is True, "the version stayed the same"
        assert card["indexedAt"] is not None
        nameless = [item for item in items if item["url"] == acme.url("/.well-known/agent.json")]
        assert [item["identifier"] for item in nameless] == [None], "no entry names that card"
        mine = await changes(registry, f"?identifier={urn()}")
        assert mine["items"] == [item for item in items if item["identifier"] == urn()]


@pytest.mark.parametrize(
    "query",
    [
        "after=-1",
        "after=x",
        "after=1.0",
        "after=",
        "after=1&after=2",
        "after=9999999999999999999",
        "limit=0",
        "since=1",
    ],
)
async def test_a_cursor_that_is_none_is_refused(crawl_sqlite: OpenCrawl, query: str) -> None:
    async with serving(crawl_sqlite) as registry:
        for accept in ("application/json", ATOM):
            answer = await registry.get(f"/api/v1/changes?{query}", Accept=accept)
            assert answer.error() == (400, "INVALID_ARGUMENT")


ACCEPT = [
    ("", False),
    ("*/*", False),
    ("application/*", False),
    ("text/html", False),
    ("nonsense", False),
    (ATOM, True),
    ("Application/ATOM+xml", True),
    (f"{ATOM};type=feed", True),
    (f"{ATOM}, application/json", False),
    (f"{ATOM}, application/json;q=0.9", True),
    (f"application/json;q=0.2,{ATOM};q=0.3", True),
    (f"{ATOM};q=0.999 , */*", False),
    (f"{ATOM}, application/rss+xml;q=0.8, */*;q=0.5", True),
    (f"{ATOM};q=0, */*;q=0.1", False),
    (f"{ATOM};q=0", False),
    (f"{ATOM};Q=0.5, application/json;Q=0.4", True),
    (f"{ATOM};q=2", False),
    (f"{ATOM};q=-1", False),
    (f"{ATOM};q=0.1234", False),
    ("application/json;q=0, */*", True),
    ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", False),
]


async def test_atom_is_for_those_who_prefer_it(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"))
    async with serving(crawl_sqlite, acme) as registry:
        for accept, is_atom in ACCEPT:
            answer = await registry.get("/api/v1/changes", Accept=accept)
            assert answer.status == 200, accept
            assert answer.headers["content-type"].startswith(ATOM) is is_atom, accept
            assert answer.headers["vary"] == "Accept, Accept-Encoding"
        several = [("Accept", "application/json;q=0.1"), ("Accept", f"{ATOM};q=0.2")]
        parsed(await registry.request("GET", "/api/v1/changes", headers=several))


async def test_the_atom_feed_has_what_its_format_demands(web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock) -> None:
    acme = web.site("acme")
    acme.manifest(*(entry(f"n{number}") for number in range(3)))
    async with serving(open_crawl, acme) as registry:
        clock.advance(hours=1)
        acme.manifest(entry("n0"), entry("n1", tags=["x"]))
        await registry.crawl.run()
        feed = await atom(registry)
        assert feed.tag == "{http://www.w3.org/2005/Atom}feed"
        for name in ("a:id", "a:title", "a:updated", "a:author/a:name"):
            assert len(texts(feed, name)) == 1, name
        assert [link.get("href") for link in feed.findall("a:link[@rel='self']", NAMES)] == [
            "https://registry.example/api/v1/changes"
        ]
        items = (await changes(registry))["items"]
        ids = texts(feed, "a:entry/a:id")
        assert len(set(ids)) == len(items)
        assert all(re.fullmatch(r"tag:registry\.example,2026:ardvark/change/\d+", name) for name in ids)
        assert [int(name.rpartition("/")[2]) for name in ids] == [item["cursor"] for item in reversed(items)]
        assert texts(feed, "a:entry/a:updated") == [item["at"] for item in reversed(items)]
        assert texts(feed, "a:updated") == [max(item["at"] for item in items)]
        terms = [element.get("term") for element in feed.findall("a:entry/a:category", NAMES)]
        assert terms == [item["kind"] for item in reversed(items)]
        assert "Entry removed: urn:air:acme.example:tool:n2" in texts(feed, "a:entry/a:title")
        assert all(texts(feed, "a:entry/a:content"))
        latest = await atom(registry, "?limit=2")
        assert texts(latest, "a:entry/a:id") == ids[:2], "the newest, newest first"
        replay = await atom(registry, "?after=1&limit=2")
        assert texts(replay, "a:entry/a:id") == ids[-2:-4:-1], "with a cursor, what follows it"
        following = [link.get("href") for link in replay.findall("a:link[@rel='next']", NAMES)]
        assert following == ["https://registry.example/api/v1/changes?after=3"]
        assert texts(await atom(registry), "a:entry/a:id") == ids, "names stay"


async def test_no_published_text_breaks_the_atom_feed(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    hostile = "]]><b a='\"'>&amp;\u0001\u0008\u000b\ufffe\x7f</b><!--"
    acme = web.site("acme")
    acme.manifest(entry("echo"))
    async with serving(open_crawl, acme, api={"display_name": f"Our <registry> & {hostile}"}) as registry:
        body = json.dumps({"entries": [entry("echo", **{hostile: 1, "\u0000": 2})]})
        acme.page("/.well-known/ard.json", body, headers={"Content-Type": "application/json"})
        await registry.crawl.run()
        feed = await atom(registry)
        content = "\n".join(texts(feed, "a:entry/a:content"))
        assert "]]><b a='\"'>&amp;\x7f<~1b><!--" in content, "as a JSON Pointer"
        assert texts(feed, "a:title")[0].startswith("Our <registry> & ]]>")
        assert not feed.findall(".//b")
        named = await atom(registry, "?identifier=%3Cx%3E%26%22%00%01")
        assert texts(named, "a:entry/a:id") == []


async def test_an_unchanged_feed_is_not_sent_again(web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock) -> None:
    acme = web.site("acme")
    acme.manifest(entry("echo"))
    async with serving(open_crawl, acme) as registry:
        tags = set()
        for accept in ("application/json", ATOM):
            first = await registry.get("/api/v1/changes", Accept=accept)
            assert first.headers["cache-control"] == "public, max-age=60"
            clock.advance(hours=1)
            tag = first.headers["etag"]
            tags.add(tag)
            again = await registry.get("/api/v1/changes", Accept=accept, If_None_Match=tag)
            assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
            assert again.headers["vary"] == first.headers["vary"]
            acme.manifest(entry("echo", tags=[accept]))
            await registry.crawl.run()
            changed = await registry.get("/api/v1/changes", Accept=accept, If_None_Match=tag)
            assert changed.status == 200
        assert len(tags) == 2
        head = await registry.request("HEAD", "/api/v1/changes", headers={"Accept": ATOM})
        assert (head.status, head.body) == (200, b"")


async def test_an_empty_feed_is_one(crawl_sqlite: OpenCrawl, clock: FakeClock) -> None:
    async with serving(crawl_sqlite) as registry:
        assert await changes(registry) == {"items": [], "next": 0, "last": 0, "oldest": 1}
        first = await registry.get("/api/v1/changes", Accept=ATOM)
        clock.advance(days=1)
        assert parsed(first).findall("a:entry", NAMES) == []
        assert (await registry.get("/api/v1/changes", Accept=ATOM)).body == first.body


async def test_a_mirror_gets_a_thousand_events_at_a_time(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    acme = web.site("acme")
    acme.manifest(*(entry(f"n{number}") for number in range(1003)))
    async with serving(crawl_sqlite, acme) as registry:
        assert len((await changes(registry))["items"]) == 100
        page = await changes(registry, "?limit=5000")
        assert (len(page["items"]), page["next"], page["last"]) == (1000, 1000, 1003)


async def test_who_asks_from_further_back_than_the_feed_goes_is_told(
    web: FakeWeb, open_crawl: OpenCrawl, clock: FakeClock
) -> None:
    acme = web.site("acme")
    acme.manifest(*(entry(f"n{number}") for number in range(5)))
    async with serving(open_crawl, acme) as registry:
        await registry.crawl.database.write(_forget_changes, 3)
        late = await registry.get("/api/v1/changes?after=2")
        assert (late.status, late.json["errorCode"]) == (410, "GONE")
        assert "cursor 4" in late.json["message"]
        assert [item["cursor"] for item in (await changes(registry, "?after=3"))["items"]] == [4, 5]
        whole = await changes(registry)
        assert ([item["cursor"] for item in whole["items"]], whole["oldest"]) == ([4, 5], 4)


def _forget_changes(connection: Connection, last: int) -> None:
    """Do what pruning does to a feed that has grown old."""
    connection.execute(delete(change_rows).where(change_rows.c.cursor <= last))


async def test_an_answer_is_of_one_state_of_the_feed_while_others_write_to_it(open_crawl: OpenCrawl) -> None:
    """A follower that is ahead of `last` would have to begin anew."""
    async with serving(open_crawl) as registry:
        at = registry.crawl.clock.now()

        async def write() -> None:
            for number in range(60):
                await registry.crawl.database.write(append_changes, [Change("entry.added", urn(str(number)), at)], at)

        writing = asyncio.create_task(write())
        after = 0
        while not writing.done():
            page = await changes(registry, f"?after={after}")
            assert page["next"] <= page["last"]
            after = page["next"]
        await writing
