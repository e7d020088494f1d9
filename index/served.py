"""From a stored entry to what the API serves: the entry itself, its projection in results, its words and filters. Pure.

An entry is served as published. Where its text alone would not be a usable ARD entry, because it was written under an
older name, with a relative address or inside another object's context, the member is replaced and named in
`ardvark:adapted`; the published text stays in the snapshot.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from index.cards import CardTerms, card_terms
from index.identity import parse_urn
from index.records import Entry
from index.terms import BASE, Context, attributes, effective_context
from index.text import entry_impacts, fold_name

NAMESPACE = "urn:ardvark:terms:"
PREFIX = "ardvark"
_OLD_NAMES = {"type": "mediaType", "data": "inline"}
_LEFT_OUT = frozenset({"representativeQueries", "data"})
_LARGEST_MEMBER = 16_384
_KEPT_KEYWORDS = frozenset({"@context", "@id", "@type"})
_TRUST_LISTS = {"attestations": ("type", "uri"), "provenance": ("relation", "sourceId")}


def derive(entry: Entry) -> dict[str, Any]:
    """Collect what reading an entry added to its text, so that it can be rebuilt from the stored row alone."""
    published = entry.published
    replaced = {name: value for name, value in entry.value.items() if name not in published or published[name] != value}
    dropped = [name for name in published if name not in entry.value]
    return {
        "displayName": entry.display_name,
        "type": entry.type,
        "publisher": entry.publisher,
        "url": entry.url,
        "updatedAt": entry.updated_at.isoformat() if entry.updated_at else None,
        "trust": entry.trust,
        "adapted": list(entry.adapted),
        "outerContext": list(entry.outer_context),
        "replaced": replaced,
        "dropped": dropped,
    }


@dataclass(frozen=True, slots=True)
class ServedEntry:
    """All that a listing is made of."""

    key: str
    display_name: str
    folded_name: str
    type: str
    publisher: str
    leaf: str
    updated_at: str | None
    entry: str
    projection: dict[str, Any]
    members: Mapping[str, Any]
    outer_context: tuple[Any, ...]
    card: CardTerms | None = None

    def impacts(self) -> dict[str, int]:
        """Weigh the words of the entry for text search, and those that only its card has."""
        words = self.card.words if self.card is not None else ()
        return entry_impacts(self.members, self.display_name, self.key.removeprefix("urn:air:"), words)

    def attributes(self) -> list[tuple[str, str]]:
        """Flatten the entry for filters and facets; what comes from the card stands under names of its own."""
        own = [self.members["@context"]] if "@context" in self.members else []
        context, _ = effective_context(*self.outer_context, *own)
        flat = [pair for pair in attributes(self.members, context, self.publisher) if not _is_ours(pair[0])]
        if self.card is not None:
            flat += [(f"{NAMESPACE}artifact.{name}", value) for name, value in self.card.attributes]
        return flat


def with_card(served: ServedEntry, kind: str, normal: Mapping[str, Any]) -> ServedEntry:
    """Add what the live card says to what search knows; what is served of the entry stays as published."""
    return replace(served, card=card_terms(kind, normal))


def members_of(published: Mapping[str, Any], derived: Mapping[str, Any]) -> dict[str, Any]:
    """Give the usable members of an entry under their current names."""
    members = {name: value for name, value in published.items() if name not in derived["dropped"]}
    members.update(derived["replaced"])
    return members


def serve(key: str, raw: str, derived: Mapping[str, Any]) -> ServedEntry:
    """Build what is served from the stored row: the published text and what reading it added."""
    published = json.loads(raw)
    return _serve(key, raw, published, members_of(published, derived), derived)


def serve_entry(entry: Entry, derived: Mapping[str, Any]) -> ServedEntry:
    """Build what is served from an entry that was just read; the same as `serve` gives for its row."""
    return _serve(entry.key or "", entry.raw, entry.published, dict(entry.value), derived)


def _serve(
    key: str, raw: str, published: Mapping[str, Any], members: dict[str, Any], derived: Mapping[str, Any]
) -> ServedEntry:
    members["identifier"] = key
    urn = parse_urn(key)
    return ServedEntry(
        key=key,
        display_name=derived["displayName"],
        folded_name=fold_name(derived["displayName"])[:500],
        type=derived["type"],
        publisher=derived["publisher"] or "",
        leaf=urn.name.lower() if urn else "",
        updated_at=derived["updatedAt"],
        entry=_entry_text(key, raw, published, members, derived),
        projection=_projection(members, derived),
        members=members,
        outer_context=tuple(derived["outerContext"]),
    )


def _entry_text(
    key: str, raw: str, published: Mapping[str, Any], members: Mapping[str, Any], derived: Mapping[str, Any]
) -> str:
    adapted: list[str] = derived["adapted"]
    if not adapted:
        return raw
    entry = dict(published)
    for name in adapted:
        entry.pop(_OLD_NAMES.get(name, ""), None)
        if name in members:
            entry[name] = members[name]
    entry["identifier"] = key
    entry["@context"] = _context(published, derived)
    entry[f"{PREFIX}:adapted"] = adapted
    return json.dumps(entry, ensure_ascii=False, separators=(",", ":"))


def _context(published: Mapping[str, Any], derived: Mapping[str, Any]) -> list[Any]:
    """Join the contexts that give an entry its meaning: the enclosing ones, its own, and ours for the marker."""
    own = published.get("@context")
    contexts = [*derived["outerContext"], *(own if isinstance(own, list) else [own] if own is not None else [])]
    return [*contexts, {PREFIX: NAMESPACE}]


def _projection(members: Mapping[str, Any], derived: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the members that help to choose among results; sample queries and inline artifacts are for Retrieve.

    A member that is not of its kind stays out, so that one careless entry does not spoil a page for strict readers.
    """
    projection = {
        name: value
        for name, value in members.items()
        if name not in _LEFT_OUT and _is_of_its_kind(name, value) and (isinstance(value, str) or _is_small(value))
    }
    projection["displayName"] = derived["displayName"]
    if "metadata" in projection:
        plain = {name: value for name, value in members["metadata"].items() if not isinstance(value, dict | list)}
        projection["metadata"] = plain
    if derived["outerContext"]:
        projection["@context"] = _context(members, derived)[:-1]
    return projection


