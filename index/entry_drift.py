"""Where an entry and the document it points to disagree, row by row. Pure.

A disagreement is one only as far as both sides speak: what the entry does not state, or the card does not list, is no
drift. What is a deliberate choice of the catalog, such as its own wording, is an observation of severity info (AI
Catalog: the entry's name and description take precedence); it turns into drift when it is an older wording of the card.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from index.diff import ChangeClass
from index.disagreement import CardView, Disagreement, once, small
from index.findings import redact
from index.identity import canonical_type, parse_urn
from index.offered import (
    Address,
    Offer,
    absolute,
    are_related,
    binding_token,
    blotted,
    host_named,
    protocol_version,
    same_version,
    text,
    texts,
    token_of,
)
from index.records import Severity, pointer_step
from index.stated import Endpoint, Stated, Term, stated_by
from index.text import fold_name

ABSENT_KINDS = frozenset({"gone", "absent"})
_FOREIGN_KINDS = frozenset({"not_a_document", "malformed", "wrong_kind", "catch_all"})
MCP_KINDS = frozenset({"mcp.card", "mcp.server"})
CARD_KINDS = MCP_KINDS | {"a2a.card", "madp.agent"}
_DOCUMENT_KINDS = CARD_KINDS | {"skills.index", "ard.manifest", "ard.entry", "unknown"}
_MADP_TYPE = "application/madp+json"
_KINDS_OF_TYPE: Mapping[str, frozenset[str]] = {
    "application/a2a-agent-card+json": frozenset({"a2a.card"}),
    "application/agent-card+json": frozenset({"a2a.card"}),
    "application/mcp-server-card+json": MCP_KINDS,
    _MADP_TYPE: frozenset({"madp.agent"}),
    "application/ai-catalog+json": frozenset({"ard.manifest"}),
}
# Skills are no JSON, so only a document that is clearly something else contradicts these.
_SKILL_TYPES = frozenset({"application/ai-skill+md", "application/agent-skills+zip"})
_PLAIN_JSON = frozenset({"application/json", "text/json", "application/ld+json"})
# Words for what a protocol can do; an entry that uses them names no skill.
_PROTOCOL_WORDS = frozenset(
    """
    streaming pushnotifications extendedagentcard statetransitionhistory tools resources prompts logging completions
    sampling elicitation roots
    """.split()
)
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MOST_OF_A_ROW = 100


@dataclass(frozen=True, slots=True)
class _Sides:
    """The two sides of one comparison; `base` is the pointer of what is offered within the live normal form."""

    entry: Mapping[str, Any]
    declared: str
    kind: str
    offer: Offer
    older: Sequence[Offer]
    base: str
    live: CardView
    stated: Stated

    @property
    def form(self) -> Mapping[str, Any]:
        return self.offer.form

    def differ(
        self,
        code: str,
        kind: ChangeClass,
        severity: Severity,
        places: tuple[str, str],
        values: tuple[Any, Any],
        *,
        members: tuple[str, ...] = (),
        identity: str = "",
    ) -> Disagreement:
        catalog, live = map(small, values)
        place = self.base + places[1]
        return Disagreement(code, kind, severity, places[0], place, catalog, live, members, identity)


def compare_entry(
    entry: Mapping[str, Any],
    declared_type: str,
    live: CardView,
    older: Sequence[Mapping[str, Any] | Offer] = (),
    *,
    drift_only: bool = False,
) -> list[Disagreement]:
    """Compare an entry with the document it points to; `older` are earlier normal forms of that document.

    With `drift_only`, rows that could bring nothing but observations are left out.
    """
    sides = _sides(entry, declared_type, live, older)
    if sides.kind in ABSENT_KINDS:
        return list(_nothing_there(sides))
    if sides.kind in _FOREIGN_KINDS:
        return once((*_nothing_there(sides), *_digest(sides)))
    if sides.kind not in _DOCUMENT_KINDS:
        return []
    mistyped = list(_type(sides))
    if mistyped:
        # What another kind of document says about versions and tags is beside the point.
        return once((*mistyped, *_digest(sides)))
    rows = _DRIFT_ROWS if drift_only else _ROWS
    return once(found for row in rows for found in islice(row(sides), _MOST_OF_A_ROW))


def _sides(entry: Mapping[str, Any], declared_type: str, live: CardView, older: Sequence[Any]) -> _Sides:
    # Inline data is compared as a document; what looks like a credential is masked on the live side as well.
    own = redact({name: member for name, member in entry.items() if name != "data"})
    declared = canonical_type(declared_type).partition(";")[0].strip()
    offer, kind, base = live.offer, live.kind, ""
    states = [past if isinstance(past, Offer) else Offer(_object(past)) for past in older]
    if kind == "madp.agent" and "card" in offer.form and declared not in ("", _MADP_TYPE):
        # Two documents in one (protocol notes 5): the entry means the card.
        offer, kind, base = offer.inner, "a2a.card", "/card"
        states = [past.inner for past in states]
    return _Sides(own, declared, kind, offer, states, base, live, stated_by(own))


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _nothing_there(sides: _Sides) -> Iterator[Disagreement]:
    """Say that there is no card: a 404 contradicts every entry, another body only one that announces a card."""
    places, values = ("/url", ""), (sides.entry.get("url"), sides.kind)
    if sides.kind in ABSENT_KINDS or sides.declared in _KINDS_OF_TYPE:
        yield sides.differ("drift.artifact_gone", ChangeClass.BREAKING, Severity.ERROR, places, values)
    elif sides.declared in _PLAIN_JSON:
        yield sides.differ("drift.not_a_document", ChangeClass.BEHAVIOURAL, Severity.INFO, places, values)


def _digest(sides: _Sides) -> Iterator[Disagreement]:
    """Compare the digest of the bytes; that of inline data is no digest of what an address delivers (AI Catalog)."""
    stated, live = text(sides.entry, "digest"), sides.live.digest
    if stated is None or live is None or "url" not in sides.entry:
        return
    algorithm, _, value = stated.strip().lower().partition(":")
    values = (stated, f"sha256:{live}")
    if algorithm.replace("-", "") != "sha256" or _SHA256.fullmatch(value) is None:
        yield sides.differ("drift.digest_unchecked", ChangeClass.SECURITY, Severity.INFO, ("/digest", ""), values)
    elif value != live.lower():
        yield sides.differ("drift.digest_mismatch", ChangeClass.SECURITY, Severity.ERROR, ("/digest", ""), values)


def _type(sides: _Sides) -> Iterator[Disagreement]:
    expected = _KINDS_OF_TYPE.get(sides.declared)
    is_card_for_skill = sides.declared in _SKILL_TYPES and sides.kind in CARD_KINDS
    if is_card_for_skill or (expected is not None and sides.kind not in expected):
        places, values = ("/type", ""), (sides.declared, sides.kind)
        yield sides.differ("drift.type_mismatch", ChangeClass.BREAKING, Severity.ERROR, places, values)


def _version(sides: _Sides) -> Iterator[Disagreement]:
    stated, live = text(sides.entry, "version"), text(sides.form, "version")
    if stated and live and not same_version(stated, live):
        places = ("/version", "/version")
        yield sides.differ(
            "drift.version_mismatch",
            ChangeClass.VERSION_ONLY,
            Severity.WARNING,
            places,
            (stated, live),
            members=("version",),
        )


def _wording(sides: _Sides) -> Iterator[Disagreement]:
    """Take the catalog's own words for its choice, unless they are an older wording of the card (AI Catalog)."""
    for member, code, names in (
        ("displayName", "drift.name_differs", ("title", "name")),
        ("description", "drift.description_differs", ("description",)),
    ):
        stated = text(sides.entry, member)
        live = [(name, value) for name in names if (value := text(sides.form, name))]
        words = " ".join((stated or "").split())
        if not stated or not live or any(words == sides.offer.words(name) for name, _ in live):
            continue
        name, value = live[0]
        copied = any(words == past.words(name) for past in sides.older for name in names)
        stale = copied and not (member == "description" and blotted(stated) == sides.offer.blotted(name))
        yield sides.differ(
            "drift.stale_copy" if stale else code,
            ChangeClass.COSMETIC,
            Severity.WARNING if stale else Severity.INFO,
            (f"/{member}", f"/{name}"),
            (stated, value),
            members=(member,),
        )


