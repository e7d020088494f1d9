"""What commands share: settings, the event loop, the database."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import click

from config.loading import load_settings
from config.logging import configure_logging
from config.settings import Settings
from index.store.database import Database

_Result = TypeVar("_Result")


def settings_of(context: click.Context, *, quiet: bool = True, **sections: Any) -> Settings:
    """Load the settings of a command; `sections` are its own options, over everything else."""
    root = context.find_root().obj
    overrides = dict(root["overrides"])
    for name, values in sections.items():
        given = {key: value for key, value in values.items() if value is not None}
        if given:
            overrides[name] = {**overrides.get(name, {}), **given}
    settings = load_settings(root["file"], overrides)
    configure_logging(settings.logging, quiet=quiet)
    return settings


def run_async(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Run a command's coroutine, on the faster event loop where it is installed."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(work)


def _loop_factory() -> Any:
    try:
        import uvloop
    except ModuleNotFoundError:
        return None
    return uvloop.new_event_loop


@asynccontextmanager
async def opened_database(settings: Settings) -> AsyncIterator[Database]:
    """Open the database with its schema in place."""
    async with Database(settings.storage.url) as database:
        await database.prepare()
        yield database
