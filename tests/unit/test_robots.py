"""robots.txt: what a file says to us, and what its absence or failure means (RFC 9309)."""

import itertools
from datetime import UTC, datetime, timedelta

import pytest
import robots as robotspy
from hypothesis import given
from hypothesis import strategies as st

from crawler.policy.robots import (
    COPY_LIFETIME,
    MAX_AGENTMAPS,
    PRODUCT_TOKEN,
    RobotsRules,
    decide,
    parse_robots,
)
from index.documents import Outcome
from index.urls import canonical_url
from tests.fakes.work import FAR_FROM_SQUARE, growth

ORIGIN = "https://origin.example"
FILE = ORIGIN + "/robots.txt"
NOW = datetime(2026, 5, 5, 12, 0, tzinfo=UTC)


def rules(text: str | bytes) -> RobotsRules:
    return parse_robots(text.encode() if isinstance(text, str) else text, FILE)


def allowed(text: str | bytes, path: str) -> bool:
    """Whether a file lets us fetch a path, given as it is requested."""
    return rules(text).allows(canonical_url(ORIGIN + path))


# --- reading the file -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"\xef\xbb\xbfUser-agent: *\nDisallow: /\n",
        b"User-agent: *\r\nDisallow: /\r\n",
        b"User-agent: *\rDisallow: /\r",
        b"User-agent: *\nDisallow: /",
        b"\xff\xfe caf\xe9\nUser-agent: *\nDisallow: /\n",
        b"  USER-AGENT :\t*  # everybody\n\tDISALLOW  :  /  # all of it\n",
        b"<html>\nUser-agent: *\nwhatever\nDisallow: /\n</html>",
    ],
    ids=repr,
)
def test_H32_every_line_that_can_be_read_counts(body: bytes) -> None:
    """FR-47: a byte-order mark at the start hides nothing."""
    assert not allowed(body, "/x")


def test_H32_only_one_byte_order_mark_at_the_very_start_is_skipped() -> None:
    assert allowed(b"\xef\xbb\xbf\xef\xbb\xbfUser-agent: *\nDisallow: /\n", "/x")
    assert allowed(b"\n\xef\xbb\xbfUser-agent: *\nDisallow: /\n", "/x")


GROUPS = {
    "no group is for us": ("User-agent: other\nDisallow: /\n", True),
    "an empty file": ("", True),
    "only comments": ("# User-agent: *\n# Disallow: /\n", True),
    "everybody": ("User-agent: *\nDisallow: /\n", False),
    "ours beats everybody's": ("User-agent: *\nDisallow: /\n\nUser-agent: ardvark\nAllow: /\n", True),
    "ours beats everybody's, written first": ("User-agent: ardvark\nAllow: /\n\nUser-agent: *\nDisallow: /\n", True),
    "ours, forbidding nothing": ("User-agent: ardvark\nDisallow:\n\nUser-agent: *\nDisallow: /\n", True),
    "ours, allowing nothing in particular": ("User-agent: ardvark\nAllow:\n\nUser-agent: *\nDisallow: /\n", True),
    "ours without any rule": ("User-agent: *\nDisallow: /\n\nUser-agent: ardvark\n", True),
    "in any case": ("User-agent: ARDVARK\nDisallow: /\n", False),
    "with a version": ("User-agent: ardvark/2.1\nDisallow: /\n", False),
    "with more words": ("User-agent: Ardvark crawler\nDisallow: /\n", False),
    "another token that begins with ours": ("User-agent: ardvarkbot\nDisallow: /\n", True),
    "another token that ours begins with": ("User-agent: ard\nDisallow: /\n", True),
    "another token with a hyphen": ("User-agent: ardvark-news\nDisallow: /\n", True),
    "a pattern is no token": ("User-agent: ard*\nDisallow: /\n", True),
    "one of several agents": ("User-agent: other\nUser-agent: ardvark\nDisallow: /\n", False),
    "a blank line does not end a group": ("User-agent: ardvark\n\n\nDisallow: /\n", False),
    "rules of several groups add up": (
        "User-agent: ardvark\nAllow: /a\n\nUser-agent: other\nAllow: /\n\nUser-agent: ardvark\nDisallow: /\n",
        False,
    ),
    "groups of everybody add up": ("User-agent: *\nAllow: /a\n\nUser-agent: *\nDisallow: /\n", False),
    "rules before the first agent": ("Disallow: /\nUser-agent: *\nAllow: /a\n", True),
    "a rule without an agent at all": ("Disallow: /\n", True),
    "a line without a colon": ("User-agent *\nDisallow: /\n", True),
}


