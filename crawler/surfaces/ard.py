"""The ARD surface: manifests of both AI Catalog generations, nested catalogs and entries in pages (ARD 5.1). Pure.

A document is judged by its shape. The only demand on a manifest is an `entries` array; other root members are noise.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from crawler.surfaces.ard_entry import read_entry
from crawler.surfaces.base import Bounds, Source
from index.identity import CATALOG_TYPE, canonical_type, is_json_type, parse_urn, version_key
from index.records import Entry, Lead, Mechanism, Problem, Reading, Severity, Standing, pointer_step
from index.strict_json import MalformedJson, ParsedJson, canonical_digest, element_texts, member_text, parse
from index.urls import BadUrl, resolve

SURFACE_VERSION = "ard-3"
WELL_KNOWN_PATH = "/.well-known/ard.json"
PREDECESSOR_PATH = "/.well-known/ai-catalog.json"
RELATION = "ard"
PREDECESSOR_RELATION = "ai-catalog"
_MAJOR = 1
_MOST_ROOT_FAULTS = 20


class _Located:
    """The faults that the JSON gate found in a document, by place; hostile documents have very many of them."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self._problems = sorted(problems, key=lambda problem: problem.pointer)
        self._pointers = [problem.pointer for problem in self._problems]

    def within(self, place: str) -> list[Problem]:
        """Give the faults at a place and below it."""
        at = slice(bisect_left(self._pointers, place), bisect_right(self._pointers, place))
        # "0" follows "/" in every order of characters, so this is the range of what starts with "<place>/".
        below = slice(bisect_left(self._pointers, place + "/"), bisect_left(self._pointers, place + "0"))
        return self._problems[at] + self._problems[below]

    def outside(self, place: str) -> list[Problem]:
        """Give the faults that are not below a place."""
        return [problem for problem in self._problems if not problem.pointer.startswith(place + "/")]


@dataclass(slots=True)
class _Catalog:
    """A manifest being read: what all its levels share."""

    source: Source
    bounds: Bounds
    located: _Located
    entries: list[Entry] = field(default_factory=list)
    leads: list[Lead] = field(default_factory=list)
    leads_left_out: int = 0
    is_cut: bool = False
    problems: list[Problem] = field(default_factory=list)
    complete: bool = True

    def note(self, code: str, severity: Severity, pointer: str, message: str, clause: str) -> None:
        self.problems.append(Problem(code, severity, pointer, message, clause))


def read_manifest(body: bytes, source: Source, bounds: Bounds) -> Reading:
    """Read a document that an entry source pointed to.

    The kind is `manifest`, `entry` for a single one (accepted with a warning), `unknown` for other JSON and
    `malformed` for what is none. Only the first two can be complete.
    """
    try:
        parsed = parse(body, max_depth=bounds.json_depth)
    except MalformedJson as error:
        return Reading("malformed", problems=(error.problem(),), complete=False)
    reading = read_parsed(parsed, source, bounds)
    return reading if reading.fatal else replace(reading, content_digest=canonical_digest(parsed))


def read_parsed(parsed: ParsedJson, source: Source, bounds: Bounds) -> Reading:
    """Read a parsed document."""
    value = parsed.value
    located = _Located(problem for problem in parsed.problems if problem.pointer)
    catalog = _Catalog(source, bounds, located, problems=[p for p in parsed.problems if not p.pointer])
    if isinstance(value, dict) and "entries" in value:
        kind = "manifest"
        _read_root(catalog, value, parsed.text)
    elif isinstance(value, dict) and _looks_like_entry(value):
        kind = "entry"
        catalog.note("manifest.single_entry", Severity.WARNING, "", "the document is one bare entry", "ARD 5.1")
        catalog.entries.append(read_entry(value, parsed.text.strip(), "", source, bounds, located=located.within("")))
    else:
        kind = "unknown"
        catalog.complete = False
        catalog.note("manifest.no_entries", Severity.ERROR, "", "expected an object with an entries array", "ARD 5.1")
    return Reading(
        kind=kind,
        entries=tuple(_within_one_document(catalog.entries)),
        leads=tuple(catalog.leads),
        problems=tuple(catalog.problems),
        complete=catalog.complete and kind != "unknown",
        all_leads=not catalog.leads_left_out and not catalog.is_cut,
    )


