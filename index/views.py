"""From rows to JSON: what the API answers and the commands print, written once. Pure.

Rows are anything with the named attributes. Texts that publishers wrote are masked where they look like credentials.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from index.behind import behind
from index.cards import summary
from index.documents import SUCCESSES
from index.drift import lag
from index.findings import redact
from index.freshness import Freshness, FreshnessState, judge
from index.freshness import to_json as freshness_members
from index.http_date import parse_http_date
from index.trust import PublisherClaim, publisher_claim
from index.urls import host_of
from index.verdicts import best_json, shown_json

_LIVE = "live"
_CREDENTIAL_STATUSES = frozenset({401, 402, 403})
_NO_DOCUMENT = frozenset({"not_json", "event_stream"})
_TRANSIENT = "robots_unreachable"
_LONGEST_NAME = 200


def instant(value: datetime | None) -> str | None:
    """Write an instant: RFC 3339 in UTC, to the millisecond."""
    if value is None:
        return None
    return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# --- drift and lag ----------------------------------------------------------------------------------------------------


def drift_json(row: Any, now: datetime) -> dict[str, Any]:
    """Write a drift: both values with the documents they are in, and the times that bound it."""
    return {
        "code": row.code,
        "class": row.drift_class,
        "severity": row.severity,
        "identifier": row.identifier or None,
        "publisher": row.publisher or None,
        "pointer": row.pointer,
        "livePointer": row.live_pointer,
        "members": redact(row.members),
        "catalog": redact(row.catalog_value),
        "live": redact(row.live_value),
        "catalogUrl": redact(row.catalog_url),
        "liveUrl": redact(row.live_url),
        "catalogDigest": row.catalog_digest,
        "liveDigest": row.live_digest,
        "state": "open" if row.closed_at is None else "closed",
        "openedAt": instant(row.opened_at),
        "confirmedAt": instant(row.confirmed_at),
        "closedAt": instant(row.closed_at),
        "closedBy": row.closed_by,
        "moved": row.moved,
        "lag": lag_json(row, now),
        "observations": {
            "liveOldAt": instant(row.live_old_at),
            "liveNewAt": instant(row.live_new_at),
            "copyOldAt": instant(row.copy_old_at),
            "copyNewAt": instant(row.copy_new_at),
            "liveSeenAt": instant(row.live_seen_at),
        },
    }


def lag_json(row: Any, now: datetime) -> dict[str, Any] | None:
    """Write how long the copy lagged behind; None unless it was the live side that moved.

    A lag that ended because the live side went back lasted until then, though the copy never followed.
    """
    if row.moved != _LIVE:
        return None
    found = lag(row.live_old_at, row.live_new_at, row.copy_old_at, row.copy_new_at, row.closed_at or now)
    return {"atLeastS": found.at_least_s, "atMostS": found.at_most_s, "open": row.closed_at is None}


# --- changes and history ----------------------------------------------------------------------------------------------


def change_json(event: Any) -> dict[str, Any]:
    """Write an event of the feed."""
    return {
        "cursor": event.cursor,
        "kind": event.kind,
        "identifier": event.identifier or None,
        "at": instant(event.at),
        "indexedAt": instant(event.indexed_at),
        "url": redact(event.url),
        "mechanism": event.mechanism,
        "members": redact(list(event.members)),
        "class": event.change_class,
        "silent": event.silent,
        "oldDigest": event.old_digest,
        "newDigest": event.new_digest,
        "reason": event.reason,
    }


def history_json(history: Any) -> dict[str, Any]:
    """Write the states that an entry and its artifact had, newest first, and those they have."""
    listing = history.listing
    return {
        "identifier": listing.identifier,
        "state": "removed" if listing.removed_at else "listed",
        "removedAt": instant(listing.removed_at),
        "entry": _present(listing.url, listing.entry_digest or listing.digest, listing, listing.entry_changed_at),
        "artifact": _present_artifact(history.artifact),
        "items": [version_json(row) for row in history.versions],
    }


def _present(url: str | None, digest: str | None, row: Any, changed_at: datetime | None) -> dict[str, Any]:
    return {
        "url": redact(url),
        "digest": digest,
        "firstSeenAt": instant(row.first_seen_at),
        "changedAt": instant(changed_at or row.changed_at),
        "confirmedAt": instant(row.confirmed_at),
    }


def _present_artifact(row: Any) -> dict[str, Any] | None:
    if row is None:
        return None
    return {
        **_present(row.url, row.digest, row, row.changed_at),
        "kind": row.kind,
        "shape": row.shape,
        "inline": row.inline,
        "signatures": redact(shown_json(row.signatures)),
    }


def version_json(row: Any) -> dict[str, Any]:
    """Write a superseded state and what the next one changed."""
    return {
        "of": row.kind,
        "digest": row.digest,
        "firstSeenAt": instant(row.first_seen_at),
        "lastSeenAt": instant(row.last_seen_at),
        "replacedAt": instant(row.replaced_at),
        "class": row.change_class,
        "silent": row.silent,
        "edits": redact(row.edits),
    }


# --- provenance -------------------------------------------------------------------------------------------------------


def provenance_json(row: Any, sources: Sequence[Any], fetch: Any, now: datetime) -> dict[str, Any]:
    """Write where a listing comes from: the document it is taken from, and everybody who publishes the identifier.

    `row` is the listing with its document, `fetch` the newest look at that document.
    """
    listed = next((source for source in sources if source.state == "listed"), None)
    written = [_source_json(source) for source in sources]
    return {
        "identifier": row.identifier,
        "state": "removed" if row.removed_at else "stale" if row.failing_since else "current",
        "provenance": {
            "url": redact(row.url),
            "mechanism": row.mechanism,
            "finalUrl": redact(row.final_url),
            "redirects": redact(row.hops or []),
            "pointer": listed.pointer if listed else None,
            "firstSeenAt": instant(row.first_seen_at),
            "lastChangedAt": instant(row.changed_at),
            "lastConfirmedAt": instant(row.confirmed_at),
            "removedAt": instant(row.removed_at),
            "staleSince": instant(row.failing_since),
            "staleReason": f"{row.outcome}: {row.reason}" if row.failing_since else None,
            "digest": row.digest,
            "snapshot": row.snapshot,
            "robots": fetch.robots if fetch else None,
            "trust": redact(listed.derived.get("trust")) if listed else None,
            "publisherClaim": _claim(row.publisher, listed) if listed else None,
            "freshness": listing_freshness_json(row, now),
        },
        "sources": written,
        "conflicts": [source for source in written if source["state"] == "conflict"],
        "problems": redact(listed.problems) if listed else [],
    }


def _claim(publisher: str, source: Any) -> PublisherClaim | None:
    return publisher_claim(publisher, host_of(source.url), source.derived.get("trust"))


def _source_json(source: Any) -> dict[str, Any]:
    return {
        "url": redact(source.url),
        "pointer": source.pointer,
        "mechanism": source.mechanism,
        "state": source.state,
        "identifier": source.identifier,
        "version": source.version,
        "firstSeenAt": instant(source.first_seen_at),
        "changedAt": instant(source.changed_at),
        "confirmedAt": instant(source.confirmed_at),
    }


# --- beside results ---------------------------------------------------------------------------------------------------


def annotations_json(found: Any, now: datetime) -> dict[str, Any]:
    """Write what stands beside a result: freshness and provenance always, the rest where there is any."""
    written: dict[str, Any] = {"freshness": annotated_freshness(found, now)}
    document = found.document
    if document is not None:
        written["provenance"] = {
            "url": redact(document.url),
            "mechanism": document.mechanism,
            "lastConfirmedAt": instant(document.confirmed_at),
            "digest": found.digest,
            "snapshot": document.digest,
        }
    claim = claim_of(found)
    if claim is not None:
        written["publisherClaim"] = claim
    if found.drift is not None:
        written["drift"] = {"open": found.drift.count, "worst": found.drift.worst}
    if found.decision is not None:
        written["artifact"] = _annotated_artifact(found, now)
    return written


def claim_of(found: Any) -> PublisherClaim | None:
    """Judge the name of a publisher by where the listing was found; None on the publisher's own domain."""
    document = found.document
    return None if document is None else publisher_claim(found.publisher, host_of(document.url), found.trust)


