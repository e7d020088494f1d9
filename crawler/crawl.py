"""One crawl from beginning to end: every origin once, and the origins that leads name on the way."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from crawler.visit import VisitReport
from crawler.worker import Crew
from index.store.frontier import Claim
from index.store.writer import Tally

_BUSY_WAIT_S = 0.5
_MOST_ROUNDS = 4


@dataclass
class CrawlSummary:
    """What a crawl came to."""

    visited: int = 0
    failed: int = 0
    crashed: int = 0
    busy: int = 0
    disallowed: int = 0
    postponed: int = 0
    tally: Tally = field(default_factory=Tally)

    def as_json(self) -> dict[str, Any]:
        """Write the summary as the contract of `crawl --json`."""
        return {
            "origins": {
                "visited": self.visited,
                "failed": self.failed,
                "crashed": self.crashed,
                "busy": self.busy,
                "robotsUnreachable": self.disallowed,
                "postponed": self.postponed,
            },
            "documents": {str(outcome): count for outcome, count in sorted(self.tally.documents.items())},
            "entries": {
                "listed": self.tally.listed,
                "rejected": self.tally.rejected,
                "unchanged": self.tally.unchanged,
            },
            "artifacts": {name: self.tally.artifacts[name] for name in ("read", "added", "changed", "removed")},
            "notListed": {str(state): count for state, count in sorted(self.tally.not_listed.items())},
            "changes": self.tally.changes,
            "snapshots": self.tally.snapshots,
            "held": self.tally.held,
        }


Progress = Callable[[int, int], None]
_Visiting = asyncio.Task[VisitReport | None]


async def crawl_once(
    crew: Crew, origins: Sequence[str], tally: Tally, *, visits: int, progress: Progress | None = None
) -> CrawlSummary:
    """Visit each origin once, whether due or not, and then those that its leads named.

    An origin that another process holds is waited for until its lease ends; one that asked to be left alone is left
    alone. `progress` hears how many of how many are done.
    """
    summary = CrawlSummary(tally=tally)
    resting: set[str] = set()
    named = await _visit_all(crew, origins, summary, resting, visits, progress)
    for _ in range(_MOST_ROUNDS):
        # What was found on an origin after its own visit has not been looked at yet.
        named = await _visit_unseen(crew, sorted(named - resting), resting, visits)
    return summary


async def _visit_all(
    crew: Crew,
    origins: Sequence[str],
    summary: CrawlSummary,
    resting: set[str],
    visits: int,
    progress: Progress | None,
) -> set[str]:
    """Visit origins and those that leads name on the way; gives the ones that were named after their turn had come.

    Those that asked for patience are added to `resting`.
    """
    waiting = await _welcome(crew, origins, summary, resting)
    seen = set(origins)
    late: set[str] = set()
    claimed: list[Claim] = []
    running: set[_Visiting] = set()
    ended: asyncio.Queue[_Visiting] = asyncio.Queue()
    try:
        while waiting or claimed or running:
            if waiting and not claimed and len(running) < visits:
                # Claiming many at a time makes it one short transaction for all of them.
                claimed = await crew.claim(visits, list(islice(waiting, visits * 2)))
                for claim in claimed:
                    del waiting[claim.origin]
            while claimed and len(running) < visits:
                claim = claimed.pop()
                task = asyncio.create_task(crew.visit(claim, force=True), name=f"visit {claim.origin}")
                task.add_done_callback(ended.put_nowait)
                running.add(task)
            summary.busy = 0 if running else len(waiting)
            if not running:
                await asyncio.sleep(_BUSY_WAIT_S)
                continue
            done = [await ended.get()]
            while not ended.empty():
                done.append(ended.get_nowait())
            running.difference_update(done)
            for task in done:
                named = _count(summary, resting, task.result())
                late |= (named & seen) - waiting.keys()
                waiting.update(await _welcome(crew, sorted(named - seen), summary, resting))
                seen |= named
            if progress is not None:
                progress(summary.visited + summary.crashed, len(seen))
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await crew.release(claimed)
    return late


async def _welcome(crew: Crew, names: Sequence[str], summary: CrawlSummary, resting: set[str]) -> dict[str, None]:
    """Leave out the origins that asked to be left alone for longer (Retry-After, Crawl-delay)."""
    asleep = await crew.resting(names) if names else set()
    summary.postponed += len(asleep)
    resting |= asleep
    return dict.fromkeys(name for name in names if name not in asleep)


async def _visit_unseen(crew: Crew, origins: Sequence[str], resting: set[str], visits: int) -> set[str]:
    """Look at documents not looked at since they were named; gives the origins that these name in turn."""
    named: set[str] = set()
    for start in range(0, len(origins), visits):
        claims = await crew.claim(visits, origins[start : start + visits])
        await crew.release([claim for claim in claims if not _has_unseen(claim)])
        for report in await asyncio.gather(*(crew.visit(claim) for claim in claims if _has_unseen(claim))):
            if report is not None:
                named |= report.owners
                _rest(resting, report)
    return named


def _has_unseen(claim: Claim) -> bool:
    return any(state.next_fetch_at is None and state.has_schedule for state in claim.states.values())


def _rest(resting: set[str], report: VisitReport) -> None:
    if report.wait is not None:
        resting.add(report.origin)


def _count(summary: CrawlSummary, resting: set[str], report: VisitReport | None) -> set[str]:
    if report is None:
        summary.crashed += 1
        return set()
    summary.visited += 1
    summary.failed += report.failed
    summary.disallowed += report.robots == "robots_unreachable"
    _rest(resting, report)
    return report.owners