def served_as(reading: Reading, content_type: str | None) -> Reading:
    """Name a media type that says nothing of JSON; what counts is what the body is (ARD 3.3)."""
    if is_json_type(content_type):
        return reading
    message = "the manifest is not served with a media type of JSON"
    problem = Problem("manifest.media_type", Severity.WARNING, "", message, "ARD 3.3")
    return replace(reading, problems=(*reading.problems, problem))


def withhold_private(reading: Reading) -> Reading:
    """Keep the entries of a private response out of the index: what it says is not for others (RFC 9111 5.2.2.7)."""
    message = "the manifest's Cache-Control is private, so its entries are not served to others"
    problem = Problem("manifest.private", Severity.WARNING, "", message, "RFC 9111 5.2.2.7")
    withheld = [
        replace(
            _with_problem(entry, "entry.private", Severity.ERROR, message, "RFC 9111 5.2.2.7"),
            standing=Standing.REJECTED,
        )
        if entry.standing is Standing.CANDIDATE
        else entry
        for entry in reading.entries
    ]
    return replace(reading, entries=tuple(withheld), problems=(*reading.problems, problem))


def read_in_page(scripts: Sequence[str], base_url: str, source: Source, bounds: Bounds) -> Reading:
    """Read the entries in the JSON-LD scripts of a page (ARD 5.1): an object, an array or a `@graph` of nodes.

    A damaged script is a problem of its own and hides no other; the reading is then incomplete.
    """
    in_page = replace(source, url=base_url)
    entries: list[Entry] = []
    problems: list[Problem] = []
    complete = True
    for number, script in enumerate(scripts):
        pointer = pointer_step(number)
        try:
            parsed = parse(script.encode("utf-8", "surrogatepass"), max_depth=bounds.json_depth)
        except MalformedJson as error:
            if '"urn:air:' in script or '"urn:ai:' in script:
                problems.append(replace(error.problem(), severity=Severity.WARNING, pointer=pointer))
                complete = False
            continue
        faults = _Located(replace(problem, pointer=pointer + problem.pointer) for problem in parsed.problems)
        for node, raw, place, contexts in _nodes(parsed, pointer):
            if len(entries) >= bounds.entries:
                complete = False
                break
            inside = faults.within(place)
            entries.append(read_entry(node, raw, place, in_page, bounds, outer_context=contexts, located=inside))
    return Reading("page", tuple(_within_one_document(entries)), problems=tuple(problems), complete=complete)


def _looks_like_entry(value: Mapping[str, Any]) -> bool:
    identifier = value.get("identifier")
    return isinstance(identifier, str) and parse_urn(identifier) is not None


def _read_root(catalog: _Catalog, root: Mapping[str, Any], text: str) -> None:
    _check_spec_version(catalog, root)
    entries = root["entries"]
    if not isinstance(entries, list):
        catalog.complete = False
        catalog.note("manifest.entries_type", Severity.ERROR, "/entries", "entries must be an array", "ARD 5.1")
        return
    if any(problem.severity is Severity.ERROR for problem in catalog.problems):
        catalog.complete = False
        return
    _read_level(catalog, entries, element_texts(text, ("entries",)), "/entries", catalog.source.depth)
    _read_collections(catalog, root.get("collections"))
    # A fault beside the entries is one of a member that ARD ignores.
    for fault in catalog.located.outside("/entries")[:_MOST_ROOT_FAULTS]:
        catalog.problems.append(replace(fault, severity=Severity.WARNING))


