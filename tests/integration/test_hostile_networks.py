"""Names that resolve to the wrong place, and servers that cannot prove who they are."""

import asyncio
import ipaddress
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme

from crawler.fetch.client import FetchClient, Limits
from crawler.fetch.limiter import Limiter
from crawler.policy.addresses import AddressPolicy
from crawler.policy.scope import Scope
from index.documents import Outcome
from tests.fakes.clock import FakeClock
from tests.fakes.dns import NXDOMAIN, SERVFAIL, FakeDns
from tests.fakes.fetching import Fetching, Trap, answer, fetching
from tests.fakes.web import FakeWeb, RawServer

DOCUMENT = b'{"entries": []}'
OPEN = (ipaddress.ip_network("127.0.0.1/32"),)


@asynccontextmanager
async def resolving(dns: FakeDns, *, deadline_s: float = 2.0) -> AsyncIterator[Fetching]:
    """Open a client that asks this name server and may dial the fake web, not the trap."""
    clock = FakeClock()
    limits = Limits(headers=timedelta(seconds=deadline_s), total=timedelta(seconds=deadline_s))
    client = FetchClient(
        clock=clock,
        limiter=Limiter(clock),
        addresses=AddressPolicy(OPEN),
        user_agent="ardvark/test (+https://registry.example/crawler)",
        limits=limits,
        nameservers=(dns.address,),
    )
    async with client:
        yield Fetching(client, Scope())


# --- names ------------------------------------------------------------------------------------------------------------


async def test_fr_105_a_name_is_resolved_once_and_the_checked_address_is_dialled(web: FakeWeb) -> None:
    """A resolver that answers the check with one address and the connection with another gains nothing."""
    web.site("rebind.test").page("/ard.json", DOCUMENT)
    answers = {"rebind.test": [["127.0.0.1"], [Trap.ADDRESS]]}
    async with FakeDns(answers) as dns, Trap(web.port) as trap:
        async with resolving(dns) as fetch:
            for _ in range(3):
                seen = await fetch.get_unasked(f"http://rebind.test:{web.port}/ard.json")
                assert (seen.outcome, seen.peer) == (Outcome.FETCHED, "127.0.0.1")
            assert dns.asked["rebind.test"] == 1
        # A new client asks again, and now the answer is the closed address.
        async with resolving(dns) as fetch:
            seen = await fetch.get_unasked(f"http://rebind.test:{web.port}/ard.json")
            assert (seen.outcome, seen.reason, seen.detail) == (Outcome.REFUSED, "address", "127.0.0.66 is loopback")
        assert trap.reached == 0


@pytest.mark.parametrize(
    ("addresses", "closed"),
    [
        ([Trap.ADDRESS], "127.0.0.66 is loopback"),
        (["127.0.0.1", Trap.ADDRESS], "127.0.0.66 is loopback"),
        ([Trap.ADDRESS, "127.0.0.1"], "127.0.0.66 is loopback"),
        (["127.0.0.1", "::1"], "::1 is loopback"),
        (["::ffff:127.0.0.1"], "::ffff:127.0.0.1 is IPv4-mapped"),
        (["169.254.169.254"], "169.254.169.254 is cloud metadata"),
        (["fd00:ec2::254"], "fd00:ec2::254 is cloud metadata"),
        (["10.1.2.3"], "10.1.2.3 is private"),
        (["100.64.0.1"], "100.64.0.1 is carrier NAT"),
        (["0.0.0.0"], "0.0.0.0 is unspecified"),
        (["224.0.0.1"], "224.0.0.1 is multicast"),
        (["203.0.113.10"], "203.0.113.10 is documentation"),
        (["fe80::1"], "fe80::1 is link-local"),
    ],
)
async def test_one_closed_address_among_the_answers_refuses_the_name(
    web: FakeWeb, addresses: list[str], closed: str
) -> None:
    async with FakeDns({"mixed.test": [addresses]}) as dns, Trap(web.port) as trap, resolving(dns) as fetch:
        seen = await fetch.get_unasked(f"http://mixed.test:{web.port}/ard.json")
        assert (seen.outcome, seen.reason) == (Outcome.REFUSED, "address")
        assert seen.detail.replace("::ffff:7f00:1", "::ffff:127.0.0.1") == closed
        assert trap.reached == 0
        assert web.seen == []


