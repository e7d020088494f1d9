"""From a hit to a call: what a query met in an entry and its card, and which interface a client would take. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from index.cards import form_of
from index.offered import Address, addresses, binding_token, objects, text, texts
from index.text import query_words, stems
from index.urls import BadUrl, parse_url

BINDINGS = ("JSONRPC", "HTTP+JSON", "GRPC")
_GRPC = "grpc"
_LISTS = ("tags", "capabilities", "representativeQueries")
_MOST_WORDS = 50
_LONGEST_TEXT = 2000


@dataclass(frozen=True, slots=True)
class Matched:
    """What of an entry and its card a query met: its words, the entry's tags, and the skill that met most of them."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    skill: Mapping[str, Any] | None


def matched_by(query: str, entry: Mapping[str, Any], normal: Mapping[str, Any]) -> Matched:
    """Find what a query met; `normal` is the card as the search knew it, empty where there was none."""
    wanted = set(query_words(query))
    form = form_of(normal)
    met = _met(wanted, [*_said(entry, ("displayName", "description")), *_listed(entry, _LISTS)])
    met |= _met(wanted, _said(form, ("name", "title", "description")))
    best: Mapping[str, Any] = {}
    most: set[str] = set()
    for name in ("skills", "tools"):
        for _, skill in objects(form.get(name)):
            found = _met(wanted, [*_said(skill, ("id", "name", "description")), *_listed(skill, ("tags", "examples"))])
            met |= found
            if len(found) > len(most):
                best, most = skill, found
    skill = {**{name: best[name] for name in ("id", "name") if text(best, name)}, "tags": _tags(wanted, best)}
    return Matched(
        _spelled(query, met),
        tuple(_tags(wanted, entry)),
        {**skill, "words": list(_spelled(query, most))} if most else None,
    )


def _said(value: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    return [found for name in names if (found := text(value, name))]


def _listed(value: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    return [item for name in names for _, item in texts(value.get(name))]


def _tags(wanted: set[str], value: Mapping[str, Any]) -> list[str]:
    return [tag for tag in _listed(value, ("tags",)) if _met(wanted, [tag])]


def _met(wanted: set[str], found: Sequence[str]) -> set[str]:
    return {stem for item in found for stem in stems(item[:_LONGEST_TEXT]) if stem in wanted}


def _spelled(query: str, met: set[str]) -> tuple[str, ...]:
    """Give words of a query as they were written."""
    return tuple(word for word in dict.fromkeys(query.split()) if met & set(stems(word)))[:_MOST_WORDS]


# --- the interface ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Choice:
    """The interface that a client takes from a card, or the word for why it takes none."""

    interface: Address | None
    reason: str = ""
    detail: str = ""


def take_interface(normal: Mapping[str, Any], legacy: Sequence[Mapping[str, str]], bindings: Sequence[str]) -> Choice:
    """Take the first interface of the card whose binding is spoken and whose address can be called (A2A 5.6)."""
    offered = addresses(form_of(normal), legacy)
    if not offered:
        return Choice(None, "no_interfaces", "the card names no address")
    spoken = {binding_token(name) for name in bindings}
    known = [address for address in offered if binding_token(address.binding) in spoken]
    if not known:
        names = ", ".join(dict.fromkeys(address.binding or "none" for address in offered))
        return Choice(None, "binding_not_spoken", f"the card speaks {names}")
    usable = next((address for address in known if is_usable(address)), None)
    if usable is None:
        return Choice(None, "url_unusable", f"{known[0].url} is no address that can be called")
    return Choice(usable)


def is_usable(address: Address) -> bool:
    """Tell whether an address can be called as it stands: no variables, no credentials; for gRPC host and port do."""
    url = address.url.strip()
    if "{" in url or "}" in url:
        return False
    if "://" not in url:
        host, _, port = url.rpartition(":")
        return binding_token(address.binding) == _GRPC and bool(host) and port.isdigit() and " " not in url
    try:
        return parse_url(url).user is None
    except BadUrl:
        return False
