"""What the ARD schema demands of a manifest and of every entry in it (ARD 4.2, Appendix D.1). Pure.

A crawler is more lenient than this; an endorsement is not. Formats are annotations and are not checked.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from index.records import pointer_step

_IDENTIFIER = re.compile(r"urn:air:[a-zA-Z0-9.-]+(:[a-zA-Z0-9._-]+)+")


@dataclass(frozen=True, slots=True)
class _Object:
    """An open object: the members it must have, and the shapes of those it may have."""

    required: tuple[str, ...] = ()
    members: Mapping[str, "_Shape"] = field(default_factory=dict)
    others: "_Shape | None" = None


@dataclass(frozen=True, slots=True)
class _List:
    items: "_Shape"


_Shape = str | _Object | _List

_TEXTS = _List("a text")
_TRUST_MANIFEST = _Object(
    ("identity",),
    {
        "identity": "a text",
        "identityType": "a text",
        "trustSchema": _Object(
            (),
            {
                "identifier": "a text",
                "version": "a text",
                "governanceUri": "a text",
                "verificationMethods": _TEXTS,
            },
        ),
        "attestations": _List(
            _Object(
                ("type", "uri"),
                {"type": "a text", "uri": "a text", "mediaType": "a text", "digest": "a text"},
            )
        ),
        "provenance": _List(
            _Object(
                ("relation", "sourceId"),
                {"relation": "a text", "sourceId": "a text", "sourceDigest": "a text"},
            )
        ),
        "signature": "a text",
    },
)
_ENTRY = _Object(
    ("identifier", "displayName", "type"),
    {
        "@context": "a context",
        "@id": "a text",
        "identifier": "an identifier",
        "displayName": "a text",
        "type": "a text",
        "url": "a text",
        "data": _Object(),
        "representativeQueries": _TEXTS,
        "capabilities": _TEXTS,
        "description": "a text",
        "tags": _TEXTS,
        "version": "a text",
        "updatedAt": "a text",
        "metadata": _Object(others="a plain value"),
        "trustManifest": _TRUST_MANIFEST,
    },
)
_MANIFEST = _Object(("entries",), {"entries": _List(_ENTRY)})


def manifest_fault(manifest: Any) -> str | None:
    """Say what the schema finds wrong first, with its place; None for a valid manifest."""
    return next(_manifest_faults(manifest), None)


def _manifest_faults(manifest: Any) -> Iterator[str]:
    yield from _faults(manifest, _MANIFEST, "")
    for index, entry in enumerate(manifest["entries"]):
        if ("url" in entry) == ("data" in entry):
            yield f"expected either url or data (at /entries/{index})"


def _faults(value: Any, shape: _Shape, place: str) -> Iterator[str]:
    if isinstance(shape, str):
        if not _fits(value, shape):
            yield f"expected {shape} (at {place})"
    elif isinstance(shape, _List):
        if not isinstance(value, list):
            yield f"expected a list (at {place})"
            return
        for index, item in enumerate(value):
            yield from _faults(item, shape.items, f"{place}/{index}")
    elif not isinstance(value, Mapping):
        yield f"expected an object (at {place or '/'})"
    else:
        yield from (f"{name} is missing (at {place or '/'})" for name in shape.required if name not in value)
        for name, member in value.items():
            inner = shape.members.get(name, shape.others)
            if inner is not None:
                yield from _faults(member, inner, place + pointer_step(name))


def _fits(value: Any, shape: str) -> bool:
    if shape == "a plain value":
        return not isinstance(value, Mapping | list)
    if shape == "a context":
        return isinstance(value, str | Mapping | list)
    if shape == "an identifier":
        return isinstance(value, str) and _IDENTIFIER.fullmatch(value) is not None
    return isinstance(value, str)
