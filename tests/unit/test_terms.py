"""Terms to IRIs: how entries and filters meet, rule by rule."""

import json
from pathlib import Path
from typing import Any

import pytest

from index.records import Problem
from index.terms import (
    BASE,
    NAMESPACE,
    UnsupportedKey,
    attributes,
    effective_context,
    filter_path,
    scalar_text,
)

BASE_URL = "https://agenticresourcediscovery.org/context/v1"
ARD = NAMESPACE
OKF = "https://okf.example/ns#"


def expand(key: str, *contexts: Any) -> str | None:
    return effective_context(*contexts)[0].expand(key)


def codes(*contexts: Any) -> list[str]:
    problems: tuple[Problem, ...] = effective_context(*contexts)[1]
    return [problem.code for problem in problems]


RULES = {
    "1: the local context comes after the base": ("okf:tier", [{"okf": OKF}], OKF + "tier"),
    "1: a local array in its order": (
        "okf:tier",
        [["https://ctx.example/", {"okf": "https://no.example/#"}, {"okf": OKF}]],
        OKF + "tier",
    ),
    "1: the base named on the wire": ("displayName", [[BASE_URL, BASE_URL + ".jsonld"]], ARD + "displayName"),
    "1: without a local context": ("displayName", [], ARD + "displayName"),
    "1: an outer context stays in force": ("okf:tier", [{"okf": OKF}, {"x": "https://x.example/#"}], OKF + "tier"),
    "2: a defined term": ("tier", [{"tier": OKF + "tier"}], OKF + "tier"),
    "2: a term defined by an object": (
        "tier",
        [{"tier": {"@id": OKF + "tier", "@type": "@json", "@container": "@set"}}],
        OKF + "tier",
    ),
    "2: a term defined by another one": ("rank", [{"rank": "okf:tier", "okf": OKF}], OKF + "tier"),
    "2: a prefix defined by another one": ("a:x", [{"a": "okf:sub/", "okf": OKF}], OKF + "sub/x"),
    "2: an unknown term is one of the vocabulary": ("unknownTerm", [], ARD + "unknownTerm"),
    "2: the media type has another IRI than its name": ("type", [], ARD + "mediaType"),
    "2: by its full name": ("ard:mediaType", [], ARD + "mediaType"),
    "3: a declared prefix is replaced": ("okf:a:b", [{"okf": OKF}], OKF + "a:b"),
    "3: an undeclared one makes an IRI of its own": ("foo:bar", [], "foo:bar"),
    "3: an absolute IRI stays": ("https://x.example/a", [{"https": OKF}], "https://x.example/a"),
    "3: a blank node stays": ("_:b0", [], "_:b0"),
    "4: a prefix needs a final delimiter": ("okf:tier", [{"okf": "https://okf.example/ns"}], "okf:tier"),
    "4: an object is no prefix by itself": ("okf:tier", [{"okf": {"@id": OKF}}], "okf:tier"),
    "4: an object that says so is one": (
        "okf:tier",
        [{"okf": {"@id": "https://okf.example/ns", "@prefix": True}}],
        "https://okf.example/nstier",
    ),
    "4: every delimiter of RFC 3986 serves": ("a:b", [{"a": "urn:x:"}], "urn:x:b"),
    "4: a prefix can be taken back": ("okf:tier", [{"okf": OKF}, {"okf": None}], "okf:tier"),
    "5: null alone does not remove the base": ("displayName", [None], ARD + "displayName"),
    "5: null in an array goes back to the base": ("okf:tier", [[{"okf": OKF}, None]], "okf:tier"),
    "5: null goes back from an outer context too": ("okf:tier", [{"okf": OKF}, None], "okf:tier"),
    "5: what follows a null counts": ("okf:tier", [[None, {"okf": OKF}]], OKF + "tier"),
    "6: a local vocabulary takes the undeclared terms": ("tier", [{"@vocab": OKF}], OKF + "tier"),
    "6: core terms keep their IRIs": ("displayName", [{"@vocab": OKF}], ARD + "displayName"),
    "7: a core term may be redefined": ("tags", [{"tags": OKF + "tags"}], OKF + "tags"),
    "7: even to a keyword": ("type", [{"type": "@type"}], "@type"),
    "8: a remote context declares nothing": ("okf:tier", ["https://okf.example/context"], "okf:tier"),
    "8: the base is known by its exact name": ("x", [BASE_URL + "/"], ARD + "x"),
    "9: an imported context declares nothing": ("okf:tier", [{"@import": "https://okf.example/context"}], "okf:tier"),
    "9: nor does a scoped one": ("b", [{"a": {"@id": OKF + "a", "@context": {"b": OKF + "b"}}}], ARD + "b"),
    "9: language and version change nothing": (
        "x",
        [{"@language": "de", "@version": 1.1, "@base": "https://x.example/"}],
        ARD + "x",
    ),
    "13: a keyword is none of the terms": ("@id", [], "@id"),
    "13: id is the keyword": ("id", [], "@id"),
    "13: without a vocabulary a plain name has no meaning": ("tier", [{"@vocab": None}], None),
    "13: a term that was taken back has none either": ("tier", [{"tier": None}], None),
}


