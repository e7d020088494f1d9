from collections.abc import Iterator
from typing import Any

import click

from config.settings import Settings
from crawler.commands.render import clean, coloured, print_json, value_text
from crawler.commands.session import opened_database, run_async, settings_of
from index.store.drift_reads import History, history_of
from index.views import history_json

_NOT_FOUND = 1
_MOST_EDITS = 20
_LONGEST_VALUE = 160
_COLOUR_OF_CLASS = {"breaking": "red", "security": "red", "behavioural": "yellow", "search": "yellow"}


@click.command()
@click.argument("identifier", metavar="ID")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="Most earlier states.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def history(context: click.Context, identifier: str, limit: int, as_json: bool) -> None:
    """Show the states that an entry and its card had, newest first, and what each following one changed."""
    settings = settings_of(context)
    found = run_async(_history(settings, identifier, limit + 1))
    if found is None:
        click.echo(f"ardvark: no listing {clean(identifier, 200)}", err=True)
        context.exit(_NOT_FOUND)
    shown = history_json(found)
    is_more = len(shown["items"]) > limit
    shown["items"] = shown["items"][:limit]
    if as_json:
        print_json(shown)
        return
    click.echo("\n".join(_lines(shown)))
    if is_more:
        click.echo("\nand more, with a larger --limit")


async def _history(settings: Settings, identifier: str, limit: int) -> History | None:
    async with opened_database(settings) as database:
        return await database.read(history_of, identifier, limit)


def _lines(shown: dict[str, Any]) -> Iterator[str]:
    yield f"{clean(shown['identifier'], 200)}  {shown['state']}"
    for name in ("entry", "artifact"):
        present = shown[name]
        if present is not None:
            kind = f"  {clean(present['kind'])} {clean(present['shape'])}" if "kind" in present else ""
            yield (
                f"{name.ljust(8)}  {clean(present['url'] or '-', 200)}{kind}  "
                f"since {_time(present['changedAt'])}, confirmed {_time(present['confirmedAt'])}"
            )
    if not shown["items"]:
        yield "\nno earlier states"
    for item in shown["items"]:
        yield ""
        yield from version_lines(item)


def version_lines(item: dict[str, Any]) -> Iterator[str]:
    """Lay out a superseded state and the edits that ended it; diffs are coloured on a terminal."""
    silent = ", without a new version" if item["silent"] else ""
    yield (
        f"{_time(item['replacedAt'])}  {item['of']}  {item['class'] or 'unclassed'}{silent}  "
        f"(before: {_time(item['firstSeenAt'])} to {_time(item['lastSeenAt'])})"
    )
    for edit in item["edits"][:_MOST_EDITS]:
        note = f"  ({clean(edit['note'])})" if edit.get("note") else ""
        heading = f"  {clean(edit['class']).ljust(12)}  {clean(edit['pointer'] or '/', 120)}{note}"
        colour = _COLOUR_OF_CLASS.get(edit["class"])
        yield coloured(heading, colour) if colour else heading
        if "old" in edit:
            yield coloured(f"    - {value_text(edit['old'], _LONGEST_VALUE)}", "red")
        if "new" in edit:
            yield coloured(f"    + {value_text(edit['new'], _LONGEST_VALUE)}", "green")
    if len(item["edits"]) > _MOST_EDITS:
        yield f"  and {len(item['edits']) - _MOST_EDITS} more edits"


def _time(text: str | None) -> str:
    return "-" if text is None else text[:19].replace("T", " ")
