"""Members that change at every look: counters, timestamps, texts with a running figure. Pure.

They are told in two ways. A figure that moves within the same words is one at first sight. Anything else is learnt for
each document: what changed whenever the document changed, at least three times in a row, until it stays the same three
times in a row. What a caller relies on, such as addresses, identities, security and modes, is never volatile, however
often it changes.

Paths name a list's items by their identity, so that one skill's counter hides nothing of another; items without
identity are `*`.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from index.change_classes import is_item
from index.diff import RESIGNED, ChangeClass, Edit, Identity, Operation, document_identity
from index.edits import Key, Place

_ENOUGH = 3
_MOST_PATHS = 100
_LONGEST_PATH = 500
_MOST_LOOKS = 1000
_LONGEST_TEXT = 20_000

# Members that a caller relies on, wherever they stand; all below them counts as well.
_STRUCTURAL = frozenset(
    """
    $schema additionalInterfaces agentType agent_type artifact authRequired authSchemes authentication capabilities
    defaultInputModes defaultOutputModes digest endpoint endpoints headers id identifier identity in inputModes
    inputSchema input_formats interfaces legacyInterfaces location mcp_version name organization outputModes
    outputSchema output_formats packages parameters params preferredTransport protocol protocolBinding protocolVersion
    protocolVersions provider publisher rate_limits remotes requestsPerMinute requests_per_minute security
    securityRequirements securitySchemes server_name server_version signatures supportedInterfaces
    supportedProtocolVersions supportsAuthenticatedExtendedCard tags tenant transport trustAnchor trustManifest
    trust_anchor type uri url version
    """.split()
)
# Lists whose items come and go as a whole; within an item, its own members decide.
_LISTS = frozenset({"skills", "tools", "entries", "prompts", "resources"})
_CARDS = frozenset({"data", "card"})
_GRAVE = frozenset({ChangeClass.BREAKING, ChangeClass.SECURITY})

_MONTHS = "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
_MONTHS += "nov(?:ember)?|dec(?:ember)?"
_DAYS = "mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:rs(?:day)?)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?"
_TIMESTAMP = re.compile(
    r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,12})?)?(?:[Zz]|[+-]\d{2}:?\d{2})?", re.ASCII
)
# A month or a day of the week is part of a date only beside a number; so the word "may" is left alone.
_DATE_WORD = re.compile(
    rf"(?:\b(?:{_DAYS})\b\.?,? )?(?:\b(?:{_MONTHS})\b\.? #|#(?: |-)(?:{_MONTHS})\b\.?,?)", re.IGNORECASE
)
_FIGURE = re.compile(r"\d+(?:[.,:'\u00a0\u202f]\d+)*")


@dataclass(frozen=True, slots=True)
class Churn:
    """How often a member changed, and how often the document did since the member was first seen to change."""

    changes: int
    looks: int


def learn(known: Mapping[str, Churn], edits: Sequence[Edit]) -> dict[str, Churn]:
    """Add one look at a document whose bytes changed; a member that stays the same counts from the start again."""
    moved = dict.fromkeys(edit.path for edit in edits if _can_be_learnt(edit))
    learnt = {}
    for path, churn in known.items():
        if path in moved:
            steady = churn.changes == churn.looks
            times = min(churn.changes + 1, _MOST_LOOKS) if steady else 1
            learnt[path] = Churn(times, times)
        elif churn.looks + 1 - churn.changes < _ENOUGH:
            learnt[path] = Churn(churn.changes, churn.looks + 1)
    for path in moved:
        if path not in known:
            learnt[path] = Churn(1, 1)
    return _bounded(learnt)


def volatile(known: Mapping[str, Churn]) -> frozenset[str]:
    """Name the paths that changed at every one of the last looks, and often enough to tell."""
    return frozenset(path for path, churn in known.items() if _ENOUGH <= churn.changes == churn.looks)


def settle(edits: Sequence[Edit], known: Mapping[str, Churn]) -> tuple[list[Edit], list[Edit]]:
    """Part edits into those that count and those of volatile members, each in their order."""
    paths = volatile(known)
    figures = _moved_figures(edits)
    counting: list[Edit] = []
    passing: list[Edit] = []
    for edit in edits:
        fleeting = edit.note == RESIGNED or (
            edit.kind not in _GRAVE and not is_structural(edit.path) and _is_fleeting(edit, paths, figures)
        )
        (passing if fleeting else counting).append(edit)
    return counting, passing


def _is_fleeting(edit: Edit, paths: frozenset[str], figures: Counter[tuple[str, str]]) -> bool:
    if edit.operation is Operation.REPLACE and is_live_figure(edit.old, edit.new):
        return True
    if _is_below(edit.path, paths):
        return True
    words = _words(edit.new if edit.operation is Operation.ADD else edit.old)
    return edit.operation is not Operation.REPLACE and words is not None and figures[edit.path, words] > 0


def _moved_figures(edits: Sequence[Edit]) -> Counter[tuple[str, str]]:
    """Find texts that left a list and came back with another figure."""
    found: dict[Operation, Counter[tuple[str, str]]] = {operation: Counter() for operation in Operation}
    for edit in edits:
        words = _words(edit.new if edit.operation is Operation.ADD else edit.old)
        if words is not None and is_item(edit):
            found[edit.operation][edit.path, words] += 1
    gone, come = found[Operation.REMOVE], found[Operation.ADD]
    # More on one side than on the other: which of them merely moved cannot be told, so all of them count.
    return Counter({place: times for place, times in gone.items() if come[place] == times})


def _can_be_learnt(edit: Edit) -> bool:
    return (
        edit.kind is not ChangeClass.ORDER_ONLY
        and edit.kind not in _GRAVE
        and len(edit.path) <= _LONGEST_PATH
        and not is_structural(edit.path)
    )


def _is_below(path: str, paths: frozenset[str]) -> bool:
    if not paths:
        return False
    while path:
        if path in paths:
            return True
        path = path.rpartition("/")[0]
    return False


def without_volatile(value: Any, known: Mapping[str, Churn], identity: Identity = document_identity) -> Any:
    """Copy a value without its volatile members, for comparing content; `identity` must be that of the edits learnt."""
    paths = volatile(known)
    above = {path[:end] for path in paths for end, sign in enumerate(path) if sign == "/"}
    return _without(value, Place(), paths, above, identity) if paths else value


def _without(value: Any, place: Place, paths: frozenset[str], above: set[str], identity: Identity) -> Any:
    if place.path not in above or place.is_too_far:
        return value
    if isinstance(value, Mapping):
        steps = [(name, place.member(name), member) for name, member in value.items()]
        return {
            name: _without(member, step, paths, above, identity)
            for name, step, member in steps
            if step.path not in paths
        }
    if isinstance(value, list | tuple):
        key = identity(place.members)
        items = [(place.item(index, item, _key(key, item)), item) for index, item in enumerate(value)]
        return [_without(item, step, paths, above, identity) for step, item in items if step.path not in paths]
    return value


def _key(key: Any, item: Any) -> Key | None:
    found: Key | None = key(item) if key is not None else None
    return found


# --- what can be volatile ---------------------------------------------------------------------------------------------


def is_structural(pointer: str) -> bool:
    """Tell a member that callers rely on from a descriptive or unknown one, by its pointer or path."""
    steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
    named = next_named = False
    for step in steps:
        named = next_named
        if not named and step in _STRUCTURAL:
            return True
        next_named = not named and step in _LISTS
    return not steps or named or next_named or steps[-1] in _CARDS


def is_live_figure(old: Any, new: Any) -> bool:
    """Tell a figure that runs, from a change that means something: numbers, times, texts alike but for these.

    A text with an address in it is none: its digits may lead elsewhere.
    """
    if _is_number(old) and _is_number(new):
        return True
    words = _words(old)
    return words is not None and words == _words(new)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _words(value: Any) -> str | None:
    """Give a text with its figures and dates blotted out; None for one without any."""
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT or "://" in value:
        return None
    found = _DATE_WORD.sub("#", _FIGURE.sub("#", _TIMESTAMP.sub("#", value)))
    return found if found != value and "#" in found else None


# --- storage ----------------------------------------------------------------------------------------------------------


def to_json(known: Mapping[str, Churn]) -> dict[str, list[int]]:
    """Lay out what was learnt as JSON."""
    return {path: [churn.changes, churn.looks] for path, churn in _bounded(known).items()}


def from_json(stored: Any) -> dict[str, Churn]:
    """Read what was stored; what is not in order is as if never learnt."""
    if not isinstance(stored, Mapping):
        return {}
    found = {}
    for path, counts in stored.items():
        if isinstance(counts, list) and len(counts) == 2 and all(type(count) is int for count in counts):
            changes, looks = counts
            if 0 < changes <= looks < changes + _ENOUGH:
                found[path] = Churn(changes, looks)
    return _bounded(found)


def _bounded(known: Mapping[str, Churn]) -> dict[str, Churn]:
    """Keep the steadiest; new paths of a hostile document cannot push out what is known."""
    if len(known) <= _MOST_PATHS:
        return dict(known)
    ranked = sorted(known, key=lambda path: (-known[path].changes, known[path].looks))
    kept = set(ranked[:_MOST_PATHS])
    return {path: churn for path, churn in known.items() if path in kept}
