import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import click

from config.settings import Settings
from crawler.clock import SystemClock
from crawler.commands.drift import drift_table
from crawler.commands.render import clean, print_json, table
from crawler.commands.session import opened_database, run_async, settings_of
from index.claimed import claimed_endorsement
from index.store.drift_reads import DriftFilter, artifact_of, list_drifts
from index.store.inspect import last_fetch, listing_row, sources_of
from index.views import artifact_json, drift_json, provenance_json

_NOT_FOUND = 1
_MOST_DRIFTS = 500
_LONGEST = 200
_STATED = (("kid", "kid"), ("keys", "keySource"), ("on", "jkuHost"))


@click.command()
@click.argument("identifier")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def show(context: click.Context, identifier: str, as_json: bool) -> None:
    """Show a listing by its IDENTIFIER: the entry, its source and card, open drift, and who else publishes it."""
    settings = settings_of(context)
    shown = run_async(_show(settings, identifier, SystemClock().now()))
    if shown is None:
        click.echo(f"ardvark: no listing {clean(identifier, _LONGEST)}", err=True)
        context.exit(_NOT_FOUND)
    if as_json:
        print_json(shown)
    else:
        click.echo("\n\n".join(_parts(shown)))


async def _show(settings: Settings, identifier: str, now: datetime) -> dict[str, Any] | None:
    async with opened_database(settings) as database:
        row = await database.read(listing_row, identifier)
        if row is None:
            return None
        sources = await database.read(sources_of, identifier)
        fetch = await database.read(last_fetch, row.document_id) if row.document_id else None
        artifact = await database.read(artifact_of, identifier)
        drifts = await database.read(list_drifts, DriftFilter(identifier=identifier), _MOST_DRIFTS)
        listed = provenance_json(row, sources, fetch, now)
        return {
            "identifier": listed.pop("identifier"),
            "state": listed.pop("state"),
            "entry": json.loads(row.entry) if row.entry else None,
            **listed,
            "artifact": None if artifact is None else artifact_json(artifact, now),
            "drift": [drift_json(item, now) for item in drifts],
            "endorsement": await claimed_endorsement(settings, database, sources, now),
        }


# --- for people -------------------------------------------------------------------------------------------------------


def _parts(shown: dict[str, Any]) -> Iterator[str]:
    entry, endorsement = shown["entry"] or {}, shown["endorsement"]
    yield _lines(
        [
            ("identifier", shown["identifier"]),
            ("state", shown["state"]),
            ("name", entry.get("displayName")),
            ("type", entry.get("type")),
            ("description", entry.get("description")),
            *((name, _plain(value)) for name, value in shown["provenance"].items()),
            ("endorsement", None if endorsement is None else _endorsed(endorsement)),
        ]
    )
    if shown["artifact"] is not None:
        yield "Artifact:\n" + _artifact(shown["artifact"], _only_observed(shown["drift"]))
    if shown["drift"]:
        yield "Open drift:\n" + drift_table(shown["drift"])
    cells = [(item["state"], item["url"] + "#" + item["pointer"], item["mechanism"]) for item in shown["sources"]]
    yield "Sources:\n" + table(("state", "where", "found by"), cells)
    if shown["problems"]:
        yield "Problems:\n" + problems_table(shown["problems"])


def _lines(rows: Sequence[tuple[str, Any]]) -> str:
    kept = [(name, value) for name, value in rows if value not in (None, [], "")]
    width = max((len(name) for name, _ in kept), default=0)
    return "\n".join(f"{name.ljust(width)}  {clean(value, _LONGEST)}" for name, value in kept)


def _plain(value: Any) -> Any:
    """Write a freshness, or any other object, in one line; a state needs no name."""
    if not isinstance(value, dict):
        return value
    return ", ".join(str(item) if name == "state" else f"{name} {item}" for name, item in value.items())


def _endorsed(endorsement: dict[str, Any]) -> str:
    why = f" ({endorsement['reason']})" if endorsement["reason"] else ""
    return f"{endorsement['verdict']}{why} by {endorsement['brandDomain']}"


def _only_observed(drifts: Sequence[dict[str, Any]]) -> list[str]:
    """Name the tools that an endpoint was seen to serve and that its card does not list."""
    found = [item["live"] for item in drifts if item["code"] == "drift.endpoint_tools"]
    return list(dict.fromkeys(str(name) for value in found for name in value["missing_in_card"]))


def _artifact(artifact: dict[str, Any], only_observed: Sequence[str]) -> str:
    summary = artifact.get("summary", {})
    lines = _lines(
        [
            ("state", artifact["state"]),
            ("url", artifact["url"]),
            ("kind", artifact.get("kind")),
            ("shape", artifact.get("shape")),
            ("name", summary.get("name")),
            ("version", summary.get("version")),
            ("skills", ", ".join(map(str, summary.get("skills", [])))),
            ("tools", ", ".join(map(str, summary.get("tools", [])))),
            ("observed, not declared", ", ".join(only_observed)),
            ("freshness", _plain(artifact.get("freshness"))),
            ("entry is behind", _behind(artifact.get("updatedAtLag"))),
            *(("signature", _signature(item)) for item in artifact.get("signatures") or ()),
        ]
    )
    faults = [*artifact.get("findings", []), *artifact.get("problems", [])]
    return f"{lines}\n\n{problems_table(faults)}" if faults else lines


def _behind(lag: dict[str, Any] | None) -> str | None:
    if lag is None:
        return None
    least, most = round(lag["atLeastS"]), round(lag["atMostS"])
    apart = f"{least} s" if least == most else f"{least} to {most} s"
    return f"updatedAt {lag['updatedAt']} is {apart} before the card changed"


def _signature(verdict: dict[str, Any]) -> str:
    """Write what became of a signature; that it is valid says nothing about whose key it is."""
    why = verdict.get("reason") or verdict.get("profile")
    known = [f"{name} {verdict[member]}" for name, member in _STATED if member in verdict]
    return ", ".join([verdict["outcome"] + (f" ({why})" if why else ""), *known])


def problems_table(problems: Sequence[dict[str, Any]]) -> str:
    """Lay out faults of a document for people."""
    cells = [(item["severity"], item["code"], item["pointer"], item["message"]) for item in problems]
    return table(("severity", "code", "pointer", "message"), cells)
