"""A card as it is served to whoever names no version of the protocol, beside the copy that is held. Pure values."""

from dataclasses import dataclass
from datetime import datetime

from index.records import Artifact


@dataclass(frozen=True, slots=True)
class Rendition:
    """What came from the URL of a card without the version field at a time, while `kept_digest` came with it."""

    url: str
    card: Artifact
    kept_digest: str
    at: datetime
    differs: bool
