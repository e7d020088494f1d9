"""A crawl over weeks: what falls due is visited as the daemon would, and the log tells what happened."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select

from index.store.documents import document_id
from index.store.frontier import next_due_at
from index.store.tables import fetches
from tests.fakes.clock import FakeClock
from tests.fakes.harness import Crawl


async def visit_due(crawl: Crawl) -> int:
    """Visit the origins that are due now, and in them the documents that are; gives the number of visits."""
    claims = await crawl.crew.claim(100)
    for claim in claims:
        await crawl.crew.visit(claim)
    return len(claims)


async def pass_time(crawl: Crawl, clock: FakeClock, *, most: int = 2000, **duration: float) -> int:
    """Let time pass and visit whatever falls due on the way; gives the number of visits."""
    visits = await visit_due(crawl)
    end = FakeClock(clock.now())
    end.advance(**duration)
    while True:
        due_at = await crawl.database.read(next_due_at)
        if due_at is None or due_at > end.now():
            break
        clock.advance(seconds=max((due_at - clock.now()).total_seconds(), 0.001))
        visits += await visit_due(crawl)
        assert visits <= most, "time passes, but the visits never end"
    clock.advance(seconds=max((end.now() - clock.now()).total_seconds(), 0))
    return visits


async def fetch_log(crawl: Crawl, url: str) -> Sequence[Any]:
    """Give the log of fetches of one document, oldest first."""
    query = select(fetches).where(fetches.c.document_id == document_id(url)).order_by(fetches.c.id)
    return await crawl.database.read(lambda connection: connection.execute(query).all())


async def notes_of(crawl: Crawl, url: str) -> list[str]:
    """Give everything that was noted about the fetches of one document."""
    return [note for row in await fetch_log(crawl, url) for note in row.notes]
