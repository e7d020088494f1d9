"""What a card adds to the listing that points to it: words and filters for search, and a summary for people. Pure.

All of it comes from the live card and says so; the entry itself stays as published.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_MOST_ATTRIBUTES = 300
_LONGEST_VALUE = 200
_MOST_NAMES = 50


@dataclass(frozen=True, slots=True)
class CardTerms:
    """The texts of a card that search reads, and its values for filters by name."""

    words: tuple[str, ...]
    attributes: tuple[tuple[str, str], ...]


def card_terms(kind: str, normal: Mapping[str, Any]) -> CardTerms:
    """Collect what search can use of a card in its normal form."""
    pairs = dict.fromkeys(
        (name, value)
        for name, value in [("kind", kind), *_attributes(form_of(normal))]
        if value and len(value) <= _LONGEST_VALUE
    )
    return CardTerms(tuple(_words(form_of(normal))), tuple(pairs)[:_MOST_ATTRIBUTES])


def form_of(normal: Mapping[str, Any]) -> Mapping[str, Any]:
    """Look into the card that an agent file may be at the same time."""
    card = normal.get("card")
    return {**normal, **card} if isinstance(card, Mapping) else normal


def _words(normal: Mapping[str, Any]) -> Iterator[str]:
    for name in ("name", "title", "description"):
        yield from _texts(normal.get(name))
    for skill in _objects(normal, "skills"):
        for name in ("name", "description", "tags", "examples"):
            yield from _texts(skill.get(name))
    for tool in _objects(normal, "tools"):
        yield from _texts(tool.get("name"))
        yield from _texts(tool.get("description"))
    yield from _texts(normal.get("capabilities"))


def _attributes(normal: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for skill in _objects(normal, "skills"):
        yield from (("skills", text) for text in _texts(skill.get("id")))
        yield from (("tags", text) for text in _texts(skill.get("tags")))
        yield from (("inputModes", text) for text in _texts(skill.get("inputModes")))
        yield from (("outputModes", text) for text in _texts(skill.get("outputModes")))
    yield from (("inputModes", text) for text in _texts(normal.get("defaultInputModes")))
    yield from (("outputModes", text) for text in _texts(normal.get("defaultOutputModes")))
    yield from (("tools", text) for tool in _objects(normal, "tools") for text in _texts(tool.get("name")))
    for interface in _objects(normal, "supportedInterfaces"):
        yield from (("bindings", text) for text in _texts(interface.get("protocolBinding")))
        yield from (("protocolVersions", text) for text in _texts(interface.get("protocolVersion")))
    for remote in _objects(normal, "remotes"):
        yield from (("bindings", text) for text in _texts(remote.get("type")))
    yield from (("protocolVersions", text) for text in _texts(normal.get("protocolVersions")))
    yield from (("capabilities", text) for text in _texts(normal.get("capabilities")))
    capabilities = normal.get("capabilities")
    if isinstance(capabilities, Mapping):
        yield from (("capabilities", name) for name, value in capabilities.items() if value is True)
        for extension in _objects(capabilities, "extensions"):
            yield from (("extensions", text) for text in _texts(extension.get("uri")))


def summary(kind: str, shape: str, normal: Mapping[str, Any]) -> dict[str, Any]:
    """Say in short what a card offers: name, version, interfaces and the names of its skills or tools."""
    form = form_of(normal)
    return {
        name: value
        for name, value in {
            "kind": kind,
            "shape": shape,
            "name": form.get("name") or form.get("title"),
            "version": form.get("version"),
            "interfaces": [
                {key: item[key] for key in ("url", "protocolBinding", "protocolVersion") if key in item}
                for item in _objects(form, "supportedInterfaces")[:_MOST_NAMES]
            ]
            or [
                {key: item[key] for key in ("url", "type") if key in item}
                for item in _objects(form, "remotes")[:_MOST_NAMES]
            ],
            "skills": [item["id"] for item in _objects(form, "skills")[:_MOST_NAMES] if "id" in item],
            "tools": [item["name"] for item in _objects(form, "tools")[:_MOST_NAMES] if "name" in item],
        }.items()
        if value
    }


def _objects(value: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    found = value.get(name)
    return [item for item in found if isinstance(item, Mapping)] if isinstance(found, list) else []


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
