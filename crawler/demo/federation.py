"""The sample federation: fictional publishers, what each one serves, and how it changes after a while. Pure.

Their texts are in `data/`, one file of entries a publisher; `$name/` in them stands for the origin of a publisher.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Literal

Validator = Literal["strong", "weak", "date"]
_JSON = "application/json"
_HTML = "text/html; charset=utf-8"
_WELL_KNOWN = "/.well-known/ard.json"
_PREDECESSOR = "/.well-known/ai-catalog.json"
_REFERENCE = re.compile(r"\$([a-z]+)/")


@dataclass(frozen=True, slots=True)
class Document:
    """What one path answers: a file of `data/`, or `text`."""

    path: str
    file: str = ""
    text: str = ""
    content_type: str = _JSON
    validators: tuple[Validator, ...] = ()
    gzip: bool = False
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Publisher:
    """One fictional publisher: `name.example`, how it announces its entries, and what is wrong with it, if anything.

    `answers_everything` names the page that it serves under every path; `busy` says for how many requests its manifest
    is unavailable, and `retry_after_s` how long it asks for patience.
    """

    name: str
    title: str
    announces: str
    documents: tuple[Document, ...]
    fault: str = ""
    answers_everything: Document | None = None
    busy: int = 0
    retry_after_s: int = 0

    @property
    def host(self) -> str:
        return f"{self.name}.example"

    def origin(self, port: int) -> str:
        return f"http://{self.host}:{port}"


@dataclass(frozen=True, slots=True)
class Change:
    """How a publisher's manifest, its cards or both differ from some moment on.

    `cards` holds the members of cards that are different, by path.
    """

    publisher: str
    says: str
    path: str = ""
    alter: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    add: Sequence[Mapping[str, Any]] = ()
    remove: Sequence[str] = ()
    cards: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def apply(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Give the manifest after the change."""
        kept = [item for item in manifest["entries"] if item.get("identifier") not in self.remove]
        altered = [{**item, **self.alter.get(item.get("identifier", ""), {})} for item in kept]
        return {**manifest, "entries": [*altered, *self.add]}


PUBLISHERS: tuple[Publisher, ...] = (
    Publisher(
        "tides",
        "Tidewater Office",
        "ard.json, with a strong entity tag",
        (Document(_WELL_KNOWN, "tides.json", validators=("strong",)),),
    ),
    Publisher(
        "huts",
        "Union of Mountain Huts",
        "only the predecessor path, ai-catalog.json, with Last-Modified",
        (Document(_PREDECESSOR, "huts.json", validators=("date",)),),
    ),
    Publisher(
        "letters",
        "The Letterpress Workshop",
        "an HTTP Link field on its home page; the manifest is compressed",
        (
            Document("/", "letters.html", content_type=_HTML, headers=(("Link", '</agents.json>; rel="ard"'),)),
            Document("/agents.json", "letters.json", validators=("strong",), gzip=True),
        ),
    ),
    Publisher(
        "loaf",
        "Loaf and Larder",
        "a link element in its home page, below a base element; relative addresses, weak entity tag",
        (
            Document("/", "loaf.html", content_type=_HTML, validators=("weak",)),
            Document("/feeds/bakery.json", "loaf.json", validators=("weak",)),
        ),
    ),
    Publisher(
        "stars",
        "Garden Observatory",
        "an Agentmap line in robots.txt; no validators at all",
        (
            Document(
                "/robots.txt",
                text="User-agent: *\nDisallow: /dome/\n\nAgentmap: $stars/agentmap.json\n",
                content_type="text/plain",
            ),
            Document("/agentmap.json", "stars.json"),
        ),
    ),
    Publisher(
        "museum",
        "Museum of Everyday Things",
        "JSON-LD in its home page, a graph with terms of its own; entity tag and date",
        (Document("/", "museum.html", content_type=_HTML, validators=("strong", "date")),),
    ),
    Publisher(
        "atlas",
        "Atlas of Makers",
        "ard.json with nested catalogs: one at another publisher, one inline",
        (Document(_WELL_KNOWN, "atlas.json", validators=("strong", "date")),),
        fault="an outdated copy of another publisher's entry (source.conflict: the publisher's own is listed)",
    ),
    Publisher(
        "guild",
        "Guild of Potters",
        "nothing on its own; the Atlas points to its catalog",
        (Document("/catalogs/potters.json", "guild.json", validators=("date",)),),
    ),
    Publisher(
        "archive",
        "Parish Archive",
        "ard.json, which its robots.txt forbids to fetch",
        (
            Document("/robots.txt", text="User-agent: *\nDisallow: /\n", content_type="text/plain"),
            Document(_WELL_KNOWN, "archive.json"),
        ),
        fault="robots.txt forbids everything (outcome disallowed); nothing of it may be listed",
    ),
    Publisher(
        "parlour",
        "Parlour Games",
        "nothing; its app answers every path with the same page",
        (),
        fault="a page under every path, the manifest's too (outcome catch_all); no false entries",
        answers_everything=Document("", "parlour.html", content_type=_HTML),
    ),
    Publisher(
        "parts",
        "Spare Parts Exchange",
        "ard.json with one bad entry among good ones",
        (Document(_WELL_KNOWN, "parts.json", validators=("strong",)),),
        fault="an entry with both url and data (entry.url_and_data), and three that are merely untidy",
    ),
    Publisher(
        "attic",
        "Attic and Auction",
        "ard.json in old spellings: urn:ai, mediaType, inline",
        (Document(_WELL_KNOWN, "attic.json", validators=("strong",)),),
        fault="names of an older version (identifier.old_prefix, entry.old_name_type); read, listed and marked",
    ),
    Publisher(
        "ferries",
        "Island Ferries",
        "ard.json, once its server has recovered",
        (Document(_WELL_KNOWN, "ferries.json", validators=("strong",)),),
        fault="503 with Retry-After at first (outcome unreachable); listed as soon as it recovers",
        busy=1,
        retry_after_s=6,
    ),
)


