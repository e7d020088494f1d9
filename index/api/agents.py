"""`GET /agents` and `GET /agents/{identifier}` (ARD 5.3.4, 5.3.5)."""

import re
from typing import Any
from urllib.parse import unquote_to_bytes

import orjson
from aiohttp import web

from index.api.answers import cacheable
from index.api.errors import ApiError
from index.api.keys import DATABASE, SETTINGS, TOKENS
from index.identity import is_ard_identifier
from index.query import DEFAULT_LIST_PAGE, InvalidArgument, parse_list_filter, parse_list_order, parse_page_size
from index.store import search as store

_PARAMETERS = frozenset({"filter", "orderBy", "pageSize", "pageToken"})
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


async def list_agents(request: web.Request) -> web.Response:
    """List entries in a fixed order, filtered, without relevance."""
    query = request.query
    unknown = sorted(set(query) - _PARAMETERS)
    if unknown:
        raise InvalidArgument(f"'{unknown[0][:40]}' is not a parameter of this resource")
    repeated = [name for name in query if len(query.getall(name)) > 1]
    if repeated:
        raise InvalidArgument(f"{repeated[0]} must be given once")
    clauses = parse_list_filter(query.get("filter"))
    orders = parse_list_order(query.get("orderBy"))
    size = parse_page_size(query.get("pageSize"), DEFAULT_LIST_PAGE)
    sealed = ["list", query.get("filter", ""), [[order.field, order.descending] for order in orders]]
    token = query.get("pageToken")
    after = None if token is None else request.app[TOKENS].open(sealed, token)
    if after is not None and len(after) != len(orders):
        raise InvalidArgument("pageToken does not belong to this request")
    page = await request.app[DATABASE].read(store.list_entries, clauses, orders, size, after)
    answer: dict[str, Any] = {"items": [orjson.loads(text) for text in page.projections], "total": page.total}
    if page.after is not None:
        answer["pageToken"] = request.app[TOKENS].seal(sealed, page.after)
    return cacheable(request, orjson.dumps(answer), request.app[SETTINGS].api.max_age)


async def retrieve_agent(request: web.Request) -> web.Response:
    """Give one entry, complete and as published, by its exact identifier; other registries are never asked."""
    identifier = _identifier(request)
    stored = await request.app[DATABASE].read(store.retrieve, identifier)
    if stored is None:
        raise ApiError(404, "no entry has this identifier")
    return cacheable(request, stored.entry.encode(), request.app[SETTINGS].api.max_age)


def _identifier(request: web.Request) -> str:
    """Take the identifier from the raw path: decoded exactly once, then checked (ARD 5.3.4)."""
    raw = request.rel_url.raw_path.partition("/agents/")[2]
    if _BAD_ESCAPE.search(raw):
        raise InvalidArgument("the identifier is not percent-encoded correctly")
    try:
        identifier = unquote_to_bytes(raw).decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidArgument("the identifier is not percent-encoded UTF-8") from None
    if not is_ard_identifier(identifier):
        raise InvalidArgument("expected an identifier of the form urn:air:<publisher>:<namespace>:<name>")
    return identifier
