"""What a public document should not hold: secrets, addresses of the inside, text that talks to a model. Pure.

A finding names the place and never the value; `redact` takes the value out of everything that leaves us. Both ask the
same function, so what one reports the other masks. Texts are hostile: every pattern here works in linear time.
"""

import ipaddress
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from index.records import Problem, Severity, pointer_step
from index.secrets import MASK, is_secret_name, mask, may_hold_secret
from index.urls import host_of

_MODEL_WORDS = r"(?:instructions?|prompts?|guidelines|directives?|tasks?|messages?|rules)"
_WHICH = r"(?:all|any|the|your|my|of|these|those|previous|prior|above|earlier|other|preceding|current|original|system)"
_ADDRESSED = re.IGNORECASE | re.MULTILINE
# Ways to speak to a model, each with the words that a text must hold for the pattern to be worth a look.
_INSTRUCTIONS: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = (
    (
        ("ignore", "disregard", "forget", "override"),
        re.compile(
            rf"\b(?:ignore|disregard|forget|override)\s{{1,4}}(?:{_WHICH}\s{{1,4}}){{1,5}}{_MODEL_WORDS}\b"
            r"|\b(?:ignore|disregard|forget)\s{1,4}(?:everything|anything|all)\s{1,4}(?:above|before|prior|previous|you)",
            _ADDRESSED,
        ),
    ),
    (
        ("system",),
        re.compile(
            r"^[ \t]{0,8}#{1,6}[ \t]{0,8}system(?:[ \t](?:prompt|messages?|override|instructions?))?[ \t]{0,8}:?"
            r"[ \t]{0,8}$"
            r"|^[ \t]{0,8}system[ \t]{1,4}(?:prompt|message|override|instructions?)[ \t]{0,8}:",
            _ADDRESSED,
        ),
    ),
    (
        ("<", "inst]"),
        re.compile(
            r"<[ \t]{0,4}/?[ \t]{0,4}(?:system|assistant|instructions?|important)[ \t]{0,4}>"
            r"|<\|(?:im_start|im_end|system|assistant|user)\|>|<</?sys>>|\[/?inst\]",
            _ADDRESSED,
        ),
    ),
    (
        ("user",),
        re.compile(
            r"\b(?:do\snot|don't|never)\s{1,4}(?:tell|inform|notify|mention|reveal)\b[^.\n]{0,40}\buser", _ADDRESSED
        ),
    ),
    (
        ("this",),
        re.compile(
            r"\b(?:always|only)\s{1,4}(?:prefer|choose|select|recommend|pick|use|call)\s{1,4}this\s{1,4}"
            r"(?:tool|agent|server)\b[^.\n]{0,40}\b(?:over|instead\sof|rather\sthan)\b",
            _ADDRESSED,
        ),
    ),
    (
        ("prompt", "developer", "hidden", "history"),
        re.compile(
            r"\b(?:reveal|output|print|repeat|leak|send|exfiltrate)\s{1,4}(?:\w{1,20}\s{1,4}){0,4}"
            r"(?:system\sprompt|developer\smessages?|hidden\sinstructions|(?:chat|conversation)\shistory)",
            _ADDRESSED,
        ),
    ),
    (
        ("now",),
        re.compile(r"\byou\sare\snow\s(?:in\s)?(?:dan\b|developer\smode|unrestricted|jailbroken)", _ADDRESSED),
    ),
)
# The same patterns again: without one of these, or one of each pair, no pattern can match.
_LOUD = (
    "ignore",
    "disregard",
    "forget",
    "override",
    "system",
    "<",
    "inst]",
    "prompt",
    "developer",
    "hidden",
    "history",
    "you are now",
)
_LOUD_TOGETHER = (("user", ("do not", "don't", "never")), ("this ", ("always", "only")))
_ESCAPED_SPACE = re.compile(r"\\[ntrf]")
# Invisible letters; the flags of some countries are the one lawful use.
_HIDDEN_LETTERS = re.compile("(?<![\U0001f3f4\U000e0020-\U000e007f])[\U000e0020-\U000e007e]")
_PROMPT_NAMES = frozenset({"systemprompt", "system_prompt", "system-prompt"})
_AUTHORITY = re.compile(r"([a-z][a-z0-9+.-]{0,20})://([^/?#\\\s\"'<>]{1,300})", re.IGNORECASE)
_HOST_AND_PORT = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9._-]{1,253}):[0-9]{1,5}", re.IGNORECASE)
_NUMERIC_LABEL = re.compile(r"[0-9]+|0x[0-9a-f]*")
_INNER_SUFFIXES = (".local", ".internal", ".localhost", ".lan", ".home", ".corp", ".svc", ".intranet", ".home.arpa")
_ADDRESS_NAMES = frozenset({"url", "endpoint", "jku", "streamable_http", "sse", "websocket", "trust_anchor", "href"})
# Longer than any of these names; only the end of a longer one is looked at, and remembered.
_LONGEST_ENDING = 64
_PLAIN_SCHEMES = frozenset({"http", "ws"})
# What stands after others, such as ipfs, is no host.
_CALLED_SCHEMES = frozenset({"", "http", "https", "ws", "wss", "grpc", "grpcs"})
_MOST_FINDINGS = 100
_DEEPEST = 300

