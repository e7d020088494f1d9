"""Real input: every collected catalog, served as an origin on loopback and crawled by the installed command.

The catalogs are data that does not travel with the project; where the folder is missing, everything here is skipped.
"""

import asyncio
import hashlib
import json
import sys
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import ClientSession, web
from sqlalchemy import Connection, func, select, text

from config.loading import load_settings
from index.api.app import ApiServer
from index.store.changes import last_cursor, read_changes
from index.store.database import Database
from index.store.inspect import entries_not_listed
from index.store.tables import attribute_listings, attributes, documents, entries, facts, listings, postings, words
from tests.fakes.web import FakeWeb, Site

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
CATALOGS = sorted(path for path in (DATA / "catalogs").glob("*.json") if not path.name.endswith(".cards.json"))
ARDVARK = Path(sys.executable).with_name("ardvark")
# The one catalog beyond the default bound on manifests.
LARGE = "mcp-toolsdk"
RAISED = {"manifest_size": '"8MiB"'}
QUERIES = DATA / "eval" / "queries.jsonl"

pytestmark = [
    pytest.mark.system,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.xdist_group("real_catalogs"),
    pytest.mark.skipif(not CATALOGS, reason=f"REAL CATALOGS ARE ABSENT: nothing in {DATA / 'catalogs'}"),
]


@dataclass
class Origin:
    """One catalog as its publisher would serve it."""

    name: str
    site: Site
    path: str
    validator: str
    published: list[dict[str, Any]]


def _serve(fake: FakeWeb, files: list[Path]) -> list[Origin]:
    """Serve catalogs: native ones at the predecessor path they come from, with every kind of validator in turn."""
    origins = []
    for number, file in enumerate(files):
        body = file.read_bytes()
        host = file.stem.lower().replace("_", "-")
        site = fake.site(f"{host}.example")
        path = "/.well-known/ai-catalog.json" if file.stem.startswith("ard-") else "/.well-known/ard.json"
        validator = ("etag", "last_modified", "none")[number % 3]
        validators = {
            "etag": {"etag": f'"{hashlib.sha256(body).hexdigest()[:12]}"'},
            "last_modified": {"last_modified": "Fri, 20 Nov 2026 10:00:00 GMT"},
            "none": {},
        }[validator]
        site.page(path, body, headers={"Content-Type": "application/json"}, **validators)
        origins.append(Origin(file.stem, site, path, validator, json.loads(body)["entries"]))
    return origins


@dataclass
class Operator:
    """An operator at a shell: the installed command with a settings file."""

    folder: Path

    @property
    def database_url(self) -> str:
        return f"sqlite+aiosqlite:///{self.folder}/ardvark.db"

    def configure(self, origins: list[Origin], **sections: dict[str, str]) -> None:
        lines = [
            "[network]",
            "allow_http = true",
            'allow_private = ["127.0.0.0/8"]',
            'hosts = { "*.example" = "127.0.0.1" }',
            "[politeness]",
            'min_delay = "0s"',
            *(f"[{name}]\n{key} = {value}" for name, items in sections.items() for key, value in items.items()),
            *(f'[[origins]]\norigin = "{origin.site.origin}"' for origin in origins),
        ]
        (self.folder / "ardvark.toml").write_text("\n".join(lines))

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            ARDVARK,
            *arguments,
            cwd=self.folder,
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.folder)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def run(self, *arguments: str) -> Any:
        """Run a command to its end and give the JSON it printed."""
        process = await self.start(*arguments, "--json")
        out, err = await process.communicate()
        assert process.returncode == 0, err.decode()
        return json.loads(out)


@dataclass
class Crawled:
    """All catalogs, crawled once by the installed command."""

    operator: Operator
    fake: FakeWeb
    origins: list[Origin]
    summary: dict[str, Any]

    @property
    def published(self) -> int:
        return sum(len(origin.published) for origin in self.origins)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def crawled(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Crawled]:
    async with FakeWeb() as fake:
        origins = _serve(fake, CATALOGS)
        operator = Operator(tmp_path_factory.mktemp("real"))
        operator.configure(origins, limits=RAISED)
        yield Crawled(operator, fake, origins, await operator.run("crawl"))


