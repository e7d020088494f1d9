"""Signatures of agent cards: who signed, and whether the card is what was signed (A2A 8.4). Pure.

A valid signature proves that whoever wrote the card holds a key, and nothing about who that is. One that does not
verify is called invalid and no more: signers write their bytes in several ways (`index/card_payloads.py`).
"""

import base64
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from joserfc.jws import JWSRegistry

from index.card_payloads import SIGNATURES, Payload, Payloads, Profile
from index.change_classes import host_of_text
from index.records import Problem, Severity
from index.signing_keys import ALGORITHMS, LONGEST_KID, Key, KeySet
from index.strict_json import MalformedJson, ParsedJson, parse
from index.verdicts import MOST_SIGNATURES, SignatureOutcome

LONGEST_PROTECTED = 8192
_LONGEST_SIGNATURE = 2048
_LONGEST_URL = 1024
_HEADER_DEPTH = 16
_BASE64URL = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Claim:
    """One signature as its card states it; `fault` names what is wrong with it, and `outcome` what follows from that.

    Only the protected header counts: what stands beside it is anybody's, and keys inside it prove nothing.
    """

    position: int
    protected: str = ""
    signature: bytes = b""
    alg: str = ""
    kid: str = ""
    jku: str = ""
    outcome: SignatureOutcome | None = None
    fault: str = ""

    @property
    def pointer(self) -> str:
        """The place of the signature in the card."""
        return f"/{SIGNATURES}/{self.position}"


@dataclass(frozen=True, slots=True)
class SignedCard:
    """A parsed card with its claims; `omitted` counts those that are not looked at, `size` is that of its text."""

    claims: tuple[Claim, ...]
    card: Mapping[str, Any] = field(hash=False, repr=False)
    omitted: int = 0
    size: int = 0


