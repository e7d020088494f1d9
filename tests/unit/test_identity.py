"""Identifiers, media types and versions, each in its one spelling."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.identity import (
    LONGEST_IDENTIFIER,
    canonical_type,
    essence,
    is_ard_identifier,
    is_domain,
    is_json_type,
    media_type,
    parse_urn,
    version_key,
)


@pytest.mark.parametrize(
    ("identifier", "key", "publisher", "namespace", "name"),
    [
        ("urn:air:origin.example:tool:echo", None, "origin.example", "tool", "echo"),
        # FR-83: the namespace may be absent, or long.
        ("urn:air:origin.example:forecast", None, "origin.example", "", "forecast"),
        ("urn:air:origin.example:a:b:c:forecast", None, "origin.example", "a:b:c", "forecast"),
        # FR-80: the predecessor's prefix is an alias.
        ("urn:ai:origin.example:tool:echo", "urn:air:origin.example:tool:echo", "origin.example", "tool", "echo"),
        # The key is byte-exact, the publisher is not.
        ("urn:air:Origin.Example:Tool:Echo", None, "origin.example", "Tool", "Echo"),
        ("urn:air:origin.example.:x", None, "origin.example", "", "x"),
        ("urn:air:localhost:x", None, "localhost", "", "x"),
        ("urn:air:origin.example:a_b.c-d:1", None, "origin.example", "a_b.c-d", "1"),
    ],
)
def test_an_identifier_is_read_in_its_parts(
    identifier: str, key: str | None, publisher: str, namespace: str, name: str
) -> None:
    urn = parse_urn(identifier)
    assert urn is not None
    assert (urn.key, urn.publisher, urn.namespace, urn.name) == (key or identifier, publisher, namespace, name)
    assert urn.predecessor is identifier.startswith("urn:ai:")
    assert is_ard_identifier(identifier) is not urn.predecessor


@pytest.mark.parametrize(
    "identifier",
    [
        "",
        "urn:air:",
        "urn:air:origin.example",
        "urn:air:origin.example:",
        "urn:air::x:y",
        "urn:air:origin.example::x",
        "urn:air:origin.example:x:",
        "urn:air:origin.example:x\n",
        " urn:air:origin.example:x",
        "urn:air:origin.example:x y",
        "urn:air:origin.example:x/y",
        "urn:air:origin.example:x%20",
        "urn:air:origin_.example:x",
        "urn:air:örigin.example:x",
        "urn:air:origin.example:é",
        "URN:AIR:origin.example:x",
        "urn:Air:origin.example:x",
        "urn:airs:origin.example:x",
        "urn%3Aair%3Aorigin.example%3Ax",
        "https://origin.example/x",
        "urn:air:origin.example:" + "x" * LONGEST_IDENTIFIER,
    ],
)
def test_what_is_no_identifier_is_not_read(identifier: str) -> None:
    assert parse_urn(identifier) is None
    assert not is_ard_identifier(identifier)


def test_the_longest_identifier_is_read() -> None:
    identifier = "urn:air:a.b:".ljust(LONGEST_IDENTIFIER, "x")
    assert parse_urn(identifier) is not None
    assert is_ard_identifier(identifier)
    assert not is_ard_identifier(identifier + "x")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("origin.example", True),
        ("a.b.c.example", True),
        ("Origin.Example.", True),
        ("xn--bcher-kva.example", True),
        ("1.example", True),
        ("localhost", False),
        ("app.localhost", False),
        ("example", False),
        ("10.0.0.1", False),
        ("1.2", False),
        ("", False),
        (".", False),
        ("..example", False),
        ("a..example", False),
        ("-a.example", False),
        ("a-.example", False),
        ("a_b.example", False),
        ("bücher.example", False),
        ("a" * 63 + ".example", True),
        ("a" * 64 + ".example", False),
        (".".join(["a" * 49] * 5) + ".example", False),
        ("origin.example\n", False),
    ],
)
def test_a_publisher_should_be_a_domain_name(name: str, expected: bool) -> None:
    assert is_domain(name) is expected


# --- media types ------------------------------------------------------------------------------------------------------

SPELLINGS = {
    "application/mcp-server-card+json": ["application/mcp-server+json", "application/mcp-server"],
    "application/a2a-agent-card+json": [],
    "application/ai-registry+json": ["application/ai-registry"],
    "application/ai-skill+md": [
        "application/ai-skill",
        "application/agent-skills+md",
        'text/markdown; profile="urn:air:agent-skills"',
        "text/markdown;charset=utf-8;PROFILE=urn:air:agent-skills",
    ],
    "application/agent-skills+zip": ["application/agentskill+zip"],
    "application/ai-catalog+json": [],
}
ALL_SPELLINGS = [(canonical, spelling) for canonical, others in SPELLINGS.items() for spelling in [canonical, *others]]


@pytest.mark.parametrize(("canonical", "spelling"), ALL_SPELLINGS)
def test_FR81_every_spelling_of_a_type_is_brought_to_one(canonical: str, spelling: str) -> None:
    written_otherwise = [f"  {spelling} ", f"{spelling};"]
    if ";" not in spelling:
        written_otherwise += [spelling.upper(), f"{spelling}; charset=UTF-8", f"{spelling};version=1"]
    for written in (spelling, *written_otherwise):
        assert media_type(written) == canonical
        assert canonical_type(written) == canonical


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Application/JSON", "application/json"),
        ("application/json;charset=utf-8", "application/json"),
        ("application/json ; Charset = UTF-8 ; v=1", "application/json;v=1"),
        ("a/b;y=2;X=1", "a/b;x=1;y=2"),
        ('a/b;x="1"', "a/b;x=1"),
        ('a/b;x="p;q"', 'a/b;x="p;q"'),
        ('a/b;x="p\\"q\\\\"', 'a/b;x="p\\"q\\\\"'),
        ('a/b;x=""', 'a/b;x=""'),
        ("a/b;x=Case", "a/b;x=Case"),
        ("a/b;", "a/b"),
        ("a/b;;x=1", "a/b;x=1"),
        ("text/markdown", "text/markdown"),
        ("application/agent-card+json", "application/agent-card+json"),
        ("application/vnd.acme.v2+json", "application/vnd.acme.v2+json"),
        # Duplicate parameters, and what is no media type.
        ("a/b;x=1;X=2", None),
        ("a/b;x", None),
        ("a/b;x=", None),
        ("a/b;=1", None),
        ('a/b;x="1', None),
        ("a/b c", None),
        ("a / b", None),
        ("a/b,c/d", None),
        ("a/", None),
        ("/b", None),
        ("MCP", None),
        ("", None),
        ("a/b\x00", None),
        ("a/" + "b" * 300, None),
    ],
)
def test_a_media_type_is_brought_to_its_canonical_form(text: str, expected: str | None) -> None:
    assert media_type(text) == expected
    if expected is not None:
        assert media_type(expected) == expected


@pytest.mark.parametrize(("text", "expected"), [(" MCP Server ", "mcp server"), ("", ""), ("A/B;x", "a/b;x")])
def test_a_type_that_is_no_media_type_stays_as_it_is_folded(text: str, expected: str) -> None:
    assert canonical_type(text) == expected


@given(st.text('aB/;=" \\x1+-.,', max_size=30))
def test_the_canonical_form_of_a_type_is_its_own(text: str) -> None:
    canonical = media_type(text)
    if canonical is not None and len(canonical) <= 256:
        assert media_type(canonical) == canonical == canonical_type(canonical)


@pytest.mark.parametrize(
    ("content_type", "name", "is_json"),
    [
        (None, "", False),
        ("", "", False),
        ("application/json", "application/json", True),
        (" Application/JSON ; charset=utf-8", "application/json", True),
        ("text/json", "text/json", True),
        ("application/ld+json", "application/ld+json", True),
        ("application/ai-catalog+JSON", "application/ai-catalog+json", True),
        ("application/jsonp", "application/jsonp", False),
        ("text/html; x=+json", "text/html", False),
        ("text/plain", "text/plain", False),
    ],
)
def test_a_content_type_is_named_without_its_parameters(content_type: str | None, name: str, is_json: bool) -> None:
    assert essence(content_type) == name
    assert is_json_type(content_type) is is_json


# --- versions ---------------------------------------------------------------------------------------------------------

ORDERED = [
    None,
    "",
    "beta",
    "spring",
    "0.9.9",
    # Semantic Versioning 11.4.
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.beta",
    "1.0.0-beta",
    "1.0.0-beta.2",
    "1.0.0-beta.11",
    "1.0.0-rc.1",
    "1.0.0",
    "1.2.0",
    "1.10.0",
    "2.0.0",
    "10.0.0",
    "2026-05-01",
    "2026-10-01",
    f"{10**17}.0.0",
]


@pytest.mark.parametrize(("lower", "higher"), list(itertools.pairwise(ORDERED)))
def test_versions_have_an_order(lower: str | None, higher: str | None) -> None:
    assert version_key(lower) < version_key(higher)


@pytest.mark.parametrize(
    ("first", "second"),
    [("1", "1.0"), ("1.0", "1.0.0"), ("v1.2.3", "1.2.3"), ("1.2.3+build.5", "1.2.3"), (" 1.2.3 ", "1.2.3")],
)
def test_spellings_of_one_version_are_equal(first: str, second: str) -> None:
    assert version_key(first) == version_key(second)


@given(st.none() | st.text("v.-+0129aZ \u0661", max_size=12), st.none() | st.text("v.-+0129aZ \u0661", max_size=12))
def test_any_two_versions_compare(first: str | None, second: str | None) -> None:
    one, other = version_key(first), version_key(second)
    assert (one < other) + (one == other) + (one > other) == 1
