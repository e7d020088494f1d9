"""`GET /agents` and `GET /agents/{identifier}` (ARD 5.3.4, 5.3.5)."""

import re
from datetime import datetime
from typing import Any

import orjson
from aiohttp import web

from index.api.answers import cacheable
from index.api.errors import ApiError
from index.api.keys import DATABASE, NOW, SETTINGS, TOKENS
from index.api.parameters import decoded_once, read_parameters
from index.findings import redact
from index.freshness import header
from index.identity import is_ard_identifier
from index.query import DEFAULT_LIST_PAGE, InvalidArgument, parse_list_filter, parse_list_order, parse_page_size
from index.served import without_our_terms
from index.store import search as store
from index.store.annotations import Annotation, annotated_entry
from index.views import claim_of, listed_freshness

_PARAMETERS = frozenset({"filter", "orderBy", "pageSize", "pageToken"})
_FIELD_VALUE = re.compile(r"[\x21-\x7e]{1,2048}")


async def list_agents(request: web.Request) -> web.Response:
    """List entries in a fixed order, filtered, without relevance."""
    query = read_parameters(request, _PARAMETERS)
    clauses = parse_list_filter(query.get("filter"))
    orders = parse_list_order(query.get("orderBy"))
    size = parse_page_size(query.get("pageSize"), DEFAULT_LIST_PAGE)
    sealed = ["list", query.get("filter", ""), [[order.field, order.descending] for order in orders]]
    token = query.get("pageToken")
    after = None if token is None else request.app[TOKENS].open(sealed, token)
    if after is not None and len(after) != len(orders):
        raise InvalidArgument("pageToken does not belong to this request")
    page = await request.app[DATABASE].read(store.list_entries, clauses, orders, size, after)
    items = [without_our_terms(orjson.loads(text)) for text in page.projections]
    answer: dict[str, Any] = {"items": items, "total": page.total}
    if page.after is not None:
        answer["pageToken"] = request.app[TOKENS].seal(sealed, page.after)
    return cacheable(request, orjson.dumps(answer), request.app[SETTINGS].api.max_age)


async def retrieve_agent(request: web.Request) -> web.Response:
    """Give one entry, complete and as published, by its exact identifier; other registries are never asked."""
    identifier = identifier_of(request)
    found = await request.app[DATABASE].read(annotated_entry, identifier)
    if found is None:
        raise ApiError(404, "no entry has this identifier")
    stored, annotation = found
    headers = _headers(annotation, request.app[NOW]())
    return cacheable(request, stored.entry.encode(), request.app[SETTINGS].api.max_age, headers=headers)


def _headers(annotation: Annotation, now: datetime) -> dict[str, str]:
    """Say what we observed beside an entry, which stays as published."""
    drift = annotation.drift.count if annotation.drift is not None else 0
    headers = {"Ardvark-Freshness": header(listed_freshness(annotation, now)), "Ardvark-Drift": f"open={drift}"}
    claim = claim_of(annotation)
    if claim is not None:
        headers["Ardvark-Publisher-Claim"] = claim
    url = annotation.document.url if annotation.document is not None else ""
    if _FIELD_VALUE.fullmatch(url) and redact(url) == url:
        headers["Ardvark-Document"] = url
    return headers


def identifier_of(request: web.Request, suffix: str = "") -> str:
    """Take the identifier from the raw path, in front of a suffix that must not be encoded.

    It is decoded exactly once, then checked (ARD 5.3.4).
    """
    raw = request.rel_url.raw_path.partition("/agents/")[2]
    if not raw.endswith(suffix):
        raise InvalidArgument(f"{suffix} must not be encoded")
    identifier = decoded_once(raw.removesuffix(suffix), "identifier")
    if not is_ard_identifier(identifier):
        raise InvalidArgument("expected an identifier of the form urn:air:<publisher>:<namespace>:<name>")
    return identifier