def annotated_freshness(found: Any, now: datetime) -> dict[str, str]:
    """Write the freshness of what a listing is taken from."""
    return freshness_members(listed_freshness(found, now))


def listed_freshness(found: Any, now: datetime) -> Freshness:
    """Judge the document that a listing is taken from; one without a document was never looked at by ourselves."""
    document = found.document
    if document is None:
        return Freshness(FreshnessState.NEVER_FETCHED)
    return freshness_of(document, now, document.digest)


def _annotated_artifact(found: Any, now: datetime) -> dict[str, Any]:
    written: dict[str, Any] = {"state": artifact_state(found.decision, found.card, found.card_document)}
    if found.card is not None:
        card = found.card
        short = redact(summary(card.kind, card.shape, card.normal))
        written["kind"] = card.kind
        written |= {
            name: short[name][:_LONGEST_NAME] for name in ("name", "version") if isinstance(short.get(name), str)
        }
        signature = best_json(card.signatures)
        if signature is not None:
            written["signature"] = redact(signature)
    if found.card_document is not None:
        document = found.card_document
        written["freshness"] = freshness_members(freshness_of(document, now, document.digest))
    return written


# --- documents, artifacts and origins ---------------------------------------------------------------------------------


def freshness_of(row: Any, now: datetime, digest: str | None) -> Freshness:
    """Judge what is remembered of a document, whose copy is the one of this digest."""
    return judge(
        row.outcome,
        row.reason or "",
        has_copy=digest is not None,
        attempted_at=row.attempted_at,
        confirmed_at=row.confirmed_at,
        fresh_until=row.fresh_until,
        next_fetch_at=row.next_fetch_at,
        failing_since=row.failing_since,
        absent_since=row.absent_since,
        now=now,
    )


