"""What a probe needs of a server card that is held, and what is kept of its outcome: drift, and nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, select

from index.entry_drift import MCP_KINDS
from index.store.changes import append_changes
from index.store.documents import document_id
from index.store.drift_rows import Live, reconcile
from index.store.drifts import load_lives
from index.store.endpoints import Leading, judge_endpoint
from index.store.listings import lock_listings
from index.store.tables import drifts, entries, listings, origins, storable
from index.urls import BadUrl, canonical_url

_MOST_IDENTIFIERS = 20


@dataclass(frozen=True, slots=True)
class HeldCard:
    """A server card that is held, the origin that published it, and the listed entries that lead to it."""

    live: Live
    origin: str
    leading: Leading


def find_held(connection: Connection, target: str) -> HeldCard | None:
    """Find a server card by its URL or by the identifier of a listed entry; None where no such card is held now."""
    key = _of_url(target) if "://" in target else _of_identifier(connection, target)
    return None if key is None else held_card(connection, key)


def held_card(connection: Connection, key: int) -> HeldCard | None:
    """Give a server card with what leads to it."""
    live = load_lives(connection, [key]).get(key)
    if live is None or not live.is_there or live.view.kind not in MCP_KINDS:
        return None
    origin = connection.execute(select(origins.c.origin).where(origins.c.id == live.origin_id)).scalar_one()
    leading = (
        select(listings.c.identifier, listings.c.publisher)
        .join(entries, entries.c.id == listings.c.entry_id)
        .where(entries.c.artifact_id == key, listings.c.removed_at.is_(None))
        .order_by(listings.c.identifier)
        .limit(_MOST_IDENTIFIERS)
    )
    rows = connection.execute(leading).all()
    publisher = rows[0].publisher if rows else ""
    return HeldCard(live, origin, Leading([row.identifier for row in rows], publisher or ""))


def _of_url(target: str) -> int | None:
    try:
        return document_id(canonical_url(target))
    except BadUrl:
        return None


def _of_identifier(connection: Connection, target: str) -> int | None:
    query = (
        select(entries.c.artifact_id)
        .join(listings, listings.c.entry_id == entries.c.id)
        .where(listings.c.identifier == storable(target), listings.c.removed_at.is_(None))
    )
    found: int | None = connection.execute(query).scalar()
    return found


def settle_probe(
    connection: Connection, key: int, url: str, tools: Sequence[str], seen_at: datetime, now: datetime
) -> Sequence[Row[Any]]:
    """Compare a card as it is held now with the tools at its endpoint; gives its drift of this kind, ended one too.

    Waits for whoever probes the same card or brings a new one, so that nothing is opened twice or by an old card.
    """
    lock_listings(connection)
    card = held_card(connection, key)
    if card is None:
        return []
    verdict = judge_endpoint(card.live, url, tools, seen_at, card.leading, card_is_new=False)
    append_changes(connection, reconcile(connection, [verdict], now), now)
    mine = (drifts.c.catalog_id == verdict.copy.key) & (drifts.c.live_id == verdict.live.key)
    touched = mine & (drifts.c.closed_at.is_(None) | (drifts.c.closed_at == now))
    return connection.execute(select(drifts).where(touched).order_by(drifts.c.id)).all()
