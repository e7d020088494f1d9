"""What counts as an outage of the database, and how its end is told."""

import sqlite3

import pytest
from sqlalchemy.exc import IntegrityError, OperationalError
from structlog.testing import capture_logs

from index.store.outage import Outage, StoreUnavailable, outage_in


def sqlite_error(code: int) -> OperationalError:
    cause = sqlite3.OperationalError("database is in a bad way\nand more")
    cause.sqlite_errorcode = code
    return OperationalError("SELECT secret", {}, cause)


class ServerError(Exception):
    def __init__(self, state: str | None) -> None:
        super().__init__("the server says no")
        self.sqlstate = state


def server_error(state: str | None, *, cut: bool = False) -> OperationalError:
    return OperationalError("SELECT secret", {}, ServerError(state), connection_invalidated=cut)


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (sqlite_error(sqlite3.SQLITE_BUSY), "locked"),
        (sqlite_error(sqlite3.SQLITE_BUSY_SNAPSHOT), "locked"),
        (sqlite_error(sqlite3.SQLITE_FULL), "full"),
        (sqlite_error(sqlite3.SQLITE_IOERR_WRITE), "disk reports errors"),
        (sqlite_error(sqlite3.SQLITE_CANTOPEN), "gone"),
        (sqlite_error(sqlite3.SQLITE_READONLY), "read-only"),
        (server_error("57P01"), "unreachable"),
        (server_error("57P03"), "unreachable"),
        (server_error("08006"), "unreachable"),
        (server_error("53100"), "full"),
        (server_error("53300"), "out of resources"),
        (server_error("25006"), "read-only"),
        (server_error("3D000"), "gone"),
        (server_error("28P01"), "credentials"),
        (server_error(None, cut=True), "unreachable"),
        (ConnectionRefusedError("refused"), "unreachable"),
        (TimeoutError(), "unreachable"),
    ],
    ids=str,
)
def test_what_may_succeed_later_is_an_outage(error: Exception, word: str) -> None:
    fault = outage_in(error)
    assert fault is not None
    assert word in fault.reason
    assert "secret" not in str(fault)
    assert "\n" not in str(fault)
    assert outage_in(fault) is fault


@pytest.mark.parametrize(
    "error",
    [
        sqlite_error(sqlite3.SQLITE_ERROR),
        sqlite_error(sqlite3.SQLITE_CORRUPT),
        server_error("42P01"),
        server_error("23505"),
        server_error("57014"),
        IntegrityError("INSERT", {}, sqlite3.IntegrityError("twice")),
        ValueError("a fault of ours"),
    ],
    ids=str,
)
def test_what_fails_again_is_none(error: Exception) -> None:
    assert outage_in(error) is None


FAULT = StoreUnavailable("full")


async def test_an_outage_is_told_once_when_it_begins_and_once_when_it_ends() -> None:
    outage = Outage()
    with capture_logs() as events:
        outage.succeeded(writing=True)
        for _ in range(3):
            outage.failed(FAULT, writing=True)
        assert outage.stops_writes
        outage.succeeded(writing=True)
        outage.succeeded(writing=True)
    assert [event["event"] for event in events] == ["store.unavailable", "store.available"]
    assert not outage.stops_writes
    assert outage.trouble is None


async def test_reading_does_not_end_what_keeps_us_from_writing() -> None:
    outage = Outage()
    outage.failed(FAULT, writing=True)
    outage.failed(FAULT, writing=False)
    outage.succeeded(writing=False)
    assert outage.trouble is not None
    outage.succeeded(writing=True)
    assert outage.trouble is None
    outage.failed(FAULT, writing=False)
    outage.succeeded(writing=False)
    assert outage.trouble is None


async def test_a_small_write_that_succeeds_does_not_end_what_somebody_still_insists_on() -> None:
    outage = Outage()
    outage.failed(FAULT, writing=True)
    with outage.insisting():
        outage.succeeded(writing=True)
        assert outage.stops_writes
    outage.succeeded(writing=True)
    assert outage.trouble is None


async def test_the_newest_reason_is_shown_with_the_first_time() -> None:
    outage = Outage()
    outage.failed(StoreUnavailable("unreachable"), writing=True)
    assert outage.trouble is not None
    since = outage.trouble.since
    outage.failed(FAULT, writing=True)
    assert (outage.trouble.reason, outage.trouble.since) == ("full", since)
