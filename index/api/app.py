"""The API server: its routes, each listed once."""

from collections.abc import Callable
from datetime import UTC, datetime

from aiohttp import web

from config.settings import Settings
from index.api import (
    agents,
    changes,
    drift,
    endorsement,
    listed,
    operations,
    origins,
    search,
    snapshots,
    wellknown,
)
from index.api.keys import DATABASE, NOW, READINGS, SETTINGS, TOKENS
from index.api.listener import Listener, take_port
from index.api.readings import Readings
from index.query import PageTokens
from index.store.database import Database
from index.store.search import token_secret

BASE = "/api/v1"


def routes() -> list[web.RouteDef]:
    """List every route."""
    return [
        web.post(f"{BASE}/search", search.search),
        web.post(f"{BASE}/explore", search.explore),
        web.post(f"{BASE}/endorsement", endorsement.endorsement),
        web.get(f"{BASE}/agents", agents.list_agents),
        web.get(f"{BASE}/agents/{{identifier:[^/]+}}/history", listed.history),
        web.get(f"{BASE}/agents/{{identifier:[^/]+}}/provenance", listed.provenance),
        web.get(f"{BASE}/agents/{{identifier:[^/]+}}/drift", listed.drift),
        # The rest of the path, so that encoded slashes and line ends reach the handler and get their 400.
        web.get(f"{BASE}/agents/{{identifier:(?s:.*)}}", agents.retrieve_agent),
        web.get(f"{BASE}/drift", drift.list_drift),
        web.get(f"{BASE}/lag", drift.list_lag),
        web.get(f"{BASE}/changes", changes.list_changes),
        web.get(f"{BASE}/snapshots/{{digest:(?s:.*)}}", snapshots.snapshot),
        web.get(f"{BASE}/origins", origins.list_origins),
        web.get(f"{BASE}/origins/{{origin:(?s:.*)}}", origins.show_origin),
        web.get(f"{BASE}/catalogs/{{number:[0-9]{{1,9}}}}.json", wellknown.catalog),
        web.get("/.well-known/ard.json", wellknown.manifest),
        web.get("/.well-known/ai-catalog.json", wellknown.manifest),
        web.get("/healthz", operations.healthz),
        web.get("/readyz", operations.readyz),
        web.get("/openapi.json", operations.openapi),
        web.get("/", operations.root),
    ]


def _utc_now() -> datetime:
    return datetime.now(UTC)


async def make_app(settings: Settings, database: Database, now: Callable[[], datetime] = _utc_now) -> web.Application:
    """Build the application; the database must be ready. `now` is the clock that freshness and lag are judged by."""
    app = web.Application(client_max_size=settings.api.max_request_size)
    app[DATABASE] = database
    app[SETTINGS] = settings
    app[NOW] = now
    app[TOKENS] = PageTokens(await database.read(token_secret))
    app[READINGS] = Readings(database, now)
    app.add_routes(routes())
    if settings.api.metrics:
        app.router.add_get("/metrics", operations.show_metrics)
    app.on_cleanup.append(operations.close_readings)
    return app


class ApiServer:
    """The API server of one process. Use as an asynchronous context manager."""

    def __init__(self, settings: Settings, database: Database, now: Callable[[], datetime] = _utc_now) -> None:
        self._settings = settings
        self._database = database
        self._now = now
        self._listener: Listener | None = None

    async def __aenter__(self) -> "ApiServer":
        listen, taken = take_port("api.listen", self._settings.api.listen)
        api = self._settings.api.model_copy(update={"listen": listen})
        self._settings = self._settings.model_copy(update={"api": api})
        try:
            app = await make_app(self._settings, self._database, self._now)
            self._listener = Listener(app, "api.listen", listen, taken)
            await self._listener.__aenter__()
        except BaseException:
            if taken is not None:
                taken.close()
            raise
        return self

    async def __aexit__(self, *failure: object) -> None:
        if self._listener is not None:
            await self._listener.__aexit__(*failure)

    @property
    def base_url(self) -> str:
        """What the answers name as the base of the API."""
        return self._settings.base_url

    @property
    def address(self) -> str:
        """The address that the server listens on, with the port it was given."""
        return "" if self._listener is None else self._listener.address