@pytest.mark.parametrize(("key", "contexts", "iri"), RULES.values(), ids=RULES.keys())
def test_a_key_is_resolved_by_the_rules(key: str, contexts: list[Any], iri: str | None) -> None:
    assert expand(key, *contexts) == iri


@pytest.mark.parametrize(
    ("contexts", "expected"),
    [
        ([], []),
        ([BASE_URL], []),
        ([{"okf": OKF, "tier": OKF + "tier"}], []),
        ([{"displayName": ARD + "displayName", "id": "@id"}], []),
        (
            [
                {
                    "@version": 1.1,
                    "@vocab": OKF,
                    "@base": "x",
                    "@language": "de",
                    "@direction": "ltr",
                    "@protected": True,
                }
            ],
            [],
        ),
        ([None], ["context.null"]),
        ([[None, None]], ["context.null", "context.null"]),
        (["https://schema.org"], ["context.remote_unresolved"]),
        ([{"type": "@type"}], ["context.core_term_overridden"]),
        ([{"tags": None}], ["context.core_term_overridden"]),
        ([{"id": OKF + "id"}], ["context.core_term_overridden"]),
        ([{"@import": "x"}, {"@propagate": False}, {"@type": "x"}, {"@foo": 1}], ["context.keyword_ignored"] * 4),
        ([{"a": {"@id": "x:y", "@context": {}}}], ["context.scoped_ignored"]),
        ([5, True, [[1]]], ["context.wrong_type"] * 3),
        ([{"a": 5}], ["context.wrong_type"]),
    ],
)
def test_what_a_flat_map_cannot_express_is_left_out_with_a_warning(contexts: list[Any], expected: list[str]) -> None:
    assert codes(*contexts) == expected


def test_a_hostile_context_is_read_in_part_and_complained_about_in_part() -> None:
    context, problems = effective_context([{f"t{number}": 5 for number in range(4000)}])
    assert len(problems) == 20
    assert len(context.terms) < 1000


@pytest.mark.parametrize("context", [{f"t{number}": OKF for number in range(10_000)}, {"t": "\ud800"}, {"t": 10**30}])
def test_a_context_that_is_too_long_or_no_text_is_left_out(context: dict[str, Any]) -> None:
    assert effective_context(context, pointer="/x")[0] is BASE
    assert [(problem.code, problem.pointer) for problem in effective_context(context, pointer="/x")[1]] == [
        ("context.wrong_type", "/x")
    ]


def test_a_problem_is_placed_where_the_context_stands_each_time() -> None:
    places = [effective_context("https://ctx.example/", pointer=place)[1][0].pointer for place in ("/a", "/b", "/a")]
    assert places == ["/a", "/b", "/a"]


