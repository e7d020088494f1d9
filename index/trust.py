"""Does the identity of a trust manifest belong to the publisher of the entry? (ARD 4.5.1). Pure.

An alignment is what the document asserts, never proof: nothing here says `verified`.
"""

from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

import idna
from publicsuffixlist import PublicSuffixList

from index.identity import is_domain, parse_urn


class Alignment(StrEnum):
    """How the trust domain of an identity relates to the publisher."""

    ABSENT = "absent"
    EXACT = "exact"
    SUBDOMAIN = "subdomain"
    SELF_REFERENTIAL = "self_referential"
    UNDETERMINABLE = "undeterminable"
    MISALIGNED = "misaligned"


class Relation(StrEnum):
    """How the host that served a document relates to the publisher that an entry names."""

    EXACT = "exact"
    SUBDOMAIN = "subdomain"
    PARENT = "parent"
    OTHER = "other"


class PublisherClaim(StrEnum):
    """What speaks for an entry under a publisher's name that was found outside of the publisher's own domain."""

    ASSERTED = "asserted"
    UNPROVEN = "unproven"


Policy = Literal["subdomain", "exact", "off"]


@lru_cache(maxsize=1)
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList()


@lru_cache(maxsize=8192)
def is_public_suffix(name: str) -> bool:
    """Tell whether strangers can register names below this one, as under `github.io`."""
    return bool(is_domain(name) or "." not in name) and _suffixes().publicsuffix(name) == name


@lru_cache(maxsize=8192)
def registrable_domain(host: str) -> str | None:
    """Name the registrable domain of a host; None for addresses and public suffixes."""
    name = host.lower().removesuffix(".")
    return str(_suffixes().privatesuffix(name) or "") or None if is_domain(name) else None


@lru_cache(maxsize=8192)
def has_known_suffix(host: str) -> bool:
    """Tell whether the last labels of a host are on the public suffix list, so that it can exist on the open web."""
    return is_domain(host) and _suffixes().publicsuffix(host, accept_unknown=False) is not None


def alignment(trust_manifest: Any, publisher: str) -> Alignment:
    """Compare the trust domain of `identity` with the publisher, which must be lower case without a final dot."""
    identity = trust_manifest.get("identity") if isinstance(trust_manifest, Mapping) else None
    if not isinstance(identity, str):
        return Alignment.ABSENT
    if parse_urn(identity) is not None:
        return Alignment.SELF_REFERENTIAL
    domain = trust_domain(identity)
    if domain is None:
        return Alignment.UNDETERMINABLE
    if domain == publisher:
        return Alignment.EXACT
    if domain.endswith("." + publisher) and not is_public_suffix(publisher):
        return Alignment.SUBDOMAIN
    return Alignment.MISALIGNED


def trust_domain(identity: str) -> str | None:
    """Extract the domain that an identity claims: SPIFFE, did:web, https or a bare name; None for other forms."""
    text = identity.strip()
    scheme = text.partition(":")[0].lower()
    try:
        if scheme in ("spiffe", "https"):
            host = urlsplit(text).hostname or ""
        elif text.lower().startswith("did:web:"):
            host = unquote(text[len("did:web:") :].partition(":")[0]).partition(":")[0]
        elif ":" not in text and "/" not in text:
            host = text
        else:
            return None
        name = idna.encode(host.removesuffix("."), uts46=True).decode().lower()
    except (ValueError, UnicodeError):
        return None
    return name if is_domain(name) else None


def acceptable(verdict: Alignment, policy: Policy) -> bool:
    """Decide whether an entry may be served under its publisher's name."""
    if policy == "off":
        return True
    if verdict is Alignment.SUBDOMAIN:
        return policy == "subdomain"
    return verdict is not Alignment.MISALIGNED


def relation(publisher: str, host: str) -> Relation:
    """Relate the publisher of an entry to the host that served it; a signal, not a verdict."""
    if host == publisher:
        return Relation.EXACT
    if host.endswith("." + publisher) and not is_public_suffix(publisher):
        return Relation.SUBDOMAIN
    if publisher.endswith("." + host) and not is_public_suffix(host):
        return Relation.PARENT
    return Relation.OTHER


def publisher_claim(publisher: str, host: str, trust: str | None) -> PublisherClaim | None:
    """Judge an entry by where it was found; None where that is the publisher's own domain, or one above it.

    On somebody else's domain it is at best asserted, by a trust manifest that names the publisher; `trust` is the
    alignment of that.
    """
    if relation(publisher, host) is not Relation.OTHER:
        return None
    aligned = trust in (Alignment.EXACT, Alignment.SUBDOMAIN)
    return PublisherClaim.ASSERTED if aligned else PublisherClaim.UNPROVEN
