"""One discovery, to be reviewed: the hits of a search, the card behind each as it is now, and what a client would call.

Contract `ardvark.trace.v1`. A hit is not a choice, so both are told. Nothing is recorded.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from config.settings import Settings
from crawler.assembly import make_client
from crawler.clock import Clock
from crawler.rehearsal import Stage, set_stage
from index.choice import Choice, Matched, matched_by, take_interface
from index.disagreement import CardView, Disagreement
from index.documents import ABSENCES, SUCCESSES, DocumentVisit
from index.drift import compare_entry
from index.findings import redact
from index.served import members_of
from index.store import search as store
from index.store.database import Database
from index.store.drift_reads import ArtifactState, artifacts_of
from index.store.inspect import StoredRow, listed_entries
from index.views import instant

CONTRACT = "ardvark.trace.v1"
LABEL = "untrusted_unverified"
DEADLINE = timedelta(seconds=60)
_READ = frozenset({"watched", "inline"})


@dataclass(frozen=True, slots=True)
class Hit:
    """One hit with what is stored behind it."""

    found: store.Hit
    entry: StoredRow
    artifact: ArtifactState

    @property
    def members(self) -> Mapping[str, Any]:
        return members_of(json.loads(self.entry.raw), self.entry.derived)

    @property
    def stored_view(self) -> CardView | None:
        card = self.artifact.card
        return None if card is None else CardView(card.kind, card.shape, card.normal, card.digest, card.legacy)


@dataclass(frozen=True, slots=True)
class Read:
    """What became of reading a card: how, with what outcome and when; `view` is what it says now."""

    how: str
    view: CardView | None = None
    outcome: str | None = None
    reason: str = ""
    status: int | None = None
    at: Any = None


async def trace(
    settings: Settings, clock: Clock, database: Database, question: store.Question, limit: int, bindings: Sequence[str]
) -> dict[str, Any]:
    """Search, read the cards behind the hits anew, and choose."""
    searched_at = clock.now()
    hits = await _hits(database, question, limit)
    ends = asyncio.get_running_loop().time() + DEADLINE.total_seconds()
    async with make_client(settings, clock) as client:
        reads = await _read_cards(await set_stage(settings, clock, client, database), hits, ends)
    choices = [_choose(hit, read, bindings) for hit, read in zip(hits, reads, strict=True)]
    taken = next((place for place, choice in enumerate(choices) if choice.interface is not None), None)
    return {
        "contract": CONTRACT,
        "label": LABEL,
        "query": {"text": question.text, "bindings": list(bindings)},
        "searchedAt": instant(searched_at),
        "hits": [
            _hit_json(place, hit, read, choice, question.text or "", taken)
            for place, (hit, read, choice) in enumerate(zip(hits, reads, choices, strict=True))
        ],
        "choice": None
        if taken is None
        else {
            "rank": taken + 1,
            "identifier": hits[taken].found.identifier,
            "interface": _interface_json(choices[taken]),
        },
    }


async def _hits(database: Database, question: store.Question, limit: int) -> list[Hit]:
    page = await database.read(store.search, question, limit, None)
    entries = await database.read(listed_entries, [hit.identifier for hit in page.hits])
    states = await database.read(artifacts_of, [row.id for row in entries.values()])
    return [
        Hit(hit, entries[hit.identifier], states[entries[hit.identifier].id])
        for hit in page.hits
        if hit.identifier in entries
    ]


# --- reading the cards ------------------------------------------------------------------------------------------------


async def _read_cards(stage: Stage, hits: Sequence[Hit], ends: float) -> list[Read]:
    wanted: dict[str, list[str]] = {}
    for hit in hits:
        if hit.artifact.decision == "watched" and hit.entry.live_origin is not None:
            wanted.setdefault(hit.entry.live_origin, []).append(hit.entry.live_url)
    looks: dict[str, DocumentVisit] = {}
    for origin, urls in wanted.items():
        rehearsed = await stage.visit(origin, only=list(dict.fromkeys(urls)), cards_alone=True, deadline=ends)
        if rehearsed is not None:
            looks.update((look.state.url, look) for look in rehearsed.visits)
    return [_read(stage, hit, looks) for hit in hits]


def _read(stage: Stage, hit: Hit, looks: Mapping[str, DocumentVisit]) -> Read:
    decision = hit.artifact.decision
    if decision == "inline":
        return Read("inline", hit.stored_view)
    look = looks.get(hit.entry.live_url or "")
    if look is None:
        origin = hit.entry.live_origin
        waiting = "resting" if origin in stage.resting else "busy" if origin in stage.busy else "no_answer"
        return Read(waiting if decision == "watched" else decision or "not_a_card")
    state, at = look.state, look.observation.response_at
    if look.artifact is not None:
        read = look.artifact
        view: CardView | None = CardView(read.kind, read.shape, read.normal, read.digest, read.legacy)
    elif state.outcome in SUCCESSES:
        view = hit.stored_view
    else:
        view = CardView(str(state.outcome), "", {}, None) if state.outcome in ABSENCES else None
    return Read("fetched", view, state.outcome, state.reason, state.status, at)


# --- choosing ---------------------------------------------------------------------------------------------------------


def _choose(hit: Hit, read: Read, bindings: Sequence[str]) -> Choice:
    """Choose as a client would who reads the card that is there now."""
    if read.how not in ("fetched", "inline"):
        return Choice(None, read.how, _WHY.get(read.how, "the address is not read"))
    if read.how == "fetched" and read.outcome not in SUCCESSES:
        return Choice(None, "card_not_read", f"{read.outcome}: {read.reason or read.status}")
    if read.view is None or not read.view.normal:
        return Choice(None, "not_a_card", "the document is no card of a kind we know")
    return take_interface(read.view.normal, read.view.legacy_interfaces, bindings)


_WHY = {
    "not_a_card": "its type is not one of a card, so its address is not read",
    "surface_off": "the surface of its card is off for this origin",
    "resting": "the origin asked to be left alone for longer",
    "busy": "the origin is being visited by another process",
    "no_answer": "there was no time left to ask",
}


def _hit_json(place: int, hit: Hit, read: Read, choice: Choice, query: str, taken: int | None) -> dict[str, Any]:
    members, stored = hit.members, hit.stored_view
    matched = matched_by(query, members, stored.normal if stored is not None else {})
    view = read.view
    found = compare_entry(members, hit.entry.derived["type"], view) if view is not None else []
    return {
        "rank": place + 1,
        "score": hit.found.score,
        "identifier": hit.found.identifier,
        "displayName": redact(hit.entry.derived.get("displayName")),
        "type": hit.entry.derived.get("type"),
        "cardUrl": redact(hit.entry.live_url or hit.artifact.url or hit.entry.derived.get("url")),
        "matched": _matched_json(matched),
        "card": {
            "read": read.how,
            "outcome": read.outcome,
            "reason": read.reason,
            "status": read.status,
            "readAt": instant(read.at),
            "kind": view.kind if view is not None else None,
            "shape": view.shape if view is not None else None,
            "digest": view.digest if view is not None else None,
            "storedDigest": stored.digest if stored is not None else None,
        },
        "disagreements": [_disagreement_json(item) for item in found],
        "interface": _interface_json(choice),
        "passedOver": _passed_over(place, choice, taken),
    }


def _matched_json(matched: Matched) -> dict[str, Any]:
    found: dict[str, Any] = redact(
        {"words": list(matched.words), "tags": list(matched.tags), "skill": matched.skill and dict(matched.skill)}
    )
    return found


def _disagreement_json(item: Disagreement) -> dict[str, Any]:
    return {
        "code": item.code,
        "class": item.kind,
        "severity": item.severity,
        "drift": item.is_drift,
        "pointer": item.pointer,
        "livePointer": item.live_pointer,
        "catalog": redact(item.catalog),
        "live": redact(item.live),
    }


def _interface_json(choice: Choice) -> dict[str, Any] | None:
    address = choice.interface
    if address is None:
        return None
    return {
        "url": redact(address.url),
        "protocolBinding": address.binding,
        "protocolVersions": list(address.versions),
        "pointer": address.pointer,
    }


def _passed_over(place: int, choice: Choice, taken: int | None) -> dict[str, str] | None:
    if place == taken:
        return None
    if choice.interface is not None:
        return {"code": "ranked_lower", "detail": "it could be called, but a hit before it is taken"}
    return {"code": choice.reason, "detail": choice.detail}
