"""Redirects that loop, never end, leave the allowlist or lead inside: each hop is judged as if it were asked for."""

import ssl

import pytest
import trustme

from index.documents import Outcome
from tests.conftest import OpenCrawl
from tests.fakes.fetching import Trap, fetching
from tests.fakes.web import FakeWeb, Site, entry

DOCUMENT = b'{"entries": []}'
# The fake web alone is open; the trap listens on the same machine and is not.
INSIDE = {"allow_private": ["127.0.0.1/32"], "hosts": {"*.example": "127.0.0.1", "inside.example": Trap.ADDRESS}}
REDIRECTS = [301, 302, 303, 307, 308]


def chain(site: Site, hops: int, status: int = 302) -> None:
    """Lead from /hop/0 over so many redirects to a document."""
    for number in range(hops):
        site.redirect(f"/hop/{number}", f"/hop/{number + 1}", status)
    site.page(f"/hop/{hops}", DOCUMENT)


@pytest.mark.parametrize("status", REDIRECTS)
async def test_every_kind_of_redirect_is_followed_with_get_and_recorded(web: FakeWeb, status: int) -> None:
    site = web.site("acme")
    chain(site, 2, status)
    async with fetching(site) as fetch:
        seen = await fetch.get(site.url("/hop/0"))
    assert (seen.outcome, seen.body) == (Outcome.FETCHED, DOCUMENT)
    assert (seen.url, seen.final_url) == (site.url("/hop/0"), site.url("/hop/2"))
    assert [(hop.url, hop.status) for hop in seen.hops] == [
        (site.url("/hop/0"), status),
        (site.url("/hop/1"), status),
    ]
    assert {request.method for request in site.requests()} == {"GET"}


@pytest.mark.parametrize(("hops", "outcome"), [(5, Outcome.FETCHED), (6, Outcome.UNREACHABLE)])
async def test_five_redirects_are_followed_and_no_sixth(web: FakeWeb, hops: int, outcome: Outcome) -> None:
    site = web.site("acme")
    chain(site, hops)
    async with fetching(site) as fetch:
        seen = await fetch.get(site.url("/hop/0"))
    assert seen.outcome is outcome
    assert seen.reason == ("" if hops == 5 else "too_many_redirects")
    assert len(site.requests()) == 6


async def test_redirects_that_never_repeat_end_too(web: FakeWeb) -> None:
    site = web.site("acme")

    async def onwards(request: object) -> object:
        from aiohttp import web as server

        return server.Response(status=302, headers={"Location": f"/{len(site.requests())}"})

    site.fallback = onwards  # type: ignore[assignment]
    async with fetching(site) as fetch:
        seen = await fetch.get(site.url("/start"))
    assert (seen.outcome, seen.reason) == (Outcome.UNREACHABLE, "too_many_redirects")
    assert len(site.requests()) == 6


@pytest.mark.parametrize(
    "back",
    ["/a", "./a", "/x/../a", "/a#again", "{capitals}/a", " /a "],
    ids=["path", "dot", "dots", "fragment", "capitals", "spaces"],
)
async def test_a_loop_is_noticed_however_its_address_is_written(web: FakeWeb, back: str) -> None:
    site = web.site("acme")
    site.redirect("/a", "/b")
    site.redirect("/b", back.format(capitals=f"HTTP://ACME.Example:{web.port}"))
    async with fetching(site) as fetch:
        seen = await fetch.get(site.url("/a"))
    assert (seen.outcome, seen.reason) == (Outcome.UNREACHABLE, "redirect_loop")
    assert len(site.requests()) == 2


