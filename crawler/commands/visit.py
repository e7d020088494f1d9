from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import click

from config.errors import OperatorError
from config.settings import Settings
from crawler.assembly import make_client
from crawler.clock import SystemClock
from crawler.commands.changes import changes_table
from crawler.commands.drift import drift_table
from crawler.commands.history import version_lines
from crawler.commands.parts import Parts, crawling
from crawler.commands.render import clean, print_json, table
from crawler.commands.session import opened_database, run_async, settings_of
from crawler.policy.scope import Scope
from crawler.rehearsal import Rehearsed, set_stage
from crawler.visit import VisitReport
from index.documents import DocumentState
from index.store.database import Database
from index.store.difference import Difference, difference, mark
from index.store.documents import load_state
from index.store.frontier import Claim
from index.store.inspect import documents_behind, origin_row
from index.urls import BadUrl, origin_of, parse_url
from index.views import change_json, drift_json, instant, version_json

_CRASHED = 1
_MOST_SHOWN = 50
_PATIENCE = timedelta(seconds=30)
_PAUSE_S = 0.5


@click.command()
@click.argument("target", metavar="ORIGIN|ID")
@click.option("--now", "force", is_flag=True, help="Everything of an ORIGIN, due or not.")
@click.option("--dry-run", "rehearsed", is_flag=True, help="Show the difference it would make, and keep nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def visit(context: click.Context, target: str, force: bool, rehearsed: bool, as_json: bool) -> None:
    """Visit what is due of an ORIGIN, or the document and the card of the entry ID, and show the difference."""
    settings = settings_of(context)
    plan = read_plan(target, force)
    made = run_async(_rehearse(settings, plan) if rehearsed else _visit(settings, plan))
    for origin in made.resting:
        click.echo(f"ardvark: {clean(origin, 200)} asked to be left alone for longer and got no request", err=True)
    report = made.as_json(target, rehearsed=rehearsed)
    if as_json:
        print_json(report)
    else:
        click.echo(_summary(report))
    if made.crashed:
        context.exit(_CRASHED)


# --- what is visited --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Plan:
    """What was asked for: an origin, all of it with `force`, or an entry."""

    origin: str | None
    identifier: str | None
    force: bool


def read_plan(target: str, force: bool) -> Plan:
    """Read the argument: what has a scheme and a host is an origin, anything else an identifier."""
    if "://" not in target:
        return Plan(None, target, force)
    try:
        url = parse_url(target)
    except BadUrl as error:
        raise OperatorError(f"{target}: expected {error}") from None
    if url.raw_path_qs != "/":
        raise OperatorError(f"{target}: expected an origin, such as {origin_of(str(url))}, or an identifier")
    return Plan(origin_of(str(url)), None, force)


Places = Mapping[str, Sequence[str] | None]


async def _first_places(database: Database, plan: Plan) -> Places:
    """Give the documents to look at by origin; None stands for what is due there, or for all."""
    if plan.origin is not None:
        return {plan.origin: None}
    places = _by_origin(await database.read(documents_behind, plan.identifier))
    if not places:
        raise OperatorError(f"{plan.identifier}: no such listing (see `ardvark search`)")
    return places


def _by_origin(found: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    places: dict[str, list[str]] = {}
    for origin, url in found:
        if url not in places.setdefault(origin, []):
            places[origin].append(url)
    return places


def _further(found: Sequence[tuple[str, str]], made: "Made") -> Places:
    """Leave of places those on origins that were not visited, as when an entry has come to point to another card."""
    return {origin: urls for origin, urls in _by_origin(found).items() if origin not in made.reports}


# --- visiting ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Made:
    """What visits came to: reports and looks by origin, and the differences they made."""

    at: datetime
    reports: dict[str, VisitReport] = field(default_factory=dict)
    looks: dict[str, list[DocumentState]] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)
    resting: list[str] = field(default_factory=list)
    crashed: bool = False

    def as_json(self, target: str, *, rehearsed: bool) -> dict[str, Any]:
        """Write all of it; the events of a rehearsal have no cursor, for nobody will ever read them."""
        changes = [change_json(event) for made in self.differences for event in made.changes]
        if rehearsed:
            changes = [{name: value for name, value in item.items() if name != "cursor"} for item in changes]
        return {
            "target": target,
            "dryRun": rehearsed,
            "origins": [
                {
                    "origin": origin,
                    "robots": report.robots,
                    "failed": report.failed,
                    "postponed": report.postponed,
                    "documents": [_look_json(state) for state in self.looks[origin]],
                }
                for origin, report in self.reports.items()
            ],
            "resting": self.resting,
            "changes": changes,
            "edits": [
                {"identifier": item.row.identifier, "url": item.url, **version_json(item.row)}
                for made in self.differences
                for item in made.superseded
            ],
            "drift": {
                "opened": [drift_json(row, self.at) for made in self.differences for row in made.opened],
                "closed": [drift_json(row, self.at) for made in self.differences for row in made.closed],
            },
            "omitted": sum(made.omitted for made in self.differences),
        }


def _look_json(state: DocumentState) -> dict[str, Any]:
    return {
        "url": state.url,
        "kind": state.kind,
        "outcome": state.outcome,
        "reason": state.reason,
        "status": state.status,
        "digest": state.digest,
        "confirmedAt": instant(state.confirmed_at),
    }


async def _visit(settings: Settings, plan: Plan) -> Made:
    async with crawling(settings) as parts:
        places = await _first_places(parts.database, plan)
        await _check(parts.database, parts.crew.scope, places)
        made = Made(parts.clock.now())
        while places:
            names = list(places)
            before = await parts.database.read(mark, names)
            for origin, urls in places.items():
                await _visit_one(parts, made, origin, urls, force=plan.force)
            made.differences.append(await parts.database.read(difference, before, names))
            behind = await parts.database.read(documents_behind, plan.identifier) if plan.identifier else []
            places = {} if made.resting or made.crashed else _further(behind, made)
        made.at = parts.clock.now()
        return made


async def _visit_one(parts: Parts, made: Made, origin: str, urls: Sequence[str] | None, *, force: bool) -> None:
    if await parts.crew.resting([origin]):
        made.resting.append(origin)
        return
    report = await parts.crew.visit(await _claim(parts, origin), force=force, only=urls)
    if report is None:
        made.crashed = True
        return
    made.reports[origin] = report
    states = [await parts.database.read(load_state, url) for url in report.outcomes]
    made.looks[origin] = [state for state in states if state is not None]


async def _claim(parts: Parts, origin: str) -> Claim:
    """Claim an origin, once whoever visits it now is done."""
    ends = parts.clock.monotonic() + _PATIENCE.total_seconds()
    while True:
        claims = await parts.crew.claim(1, [origin])
        if claims:
            return claims[0]
        if parts.clock.monotonic() >= ends:
            raise OperatorError(_busy(origin))
        await parts.clock.sleep(_PAUSE_S)


def _busy(origin: str) -> str:
    return f"{origin} is being visited by another process; try again later"


async def _check(database: Database, scope: Scope, places: Places) -> None:
    for origin in places:
        row = await database.read(origin_row, origin)
        is_added = row is not None and row.active and row.managed_by == "operator"
        if not is_added and scope.rules(origin) is None:
            raise OperatorError(f"not on the allowlist: {origin} (see `ardvark origins list`)")
        if row is None and origin not in scope.origins:
            raise OperatorError(f"{origin} is admitted by a pattern, but nothing has led to it yet")


async def _rehearse(settings: Settings, plan: Plan) -> Made:
    clock = SystemClock()
    async with opened_database(settings) as database, make_client(settings, clock) as client:
        stage = await set_stage(settings, clock, client, database)
        places = await _first_places(database, plan)
        await _check(database, stage.scope, places)
        made = Made(clock.now())
        while places:
            found: list[tuple[str, str]] = []
            for origin, urls in places.items():
                rehearsed = await stage.visit(origin, force=plan.force, only=urls)
                if rehearsed is None:
                    continue
                made.reports[origin] = rehearsed.report
                made.looks[origin] = _last_looks(rehearsed)
                found += _named(rehearsed, plan.identifier)
            places = _further(found, made) if not stage.resting else {}
            if stage.busy:
                raise OperatorError(_busy(stage.busy[0]))
        made.resting = stage.resting
        made.differences = [await stage.difference()]
        made.at = clock.now()
        return made


def _last_looks(rehearsed: Rehearsed) -> list[DocumentState]:
    states = {look.state.url: look.state for look in rehearsed.visits}
    return [states[url] for url in rehearsed.report.outcomes if url in states]


def _named(rehearsed: Rehearsed, identifier: str | None) -> list[tuple[str, str]]:
    """Give where the entry that was asked for points to, as it was just read."""
    readings = [look.reading for look in rehearsed.visits if look.reading is not None]
    refs = [entry.artifact for reading in readings for entry in reading.entries if entry.key == identifier]
    return [(ref.owner, ref.url) for ref in refs if ref is not None and ref.owner and ref.url]


# --- for people -------------------------------------------------------------------------------------------------------


def _summary(report: dict[str, Any]) -> str:
    looks = [
        (look["url"], look["kind"], look["outcome"], look["reason"] or look["status"])
        for origin in report["origins"]
        for look in origin["documents"]
    ]
    parts = [table(("document", "kind", "outcome", "why"), looks) if looks else "nothing was due"]
    for heading, items, laid_out in (
        ("Changes", report["changes"], _changes),
        ("Edits", report["edits"], _edits),
        ("Drift opened", report["drift"]["opened"], drift_table),
        ("Drift closed", report["drift"]["closed"], drift_table),
    ):
        if items:
            more = len(items) - _MOST_SHOWN
            parts.append(f"{heading}:\n{laid_out(items[:_MOST_SHOWN])}" + (f"\nand {more} more" if more > 0 else ""))
    if looks and len(parts) == 1:
        parts.append("no difference")
    if report["dryRun"]:
        parts.append("nothing of this was kept")
    return "\n\n".join(parts)


def _changes(items: Sequence[dict[str, Any]]) -> str:
    return changes_table([{"cursor": None, **item} for item in items], numbered=False)


def _edits(items: Sequence[dict[str, Any]]) -> str:
    lines = []
    for item in items:
        lines.append(clean(item["identifier"] or item["url"], 200))
        lines += version_lines(item)
    return "\n".join(lines)
