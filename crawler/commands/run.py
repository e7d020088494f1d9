import asyncio
import signal
import sys
from collections.abc import Coroutine
from typing import Any

import click
import structlog

from config.settings import Settings
from crawler.allowlist import ANNOUNCE_EVERY, Role
from crawler.commands.heap import settle_heap
from crawler.commands.parts import crawling
from crawler.commands.session import run_async, settings_of
from crawler.daemon import Daemon, Duty
from crawler.opening import NeverAnswered, StoppedWhileWaiting, awaited_database
from crawler.upkeep import EVERY as UPKEEP_EVERY
from crawler.upkeep import Upkeep
from index.api.app import ApiServer
from index.store.outage import StoreUnavailable

_log = structlog.get_logger("ardvark.api")
_listen = click.option("--listen", metavar="ADDRESS:PORT", help="Where the API listens; over `api.listen`.")


@click.command()
@click.option(
    "--role",
    type=click.Choice([role.value for role in Role if role is not Role.ONCE]),
    default=Role.ALL.value,
    show_default=True,
    help="Crawl only, serve the API only, do the upkeep only, or all of it.",
)
@_listen
@click.pass_context
def run(context: click.Context, role: str, listen: str | None) -> None:
    """Run the daemon: visit due origins, serve the API and look after the database, until a signal.

    Several processes on one PostgreSQL database may share these out: any number of crawlers and APIs, one scheduler.
    """
    settings = settings_of(context, quiet=False, api={"listen": listen})
    _run(_serve(settings) if role == Role.API else run_daemon(settings, Role(role)))


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Run to the end; a database that is lost on the way is nothing that other settings would mend."""
    try:
        run_async(work)
    except StoppedWhileWaiting:
        pass
    except StoreUnavailable as error:
        raise NeverAnswered(str(error)) from error


async def run_daemon(settings: Settings, role: Role = Role.ALL) -> None:
    """Run a crawler, a scheduler, or both with the API in one process."""
    opening = awaited_database(settings, serves_api=role is Role.ALL)
    async with crawling(settings, role, opening) as parts:
        duties = [Duty("allowlist", parts.allowlist.ring, ANNOUNCE_EVERY)]
        if role is not Role.CRAWLER:
            upkeep = Upkeep(settings, parts.clock, parts.database)
            duties.append(Duty("upkeep", upkeep.ring, UPKEEP_EVERY))
        daemon = Daemon(settings, parts.clock, parts.crew, claims=role is not Role.SCHEDULER, further=duties)
        if role is not Role.ALL:
            settle_heap()
            await daemon.run()
            return
        async with ApiServer(settings, parts.database) as server:
            _say_where(server)
            settle_heap()
            await daemon.run()


@click.command()
@_listen
@click.pass_context
def serve(context: click.Context, listen: str | None) -> None:
    """Serve the API alone, without crawling, until a signal."""
    _run(_serve(settings_of(context, quiet=False, api={"listen": listen})))


async def _serve(settings: Settings) -> None:
    async with awaited_database(settings, serves_api=True) as database, ApiServer(settings, database) as server:
        _say_where(server)
        settle_heap()
        stopped = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stopped.set)
        await stopped.wait()


def _say_where(server: ApiServer) -> None:
    _log.info("api.listening", address=server.address, url=server.base_url)
    if sys.stderr.isatty():
        click.echo(f"Serving http://{server.address}/api/v1/ as {server.base_url}; stop with Ctrl-C.", err=True)
