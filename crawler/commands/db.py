import click

from crawler.commands.session import run_async, settings_of
from index.store.database import Database


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
