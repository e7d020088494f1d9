"""Claimed visits: run, and always settled."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta

import structlog

from config.settings import Settings
from crawler.assembly import build_scope, make_policy, origin_options, origin_rules
from crawler.budget import Budget
from crawler.clock import Clock
from crawler.fetch.client import FetchClient
from crawler.fetch.meter import Meter, metering
from crawler.names import is_dead, worker_name
from crawler.policy.backoff import CRASHED, next_try
from crawler.policy.politeness import Mercy
from crawler.policy.scope import Admitted, OriginRules, Scope
from crawler.selection import select_documents
from crawler.shelf import Shelf
from crawler.stored import StoredShelf
from crawler.visit import Visitor, VisitReport
from index import metrics
from index.records import ArtifactDecision
from index.store.artifacts import decided_artifacts
from index.store.bounds import keep_bounds, raised_bounds
from index.store.database import Database
from index.store.documents import decided_leads, read_again
from index.store.frontier import (
    Claim,
    Settlement,
    Slowdown,
    break_claims,
    claim_due,
    claiming_workers,
    managed_origins,
    put_origins,
    release_claims,
    remove_origins,
    renew_claims,
    resting_origins,
)
from index.store.outage import StoreUnavailable
from index.store.replan import plan_anew
from index.store.writer import SettleVisit, Writer

_log = structlog.get_logger("ardvark.crawl")
_SOONEST = timedelta(seconds=1)
_FAILURE_CEILING = timedelta(hours=24)


class Crew:
    """The workers of one process: they share the client, the database and the allowlist."""

    def __init__(
        self, settings: Settings, clock: Clock, client: FetchClient, database: Database, writer: Writer
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._database = database
        self._writer = writer
        self._limiter = client.limiter
        policy = make_policy(settings)
        self._visitor = Visitor(client, clock, policy)
        looks = settings.crawl.budget
        allowed = policy.rules.manifest_watch.allowed
        self._budget = None if looks is None else Budget(looks, allowed, database, clock)
        self._name = worker_name()
        self._claims: dict[str, Claim] = {}
        self._renewed_at = clock.now()
        self.scope: Scope = build_scope(settings)

    @property
    def name(self) -> str:
        """The name that claims of this process carry."""
        return self._name

    # --- the allowlist ------------------------------------------------------------------------------------------------

    async def sync_origins(self, *, withdraw: bool = True, add: bool = True, replace: bool = True) -> None:
        """Bring the stored allowlist in line with the settings: `add` what it lacks, `replace` options that differ.

        With `withdraw`, what the settings lack leaves the index. Settings without any origin withdraw nothing: that is
        a missing file sooner than a wish to lose everything.
        """
        wanted = {entry.origin: origin_options(entry) for entry in self._settings.origins if not entry.is_pattern}
        stored = await self._database.read(managed_origins, "config")
        changed = {
            origin: options
            for origin, options in wanted.items()
            if stored.get(origin) != options and (replace if origin in stored else add)
        }
        if changed:
            await self._database.write(put_origins, "config", changed, self._clock.now())
        await self.refresh_scope()
        gone = [origin for origin in stored if origin not in wanted]
        # What a pattern admitted goes with the pattern.
        found = await self._database.read(managed_origins, "lead")
        gone += [origin for origin in found if self.scope.rules(origin) is None]
        if gone and withdraw and self._settings.origins:
            await self.remove_origins(gone)
        elif gone and withdraw:
            _log.warning("origins.none_in_settings", kept=len(gone))
        await self._take_up_bounds()
        if self._budget is not None:
            self._visitor.use_price(await self._budget.recall())

    async def adjust_price(self) -> None:
        """Keep to the visit budget; to be called once a minute."""
        if self._budget is not None:
            self._visitor.use_price(await self._budget.adjust())

    def share_budget(self, processes: int) -> None:
        """Keep to the part of the budget that is ours beside others that crawl."""
        if self._budget is not None:
            self._budget.allowance.share(processes, self._clock.monotonic())

    def affordable(self, room: int, under_way: int) -> int:
        """Give how many visits may begin of those that there is room for, within the budget."""
        if self._budget is None:
            return room
        return min(room, self._budget.allowance.visits(under_way, self._clock.monotonic()))

    async def remove_origins(self, names: Sequence[str]) -> int:
        """Take origins off the allowlist and their entries out of the index; gives the number of changes."""
        changes = await self._database.write(remove_origins, names, self._clock.now())
        _log.info("origins.removed", origins=list(names), changes=changes)
        return changes

    async def refresh_scope(self) -> None:
        """Take up origins that the operator added from another process."""
        added = await self._database.read(managed_origins, "operator")
        scope = build_scope(self._settings, (origin_rules(name, options) for name, options in added.items()))
        if scope != self.scope:
            before, self.scope = self.scope, scope
            try:
                await self._reconsider_leads()
            except StoreUnavailable:
                self.scope = before  # so that the next time does it
                raise

    async def _take_up_bounds(self) -> None:
        """Decide anew by the settings, also about what was too much before they allowed more."""
        crawl = self._settings.crawl
        bounds = {"max_documents": crawl.max_documents, "max_artifacts": crawl.max_artifacts}
        raised = await self._database.read(raised_bounds, bounds)
        await self._reconsider_leads(more_is_allowed=bool(raised))
        await self._database.write(keep_bounds, bounds)

    async def _reconsider_leads(self, *, more_is_allowed: bool = False) -> None:
        """Have documents read again that hold leads about which the allowlist now decides otherwise."""
        changed = set()
        decided = await self._database.read(decided_leads) + await self._database.read(decided_artifacts)
        for row in decided:
            admitted = isinstance(self.scope.admit(row.url, source=row.origin), Admitted)
            if admitted and row.decision == "too_many_documents" and not more_is_allowed:
                continue
            if admitted != (row.decision in ("followed", ArtifactDecision.WATCHED)):
                changed.add(row.document_id)
        if changed:
            await self._database.write(read_again, changed, self._clock.now())

    # --- claims -------------------------------------------------------------------------------------------------------

    async def plan_anew(self) -> int:
        """Plan anew what was planned by a clock that was ahead; gives the number of origins."""
        return await self._database.write(plan_anew, self._clock.now())

    async def break_dead_claims(self) -> int:
        """Free what processes of this machine held that no longer live."""
        dead = [name for name in await self._database.read(claiming_workers) if is_dead(name)]
        return await self._database.write(break_claims, dead) if dead else 0

    @property
    def must_wait(self) -> bool:
        """Tell whether nothing new should be begun, because what was found cannot be written."""
        return self._writer.is_stuck

    async def claim(self, limit: int, only: Sequence[str] | None = None) -> list[Claim]:
        """Claim due origins, or the named ones whether due or not; an outage is waited for."""
        lease = self._settings.crawl.lease
        claims: list[Claim] = await self._database.insist(
            lambda connection: claim_due(
                connection, self._name, self._clock.now(), lease, limit, only, held=self._endangered()
            )
        )
        self._renewed_at = self._clock.now()
        self._claims.update((claim.origin, claim) for claim in claims)
        for claim in claims:
            if claim.slowdown is not None:
                left_s = (claim.slowdown.until - self._clock.now()).total_seconds()
                mercy = Mercy(claim.slowdown.factor, self._clock.monotonic() + left_s)
                self._limiter.remember(claim.origin, mercy)
        return claims

    def _endangered(self) -> list[Claim]:
        """Give our own claims if their leases may have ended, as after an outage or a leap of the clock."""
        is_late = abs(self._clock.now() - self._renewed_at) > self._settings.crawl.lease / 2
        return list(self._claims.values()) if is_late else []

    async def resting(self, names: Sequence[str]) -> set[str]:
        """Name the origins among these that asked to be left alone for longer."""
        return await self._database.read(resting_origins, names, self._clock.now())

    async def keep_claims(self) -> None:
        """Prolong the leases of visits under way, for as long as this runs."""
        lease = self._settings.crawl.lease
        while True:
            await self._clock.sleep(lease.total_seconds() / 3)
            await self._database.insist(
                lambda connection: renew_claims(connection, list(self._claims.values()), self._clock.now() + lease)
            )
            self._renewed_at = self._clock.now()

    async def release(self, claims: Sequence[Claim]) -> None:
        """Give claims back that were not begun; those that an outage keeps end with their leases."""
        for claim in claims:
            self._claims.pop(claim.origin, None)
        with suppress(StoreUnavailable):
            await self._database.write(release_claims, list(claims))

    async def visit(
        self, claim: Claim, *, force: bool = False, only: Sequence[str] | None = None
    ) -> VisitReport | None:
        """Visit a claimed origin and settle it, whatever happens; None when the visit was broken off.

        With `only`, these documents are looked at and no others.
        """
        began = self._clock.monotonic()
        shelf = StoredShelf(self._database, self._writer, self._clock, claim.hold)
        report: VisitReport | None = None
        with metering() as meter:
            try:
                report = await self._visit(claim, shelf, force, only)
            except asyncio.CancelledError:
                metrics.VISITS_BY_OUTCOME["broken_off"].inc()
                await asyncio.shield(self.release([claim]))
                raise
            except Exception:
                # A fault of ours must not take the other visits down with it; it is logged with its traceback.
                _log.exception("visit.crashed", origin=claim.origin)
            finally:
                if self._budget is not None:
                    self._budget.allowance.spend(meter.requests, self._clock.monotonic())
        await asyncio.shield(self._settle(claim, report))
        seconds = self._clock.monotonic() - began
        metrics.VISITS_BY_OUTCOME[_outcome_of(report)].inc()
        metrics.VISIT_SECONDS.observe(seconds)
        if report is not None:
            _log_visit(report, meter, shelf, seconds)
        return report

    async def _visit(self, claim: Claim, shelf: StoredShelf, force: bool, only: Sequence[str] | None) -> VisitReport:
        try:
            return await visit_claimed(self._visitor, claim, self.scope, shelf, self._clock.now(), force, only)
        finally:
            await shelf.settled()

    async def _settle(self, claim: Claim, report: VisitReport | None) -> None:
        """End a visit, once an outage is over; until then the claim is ours."""
        try:
            await self._writer.write(SettleVisit(self._settlement(claim, report)))
        except Exception:
            _log.exception("visit.unsettled", origin=claim.origin)
        finally:
            self._claims.pop(claim.origin, None)

    def _slowdowns(self) -> dict[str, Slowdown]:
        now, steady = self._clock.now(), self._clock.monotonic()
        return {
            origin: Slowdown(mercy.slowdown, now + timedelta(seconds=mercy.until - steady))
            for origin, mercy in self._limiter.take_news().items()
        }

    def _settlement(self, claim: Claim, report: VisitReport | None) -> Settlement:
        now = self._clock.now()
        outcome = _outcome_of(report)
        if report is None:
            next_at = next_try(CRASHED, now, 1, ceiling=_FAILURE_CEILING, chance=self._clock.chance())
            return Settlement(
                claim.origin,
                claim.fence,
                now,
                outcome,
                "",
                True,
                next_at,
                slowdowns=self._slowdowns(),
                known_rest=claim.rest,
            )
        not_before = now + report.wait if report.wait else None
        next_at = max(report.next_look_at or now + self._settings.crawl.max_interval, now + _SOONEST)
        if not_before is not None:
            next_at = not_before if report.postponed else max(next_at, not_before)
        if report.pause is not None:
            next_at = max(next_at, now + report.pause)
        return Settlement(
            claim.origin,
            claim.fence,
            now,
            outcome,
            report.robots,
            report.failed,
            next_at,
            not_before,
            report.madp,
            silent=report.pause is not None,
            slowdowns=self._slowdowns(),
            rests=report.rests,
            known_rest=claim.rest,
        )


def _log_visit(report: VisitReport, meter: Meter, shelf: StoredShelf, seconds: float) -> None:
    _log.info(
        "visit.done",
        origin=report.origin,
        failed=report.failed,
        robots=report.robots,
        documents=dict(Counter(str(outcome) for outcome in report.outcomes.values())),
        changed=shelf.changed,
        entries={name: count for name, count in sorted(shelf.entries.items()) if count},
        artifacts=shelf.artifacts,
        postponed=report.postponed,
        requests=meter.requests,
        not_modified=meter.not_modified,
        bytes=meter.bytes,
        seconds=round(seconds, 3),
    )


def _outcome_of(report: VisitReport | None) -> str:
    if report is None:
        return "crashed"
    return "failed" if report.failed else "done"


async def visit_claimed(
    visitor: Visitor,
    claim: Claim,
    scope: Scope,
    shelf: Shelf,
    now: datetime,
    force: bool = False,
    only: Sequence[str] | None = None,
    deadline: float | None = None,
) -> VisitReport:
    """Visit an origin under the rules that its claim and the allowlist give."""
    rules = _rules_of(claim, scope)
    if only is not None:
        selection = select_documents(claim.states, only, now)
        report = await visitor.visit(
            rules,
            scope,
            shelf,
            selection.states,
            probe=False,
            madp=claim.madp,
            extra=selection.targets,
            deadline=deadline,
        )
        report.next_look_at = selection.next_look_at(report.next_look_at)
        return report
    probe = claim.managed_by in ("config", "operator")
    return await visitor.visit(
        rules, scope, shelf, claim.states, force=force, probe=probe, madp=claim.madp, deadline=deadline
    )


def _rules_of(claim: Claim, scope: Scope) -> OriginRules:
    if claim.managed_by in ("config", "operator"):
        return origin_rules(claim.origin, claim.options)
    pattern = scope.rules(claim.origin)
    return origin_rules(claim.origin, {}) if pattern is None else _under(pattern, claim.origin)


def _under(pattern: OriginRules, origin: str) -> OriginRules:
    return OriginRules(origin, pattern.surfaces, pattern.pages, pattern.artifact_hosts)