async def test_a_page_that_redirects_to_itself_is_a_loop(web: FakeWeb) -> None:
    site = web.site("acme")
    site.redirect("/a", "/a")
    async with fetching(site) as fetch:
        seen = await fetch.get(site.url("/a"))
    assert (seen.outcome, seen.reason) == (Outcome.UNREACHABLE, "redirect_loop")
    assert len(site.requests()) == 1


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("next.json", "/catalog/next.json"),
        ("../next.json", "/next.json"),
        ("/next.json", "/next.json"),
        ("?v=2", "/catalog/start.json?v=2"),
        ("//acme.example:{port}/next.json", "/next.json"),
        ("next.json#part", "/catalog/next.json"),
        ("a b.json", "/catalog/a%20b.json"),
        ("catálogo.json", "/catalog/cat%C3%A1logo.json"),
        ("/\\inside.example/x", "/%5Cinside.example/x"),
    ],
)
async def test_a_location_resolves_against_the_address_it_came_from(web: FakeWeb, location: str, path: str) -> None:
    site = web.site("acme")
    site.redirect("/catalog/start.json", location.format(port=web.port))
    site.page(path, DOCUMENT)
    async with fetching(site) as fetch:
        seen = await fetch.get(site.url("/catalog/start.json"))
    assert (seen.outcome, seen.final_url) == (Outcome.FETCHED, site.url(path))


# --- where no redirect leads ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("authority", ["stranger.example:{port}", "stranger.example", "acme.example", "acme.example:1"])
async def test_a_redirect_off_the_allowlist_names_its_target_and_asks_nothing_there(
    web: FakeWeb, authority: str
) -> None:
    """Another port of the same host is another origin too."""
    site = web.site("acme")
    target = f"http://{authority.format(port=web.port)}/ard.json"
    site.redirect("/ard.json", target)
    web.site("stranger").page("/ard.json", DOCUMENT)
    async with fetching(site) as fetch:
        seen = await fetch.get(site.url("/ard.json"))
    assert (seen.outcome, seen.reason) == (Outcome.REFUSED, "redirect_offsite")
    assert "is not on the allowlist" in seen.detail
    assert seen.final_url == target
    assert [request.host for request in web.seen] == ["acme.example"]


FOREIGN = [
    "file:///etc/hostname",
    "FILE:///etc/hostname",
    "ftp://acme.example/ard.json",
    "gopher://acme.example/",
    "data:application/json,{}",
    "javascript:alert(1)",
    "ws://acme.example/",
    "unix:///var/run/docker.sock",
    "mailto:me@acme.example",
    "http://",
    "https://",
    "http:///ard.json",
    "https:///ard.json",
    "http:ard.json",
    "http://[::1",
    "http://acme.example:99999/",
    "http://acme.example:0/",
    "http://acme.example:port/",
    "http://" + "a" * 3000 + ".example/",
]


@pytest.mark.parametrize("location", FOREIGN, ids=lambda value: value[:30])
async def test_what_is_no_web_address_is_refused(web: FakeWeb, location: str) -> None:
    site = web.site("acme")
    site.redirect("/ard.json", location)
    async with fetching(site) as fetch:
        seen = await fetch.get(site.url("/ard.json"))
    reason = "url" if location.startswith("http") else "scheme"
    assert (seen.outcome, seen.reason, seen.status) == (Outcome.REFUSED, reason, 302)
    assert seen.detail.isascii()
    assert seen.detail.isprintable()
    assert len(seen.detail) < 700
    assert len(site.requests()) == 1


@pytest.mark.parametrize(
    "location",
    [
        "http://me:secret@acme.example:{port}/next.json",
        "http://me@acme.example:{port}/next.json",
        "http://:@acme.example:{port}/next.json",
        "//me:secret@acme.example:{port}/next.json",
    ],
)
async def test_no_redirect_makes_us_send_credentials(web: FakeWeb, location: str) -> None:
    site = web.site("acme")
    site.redirect("/ard.json", location.format(port=web.port))
    site.page("/next.json", DOCUMENT)
    async with fetching(site) as fetch:
        seen = await fetch.get(site.url("/ard.json"))
    assert (seen.outcome, seen.reason) == (Outcome.REFUSED, "credentials")
    assert [request.path for request in site.requests()] == ["/ard.json"]


