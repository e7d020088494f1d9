"""What an MCP endpoint is asked and what its answers mean: Streamable HTTP as of the revisions of 2025. Pure.

No crawl uses this; a probe does, where the operator has switched it on.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import orjson

from index.documents import Observation, Outcome
from index.strict_json import MalformedJson, parse

VERSION = "2025-06-18"
HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
_VERSION = re.compile(r"\d{4}-\d{2}-\d{2}")
_SESSION = re.compile(r"[\x21-\x7e]{1,512}")
_LONGEST_CURSOR = 4096
_DEEPEST = 64
_METHOD_NOT_FOUND = -32601


class EndpointState(StrEnum):
    """What came of asking an endpoint; only the first four were measured there."""

    OPEN = "open"
    AUTH_REQUIRED = "auth_required"
    WRONG_PROTOCOL = "wrong_protocol"
    WRONG_TRANSPORT = "wrong_transport"
    UNREACHABLE = "unreachable"
    NOT_MEASURED = "not_measured"


# 402 is a gate like the others: there is something, and not for everybody.
_STATES = {
    401: EndpointState.AUTH_REQUIRED,
    402: EndpointState.AUTH_REQUIRED,
    403: EndpointState.AUTH_REQUIRED,
    407: EndpointState.AUTH_REQUIRED,
    # Accepted, and answered elsewhere: the older transport with a stream of its own.
    202: EndpointState.WRONG_TRANSPORT,
    405: EndpointState.WRONG_TRANSPORT,
    406: EndpointState.WRONG_TRANSPORT,
    415: EndpointState.WRONG_TRANSPORT,
    426: EndpointState.WRONG_TRANSPORT,
    429: EndpointState.UNREACHABLE,
}
# Refused by us because not even the robots.txt of the host could be asked for.
SILENT_HOST = "silent_host"
_OUR_DECISIONS = frozenset({Outcome.REFUSED, Outcome.DISALLOWED, Outcome.TOO_LARGE})


def state_without_answer(observation: Observation) -> EndpointState:
    """Tell what it means that no message came."""
    if observation.reason == SILENT_HOST:
        return EndpointState.UNREACHABLE
    if observation.outcome in _OUR_DECISIONS:
        return EndpointState.NOT_MEASURED
    status = observation.status
    if status is None or status >= 500 or observation.reason.startswith(("timeout", "incomplete")):
        return EndpointState.UNREACHABLE
    return _STATES.get(status, EndpointState.WRONG_PROTOCOL)


# --- what is asked ----------------------------------------------------------------------------------------------------


def initialize(number: int, version: str) -> bytes:
    """Write the first request; `version` is that of this program."""
    parameters = {
        "protocolVersion": VERSION,
        "capabilities": {},
        "clientInfo": {"name": "ardvark", "version": version},
    }
    return _request(number, "initialize", parameters)


def initialized() -> bytes:
    """Write the notification that ends the handshake."""
    return orjson.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"})


def list_tools(number: int, cursor: str | None) -> bytes:
    """Write the request for a page of tools."""
    return _request(number, "tools/list", {} if cursor is None else {"cursor": cursor})


def _request(number: int, method: str, parameters: Mapping[str, Any]) -> bytes:
    return orjson.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": parameters})


# --- what is answered -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answer:
    """The message that answers a request: its result, or the code of its error."""

    result: Mapping[str, Any] | None
    error: int | None = None


def read_message(body: bytes, number: int) -> Answer | None:
    """Find the answer to a request in a body; None where there is none."""
    try:
        value = parse(body, max_depth=_DEEPEST).value
    except MalformedJson:
        return None
    messages = value if isinstance(value, list) else [value]
    return next((answer for message in messages if (answer := _answer(message, number)) is not None), None)


def _answer(message: Any, number: int) -> Answer | None:
    if not isinstance(message, Mapping) or message.get("jsonrpc") != "2.0":
        return None
    error, result = message.get("error"), message.get("result")
    if isinstance(error, Mapping) and message.get("id") in (number, None):
        code = error.get("code")
        return Answer(None, code if isinstance(code, int) else 0)
    if message.get("id") == number and isinstance(result, Mapping):
        return Answer(result)
    return None


@dataclass(slots=True)
class EventReader:
    """Reads a stream of events as it comes, until it holds the answer to a request."""

    number: int
    answer: Answer | None = None
    _line: bytearray = field(default_factory=bytearray)
    _data: list[bytes] = field(default_factory=list)

    def feed(self, piece: bytes) -> bool:
        """Take a piece of the stream; True once the answer is there."""
        *ended, rest = piece.split(b"\n")
        for part in ended:
            self._line += part
            line = bytes(self._line).removesuffix(b"\r")
            self._line.clear()
            self._take(line)
            if self.answer is not None:
                return True
        self._line += rest
        return False

    def _take(self, line: bytes) -> None:
        if line:
            name, _, value = line.partition(b":")
            if name == b"data":
                self._data.append(value.removeprefix(b" "))
            return
        if self._data:
            self.answer = read_message(b"\n".join(self._data), self.number)
            self._data.clear()


def negotiated(answer: Answer, headers: Mapping[str, str]) -> dict[str, str] | None:
    """Give the fields that every further request carries; None when this is no answer to `initialize`."""
    version = answer.result.get("protocolVersion") if answer.result is not None else None
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        return None
    fields = {"MCP-Protocol-Version": version}
    session = headers.get("mcp-session-id")
    if session is None:
        return fields
    return {**fields, "Mcp-Session-Id": session} if _SESSION.fullmatch(session) else None


@dataclass(frozen=True, slots=True)
class ToolPage:
    """A page of tools: their names, and where the next page begins; one that `is_cut` does not say so."""

    names: Sequence[str]
    cursor: str | None = None
    is_cut: bool = False


def read_tools(answer: Answer, *, first: bool) -> ToolPage | None:
    """Read a page of tools; None when this is none. A server that does not know the first request has no tools."""
    if answer.result is None:
        return ToolPage(()) if first and answer.error == _METHOD_NOT_FOUND else None
    tools = answer.result.get("tools")
    if not isinstance(tools, list):
        return None
    names = [item["name"] for item in tools if isinstance(item, Mapping) and isinstance(item.get("name"), str)]
    cursor = answer.result.get("nextCursor")
    if cursor in (None, ""):
        return ToolPage(names)
    usable = isinstance(cursor, str) and len(cursor) <= _LONGEST_CURSOR
    return ToolPage(names, cursor) if usable else ToolPage(names, is_cut=True)
