"""How a daemon comes to its database, and where it can be asked how it is meanwhile and from then on."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import structlog

from config.settings import Settings
from crawler.clock import SystemClock
from crawler.lateness import Lateness
from index.api.listener import Listener
from index.api.operations import Start, make_operations_app
from index.store.database import Database

_log = structlog.get_logger("ardvark.daemon")


@asynccontextmanager
async def awaited_database(settings: Settings) -> AsyncIterator[Database]:
    """Open the database of a daemon with its schema in place, and serve its metrics where the settings say so."""
    start = Start()
    async with AsyncExitStack() as stack:
        stack.enter_context(Lateness())
        database = await stack.enter_async_context(Database(settings.storage.url))
        if settings.metrics.listen is not None:
            app = make_operations_app(database, start, SystemClock().now)
            listener = await stack.enter_async_context(Listener(app, "metrics.listen", settings.metrics.listen))
            _log.info("metrics.listening", address=listener.address)
        await database.prepare()
        start.over = True
        yield database
