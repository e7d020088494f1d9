"""Health, readiness, the API's own description, and where to look."""

import orjson
import structlog
from aiohttp import web

from index.api.answers import cacheable, json_response
from index.api.errors import ApiError
from index.api.keys import DATABASE, SETTINGS
from index.api.openapi import document
from index.store.search import entry_count

_log = structlog.get_logger("ardvark.api")


async def healthz(_: web.Request) -> web.Response:
    """Say that the process lives."""
    return json_response({"status": "ok"})


async def readyz(request: web.Request) -> web.Response:
    """Say whether the database answers."""
    try:
        entries = await request.app[DATABASE].read(entry_count)
    except Exception as error:
        _log.warning("api.not_ready", error=str(error)[:200])
        raise ApiError(503, "the database does not answer", retry_after_s=5) from None
    return json_response({"status": "ready", "entries": entries})


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
            "health": ["/healthz", "/readyz"],
        }
    )
