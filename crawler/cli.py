"""The command line: one group, one module a command."""

import asyncio
import sys
import tomllib
from pathlib import Path
from typing import Any

import click

from crawler.commands.lazy import LazyGroup

_NO = 2
_COMMANDS = {
    "run": ("run", "run", "Run the daemon: visit due origins and serve the API."),
    "crawl": ("crawl", "crawl", "Visit every origin once and print what came of it."),
    "serve": ("run", "serve", "Serve the API alone."),
    "discover": ("discover", "discover", "Report what a publisher announces, without a database."),
    "check": ("check", "check", "Check a manifest and say where what is wrong."),
    "search": ("search", "search", "Search the local index."),
    "show": ("show", "show", "Show a listing and where it comes from."),
    "trace": ("trace", "trace", "Show which hit of a search a client would call, and why."),
    "status": ("status", "status", "Show how crawler and index are doing."),
    "origins": ("origins", "origins", "Look after the allowlist."),
    "visit": ("visit", "visit", "Visit an origin or an entry now and show the difference."),
    "probe": ("probe", "probe", "Ask the endpoint of a server card for its tools, where that is switched on."),
    "history": ("history", "history", "Show what an entry and its card said before."),
    "drift": ("drift", "drift", "Show where catalogs and live cards disagree."),
    "changes": ("changes", "changes", "Print the change feed."),
    "endorse": ("endorse", "endorse", "Tell whether a brand publishes exactly this entry."),
    "db": ("db", "db", "Look after the database."),
    "demo": ("demo", "demo", "Run a sample federation on this machine."),
}


@click.group(
    cls=LazyGroup,
    lazy=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option("--config", "-c", "file", type=click.Path(path_type=Path), help="Settings file; default ./ardvark.toml.")
@click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help="Override one setting.")
@click.version_option(package_name="ardvark", prog_name="ardvark")
@click.pass_context
def cli(context: click.Context, file: Path | None, assignments: tuple[str, ...]) -> None:
    """Crawl, keep, index and search what agent publishers announce on their own domains."""
    context.obj = {"file": file, "overrides": _overrides(assignments)}


def _overrides(assignments: tuple[str, ...]) -> dict[str, Any]:
    """Read `section.key=value` pairs; a value is TOML where it can be, else text."""
    from config.errors import OperatorError

    overrides: dict[str, Any] = {}
    for assignment in assignments:
        key, separator, text = assignment.partition("=")
        if not separator or not key:
            raise OperatorError(f"--set {assignment}: expected KEY=VALUE, as in crawl.visits=20")
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            value = text
        section = overrides
        *parents, last = key.split(".")
        for parent in parents:
            section = section.setdefault(parent, {})
            if not isinstance(section, dict):
                raise OperatorError(f"--set {assignment}: {parent} is set to a plain value as well")
        section[last] = value
    return overrides


def main() -> None:
    """Run a command; an operator's mistake is one message and exit status 2."""
    # Nothing of `config` and `index` may be imported before it is known that they are ours.
    _check_neighbours()
    from config.errors import OperatorError

    try:
        # Outside its standalone mode click gives the status of `context.exit()` back instead of raising it.
        status = cli(standalone_mode=False)
    except OperatorError as error:
        click.echo(f"ardvark: {error}", err=True)
        sys.exit(error.status)
    except click.ClickException as error:
        error.show()
        sys.exit(_NO)
    except (click.exceptions.Abort, KeyboardInterrupt, asyncio.CancelledError):
        click.echo("ardvark: stopped", err=True)
        sys.exit(130)
    except SystemExit:
        # Click's own way out when the reader of our output has left, as `head` does: that is no fault.
        sys.exit(0)
    sys.exit(status or 0)


def _check_neighbours() -> None:
    """Say plainly when another package of the same name is in the way: ours are an application's, not a library's."""
    import config
    import index

    here = Path(__file__).resolve().parent.parent
    for package in (config, index):
        found = Path(package.__file__ or "").resolve().parent.parent
        if found != here:
            click.echo(
                f"ardvark: another package named {package.__name__} is in the way ({found}); "
                "install Ardvark into an environment of its own",
                err=True,
            )
            sys.exit(_NO)
