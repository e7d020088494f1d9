from collections.abc import Sequence

import click

from config.settings import Settings
from crawler.commands.lazy import LazyGroup
from crawler.commands.render import print_json, table
from crawler.commands.session import opened_database, run_async, settings_of
from index.store.frontier import list_origins
from index.store.inspect import StoredRow
from index.views import origin_json

_COMMANDS = {
    "list": ("origins", "list_", "List the known origins."),
    "show": ("origins_show", "show", "Show what was tried on an origin, and what it answered."),
    "add": ("origins_change", "add", "Add origins to the allowlist."),
    "remove": ("origins_change", "remove", "Take origins off the allowlist and their entries out of the index."),
    "visit": ("origins_change", "visit", "Visit origins now and print what each document answered."),
}


@click.group(cls=LazyGroup, lazy=_COMMANDS)
def origins() -> None:
    """Look after the allowlist."""


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def list_(context: click.Context, as_json: bool) -> None:
    """List the known origins."""
    settings = settings_of(context)
    items = [origin_json(row) for row in run_async(_list(settings))]
    known = {item["origin"] for item in items}
    waiting = [entry.origin for entry in settings.origins if not entry.is_pattern and entry.origin not in known]
    items += [{"origin": origin, "managedBy": "config", "active": True} for origin in waiting]
    patterns = [entry.origin for entry in settings.origins if entry.is_pattern]
    if as_json:
        print_json({"items": items, "patterns": patterns})
        return
    headings = ("origin", "by", "documents", "listings", "last visit", "outcome", "robots", "next visit")
    cells = [
        (
            item["origin"],
            item["managedBy"] if item["active"] else "-",
            item.get("documents", 0),
            item.get("listings", 0),
            item.get("lastVisitAt"),
            item.get("lastOutcome"),
            item.get("robots"),
            item.get("nextVisitAt"),
        )
        for item in items
    ]
    click.echo(table(headings, cells))
    for pattern in patterns:
        click.echo(f"pattern: {pattern}")


async def _list(settings: Settings) -> Sequence[StoredRow]:
    async with opened_database(settings) as database:
        return await database.read(list_origins)
