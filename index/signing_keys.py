"""Sets of public keys, and which of them a signature names (RFC 7517). Pure.

A key is known by its id and by its thumbprint (RFC 7638). What a hostile set holds beside usable keys is counted and
left out; nothing here raises on it.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import rfc8785
from joserfc.jwk import ECKey, OKPKey, RSAKey

from index.records import Problem, Severity, pointer_step

MOST_KEYS = 64
LONGEST_KID = 512
_MOST_PROBLEMS = 20
_BASE64URL = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_PRIVATE = ("d", "p", "q", "dp", "dq", "qi", "oth", "k")
# What names the key itself, by its type (RFC 7638 3.2), with the longest text of each member.
_MEMBERS: Mapping[str, Mapping[str, int]] = {
    "EC": {"crv": 16, "x": 128, "y": 128},
    "OKP": {"crv": 16, "x": 128},
    "RSA": {"e": 8, "n": 1366},
}
_CURVES = frozenset({"P-256", "P-384", "Ed25519", "Ed448"})
_RSA_BITS = range(2048, 8193)
# The type, and the curves, of the key that each algorithm needs; no other algorithm is accepted.
ALGORITHMS: Mapping[str, tuple[str, frozenset[str]]] = {
    "ES256": ("EC", frozenset({"P-256"})),
    "ES384": ("EC", frozenset({"P-384"})),
    "EdDSA": ("OKP", frozenset({"Ed25519", "Ed448"})),
    "RS256": ("RSA", frozenset()),
    "PS256": ("RSA", frozenset()),
}


@dataclass(frozen=True, slots=True)
class Key:
    """One public key; `fault` says why it verifies nothing."""

    kid: str
    thumbprint: str
    members: Mapping[str, str] = field(hash=False)
    alg: str | None = None
    is_for_signing: bool = True
    fault: str = ""

    def fits(self, alg: str) -> bool:
        """Tell whether this is a key for an algorithm, by its type and by what it says of itself (RFC 7517 4.2-4.4)."""
        kind, curves = ALGORITHMS[alg]
        right_kind = self.members["kty"] == kind and (not curves or self.members.get("crv") in curves)
        return right_kind and self.is_for_signing and self.alg in (None, alg)

    def load(self) -> Any:
        """Give the key in the form that the library verifies with; raises whatever it raises."""
        members: dict[str, str | list[str]] = {**self.members}
        match members["kty"]:
            case "EC":
                return ECKey.import_key(members)
            case "OKP":
                return OKPKey.import_key(members)
        return RSAKey.import_key(members)


@dataclass(frozen=True, slots=True)
class KeySet:
    """The keys of one document, in its order."""

    keys: tuple[Key, ...] = ()
    problems: tuple[Problem, ...] = ()

    def named(self, kid: str) -> list[Key]:
        """Give the different keys with this id; a good signature needs exactly one."""
        return list({key.thumbprint: key for key in self.keys if key.kid == kid}.values())


def is_key_set(value: Any) -> bool:
    """Tell a set of keys by its shape (RFC 7517 5)."""
    return isinstance(value, Mapping) and isinstance(value.get("keys"), list)


def read_keys(value: Any) -> KeySet:
    """Read a set of keys, or a single one; the rest is said in problems."""
    if isinstance(value, Mapping) and "kty" in value:
        value = {"keys": [value]}
    if not is_key_set(value):
        return KeySet(problems=(_problem("not_a_key_set", "no object with an array of keys", ""),))
    found: list[Key] = []
    problems: list[Problem] = []
    for index, item in enumerate(value["keys"][:MOST_KEYS]):
        key, fault = _read_key(item)
        if key is not None:
            found.append(key)
        if fault and len(problems) < _MOST_PROBLEMS:
            problems.append(_fault_problem(fault, f"/keys{pointer_step(index)}"))
    if len(value["keys"]) > MOST_KEYS:
        problems.append(_problem("too_many", f"only {MOST_KEYS} keys are looked at", "/keys"))
    return KeySet(tuple(found), tuple(problems))


def joined(sets: Iterable[KeySet]) -> KeySet:
    """Put several sets together."""
    return KeySet(tuple(key for found in sets for key in found.keys))


def described(keys: KeySet) -> list[dict[str, Any]]:
    """Write keys as we keep and compare them: by id, kind and thumbprint, in the order of these."""
    rows = [
        {
            "kid": key.kid,
            "kty": key.members["kty"],
            **({"crv": key.members["crv"]} if "crv" in key.members else {}),
            **({"alg": key.alg} if key.alg else {}),
            "thumbprint": key.thumbprint,
        }
        for key in keys.keys
        if not key.fault
    ]
    return sorted(rows, key=lambda row: (row["kid"], row["thumbprint"]))


def _read_key(item: Any) -> tuple[Key | None, str]:
    """Read one key; one that names itself and cannot be used is kept, so that its id is known to be taken."""
    if not isinstance(item, Mapping):
        return None, "no object"
    kid, kind = item.get("kid"), item.get("kty")
    if not isinstance(kid, str) or not 0 < len(kid) <= LONGEST_KID:
        return None, "no kid"
    if not isinstance(kind, str) or kind not in _MEMBERS:
        fault = "a private key" if kind == "oct" else "not of a type that we verify with"
        return None, fault
    members = {"kty": kind}
    for name, longest in _MEMBERS[kind].items():
        member = item.get(name)
        if not isinstance(member, str) or not _is_plain(name, member, longest):
            return None, f"no usable {name}"
        members[name] = member
    fault = _fault(item, members)
    alg, use, operations = item.get("alg"), item.get("use"), item.get("key_ops")
    for_signing = use in (None, "sig") and (not isinstance(operations, list) or "verify" in operations)
    alg = alg if isinstance(alg, str) else None
    return Key(kid, _thumbprint(members), members, alg and alg[:32], for_signing, fault), fault


def _is_plain(name: str, text: str, longest: int) -> bool:
    shortest_form = name == "crv" or _BASE64URL.fullmatch(text) is not None
    return 0 < len(text) <= longest and shortest_form


def _fault(item: Mapping[str, Any], members: Mapping[str, str]) -> str:
    if any(name in item for name in _PRIVATE):
        return "a private key"
    if members["kty"] != "RSA":
        return "" if members["crv"] in _CURVES else "not of a curve that we verify with"
    bits = int.from_bytes(_bytes(members["n"]), "big").bit_length()
    return "" if bits in _RSA_BITS else "an RSA key of a size that we do not verify with"


def _bytes(text: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (ValueError, binascii.Error):
        return b""


def _thumbprint(members: Mapping[str, str]) -> str:
    try:
        digest = sha256(rfc8785.dumps(dict(members))).digest()
    except (ValueError, UnicodeEncodeError):
        digest = sha256(repr(sorted(members.items())).encode("utf-8", "surrogatepass")).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _fault_problem(fault: str, pointer: str) -> Problem:
    if fault == "a private key":
        message = "the private or secret part of a key is published; the key proves nothing"
        return Problem("keys.private", Severity.ERROR, pointer, message, "RFC 7517 9.2")
    return Problem("keys.unusable", Severity.WARNING, pointer, f"a key is left out: {fault}", "RFC 7517 4")


def _problem(code: str, message: str, pointer: str) -> Problem:
    return Problem(f"keys.{code}", Severity.WARNING, pointer, message, "RFC 7517 5")
