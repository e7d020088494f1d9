"""Cards as agents publish them, the entries that point to them, and what the store knows of both."""

from typing import Any

from sqlalchemy import Table, select

from index.store.tables import artifacts, documents, drifts, pending, versions
from tests.fakes.harness import Crawl
from tests.fakes.web import entry

A2A = "application/a2a-agent-card+json"
MCP = "application/mcp-server-card+json"
CARD = "/.well-known/agent-card.json"
LEGACY = "/.well-known/agent.json"


def agent_card(name: str = "Planner", **members: Any) -> dict[str, Any]:
    """Make a complete card of 1.0; members are added, replaced, or removed where they are None."""
    card: dict[str, Any] = {
        "name": name,
        "description": "Plans trips",
        "version": "1.0.0",
        "supportedInterfaces": [
            {"url": "https://acme.example/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        ],
        "capabilities": {"streaming": True},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [skill("route", "travel", "maps"), skill("book", "travel")],
        **members,
    }
    return {key: member for key, member in card.items() if member is not None}


def skill(name: str, *tags: str, **members: Any) -> dict[str, Any]:
    """Make a skill."""
    return {"id": name, "name": name.title(), "description": f"Can {name}", "tags": list(tags), **members}


def server_card(name: str = "example.acme/echo", **members: Any) -> dict[str, Any]:
    """Make an MCP server card of the current shape."""
    card = {
        "$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
        "name": name,
        "version": "1.2.0",
        "description": "Echoes",
        "remotes": [{"type": "streamable-http", "url": "https://acme.example/mcp"}],
        **members,
    }
    return {key: member for key, member in card.items() if member is not None}


def agent_entry(name: str = "planner", url: str | None = CARD, publisher: str = "acme.example", **members: Any) -> Any:
    """Make an entry that points to an agent card and agrees with `agent_card`."""
    return entry(
        name,
        publisher,
        **{
            "type": A2A,
            "url": url,
            "displayName": "Planner",
            "description": "Plans trips",
            "version": "1.0.0",
            "tags": ["travel"],
            "capabilities": ["route"],
            **members,
        },
    )


def urn(name: str = "planner", publisher: str = "acme.example") -> str:
    """Name an entry."""
    return f"urn:air:{publisher}:tool:{name}"


async def rows_of(crawl: Crawl, table: Table, **where: Any) -> list[Any]:
    """Give the rows of a table, oldest first."""
    query = select(table).where(*(table.c[name] == value for name, value in where.items()))
    ordered = query.order_by(*table.primary_key.columns)
    return list(await crawl.database.read(lambda connection: connection.execute(ordered).all()))


async def all_drifts(crawl: Crawl, **where: Any) -> list[Any]:
    """Give every drift there ever was."""
    return await rows_of(crawl, drifts, **where)


async def open_drifts(crawl: Crawl) -> list[tuple[str, str, str]]:
    """Give code, identifier and pointer of what is open, sorted."""
    rows = await all_drifts(crawl)
    return sorted((row.code, row.identifier or "", row.pointer) for row in rows if row.closed_at is None)


async def cards_by_path(crawl: Crawl) -> dict[str, Any]:
    """Give the artifacts that have documents of their own, by the path of those."""
    query = select(documents.c.url, artifacts).join(documents, documents.c.id == artifacts.c.id)
    rows = await crawl.database.read(lambda connection: connection.execute(query).all())
    return {"/" + row.url.split("/", 3)[3]: row for row in rows}


async def versions_of(crawl: Crawl, kind: str = "artifact") -> list[Any]:
    """Give the superseded states of a kind."""
    return await rows_of(crawl, versions, kind=kind)


async def waiting(crawl: Crawl) -> list[tuple[str, int]]:
    """Give what waits to be compared."""
    return [(row.kind, row.subject) for row in await rows_of(crawl, pending)]


async def feed(crawl: Crawl, *kinds: str) -> list[tuple[str, str]]:
    """Give kind and identifier of the events of some kinds, oldest first."""
    return [(change.kind, change.identifier) for change in await crawl.changes() if change.kind in kinds]
