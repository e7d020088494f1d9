"""What one fetch showed, and what is remembered of a document between fetches. Pure values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from crawler.policy.outcomes import Outcome
from index.records import Mechanism, Rank


@dataclass(frozen=True, slots=True)
class Hop:
    """One redirect: where it was met and its status."""

    url: str
    status: int


@dataclass(frozen=True, slots=True)
class Observation:
    """What one fetch showed. Remote faults are values here, never exceptions.

    `headers` has lower-case names; `body` is decoded and only there for `fetched`; `conditions` are those sent;
    `wire_size` counts the payload as transferred.
    """

    url: str
    outcome: Outcome
    request_at: datetime
    response_at: datetime
    reason: str = ""
    detail: str = ""
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    final_url: str = ""
    hops: tuple[Hop, ...] = ()
    conditions: Mapping[str, str] = field(default_factory=dict)
    wire_size: int = 0
    truncated: bool = False
    peer: str | None = None
    retry_after: timedelta | None = None
    robots: str = ""


class DocumentKind(StrEnum):
    """What a document is watched for."""

    ROBOTS = "robots"
    MANIFEST = "manifest"
    PAGE = "page"
    CONTROL = "control"


@dataclass(frozen=True, slots=True)
class DocumentState:
    """What is remembered of a watched URL between visits.

    `origin` is the origin whose visits fetch it. `failing_since` is set while the copy cannot be confirmed, so its
    entries are stale; `absent_since` while the publisher says that there is nothing. `held_digest` names a reading
    whose removals wait for a second sighting.
    """

    url: str
    origin: str
    kind: DocumentKind
    first_seen_at: datetime
    mechanism: Mechanism = Mechanism.WELL_KNOWN
    rank: int = Rank.UNKNOWN
    depth: int = 1
    ancestors: tuple[str, ...] = ()
    outcome: Outcome | None = None
    reason: str = ""
    detail: str = ""
    status: int | None = None
    attempted_at: datetime | None = None
    fetched_at: datetime | None = None
    confirmed_at: datetime | None = None
    changed_at: datetime | None = None
    full_at: datetime | None = None
    not_modified_streak: int = 0
    ineffective_streak: int = 0
    distrust_until: datetime | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    final_url: str = ""
    hops: tuple[Hop, ...] = ()
    digest: str | None = None
    content_digest: str | None = None
    length: int | None = None
    parser_version: str = ""
    fresh_until: datetime | None = None
    next_fetch_at: datetime | None = None
    interval: timedelta | None = None
    failures: int = 0
    failing_since: datetime | None = None
    absences: int = 0
    absent_since: datetime | None = None
    held_digest: str | None = None
