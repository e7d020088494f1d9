"""`GET /agents/{identifier}/history`, `/provenance` and `/drift`: what is known of one identifier beside its entry."""

from typing import Any

from aiohttp import web

from index.api.agents import identifier_of
from index.api.answers import cacheable, json_bytes
from index.api.errors import ApiError
from index.api.keys import DATABASE, NOW, SETTINGS, TOKENS
from index.api.parameters import page_size, read_parameters
from index.claimed import claimed_endorsement
from index.query import InvalidArgument
from index.store import drift_reads as store
from index.store.inspect import last_fetch, listing_row, sources_of
from index.views import artifact_json, drift_json, history_json, provenance_json

DEFAULT_PAGE = 50
_PAGED = frozenset({"limit", "pageSize", "pageToken"})
_UNKNOWN = "no entry has or had this identifier"


async def history(request: web.Request) -> web.Response:
    """Give the states that an entry and its artifact had, newest first, and those they have."""
    identifier = identifier_of(request, "/history")
    query = read_parameters(request, _PAGED)
    size = page_size(query, DEFAULT_PAGE)
    sealed = ["history", identifier]
    after = _after(request, sealed, query.get("pageToken"))
    found = await request.app[DATABASE].read(store.history_of, identifier, size + 1, after)
    if found is None:
        raise ApiError(404, _UNKNOWN)
    answer = history_json(found)
    if len(found.versions) > size:
        answer["items"] = answer["items"][:size]
        answer["pageToken"] = request.app[TOKENS].seal(sealed, [found.versions[size - 1].id])
    return _answer(request, answer)


async def provenance(request: web.Request) -> web.Response:
    """Say where a listing comes from, who else publishes its identifier, and what became of its artifact."""
    identifier = identifier_of(request, "/provenance")
    read_parameters(request, ())
    database, now = request.app[DATABASE], request.app[NOW]()
    row = await database.read(listing_row, identifier)
    if row is None:
        raise ApiError(404, _UNKNOWN)
    sources = await database.read(sources_of, identifier)
    fetch = await database.read(last_fetch, row.document_id) if row.document_id else None
    artifact = await database.read(store.artifact_of, identifier)
    answer = provenance_json(row, sources, fetch, now)
    answer["artifact"] = None if artifact is None or artifact.decision is None else artifact_json(artifact, now)
    answer["endorsement"] = await claimed_endorsement(request.app[SETTINGS], database, sources, now)
    return _answer(request, answer)


async def drift(request: web.Request) -> web.Response:
    """List the disagreements about one identifier, open and closed, those opened last first."""
    identifier = identifier_of(request, "/drift")
    query = read_parameters(request, _PAGED)
    size, now = page_size(query, DEFAULT_PAGE), request.app[NOW]()
    sealed = ["drift of", identifier]
    wanted = store.DriftFilter("all", identifier=identifier)
    database = request.app[DATABASE]
    rows = await database.read(store.list_drifts, wanted, size + 1, _after(request, sealed, query.get("pageToken")))
    if not rows and await database.read(listing_row, identifier) is None:
        raise ApiError(404, _UNKNOWN)
    counts = await database.read(store.open_counts, [identifier])
    answer: dict[str, Any] = {
        "identifier": identifier,
        "open": counts[identifier].count if identifier in counts else 0,
        "items": [drift_json(row, now) for row in rows[:size]],
    }
    if len(rows) > size:
        answer["pageToken"] = request.app[TOKENS].seal(sealed, [rows[size - 1].id])
    return _answer(request, answer)


def _after(request: web.Request, sealed: list[Any], token: str | None) -> int | None:
    if token is None:
        return None
    key = request.app[TOKENS].open(sealed, token)
    if len(key) != 1 or not isinstance(key[0], int):
        raise InvalidArgument("pageToken does not belong to this request")
    return key[0]


def _answer(request: web.Request, answer: dict[str, Any]) -> web.Response:
    return cacheable(request, json_bytes(answer), request.app[SETTINGS].api.max_age)
