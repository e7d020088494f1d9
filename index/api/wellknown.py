"""Our own announcement: the registry's entry and, where the operator wants it, the listings (ARD 5.1, 5.3)."""

from typing import Any

import orjson
from aiohttp import web

from config.settings import Settings
from index.api.answers import cacheable
from index.api.errors import ApiError
from index.api.keys import DATABASE, SETTINGS
from index.identity import CATALOG_TYPE, REGISTRY_TYPE
from index.store.catalog import BLOCK, catalog_block, catalog_blocks
from index.urls import host_of

_QUERIES = [
    "find an agent that can do a task",
    "search for MCP servers and skills",
    "list what a publisher offers to agents",
]


def registry_identifier(settings: Settings) -> str:
    """Name this registry: the setting, else a name under the host of its public URL."""
    return (
        settings.api.identifier or f"urn:air:{host_of(settings.base_url).strip('[]').replace(':', '-')}:registry:search"
    )


def registry_entry(settings: Settings) -> dict[str, Any]:
    """Write the entry of this registry; its URL is the base that routes are appended to."""
    return {
        "identifier": registry_identifier(settings),
        "displayName": settings.api.display_name,
        "type": REGISTRY_TYPE,
        "url": settings.base_url,
        "description": settings.api.description,
        "tags": ["registry", "search"],
        "representativeQueries": _QUERIES,
    }


async def manifest(request: web.Request) -> web.Response:
    """Serve the manifest; many listings are cut into nested catalogs."""
    settings = request.app[SETTINGS]
    entries = [orjson.dumps(registry_entry(settings))]
    if settings.api.publish_listings:
        blocks = await request.app[DATABASE].read(catalog_blocks)
        if sum(size for _, size in blocks) <= BLOCK:
            for number, _ in blocks:
                entries += await _block(request, number)
        else:
            entries += [orjson.dumps(_pointer(settings, number)) for number, _ in blocks]
    return _catalog(request, entries)


async def catalog(request: web.Request) -> web.Response:
    """Serve one nested catalog."""
    settings = request.app[SETTINGS]
    entries = await _block(request, int(request.match_info["number"])) if settings.api.publish_listings else []
    if not entries:
        raise ApiError(404, "there is no such catalog")
    return _catalog(request, entries)


async def _block(request: web.Request, number: int) -> list[bytes]:
    return [entry.encode() for entry in await request.app[DATABASE].read(catalog_block, number)]


def _pointer(settings: Settings, number: int) -> dict[str, Any]:
    registry = registry_identifier(settings)
    return {
        "identifier": f"{registry}:catalog-{number}",
        "displayName": f"{settings.api.display_name}, part {number + 1}",
        "type": CATALOG_TYPE,
        "url": f"{settings.base_url}catalogs/{number}.json",
    }


def _catalog(request: web.Request, entries: list[bytes]) -> web.Response:
    """Join entries to a document that readers of both AI Catalog and ARD accept."""
    settings = request.app[SETTINGS]
    host = orjson.dumps({"displayName": settings.api.display_name, "identifier": registry_identifier(settings)})
    body = b'{"specVersion":"1.0","host":' + host + b',"entries":[' + b",".join(entries) + b"]}"
    return cacheable(request, body, settings.api.max_age)
