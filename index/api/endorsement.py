"""`POST /endorsement`: does a brand publish this very entry? Answered from what is held of its own manifest."""

import asyncio
from datetime import UTC, datetime

from aiohttp import web

from config.settings import Settings
from index.api.answers import json_response, read_json
from index.api.keys import DATABASE, SETTINGS
from index.brand_manifest import Evidence, Manifest, NoManifest, Reason, is_covered, read_manifest
from index.endorsement import Candidate, Endorsement, endorse, forms_of, read_candidate, record
from index.query import parse_endorsement
from index.store.endorse import StoredManifest, manifest_of_brand
from index.strict_json import member_text
from index.urls import origin_of

_IN_THREAD_FROM = 65_536


async def endorsement(request: web.Request) -> web.Response:
    """Compare a candidate with the brand's manifest as it is held; nothing is fetched."""
    settings = request.app[SETTINGS]
    wanted = parse_endorsement(await read_json(request, settings.api.max_request_size))
    # From the text, in which no number is rounded yet.
    candidate = read_candidate(member_text((await request.read()).decode(), ("entry",)))
    identifier = _identifier(candidate)
    overridden = tuple(settings.network.hosts)
    stored = await request.app[DATABASE].read(manifest_of_brand, wanted.brand_domain, overridden, identifier)
    arguments = (settings, candidate, wanted.brand_domain, stored, datetime.now(UTC))
    if stored.body is not None and len(stored.body) > _IN_THREAD_FROM:
        answer = await asyncio.to_thread(_judge, *arguments)
    else:
        answer = _judge(*arguments)
    return json_response(record(answer))


def _identifier(candidate: Candidate) -> str | None:
    value = next((form.get("identifier") for form in forms_of(candidate)), None)
    return value if isinstance(value, str) else None


def _judge(settings: Settings, candidate: Candidate, brand: str, stored: StoredManifest, now: datetime) -> Endorsement:
    manifest = _manifest(settings, stored, now)
    return endorse(candidate, brand, manifest, namespace=settings.osd.namespace, now=now, older=stored.older)


def _manifest(settings: Settings, stored: StoredManifest, now: datetime) -> Manifest | NoManifest:
    nothing = Evidence(stored.url)
    if not stored.allowlisted and not _is_admitted(settings, stored.origin):
        return NoManifest(Reason.NOT_ALLOWLISTED, f"{stored.origin} is not on the allowlist", nothing)
    if stored.state is None:
        return NoManifest(Reason.NEVER_FETCHED, "the manifest was not looked at yet", nothing)
    if stored.private and not settings.crawl.list_private:
        return NoManifest(Reason.MANIFEST_UNAVAILABLE, "the manifest is private, so nothing of it is told", nothing)
    return read_manifest(stored.state, stored.body, stored.problems, now=now, max_depth=settings.limits.json_depth)


def _is_admitted(settings: Settings, origin: str) -> bool:
    """Tell whether a pattern of the allowlist covers an origin that nothing has led to yet."""
    scheme, _, authority = origin_of(origin).partition("://")
    patterns = (entry.origin.partition("://") for entry in settings.origins if entry.is_pattern)
    return any(scheme == wanted and is_covered(authority, [name]) for wanted, _, name in patterns)
