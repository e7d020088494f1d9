"""`GET /drift` and `GET /lag`: where documents disagree, and how long copies lag behind, ours included."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import web

from index.api.answers import cacheable, json_bytes
from index.api.keys import DATABASE, NOW, SETTINGS, TOKENS
from index.api.parameters import instant, one_of, page_size, read_parameters, text
from index.diff import ChangeClass
from index.drift_codes import CODES
from index.query import InvalidArgument
from index.store import drift_reads as store
from index.store.drift_reads import DriftFilter
from index.views import drift_json

STATES = ("open", "closed", "all")
CLASSES = tuple(str(kind) for kind in ChangeClass)
DEFAULT_PAGE = 50
_FILTERS = ("state", "class", "publisher", "code", "since", "identifier", "origin")
_PARAMETERS = frozenset({*_FILTERS, "limit", "pageSize", "pageToken"})


async def list_drift(request: web.Request) -> web.Response:
    """List disagreements, those opened last first."""
    query = read_parameters(request, _PARAMETERS)
    wanted, size, after = _wanted(query), page_size(query, DEFAULT_PAGE), _after(request, "drift", query)
    rows = await request.app[DATABASE].read(store.list_drifts, wanted, size + 1, after)
    return _page(request, "drift", query, rows, size, {})


async def list_lag(request: web.Request) -> web.Response:
    """List how long copies lag behind a live side that moved, and how long search lags behind what was fetched."""
    query = read_parameters(request, _PARAMETERS)
    wanted, size, after = _wanted(query), page_size(query, DEFAULT_PAGE), _after(request, "lag", query)
    rows = await request.app[DATABASE].read(store.list_lags, wanted, size + 1, after)
    is_open = await request.app[DATABASE].read(store.count_open_lags, wanted)
    own = await request.app[DATABASE].read(store.own_lags)
    return _page(request, "lag", query, rows, size, {"own": own_json(own), "open": is_open})


def own_json(seconds: Sequence[float]) -> dict[str, Any]:
    """Sum up how long the newest events took from the observation until search showed them."""
    ordered = sorted(seconds)
    return {
        "count": len(ordered),
        "p50S": _quantile(ordered, 0.5),
        "p95S": _quantile(ordered, 0.95),
        "maxS": ordered[-1] if ordered else None,
    }


def _quantile(ordered: Sequence[float], share: float) -> float | None:
    """Give the least value that is not below a share of them (nearest rank)."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None


def _wanted(query: Mapping[str, str]) -> DriftFilter:
    publisher, origin = text(query, "publisher"), text(query, "origin")
    return DriftFilter(
        state=one_of(query, "state", STATES) or "open",
        drift_class=one_of(query, "class", CLASSES),
        publisher=None if publisher is None else publisher.lower().removesuffix("."),
        code=one_of(query, "code", sorted(CODES)),
        identifier=text(query, "identifier"),
        origin=None if origin is None else origin.lower().rstrip("/"),
        since=instant(query, "since"),
    )


def _sealed(name: str, query: Mapping[str, str]) -> list[Any]:
    return [name, *(query.get(parameter) for parameter in _FILTERS)]


def _after(request: web.Request, name: str, query: Mapping[str, str]) -> int | None:
    token = query.get("pageToken")
    if token is None:
        return None
    key = request.app[TOKENS].open(_sealed(name, query), token)
    if len(key) != 1 or not isinstance(key[0], int):
        raise InvalidArgument("pageToken does not belong to this request")
    return key[0]


def _page(
    request: web.Request,
    name: str,
    query: Mapping[str, str],
    rows: Sequence[store.StoredRow],
    size: int,
    further: Mapping[str, Any],
) -> web.Response:
    """Answer with a page of rows of which one more than wanted was read."""
    now = request.app[NOW]()
    answer: dict[str, Any] = {"items": [drift_json(row, now) for row in rows[:size]], **further}
    if len(rows) > size:
        answer["pageToken"] = request.app[TOKENS].seal(_sealed(name, query), [rows[size - 1].id])
    return cacheable(request, json_bytes(answer), request.app[SETTINGS].api.max_age)
