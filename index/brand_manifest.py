"""A brand's own manifest: where it must come from and when it may decide anything (OSD). Pure.

It is fetched from the brand's host, or from where that host redirects between itself and its www. It is valid as a
whole, for one bad entry casts doubt on what its publisher meant by the others. And it is fresh, for a stale copy proves
nothing about today.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any

import idna

from index.ard_schema import manifest_fault
from index.documents import ABSENCES, SUCCESSES, DocumentState, Outcome
from index.exact_json import NotExact, read_exact
from index.identity import is_domain
from index.records import Problem, Severity
from index.strict_json import element_texts, parse
from index.trust import registrable_domain
from index.urls import host_of, origin_of

WELL_KNOWN_PATH = "/.well-known/ard.json"
# Errors of ours that say nothing about whether the manifest is a valid one.
_NOT_ITS_FAULT = re.compile(r"entry\.private|finding\..*")
_LED_AWAY = frozenset({"redirect_offsite", "redirect_downgrade", "scheme", "url"})


class Reason(StrEnum):
    """Why a verdict is no match: the first five are mismatches, the others inconclusive."""

    BRAND_DOMAIN = "brand_domain"
    CANDIDATE_INVALID = "candidate_invalid"
    NO_SUCH_IDENTIFIER = "no_such_identifier"
    CANDIDATE_INCOMPLETE = "candidate_incomplete"
    DIFFERS = "differs"
    NOT_ALLOWLISTED = "not_allowlisted"
    NEVER_FETCHED = "never_fetched"
    MANIFEST_ABSENT = "manifest_absent"
    MANIFEST_UNAVAILABLE = "manifest_unavailable"
    MANIFEST_INVALID = "manifest_invalid"
    MANIFEST_STALE = "manifest_stale"
    REDIRECTED_OFF_DOMAIN = "redirected_off_domain"
    CANDIDATE_UNAVAILABLE = "candidate_unavailable"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was seen of a manifest, whether or not it could be used."""

    url: str
    final_url: str = ""
    redirects: tuple[str, ...] = ()
    etag: str | None = None
    digest: str | None = None
    fetched_at: datetime | None = None
    confirmed_at: datetime | None = None
    fresh_until: datetime | None = None


@dataclass(frozen=True)
class Manifest:
    """A manifest that may decide."""

    evidence: Evidence
    text: str
    entries: tuple[dict[str, Any], ...]

    @cached_property
    def texts(self) -> list[str]:
        """The entries as published."""
        return element_texts(self.text, ("entries",))


@dataclass(frozen=True, slots=True)
class NoManifest:
    """Why there is no manifest that may decide."""

    reason: Reason
    detail: str
    evidence: Evidence


def domain_of(text: Any) -> str | None:
    """Write a domain in lower case and A-labels without a final dot; None for what is none, or more than one."""
    if not isinstance(text, str):
        return None
    name = text.lower().removesuffix(".")
    if not name.isascii():
        try:
            name = idna.encode(name, uts46=True).decode()
        except (idna.IDNAError, UnicodeError):
            return None
    return name if is_domain(name) and not name.endswith(".") else None  # `is_domain` lets a final dot pass


def brand_origin(brand: str, listed: Iterable[str] = (), overridden: Iterable[str] = ()) -> str:
    """Name the origin of a brand: https on its domain, whatever else is listed for that host.

    Only for a host that the operator's own name overrides cover, as in a test web, a listed origin stands in for it.
    """
    if is_covered(brand, overridden):
        return next((origin for origin in listed if host_of(origin) == brand), f"https://{brand}")
    return f"https://{brand}"


def is_covered(name: str, patterns: Iterable[str]) -> bool:
    """Tell whether one of the operator's patterns, `name`, `*.name` or `*`, covers a name."""
    return any(
        pattern in ("*", name) or (pattern.startswith("*.") and name.endswith(pattern[1:])) for pattern in patterns
    )


def twin_of(host: str) -> str | None:
    """Name the host that counts as the same: www for a registrable domain, and the domain for its www."""
    bare = host.removeprefix("www.")
    if registrable_domain(bare) != bare:
        return None
    return f"www.{host}" if bare == host else bare


