"""Why a fetch ended early, in our words. These end as values; nothing of this leaves `fetch`."""

import os
import re
from dataclasses import dataclass

import aiohttp

from crawler.fetch.guard import RefusedAddress
from index.documents import Outcome

LONGEST_DETAIL = 300
# Where the messages of the HTTP parser begin to quote what they stumbled over.
_QUOTATION = re.compile(r":\n|: (?:bytearray\()?b['\"]")


class ConnectionFault(Exception):
    """The connection failed before any answer: worth one more try within the visit."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


class Fault(Exception):
    """The fetch ends here, with this outcome."""

    def __init__(self, outcome: Outcome, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.outcome = outcome
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an exchange got before it failed."""

    connected: bool
    answered: bool
    flooded: bool


def meaning(status: int) -> tuple[Outcome, str]:
    """Sort the answers that carry no document."""
    if status == 404:
        return Outcome.ABSENT, "http_404"
    if status == 410:
        return Outcome.GONE, "http_410"
    if status == 429 or status >= 500:
        return Outcome.UNREACHABLE, f"http_{status}"
    if 400 <= status < 500:
        return Outcome.WITHHELD, f"http_{status}"
    return Outcome.UNREACHABLE, f"unexpected_status_{status}"


def flood() -> Fault:
    """Say that more bytes came than any wanted body could need."""
    return Fault(Outcome.TOO_LARGE, "flood", "bytes without end and without payload")


def translate_timeout(progress: Progress, error: TimeoutError) -> Exception:
    """Name the deadline that passed; only a connection that never came is worth another try."""
    if progress.flooded:
        return flood()
    if progress.answered:
        return Fault(Outcome.UNREACHABLE, "timeout_body", "the body did not end in time")
    if progress.connected:
        return Fault(Outcome.UNREACHABLE, "timeout_headers", "no answer in time")
    return ConnectionFault("timeout_connect", detail_of(error) or "no connection in time")


def translate(error: aiohttp.ClientError, progress: Progress) -> Exception:
    """Say in our words what went wrong; only faults before any answer are worth another try."""
    cause = getattr(error, "os_error", None)
    if isinstance(cause, RefusedAddress):
        return Fault(Outcome.REFUSED, "address", str(cause))
    if progress.flooded:
        return flood()
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientSSLError):
        return Fault(Outcome.UNREACHABLE, "tls", detail_of(error))
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return Fault(Outcome.UNREACHABLE, "dns", error.strerror or "the name does not resolve")
    if isinstance(error, aiohttp.ServerTimeoutError):
        return ConnectionFault("timeout_connect", "no connection in time")
    if isinstance(error, aiohttp.ClientConnectorError):
        return ConnectionFault("connect", os.strerror(error.errno) if error.errno else detail_of(error))
    if isinstance(error, aiohttp.InvalidURL):
        return Fault(Outcome.REFUSED, "url", "the address is not well formed")
    if isinstance(error, aiohttp.ClientPayloadError):
        return Fault(Outcome.UNREACHABLE, "incomplete", detail_of(error))
    if isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientOSError) and not progress.answered:
        return ConnectionFault("reset", "the connection was closed before an answer")
    return Fault(Outcome.UNREACHABLE, "protocol_error", detail_of(error))


def detail_of(error: BaseException) -> str:
    """Say what an error says, without the bytes of the peer that some messages quote."""
    text = error.message if isinstance(error, aiohttp.ClientResponseError) else str(error)
    told = _QUOTATION.split(text, maxsplit=1)[0]
    return shorten("".join(character if character.isprintable() else " " for character in told))


def shorten(text: str) -> str:
    """Cut a text from outside to a length that logs can bear."""
    return text if len(text) <= LONGEST_DETAIL else text[: LONGEST_DETAIL - 1] + "…"
