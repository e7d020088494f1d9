"""One canonical form of URLs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.urls import (
    BadUrl,
    canonical_url,
    host_of,
    is_canonical,
    is_relative,
    origin_of,
    parse_url,
    resolve,
    scheme_of,
)

ORIGIN = "https://origin.example"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        # The sample of FR-86.
        ("HTTPS://Origin.Example:443/a2a/", ORIGIN + "/a2a/"),
        (ORIGIN, ORIGIN + "/"),
        (ORIGIN + "?x", ORIGIN + "/?x"),
        (ORIGIN + "/a/./b/../c", ORIGIN + "/a/c"),
        (ORIGIN + "/../a", ORIGIN + "/a"),
        (ORIGIN + "/%2e%2e/a", ORIGIN + "/a"),
        (ORIGIN + "/%7Eana", ORIGIN + "/~ana"),
        (ORIGIN + "/%e9", ORIGIN + "/%E9"),
        (ORIGIN + "/é", ORIGIN + "/%C3%A9"),
        (ORIGIN + "/a b", ORIGIN + "/a%20b"),
        (ORIGIN + "/a|b", ORIGIN + "/a%7Cb"),
        (ORIGIN + "/a#part", ORIGIN + "/a"),
        (ORIGIN + "#part", ORIGIN + "/"),
        (ORIGIN + "./a", ORIGIN + "/a"),
        (" " + ORIGIN + "/a\n", ORIGIN + "/a"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("http://origin.example:80/", "http://origin.example/"),
        ("https://[2001:DB8:0:0::1]:443/", "https://[2001:db8::1]/"),
    ],
)
def test_FR86_equal_addresses_share_one_form(first: str, second: str) -> None:
    assert canonical_url(first) == second
    assert canonical_url(second) == second


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (ORIGIN + "/a2a/", ORIGIN + "/A2A/"),
        (ORIGIN + "/a", ORIGIN + "/a/"),
        (ORIGIN + "/a//b", ORIGIN + "/a/b"),
        (ORIGIN + "/a%2Fb", ORIGIN + "/a/b"),
        (ORIGIN + "/a?x=1&y=2", ORIGIN + "/a?y=2&x=1"),
        (ORIGIN + "/a?x=a+b", ORIGIN + "/a?x=a%2Bb"),
        (ORIGIN + "/a?X", ORIGIN + "/a?x"),
        (ORIGIN + "/a?x", ORIGIN + "/a"),
        (ORIGIN + ":8443/", ORIGIN + "/"),
        ("http://origin.example/", ORIGIN + "/"),
        ("http://origin.example:443/", ORIGIN + "/"),
        ("https://www.origin.example/", ORIGIN + "/"),
        # FR-88: one host, two documents.
        ("https://files.example/u1/card.json", "https://files.example/u2/card.json"),
    ],
)
def test_FR86_other_addresses_stay_apart(first: str, second: str) -> None:
    assert canonical_url(first) != canonical_url(second)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "an http or https URL"),
        ("origin.example", "an http or https URL"),
        ("/a", "an http or https URL"),
        ("//origin.example/", "an http or https URL"),
        ("ftp://origin.example/", "an http or https URL"),
        ("javascript:alert(1)", "an http or https URL"),
        ("https:///a", "a URL with a host"),
        ("https://", "a URL with a host"),
        ("https://./", "a URL with a host"),
        ("https:origin.example", "a URL with a host"),
        ("https://%6f.example/", "a URL with a host name that needs no escapes"),
        ("https://o\\.example/", "a URL with a host name that needs no escapes"),
        ("https://origin.example:0/", "a URL with a port from 1 to 65535"),
        ("https://origin.example:65536/", "a well-formed URL"),
        ("https://origin.example:a/", "a well-formed URL"),
        ("https://[::1/", "a well-formed URL"),
        ("https://[::1]@", "a well-formed URL"),
        ("https://[::g]/", "a well-formed URL"),
        ("https://[1.2.3.4]/", "a well-formed URL"),
        ("https://::1/", "a well-formed URL"),
        ("https://a\u200db.example/", "a well-formed URL"),
        (ORIGIN + "/" + "a" * 2048, "a URL of at most 2048 characters"),
    ],
)
def test_what_cannot_be_fetched_is_no_url_of_ours(text: str, message: str) -> None:
    with pytest.raises(BadUrl) as caught:
        canonical_url(text)
    assert str(caught.value) == message
    if text.startswith("https:"):
        with pytest.raises(BadUrl):
            resolve(ORIGIN + "/a", text)


BASE = ORIGIN + "/a/b;p?q"


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        # RFC 3986 5.4, on our base.
        ("g", "/a/g"), ("./g", "/a/g"), ("g/", "/a/g/"), ("/g", "/g"), ("?y", "/a/b;p?y"), ("g?y", "/a/g?y"),
        ("#s", "/a/b;p?q"), ("g#s", "/a/g"), (";x", "/a/;x"), ("", "/a/b;p?q"), (".", "/a/"), ("./", "/a/"),
        ("..", "/"), ("../g", "/g"), ("../../g", "/g"), ("/./g", "/g"), ("/../g", "/g"), ("g.", "/a/g."),
        ("g..", "/a/g.."),
        ("./g/.", "/a/g/"), ("g/./h", "/a/g/h"), ("g/../h", "/a/h"), ("g;x=1/../y", "/a/y"),
        (" g \n", "/a/g"), ("g h", "/a/g%20h"),
    ],
)  # fmt: skip
def test_a_reference_resolves_against_its_document(reference: str, expected: str) -> None:
    assert resolve(BASE, reference) == ORIGIN + expected


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("//cdn.example/x", "https://cdn.example/x"),
        ("HTTP://cdn.example:80/x#y", "http://cdn.example/x"),
        ("https://cdn.example", "https://cdn.example/"),
    ],
)
def test_an_absolute_reference_is_its_own(reference: str, expected: str) -> None:
    assert resolve(BASE, reference) == expected


@pytest.mark.parametrize(
    "reference",
    ["mailto:a@b.example", "javascript:alert(1)", "java\nscript:alert(1)", "https:g", "https:", "//", "//[::1"],
)
def test_a_reference_to_nothing_that_can_be_fetched_is_refused(reference: str) -> None:
    with pytest.raises(BadUrl):
        resolve(BASE, reference)


@pytest.mark.parametrize(
    ("reference", "scheme"),
    [
        ("https://a.example", "https"),
        (" HTTPS:x", "https"),
        ("javascript:alert(1)", "javascript"),
        ("urn:air:a.b:c", "urn"),
        ("a+b-c.d:x", "a+b-c.d"),
        ("x/y:z", ""),
        ("/a:b", ""),
        ("//a.example:80/", ""),
        ("?a:b", ""),
        ("1a:b", ""),
        ("", ""),
    ],
)
def test_a_reference_has_a_scheme_or_is_relative(reference: str, scheme: str) -> None:
    assert scheme_of(reference) == scheme
    assert is_relative(reference) is (scheme == "")


@pytest.mark.parametrize(
    ("url", "origin", "host"),
    [
        (ORIGIN + "/a?b", ORIGIN, "origin.example"),
        (ORIGIN, ORIGIN, "origin.example"),
        (ORIGIN + "?x=/y", ORIGIN, "origin.example"),
        (ORIGIN + "#x", ORIGIN, "origin.example"),
        (ORIGIN + ":8443/a:b@c", ORIGIN + ":8443", "origin.example"),
        ("https://[::1]:8443/", "https://[::1]:8443", "[::1]"),
        ("https://user:pw@origin.example/", ORIGIN, "origin.example"),
    ],
)
def test_an_origin_is_scheme_host_and_port(url: str, origin: str, host: str) -> None:
    assert origin_of(url) == origin
    assert host_of(url) == host_of(origin) == host


PIECES = (
    "https:// http: // / @ [ ] ::1 ::g v1. acme.example : 443 80 ? # \\ % %5B %2e . .. %zz %ff "
    "é \u0661 \u3002 xn-- 0x7f a A \ud800 ﬁ ß %25 *"
)
pieces = st.sampled_from([*PIECES.split(" "), " ", "\t", "\x00"])


@given(
    st.lists(pieces, max_size=8).map("".join)
    | st.lists(pieces, max_size=6).map(lambda rest: "https://" + "".join(rest))
)
def test_the_canonical_form_is_its_own_and_nothing_breaks_it(text: str) -> None:
    for read in (canonical_url, lambda reference: resolve(BASE, reference)):
        try:
            url = read(text)
        except BadUrl:
            continue
        assert canonical_url(url) == url
        assert url.isascii()
        assert url.startswith(origin_of(url) + "/") or "@" in url
    if is_canonical(text):
        assert str(parse_url(text)) == text