def read_text(name: str, port: int) -> str:
    """Read a file of `data/` with the origins of the publishers in the place of their names."""
    return with_origins(files("crawler.demo").joinpath("data", name).read_text(encoding="utf-8"), port)


def with_origins(text: str, port: int) -> str:
    """Put origins in the place of `$name/`."""
    return _REFERENCE.sub(lambda match: f"http://{match[1]}.example:{port}/", text)


def body_of(publisher: Publisher, document: Document, port: int) -> bytes:
    """Give the body of a document as it is served at first; `$entries` stands for the publisher's entries."""
    text = read_text(document.file, port) if document.file else with_origins(document.text, port)
    if "$entries" in text:
        text = text.replace("$entries", read_text(f"{publisher.name}.json", port).strip())
    return written(json.loads(text)) if document.content_type == _JSON else text.encode()


def written(manifest: Mapping[str, Any]) -> bytes:
    """Write a manifest; always in the same form, so that a change is one of content."""
    return json.dumps(manifest, ensure_ascii=False, indent=2).encode()


def read_changes(port: int) -> list[Change]:
    """Read how the federation changes, in order."""
    return [Change(**item) for item in json.loads(read_text("changes.json", port))]


def artifacts(port: int) -> dict[str, tuple[str, bytes]]:
    """Make the documents that the entries point to: URL to content type and body."""
    texts = [read_text(file, port) for file in sorted(_entry_files())]
    return {entry["url"]: _artifact(entry) for text in texts for entry in _entries(json.loads(text), port)}


def _entry_files() -> Iterator[str]:
    yield "changes.json"
    for publisher in PUBLISHERS:
        if publisher.answers_everything is None:
            yield f"{publisher.name}.json"


def _entries(value: Any, port: int) -> Iterator[dict[str, Any]]:
    """Find the entries with an address of their own, wherever they are nested."""
    if isinstance(value, list):
        for item in value:
            yield from _entries(item, port)
    elif isinstance(value, dict):
        if "identifier" in value and "/cards/" in str(value.get("url")):
            origin = f"http://{value['identifier'].split(':')[2]}:{port}"
            yield {**value, "url": origin + value["url"]} if value["url"].startswith("/") else value
        for item in value.values():
            yield from _entries(item, port)


def _artifact(entry: Mapping[str, Any]) -> tuple[str, bytes]:
    """Write a card or a skill that says what its entry says."""
    url, name, description = entry["url"], entry["displayName"], entry["description"]
    if url.endswith(".md"):
        leaf = url.rpartition("/")[2].removesuffix(".md")
        return (
            "text/markdown; charset=utf-8",
            f"---\nname: {leaf}\ndescription: {description}\n---\n\n# {name}\n".encode(),
        )
    card: dict[str, Any] = {"name": name, "description": description, "version": entry.get("version", "1.0.0")}
    endpoint = url.replace("/cards/", "/endpoints/").removesuffix(".json")
    if "a2a" in entry.get("type", entry.get("mediaType", "")):
        card |= {
            "supportedInterfaces": [{"url": endpoint, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
            "capabilities": {},
            "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"],
            "skills": [{"id": "main", "name": name, "description": description, "tags": entry.get("tags", [])}],
        }
    else:
        publisher, leaf = entry["identifier"].split(":")[2], entry["identifier"].rpartition(":")[2]
        card |= {
            "name": f"{'.'.join(reversed(publisher.split('.')))}/{leaf}",
            "title": name,
            "remotes": [{"type": "streamable-http", "url": endpoint}],
        }
    return _JSON, json.dumps(card, ensure_ascii=False).encode()
