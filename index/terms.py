"""Terms to IRIs: the small part of JSON-LD that filters need, over the ARD base context. Pure.

Nothing is ever fetched, and structure is always read from raw member names; IRIs serve matching alone. A key resolves
by the base context, then the publisher's own `@context` on top of it (ARD 4.1).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import orjson

from index.identity import canonical_type
from index.records import Problem, Severity

NAMESPACE = "https://agenticresourcediscovery.org/ns#"
BASE_CONTEXT_URLS = frozenset(
    {
        "https://agenticresourcediscovery.org/context/v1",
        "https://agenticresourcediscovery.org/context/v1.jsonld",
    }
)
_CORE_TERMS: Mapping[str, str] = {
    "identifier": "identifier",
    "displayName": "displayName",
    "type": "mediaType",
    "url": "url",
    "data": "data",
    "representativeQueries": "representativeQueries",
    "capabilities": "capabilities",
    "tags": "tags",
    "description": "description",
    "version": "version",
    "updatedAt": "updatedAt",
    "metadata": "metadata",
    "trustManifest": "trustManifest",
}
_KEYWORD_ALIASES = {"id": "@id"}
_JSON_TERMS = frozenset(NAMESPACE + name for name in ("data", "metadata", "trustManifest"))
TYPE_IRI = NAMESPACE + "mediaType"
PUBLISHER_PATH = "publisher"
_PREFIX_ENDS = (":", "/", "?", "#", "[", "]", "@")
_IGNORED_KEYWORDS = frozenset({"@version", "@base", "@language", "@direction", "@protected"})
_UNSUPPORTED_KEYWORDS = frozenset({"@import", "@propagate", "@type"})
_NOT_INDEXED = frozenset(NAMESPACE + name for name in ("description", "representativeQueries"))
# Keys that filter_path refuses under the base context.
UNSUPPORTED_KEYS = frozenset({"id", "description", "representativeQueries", "data", "metadata", "trustManifest"})
_MAX_PAIRS = 200
_MAX_DEPTH = 8
# Both fit one index row of PostgreSQL (2704 bytes), whatever their characters are.
_LONGEST_PATH = 256
_LONGEST_VALUE = 256
LONGEST_KEY = 512
_MAX_CONTEXTS = 64
_MAX_DEFINITIONS = 500
_LONGEST_CONTEXT = 65_536


@dataclass(frozen=True, slots=True)
class Context:
    """An effective context: defined terms, usable prefixes and the vocabulary of undeclared terms."""

    terms: Mapping[str, str | None]
    prefixes: Mapping[str, str]
    vocab: str | None = NAMESPACE

    def expand(self, key: str) -> str | None:
        """Resolve a member name to its IRI; a JSON-LD keyword gives its name, a name with no meaning None."""
        if key.startswith("@"):
            return key
        if key in self.terms:
            return self.terms[key]
        prefix, colon, suffix = key.partition(":")
        if colon:
            if suffix.startswith("//") or prefix == "_":
                return key
            namespace = self.prefixes.get(prefix)
            return key if namespace is None else namespace + suffix
        return None if self.vocab is None else self.vocab + key

    def unusable_prefixes(self, keys: Iterable[str]) -> Iterator[str]:
        """Find the keys whose prefix is declared and cannot serve as one, so that they stay as they are."""
        for key in keys:
            prefix, colon, suffix = key.partition(":")
            declared = prefix in self.terms and prefix not in _CORE_TERMS and prefix not in self.prefixes
            if colon and declared and not suffix.startswith("//"):
                yield key


BASE = Context(
    terms={name: NAMESPACE + iri for name, iri in _CORE_TERMS.items()} | _KEYWORD_ALIASES,
    prefixes={"ard": NAMESPACE},
)


@dataclass(slots=True)
class _Building:
    terms: dict[str, str | None]
    prefixes: dict[str, str]
    vocab: str | None
    problems: list[Problem] = field(default_factory=list)

    def warn(self, code: str, message: str) -> None:
        if len(self.problems) < 20:
            self.problems.append(_warning(code, message))


def effective_context(*local: Any, pointer: str = "/@context") -> tuple[Context, tuple[Problem, ...]]:
    """Apply local contexts, outermost first, on top of the base context.

    Whatever a flat map cannot express is left out with a warning: remote contexts, imports, scoped contexts. A null
    returns to the base and never removes it (ARD 4.1).
    """
    given = [item for context in local for item in _items(context)]
    if all(isinstance(item, str) and item in BASE_CONTEXT_URLS for item in given):
        return BASE, ()
    context, problems = _built(_written(given[:_MAX_CONTEXTS]))
    return context, tuple(replace(problem, pointer=pointer) for problem in problems)


def _written(given: list[Any]) -> bytes | None:
    """Write contexts as the key of what was built before; None for what is too long or cannot be written."""
    try:
        text = orjson.dumps(given)
    except orjson.JSONEncodeError:
        return None
    return text if len(text) <= _LONGEST_CONTEXT else None


@lru_cache(maxsize=128)
def _built(text: bytes | None) -> tuple[Context, tuple[Problem, ...]]:
    """Build a context, once for all entries of a document that share it."""
    if text is None:
        return BASE, (_warning("context.wrong_type", f"a context is JSON of at most {_LONGEST_CONTEXT} bytes"),)
    state = _Building(dict(BASE.terms), dict(BASE.prefixes), BASE.vocab)
    for item in orjson.loads(text):
        _apply(state, item)
    return Context(state.terms, state.prefixes, state.vocab), tuple(state.problems)


def _warning(code: str, message: str) -> Problem:
    return Problem(code, Severity.WARNING, "", message, "ARD 4.1")


def _items(context: Any) -> list[Any]:
    return context if isinstance(context, list) else [context]


def _apply(state: _Building, item: Any) -> None:
    if item is None:
        state.terms, state.prefixes, state.vocab = dict(BASE.terms), dict(BASE.prefixes), BASE.vocab
        state.warn("context.null", "a null context is read as the base context")
    elif isinstance(item, str):
        if item not in BASE_CONTEXT_URLS:
            state.warn("context.remote_unresolved", "a remote context is never fetched; its terms stay undeclared")
    elif isinstance(item, Mapping):
        _define(state, item)
    else:
        state.warn("context.wrong_type", "a context is a URL, an object or an array of both")


def _define(state: _Building, definitions: Mapping[str, Any]) -> None:
    if "@vocab" in definitions:
        vocab = definitions["@vocab"]
        state.vocab = _absolute(state, vocab) if isinstance(vocab, str) else None
    bounded = dict(list(definitions.items())[:_MAX_DEFINITIONS])
    # Prefixes first, and twice, so that definitions may use one another whatever their order.
    for _ in range(2):
        for name, definition in bounded.items():
            _define_prefix(state, name, definition)
    for name, definition in bounded.items():
        _define_term(state, name, definition)


def _define_prefix(state: _Building, name: str, definition: Any) -> None:
    iri = definition if isinstance(definition, str) else _id_of(definition)
    if name.startswith("@"):
        return
    explicit = isinstance(definition, Mapping) and definition.get("@prefix") is True
    if isinstance(iri, str) and (explicit or (isinstance(definition, str) and iri.endswith(_PREFIX_ENDS))):
        state.prefixes[name] = _absolute(state, iri)
    elif name not in _CORE_TERMS:
        state.prefixes.pop(name, None)


def _define_term(state: _Building, name: str, definition: Any) -> None:
    if name.startswith("@"):
        if name in _UNSUPPORTED_KEYWORDS or name not in _IGNORED_KEYWORDS | {"@vocab"}:
            state.warn("context.keyword_ignored", "a context keyword has no effect here")
        return
    if name in _CORE_TERMS or name in _KEYWORD_ALIASES:
        iri = definition if isinstance(definition, str) else _id_of(definition)
        if not isinstance(iri, str) or _absolute(state, iri) != BASE.terms.get(name):
            state.warn("context.core_term_overridden", "a core term is redefined; structure is read from member names")
    if definition is None:
        state.terms[name] = None
        return
    if isinstance(definition, Mapping) and "@context" in definition:
        state.warn("context.scoped_ignored", "a scoped context has no effect here")
    iri = definition if isinstance(definition, str) else _id_of(definition)
    if isinstance(iri, str):
        state.terms[name] = iri if iri.startswith("@") else _absolute(state, iri)
    elif not isinstance(definition, Mapping):
        state.warn("context.wrong_type", "a term is defined by a text or an object")


def _id_of(definition: Any) -> Any:
    return definition.get("@id") if isinstance(definition, Mapping) else None


def _absolute(state: _Building, iri: str) -> str:
    """Expand a definition's own IRI, which may be compact or relative to the vocabulary."""
    prefix, colon, suffix = iri.partition(":")
    if not colon:
        return iri if iri.startswith("@") else (state.terms.get(iri) or (state.vocab or "") + iri)
    if suffix.startswith("//"):
        return iri
    return state.prefixes[prefix] + suffix if prefix in state.prefixes else iri


