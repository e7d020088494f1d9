"""A brand publishes exactly this entry, or it doesn't, or nobody can tell: every rule, row by row."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from index.brand_manifest import (
    Manifest,
    NoManifest,
    Reason,
    brand_origin,
    domain_of,
    read_manifest,
    twin_of,
)
from index.documents import DocumentKind, DocumentState, Hop, Outcome
from index.endorsement import (
    Candidate,
    Endorsement,
    OlderState,
    Verdict,
    brand_of,
    declares_other_version,
    endorse,
    read_candidate,
    record,
)
from index.records import Problem, Severity
from tests.fakes.web import entry

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
OSD = "https://opensupportdiscovery.org/ns#"
BRAND = "acme.example"
URL = "https://acme.example/.well-known/ard.json"
ECHO = entry(**{"@context": {"osd": OSD}, "osd:brandDomain": BRAND, "tags": ["a", "b"], "metadata": {"n": 1}})


def state_of(**members: Any) -> DocumentState:
    """A manifest that was fetched a minute ago and is fresh for an hour."""
    at = NOW - timedelta(minutes=1)
    state = DocumentState(
        url=URL,
        origin="https://acme.example",
        kind=DocumentKind.MANIFEST,
        first_seen_at=at,
        outcome=Outcome.FETCHED,
        status=200,
        attempted_at=at,
        fetched_at=at,
        confirmed_at=at,
        headers={"etag": '"v1"'},
        final_url=URL,
        digest="d" * 64,
        fresh_until=NOW + HOUR,
    )
    return replace(state, **members)


def read(body: Any, *problems: Problem, **members: Any) -> Manifest | NoManifest:
    text = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    return read_manifest(state_of(**members), text, problems, now=NOW)


def manifest_of(*entries: Any) -> Manifest:
    manifest = read({"entries": list(entries)})
    assert isinstance(manifest, Manifest)
    return manifest


def judge(candidate: Any, *entries: Any, copy: bool = False, **options: Any) -> Endorsement:
    text = candidate if isinstance(candidate, str) else json.dumps(candidate)
    return endorse(
        read_candidate(text, copy=copy),
        options.pop("brand", BRAND),
        manifest_of(*(entries or [ECHO])),
        namespace=OSD,
        now=NOW,
        **options,
    )


def refusal(body: Any, *problems: Problem, **members: Any) -> Reason:
    """The reason why a manifest decides nothing; the verdict on its own entry is then inconclusive for it."""
    manifest = read(body, *problems, **members)
    assert isinstance(manifest, NoManifest)
    result = endorse(read_candidate(json.dumps(ECHO)), BRAND, manifest, namespace=OSD, now=NOW)
    assert (result.verdict, result.reason) == (Verdict.INCONCLUSIVE, manifest.reason)
    assert result.valid_until is None
    return manifest.reason


GOOD: dict[str, Any] = {"entries": [ECHO]}


# --- the brand is the caller's ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        (BRAND, Verdict.MATCH),
        ("ACME.Example", Verdict.MATCH),
        ("acme.example.", Verdict.MATCH),
        ("other.example", Verdict.MISMATCH),
        ("www.acme.example", Verdict.MISMATCH),
        ("https://acme.example", Verdict.MISMATCH),
        ("acme.example:443", Verdict.MISMATCH),
        ("acme.example/", Verdict.MISMATCH),
        (" acme.example", Verdict.MISMATCH),
        ("acme.example..", Verdict.MISMATCH),
        ("", Verdict.MISMATCH),
        (None, Verdict.MISMATCH),
        (["acme.example"], Verdict.MISMATCH),
        (1, Verdict.MISMATCH),
    ],
)
def test_the_claim_of_the_candidate_must_equal_the_brand_that_the_caller_means(claim: Any, verdict: Verdict) -> None:
    claimed = {**ECHO, "osd:brandDomain": claim}
    result = judge(claimed, claimed)
    assert result.verdict is verdict
    assert result.reason == (None if verdict is Verdict.MATCH else Reason.BRAND_DOMAIN)


def test_a_claim_cannot_choose_the_brand() -> None:
    """The entry is in the manifest, word for word, and claims a brand that nobody asked about."""
    assert judge(ECHO, brand="other.example").reason is Reason.BRAND_DOMAIN


@pytest.mark.parametrize(
    ("members", "brand"),
    [
        ({"osd:brandDomain": BRAND}, BRAND),
        ({"@context": {"osd": OSD}, "osd:brandDomain": BRAND}, BRAND),
        ({"@context": {"help": OSD}, "help:brandDomain": BRAND}, BRAND),
        ({"@context": ["https://agenticresourcediscovery.org/context/v1", {"h": OSD}], "h:brandDomain": BRAND}, BRAND),
        ({OSD + "brandDomain": BRAND}, BRAND),
        ({"@context": {"brand": OSD + "brandDomain"}, "brand": BRAND}, BRAND),
        ({"@context": {"osd": "https://elsewhere.example/ns#"}, "osd:brandDomain": BRAND}, None),
        ({"help:brandDomain": BRAND}, None),
        ({"brandDomain": BRAND}, None),
        ({"@context": {"help": OSD}, "help:brandDomain": BRAND, OSD + "brandDomain": "other.example"}, None),
        ({"@context": {"help": OSD}, "help:brandDomain": BRAND, OSD + "brandDomain": "ACME.example"}, BRAND),
        ({"osd:brandDomain": "bücher.example"}, "xn--bcher-kva.example"),
        ({"osd:brandDomain": "localhost"}, None),
        ({"osd:brandDomain": "192.0.2.1"}, None),
        ({"osd:branddomain": BRAND}, None),
        ({}, None),
    ],
)
def test_the_claim_is_found_under_whatever_prefix_the_entry_declares(members: Any, brand: str | None) -> None:
    assert brand_of({**entry(), **members}, OSD) == brand


def test_the_namespace_is_the_operators() -> None:
    mine = "https://vocabulary.example/osd/"
    assert brand_of({"@context": {"osd": mine}, "osd:brandDomain": BRAND}, mine) == BRAND
    assert brand_of({"@context": {"osd": mine}, "osd:brandDomain": BRAND}, OSD) is None


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("Acme.Example.", "acme.example"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("acme", None),
        ("[::1]", None),
        ("a b.example", None),
        ("ac..me.example", None),
        ("-.example", None),
        ("ü" * 300 + ".example", None),
        (None, None),
    ],
)
def test_a_brand_is_a_domain_in_one_spelling(text: Any, domain: str | None) -> None:
    assert domain_of(text) == domain


def test_a_listed_origin_stands_in_for_https_only_where_the_operator_overrides_the_name() -> None:
    listed = ["https://acme.example:8443", "http://other.example:8080"]
    assert brand_origin(BRAND, listed) == "https://acme.example"
    assert brand_origin(BRAND, listed, ["other.example"]) == "https://acme.example"
    assert brand_origin(BRAND, listed, ["*.example"]) == "https://acme.example:8443"
    assert brand_origin("third.example", listed, ["*"]) == "https://third.example"


# --- the manifest: from where, valid as a whole, fresh ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("brand_url", "along", "reason"),
    [
        (URL, ["https://acme.example/ard.json"], None),
        (URL, ["https://www.acme.example/.well-known/ard.json"], None),
        (URL, ["https://www.acme.example/x", "https://acme.example/y"], None),
        ("https://www.acme.example/.well-known/ard.json", ["https://acme.example/ard.json"], None),
        (URL, ["https://cdn.acme.example/ard.json"], Reason.REDIRECTED_OFF_DOMAIN),
        (URL, ["https://other.example/ard.json"], Reason.REDIRECTED_OFF_DOMAIN),
        (URL, ["https://other.example/ard.json", "https://acme.example/ard.json"], Reason.REDIRECTED_OFF_DOMAIN),
        (URL, ["https://www.www.acme.example/ard.json"], Reason.REDIRECTED_OFF_DOMAIN),
        (URL, ["https://acme.example.evil.example/ard.json"], Reason.REDIRECTED_OFF_DOMAIN),
        (URL, ["https://acme.example:8443/ard.json"], Reason.REDIRECTED_OFF_DOMAIN),
        (URL, ["http://acme.example/ard.json"], Reason.REDIRECTED_OFF_DOMAIN),
        # The www of a name that is no registrable domain is another host.
        (
            "https://shop.acme.example/.well-known/ard.json",
            ["https://www.shop.acme.example/"],
            Reason.REDIRECTED_OFF_DOMAIN,
        ),
        ("https://github.io/.well-known/ard.json", ["https://www.github.io/"], Reason.REDIRECTED_OFF_DOMAIN),
    ],
)
def test_redirects_may_lead_only_between_a_domain_and_its_www(
    brand_url: str, along: list[str], reason: Reason | None
) -> None:
    hops = tuple(Hop(url, 302) for url in [brand_url, *along[:-1]])
    if reason is None:
        manifest = read(GOOD, url=brand_url, hops=hops, final_url=along[-1])
        assert isinstance(manifest, Manifest)
        assert (manifest.evidence.final_url, len(manifest.evidence.redirects)) == (along[-1], len(hops))
    else:
        assert refusal(GOOD, url=brand_url, hops=hops, final_url=along[-1]) is reason


@pytest.mark.parametrize(
    ("host", "twin"),
    [
        ("acme.example", "www.acme.example"),
        ("www.acme.example", "acme.example"),
        ("acme.co.uk", "www.acme.co.uk"),
        ("shop.acme.example", None),
        ("www.shop.acme.example", None),
        ("co.uk", None),
        ("www.co.uk", None),
    ],
)
def test_only_a_registrable_domain_has_a_twin(host: str, twin: str | None) -> None:
    assert twin_of(host) == twin


REFUSED = {"outcome": Outcome.REFUSED, "status": 302, "hops": (Hop(URL, 302),), "fresh_until": NOW + HOUR}


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"outcome": None, "attempted_at": None}, Reason.NEVER_FETCHED),
        ({"outcome": Outcome.ABSENT, "status": 404}, Reason.MANIFEST_ABSENT),
        ({"outcome": Outcome.GONE, "status": 410}, Reason.MANIFEST_ABSENT),
        # A page instead of JSON is there, and is no manifest.
        ({"outcome": Outcome.ABSENT, "status": 200}, Reason.MANIFEST_INVALID),
        ({"outcome": Outcome.CATCH_ALL, "status": 200}, Reason.MANIFEST_INVALID),
        ({"outcome": Outcome.WRONG_KIND, "status": 200}, Reason.MANIFEST_INVALID),
        ({"outcome": Outcome.MALFORMED, "status": 200}, Reason.MANIFEST_INVALID),
        ({"outcome": Outcome.UNREACHABLE, "digest": None}, Reason.MANIFEST_UNAVAILABLE),
        ({"outcome": Outcome.WITHHELD, "status": 403, "digest": None}, Reason.MANIFEST_UNAVAILABLE),
        ({"outcome": Outcome.DISALLOWED, "digest": None}, Reason.MANIFEST_UNAVAILABLE),
        ({"outcome": Outcome.TOO_LARGE, "digest": None}, Reason.MANIFEST_UNAVAILABLE),
        ({**REFUSED, "reason": "redirect_offsite", "final_url": "https://o.example/"}, Reason.REDIRECTED_OFF_DOMAIN),
        ({**REFUSED, "reason": "redirect_offsite", "final_url": "https://www.acme.example/"}, Reason.NOT_ALLOWLISTED),
        ({**REFUSED, "reason": "redirect_downgrade"}, Reason.REDIRECTED_OFF_DOMAIN),
        ({**REFUSED, "reason": "scheme"}, Reason.REDIRECTED_OFF_DOMAIN),
        ({"outcome": Outcome.REFUSED, "reason": "address", "digest": None}, Reason.MANIFEST_UNAVAILABLE),
    ],
)
def test_what_could_not_be_retrieved_decides_nothing(members: dict[str, Any], reason: Reason) -> None:
    assert refusal(GOOD, **members) is reason


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({}, None),
        ({"outcome": Outcome.NOT_MODIFIED}, None),
        # Just validated, with no lifetime of its own: `no-cache`.
        ({"confirmed_at": NOW, "fresh_until": NOW}, None),
        # A failure within the lifetime changes nothing.
        ({"outcome": Outcome.UNREACHABLE, "failing_since": NOW}, None),
        ({"fresh_until": NOW}, Reason.MANIFEST_STALE),
        ({"fresh_until": None}, Reason.MANIFEST_STALE),
        ({"outcome": Outcome.NOT_MODIFIED, "fresh_until": NOW - HOUR}, Reason.MANIFEST_STALE),
        # What stale-if-error would let us serve on proves nothing.
        (
            {"outcome": Outcome.UNREACHABLE, "fresh_until": NOW - HOUR, "headers": {"cache-control": "stale-if-error"}},
            Reason.MANIFEST_STALE,
        ),
    ],
)
def test_only_a_fresh_or_just_validated_manifest_decides(members: dict[str, Any], reason: Reason | None) -> None:
    if reason is None:
        assert isinstance(read(GOOD, **members), Manifest)
    else:
        assert refusal(GOOD, **members) is reason


INVALID: dict[str, Any] = {
    "not JSON": b"{",
    "not UTF-8": b'{"entries": ["\xff"]}',
    "UTF-16": json.dumps(GOOD).encode("utf-16"),
    "a duplicate name": json.dumps(GOOD)[:-1].encode() + b', "a": 1, "a": 1}',
    "a duplicate name in an entry": json.dumps(GOOD).replace('"tags"', '"type"').encode(),
    "a lone surrogate": b'{"entries": [], "x": "\\ud800"}',
    "NaN": b'{"entries": [], "x": NaN}',
    "an exponent beyond everything": b'{"entries": [], "x": 1e-99999999999999999999}',
    "no object": [ECHO],
    "one bare entry": ECHO,
    "no entries": {},
    "entries that are no list": {"entries": {}},
    "an entry that is no object": {"entries": [ECHO, "x"]},
    "an old identifier": {"entries": [ECHO, {**entry("old"), "identifier": "urn:ai:acme.example:tool:old"}]},
    "an identifier with a line end": {"entries": [ECHO, {**entry("x"), "identifier": "urn:air:acme.example:x\n"}]},
    "an entry without a name": {"entries": [ECHO, entry("x", displayName=None)]},
    "an entry without a type": {"entries": [ECHO, entry("x", type=None)]},
    "an entry with url and data": {"entries": [ECHO, entry("x", data={})]},
    "an entry with neither": {"entries": [ECHO, entry("x", url=None)]},
    "tags that are no list": {"entries": [ECHO, entry("x", tags="x")]},
    "tags that are no texts": {"entries": [ECHO, entry("x", tags=[1])]},
    "data that is no object": {"entries": [ECHO, entry("x", url=None, data=[])]},
    "nested metadata": {"entries": [ECHO, entry("x", metadata={"a": {}})]},
    "a trust manifest without identity": {"entries": [ECHO, entry("x", trustManifest={})]},
    "an attestation without address": {
        "entries": [ECHO, entry("x", trustManifest={"identity": "x", "attestations": [{"type": "x"}]})]
    },
    "a context that is a number": {"entries": [ECHO, entry("x", **{"@context": 1})]},
}


@pytest.mark.parametrize("fault", INVALID)
def test_one_fault_anywhere_makes_the_whole_manifest_invalid(fault: str) -> None:
    assert refusal(INVALID[fault]) is Reason.MANIFEST_INVALID


def test_the_problems_of_its_reading_make_a_manifest_invalid_too() -> None:
    def problem(code: str, severity: Severity) -> Problem:
        return Problem(code, severity, "/entries/1", "as found")

    assert refusal(GOOD, problem("trust.misaligned", Severity.ERROR)) is Reason.MANIFEST_INVALID
    assert refusal(GOOD, problem("entry.duplicate", Severity.ERROR)) is Reason.MANIFEST_INVALID
    for code, severity in (
        ("queries.missing", Severity.WARNING),
        ("url.relative", Severity.INFO),
        # Not faults of the manifest: whom it is for, and what we think of its contents.
        ("entry.private", Severity.ERROR),
        ("finding.secret", Severity.ERROR),
    ):
        assert isinstance(read(GOOD, problem(code, severity)), Manifest), code


def test_a_manifest_of_which_no_copy_is_kept_decides_nothing() -> None:
    assert refusal(None) is Reason.MANIFEST_UNAVAILABLE


def test_what_ard_ignores_in_a_manifest_does_not_matter() -> None:
    assert isinstance(read({**GOOD, "specVersion": 7, "host": [], "x": {"y": None}}), Manifest)
    assert isinstance(read(b"\xef\xbb\xbf" + json.dumps(GOOD).encode()), Manifest)


# --- the complete entry -----------------------------------------------------------------------------------------------


def changed(**members: Any) -> dict[str, Any]:
    return {**ECHO, **members}


def without(name: str) -> dict[str, Any]:
    return {key: member for key, member in ECHO.items() if key != name}


def test_an_equal_entry_is_a_match_with_its_whole_record() -> None:
    result = judge(ECHO)
    assert (result.verdict, result.reason, result.diagnostics, result.differences) == (Verdict.MATCH, None, (), ())
    assert result.valid_until == NOW + HOUR
    shown = record(result)
    assert shown["manifest"] == {
        "url": URL,
        "finalUrl": URL,
        "redirects": [],
        "etag": '"v1"',
        "digest": "d" * 64,
        "fetchedAt": "2026-11-29T11:59:00.000Z",
        "confirmedAt": "2026-11-29T11:59:00.000Z",
        "freshUntil": "2026-11-29T13:00:00.000Z",
    }
    assert shown["validUntil"] == shown["manifest"]["freshUntil"]
    assert shown["identifier"] == ECHO["identifier"]
    assert len(shown["entryDigest"]) == 64
    # Whatever its formatting is.
    spaced = endorse(
        read_candidate(json.dumps(ECHO, indent=4, sort_keys=True)),
        BRAND,
        manifest_of(dict(reversed(ECHO.items()))),
        namespace=OSD,
        now=NOW,
    )
    assert (spaced.verdict, spaced.entry_digest) == (Verdict.MATCH, result.entry_digest)


SAME = ["1", "1.0", "1e0", "10e-1", "0.1e1", "1.000"]
NUMBERS = [
    *((first, second, True) for first in SAME for second in SAME),
    ("0", "-0", True),
    ("0", "-0.0e5", True),
    ("9007199254740992", "9007199254740993", False),
    ("9007199254740993", "9007199254740993.0", True),
    ("0.1", "0.1000000000000000055511151231257827", False),
    ("1e400", "1e400", False),
    ("1e-400", "0", False),
    ("1e-400", "10e-401", True),
    ("1", "true", False),
    ("0", "false", False),
    ("1", '"1"', False),
    ("0", "null", False),
    ("true", "true", True),
    ("true", "false", False),
    ("null", "null", True),
    ("null", '""', False),
    ('"\\u0041"', '"A"', True),
    ('"\\/"', '"/"', True),
    ('"é"', '"e\\u0301"', False),
    ('"A"', '"a"', False),
    ('"a "', '"a"', False),
    ('"\\ud83d\\ude00"', '"😀"', True),
]


@pytest.mark.parametrize(("candidate", "published", "equal"), NUMBERS)
def test_values_are_compared_as_json_has_them(candidate: str, published: str, equal: bool) -> None:
    """As extension terms, which may hold anything."""
    text, body = (json.dumps(changed(x="?")).replace('"?"', value) for value in (candidate, published))
    manifest = read(b'{"entries": [' + body.encode() + b"]}")
    result = endorse(read_candidate(text), BRAND, manifest, namespace=OSD, now=NOW)
    assert (result.verdict is Verdict.MATCH) is equal


@pytest.mark.parametrize(
    ("candidate", "published"),
    [
        (ECHO, without("tags")),
        (without("tags"), ECHO),
        (without("description"), changed(description="")),
        (changed(x=None), ECHO),
        (ECHO, changed(x=None)),
        (changed(x=[]), changed(x={})),
        (changed(x=[]), changed(x=None)),
        (changed(x=""), changed(x=None)),
        (changed(tags=["b", "a"]), ECHO),
        (changed(tags=["a", "b", "b"]), ECHO),
        (changed(tags=["a"]), ECHO),
        (changed(capabilities=["x", "y"]), changed(capabilities=["y", "x"])),
        (changed(x=["a"]), changed(x="a")),
        (changed(representativeQueries=ECHO["representativeQueries"][::-1]), ECHO),
        (changed(**{"@context": [{"osd": OSD}]}), ECHO),
        (changed(**{"@context": [{"a": "b"}, {"osd": OSD}]}), changed(**{"@context": [{"osd": OSD}, {"a": "b"}]})),
        (without("@context"), ECHO),
        (ECHO, without("@context")),
        (changed(url="https://ACME.example/cards/echo.json"), ECHO),
        (changed(url="https://acme.example:443/cards/echo.json"), ECHO),
        (changed(type="application/mcp-server+json"), ECHO),
        (changed(type="application/MCP-server-card+json"), ECHO),
        (changed(updatedAt="2026-01-01T00:00:00Z"), changed(updatedAt="2026-01-01T00:00:00+00:00")),
        (changed(**{"osd:brandDomain": "ACME.example"}), ECHO),
        ({**without("type"), "mediaType": ECHO["type"]}, ECHO),
        (changed(metadata={"n": 1, "m": {}}), ECHO),
        (changed(metadata={"n": 2}), ECHO),
        (changed(trustManifest={"identity": "https://acme.example"}), ECHO),
        (
            changed(trustManifest={"identity": "https://acme.example", "x:y": 1}),
            changed(trustManifest={"identity": "https://acme.example"}),
        ),
        (changed(**{"ardvark:adapted": ["url"]}), ECHO),
        (changed(displayName="Echo "), ECHO),
    ],
)
def test_anything_else_than_the_same_value_everywhere_is_a_mismatch(candidate: Any, published: Any) -> None:
    result = judge(candidate, published)
    assert result.verdict is Verdict.MISMATCH
    assert result.reason in (Reason.DIFFERS, Reason.CANDIDATE_INCOMPLETE)
    assert result.differences


@pytest.mark.parametrize(
    "identifier",
    ["urn:ai:acme.example:tool:echo", "urn:air:ACME.example:tool:echo", "urn:air:acme.example:tool:echo "],
)
def test_identifiers_compare_byte_by_byte(identifier: str) -> None:
    assert judge(changed(identifier=identifier)).reason is Reason.NO_SUCH_IDENTIFIER


def test_of_several_entries_with_the_identifier_any_may_be_the_one() -> None:
    older, newer = changed(version="1.0"), changed(version="2.0")
    assert judge(older, entry("other"), newer, older).verdict is Verdict.MATCH
    assert judge(changed(version="3.0"), older, newer).reason is Reason.DIFFERS


RESULT = {**ECHO, "score": 73, "source": "https://registry.example/api/v1/"}


def test_what_search_adds_to_a_flat_result_is_taken_off() -> None:
    assert judge(RESULT).verdict is Verdict.MATCH
    assert judge({**ECHO, "score": 73}).verdict is Verdict.MATCH
    assert judge({**RESULT, "rank": 1}).reason is Reason.DIFFERS
    assert judge({**RESULT, "ardvark:freshness": {}}).reason is Reason.DIFFERS
    # Retrieve adds nothing, so nothing is taken off its answer.
    assert judge(RESULT, copy=True).reason is Reason.DIFFERS
    assert judge(ECHO, copy=True).verdict is Verdict.MATCH


def test_an_entry_with_a_score_of_its_own_is_matched_by_its_retrieve_copy_only() -> None:
    own = changed(score=5)
    assert judge(own, own, copy=True).verdict is Verdict.MATCH
    assert judge({**own, **RESULT}, own).reason is Reason.CANDIDATE_INCOMPLETE
    assert judge(RESULT, own).reason is Reason.CANDIDATE_INCOMPLETE


def test_a_nested_result_is_used_as_it_is() -> None:
    assert judge({"entry": ECHO, "score": 73, "source": "https://registry.example/"}).verdict is Verdict.MATCH
    assert judge({"item": RESULT, "score": 73}).reason is Reason.DIFFERS
    assert judge({"a": ECHO, "b": ECHO}).reason is Reason.BRAND_DOMAIN


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '"x"',
        "null",
        json.dumps(ECHO)[:-1] + ', "tags": ["a", "b"]}',
        json.dumps(ECHO)[:-1] + ', "x": "\\ud800"}',
        json.dumps(ECHO)[:-1] + ', "x": NaN}',
        json.dumps(ECHO)[:-1] + ', "x": 1e400}',
        json.dumps(ECHO)[:-1] + ', "x": ' + "[" * 100 + "]" * 100 + "}",
    ],
)
def test_what_is_no_json_of_one_meaning_matches_nothing(text: str) -> None:
    result = judge(text)
    assert (result.verdict, result.reason) == (Verdict.MISMATCH, Reason.CANDIDATE_INVALID)


# --- diagnostics ------------------------------------------------------------------------------------------------------


def codes(result: Endorsement) -> list[str]:
    assert result.verdict is Verdict.MISMATCH
    return [item.code for item in result.diagnostics]


def test_the_places_that_differ_are_named_with_both_sides() -> None:
    candidate = changed(tags=["a", "c", "d"], metadata={"n": 2}, extra=1)
    del candidate["description"]
    shown = record(judge(candidate))["differences"]
    assert {item["pointer"]: (item["candidate"], item["manifest"]) for item in shown} == {
        "/description": (None, '"The echo tool of acme.example"'),
        "/tags/1": ('"c"', '"b"'),
        "/tags/2": ('"d"', None),
        "/metadata/n": ("2", "1"),
        "/extra": ("1", None),
    }


def test_numbers_are_shown_exactly_and_names_escaped() -> None:
    name = "a/b~c"
    text = json.dumps(changed(**{name: 0})).replace(": 0}", ": 9007199254740993}")
    published = json.dumps(changed(**{name: 0})).replace(": 0}", ": 9007199254740992}")
    manifest = read(b'{"entries": [' + published.encode() + b"]}")
    result = endorse(read_candidate(text), BRAND, manifest, namespace=OSD, now=NOW)
    assert record(result)["differences"] == [
        {"pointer": "/a~1b~0c", "candidate": "9007199254740993", "manifest": "9007199254740992"}
    ]


def test_credentials_are_not_shown() -> None:
    key = "sk-live-0123456789abcdef0123"
    shown = record(judge(changed(metadata={"api_key": "hunter2hunter2", "note": key}), changed(metadata={})))
    assert key not in json.dumps(shown)
    assert "hunter2" not in json.dumps(shown)
    assert {item["candidate"] for item in shown["differences"]} == {'"[redacted]"'}


def test_differences_are_bounded() -> None:
    shown = record(judge(changed(tags=[str(number) for number in range(200)]), changed(tags=[])))
    assert (len(shown["differences"]), shown["differencesOmitted"]) == (50, True)
    long = record(judge(changed(description="x" * 100_000)))
    assert len(long["differences"][0]["candidate"]) <= 400


def test_a_projection_is_incomplete_and_no_other_entry() -> None:
    projection = {name: RESULT[name] for name in RESULT if name not in ("representativeQueries", "metadata")}
    assert judge(projection).reason is Reason.CANDIDATE_INCOMPLETE
    assert judge({**projection, "displayName": "Other"}).reason is Reason.DIFFERS


def test_an_entry_that_the_manifest_does_not_name_has_no_differences() -> None:
    result = judge(changed(identifier="urn:air:acme.example:tool:other"))
    assert (result.reason, codes(result), result.differences) == (Reason.NO_SUCH_IDENTIFIER, [], ())


def test_another_order_is_told_apart_from_other_content() -> None:
    assert codes(judge(changed(tags=["b", "a"]))) == ["equal_unordered"]
    assert codes(judge(changed(tags=["b", "c"]))) == []
    assert codes(judge(changed(x=[[1, 2.0], [3]]), changed(x=[[3.0], [2, 1]]))) == ["equal_unordered"]
    assert codes(judge(changed(x=[1]), changed(x=[True]))) == []


def test_the_same_statement_under_other_names_is_told_apart() -> None:
    renamed = {**without("osd:brandDomain"), "@context": {"help": OSD}, "help:brandDomain": BRAND}
    spelled = {**without("osd:brandDomain"), OSD + "brandDomain": BRAND}
    for candidate in (renamed, spelled, changed(**{"@context": [{"osd": OSD}]})):
        assert codes(judge(candidate)) == ["equal_semantically"]
    other = {**renamed, "@context": {"help": OSD, "x": "https://x.example/"}, "x:y": 1}
    assert codes(judge(other)) == []
    # What is JSON by itself has no names that mean anything.
    literal = {"@context": {"osd": OSD, "x": "https://x.example/"}}
    assert codes(judge(changed(**literal, metadata={"x:y": 1}), changed(metadata={"https://x.example/y": 1}))) == []


def older(candidate: Any, first: float, last: float, replaced: float | None = None) -> OlderState:
    """A state of an entry, by hours before now."""
    replaced_at = None if replaced is None else NOW - replaced * HOUR
    return OlderState(json.dumps(candidate), NOW - first * HOUR, NOW - last * HOUR, replaced_at)


def test_a_copy_that_lags_is_told_with_the_interval_of_its_lag() -> None:
    old = changed(description="as it was")
    result = judge({**old, "score": 1}, older=[older(changed(description="x"), 90, 60, 50), older(old, 50, 20, 18)])
    assert codes(result) == ["equal_to_older_snapshot"]
    assert result.reason is Reason.DIFFERS
    assert record(result)["diagnostics"] == [
        {
            "code": "equal_to_older_snapshot",
            "firstSeenAt": "2026-11-27T10:00:00.000Z",
            "lastSeenAt": "2026-11-28T16:00:00.000Z",
            "lag": {"atLeastS": 18 * 3600.0, "atMostS": 20 * 3600.0},
        }
    ]


def test_of_several_equal_states_the_last_one_counts() -> None:
    old = changed(description="as it was")
    states = [older(old, 90, 80, 79), older(changed(description="x"), 79, 50, 49), older(old, 49, 20, 19)]
    (found,) = judge(old, older=states).diagnostics
    assert found.last_seen_at == NOW - 20 * HOUR
    assert found.lag is not None
    assert (found.lag.at_least, found.lag.at_most) == (19 * HOUR, 20 * HOUR)


def test_without_a_known_successor_the_last_look_bounds_the_lag() -> None:
    gone = changed(identifier="urn:air:acme.example:tool:gone")
    result = judge(gone, older=[older(gone, 90, 2)])
    assert (result.reason, codes(result)) == (Reason.NO_SUCH_IDENTIFIER, ["equal_to_older_snapshot"])
    lag = result.diagnostics[0].lag
    assert lag is not None
    assert (lag.at_least, lag.at_most) == (timedelta(minutes=1), 2 * HOUR)


@pytest.mark.parametrize(
    ("candidate", "published", "newer"),
    [
        ({"version": "1.10.0"}, {"version": "1.9.0"}, True),
        ({"version": "1.9.0"}, {"version": "1.10.0"}, False),
        ({"version": "1.0"}, {}, True),
        ({"updatedAt": "2026-02-01T00:00:00Z"}, {"updatedAt": "2026-01-31T23:00:00-00:30"}, True),
        ({"updatedAt": "2026-01-01T00:00:00Z"}, {"updatedAt": "2026-02-01T00:00:00Z"}, False),
        ({"updatedAt": "tomorrow"}, {"updatedAt": "2026-02-01T00:00:00Z"}, False),
        ({"description": "other"}, {}, False),
    ],
)
def test_a_candidate_that_calls_itself_later_is_said_to_be(candidate: Any, published: Any, newer: bool) -> None:
    result = judge(changed(**candidate), changed(**published))
    assert ("newer_than_manifest" in codes(result)) is newer


def test_what_was_there_once_is_not_newer() -> None:
    withdrawn = changed(version="2.0")
    result = judge(withdrawn, changed(version="1.0"), older=[older(withdrawn, 9, 8, 7)])
    assert codes(result) == ["equal_to_older_snapshot"]


def test_a_damaged_older_state_is_passed_over() -> None:
    assert codes(judge(changed(description="x"), older=[OlderState("{", NOW, NOW)])) == []


# --- answers of registries --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "wanted", "other"),
    [
        ({"contractVersion": "1.0"}, "1.0", False),
        ({"contractVersion": "1.1"}, "1.0", True),
        ({"contractVersion": 1.0}, "1.0", True),
        ({}, "1.0", False),
        ({"contractVersion": "1.1"}, None, False),
        ([], "1.0", False),
        (None, "1.0", False),
    ],
)
def test_an_answer_of_another_contract_version_is_recognised(answer: Any, wanted: str | None, other: bool) -> None:
    assert declares_other_version(answer, "contractVersion", wanted) is other


def test_a_parsed_candidate_can_be_judged_too() -> None:
    from index.exact_json import exact

    result = endorse(Candidate(exact(changed(x=[1.5, 2, True]))), BRAND, manifest_of(ECHO), namespace=OSD, now=NOW)
    assert result.verdict is Verdict.MISMATCH
    published = manifest_of(changed(x=[1.5, 2.0, True]))
    result = endorse(Candidate(exact(changed(x=(1.5, 2, True)))), BRAND, published, namespace=OSD, now=NOW)
    assert result.verdict is Verdict.MATCH
