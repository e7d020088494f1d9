"""What the clients of the crawl bench are told to do, and what their server must have seen when they have done it."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass

ORIGINS = 1500
ENTRIES = 4
AT_A_TIME = 100

ROBOTS, MANIFEST, PAGE, PREDECESSOR = "/robots.txt", "/.well-known/ard.json", "/", "/.well-known/ai-catalog.json"
# The requests of a visit, in the order in which a crawl was seen to make them.
KINDS = {"one document": (ROBOTS, MANIFEST), "four requests": (ROBOTS, MANIFEST, PREDECESSOR, PAGE)}
_ABSENT = frozenset({ROBOTS, PREDECESSOR})


@dataclass(frozen=True, slots=True)
class Job:
    """A crawl that one client makes in a process of its own; `again` is one on which nothing has changed."""

    scheme: str
    port: int
    kind: str
    again: bool
    authority: str
    folder: str

    @property
    def paths(self) -> tuple[str, ...]:
        return KINDS[self.kind]

    @property
    def origins(self) -> list[str]:
        return [f"{self.scheme}://o{number}.bench.example:{self.port}" for number in range(ORIGINS)]

    def write(self) -> str:
        return json.dumps(asdict(self))


def read_job(text: str) -> Job:
    """Read what `Job.write` wrote."""
    return Job(**json.loads(text))


def conditions(job: Job, number: int, path: str) -> dict[str, str]:
    """Give the header fields by which a second crawl asks whether something has changed."""
    if not job.again or path in _ABSENT:
        return {}
    return {"If-None-Match": entity_tag(number, path)}


def entity_tag(number: int, path: str) -> str:
    """Name the one state that a document of an origin has."""
    return f'"m{number}"' if path == MANIFEST else '"page"'


def expected(job: Job) -> dict[str, int]:
    """Give the answers by path and status that the server must have given, and the connections it must have taken."""
    return {**dict.fromkeys(_answers(job), ORIGINS), "connections": ORIGINS}


def _answers(job: Job) -> Iterator[str]:
    for path in job.paths:
        status = 404 if path in _ABSENT else 304 if job.again else 200
        yield f"{path} {status}"
