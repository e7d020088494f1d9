"""Server cards compared with what their endpoints were seen to serve; what a card says is never touched by that."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, select

from index.drift import CardView
from index.offered import canonical
from index.store.artifacts import card_copy
from index.store.drift_rows import Live, Side, Verdict
from index.store.engines import chunks
from index.store.tables import drifts, key_of
from index.tool_drift import compare_tools

_CODE = "drift.endpoint_tools"


@dataclass(frozen=True, slots=True)
class Leading:
    """The listed entries that lead to a card, and the publisher that they name."""

    identifiers: Sequence[str] = ()
    publisher: str = ""


def judge_endpoint(
    card: Live, url: str, tools: Sequence[str], seen_at: datetime, leading: Leading, *, card_is_new: bool
) -> Verdict:
    """Compare a card with all the tools that were seen at its endpoint, for each entry that leads to the card."""
    is_advertised = any(canonical(remote["url"]) == canonical(url) for remote in card.view.normal.get("remotes", ()))
    found = compare_tools(card.view, tools) if is_advertised else []
    copy = Side(
        card_copy(card.key), card.document, card.url, card.view.digest, card.seen_at, publisher=leading.publisher
    )
    verdict = Verdict(copy, _endpoint(card, url, seen_at), found, card_is_new, not card_is_new)
    if found and leading.identifiers:
        verdict.found, verdict.names = found * len(leading.identifiers), leading.identifiers
    return verdict


def _endpoint(card: Live, url: str, seen_at: datetime) -> Live:
    # An endpoint is no document, so no look at one can be taken for another sight of it.
    key = key_of("endpoint", url)
    return Live(key, CardView("mcp.endpoint", "", {}, None), key, url, seen_at, seen_at, card.origin_id, "")


def judge_endpoints(connection: Connection, cards: Mapping[int, Live], changed: Collection[int]) -> list[Verdict]:
    """Compare cards that changed with what was last seen at their endpoints, where that disagreed."""
    mine = {card_copy(key): cards[key] for key in changed if key in cards and cards[key].is_there}
    standing: dict[tuple[int, str], list[Row[Any]]] = {}
    for chunk in chunks(mine):
        query = select(drifts).where(
            drifts.c.catalog_id.in_(chunk), drifts.c.code == _CODE, drifts.c.closed_at.is_(None)
        )
        for row in connection.execute(query.order_by(drifts.c.id)):
            standing.setdefault((row.catalog_id, row.live_url), []).append(row)
    return [
        judge_endpoint(
            mine[copy],
            url,
            rows[0].live_value["tools"],
            rows[0].live_seen_at,
            Leading([row.identifier for row in rows if row.identifier is not None], rows[0].publisher),
            card_is_new=True,
        )
        for (copy, url), rows in standing.items()
    ]
