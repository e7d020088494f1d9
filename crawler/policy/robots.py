"""robots.txt (RFC 9309): what a file says, and what its absence or failure means. Pure.

Protego does the matching. It sees only user-agent, allow and disallow lines, cleaned up, because it would let an
unknown line split a group and match a product token by its beginning.
"""

import math
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import quote

from protego import Protego

from index.documents import Outcome
from index.records import Problem, Severity
from index.urls import BadUrl, resolve

PRODUCT_TOKEN = "ardvark"
MAX_AGENTMAPS = 20
_MAX_PROBLEMS = 50
COPY_LIFETIME = timedelta(days=30)
_BOM = "\ufeff"
_LINE = re.compile(r"\r\n|\r|\n")
_TOKEN = re.compile(r"[A-Za-z_-]+")
_OTHER_AGENT = "x-somebody-else"
_PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))


@dataclass(frozen=True, slots=True)
class RobotsRules:
    """What one robots.txt says to us."""

    matcher: Protego | None
    crawl_delay_s: float | None = None
    agentmaps: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()

    def allows(self, url: str) -> bool:
        """Tell whether a canonical URL of this origin may be fetched; `/robots.txt` always may."""
        return self.matcher is None or self.matcher.can_fetch(url, PRODUCT_TOKEN)


ALLOW_ALL = RobotsRules(None)
DISALLOW_ALL = RobotsRules(Protego.parse("User-agent: *\nDisallow: /\n"))


def parse_robots(body: bytes, url: str) -> RobotsRules:
    """Read a robots.txt; every line that can be read counts, whatever stands around it (RFC 9309 2.2, 2.3.1.5).

    `Agentmap` lines count anywhere in the file, repeated, in any case; relative ones resolve against `url`.
    """
    groups = _Groups()
    agentmaps: dict[str, None] = {}
    problems: list[Problem] = []
    for number, line in enumerate(_LINE.split(body.decode("utf-8", "replace").removeprefix(_BOM)), start=1):
        name, colon, value = line.partition("#")[0].partition(":")
        name, value = name.strip().lower(), value.strip()
        if not colon:
            continue
        if name == "agentmap":
            _take_agentmap(value, number, url, agentmaps, problems)
        else:
            groups.take(name, value, number, problems)
    matcher = Protego.parse("\n".join(groups.lines)) if groups.has_rules else None
    return RobotsRules(matcher, groups.crawl_delay_s, tuple(agentmaps), tuple(problems[:_MAX_PROBLEMS]))


class _Groups:
    """The group lines of a file, reduced to those that could concern us."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.has_rules = False
        self._agents: set[str] = set()
        self._open = False
        self._delays: dict[str, float] = {}

    @property
    def crawl_delay_s(self) -> float | None:
        named = PRODUCT_TOKEN in {line.removeprefix("User-agent: ") for line in self.lines}
        return self._delays.get(PRODUCT_TOKEN if named else "*")

    def take(self, name: str, value: str, number: int, problems: list[Problem]) -> None:
        if name == "user-agent":
            if not self._open:
                self._agents = set()
            self._open = True
            agent = _agent(value)
            self._agents.add(agent)
            self.lines.append(f"User-agent: {agent}")
        elif name in ("allow", "disallow") and self._agents:
            self._open = False
            if value:
                self.has_rules = True
                # Non-ASCII in a rule stands for its UTF-8 octets (RFC 9309 2.2.2).
                self.lines.append(f"{name.capitalize()}: {quote(value, safe=_PRINTABLE)}")
            else:
                # It forbids nothing, and it ends the list of agents: the next one starts another group.
                self.lines.append("Disallow:")
        elif name == "crawl-delay" and self._agents:
            self._take_delay(value, number, problems)

    def _take_delay(self, value: str, number: int, problems: list[Problem]) -> None:
        try:
            delay = float(value)
        except ValueError:
            delay = math.nan
        if not math.isfinite(delay) or delay < 0:
            problems.append(
                _note("robots.crawl_delay", number, "Crawl-delay is not a number of seconds; it is ignored")
            )
            return
        for agent in self._agents:
            self._delays.setdefault(agent, delay)


def _agent(value: str) -> str:
    """Reduce a user-agent line to our token, everybody or somebody else (RFC 9309 2.2.1: whole token, any case)."""
    if value == "*":
        return "*"
    token = _TOKEN.match(value)
    return PRODUCT_TOKEN if token and token[0].lower() == PRODUCT_TOKEN else _OTHER_AGENT


def _take_agentmap(value: str, number: int, url: str, agentmaps: dict[str, None], problems: list[Problem]) -> None:
    try:
        target = resolve(url, value) if value else ""
    except BadUrl as error:
        problems.append(_note("robots.agentmap_url", number, f"Agentmap needs {error}"))
        return
    if not target:
        problems.append(_note("robots.agentmap_url", number, "Agentmap has no value"))
    elif len(agentmaps) >= MAX_AGENTMAPS and target not in agentmaps:
        problems.append(_note("robots.agentmap_count", number, f"only {MAX_AGENTMAPS} Agentmap lines are read"))
    else:
        if not value.lower().startswith(("http://", "https://")):
            problems.append(_note("robots.agentmap_relative", number, "Agentmap should be an absolute URL"))
        agentmaps[target] = None


def _note(code: str, line: int, message: str) -> Problem:
    return Problem(code, Severity.WARNING, f"line {line}", message, "ARD 5.1, RFC 9309 2.2.4")


@dataclass(frozen=True, slots=True)
class RobotsDecision:
    """The rules in force for one origin, and why these."""

    rules: RobotsRules
    reason: str


def decide(
    outcome: Outcome, parsed: RobotsRules | None, *, confirmed_at: datetime | None, now: datetime
) -> RobotsDecision:
    """Choose the rules after an attempt to fetch the file (RFC 9309 2.3.1).

    `parsed` is the file as last read, `confirmed_at` when it was last known to be current. 4xx allows everything; 5xx
    and failures leave the last good copy in force for thirty days and otherwise forbid everything.
    """
    if outcome in (Outcome.FETCHED, Outcome.NOT_MODIFIED) and parsed is not None:
        return RobotsDecision(parsed, "robots")
    if outcome in (Outcome.ABSENT, Outcome.GONE, Outcome.WITHHELD):
        return RobotsDecision(ALLOW_ALL, "robots_unavailable")
    if parsed is not None and confirmed_at is not None and now - confirmed_at <= COPY_LIFETIME:
        return RobotsDecision(parsed, "robots_copy")
    return RobotsDecision(DISALLOW_ALL, "robots_unreachable")