def _tags(sides: _Sides) -> Iterator[Disagreement]:
    stated = texts(sides.entry.get("tags"))
    if sides.kind != "a2a.card" or not stated or not sides.offer.has_skills:
        return
    for index, tag in stated:
        if fold_name(tag) not in sides.offer.tags:
            yield sides.differ(
                "drift.tag_removed",
                ChangeClass.SEARCH,
                Severity.WARNING,
                (f"/tags/{index}", "/skills"),
                (tag, None),
                identity="/tags" + pointer_step(fold_name(tag)),
            )


def _tags_missing(sides: _Sides) -> Iterator[Disagreement]:
    stated = texts(sides.entry.get("tags"))
    if sides.kind != "a2a.card" or not stated:
        return
    said = {fold_name(tag) for _, tag in stated}
    for folded, (place, tag) in sides.offer.tags.items():
        if folded not in said:
            identity = "/tags" + pointer_step(folded)
            yield sides.differ(
                "drift.tag_missing",
                ChangeClass.COMPATIBLE,
                Severity.INFO,
                ("/tags/-", place),
                (None, tag),
                identity=identity,
            )


def _capabilities(sides: _Sides) -> Iterator[Disagreement]:
    """Tell a name that once was a skill's and is none any more from a word that never was one."""
    stated = [(index, name, token_of(name)) for index, name in texts(sides.entry.get("capabilities"))]
    member, offered = sides.offer.names_member, sides.offer.names
    if member is None or not stated:
        return
    earlier = {token for _, _, token in stated if any(token in past.names for past in sides.older)}
    matched = bool(earlier) or any(token in offered for _, _, token in stated)
    for index, name, token in stated:
        if token in offered or token in sides.offer.flags:
            continue
        names_skills = token in earlier or (matched and token not in _PROTOCOL_WORDS)
        yield sides.differ(
            "drift.capability_removed" if names_skills else "drift.capability_unknown",
            ChangeClass.BREAKING if names_skills else ChangeClass.SEARCH,
            Severity.WARNING if names_skills else Severity.INFO,
            (f"/capabilities/{index}", member),
            (name, None),
            identity="/capabilities" + pointer_step(token),
        )