SPELLINGS = {
    "dotted": "http://127.0.0.66:{port}/",
    "with a final dot": "http://127.0.0.66.:{port}/",
    "in three parts": "http://127.0.66:{port}/",
    "in two parts": "http://127.66:{port}/",
    "as one number": "http://2130706498:{port}/",
    "as one hexadecimal number": "http://0x7f000042:{port}/",
    "as one octal number": "http://017700000102:{port}/",
    "in hexadecimal parts": "http://0x7f.0x0.0x0.0x42:{port}/",
    "in octal parts": "http://0177.0.0.0102:{port}/",
    "with leading zeros": "http://127.000.000.066:{port}/",
    "in full-width digits": "http://１２７.０.０.６６:{port}/",
    "with ideographic dots": "http://127。0。0。66:{port}/",
    "in circled digits": "http://①②⑦.⓪.⓪.⑥⑥:{port}/",
    "percent-encoded": "http://%31%32%37.0.0.66:{port}/",
    "without a scheme": "//127.0.0.66:{port}/",
    "with a scheme in capitals": "HTTP://127.0.0.66:{port}/",
    "mapped into IPv6": "http://[::ffff:127.0.0.66]:{port}/",
    "mapped into IPv6 in hexadecimal": "http://[::ffff:7f00:42]:{port}/",
    "compatible with IPv6": "http://[::127.0.0.66]:{port}/",
    "embedded by NAT64": "http://[64:ff9b::7f00:42]:{port}/",
    "embedded by 6to4": "http://[2002:7f00:42::1]:{port}/",
    "loopback in IPv6": "http://[::1]:{port}/",
    "loopback in IPv6, long": "http://[0:0:0:0:0:0:0:1]:{port}/",
    "loopback in IPv6 with a zone": "http://[::1%25lo]:{port}/",
    "unspecified": "http://0.0.0.0:{port}/",
    "unspecified, short": "http://0:{port}/",
    "unspecified in IPv6": "http://[::]:{port}/",
    "localhost": "http://localhost:{port}/",
    "localhost with a final dot": "http://LocalHost.:{port}/",
    "below localhost": "http://acme.localhost:{port}/",
    "in an address service": "http://127.0.0.66.nip.io:{port}/",
    "cloud metadata": "http://169.254.169.254/latest/meta-data/",
    "cloud metadata by name": "http://metadata.google.internal/computeMetadata/v1/",
    "behind a name of ours": "http://acme.example@127.0.0.66:{port}/",
    "before a name of ours": "http://127.0.0.66:{port}@acme.example/",
    "before a name of ours, encoded": "http://127.0.0.66%40acme.example:{port}/",
    "cut off by NUL": "http://127.0.0.66%00.acme.example:{port}/",
    "with a backslash": "http://127.0.0.66\\@acme.example:{port}/",
    "with backslashes for slashes": "http:\\\\127.0.0.66:{port}\\",
    "with one slash": "http:/127.0.0.66:{port}/",
    "with three slashes": "http:///127.0.0.66:{port}/",
}


@pytest.mark.parametrize("name", SPELLINGS)
async def test_no_redirect_leads_inside_however_the_address_is_written(web: FakeWeb, name: str) -> None:
    site = web.site("acme")
    async with Trap() as trap, fetching(site, network=INSIDE) as fetch:
        site.redirect("/ard.json", SPELLINGS[name].format(port=trap.port))
        seen = await fetch.get(site.url("/ard.json"))
        assert trap.reached == 0
    assert seen.outcome is Outcome.REFUSED
    assert [(request.host, request.path) for request in web.seen] == [("acme.example", "/ard.json")]


@pytest.mark.parametrize("name", SPELLINGS)
async def test_the_guard_alone_would_hold_too(web: FakeWeb, name: str) -> None:
    """Even if every check before the connection failed, no closed address is dialled."""
    spelling = SPELLINGS[name].removeprefix("//")
    url = spelling if ":" in spelling.partition("/")[0] else f"http://{spelling}"
    async with Trap() as trap, fetching(web.site("acme"), network={**INSIDE, "nameservers": ["127.0.0.66"]}) as fetch:
        seen = await fetch.get_unasked(url.format(port=trap.port))
        assert trap.reached == 0
    assert seen.outcome in (Outcome.REFUSED, Outcome.UNREACHABLE)
    assert seen.reason in ("address", "url", "dns", "connect", "protocol_error", "timeout_connect")


