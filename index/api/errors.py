"""One error shape for everything: `{"errorCode", "message"}` (ARD 5.3)."""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
import structlog
from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from index.metrics import API_REQUEST_SECONDS
from index.query import InvalidArgument
from index.store.outage import StoreUnavailable

_log = structlog.get_logger("ardvark.api")
# The framework would name itself and the version of Python.
SERVER = "ardvark"
_LONGEST_MESSAGE = 400
_OUTAGE_RETRY_S = 5
Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
_CODES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    405: "METHOD_NOT_ALLOWED",
    410: "GONE",
    413: "PAYLOAD_TOO_LARGE",
    415: "UNSUPPORTED_MEDIA_TYPE",
    417: "EXPECTATION_FAILED",
    429: "RATE_LIMIT_EXCEEDED",
    500: "INTERNAL_ERROR",
    501: "NOT_IMPLEMENTED",
    503: "UNAVAILABLE",
}
_MESSAGES = {
    404: "there is no such resource",
    405: "this resource does not answer that method",
    413: "the request body is too large",
    500: "the registry failed to answer; the fault is logged",
    503: "the registry cannot answer right now",
}


class ApiError(Exception):
    """An answer other than success."""

    def __init__(self, status: int, message: str, *, code: str | None = None, retry_after_s: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code or _CODES.get(status, "INTERNAL_ERROR")
        self.retry_after_s = retry_after_s


def error_response(
    status: int, message: str, code: str | None = None, headers: dict[str, str] | None = None
) -> web.Response:
    """Write an error; none of them may be kept without asking again (ARD 5.3.4)."""
    body = {"errorCode": code or _CODES.get(status, "INVALID_ARGUMENT"), "message": message[:_LONGEST_MESSAGE]}
    return web.Response(
        status=status,
        body=orjson.dumps(body),
        content_type="application/json",
        headers={"Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff", **(headers or {})},
    )


def json_errors(handle: Handler) -> Handler:
    """Turn every way a request can fail into the one shape, those of the framework included."""

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await handle(request)
        except InvalidArgument as error:
            return error_response(400, str(error))
        except ApiError as error:
            headers = {} if error.retry_after_s is None else {"Retry-After": str(error.retry_after_s)}
            return error_response(error.status, error.message, error.code, headers)
        except web.HTTPException as error:
            headers = {name: value for name, value in error.headers.items() if name in ("Allow", "Location")}
            return error_response(error.status, _MESSAGES.get(error.status, error.reason), None, headers)
        except web.RequestPayloadError:
            response = error_response(400, "the request body is not what its header fields say")
            response.force_close()  # where it ends is anyone's guess
            return response
        except StoreUnavailable:
            return error_response(503, _MESSAGES[503], headers={"Retry-After": str(_OUTAGE_RETRY_S)})
        except (asyncio.CancelledError, ConnectionError):
            raise
        except Exception:
            _log.exception("api.failed", method=request.method, path=request.path)
            return error_response(500, _MESSAGES[500])

    return answer


def measured(handle: Handler) -> Handler:
    """Take the time of every request, under the route it came to rather than the path it named."""

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        began = time.perf_counter()
        response = await handle(request)
        match = request.match_info if isinstance(request, web.Request) else None
        resource = None if match is None else match.route.resource
        route = "none" if resource is None else resource.canonical
        API_REQUEST_SECONDS.labels(route, response.status).observe(time.perf_counter() - began)
        return response

    return answer


class JsonErrorHandler(RequestHandler):
    """Answers what never becomes a request, such as a malformed request line, in the same shape."""

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if request.writer.output_size > 0:
            raise ConnectionError("the answer was already under way")
        if isinstance(exc, ConnectionError):
            _log.warning("api.connection_failed", error=repr(exc)[:200])
        elif status >= 500:
            _log.error("api.failed", error=str(exc))
        message = _MESSAGES.get(status, "the request is not well-formed HTTP")
        response = error_response(status, message, headers={"Server": SERVER})
        response.force_close()
        return response

    def log_exception(self, *_: Any, **__: Any) -> None:
        """Note what ended a connection: the rest of a broken body, seldom a fault of ours."""
        _log.warning("api.connection_failed", error=repr(sys.exception())[:200])


class JsonErrorServer(web.Server):
    """Makes a JsonErrorHandler for each connection."""

    def __call__(self) -> RequestHandler:
        return JsonErrorHandler(self, loop=self._loop, **self._kwargs)


class ApiRunner(web.AppRunner):
    """Runs an application so that all its errors have the one shape, those outside its handlers included."""

    async def _make_server(self) -> web.Server:
        server = await super()._make_server()
        return JsonErrorServer(
            measured(json_errors(server.request_handler)),
            request_factory=server.request_factory,
            loop=server._loop,
            **server._kwargs,
        )