def _endpoints(sides: _Sides) -> Iterator[Disagreement]:
    live = sides.offer.addresses if sides.stated.endpoints else ()
    for stated in sides.stated.endpoints:
        url = absolute(stated.url.value, sides.entry.get("url"))
        if url is None or not (live or any(past.reached_by(url) for past in sides.older)):
            continue
        there = sides.offer.reached_by(url)
        if not there:
            yield _interface_changed(sides, stated, stated.url, "url", live[0] if live else None)
        else:
            yield from _spoken_there(sides, stated, there)
            if stated.preferred and live[0] not in there:
                yield sides.differ(
                    "drift.interface_not_preferred",
                    ChangeClass.BEHAVIOURAL,
                    Severity.INFO,
                    (stated.url.pointer, live[0].pointer),
                    (stated.url.value, live[0].url),
                )


def _spoken_there(sides: _Sides, stated: Endpoint, there: list[Address]) -> Iterator[Disagreement]:
    """Compare binding and versions as far as the entry states them and the card does."""
    if stated.binding is not None and all(address.binding for address in there):
        binding = binding_token(stated.binding.value)
        speaking = [address for address in there if binding_token(address.binding) == binding]
        if not speaking:
            yield _interface_changed(sides, stated, stated.binding, "protocolBinding", there[0])
            return
        there = speaking
    versions = [version for address in there for version in address.versions]
    versions = versions or [version for _, version in texts(sides.form.get("protocolVersions"))]
    spoken = {protocol_version(version) for version in versions}
    for version in stated.versions if spoken else ():
        if protocol_version(version.value) not in spoken:
            yield _interface_changed(sides, stated, version, "protocolVersion", there[0])