def _check_spec_version(catalog: _Catalog, root: Mapping[str, Any]) -> None:
    """Refuse an AI Catalog of a later major version; for ARD the member is noise (ARD 5.1)."""
    version = root.get("specVersion")
    if not catalog.source.predecessor or version is None:
        return
    major = version.partition(".")[0] if isinstance(version, str) else ""
    if not major.isdecimal() or len(major) > 9:
        catalog.note(
            "catalog.spec_version", Severity.WARNING, "/specVersion", "specVersion should be Major.Minor", "AI Catalog"
        )
    elif int(major) > _MAJOR:
        catalog.note(
            "catalog.unsupported_version",
            Severity.ERROR,
            "/specVersion",
            f"version {int(major)} of the AI Catalog is not known here",
            "AI Catalog",
        )
    elif int(major) != _MAJOR:
        catalog.note("catalog.spec_version", Severity.WARNING, "/specVersion", "expected version 1.0", "AI Catalog")


def _read_level(catalog: _Catalog, entries: Sequence[Any], texts: Sequence[str], pointer: str, depth: int) -> None:
    """Read one array of entries; inline catalogs among them count as a level of their own."""
    for number, (value, raw) in enumerate(zip(entries, texts, strict=True)):
        if len(catalog.entries) >= catalog.bounds.entries:
            catalog.complete = False
            catalog.note(
                "manifest.too_many_entries",
                Severity.WARNING,
                f"{pointer}/{number}",
                f"only {catalog.bounds.entries} entries are read",
                "our bound",
            )
            return
        place = f"{pointer}/{number}"
        inside = _own_faults(value, place, catalog.located.within(place))
        entry = read_entry(value, raw, place, catalog.source, catalog.bounds, located=inside)
        if entry.standing is Standing.POINTER:
            entry = _follow(catalog, entry, depth)
        catalog.entries.append(entry)


def _own_faults(value: Any, place: str, inside: Sequence[Problem]) -> Sequence[Problem]:
    """Leave to the entries of an inline catalog the faults that are theirs."""
    type_ = value.get("type", value.get("mediaType")) if inside and isinstance(value, Mapping) else None
    if not isinstance(type_, str) or canonical_type(type_) != CATALOG_TYPE:
        return inside
    nested = tuple(f"{place}/{member}/entries/" for member in ("data", "inline"))
    return [problem for problem in inside if not problem.pointer.startswith(nested)]


def _follow(catalog: _Catalog, entry: Entry, depth: int) -> Entry:
    """Turn the pointer to a nested catalog into a lead, or read it where it stands (AI Catalog, nesting)."""
    if depth >= catalog.bounds.nesting_depth:
        return _with_problem(
            entry, "nesting.too_deep", Severity.WARNING, f"catalogs below level {depth} are not followed", "AI Catalog"
        )
    entry = _with_problem(
        entry, "entry.nested_catalog", Severity.INFO, "a pointer to a catalog, read in its place", "AI Catalog"
    )
    if entry.url is not None:
        if entry.url in (*catalog.source.ancestors, catalog.source.url):
            return _with_problem(entry, "nesting.cycle", Severity.WARNING, "the catalog leads back here", "AI Catalog")
        _add_lead(catalog, entry.url, entry.pointer, depth)
        return entry
    data = entry.value.get("data")
    nested = data.get("entries") if isinstance(data, Mapping) else None
    if not isinstance(nested, list):
        return _with_problem(
            entry, "nesting.no_entries", Severity.WARNING, "the inline catalog has no entries array", "AI Catalog"
        )
    member = "data" if "data" not in entry.adapted else "inline"
    texts = element_texts(entry.raw, (member, "entries"))
    _read_level(catalog, nested, texts, f"{entry.pointer}/{member}/entries", depth + 1)
    return entry


