"""Reading whatever an entry's address, a card's own path or an entry's inline data delivers. Pure.

The shape decides what it is; what it was announced as is only kept beside that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from crawler.surfaces import a2a, madp, mcp
from crawler.surfaces.members import Notes, text, without_none
from crawler.surfaces.recognise import MADP_PROTOCOL, Kind, is_a2a_card, recognise
from index.cards import form_of
from index.findings import find, has_secret, host_if_https, redact
from index.identity import canonical_type, is_json_type
from index.records import Artifact, ArtifactDecision, Entry, Mechanism, Problem, Severity, Signer
from index.signatures import SignedCard, Verdict, read_signed, signature_problems, verdict_json
from index.signing_keys import described, is_key_set, read_keys
from index.strict_json import MalformedJson, canonical, digest, parse

VERSION = "3"
HEADERS = {
    **a2a.VERSION_HEADER,
    "Accept": "application/json, application/mcp-server-card+json, application/a2a-agent-card+json, */*;q=0.5",
}
# The surface that an entry's artifact belongs to, by the media type it is announced with; others are not fetched.
_SURFACE_OF_TYPE = {
    "application/a2a-agent-card+json": "a2a",
    "application/agent-card+json": "a2a",
    "application/mcp-server-card+json": "mcp",
    "application/madp+json": "madp",
    "application/json": None,
}
# What an agent file leads to has no shape of its own: any JSON object at the place is taken (protocol notes 5).
_MADP_KINDS = {
    Mechanism.AGENT_DISCOVERY: "madp.discovery",
    Mechanism.CONSTELLATION: "madp.members",
    Mechanism.TRUST_ANCHOR: "madp.anchor",
}
PRIVATE = "private"
KEY_SET = "jose.keys"
_MOST_INLINE_SIGNED = 100
READ_KINDS = frozenset({Kind.A2A_CARD, Kind.MCP_CARD, Kind.MCP_SERVER, Kind.MADP_AGENT, KEY_SET, *_MADP_KINDS.values()})
_LARGEST_KEPT = 65_536
_DEEPEST = 256
_LONGEST_SHAPE = 16


def decision_about(media_type: str, surfaces: tuple[str, ...]) -> ArtifactDecision:
    """Tell whether what an entry of this type points to is read as a card.

    Registries, bare endpoints and types that we know nothing of are not: their address is to be called, not fetched.
    """
    essence = canonical_type(media_type).partition(";")[0].strip()
    if essence not in _SURFACE_OF_TYPE:
        return ArtifactDecision.NOT_A_CARD
    surface = _SURFACE_OF_TYPE[essence]
    on = surface in surfaces if surface else bool({"a2a", "mcp", "madp"} & set(surfaces))
    return ArtifactDecision.WATCHED if on else ArtifactDecision.SURFACE_OFF


def read_artifact(body: bytes, url: str, mechanism: Mechanism, *, max_depth: int) -> Artifact:
    """Read a fetched document; `url` is where it came from in the end, `mechanism` what led to it.

    What is no JSON has the kind `not_a_document` and the problem that says why.
    """
    try:
        parsed = parse(body, max_depth=max_depth)
    except MalformedJson as error:
        return Artifact("not_a_document", "", problems=(error.problem(),), digest=digest(body))
    kind = _MADP_KINDS.get(mechanism)
    if kind is not None and isinstance(parsed.value, Mapping):
        read = _madp_document(parsed.value, kind, url, keep=len(body) <= _LARGEST_KEPT)
    elif mechanism is Mechanism.KEY_SET and is_key_set(parsed.value):
        read = _key_set(parsed.value)
    else:
        read = read_value(parsed.value, url)
    return replace(read, problems=(*parsed.problems, *read.problems), digest=digest(body))


def _madp_document(value: Mapping[str, Any], kind: str, url: str, *, keep: bool) -> Artifact:
    content = digest(canonical(value))
    findings = find(value, https_host=host_if_https(url))
    normal = redact(dict(value)) if keep else {}
    return Artifact(kind, "", normal, findings=findings, content_digest=content, secret=has_secret(value))


def _key_set(value: Mapping[str, Any]) -> Artifact:
    """Keep of a key set what tells its keys apart; another order or spelling of it is no change."""
    keys = read_keys(value)
    normal = {"keys": described(keys)}
    private = any(problem.code == "keys.private" for problem in keys.problems)
    secret = private or has_secret(value)
    content = digest(canonical(normal))
    return Artifact(KEY_SET, "", normal, problems=keys.problems, content_digest=content, secret=secret)


def signed_card(read: Artifact, body: bytes, max_depth: int) -> SignedCard | None:
    """Read the signatures of a card from the bytes it came in; None for an unsigned card or none at all."""
    if not _is_card(read) or not (b'"signatures"' in body or _states_some(read)):
        return None
    return read_signed(body, max_depth=max_depth)


def signed_inline(entries: Sequence[Entry]) -> dict[int, SignedCard]:
    """Read the signatures of the cards that entries hold, by position; of so many cards at the most."""
    found: dict[int, SignedCard] = {}
    for position, entry in enumerate(entries):
        if entry.inline is None or entry.inline.signatures is not None or not _is_card(entry.inline):
            continue
        signed = read_signed(entry.raw, max_depth=_DEEPEST, member=("data", "inline"))
        if signed is not None:
            found[position] = signed
        if len(found) == _MOST_INLINE_SIGNED:
            break
    return found


def with_signatures(read: Artifact, verdicts: Sequence[Verdict], signers: tuple[Signer, ...]) -> Artifact:
    """Add to a card what became of its signatures."""
    return replace(
        read,
        signatures=tuple(verdict_json(verdict) for verdict in verdicts),
        signers=signers,
        problems=(*read.problems, *signature_problems(verdicts)),
    )


def read_inline(entry: Entry, url: str) -> Artifact:
    """Read the card that an entry from `url` holds; of one without signatures that is said at once."""
    read = read_value(entry.value.get("data"), url)
    return read if '"signatures"' in entry.raw or _states_some(read) else unsigned(read)


def unsigned(read: Artifact) -> Artifact:
    """Say of a card that it has no signatures."""
    return replace(read, signatures=()) if _is_card(read) else read


def _states_some(read: Artifact) -> bool:
    # Where the name is written with escapes, the text does not show it.
    return "signatures" in form_of(read.normal)


def _is_card(read: Artifact) -> bool:
    return read.kind == Kind.A2A_CARD or "card" in read.normal


def served_as(read: Artifact, content_type: str | None) -> Artifact:
    """Name a media type that says nothing of JSON; what counts is what the body is (ARD 3.3)."""
    if is_json_type(content_type):
        return read
    message = "the card is not served with a media type of JSON"
    problem = Problem("artifact.media_type", Severity.WARNING, "", message, "ARD 3.3")
    return replace(read, problems=(*read.problems, problem))


def withhold_private(read: Artifact) -> Artifact:
    """Keep what is private to us out of search, comparison and answers (RFC 9111 5.2.2.7)."""
    message = "its Cache-Control is private: it is neither shown nor compared"
    problem = Problem("artifact.private", Severity.INFO, "", message, "RFC 9111 5.2.2.7")
    hidden = Artifact(PRIVATE, "", problems=(problem,), digest=read.digest, secret=read.secret)
    return replace(hidden, content_digest=PRIVATE)


def read_value(value: Any, url: str) -> Artifact:
    """Read a parsed document, such as the inline data of an entry; the digest is that of its canonical form."""
    kind = recognise(value)
    content = digest(canonical(value))
    findings = find(value, https_host=host_if_https(url))
    read = Artifact(
        kind,
        "",
        problems=(_unknown(),),
        findings=findings,
        digest=content,
        content_digest=content,
        secret=has_secret(value),
    )
    if kind is Kind.A2A_CARD:
        card = a2a.read_card(value)
        read = replace(
            read,
            shape=card.shape,
            normal=redact(card.normal),
            legacy=tuple(redact(dict(item)) for item in card.legacy_interfaces),
            problems=card.problems,
        )
    elif kind in (Kind.MCP_CARD, Kind.MCP_SERVER):
        server = mcp.read_server_card(value, url)
        read = replace(
            read, kind=server.kind, shape=server.shape, normal=redact(server.normal), problems=server.problems
        )
    elif kind is Kind.MADP_AGENT:
        notes = Notes("madp")
        normal = redact(_agent_file(value, notes))
        read = replace(
            read,
            shape=_madp_shape(value["protocol"]),
            normal=normal,
            problems=(*madp.read_agent(value), *notes.problems),
        )
    elif kind is not Kind.UNKNOWN:
        read = replace(read, problems=())
    return read


def _madp_shape(protocol: str) -> str:
    """Name the version of an agent file; what states none that can be read could as well be a page long."""
    return protocol if len(protocol) <= _LONGEST_SHAPE and MADP_PROTOCOL.fullmatch(protocol) else "agent-seo"


def _agent_file(value: Mapping[str, Any], notes: Notes) -> dict[str, Any]:
    """Keep what search and comparison can use of a MADP agent file, and of the card that the same document may be."""
    named = value.get("capabilities")
    normal: dict[str, Any] = {
        "name": text(value, "name", "", notes),
        "description": text(value, "description", "", notes),
        "version": text(value, "version", "", notes),
        "agentType": text(value, "agent_type", "", notes),
        "capabilities": [item for item in named if isinstance(item, str)] if isinstance(named, list) else None,
        "trustAnchor": madp.trust_anchor(value),
        "requestsPerMinute": madp.requests_per_minute(value),
    }
    if is_a2a_card(value):
        normal["card"] = a2a.read_card(value).normal
    return without_none(normal)


def _unknown() -> Problem:
    return Problem("artifact.unknown_kind", Severity.WARNING, "", "the document is no card of a kind we know", "")
