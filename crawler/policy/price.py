"""What a look at a document is worth, and what looks cost. Pure; time is in days.

A copy that misses n changes costs as much as the n-th harmonic number, so that the first one weighs most and no
document is given up. With C(t) the expected cost at age t, a look at age T is worth w * (T * C(T) - the integral of C
up to T). Everything is looked at when its worth reaches one price for all, and the price is whatever the budget makes
it.

In parts the worth is w * integral of t * C'(t). For a known rate r, C' is (1 - exp(-r * t)) / t; where the belief about
the rate is a Gamma distribution the exponential becomes (b / (b + t)) ** a, and the integral has a closed form.
"""

from math import exp, expm1, log1p, sqrt

from crawler.policy.change_rate import Belief

# Below this the closed form loses digits that the first terms of its series still have.
_SMALL = 1e-3
_LINEAR = 1e-12
_ROUNDS = 60
_PRECISE = 1e-9
# Intervals follow the price only as documents fall due; a price that moves much faster than that swings.
_GAIN = 0.5
_LARGEST_STEP = 0.02


def worth(belief: Belief, age: float, weight: float = 1.0) -> float:
    """Give the worth of a look at a copy of this age."""
    a, b = belief.changes, belief.days
    z = age / b
    if (a + 1) * z < _SMALL:
        return weight * b * a * z * z * (1 / 2 - (a + 1) * z * (1 / 6 - (a + 2) * z / 24))
    log = log1p(z)
    exponent = (1 - a) * log
    survived = log if abs(exponent) < _LINEAR else log * expm1(exponent) / exponent
    return weight * b * (z - survived)


def age_worth(price: float, belief: Belief, weight: float = 1.0) -> float:
    """Give the age at which a look is worth the price: the inverse of `worth`."""
    if price <= 0:
        return 0.0
    a, b = belief.changes, belief.days
    target = price / weight
    # Worth is convex, so that Newton's steps come down to the age from above and never pass it.
    age = sqrt(2 * target * b / a) + target
    for _ in range(_ROUNDS):
        slope = -expm1(-a * log1p(age / b))
        step = (worth(belief, age) - target) / slope
        age -= step
        if abs(step) <= _PRECISE * age:
            break
    return age


def adjust(price: float, due: float, affordable: float, documents: int) -> float:
    """Move the price a step towards the one at which no more looks fall due in a while than are affordable in it."""
    step = _GAIN * (due - affordable) / max(documents, 1)
    return price * exp(max(-_LARGEST_STEP, min(step, _LARGEST_STEP)))
