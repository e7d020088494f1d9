"""What the demo tells its visitor: the settings file it writes, what to try, and what happened. Pure texts."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from crawler.demo.federation import PUBLISHERS
from index.store.changes import Change as Event

FIRST_LINE = "# Written by `ardvark demo`: reaches the sample federation on this machine and nothing else."
SETTINGS_NAME = "demo.toml"
DATABASE_NAME = "demo.db"

_SETTINGS = """\
{first_line}

[storage]
url = {database}

[api]
listen = {listen}
display_name = "Ardvark demo registry"

[network]  # closed by default; a test web on loopback needs all three
allow_http = true
allow_private = ["127.0.0.0/8"]
hosts = {{ "*.example" = "127.0.0.1" }}

[politeness]
min_delay = "20ms"
contact_url = {contact}

[crawl]  # changes are to be seen in seconds, not hours
min_interval = "2s"
max_interval = "3s"
page_interval = "3s"
default_freshness = "2s"
shutdown_grace = "3s"
"""


def settings_text(folder: Path, listen: str, port: int) -> str:
    """Write the settings of the demo, all publishers on its allowlist."""
    text = _SETTINGS.format(
        first_line=FIRST_LINE,
        database=json.dumps(f"sqlite+aiosqlite:///{folder / DATABASE_NAME}"),
        listen=json.dumps(listen),
        contact=json.dumps(f"http://{listen}/"),
    )
    return text + "".join(f'\n[[origins]]\norigin = "{publisher.origin(port)}"\n' for publisher in PUBLISHERS)


@dataclass(frozen=True, slots=True)
class Setting:
    """Where everything is in this run. `command` is how the visitor called us."""

    command: str
    settings_file: Path
    api: str
    port: int

    @property
    def ardvark(self) -> str:
        """The command with its settings file, to be typed in another terminal."""
        return f"{self.command} -c {quote(str(self.settings_file))}"


def guide(setting: Setting, *, seconds: float, listed: int, change_after: float) -> str:
    """Write what to try, once everything has been crawled for the first time."""
    port = setting.port
    lines = [
        f"{len(PUBLISHERS)} fictional publishers were crawled in {seconds:.1f} s; {listed} entries are listed.",
        f"The registry answers at {setting.api}",
        *_section("Ask over HTTP", _over_http(setting)),
        *_section("Ask from another terminal", _by_command(setting)),
        *_section(
            "Publishers, and how each one announces its entries",
            [(publisher.origin(port), publisher.announces) for publisher in PUBLISHERS],
        ),
        *_section(
            f"What is wrong with some of them ({setting.ardvark} origins show ORIGIN)",
            [(publisher.origin(port), publisher.fault) for publisher in PUBLISHERS if publisher.fault],
        ),
        "",
        f"In {change_after:g} s a publisher changes its manifest; later a card moves on without its catalog, and",
        "there is drift until the catalog follows. Stop with Ctrl-C.",
    ]
    return "\n".join(lines)


def _section(title: str, rows: Sequence[tuple[str, str]]) -> list[str]:
    width = max(len(name) for name, _ in rows)
    return ["", title, *(f"  {name.ljust(width)}  {text}" for name, text in rows)]


def _over_http(setting: Setting) -> list[tuple[str, str]]:
    api = setting.api
    facets = {"facets": [{"field": "type"}, {"field": "publisher"}]}
    return [
        ("find", _post(f"{api}search", {"query": {"text": "book a mountain hut"}})),
        ("count", _post(f"{api}explore", {"query": {"text": "booking"}, "resultType": facets})),
        ("list", f"curl -s '{api}agents?pageSize=5&orderBy=displayName'"),
        ("get", f"curl -s {api}agents/urn%3Aair%3Atides.example%3Amcp%3Atables"),
        ("source", f"curl -s -H 'Host: tides.example' http://127.0.0.1:{setting.port}/.well-known/ard.json"),
    ]


def _post(url: str, body: Mapping[str, Any]) -> str:
    return f"curl -s {url} -H 'Content-Type: application/json' -d '{json.dumps(body)}'"


def _by_command(setting: Setting) -> list[tuple[str, str]]:
    ardvark, port = setting.ardvark, setting.port
    return [
        ("find", f"{ardvark} search tide tables"),
        ("where from", f"{ardvark} show urn:air:tides.example:mcp:tables"),
        ("changes", f"{ardvark} changes"),
        ("drift", f"{ardvark} drift --state all"),
        ("origins", f"{ardvark} origins list"),
        ("survey", f"{ardvark} discover http://loaf.example:{port}"),
        ("lint", f"{ardvark} check http://parts.example:{port}"),
    ]


def told(publisher: str, says: str) -> str:
    """Say what a publisher just did."""
    title = next(item.title for item in PUBLISHERS if item.name == publisher)
    return f"\n{title} ({publisher}.example) {says}."


def noticed(events: Sequence[Event], seconds: float, setting: Setting) -> str:
    """Say what the crawl made of it."""
    lines = [f"Seen after {seconds:.1f} s:"]
    for event in events:
        what = f" ({', '.join(event.members)})" if event.members else ""
        lines.append(f"  {event.cursor:>4}  {event.kind:<14} {event.identifier}{what}")
    after = events[0].cursor - 1
    lines.append(f"  {setting.ardvark} changes --after {after}")
    return "\n".join(lines)