def listing_freshness_json(row: Any, now: datetime) -> dict[str, str]:
    """Write the freshness of the document that a listing is taken from."""
    return freshness_members(freshness_of(row, now, row.snapshot))


def document_json(row: Any, now: datetime) -> dict[str, Any]:
    """Write what is remembered of a watched document."""
    return {
        "url": redact(row.url),
        "kind": row.kind,
        "mechanism": row.mechanism,
        "outcome": row.outcome,
        "reason": row.reason,
        "detail": redact(row.detail),
        "status": row.status,
        "finalUrl": redact(row.final_url),
        "redirects": redact(row.hops),
        "digest": row.digest,
        "entries": row.entry_count,
        "attemptedAt": instant(row.attempted_at),
        "confirmedAt": instant(row.confirmed_at),
        "changedAt": instant(row.changed_at),
        "staleSince": instant(row.failing_since),
        "held": row.held,
        "watched": row.watched,
        "nextFetchAt": instant(row.next_fetch_at),
        "freshness": freshness_members(freshness_of(row, now, row.digest)),
        "problems": redact(row.problems),
    }


def artifact_state(decision: str | None, card: Any, document: Any) -> str:
    """Say in a word what became of an artifact: `read`, `inline`, why it is not read, or what the last look found."""
    if decision == "inline":
        return "inline"
    if decision not in (None, "watched"):
        return str(decision)
    if document is None or document.outcome is None:
        return FreshnessState.NEVER_FETCHED
    if document.outcome in SUCCESSES:
        return "unknown_kind" if card is None or card.kind in ("unknown", "not_a_document") else "read"
    return _missed(document)


def _missed(document: Any) -> str:
    if document.status in _CREDENTIAL_STATUSES:
        return "auth_required"
    if document.reason in _NO_DOCUMENT:
        return "not_a_document"
    if document.reason == _TRANSIENT:
        return "unreachable"
    match document.outcome:
        case "withheld" | "catch_all":
            return "not_a_document"
        case "wrong_kind":
            return "unknown_kind"
    return str(document.outcome)


