"""A survey of one publisher without a database: everything that was tried, found and left out, as a report.

Contract `ardvark.discovery.v1`. Nothing in it is verified; every text in it is the publisher's and says so.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import orjson

from config.errors import OperatorError
from config.settings import Settings
from crawler.assembly import build_scope, make_client, make_policy
from crawler.clock import Clock
from crawler.discover import Target
from crawler.policy.scope import OriginRules, Refused, Scope, make_scope
from crawler.shelf import MemoryShelf
from crawler.visit import Visitor, VisitReport, artifact_target
from index.documents import DocumentKind, DocumentVisit, Outcome
from index.precedence import Found, judge
from index.records import RANK_OF_MECHANISM, Lead, Mechanism, Problem, Severity
from index.urls import BadUrl, origin_of, parse_url

CONTRACT = "ardvark.discovery.v1"
LABEL = "untrusted_unverified"
_MAX_ORIGINS = 20
_MAX_ENTRIES = 10_000
_MAX_PROBLEMS = 2_000


@dataclass(frozen=True, slots=True)
class SurveyTarget:
    """What to survey: an origin and, where the address named one, a document on it."""

    text: str
    origin: str
    document: Target | None


def read_target(text: str) -> SurveyTarget:
    """Read a domain, an origin or the URL of a page or manifest; raises OperatorError."""
    stated = text if "://" in text else f"https://{text}"
    try:
        url = parse_url(stated)
    except BadUrl as error:
        raise OperatorError(f"{text}: expected {error}, or a domain such as acme.example") from None
    origin = origin_of(str(url))
    if url.raw_path_qs == "/":
        return SurveyTarget(text, origin, None)
    manifest = url.raw_path.endswith(".json") or "/.well-known/" in url.raw_path
    lead = Lead(str(url), Mechanism.OPERATOR, RANK_OF_MECHANISM[Mechanism.OPERATOR])
    return SurveyTarget(text, origin, Target(DocumentKind.MANIFEST if manifest else DocumentKind.PAGE, lead))


async def survey(
    settings: Settings, clock: Clock, target: SurveyTarget, deadline: timedelta, allow: Iterable[str] = ()
) -> dict[str, Any]:
    """Look at everything one publisher announces and report it; ends within `deadline`."""
    started_at = clock.now()
    ends = asyncio.get_running_loop().time() + deadline.total_seconds()
    shelf = MemoryShelf()
    reports: list[VisitReport] = []
    async with make_client(settings, clock) as client:
        visitor = Visitor(client, clock, make_policy(settings))
        scope = _scope(settings, target, allow)
        refused = scope.admit(target.origin + "/")
        if isinstance(refused, Refused):
            raise OperatorError(f"{target.text}: {refused.detail}")
        rules = scope.rules(target.origin) or OriginRules(target.origin)
        extra = [target.document] if target.document else []
        reports.append(await visitor.visit(rules, scope, shelf, {}, force=True, extra=extra, deadline=ends))
        reports += await _further(visitor, scope, shelf, target.origin, ends)
    return _report(target, started_at.isoformat(), clock.now().isoformat(), deadline, shelf, reports)


def _scope(settings: Settings, target: SurveyTarget, allow: Iterable[str]) -> Scope:
    base = build_scope(settings)
    listed = [*base.origins.values(), *base.patterns]
    named = [target.origin, *allow]
    listed += [OriginRules(origin) for origin in named if origin not in base.origins]
    return make_scope(listed, named_hosts=base.named_hosts, allow_http=settings.network.allow_http)


async def _further(visitor: Visitor, scope: Scope, shelf: MemoryShelf, first: str, ends: float) -> list[VisitReport]:
    """Visit the other origins that leads point to, only for what they point to."""
    reports: list[VisitReport] = []
    done = {first}
    while len(done) < _MAX_ORIGINS:
        wanted = _elsewhere(shelf, done)
        if not wanted:
            break
        for owner, targets in wanted.items():
            done.add(owner)
            rules = scope.rules(owner) or OriginRules(owner)
            rules = replace(rules, origin=owner)
            reports.append(
                await visitor.visit(rules, scope, shelf, {}, force=True, probe=False, extra=targets, deadline=ends)
            )
    return reports


def _elsewhere(shelf: MemoryShelf, done: set[str]) -> dict[str, list[Target]]:
    wanted: dict[str, list[Target]] = {}
    found = [item for visit in shelf.visits for item in visit.leads]
    found += [item for leads in shelf.leads.values() for item in leads]
    for item in found:
        if item.owner is not None and item.owner not in done:
            wanted.setdefault(item.owner, []).append(Target(DocumentKind.MANIFEST, item.lead))
    for visit in shelf.visits:
        for entry in visit.reading.entries if visit.reading is not None else ():
            ref = entry.artifact
            if ref is not None and ref.url is not None and ref.owner is not None and ref.owner not in done:
                wanted.setdefault(ref.owner, []).append(artifact_target(ref.url))
    return wanted


# --- the report -------------------------------------------------------------------------------------------------------


def _report(
    target: SurveyTarget,
    started_at: str,
    finished_at: str,
    deadline: timedelta,
    shelf: MemoryShelf,
    reports: list[VisitReport],
) -> dict[str, Any]:
    found = [
        Found(entry, visit.state.url, visit.state.rank)
        for visit in shelf.visits
        if visit.reading is not None and _accepted(visit)
        for entry in visit.reading.entries
    ]
    states = judge(found)
    unvisited = [item for report in reports for item in report.unvisited]
    problems = [(visit.state.url, problem) for visit in shelf.visits for problem in _problems_of(visit)]
    not_followed = Counter(
        item.decision
        for leads in [*(visit.leads for visit in shelf.visits), *shelf.leads.values()]
        for item in leads
        if item.decision != "followed"
    )
    catalogs = [_catalog(visit) for visit in shelf.visits if _is_catalog(visit)]
    return {
        "contract": CONTRACT,
        "label": LABEL,
        "target": target.text,
        "origin": target.origin,
        "startedAt": started_at,
        "finishedAt": finished_at,
        "deadlineS": deadline.total_seconds(),
        "sources": [*map(_source, shelf.visits), *(_unchecked(item) for item in unvisited)],
        "catalogs": catalogs,
        "entries": [_entry(item, state) for item, state in list(zip(found, states, strict=True))[:_MAX_ENTRIES]],
        "problems": [{"source": url, **_problem(problem)} for url, problem in problems[:_MAX_PROBLEMS]],
        "counts": {
            "sources": len(shelf.visits) + len(unvisited),
            "catalogs": len(catalogs),
            "entries": {"total": len(found), **Counter(states)},
            "problems": dict(_severities(found, problems)),
            "leads": {"notFollowed": dict(not_followed)},
        },
        "omitted": {
            "sources": len(unvisited) + sum(report.postponed for report in reports),
            "entries": max(0, len(found) - _MAX_ENTRIES),
            "entriesPastBound": sum(_cut(visit) for visit in shelf.visits),
            "problems": max(0, len(problems) - _MAX_PROBLEMS),
            "leads": sum(not_followed.values()),
        },
    }


def _accepted(visit: DocumentVisit) -> bool:
    return visit.observation.outcome in (Outcome.FETCHED, Outcome.NOT_MODIFIED)


def _is_catalog(visit: DocumentVisit) -> bool:
    """Tell whether a document was accepted as a source of entries."""
    reading = visit.reading
    if reading is None or not _accepted(visit):
        return False
    return reading.kind in ("manifest", "entry") or bool(reading.entries)


def _source(visit: DocumentVisit) -> dict[str, Any]:
    state, observation = visit.state, visit.observation
    return {
        "mechanism": "robots" if state.kind is DocumentKind.ROBOTS else _mechanism(visit),
        "kind": state.kind,
        "url": state.url,
        "outcome": observation.outcome,
        "reason": observation.reason,
        "detail": observation.detail,
        "status": observation.status,
        "finalUrl": observation.final_url,
        "redirects": [{"url": hop.url, "status": hop.status} for hop in observation.hops],
        "digest": state.digest if _accepted(visit) else None,
        "size": state.length if _accepted(visit) else None,
        "robots": observation.robots,
        "leads": [
            {
                "url": item.lead.url,
                "mechanism": item.lead.mechanism,
                "mediaType": item.lead.media_type,
                "decision": item.decision,
            }
            for item in visit.leads
        ],
        "notes": list(visit.notes),
        "label": LABEL,
    }


def _mechanism(visit: DocumentVisit) -> str:
    return "control" if visit.state.kind is DocumentKind.CONTROL else str(visit.state.mechanism)


def _unchecked(target: Target) -> dict[str, Any]:
    return {
        "mechanism": str(target.lead.mechanism),
        "kind": target.kind,
        "url": target.lead.url,
        "outcome": "not_checked",
        "reason": "deadline",
        "detail": "",
        "status": None,
        "finalUrl": None,
        "redirects": [],
        "digest": None,
        "size": None,
        "robots": "",
        "leads": [],
        "notes": [],
        "label": LABEL,
    }


def _catalog(visit: DocumentVisit) -> dict[str, Any]:
    reading = visit.reading
    return {
        "url": visit.state.url,
        "finalUrl": visit.observation.final_url,
        "mechanism": _mechanism(visit),
        "kind": reading.kind if reading else "",
        "digest": visit.state.digest,
        "entries": len(reading.entries) if reading else 0,
        "complete": reading.complete if reading else False,
        "depth": visit.state.depth,
        "label": LABEL,
    }


def _entry(item: Found, state: str) -> dict[str, Any]:
    entry = item.entry
    problems = [_problem(problem) for problem in entry.problems]
    if state in ("conflict", "duplicate"):
        message = "another source of the same identifier is listed"
        problems.append(_problem(Problem(f"source.{state}", Severity.INFO, entry.pointer, message, "ARD 5.1")))
    return {
        "identifier": entry.identifier,
        "listed": state == "listed",
        "state": state,
        "source": item.document_url,
        "pointer": entry.pointer,
        "trust": entry.trust,
        "label": LABEL,
        "problems": problems,
        "entry": _published(entry.raw),
    }


def _published(raw: str) -> Any:
    """Show the entry as published; text that JSON writers refuse is shown as text."""
    try:
        return orjson.Fragment(orjson.dumps(orjson.loads(raw)))
    except (orjson.JSONDecodeError, TypeError):
        return raw.encode("utf-8", "replace").decode()


def _problem(problem: Problem) -> dict[str, Any]:
    return {
        "code": problem.code,
        "severity": problem.severity,
        "pointer": problem.pointer.encode("utf-8", "replace").decode(),
        "message": problem.message.encode("utf-8", "replace").decode(),
        "clause": problem.clause,
    }


def _problems_of(visit: DocumentVisit) -> tuple[Problem, ...]:
    return visit.reading.problems if visit.reading is not None else ()


def _severities(found: list[Found], problems: list[tuple[str, Problem]]) -> Mapping[str, int]:
    counted: Counter[str] = Counter(str(problem.severity) for _, problem in problems)
    counted.update(str(problem.severity) for item in found for problem in item.entry.problems)
    return counted


def _cut(visit: DocumentVisit) -> int:
    return sum(problem.code == "manifest.too_many_entries" for problem in _problems_of(visit))
