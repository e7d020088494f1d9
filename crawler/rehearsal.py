"""A visit that nothing is kept of: the same pipeline and the same writes, undone before anybody can see them.

It makes no claim, so a daemon may visit the origin at the same time; an origin that asked to be left alone gets no
request.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from config.settings import Settings
from crawler.assembly import build_scope, make_policy, origin_options, origin_rules
from crawler.clock import Clock
from crawler.fetch.client import FetchClient
from crawler.policy.scope import Scope
from crawler.stored import RehearsalShelf
from crawler.visit import Visitor, VisitReport
from crawler.worker import visit_claimed
from index.documents import DocumentKind, DocumentVisit
from index.store.database import Database
from index.store.difference import Difference
from index.store.frontier import Claim, Settlement, managed_origins, resting_origins
from index.store.rehearsal import Rehearsal, claims_of, differences_of

_CATALOGS = frozenset({DocumentKind.MANIFEST, DocumentKind.PAGE})


@dataclass(slots=True)
class Rehearsed:
    """One rehearsed visit: its report and every look at a document."""

    report: VisitReport
    shelf: RehearsalShelf

    @property
    def visits(self) -> list[DocumentVisit]:
        return self.shelf.visits


@dataclass(slots=True)
class Stage:
    """What rehearsals need. `resting` names the origins that were left alone, `busy` those that others hold."""

    settings: Settings
    clock: Clock
    client: FetchClient
    database: Database
    scope: Scope
    resting: list[str] = field(default_factory=list)
    busy: list[str] = field(default_factory=list)
    _done: dict[str, Rehearsed] = field(default_factory=dict)

    @property
    def configured(self) -> Mapping[str, Mapping[str, Any]]:
        """Give the origins that the settings list, whether the database knows them already or not."""
        return {item.origin: origin_options(item) for item in self.settings.origins if not item.is_pattern}

    async def visit(
        self,
        origin: str,
        *,
        force: bool = False,
        only: Sequence[str] | None = None,
        cards_alone: bool = False,
        deadline: float | None = None,
    ) -> Rehearsed | None:
        """Rehearse a visit to one origin; None when it must not or cannot be visited now.

        With `cards_alone` no catalog is looked at, whatever the cards say.
        """
        now = self.clock.now()
        if await self.database.read(resting_origins, [origin], now):
            self.resting.append(origin)
            return None
        claims = await self.database.rehearse(claims_of, self.configured, [origin], now)
        if not claims:
            self.busy.append(origin)
            return None
        claim = _without_catalogs(claims[0]) if cards_alone else claims[0]
        shelf = RehearsalShelf(self.database, self.clock)
        visitor = Visitor(self.client, self.clock, make_policy(self.settings))
        report = await visit_claimed(visitor, claim, self.scope, shelf, now, force, only, deadline)
        self._done[origin] = Rehearsed(report, shelf)
        return self._done[origin]

    async def difference(self) -> Difference:
        """Tell what the rehearsed visits would change."""
        now = self.clock.now()
        rehearsals = [
            Rehearsal(
                item.shelf.units,
                Settlement(
                    origin,
                    0,
                    now,
                    "failed" if item.report.failed else "done",
                    item.report.robots,
                    item.report.failed,
                    now,
                    madp=item.report.madp,
                ),
            )
            for origin, item in self._done.items()
        ]
        return await self.database.rehearse(differences_of, self.configured, rehearsals, now)


def _without_catalogs(claim: Claim) -> Claim:
    kept = {url: state for url, state in claim.states.items() if state.kind not in _CATALOGS}
    return replace(claim, states=kept)


async def set_stage(settings: Settings, clock: Clock, client: FetchClient, database: Database) -> Stage:
    """Prepare for rehearsals, with the allowlist as a crawl would have it."""
    added = await database.read(managed_origins, "operator")
    scope = build_scope(settings, (origin_rules(name, options) for name, options in added.items()))
    return Stage(settings, clock, client, database, scope)
