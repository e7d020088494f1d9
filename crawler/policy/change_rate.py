"""How often a document changes, believed from looks that show one bit each. Pure; time is in days.

The belief about the rate is a Gamma distribution, two numbers a document. A look that shows no change adds to the time
in which nothing happened, whether it brought a 304 or the same content; one that shows a change adds a change and the
part of the gap that it took. Looks that show nothing, such as failures and absences, never come here: the next success
compares over the whole gap.
"""

from dataclasses import dataclass
from math import expm1, log
from typing import Self

_HALF_LIFE = 45.0
_LIFE = _HALF_LIFE / log(2)
# Past this many expected changes in one gap the time that the last one took no longer depends on the gap.
_MANY = 50.0
_FEW = 1e-4


@dataclass(frozen=True, slots=True)
class Belief:
    """So many changes in so many days; what a document begins with is worth half a change in two days."""

    changes: float = 0.5
    days: float = 2.0

    @property
    def rate(self) -> float:
        """The expected number of changes a day."""
        return self.changes / self.days

    def after_unchanged(self, gap: float) -> Self:
        """Learn that nothing changed since the last success."""
        return self._after(gap, 0, gap)

    def after_changed(self, gap: float, age: float | None = None) -> Self:
        """Learn that something changed since the last success, at a known `age` or at any time in the gap."""
        return self._after(gap, 1, _expected_age(self.rate, gap) if age is None else min(max(age, 0.0), gap))

    def _after(self, gap: float, changes: int, days: float) -> Self:
        """Forget towards the prior, so that a document may change its ways, and add what a gap showed.

        The gap fades as it passes, so that one long look and many short ones teach the same.
        """
        if gap <= 0:
            return self
        kept = 0.5 ** (gap / _HALF_LIFE)
        fresh = _LIFE * (1 - kept) / gap
        prior = type(self)()
        return type(self)(
            prior.changes + (self.changes - prior.changes) * kept + changes,
            prior.days + (self.days - prior.days) * kept + days * fresh,
        )


def _expected_age(rate: float, gap: float) -> float:
    """Give the expected time between changes at a rate, within a gap that saw at least one: the E step of EM."""
    expected = rate * gap
    if expected > _MANY:
        return 1 / rate
    if expected < _FEW:
        return gap * (0.5 - expected / 12)
    return 1 / rate - gap / expm1(expected)