@dataclass(frozen=True, slots=True)
class FilterPath:
    """Where a filter key points: the path as indexed, and whether its values are media types."""

    path: str
    is_type: bool = False


class UnsupportedKey(ValueError):
    """A filter or facet key that this index cannot answer; the message is for the client (ARD 5.3.1)."""


def filter_path(key: str, context: Context) -> FilterPath:
    """Resolve a filter or facet key (ARD 5.3.1).

    `publisher` is derived from the identifier. What stands before the first dot may name one of the three JSON
    members; the rest is then a literal path. Any other key is one term as a whole, for IRIs contain dots.
    Raises UnsupportedKey for keywords and for texts that are searched and not compared.
    """
    if not key or len(key) > LONGEST_KEY:
        raise UnsupportedKey("a filter key is a term, an IRI or a dotted path")
    if key == PUBLISHER_PATH:
        return FilterPath(PUBLISHER_PATH)
    first, dot, rest = key.partition(".")
    if dot and context.expand(first) in _JSON_TERMS:
        return FilterPath(f"{context.expand(first)}.{rest}")
    iri = key if key.startswith(("http://", "https://", "urn:")) else context.expand(key)
    if iri is None or iri.startswith("@") or iri in _NOT_INDEXED or iri in _JSON_TERMS:
        raise UnsupportedKey(f"the key {key!r} cannot be used to filter")
    return FilterPath(iri, is_type=iri == TYPE_IRI)


