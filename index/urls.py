"""One canonical form of URLs, used as key everywhere; the published text is kept beside it. Pure."""

import ipaddress
import re
from urllib.parse import urljoin

from yarl import URL

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_LONGEST = 2048
# A URL that is canonical already, as almost all are that we meet again; dot segments go the long way.
_CANONICAL = re.compile(
    r"(https?)://((?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z][a-z0-9-]*)(?::([1-9][0-9]{1,4}))?(/[A-Za-z0-9._~/-]*)",
    re.ASCII,
)
_DOT_SEGMENT = re.compile(r"/\.{1,2}(?:/|$)")
_ORIGIN = re.compile(r"([^:]*://)([^/?#]*)")
_UNSAFE = re.compile(r"[\x00-\x20\x7f\"<>\\^`{|}]")


class BadUrl(ValueError):
    """Not an absolute http or https URL that could be fetched; the message says what is wrong."""


def canonical_url(text: str) -> str:
    """Write a URL in the form that equal addresses share (RFC 3986 6.2.2-6.2.3, RFC 9110 4.2.3).

    Scheme and host become lower case, the default port and the fragment go, dot segments resolve, an empty path
    becomes `/`, a final dot of the host is dropped. Path case, query and trailing slashes stay. Raises BadUrl.
    """
    return text if is_canonical(text) else str(parse_url(text))


def is_canonical(text: str) -> bool:
    """Tell quickly that a URL is in canonical form; False means that it may not be."""
    match = _CANONICAL.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None or "xn--" in text:
        return False
    port = int(match[3]) if match[3] else None
    return port != _DEFAULT_PORTS[match[1]] and (port or 1) < 65536 and not _DOT_SEGMENT.search(match[4])


def parse_url(text: str) -> URL:
    """Read an absolute http or https URL; raises BadUrl."""
    if len(text) > _LONGEST:
        raise BadUrl(f"a URL of at most {_LONGEST} characters")
    try:
        url = URL(_UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", text.strip(" \t\r\n\f")))
        scheme, host, port = url.scheme, url.raw_host, url.explicit_port
    except (ValueError, TypeError, LookupError):  # the last one on "https://[::1]@"
        raise BadUrl("a well-formed URL") from None
    if scheme not in _DEFAULT_PORTS:
        raise BadUrl("an http or https URL")
    if not host or host == ".":
        raise BadUrl("a URL with a host")
    if ":" in host or "[" in url.raw_authority:
        _check_literal(host)
    elif "%" in host:
        raise BadUrl("a URL with a host name that needs no escapes")
    if port == 0:
        raise BadUrl("a URL with a port from 1 to 65535")
    if port == _DEFAULT_PORTS[scheme]:
        url = url.with_port(None)
    if host.endswith(".") and not host.endswith(".."):
        url = url.with_host(host[:-1])
    return url.with_fragment(None) if url.raw_path != "/" else url.with_path("/", keep_query=True)


def _check_literal(host: str) -> None:
    """Refuse brackets around anything but an IPv6 address, which the library lets pass and then trips over."""
    try:
        ipaddress.IPv6Address(host)
    except ValueError:
        raise BadUrl("a well-formed URL") from None


def resolve(base: str, reference: str) -> str:
    """Resolve a reference against the URL of its document (RFC 3986 section 5) and make the result canonical."""
    reference = reference.strip(" \t\r\n\f")
    if len(reference) > _LONGEST:
        raise BadUrl(f"a URL of at most {_LONGEST} characters")
    try:
        # The standard library reads "https:", "https://" and "//" as if they were empty.
        if reference.startswith("//"):
            reference = f"{scheme_of(base)}:{reference}"
        joined = urljoin(base, reference) if is_relative(reference) else reference
    except ValueError:
        raise BadUrl("a well-formed URL reference") from None
    return canonical_url(joined)


def is_relative(reference: str) -> bool:
    """Tell a relative reference from one with a scheme of its own."""
    return not _SCHEME.match(reference.lstrip(" \t\r\n\f"))


def scheme_of(reference: str) -> str:
    """Name the scheme of a URL in lower case; empty for a relative reference."""
    match = _SCHEME.match(reference.lstrip(" \t\r\n\f"))
    return match[0][:-1].lower() if match else ""


def origin_of(url: str) -> str:
    """Name the origin of a canonical URL: scheme, host and a port that isn't the default (RFC 6454)."""
    match = _ORIGIN.match(url)
    if match is None:
        return f"{url}://"
    return f"{match[1]}{match[2].rpartition('@')[2]}" if "@" in match[2] else match[0]


def host_of(origin: str) -> str:
    """Name the host of an origin or canonical URL, without a port; IPv6 literals keep their brackets."""
    authority = origin_of(origin).partition("://")[2]
    if authority.startswith("["):
        return authority.partition("]")[0] + "]"
    return authority.partition(":")[0]