@pytest.mark.parametrize(
    ("key", "contexts", "unusable"),
    [
        ("okf:tier", [{"okf": "https://okf.example/ns"}], True),
        ("okf:tier", [{"okf": {"@id": OKF}}], True),
        ("okf:tier", [{"okf": OKF}], False),
        ("okf:tier", [], False),
        ("okf", [{"okf": "https://okf.example/ns"}], False),
        ("okf://x", [{"okf": "https://okf.example/ns"}], False),
        ("type:x", [], False),
        ("ard:x", [], False),
    ],
)
def test_rule_4_a_key_with_an_unusable_prefix_is_known(key: str, contexts: list[Any], unusable: bool) -> None:
    assert list(effective_context(*contexts)[0].unusable_prefixes([key])) == ([key] if unusable else [])


# --- filter keys (rules 10 and 11) ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "contexts", "path"),
    [
        ("publisher", [], "publisher"),
        ("publisher", [{"publisher": OKF + "publisher"}], "publisher"),
        ("tags", [], ARD + "tags"),
        ("ard:tags", [], ARD + "tags"),
        (ARD + "tags", [], ARD + "tags"),
        ("okf:tier", [{"okf": OKF}], OKF + "tier"),
        ("okf:tier", [], "okf:tier"),
        ("tier", [{"@vocab": OKF}], OKF + "tier"),
        # Below the three JSON members a path is literal.
        ("metadata.region", [], ARD + "metadata.region"),
        ("metadata.a.b.c", [], ARD + "metadata.a.b.c"),
        ("metadata.okf:tier", [{"okf": OKF}], ARD + "metadata.okf:tier"),
        ("trustManifest.identity", [], ARD + "trustManifest.identity"),
        ("data.skills.name", [], ARD + "data.skills.name"),
        ("ard:metadata.region", [], ARD + "metadata.region"),
        ("meta.region", [{"meta": "ard:metadata"}], ARD + "metadata.region"),
        # Elsewhere a dot is part of the term.
        ("tags.a", [], ARD + "tags.a"),
        ("okf:a.b", [{"okf": OKF}], OKF + "a.b"),
        ("https://x.example/a.b", [], "https://x.example/a.b"),
        ("https://x.example/a.b", [{"https": OKF}], "https://x.example/a.b"),
        ("urn:x:a.b", [{"urn": OKF}], "urn:x:a.b"),
    ],
)
def test_a_filter_key_is_one_term_or_a_path_below_a_json_member(key: str, contexts: list[Any], path: str) -> None:
    found = filter_path(key, effective_context(*contexts)[0])
    assert (found.path, found.is_type) == (path, False)


@pytest.mark.parametrize("key", ["type", "ard:mediaType", ARD + "mediaType", "kind"])
def test_a_key_of_the_media_type_is_known_under_every_name(key: str) -> None:
    assert filter_path(key, effective_context({"kind": "ard:mediaType"})[0]).is_type


@pytest.mark.parametrize(
    ("key", "contexts"),
    [
        ("", []),
        ("@id", []),
        ("@type", []),
        ("id", []),
        ("type", [{"type": "@type"}]),
        ("description", []),
        ("representativeQueries", []),
        (ARD + "description", []),
        ("data", []),
        ("metadata", []),
        ("ard:trustManifest", []),
        ("tier", [{"@vocab": None}]),
        ("x" * 5000, []),
    ],
)
def test_a_key_that_cannot_be_compared_is_refused(key: str, contexts: list[Any]) -> None:
    with pytest.raises(UnsupportedKey):
        filter_path(key, effective_context(*contexts)[0])


# --- what an entry offers to filters (rules 10, 12, 13) ---------------------------------------------------------------


