from collections.abc import Mapping, Sequence
from typing import Any

import click

from config.errors import OperatorError
from config.settings import Settings
from crawler.clock import SystemClock
from crawler.commands.render import print_json, table
from crawler.commands.session import opened_database, run_async, settings_of
from index.api.search import search_result
from index.freshness import FreshnessState
from index.query import InvalidArgument, constraints, parse_search
from index.store import search as store
from index.store.annotations import AnnotatedPage, annotated_search


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
    now = SystemClock().now()
    results = [search_result(hit, annotation, settings.base_url, now) for hit, annotation in page.hits]
    if as_json:
        print_json({"results": results})
    else:
        click.echo(_results(results) if results else "nothing matches")


def _results(results: Sequence[Mapping[str, Any]]) -> str:
    """Lay out results for people, with a column for what speaks against some of them."""
    headings = ["score", "identifier", "name", "type"]
    cells = [[item["score"], item["identifier"], item.get("displayName"), item.get("type")] for item in results]
    notes = [_note(item) for item in results]
    if any(notes):
        headings.append("note")
        cells = [[*row, note] for row, note in zip(cells, notes, strict=True)]
    return table(headings, cells)


def _note(item: Mapping[str, Any]) -> str:
    state = item["ardvark:freshness"]["state"]
    drift, claim = item.get("ardvark:drift"), item.get("ardvark:publisherClaim")
    notes = [
        state if state != FreshnessState.FRESH else "",
        f"{drift['worst']} drift" if drift else "",
        f"publisher {claim}" if claim else "",
    ]
    return ", ".join(filter(None, notes))


async def _search(settings: Settings, question: store.Question, limit: int) -> AnnotatedPage:
    async with opened_database(settings) as database:
        return await database.read(annotated_search, question, limit, None)
