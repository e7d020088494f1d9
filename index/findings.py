"""What a public document should not hold: secrets, addresses of the inside, text that talks to a model. Pure.

A finding names the place and never the value; `redact` takes the value out of everything that leaves us.
"""

import ipaddress
import re
from collections.abc import Iterator, Mapping
from typing import Any

from index.records import Problem, Severity, pointer_step
from index.urls import host_of

MASK = "[redacted]"
_SECRET_NAME = re.compile(
    r"(?:api[_-]?key|access[_-]?token|auth[_-]?token|bearer[_-]?token|client[_-]?secret|secret(?:[_-]?key)?|password|"
    r"passwd|private[_-]?key|refresh[_-]?token|authorization|credentials?)",
    re.IGNORECASE,
)
# Values that say where a secret goes instead of being one.
_PLACEHOLDER = re.compile(
    r"\s*(?:<[^>]*>|\{[^}]*\}|\$\{?[A-Z_a-z0-9]+\}?|\*+|x{3,}|your[-_ ].*|none|null|true|false|required|optional|"
    r"bearer|basic|oauth2?|openid|header|query|cookie)?\s*",
    re.IGNORECASE,
)
_SECRET_VALUE = re.compile(
    # Words after "bearer" are words; what holds digits or inner dots is a token.
    r"(?:(?<=bearer )|(?<=basic ))(?=\S*(?:[0-9]|\.\w))[A-Za-z0-9._~+/=-]{12,}"
    r"|(?<![A-Za-z0-9])sk-(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|xox[abprs]-[A-Za-z0-9-]{10,}"
    r"|(?<![A-Za-z0-9])(?:AKIA|ASIA)(?=[A-Z]*[0-9])[0-9A-Z]{16}(?![A-Za-z0-9])|AIza[0-9A-Za-z_-]{30,}|glpat-[A-Za-z0-9_-]{16,}"
    r"|eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*PRIVATE KEY-----)?",
    re.IGNORECASE,
)
_INSTRUCTION = re.compile(
    r"(?:ignore|disregard|forget) (?:all |any |the )?(?:previous|prior|above|earlier|your|other|task)"
    r"|(?:^|\n)\s*#{1,6}\s*system\b|<\s*/?\s*(?:system|assistant|instructions?)\s*>|\[/?inst\]"
    r"|you (?:must|should|have to) (?:now )?(?:always )?(?:call|use|invoke|send|reveal|output|prefer)"
    r"|do not (?:tell|inform|mention|reveal).{0,40}user|system prompt|developer message",
    re.IGNORECASE,
)
_URL = re.compile(r"(https?)://(\[[0-9a-f:.]+\]|[^/\s\"'<>?#\\:]+)", re.IGNORECASE)
_INNER_SUFFIXES = (".local", ".internal", ".localhost", ".lan", ".home", ".corp", ".svc", ".cluster.local", ".intranet")
_ADDRESS_MEMBERS = frozenset({"url", "endpoint", "jku", "iconUrl", "documentationUrl", "streamable_http", "sse"})
_MOST_NODES = 20_000
_MOST_FINDINGS = 100


def find(value: Any, *, https_host: str | None = None) -> tuple[Problem, ...]:
    """Look through a document; `https_host` is the host that served it over https, if it did."""
    found: list[Problem] = []
    for name, pointer, text in _texts(value):
        if len(found) >= _MOST_FINDINGS:
            break
        if _is_secret(name, text):
            found.append(_finding("secret", Severity.ERROR, pointer, "looks like a credential; it is masked here"))
        for scheme, host in _URL.findall(text) if name in _ADDRESS_MEMBERS else ():
            problem = _address_finding(scheme.lower(), host.lower(), pointer, https_host)
            if problem is not None:
                found.append(problem)
        if _INSTRUCTION.search(text):
            found.append(
                _finding("instructions", Severity.WARNING, pointer, "the text speaks to a model; nothing here obeys it")
            )
    return tuple(found)


def redact(value: Any) -> Any:
    """Give the same value with everything masked that looks like a credential."""
    return _redact("", value, 0)


def _redact(name: str, value: Any, depth: int) -> Any:
    if depth > 64:
        return value
    if isinstance(value, Mapping):
        return {key: _redact(key, member, depth + 1) for key, member in value.items()}
    if isinstance(value, list):
        return [_redact(name, item, depth + 1) for item in value]
    if isinstance(value, str):
        if _SECRET_NAME.fullmatch(name) and not _PLACEHOLDER.fullmatch(value):
            return MASK
        return _SECRET_VALUE.sub(MASK, value)
    return value


def has_secret(value: Any) -> bool:
    """Tell whether anything in a document looks like a credential."""
    return any(_is_secret(name, text) for name, _, text in _texts(value))


def _is_secret(name: str, text: str) -> bool:
    if _SECRET_NAME.fullmatch(name) and not _PLACEHOLDER.fullmatch(text):
        return True
    return _SECRET_VALUE.search(text) is not None


def _texts(value: Any) -> Iterator[tuple[str, str, str]]:
    """Walk a document: the member name, pointer and text of every string."""
    stack: list[tuple[str, str, Any]] = [("", "", value)]
    for _ in range(_MOST_NODES):
        if not stack:
            return
        name, pointer, node = stack.pop()
        if isinstance(node, Mapping):
            stack.extend((key, pointer + pointer_step(key), node[key]) for key in reversed(list(node)))
        elif isinstance(node, list):
            stack.extend((name, f"{pointer}/{index}", node[index]) for index in range(len(node) - 1, -1, -1))
        elif isinstance(node, str):
            yield name, pointer, node


def _address_finding(scheme: str, host: str, pointer: str, https_host: str | None) -> Problem | None:
    name = host.strip("[]")
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        inner = name == "localhost" or "." not in name or name.endswith(_INNER_SUFFIXES)
    else:
        inner = not address.is_global or address.is_multicast or address.is_unspecified
    if inner:
        message = "an address that nobody outside can reach"
        return _finding("endpoint_unreachable_by_design", Severity.WARNING, pointer, message)
    if scheme == "http" and https_host is not None and name == https_host:
        return _finding("scheme_downgrade", Severity.WARNING, pointer, "plain http on a host that serves https")
    return None


def _finding(code: str, severity: Severity, pointer: str, message: str) -> Problem:
    return Problem(f"finding.{code}", severity, pointer, message, "our check of public documents")


def host_if_https(url: str) -> str | None:
    """Give the host of an https URL."""
    return host_of(url) if url.startswith("https://") else None
