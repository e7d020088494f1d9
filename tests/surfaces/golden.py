"""Documents and what the surfaces make of them, side by side in files: `python -m tests.surfaces.golden` rewrites them.

`<name>.json` or `<name>.html` is the document as published, `<name>.reading.json` its reading. Look at every difference
before it is committed.
"""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from crawler.discover import RELATIONS, leads_from_page
from crawler.surfaces.ard import read_in_page, read_manifest
from crawler.surfaces.base import Bounds, Source
from crawler.surfaces.html import read_page
from index.records import Entry, Lead, Problem, Reading

FOLDER = Path(__file__).resolve().parent / "ard"
MANIFEST = Source("https://origin.example/.well-known/ard.json", 10)
PREDECESSOR = Source("https://origin.example/.well-known/ai-catalog.json", 60, predecessor=True)
PAGE = Source("https://shop.example/en/", 50)


def documents() -> list[Path]:
    """All documents, without their readings."""
    return sorted(path for path in FOLDER.iterdir() if not path.name.endswith(".reading.json"))


def reading_file(document: Path) -> Path:
    return document.with_name(f"{document.stem}.reading.json")


def read(document: Path) -> Reading:
    """Read a document as the pipeline does."""
    body = document.read_bytes()
    if document.suffix == ".html":
        page = read_page(body, PAGE.url, "text/html; charset=utf-8", RELATIONS)
        reading = read_in_page(page.scripts, page.base_url, PAGE, Bounds())
        return replace(reading, leads=tuple(leads_from_page(page, 50)))
    return read_manifest(body, PREDECESSOR if document.name.startswith("ai-catalog") else MANIFEST, Bounds())


def write(reading: Reading) -> str:
    """Write a reading for people to compare; what is empty is left out."""
    shown = {
        "kind": reading.kind,
        "complete": reading.complete,
        "problems": _problems(reading.problems),
        "leads": [_lead(lead) for lead in reading.leads],
        "entries": [_entry(entry) for entry in reading.entries],
    }
    return json.dumps(shown, indent=2, ensure_ascii=True) + "\n"


def _entry(entry: Entry) -> dict[str, Any]:
    shown = {
        "pointer": entry.pointer,
        "standing": str(entry.standing),
        "identifier": entry.identifier,
        "key": entry.key,
        "displayName": entry.display_name,
        "type": entry.type,
        "version": entry.version,
        "updatedAt": entry.updated_at.isoformat() if entry.updated_at else None,
        "publisher": entry.publisher,
        "url": entry.url,
        "trust": str(entry.trust),
        "adapted": list(entry.adapted),
        "outerContext": list(entry.outer_context),
        "problems": _problems(entry.problems),
        "members": dict(entry.value),
    }
    return {name: value for name, value in shown.items() if value not in (None, "", [], {})}


def _lead(lead: Lead) -> dict[str, Any]:
    shown = {
        "url": lead.url,
        "mechanism": str(lead.mechanism),
        "rank": int(lead.rank),
        "mediaType": lead.media_type,
        "pointer": lead.pointer,
        "depth": lead.depth,
        "ancestors": list(lead.ancestors),
    }
    return {name: value for name, value in shown.items() if value not in (None, "", [])}


def _problems(problems: Iterable[Problem]) -> list[str]:
    return [f"{item.severity} {item.code} at {item.pointer or 'the root'}: {item.message}" for item in problems]


def main() -> None:
    for document in documents():
        reading_file(document).write_text(write(read(document)), encoding="utf-8")


if __name__ == "__main__":
    main()