@pytest.mark.parametrize("status", REDIRECTS)
async def test_a_listed_name_that_resolves_inside_is_refused_at_the_connection(web: FakeWeb, status: int) -> None:
    site = web.site("acme")
    async with Trap() as trap:
        inside = f"http://inside.example:{trap.port}"
        site.redirect("/ard.json", f"{inside}/ard.json", status)
        async with fetching(site, inside, network=INSIDE) as fetch:
            direct = await fetch.get(f"{inside}/ard.json")
            moved = await fetch.get(site.url("/ard.json"))
        assert trap.reached == 0
    for seen in (direct, moved):
        assert (seen.outcome, seen.reason) == (Outcome.REFUSED, "address")
        assert seen.detail == "127.0.0.66 is loopback"


# --- from https to http -----------------------------------------------------------------------------------------------


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.mark.parametrize(
    "location",
    ["http://{host}:{port}/next.json", "HTTP://{host}:{port}/next.json", "  hTTp://{host}:{port}/next.json"],
)
@pytest.mark.parametrize("host", ["acme.example", "other.example"])
async def test_no_redirect_leads_from_https_to_http(
    web: FakeWeb, authority: trustme.CA, tmp_path: object, location: str, host: str
) -> None:
    """Not even where plain http is allowed and the target is listed."""
    plain = web.site(host)
    plain.page("/next.json", DOCUMENT)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("acme.example").configure_cert(context)
    authority.cert_pem.write_to_path(f"{tmp_path}/ca.pem")
    async with FakeWeb(tls=context) as secure:
        site = secure.site("acme")
        site.redirect("/ard.json", location.format(host=host, port=web.port))
        async with fetching(site, plain, network={"extra_ca_file": f"{tmp_path}/ca.pem"}) as fetch:
            seen = await fetch.get(site.url("/ard.json"))
    assert (seen.outcome, seen.reason) == (Outcome.REFUSED, "redirect_downgrade")
    assert f"http://{host}" in seen.detail
    assert web.seen == []


async def test_plain_http_is_refused_unless_the_operator_allows_it(web: FakeWeb) -> None:
    async with fetching("https://acme.example", network={"allow_http": False}) as fetch:
        seen = await fetch.get(web.site("acme").url("/ard.json"))
    assert (seen.outcome, seen.reason) == (Outcome.REFUSED, "scheme")
    assert web.seen == []


# --- the same through a whole crawl -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("http://169.254.169.254/latest/meta-data/", "address"),
        ("http://127.0.0.66:{trap}/", "address"),
        ("http://inside.example:{trap}/ard.json", "redirect_offsite"),
        ("file:///etc/hostname", "scheme"),
    ],
)
async def test_fr_102_a_redirect_into_the_private_network_is_refused_and_keeps_the_entries(
    web: FakeWeb, crawl_sqlite: OpenCrawl, location: str, reason: str
) -> None:
    site = web.site("acme")
    site.manifest(entry("echo"))
    async with Trap() as trap, crawl_sqlite(site, network=INSIDE) as crawl:
        await crawl.run()
        site.redirect("/.well-known/ard.json", location.format(trap=trap.port))
        await crawl.run()
        document = (await crawl.documents(site))["/.well-known/ard.json"]
        assert (document.outcome, document.reason) == ("refused", reason)
        assert document.failing_since is not None
        assert await crawl.identifiers() == ["urn:air:acme.example:tool:echo"]
        assert trap.reached == 0


