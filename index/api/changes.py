"""`GET /changes`: the change feed, as JSON to be replayed from any cursor, or as an Atom feed to be read."""

import re
from collections.abc import Sequence

from aiohttp import web

from index.api.answers import cacheable, json_bytes
from index.api.atom import CONTENT_TYPE as ATOM
from index.api.atom import feed
from index.api.errors import ApiError
from index.api.keys import DATABASE, SETTINGS
from index.api.parameters import cursor, page_size, read_parameters, text
from index.query import MOST_EVENTS
from index.store.changes import page_of_changes
from index.views import change_json

DEFAULT_PAGE = 100
_JSON = "application/json"
_PARAMETERS = frozenset({"after", "limit", "pageSize", "identifier"})
_QUALITY = re.compile(r"(?:0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)")
_LONGEST_ACCEPT = 4096


async def list_changes(request: web.Request) -> web.Response:
    """Give the events after a cursor, oldest first; an Atom feed without a cursor holds the newest, newest first."""
    query = read_parameters(request, _PARAMETERS)
    after, size, identifier = (
        cursor(query, "after"),
        page_size(query, DEFAULT_PAGE, MOST_EVENTS),
        text(query, "identifier"),
    )
    database, settings = request.app[DATABASE], request.app[SETTINGS]
    is_atom = prefers(request.headers.getall("Accept", []), ATOM, _JSON)
    page = await database.read(page_of_changes, after if is_atom else after or 0, size, identifier)
    if after is not None and page.misses(after):
        message = f"the feed begins at cursor {page.oldest}; list the entries anew and go on after {page.last}"
        raise ApiError(410, message)
    if is_atom:
        events = page.events[::-1] if after is None else page.events
        return _answer(request, feed(settings, events, after=after, identifier=identifier), ATOM)
    answer = {
        "items": [change_json(event) for event in page.events],
        "next": page.events[-1].cursor if page.events else after or 0,
        "last": page.last,
        "oldest": page.oldest,
    }
    return _answer(request, json_bytes(answer), _JSON)


def _answer(request: web.Request, body: bytes, content_type: str) -> web.Response:
    max_age = request.app[SETTINGS].api.max_age
    headers = {"Vary": "Accept, Accept-Encoding"}
    return cacheable(request, body, max_age, content_type=content_type, headers=headers)


def prefers(fields: Sequence[str], wanted: str, default: str) -> bool:
    """Tell whether an Accept field prefers a media type to the default one (RFC 9110 12.5.1)."""
    ranges = _ranges(",".join(fields)[:_LONGEST_ACCEPT])
    return _quality(ranges, wanted) > _quality(ranges, default)


def _ranges(text: str) -> list[tuple[str, float]]:
    """Read media ranges with their weights; what is not well formed is left out."""
    found = []
    for item in text.split(","):
        name, *parameters = (part.strip().lower() for part in item.split(";"))
        quality = 1.0
        for parameter in parameters:
            key, _, value = parameter.partition("=")
            if key.strip() == "q":
                match = _QUALITY.fullmatch(value.strip())
                quality = float(match[0]) if match else -1.0
        if quality >= 0 and "/" in name:
            found.append((name, quality))
    return found


def _quality(ranges: Sequence[tuple[str, float]], media_type: str) -> float:
    """Give the weight of the most specific range that covers a media type; zero when none does."""
    kind = media_type.partition("/")[0]
    for pattern in (media_type, f"{kind}/*", "*/*"):
        weights = [quality for name, quality in ranges if name == pattern]
        if weights:
            return max(weights)
    return 0.0
