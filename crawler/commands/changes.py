from collections.abc import Sequence
from typing import Any

import click

from config.errors import OperatorError
from config.settings import Settings
from crawler.commands.render import print_json, table
from crawler.commands.session import opened_database, run_async, settings_of
from index.store.changes import Change, newest_changes, page_of_changes
from index.views import change_json

# The largest that a database can compare with.
_LAST_CURSOR = 2**63 - 1


@click.command()
@click.option("--after", type=click.IntRange(0, _LAST_CURSOR), help="Only events after this cursor.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=100, show_default=True, help="Most events.")
@click.option("--last", type=click.IntRange(1, 10_000), metavar="N", help="The newest N events instead of the oldest.")
@click.option("--identifier", help="Only events of this entry.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def changes(
    context: click.Context, after: int | None, limit: int, last: int | None, identifier: str | None, as_json: bool
) -> None:
    """Print the change feed, oldest first: entries, cards and drift."""
    settings = settings_of(context)
    if last is not None and after is not None:
        raise OperatorError("--last and --after exclude each other")
    events = run_async(_changes(settings, after, limit + 1, last, identifier))
    is_more = last is None and len(events) > limit
    events = events[:limit] if is_more else events
    if as_json:
        following = events[-1].cursor if events else after or 0
        print_json({"items": [change_json(event) for event in events], "next": following})
        return
    click.echo(changes_table([change_json(event) for event in events]) if events else "no changes")
    if is_more:
        click.echo(f"and more, with --after {events[-1].cursor}")


async def _changes(
    settings: Settings, after: int | None, limit: int, last: int | None, identifier: str | None
) -> list[Change]:
    async with opened_database(settings) as database:
        if last is not None:
            return await database.read(newest_changes, last, identifier)
        page = await database.read(page_of_changes, after or 0, limit, identifier)
        if after is not None and page.misses(after):
            raise OperatorError(
                f"--after {after}: the feed goes back to {page.oldest}, what came before is pruned; "
                f"take over what is listed now and go on with --after {page.oldest - 1}"
            )
        return page.events


def changes_table(items: Sequence[dict[str, Any]], *, numbered: bool = True) -> str:
    """Lay out events for people."""
    headings = ("cursor", "at", "kind", "class", "identifier", "what")
    cells = [
        (
            item["cursor"],
            item["at"][:19].replace("T", " "),
            item["kind"],
            _class(item),
            item["identifier"] or item["url"],
            _what(item),
        )
        for item in items
    ]
    return table(headings, cells) if numbered else table(headings[1:], [row[1:] for row in cells])


def _class(item: dict[str, Any]) -> str:
    return f"{item['class'] or ''}{', silent' if item['silent'] else ''}"


def _what(item: dict[str, Any]) -> str:
    members = ", ".join(item["members"])
    if item["kind"].startswith("drift."):
        return f"{item['reason'].removeprefix('drift.')} {members}".rstrip()
    return members or item["reason"]
