"""The closed set of what can become of a fetch. Pure."""

from enum import StrEnum


class Outcome(StrEnum):
    """What became of one document in one visit; what can be told apart is kept apart."""

    FETCHED = "fetched"
    NOT_MODIFIED = "not_modified"
    ABSENT = "absent"
    GONE = "gone"
    WITHHELD = "withheld"
    DISALLOWED = "disallowed"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    TOO_LARGE = "too_large"
    MALFORMED = "malformed"
    WRONG_KIND = "wrong_kind"
    CATCH_ALL = "catch_all"


SUCCESSES = frozenset({Outcome.FETCHED, Outcome.NOT_MODIFIED})
# The publisher says that there is nothing; that is an answer and no failure.
ABSENCES = frozenset({Outcome.ABSENT, Outcome.GONE, Outcome.CATCH_ALL, Outcome.WRONG_KIND})
# Something stood between us and the document; what is held goes stale and nothing is removed.
FAILURES = frozenset(Outcome) - SUCCESSES - ABSENCES