_Place = tuple[Any, ...]


def is_quiet(raw: str) -> bool:
    """Tell of a JSON text whether it can hold neither a credential nor an instruction, without looking closer."""
    if "\\u" in raw or not raw.isascii():
        return False
    lowered = _ESCAPED_SPACE.sub(" ", raw.lower()) if "\\" in raw else raw.lower()
    if may_hold_secret(raw, lowered):
        return False
    if any(map(lowered.__contains__, _LOUD)):
        return False
    return not any(first in lowered and any(word in lowered for word in others) for first, others in _LOUD_TOGETHER)


def find(value: Any, *, https_host: str | None = None, quiet: bool = False) -> tuple[Problem, ...]:
    """Look through a document; `https_host` is the host that served it over https, if it did.

    `quiet` says that `is_quiet` was true of its text, so that only its addresses are looked at.
    """
    found: list[Problem] = []
    host = (https_host or "").strip("[]")
    for name, place, text in _quiet_addresses(value) if quiet else _texts(value):
        if len(found) >= _MOST_FINDINGS:
            break
        if quiet or _holds_addresses(name[-_LONGEST_ENDING:]):
            found.extend(_address_findings(text, place, host))
        if quiet:
            continue
        if mask(name, text) != text:
            found.append(_finding("secret", Severity.ERROR, place, "looks like a credential; it is masked here"))
        if _speaks_to_a_model(name, text):
            message = "the text speaks to a model; nothing here obeys it"
            found.append(_finding("instructions", Severity.WARNING, place, message))
    return tuple(found)


def redact(value: Any) -> Any:
    """Give the same value with everything masked that looks like a credential."""
    return _redact("", value, 0)


def _redact(name: str, value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return mask(name, value)
    if not isinstance(value, Mapping | list):
        return value
    if depth > _DEEPEST:
        return MASK
    if isinstance(value, list):
        return [_redact(name, item, depth + 1) for item in value]
    found: dict[str, Any] = {}
    for key, meant in _meant_names(name, value):
        shown = mask("", key)
        while shown in found:
            shown += "_"
        found[shown] = _redact(meant, value[key], depth + 1)
    return found


def has_secret(value: Any) -> bool:
    """Tell whether anything in a document looks like a credential."""
    return any(mask(name, text) != text for name, _, text in _texts(value))


def _texts(value: Any) -> Iterator[tuple[str, _Place, str]]:
    """Walk a document in its order: the name that is meant, place and text of every string, member names included."""
    stack: list[tuple[str, _Place, Any]] = [("", (), value)]
    while stack:
        name, place, node = stack.pop()
        if isinstance(node, Mapping):
            members = _meant_names(name, node)
            for key, _ in members:
                yield "", (place, key), key
            stack.extend((meant, (place, key), node[key]) for key, meant in reversed(members))
        elif isinstance(node, list):
            stack.extend((name, (place, index), node[index]) for index in range(len(node) - 1, -1, -1))
        elif isinstance(node, str):
            yield name, place, node


_NESTED = (dict, list)


def _quiet_addresses(value: Any) -> Iterator[tuple[str, _Place, str]]:
    """Walk like `_texts`, to address members alone; where no name is that of a secret, each text has its own."""
    stack: list[tuple[str, _Place, Any]] = [("", (), value)]
    while stack:
        name, place, node = stack.pop()
        if isinstance(node, str):
            yield name, place, node
            continue
        for step in reversed(node) if isinstance(node, dict) else range(len(node) - 1, -1, -1):
            inner, meant = node[step], step if isinstance(step, str) else name
            if _holds_addresses(meant[-_LONGEST_ENDING:]) if isinstance(inner, str) else isinstance(inner, _NESTED):
                stack.append((meant, (place, step), inner))


# Members whose text belongs to what is named beside or above them: headers, variables, properties of a schema.
_VALUE_MEMBERS = frozenset({"value", "values", "default", "defaultValue", "example", "examples", "const"})


_PRIVATE_KEY_MEMBERS = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})


