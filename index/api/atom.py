"""The change feed as Atom 1.0 (RFC 4287), for feed readers."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from urllib.parse import quote, urlencode
from xml.sax.saxutils import escape

from config.settings import Settings
from index.served import NAMESPACE
from index.store.changes import Change
from index.urls import host_of
from index.views import change_json
from index.views import instant as written

CONTENT_TYPE = "application/atom+xml"
_QUOTES = {'"': "&quot;", "'": "&apos;"}
# What XML 1.0 does not allow, not even escaped.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SCHEME = f"{NAMESPACE}change"
# Identifies our feeds among all tag URIs of a host (RFC 4151); it is no date of anything.
_TAG_YEAR = "2026"
# An empty feed must have a time, too, and the same one each time.
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
_KINDS = {
    "entry.added": "Entry added",
    "entry.changed": "Entry changed",
    "entry.removed": "Entry removed",
    "artifact.added": "Artifact read",
    "artifact.changed": "Artifact changed",
    "artifact.removed": "Artifact gone",
    "drift.opened": "Drift opened",
    "drift.closed": "Drift closed",
}


def feed(settings: Settings, events: Sequence[Change], *, after: int | None, identifier: str | None) -> bytes:
    """Write events as a feed; with a cursor it links to the page that follows."""
    base = f"{settings.base_url}changes"
    asked = {} if identifier is None else {"identifier": identifier}
    own = _address(base, asked if after is None else {"after": str(after), **asked})
    updated = max((event.at for event in events), default=_NEVER)
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        '<feed xmlns="http://www.w3.org/2005/Atom">',
        f"<id>{_text(_tag(settings, 'changes', *asked.values()))}</id>",
        f"<title>{_text(settings.api.display_name)}: changes</title>",
        f"<updated>{written(updated)}</updated>",
        f"<author><name>{_text(settings.api.display_name)}</name></author>",
        f'<link rel="self" type="{CONTENT_TYPE}" href="{_text(own)}"/>',
        f'<link rel="alternate" type="application/json" href="{_text(own)}"/>',
    ]
    if after is not None and events:
        following = _address(base, {"after": str(events[-1].cursor), **asked})
        lines.append(f'<link rel="next" type="{CONTENT_TYPE}" href="{_text(following)}"/>')
    lines += [_entry(settings, event) for event in events]
    return "\n".join([*lines, "</feed>"]).encode()


def _entry(settings: Settings, event: Change) -> str:
    shown = change_json(event)
    subject = shown["identifier"] or shown["url"] or ""
    facts = {
        "identifier": shown["identifier"],
        "url": shown["url"],
        "members": ", ".join(shown["members"]),
        "class": shown["class"],
        "silent": "yes" if shown["silent"] else None,
        "reason": shown["reason"],
        "before": shown["oldDigest"],
        "after": shown["newDigest"],
    }
    content = "\n".join(f"{name}: {value}" for name, value in facts.items() if value)
    link = ""
    if shown["identifier"]:
        address = f"{settings.base_url}agents/{quote(shown['identifier'], safe=':')}/history"
        link = f'<link rel="related" type="application/json" href="{_text(address)}"/>'
    return (
        f"<entry><id>{_text(_tag(settings, 'change', str(event.cursor)))}</id>"
        f"<title>{_text(_KINDS.get(event.kind, event.kind))}: {_text(subject)}</title>"
        f"<updated>{written(event.at)}</updated>"
        f'<category term="{_text(event.kind)}" scheme="{_SCHEME}"/>{link}'
        f'<content type="text">{_text(content)}</content></entry>'
    )


def _tag(settings: Settings, *parts: str) -> str:
    """Name a thing for good (RFC 4151)."""
    host = host_of(settings.base_url).strip("[]").replace(":", "-")
    return f"tag:{host},{_TAG_YEAR}:ardvark/" + "/".join(quote(part, safe=":") for part in parts)


def _address(base: str, query: dict[str, str]) -> str:
    return f"{base}?{urlencode(query)}" if query else base


def _text(value: str) -> str:
    return escape(_FORBIDDEN.sub("", value), _QUOTES)