# Why an entry that was read is not listed, beyond the errors it has of its own.
EXPLAINED = {
    "conflict": "source.conflict",
    "duplicate": "source.duplicate",
    "pointer": "entry.nested_catalog",
    "superseded": "entry.superseded",
}


async def test_every_published_entry_is_listed_or_has_a_problem_that_says_why_not(crawled: Crawled) -> None:
    summary, operator = crawled.summary, crawled.operator
    assert summary["origins"]["visited"] == len(crawled.origins)
    assert summary["origins"]["failed"] == summary["origins"]["crashed"] == 0
    assert summary["documents"]["fetched"] == len(crawled.origins)
    assert summary["snapshots"] == len(crawled.origins)
    assert summary["entries"]["listed"] + summary["entries"]["rejected"] == crawled.published

    listed = {row["origin"]: row["listings"] for row in (await operator.run("origins", "list"))["items"]}
    reasons: Counter[str] = Counter()
    unlisted: dict[str, list[Any]] = {}
    async with Database(operator.database_url) as database:
        for origin in crawled.origins:
            missing = await database.read(entries_not_listed, origin.site.origin)
            assert listed[origin.site.origin] + len(missing) == len(origin.published), origin.name
            for row in missing:
                own = [problem["code"] for problem in row.problems if problem["severity"] == "error"]
                if row.state == "rejected":
                    assert own, (origin.name, row.pointer)
                assert own or row.state in EXPLAINED, (origin.name, row.pointer, row.state)
                reasons.update(own or [EXPLAINED[row.state]])
            unlisted[origin.name] = list(missing)
    # What a better source took the place of, whenever that one came, counted as listed when it was read.
    taken_over = summary["changes"] - sum(listed.values())
    assert sum(listed.values()) + taken_over == summary["entries"]["listed"]
    assert sum(reasons.values()) - taken_over == summary["entries"]["rejected"]
    changes = (await operator.run("changes", "--limit", "10000"))["items"]
    assert Counter(item["kind"] for item in changes)["entry.changed"] == taken_over
    # No more reasons than the collection is known to hold.
    assert set(reasons) <= {"source.conflict", "identifier.not_ard", "entry.nested_catalog"}, reasons

    # What an operator is shown of an origin says the same.
    for origin in crawled.origins:
        if origin.name in ("ard-search4agents-search4agents", "ard-ards-project-ard-spec-basic"):
            shown = (await operator.run("origins", "show", origin.site.origin))["notListed"]
            assert [item["pointer"] for item in shown] == [row.pointer for row in unlisted[origin.name]] != []
            for item in shown:
                codes = [problem["code"] for problem in item["problems"]]
                assert EXPLAINED.get(item["state"], "identifier.not_ard") in codes, item


async def test_every_published_identifier_is_listed_by_one_source(crawled: Crawled) -> None:
    """What several catalogs publish is listed once; nothing is listed that nobody published."""
    published = {
        entry["identifier"].replace("urn:ai:", "urn:air:")
        for origin in crawled.origins
        for entry in origin.published
        if entry["identifier"].startswith(("urn:air:", "urn:ai:"))
        and entry.get("type") != "application/ai-catalog+json"
    }
    async with Database(crawled.operator.database_url) as database:
        assert set(dict(await database.read(_listed))) == published


