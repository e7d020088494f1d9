"""What became of the signatures of a card, as it is kept and shown. Pure.

Apart from `index/signatures.py`, which needs a library for it that whoever only reads does without.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

MOST_SIGNATURES = 8


class SignatureOutcome(StrEnum):
    """What became of a signature, the most telling first: a card has the outcome of its best one."""

    VALID = "valid"
    INVALID = "invalid"
    KEY_UNAVAILABLE = "key_unavailable"
    UNSUPPORTED_ALG = "unsupported_alg"
    MALFORMED = "malformed"
    UNSIGNED = "unsigned"


_OUTCOMES = list(SignatureOutcome)


def best_json(verdicts: Sequence[Mapping[str, Any]] | None) -> dict[str, Any] | None:
    """Write in short what became of a card's signatures, by the best of them; None where nobody looked.

    A valid signature proves that a key was held, not who held it.
    """
    if verdicts is None:
        return None
    if not verdicts:
        return {"outcome": SignatureOutcome.UNSIGNED.value}
    best = min(verdicts, key=lambda verdict: _OUTCOMES.index(SignatureOutcome(verdict["outcome"])))
    return {name: best[name] for name in ("outcome", "profile", "kid", "jkuHost") if name in best}


def shown_json(verdicts: Sequence[Mapping[str, Any]] | None) -> list[dict[str, Any]] | None:
    """Write what became of each signature; None where nobody looked."""
    if verdicts is None:
        return None
    return [{name: member for name, member in verdict.items() if name != "known"} for verdict in verdicts]