def read_manifest(
    state: DocumentState,
    body: bytes | None,
    problems: Iterable[Problem],
    *,
    now: datetime,
    max_depth: int = 64,
) -> Manifest | NoManifest:
    """Judge what is known of a brand's manifest: its last look, its body, and the problems of its reading.

    `now` is when the question was asked: a copy confirmed since then needs no freshness of its own.
    """
    evidence = evidence_of(state)
    refusal = _led_away(state) or _not_retrieved(state) or _not_fresh(state, now) or _not_usable(body, problems)
    if refusal is not None:
        return NoManifest(*refusal, evidence)
    try:
        value = read_exact(body or b"", max_depth=max_depth)
    except NotExact as error:
        return NoManifest(Reason.MANIFEST_INVALID, str(error), evidence)
    fault = manifest_fault(value)
    if fault is not None:
        return NoManifest(Reason.MANIFEST_INVALID, fault, evidence)
    return Manifest(evidence, parse(body or b"", max_depth=max_depth).text, tuple(value["entries"]))


def evidence_of(state: DocumentState) -> Evidence:
    """Take from a document what a verdict rests on."""
    return Evidence(
        url=state.url,
        final_url=state.final_url,
        redirects=tuple(hop.url for hop in state.hops),
        etag=state.headers.get("etag"),
        digest=state.digest,
        fetched_at=state.fetched_at,
        confirmed_at=state.confirmed_at,
        fresh_until=state.fresh_until,
    )


_Refusal = tuple[Reason, str]


def _led_away(state: DocumentState) -> _Refusal | None:
    """Find a redirect that leaves the brand's host, followed or not."""
    along = [*(hop.url for hop in state.hops), state.final_url or state.url]
    elsewhere = next((url for url in along if not _is_at_home(url, state.url)), None)
    if elsewhere is not None:
        return Reason.REDIRECTED_OFF_DOMAIN, f"redirected to {elsewhere}"
    if state.outcome is Outcome.REFUSED and state.hops and state.reason in _LED_AWAY:
        if state.reason == "redirect_offsite":
            return Reason.NOT_ALLOWLISTED, f"redirected to {state.final_url}, which is not on the allowlist"
        return Reason.REDIRECTED_OFF_DOMAIN, state.detail
    return None


def _is_at_home(url: str, manifest_url: str) -> bool:
    """Tell whether a URL is on the host of the manifest or its twin, by the same scheme and port."""
    home, there = origin_of(manifest_url), origin_of(url)
    twin = twin_of(host_of(home))
    return there == home or (twin is not None and there == home.replace(host_of(home), twin, 1))


def _not_retrieved(state: DocumentState) -> _Refusal | None:
    outcome = state.outcome
    said = f"{outcome}: {state.detail or state.reason}".removesuffix(": ")
    if outcome is None:
        return Reason.NEVER_FETCHED, "the manifest was not looked at yet"
    if outcome in SUCCESSES:
        return None
    if outcome in (Outcome.ABSENT, Outcome.GONE) and state.status in (404, 410):
        return Reason.MANIFEST_ABSENT, f"the host answers {state.status}"
    if outcome in ABSENCES or outcome is Outcome.MALFORMED:
        return Reason.MANIFEST_INVALID, said
    # A copy that was there before can still count, as long as it is fresh.
    return (Reason.MANIFEST_UNAVAILABLE, said) if state.digest is None else None


def _not_fresh(state: DocumentState, now: datetime) -> _Refusal | None:
    fresh = state.fresh_until is not None and now < state.fresh_until
    validated = state.confirmed_at is not None and now <= state.confirmed_at
    if fresh or validated:
        return None
    return Reason.MANIFEST_STALE, "the copy is past its freshness and was not confirmed since"


def _not_usable(body: bytes | None, problems: Iterable[Problem]) -> _Refusal | None:
    if body is None:
        return Reason.MANIFEST_UNAVAILABLE, "no copy of it is kept"
    for problem in problems:
        if problem.severity == Severity.ERROR and not _NOT_ITS_FAULT.fullmatch(problem.code):
            return Reason.MANIFEST_INVALID, f"{problem.code}: {problem.message} (at {problem.pointer or '/'})"
    return None
