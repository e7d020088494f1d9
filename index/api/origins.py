"""`GET /origins` and `GET /origins/{origin}`: what was tried, what came of it, and why something is not listed."""

from typing import Any

from aiohttp import web

from index.api.answers import cacheable, json_bytes
from index.api.errors import ApiError
from index.api.keys import DATABASE, NOW, SETTINGS, TOKENS
from index.api.parameters import decoded_once, page_size, read_parameters
from index.query import InvalidArgument
from index.store import origin_reads as store
from index.store.tables import storable
from index.urls import BadUrl, origin_of, parse_url
from index.views import origin_json, origin_page_json

DEFAULT_PAGE = 50
# Rows of each kind in the page of one origin.
MOST_ROWS = 100
_PARAMETERS = frozenset({"limit", "pageSize", "pageToken"})
_SEALED = ["origins"]


async def list_origins(request: web.Request) -> web.Response:
    """List the known origins by name."""
    query = read_parameters(request, _PARAMETERS)
    size = page_size(query, DEFAULT_PAGE)
    token = query.get("pageToken")
    after = None if token is None else request.app[TOKENS].open(_SEALED, token)
    if after is not None and (len(after) != 1 or not isinstance(after[0], str)):
        raise InvalidArgument("pageToken does not belong to this request")
    rows = await request.app[DATABASE].read(store.page_of_origins, size + 1, after[0] if after else None)
    answer: dict[str, Any] = {"items": [origin_json(row) for row in rows[:size]]}
    if len(rows) > size:
        answer["pageToken"] = request.app[TOKENS].seal(_SEALED, [rows[size - 1].origin])
    return cacheable(request, json_bytes(answer), request.app[SETTINGS].api.max_age)


async def show_origin(request: web.Request) -> web.Response:
    """Give all that is known of one origin, for whoever publishes there."""
    read_parameters(request, ())
    origin = _origin(request)
    page = await request.app[DATABASE].read(store.origin_page, origin, MOST_ROWS)
    if page is None:
        raise ApiError(404, "no such origin is known")
    body = json_bytes(origin_page_json(page, request.app[NOW]()))
    return cacheable(request, body, request.app[SETTINGS].api.max_age)


def _origin(request: web.Request) -> str:
    """Take the origin from the raw path: decoded exactly once, then brought into its canonical form."""
    text = decoded_once(request.rel_url.raw_path.partition("/origins/")[2], "origin")
    try:
        url = parse_url(text)
    except BadUrl as error:
        raise InvalidArgument(f"expected an origin such as https://acme.example: {error}") from None
    if url.path != "/" or url.raw_query_string or "?" in text or "#" in text or url.user is not None:
        raise InvalidArgument("expected an origin such as https://acme.example, without a path")
    return storable(origin_of(str(url)))
