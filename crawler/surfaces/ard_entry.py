"""One ARD entry: what it must carry, what it may, and how older spellings are read (ARD 4, AI Catalog). Pure.

Every fault becomes a problem with a code, a place and a clause. An error keeps the entry out of the index, a warning
does not, and no fault of one entry touches another.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from crawler.surfaces.base import Bounds, Source
from index.findings import find, is_quiet, redact
from index.identity import CATALOG_TYPE, canonical_type, media_type, parse_urn
from index.records import Entry, Problem, Severity, Standing, pointer_step
from index.terms import effective_context
from index.trust import Alignment, acceptable, alignment
from index.urls import BadUrl, canonical_url, is_relative, resolve, scheme_of

_ACTIVE_SCHEMES = frozenset({"javascript", "vbscript", "data", "blob", "file", "about"})
_TEXTS = ("description", "version")
_TEXT_LISTS = ("tags", "capabilities", "representativeQueries")
_RENAMED = {"mediaType": "type", "inline": "data"}
_LONGEST_NAME = 1000
_MOST_OF_A_KIND = 20
_RFC3339 = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:[Zz]|[+-]\d\d:?\d\d)?|\d{4}-\d\d-\d\d", re.ASCII
)


@dataclass(slots=True)
class _Draft:
    """An entry in the making."""

    pointer: str
    members: dict[str, Any]
    source: Source
    bounds: Bounds
    problems: list[Problem]
    adapted: list[str]

    def error(self, code: str, member: str, message: str, clause: str) -> None:
        self._add(code, Severity.ERROR, member, message, clause)

    def warn(self, code: str, member: str, message: str, clause: str) -> None:
        self._add(code, Severity.WARNING, member, message, clause)

    def info(self, code: str, member: str, message: str, clause: str) -> None:
        self._add(code, Severity.INFO, member, message, clause)

    def _add(self, code: str, severity: Severity, member: str, message: str, clause: str) -> None:
        place = self.pointer + (pointer_step(member) if member else "")
        self.problems.append(Problem(code, severity, place, message, clause))


def read_entry(
    value: Any,
    raw: str,
    pointer: str,
    source: Source,
    bounds: Bounds,
    *,
    outer_context: Sequence[Any] = (),
    located: Sequence[Problem] = (),
) -> Entry:
    """Read one entry. `located` are faults that the JSON gate found inside it."""
    if not isinstance(value, dict):
        problem = Problem("entry.not_object", Severity.ERROR, pointer, "an entry is a JSON object", "ARD 4.2")
        return Entry(pointer, raw, standing=Standing.REJECTED, problems=(problem,))
    draft = _Draft(pointer, dict(value), source, bounds, list(_some_of_each(located)), [])
    _findings(draft, raw)
    _rename(draft)
    identifier, key, publisher = _identifier(draft)
    type_ = _type(draft)
    url = _content(draft)
    display_name = _display_name(draft, key or identifier or "")
    _texts(draft)
    trust = _trust(draft, publisher)
    updated_at = _updated_at(draft)
    _metadata(draft)
    _context(draft, outer_context)
    _representative_queries(draft)
    return Entry(
        pointer=pointer,
        raw=raw,
        published=value,
        value=draft.members,
        identifier=identifier,
        key=key,
        display_name=display_name,
        type=type_,
        version=draft.members.get("version"),
        updated_at=updated_at,
        publisher=publisher,
        url=url,
        outer_context=tuple(outer_context),
        adapted=tuple(draft.adapted),
        trust=trust,
        standing=_standing(draft, type_),
        problems=tuple(draft.problems),
    )


def _findings(draft: _Draft, raw: str) -> None:
    """Name what should not be public, and take out of what is served whatever looks like a credential."""
    quiet = is_quiet(raw)
    draft.problems += [
        replace(problem, severity=Severity.WARNING, pointer=draft.pointer + problem.pointer)
        for problem in find(draft.members, quiet=quiet)
    ]
    if quiet:
        return
    for name, member in redact(draft.members).items():
        if member != draft.members[name]:
            draft.members[name] = member
            draft.adapted.append(name)


def _some_of_each(located: Sequence[Problem]) -> Iterator[Problem]:
    """Take so many faults of a kind; a hostile entry has one for every few bytes."""
    counts: Counter[str] = Counter()
    for problem in located:
        counts[problem.code] += 1
        if counts[problem.code] <= _MOST_OF_A_KIND:
            yield problem


def _standing(draft: _Draft, type_: str) -> Standing:
    if any(problem.severity is Severity.ERROR for problem in draft.problems):
        return Standing.REJECTED
    return Standing.POINTER if type_ == CATALOG_TYPE else Standing.CANDIDATE


def _rename(draft: _Draft) -> None:
    """Read members under their older names (AI Catalog of April 2026, old examples)."""
    for old, new in _RENAMED.items():
        if old not in draft.members:
            continue
        if new in draft.members:
            if draft.members[old] != draft.members[new]:
                draft.warn(f"entry.{new}_twice", old, f"{old} and {new} differ; {new} counts", "AI Catalog ADR-0014")
        else:
            draft.warn(f"entry.old_name_{new}", old, f"{old} is the older name of {new}", "AI Catalog ADR-0014")
            draft.members[new] = draft.members.pop(old)
            draft.adapted.append(new)


def _identifier(draft: _Draft) -> tuple[str | None, str | None, str | None]:
    identifier = draft.members.get("identifier")
    if not isinstance(identifier, str) or not identifier:
        problem = "is missing" if identifier is None else "must be a text"
        draft.error("identifier.missing", "identifier", f"identifier {problem}", "ARD 4.2")
        return None, None, None
    urn = parse_urn(identifier)
    if urn is None:
        if identifier.startswith(("urn:air:", "urn:ai:")):
            draft.error(
                "identifier.syntax", "identifier", "expected urn:air:<publisher>:<namespace>:<name>", "ARD Appendix C"
            )
        else:
            draft.error(
                "identifier.not_ard",
                "identifier",
                "the identifier is no urn:air name, so ARD cannot look it up; the entry is kept and not served",
                "ARD Appendix C",
            )
        return identifier, None, None
    if urn.predecessor:
        draft.warn("identifier.old_prefix", "identifier", "urn:ai is the older prefix of urn:air", "ARD Appendix C")
        draft.adapted.append("identifier")
    if not urn.publisher_is_domain:
        draft.warn(
            "identifier.publisher_not_domain", "identifier", "the publisher should be a domain name", "ARD Appendix C"
        )
    other = draft.members.get("@id")
    if isinstance(other, str) and other != identifier:
        draft.warn("entry.id_mismatch", "@id", "@id and identifier must denote the same resource", "ARD Appendix C")
    return identifier, urn.key, urn.publisher


def _type(draft: _Draft) -> str:
    given = draft.members.get("type")
    if not isinstance(given, str) or not given.strip():
        draft.members.pop("type", None)
        problem = "is missing" if given is None else "must be a text"
        draft.error("entry.type_missing", "type", f"type {problem}", "ARD 4.2")
        return ""
    canonical = canonical_type(given)
    if media_type(given) is None:
        draft.warn("type.not_media_type", "type", "type should be a media type", "ARD 3.3")
    elif canonical != given:
        draft.info("type.spelling", "type", f"read as {canonical}", "ARD 3.3")
    return canonical


def _content(draft: _Draft) -> str | None:
    """Check that exactly one of `url` and `data` is there (ARD 4.3), and resolve the address."""
    url, data = draft.members.get("url"), draft.members.get("data")
    has_url, has_data = "url" in draft.members, "data" in draft.members
    if has_url and has_data:
        draft.error("entry.url_and_data", "", "url and data exclude each other", "ARD 4.3")
    elif not has_url and not has_data:
        draft.error("entry.no_content", "", "one of url and data is required", "ARD 4.2")
    if has_data and not isinstance(data, Mapping):
        draft.warn("entry.data_type", "data", "data should be a JSON object", "ARD 4.2")
        draft.members.pop("data")
    return _url(draft, url) if has_url else None


def _url(draft: _Draft, url: Any) -> str | None:
    if not isinstance(url, str) or not url.strip():
        draft.members.pop("url")
        draft.error("url.type", "url", "url must be a text", "ARD 4.2")
        return None
    scheme = scheme_of(url)
    if scheme in _ACTIVE_SCHEMES:
        draft.error("url.scheme", "url", f"a {scheme} address is not served to others", "ARD 4.2")
        return None
    try:
        if is_relative(url):
            absolute = resolve(draft.source.url, url)
            draft.info("url.relative", "url", "resolved against the document", "AI Catalog, RFC 3986 5")
            draft.members["url"] = absolute
            draft.adapted.append("url")
            return absolute
        return canonical_url(url) if scheme in ("http", "https") else _foreign_url(draft, url, scheme)
    except BadUrl as error:
        draft.error("url.syntax", "url", f"expected {error}", "ARD 4.2, RFC 3986")
        return None


def _foreign_url(draft: _Draft, url: str, scheme: str) -> str:
    draft.info("url.foreign_scheme", "url", f"{scheme} addresses are listed and not fetched", "ARD 4.2")
    return url


def _display_name(draft: _Draft, identifier: str) -> str:
    given = draft.members.get("displayName")
    if isinstance(given, str) and given.strip():
        if len(given) > _LONGEST_NAME:
            draft.warn("entry.display_name_long", "displayName", "the name is cut when shown", "ARD 4.2")
        return given[:_LONGEST_NAME]
    problem = "is missing" if given is None else "must be a text"
    derived = (re.split(r"[:/]", identifier)[-1] or identifier)[:_LONGEST_NAME]
    draft.warn(
        "entry.display_name_missing", "displayName", f"displayName {problem}; shown is the identifier's end", "ARD 4.2"
    )
    draft.members["displayName"] = derived
    draft.adapted.append("displayName")
    return derived


def _texts(draft: _Draft) -> None:
    for name in _TEXTS:
        value = draft.members.get(name)
        if name in draft.members and not isinstance(value, str):
            draft.members.pop(name)
            draft.warn("entry.wrong_type", name, f"{name} must be a text; it is left out", "ARD 4.2")
        elif isinstance(value, str) and len(value) > draft.bounds.string_size:
            draft.members[name] = value[: draft.bounds.string_size] + " […]"
            draft.warn("entry.text_long", name, f"{name} is cut when shown", "ARD 4.2")
    for name in _TEXT_LISTS:
        if name in draft.members:
            _text_list(draft, name)


def _text_list(draft: _Draft, name: str) -> None:
    value = draft.members[name]
    kept = [item for item in value if isinstance(item, str)] if isinstance(value, list) else None
    if kept is None:
        draft.members.pop(name)
        draft.warn("entry.wrong_type", name, f"{name} must be an array of texts; it is left out", "ARD 4.2")
    elif len(kept) != len(value):
        draft.members[name] = kept
        draft.warn("entry.wrong_type", name, f"{name} must hold texts only; the others are left out", "ARD 4.2")


def _representative_queries(draft: _Draft) -> None:
    queries = draft.members.get("representativeQueries")
    if queries is None:
        draft.warn(
            "queries.missing", "", "representativeQueries should hold two to five sample queries", "ARD 4.2, D.2"
        )
    elif not 2 <= len(queries) <= 5:
        draft.warn(
            "queries.count",
            "representativeQueries",
            f"expected two to five sample queries, not {len(queries)}",
            "ARD D.2",
        )


def _trust(draft: _Draft, publisher: str | None) -> str:
    if "trustManifests" in draft.members:
        draft.info("trust.manifests_array", "trustManifests", "kept and not evaluated", "AI Catalog, September 2026")
    if "trustManifest" not in draft.members:
        return Alignment.ABSENT
    manifest = draft.members["trustManifest"]
    if not isinstance(manifest, Mapping):
        draft.members.pop("trustManifest")
        draft.warn("trust.type", "trustManifest", "trustManifest must be an object; it is left out", "ARD 4.5")
        return Alignment.ABSENT
    verdict = alignment(manifest, publisher or "")
    if verdict is Alignment.ABSENT:
        draft.warn("trust.identity_missing", "trustManifest", "identity is required", "ARD 4.5")
    elif publisher and not acceptable(verdict, draft.bounds.alignment):
        draft.error(f"trust.{verdict}", "trustManifest", f"the identity does not align with {publisher}", "ARD 4.5.1")
    return verdict


def _updated_at(draft: _Draft) -> datetime | None:
    if "updatedAt" not in draft.members:
        return None
    given = draft.members["updatedAt"]
    try:
        if not isinstance(given, str) or not _RFC3339.fullmatch(given):
            raise ValueError
        instant = datetime.fromisoformat(given.upper())
        return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)
    except (ValueError, OverflowError):
        draft.members.pop("updatedAt")
        draft.warn("entry.updated_at", "updatedAt", "updatedAt must be an RFC 3339 time; it is left out", "ARD 4.2")
        return None


def _metadata(draft: _Draft) -> None:
    if "metadata" not in draft.members:
        return
    metadata = draft.members["metadata"]
    if not isinstance(metadata, Mapping):
        draft.members.pop("metadata")
        draft.warn("entry.wrong_type", "metadata", "metadata must be an object; it is left out", "ARD 4.2")
    elif any(isinstance(item, dict | list) for item in metadata.values()):
        draft.warn("metadata.nested", "metadata", "metadata should hold plain values only", "ARD 4.2")


def _context(draft: _Draft, outer_context: Sequence[Any]) -> None:
    if outer_context:
        draft.adapted.append("@context")
    if "@context" in draft.members or outer_context:
        own = [draft.members["@context"]] if "@context" in draft.members else []
        context, problems = effective_context(*outer_context, *own, pointer=draft.pointer + "/@context")
        draft.problems.extend(problems)
        for name in context.unusable_prefixes(draft.members):
            draft.warn(
                "context.prefix_unusable", name, "the prefix lacks a final delimiter and expands nothing", "ARD 4.1"
            )
