import sys
from typing import Any

import click

from config.errors import OperatorError
from config.settings import Settings
from crawler.allowlist import Role
from crawler.commands.heap import settle_heap
from crawler.commands.parts import Parts, crawling
from crawler.commands.render import print_json, table
from crawler.commands.session import run_async, settings_of
from crawler.crawl import CrawlSummary, crawl_once
from index.store.frontier import managed_origins


@click.command()
@click.argument("origins", nargs=-1, metavar="[ORIGIN]...")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@click.pass_context
def crawl(context: click.Context, origins: tuple[str, ...], as_json: bool) -> None:
    """Visit every origin of the allowlist once, or only the ORIGINs named, and print what came of it."""
    settings = settings_of(context)
    summary = run_async(_crawl(settings, origins))
    if as_json:
        print_json(summary.as_json())
    else:
        click.echo(_summary_table(summary))


async def _crawl(settings: Settings, named: tuple[str, ...]) -> CrawlSummary:
    async with crawling(settings, Role.ONCE) as parts:
        settle_heap()
        wanted = await _wanted(parts, named)
        with _progress_bar(len(wanted)) as bar:

            def progress(done: int, of: int) -> None:
                bar.length = of
                bar.update(done - bar.pos)

            return await crawl_once(
                parts.crew, wanted, parts.writer.tally, visits=settings.crawl.visits, progress=progress
            )


async def _wanted(parts: Parts, named: tuple[str, ...]) -> list[str]:
    known = {
        **await parts.database.read(managed_origins, "config"),
        **await parts.database.read(managed_origins, "operator"),
    }
    names = [name.rstrip("/").lower() for name in named]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise OperatorError(f"not on the allowlist: {', '.join(unknown)} (see `ardvark origins list`)")
    if not known:
        raise OperatorError("the allowlist is empty: name origins in the settings, or with `ardvark origins add`")
    return names or list(known)


def _progress_bar(length: int) -> Any:
    """Show progress on a terminal; in a pipe nothing is drawn."""
    return click.progressbar(length=length, label="Visiting", file=sys.stderr, hidden=not sys.stderr.isatty())


def _summary_table(summary: CrawlSummary) -> str:
    value = summary.as_json()
    rows: list[tuple[str, str, int]] = []
    for group in ("origins", "documents", "entries", "artifacts"):
        rows += [(group, name, count) for name, count in value[group].items()]
    rows += [("changes", "of listings", value["changes"]), ("snapshots", "written", value["snapshots"])]
    return table(("what", "", "count"), [row for row in rows if row[2] or row[0] == "entries"])
