"""From an entry to what the API serves, and which of several sources is listed."""

import json
from pathlib import Path
from typing import Any

import pytest

from crawler.surfaces.ard import read_in_page, read_manifest
from crawler.surfaces.base import Bounds, Source
from index.precedence import Found, judge, source_rank
from index.records import Entry, Rank, Standing
from index.served import NAMESPACE, ServedEntry, derive, serve, serve_entry
from index.terms import NAMESPACE as ARD
from tests.surfaces.golden import documents, read

URL = "https://acme.example/.well-known/ard.json"
SOURCE = Source(URL, 10)
GOOD: dict[str, Any] = {
    "identifier": "urn:air:acme.example:tool:echo",
    "displayName": "Echo",
    "type": "application/mcp-server-card+json",
    "url": "https://acme.example/echo.json",
    "description": "Says it again.",
    "representativeQueries": ["say it again", "repeat what I say"],
    "acme:tier": "gold",
}


def read_one(*, outer: Any = None, **members: Any) -> Entry:
    """Read one entry, from a manifest or from inside another object of a page."""
    entry = {name: value for name, value in {**GOOD, **members}.items() if value is not ...}
    if outer is not None:
        script = json.dumps({"@context": outer, "@graph": [entry]})
        return read_in_page([script], "https://acme.example/", Source("https://acme.example/", 50), Bounds()).entries[0]
    return read_manifest(json.dumps({"entries": [entry]}).encode(), SOURCE, Bounds()).entries[0]


def served(**members: Any) -> ServedEntry:
    entry = read_one(**members)
    return serve(entry.key or "", entry.raw, derive(entry))


def test_an_entry_is_served_as_published() -> None:
    entry = read_one()
    assert serve(entry.key or "", entry.raw, derive(entry)).entry == entry.raw


@pytest.mark.parametrize(
    "members",
    [
        {"type": "Application/MCP-Server+JSON; charset=utf-8"},
        {"url": "https://ACME.example:443/a/../echo.json#top"},
        {"description": 5, "tags": "x", "capabilities": [1, "a"], "updatedAt": "yesterday"},
        {"description": "x" * 100_000},
        {"score": 100, "source": "https://evil.example/", "ardvark:adapted": ["x"]},
        {"@context": None},
        {"data": ..., "url": "ipfs://bafy"},
    ],
    ids=["type spelling", "url spelling", "wrong types", "long text", "look-alikes", "null context", "foreign scheme"],
)
def test_what_an_entry_can_be_understood_with_is_not_rewritten(members: dict[str, Any]) -> None:
    entry = read_one(**members)
    assert entry.adapted == ()
    assert serve(entry.key or "", entry.raw, derive(entry)).entry == entry.raw


@pytest.mark.parametrize(
    ("members", "adapted", "changes"),
    [
        ({"type": ..., "mediaType": "a/b"}, ["type"], {"type": "a/b", "mediaType": ...}),
        ({"url": ..., "inline": {"a": 1}}, ["data"], {"data": {"a": 1}, "inline": ..., "url": ...}),
        ({"url": "echo.json"}, ["url"], {"url": "https://acme.example/.well-known/echo.json"}),
        ({"displayName": ...}, ["displayName"], {"displayName": "echo"}),
        ({"identifier": "urn:ai:acme.example:tool:echo"}, ["identifier"], {}),
        (
            {"identifier": "urn:ai:acme.example:tool:echo", "url": "/e"},
            ["identifier", "url"],
            {"url": "https://acme.example/e"},
        ),
    ],
)
def test_a_member_that_could_not_stand_alone_is_replaced_and_named(
    members: dict[str, Any], adapted: list[str], changes: dict[str, Any]
) -> None:
    expected = {**GOOD, **members, "identifier": GOOD["identifier"], **changes}
    expected = {name: value for name, value in expected.items() if value is not ...}
    marked = {"@context": [{"ardvark": NAMESPACE}], "ardvark:adapted": adapted}
    assert json.loads(served(**members).entry) == {**expected, **marked}


def test_an_entry_keeps_the_contexts_that_gave_it_its_meaning() -> None:
    outer, own = {"acme": "https://acme.example/#"}, ["https://x.example/c", {"tier": "acme:tier"}]
    text = served(outer=outer, **{"@context": own}).entry
    assert json.loads(text)["@context"] == [outer, *own, {"ardvark": NAMESPACE}]
    assert json.loads(text)["ardvark:adapted"] == ["@context"]


def test_a_result_leaves_out_what_is_for_retrieve() -> None:
    projection = served(data={"a": 1}, url=..., big={"x": "y" * 20_000}, huge=10**30, small={"x": 1}).projection
    assert set(projection) == {"identifier", "displayName", "type", "description", "acme:tier", "small"}


def test_a_result_carries_the_contexts_of_what_enclosed_it() -> None:
    outer = {"acme": "https://acme.example/#"}
    assert served(outer=outer).projection["@context"] == [outer]
    assert served(outer=outer, **{"@context": {"b": "acme:b"}}).projection["@context"] == [outer, {"b": "acme:b"}]
    assert served(**{"@context": outer}).projection["@context"] == outer


@pytest.mark.parametrize(
    ("members", "name", "value"),
    [
        ({"displayName": "n" * 2000}, "displayName", "n" * 1000),
        ({"description": "x" * 70_000}, "description", "x" * 65_536 + " […]"),
        ({"tags": ["a", 5, "b"]}, "tags", ["a", "b"]),
        ({"metadata": {"a": 1, "b": {"c": 2}, "d": [3]}}, "metadata", {"a": 1}),
        ({"type": "Application/MCP-Server"}, "type", "Application/MCP-Server"),
        ({"url": "/e"}, "url", "https://acme.example/e"),
        ({"identifier": "urn:ai:acme.example:x"}, "identifier", "urn:air:acme.example:x"),
    ],
)
def test_a_result_has_members_that_strict_readers_accept(members: dict[str, Any], name: str, value: Any) -> None:
    assert served(**members).projection[name] == value


