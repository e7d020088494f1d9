"""What clients may ask: closed requests, the filter of List, its order, and page tokens."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.query import (
    InvalidArgument,
    ListClause,
    ListOrder,
    PageTokens,
    constraints,
    parse_endorsement,
    parse_explore,
    parse_list_filter,
    parse_list_order,
    parse_page_size,
    parse_search,
)
from index.terms import NAMESPACE
from tests.fakes.work import FAR_FROM_SQUARE, growth

ARD = NAMESPACE


def message(read: Any, *arguments: Any) -> str:
    with pytest.raises(InvalidArgument) as caught:
        read(*arguments)
    return str(caught.value)


# --- Search and Explore (ARD 5.3.1 - 5.3.3) ---------------------------------------------------------------------------


def test_a_search_has_its_defaults() -> None:
    request = parse_search({"query": {"text": "weather"}})
    assert (request.query.text, request.query.filter, request.query.context) == ("weather", {}, None)
    assert (request.federation, request.page_size, request.page_token) == ("auto", 10, None)


def test_a_search_has_everything_that_is_asked() -> None:
    request = parse_search(
        {
            "query": {"text": "weather", "filter": {"type": "a/b"}, "@context": {"x": "https://x.example/#"}},
            "federation": "none",
            "pageSize": 1000,
            "pageToken": "abc",
        }
    )
    assert (request.federation, request.page_size, request.page_token) == ("none", 1000, "abc")
    assert request.query.context == {"x": "https://x.example/#"}


@pytest.mark.parametrize(
    ("request_", "complaint"),
    [
        (None, "the request must be an object"),
        ([], "the request must be an object"),
        ({}, "query is required"),
        ({"query": "weather"}, "query must be an object"),
        ({"query": {}}, "query.text is required"),
        ({"query": {"text": ""}}, "query.text must not be empty"),
        ({"query": {"text": " \n"}}, "query.text must not be empty"),
        ({"query": {"text": None}}, "query.text must be a valid string"),
        ({"query": {"text": 5}}, "query.text must be a valid string"),
        ({"query": {"text": ["a"]}}, "query.text must be a valid string"),
        ({"query": {"text": "x" * 5001}}, "query.text string should have at most 5000 characters"),
        ({"query": {"text": "a", "q": 1}}, "query.q is not a member of this request"),
        ({"query": {"text": "a"}, "q": 1}, "q is not a member of this request"),
        ({"query": {"text": "a"}, "resultType": {}}, "resultType is not a member of this request"),
        ({"query": {"text": "a"}, "federation": "all"}, "federation must be 'auto', 'referrals' or 'none'"),
        ({"query": {"text": "a"}, "federation": None}, "federation must be"),
        ({"query": {"text": "a"}, "pageSize": 0}, "pageSize must be greater than or equal to 1"),
        ({"query": {"text": "a"}, "pageSize": -1}, "pageSize must be greater than or equal to 1"),
        ({"query": {"text": "a"}, "pageSize": "10"}, "pageSize must be a valid integer"),
        ({"query": {"text": "a"}, "pageSize": 1.5}, "pageSize must be a valid integer"),
        ({"query": {"text": "a"}, "pageSize": True}, "pageSize must be a valid integer"),
        ({"query": {"text": "a"}, "pageToken": ""}, "pageToken string should have at least 1 character"),
        ({"query": {"text": "a"}, "pageToken": 5}, "pageToken must be a valid string"),
        ({"query": {"text": "a", "filter": []}}, "query.filter must be an object"),
        ({"query": {"text": "a", "filter": {"type": None}}}, "query.filter.type"),
        ({"query": {"text": "a", "filter": {"type": {"a": 1}}}}, "query.filter.type"),
        ({"query": {"text": "a", "filter": {"type": [None]}}}, "query.filter.type"),
        ({"query": {"text": "a", "filter": {"type": [["a"]]}}}, "query.filter.type"),
        ({"query": {"text": "a", "filter": {"type": ["x"] * 101}}}, "query.filter.type"),
        ({"query": {"text": "a", "filter": {f"k{number}": "x" for number in range(33)}}}, "query.filter"),
        ({"query": {"text": "a", "@context": 5}}, "query.@context"),
    ],
)
def test_a_search_that_is_not_one_is_refused_with_its_place(request_: Any, complaint: str) -> None:
    assert message(parse_search, request_).startswith(complaint)


def facets(*items: Any, **members: Any) -> dict[str, Any]:
    return {"resultType": {"facets": list(items)}, **members}


def test_an_explore_may_ask_about_the_whole_index() -> None:
    request = parse_explore(facets({"field": "type"}, {"field": "tags", "limit": 0, "minCount": 3}))
    assert (request.query.text, request.query.filter) == (None, {})
    assert [(item.field, item.limit, item.min_count) for item in request.result_type.facets] == [
        ("type", 20, 1),
        ("tags", 0, 3),
    ]


def test_whole_numbers_may_be_written_with_a_fraction_of_zero() -> None:
    assert parse_search({"query": {"text": "a"}, "pageSize": 10.0}).page_size == 10


@pytest.mark.parametrize(
    ("request_", "complaint"),
    [
        ({}, "resultType is required"),
        ({"resultType": "facets"}, "resultType must be an object"),
        ({"resultType": {}}, "resultType.facets is required"),
        ({"resultType": {"list": []}}, "resultType."),
        (facets("type"), "resultType.facets[0] must be an object"),
        (facets({}), "resultType.facets[0].field is required"),
        (facets({"field": ""}), "resultType.facets[0].field string should have at least 1 character"),
        (facets({"field": "type", "limit": -1}), "resultType.facets[0].limit must be greater than or equal to 0"),
        (facets({"field": "type", "size": 5}), "resultType.facets[0].size is not a member of this request"),
        (facets(*[{"field": "type"}] * 21), "resultType.facets"),
        (facets({"field": "type"}, pageSize=5), "pageSize is not a member of this request"),
        (facets({"field": "type"}, federation="none"), "federation is not a member of this request"),
        (facets({"field": "type"}, query={"text": 5}), "query.text must be a valid string"),
    ],
)
def test_an_explore_that_is_not_one_is_refused_with_its_place(request_: Any, complaint: str) -> None:
    assert message(parse_explore, request_).startswith(complaint)


def resolved(filter_: dict[str, Any], context: Any = None) -> list[tuple[str, tuple[str, ...]]]:
    query = {"text": "a", "filter": filter_, **({"@context": context} if context is not None else {})}
    return [(item.path.path, item.values) for item in constraints(parse_search({"query": query}).query)]


@pytest.mark.parametrize(
    ("filter_", "context", "expected"),
    [
        ({}, None, []),
        # A scalar is a list of one.
        ({"tags": "a"}, None, [(ARD + "tags", ("a",))]),
        ({"tags": ["a", "b", "a"]}, None, [(ARD + "tags", ("a", "b"))]),
        ({"tags": []}, None, [(ARD + "tags", ())]),
        ({"tags": "a", "capabilities": "b"}, None, [(ARD + "tags", ("a",)), (ARD + "capabilities", ("b",))]),
        # Numbers and truth values compare as JSON writes them.
        ({"metadata.n": [1, 1.0, 1.5, True]}, None, [(ARD + "metadata.n", ("1", "1.5", "true"))]),
        # Media types in any spelling, publishers in any case.
        (
            {"type": ["application/mcp-server", "A/B; charset=x"]},
            None,
            [(ARD + "mediaType", ("application/mcp-server-card+json", "a/b"))],
        ),
        ({"publisher": ["Acme.Example.", "acme.example"]}, None, [("publisher", ("acme.example",))]),
        # By IRI, through the context of the query.
        ({"okf:tier": "gold"}, {"okf": "https://okf.example/ns#"}, [("https://okf.example/ns#tier", ("gold",))]),
        ({"tier": "gold"}, [{"tier": "https://okf.example/ns#tier"}], [("https://okf.example/ns#tier", ("gold",))]),
        ({"okf:tier": "gold"}, "https://okf.example/context", [("okf:tier", ("gold",))]),
        # Several spellings of one term are several conditions on it.
        ({"tags": "a", "ard:tags": "b"}, None, [(ARD + "tags", ("a",)), (ARD + "tags", ("b",))]),
    ],
)
def test_a_filter_is_resolved_to_paths_and_values(
    filter_: dict[str, Any], context: Any, expected: list[tuple[str, tuple[str, ...]]]
) -> None:
    assert resolved(filter_, context) == expected


@pytest.mark.parametrize("key", ["", "@id", "id", "description", "data", "x" * 600])
def test_a_filter_key_that_cannot_be_answered_is_refused(key: str) -> None:
    assert message(resolved, {key: "a"})


# --- List (ARD 5.3.5, Appendix A) -------------------------------------------------------------------------------------


def clause(field: Any, *texts: str) -> ListClause:
    return ListClause(field, texts=texts)


def after(field: Any, *date: int) -> ListClause:
    return ListClause(field, after=datetime(*date, tzinfo=UTC))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        (None, []),
        ("", []),
        (" \t", []),
        ("displayName = 'Echo'", [clause("displayName", "Echo")]),
        ('displayName = "Echo tool"', [clause("displayName", "Echo tool")]),
        ("displayName=Echo", [clause("displayName", "Echo")]),
        (" displayname  =  Echo ", [clause("displayName", "Echo")]),
        ("DISPLAYNAME = Echo", [clause("displayName", "Echo")]),
        # Commas are OR, AND is AND in any case.
        ("displayName = a, 'b' ,\"c\"", [clause("displayName", "a", "b", "c")]),
        ("displayName = a AND publisherId = b", [clause("displayName", "a"), clause("publisherId", "b")]),
        ("displayName = a and publisherId = b And type = c/d",
         [clause("displayName", "a"), clause("publisherId", "b"), clause("type", "c/d")]),
        # The example of the OpenAPI document.
        ("type = 'application/mcp-server-card+json' AND createdAfter > '2026-01-01'",
         [clause("type", "application/mcp-server-card+json"), after("createdAfter", 2026, 1, 1)]),
        # Types in any spelling, publishers in any case.
        ("type = Application/MCP-Server", [clause("type", "application/mcp-server-card+json")]),
        ("type = 'a/b; x=1'", [clause("type", "a/b;x=1")]),
        ("publisherId = Acme.Example.", [clause("publisherId", "acme.example")]),
        # Dates, strictly after whichever operator.
        ("createdAfter = 2026-01-31", [after("createdAfter", 2026, 1, 31)]),
        ("createdAfter >= '2026-01-31T10:00:00Z'", [after("createdAfter", 2026, 1, 31, 10)]),
        ("updatedAfter > 2026-01-31T10:00:00+02:00", [after("updatedAfter", 2026, 1, 31, 8)]),
        ("updatedAfter>2026-01-31T10:00", [after("updatedAfter", 2026, 1, 31, 10)]),
        # Quotes keep what would separate, a backslash keeps a quote.
        ("displayName = 'a AND b, c = d'", [clause("displayName", "a AND b, c = d")]),
        ("displayName = 'it\\'s', \"say \\\"x\\\"\", 'a\\\\'", [clause("displayName", "it's", 'say "x"', "a\\")]),
        ("displayName = ' padded '", [clause("displayName", " padded ")]),
        ("displayName = AND", [clause("displayName", "AND")]),
        ("displayName = a AND displayName = b", [clause("displayName", "a"), clause("displayName", "b")]),
        ("displayName = Größe", [clause("displayName", "Größe")]),
    ],
)  # fmt: skip
def test_the_filter_of_list_is_read(text: str | None, clauses: list[ListClause]) -> None:
    assert list(parse_list_filter(text)) == clauses


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("MCP", "filter: 'MCP' is not one of the fields displayName, type, publisherId, createdAfter, updatedAfter"),
        ("name = x", "filter: 'name' is not one of the fields"),
        ("= x", "filter: '=' is not one of the fields"),
        ("type", "filter: expected an operator after type instead of the end"),
        ("type MCP", "filter: expected an operator after type instead of 'MCP'"),
        # The example of an error in Appendix A.
        ("type = MCP", "filter: type needs a media type such as application/ai-registry+json instead of 'MCP'"),
        ("type =", "filter: type needs a value instead of the end"),
        ("type = ''", "filter: type needs a value instead of ''''"),
        ("displayName = ' '", "filter: displayName needs a value instead of"),
        ("type = a/b,", "filter: type needs a value instead of the end"),
        ("type = , a/b", "filter: type needs a value instead of ','"),
        ("type = 'a/b", "filter: type needs a value instead of ''a/b'"),
        ("type > a/b", "filter: the operator > cannot be used with type"),
        ("displayName <= a", "filter: the operator <= cannot be used with displayName"),
        ("createdAfter < 2026-01-01", "filter: the operator < cannot be used with createdAfter"),
        ("createdAfter = yesterday", "filter: createdAfter needs a date such as 2026-01-31 instead of 'yesterday'"),
        ("createdAfter = 2026-02-30", "filter: createdAfter needs a date"),
        ("createdAfter = 0001-01-01T00:00:00+14:00", "filter: createdAfter needs a date"),
        ("createdAfter = 2026-01-01, 2026-01-02", "filter: createdAfter takes one date"),
        ("type = a/b OR type = c/d", "filter: expected AND instead of 'OR'"),
        ("type = a/b type = c/d", "filter: expected AND instead of 'type'"),
        ("type = 'a/b'AND type = c/d", "filter: expected AND instead of 'AND'"),
        ("type = a/b AND", "filter: expected a field after AND"),
        ("type = a/b AND ", "filter: expected a field after AND"),
        ("type = a/b ANDtype = c/d", "filter: expected AND instead of 'ANDtype'"),
        ("AND type = a/b", "filter: 'AND' is not one of the fields"),
        ("(type = a/b)", "filter: '(type' is not one of the fields"),
        ("type = a/b; x=1", "filter: expected AND instead of 'x=1'"),
        ("x" * 4001, "filter must have at most 4000 characters"),
    ],
)
def test_a_wrong_filter_is_refused_with_the_token(text: str, complaint: str) -> None:
    assert message(parse_list_filter, text).startswith(complaint)


@given(st.text("typediaNmcrAfPuh = <>,'\"\\AND/2026-01T", max_size=40))
def test_no_filter_at_all_breaks_the_reading(text: str) -> None:
    try:
        clauses = parse_list_filter(text)
    except InvalidArgument:
        return
    assert all(item.texts or item.after for item in clauses)


@pytest.mark.parametrize("piece", [" ", ",a", "\\'", "'", " AND type=a/b", "a", '"\\'])
def test_a_hostile_filter_is_read_in_time_that_grows_with_its_size(piece: str) -> None:
    def read(size: int) -> None:
        # The bound on its length does the rest.
        for start in range(0, size, 100):
            try:
                parse_list_filter(("type='a/b'" + piece * (3000 // len(piece))) + " " * (start % 7))
            except InvalidArgument:
                continue

    assert growth(read, 100) < FAR_FROM_SQUARE


IDENTIFIER = ListOrder("identifier", False)


@pytest.mark.parametrize(
    ("text", "orders"),
    [
        (None, [IDENTIFIER]),
        (" ", [IDENTIFIER]),
        ("displayName", [ListOrder("displayName", False), IDENTIFIER]),
        ("name desc", [ListOrder("displayName", True), IDENTIFIER]),
        ("updatedAt DESC, createdAt ASC", [ListOrder("updatedAt", True), ListOrder("createdAt", False), IDENTIFIER]),
        ("updated_at desc,created_at", [ListOrder("updatedAt", True), ListOrder("createdAt", False), IDENTIFIER]),
        # The first of two counts, and nothing after what is unique.
        ("name, displayName desc", [ListOrder("displayName", False), IDENTIFIER]),
        ("identifier desc, name", [ListOrder("identifier", True)]),
    ],
)
def test_the_order_of_list_is_total(text: str | None, orders: list[ListOrder]) -> None:
    assert list(parse_list_order(text)) == orders


@pytest.mark.parametrize(
    "text", ["score", "name up", "name desc desc", ",", "name,", "name;type", "-name", "name DESC NULLS LAST"]
)
def test_a_wrong_order_is_refused(text: str) -> None:
    assert "is not a field with an optional ASC or DESC" in message(parse_list_order, text)


@pytest.mark.parametrize(
    ("text", "size"), [(None, 20), ("1", 1), ("100", 100), ("101", 100), ("999999999", 100), ("007", 7)]
)
def test_a_page_size_is_cut_at_one_hundred(text: str | None, size: int) -> None:
    assert parse_page_size(text, 20) == size


@pytest.mark.parametrize("text", ["", "0", "-1", "+5", "1.0", "1e2", "ten", " 5", "٥", "5\n", "9" * 30])
def test_a_page_size_that_is_no_whole_number_is_refused(text: str) -> None:
    assert message(parse_page_size, text, 20) == "pageSize must be a whole number of at least 1"


# --- page tokens ------------------------------------------------------------------------------------------------------

TOKENS = PageTokens(b"secret")
keys = st.lists(
    st.none() | st.integers(-(2**53), 2**53) | st.text(st.characters(exclude_categories=["Cs"]), max_size=10),
    max_size=3,
)
queries = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)


@given(queries, keys)
def test_a_token_opens_for_the_query_it_was_made_for(query: Any, key: list[Any]) -> None:
    token = TOKENS.seal(query, key)
    assert TOKENS.open(query, token) == key
    assert token.isascii()
    assert "=" not in token
    assert all(character.isalnum() or character in "-_" for character in token)


@pytest.mark.parametrize(
    "other", [["search", "other"], ["list", "weather"], ["search", "weather", 1], {"search": "weather"}, None]
)
def test_a_token_does_not_open_for_another_query(other: Any) -> None:
    token = TOKENS.seal(["search", "weather"], [5, "urn:air:a.b:c"])
    assert message(TOKENS.open, other, token) == "pageToken does not belong to this request"


def test_a_token_of_another_registry_does_not_open() -> None:
    assert message(TOKENS.open, [], PageTokens(b"other").seal([], [1]))


@pytest.mark.parametrize("token", ["", "a", "AAAA", "é", "\x00", "=", "....", "A" * 1000, "WzFd"])
def test_a_token_that_was_made_up_does_not_open(token: str) -> None:
    assert message(TOKENS.open, [], token) == "pageToken does not belong to this request"


@given(st.integers(0, 60), st.sampled_from("ABCxyz019-_"))
def test_a_token_that_was_changed_does_not_open_for_another_place(position: int, character: str) -> None:
    token = TOKENS.seal(["q"], [123456, "urn:air:acme.example:tool:echo"])
    changed = token[:position] + character + token[position + 1 :]
    try:
        opened = TOKENS.open(["q"], changed)
    except InvalidArgument:
        return
    # It was the same character, or bits at the end of base64 that mean nothing.
    assert opened == [123456, "urn:air:acme.example:tool:echo"]


@pytest.mark.parametrize("brand", ["ACME.example", "acme", "https://acme.example", "bücher.example", ""])
def test_a_brand_that_is_no_domain_is_told_what_one_looks_like(brand: str) -> None:
    with pytest.raises(InvalidArgument, match=r"brandDomain must be a domain in lower case, such as acme\.example"):
        parse_endorsement({"brandDomain": brand, "entry": {}})
