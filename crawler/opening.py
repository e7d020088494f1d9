"""How a daemon comes to its database, and where it can be asked how it is meanwhile and from then on.

A database that does not answer yet is waited for, as when both start together; one that refuses us is not.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import timedelta

import structlog

from config.errors import OperatorError
from config.settings import Settings
from config.units import format_duration
from crawler.clock import SystemClock
from crawler.lateness import Lateness
from index.api.listener import Listener
from index.api.operations import Start, make_operations_app, make_waiting_app
from index.store.database import Database
from index.store.outage import StoreUnavailable

_log = structlog.get_logger("ardvark.daemon")
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 5.0
# However little time is left, a server gets a second for an answer; one that keeps silent does not get all of it.
_SHORTEST_TRY_S, _LONGEST_TRY_S = 1.0, 10.0


class NeverAnswered(OperatorError):
    """The database did not answer in the time that it had: no mistake in the settings, so starting anew may help."""

    status = 1


class StoppedWhileWaiting(Exception):
    """A signal ended the wait for the database."""


@asynccontextmanager
async def awaited_database(settings: Settings, *, serves_api: bool) -> AsyncIterator[Database]:
    """Open the database of a daemon with its schema in place, and serve its metrics where the settings say so.

    Raises NeverAnswered, StoppedWhileWaiting.
    """
    start = Start()
    async with AsyncExitStack() as stack:
        stack.enter_context(Lateness())
        database = await stack.enter_async_context(Database(settings.storage.url))
        now = SystemClock().now
        if settings.metrics.listen is not None:
            app = make_operations_app(database, start, now)
            listener = await stack.enter_async_context(Listener(app, "metrics.listen", settings.metrics.listen))
            _log.info("metrics.listening", address=listener.address)
        stand_in = Listener(make_waiting_app(database, start, now), "api.listen", settings.api.listen)
        await _until_it_answers(database, settings.storage.wait, stand_in if serves_api else None)
        await database.prepare()
        start.over = True
        yield database


async def _until_it_answers(database: Database, patience: timedelta, stand_in: Listener | None) -> None:
    """Wait as long as the settings say; the API has a stand-in only where there is something to wait for."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + patience.total_seconds()
    pause_s = _FIRST_PAUSE_S
    async with AsyncExitStack() as meanwhile:
        stopped = meanwhile.enter_context(_stopped_by_signals())
        trouble = await _trouble(database, patience.total_seconds() or _LONGEST_TRY_S)
        if trouble is not None and patience and stand_in is not None:
            await meanwhile.enter_async_context(stand_in)
        while trouble is not None:
            left_s = deadline - loop.time()
            if left_s <= 0:
                raise NeverAnswered(_never(database, patience, trouble))
            _log.warning("store.awaited", error=str(trouble), seconds_left=round(left_s, 1))
            if await _is_set_within(stopped, min(pause_s, left_s)):
                break
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
            trouble = await _trouble(database, deadline - loop.time())
        if stopped.is_set():
            raise StoppedWhileWaiting


async def _trouble(database: Database, left_s: float) -> StoreUnavailable | None:
    """Ask whether the database answers; gives what is wrong if that may pass."""
    try:
        async with asyncio.timeout(max(_SHORTEST_TRY_S, min(left_s, _LONGEST_TRY_S))):
            await database.read(_ask)
    except TimeoutError:
        return StoreUnavailable("unreachable", "no answer")
    except StoreUnavailable as error:
        return error if error.may_pass else None
    return None


def _ask(_: object) -> None:
    """Ask nothing: that there is a connection is the answer."""


def _never(database: Database, patience: timedelta, trouble: StoreUnavailable) -> str:
    within = f" within {format_duration(patience)}" if patience else ""
    return f"{database.url.render_as_string(hide_password=True)} did not answer{within}: {trouble}"


async def _is_set_within(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False


@contextmanager
def _stopped_by_signals() -> Iterator[asyncio.Event]:
    """Take signals: the first process of a container is deaf to those that it does not take."""
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    numbers = (signal.SIGINT, signal.SIGTERM)
    for number in numbers:
        loop.add_signal_handler(number, stopped.set)
    try:
        yield stopped
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
