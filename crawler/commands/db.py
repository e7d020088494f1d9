from pathlib import Path

import click

from config.errors import OperatorError
from config.settings import Settings
from crawler.clock import SystemClock
from crawler.commands.render import print_json, table
from crawler.commands.session import opened_database, run_async, settings_of
from crawler.upkeep import Pruned, Upkeep
from index.store.backup import back_up
from index.store.backup import restore as put_back
from index.store.compaction import compact, keeps_its_size
from index.store.database import Database

_file = click.argument("file", type=click.Path(path_type=Path, dir_okay=False))


@click.group()
def db() -> None:
    """Look after the database."""


@db.command()
@click.pass_context
def upgrade(context: click.Context) -> None:
    """Bring the database schema to what this version expects."""
    settings = settings_of(context)

    async def work() -> tuple[str | None, str | None]:
        async with Database(settings.storage.url) as database:
            return await database.upgrade()

    before, after = run_async(work())
    click.echo(f"schema at {after}" if before == after else f"schema brought from {before or 'nothing'} to {after}")
    _say_if_it_keeps_its_size(settings)


@db.command()
@click.pass_context
def vacuum(context: click.Context) -> None:
    """Write the database file anew without the room that is free in it, so that it can shrink from then on (SQLite)."""
    settings = settings_of(context)
    before, after = compact(settings.storage.url)
    click.echo(f"{before:,} bytes before, {after:,} now; from now on pruning gives room back to the disk")


def _say_if_it_keeps_its_size(settings: Settings) -> None:
    if settings.storage.url.startswith("sqlite") and keeps_its_size(settings.storage.url):
        click.echo(
            "This file was made before files could shrink: room that is freed in it stays with it. "
            "`ardvark db vacuum` mends that once and for all.",
            err=True,
        )


@db.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def prune(context: click.Context, as_json: bool) -> None:
    """Delete now what has outlived its time (`[retention]` in the settings); a running daemon does so by itself."""
    settings = settings_of(context)

    async def work() -> Pruned | None:
        async with opened_database(settings) as database:
            return await Upkeep(settings, SystemClock(), database).prune()

    pruned = run_async(work())
    if pruned is None:
        raise OperatorError("another process is just pruning this database")
    if as_json:
        print_json(_pruned_json(pruned))
        _say_if_it_keeps_its_size(settings)
        return
    click.echo(table(("what", "deleted"), list(pruned.counts().items())))
    click.echo(f"\nThe database has {pruned.size:,} bytes{', more than its limit' if pruned.over_limit else ''}.")
    _say_if_it_keeps_its_size(settings)


def _pruned_json(pruned: Pruned) -> dict[str, object]:
    oldest = pruned.oldest_fetch_at
    return {
        "deleted": pruned.counts(),
        "size": pruned.size,
        "overLimit": pruned.over_limit,
        "oldestFetchAt": None if oldest is None else oldest.isoformat(),
    }


@db.command()
@_file
@click.option("--overwrite", is_flag=True, help="Replace FILE if it exists.")
@click.pass_context
def backup(context: click.Context, file: Path, overwrite: bool) -> None:
    """Copy the database to FILE as it is at one moment, while a daemon may write to it (SQLite)."""
    settings = settings_of(context)
    size = back_up(settings.storage.url, file, overwrite=overwrite)
    click.echo(f"{file}: {size:,} bytes, checked")


@db.command()
@_file
@click.pass_context
def restore(context: click.Context, file: Path) -> None:
    """Put the backup FILE in the place of the database, which is kept beside it; no daemon may use it (SQLite)."""
    settings = settings_of(context)
    restored = put_back(settings.storage.url, file, SystemClock().now())
    click.echo(f"restored, schema at {restored.revision}")
    if restored.before is not None:
        click.echo(f"what was there before: {restored.before}")