def _meant_names(name: str, value: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Give each member with the name its text is judged by."""
    if isinstance(value.get("kty"), str):  # a JSON Web Key, whose members have short names (RFC 7518 6)
        return [(key, "private_key" if key in _PRIVATE_KEY_MEMBERS else key) for key in value]
    beside = next((value[key] for key in ("name", "key") if isinstance(value.get(key), str)), "")
    owner = beside if is_secret_name(beside) else name if is_secret_name(name) else None
    return [(key, owner if owner is not None and key in _VALUE_MEMBERS else key) for key in value]


def _speaks_to_a_model(name: str, text: str) -> bool:
    if name.lower() in _PROMPT_NAMES and text.strip():
        return True
    plain = text.isascii()
    lowered = text.lower()
    for words, pattern in _INSTRUCTIONS:
        # Beyond ASCII there are letters that only the pattern knows to be the same.
        if (not plain or any(word in lowered for word in words)) and pattern.search(text):
            return True
    return not plain and _HIDDEN_LETTERS.search(text) is not None


@lru_cache(maxsize=4096)
def _holds_addresses(name: str) -> bool:
    return name in _ADDRESS_NAMES or name.endswith(("Url", "_url", "URL"))


def _address_findings(text: str, place: _Place, https_host: str) -> Iterator[Problem]:
    """Look at the hosts of an address member; gRPC has host and port without a scheme."""
    text = text[:4096].strip()
    bare = _HOST_AND_PORT.fullmatch(text)
    named = [("", bare[1])] if bare else [(match[1].lower(), _host(match[2])) for match in _AUTHORITY.finditer(text)]
    for scheme, host in named:
        if scheme not in _CALLED_SCHEMES:
            continue
        name = unquote(host).lower().strip("[]").rstrip(".")
        if https_host and name == https_host:
            if scheme in _PLAIN_SCHEMES:
                message = "plain http on a host that serves https"
                yield _finding("scheme_downgrade", Severity.WARNING, place, message)
        elif _is_inner(name):
            message = "an address that nobody outside can reach"
            yield _finding("endpoint_unreachable_by_design", Severity.WARNING, place, message)


def _host(authority: str) -> str:
    host = authority.rpartition("@")[2]
    return host.partition("]")[0] if host.startswith("[") else host.partition(":")[0]


def _is_inner(name: str) -> bool:
    """Tell a host of the inside: a special address, a single label, a name that public name servers don't have."""
    if not name or "{" in name or "$" in name:
        return False
    try:
        # What neither ends in a digit nor has a colon is none, which takes the library long to say.
        address = ipaddress.ip_address(name) if name[-1].isdigit() or ":" in name else None
    except ValueError:
        address = None
    if address is None:
        # Other ways to write a number, which some clients read as an address, are addresses nobody publishes.
        numeric = _NUMERIC_LABEL.fullmatch(name.rpartition(".")[2]) is not None
        return "." not in name or numeric or name.endswith(_INNER_SUFFIXES)
    inner = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    address = inner or address
    return not address.is_global or address.is_multicast


def _finding(code: str, severity: Severity, place: _Place, message: str) -> Problem:
    return Problem(f"finding.{code}", severity, _pointer(place), message, "our check of public documents")


def _pointer(place: _Place) -> str:
    """Write a place as a JSON Pointer, in which a secret that stands as a name is masked as well."""
    steps = []
    while place:
        place, step = place
        steps.append(pointer_step(mask("", step) if isinstance(step, str) else step))
    return "".join(reversed(steps))


def host_if_https(url: str) -> str | None:
    """Give the host of an https URL."""
    return host_of(url) if url.startswith("https://") else None
