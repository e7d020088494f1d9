"""Values that travel between the stations: what a document said, and where that came from. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import Any


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Problem:
    """A fault in a document: stable code, JSON Pointer (RFC 6901) and the clause it offends."""

    code: str
    severity: Severity
    pointer: str
    message: str
    clause: str = ""


class Mechanism(StrEnum):
    """How a publisher announces a document; the first group finds entry sources, the second artifacts."""

    WELL_KNOWN = "well_known"
    LINK_HEADER = "link_header"
    HTML_LINK = "html_link"
    AGENTMAP = "agentmap"
    IN_PAGE = "in_page"
    PREDECESSOR_PATH = "predecessor_path"
    PREDECESSOR_LINK = "predecessor_link"
    NESTED = "nested"
    OPERATOR = "operator"

    KEY_SET = "key_set"
    AGENT_CARD = "agent_card"
    LEGACY_CARD = "legacy_card"
    SERVER_CARD = "server_card"
    AGENT_DISCOVERY = "agent_discovery"
    CONSTELLATION = "constellation"
    ENTRY = "entry"
    TRUST_ANCHOR = "trust_anchor"


class Rank(IntEnum):
    """Precedence of entry sources; the lower wins. A nested catalog counts just after its parent.

    Artifacts come after all of them: what a catalog says is read before what it is compared with, and keys before the
    cards that they verify.
    """

    WELL_KNOWN = 10
    LINK_HEADER = 20
    HTML_LINK = 30
    AGENTMAP = 40
    IN_PAGE = 50
    PREDECESSOR_PATH = 60
    PREDECESSOR_LINK = 70
    OPERATOR = 80
    UNKNOWN = 90
    KEY_SET = 490
    AGENT_CARD = 500
    LEGACY_CARD = 510
    SERVER_CARD = 520
    AGENT_DISCOVERY = 530
    CONSTELLATION = 540
    TRUST_ANCHOR = 550
    ENTRY = 600


RANK_OF_MECHANISM: Mapping[Mechanism, int] = {
    mechanism: Rank[mechanism.name] for mechanism in Mechanism if mechanism is not Mechanism.NESTED
}


@dataclass(frozen=True, slots=True)
class Lead:
    """A URL that a document, header or robots line pointed to.

    `rank` is the precedence of what is found there, `depth` the number of catalogs above it, `ancestors` their
    canonical URLs: the path that a cycle would close.
    """

    url: str
    mechanism: Mechanism
    rank: int
    media_type: str | None = None
    pointer: str = ""
    depth: int = 1
    ancestors: tuple[str, ...] = ()


class ArtifactDecision(StrEnum):
    """Whether the artifact of an entry is read; a refusal of ours has its own word in its place."""

    WATCHED = "watched"
    INLINE = "inline"
    NOT_A_CARD = "not_a_card"
    SURFACE_OFF = "surface_off"


@dataclass(frozen=True, slots=True)
class ArtifactRef:
    """Where the artifact of an entry is and whether it is read.

    `decision` is an ArtifactDecision or the word for a refusal; `owner` is the origin whose visits fetch it.
    """

    decision: str
    url: str | None = None
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class Signer:
    """Whom a signature of a document names, and the thumbprint of the key that was had for it, if any."""

    kid: str
    jku: str
    key: str


@dataclass(frozen=True, slots=True)
class Artifact:
    """What the document behind an entry, or at a card's own path, turned out to be, judged by its shape.

    `normal` is its content in one form for all versions of its protocol, with everything masked that looks like a
    credential; `legacy` is the interface list of a hybrid card's older block; `content_digest` is the same for every
    formatting of the same content. `secret` says that the received bytes hold a credential.
    `signatures` are what became of a card's signatures, none for an unsigned card; None where nobody looked.
    """

    kind: str
    shape: str
    normal: Mapping[str, Any] = field(default_factory=dict)
    legacy: tuple[Mapping[str, str], ...] = ()
    problems: tuple[Problem, ...] = ()
    findings: tuple[Problem, ...] = ()
    digest: str = ""
    content_digest: str = ""
    secret: bool = False
    signatures: tuple[Mapping[str, Any], ...] | None = None
    signers: tuple[Signer, ...] = ()


class Standing(StrEnum):
    """What an entry is within its document; only a candidate can become a listing."""

    CANDIDATE = "candidate"
    POINTER = "pointer"
    SUPERSEDED = "superseded"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class Entry:
    """One ARD entry as read from a document.

    `raw` is the entry's JSON text as published, `published` its members. Derived members stand beside them: `key` is
    the identifier under its current prefix, `type` the canonical media type, `url` the absolute address, `value` the
    usable members under their current names. `adapted` names the members where serving the entry needs something
    other than `raw`; `outer_context` holds the contexts of enclosing objects, outermost first.
    """

    pointer: str
    raw: str
    published: Mapping[str, Any] = field(default_factory=dict)
    value: Mapping[str, Any] = field(default_factory=dict)
    identifier: str | None = None
    key: str | None = None
    display_name: str = ""
    type: str = ""
    version: str | None = None
    updated_at: datetime | None = None
    publisher: str | None = None
    url: str | None = None
    outer_context: tuple[Any, ...] = ()
    adapted: tuple[str, ...] = ()
    trust: str = "absent"
    standing: Standing = Standing.CANDIDATE
    problems: tuple[Problem, ...] = ()
    artifact: ArtifactRef | None = None
    inline: Artifact | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """What a surface makes of one document.

    `complete` is true when every entry of the document was seen, so that what is missing was taken out by the
    publisher. `problems` holds the faults of the document itself; entries carry their own.
    """

    kind: str
    entries: tuple[Entry, ...] = ()
    leads: tuple[Lead, ...] = ()
    problems: tuple[Problem, ...] = ()
    complete: bool = True
    # False when the document points to more than is followed, so that what is missing may only have been left out.
    all_leads: bool = True
    # The same for every formatting of the same content.
    content_digest: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def fatal(self) -> bool:
        return any(problem.severity is Severity.ERROR for problem in self.problems)


def pointer_step(step: str | int) -> str:
    """Write one step of a JSON Pointer, slash included (RFC 6901 section 3)."""
    return "/" + str(step).replace("~", "~0").replace("/", "~1")
