"""What one visit looks at, and in which order: probes, known documents that are due, and what turns up on the way.

Bounded in number. The places of a card are tried one after the other, so that a card found ends the search for it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from crawler.clock import Clock
from crawler.discover import ROW_MECHANISMS, Target
from index.documents import ABSENCES, DocumentKind, DocumentState
from index.records import Lead, Mechanism

_WATCHED = frozenset({DocumentKind.MANIFEST, DocumentKind.PAGE, DocumentKind.ARTIFACT})


@dataclass(slots=True)
class Agenda:
    """The documents of an origin that a visit has to look at.

    `states` are those known, as the visit keeps them; with `force` they are due whatever their time. `excess` are due
    ones past the bounds.
    """

    states: Mapping[str, DocumentState]
    clock: Clock
    force: bool
    max_documents: int
    max_artifacts: int
    queue: list[Target] = field(default_factory=list)
    excess: list[DocumentState] = field(default_factory=list)
    _planned: set[str] = field(default_factory=set)
    _looked_at: set[str] = field(default_factory=set)
    _artifacts: int = 0
    # Artifacts that are planned for no other reason than that entries name them.
    _named: set[str] = field(default_factory=set)
    _rows: list[list[Target]] = field(default_factory=list)
    _is_unsorted: bool = False
    _has_looked_again: bool = False

    def plan(
        self, targets: Iterable[Target], rows: list[list[Target]], is_wanted: Callable[[DocumentState], bool]
    ) -> None:
        """Begin with these targets and rows of places, and with the known documents that are due and wanted."""
        for target in targets:
            self.enqueue(target)
        places = {target.lead.url for row in rows for target in row}
        self._rows = rows
        self.advance_rows()
        known = [state for state in self.states.values() if state.kind in _WATCHED]
        # Where there are too many, those that brought something stay.
        for state in sorted(known, key=lambda state: (state.digest is None, state.rank, state.url)):
            # Where a row has come to an end, only what is further on and brought something is of interest.
            in_row = state.mechanism in ROW_MECHANISMS
            if (in_row and (state.digest is None or state.url not in places)) or not is_wanted(state):
                continue
            if not self.enqueue(_target(state)) and self.is_due(state):
                self.excess.append(state)

    def enqueue(self, target: Target) -> bool:
        """Plan to look at a document; false when the origin has as many as we watch."""
        url = target.lead.url
        if url in self._named and target.kind is DocumentKind.MANIFEST:
            return self._read_as_catalog(target)
        if url in self._planned:
            return True
        if target.kind is DocumentKind.ARTIFACT:
            if self._artifacts >= self.max_artifacts:
                return False
            self._artifacts += 1
            if target.lead.mechanism is Mechanism.ENTRY:
                self._named.add(url)
        elif len(self._planned) - self._artifacts >= self.max_documents:
            return False
        self._planned.add(url)
        state = self.states.get(url)
        if state is None or self.force or self.is_due(state):
            self._join(target)
        return True

    def _read_as_catalog(self, target: Target) -> bool:
        """Read what an entry names as the catalog that something else says it is, be it already looked at as a card."""
        if len(self._planned) - self._artifacts >= self.max_documents:
            return False
        self._artifacts -= 1
        self._named.remove(target.lead.url)
        self.take(target.lead.url)
        self._join(target)
        return True

    def _join(self, target: Target) -> None:
        self.queue.append(target)
        self._is_unsorted = True

    def advance_rows(self) -> None:
        """Go on along the places of a card: what is not at one of them may be at the next.

        An outage or a refusal says nothing about the other places, so a row waits there.
        """
        for row in self._rows:
            while row:
                state = self.states.get(row[0].lead.url)
                seen = row[0].lead.url in self._looked_at
                if not seen and (state is None or self.force or self.is_due(state)):
                    self.enqueue(row[0])
                    break
                if state is None or state.outcome not in ABSENCES:
                    break
                row.pop(0)

    def look_again(self) -> None:
        """See once what the catalogs say now, so that drift is judged on two sides of one visit."""
        if self._has_looked_again:
            return
        self._has_looked_again = True
        waiting = {target.lead.url for target in self.queue}
        for state in self.states.values():
            if state.entry_count and state.url not in self._looked_at and state.url not in waiting:
                self._join(_target(state))

    def hasten(self, states: Iterable[DocumentState]) -> None:
        """Look at known documents whether they are due or not."""
        waiting = {target.lead.url for target in self.queue}
        for state in states:
            if state.url not in waiting:
                self._join(_target(state))

    def first(self, *, by_turn: bool) -> Target:
        """Give what is looked at next: the most telling first, or whose turn it is where a visit gets few looks."""
        if self._is_unsorted or by_turn:
            self.queue.sort(key=lambda target: self._urgency(target, by_turn=by_turn))
            self._is_unsorted = False
        return self.queue[0]

    def is_planned(self, url: str) -> bool:
        """Tell whether an address was or will be looked at in this visit, or known not to be due."""
        return url in self._planned

    def take(self, url: str) -> None:
        """Take a target out of the queue that is looked at out of turn; the first stays, for it is under way."""
        self.queue[1:] = [target for target in self.queue[1:] if target.lead.url != url]

    def saw(self, url: str) -> None:
        """Note that a document was looked at, before what it leads to is taken up."""
        self._looked_at.add(url)

    def done(self) -> None:
        """Take the first target off the agenda; what joined meanwhile stands behind it."""
        self.queue.pop(0)

    def _urgency(self, target: Target, *, by_turn: bool) -> tuple[Any, ...]:
        state = self.states.get(target.lead.url)
        seen_at: datetime | None = state.attempted_at if state is not None and by_turn else None
        # What fails must not keep the others from their turn where only a few are tried.
        failures = 0 if state is None else state.failures
        return (seen_at is not None, seen_at, failures, target.lead.rank, target.lead.url)

    def is_due(self, state: DocumentState) -> bool:
        """Tell whether a known document has come to its time."""
        return state.next_fetch_at is None or state.next_fetch_at <= self.clock.now()


def _target(state: DocumentState) -> Target:
    lead = Lead(state.url, state.mechanism, state.rank, depth=state.depth, ancestors=state.ancestors)
    return Target(state.kind, lead)
