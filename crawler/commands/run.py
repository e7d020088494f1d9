import asyncio
import signal
import sys

import click

from config.settings import Settings
from crawler.commands.session import crawling, opened_database, run_async, settings_of
from crawler.daemon import Daemon
from index.api.app import ApiServer

_listen = click.option("--listen", metavar="ADDRESS:PORT", help="Where the API listens; over `api.listen`.")


@click.command()
@_listen
@click.pass_context
def run(context: click.Context, listen: str | None) -> None:
    """Run the daemon: visit due origins and serve the API, until a signal."""
    run_async(run_daemon(settings_of(context, quiet=False, api={"listen": listen})))


async def run_daemon(settings: Settings) -> None:
    """Run crawler and API in one process."""
    async with crawling(settings, withdraw=True) as parts, ApiServer(settings, parts.database) as server:
        _say_where(settings, server)
        await Daemon(settings, parts.clock, parts.crew).run()


@click.command()
@_listen
@click.pass_context
def serve(context: click.Context, listen: str | None) -> None:
    """Serve the API alone, without crawling, until a signal."""
    run_async(_serve(settings_of(context, quiet=False, api={"listen": listen})))


async def _serve(settings: Settings) -> None:
    async with opened_database(settings) as database, ApiServer(settings, database) as server:
        _say_where(settings, server)
        stopped = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stopped.set)
        await stopped.wait()


def _say_where(settings: Settings, server: ApiServer) -> None:
    if sys.stderr.isatty():
        click.echo(f"Serving http://{server.address}/api/v1/ as {settings.base_url}; stop with Ctrl-C.", err=True)
