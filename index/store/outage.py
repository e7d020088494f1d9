"""When the database does not answer: what counts as that, since when, and waiting until it is over.

A statement that is wrong fails again; a database that is locked, full, gone or restarting comes back. Only the latter
is an outage, and only then is trying again worth anything.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import structlog
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnectionLeft

from config.errors import OperatorError

_log = structlog.get_logger("ardvark.store")
_LONGEST_DETAIL = 200
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0
_READING, _WRITING = "reading", "writing"

_LOCKED = "locked by another process"
_FULL = "full: there is no room left on its disk"
_IO = "failing: its disk reports errors"
GONE = "gone: its file was moved or deleted"
REPLACED = "gone: another file is in its place, which only a restart may take up"
_READ_ONLY = "read-only"
_UNREACHABLE = "unreachable"
_OVERLOADED = "out of resources"

# Primary result codes of SQLite.
_SQLITE = {5: _LOCKED, 6: _LOCKED, 8: _READ_ONLY, 10: _IO, 13: _FULL, 14: GONE}
# Error codes of PostgreSQL, or what they begin with; the longest match counts.
_SQLSTATES = {
    "08": _UNREACHABLE,
    "25006": _READ_ONLY,
    "28": "refusing our credentials",
    "3D000": "gone: the server has no such database",
    "53": _OVERLOADED,
    "53100": _FULL,
    "55P03": _LOCKED,
    "57P": _UNREACHABLE,
    "58": _IO,
}

_PASSING = frozenset({_LOCKED, _OVERLOADED, _UNREACHABLE})


class StoreUnavailable(OperatorError):
    """The database does not answer; the same work may succeed later."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"the database is {reason}" + (f" ({detail})" if detail else ""))
        self.reason = reason

    @property
    def may_pass(self) -> bool:
        """Tell whether waiting alone may end it, as while a server starts; nobody need be called for that."""
        return self.reason in _PASSING


def outage_in(error: BaseException) -> StoreUnavailable | None:
    """Recognise an outage in what a database call raised; None for every other fault."""
    if isinstance(error, StoreUnavailable):
        return error
    reason = _reason(error)
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    return None if reason is None else StoreUnavailable(reason, str(cause).partition("\n")[0][:_LONGEST_DETAIL])


def _reason(error: BaseException) -> str | None:
    if isinstance(error, NoConnectionLeft):
        return _OVERLOADED
    if isinstance(error, OSError):  # from the driver, while it connects
        return _UNREACHABLE
    if not isinstance(error, DBAPIError):
        return None
    cause: Any = error.orig
    if code := getattr(cause, "sqlite_errorcode", None):
        return _SQLITE.get(code & 0xFF)
    state = getattr(cause, "sqlstate", None) or ""
    known = next((_SQLSTATES[state[:size]] for size in (5, 3, 2) if state[:size] in _SQLSTATES), None)
    return known or (_UNREACHABLE if error.connection_invalidated else None)


@dataclass(frozen=True, slots=True)
class Trouble:
    """An outage under way."""

    reason: str
    since: datetime


class Outage:
    """Whether the database of this process answers; logs once when that ends and once when it is back."""

    def __init__(self) -> None:
        self.trouble: Trouble | None = None
        self._failing: set[str] = set()
        self._insisting = 0
        self._began = 0.0
        self._over = asyncio.Event()

    @property
    def stops_writes(self) -> bool:
        """Tell whether a write failed last, so that nothing new should be begun."""
        return _WRITING in self._failing

    def failed(self, fault: StoreUnavailable, *, writing: bool) -> None:
        """Take note of a call that failed; the newest reason is the one to show."""
        self._failing.add(_WRITING if writing else _READING)
        before, now = self.trouble, datetime.now(UTC)
        self.trouble = Trouble(fault.reason, now if before is None else before.since)
        if before is None:
            self._began = time.monotonic()
            self._over.clear()
            _log.error("store.unavailable", reason=fault.reason, error=str(fault))

    def succeeded(self, *, writing: bool) -> None:
        """Take note of a call that was answered; whoever insists on one that failed decides when that is over."""
        if self.trouble is None:
            return
        if writing and not self._insisting:
            self._failing.clear()
        self._failing.discard(_READING)
        if not self._failing:
            self.trouble = None
            self._over.set()
            _log.info("store.available", seconds=round(time.monotonic() - self._began, 3))

    def pauses(self) -> "Pauses":
        """Give the pauses of somebody who waits for the end."""
        return Pauses(self._over)

    @contextmanager
    def insisting(self) -> Iterator["Pauses"]:
        """Keep the outage from ending while one write is tried again: smaller ones may succeed meanwhile."""
        self._insisting += 1
        try:
            yield self.pauses()
        finally:
            self._insisting -= 1


class Pauses:
    """The pauses between attempts: each twice as long, cut short when the outage ends."""

    def __init__(self, over: asyncio.Event) -> None:
        self._over = over
        self._next_s = _FIRST_PAUSE_S

    async def wait(self) -> None:
        """Wait before the next attempt."""
        pause_s, self._next_s = self._next_s, min(self._next_s * 2, _LONGEST_PAUSE_S)
        try:
            async with asyncio.timeout(pause_s):
                await self._over.wait()
        except TimeoutError:
            pass
