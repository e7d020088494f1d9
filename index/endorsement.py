"""Does a brand publish this very entry? Match, mismatch or inconclusive (OSD). Pure.

The brand comes from whoever asks, never from the candidate. A match means that the brand's own manifest holds an entry
equal to the candidate in every member. What cannot be looked at decides nothing. Diagnostics explain a mismatch and
change no verdict; an endorsement authenticates nobody.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from itertools import islice
from typing import Any

from index.brand_manifest import Evidence, Manifest, NoManifest, Reason, domain_of
from index.exact_json import Difference, NotExact, at, differences, equal, read_exact, sorted_text, written
from index.findings import redact
from index.identity import version_key
from index.strict_json import canonical_digest, parse
from index.terms import BASE, Context, effective_context
from index.terms import NAMESPACE as ARD_NAMESPACE

_CLAIM = "brandDomain"
# What a Search puts into a flat result beside the entry (ARD 5.3.2).
_TRANSPORT = ("score", "source")
_LITERAL_IRIS = frozenset(ARD_NAMESPACE + name for name in ("data", "metadata", "trustManifest"))
_MOST_DIFFERENCES = 50
_LONGEST_SHOWN = 400


class Verdict(StrEnum):
    MATCH = "match"
    MISMATCH = "mismatch"
    INCONCLUSIVE = "inconclusive"


def brand_of(entry: Mapping[str, Any], namespace: str) -> str | None:
    """Name the brand that an entry claims to belong to; None when it claims none, or several."""
    context = _context_of(entry)
    # Without a declaration the prefixed name stays as it is, and is still the one that everybody writes.
    names = {namespace + _CLAIM, "osd:" + _CLAIM}
    claims = {domain_of(member) for name, member in entry.items() if context.expand(name) in names}
    return claims.pop() if len(claims) == 1 else None


def _context_of(entry: Mapping[str, Any]) -> Context:
    return effective_context(_floats(entry["@context"]))[0] if "@context" in entry else BASE


def _floats(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _floats(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_floats(item) for item in value]
    return float(value) if isinstance(value, Decimal) else value


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entry to be judged. A `copy` came from Retrieve, whose answer is the entry and nothing else."""

    value: Any
    copy: bool = False


def read_candidate(text: str | bytes, *, copy: bool = False, max_depth: int = 64) -> Candidate:
    """Read a candidate from its JSON text; what is no I-JSON can match nothing."""
    try:
        return Candidate(read_exact(text, max_depth=max_depth), copy)
    except NotExact:
        return Candidate(None, copy)


def declares_other_version(answer: Any, member: str, wanted: str | None) -> bool:
    """Tell whether a registry's answer declares another contract version than the one asked for: it is discarded."""
    declared = answer.get(member) if isinstance(answer, Mapping) else None
    return wanted is not None and declared is not None and declared != wanted


@dataclass(frozen=True, slots=True)
class OlderState:
    """A state that an entry of the brand once had, as published, and the looks between which it was seen."""

    text: str
    first_seen_at: datetime
    last_seen_at: datetime
    # When its successor, or its absence, was first seen.
    replaced_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Lag:
    """For how long a copy has been behind: an interval, for changes happen between looks."""

    at_least: timedelta
    at_most: timedelta


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """An explanation of a mismatch; the verdict stays what it is."""

    code: str
    first_seen_at: datetime | None = None
    last_seen_at: datetime | None = None
    lag: Lag | None = None


@dataclass(frozen=True, slots=True)
class Endorsement:
    """A verdict and everything that it rests on. It must not be relied on after `valid_until`.

    `differences` lead from the candidate, as it was compared, to `published`, the nearest entry of the manifest.
    """

    verdict: Verdict
    brand: str
    reason: Reason | None = None
    detail: str = ""
    identifier: str | None = None
    evidence: Evidence | None = None
    entry_digest: str | None = None
    valid_until: datetime | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    differences: tuple[Difference, ...] = ()
    compared: Any = field(default=None, repr=False)
    published: Any = field(default=None, repr=False)


