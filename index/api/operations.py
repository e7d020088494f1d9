"""Health, readiness, metrics, the API's own description, and where to look.

Health, readiness and metrics are there in every role: beside the API, on a listener of their own, and on either of them
while the process waits for its database.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import orjson
import structlog
from aiohttp import web

from index import metrics
from index.api.answers import cacheable, json_response
from index.api.errors import ApiError
from index.api.keys import DATABASE, NOW, READINGS, SETTINGS
from index.api.openapi import document
from index.api.readings import Readings
from index.store.database import Database
from index.store.outage import StoreUnavailable
from index.store.search import entry_count
from index.views import instant

_log = structlog.get_logger("ardvark.api")
_RETRY_S = 5


@dataclass(slots=True)
class Start:
    """How far a process has come: until its start is over, nothing may be asked of its database."""

    over: bool = False


_START = web.AppKey("start", Start)


def make_operations_app(database: Database, start: Start, now: Callable[[], datetime]) -> web.Application:
    """Build the application for who runs the process, whatever its role and whether or not the database answers."""
    app = web.Application()
    app[DATABASE] = database
    app[NOW] = now
    app[READINGS] = Readings(database, now)
    app[_START] = start
    app.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", show_metrics)])
    app.on_cleanup.append(close_readings)
    return app


def make_waiting_app(database: Database, start: Start, now: Callable[[], datetime]) -> web.Application:
    """Build what stands in for the API until the database answers."""
    app = make_operations_app(database, start, now)
    app.router.add_route("*", "/{path:(?s:.*)}", not_yet)
    return app


async def close_readings(app: web.Application) -> None:
    """Break off what is just read of the database."""
    await app[READINGS].close()


async def not_yet(_: web.Request) -> web.Response:
    """Ask for patience."""
    raise ApiError(503, "the registry is starting", retry_after_s=_RETRY_S)


def _is_starting(request: web.Request) -> bool:
    start = request.app.get(_START)
    return start is not None and not start.over


async def healthz(_: web.Request) -> web.Response:
    """Say that the process lives."""
    return json_response({"status": "ok"})


async def readyz(request: web.Request) -> web.Response:
    """Say whether the database answers; when it can be read only, search works and nothing else is wrong with us."""
    if _is_starting(request):
        raise ApiError(503, "the process is starting: it waits for its database", retry_after_s=_RETRY_S)
    database = request.app[DATABASE]
    try:
        entries = await database.read(entry_count)
    except Exception as error:
        _log.warning("api.not_ready", error=str(error)[:200])
        why = f"is {error.reason}" if isinstance(error, StoreUnavailable) else "does not answer"
        raise ApiError(503, f"the database {why}", retry_after_s=_RETRY_S) from None
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
    starting = _is_starting(request)
    stored = {} if starting else await request.app[READINGS].latest()
    metrics.STORE_AVAILABLE.set(not starting and request.app[DATABASE].outage.trouble is None)
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
