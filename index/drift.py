"""Drift: where two documents about the same thing disagree at the same time, and how long a copy lags. Pure.

An entry is compared with its artifact row by row; here are the comparisons of whole documents with each other, and the
arithmetic of time. A lag is an interval, because nobody watches all the time: each side changed somewhere between the
last sight of its old value and the first of its new one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from index.diff import ChangeClass, Edit, diff_cards, diff_entries, same, summary
from index.disagreement import CardView, Disagreement, once, small
from index.entry_drift import CARD_KINDS, MCP_KINDS, compare_entry
from index.findings import redact
from index.offered import (
    addresses,
    binding_token,
    canonical,
    names_of,
    needs_credentials,
    reaches,
    same_but_figures,
    same_version,
    same_words,
    tags_of,
    text,
    texts,
    token_of,
)
from index.records import Severity, pointer_step
from index.text import fold_name

__all__ = [
    "CardView",
    "Disagreement",
    "Lag",
    "Superseded",
    "compare_cards_of_origin",
    "compare_entry",
    "compare_hybrid",
    "compare_inline",
    "compare_manifests",
    "compare_renditions",
    "lag",
    "stale_since",
]
# What a missing entry is shown as.
_NAMING = ("identifier", "displayName", "type", "version")
# A publisher may write ten thousand members into one entry; each of them would be a drift.
_MOST_MEMBERS = 50


def compare_inline(inline: CardView, live: CardView) -> list[Disagreement]:
    """Compare the copy inside an entry with the document that its agent serves."""
    if inline.kind not in CARD_KINDS or _family(inline) != _family(live):
        return []
    edits = [edit for edit in diff_cards(inline.normal, live.normal) if edit.kind is not ChangeClass.ORDER_ONLY]
    if not edits:
        return []
    members = tuple(dict.fromkeys(_top(edit) for edit in edits))
    return [
        Disagreement(
            "drift.inline_stale",
            summary(edits) or ChangeClass.BEHAVIOURAL,
            _severity(edits),
            "/data",
            "",
            _shown(inline.normal, members),
            _shown(live.normal, members),
            members,
        )
    ]


def _family(view: CardView) -> str:
    return "mcp" if view.kind in MCP_KINDS else view.kind


def _top(edit: Edit) -> str:
    """Name the member of the document that an edit is in."""
    return edit.pointer.split("/")[1].replace("~1", "/").replace("~0", "~") if edit.pointer else ""


def _severity(edits: Sequence[Edit]) -> Severity:
    """Tell drift from texts with running figures, which differ in every copy."""
    return Severity.INFO if all(_is_figure_change(edit) for edit in edits) else Severity.WARNING


def _is_figure_change(edit: Edit) -> bool:
    texts_only = isinstance(edit.old, str) and isinstance(edit.new, str)
    return edit.kind is ChangeClass.COSMETIC and texts_only and same_but_figures(edit.old, edit.new)


def _shown(form: Mapping[str, Any], members: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = small(redact({member: form[member] for member in members[:20] if member in form}))
    return found


def compare_hybrid(live: CardView) -> list[Disagreement]:
    """Compare the older block of a hybrid card with its list: clients of both versions must reach the same agent."""
    listed = addresses(live.normal)
    found = []
    for index, legacy in enumerate(addresses({}, live.legacy_interfaces)):
        there = [address for address in listed if reaches(address.url, legacy.url)]
        if any(binding_token(address.binding) == binding_token(legacy.binding) for address in there):
            continue
        nearest = next(iter(there or listed), None)
        found.append(
            Disagreement(
                "drift.hybrid_mismatch",
                ChangeClass.BREAKING,
                Severity.WARNING,
                "/url" if index == 0 else "/additionalInterfaces",
                nearest.pointer if nearest else "/supportedInterfaces",
                {"url": small(legacy.url), "protocolBinding": small(legacy.binding)},
                {"url": small(nearest.url), "protocolBinding": small(nearest.binding)} if nearest else None,
                ("protocolBinding",) if there else ("url",),
                f"/url {legacy.url} {binding_token(legacy.binding)}",
            )
        )
    return once(found)


def compare_renditions(other: CardView, live: CardView) -> list[Disagreement]:
    """Compare what a card is for clients that name no version with what it is for us, where the two are not the same.

    To serve each client its version is what negotiation is for, so that is worth knowing and nobody's fault.
    """
    edits = [edit for edit in diff_cards(other.normal, live.normal) if edit.kind is not ChangeClass.ORDER_ONLY]
    older, ours = ({"shape": view.shape, "version": small(text(view.normal, "version"))} for view in (other, live))
    members = tuple(dict.fromkeys(_top(edit) for edit in edits))[:_MOST_MEMBERS]
    return [
        Disagreement("drift.representation_varies", ChangeClass.COMPATIBLE, Severity.INFO, "", "", older, ours, members)
    ]


def compare_manifests(
    first: Mapping[str, Mapping[str, Any]], second: Mapping[str, Mapping[str, Any]]
) -> list[tuple[str, Disagreement]]:
    """Compare the entries of the two manifest paths of one origin, which promise the same content."""
    found: list[tuple[str, Disagreement]] = []
    for key in dict.fromkeys((*first, *second)):
        one, other = first.get(key), second.get(key)
        if one is not None and other is not None:
            found += [(key, disagreement) for disagreement in _compare_entries(one, other)]
        else:
            found.append((key, _missing(one, other)))
    return found


def _missing(first: Any, second: Any) -> Disagreement:
    identity = "only in the first" if second is None else "only in the second"
    catalog, live = (_shown(side, _NAMING) if isinstance(side, Mapping) else None for side in (first, second))
    return Disagreement(
        "drift.manifests_differ", ChangeClass.SEARCH, Severity.WARNING, "", "", catalog, live, (), identity
    )


def _compare_entries(first: Any, second: Any) -> list[Disagreement]:
    if not isinstance(first, Mapping) or not isinstance(second, Mapping):
        return []
    by_member: dict[str, list[Edit]] = {}
    for edit in diff_entries(first, second):
        if edit.kind is not ChangeClass.ORDER_ONLY:
            by_member.setdefault(_top(edit), []).append(edit)
    differing = islice(by_member.items(), _MOST_MEMBERS)
    return [_differing(member, edits, first, second) for member, edits in differing]


def _differing(member: str, edits: Sequence[Edit], first: Mapping[str, Any], second: Mapping[str, Any]) -> Disagreement:
    # A name may be as secret as a value, and masking it renames the member.
    shown = next(iter(redact({member: None})))
    catalog, live = (next(iter(_shown(side, (member,)).values()), None) for side in (first, second))
    place = pointer_step(shown)
    kind = summary(edits) or ChangeClass.BEHAVIOURAL
    return Disagreement("drift.manifests_differ", kind, _severity(edits), place, place, catalog, live, (shown,))


def compare_cards_of_origin(first: CardView, second: CardView) -> list[Disagreement]:
    """Find out whether two documents of one origin that name the same agent contradict each other."""
    names = [fold_name(text(view.normal, "name") or "") for view in (first, second)]
    if first.kind not in CARD_KINDS or _family(first) != _family(second) or not names[0] or names[0] != names[1]:
        return []
    versions = [text(view.normal, "version") or "" for view in (first, second)]
    ways = [_ways(view) for view in (first, second)]
    members = []
    if all(versions) and not same_version(versions[0], versions[1]):
        members.append("version")
    # A card for older clients may list fewer ways; it must not list others.
    apart = all(any(way not in other for way in one) for one, other in (ways, ways[::-1]))
    if apart:
        members.append("remotes" if first.kind in MCP_KINDS else "supportedInterfaces")
    if not members:
        return []
    kind = ChangeClass.BREAKING if apart else ChangeClass.VERSION_ONLY
    catalog, live = ({member: small(_said(view, member)) for member in members} for view in (first, second))
    return [Disagreement("drift.cards_contradict", kind, Severity.WARNING, "", "", catalog, live, tuple(members))]


def _ways(view: CardView) -> set[tuple[str, str]]:
    """Give the ways to call an agent; the version spoken differs between cards for old and for new clients."""
    found = addresses(view.normal, view.legacy_interfaces)
    return {(canonical(address.url), binding_token(address.binding)) for address in found}


def _said(view: CardView, member: str) -> Any:
    if member == "version":
        return text(view.normal, "version")
    return [address.url for address in addresses(view.normal, view.legacy_interfaces)]


# --- time -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Lag:
    """How long a copy went on showing an old value: somewhere between the two; so far, while it is open."""

    at_least_s: float
    at_most_s: float | None
    is_open: bool


def lag(
    live_old_seen_at: datetime | None,
    live_new_seen_at: datetime,
    copy_old_seen_at: datetime,
    copy_new_seen_at: datetime | None,
    now: datetime,
) -> Lag:
    """Bound the lag of a copy by when the old and the new value were last and first seen on either side.

    Without a sight of the old live value there is no upper bound. A copy that was ahead has no lag.
    """
    at_least = max(0.0, (copy_old_seen_at - live_new_seen_at).total_seconds())
    at_most = None
    if live_old_seen_at is not None:
        until = now if copy_new_seen_at is None else copy_new_seen_at
        at_most = max(at_least, (until - live_old_seen_at).total_seconds())
    return Lag(at_least, at_most, copy_new_seen_at is None)


@dataclass(frozen=True, slots=True)
class Superseded:
    """When the live side gave up a value: it was last seen with it, and first seen with another."""

    live_old_seen_at: datetime
    live_new_seen_at: datetime


def stale_since(
    found: Disagreement,
    older: Sequence[tuple[Mapping[str, Any], datetime, datetime]],
    current_since: datetime,
) -> Superseded | None:
    """Find when the live side gave up what the catalog still says; None when it was never seen saying so.

    `older` are the earlier normal forms with when each was first and last seen, in any order; `current_since` is when
    the present one was first seen.
    """
    agreeing = [last_seen_at for form, _, last_seen_at in older if _agrees(found, form)]
    if not agreeing:
        return None
    last = max(agreeing)
    later = [first_seen_at for _, first_seen_at, _ in older if first_seen_at > last]
    return Superseded(last, min([*later, current_since]))


def _agrees(found: Disagreement, form: Any) -> bool:
    """Tell whether a normal form said what the catalog's side of a disagreement says."""
    if isinstance(form, Mapping) and found.live_pointer.startswith("/card/"):
        form = form.get("card")
    if not isinstance(form, Mapping):
        return False
    said = found.catalog
    match found.code:
        case "drift.artifact_gone":
            return True
        case "drift.version_mismatch":
            return same_version(str(said), text(form, "version") or "")
        case "drift.stale_copy" | "drift.name_differs" | "drift.description_differs":
            names = ("description",) if "description" in found.members else ("title", "name")
            return any(same_words(str(said), small(text(form, name) or "")) for name in names)
        case "drift.tag_removed":
            return fold_name(str(said)) in {fold_name(tag) for _, tag in tags_of(form)}
        case "drift.capability_removed":
            return token_of(str(said)) in {token_of(name) for name in names_of(form)[1]}
        case "drift.interface_changed" | "drift.protocol_version_removed":
            return _spoke(found, form)
        case "drift.auth_required":
            return needs_credentials(form) is not True
        case "drift.inline_stale":
            return isinstance(said, Mapping) and same(said, _shown(form, found.members))
    return False


def _spoke(found: Disagreement, form: Mapping[str, Any]) -> bool:
    said, there = str(found.catalog), addresses(form)
    if "url" in found.members:
        return any(reaches(address.url, said) for address in there)
    if "protocolBinding" in found.members:
        return any(binding_token(address.binding) == binding_token(said) for address in there)
    versions = [version for address in there for version in address.versions]
    return said in (*versions, *(version for _, version in texts(form.get("protocolVersions"))))