async def test_a_second_crawl_changes_nothing_and_asks_conditionally(crawled: Crawled) -> None:
    async with Database(crawled.operator.database_url) as database:
        before = await database.read(_state)
        cursor = await database.read(last_cursor)
        crawled.fake.clear_log()
        summary = await crawled.operator.run("crawl")
        assert summary["changes"] == summary["snapshots"] == summary["held"] == 0
        assert summary["entries"] == {"listed": 0, "rejected": 0, "unchanged": crawled.published}
        assert await database.read(_state) == before
    for origin in crawled.origins:
        (seen,) = origin.site.requests(origin.path)
        assert seen.status == (200 if origin.validator == "none" else 304), origin.name
        asked = {name.lower() for name in seen.headers} & {"if-none-match", "if-modified-since"}
        assert (
            asked
            == {"etag": {"if-none-match"}, "last_modified": {"if-modified-since"}, "none": set()}[origin.validator]
        ), origin.name
    assert summary["documents"]["not_modified"] == sum(origin.validator != "none" for origin in crawled.origins)
    assert (await crawled.operator.run("changes", "--after", str(cursor)))["items"] == []


async def test_entries_are_served_as_their_publishers_wrote_them(crawled: Crawled) -> None:
    """A sample of all entries by Retrieve: equal to what was published, or marked with what was adapted."""
    settings = load_settings(overrides={"api": {"listen": "127.0.0.1:0"}})
    adapted = 0
    async with Database(crawled.operator.database_url) as database:
        listed = {row.key: row.url for row in await database.read(_listed_sources)}
        async with ApiServer(settings, database) as server, ClientSession() as session:
            for origin in crawled.origins:
                mine = [e for e in origin.published if listed.get(e["identifier"]) == origin.site.url(origin.path)]
                for entry in mine[:: max(1, len(mine) // 6)]:
                    url = f"http://{server.address}/api/v1/agents/{entry['identifier']}"
                    async with session.get(url) as response:
                        assert response.status == 200, entry["identifier"]
                        served = await response.json()
                    members = served.pop("ardvark:adapted", [])
                    adapted += bool(members)
                    for name in served.keys() | entry.keys():
                        if name not in members and not (members and name == "@context"):
                            assert served.get(name) == entry.get(name), (entry["identifier"], name)
    assert adapted < 20


async def test_explore_counts_what_search_pages_through(crawled: Crawled) -> None:
    settings = load_settings(overrides={"api": {"listen": "127.0.0.1:0"}})
    async with (
        Database(crawled.operator.database_url) as database,
        ApiServer(settings, database) as server,
        ClientSession(f"http://{server.address}/api/v1/") as session,
    ):

        async def ask(path: str, body: Any) -> Any:
            async with session.post(path, json=body) as response:
                assert response.status == 200, body
                return await response.json()

        for words_, filter_ in (
            ("weather forecast", {}),
            ("database", {"type": "application/mcp-server"}),
            ("github", {"publisher": ["github.com"]}),
        ):
            query = {"text": words_, "filter": filter_}
            facets = [{"field": name, "limit": 1000} for name in ("type", "publisher")]
            counted = (await ask("explore", {"query": query, "resultType": {"facets": facets}}))["facets"]
            seen: list[str] = []
            token: dict[str, str] = {}
            while True:
                page = await ask("search", {"query": query, "pageSize": 100, **token})
                seen += [result["identifier"] for result in page["results"]]
                if "pageToken" not in page:
                    break
                token = {"pageToken": page["pageToken"]}
            assert len(seen) == len(set(seen)) > 20
            for name in ("type", "publisher"):
                assert sum(bucket["count"] for bucket in counted[name]["buckets"]) == len(seen), (words_, name)


@pytest.mark.skipif(not QUERIES.is_file(), reason=f"RELEVANCE QUERIES ARE ABSENT: no {QUERIES}")
async def test_judged_queries_find_what_they_mean(
    crawled: Crawled, record_property: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """A smoke test of relevance: the mean reciprocal rank of the first relevant of ten results."""
    judged = [json.loads(line) for line in QUERIES.read_text("utf-8").splitlines()]
    ranks: dict[str, list[float]] = defaultdict(list)
    best_of_nothing = 0
    settings = load_settings(overrides={"api": {"listen": "127.0.0.1:0"}})
    async with (
        Database(crawled.operator.database_url) as database,
        ApiServer(settings, database) as server,
        ClientSession(f"http://{server.address}/api/v1/") as session,
    ):
        for item in judged:
            async with session.post("search", json={"query": {"text": item["query"]}}) as response:
                results = (await response.json())["results"]
            found = [rank for rank, result in enumerate(results, 1) if result["identifier"] in item["relevant"]]
            ranks[item["kind"]].append(1 / found[0] if found else 0.0)
            if item["kind"] == "none":
                best_of_nothing = max([best_of_nothing, *(result["score"] for result in results)])
    mean = {kind: sum(values) / len(values) for kind, values in ranks.items()}
    smoke = [value for kind in ("need", "keyword", "name") for value in ranks[kind]]
    mrr = sum(smoke) / len(smoke)
    for kind, value in {**mean, "need+keyword+name": mrr, "best score of a query for nothing": best_of_nothing}.items():
        record_property(f"mrr_at_10_{kind}", round(value, 3))
    with capsys.disabled():
        print(f"\nMRR@10 {mrr:.3f}", {kind: round(value, 3) for kind, value in mean.items()}, best_of_nothing)
    assert mrr >= 0.60
    assert best_of_nothing < 25


# --- the state of a database ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class State:
    """What a crawl leaves behind: every entry with its digest, what is listed, and what became of rival sources."""

    entries: dict[str, list[tuple[str, str, str]]]
    listed: dict[str, str]
    rivals: dict[str, list[str]]


def _listed(connection: Connection) -> list[tuple[str, str]]:
    query = select(listings.c.identifier, listings.c.digest).where(listings.c.removed_at.is_(None))
    return [(row.identifier, row.digest) for row in connection.execute(query)]


def _listed_sources(connection: Connection) -> Any:
    query = select(entries.c.key, documents.c.url).join(documents, documents.c.id == entries.c.document_id)
    return connection.execute(query.where(entries.c.state == "listed")).all()


def _state(connection: Connection) -> State:
    """Read the state; the port of the fake web is left out, and so is which of equal sources came first."""
    query = select(entries, documents.c.url).join(documents, documents.c.id == entries.c.document_id)
    found: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    states: dict[str, list[str]] = defaultdict(list)
    for row in connection.execute(query):
        host, path = row.url.split("/", 3)[2].partition(":")[0], row.url.split("/", 3)[3]
        found[f"{host}/{path}"].append((row.pointer, row.key or "", row.digest))
        if row.standing == "candidate":
            states[row.key].append(row.state)
    rivals = {key: sorted(of) for key, of in states.items() if len(of) > 1}
    listed = {key: "" if key in rivals else digest for key, digest in _listed(connection)}
    return State({url: sorted(items) for url, items in found.items()}, listed, rivals)


def _faults(connection: Connection) -> list[str]:
    """Count afresh what the index keeps counted, and ask the database about itself."""
    faults = []
    for table, key, uses in (
        (words, "word_id", postings),
        (attributes, "attribute_id", attribute_listings),
    ):
        counted = dict(connection.execute(select(uses.c[key], func.count()).group_by(uses.c[key])).all())
        kept = dict(connection.execute(select(table.c.id, table.c.entry_count).where(table.c.entry_count > 0)).all())
        if counted != kept:
            faults.append(f"{table.name}: the counts kept are not those of {uses.name}")
    live = len(_listed(connection))
    kept_live = connection.execute(select(facts.c.number).where(facts.c.name == "entries")).scalar_one()
    indexed = connection.execute(select(func.count(postings.c.listing_id.distinct()))).scalar_one()
    if not live == kept_live == indexed:
        faults.append(f"{live} listings, {kept_live} by the count kept, {indexed} with words")
    if connection.execute(text("PRAGMA integrity_check")).scalar_one() != "ok":
        faults.append("the database file is damaged")
    return faults


async def test_a_crawl_that_is_killed_again_and_again_ends_in_the_same_state(crawled: Crawled, tmp_path: Path) -> None:
    operator = Operator(tmp_path)
    async with FakeWeb() as fake:
        origins = _serve(fake, CATALOGS)
        operator.configure(origins, limits=RAISED, crawl={"visits": "3"})
        large = next(origin for origin in origins if origin.name == LARGE)
        manifest = large.site.pages[large.path]
        pages, wanted = 0, 0
        enough = asyncio.Event()

        async def never(_: web.Request) -> web.StreamResponse:
            """Hold the crawl open: it can't end before it is killed."""
            await asyncio.Event().wait()
            raise AssertionError

        async def last_page(_: web.Request) -> web.StreamResponse:
            """Answer what is asked last on an origin, and count how far the crawl has come."""
            nonlocal pages
            pages += 1
            if pages >= wanted:
                enough.set()
            return web.Response(status=404)

        large.site.handle(large.path, never)
        for origin in origins:
            origin.site.handle("/", last_page)
        progress = []
        for wanted in (1, 12, 30):  # noqa: B007 - the pages ask for it
            pages = 0
            enough.clear()
            process = await operator.start("crawl", "--json")
            await asyncio.wait_for(enough.wait(), 60)
            process.kill()
            await process.communicate()
            assert process.returncode == -9
            async with Database(operator.database_url) as database:
                assert await database.read(_faults) == []
                progress.append(len(await database.read(_listed)))
        # Three visits at a time: what was asked for its last page is settled, but for the latest.
        assert progress[0] <= progress[1] <= progress[2]
        assert 0 < progress[1] < progress[2] < crawled.summary["entries"]["listed"]

        large.site.pages[large.path] = manifest
        summary = await operator.run("crawl")
        assert summary["origins"]["visited"] == len(origins)
        async with Database(operator.database_url) as database, Database(crawled.operator.database_url) as reference:
            state = await database.read(_state)
            assert state == await reference.read(_state)
            assert await database.read(_faults) == []
            events = await database.read(read_changes, 0, 100_000)
            # The feed is without gaps, and nothing was announced twice.
            assert [event.cursor for event in events] == list(range(1, len(events) + 1))
            added = [event.identifier for event in events if event.kind == "entry.added"]
            assert sorted(added) == sorted(state.listed)
        again = await operator.run("crawl")
        assert again["changes"] == again["snapshots"] == 0


async def test_a_manifest_beyond_the_bound_is_too_large_and_nothing_else_suffers(tmp_path: Path) -> None:
    files = [path for path in CATALOGS if path.stem == LARGE or path.stem.startswith("ard-")]
    operator = Operator(tmp_path)
    async with FakeWeb() as fake:
        origins = _serve(fake, files)
        operator.configure(origins)
        summary = await operator.run("crawl")
        assert summary["documents"]["too_large"] == 1
        assert summary["origins"]["failed"] == 0
        others = [origin for origin in origins if origin.name != LARGE]
        assert summary["documents"]["fetched"] == len(others)
        assert summary["entries"]["listed"] + summary["entries"]["rejected"] == sum(len(o.published) for o in others)
        (large,) = (origin for origin in origins if origin.name == LARGE)
        shown = await operator.run("origins", "show", large.site.origin)
        (document,) = (document for document in shown["documents"] if document["url"] == large.site.url(large.path))
        assert (document["outcome"], document["entries"]) == ("too_large", 0)

        # Lowered further, what is held already stays; it only cannot be confirmed any more.
        operator.configure(origins, limits={"manifest_size": '"2KiB"'})
        for origin in origins:
            origin.site.pages[origin.path].etag = '"changed"'  # type: ignore[union-attr]
        lowered = await operator.run("crawl")
        assert lowered["documents"]["too_large"] > 1
        assert lowered["changes"] == 0
        found = await operator.run("show", "urn:air:github.com:datarobot-oss:datarobot-agent-skills:setup")
        assert (found["state"], found["provenance"]["staleReason"].partition(":")[0]) == ("stale", "too_large")
