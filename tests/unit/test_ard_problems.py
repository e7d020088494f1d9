"""Every problem that the ARD surface can find: its code, its severity, its place, and what becomes of the entry."""

import ast
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from crawler.surfaces.ard import read_in_page, read_manifest, served_as, withhold_private
from crawler.surfaces.base import Bounds, Source
from index.records import Reading
from index.trust import Alignment

URL = "https://acme.example/.well-known/ard.json"
CATALOG = "application/ai-catalog+json"
GOOD: dict[str, Any] = {
    "identifier": "urn:air:acme.example:tool:echo",
    "displayName": "Echo",
    "type": "application/mcp-server-card+json",
    "url": "https://acme.example/echo.json",
    "representativeQueries": ["say it again", "repeat what I say"],
}
REMOVED: Any = object()
# What the JSON gate refuses as a whole is about bytes; those rows stand in test_strict_json.
OF_THE_GATE = {"json.empty", "json.encoding", "json.not_a_number", "json.syntax", "json.too_deep"}


def with_members(**members: Any) -> dict[str, Any]:
    """The good entry with members changed or removed."""
    return {name: value for name, value in {**GOOD, **members}.items() if value is not REMOVED}


def nested(*entries: Any, name: str = "more", **members: Any) -> dict[str, Any]:
    """A pointer to a catalog, with its entries inline unless `members` say otherwise."""
    pointer = {"identifier": f"urn:air:acme.example:{name}", "displayName": "More", "type": CATALOG}
    content = members or {"data": {"entries": list(entries)}}
    return {**pointer, **content, "representativeQueries": GOOD["representativeQueries"]}


@dataclass
class Case:
    """A document, as bytes or as its entries, and what is expected of its reading: code, severity and place."""

    entries: Sequence[Any] = ()
    expected: Sequence[str] = ()
    standings: Sequence[str] = ("candidate",)
    body: bytes | None = None
    root: dict[str, Any] = field(default_factory=dict)
    bounds: Bounds = field(default_factory=Bounds)
    source: Source = field(default_factory=lambda: Source(URL, 10))
    kind: str = "manifest"
    complete: bool = True
    private: bool = False
    content_type: str = "application/json"

    def read(self) -> Reading:
        body = self.body if self.body is not None else json.dumps({"entries": self.entries, **self.root}).encode()
        reading = served_as(read_manifest(body, self.source, self.bounds), self.content_type)
        return withhold_private(reading) if self.private else reading


def entry(*expected: str, bounds: Bounds | None = None, **members: Any) -> Case:
    """A manifest of one entry, the good one with members changed; places are relative to it, an error rejects it."""
    return Case([with_members(**members)], *in_place(expected), bounds=bounds or Bounds())


def in_first(text: str, *expected: str) -> Case:
    """A manifest of one entry, the good one with a member written as raw text."""
    body = json.dumps({"entries": [GOOD]})[:-3] + f", {text}}}]}}"
    return Case((), *in_place(expected), body=body.encode())