@pytest.mark.parametrize("answer_", [NXDOMAIN, SERVFAIL, []], ids=["no such name", "failure", "no address"])
async def test_a_name_without_address_is_unreachable_and_looked_up_once(answer_: list[str] | int) -> None:
    async with FakeDns({"nowhere.test": [answer_]}) as dns, resolving(dns) as fetch:
        seen = await fetch.get_unasked("http://nowhere.test:8080/ard.json")
        assert (seen.outcome, seen.reason) == (Outcome.UNREACHABLE, "dns")
        assert seen.detail
        # Each name server of the system is tried; that is the resolver's business, a second look-up would be ours.
        assert dns.asked["nowhere.test"] <= 3


async def test_a_silent_name_server_is_cut_off_by_the_deadline() -> None:
    async with FakeDns({}, silent=True) as dns, resolving(dns, deadline_s=0.3) as fetch:
        loop = asyncio.get_running_loop()
        began = loop.time()
        seen = await fetch.get_unasked("http://slow.test:8080/ard.json")
        assert (seen.outcome, seen.reason) == (Outcome.UNREACHABLE, "timeout_connect")
        assert loop.time() - began < 2


# --- certificates -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> str:
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    return str(tmp_path / "ca.pem")


def showing(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


async def test_a_certificate_of_the_extra_authority_is_accepted(authority: trustme.CA, ca_file: str) -> None:
    async with FakeWeb(tls=showing(authority.issue_cert("acme.example"))) as secure:
        site = secure.site("acme")
        site.page("/ard.json", DOCUMENT)
        async with fetching(site, network={"extra_ca_file": ca_file, "allow_http": False}) as fetch:
            seen = await fetch.get(site.url("/ard.json"))
    assert (seen.outcome, seen.body) == (Outcome.FETCHED, DOCUMENT)


async def test_an_authority_that_nobody_named_is_not_accepted(authority: trustme.CA) -> None:
    async with FakeWeb(tls=showing(authority.issue_cert("acme.example"))) as secure:
        site = secure.site("acme")
        async with fetching(site) as fetch:
            seen = await fetch.get(site.url("/ard.json"))
        assert secure.seen == []
    assert (seen.outcome, seen.reason) == (Outcome.UNREACHABLE, "tls")
    assert "certificate" in seen.detail


LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
UNFIT: dict[str, Callable[[trustme.CA], trustme.LeafCert]] = {
    "of another host": lambda authority: authority.issue_cert("other.example"),
    "of the domain above": lambda authority: authority.issue_cert("example"),
    "with a pattern two levels up": lambda authority: authority.issue_cert("*.test"),
    "of the address only": lambda authority: authority.issue_cert("127.0.0.1"),
    "with the host as common name only": lambda authority: authority.issue_cert(
        "other.example", common_name="acme.example"
    ),
    "that has expired": lambda authority: authority.issue_cert(
        "acme.example", not_before=LONG_AGO, not_after=LONG_AGO + timedelta(days=1)
    ),
    "that is not valid yet": lambda authority: authority.issue_cert(
        "acme.example", not_before=datetime(2090, 1, 1, tzinfo=UTC), not_after=datetime(2091, 1, 1, tzinfo=UTC)
    ),
    "of another authority": lambda _: trustme.CA().issue_cert("acme.example"),
}


@pytest.mark.parametrize("name", UNFIT)
async def test_an_unfit_certificate_is_refused_before_anything_is_asked(
    authority: trustme.CA, ca_file: str, name: str
) -> None:
    async with FakeWeb(tls=showing(UNFIT[name](authority))) as secure:
        site = secure.site("acme")
        site.page("/ard.json", DOCUMENT)
        async with fetching(site, network={"extra_ca_file": ca_file}) as fetch:
            seen = await fetch.get(site.url("/ard.json"))
        assert secure.seen == []
    assert (seen.outcome, seen.reason, seen.body) == (Outcome.UNREACHABLE, "tls", b"")
    assert seen.detail.isprintable()


async def test_an_http_server_where_https_is_expected_is_a_failure_of_tls() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(answer(b"", status="400 Bad Request"))

    async with RawServer(talk) as server, fetching(f"https://raw.example:{server.port}") as fetch:
        seen = await fetch.get(f"https://raw.example:{server.port}/ard.json")
    assert (seen.outcome, seen.reason) == (Outcome.UNREACHABLE, "tls")


async def test_a_tls_handshake_that_never_ends_meets_the_deadline() -> None:
    async def talk(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    network = {"connect_timeout": "300ms", "header_timeout": "300ms"}
    async with (
        RawServer(talk) as server,
        fetching(f"https://raw.example:{server.port}", network=network) as fetch,
    ):
        seen = await fetch.get(f"https://raw.example:{server.port}/ard.json")
        assert (seen.outcome, seen.reason) == (Outcome.UNREACHABLE, "timeout_connect")
        assert server.connections == 2