def attributes(value: Mapping[str, Any], context: Context, publisher: str | None) -> list[tuple[str, str]]:
    """Flatten an entry to the (path, value) pairs that filters and facets compare, without repeats.

    Arrays add no step, numbers and booleans take their JSON spelling, `type` its canonical one. Bounded in number,
    depth and length; what is longer than a filter can sensibly be is left to text search.
    """
    pairs: dict[tuple[str, str], None] = {}
    if publisher:
        pairs[PUBLISHER_PATH, publisher] = None
    if isinstance(value.get("type"), str):
        # As the listing's own column has it: from the raw member, whatever the context makes of that name.
        pairs[TYPE_IRI, canonical_type(value["type"])] = None
    for path, text in _leaves(value, context):
        if len(pairs) >= _MAX_PAIRS:
            break
        if path != TYPE_IRI and len(path) <= _LONGEST_PATH and len(text) <= _LONGEST_VALUE:
            pairs[path, text] = None
    return list(pairs)


def _leaves(value: Mapping[str, Any], context: Context) -> Iterator[tuple[str, str]]:
    # Single values first, so that no long list crowds them out.
    for name, member in sorted(value.items(), key=lambda item: isinstance(item[1], list | Mapping)):
        iri = context.expand(name)
        if iri is None or iri.startswith("@") or iri in _NOT_INDEXED:
            continue
        if iri in _JSON_TERMS:
            yield from _json_leaves(iri, member, 1)
        else:
            for item in member if isinstance(member, list) else [member]:
                text = scalar_text(item)
                if text is not None:
                    yield iri, text


def _json_leaves(path: str, node: Any, depth: int) -> Iterator[tuple[str, str]]:
    if depth > _MAX_DEPTH:
        return
    if isinstance(node, Mapping):
        for name, member in node.items():
            yield from _json_leaves(f"{path}.{name}", member, depth + 1)
    elif isinstance(node, list):
        for item in node:
            yield from _json_leaves(path, item, depth + 1)
    elif depth > 1:
        text = scalar_text(node)
        if text is not None:
            yield path, text


def scalar_text(value: Any) -> str | None:
    """Write a scalar as filters compare it: text as it is, numbers and booleans in JSON; None for anything else."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, int | float):
        return orjson.dumps(value).decode() if abs(value) < 2**63 else str(value)
    return None
