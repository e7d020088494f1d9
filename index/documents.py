"""Watched documents: what one fetch showed, and what is remembered of a URL between fetches. Pure values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from index.records import Artifact, Lead, Mechanism, Rank, Reading, Signer


class Outcome(StrEnum):
    """What became of one document in one visit; what can be told apart is kept apart."""

    FETCHED = "fetched"
    NOT_MODIFIED = "not_modified"
    ABSENT = "absent"
    GONE = "gone"
    WITHHELD = "withheld"
    DISALLOWED = "disallowed"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    TOO_LARGE = "too_large"
    MALFORMED = "malformed"
    WRONG_KIND = "wrong_kind"
    CATCH_ALL = "catch_all"


SUCCESSES = frozenset({Outcome.FETCHED, Outcome.NOT_MODIFIED})
# Noted when content had changed behind an unchanged validator: no 304 since the last whole answer was a sight of it.
VALIDATOR_LIES = "validator_lies"
# The publisher says that there is nothing; that is an answer and no failure.
ABSENCES = frozenset({Outcome.ABSENT, Outcome.GONE, Outcome.CATCH_ALL, Outcome.WRONG_KIND})
# Something stood between us and the document; what is held goes stale and nothing is removed.
FAILURES = frozenset(Outcome) - SUCCESSES - ABSENCES


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
    ARTIFACT = "artifact"


@dataclass(frozen=True, slots=True)
class DocumentState:
    """What is remembered of a watched URL between visits.

    `origin` is the origin whose visits fetch it. `failing_since` is set while the copy cannot be confirmed, so its
    entries are stale; `absent_since` while the publisher says that there is nothing. `applied_digest` names the body
    that the listings reflect; `held` says that a large drop in it waits for a second sighting; `signers` are those of
    its cards when they were last verified.
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
    rate_a: float | None = None
    rate_b: float | None = None
    failures: int = 0
    failing_since: datetime | None = None
    absences: int = 0
    absent_since: datetime | None = None
    applied_digest: str | None = None
    held: bool = False
    entry_count: int = 0
    signers: tuple[Signer, ...] = ()

    @property
    def has_schedule(self) -> bool:
        """Tell a document with times of its own from those that are asked for whenever a visit needs them."""
        return self.kind not in (DocumentKind.ROBOTS, DocumentKind.CONTROL)

    @property
    def is_shown(self) -> bool:
        """Tell whether the index may show what this document says; key sets only verify what others say."""
        return self.applied_digest is not None and self.has_schedule and self.mechanism is not Mechanism.KEY_SET


@dataclass(frozen=True, slots=True)
class FollowedLead:
    """A lead and what was decided about it.

    `decision` is `followed` or the word for the refusal; `owner` is the origin whose visits fetch the target.
    """

    lead: Lead
    decision: str
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class DocumentVisit:
    """All that one look at one document brought.

    `reading` is there when the entries have to be brought in line with it, `body` when a snapshot has to be kept.
    `confirm_removals` says that a large drop was already seen once before. `leads_complete` says that these are all
    the leads of the document, so that others of it have been withdrawn. `artifact` is there when a card was read.
    `before_at` is when the copy before this one was last confirmed.
    """

    state: DocumentState
    observation: Observation
    reading: Reading | None = None
    body: bytes | None = None
    changed: bool = False
    taken_away: bool = False
    confirm_removals: bool = False
    notes: tuple[str, ...] = ()
    leads: tuple[FollowedLead, ...] = ()
    leads_complete: bool = False
    artifact: Artifact | None = None
    before_at: datetime | None = None
    # Whether the document came or went: it was there before and is not, or the other way round.
    presence_changed: bool = False