def _read_collections(catalog: _Catalog, collections: Any) -> None:
    """Follow the child catalogs of older documents (removed from the AI Catalog by its ADR-0003)."""
    if not isinstance(collections, list) or not collections:
        return
    catalog.note(
        "catalog.collections_removed",
        Severity.WARNING,
        "/collections",
        "an older way to nest catalogs",
        "AI Catalog ADR-0003",
    )
    if catalog.source.depth >= catalog.bounds.nesting_depth:
        return
    catalog.is_cut = len(collections) > catalog.bounds.links
    for number, item in enumerate(collections[: catalog.bounds.links]):
        reference = item.get("url") if isinstance(item, Mapping) else item
        pointer = f"/collections/{number}"
        try:
            url = resolve(catalog.source.url, reference) if isinstance(reference, str) else ""
        except BadUrl as error:
            catalog.note("url.syntax", Severity.WARNING, pointer, f"expected {error}", "RFC 3986")
            continue
        if url and url not in (*catalog.source.ancestors, catalog.source.url):
            _add_lead(catalog, url, pointer, catalog.source.depth)


def _add_lead(catalog: _Catalog, url: str, pointer: str, depth: int) -> None:
    if len(catalog.leads) >= catalog.bounds.links:
        catalog.leads_left_out += 1
        if catalog.leads_left_out == 1:
            message = f"only {catalog.bounds.links} catalogs are followed"
            catalog.note("nesting.too_many", Severity.WARNING, pointer, message, "our bound")
        return
    source = catalog.source
    catalog.leads.append(
        Lead(
            url=url,
            mechanism=Mechanism.NESTED,
            rank=source.rank + 1,
            media_type=CATALOG_TYPE,
            pointer=pointer,
            depth=depth + 1,
            ancestors=tuple(dict.fromkeys((*source.ancestors, source.url))),
        )
    )


def _with_problem(entry: Entry, code: str, severity: Severity, message: str, clause: str) -> Entry:
    return replace(entry, problems=(*entry.problems, Problem(code, severity, entry.pointer, message, clause)))


def _within_one_document(entries: Sequence[Entry]) -> Iterator[Entry]:
    """Settle what repeats an identifier: the same version twice is an error, an older version is history."""
    newest: dict[str, Entry] = {}
    first: dict[tuple[str, str | None], Entry] = {}
    for entry in entries:
        if entry.standing is Standing.CANDIDATE and entry.key is not None:
            if first.setdefault((entry.key, entry.version), entry) is not entry:
                continue
            best = newest.setdefault(entry.key, entry)
            if _recency(entry) > _recency(best):
                newest[entry.key] = entry
    for entry in entries:
        if entry.standing is not Standing.CANDIDATE or entry.key is None or newest[entry.key] is entry:
            yield entry
        elif first[entry.key, entry.version] is not entry:
            message = "the identifier occurs twice with the same version; the first entry counts"
            duplicate = _with_problem(entry, "entry.duplicate", Severity.ERROR, message, "ARD 4.2")
            yield replace(duplicate, standing=Standing.REJECTED)
        else:
            message = "a later version of the same identifier is listed"
            superseded = _with_problem(entry, "entry.superseded", Severity.INFO, message, "AI Catalog")
            yield replace(superseded, standing=Standing.SUPERSEDED)


def _recency(entry: Entry) -> tuple[Any, ...]:
    return version_key(entry.version), entry.updated_at.timestamp() if entry.updated_at else 0.0


def _nodes(parsed: ParsedJson, pointer: str) -> Iterator[tuple[Any, str, str, tuple[Any, ...]]]:
    """Find the entry nodes of one script: value, text as published, place, and the contexts of what encloses it.

    Each text is cut out of the one that encloses it; cutting from the whole script would cost quadratic time.
    """
    stack: list[tuple[Any, str, str, tuple[Any, ...]]] = [(parsed.value, member_text(parsed.text, ()), pointer, ())]
    while stack:
        value, text, place, contexts = stack.pop()
        if isinstance(value, list):
            items = zip(value, element_texts(text, ()), strict=True)
            stack.extend(reversed([(*item, f"{place}/{index}", contexts) for index, item in enumerate(items)]))
        elif isinstance(value, dict):
            if _looks_like_entry(value):
                yield value, text, place, contexts
                continue
            inner = (*contexts, value["@context"]) if "@context" in value else contexts
            for name in ("entries", "@graph"):
                if isinstance(value.get(name), list | dict):
                    stack.append((value[name], member_text(text, (name,)), place + pointer_step(name), inner))
