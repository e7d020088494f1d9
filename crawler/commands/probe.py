from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click

from config.settings import Settings
from crawler.assembly import make_client
from crawler.clock import SystemClock
from crawler.commands.drift import drift_table
from crawler.commands.render import clean, print_json
from crawler.commands.session import opened_database, run_async, settings_of
from crawler.probe import Probed
from crawler.probe import probe as ask
from crawler.surfaces.mcp_endpoint import EndpointState
from index.findings import redact
from index.tool_drift import compare_tools, declared_tools
from index.views import drift_json, instant

_FOUND = 1
_NOT_MEASURED = 2
_LONGEST = 200
_MOST_SHOWN = 50


@click.command()
@click.argument("target", metavar="ID|CARD-URL")
@click.option("--keep/--no-keep", default=True, help="Keep what the tools and the card disagree about; the default.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def probe(context: click.Context, target: str, keep: bool, as_json: bool) -> None:
    """Ask the endpoint of a server card which tools it serves, and compare; needs probe.enabled.

    The card is named by its URL, or by the ID of an entry that leads to it. Exits 1 when card and endpoint disagree,
    2 when the endpoint must not be asked.
    """
    settings = settings_of(context)
    probed, now = run_async(_probe(settings, target, keep))
    report = probe_json(probed, target, now, kept=keep)
    if as_json:
        print_json(report)
    else:
        click.echo(_summary(report))
    if probed.finding.state is EndpointState.NOT_MEASURED:
        context.exit(_NOT_MEASURED)
    if report["missing_in_card"] or report["missing_at_endpoint"]:
        context.exit(_FOUND)


async def _probe(settings: Settings, target: str, keep: bool) -> tuple[Probed, datetime]:
    clock = SystemClock()
    async with opened_database(settings) as database, make_client(settings, clock) as client:
        return await ask(settings, clock, client, database, target, keep=keep), clock.now()


def probe_json(probed: Probed, target: str, now: datetime, *, kept: bool) -> dict[str, Any]:
    """Write what a probe found; every name in it is the publisher's, and an observed tool is no declared one."""
    card, finding = probed.card, probed.finding
    apart = [] if finding.tools is None else compare_tools(card.live.view, finding.tools)
    return {
        "target": target,
        "identifiers": list(card.leading.identifiers),
        "card": {
            "url": redact(card.live.url),
            "digest": card.live.view.digest,
            "confirmedAt": instant(card.live.seen_at),
            "tools": declared_tools(card.live.view),
        },
        "endpoint": {
            "url": redact(finding.url),
            "state": finding.state,
            "reason": finding.reason,
            "detail": finding.detail,
            "status": finding.status,
            "protocolVersion": finding.version,
            "askedAt": instant(finding.asked_at),
            "tools": None if finding.tools is None else list(finding.tools),
        },
        "missing_in_card": [name for item in apart for name in item.live["missing_in_card"]],
        "missing_at_endpoint": [name for item in apart for name in item.catalog["missing_at_endpoint"]],
        "drift": [drift_json(row, now) for row in probed.drift],
        "kept": kept,
    }


# --- for people -------------------------------------------------------------------------------------------------------


def _summary(report: dict[str, Any]) -> str:
    card, endpoint = report["card"], report["endpoint"]
    why = " ".join(text for text in (endpoint["reason"], endpoint["detail"]) if text)
    rows = [
        ("card", card["url"]),
        ("endpoint", endpoint["url"] or "-"),
        ("state", endpoint["state"] + (f" ({why})" if why else "")),
        ("protocol", endpoint["protocolVersion"]),
        ("declared", _counted(card["tools"])),
        ("observed", _counted(endpoint["tools"])),
        ("observed, not declared", _named(report["missing_in_card"])),
        ("declared, not observed", _named(report["missing_at_endpoint"])),
    ]
    lines = "\n".join(f"{name.ljust(22)}  {clean(value, _LONGEST)}" for name, value in rows if value)
    drifts = f"\n\nDrift:\n{drift_table(report['drift'])}" if report["drift"] else ""
    return lines + drifts + ("" if report["kept"] or not report["drift"] else "\n\nnothing of this was kept")


def _counted(names: Sequence[str] | None) -> str:
    return "no list of tools" if names is None else f"{len(names)} tools"


def _named(names: Sequence[str]) -> str:
    more = len(names) - _MOST_SHOWN
    return ", ".join(names[:_MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")
