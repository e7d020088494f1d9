"""Identifiers, media types and versions: how each is read, compared and brought to one spelling. Pure."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

_URN = re.compile(r"urn:(?:air|ai):([a-zA-Z0-9.-]+)((?::[a-zA-Z0-9._-]+)+)")
_ARD_IDENTIFIER = re.compile(r"urn:air:[a-zA-Z0-9.-]+(:[a-zA-Z0-9._-]+)+")
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_PREDECESSOR = "urn:ai:"
LONGEST_IDENTIFIER = 512


@dataclass(frozen=True, slots=True)
class Urn:
    """The parts of an identifier; `key` is the identifier under its current prefix `urn:air:`."""

    key: str
    publisher: str
    namespace: str
    name: str
    predecessor: bool

    @property
    def publisher_is_domain(self) -> bool:
        """Tell whether the publisher is a fully qualified domain name, as ARD Appendix C demands."""
        return is_domain(self.publisher)


def parse_urn(identifier: str) -> Urn | None:
    """Read `urn:air:<publisher>:<namespace>:<name>`; the namespace may be absent (ARD Appendix C, 5.3.2 sample).

    The predecessor's prefix `urn:ai:` is read as an alias. Matching is of the whole text: a pattern that ends in `$`
    would let a final newline pass.
    """
    return _parse_urn(identifier) if len(identifier) <= LONGEST_IDENTIFIER else None


# An entry that is read and listed has its identifier looked at several times.
@lru_cache(maxsize=4096)
def _parse_urn(identifier: str) -> Urn | None:
    match = _URN.fullmatch(identifier)
    if match is None:
        return None
    predecessor = identifier.startswith(_PREDECESSOR)
    segments = match[2][1:].split(":")
    return Urn(
        key="urn:air:" + identifier[len(_PREDECESSOR) :] if predecessor else identifier,
        publisher=match[1].lower().removesuffix("."),
        namespace=":".join(segments[:-1]),
        name=segments[-1],
        predecessor=predecessor,
    )


def is_ard_identifier(identifier: str) -> bool:
    """Tell whether the text may be looked up with Retrieve: the current prefix only, the whole text, exact case."""
    return len(identifier) <= LONGEST_IDENTIFIER and _ARD_IDENTIFIER.fullmatch(identifier) is not None


def is_domain(name: str) -> bool:
    """Tell a domain name of two or more LDH labels from addresses, single labels and `localhost`."""
    labels = name.lower().removesuffix(".").split(".")
    if len(labels) < 2 or len(name) > 253 or labels[-1].isdigit() or labels[-1] == "localhost":
        return False
    return all(_LABEL.fullmatch(label) for label in labels)


_ALIASES = {
    "application/mcp-server+json": "application/mcp-server-card+json",
    "application/mcp-server": "application/mcp-server-card+json",
    "application/ai-registry": "application/ai-registry+json",
    "application/ai-skill": "application/ai-skill+md",
    "application/agent-skills+md": "application/ai-skill+md",
    "text/markdown;profile=urn:air:agent-skills": "application/ai-skill+md",
    "application/agentskill+zip": "application/agent-skills+zip",
}
REGISTRY_TYPE = "application/ai-registry+json"
CATALOG_TYPE = "application/ai-catalog+json"
# Parameters of ARD's own types tell nothing apart.
_OWN_TYPES = frozenset(_ALIASES.values()) | {CATALOG_TYPE, "application/a2a-agent-card+json"}
_LONGEST_TYPE = 256
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_TYPE = re.compile(rf"\s*({_TOKEN})/({_TOKEN})\s*")
_PLAIN_VALUE = rf"{_TOKEN}(?:[:/]{_TOKEN})*"
_PARAMETER = re.compile(rf';\s*(?:({_TOKEN})\s*=\s*({_PLAIN_VALUE}|"(?:[^"\\]|\\.)*"))?\s*')


def media_type(text: str) -> str | None:
    """Bring a media type to its canonical spelling; None when it is not one (RFC 9110 8.3.1).

    Names lower-case, parameters sorted, `charset` dropped, older names of ARD's types replaced by the current ones.
    """
    return _media_type(text) if len(text) <= _LONGEST_TYPE else None


# What is remembered is short: a stranger's text that fills a document would be kept four thousand times.
@lru_cache(maxsize=4096)
def _media_type(text: str) -> str | None:
    match = _TYPE.match(text)
    if match is None:
        return None
    position, parameters = match.end(), {}
    while position < len(text):
        parameter = _PARAMETER.match(text, position)
        if parameter is None:
            return None
        position = parameter.end()
        if parameter[1]:
            name = parameter[1].lower()
            if name in parameters:
                return None
            value = parameter[2]
            parameters[name] = re.sub(r"\\(.)", r"\1", value[1:-1]) if value.startswith('"') else value
    parameters.pop("charset", None)
    essence = f"{match[1]}/{match[2]}".lower()
    full = essence + "".join(f";{name}={_quoted(value)}" for name, value in sorted(parameters.items()))
    return _ALIASES.get(full) or _ALIASES.get(essence) or (essence if essence in _OWN_TYPES else full)


def _quoted(value: str) -> str:
    """Write the value of a parameter so that it reads back the same."""
    if re.fullmatch(_PLAIN_VALUE, value):
        return value
    return '"' + re.sub(r'(["\\])', r"\\\1", value) + '"'


def canonical_type(text: str) -> str:
    """Bring an entry's `type` to its canonical spelling; text that is no media type stays as it is, folded and cut."""
    return media_type(text) or text.strip().lower()[:_LONGEST_TYPE]


def essence(content_type: str | None) -> str:
    """Name the type of a Content-Type field without parameters, in lower case; empty when absent."""
    return (content_type or "").partition(";")[0].strip().lower()


def is_json_type(content_type: str | None) -> bool:
    """Tell whether a Content-Type names JSON, plainly or by the `+json` suffix."""
    name = essence(content_type)
    return name in {"application/json", "text/json", "application/ld+json"} or name.endswith("+json")


_LONGEST_KNOWN = 100
_SEMVER = re.compile(r"v?(\d{1,18})(?:\.(\d{1,18}))?(?:\.(\d{1,18}))?(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?")


def version_key(version: str | None) -> tuple[Any, ...]:
    """Order versions: none, then free text by its characters, then Semantic Versioning (section 11)."""
    if version is None:
        return (0,)
    return _known_version_key(version) if len(version) <= _LONGEST_KNOWN else _version_key(version)


def _version_key(version: str) -> tuple[Any, ...]:
    match = _SEMVER.fullmatch(version.strip())
    if match is None:
        return (1, version)
    numbers = tuple(int(part or 0) for part in match.groups()[:3])
    if match[4] is None:
        return (2, numbers, (1,))
    parts = tuple(
        (0, int(part), "") if part.isdigit() and len(part) < 19 else (1, 0, part) for part in match[4].split(".")
    )
    return (2, numbers, (0, parts))


_known_version_key = lru_cache(maxsize=4096)(_version_key)