def pairs(entry: dict[str, Any], *contexts: Any, publisher: str | None = "acme.example") -> list[tuple[str, str]]:
    return attributes(entry, effective_context(*contexts)[0], publisher)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"displayName": "X"}, [(ARD + "displayName", "X")]),
        ({"tags": ["a", "b", "a"]}, [(ARD + "tags", "a"), (ARD + "tags", "b")]),
        ({"okf:tier": "gold"}, [(OKF + "tier", "gold")]),
        ({"other:tier": "gold"}, [("other:tier", "gold")]),
        ({"type": "Application/MCP-Server+JSON"}, [(ARD + "mediaType", "application/mcp-server-card+json")]),
        # Numbers and truth values take their JSON spelling.
        (
            {"a": 1, "b": 1.0, "c": 1.5, "d": True, "e": -0.0, "f": None},
            [(ARD + "a", "1"), (ARD + "b", "1"), (ARD + "c", "1.5"), (ARD + "d", "true"), (ARD + "e", "0")],
        ),
        # Nothing below an object of an extension, and none of its arrays' objects.
        ({"okf:x": {"y": "z"}}, []),
        ({"okf:x": ["a", {"y": "z"}, ["b"], 1]}, [(OKF + "x", "a"), (OKF + "x", "1")]),
        # Keywords and what has no meaning are kept and not compared.
        ({"@id": "x", "@context": {}, "id": "x"}, []),
        # What is searched as text is not compared.
        ({"description": "x", "representativeQueries": ["y"]}, []),
        # Literal paths below the three JSON members, arrays on the way adding no step.
        (
            {"metadata": {"region": "eu", "n": 1, "x": None}},
            [(ARD + "metadata.region", "eu"), (ARD + "metadata.n", "1")],
        ),
        (
            {"data": {"skills": [{"name": "a"}, {"name": "b"}]}},
            [(ARD + "data.skills.name", "a"), (ARD + "data.skills.name", "b")],
        ),
        ({"data": {"a": [["x"], [{"b": "y"}]]}}, [(ARD + "data.a", "x"), (ARD + "data.a.b", "y")]),
        (
            {"trustManifest": {"okf:tier": "x", "type": "A/B"}},
            [(ARD + "trustManifest.okf:tier", "x"), (ARD + "trustManifest.type", "A/B")],
        ),
        ({"data": "text"}, []),
    ],
)
def test_an_entry_is_flattened_to_paths_and_values(entry: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert pairs(entry, {"okf": OKF}) == [("publisher", "acme.example"), *expected]


def test_an_entry_without_a_publisher_offers_none() -> None:
    assert pairs({"displayName": "X"}, publisher=None) == [(ARD + "displayName", "X")]


@pytest.mark.parametrize(
    ("entry", "count"),
    [
        ({f"x{number}": "y" for number in range(1000)}, 200),
        ({"tags": [f"t{number}" for number in range(1000)]}, 200),
        ({"data": {f"x{number}": ["y"] for number in range(1000)}}, 200),
        ({"displayName": "x" * 256}, 2),
        ({"displayName": "x" * 257}, 1),
        ({"data": json.loads('{"a":' * 7 + '"x"' + "}" * 7)}, 2),
        ({"data": json.loads('{"a":' * 8 + '"x"' + "}" * 8)}, 1),
    ],
    ids=["members", "tags", "data", "longest value", "longer value", "deepest", "deeper"],
)
def test_what_an_entry_offers_is_bounded(entry: dict[str, Any], count: int) -> None:
    assert len(pairs(entry)) == count


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", "a"),
        ("", ""),
        (True, "true"),
        (False, "false"),
        (0, "0"),
        (-5, "-5"),
        (2.0, "2"),
        (2.5, "2.5"),
        (1e21, "1e+21"),
        (2**53, "9007199254740992"),
        (2**63, "9223372036854775808"),
        (10**30, "1" + "0" * 30),
        (None, None),
        ([], None),
        ({}, None),
    ],
)
def test_a_scalar_has_one_spelling(value: Any, text: str | None) -> None:
    assert scalar_text(value) == text


SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "ard" / "ard.context.jsonld"


def test_the_base_context_is_the_published_one() -> None:
    if not SHARED.exists():
        pytest.skip(f"{SHARED} is not there: the base context is NOT compared with the published one")
    published = json.loads(SHARED.read_text(encoding="utf-8"))["@context"]
    context, problems = effective_context(published)
    assert problems == ()
    assert (dict(context.terms) | {"ard": None}, context.vocab) == (dict(BASE.terms) | {"ard": None}, BASE.vocab)
    assert {
        name: BASE.expand(name) for name in published if not name.startswith("@") and name not in ("ard", "id")
    } == {
        name: (item if isinstance(item, str) else item["@id"]).replace("ard:", NAMESPACE)
        for name, item in published.items()
        if not name.startswith("@") and name not in ("ard", "id")
    }
