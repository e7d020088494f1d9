"""`GET /agents/{identifier}`: one entry, exact and as published, and how it may be kept (ARD 5.3.4)."""

import json

import pytest

from tests.conftest import OpenCrawl
from tests.fakes.registry import serving
from tests.fakes.web import FakeWeb, entry

ECHO = "urn:air:origin.example:tool:echo"


async def test_an_entry_is_given_byte_for_byte_as_published(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    """Nothing is normalised, reordered, escaped or left out; neither score nor source is added."""
    texts = [
        '{ "type" : "application/mcp-server",\n\t"identifier":"urn:air:origin.example:tool:a", "displayName":'
        '"A\\u00e9",\r\n  "url":"https:\\/\\/origin.example\\/a","ex:unknown":{"n":1.50,"big":1234567890123456789012}}',
        '{"displayName":"Zoë – 数 🙂","identifier":"urn:air:origin.example:tool:b","type":"a/b","data":{"x":[1,2]},'
        '"representativeQueries":["q"],"@context":"https://unknown.example/context","tags":[]}',
        '{"identifier":"urn:air:origin.example:tool:c","displayName":"C","type":"x","url":"ftp://origin.example/c",'
        '"score":7,"source":"here","ex:nul":"a\\u0000b","metadata":{"deep":{"er":[null]}}}',
    ]
    site = web.site("origin")
    body = '{"entries" : [' + " ,\n".join(texts) + "]}"
    site.page("/.well-known/ard.json", body, headers={"Content-Type": "application/json"})
    async with serving(open_crawl, site) as registry:
        for name, text in zip("abc", texts, strict=True):
            answer = await registry.get(f"/api/v1/agents/urn:air:origin.example:tool:{name}")
            assert answer.status == 200
            assert answer.body == text.encode()
            assert answer.headers["content-type"].startswith("application/json")


async def test_what_cannot_be_served_as_published_says_what_was_adapted(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    site = web.site("origin")
    site.manifest(
        {"identifier": "urn:air:origin.example:tool:a", "type": "a/b", "url": "cards/a.json", "ex:x": 1},
        {"identifier": "urn:ai:origin.example:tool:b", "displayName": "B", "mediaType": "a/b", "inline": {"n": 1}},
    )
    async with serving(open_crawl, site) as registry:
        first = (await registry.get("/api/v1/agents/urn:air:origin.example:tool:a")).json
        assert first["url"] == site.url("/.well-known/cards/a.json")
        assert first["displayName"] == "a"
        assert first["ex:x"] == 1
        assert sorted(first["ardvark:adapted"]) == ["displayName", "url"]
        assert first["@context"] == [{"ardvark": "urn:ardvark:terms:"}]
        second = (await registry.get("/api/v1/agents/urn:air:origin.example:tool:b")).json
        assert second["identifier"] == "urn:air:origin.example:tool:b"
        assert (second["type"], second["data"]) == ("a/b", {"n": 1})
        assert not {"mediaType", "inline"} & set(second)
        assert sorted(second["ardvark:adapted"]) == ["data", "identifier", "type"]


# --- FR-118: the identifier in the path -------------------------------------------------------------------------------

PATHS = [
    ("urn:air:origin.example:tool:echo", 200),
    ("urn%3Aair%3Aorigin.example%3Atool%3Aecho", 200),
    ("urn%3aair%3aorigin.example%3atool%3aecho", 200),
    ("urn:air%3Aorigin.example:tool%3Aecho", 200),
    ("%75rn:air:origin.example:tool:ech%6F", 200),
    ("%75%72%6e%3a%61%69%72%3a%6f%72%69%67%69%6e%2e%65%78%61%6d%70%6c%65%3a%74%6f%6f%6c%3a%65%63%68%6f", 200),
    # Decoded once it is still encoded, so it is no identifier.
    ("urn%253Aair%253Aorigin.example%253Atool%253Aecho", 400),
    ("urn:air:origin.example:tool:ech%256F", 400),
    ("urn:air:origin.example:tool:echo%25", 400),
    # Exact, case and all.
    ("urn%3Aair%3AORIGIN.example%3Atool%3Aecho", 404),
    ("urn:air:origin.example:tool:Echo", 404),
    ("URN:air:origin.example:tool:echo", 400),
    ("urn:AIR:origin.example:tool:echo", 400),
    ("urn:ai:origin.example:tool:echo", 400),
    # Not percent-encoding, or not UTF-8.
    ("urn%3Aair%ZZ", 400),
    ("%zz", 400),
    ("urn:air:origin.example:tool:echo%", 400),
    ("urn:air:origin.example:tool:echo%2", 400),
    ("urn:air:origin.example:tool:echo%g0", 400),
    ("urn:air:origin.example:tool:%ff", 400),
    ("urn:air:origin.example:tool:%c0%af", 400),
    ("urn:air:origin.example:tool:%ED%A0%80", 400),
    # Beyond the syntax.
    ("urn:air:origin.example:tool:ech%C3%B6", 400),
    ("urn:air:origin.example:tool%2Fecho", 400),
    ("urn:air:origin.example:tool/echo", 400),
    ("urn%3Aair%3Aorigin.example%3Atool%3Aecho/", 400),
    ("urn:air:origin.example:tool:echo%2F", 400),
    ("urn:air:origin.example:tool:..%2F..%2Fetc%2Fpasswd", 400),
    ("urn:air:origin.example:tool:e+cho", 400),
    ("urn:air:origin.example:tool:e%2Bcho", 400),
    ("urn:air:origin.example:tool:e%20cho", 400),
    ("%20urn:air:origin.example:tool:echo", 400),
    ("urn:air:origin.example:tool:echo%0A", 400),
    ("urn:air:origin.example:tool:echo%0D%0A", 400),
    ("urn:air:origin.example:tool:echo%00", 400),
    ("urn:air:origin.example:tool:echo%E2%80%A8", 400),
    ("urn:air:origin.example:tool:", 400),
    ("urn:air:origin.example", 400),
    ("urn:air:", 400),
    ("not-a-valid-ard-urn", 400),
    ("", 400),
    ("*", 400),
    ("urn:air:origin.example:tool:" + "x" * 500, 400),
    # Right in form, and not here; a dot at the end makes another publisher.
    ("urn:air:ard-conformance.invalid:probe:not-found", 404),
    ("urn:air:origin.example.:tool:echo", 404),
    ("urn:air:origin.example:echo", 404),
    ("urn:air:origin.example:tool:echo:", 400),
    # The query is no part of the identifier.
    ("urn:air:origin.example:tool:echo?version=2", 200),
    ("urn:air:origin.example:tool:echo%3Fversion=2", 400),
]


async def test_fr_118_the_identifier_is_decoded_exactly_once_and_matched_exactly(
    web: FakeWeb, crawl_sqlite: OpenCrawl
) -> None:
    site = web.site("origin")
    site.manifest(entry("echo", "origin.example"))
    async with serving(crawl_sqlite, site) as registry:
        for path, status in PATHS:
            answer = await registry.get(f"/api/v1/agents/{path}")
            assert answer.status == status, path
            if status == 200:
                assert answer.json["identifier"] == ECHO, path
            else:
                assert answer.error() == (status, {400: "INVALID_ARGUMENT", 404: "NOT_FOUND"}[status]), path
            head = await registry.request("HEAD", f"/api/v1/agents/{path}")
            assert (head.status, head.body) == (status, b""), path


async def test_a_two_part_identifier_is_looked_up_like_any_other(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    """FR-83: the namespace may be absent."""
    site = web.site("origin")
    identifier = "urn:air:origin.example:weather-server"
    site.manifest(entry(identifier=identifier), entry(identifier="urn:air:origin.example:a:b:c:D_1.2-x"))
    async with serving(open_crawl, site) as registry:
        for path in (identifier, "urn:air:origin.example:a:b:c:D_1.2-x"):
            assert (await registry.get(f"/api/v1/agents/{path}")).json["identifier"] == path


async def test_the_path_is_read_where_the_request_line_has_a_whole_url(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    site = web.site("origin")
    site.manifest(entry("echo", "origin.example"))
    async with serving(crawl_sqlite, site) as registry:
        for path, status in ((ECHO.replace(":", "%3A"), 200), (ECHO.replace(":", "%253A"), 400)):
            line = f"GET http://registry.example/api/v1/agents/{path} HTTP/1.1\r\nHost: registry.example\r\n"
            answer = await registry.raw(line.encode() + b"Connection: close\r\n\r\n")
            assert answer.status == status


# --- keeping a copy ---------------------------------------------------------------------------------------------------


async def test_fr_40_a_copy_that_is_current_is_not_sent_again(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    """Lists, weak tags and `*` count (RFC 9110 13.1.2); the 304 repeats what a cache needs (15.4.5)."""
    site = web.site("origin")
    site.manifest(entry("echo", "origin.example"))
    resources = (f"/api/v1/agents/{ECHO}", "/api/v1/agents", "/.well-known/ard.json", "/openapi.json")
    async with serving(crawl_sqlite, site) as registry:
        for path in resources:
            first = await registry.get(path)
            tag = first.headers["etag"]
            assert tag.startswith('"')
            for field, status in (
                (tag, 304),
                (f"W/{tag}", 304),
                (f'"zzz", W/{tag}', 304),
                (f'"zzz",{tag},"yyy"', 304),
                (f'W/"a,b", {tag}', 304),
                ("*", 304),
                (" * ", 304),
                ('"zzz"', 200),
                (tag.strip('"'), 200),
                (f'"{tag}"', 200),
                (tag[:-2] + '"', 200),
                (f'"x{tag[1:]}', 200),
                ("", 200),
                ('"*"', 200),
                ("W/", 200),
            ):
                answer = await registry.get(path, If_None_Match=field)
                assert answer.status == status, (path, field)
                for name in ("etag", "cache-control", "vary"):
                    assert answer.headers[name] == first.headers[name], (path, field)
                assert answer.body == (b"" if status == 304 else first.body)
            several = [("If-None-Match", '"zzz"'), ("If-None-Match", tag)]
            assert (await registry.request("GET", path, headers=several)).status == 304
            head = await registry.request("HEAD", path, headers={"If-None-Match": tag})
            assert head.status == 304


async def test_head_answers_like_get_without_a_body(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    site = web.site("origin")
    site.manifest(entry("echo", "origin.example"))
    async with serving(crawl_sqlite, site) as registry:
        for path in (f"/api/v1/agents/{ECHO}", "/api/v1/agents", "/.well-known/ard.json", "/openapi.json", "/healthz"):
            got, head = await registry.get(path), await registry.request("HEAD", path)
            assert (head.status, head.body) == (200, b"")
            assert {**head.headers, "date": ""} == {**got.headers, "date": ""}, path


async def test_the_validator_names_the_bytes_and_changes_with_them(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    site = web.site("origin")
    site.manifest(entry("echo", "origin.example"))
    async with serving(open_crawl, site) as registry:
        first = await registry.get(f"/api/v1/agents/{ECHO}")
        await registry.crawl.run()
        assert (await registry.get(f"/api/v1/agents/{ECHO}")).headers["etag"] == first.headers["etag"]
        site.manifest(entry("echo", "origin.example", version="2"))
        await registry.crawl.run()
        second = await registry.get(f"/api/v1/agents/{ECHO}", If_None_Match=first.headers["etag"])
        assert second.status == 200
        assert second.json["version"] == "2"
        assert second.headers["etag"] != first.headers["etag"]


async def test_answers_say_how_long_they_may_be_kept(web: FakeWeb, crawl_sqlite: OpenCrawl) -> None:
    site = web.site("origin")
    site.manifest(entry("echo", "origin.example"))
    async with serving(crawl_sqlite, site, api={"max_age": "90s"}) as registry:
        for path in (f"/api/v1/agents/{ECHO}", "/api/v1/agents", "/.well-known/ard.json"):
            assert (await registry.get(path)).headers["cache-control"] == "public, max-age=90", path
        # What is not there may be there in a moment.
        for path in ("/api/v1/agents/urn:air:origin.example:tool:none", "/api/v1/agents/x", "/none"):
            assert (await registry.get(path)).headers["cache-control"] == "no-cache", path
        found = await registry.post("/api/v1/search", {"query": {"text": "echo"}})
        assert found.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("reason", ["taken out", "origin dropped"])
async def test_what_was_taken_away_is_not_found_any_more(web: FakeWeb, open_crawl: OpenCrawl, reason: str) -> None:
    site = web.site("origin")
    site.manifest(entry("echo", "origin.example"), entry("other", "origin.example"))
    async with serving(open_crawl, site) as registry:
        assert (await registry.get(f"/api/v1/agents/{ECHO}")).status == 200
        if reason == "taken out":
            site.manifest(entry("other", "origin.example"))
            await registry.crawl.run()
        else:
            await registry.crawl.crew.remove_origins([site.origin])
        gone = await registry.get(f"/api/v1/agents/{ECHO}", If_None_Match="*")
        assert gone.error() == (404, "NOT_FOUND")
        assert gone.headers["cache-control"] == "no-cache"
        site.manifest(entry("echo", "origin.example"), entry("other", "origin.example"))
        if reason == "taken out":
            await registry.crawl.run()
            assert (await registry.get(f"/api/v1/agents/{ECHO}")).status == 200


async def test_an_outage_takes_nothing_away(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    site = web.site("origin")
    site.manifest(entry("echo", "origin.example"))
    async with serving(open_crawl, site) as registry:
        before = await registry.get(f"/api/v1/agents/{ECHO}")
        site.page("/.well-known/ard.json", b"down", status=503)
        await registry.crawl.run()
        assert (await registry.get(f"/api/v1/agents/{ECHO}")).body == before.body


async def test_retrieve_reads_a_third_partys_entry_from_the_local_index(web: FakeWeb, open_crawl: OpenCrawl) -> None:
    """An entry of another publisher's name is here because it was crawled; nobody is asked for it (ARD 5.3.4)."""
    site = web.site("catalogue")
    published = entry("echo", "third.example", url="https://third.example/card.json")
    site.manifest(published)
    async with serving(open_crawl, site) as registry:
        web.clear_log()
        answer = await registry.get("/api/v1/agents/urn:air:third.example:tool:echo")
        assert answer.body.decode() == json.dumps(published, ensure_ascii=False)
        assert (await registry.get("/api/v1/agents/urn:air:third.example:tool:none")).status == 404
        assert web.seen == []