def _interface_changed(sides: _Sides, stated: Endpoint, term: Term, member: str, live: Address | None) -> Disagreement:
    value: Any = None
    if live is not None:
        versions = ", ".join(live.versions)
        value = {"url": live.url, "protocolBinding": live.binding, "protocolVersion": versions}[member]
    return sides.differ(
        "drift.interface_changed",
        ChangeClass.BREAKING,
        Severity.ERROR,
        (term.pointer, live.pointer if live else ""),
        (term.value, value),
        members=(member,),
        identity=_identity(term, stated.url.value),
    )


def _identity(term: Term, *values: str) -> str:
    """Name what stands in a list by its values; elsewhere the pointer is enough."""
    return " ".join((term.place, *values, str(term.value))) if "*" in term.place else ""


def _protocol_versions(sides: _Sides) -> Iterator[Disagreement]:
    for term in sides.stated.versions:
        if sides.offer.spoken and protocol_version(term.value) not in sides.offer.spoken:
            yield sides.differ(
                "drift.protocol_version_removed",
                ChangeClass.BREAKING,
                Severity.WARNING,
                (term.pointer, "/protocolVersions" if "protocolVersions" in sides.form else "/supportedInterfaces"),
                (term.value, list(sides.offer.versions)),
                identity=_identity(term),
            )


def _access(sides: _Sides) -> Iterator[Disagreement]:
    live = sides.offer.needs_credentials if sides.stated.access else None
    for term in sides.stated.access if live is not None else ():
        if term.value != live:
            yield sides.differ(
                "drift.auth_required" if live else "drift.auth_dropped",
                ChangeClass.BREAKING if live else ChangeClass.COMPATIBLE,
                Severity.ERROR if live else Severity.INFO,
                (term.pointer, "/authRequired" if sides.kind in MCP_KINDS else "/securityRequirements"),
                (term.value, live),
            )


def _provider(sides: _Sides) -> Iterator[Disagreement]:
    """Relate the publisher to the hosts that the card names: worth knowing, never a verdict."""
    urn = parse_urn(text(sides.entry, "identifier") or "")
    if urn is None:
        return
    provider = sides.form.get("provider")
    own = provider.get("url") if isinstance(provider, Mapping) else sides.form.get("websiteUrl")
    named = [("/provider/url" if isinstance(provider, Mapping) else "/websiteUrl", own)] if own else []
    # Those of a hybrid's older block stand nowhere in the normal form.
    named += [(address.pointer, address.url) for address in sides.offer.addresses if address.pointer]
    for place, url in named:
        host = host_named(url)
        if host and not are_related(urn.publisher, host):
            yield sides.differ(
                "drift.provider_differs",
                ChangeClass.SECURITY,
                Severity.INFO,
                ("/identifier", place),
                (urn.publisher, host),
                identity=f"/identifier {host}",
            )


_Row = Callable[[_Sides], Iterator[Disagreement]]
_DRIFT_ROWS: Sequence[_Row] = (
    _digest,
    _type,
    _version,
    _wording,
    _endpoints,
    _protocol_versions,
    _access,
    _capabilities,
    _tags,
)
_ROWS: Sequence[_Row] = (*_DRIFT_ROWS, _tags_missing, _provider)
