from pathlib import Path
from typing import Any

import click
import orjson

from config.errors import OperatorError
from config.units import parse_duration
from crawler.clock import SystemClock
from crawler.commands.render import print_json, table
from crawler.commands.session import run_async, settings_of
from crawler.survey import read_target, survey

_NOTHING_ACCEPTED = 2


@click.command()
@click.argument("url")
@click.option("--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="Write the report to a file.")
@click.option("--allow", multiple=True, metavar="ORIGIN", help="Follow leads to this origin too.")
@click.option("--deadline", default="60s", show_default=True, metavar="TIME", help="Time for everything together.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.pass_context
def discover(
    context: click.Context, url: str, output: Path | None, allow: tuple[str, ...], deadline: str, as_json: bool
) -> None:
    """Report everything that the publisher at URL announces, without a database."""
    settings = settings_of(context)
    try:
        limit = parse_duration(deadline)
    except ValueError as error:
        raise OperatorError(f"--deadline {deadline}: expected {error}") from None
    further = [read_target(origin).origin for origin in allow]
    report = run_async(survey(settings, SystemClock(), read_target(url), limit, further))
    if output is not None:
        _write(output, report)
    if as_json:
        print_json(report)
    else:
        click.echo(_summary(report))
    if not report["catalogs"]:
        context.exit(_NOTHING_ACCEPTED)


def _write(output: Path, report: dict[str, Any]) -> None:
    try:
        output.write_bytes(orjson.dumps(report, option=orjson.OPT_INDENT_2) + b"\n")
    except OSError as error:
        raise OperatorError(f"{output}: cannot be written ({error.strerror})") from None


def _summary(report: dict[str, Any]) -> str:
    sources = [
        (item["mechanism"], item["url"], item["outcome"], item["reason"] or item["status"])
        for item in report["sources"]
    ]
    parts = [table(("found by", "url", "outcome", "why"), sources)]
    if report["entries"]:
        entries = [
            (item["identifier"], item["state"], ", ".join(_codes(item)), item["pointer"]) for item in report["entries"]
        ]
        parts.append(table(("identifier", "state", "problems", "pointer"), entries))
    counts = report["counts"]
    parts.append(
        f"{counts['catalogs']} catalogs, {counts['entries']['total']} entries, "
        f"{counts['entries'].get('listed', 0)} of them fit to be listed; nothing here is verified"
    )
    return "\n\n".join(parts)


def _codes(item: dict[str, Any]) -> list[str]:
    return [problem["code"] for problem in item["problems"] if problem["severity"] != "info"]
