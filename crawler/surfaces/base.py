"""What every surface is given beside the bytes: where they came from, and how much may be read. Pure."""

from dataclasses import dataclass

from index.trust import Policy


@dataclass(frozen=True, slots=True)
class Source:
    """Where a document was read: its final URL, its precedence, and the catalogs above it, itself included."""

    url: str
    rank: int
    depth: int = 1
    ancestors: tuple[str, ...] = ()
    predecessor: bool = False


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much of one document is read."""

    json_depth: int = 64
    entries: int = 10_000
    links: int = 50
    string_size: int = 65_536
    nesting_depth: int = 4
    alignment: Policy = "subdomain"