def endorse(
    candidate: Candidate,
    brand: str,
    manifest: Manifest | NoManifest,
    *,
    namespace: str,
    now: datetime,
    older: Sequence[OlderState] = (),
) -> Endorsement:
    """Decide whether the brand publishes the candidate; `brand` is what the caller meant, in normal form."""
    evidence = manifest.evidence
    forms = forms_of(candidate)
    if not forms:
        detail = "the candidate is no JSON object of one meaning"
        return Endorsement(Verdict.MISMATCH, brand, Reason.CANDIDATE_INVALID, detail, evidence=evidence)
    identifier = forms[0].get("identifier")
    identifier = identifier if isinstance(identifier, str) else None
    claimed = brand_of(forms[0], namespace)
    if claimed != brand:
        detail = f"the candidate claims {claimed or 'no brand'}"
        return Endorsement(Verdict.MISMATCH, brand, Reason.BRAND_DOMAIN, detail, identifier, evidence)
    if isinstance(manifest, NoManifest):
        return Endorsement(Verdict.INCONCLUSIVE, brand, manifest.reason, manifest.detail, identifier, evidence)
    for index, entry in enumerate(manifest.entries):
        if any(equal(form, entry) for form in forms):
            return Endorsement(
                Verdict.MATCH,
                brand,
                identifier=identifier,
                evidence=evidence,
                entry_digest=_digest(manifest, index),
                valid_until=evidence.fresh_until,
            )
    return _mismatch(forms, brand, manifest, identifier, now, older)


def forms_of(candidate: Candidate) -> list[dict[str, Any]]:
    """Give what a candidate may be compared as: the object itself and, for a flat result, without what Search added.

    A result that nests its entry counts as that entry, unchanged.
    """
    value = candidate.value
    if not isinstance(value, dict):
        return []
    if "identifier" not in value:
        nested = [item for item in value.values() if isinstance(item, dict) and "identifier" in item]
        return nested if len(nested) == 1 else [value]
    flat = {name: member for name, member in value.items() if name not in _TRANSPORT}
    return [value] if candidate.copy or len(flat) == len(value) else [value, flat]


def _digest(manifest: Manifest, index: int) -> str:
    return canonical_digest(parse(manifest.texts[index].encode(), max_depth=256))


def _mismatch(
    forms: Sequence[dict[str, Any]],
    brand: str,
    manifest: Manifest,
    identifier: str | None,
    now: datetime,
    older: Sequence[OlderState],
) -> Endorsement:
    form = forms[-1]
    nearest, found = _nearest(form, identifier, manifest)
    entry = None if nearest is None else manifest.entries[nearest]
    if entry is None:
        reason, detail = Reason.NO_SUCH_IDENTIFIER, "no entry of the manifest has this identifier"
    elif all(item.kind == "missing" and len(item.steps) == 1 for item in found):
        reason, detail = Reason.CANDIDATE_INCOMPLETE, "the candidate lacks members that the manifest has"
    else:
        reason, detail = Reason.DIFFERS, "the candidate is not the entry that the manifest has"
    return Endorsement(
        Verdict.MISMATCH,
        brand,
        reason,
        detail,
        identifier,
        manifest.evidence,
        entry_digest=None if nearest is None else _digest(manifest, nearest),
        valid_until=manifest.evidence.fresh_until,
        diagnostics=tuple(_diagnostics(forms, identifier, entry, manifest.evidence, now, older)),
        differences=tuple(found),
        compared=form,
        published=entry,
    )


def _nearest(form: dict[str, Any], identifier: str | None, manifest: Manifest) -> tuple[int | None, list[Difference]]:
    """Find the entry of the same identifier that differs in the fewest places."""
    best: tuple[int | None, list[Difference]] = (None, [])
    for index, entry in enumerate(manifest.entries):
        if identifier is not None and entry["identifier"] == identifier:
            found = list(islice(differences(form, entry), _MOST_DIFFERENCES + 1))
            if best[0] is None or len(found) < len(best[1]):
                best = (index, found)
    return best


# --- diagnostics ------------------------------------------------------------------------------------------------------


def _diagnostics(
    forms: Sequence[dict[str, Any]],
    identifier: str | None,
    entry: dict[str, Any] | None,
    evidence: Evidence,
    now: datetime,
    older: Sequence[OlderState],
) -> Iterator[Diagnostic]:
    form = forms[-1]
    if entry is not None and sorted_text(form) == sorted_text(entry):
        yield Diagnostic("equal_unordered")
    if entry is not None and equal(_expanded(form), _expanded(entry)):
        yield Diagnostic("equal_semantically")
    once = [state for state in older if any(equal(item, _read(state.text)) for item in forms)]
    if once:
        yield _older(max(once, key=lambda state: state.last_seen_at), evidence, now)
    elif entry is not None and _is_newer(form, entry):
        yield Diagnostic("newer_than_manifest")


