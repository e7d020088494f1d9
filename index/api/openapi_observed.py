"""The description of our own resources: what was observed beside what was published. Pure."""

from typing import Any

from index.api.openapi_parts import IDENTIFIER, answers, array, closed, parameter, ref
from index.card_payloads import Profile
from index.diff import ChangeClass
from index.drift_codes import CODES
from index.freshness import FreshnessState
from index.query import LONGEST_PARAMETER, MAX_PAGE_SIZE, MOST_EVENTS
from index.trust import PublisherClaim
from index.verdicts import SignatureOutcome

_TEXT = {"type": "string"}
_MAYBE = {"type": ["string", "null"]}
_INSTANT = {"type": ["string", "null"], "format": "date-time"}
_BOOLEAN = {"type": "boolean"}
_INTEGER = {"type": "integer"}
_SECONDS = {"type": ["number", "null"]}
_ANY: dict[str, Any] = {}
_TEXTS = {"type": "array", "items": _TEXT}
_OBJECTS = {"type": "array", "items": {"type": "object"}}
_CLASSES = [str(kind) for kind in ChangeClass]
_CLASS = {"oneOf": [{"type": "null"}, {"type": "string", "enum": _CLASSES}]}
_CLAIM = {"type": "string", "enum": [str(claim) for claim in PublisherClaim]}
_SIGNATURES = {"oneOf": [{"type": "null"}, array("SignatureVerdict")]}
_COMPARED = {"type": "string", "maxLength": LONGEST_PARAMETER}
_ORIGIN = r"^https?://[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?(\.[a-z]{2,8}){1,2}(:[1-9][0-9]{0,3})?$"
_NOT_MODIFIED = {"304": {"description": "Not modified."}}


def observed_paths() -> dict[str, Any]:
    """Describe the operations."""
    return {
        "/agents/{identifier}/history": {
            "get": _get(
                "getHistory", "History", "What an entry and its artifact said before.", [_identifier(), *_paged()]
            )
        },
        "/agents/{identifier}/provenance": {
            "get": _get("getProvenance", "Provenance", "Where an entry comes from.", [_identifier()])
        },
        "/agents/{identifier}/drift": {
            "get": _get("getDriftOf", "DriftOf", "Disagreements about one entry.", [_identifier(), *_paged()])
        },
        "/drift": {"get": _get("listDrift", "DriftPage", "Where documents disagree.", [*_filters(), *_paged()])},
        "/lag": {"get": _get("listLag", "LagPage", "How long copies lag behind.", [*_filters(), *_paged()])},
        "/changes": {"get": _changes()},
        "/snapshots/{digest}": {"get": _snapshot()},
        "/origins": {"get": _get("listOrigins", "OriginPage", "The known origins.", _paged())},
        "/origins/{origin}": {"get": _get("getOrigin", "Origin", "What came of an origin, and why.", [_origin()])},
    }


def _get(operation: str, schema: str, text: str, parameters: list[dict[str, Any]]) -> dict[str, Any]:
    failures = ["InvalidArgument"]
    if any(item["in"] == "path" for item in parameters):
        failures.append("NotFound")
    return {
        "operationId": operation,
        "summary": text,
        "parameters": parameters,
        "responses": {**answers(schema, *failures), **_NOT_MODIFIED},
    }


def _in_path(name: str, pattern: str, text: str, example: str) -> dict[str, Any]:
    schema = {"type": "string", "pattern": pattern}
    return {"name": name, "in": "path", "required": True, "schema": schema, "description": text, "example": example}


def _identifier() -> dict[str, Any]:
    text = "Percent-encoded as one segment; decoded exactly once."
    return _in_path("identifier", IDENTIFIER, text, "urn:air:acme.com:agent:assistant")


def _origin() -> dict[str, Any]:
    text = "Scheme, host and port, percent-encoded as one segment."
    return _in_path("origin", _ORIGIN, text, "https://acme.example")


