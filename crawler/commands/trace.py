from collections.abc import Sequence
from typing import Any

import click

from config.errors import OperatorError
from config.settings import Settings
from crawler.clock import SystemClock
from crawler.commands.render import clean, print_json, table, value_text
from crawler.commands.session import opened_database, run_async, settings_of
from crawler.trace import trace as trace_discovery
from index.choice import BINDINGS
from index.query import InvalidArgument, constraints, parse_search
from index.store import search as store

_NOTHING_TAKEN = 1
_LONGEST_VALUE = 40


@click.command()
@click.argument("text", nargs=-1, required=True)
@click.option(
    "--binding",
    "bindings",
    multiple=True,
    metavar="NAME",
    help=f"A binding that the client speaks; default {', '.join(BINDINGS)}.",
)
@click.option("--limit", type=click.IntRange(1, 50), default=5, show_default=True, help="Most hits.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def trace(context: click.Context, text: tuple[str, ...], bindings: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Search for TEXT, read the cards behind the hits anew, and show which one a client would call and why."""
    settings = settings_of(context)
    try:
        request = parse_search({"query": {"text": " ".join(text)}})
        question = store.Question(request.query.text, constraints(request.query), settings.search.min_score)
    except InvalidArgument as error:
        raise OperatorError(str(error)) from None
    report = run_async(_trace(settings, question, limit, bindings or BINDINGS))
    if as_json:
        print_json(report)
    else:
        click.echo("\n\n".join(_parts(report)))
    if report["choice"] is None:
        context.exit(_NOTHING_TAKEN)


async def _trace(settings: Settings, question: store.Question, limit: int, bindings: Sequence[str]) -> dict[str, Any]:
    async with opened_database(settings) as database:
        return await trace_discovery(settings, SystemClock(), database, question, limit, bindings)


def _parts(report: dict[str, Any]) -> list[str]:
    query, hits, choice = report["query"], report["hits"], report["choice"]
    parts = [f"query   {clean(query['text'], 200)}\nspeaks  {clean(', '.join(query['bindings']), 200)}"]
    if not hits:
        return [*parts, "nothing matches"]
    parts.append("Hits:\n" + _hits_table(hits))
    differing = [(hit["rank"], item) for hit in hits for item in hit["disagreements"]]
    if differing:
        parts.append("Entry and live card disagree:\n" + _differing_table(differing))
    if choice is None:
        parts.append("taken   none")
    else:
        interface = choice["interface"]
        spoken = " ".join([interface["protocolBinding"], ", ".join(interface["protocolVersions"])]).strip()
        parts.append(
            f"taken   #{choice['rank']} {clean(choice['identifier'], 200)}\n"
            f"calls   {clean(spoken)} at {clean(interface['url'], 300)}"
        )
    passed = [(hit["rank"], hit["identifier"], hit["passedOver"]) for hit in hits if hit["passedOver"] is not None]
    if passed:
        cells = [(rank, name, over["code"], over["detail"]) for rank, name, over in passed]
        parts.append("Passed over:\n" + table(("#", "identifier", "why", ""), cells))
    return parts


def _hits_table(hits: Sequence[dict[str, Any]]) -> str:
    cells = [
        (
            hit["rank"],
            hit["score"],
            hit["identifier"],
            ", ".join(hit["matched"]["words"]),
            ", ".join(hit["matched"]["tags"]),
            _skill(hit["matched"]["skill"]),
            hit["cardUrl"],
            hit["card"]["outcome"] or hit["card"]["read"],
        )
        for hit in hits
    ]
    return table(("#", "score", "identifier", "words", "tags", "skill", "card", "read"), cells)


def _skill(skill: dict[str, Any] | None) -> str:
    return "" if skill is None else str(skill.get("id") or skill.get("name") or "")


def _differing_table(found: Sequence[tuple[int, dict[str, Any]]]) -> str:
    cells = [
        (
            rank,
            "drift" if item["drift"] else item["severity"],
            item["class"],
            item["code"].removeprefix("drift."),
            item["pointer"],
            value_text(item["catalog"], _LONGEST_VALUE),
            "-> " + value_text(item["live"], _LONGEST_VALUE),
        )
        for rank, item in found
    ]
    return table(("#", "", "class", "code", "pointer", "catalog", "live"), cells)