def without_our_terms(projection: Mapping[str, Any]) -> dict[str, Any]:
    """Take out of a projection what its publisher wrote under our namespace, or under a name that comes to mean it."""
    contexts = projection.get("@context")
    context = effective_context(contexts)[0] if contexts is not None else BASE
    kept = {name: value for name, value in projection.items() if not _imitates(name, context)}
    if contexts is not None:
        kept["@context"] = _without_our_prefix(contexts)
    return kept


def _imitates(name: str, context: Context) -> bool:
    if _is_ours(name):
        return True
    meaning = context.expand(name) or ""
    # Members of an object under `@nest` and the like are members of the entry (JSON-LD 1.1 9.14).
    return _is_ours(meaning) or (meaning.startswith("@") and meaning not in _KEPT_KEYWORDS)


def _is_ours(name: str) -> bool:
    """Tell a name of ours; scheme and namespace of a URN compare without case (RFC 8141 3.1)."""
    folded = name[: len(NAMESPACE)].lower()
    return folded == NAMESPACE or folded.startswith(f"{PREFIX}:")


def _without_our_prefix(context: Any) -> Any:
    """Leave our prefix undefined, so that the definition that follows holds, and our namespace to us."""
    if isinstance(context, list):
        return [_without_our_prefix(item) for item in context]
    if isinstance(context, dict):
        return {name: item for name, item in context.items() if not _claims_us(name, item)}
    return context


def _claims_us(name: str, definition: Any) -> bool:
    is_vocabulary = name == "@vocab" and isinstance(definition, str) and _is_ours(definition)
    return name == PREFIX or _is_ours(name) or is_vocabulary


def _is_of_its_kind(name: str, value: Any) -> bool:
    """Check the members that reading keeps as they are; the others of ARD have their kind by then (ARD 4.2, 4.5)."""
    if name == "@context":
        return isinstance(value, str | dict | list)
    if name == "@id":
        return isinstance(value, str)
    if name == "trustManifest":
        return isinstance(value.get("identity"), str) and all(
            _are_objects(value.get(list_, []), required) for list_, required in _TRUST_LISTS.items()
        )
    return True


def _are_objects(items: Any, required: Sequence[str]) -> bool:
    return isinstance(items, list) and all(
        isinstance(item, dict) and all(isinstance(item.get(name), str) for name in required) for item in items
    )


def _is_small(value: Any) -> bool:
    try:
        return len(orjson.dumps(value)) <= _LARGEST_MEMBER
    except TypeError:  # an integer past 64 bits
        return False
