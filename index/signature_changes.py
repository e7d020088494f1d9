"""What became of the signatures of a card between two looks, and how much that matters. Pure.

Who signs is part of the card and compared with it (`index/diff.py`). Here it is whether that verifies, which changes
with the keys as well as with the card.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from index.change_classes import VERDICT_CLASSES
from index.edits import VERDICT, Edit, Operation
from index.verdicts import MOST_SIGNATURES, SignatureOutcome

_Signer = tuple[str, str, str]
_Verdicts = Sequence[Mapping[str, Any]]
_UNTOLD = SignatureOutcome.KEY_UNAVAILABLE
_KNOWN = "known"
_ORDER = list(SignatureOutcome)


def remembered(old: _Verdicts | None, new: _Verdicts) -> list[dict[str, Any]]:
    """Keep beside a verdict that tells nothing the last one on the same signer that told something."""
    before = _by_signer(old or ())
    found = []
    for verdict in new:
        known = _told(before.get(_signer(verdict), {}))
        untold = verdict.get("outcome") == _UNTOLD and known
        found.append({**verdict, _KNOWN: known} if untold else dict(verdict))
    return found


def diff_verdicts(old: _Verdicts | None, new: _Verdicts) -> list[Edit]:
    """List and class the changes of verdicts on signers that were judged before; none when nobody looked."""
    before, after = _by_signer(old or ()), _by_signer(new)
    edits = []
    for signer, was in before.items():
        now = after.get(signer) or _unread(new)
        if now is None:
            continue  # the signature is gone, which the card itself shows
        outcome, found = str(was["outcome"]), str(now["outcome"])
        # What was known before an outage counts too: a signature must not turn bad behind one.
        past = next((at for at in (_told(was), outcome) if (at, found) in VERDICT_CLASSES), None)
        if past is not None and outcome != found:
            kind = VERDICT_CLASSES[past, found]
            edits.append(Edit(Operation.REPLACE, now["pointer"], past, found, kind, VERDICT))
    return edits


def _told(verdict: Mapping[str, Any]) -> str:
    """Give the outcome that was known last: the present one, unless it tells nothing."""
    outcome = str(verdict.get("outcome", ""))
    return str(verdict.get(_KNOWN, "")) if outcome == _UNTOLD else outcome


def _unread(verdicts: _Verdicts) -> Mapping[str, Any] | None:
    """Give what stands for a signer that is not judged any more though the card may name it: the card, or the bound."""
    for verdict in verdicts:
        if not verdict.get("kid"):
            return {**verdict, "outcome": SignatureOutcome.MALFORMED.value}
    if len(verdicts) == MOST_SIGNATURES:
        return {"pointer": "/signatures", "outcome": SignatureOutcome.MALFORMED.value}
    return None


def _by_signer(verdicts: _Verdicts) -> dict[_Signer, Mapping[str, Any]]:
    """Give the best verdict on each signer."""
    found: dict[_Signer, Mapping[str, Any]] = {}
    for verdict in sorted(verdicts, key=lambda item: _ORDER.index(SignatureOutcome(item["outcome"])), reverse=True):
        if verdict.get("kid"):
            found[_signer(verdict)] = verdict
    return found


def _signer(verdict: Mapping[str, Any]) -> _Signer:
    return str(verdict.get("alg", "")), str(verdict.get("kid", "")), str(verdict.get("jkuHost", ""))
