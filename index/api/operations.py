"""Health, readiness, the API's own description, and where to look."""

import orjson
import structlog
from aiohttp import web

from index import metrics
from index.api.answers import cacheable, json_response
from index.api.errors import ApiError
from index.api.keys import DATABASE, READINGS, SETTINGS
from index.api.openapi import document
from index.store.outage import StoreUnavailable
from index.store.search import entry_count
from index.views import instant

_log = structlog.get_logger("ardvark.api")


async def healthz(_: web.Request) -> web.Response:
    """Say that the process lives."""
    return json_response({"status": "ok"})


async def readyz(request: web.Request) -> web.Response:
    """Say whether the database answers; when it can be read only, search works and nothing else is wrong with us."""
    database = request.app[DATABASE]
    try:
        entries = await database.read(entry_count)
    except Exception as error:
        _log.warning("api.not_ready", error=str(error)[:200])
        why = f"is {error.reason}" if isinstance(error, StoreUnavailable) else "does not answer"
        raise ApiError(503, f"the database {why}", retry_after_s=5) from None
    trouble = database.outage.trouble
    if trouble is None:
        return json_response({"status": "ready", "entries": entries})
    problem = f"the database is {trouble.reason}"
    return json_response(
        {"status": "degraded", "entries": entries, "problem": problem, "since": instant(trouble.since)}
    )


async def show_metrics(request: web.Request) -> web.Response:
    """Write the metrics of the process and of its database.

    Like health and readiness, they are for who runs the registry and lie outside the base URL that `/openapi.json`
    describes.
    """
    stored = await request.app[READINGS].latest()
    metrics.STORE_AVAILABLE.set(request.app[DATABASE].outage.trouble is None)
    body = metrics.exposition(stored)
    headers = {"Content-Type": metrics.CONTENT_TYPE, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    return web.Response(body=body, headers=headers)


async def openapi(request: web.Request) -> web.Response:
    """Describe the API."""
    settings = request.app[SETTINGS]
    return cacheable(request, orjson.dumps(document(settings)), settings.api.max_age)


async def root(request: web.Request) -> web.Response:
    """Point to what is here."""
    settings = request.app[SETTINGS]
    return json_response(
        {
            "name": settings.api.display_name,
            "api": settings.base_url,
            "manifest": "/.well-known/ard.json",
            "openapi": "/openapi.json",
            "observed": [f"{settings.base_url}{name}" for name in ("drift", "lag", "changes", "origins")],
            "health": ["/healthz", "/readyz"],
        }
    )
