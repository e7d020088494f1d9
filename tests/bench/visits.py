"""What the clients of the crawl bench are told to do, and what their server must have seen when they have done it."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Literal

ORIGINS = 1500
ENTRIES = 4
AT_A_TIME = 100

ROBOTS, MANIFEST, PAGE, PREDECESSOR = "/robots.txt", "/.well-known/ard.json", "/", "/.well-known/ai-catalog.json"
# The requests of a visit, in the order in which a crawl was seen to make them.
KINDS = {"one document": (ROBOTS, MANIFEST), "four requests": (ROBOTS, MANIFEST, PREDECESSOR, PAGE)}
_ABSENT = frozenset({ROBOTS, PREDECESSOR})
# A first crawl, one after the manifests were edited around entries that stayed the same, and one that is told so (304).
Crawl = Literal["first", "edited", "304"]
CRAWLS: tuple[Crawl, ...] = ("first", "edited", "304")


@dataclass(frozen=True, slots=True)
class Job:
    """A crawl that one client makes in a process of its own."""

    scheme: str
    port: int
    kind: str
    crawl: Crawl
    authority: str
    folder: str

    @property
    def paths(self) -> tuple[str, ...]:
        return KINDS[self.kind]

    @property
    def edition(self) -> int:
        """The edition of every manifest that the server has by then."""
        return 0 if self.crawl == "first" else 1

    @property
    def origins(self) -> list[str]:
        return [f"{self.scheme}://o{number}.bench.example:{self.port}" for number in range(ORIGINS)]

    def write(self) -> str:
        return json.dumps(asdict(self))


def read_job(text: str) -> Job:
    """Read what `Job.write` wrote."""
    return Job(**json.loads(text))


def conditions(job: Job, number: int, path: str) -> dict[str, str]:
    """Give the header fields by which a later crawl asks whether something has changed."""
    if job.crawl == "first" or path in _ABSENT:
        return {}
    return {"If-None-Match": entity_tag(number, 0 if job.crawl == "edited" else 1) if path == MANIFEST else '"page"'}


def entity_tag(number: int, edition: int) -> str:
    """Name an edition of the manifest of an origin."""
    return f'"m{number}-{edition}"'


def expected(job: Job) -> dict[str, int]:
    """Give the answers by path and status that the server must have given, and the connections it must have taken."""
    return {**dict.fromkeys(_answers(job), ORIGINS), "connections": ORIGINS}


def _answers(job: Job) -> Iterator[str]:
    for path in job.paths:
        is_new = job.crawl == "first" or (job.crawl == "edited" and path == MANIFEST)
        status = 404 if path in _ABSENT else 200 if is_new else 304
        yield f"{path} {status}"
