from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import click

from config.errors import OperatorError
from config.settings import Settings
from config.units import parse_age
from crawler.clock import SystemClock
from crawler.commands.render import lag_text, print_json, table, value_text
from crawler.commands.session import opened_database, run_async, settings_of
from index.diff import ChangeClass
from index.drift_codes import CODES
from index.store.database import Database
from index.store.drift_reads import DriftFilter, StoredRow, count_drifts, drifts_of, is_any_open, list_drifts
from index.store.inspect import knows_publisher, listing_row, origin_row
from index.trust import Relation, relation
from index.urls import host_of
from index.views import drift_json

_FOUND = 1
_PREFIX = "drift."
_LONGEST_VALUE = 40


@click.command()
@click.option(
    "--state",
    type=click.Choice(("open", "closed", "all")),
    default="open",
    show_default=True,
    help="Drift that goes on, that ended, or both.",
)
@click.option("--class", "drift_class", type=click.Choice([str(name) for name in ChangeClass]), help="How grave it is.")
@click.option("--publisher", metavar="DOMAIN", help="Only of this publisher.")
@click.option("--code", help="Only of this code, as in version_mismatch.")
@click.option("--origin", metavar="ORIGIN", help="Only where one of the two sides is on this origin.")
@click.option("--since", metavar="TIME", help="Only opened since then: a time, a date, or as long ago as 24h.")
@click.option("--identifier", metavar="ID", help="Only of this entry.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=100, show_default=True, help="Most drifts.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def drift(
    context: click.Context,
    state: str,
    drift_class: str | None,
    publisher: str | None,
    code: str | None,
    origin: str | None,
    since: str | None,
    identifier: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """Show where catalogs and live cards disagree, opened last first; exits 1 when any of it is open.

    What is only worth knowing (severity info) counts for that if --code asks for it.
    """
    settings = settings_of(context)
    now = SystemClock().now()
    wanted = DriftFilter(
        state=state,
        drift_class=drift_class,
        publisher=publisher.lower().removesuffix(".") if publisher else None,
        code=None if code is None else read_code(code),
        identifier=identifier,
        origin=origin.rstrip("/").lower() if origin else None,
        since=None if since is None else read_time(since, now),
    )
    rows, is_open, number = run_async(_drift(settings, wanted, limit))
    items = [drift_json(row, now) for row in rows]
    if as_json:
        print_json({"items": items})
    else:
        more = number - len(items)
        click.echo(drift_table(items) + (f"\nand {more} more" if more > 0 else "") if items else "no drift")
    if is_open:
        context.exit(_FOUND)


def read_code(text: str) -> str:
    """Read a code, with or without its prefix."""
    code = text if text.startswith(_PREFIX) else _PREFIX + text
    if code not in CODES:
        known = ", ".join(sorted(name.removeprefix(_PREFIX) for name in CODES))
        raise OperatorError(f"--code {text}: expected one of {known}")
    return code


def read_time(text: str, now: datetime) -> datetime:
    """Read a point in time: RFC 3339, a date, or a duration before now; without an offset it is UTC."""
    try:
        return now - parse_age(text)
    except ValueError:
        pass
    try:
        instant = datetime.fromisoformat(text)
        return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)
    except (ValueError, OverflowError):
        raise OperatorError(
            f"--since {text}: expected a time such as 2026-11-29T12:00:00Z, a date, or a duration such as 24h"
        ) from None


async def _drift(settings: Settings, wanted: DriftFilter, limit: int) -> tuple[Sequence[StoredRow], bool, int]:
    """Give what matches up to the limit, whether any of it is open, and how many there are, both past the limit."""
    async with opened_database(settings) as database:
        await _check(database, wanted)
        rows = await database.read(list_drifts, wanted, limit)
        number = len(rows) if len(rows) < limit else await database.read(count_drifts, wanted)
        return rows, wanted.state != "closed" and await database.read(is_any_open, wanted), number


async def _check(database: Database, wanted: DriftFilter) -> None:
    """Refuse names that nothing has: a gate with a slip in its name would let everything through."""
    if wanted.origin is not None and await database.read(origin_row, wanted.origin) is None:
        raise OperatorError(f"--origin {wanted.origin}: not known (see `ardvark origins list`)")
    if wanted.publisher is not None and not await database.read(knows_publisher, wanted.publisher):
        raise OperatorError(f"--publisher {wanted.publisher}: not known, as no entry of that domain was ever listed")
    name = wanted.identifier
    if name is None or await database.read(listing_row, name) is not None:
        return
    if not await database.read(drifts_of, name, 1):
        raise OperatorError(f"--identifier {name}: not known")


def drift_table(items: Sequence[dict[str, Any]]) -> str:
    """Lay out drifts for people; where the catalog is somebody else's, a column says whose."""
    headings = ["class", "code", "identifier", "pointer", "catalog", "live", "since", "lag", "state"]
    cells = [
        [
            item["class"],
            item["code"].removeprefix(_PREFIX),
            item["identifier"] or item["catalogUrl"],
            item["pointer"],
            _value(item["catalog"]),
            "-> " + _value(item["live"]),
            item["openedAt"][:19].replace("T", " "),
            lag_text(item["lag"]),
            item["state"] if item["closedBy"] is None else f"closed ({item['closedBy']})",
        ]
        for item in items
    ]
    elsewhere = [_stranger(item) for item in items]
    if any(elsewhere):
        headings.append("catalog of")
        cells = [[*row, host] for row, host in zip(cells, elsewhere, strict=True)]
    return table(headings, cells)


def _stranger(item: dict[str, Any]) -> str:
    """Name the host of a catalog that is not on the publisher's own domain."""
    host = host_of(item["catalogUrl"])
    return host if item["publisher"] and relation(item["publisher"], host) is Relation.OTHER else ""


def _value(value: Any) -> str:
    return "-" if value is None else value_text(value, _LONGEST_VALUE)