def test_a_listing_has_its_columns() -> None:
    entry = served(
        identifier="urn:air:Acme.Example:Tools:Echo", displayName=" Écho\tTool ", updatedAt="2026-05-05T10:00:00+02:00"
    )
    assert (entry.key, entry.publisher, entry.leaf) == ("urn:air:Acme.Example:Tools:Echo", "acme.example", "echo")
    assert (entry.display_name, entry.folded_name) == (" Écho\tTool ", "echo tool")
    assert (entry.type, entry.updated_at) == ("application/mcp-server-card+json", "2026-05-05T08:00:00+00:00")


def test_FR119_an_entry_is_found_by_its_words_and_by_the_parts_of_its_identifier() -> None:
    words = served(identifier="urn:air:Acme.Example:weather:forecast-v2", tags=["storms"]).impacts()
    assert {"acm", "exampl", "weather", "forecast", "v2", "echo", "storm", "repeat"} <= set(words)
    assert not {"urn", "air"} & set(words)


def test_an_entry_is_filtered_by_what_its_contexts_make_of_it() -> None:
    outer, own = {"acme": "https://acme.example/#"}, {"level": "acme:tier"}
    found = served(outer=outer, level="top", **{"@context": own}).attributes()
    assert ("https://acme.example/#tier", "gold") in found
    assert ("https://acme.example/#tier", "top") in found
    assert ("publisher", "acme.example") in found
    assert (ARD + "mediaType", "application/mcp-server-card+json") in found


@pytest.mark.parametrize("document", documents(), ids=lambda path: path.name)
def test_a_listing_is_rebuilt_from_its_row_exactly(document: Path) -> None:
    """What is stored beside the text, as JSON, is all that it takes."""
    candidates = [entry for entry in read(document).entries if entry.standing is Standing.CANDIDATE]
    for entry in candidates:
        derived = json.loads(json.dumps(derive(entry)))
        assert serve(entry.key or "", entry.raw, derived) == serve_entry(entry, derive(entry))
        json.loads(serve_entry(entry, derived).entry)
    assert candidates


# --- precedence -------------------------------------------------------------------------------------------------------


def found(document: str, rank: int, **members: Any) -> Found:
    return Found(read_one(**members), document, rank)


OWN, OTHER = "https://acme.example/ard.json", "https://other.example/ard.json"


@pytest.mark.parametrize(
    ("sources", "states"),
    [
        ([], []),
        ([found(OWN, 10)], ["listed"]),
        # FR-01: the newer path wins, what differs is a conflict and what does not is a duplicate.
        ([found(OWN, Rank.PREDECESSOR_PATH, description="old"), found(OWN, Rank.WELL_KNOWN)], ["conflict", "listed"]),
        ([found(OWN, Rank.WELL_KNOWN), found(OWN, Rank.PREDECESSOR_PATH)], ["listed", "duplicate"]),
        # The publisher's own word counts more than the mechanism.
        ([found(OTHER, Rank.WELL_KNOWN), found(OWN, Rank.PREDECESSOR_LINK, description="x")], ["conflict", "listed"]),
        ([found("https://www.acme.example/a", 50), found(OTHER, 10)], ["listed", "duplicate"]),
        # Of equals the one that came first.
        ([found(OWN, 10, description="a"), found(OWN, 10, description="b")], ["listed", "conflict"]),
        # The older prefix names the same thing.
        ([found(OWN, 10, identifier="urn:ai:acme.example:tool:echo"), found(OWN, 20)], ["listed", "conflict"]),
        # What cannot be listed competes with nobody.
        ([found(OWN, 10, type=...), found(OTHER, 90)], ["rejected", "listed"]),
        ([found(OWN, 10), found(OWN, 10, identifier="urn:air:acme.example:other")], ["listed", "listed"]),
    ],
)
def test_one_source_of_an_identifier_is_listed(sources: list[Found], states: list[str]) -> None:
    assert judge(sources) == states


def test_the_order_of_mechanisms_decides_on_one_origin() -> None:
    order = [
        "WELL_KNOWN",
        "LINK_HEADER",
        "HTML_LINK",
        "AGENTMAP",
        "IN_PAGE",
        "PREDECESSOR_PATH",
        "PREDECESSOR_LINK",
        "OPERATOR",
        "UNKNOWN",
        # Artifacts, which are looked at after everything that may list them.
        "KEY_SET",
        "AGENT_CARD",
        "LEGACY_CARD",
        "SERVER_CARD",
        "AGENT_DISCOVERY",
        "CONSTELLATION",
        "TRUST_ANCHOR",
        "ENTRY",
    ]
    ranks = [source_rank("acme.example", OWN, Rank[name]) for name in order]
    assert ranks == sorted(ranks)
    assert len(set(ranks)) == len(order) == len(Rank)


@pytest.mark.parametrize(
    ("publisher", "better", "worse"),
    [
        ("acme.example", OWN, OTHER),
        ("acme.example", "https://www.acme.example:8443/a", OTHER),
        ("www.acme.example", "https://www.acme.example/a", OWN),
        ("www.acme.example", OWN, OTHER),
    ],
)
def test_the_own_origin_counts_before_its_parent_and_before_others(publisher: str, better: str, worse: str) -> None:
    assert source_rank(publisher, better, Rank.UNKNOWN) < source_rank(publisher, worse, Rank.WELL_KNOWN)


def test_an_entry_without_a_publisher_belongs_nowhere() -> None:
    assert source_rank(None, OWN, 10) == source_rank("acme.example", OTHER, 10)