@dataclass(frozen=True, slots=True)
class Selected:
    """The key that a claim names, or why there is none; `source` says where it comes from."""

    key: Key | None = None
    source: str = ""
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one signature."""

    claim: Claim
    outcome: SignatureOutcome
    reason: str = ""
    selected: Selected = Selected()
    profile: Profile | None = None
    unsigned_members: tuple[str, ...] = ()


# --- reading ----------------------------------------------------------------------------------------------------------


def read_signed(text: str | bytes, *, max_depth: int = 64, member: Sequence[str] = ()) -> SignedCard | None:
    """Read the signatures of a card from its text; None for what has none. `member` are the names that may hold it."""
    try:
        parsed = parse(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text, max_depth=max_depth)
    except MalformedJson:
        return None
    card = parsed.value
    for name in member:
        if isinstance(card, Mapping) and name in card:
            card = card[name]
            break
    found = read_claims(card, has_one_meaning=is_ijson(parsed))
    return None if found is None else replace(found, size=len(parsed.text))


def is_ijson(parsed: ParsedJson) -> bool:
    """Tell whether a document means the same to every parser, so that its canonical form can be compared."""
    return all(problem.code == "json.bom" for problem in parsed.problems)


def read_claims(card: Any, *, has_one_meaning: bool = True) -> SignedCard | None:
    """Read the signatures of a parsed card; None for what has none."""
    stated = card.get(SIGNATURES) if isinstance(card, Mapping) else None
    if stated is None or stated == []:
        return None
    fault = "" if isinstance(stated, list) else "not_a_list"
    if fault or not has_one_meaning:
        return SignedCard((Claim(0, outcome=SignatureOutcome.MALFORMED, fault=fault or "not_exact"),), card)
    claims = tuple(_claim(position, item) for position, item in enumerate(stated[:MOST_SIGNATURES]))
    return SignedCard(claims, card, max(0, len(stated) - MOST_SIGNATURES))


def _claim(position: int, item: Any) -> Claim:
    def malformed(fault: str, alg: str = "", kid: str = "", jku: str = "") -> Claim:
        return Claim(position, alg=alg, kid=kid, jku=jku, outcome=SignatureOutcome.MALFORMED, fault=fault)

    if not isinstance(item, Mapping):
        return malformed("not_an_object")
    protected, signature = item.get("protected"), item.get("signature")
    if not isinstance(protected, str) or len(protected) > LONGEST_PROTECTED:
        return malformed("protected")
    header = _header(protected)
    if header is None:
        return malformed("protected")
    stated = {name: _short(header.get(name)) for name in ("alg", "kid", "jku")}
    if not stated["alg"]:
        return malformed("no_alg", **stated)
    if stated["alg"] not in ALGORITHMS:
        return replace(malformed("alg", **stated), outcome=SignatureOutcome.UNSUPPORTED_ALG)
    if "crit" in header or "b64" in header:  # RFC 7515 4.1.11: nothing that is critical is known here
        return malformed("crit", **stated)
    if not stated["kid"]:
        return malformed("no_kid", **stated)
    body = _decoded(signature, _LONGEST_SIGNATURE)
    if body is None:
        return malformed("signature", **stated)
    return Claim(position, protected, body, stated["alg"], stated["kid"], stated["jku"])


def _header(protected: str) -> Mapping[str, Any] | None:
    body = _decoded(protected, LONGEST_PROTECTED)
    try:
        header = None if body is None else parse(body, max_depth=_HEADER_DEPTH)
    except MalformedJson:
        return None
    return header.value if header is not None and isinstance(header.value, Mapping) and is_ijson(header) else None


def _decoded(text: Any, longest: int) -> bytes | None:
    """Decode base64url as RFC 7515 writes it, without padding; None for anything else."""
    if not isinstance(text, str) or not 0 < len(text) <= longest or not _BASE64URL.fullmatch(text):
        return None
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return None


def _short(value: Any) -> str:
    fits = isinstance(value, str) and len(value) <= _LONGEST_URL and "\x00" not in value
    return value if fits else ""


# --- verifying --------------------------------------------------------------------------------------------------------


def select_key(kid: str, keys: KeySet, source: str = "") -> Selected:
    """Choose the key of a set by an id, which must name exactly one (RFC 7515 4.1.4)."""
    named = keys.named(kid)
    if len(named) != 1:
        return Selected(source=source, fault="ambiguous_kid" if named else "no_such_key")
    if named[0].fault:
        return Selected(source=source, fault="unusable_key")
    return Selected(named[0], source)


def verify(signed: SignedCard, select: Callable[[Claim], Selected]) -> tuple[Verdict, ...]:
    """Say of each signature what became of it, with the key that `select` gives for it."""
    forms = Payloads(signed.card)
    return tuple(_verdict(claim, select, forms) for claim in signed.claims)


def _verdict(claim: Claim, select: Callable[[Claim], Selected], forms: Payloads) -> Verdict:
    if claim.outcome is not None:
        return Verdict(claim, claim.outcome, claim.fault)
    selected = select(claim)
    key = selected.key
    if key is None:
        return Verdict(claim, SignatureOutcome.KEY_UNAVAILABLE, selected.fault, selected)
    if not key.fits(claim.alg):
        return Verdict(claim, SignatureOutcome.INVALID, "key_does_not_fit", selected)
    try:
        loaded = key.load()
    except Exception:  # what a hostile key makes the library raise is an open set
        return Verdict(claim, SignatureOutcome.KEY_UNAVAILABLE, "unusable_key", selected)
    found = next((payload for payload in forms if _covers(claim, loaded, payload)), None)
    if found is not None:
        return Verdict(claim, SignatureOutcome.VALID, "", selected, found.profile, found.unsigned)
    if not forms.complete:
        return Verdict(claim, SignatureOutcome.INVALID, "number_out_of_domain", selected)
    return Verdict(claim, SignatureOutcome.INVALID, "no_form_matches", selected)


def _covers(claim: Claim, key: Any, payload: Payload) -> bool:
    body = base64.urlsafe_b64encode(payload.body).rstrip(b"=")
    try:
        # The registry's own look-up would warn of EdDSA (RFC 9864), which cards go on using.
        return bool(
            JWSRegistry.algorithms[claim.alg].verify(claim.protected.encode() + b"." + body, claim.signature, key)
        )
    except Exception:  # as for keys: whatever it is, this signature does not cover these bytes
        return False


# --- results ----------------------------------------------------------------------------------------------------------


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    """Write a verdict as it is kept; texts are the publisher's."""
    claim, key = verdict.claim, verdict.selected.key
    written = {
        "pointer": claim.pointer,
        "outcome": verdict.outcome.value,
        "reason": verdict.reason,
        "alg": claim.alg[:64],
        "kid": claim.kid[:LONGEST_KID],
        "jkuHost": host_of_text(claim.jku).lower()[:253],
        "keySource": verdict.selected.source,
        "key": key.thumbprint if key is not None else "",
        "profile": verdict.profile.value if verdict.profile is not None else "",
        "unsignedMembers": list(verdict.unsigned_members),
    }
    return {name: member for name, member in written.items() if member or name in ("pointer", "outcome")}