def artifact_json(state: Any, now: datetime) -> dict[str, Any]:
    """Write what is known of what an entry points to, or holds."""
    card, document = state.card, state.document
    written: dict[str, Any] = {
        "state": artifact_state(state.decision, card, document),
        "url": redact(state.url),
        "declaredType": state.derived.get("type") if isinstance(state.derived, Mapping) else None,
    }
    if card is not None:
        written |= card_json(card)
    if document is not None:
        written["freshness"] = freshness_members(freshness_of(document, now, document.digest))
        written["outcome"] = document.outcome
        written["reason"] = document.reason
        written["status"] = document.status
    if card is not None and document is not None and not card.inline:
        written["updatedAtLag"] = _updated_at_lag(state.derived, card, document)
    return written


def _updated_at_lag(derived: Mapping[str, Any], card: Any, document: Any) -> dict[str, Any] | None:
    stated = derived.get("updatedAt")
    found = behind(
        datetime.fromisoformat(stated) if stated else None,
        before_at=card.before_at,
        changed_at=card.changed_at,
        last_modified_at=parse_http_date(document.headers.get("last-modified")),
    )
    if found is None:
        return None
    return {
        "updatedAt": instant(found.updated_at),
        "changedAt": instant(found.changed_at),
        "atLeastS": found.at_least_s,
        "atMostS": found.at_most_s,
        "basis": found.basis,
    }


def card_json(card: Any) -> dict[str, Any]:
    """Write a card as it was last read, in short."""
    return {
        "kind": card.kind,
        "shape": card.shape,
        "digest": card.digest,
        "firstSeenAt": instant(card.first_seen_at),
        "changedAt": instant(card.changed_at),
        "summary": redact(summary(card.kind, card.shape, card.normal)),
        "signature": redact(best_json(card.signatures)),
        "signatures": redact(shown_json(card.signatures)),
        "findings": redact(card.findings),
        "problems": redact(card.problems),
    }


def origin_json(row: Any) -> dict[str, Any]:
    """Write an origin; the numbers of its documents and listings where they were counted."""
    written = {
        "origin": row.origin,
        "managedBy": row.managed_by,
        "active": row.active,
        "visits": row.visits,
        "failures": row.failures,
        "lastVisitAt": instant(row.last_visit_at),
        "lastOutcome": row.last_outcome,
        "robots": row.robots,
        "nextVisitAt": instant(row.next_visit_at),
        "notBefore": instant(row.not_before),
    }
    counts = {name: getattr(row, name) for name in ("documents", "listings") if hasattr(row, name)}
    return {**written, **counts}


def entry_json(row: Any) -> dict[str, Any]:
    """Write an entry that is not listed, and why."""
    problems = list(row.problems)
    if row.state in ("conflict", "duplicate"):
        problems.append(
            {
                "code": f"source.{row.state}",
                "severity": "info",
                "pointer": row.pointer,
                "message": "another source of the same identifier is listed",
                "clause": "ARD 5.1",
            }
        )
    return {
        "identifier": redact(row.identifier),
        "state": row.state,
        "document": redact(row.url),
        "pointer": row.pointer,
        "problems": redact(problems),
    }


def lead_json(row: Any) -> dict[str, Any]:
    """Write a lead and what was decided about it."""
    return {
        "source": redact(row.source),
        "url": redact(row.url),
        "mechanism": row.mechanism,
        "decision": row.decision,
        "firstSeenAt": instant(row.first_seen_at),
        "lastSeenAt": instant(row.last_seen_at),
        "withdrawnAt": instant(row.withdrawn_at),
    }


def origin_page_json(page: Any, now: datetime) -> dict[str, Any]:
    """Write all that is known of an origin; `omitted` says how much of each list was left out."""
    lists: dict[str, list[dict[str, Any]]] = {
        "documents": [document_json(row, now) for row in page.documents],
        "notListed": [entry_json(row) for row in page.not_listed],
        "leads": [lead_json(row) for row in page.leads],
        "artifacts": [{"identifier": item.identifier, **artifact_json(item.state, now)} for item in page.artifacts],
        "drift": [drift_json(row, now) for row in page.drift],
    }
    omitted = {name: max(0, page.counts[name] - len(items)) for name, items in lists.items()}
    return {**origin_json(page.origin), **lists, "omitted": omitted}
