from typing import Any

import click

from crawler.commands.render import instant, print_json, table
from crawler.commands.session import opened_database, run_async, settings_of
from index.store.changes import Change, read_changes


@click.command()
@click.option("--after", type=click.IntRange(0), default=0, help="Only events after this cursor.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=100, show_default=True, help="Most events.")
@click.option("--identifier", help="Only events of this entry.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def changes(context: click.Context, after: int, limit: int, identifier: str | None, as_json: bool) -> None:
    """Print the change feed, oldest first."""
    settings = settings_of(context)

    async def work() -> list[Change]:
        async with opened_database(settings) as database:
            return await database.read(read_changes, after, limit, identifier)

    events = run_async(work())
    if as_json:
        print_json({"items": [change_json(event) for event in events], "next": events[-1].cursor if events else after})
        return
    cells = [
        (event.cursor, event.at, event.kind, event.identifier, ", ".join(event.members) or event.reason)
        for event in events
    ]
    click.echo(table(("cursor", "at", "kind", "identifier", "what"), cells) if cells else "no changes")


def change_json(event: Change) -> dict[str, Any]:
    """Write an event of the feed as JSON."""
    return {
        "cursor": event.cursor,
        "kind": event.kind,
        "identifier": event.identifier,
        "at": instant(event.at),
        "url": event.url,
        "mechanism": event.mechanism,
        "members": list(event.members),
        "oldDigest": event.old_digest,
        "newDigest": event.new_digest,
        "reason": event.reason,
    }
