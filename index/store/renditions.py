"""Cards compared with their renditions for older clients; nothing but drift comes of that."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection

from index.drift import CardView, compare_renditions
from index.renditions import Rendition
from index.store.changes import append_changes
from index.store.documents import document_id
from index.store.drift_rows import Side, Verdict, reconcile
from index.store.drifts import load_lives
from index.store.tables import key_of


def settle_renditions(connection: Connection, found: Sequence[Rendition], now: datetime) -> None:
    """Open, confirm and close what cards and their renditions disagree about."""
    lives = load_lives(connection, [document_id(item.url) for item in found])
    verdicts = []
    for item in {item.url: item for item in found}.values():
        live = lives.get(document_id(item.url))
        # What is gone or private, or was written meanwhile, is not the card that was compared.
        if live is None or live.view.kind != item.card.kind or live.view.digest != item.kept_digest:
            continue
        card = item.card
        other = CardView(card.kind, card.shape, card.normal, card.digest, card.legacy)
        # A rendition is no document, so no look at the card can be taken for a sight of it.
        key = key_of("rendition", item.url)
        copy = Side(key, key, item.url, card.digest, item.at)
        verdicts.append(Verdict(copy, live, compare_renditions(other, live.view) if item.differs else [], True, False))
    append_changes(connection, reconcile(connection, verdicts, now), now)
