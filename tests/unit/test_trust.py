"""Does the identity of a trust manifest belong to the publisher, and where was the entry found?"""

from typing import Any

import pytest

from index.trust import (
    Alignment,
    Policy,
    Relation,
    acceptable,
    alignment,
    has_known_suffix,
    is_public_suffix,
    registrable_domain,
    relation,
    trust_domain,
)


@pytest.mark.parametrize(
    ("identity", "domain"),
    [
        ("spiffe://acme.example/agents/echo", "acme.example"),
        ("SPIFFE://Acme.Example", "acme.example"),
        ("did:web:acme.example", "acme.example"),
        ("did:web:acme.example:agents:echo", "acme.example"),
        ("did:web:acme.example%3A8443", "acme.example"),
        ("did:web:acme.example%3a8443:agents", "acme.example"),
        ("DID:WEB:Acme.Example", "acme.example"),
        ("https://acme.example", "acme.example"),
        ("https://acme.example:8443/x?y#z", "acme.example"),
        ("https://user@acme.example/", "acme.example"),
        ("acme.example", "acme.example"),
        (" Acme.Example. ", "acme.example"),
        ("https://acme.example./", "acme.example"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("https://BÜCHER.example/", "xn--bcher-kva.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        # Other forms say nothing about a domain.
        ("did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK", None),
        ("did:web:", None),
        ("did:webs:acme.example", None),
        ("http://acme.example/", None),
        ("mailto:a@acme.example", None),
        ("acme.example/x", None),
        ("acme.example:443", None),
        ("spiffe:///x", None),
        ("https://127.0.0.1/", None),
        ("https://[::1]/", None),
        ("https://[", None),
        ("localhost", None),
        ("acme", None),
        ("a..example", None),
        ("-a.example", None),
        ("a\x00.example", None),
        ("", None),
    ],
)
def test_an_identity_claims_a_domain(identity: str, domain: str | None) -> None:
    assert trust_domain(identity) == domain


@pytest.mark.parametrize(
    ("identity", "publisher", "verdict"),
    [
        ("spiffe://acme.example/x", "acme.example", Alignment.EXACT),
        # The samples of FR-84.
        ("spiffe://run.corp.example/x", "corp.example", Alignment.SUBDOMAIN),
        ("https://someone.github.io", "github.io", Alignment.MISALIGNED),
        ("https://github.io", "github.io", Alignment.EXACT),
        ("https://a.b.corp.example", "corp.example", Alignment.SUBDOMAIN),
        ("https://someone.co.uk", "co.uk", Alignment.MISALIGNED),
        # The reverse is none: a parent speaks for itself.
        ("https://corp.example", "run.corp.example", Alignment.MISALIGNED),
        ("https://notcorp.example", "corp.example", Alignment.MISALIGNED),
        ("https://corp.example.evil.example", "corp.example", Alignment.MISALIGNED),
        ("https://evil.example/corp.example", "corp.example", Alignment.MISALIGNED),
        ("urn:air:acme.example:echo", "acme.example", Alignment.SELF_REFERENTIAL),
        ("urn:ai:evil.example:echo", "acme.example", Alignment.SELF_REFERENTIAL),
        ("did:key:z6Mk", "acme.example", Alignment.UNDETERMINABLE),
        ("https://127.0.0.1", "acme.example", Alignment.UNDETERMINABLE),
        ("", "acme.example", Alignment.UNDETERMINABLE),
        (None, "acme.example", Alignment.ABSENT),
        (5, "acme.example", Alignment.ABSENT),
        (["https://acme.example"], "acme.example", Alignment.ABSENT),
    ],
)
def test_FR84_the_identity_is_aligned_with_the_publisher(identity: Any, publisher: str, verdict: Alignment) -> None:
    assert alignment({"identity": identity}, publisher) is verdict


@pytest.mark.parametrize("manifest", [None, "https://acme.example", ["identity"], {}, {"Identity": "acme.example"}])
def test_without_a_trust_manifest_nothing_is_asserted(manifest: Any) -> None:
    assert alignment(manifest, "acme.example") is Alignment.ABSENT


@pytest.mark.parametrize(
    ("policy", "accepted"),
    [
        ("subdomain", set(Alignment) - {Alignment.MISALIGNED}),
        ("exact", set(Alignment) - {Alignment.MISALIGNED, Alignment.SUBDOMAIN}),
        ("off", set(Alignment)),
    ],
)
def test_the_policy_says_which_alignments_are_served(policy: Policy, accepted: set[Alignment]) -> None:
    assert {verdict for verdict in Alignment if acceptable(verdict, policy)} == accepted


@pytest.mark.parametrize(
    ("publisher", "host", "expected"),
    [
        ("acme.example", "acme.example", Relation.EXACT),
        ("acme.example", "www.acme.example", Relation.SUBDOMAIN),
        ("www.acme.example", "acme.example", Relation.PARENT),
        ("acme.example", "other.example", Relation.OTHER),
        ("acme.example", "notacme.example", Relation.OTHER),
        ("github.io", "someone.github.io", Relation.OTHER),
        ("someone.github.io", "github.io", Relation.OTHER),
        ("acme.com", "com", Relation.OTHER),
        ("localhost", "localhost", Relation.EXACT),
        ("acme.example", "[::1]", Relation.OTHER),
        ("", "acme.example", Relation.OTHER),
    ],
)
def test_where_an_entry_was_found_is_related_to_whose_it_is(publisher: str, host: str, expected: Relation) -> None:
    assert relation(publisher, host) is expected


@pytest.mark.parametrize(
    ("name", "suffix", "registrable", "known"),
    [
        ("com", True, None, False),
        ("co.uk", True, None, True),
        ("github.io", True, None, True),
        ("acme.com", False, "acme.com", True),
        ("www.acme.com", False, "acme.com", True),
        ("a.b.acme.co.uk", False, "acme.co.uk", True),
        ("someone.github.io", False, "someone.github.io", True),
        ("acme.example", False, "acme.example", False),
        ("printer.local", False, "printer.local", False),
        ("localhost", True, None, False),
        ("10.0.0.1", False, None, False),
        ("", False, None, False),
    ],
)
def test_public_suffixes_are_known(name: str, suffix: bool, registrable: str | None, known: bool) -> None:
    assert is_public_suffix(name) is suffix
    assert registrable_domain(name) == registrable
    assert has_known_suffix(name) is known
