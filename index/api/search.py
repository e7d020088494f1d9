"""`POST /search` and `POST /explore` (ARD 5.3.2, 5.3.3)."""

from datetime import datetime
from typing import Any

import orjson
from aiohttp import web

from index.api.answers import json_response, read_json
from index.api.keys import DATABASE, NOW, SETTINGS, TOKENS
from index.query import (
    MAX_PAGE_SIZE,
    InvalidArgument,
    constraints,
    parse_explore,
    parse_search,
    query_context,
    resolve_key,
)
from index.served import NAMESPACE, PREFIX, without_our_terms
from index.store import search as store
from index.store.annotations import Annotation, annotated_search
from index.store.search import Hit, Question
from index.text import ANALYSER_VERSION
from index.views import annotations_json

# A count that no registry reaches and both databases can compare with.
_MORE_THAN_ANY = 2**31 - 1


async def search(request: web.Request) -> web.Response:
    """Answer a need with the entries that fit, best first."""
    settings = request.app[SETTINGS]
    wanted = parse_search(await read_json(request, settings.api.max_request_size))
    question = Question(wanted.query.text, constraints(wanted.query), settings.search.min_score)
    size = min(wanted.page_size, MAX_PAGE_SIZE)
    sealed = ["search", ANALYSER_VERSION, wanted.query.model_dump(by_alias=True), wanted.federation]
    after = None
    if wanted.page_token is not None:
        strength, identifier = _pair(request.app[TOKENS].open(sealed, wanted.page_token))
        after = (strength, identifier)
    page = await request.app[DATABASE].read(annotated_search, question, size, after)
    now = request.app[NOW]()
    answer: dict[str, Any] = {
        "results": [search_result(hit, annotation, settings.base_url, now) for hit, annotation in page.hits]
    }
    if wanted.federation == "referrals":
        answer["referrals"] = []
    if page.after is not None:
        answer["pageToken"] = request.app[TOKENS].seal(sealed, page.after)
    # The answer's members are closed, so how many others were asked is told in a field of the response (ARD 5.4).
    return json_response(answer, headers={"Ardvark-Federation": f"{wanted.federation}; peers=0"})


def _pair(key: list[Any]) -> tuple[int, str]:
    if len(key) != 2 or not isinstance(key[0], int) or not isinstance(key[1], str):
        raise InvalidArgument("pageToken does not belong to this request")
    return key[0], key[1]


def search_result(hit: Hit, annotation: Annotation, source: str, now: datetime) -> dict[str, Any]:
    """Write a result: the projection, then score, source and our own terms, which nothing published may imitate."""
    result = without_our_terms(orjson.loads(hit.projection))
    own = result.get("@context")
    contexts = own if isinstance(own, list) else [own] if own is not None else []
    result["@context"] = [*contexts, {PREFIX: NAMESPACE}]
    result["score"] = hit.score
    result["source"] = source
    result |= {f"{PREFIX}:{name}": value for name, value in annotations_json(annotation, now).items()}
    return result


async def explore(request: web.Request) -> web.Response:
    """Count the values of fields over everything that matches."""
    settings = request.app[SETTINGS]
    wanted = parse_explore(await read_json(request, settings.api.max_request_size))
    text = wanted.query.text if wanted.query.text and wanted.query.text.strip() else None
    question = Question(text, constraints(wanted.query), settings.search.min_score)
    context = query_context(wanted.query)
    facets = wanted.result_type.facets
    fields = [
        (resolve_key(facet.field, context).path, facet.limit, min(max(facet.min_count, 1), _MORE_THAN_ANY))
        for facet in facets
    ]
    counted = await request.app[DATABASE].read(store.explore, question, fields)
    answer = {}
    for facet, result in zip(facets, counted, strict=True):
        answer[facet.field] = {
            "buckets": [{"value": value, "count": count} for value, count in result.buckets],
            "otherCount": result.other_count,
        }
    return json_response({"resultType": "facets", "facets": answer})