def _paged(most: int = MAX_PAGE_SIZE) -> list[dict[str, Any]]:
    size = {"type": "integer", "minimum": 1, "maximum": 999_999_999}
    text = f"Items on a page; more than {most} count as {most}, and of two sizes the smaller counts."
    return [
        parameter("limit", size, text),
        parameter("pageSize", size, "The same as limit."),
        parameter("pageToken", {"type": "string"}, "Continues the page that gave it."),
    ]


def _filters() -> list[dict[str, Any]]:
    states = {"type": "string", "enum": ["open", "closed", "all"], "default": "open"}
    return [
        parameter("state", states, "Those that go on, those that ended, or both."),
        parameter("class", {"type": "string", "enum": _CLASSES}, "How grave the difference is."),
        parameter("publisher", _COMPARED, "The domain in the identifier."),
        parameter("code", {"type": "string", "enum": sorted(CODES)}, "The code of the disagreement."),
        parameter("identifier", _COMPARED, "The identifier of the entry."),
        parameter("origin", _COMPARED, "The origin that one of the two documents is watched for."),
        parameter("since", {"type": "string", "format": "date-time"}, "Opened at this time or later (RFC 3339)."),
    ]


def _changes() -> dict[str, Any]:
    cursor = {"type": "integer", "minimum": 0, "maximum": 999_999_999_999_999_999}
    operation = _get(
        "listChanges",
        "ChangePage",
        "What changed, as JSON or, where Accept prefers it, as an Atom feed.",
        [
            parameter("after", cursor, "Only events after this cursor; the `next` of an answer continues it."),
            parameter("identifier", _COMPARED, "Only events of this entry."),
            *_paged(MOST_EVENTS)[:2],
        ],
    )
    operation["responses"]["200"]["content"]["application/atom+xml"] = {"schema": {"type": "string"}}
    operation["responses"]["410"] = {"$ref": "#/components/responses/Gone"}
    return operation


def _snapshot() -> dict[str, Any]:
    text = "The SHA-256 of the body in lower case."
    operation = _get(
        "getSnapshot",
        "Error",
        "A stored body, byte for byte.",
        [_in_path("digest", "^[0-9a-f]{64}$", text, "0" * 64)],
    )
    operation["responses"] |= answers("Error", "InvalidArgument", "PermissionDenied", "NotFound")
    operation["responses"]["200"] = {
        "description": "The body.",
        "content": {"application/json": {"schema": {}}, "application/octet-stream": {"schema": {}}},
    }
    return operation


# --- schemas ----------------------------------------------------------------------------------------------------------


def _whole(members: dict[str, Any]) -> dict[str, Any]:
    """Describe an object that has all of these members and no others."""
    return closed(members, list(members))


def _page(name: str, **further: Any) -> dict[str, Any]:
    members = {"items": array(name), **further}
    return closed({**members, "pageToken": _TEXT}, list(members))


def annotations() -> dict[str, Any]:
    """Describe our terms in search results."""
    return {
        "ardvark:freshness": ref("Freshness"),
        "ardvark:provenance": _whole(
            {"url": _TEXT, "mechanism": _TEXT, "lastConfirmedAt": _INSTANT, "digest": _TEXT, "snapshot": _MAYBE}
        ),
        "ardvark:publisherClaim": _CLAIM,
        "ardvark:drift": _whole({"open": _INTEGER, "worst": {"type": "string", "enum": _CLASSES}}),
        "ardvark:artifact": closed(
            {
                "state": _TEXT,
                "kind": _TEXT,
                "name": _TEXT,
                "version": _TEXT,
                "freshness": ref("Freshness"),
                "signature": ref("Signature"),
            },
            ["state"],
        ),
    }


def observed_schemas() -> dict[str, Any]:
    """Describe the answers."""
    states = {"type": "string", "enum": [str(state) for state in FreshnessState]}
    time = {"type": "string", "format": "date-time"}
    return {
        "Freshness": closed({"state": states, "until": time, "since": time, "why": _TEXT}, ["state"]),
        **_signature_schemas(),
        **_drift_schemas(),
        **_history_schemas(),
        **_provenance_schemas(),
        **_origin_schemas(),
    }