@pytest.mark.parametrize(("text", "expected"), GROUPS.values(), ids=GROUPS.keys())
def test_H35_the_groups_that_name_us_are_merged_else_those_for_everybody(text: str, expected: bool) -> None:
    assert allowed(text, "/x") is expected


MATCHES = [
    ("Disallow: /a", "/a", False),
    ("Disallow: /a", "/a/b?c", False),
    ("Disallow: /a", "/A", True),
    ("Disallow: /a", "/b/a", True),
    ("Disallow: /a/", "/a", True),
    ("Disallow: /", "/robots.txt", True),
    ("Disallow: /robots.txt", "/robots.txt", True),
    ("Disallow:", "/a", True),
    # The longest match wins whatever the order, Allow wins a tie.
    ("Disallow: /a\nAllow: /a/b", "/a/b", True),
    ("Allow: /a/b\nDisallow: /a", "/a/c", False),
    ("Disallow: /a/b\nAllow: /a", "/a/b", False),
    ("Disallow: /a\nAllow: /a", "/a", True),
    ("Allow: /a\nDisallow: /a", "/a", True),
    ("Disallow: /a*c\nAllow: /a", "/abc", False),
    ("Disallow: /*\nAllow: /a", "/a", True),
    # Any run of characters, and the end.
    ("Disallow: /*.json$", "/x/y.json", False),
    ("Disallow: /*.json$", "/x/y.json?v=1", True),
    ("Disallow: /*.json$", "/x/y.jsonl", True),
    ("Disallow: /a*b*c", "/a-b-c-d", False),
    ("Disallow: /a*b*c", "/a-c-b", True),
    ("Disallow: /***a", "/xa", False),
    ("Disallow: /a$", "/a", False),
    ("Disallow: /a$", "/ab", True),
    ("Disallow: /a$b", "/a$b", False),
    ("Disallow: /a$b", "/a", True),
    ("Allow: /$\nDisallow: /", "/", True),
    ("Allow: /$\nDisallow: /", "/a", False),
    # The query belongs to what is matched.
    ("Disallow: /*?", "/a?b", False),
    ("Disallow: /*?", "/a", True),
    ("Disallow: /?q=a", "/?q=ab", False),
    # Escapes of unreserved characters are no difference, an escaped slash is one.
    ("Disallow: /a%7Eb", "/a~b", False),
    ("Disallow: /a~b", "/a%7eb", False),
    ("Disallow: /a%2Fb", "/a/b", True),
    ("Disallow: /a/b", "/a%2Fb", True),
    ("Disallow: /a%2fb", "/a%2Fb", False),
    ("Disallow: /café", "/caf%C3%A9", False),
    ("Disallow: /caf%c3%a9", "/café", False),
    ("Disallow: /a#b", "/a", False),
]


@pytest.mark.parametrize(("lines", "path", "expected"), MATCHES)
def test_H36_the_longest_matching_rule_decides(lines: str, path: str, expected: bool) -> None:
    assert allowed(f"User-agent: *\n{lines}\n", path) is expected


@pytest.mark.parametrize(
    "record",
    [
        "Sitemap: https://x.example/s.xml",
        "Agentmap: /a.json",
        "Crawl-delay: 5",
        "Content-Signal: ai-train=no",
        "X-New: 1",
    ],
)
@pytest.mark.parametrize("place", range(5))
def test_H37_unknown_records_do_not_end_a_group(record: str, place: int) -> None:
    lines = ["User-agent: other", "User-agent: ardvark", "Disallow: /private/", "Disallow: /secret/"]
    lines.insert(place, record)
    text = "\n".join(lines)
    assert [allowed(text, path) for path in ("/private/x", "/secret/x", "/x")] == [False, False, True]


def test_H37_FR10_agentmap_lines_count_anywhere_in_any_case_and_once() -> None:
    """The sample of FR-10: before any group, relative, repeated in capitals, and no group is disturbed."""
    read = rules(
        f"Agentmap: {ORIGIN}/a.json   # main\n"
        "agentmap: /b.json\n"
        "User-agent: *\n"
        "Disallow: /private/\n"
        f"AGENTMAP:{ORIGIN}/a.json\n"
    )
    assert read.agentmaps == (ORIGIN + "/a.json", ORIGIN + "/b.json")
    assert not read.allows(ORIGIN + "/private/x")
    assert [(problem.code, problem.pointer) for problem in read.problems] == [("robots.agentmap_relative", "line 2")]


