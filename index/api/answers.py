"""What all answers share: JSON bodies, validators and freshness (RFC 9110 13, RFC 9111)."""

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import orjson
from aiohttp import web

from index.api.errors import ApiError
from index.strict_json import MalformedJson, parse

_ETAG = re.compile(r'(?:W/)?"([\x21\x23-\x7e\x80-\xff]*)"')


async def read_json(request: web.Request, max_size: int) -> Any:
    """Read a JSON request body strictly; raises ApiError 400, 413 or 415."""
    content_type = request.headers.get("Content-Type", "application/json").partition(";")[0].strip().lower()
    if content_type != "application/json" and not content_type.endswith("+json"):
        raise ApiError(415, "the request body must be application/json")
    if (request.content_length or 0) > max_size:
        raise ApiError(413, f"the request body must have at most {max_size} bytes")
    try:
        parsed = parse(await request.read(), max_depth=32)
    except MalformedJson as error:
        raise ApiError(400, f"the request body is not JSON: {error.message}") from None
    if parsed.problems:
        raise ApiError(400, f"the request body at {parsed.problems[0].pointer or '/'}: {parsed.problems[0].message}")
    return parsed.value


def json_bytes(value: Any) -> bytes:
    """Write a value of ours that may hold values of publishers."""
    try:
        return orjson.dumps(value)
    except TypeError:  # an integer past 64 bits
        return json.dumps(value).encode()


def json_response(value: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """Answer with a value that nobody may keep."""
    return web.Response(
        status=status,
        body=orjson.dumps(value),
        content_type="application/json",
        headers={"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", **(headers or {})},
    )


def cacheable(
    request: web.Request,
    body: bytes,
    max_age: timedelta,
    *,
    content_type: str = "application/json",
    headers: Mapping[str, str] | None = None,
) -> web.Response:
    """Answer with a body that may be kept for a while, or with 304 when the client has it already.

    The entity tag is strong: it names the bytes sent. `headers` go over those that every such answer has.
    """
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {
        "ETag": etag,
        "Cache-Control": f"public, max-age={int(max_age.total_seconds())}",
        "Vary": "Accept-Encoding",
        "X-Content-Type-Options": "nosniff",
        **(headers or {}),
    }
    etag = headers["ETag"]
    if matches(request.headers.getall("If-None-Match", []), etag):
        return web.Response(status=304, headers=headers)
    return web.Response(body=body, content_type=content_type, headers=headers)


def matches(fields: list[str], etag: str) -> bool:
    """Tell whether If-None-Match names an entity tag: lists, weak tags and `*` included (RFC 9110 13.1.2)."""
    text = ",".join(fields)
    if text.strip() == "*":
        return True
    opaque = etag.strip('"')
    return any(match[1] == opaque for match in _ETAG.finditer(text))
