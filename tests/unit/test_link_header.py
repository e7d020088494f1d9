"""The HTTP Link field (RFC 8288), and the leads in it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.discover import leads_from_headers
from crawler.surfaces.link_header import Link, parse_link_header
from tests.fakes.work import FAR_FROM_SQUARE, growth

PAGE = "https://origin.example/site/"


@pytest.mark.parametrize(
    ("value", "links"),
    [
        ("</a>; rel=ard", [Link("/a", ("ard",))]),
        ('</a>; rel="ard"', [Link("/a", ("ard",))]),
        ("</a>;rel=ard", [Link("/a", ("ard",))]),
        (' < /a > \t; REL = "ard" ', [Link("/a", ("ard",))]),
        ('</a>; rel="nofollow  ARD\tai-catalog"', [Link("/a", ("nofollow", "ard", "ai-catalog"))]),
        ("</a>; rel=ard, </b>; rel=ard", [Link("/a", ("ard",)), Link("/b", ("ard",))]),
        ("</a>; rel=ard,, ,</b>; rel=ard,", [Link("/a", ("ard",)), Link("/b", ("ard",))]),
        ("</a,b;c>; rel=ard", [Link("/a,b;c", ("ard",))]),
        ('</a>; title="x, <y>; rel=no"; rel=ard', [Link("/a", ("ard",))]),
        ('</a>; title="say \\"no\\", <y>"; rel=ard', [Link("/a", ("ard",))]),
        ('</a>; rel="a\\rd"', [Link("/a", ("ard",))]),
        ("</a>; rel=first; rel=second", [Link("/a", ("first",))]),
        ("</a>; rev=ard", [Link("/a", ())]),
        ("</a>; rel*=ard", [Link("/a", ())]),
        ("</a>; title*=UTF-8''x%2C; rel=ard", [Link("/a", ("ard",))]),
        ("</a>; rel", [Link("/a", ())]),
        ("</a>;; ;rel=ard", [Link("/a", ("ard",))]),
        ("</a>", [Link("/a", ())]),
        ("<>; rel=ard", [Link("", ("ard",))]),
        ('</a>; rel=ard; type="application/json"', [Link("/a", ("ard",), "application/json")]),
        ('</a>; anchor="/x"; rel=ard', [Link("/a", ("ard",), None, "/x")]),
        # What is no link is passed over, up to the next comma outside quotes.
        ("nonsense, </b>; rel=ard", [Link("/b", ("ard",))]),
        ('nonsense "x, </no>; rel=ard", </b>; rel=ard', [Link("/b", ("ard",))]),
        ('</a>; rel=ard trailing "x, </no>; rel=ard", </b>; rel=ard', [Link("/a", ("ard",)), Link("/b", ("ard",))]),
        ("</a; rel=ard, </b>; rel=ard", [Link("/b", ("ard",))]),
        ('</a>; rel="ard, </b>; rel=ard', [Link("/a", ())]),
        ("", []),
        (",,,", []),
        ("<", []),
        ('"', []),
    ],
)
def test_H40_links_are_read_with_their_quotes_and_brackets(value: str, links: list[Link]) -> None:
    assert list(parse_link_header(value)) == links


@pytest.mark.parametrize(
    ("value", "leads"),
    [
        ("</a>; rel=ard", [("https://origin.example/a", "link_header")]),
        ("<a>; rel=ard", [("https://origin.example/site/a", "link_header")]),
        ("<?a>; rel=ard", [("https://origin.example/site/?a", "link_header")]),
        ("<//third.example/a>; rel=ard", [("https://third.example/a", "link_header")]),
        ("<https://third.example/a#x>; rel=ard", [("https://third.example/a", "link_header")]),
        ("</a>; rel=ai-catalog", [("https://origin.example/a", "predecessor_link")]),
        ('</a>; rel="ai-catalog ard"', [("https://origin.example/a", "link_header")]),
        ("</a>; rel=ard-extra, </b>; rel=alternate", []),
        # A link about something else is not ours (RFC 8288 3.2).
        ('</a>; anchor="https://fourth.example/"; rel=ard', []),
        ('</a>; anchor="/other"; rel=ard', []),
        ('</a>; anchor=""; rel=ard', [("https://origin.example/a", "link_header")]),
        ('</a>; anchor="#part"; rel=ard', [("https://origin.example/a", "link_header")]),
        ('</a>; anchor="/site/"; rel=ard', [("https://origin.example/a", "link_header")]),
        # Addresses that cannot be fetched lead nowhere, and hide no others.
        ("<mailto:a@b.example>; rel=ard, <>; rel=ard, <https://[::1>; rel=ard, </b>; rel=ard",
         [("https://origin.example/b", "link_header")]),
        # FR-11: one long field, the discovery value last, another one anchored elsewhere.
        ('</api>; rel="api-catalog"; title="a, b", </cat/ai.json>; type="application/json"; rel="nofollow ai-catalog", '
         '<https://third.example/x>; anchor="https://fourth.example/"; rel="ard"',
         [("https://origin.example/cat/ai.json", "predecessor_link")]),
    ],
)  # fmt: skip
def test_H40_FR11_the_links_with_our_relations_become_leads(value: str, leads: list[tuple[str, str]]) -> None:
    assert [(lead.url, lead.mechanism) for lead in leads_from_headers({"link": value}, PAGE, 50)] == leads


def test_only_so_many_leads_are_taken_from_one_field() -> None:
    value = ", ".join(f"</{number}>; rel=ard" for number in range(30))
    assert len(list(leads_from_headers({"link": value}, PAGE, 20))) == 20
    assert list(leads_from_headers({}, PAGE, 20)) == []


@given(st.text("<>;,=\"\\ relard*\t'/é", max_size=60))
def test_no_field_at_all_breaks_the_reading(value: str) -> None:
    for link in parse_link_header(value):
        assert isinstance(link.reference, str)


@pytest.mark.parametrize(
    "piece",
    ["<", "<a", "</a>; rel=x", '"', '\\"', '"\\"', ";", ",", ", ;", '</a>; a="', '<a>;a="\\', "<a>;rel", "x=", " "],
    ids=repr,
)
def test_a_hostile_field_is_read_in_time_that_grows_with_its_size(piece: str) -> None:
    assert growth(lambda size: list(parse_link_header('<a>;b="c",' + piece * size)), 2000) < FAR_FROM_SQUARE
