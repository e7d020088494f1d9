"""Discovery links and JSON-LD of HTML pages: the HTML standard where it matters, and hostile pages."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.discover import RELATIONS, leads_from_page
from crawler.surfaces.html import Page, decode, read_page
from tests.fakes.work import FAR_FROM_SQUARE, growth

URL = "https://origin.example/site/"
KIB = 1024


def page(html: str, url: str = URL, content_type: str | None = "text/html; charset=utf-8") -> Page:
    return read_page(html.encode(), url, content_type, RELATIONS)


def urls(html: str) -> list[str]:
    return [link.url for link in page(html).links]


# --- link elements ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "markup",
    [
        '<link rel="ard" href="/a">',
        "<link rel=ard href=/a>",
        "<LINK REL='ARD' HREF='/a'/>",
        '<link href="/a" rel="alternate ARD">',
        '<link rel="\n ai-catalog\t" href=" /a\n">',
        '<link rel="ard" href="/a" type="text/plain" media="print" crossorigin disabled>',
        '<link rel="ard" href="&#x2F;a">',
        '<link title="x > y" rel="ard" href="/a">',
        "<head><link rel=ard href=/a></head>",
        "<!doctype html><html lang=en><head><meta charset=utf-8><title>ard</title><link rel=ard href=/a>",
        "<script>if (a < b) { }</script><link rel=ard href=/a>",
        "<script>'<body>'</script><link rel=ard href=/a>",
        "<style>a > b {}</style><link rel=ard href=/a>",
        "<title><body></title><link rel=ard href=/a>",
        "<!-- <body> --><link rel=ard href=/a>",
        "<template><body><div></template><link rel=ard href=/a>",
        "<noscript><link rel=ard href=/no></noscript><link rel=ard href=/a>",
        "<base target=_blank><link rel=ard href=/a>",
    ],
)
def test_H41_a_link_of_the_head_is_found_by_one_of_its_relations(markup: str) -> None:
    assert urls(markup) == ["https://origin.example/a"]


@pytest.mark.parametrize(
    "markup",
    [
        # A tag that never ends is none.
        "<link rel=ard href=/a",
        '<link rel="ard">',
        '<link rel="ard" href="">',
        '<link rel="ard" href=" ">',
        '<link href="/a">',
        '<link rel="ardvark ard-x" href="/a">',
        '<link rel="stylesheet" href="/ard">',
        '<a rel="ard" href="/a">',
        '<!-- <link rel="ard" href="/a"> -->',
        '<!-- <link rel="ard" href="/a">',
        '<template><link rel="ard" href="/a"></template>',
        '<template><template></template><link rel="ard" href="/a"></template>',
        '<noscript><link rel="ard" href="/a"></noscript>',
        '<script><link rel="ard" href="/a"></script>',
        '<style><link rel="ard" href="/a"></style>',
        '<title><link rel="ard" href="/a"></title>',
        '<script><link rel="ard" href="/a">',
        # The head is over: FR-12 looks there alone.
        '</head><link rel="ard" href="/a">',
        '<body><link rel="ard" href="/a">',
        '<p><link rel="ard" href="/a">',
        '<svg><link rel="ard" href="/a"></svg>',
        # Addresses that cannot be fetched.
        '<link rel="ard" href="mailto:a@b.example">',
        '<link rel="ard" href="javascript:alert(1)">',
        '<link rel="ard" href="https://[::1">',
    ],
)
def test_H41_what_is_no_link_of_the_head_is_not_followed(markup: str) -> None:
    assert urls(markup) == []


def test_H41_all_links_of_the_head_add_up_with_their_mechanism() -> None:
    read = page(
        '<link rel="ard" href="a.json" type="application/json"><link rel="ai-catalog" href="b.json">'
        '<link rel="ai-catalog ard" href="c.json">'
    )
    assert [(lead.url, lead.mechanism, lead.media_type) for lead in leads_from_page(read, 50)] == [
        ("https://origin.example/site/a.json", "html_link", "application/json"),
        ("https://origin.example/site/b.json", "predecessor_link", None),
        ("https://origin.example/site/c.json", "html_link", None),
    ]
    assert len(list(leads_from_page(read, 2))) == 2


LINK = '<link rel="ard" href="a.json">'


@pytest.mark.parametrize(
    ("markup", "base"),
    [
        ("", URL),
        ('<base href="/other/">', "https://origin.example/other/"),
        ('<base href=" ../static/ ">', "https://origin.example/static/"),
        ('<base href="https://cdn.example/x/y">', "https://cdn.example/x/y"),
        ('<BASE HREF="//cdn.example/">', "https://cdn.example/"),
        ('<base target="x"><base href="/one/"><base href="/two/">', "https://origin.example/one/"),
        ('<base href="">', URL),
        ('<base href="data:text/html,x"><base href="/two/">', URL),
        ('<base href="JavaScript:x">', URL),
        ('<base href="https://[::1">', URL),
        ('<base href="ftp://cdn.example/">', URL),
        ('<!-- <base href="/no/"> -->', URL),
        ('<template><base href="/no/"></template>', URL),
        ('<noscript><base href="/no/"></noscript>', URL),
        ('<script>"<base href=/no/>"</script>', URL),
    ],
)
def test_H42_the_first_base_element_with_an_address_counts(markup: str, base: str) -> None:
    read = page(f"<head>{markup}{LINK}</head>")
    assert read.base_url == base
    assert [link.url for link in read.links] == [base.rsplit("/", 1)[0] + "/a.json"]
    # It may come after the link, or in the body.
    assert page(f"<head>{LINK}{markup}</head>") == read
    assert page(f"<head>{LINK}</head><body><p>{markup}</p>") == read


def test_FR12_a_relative_link_resolves_against_the_base_of_the_final_url() -> None:
    read = page('<head><base href="../static/"><link rel="ard" href="ard-v2.json"></head>')
    assert [link.url for link in read.links] == ["https://origin.example/static/ard-v2.json"]


# --- JSON-LD scripts --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("markup", "scripts"),
    [
        ('<script type="application/ld+json">{"a":1}</script>', ['{"a":1}']),
        ("<script type=application/ld+json>{}</script>", ["{}"]),
        ("<SCRIPT TYPE='Application/LD+JSON'>{}</SCRIPT >", ["{}"]),
        ('<script type=" application/ld+json ; profile=x">{}</script>', ["{}"]),
        ('<script id="application/ld+json" async type="application/ld+json">{}</script>', ["{}"]),
        # Raw text: nothing in it is decoded or is a tag.
        (
            '<script type="application/ld+json">{"a":"&quot; &amp; <b> <!-- "}</script>',
            ['{"a":"&quot; &amp; <b> <!-- "}'],
        ),
        ('<script type="application/ld+json">1</script><p><script type="application/ld+json">2</script>', ["1", "2"]),
        ('<body><div><script type="application/ld+json">{}</script></div>', ["{}"]),
        ('</template><script type="application/ld+json">{}</script>', ["{}"]),
        ('<script type="application/ld+json"></script>', [""]),
        ("<script>{}</script>", []),
        ('<script type="application/json">{}</script>', []),
        ('<script type="text/javascript">"application/ld+json"</script>', []),
        ('<script type="application/ld+json-x">{}</script>', []),
        ('<script data-type="application/ld+json">{}</script>', []),
        ('<template><script type="application/ld+json">{}</script></template>', []),
        ('<!-- <script type="application/ld+json">{}</script> -->', []),
        ('<noscript><script type="application/ld+json">{}</script></noscript>', []),
        ('<textarea><script type="application/ld+json">{}</script></textarea>', []),
        ('<script>"<script type=application/ld+json>{}"</script>', []),
        ('<script type="application/ld+json">{}', []),
    ],
)
def test_H43_the_scripts_of_the_whole_page_come_as_raw_text(markup: str, scripts: list[str]) -> None:
    assert list(page(markup).scripts) == scripts


# --- encodings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        ("é".encode(), None, "é"),
        ("é".encode(), "text/html", "é"),
        (b"\xef\xbb\xbf" + "é".encode(), "text/html; charset=iso-8859-1", "é"),
        (b"\xe9", 'text/html; charset="ISO-8859-1"', "é"),
        (b"\x80", "text/html; charset=latin1", "€"),
        (b"\x80", "text/html; charset=iso8859-1", "€"),
        (b"\xe9", "text/html;charset=windows-1252", "é"),
        (b"\xe9", "text/html; charset=us-ascii", "\ufffd"),
        ("Ж".encode("koi8-r"), "text/html; charset=KOI8-R", "Ж"),
        ("日".encode("shift_jis"), "text/html; charset=Shift_JIS", "日"),
        ("日".encode("gbk"), "text/html; charset=gbk", "日"),
        (b'<meta charset="windows-1252">\xe9', "text/html", '<meta charset="windows-1252">é'),
        (b'<meta http-equiv=x content="text/html; charset=windows-1252">\xe9', None,
         '<meta http-equiv=x content="text/html; charset=windows-1252">é'),
        (b'<meta charset="windows-1252">' + "é".encode(), "text/html; charset=utf-8", '<meta charset="windows-1252">é'),
        (b"\xff", "text/html; charset=utf-8", "\ufffd"),
        # Names that no character set has, and codecs that are none.
        ("é".encode(), "text/html; charset=gb", "é"),
        ("é".encode(), "text/html; charset=iso-8859-99", "é"),
        ("é".encode(), "text/html; charset=windows-1259", "é"),
        ("é".encode(), "text/html; charset=zip", "é"),
        ("é".encode(), "text/html; charset=rot13", "é"),
        ("é".encode(), "text/html; charset=unicode_escape", "é"),
        ("é".encode(), "text/html; charset=", "é"),
    ],
)  # fmt: skip
def test_a_page_is_decoded_by_its_mark_its_header_or_its_meta_element(
    body: bytes, content_type: str | None, text: str
) -> None:
    assert decode(body, content_type) == text


# --- hostile pages ----------------------------------------------------------------------------------------------------

SCRIPT = '<script type="application/ld+json">{"found":1}</script>'


HOSTILE = {
    "brackets": "<",
    "tags": "<b 1>",
    "open tags": "<b ",
    "nested templates": "<template>",
    "closed templates": "</template>",
    "nested elements": "<div>",
    "attributes": '<b a="',
    "attributes of one tag": " a=1",
    "comments": "<!-- -->",
    "open comments": "<!--",
    "scripts": "<script>",
    "closed scripts": "<script></script>",
    "scripts that look like ours": "<script ld+json></script>",
    "styles": "<style>",
    "titles": "<title>",
    "links": '<link rel="ard" href="a.json">',
    "links in templates": '<template><link rel="ard" href="a.json">',
    "bases": "<base>",
    "entities": "&amp;",
    "quotes": "\"'",
    "declarations": "<!x",
    "nulls": "\x00",
}


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("opening", ["", "<link rel=ard href=a>"], ids=["alone", "after a link"])
def test_a_hostile_page_is_read_in_time_that_grows_with_its_size(opening: str, piece: str) -> None:
    most = 512 * KIB

    def read(size: int) -> Page:
        body = opening + piece * (size // len(piece))
        return page(body[:most])

    assert growth(read, 4 * KIB) < FAR_FROM_SQUARE


def filled(piece: str) -> str:
    """Half a mebibyte, the size that is read of a page, of one piece."""
    return piece * (512 * KIB // len(piece))


@pytest.mark.parametrize(
    ("html", "links", "scripts"),
    [
        (filled("<"), 0, 0),
        (filled("<b 1>") + SCRIPT, 0, 1),
        (filled("<template>") + LINK + SCRIPT, 0, 0),
        (filled("</template>") + SCRIPT, 0, 1),
        (LINK + filled("<b 1>"), 1, 0),
        (LINK + filled("<div>") + SCRIPT, 1, 1),
        (filled("<!-- -->") + SCRIPT, 0, 1),
        (filled("<script ld+json></script>") + SCRIPT, 0, 1),
        (filled(SCRIPT), 0, 50),
        ('<b a="' + filled("x") + '">' + SCRIPT, 0, 1),
        # The quote ends in the start tag of the script, which is thereby none.
        ('<b a="' + filled("x") + SCRIPT, 0, 0),
    ],
    ids=[
        "brackets",
        "tags",
        "templates",
        "closed templates",
        "link first",
        "nested",
        "comments",
        "scripts like ours",
        "too many scripts",
        "long attribute",
        "attribute without end",
    ],
)
def test_what_a_hostile_page_offers_is_found_within_bounds(html: str, links: int, scripts: int) -> None:
    read = page(html)
    assert (len(read.links), len(read.scripts)) == (links, scripts)


def test_a_long_script_is_cut() -> None:
    (script,) = page(f'<script type="application/ld+json">{"[" * 400_000}</script>').scripts
    assert len(script) == 256 * KIB


PIECES = """< > <!-- --> <template> </template> <title> </title> " ' = / <noscript> <svg> é <body> </head> <![CDATA[
</script> <link;rel=ard;href=a> <base;href=/x/> <script;type=application/ld+json>""".split()


@given(
    st.lists(st.sampled_from([*(piece.replace(";", " ") for piece in PIECES), " ", "\x00"]), max_size=25).map("".join)
)
def test_no_markup_at_all_breaks_the_reading(html: str) -> None:
    read = page(html)
    assert all(link.url.startswith("https://origin.example/") for link in read.links)
    assert json.dumps(read.scripts)