@pytest.mark.parametrize(
    ("value", "target", "code"),
    [
        ("https://other.example/a.json", "https://other.example/a.json", None),
        ("HTTPS://Other.Example:443/a.json#top", "https://other.example/a.json", None),
        ("//other.example/a.json", "https://other.example/a.json", "robots.agentmap_relative"),
        ("a.json", ORIGIN + "/a.json", "robots.agentmap_relative"),
        ("?a", ORIGIN + "/robots.txt?a", "robots.agentmap_relative"),
        ("", None, "robots.agentmap_url"),
        ("mailto:a@b.example", None, "robots.agentmap_url"),
        ("https://", None, "robots.agentmap_url"),
        ("https://[::1", None, "robots.agentmap_url"),
    ],
)
def test_H37_an_agentmap_value_is_resolved_and_judged(value: str, target: str | None, code: str | None) -> None:
    read = rules(f"Agentmap: {value}\n")
    assert read.agentmaps == ((target,) if target else ())
    assert [problem.code for problem in read.problems] == ([code] if code else [])


def test_H37_only_so_many_agentmap_lines_are_read() -> None:
    read = rules("".join(f"Agentmap: {ORIGIN}/{number}.json\n" for number in range(MAX_AGENTMAPS + 500)))
    assert len(read.agentmaps) == MAX_AGENTMAPS
    assert {problem.code for problem in read.problems} == {"robots.agentmap_count"}
    assert len(read.problems) <= 50


@pytest.mark.parametrize("path", ["/.well-known/ard.json", "/agents/card.json", "/"])
def test_H38_a_rule_holds_for_every_kind_of_document(path: str) -> None:
    assert not allowed("User-agent: *\nDisallow: /\n", path)


def test_H39_the_product_token_is_made_of_letters_only() -> None:
    assert PRODUCT_TOKEN.isascii()
    assert PRODUCT_TOKEN.isalpha()


def test_FR48_groups_and_order_are_read_by_the_standard() -> None:
    """The sample of FR-48, with our token."""
    text = """User-agent: *

User-agent: ardvark
Disallow: /
Allow: /.well-known/ard.json

User-agent: ardvark
Disallow: /.well-known/agent-card.json
"""
    paths = ("/.well-known/ard.json", "/.well-known/agent-card.json", "/")
    assert [allowed(text, path) for path in paths] == [True, False, False]


DELAYS = [
    ("User-agent: *\nCrawl-delay: 10\n", 10.0, 0),
    ("User-agent: *\ncrawl-DELAY: 0.001\n", 0.001, 0),
    ("User-agent: *\nCrawl-delay: 3600 # an hour\n", 3600.0, 0),
    ("User-agent: *\nCrawl-delay: soon\n", None, 1),
    ("User-agent: *\nCrawl-delay: -5\n", None, 1),
    ("User-agent: *\nCrawl-delay: nan\nCrawl-delay: inf\n", None, 2),
    ("User-agent: *\nCrawl-delay:\n", None, 1),
    ("User-agent: *\nCrawl-delay: soon\nCrawl-delay: 5\n", 5.0, 1),
    ("User-agent: *\nCrawl-delay: 5\nCrawl-delay: 9\n", 5.0, 0),
    ("User-agent: *\nCrawl-delay: 5\n\nUser-agent: ardvark\nCrawl-delay: 2\n", 2.0, 0),
    ("User-agent: *\nCrawl-delay: 5\n\nUser-agent: ardvark\nDisallow: /a\n", None, 0),
    ("User-agent: other\nCrawl-delay: 5\n", None, 0),
    ("Crawl-delay: 5\n", None, 0),
    ("", None, 0),
]


@pytest.mark.parametrize(("text", "delay", "faults"), DELAYS)
def test_FR50_a_crawl_delay_is_taken_from_our_group_and_a_bad_one_is_noted(
    text: str, delay: float | None, faults: int
) -> None:
    read = rules(text)
    assert read.crawl_delay_s == delay
    assert [problem.code for problem in read.problems] == ["robots.crawl_delay"] * faults


def test_a_hostile_file_is_read_in_time_that_grows_with_its_size() -> None:
    """Agents and delays in turn once cost the square of their number."""
    assert growth(lambda lines: rules("User-agent: x\nCrawl-delay: 1\n" * lines), 500) < FAR_FROM_SQUARE
    assert growth(lambda lines: rules("User-agent: x\nDisallow: /*a*b$\n" * lines), 500) < FAR_FROM_SQUARE


