"""A visit to chosen documents of an origin: the others are as if nothing were due on them. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from crawler.discover import Target
from index.documents import DocumentKind, DocumentState
from index.records import RANK_OF_MECHANISM, Lead, Mechanism

_NEVER = timedelta(days=3650)
# The others have no time of their own at which they are due.
_SCHEDULED = frozenset({DocumentKind.MANIFEST, DocumentKind.PAGE, DocumentKind.ARTIFACT})


@dataclass(frozen=True, slots=True)
class Selection:
    """What is looked at: all that is known as a visit shall see it, the chosen documents, and what the others wait for.

    A card that changed has the catalogs of its origin looked at again all the same, so that drift is judged on both.
    """

    states: Mapping[str, DocumentState]
    targets: tuple[Target, ...]
    waiting: datetime | None

    def next_look_at(self, reported: datetime | None) -> datetime | None:
        """Give when the origin is due, the documents that were left alone included."""
        return min((at for at in (self.waiting, reported) if at is not None), default=None)


def select_documents(states: Mapping[str, DocumentState], urls: Iterable[str], now: datetime) -> Selection:
    """Choose documents by URL; one that is not known yet is looked at as an artifact."""
    chosen = dict.fromkeys(urls)
    others = {url: state for url, state in states.items() if url not in chosen and state.kind in _SCHEDULED}
    left_alone = {url: replace(state, next_fetch_at=now + _NEVER) for url, state in others.items()}
    due = {url: replace(states[url], next_fetch_at=None) for url in chosen if url in states}
    waiting = min((state.next_fetch_at or now for state in others.values()), default=None)
    targets = tuple(_target(url, states.get(url)) for url in chosen)
    return Selection({**states, **left_alone, **due}, targets, waiting)


def _target(url: str, state: DocumentState | None) -> Target:
    if state is None:
        return Target(DocumentKind.ARTIFACT, Lead(url, Mechanism.ENTRY, RANK_OF_MECHANISM[Mechanism.ENTRY]))
    lead = Lead(url, state.mechanism, state.rank, depth=state.depth, ancestors=state.ancestors)
    return Target(state.kind, lead)