def in_place(expected: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    rejected = any(" error" in line for line in expected)
    return [re.sub(r"( \w+)( |$)", r"\1 /entries/0", line, count=1) for line in expected], (
        "rejected" if rejected else "candidate",
    )


LONG = Bounds(string_size=10)
MISSING_QUERIES = "queries.missing warning"
PREDECESSOR = Source("https://acme.example/.well-known/ai-catalog.json", 60, predecessor=True)
NESTED = "entry.nested_catalog info /entries/0"
DEEP = Bounds(nesting_depth=2)
TWO_LINKS = Bounds(links=2)

CASES = {
    # --- nothing wrong
    "a good entry": Case([GOOD]),
    "an empty manifest": Case([], standings=()),
    "unknown members": Case([{**GOOD, "x": 1, "acme:tier": "gold"}], root={"x-build": "7f3", "version": 9}),
    "two parts": entry(identifier="urn:air:acme.example:echo"),
    "five parts": entry(identifier="urn:air:acme.example:a:b:c:echo"),
    "inline data": entry(url=REMOVED, data={"any": ["thing"]}),
    "the same @id": entry(**{"@id": GOOD["identifier"]}),
    "an IRI as extension": entry(**{"https://acme.example/ns#tier": "gold"}),
    "empty lists": entry(tags=[], capabilities=[]),
    "a date alone": entry(updatedAt="2026-05-05"),
    "a date with an offset": entry(updatedAt="2026-05-05T10:00:07.5+02:00"),
    "plain metadata": entry(metadata={"a": 1, "b": "x", "c": None, "d": True}),
    "an aligned identity": entry(trustManifest={"identity": "spiffe://acme.example/echo"}),
    "an identity of a sub-domain": entry(trustManifest={"identity": "spiffe://run.acme.example/echo"}),
    "an identity that says nothing": entry(trustManifest={"identity": "did:key:z6Mk"}),
    # --- the document
    "json.bom": Case(body=b"\xef\xbb\xbf" + json.dumps({"entries": [GOOD]}).encode(), expected=["json.bom warning"]),
    "manifest.no_entries, an object": Case(
        body=b'{"name": "x"}', kind="unknown", complete=False, standings=(), expected=["manifest.no_entries error"]
    ),
    "manifest.no_entries, an array": Case(
        body=json.dumps([GOOD]).encode(),
        kind="unknown",
        complete=False,
        standings=(),
        expected=["manifest.no_entries error"],
    ),
    "manifest.no_entries, a text": Case(
        body=b'"x"', kind="unknown", complete=False, standings=(), expected=["manifest.no_entries error"]
    ),
    "manifest.entries_type": Case(
        root={"entries": {"0": GOOD}}, complete=False, standings=(), expected=["manifest.entries_type error /entries"]
    ),
    "manifest.entries_type, null": Case(
        root={"entries": None}, complete=False, standings=(), expected=["manifest.entries_type error /entries"]
    ),
    "manifest.single_entry": Case(
        body=b" " + json.dumps(GOOD).encode() + b"\n", kind="entry", expected=["manifest.single_entry warning"]
    ),
    "manifest.too_many_entries": Case(
        [with_members(identifier=f"urn:air:acme.example:t{n}") for n in range(3)],
        ["manifest.too_many_entries warning /entries/2"],
        ("candidate", "candidate"),
        bounds=Bounds(entries=2),
        complete=False,
    ),
    "catalog.spec_version, no text": Case(
        [GOOD], ["catalog.spec_version warning /specVersion"], root={"specVersion": 1.0}, source=PREDECESSOR
    ),
    "catalog.spec_version, a wild one": Case(
        [GOOD], ["catalog.spec_version warning /specVersion"], root={"specVersion": "0.91"}, source=PREDECESSOR
    ),
    "catalog.spec_version, no number": Case(
        [GOOD], ["catalog.spec_version warning /specVersion"], root={"specVersion": "one"}, source=PREDECESSOR
    ),
    "spec version 1.7": Case([GOOD], root={"specVersion": "1.7"}, source=PREDECESSOR),
    "catalog.unsupported_version": Case(
        [GOOD],
        ["catalog.unsupported_version error /specVersion"],
        (),
        root={"specVersion": "2.0"},
        source=PREDECESSOR,
        complete=False,
    ),
    "for ARD specVersion is noise": Case([GOOD], root={"specVersion": "2.0"}),
    "catalog.collections_removed": Case(
        [GOOD],
        ["catalog.collections_removed warning /collections"],
        root={"collections": [{"url": "b.json"}, "c.json", {"x": 1}, 5]},
    ),
    "url.syntax, a collection": Case(
        [GOOD],
        ["catalog.collections_removed warning /collections", "url.syntax warning /collections/0"],
        root={"collections": [{"url": "https://["}]},
    ),
    "no collections": Case([GOOD], root={"collections": []}),
    "manifest.private and entry.private": Case(
        [GOOD, nested(url="https://acme.example/b.json"), 5],
        [
            "manifest.private warning",
            "entry.private error /entries/0",
            "entry.nested_catalog info /entries/1",
            "entry.not_object error /entries/2",
        ],
        ("rejected", "pointer", "rejected"),
        private=True,
    ),
    # --- nested catalogs
    "entry.nested_catalog, by address": Case([nested(url="https://acme.example/b.json")], [NESTED], ("pointer",)),
    "entry.nested_catalog, inline": Case([nested(GOOD)], [NESTED], ("candidate", "pointer")),
    "nesting.cycle, to itself": Case([nested(url=URL)], [NESTED, "nesting.cycle warning /entries/0"], ("pointer",)),
    "nesting.cycle, to one above": Case(
        [nested(url="HTTPS://Acme.example:443/a.json")],
        [NESTED, "nesting.cycle warning /entries/0"],
        ("pointer",),
        source=Source(URL, 10, depth=2, ancestors=("https://acme.example/a.json",)),
    ),
    "nesting.no_entries": Case(
        [nested(data={"x": 1})], [NESTED, "nesting.no_entries warning /entries/0"], ("pointer",)
    ),
    "nesting.too_deep, by address": Case(
        [nested(url="b.json")],
        ["url.relative info /entries/0/url", "nesting.too_deep warning /entries/0"],
        ("pointer",),
        bounds=DEEP,
        source=Source(URL, 10, depth=2),
    ),
    "nesting.too_deep, inline": Case(
        [nested(nested(GOOD, name="two"))],
        [NESTED, "nesting.too_deep warning /entries/0/data/entries/0"],
        ("pointer", "pointer"),
        bounds=DEEP,
    ),
    "nesting.too_many": Case(
        [nested(url=f"https://acme.example/{n}", name=f"n{n}") for n in range(5)],
        [*(f"entry.nested_catalog info /entries/{n}" for n in range(5)), "nesting.too_many warning /entries/2"],
        ("pointer",) * 5,
        bounds=TWO_LINKS,
    ),
    # --- entries among each other
    "entry.duplicate": Case([GOOD, GOOD], ["entry.duplicate error /entries/1"], ("candidate", "rejected")),
    "entry.duplicate, under the older prefix": Case(
        [GOOD, with_members(identifier="urn:ai:acme.example:tool:echo")],
        ["identifier.old_prefix warning /entries/1/identifier", "entry.duplicate error /entries/1"],
        ("candidate", "rejected"),
    ),
    "entry.superseded": Case(
        [with_members(version="1.9.0"), with_members(version="1.10.0")],
        ["entry.superseded info /entries/0"],
        ("superseded", "candidate"),
    ),
    # --- one entry
    "entry.not_object": Case(
        [None, 5, "x", [], GOOD],
        [f"entry.not_object error /entries/{n}" for n in range(4)],
        (*("rejected",) * 4, "candidate"),
    ),
    "identifier.missing": entry("identifier.missing error /identifier", identifier=REMOVED),
    "identifier.missing, empty": entry("identifier.missing error /identifier", identifier=""),
    "identifier.missing, no text": entry("identifier.missing error /identifier", identifier=7),
    "identifier.syntax": entry("identifier.syntax error /identifier", identifier="urn:air:acme.example"),
    "identifier.syntax, no publisher": entry("identifier.syntax error /identifier", identifier="urn:air::x:y"),
    "identifier.syntax, a final newline": entry(
        "identifier.syntax error /identifier", identifier="urn:air:acme.example:x\n"
    ),
    "identifier.syntax, too long": entry(
        "identifier.syntax error /identifier", identifier="urn:air:acme.example:" + "x" * 600
    ),
    "identifier.not_ard": entry("identifier.not_ard error /identifier", identifier="https://acme.example/echo"),
    "identifier.old_prefix": entry(
        "identifier.old_prefix warning /identifier", identifier="urn:ai:acme.example:tool:echo"
    ),
    "identifier.publisher_not_domain": entry(
        "identifier.publisher_not_domain warning /identifier", identifier="urn:air:localhost:echo"
    ),
    "identifier.publisher_not_domain, an address": entry(
        "identifier.publisher_not_domain warning /identifier", identifier="urn:air:10.0.0.1:echo"
    ),
    "entry.id_mismatch": entry("entry.id_mismatch warning /@id", **{"@id": "urn:air:acme.example:other"}),
    "entry.type_missing": entry("entry.type_missing error /type", type=REMOVED),
    "entry.type_missing, no text": entry("entry.type_missing error /type", type=["a/b"]),
    "type.not_media_type": entry("type.not_media_type warning /type", type="MCP server"),
    "type.spelling": entry("type.spelling info /type", type="Application/MCP-Server+JSON; charset=utf-8"),
    "entry.url_and_data": entry("entry.url_and_data error", data={}),
    "entry.no_content": entry("entry.no_content error", url=REMOVED),
    "entry.data_type": entry("entry.data_type warning /data", url=REMOVED, data="text"),
    "url.type": entry("url.type error /url", url=None),
    "url.type, empty": entry("url.type error /url", url=" "),
    "url.scheme": entry("url.scheme error /url", url=" JavaScript:alert(1)"),
    "url.scheme, a file": entry("url.scheme error /url", url="file:///etc/passwd"),
    "url.scheme, data": entry("url.scheme error /url", url="data:text/html,x"),
    "url.syntax": entry("url.syntax error /url", url="https://[2606:4700::1111"),
    "url.syntax, no host": entry("url.syntax error /url", url="https:///x"),
    "url.syntax, a hidden scheme": entry("url.syntax error /url", url="java\nscript:alert(1)"),
    "url.syntax, too long": entry("url.syntax error /url", url="/" + "x" * 3000),
    "url.relative": entry("url.relative info /url", url="../echo.json"),
    "url.foreign_scheme": entry("url.foreign_scheme info /url", url="ipfs://bafy"),
    "entry.display_name_missing": entry("entry.display_name_missing warning /displayName", displayName=REMOVED),
    "entry.display_name_missing, blank": entry("entry.display_name_missing warning /displayName", displayName=" "),
    "entry.display_name_missing, no text": entry(
        "entry.display_name_missing warning /displayName", displayName=["Echo"]
    ),
    "entry.display_name_long": entry("entry.display_name_long warning /displayName", displayName="x" * 1001),
    "entry.wrong_type, a text": entry("entry.wrong_type warning /description", description=5),
    "entry.wrong_type, null": entry("entry.wrong_type warning /version", version=None),
    "entry.wrong_type, a list": entry("entry.wrong_type warning /tags", tags="a,b"),
    "entry.wrong_type, in a list": entry("entry.wrong_type warning /capabilities", capabilities=["a", 5, None]),
    "entry.wrong_type, metadata": entry("entry.wrong_type warning /metadata", metadata=["a"]),
    "entry.wrong_type, queries": entry(
        "entry.wrong_type warning /representativeQueries", MISSING_QUERIES, representativeQueries="one"
    ),
    "entry.text_long": entry("entry.text_long warning /description", description="x" * 11, bounds=LONG),
    "queries.missing": entry(MISSING_QUERIES, representativeQueries=REMOVED),
    "queries.count, one": entry("queries.count warning /representativeQueries", representativeQueries=["one"]),
    "queries.count, six": entry("queries.count warning /representativeQueries", representativeQueries=list("abcdef")),
    "entry.updated_at": entry("entry.updated_at warning /updatedAt", updatedAt="yesterday"),
    "entry.updated_at, no such day": entry("entry.updated_at warning /updatedAt", updatedAt="2026-02-30T00:00:00Z"),
    "entry.updated_at, a number": entry("entry.updated_at warning /updatedAt", updatedAt=1777975207),
    "entry.updated_at, out of range": entry(
        "entry.updated_at warning /updatedAt", updatedAt="0001-01-01T00:00:00+14:00"
    ),
    "metadata.nested": entry("metadata.nested warning /metadata", metadata={"a": {"b": 1}}),
    # --- older names
    "entry.old_name_type": entry("entry.old_name_type warning /mediaType", type=REMOVED, mediaType=GOOD["type"]),
    "entry.old_name_data": entry("entry.old_name_data warning /inline", url=REMOVED, inline={}),
    "entry.type_twice": entry("entry.type_twice warning /mediaType", mediaType="text/plain"),
    "entry.data_twice": entry("entry.data_twice warning /inline", url=REMOVED, data={"a": 1}, inline={"a": 2}),
    "both names, one value": entry(mediaType=GOOD["type"]),
    # --- trust
    "trust.type": entry("trust.type warning /trustManifest", trustManifest="spiffe://acme.example"),
    "trust.identity_missing": entry("trust.identity_missing warning /trustManifest", trustManifest={"signature": "x"}),
    "trust.manifests_array": entry("trust.manifests_array info /trustManifests", trustManifests=[{}]),
    "trust.misaligned": entry(
        "trust.misaligned error /trustManifest", trustManifest={"identity": "https://evil.example"}
    ),
    "trust.misaligned, allowed": entry(
        trustManifest={"identity": "https://evil.example"}, bounds=Bounds(alignment="off")
    ),
    "trust.subdomain": entry(
        "trust.subdomain error /trustManifest",
        trustManifest={"identity": "spiffe://run.acme.example/x"},
        bounds=Bounds(alignment="exact"),
    ),
    # --- contexts
    "context.null": entry("context.null warning /@context", **{"@context": None}),
    "context.null, in an array": entry(
        "context.null warning /@context", **{"@context": [None, {"a": "https://a.example/#"}]}
    ),
    "context.remote_unresolved": entry(
        "context.remote_unresolved warning /@context", **{"@context": "https://ctx.example/v9"}
    ),
    "context.wrong_type": entry("context.wrong_type warning /@context", **{"@context": 5}),
    "context.wrong_type, a definition": entry("context.wrong_type warning /@context", **{"@context": {"a": 5}}),
    "context.keyword_ignored": entry(
        "context.keyword_ignored warning /@context", **{"@context": {"@import": "https://x.example/"}}
    ),
    "context.scoped_ignored": entry(
        "context.scoped_ignored warning /@context",
        **{"@context": {"a": {"@id": "https://a.example/#a", "@context": {"b": "https://b.example/"}}}},
    ),
    "context.core_term_overridden": entry(
        "context.core_term_overridden warning /@context", **{"@context": {"type": "@type"}}
    ),
    "context.prefix_unusable": entry(
        "context.prefix_unusable warning /okf:tier",
        **{"@context": {"okf": "https://okf.example/ns"}, "okf:tier": "gold"},
    ),
    "a term, and a prefix, that are fine": entry(
        **{"@context": {"tier": "https://okf.example/ns#tier", "okf": "https://okf.example/ns#"}, "okf:tier": "gold"},
    ),
    # --- faults that the JSON gate located
    "json.duplicate_member": in_first('"x": 1, "x": 2', "json.duplicate_member warning /x"),
    "json.duplicate_member, beside the entries": Case(
        body=b'{"host": {"a": 1, "a": 2}, "entries": []}',
        standings=(),
        expected=["json.duplicate_member warning /host/a"],
    ),
    "json.duplicate_member, the entries": Case(
        body=b'{"entries": [5], "entries": []}', standings=(), expected=["json.duplicate_member warning /entries"]
    ),
    "json.lone_surrogate": in_first('"x": {"y": ["\\ud800"]}', "json.lone_surrogate error /x/y/0"),
    "json.lone_surrogate, beside the entries": Case(
        body=b'{"host": "\\udfff", "entries": []}', standings=(), expected=["json.lone_surrogate warning /host"]
    ),
    "manifest.media_type": Case([GOOD], ["manifest.media_type warning"], content_type="text/plain"),
    "json.number_range": in_first('"x": 1e999', "json.number_range error /x"),
    "json.number_range, very long": in_first('"x": ' + "9" * 5000, "json.number_range error /x"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_fault_is_found_with_its_code_severity_and_place(case: Case) -> None:
    reading = case.read()
    found = [
        f"{problem.code} {problem.severity} {problem.pointer}".rstrip()
        for problems in (reading.problems, *(item.problems for item in reading.entries))
        for problem in problems
    ]
    assert sorted(found) == sorted(case.expected)
    assert [str(item.standing) for item in reading.entries] == list(case.standings)
    assert (reading.kind, reading.complete) == (case.kind, case.complete)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_fault_is_explained_and_names_the_clause_it_offends(case: Case) -> None:
    reading = case.read()
    for problem in (*reading.problems, *(fault for item in reading.entries for fault in item.problems)):
        assert re.fullmatch(r"\S.*[^.\s]", problem.message, re.DOTALL), problem
        assert problem.clause


def codes_in(path: str) -> set[str]:
    """The problem codes that a module writes, with their variable parts filled in."""
    source = (Path(__file__).resolve().parents[2] / path).read_text(encoding="utf-8")
    codes = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            codes |= set(
                re.findall(
                    r"^(?:json|manifest|catalog|entry|nesting|identifier|type|url|queries|metadata|trust|context)\.[a-z_]+[a-z]$",
                    node.value,
                )
            )
        elif isinstance(node, ast.JoinedStr):
            codes |= set(VARIABLE.get(ast.unparse(node), ()))
    return codes


VARIABLE = {
    "f'entry.{new}_twice'": ("entry.type_twice", "entry.data_twice"),
    "f'entry.old_name_{new}'": ("entry.old_name_type", "entry.old_name_data"),
    "f'trust.{verdict}'": (f"trust.{Alignment.MISALIGNED}", f"trust.{Alignment.SUBDOMAIN}"),
}
MODULES = ("crawler/surfaces/ard.py", "crawler/surfaces/ard_entry.py", "index/terms.py", "index/strict_json.py")


def test_every_code_in_the_source_has_a_row() -> None:
    written = set().union(*map(codes_in, MODULES)) - OF_THE_GATE
    in_rows = {code for case in CASES.values() for code in (line.split()[0] for line in case.expected)}
    assert written - in_rows == set()
    assert in_rows - written == set()
    assert len(written) > 45


def test_every_code_of_the_gate_makes_the_document_malformed() -> None:
    for body in (b"", b"\xff\xfe{\x00", b'{"entries": [NaN]}', b'{"entries": ', b"[" * 100):
        reading = read_manifest(body, Source(URL, 10), Bounds())
        (problem,) = reading.problems
        assert (reading.kind, reading.complete, reading.entries) == ("malformed", False, ())
        assert problem.code in OF_THE_GATE


def test_a_damaged_script_of_a_page_is_a_problem_of_its_own_when_it_speaks_of_us() -> None:
    scripts = ['{"@type": "Shop", ', '{"identifier": "urn:air:acme.example:x", ', json.dumps(GOOD)]
    reading = read_in_page(scripts, "https://acme.example/", Source("https://acme.example/", 50), Bounds())
    assert [(fault.code, fault.severity, fault.pointer) for fault in reading.problems] == [
        ("json.syntax", "warning", "/1")
    ]
    assert [item.pointer for item in reading.entries] == ["/2"]
    assert not reading.complete
