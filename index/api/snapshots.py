"""`GET /snapshots/{digest}`: a stored body, byte for byte, in a form that no client runs or renders."""

import asyncio
import json
import re
from typing import Any

from aiohttp import web

from index.api.answers import matches
from index.api.errors import ApiError
from index.api.keys import DATABASE, SETTINGS
from index.findings import has_secret
from index.query import InvalidArgument
from index.store.snapshots import load_shown

_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_IN_THREAD_FROM = 65_536
_NOT_JSON = object()
# The body never changes; a publisher's markup must not run on our origin (H48).
_HEADERS = {
    "Cache-Control": "public, max-age=31536000, immutable",
    "Content-Disposition": "attachment",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "Vary": "Accept-Encoding",
}


async def snapshot(request: web.Request) -> web.Response:
    """Give the bytes of a digest; those that hold a credential, or that their publisher keeps private, are withheld."""
    digest = request.match_info["digest"]
    if not _DIGEST.fullmatch(digest):
        raise InvalidArgument("a digest has 64 hexadecimal digits in lower case")
    stored = await request.app[DATABASE].read(load_shown, digest)
    if stored is None:
        raise ApiError(404, "no stored body has this digest")
    if stored.private and not request.app[SETTINGS].crawl.list_private:
        raise ApiError(403, "the publisher does not allow this body to be passed on")
    judged = asyncio.to_thread(_judge, stored.body) if len(stored.body) > _IN_THREAD_FROM else None
    is_json, secret = _judge(stored.body) if judged is None else await judged
    if secret:
        raise ApiError(403, "the body holds what looks like a credential and is withheld")
    headers = {**_HEADERS, "ETag": f'"{digest}"'}
    if matches(request.headers.getall("If-None-Match", []), headers["ETag"]):
        return web.Response(status=304, headers=headers)
    content_type = "application/json" if is_json else "application/octet-stream"
    return web.Response(body=stored.body, content_type=content_type, headers=headers)


def _judge(body: bytes) -> tuple[bool, bool]:
    """Tell whether a body is JSON, and whether it holds a credential."""
    value = _read(body)
    if value is _NOT_JSON:
        # Without the zero bytes that other encodings of Unicode put between letters.
        return False, has_secret(body.replace(b"\x00", b"").decode("utf-8", "replace"))
    return True, has_secret(value)


def _read(body: bytes) -> Any:
    try:
        return json.loads(body.decode("utf-8-sig"), object_pairs_hook=_members)
    except (ValueError, RecursionError):
        return _NOT_JSON


def _members(pairs: list[tuple[str, Any]]) -> Any:
    """Keep every member, also those that another of the same name hides."""
    members = dict(pairs)
    return members if len(members) == len(pairs) else [{name: value} for name, value in pairs]
