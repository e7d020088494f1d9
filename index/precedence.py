"""Which of several sources of one identifier is listed. Pure.

The publisher's own origin comes first, then the mechanism that led to the document, then age.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from index.records import Entry, Standing
from index.trust import Relation, relation
from index.urls import host_of

_OF_RELATION = {Relation.EXACT: 0, Relation.SUBDOMAIN: 0, Relation.PARENT: 100, Relation.OTHER: 200}


def source_rank(publisher: str | None, document_url: str, document_rank: int) -> int:
    """Rank an entry by where it was found; the lower is listed."""
    return _OF_RELATION[relation(publisher or "", host_of(document_url))] + document_rank


@dataclass(frozen=True, slots=True)
class Found:
    """An entry and the document it was found in."""

    entry: Entry
    document_url: str
    document_rank: int


def judge(found: Sequence[Found]) -> list[str]:
    """Give the state of each entry, in order: `listed`, `conflict`, `duplicate`, or its standing in its document."""
    best: dict[str, int] = {}
    for index, item in enumerate(found):
        key = item.entry.key
        if item.entry.standing is not Standing.CANDIDATE or key is None:
            continue
        if key not in best or _rank(item) < _rank(found[best[key]]):
            best[key] = index
    states = []
    for index, item in enumerate(found):
        if item.entry.standing is not Standing.CANDIDATE or item.entry.key is None:
            states.append(str(item.entry.standing))
        elif best[item.entry.key] == index:
            states.append("listed")
        else:
            same = found[best[item.entry.key]].entry.value == item.entry.value
            states.append("duplicate" if same else "conflict")
    return states


def _rank(item: Found) -> int:
    return source_rank(item.entry.publisher, item.document_url, item.document_rank)
