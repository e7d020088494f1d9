from typing import Any

import click
from pydantic import ValidationError

from config.errors import OperatorError
from config.settings import OriginSettings, Settings
from crawler.assembly import origin_options
from crawler.clock import SystemClock
from crawler.commands.origins_show import documents_table
from crawler.commands.parts import crawling
from crawler.commands.render import print_json
from crawler.commands.session import run_async, settings_of
from crawler.crawl import crawl_once
from index.store.frontier import managed_origins, put_origins
from index.store.inspect import StoredRow, documents_of
from index.views import document_json


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="ORIGIN...")
@click.option("--page", "pages", multiple=True, metavar="PATH", help="Page read for links; default /.")
@click.option("--artifact-host", "hosts", multiple=True, metavar="HOST", help="Further host that may be fetched from.")
@click.option("--min-interval", metavar="TIME", help="Never revisit sooner.")
@click.option("--max-interval", metavar="TIME", help="Never wait longer.")
@click.pass_context
def add(
    context: click.Context,
    names: tuple[str, ...],
    pages: tuple[str, ...],
    hosts: tuple[str, ...],
    min_interval: str | None,
    max_interval: str | None,
) -> None:
    """Add ORIGINs to the allowlist; they are visited as soon as the daemon gets to them."""
    settings = settings_of(context)
    given: dict[str, Any] = {"min_interval": min_interval, "max_interval": max_interval}
    if pages:
        given["pages"] = pages
    if hosts:
        given["artifact_hosts"] = hosts
    wanted = {}
    for name in names:
        entry = _checked(name, given)
        if entry.is_pattern:
            raise OperatorError(f"{name}: patterns belong into the settings file")
        if entry.origin.startswith("http://") and not settings.network.allow_http:
            raise OperatorError(f"{name}: plain http needs network.allow_http = true")
        wanted[entry.origin] = origin_options(entry)
    run_async(_add(settings, wanted))
    click.echo(f"{len(wanted)} on the allowlist")


def _checked(name: str, given: dict[str, Any]) -> OriginSettings:
    try:
        return OriginSettings.model_validate({"origin": name, **{k: v for k, v in given.items() if v is not None}})
    except ValidationError as error:
        reasons = "; ".join(f"expected {item.get('ctx', {}).get('error') or item['msg']}" for item in error.errors())
        raise OperatorError(f"{name}: {reasons}") from None


async def _add(settings: Settings, wanted: dict[str, dict[str, Any]]) -> None:
    async with crawling(settings) as parts:
        configured = await parts.database.read(managed_origins, "config")
        twice = sorted(set(wanted) & set(configured))
        if twice:
            raise OperatorError(f"already in the settings: {', '.join(twice)}")
        await parts.database.write(put_origins, "operator", wanted, parts.clock.now())


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="ORIGIN...")
@click.pass_context
def remove(context: click.Context, names: tuple[str, ...]) -> None:
    """Take ORIGINs off the allowlist and their entries out of the index."""
    settings = settings_of(context)
    changes = run_async(_remove(settings, [name.rstrip("/").lower() for name in names]))
    click.echo(f"{len(names)} removed, {changes} entries withdrawn")


async def _remove(settings: Settings, names: list[str]) -> int:
    async with crawling(settings) as parts:
        configured = await parts.database.read(managed_origins, "config")
        listed = [name for name in names if name in configured]
        if listed:
            raise OperatorError(f"listed in the settings; take them out there: {', '.join(listed)}")
        added = await parts.database.read(managed_origins, "operator")
        unknown = [name for name in names if name not in added]
        if unknown:
            raise OperatorError(f"not on the allowlist: {', '.join(unknown)}")
        return await parts.crew.remove_origins(names)


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="ORIGIN...")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def visit(context: click.Context, names: tuple[str, ...], as_json: bool) -> None:
    """Visit ORIGINs now and print what each document answered."""
    settings = settings_of(context)
    rows = run_async(_visit(settings, [name.rstrip("/").lower() for name in names]))
    items = [document_json(row, SystemClock().now()) for row in rows]
    if as_json:
        print_json({"items": items})
    else:
        click.echo(documents_table(items))


async def _visit(settings: Settings, names: list[str]) -> list[StoredRow]:
    async with crawling(settings) as parts:
        known = {
            **await parts.database.read(managed_origins, "config"),
            **await parts.database.read(managed_origins, "operator"),
        }
        unknown = [name for name in names if name not in known]
        if unknown:
            raise OperatorError(f"not on the allowlist: {', '.join(unknown)}")
        summary = await crawl_once(parts.crew, names, parts.writer.tally, visits=settings.crawl.visits)
        if summary.postponed:
            click.echo(f"ardvark: {summary.postponed} asked to be left alone for longer and got no request", err=True)
        return [row for name in names for row in await parts.database.read(documents_of, name)]
