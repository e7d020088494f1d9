"""The HTTP `Link` field (RFC 8288). Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TARGET = re.compile(r"\s*<([^<>]*)>")
_PARAMETER = re.compile(r'\s*;\s*(?:([!#$%&\'*+.^_`|~0-9A-Za-z-]+)\s*(?:=\s*("(?:[^"\\]|\\.)*"|[^\s;,"]*))?)?')
# What is left of a link after its parameters, or in the place of one; a comma inside quotes ends nothing.
_REST = re.compile(r'(?:[^,"]++|"(?:[^"\\]|\\.)*+"?)*+')
_MAX_LINKS = 500


@dataclass(frozen=True, slots=True)
class Link:
    """One link: reference as written, its relations in lower case, type hint and context."""

    reference: str
    relations: tuple[str, ...]
    media_type: str | None = None
    anchor: str | None = None


def parse_link_header(value: str) -> Iterator[Link]:
    """Read the links of a field value, several lines joined by commas (RFC 8288 3).

    Commas and semicolons inside quotes and angle brackets separate nothing. Of a repeated parameter the first counts.
    """
    position = 0
    for _ in range(_MAX_LINKS):
        target = _TARGET.match(value, position)
        if target is not None:
            parameters: dict[str, str] = {}
            position = target.end()
            while (parameter := _PARAMETER.match(value, position)) is not None:
                position = parameter.end()
                parameters.setdefault((parameter[1] or "").lower(), _unquote(parameter[2] or ""))
            yield Link(
                reference=target[1].strip(),
                relations=tuple(parameters.get("rel", "").lower().split()),
                media_type=parameters.get("type"),
                anchor=parameters.get("anchor"),
            )
        rest = _REST.match(value, position)
        position = (rest.end() if rest else position) + 1
        if position > len(value):
            return


def _unquote(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text.startswith('"') else text