def _read(text: str) -> Any:
    try:
        return read_exact(text, max_depth=256)
    except NotExact:
        return None


def _older(state: OlderState, evidence: Evidence, now: datetime) -> Diagnostic:
    """Say when the manifest held what the candidate still shows: the change came after its last sighting there."""
    seen = [instant for instant in (state.replaced_at, evidence.confirmed_at) if instant is not None]
    changed_by = min((instant for instant in seen if instant > state.last_seen_at), default=now)
    nothing = timedelta(0)
    lag = Lag(max(now - changed_by, nothing), max(now - state.last_seen_at, nothing))
    return Diagnostic("equal_to_older_snapshot", state.first_seen_at, state.last_seen_at, lag)


def _is_newer(form: Mapping[str, Any], entry: Mapping[str, Any]) -> bool:
    """Tell whether the candidate itself claims to be later than what the manifest holds."""
    ours, theirs = (_text(value.get("version")) for value in (form, entry))
    if ours is not None and version_key(ours) > version_key(theirs):
        return True
    mine, other = (_instant(value.get("updatedAt")) for value in (form, entry))
    return mine is not None and other is not None and mine > other


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _instant(value: Any) -> datetime | None:
    try:
        instant = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return instant if instant is not None and instant.tzinfo is not None else None


def _expanded(entry: Mapping[str, Any]) -> list[Any]:
    """Write an entry with IRIs for names and without its context, as pairs, for two names may mean the same."""
    context = _context_of(entry)
    pairs = []
    for name, member in entry.items():
        iri = context.expand(name)
        if name != "@context":
            pairs.append([iri or name, member if iri in _LITERAL_IRIS else _expand_within(member, context)])
    return sorted(pairs, key=lambda pair: (pair[0], sorted_text(pair[1])))


def _expand_within(value: Any, context: Context) -> Any:
    if isinstance(value, Mapping):
        return {context.expand(name) or name: _expand_within(member, context) for name, member in value.items()}
    if isinstance(value, list):
        return [_expand_within(item, context) for item in value]
    return value


# --- the record -------------------------------------------------------------------------------------------------------


def record(endorsement: Endorsement) -> dict[str, Any]:
    """Lay out an endorsement for others; what looks like a credential is masked."""
    evidence = endorsement.evidence
    return {
        "verdict": endorsement.verdict,
        "reason": endorsement.reason,
        "detail": endorsement.detail,
        "brandDomain": endorsement.brand,
        "identifier": endorsement.identifier,
        "manifest": None if evidence is None else _evidence(evidence),
        "entryDigest": endorsement.entry_digest,
        "validUntil": _written_instant(endorsement.valid_until),
        "diagnostics": [_diagnostic(item) for item in endorsement.diagnostics],
        "differences": list(_differences(endorsement)),
        "differencesOmitted": len(endorsement.differences) > _MOST_DIFFERENCES,
    }


def _evidence(evidence: Evidence) -> dict[str, Any]:
    return {
        "url": evidence.url,
        "finalUrl": evidence.final_url or None,
        "redirects": list(evidence.redirects),
        "etag": evidence.etag,
        "digest": evidence.digest,
        "fetchedAt": _written_instant(evidence.fetched_at),
        "confirmedAt": _written_instant(evidence.confirmed_at),
        "freshUntil": _written_instant(evidence.fresh_until),
    }


def _diagnostic(item: Diagnostic) -> dict[str, Any]:
    if item.lag is None:
        return {"code": item.code}
    return {
        "code": item.code,
        "firstSeenAt": _written_instant(item.first_seen_at),
        "lastSeenAt": _written_instant(item.last_seen_at),
        "lag": {"atLeastS": item.lag.at_least.total_seconds(), "atMostS": item.lag.at_most.total_seconds()},
    }


def _differences(endorsement: Endorsement) -> Iterator[dict[str, Any]]:
    """Show both sides of each difference as JSON text, in which no number is rounded."""
    # Masked as a whole, because the name of a member tells what its value is.
    compared, published = redact(endorsement.compared), redact(endorsement.published)
    for item in endorsement.differences[:_MOST_DIFFERENCES]:
        yield {
            "pointer": item.pointer,
            "candidate": None if item.kind == "missing" else _shown(at(compared, item.steps)),
            "manifest": None if item.kind == "extra" else _shown(at(published, item.steps)),
        }


def _shown(value: Any) -> str:
    text = written(value)
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"


def _written_instant(instant: datetime | None) -> str | None:
    return None if instant is None else instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")