def _signature_schemas() -> dict[str, Any]:
    outcome = {"type": "string", "enum": [str(outcome) for outcome in SignatureOutcome]}
    profile = {"type": "string", "enum": [str(profile) for profile in Profile]}
    best = {"outcome": outcome, "profile": profile, "kid": _TEXT, "jkuHost": _TEXT}
    verdict = {
        **best,
        "pointer": _TEXT,
        "reason": _TEXT,
        "alg": _TEXT,
        "keySource": {"type": "string", "enum": ["trusted", "jku"]},
        "key": _TEXT,
        "unsignedMembers": _TEXTS,
    }
    return {
        "Signature": {
            **closed(best, ["outcome"]),
            "description": "What became of a card's signatures, by the best of them; a valid one names no one.",
        },
        "SignatureVerdict": closed(verdict, ["pointer", "outcome"]),
    }


def _drift_schemas() -> dict[str, Any]:
    lag = _whole({"atLeastS": {"type": "number"}, "atMostS": _SECONDS, "open": _BOOLEAN})
    times = ("liveOldAt", "liveNewAt", "copyOldAt", "copyNewAt", "liveSeenAt")
    drift = {
        "code": _TEXT,
        "class": {"type": "string", "enum": _CLASSES},
        "severity": _TEXT,
        "identifier": _MAYBE,
        "publisher": _MAYBE,
        "pointer": _TEXT,
        "livePointer": _TEXT,
        "members": _TEXTS,
        "catalog": _ANY,
        "live": _ANY,
        "catalogUrl": _TEXT,
        "liveUrl": _TEXT,
        "catalogDigest": _MAYBE,
        "liveDigest": _MAYBE,
        "state": {"type": "string", "enum": ["open", "closed"]},
        "openedAt": _INSTANT,
        "confirmedAt": _INSTANT,
        "closedAt": _INSTANT,
        "closedBy": _MAYBE,
        "moved": {"type": "string", "enum": ["live", "catalog", "unknown"]},
        "lag": {"oneOf": [{"type": "null"}, lag]},
        "observations": _whole(dict.fromkeys(times, _INSTANT)),
    }
    own = _whole({"count": _INTEGER, "p50S": _SECONDS, "p95S": _SECONDS, "maxS": _SECONDS})
    return {
        "Drift": _whole(drift),
        "DriftPage": _page("Drift"),
        "DriftOf": _page("Drift", identifier=_TEXT, open=_INTEGER),
        "LagPage": _page("Drift", own=own, open=_INTEGER),
    }


def _history_schemas() -> dict[str, Any]:
    present = {
        "url": _MAYBE,
        "digest": _MAYBE,
        "firstSeenAt": _INSTANT,
        "changedAt": _INSTANT,
        "confirmedAt": _INSTANT,
    }
    card = _whole({**present, "kind": _TEXT, "shape": _TEXT, "inline": _BOOLEAN, "signatures": _SIGNATURES})
    version = {
        "of": {"type": "string", "enum": ["entry", "artifact"]},
        "digest": _TEXT,
        "firstSeenAt": _INSTANT,
        "lastSeenAt": _INSTANT,
        "replacedAt": _INSTANT,
        "class": _CLASS,
        "silent": _BOOLEAN,
        "edits": _OBJECTS,
    }
    change = {
        "cursor": _INTEGER,
        "kind": _TEXT,
        "identifier": _MAYBE,
        "at": _INSTANT,
        "indexedAt": _INSTANT,
        "url": _MAYBE,
        "mechanism": _MAYBE,
        "members": _TEXTS,
        "class": _CLASS,
        "silent": _BOOLEAN,
        "oldDigest": _MAYBE,
        "newDigest": _MAYBE,
        "reason": _TEXT,
    }
    return {
        "Version": _whole(version),
        "History": _page(
            "Version",
            identifier=_TEXT,
            state={"type": "string", "enum": ["listed", "removed"]},
            removedAt=_INSTANT,
            entry=_whole(present),
            artifact={"oneOf": [{"type": "null"}, card]},
        ),
        "Change": _whole(change),
        "ChangePage": _whole({"items": array("Change"), "next": _INTEGER, "last": _INTEGER, "oldest": _INTEGER}),
    }


