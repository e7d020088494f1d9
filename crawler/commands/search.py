from typing import Any

import click
import orjson

from config.errors import OperatorError
from config.settings import Settings
from crawler.commands.render import clean, instant, print_json, table
from crawler.commands.session import opened_database, run_async, settings_of
from index.api.search import search_result
from index.query import InvalidArgument, constraints, parse_search
from index.store import search as store
from index.store.inspect import last_fetch, listing_row, sources_of

_NOT_FOUND = 1


@click.command()
@click.argument("text", nargs=-1, required=True)
@click.option("--filter", "filters", multiple=True, metavar="KEY=VALUE", help="Constraint, as in type=application/x.")
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True, help="Most results.")
@click.option("--json", "as_json", is_flag=True, help="Print the ARD search response.")
@click.pass_context
def search(context: click.Context, text: tuple[str, ...], filters: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Search the local index for TEXT."""
    settings = settings_of(context)
    wanted: dict[str, list[str]] = {}
    for assignment in filters:
        key, separator, value = assignment.partition("=")
        if not separator:
            raise OperatorError(f"--filter {assignment}: expected KEY=VALUE")
        wanted.setdefault(key, []).append(value)
    try:
        request = parse_search({"query": {"text": " ".join(text), "filter": wanted}})
        question = store.Question(request.query.text, constraints(request.query), settings.search.min_score)
    except InvalidArgument as error:
        raise OperatorError(str(error)) from None
    page = run_async(_search(settings, question, limit))
    results = [search_result(hit, settings.base_url) for hit in page.hits]
    if as_json:
        print_json({"results": results})
    else:
        cells = [(item["score"], item["identifier"], item.get("displayName"), item.get("type")) for item in results]
        click.echo(table(("score", "identifier", "name", "type"), cells) if cells else "nothing matches")


async def _search(settings: Settings, question: store.Question, limit: int) -> store.SearchPage:
    async with opened_database(settings) as database:
        return await database.read(store.search, question, limit, None)


@click.command()
@click.argument("identifier")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def show(context: click.Context, identifier: str, as_json: bool) -> None:
    """Show a listing by its IDENTIFIER: the entry, where it comes from, and who else publishes it."""
    settings = settings_of(context)
    shown = run_async(_show(settings, identifier))
    if shown is None:
        click.echo(f"ardvark: no listing {clean(identifier, 200)}", err=True)
        context.exit(_NOT_FOUND)
    if as_json:
        print_json(shown)
        return
    provenance = shown["provenance"]
    rows: list[tuple[str, object]] = [
        ("identifier", shown["identifier"]),
        ("state", shown["state"]),
        ("name", shown["entry"].get("displayName") if shown["entry"] else ""),
        ("type", shown["entry"].get("type") if shown["entry"] else ""),
        *((name, value) for name, value in provenance.items() if value not in (None, [], "")),
    ]
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        click.echo(f"{name.ljust(width)}  {clean(value, 200)}")
    click.echo("\nSources:")
    cells = [(item["state"], item["url"] + "#" + item["pointer"], item["mechanism"]) for item in shown["sources"]]
    click.echo(table(("state", "where", "found by"), cells))
    problems = [(item["severity"], item["code"], item["pointer"], item["message"]) for item in shown["problems"]]
    if problems:
        click.echo("\nProblems:")
        click.echo(table(("severity", "code", "pointer", "message"), problems))


async def _show(settings: Settings, identifier: str) -> dict[str, Any] | None:
    async with opened_database(settings) as database:
        row = await database.read(listing_row, identifier)
        if row is None:
            return None
        sources = await database.read(sources_of, identifier)
        fetch = await database.read(last_fetch, row.document_id) if row.document_id else None
    listed = next((source for source in sources if source.state == "listed"), None)
    state = "removed" if row.removed_at else "stale" if row.failing_since else "current"
    return {
        "identifier": row.identifier,
        "state": state,
        "entry": orjson.loads(row.entry) if row.entry else None,
        "provenance": {
            "url": row.url,
            "mechanism": row.mechanism,
            "finalUrl": row.final_url,
            "redirects": row.hops or [],
            "pointer": listed.pointer if listed else None,
            "firstSeenAt": instant(row.first_seen_at),
            "lastChangedAt": instant(row.changed_at),
            "lastConfirmedAt": instant(row.confirmed_at),
            "removedAt": instant(row.removed_at),
            "staleSince": instant(row.failing_since),
            "staleReason": f"{row.outcome}: {row.reason}" if row.failing_since else None,
            "digest": row.digest,
            "snapshot": row.snapshot,
            "robots": fetch.robots if fetch else None,
            "trust": listed.derived.get("trust") if listed else None,
        },
        "sources": [
            {
                "url": source.url,
                "pointer": source.pointer,
                "mechanism": source.mechanism,
                "state": source.state,
                "identifier": source.identifier,
                "version": source.version,
                "firstSeenAt": instant(source.first_seen_at),
                "changedAt": instant(source.changed_at),
                "confirmedAt": instant(source.confirmed_at),
            }
            for source in sources
        ],
        "problems": listed.problems if listed else [],
    }
