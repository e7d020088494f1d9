"""The pages say what is there: links, commands, settings, log events and tests that they name exist."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from config.settings import Settings
from crawler.cli import cli
from index import metrics

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
COMMAND = re.compile(r"(?:^|[\s`/])ardvark((?: -{1,2}[a-z]+[ =](?:'[^']*'|[^\s`]+))*(?: [a-z]+)+)", re.MULTILINE)
FIRST_CELL = re.compile(r"^\| (`[a-z_.]+`(?:, `[a-z_.]+`)*) \|", re.MULTILINE)
SETTING = re.compile(r"`((?:api|crawl|limits|logging|network|politeness|search|storage|trust)\.[a-z_]+)\b")


def anchors(page: Path) -> set[str]:
    headings = HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def commands_in(text: str) -> Iterator[list[str]]:
    for found in COMMAND.findall(text):
        yield re.sub(r" -{1,2}[a-z]+[ =](?:'[^']*'|[^\s`]+)", "", found).split()


def test_every_command_that_a_page_names_exists() -> None:
    context = click.Context(cli)
    named = {tuple(words) for page in PAGES for words in commands_in(page.read_text(encoding="utf-8"))}
    unknown = []
    for words in named:
        command = cli.get_command(context, words[0])
        if isinstance(command, click.Group) and words[1:]:
            command = command.get_command(context, words[1])
        if command is None:
            unknown.append(" ".join(words))
    assert {"crawl", "discover", "origins"} <= {words[0] for words in named}
    assert unknown == []


def test_every_setting_that_a_page_names_exists() -> None:
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    # Problem codes and log events look like settings; they are what tables begin with.
    others = {name for text in texts for cell in FIRST_CELL.findall(text) for name in re.findall(r"[a-z_.]+", cell)}
    named = {name for text in texts for name in SETTING.findall(text)} - others
    unknown = []
    for name in named:
        section, _, key = name.partition(".")
        annotation = Settings.model_fields[section].annotation
        if key not in getattr(annotation, "model_fields", {}):
            unknown.append(name)
    assert "crawl.removal_sightings" in named
    assert unknown == []


def test_every_log_event_is_explained_and_no_other() -> None:
    given = {
        call.args[0].value
        for path in [*ROOT.glob("crawler/**/*.py"), *ROOT.glob("index/**/*.py")]
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and getattr(call.func.value, "id", "") == "_log"
        and isinstance(call.args[0], ast.Constant)
    }
    assert {name for name in explained_in_operations() if not name.startswith("ardvark_")} == given


def test_every_metric_is_explained_and_no_other() -> None:
    assert {name for name in explained_in_operations() if name.startswith("ardvark_")} == metrics.names()


def explained_in_operations() -> set[str]:
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    return {name for cell in FIRST_CELL.findall(text) for name in re.findall(r"[a-z_.]+", cell)}


def test_every_test_that_the_security_page_names_exists() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+)`", text))
    sources = {path.stem: path.read_text(encoding="utf-8") for path in ROOT.glob("tests/**/test_*.py")}
    functions = {name for source in sources.values() for name in re.findall(r"def (test_\w+)", source)}
    assert len(named) > 20
    assert named - functions - set(sources) == set()


def test_every_file_that_the_security_page_names_exists() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    missing = [path for path in re.findall(r"`((?:crawler|index|config)/[\w/.]+)`", text) if not (ROOT / path).exists()]
    assert missing == []
