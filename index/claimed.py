"""The endorsement of a listing: its published entry against the manifest of the brand that it claims for itself."""

import asyncio
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from config.settings import Settings
from index.brand_manifest import read_manifest
from index.endorsement import brand_of, endorse, read_candidate, record
from index.store.database import Database
from index.store.endorse import manifest_of_brand
from index.store.inspect import StoredRow


async def claimed_endorsement(
    settings: Settings, database: Database, sources: Sequence[StoredRow], now: datetime
) -> dict[str, Any] | None:
    """Judge the listed one of an identifier's sources; None where it claims no brand, or one whose manifest we lack."""
    text = next((source.raw for source in sources if source.state == "listed"), None)
    entry = json.loads(text) if text is not None else {}
    brand = brand_of(entry, settings.osd.namespace)
    if text is None or brand is None:
        return None
    name = entry.get("identifier")
    overridden = tuple(settings.network.hosts)
    stored = await database.read(manifest_of_brand, brand, overridden, name if isinstance(name, str) else None)
    if stored.state is None or (stored.private and not settings.crawl.list_private):
        return None
    depth = settings.limits.json_depth
    manifest = await asyncio.to_thread(
        read_manifest, stored.state, stored.body, stored.problems, now=now, max_depth=depth
    )
    candidate = read_candidate(text, max_depth=depth)
    verdict = await asyncio.to_thread(
        endorse, candidate, brand, manifest, namespace=settings.osd.namespace, now=now, older=stored.older
    )
    return record(verdict)
