"""What reading costs: no more for each row of an answer because the rest of the index is large."""

import sqlite3
from pathlib import Path
from typing import Any

from sqlalchemy.dialects import sqlite

from index.store.frontier import counted_origins
from tests.conftest import OpenCrawl
from tests.fakes.web import FakeWeb, entry

_STEPS_AT_A_TIME = 100


def steps(path: Path, query: Any) -> int:
    """Count the steps of SQLite's machine that a query takes, in hundreds."""
    statement = str(query.compile(dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True}))
    taken = 0

    def count() -> int:
        nonlocal taken
        taken += 1
        return 0

    with sqlite3.connect(path) as connection:
        connection.set_progress_handler(count, _STEPS_AT_A_TIME)
        connection.execute(statement).fetchall()
    return taken


async def test_an_origin_is_counted_without_going_through_the_listings_of_all_others(
    web: FakeWeb, crawl_sqlite: OpenCrawl, tmp_path: Path
) -> None:
    sites = [web.site(f"s{number}") for number in range(12)]
    for site in sites:
        site.manifest(*(entry(f"e{number}", site.host) for number in range(50)))
    taken = []
    for number in (3, 12):
        async with crawl_sqlite(*sites[:number]) as crawl:
            await crawl.run()
        taken.append(steps(tmp_path / "ardvark.db", counted_origins()))
    assert 0 < taken[1] < 6 * taken[0], "four times the origins, four times the work"
