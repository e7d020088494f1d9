from pathlib import Path
from typing import Any

import click

from config.errors import OperatorError
from config.settings import Settings
from crawler.assembly import build_scope, make_bounds, make_client
from crawler.clock import SystemClock
from crawler.commands.render import print_json, table
from crawler.commands.session import run_async, settings_of
from crawler.fetch.client import Request
from crawler.policy.scope import Admitted, OriginRules, Refused, make_scope
from crawler.surfaces import ard
from crawler.surfaces.base import Source
from crawler.survey import read_target
from index.documents import Observation, Outcome
from index.records import Problem, Rank, Reading, Severity
from index.strict_json import MalformedJson, parse, place_of

_FOUND = 1
_NO_BASE = "https://manifest.invalid/.well-known/ard.json"


@click.command()
@click.argument("target", metavar="FILE|URL")
@click.option("--base-url", metavar="URL", help="Where FILE will be served, for its relative addresses.")
@click.option("--strict", is_flag=True, help="Exit 1 on warnings too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def check(context: click.Context, target: str, base_url: str | None, strict: bool, as_json: bool) -> None:
    """Check a manifest, in a FILE or at a URL, and say where what is wrong."""
    settings = settings_of(context)
    body, url = _read(settings, target, base_url)
    source = Source(url, Rank.WELL_KNOWN, predecessor=url.endswith(ard.PREDECESSOR_PATH))
    reading = ard.read_manifest(body, source, make_bounds(settings))
    problems = [*reading.problems, *(problem for entry in reading.entries for problem in entry.problems)]
    text = _text(body)
    placed = [(problem, _place(text, problem)) for problem in problems]
    if as_json:
        print_json(_report(target, reading, placed))
    else:
        click.echo(_table(reading, placed))
    failing = (Severity.ERROR, Severity.WARNING) if strict else (Severity.ERROR,)
    if any(problem.severity in failing for problem in problems):
        context.exit(_FOUND)


def _read(settings: Settings, target: str, base_url: str | None) -> tuple[bytes, str]:
    if "://" in target:
        observation = run_async(_fetch(settings, target))
        if observation.outcome is not Outcome.FETCHED:
            why = observation.detail or observation.reason
            raise OperatorError(f"{target}: {observation.outcome} ({why})")
        return observation.body, observation.final_url
    try:
        return Path(target).read_bytes(), base_url or _NO_BASE
    except OSError as error:
        raise OperatorError(f"{target}: cannot be read ({error.strerror})") from None


async def _fetch(settings: Settings, target: str) -> Observation:
    wanted = read_target(target)
    base = build_scope(settings)
    rules = [*base.origins.values(), *base.patterns, OriginRules(wanted.origin)]
    scope = make_scope(rules, named_hosts=base.named_hosts, allow_http=settings.network.allow_http)

    async def approve(url: str) -> Admitted | Refused:
        return scope.admit(url)

    clock = SystemClock()
    url = wanted.document.lead.url if wanted.document else wanted.origin + ard.WELL_KNOWN_PATH
    async with make_client(settings, clock) as client:
        request = Request(url, settings.limits.manifest_size)
        return await client.fetch(request, approve, lambda _: settings.politeness.min_delay)


def _text(body: bytes) -> str | None:
    try:
        return parse(body, max_depth=256).text
    except MalformedJson:
        return None


def _place(text: str | None, problem: Problem) -> tuple[int, int] | None:
    """Find line and column of the nearest value that is there: the member itself, or what should have held it."""
    pointer = problem.pointer
    while text is not None:
        place = place_of(text, pointer)
        if place is not None or not pointer:
            return place
        pointer = pointer.rpartition("/")[0]
    return None


def _report(target: str, reading: Reading, placed: list[tuple[Problem, tuple[int, int] | None]]) -> dict[str, Any]:
    return {
        "target": target,
        "kind": reading.kind,
        "entries": len(reading.entries),
        "problems": [
            {
                "code": problem.code,
                "severity": problem.severity,
                "pointer": problem.pointer,
                "line": place[0] if place else None,
                "column": place[1] if place else None,
                "message": problem.message,
                "clause": problem.clause,
            }
            for problem, place in placed
        ],
    }


def _table(reading: Reading, placed: list[tuple[Problem, tuple[int, int] | None]]) -> str:
    order = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}
    cells = [
        (
            problem.severity,
            f"{place[0]}:{place[1]}" if place else "",
            problem.code,
            problem.pointer,
            problem.message,
            problem.clause,
        )
        for problem, place in sorted(placed, key=lambda item: order[item[0].severity])
    ]
    errors = sum(problem.severity is Severity.ERROR for problem, _ in placed)
    summary = f"{reading.kind}: {len(reading.entries)} entries, {errors} errors, {len(placed) - errors} other remarks"
    if not cells:
        return summary
    return table(("severity", "line", "code", "pointer", "message", "clause"), cells) + "\n\n" + summary
