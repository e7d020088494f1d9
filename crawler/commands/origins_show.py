from collections.abc import Callable, Iterator, Sequence
from typing import Any

import click

from config.errors import OperatorError
from config.settings import Settings
from crawler.clock import SystemClock
from crawler.commands.drift import drift_table
from crawler.commands.render import clean, print_json, table
from crawler.commands.session import opened_database, run_async, settings_of
from index.store.origin_reads import OriginPage, origin_page
from index.views import origin_page_json

_MOST_ROWS = 10_000


@click.command()
@click.argument("name", metavar="ORIGIN")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def show(context: click.Context, name: str, as_json: bool) -> None:
    """Show what was tried on an ORIGIN, what it answered, its cards and drift, and why an entry is not listed."""
    settings = settings_of(context)
    page = run_async(_show(settings, name.rstrip("/").lower()))
    shown = {**origin_page_json(page, SystemClock().now()), "madp": page.origin.madp}
    if as_json:
        print_json(shown)
    else:
        click.echo("\n\n".join(_parts(shown)))


async def _show(settings: Settings, name: str) -> OriginPage:
    async with opened_database(settings) as database:
        page = await database.read(origin_page, name, _MOST_ROWS)
        if page is None:
            raise OperatorError(f"{name} is not known (see `ardvark origins list`)")
        return page


def _parts(shown: dict[str, Any]) -> Iterator[str]:
    yield documents_table(shown["documents"])
    if shown["madp"]:
        yield _madp(shown["madp"])
    for name, heading, laid_out in _LISTS:
        if shown[name]:
            more = shown["omitted"][name]
            yield f"{heading}:\n{laid_out(shown[name])}" + (f"\nand {more} more" if more else "")
    faults = [(item, fault) for item in shown["documents"] for fault in item["problems"]]
    faults += [(item, fault) for item in shown["artifacts"] for fault in _faults(item)]
    if faults:
        yield "Problems of documents:\n" + _faults_table(faults)


def documents_table(items: Sequence[dict[str, Any]]) -> str:
    """Lay out watched documents for people."""
    headings = ("document", "found by", "outcome", "reason", "freshness", "entries", "confirmed", "next")
    cells = [
        (
            item["url"],
            item["mechanism"],
            item["outcome"],
            item["reason"],
            item["freshness"]["state"],
            item["entries"],
            _time(item["confirmedAt"]),
            _time(item["nextFetchAt"]),
        )
        for item in items
    ]
    return table(headings, cells)


def _time(text: str | None) -> str:
    return "" if text is None else text[:19].replace("T", " ")


def _madp(madp: dict[str, Any]) -> str:
    failed = ", ".join(map(str, madp.get("failed", [])))
    return f"MADP level {clean(madp.get('level', 'none'))}" + (f"; failed: {clean(failed, 200)}" if failed else "")


def _artifacts(items: Sequence[dict[str, Any]]) -> str:
    cells = [
        (
            item["identifier"] or "-",
            item["state"],
            item.get("kind"),
            item.get("shape"),
            item.get("freshness", {}).get("state"),
            sorted({finding["code"] for finding in item.get("findings", [])}),
            item["url"],
        )
        for item in items
    ]
    return table(("identifier", "state", "kind", "shape", "freshness", "findings", "card"), cells)


def _faults(item: dict[str, Any]) -> list[dict[str, Any]]:
    return [*item.get("findings", []), *item.get("problems", [])]


def _faults_table(faults: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> str:
    cells = [
        (fault["severity"], fault["code"], fault["message"], f"{item['url'] or ''} {fault['pointer']}")
        for item, fault in faults
    ]
    return table(("severity", "code", "message", "where"), cells)


def _not_listed(items: Sequence[dict[str, Any]]) -> str:
    cells = [
        (item["identifier"], item["state"], _codes(item), f"{item['document']}#{item['pointer']}") for item in items
    ]
    return table(("identifier", "state", "problems", "where"), cells)


def _codes(item: dict[str, Any]) -> str:
    own = [problem["code"] for problem in item["problems"] if problem["severity"] != "warning"]
    return ", ".join(own or [f"source.{item['state']}"])


def _leads(items: Sequence[dict[str, Any]]) -> str:
    cells = [(item["url"], item["mechanism"], item["decision"], item["source"]) for item in items]
    return table(("lead", "mechanism", "decision", "found at"), cells)


_LISTS: Sequence[tuple[str, str, Callable[[Sequence[dict[str, Any]]], str]]] = (
    ("artifacts", "Artifacts", _artifacts),
    ("drift", "Open drift", drift_table),
    ("notListed", "Not listed", _not_listed),
    ("leads", "Leads", _leads),
)