def _provenance_schemas() -> dict[str, Any]:
    source = {
        "url": _TEXT,
        "pointer": _TEXT,
        "mechanism": _TEXT,
        "state": _TEXT,
        "identifier": _MAYBE,
        "version": _MAYBE,
        "firstSeenAt": _INSTANT,
        "changedAt": _INSTANT,
        "confirmedAt": _INSTANT,
    }
    times = ("firstSeenAt", "lastChangedAt", "lastConfirmedAt", "removedAt", "staleSince")
    texts = ("url", "mechanism", "finalUrl", "pointer", "staleReason", "digest", "snapshot", "robots")
    document = {
        **dict.fromkeys(texts, _MAYBE),
        **dict.fromkeys(times, _INSTANT),
        "redirects": {"type": "array"},
        "trust": _ANY,
        "publisherClaim": {"oneOf": [{"type": "null"}, _CLAIM]},
        "freshness": ref("Freshness"),
    }
    return {
        "Source": _whole(source),
        "Artifact": {
            "type": "object",
            "description": "What became of what an entry points to or holds; a card that was read is shown in short.",
            "properties": {
                "state": _TEXT,
                "url": _MAYBE,
                "declaredType": _MAYBE,
                "freshness": ref("Freshness"),
                "updatedAtLag": {"oneOf": [{"type": "null"}, ref("UpdatedAtLag")]},
                "signature": {"oneOf": [{"type": "null"}, ref("Signature")]},
                "signatures": _SIGNATURES,
            },
            "required": ["state", "url", "declaredType"],
        },
        "UpdatedAtLag": _whole(
            {
                "updatedAt": _INSTANT,
                "changedAt": _INSTANT,
                "atLeastS": {"type": "number", "exclusiveMinimum": 0},
                "atMostS": {"type": "number", "exclusiveMinimum": 0},
                "basis": {"type": "string", "enum": ["last-modified", "observed"]},
            }
        ),
        "Provenance": _whole(
            {
                "identifier": _TEXT,
                "state": {"type": "string", "enum": ["current", "stale", "removed"]},
                "provenance": _whole(document),
                "sources": array("Source"),
                "conflicts": array("Source"),
                "problems": _OBJECTS,
                "artifact": {"oneOf": [{"type": "null"}, ref("Artifact")]},
                "endorsement": {"oneOf": [{"type": "null"}, ref("Endorsement")]},
            }
        ),
    }


def _origin_schemas() -> dict[str, Any]:
    summary = {
        "origin": _TEXT,
        "managedBy": _TEXT,
        "active": _BOOLEAN,
        "visits": _INTEGER,
        "failures": _INTEGER,
        "lastVisitAt": _INSTANT,
        "lastOutcome": _MAYBE,
        "robots": _MAYBE,
        "nextVisitAt": _INSTANT,
        "notBefore": _INSTANT,
    }
    lists = ("documents", "notListed", "leads", "artifacts", "drift")
    page = {
        **summary,
        **dict.fromkeys(lists, _OBJECTS),
        "artifacts": array("Artifact"),
        "drift": array("Drift"),
        "omitted": _whole(dict.fromkeys(lists, _INTEGER)),
    }
    listed = {**summary, "documents": _INTEGER, "listings": _INTEGER}
    return {
        "OriginSummary": {"type": "object", "properties": listed, "required": list(listed)},
        "OriginPage": _page("OriginSummary"),
        "Origin": {"type": "object", "properties": page, "required": list(page)},
    }
