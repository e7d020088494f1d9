import asyncio
import shutil
import socket
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click

from config.errors import OperatorError
from config.loading import load_settings
from config.logging import configure_logging
from config.settings import Settings
from config.units import parse_duration
from crawler.allowlist import Role
from crawler.commands.parts import Parts, crawling
from crawler.commands.session import run_async
from crawler.daemon import Daemon
from crawler.demo.federation import PUBLISHERS, read_changes
from crawler.demo.guide import FIRST_LINE, SETTINGS_NAME, Setting, guide, noticed, settings_text, told
from crawler.demo.server import FederationServer
from index.api.app import ApiServer
from index.store.changes import Change as Event
from index.store.changes import last_cursor
from index.store.changes import read_changes as read_feed
from index.store.frontier import list_origins
from index.store.inspect import documents_of
from index.store.search import entry_count

_LOOK_EVERY_S = 0.1
_PORT = 8081


@click.command()
@click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Keep settings and database here; default: a temporary folder that is removed at the end.",
)
@click.option(
    "--listen", metavar="ADDRESS:PORT", default="127.0.0.1:8080", show_default=True, help="Where the API listens."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help=f"Port of the publishers; default: {_PORT}, or a free one if that is taken.",
)
@click.option("--change-after", metavar="TIME", default="20s", show_default=True, help="Pause before each change.")
@click.pass_context
def demo(context: click.Context, directory: Path | None, listen: str, port: int | None, change_after: str) -> None:
    """Run a sample federation of fictional publishers on this machine: crawled, served and changing, until Ctrl-C."""
    root = context.find_root().obj
    if root["file"] is not None:
        raise OperatorError("the demo writes a settings file of its own and reads no other; leave --config out")
    try:
        pause_s = parse_duration(change_after).total_seconds()
    except ValueError as error:
        raise OperatorError(f"--change-after {change_after}: expected {error}") from None
    with _folder(directory) as folder:
        run_async(_run(folder, _free(listen), _port(port, listen), pause_s, root["overrides"]))


@contextmanager
def _folder(directory: Path | None) -> Iterator[Path]:
    """Give the folder of the demo; one that somebody else's settings are in is left alone."""
    if directory is None:
        with tempfile.TemporaryDirectory(prefix="ardvark-demo-") as name:
            yield Path(name)
        return
    file = directory / SETTINGS_NAME
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if file.exists() and not file.read_text(encoding="utf-8").startswith(FIRST_LINE):
            raise OperatorError(f"{file} was not written by the demo; choose another --directory")
    except OSError as error:
        raise OperatorError(f"{directory}: cannot be used ({error.strerror})") from None
    yield directory.resolve()


def _free(listen: str) -> str:
    """Check that the API can listen there, before anything else starts; port 0 becomes a free one."""
    host, _, port = listen.rpartition(":")
    if not port.isdecimal():
        raise OperatorError(f'--listen {listen}: expected an address and a port, such as "127.0.0.1:8080"')
    try:
        return f"{host}:{_bound(host.strip('[]'), int(port))}"
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise OperatorError(f"cannot listen on {listen}: {reason}; choose another address with --listen") from None


def _port(asked: int | None, listen: str) -> int:
    """Choose the port of the publishers: the one asked for, else the usual one, else a free one."""
    if asked is None and listen.endswith(f":{_PORT}"):
        return 0
    try:
        return _bound("127.0.0.1", _PORT if asked is None else asked)
    except OSError as error:
        if asked is None:
            return 0
        raise OperatorError(f"--port {asked}: {error.strerror}") from None


def _bound(host: str, port: int) -> int:
    """Try a port as the server will: one that only a closed connection still occupies is free."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
        return int(probe.getsockname()[1])


async def _run(folder: Path, listen: str, port: int, pause_s: float, overrides: Mapping[str, Any]) -> None:
    async with FederationServer(port) as federation:
        settings = _settings(folder, listen, federation.port, overrides)
        configure_logging(settings.logging, quiet=True)
        async with crawling(settings, Role.ALL) as parts, ApiServer(settings, parts.database):
            setting = Setting(_command(), folder / SETTINGS_NAME, settings.base_url, federation.port)
            daemon = Daemon(settings, parts.clock, parts.crew)
            story = asyncio.create_task(_tell(parts, federation, setting, pause_s), name="story")
            story.add_done_callback(lambda task: daemon.stop() if _failed(task) else None)
            await daemon.run()
            story.cancel()
            with suppress(asyncio.CancelledError):
                await story
    click.echo("\nStopped.")


def _failed(task: asyncio.Task[None]) -> bool:
    return not task.cancelled() and task.exception() is not None


def _settings(folder: Path, listen: str, port: int, overrides: Mapping[str, Any]) -> Settings:
    """Write the settings file and load it; no variable of the environment may lead the demo to another database."""
    file = folder / SETTINGS_NAME
    text = settings_text(folder, listen, port)
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OperatorError(f"{file}: cannot be written ({error.strerror})") from None
    return load_settings(file, _merged(tomllib.loads(text), overrides))


def _merged(values: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(values)
    for name, value in over.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(name), Mapping)
        merged[name] = _merged(merged[name], value) if both else value
    return merged


def _command() -> str:
    """Give the command as the visitor can repeat it from the same folder."""
    called = Path(sys.argv[0])
    on_path = shutil.which(called.name)
    return called.name if on_path and called.exists() and called.samefile(on_path) else str(called)


async def _tell(parts: Parts, federation: FederationServer, setting: Setting, pause_s: float) -> None:
    """Tell the visitor what happens: the first crawl, then each change and when it was seen."""
    began = parts.clock.monotonic()
    while not await _all_crawled(parts):
        await parts.clock.sleep(_LOOK_EVERY_S)
    listed = await parts.database.read(entry_count)
    click.echo(guide(setting, seconds=parts.clock.monotonic() - began, listed=listed, change_after=pause_s))
    for change in read_changes(federation.port):
        await parts.clock.sleep(pause_s)
        before = await parts.database.read(last_cursor)
        federation.change(change)
        changed = parts.clock.monotonic()
        click.echo(told(change.publisher, change.says))
        while not await _events_of(parts, change.publisher, before) or await _is_visited(parts, change.publisher):
            await parts.clock.sleep(_LOOK_EVERY_S)
        events = await _events_of(parts, change.publisher, before)
        click.echo(noticed(events, parts.clock.monotonic() - changed, setting))


async def _events_of(parts: Parts, publisher: str, after: int) -> list[Event]:
    events = await parts.database.read(read_feed, after, 1000)
    return [event for event in events if event.identifier.startswith(f"urn:air:{publisher}.example:")]


async def _is_visited(parts: Parts, publisher: str) -> bool:
    """Tell whether a visit is under way; its end compares what it read."""
    rows = await parts.database.read(list_origins)
    return any(row.claimed_by for row in rows if f"://{publisher}.example:" in row.origin)


async def _all_crawled(parts: Parts) -> bool:
    """Tell whether every publisher has been visited, and every document looked at that a visit turned up."""
    origins = [row for row in await parts.database.read(list_origins) if row.active]
    if len(origins) < len(PUBLISHERS) or not all(row.visits for row in origins):
        return False
    documents = [row for origin in origins for row in await parts.database.read(documents_of, origin.origin)]
    return all(row.attempted_at is not None for row in documents)
