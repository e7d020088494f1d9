"""Which addresses may be dialled: our own table, for the standard library's answers differ between patch releases.

IPv4 names what is closed; IPv6 opens only global unicast, minus exceptions, so that mapped, translated, link-local and
every other special form needs no rule of its own. Pure.
"""

import ipaddress
from collections.abc import Iterable
from functools import lru_cache

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_CLOSED_IPV4: tuple[tuple[str, str], ...] = (
    ("0.0.0.0/8", "unspecified"),
    ("10.0.0.0/8", "private"),
    ("100.64.0.0/10", "carrier NAT"),
    ("127.0.0.0/8", "loopback"),
    ("168.63.129.16/32", "cloud metadata"),
    ("169.254.169.254/32", "cloud metadata"),
    ("169.254.0.0/16", "link-local"),
    ("172.16.0.0/12", "private"),
    ("192.0.0.0/24", "protocol assignments"),
    ("192.0.2.0/24", "documentation"),
    ("192.31.196.0/24", "AS112"),
    ("192.52.193.0/24", "AMT"),
    ("192.88.99.0/24", "6to4 relay"),
    ("192.168.0.0/16", "private"),
    ("192.175.48.0/24", "AS112"),
    ("198.18.0.0/15", "benchmarking"),
    ("198.51.100.0/24", "documentation"),
    ("203.0.113.0/24", "documentation"),
    ("224.0.0.0/4", "multicast"),
    ("240.0.0.0/4", "reserved"),
)
_MOST_REMEMBERED = 10_000
_GLOBAL_IPV6 = ipaddress.IPv6Network("2000::/3")
_CLOSED_IPV6: tuple[tuple[str, str], ...] = (
    ("2001::/23", "protocol assignments"),
    ("2001:db8::/32", "documentation"),
    ("2002::/16", "6to4"),
    ("2620:4f:8000::/48", "AS112"),
    ("3fff::/20", "documentation"),
)
_IPV6_NAMES: tuple[tuple[str, str], ...] = (
    ("::/128", "unspecified"),
    ("::1/128", "loopback"),
    ("::ffff:0:0/96", "IPv4-mapped"),
    ("64:ff9b::/96", "NAT64"),
    ("64:ff9b:1::/48", "NAT64"),
    ("fd00:ec2::254/128", "cloud metadata"),
    ("fc00::/7", "unique local"),
    ("fe80::/10", "link-local"),
    ("ff00::/8", "multicast"),
)


def _table(rows: Iterable[tuple[str, str]]) -> tuple[tuple[Network, str], ...]:
    return tuple((ipaddress.ip_network(network), name) for network, name in rows)


_IPV4_TABLE = _table(_CLOSED_IPV4)
_IPV6_TABLE = _table(_CLOSED_IPV6)
_IPV6_NAME_TABLE = _table(_IPV6_NAMES)


@lru_cache(maxsize=4096)
def closed_reason(address: str) -> str | None:
    """Say why an address is not public; None when it may be dialled by anybody.

    Takes strict literals only: anything else is `not an address`. What has a zone id is link-local.
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return "not an address"
    if isinstance(parsed, ipaddress.IPv4Address):
        return _first_match(parsed, _IPV4_TABLE)
    if "%" in address:
        return "link-local"
    if parsed in _GLOBAL_IPV6:
        return _first_match(parsed, _IPV6_TABLE)
    return _first_match(parsed, _IPV6_NAME_TABLE) or "not global unicast"


def _first_match(address: Address, table: tuple[tuple[Network, str], ...]) -> str | None:
    return next((name for network, name in table if address in network), None)


class AddressPolicy:
    """The table, with the ranges that the operator opened."""

    def __init__(self, allowed: Iterable[Network] = ()) -> None:
        self._allowed = tuple(allowed)
        self._refusals: dict[str, str | None] = {}

    def refusal(self, address: str) -> str | None:
        """Say why an address may not be dialled; None when it may."""
        try:
            return self._refusals[address]
        except KeyError:
            pass
        if len(self._refusals) >= _MOST_REMEMBERED:
            self._refusals.clear()
        reason = self._refusals[address] = self._judge(address)
        return reason

    def _judge(self, address: str) -> str | None:
        reason = closed_reason(address)
        if reason is None or reason == "not an address" or "%" in address:
            return reason
        parsed = ipaddress.ip_address(address)
        return None if any(parsed in network for network in self._allowed) else reason
