"""The grammar of URLs, the allowlist, and who may point where."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crawler.policy.scope import Admitted, OriginRules, Refused, Scope, make_scope, matches_name, matches_origin
from index.urls import canonical_url, origin_of

SCOPE = make_scope(
    [
        OriginRules("https://acme.example", artifact_hosts=("api.acme.example", "cdn.example:8443", "*.files.example")),
        OriginRules("https://any.example", artifact_hosts=("*",)),
        OriginRules("https://alt.example:8443"),
        OriginRules("https://10.0.0.1"),
        OriginRules("https://[::1]:8443"),
        OriginRules("https://intranet"),
        OriginRules("https://*.corp.example", pages=("/one",)),
        OriginRules("https://*.deep.corp.example", pages=("/two",)),
        OriginRules("https://*.ported.example:8443"),
    ],
    named_hosts=("*.lab", "printer"),
)


def verdict(answer: Admitted | Refused) -> str:
    """The canonical URL of what is admitted, the word for the refusal of what is not."""
    return answer.url if isinstance(answer, Admitted) else answer.reason


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://acme.example/x", "https://acme.example/x"),
        ("HTTPS://ACME.Example:443/X", "https://acme.example/X"),
        ("https://acme.example", "https://acme.example/"),
        ("https://acme.example./x", "https://acme.example/x"),
        ("https://acme.example:/x", "https://acme.example/x"),
        ("https://acme.example:00443/x", "https://acme.example/x"),
        (" https://acme.example/x\n", "https://acme.example/x"),
        ("https://acme.example/a b", "https://acme.example/a%20b"),
        ("https://acme.example/x#part", "https://acme.example/x"),
        ("https://acme.example/x?q=1", "https://acme.example/x?q=1"),
        ("https://acme.example/x@y:z", "https://acme.example/x@y:z"),
        ("https://alt.example:8443/", "https://alt.example:8443/"),
        ("https://10.0.0.1/", "https://10.0.0.1/"),
        ("https://１0.0.0.1/", "https://10.0.0.1/"),
        ("https://[0:0:0:0:0:0:0:1]:8443/", "https://[::1]:8443/"),
        ("https://intranet/x", "https://intranet/x"),
        ("https://x.corp.example/", "https://x.corp.example/"),
        ("https://x.y.corp.example/", "https://x.y.corp.example/"),
        ("https://x.ported.example:8443/", "https://x.ported.example:8443/"),
        # Empty credentials are none, and are dropped.
        ("https://@acme.example/x", "https://acme.example/x"),
    ],
)
def test_an_address_on_the_allowlist_is_admitted_in_canonical_form(url: str, expected: str) -> None:
    assert verdict(SCOPE.admit(url)) == expected


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        # No address of the web at all.
        ("", "url"),
        ("/x", "url"),
        ("//acme.example/x", "url"),
        ("acme.example", "url"),
        ("https:acme.example", "url"),
        ("https:///x", "url"),
        ("https://?x", "url"),
        ("ftp://acme.example/", "url"),
        ("file:///etc/passwd", "url"),
        ("javascript:alert(1)", "url"),
        ("data:,x", "url"),
        ("https://acme.example:0/", "url"),
        ("https://acme.example:65536/", "url"),
        ("https://acme.example:x/", "url"),
        ("https://[::1/", "url"),
        ("https://acme.example/" + "a" * 2048, "url"),
        ("https://a\u200bb.example/", "url"),
        ("https://./", "url"),
        ("https://[::1]@", "url"),
        # Credentials, and tricks with the sign before the host.
        ("https://user@acme.example/", "credentials"),
        ("https://user:pw@acme.example/", "credentials"),
        ("https://:@acme.example/", "credentials"),
        ("https://acme.example@evil.example/", "credentials"),
        ("https://acme.example\\@evil.example/", "credentials"),
        ("https://acme.example%2f@evil.example/", "credentials"),
        ("https://user@evil.example@acme.example/", "credentials"),
        # Schemes.
        ("http://acme.example/", "scheme"),
        # Ports that the operator does not know.
        ("https://acme.example:8443/", "port"),
        ("https://acme.example:80/", "port"),
        ("https://x.corp.example:444/", "port"),
        # Addresses in every spelling.
        ("https://127.0.0.1/", "address"),
        ("https://127.0.0.1./", "address"),
        ("https://10.0.0.2/", "address"),
        ("https://10.0.0.1:8443/", "address"),
        ("https://[::1]/", "address"),
        ("https://[::ffff:127.0.0.1]/", "address"),
        ("https://[fe80::1%25eth0]/", "address"),
        ("https://[::1%25lo]:8443/", "address"),
        ("https://1２7.0.0.1/", "address"),
        ("https://①②⑦.⓪.⓪.①/", "address"),
        ("https://127。0。0。1/", "address"),
        ("https://0x7f.1/", "host"),
        ("https://0x7f000001/", "host"),
        ("https://0x7f.0x0.0x0.0x1/", "host"),
        ("https://2130706433/", "host"),
        ("https://127.1/", "host"),
        ("https://127.0.1/", "host"),
        ("https://0177.0.0.1/", "host"),
        ("https://017700000001/", "host"),
        ("https://%31%32%37.0.0.1/", "url"),
        ("https://evil.example.1/", "host"),
        ("https://evil.0x/", "host"),
        ("https://evil.٣/", "host"),
        # Names that are none.
        ("https://acme.example../", "host"),
        ("https://.acme.example/", "host"),
        ("https://acme..example/", "host"),
        ("https://-a.example/", "host"),
        ("https://a-.example/", "host"),
        ("https://a_b.example/", "host"),
        ("https://" + "a" * 64 + ".example/", "host"),
        ("https://" + ".".join(["a" * 60] * 5) + ".example/", "host"),
        ("https://xn--a.example/", "host"),
        ("https://acme.example%00.evil.example/", "url"),
        ("https://acme.example\t.evil.example/", "url"),
        ("https://evil.example\\.acme.example/", "url"),
        # Well-formed, and of somebody else.
        ("https://evil.example/", "not_allowlisted"),
        ("https://evil.example/https://acme.example/", "not_allowlisted"),
        ("https://evil.example?@acme.example/", "not_allowlisted"),
        ("https://evil.example#@acme.example/", "not_allowlisted"),
        ("https://acme.example.evil.example/", "not_allowlisted"),
        ("https://notacme.example/", "not_allowlisted"),
        ("https://аcme.example/", "not_allowlisted"),
        ("https://bücher.example/", "not_allowlisted"),
        ("https://corp.example/", "not_allowlisted"),
        ("https://evilcorp.example/", "not_allowlisted"),
        ("https://x.corp.example.evil.example/", "not_allowlisted"),
        ("https://x.ported.example/", "not_allowlisted"),
        ("https://alt.example/", "not_allowlisted"),
        ("https://localhost/", "not_allowlisted"),
    ],
)  # fmt: skip
def test_everything_else_is_refused_with_its_reason(url: str, reason: str) -> None:
    assert verdict(SCOPE.admit(url)) == reason


def test_plain_http_is_an_origin_of_its_own_and_needs_the_switch() -> None:
    listed = [OriginRules("http://plain.example"), OriginRules("https://acme.example")]
    open_, closed = make_scope(listed, allow_http=True), make_scope(listed)
    assert verdict(open_.admit("http://plain.example:80/x")) == "http://plain.example/x"
    assert verdict(open_.admit("http://acme.example/x")) == "not_allowlisted"
    assert verdict(open_.admit("https://plain.example/x")) == "not_allowlisted"
    assert verdict(closed.admit("http://plain.example/x")) == "scheme"


@pytest.mark.parametrize(
    ("url", "source", "expected"),
    [
        ("https://api.acme.example/c.json", "https://acme.example", "https://api.acme.example/c.json"),
        ("https://cdn.example:8443/c", "https://acme.example", "https://cdn.example:8443/c"),
        ("https://a.files.example/c", "https://acme.example", "https://a.files.example/c"),
        ("https://anything.example/c", "https://any.example", "https://anything.example/c"),
        # The host was allowed with its port, or without one.
        ("https://cdn.example/c", "https://acme.example", "not_allowlisted"),
        ("https://api.acme.example:8443/c", "https://acme.example", "port"),
        ("https://files.example/c", "https://acme.example", "not_allowlisted"),
        # It was allowed for one origin, and for no other.
        ("https://api.acme.example/c.json", "https://alt.example:8443", "not_allowlisted"),
        ("https://cdn.example:8443/c", "https://alt.example:8443", "not_allowlisted"),
        ("https://api.acme.example/c.json", None, "not_allowlisted"),
        ("https://api.acme.example/c.json", "https://unknown.example", "not_allowlisted"),
        # What is on the allowlist may be pointed to from anywhere, and every origin may point to itself.
        ("https://acme.example/x", "https://alt.example:8443", "https://acme.example/x"),
        ("https://unknown.example/x", "https://unknown.example", "https://unknown.example/x"),
        # A further host opens no address.
        ("https://127.0.0.1/c", "https://any.example", "address"),
        ("http://anything.example/c", "https://any.example", "scheme"),
    ],
)
def test_a_further_host_is_admitted_for_the_origin_that_names_it(url: str, source: str | None, expected: str) -> None:
    assert verdict(SCOPE.admit(url, source=source)) == expected


@pytest.mark.parametrize(
    ("origin", "pages"),
    [
        ("https://acme.example", ("/",)),
        ("https://x.corp.example", ("/one",)),
        # The first pattern that matches counts.
        ("https://x.deep.corp.example", ("/one",)),
        ("https://corp.example", None),
        ("http://x.corp.example", None),
    ],
)
def test_the_rules_of_an_origin_are_its_own_else_those_of_the_first_pattern(
    origin: str, pages: tuple[str, ...] | None
) -> None:
    rules = SCOPE.rules(origin)
    assert (rules.pages if rules else None) == pages


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://anybody.com/r.txt", "https://anybody.com/r.txt"),
        ("https://anybody.co.uk/r.txt", "https://anybody.co.uk/r.txt"),
        ("https://x.lab/r.txt", "https://x.lab/r.txt"),
        ("https://printer/r.txt", "https://printer/r.txt"),
        ("https://intranet/r.txt", "https://intranet/r.txt"),
        ("https://anybody.example/r.txt", "host"),
        ("https://wiki.local/r.txt", "host"),
        ("https://localhost/r.txt", "host"),
        ("https://wiki/r.txt", "host"),
        ("https://127.0.0.1/r.txt", "address"),
        ("https://anybody.com:8443/r.txt", "port"),
        ("http://anybody.com/r.txt", "scheme"),
        ("https://u:p@anybody.com/r.txt", "credentials"),
    ],
)
def test_off_the_allowlist_a_name_must_exist_on_the_open_web(url: str, expected: str) -> None:
    assert verdict(SCOPE.check_public(url)) == expected


@pytest.mark.parametrize(
    ("pattern", "host", "matches"),
    [
        ("acme.example", "acme.example", True),
        ("acme.example", "x.acme.example", False),
        ("*.example", "acme.example", True),
        ("*.example", "x.acme.example", True),
        ("*.example", "example", False),
        ("*.example", ".example", False),
        ("*.example", "notexample", False),
        ("*", "anything", True),
    ],
)
def test_a_name_pattern_covers_what_is_below_the_name(pattern: str, host: str, matches: bool) -> None:
    assert matches_name(pattern, host) is matches
    if pattern.startswith("*."):
        assert matches_origin(f"https://{pattern}", f"https://{host}") is matches


@given(
    st.builds(
        "{}{}{}{}".format,
        st.sampled_from(["https://", "HTTPS://", "http://", "https:/", "//", "ftp://"]),
        st.sampled_from(["", "@", "u@", "a:b@", "acme.example@"]),
        st.sampled_from(
            ["acme.example", "x.corp.example", "evil.example", "127.0.0.1", "[::1]", "0x7f.1", "acme.example."]
        ),
        st.text(":/?#@\\.%2eE8443ab \t", max_size=10),
    )
)
@example("https://acme.example:8443/../x")
def test_what_is_admitted_lies_on_the_allowlist_and_is_admitted_again_unchanged(url: str) -> None:
    answer = SCOPE.admit(url)
    if isinstance(answer, Admitted):
        assert SCOPE.admit(answer.url) == answer
        assert (canonical_url(answer.url), origin_of(answer.url)) == (answer.url, answer.origin)
        assert SCOPE.rules(answer.origin) is not None


def test_an_empty_allowlist_admits_nothing() -> None:
    assert verdict(Scope().admit("https://acme.example/")) == "not_allowlisted"