# --- what an attempt to fetch it means --------------------------------------------------------------------------------

FORBIDS = rules("User-agent: *\nDisallow: /a\n")
HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("outcome", "copy", "age", "a", "b", "reason"),
    [
        # H33, 2xx: the file as it is.
        (Outcome.FETCHED, True, HOUR * 0, False, True, "robots"),
        (Outcome.NOT_MODIFIED, True, HOUR * 0, False, True, "robots"),
        # H33, 4xx: no rules at all, even where we held some.
        (Outcome.ABSENT, False, None, True, True, "robots_unavailable"),
        (Outcome.ABSENT, True, HOUR, True, True, "robots_unavailable"),
        (Outcome.GONE, True, HOUR, True, True, "robots_unavailable"),
        (Outcome.WITHHELD, True, HOUR, True, True, "robots_unavailable"),
        # H33, 5xx, 429, network: nothing is allowed without a copy.
        (Outcome.UNREACHABLE, False, None, False, False, "robots_unreachable"),
        (Outcome.MALFORMED, False, None, False, False, "robots_unreachable"),
        (Outcome.REFUSED, False, None, False, False, "robots_unreachable"),
        # H34: the last good copy serves for thirty days.
        (Outcome.UNREACHABLE, True, HOUR, False, True, "robots_copy"),
        (Outcome.UNREACHABLE, True, COPY_LIFETIME, False, True, "robots_copy"),
        (Outcome.UNREACHABLE, True, COPY_LIFETIME + HOUR, False, False, "robots_unreachable"),
        (Outcome.UNREACHABLE, True, None, False, False, "robots_unreachable"),
    ],
)
def test_H33_H34_the_outcome_of_the_fetch_chooses_the_rules(
    outcome: Outcome, copy: bool, age: timedelta | None, a: bool, b: bool, reason: str
) -> None:
    confirmed_at = None if age is None else NOW - age
    decision = decide(outcome, FORBIDS if copy else None, confirmed_at=confirmed_at, now=NOW)
    assert decision.reason == reason
    assert (decision.rules.allows(ORIGIN + "/a"), decision.rules.allows(ORIGIN + "/b")) == (a, b)


# --- a second opinion -------------------------------------------------------------------------------------------------
# Left out is where that parser departs from the standard: a group of several agents, tokens that begin alike, and paths
# that begin with two slashes; and a literal dollar sign in a path, which ours forbids more often than it must.

paths = st.text("ab*/$", max_size=5).map("/".__add__).filter(lambda path: "//" not in path)
a_rule = st.one_of(
    paths.map("Allow: {}".format), paths.map("Disallow: {}".format), st.sampled_from(["Disallow:", "Allow:"])
)
noise = st.sampled_from(["", "# note", "Sitemap: https://x.example/s.xml", "Foo: bar", "Crawl-delay: 3"])


@st.composite
def groups(draw: st.DrawFn) -> list[str]:
    agent = draw(st.sampled_from(["*", "ardvark", "Ardvark", "ARDVARK/1.0", "other"]))
    lines = [f"User-agent: {agent}", *draw(st.lists(a_rule, min_size=1, max_size=4))]
    for _ in range(draw(st.integers(0, 2))):
        lines.insert(draw(st.integers(0, len(lines))), draw(noise))
    return lines


@given(
    st.lists(a_rule, max_size=1),
    st.lists(groups(), max_size=4),
    st.text("ab/", max_size=6).map("/".__add__).filter(lambda path: "//" not in path),
)
def test_robotspy_reads_generated_files_the_same_way(before: list[str], groups: list[list[str]], path: str) -> None:
    text = "\n".join([*before, *itertools.chain.from_iterable(groups)])
    theirs = robotspy.RobotsParser.from_string(text).can_fetch(PRODUCT_TOKEN, ORIGIN + path)
    assert allowed(text, path) == theirs


@pytest.mark.parametrize(("lines", "path", "expected"), [row for row in MATCHES if "%" not in row[0] + row[1]])
def test_robotspy_agrees_with_the_table(lines: str, path: str, expected: bool) -> None:
    if path == "/robots.txt" or "é" in lines:
        assert allowed(f"User-agent: *\n{lines}\n", path) is expected
        return
    parser = robotspy.RobotsParser.from_string(f"User-agent: *\n{lines}\n")
    assert parser.can_fetch(PRODUCT_TOKEN, ORIGIN + path) == expected
