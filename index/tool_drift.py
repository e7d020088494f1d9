"""Where a server card and the endpoint that it advertises disagree about tools. Pure.

Names of tools are texts from outside: bounded, masked and compared in the form in which they are kept and shown.
"""

from collections.abc import Iterable
from typing import Any

from index.diff import ChangeClass
from index.disagreement import CardView, Disagreement
from index.entry_drift import MCP_KINDS
from index.findings import redact
from index.records import Severity

MOST_TOOLS = 1000
_LONGEST_NAME = 128


def tool_names(names: Iterable[str]) -> list[str]:
    """Write names of tools as they are kept: each once, in order, cut to a length and with credentials masked."""
    found: dict[str, None] = {}
    for name in names:
        kept = name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"
        kept = kept.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
        found[str(redact(kept))] = None
    return list(found)


def declared_tools(card: CardView) -> list[str] | None:
    """Give the tools that a server card lists; None for one that lists none, which is no claim to have none."""
    listed: Any = card.normal.get("tools")
    if card.kind not in MCP_KINDS or not isinstance(listed, list):
        return None
    return tool_names(item["name"] for item in listed)


def compare_tools(card: CardView, observed: Iterable[str]) -> list[Disagreement]:
    """Compare the tools that a card lists with all that its endpoint was seen to serve."""
    declared = declared_tools(card)
    if declared is None:
        return []
    served = tool_names(observed)
    in_card, at_endpoint = set(declared), set(served)
    missing_in_card = [name for name in served if name not in in_card]
    missing_at_endpoint = [name for name in declared if name not in at_endpoint]
    if not missing_in_card and not missing_at_endpoint:
        return []
    return [
        Disagreement(
            "drift.endpoint_tools",
            # A tool that is not served fails its callers; one that is not declared is only not found.
            ChangeClass.BREAKING if missing_at_endpoint else ChangeClass.SEARCH,
            Severity.WARNING,
            "/tools",
            "/tools",
            {"missing_at_endpoint": missing_at_endpoint[:MOST_TOOLS], "tools": declared[:MOST_TOOLS]},
            {"missing_in_card": missing_in_card[:MOST_TOOLS], "tools": served[:MOST_TOOLS]},
            ("tools",),
        )
    ]