async def test_fr_103_addresses_inside_documents_pass_the_same_checks(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    """Of all the addresses in a document only nested catalogs are fetched, and only those that the allowlist admits."""
    site = web.site("acme")
    async with Trap() as trap:
        bait = f"http://127.0.0.66:{trap.port}"
        named = f"http://inside.example:{trap.port}"
        site.manifest(
            entry("card", url=f"{bait}/card.json", iconUrl=f"{bait}/icon.png", documentationUrl=f"{bait}/docs"),
            entry("provider", provider={"url": f"{bait}/provider"}, **{"@context": f"{bait}/context.jsonld"}),
            entry("signed", trustManifest={"identity": "acme.example", "signatures": [{"header": {"jku": bait}}]}),
            entry("nested", type="application/ai-catalog+json", url=f"{bait}/ard.json"),
            entry("named", type="application/ai-catalog+json", url=f"{named}/ard.json"),
            entry("schema", **{"$schema": f"{bait}/schema.json"}),
        )
        site.html("/", f'<link rel="ard" href="{bait}/a.json"><link rel="icon stylesheet" href="{bait}/style.css">')
        site.robots(f"Agentmap: {bait}/b.json\nSitemap: {bait}/sitemap.xml\n")
        site.pages["/.well-known/ard.json"].headers["Link"] = f'<{bait}/c.json>; rel="ard"'  # type: ignore[union-attr]
        async with crawl_sqlite(site, network=INSIDE) as crawl:
            await crawl.run()
            decisions = {lead.url.removeprefix(bait): lead.decision for lead in await crawl.leads(site)}
            listed = await crawl.identifiers()
        assert trap.reached == 0
    assert decisions == {
        "/ard.json": "address",
        "/a.json": "address",
        "/b.json": "address",
        "/c.json": "address",
        f"{named}/ard.json": "port",
    }
    assert [name.rpartition(":")[2] for name in listed] == ["card", "provider", "schema", "signed"]


async def test_robots_txt_is_held_to_the_same_redirect_rules(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    """Five hops are followed, also to other hosts, and the rules apply to the origin that was asked (RFC 9309)."""
    site, other = web.site("acme"), web.site("other")
    site.manifest(entry("echo"))
    for number in range(4):
        site.redirect("/robots.txt" if number == 0 else f"/r/{number}", f"/r/{number + 1}")
    site.redirect("/r/4", other.url("/rules.txt"))
    other.page("/rules.txt", "User-agent: *\nDisallow: /.well-known/\n")
    async with crawl_sqlite(site, other) as crawl:
        await crawl.run(site)
        documents = await crawl.documents(site)
        assert len(documents["/robots.txt"].hops) == 5
        assert (documents["/.well-known/ard.json"].outcome, documents["/.well-known/ard.json"].reason) == (
            "disallowed",
            "robots",
        )
        assert site.requests("/.well-known/ard.json") == []


@pytest.mark.parametrize("kind", ["loop", "long"])
async def test_a_robots_txt_that_no_end_of_redirects_leads_to_counts_as_not_there(
    web: FakeWeb, crawl_sqlite: OpenCrawl, kind: str
) -> None:
    """RFC 9309 2.3.1.2; a loop is the same thing without the waiting."""
    site = web.site("acme")
    site.manifest(entry("echo"))
    site.redirect("/robots.txt", "/r/0")
    for number in range(6):
        site.redirect(f"/r/{number}", "/robots.txt" if kind == "loop" else f"/r/{number + 1}")
    site.page("/r/6", "User-agent: *\nDisallow: /\n")
    async with crawl_sqlite(site) as crawl:
        await crawl.run()
        document = (await crawl.documents(site))["/robots.txt"]
        assert document.reason == ("redirect_loop" if kind == "loop" else "too_many_redirects")
        assert await crawl.identifiers() == ["urn:air:acme.example:tool:echo"]
        looked = [request for request in site.requests() if request.path.startswith(("/r/", "/robots.txt"))]
        assert len(looked) == (2 if kind == "loop" else 6)


async def test_a_robots_txt_that_redirects_inside_forbids_everything(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    site = web.site("acme")
    site.manifest(entry("echo"))
    async with Trap() as trap, crawl_sqlite(site, network=INSIDE) as crawl:
        site.redirect("/robots.txt", f"http://127.0.0.66:{trap.port}/robots.txt")
        await crawl.run()
        assert trap.reached == 0
        documents = await crawl.documents(site)
        assert documents["/robots.txt"].outcome == "refused"
        assert documents["/.well-known/ard.json"].reason == "robots_unreachable"
        assert await crawl.identifiers() == []
