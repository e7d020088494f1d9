"""Which addresses may be dialled."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.policy.addresses import AddressPolicy, closed_reason


def first_and_last(network: str) -> list[str]:
    block = ipaddress.ip_network(network)
    return [str(block[0]), str(block[-1])]


@pytest.mark.parametrize(
    ("network", "reason"),
    [
        ("0.0.0.0/8", "unspecified"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "carrier NAT"),
        ("127.0.0.0/8", "loopback"),
        ("168.63.129.16/32", "cloud metadata"),
        ("169.254.169.254/32", "cloud metadata"),
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
        ("2001::/23", "protocol assignments"),
        ("2001:db8::/32", "documentation"),
        ("2002::/16", "6to4"),
        ("2620:4f:8000::/48", "AS112"),
        ("3fff::/20", "documentation"),
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("::ffff:0:0/96", "IPv4-mapped"),
        ("64:ff9b::/96", "NAT64"),
        ("64:ff9b:1::/48", "NAT64"),
        ("fd00:ec2::254/128", "cloud metadata"),
        ("fc00::/7", "unique local"),
        ("fe80::/10", "link-local"),
        ("ff00::/8", "multicast"),
    ],
)
def test_every_closed_range_is_closed_from_its_first_to_its_last_address(network: str, reason: str) -> None:
    assert [closed_reason(address) for address in first_and_last(network)] == [reason, reason]


def test_link_local_is_closed_and_names_the_metadata_service_in_it() -> None:
    reasons = [closed_reason(f"169.254.{rest}") for rest in ("0.0", "169.253", "169.254", "169.255", "255.255")]
    assert reasons == ["link-local", "link-local", "cloud metadata", "link-local", "link-local"]


@pytest.mark.parametrize(
    "address",
    [
        "1.0.0.0",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "168.63.129.15",
        "168.63.129.17",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.0.3.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "8.8.8.8",
        "2000::",
        "2001:200::",
        "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff",
        "2001:db9::",
        "2003::",
        "2606:4700::1111",
        "2620:4f:7fff:ffff::",
        "2620:4f:8001::",
        "3ffe:ffff::",
        "3fff:1000::",
    ],
)
def test_what_lies_beside_a_closed_range_is_open(address: str) -> None:
    assert closed_reason(address) is None


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("::ffff:127.0.0.1", "IPv4-mapped"),
        ("::ffff:8.8.8.8", "IPv4-mapped"),
        ("::ffff:7f00:1", "IPv4-mapped"),
        ("0:0:0:0:0:ffff:a9fe:a9fe", "IPv4-mapped"),
        ("::127.0.0.1", "not global unicast"),
        ("64:ff9b::127.0.0.1", "NAT64"),
        ("64:ff9b:1::a9fe:a9fe", "NAT64"),
        ("2002:7f00:1::", "6to4"),
        ("2002:a9fe:a9fe::1", "6to4"),
        ("2001:0:7f00:1::", "protocol assignments"),
        ("100::1", "not global unicast"),
        ("5f00::1", "not global unicast"),
        ("fec0::1", "not global unicast"),
        ("4000::1", "not global unicast"),
        ("1fff::1", "not global unicast"),
    ],
)
def test_addresses_that_carry_or_hide_another_one_are_closed(address: str, reason: str) -> None:
    assert closed_reason(address) == reason


@pytest.mark.parametrize("address", ["fe80::1%eth0", "fe80::1%1", "2606:4700::1111%eth0", "::1%lo"])
def test_an_address_with_a_zone_is_link_local_whatever_it_is(address: str) -> None:
    assert closed_reason(address) == "link-local"
    assert AddressPolicy([ipaddress.ip_network("::/0")]).refusal(address) == "link-local"


@pytest.mark.parametrize(
    "text",
    ["", "localhost", "0x7f.1", "127.1", "2130706433", "0177.0.0.1", "127.0.0.01", "1.2.3.4.5", "1.2.3.4%1", "1.2.3.4 ",
     "１２７.0.0.1", "٣.0.0.1", "[::1]", "::g", "1::2::3", "%eth0"],
)  # fmt: skip
def test_what_is_no_strict_literal_is_no_address(text: str) -> None:
    assert closed_reason(text) == "not an address"
    everything = [ipaddress.ip_network("0.0.0.0/0"), ipaddress.ip_network("::/0")]
    assert AddressPolicy(everything).refusal(text) == "not an address"


@pytest.mark.parametrize(
    ("address", "refusal"),
    [
        ("127.0.0.1", None),
        ("127.255.255.255", None),
        ("10.1.2.3", None),
        ("10.1.2.4", "private"),
        ("fd00::1", None),
        ("fc00::1", "unique local"),
        ("169.254.169.254", "cloud metadata"),
        # Opening an IPv4 range opens no IPv6 form of it.
        ("::ffff:127.0.0.1", "IPv4-mapped"),
        ("64:ff9b::127.0.0.1", "NAT64"),
        ("::1", "loopback"),
        ("8.8.8.8", None),
    ],
)
def test_the_operator_opens_exactly_the_ranges_that_are_named(address: str, refusal: str | None) -> None:
    opened = [ipaddress.ip_network(text) for text in ("127.0.0.0/8", "10.1.2.3/32", "fd00::/8")]
    assert AddressPolicy(opened).refusal(address) == refusal


def test_with_nothing_opened_the_policy_is_the_table() -> None:
    assert AddressPolicy().refusal("127.0.0.1") == "loopback"
    assert AddressPolicy().refusal("8.8.8.8") is None


@given(st.integers(0, 2**32 - 1).map(ipaddress.IPv4Address) | st.integers(0, 2**128 - 1).map(ipaddress.IPv6Address))
def test_nothing_is_open_that_the_standard_library_calls_private(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if closed_reason(str(address)) is None:
        verdicts = [address.is_private, address.is_loopback, address.is_link_local, address.is_multicast]
        assert not any(verdicts)