def signature_problems(verdicts: Iterable[Verdict]) -> list[Problem]:
    """Say what is worth knowing of signatures as problems of the card."""
    return [problem for verdict in verdicts for problem in _problems(verdict)]


_CLAUSE = "A2A 8.4"
_REASONS: Mapping[str, str] = {
    "alg": "only ES256, ES384, EdDSA, RS256 and PS256 are verified",
    "ambiguous_kid": "its kid names more than one key",
    "crit": "its header asks for an extension that is not known here",
    "key_does_not_fit": "its kid names a key of another kind or for another use",
    "key_set_elsewhere": "its key set is not on a host of the card's publisher",
    "key_set_missing": "its key set cannot be had",
    "no_alg": "its protected header has no alg",
    "no_form_matches": "it covers none of the forms in which signers write this card",
    "no_key_set": "it names no key set, and its kid is not among the trusted keys",
    "no_kid": "its protected header has no kid",
    "no_such_key": "its kid names no key of the set",
    "not_a_list": "signatures is no list",
    "not_an_object": "it is no object",
    "not_exact": "the card has no one meaning: a member occurs twice, or a number or a text cannot be kept",
    "number_out_of_domain": "the card holds a number without canonical form (RFC 8785)",
    "protected": "its protected header cannot be read",
    "signature": "its value is no base64url",
    "unusable_key": "its kid names a key that cannot be used",
}


def _problems(verdict: Verdict) -> list[Problem]:
    pointer, why = verdict.claim.pointer, _REASONS.get(verdict.reason, verdict.reason)
    match verdict.outcome:
        case SignatureOutcome.INVALID:
            message = f"the signature does not verify: {why}"
            return [Problem("signature.invalid", Severity.WARNING, pointer, message, _CLAUSE)]
        case SignatureOutcome.KEY_UNAVAILABLE:
            message = f"nobody can tell: {why}"
            return [Problem("signature.key_unavailable", Severity.INFO, pointer, message, _CLAUSE)]
        case SignatureOutcome.UNSUPPORTED_ALG:
            return [Problem("signature.unsupported_alg", Severity.WARNING, pointer, f"not verified: {why}", _CLAUSE)]
        case SignatureOutcome.MALFORMED:
            return [Problem("signature.malformed", Severity.WARNING, pointer, f"no signature: {why}", _CLAUSE)]
    return _notes(verdict, pointer)


def _notes(verdict: Verdict, pointer: str) -> list[Problem]:
    """Note of a valid signature what it does not cover, and that other verifiers may not take it."""
    notes = []
    if verdict.profile is not None and verdict.profile is not Profile.SPEC:
        message = f"valid by the rule `{verdict.profile}` and not by that of the specification; others may refuse it"
        notes.append(Problem("signature.profile", Severity.INFO, pointer, message, "A2A 8.4.1"))
    if verdict.unsigned_members:
        message = f"the signature covers the card without {len(verdict.unsigned_members)} of its members"
        notes.append(Problem("signature.unsigned_members", Severity.INFO, pointer, message, "A2A 8.4.1"))
    return notes
