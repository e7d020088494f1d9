"""Which URLs may be fetched at all: the grammar of URLs, the allowlist, and who may point where. Pure."""

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache

import idna
from yarl import URL

from index.trust import has_known_suffix
from index.urls import BadUrl, host_of, is_canonical, origin_of, parse_url

_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
# The reason for which a host is not asked that asked to be left alone.
HOST_RESTS = "host_rests"
_NUMERIC_LABEL = re.compile(r"\d+|0x[0-9a-f]*")
_DEFAULT_PORTS = {"http": 80, "https": 443}
# Host names whose grammar was looked at lately; each visit asks about few of them many times.
_REMEMBERED = 4096


@dataclass(frozen=True, slots=True)
class Refused:
    """A URL that we decline to fetch; `reason` is a stable word, `detail` says it to a person."""

    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class Admitted:
    """A URL that may be fetched, in canonical form, with its origin."""

    url: str
    origin: str


@dataclass(frozen=True, slots=True)
class OriginRules:
    """What the operator said about one origin."""

    origin: str
    surfaces: tuple[str, ...] = ("ard",)
    pages: tuple[str, ...] = ("/",)
    artifact_hosts: tuple[str, ...] = ()
    min_interval: timedelta | None = None
    max_interval: timedelta | None = None


@dataclass(frozen=True)
class Scope:
    """The allowlist of one process: exact origins, patterns, and hosts that the operator vouches for."""

    origins: Mapping[str, OriginRules] = field(default_factory=dict)
    patterns: tuple[OriginRules, ...] = ()
    named_hosts: tuple[str, ...] = ()
    allow_http: bool = False

    def rules(self, origin: str) -> OriginRules | None:
        """Find what the operator said about an origin: its own entry, else the first pattern that matches."""
        exact = self.origins.get(origin)
        if exact is not None:
            return exact
        return next((rules for rules in self.patterns if matches_origin(rules.origin, origin)), None)

    def admit(self, text: str, *, source: str | None = None) -> Admitted | Refused:
        """Decide about a URL that a document of origin `source`, or the operator, named.

        The grammar comes first. Then the URL must lie on the source itself, on an allowlisted origin, or on one of the
        further hosts that the operator allowed for the source.
        """
        checked = self.check(text)
        if isinstance(checked, Refused):
            return checked
        if checked.origin == source or self.rules(checked.origin) is not None:
            return checked
        rules = self.rules(source) if source else None
        if rules and any(matches_host(host, checked.url) for host in rules.artifact_hosts):
            return checked
        return Refused("not_allowlisted", f"{checked.origin} is not on the allowlist")

    def check(self, text: str) -> Admitted | Refused:
        """Apply the grammar alone: scheme, no credentials, an honest host name, a port the operator knows."""
        if is_canonical(text):
            # The usual case, a plain address on an origin of the allowlist, passes every check below.
            origin = origin_of(text)
            if (self.allow_http or not origin.startswith("http:")) and self._is_plainly_listed(origin):
                return Admitted(text, origin)
        try:
            url = parse_url(text)
        except BadUrl as error:
            return Refused("url", f"expected {error}")
        if url.user is not None or url.password is not None or "@" in url.raw_authority:
            return Refused("credentials", "URLs with credentials are not fetched")
        if url.scheme == "http" and not self.allow_http:
            return Refused("scheme", "plain http is not fetched unless network.allow_http is set")
        host, origin = url.raw_host or "", origin_of(str(url))
        listed = self.rules(origin) is not None
        if _is_address(host):
            admitted = listed
            refusal = Refused("address", f"{host} is an address that the operator did not list")
        elif not (_is_host_name(host) or (listed and _is_host_name(host.replace("_", "-")))):
            return Refused("host", "the host is not a well-formed DNS name")
        else:
            admitted = listed or url.explicit_port in (None, _DEFAULT_PORTS[url.scheme]) or self._is_port_known(url)
            refusal = Refused("port", f"port {url.explicit_port} is not on the allowlist")
        return Admitted(str(url), origin) if admitted else refusal

    def _is_plainly_listed(self, origin: str) -> bool:
        """Tell of a canonical origin whether it is listed, itself or by a pattern that covers well-formed names."""
        return origin in self.origins or (self.rules(origin) is not None and _is_host_name(host_of(origin)))

    def check_public(self, text: str) -> Admitted | Refused:
        """Apply the grammar to a URL that the allowlist need not cover; its name must exist on the open web."""
        checked = self.check(text)
        if isinstance(checked, Refused) or self.rules(checked.origin) is not None:
            return checked
        host = host_of(checked.origin)
        if self.is_named(host) or has_known_suffix(host):
            return checked
        return Refused("host", f"{host} does not end in a public suffix")

    def _is_port_known(self, url: URL) -> bool:
        return any(
            matches_host(host, str(url)) for rules in self._all_rules() for host in rules.artifact_hosts if ":" in host
        )

    def _all_rules(self) -> Iterable[OriginRules]:
        yield from self.origins.values()
        yield from self.patterns

    def is_named(self, host: str) -> bool:
        """Tell whether a `network.hosts` override covers the host."""
        return any(matches_name(pattern, host) for pattern in self.named_hosts)


def make_scope(rules: Iterable[OriginRules], *, named_hosts: Iterable[str] = (), allow_http: bool = False) -> Scope:
    """Sort origin rules into exact origins and patterns."""
    listed = list(rules)
    return Scope(
        origins={rule.origin: rule for rule in listed if "://*." not in rule.origin},
        patterns=tuple(rule for rule in listed if "://*." in rule.origin),
        named_hosts=tuple(named_hosts),
        allow_http=allow_http,
    )


def matches_origin(pattern: str, origin: str) -> bool:
    """Match an origin against a pattern: `https://*.corp.example` covers every name below, not the name itself."""
    scheme, _, rest = pattern.partition("://*.")
    return (
        origin.startswith(f"{scheme}://") and origin.endswith(f".{rest}") and len(origin) > len(scheme) + 4 + len(rest)
    )


def matches_host(pattern: str, url: str) -> bool:
    """Match the host of a URL, and its port where the pattern names one."""
    name, _, port = pattern.partition(":")
    authority = origin_of(url).partition("://")[2]
    if port:
        return matches_name(name, host_of(url)) and authority.endswith(f":{port}")
    return matches_name(name, host_of(url))


def matches_name(pattern: str, host: str) -> bool:
    """Match a host name against `name`, `*.name` (names below it) or `*` (any)."""
    if pattern.startswith("*."):
        return host.endswith(pattern[1:]) and len(host) > len(pattern) - 1
    return pattern in ("*", host)


@lru_cache(_REMEMBERED)
def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


@lru_cache(_REMEMBERED)
def _is_host_name(host: str) -> bool:
    """Accept LDH names whose last label is no number, so that no resolver can read them as an address."""
    labels = host.split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels) or _NUMERIC_LABEL.fullmatch(labels[-1]):
        return False
    if "--" not in host:
        return True  # only encoded labels, and what looks like one, have more to be checked
    try:
        idna.decode(host)
    except (idna.IDNAError, UnicodeError):
        return False
    return True
