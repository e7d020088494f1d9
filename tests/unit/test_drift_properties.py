"""Comparisons take whatever a stranger wrote, know a drift again, and bound a lag by what was truly so."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from crawler.surfaces.a2a import read_card
from crawler.surfaces.mcp import read_server_card
from index.drift import (
    CardView,
    Disagreement,
    compare_cards_of_origin,
    compare_entry,
    compare_hybrid,
    compare_inline,
    compare_manifests,
    lag,
    stale_since,
)

START = datetime(2026, 5, 5, tzinfo=UTC)
TYPES = ["application/a2a-agent-card+json", "application/mcp-server-card+json", "application/json", "", "?"]
KINDS = ["a2a.card", "mcp.card", "mcp.server", "madp.agent", "skills.index", "unknown", "not_a_document", "gone", "x"]
NAMES = """
    name title version description skills tools tags id capabilities supportedInterfaces remotes url protocolBinding
    type protocolVersion protocolVersions supportedProtocolVersions securityRequirements authRequired provider headers
    metadata extensions uri card endpoint preferredInterface identifier displayName digest data auth acme:serviceUrl
    signatures
""".split()
TEXTS = [
    "weather",
    "Weather",
    "1.0",
    "2.0.0",
    "https://acme.example/a",
    "/a",
    "urn:air:acme.example:x",
    "{x}",
    "h:1",
    "",
]
names = st.sampled_from(NAMES) | st.text(max_size=6)
texts = st.sampled_from(TEXTS) | st.text(max_size=12)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=5),
    max_leaves=25,
)
forms = st.dictionaries(names, values, max_size=8)
digests = st.none() | st.just("a" * 64)
# The older block is of our own making, so its members are texts.
legacy = st.lists(st.dictionaries(st.sampled_from(["url", "protocolBinding", "protocolVersion"]), texts), max_size=3)
views = st.builds(CardView, st.sampled_from(KINDS), st.just(""), forms, digests, legacy)

interfaces = st.lists(
    st.fixed_dictionaries(
        {"url": st.sampled_from(["https://acme.example/a", "https://acme.example/b", "host.example:1"])},
        optional={
            "protocolBinding": st.sampled_from(["GRPC", "JSONRPC"]),
            "protocolVersion": st.sampled_from(["1.0", "0.3"]),
        },
    ),
    max_size=3,
)
words = st.sampled_from(["weather", "Weather", "book-flight", "book_flight", "storms", "maps", "streaming"])
skills = st.lists(
    st.fixed_dictionaries({"id": words, "tags": st.lists(words, max_size=4)}),
    max_size=4,
    unique_by=lambda item: item["id"],
)
cards = st.fixed_dictionaries(
    {"name": words, "supportedInterfaces": interfaces, "skills": skills},
    optional={"version": st.sampled_from(["1.0", "2.0"]), "description": words, "url": texts},
)
entries = st.fixed_dictionaries(
    {"identifier": st.just("urn:air:acme.example:x"), "url": st.just("https://acme.example/c"), "displayName": words},
    optional={
        "version": st.sampled_from(["1.0", "2.0"]),
        "description": words,
        "tags": st.lists(words, max_size=5),
        "capabilities": st.lists(words, max_size=5),
        "metadata": st.fixed_dictionaries({}, optional={"interfaces": interfaces, "protocolVersion": texts}),
    },
)


def view(card: dict[str, Any]) -> CardView:
    read = read_card(card)
    return CardView(read.kind, read.shape, read.normal, None, read.legacy_interfaces)


def check(found: list[Disagreement]) -> None:
    keys = [item.key for item in found]
    assert len(keys) == len(set(keys))
    assert all(
        item.code.startswith("drift.") and item.key.startswith(item.code) and len(item.key) <= 200 for item in found
    )


@given(forms, st.sampled_from(TYPES), views, st.lists(forms, max_size=3))
def test_any_entry_is_compared_with_any_document(
    entry: dict[str, Any], declared: str, live: CardView, older: list[dict[str, Any]]
) -> None:
    found = compare_entry(entry, declared, live, older)
    check(found)
    states = [(form, START, START) for form in older]
    for item in found:
        moved = stale_since(item, states, START)
        assert moved is None or moved.live_old_seen_at == START


@given(views, views)
def test_any_two_documents_are_compared(first: CardView, second: CardView) -> None:
    check(compare_inline(first, second))
    check(compare_cards_of_origin(first, second))
    check(compare_hybrid(first))


@given(st.dictionaries(names, forms, max_size=3), st.dictionaries(names, forms, max_size=3))
def test_any_two_manifests_are_compared(first: dict[str, Any], second: dict[str, Any]) -> None:
    found = compare_manifests(first, second)
    assert {key for key, _ in found} <= {*first, *second}
    for key in {key for key, _ in found}:
        check([item for name, item in found if name == key])


@given(views, forms)
def test_documents_agree_with_themselves(document: CardView, entry: dict[str, Any]) -> None:
    assert compare_inline(document, document) == []
    assert compare_cards_of_origin(document, document) == []
    assert compare_manifests({"x": entry}, {"x": entry}) == []


@given(entries, cards, cards, st.randoms(use_true_random=False))
def test_a_drift_is_known_again_whatever_the_order_of_lists(
    entry: dict[str, Any], card: dict[str, Any], past: dict[str, Any], chance: random.Random
) -> None:
    one = compare_entry(entry, TYPES[0], view(card), [view(past).normal])
    two = compare_entry(shuffled(entry, chance), TYPES[0], view(shuffled(card, chance)), [view(past).normal])
    assert {item.key for item in one if item.is_drift} == {item.key for item in two if item.is_drift}


def shuffled(value: Any, chance: random.Random) -> Any:
    if isinstance(value, dict):
        return {name: shuffled(member, chance) for name, member in value.items()}
    if isinstance(value, list):
        items = [shuffled(item, chance) for item in value]
        chance.shuffle(items)
        return items
    return value


@given(entries, cards)
def test_pointers_of_drift_lead_to_the_values_of_the_entry(entry: dict[str, Any], card: dict[str, Any]) -> None:
    for item in compare_entry(entry, TYPES[0], view(card)):
        if item.catalog is not None and item.code != "drift.provider_differs":
            node: Any = entry
            for step in item.pointer.split("/")[1:]:
                node = node[int(step)] if isinstance(node, list) else node[step]
            assert node == item.catalog


@given(cards)
def test_an_entry_copied_from_a_card_has_no_drift(card: dict[str, Any]) -> None:
    live = view(card)
    copied = {
        "displayName": card["name"],
        "version": card.get("version"),
        "description": card.get("description"),
        "tags": [tag for skill in card["skills"] for tag in skill["tags"]],
        "capabilities": [skill["id"] for skill in card["skills"]],
        "metadata": {"interfaces": card["supportedInterfaces"]},
    }
    assert [item for item in compare_entry(copied, TYPES[0], live) if item.is_drift] == []


@given(st.dictionaries(names, values), st.sampled_from(TYPES))
def test_any_server_card_is_compared_as_it_was_read(card: dict[str, Any], declared: str) -> None:
    read = read_server_card(card, "https://acme.example/card")
    live = CardView(read.kind, read.shape, read.normal, None)
    check(compare_entry({"displayName": "x", **card}, declared, live))
    assert compare_inline(live, live) == []


def seen(times: list[float], change: float) -> tuple[float | None, float | None]:
    """Give when one side was last seen with its old value and first with its new one."""
    return max((at for at in times if at < change), default=None), min(
        (at for at in times if at >= change), default=None
    )


moments = st.floats(0, 1000, allow_nan=False)
sights = st.lists(moments, min_size=1, max_size=8)


@given(moments, moments, sights, sights, moments)
def test_the_true_lag_lies_within_the_interval(
    live_change: float, copy_change: float, live_sights: list[float], copy_sights: list[float], wait: float
) -> None:
    live_old, live_new = seen(live_sights, live_change)
    copy_old, copy_new = seen(copy_sights, copy_change)
    if live_new is None or copy_old is None:
        return
    now = max(*live_sights, *copy_sights) + wait

    def at(seconds: float | None) -> datetime | None:
        return None if seconds is None else START + timedelta(seconds=seconds)

    found = lag(
        at(live_old),
        START + timedelta(seconds=live_new),
        START + timedelta(seconds=copy_old),
        at(copy_new),
        START + timedelta(seconds=now),
    )
    true = max(0.0, (copy_change if copy_new is not None else min(now, copy_change)) - live_change)
    tolerance = 1e-5  # datetimes count microseconds
    assert found.is_open == (copy_new is None)
    assert 0 <= found.at_least_s <= true + tolerance
    assert (found.at_most_s is None) == (live_old is None)
    assert found.at_most_s is None or true - tolerance <= found.at_most_s
    assert found.at_most_s is None or found.at_least_s <= found.at_most_s
