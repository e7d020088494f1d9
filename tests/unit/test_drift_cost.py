"""What comparisons cost where a publisher makes both sides as large as it can."""

from typing import Any

from crawler.surfaces.a2a import read_card
from index.drift import CardView, compare_entry
from index.offered import Offer
from tests.fakes.work import FAR_FROM_SQUARE, growth

A2A = "application/a2a-agent-card+json"


def card(size: int, state: int) -> CardView:
    skills = [
        {
            "id": f"skill-{number}-{state}",
            "name": f"Skill {number}",
            "tags": [f"tag-{number}-{tag}" for tag in range(4)],
        }
        for number in range(size)
    ]
    interfaces = [{"url": f"https://acme.example/{number}/{{tenant}}"} for number in range(size)]
    read = read_card({"name": "Planner", "version": f"{state}", "supportedInterfaces": interfaces, "skills": skills})
    return CardView(read.kind, read.shape, read.normal, None)


def entry(number: int) -> dict[str, Any]:
    return {
        "identifier": f"urn:air:acme.example:tool:planner-{number}",
        "url": "https://acme.example/card.json",
        "tags": [f"tag-{number}"],
        "capabilities": [f"skill-{number}-0", "other"],
        "metadata": {"endpoint": f"https://acme.example/old/{number}"},
    }


def compare_all(size: int) -> int:
    """Compare as many entries as the card has skills with the card and its earlier states."""
    live, older = card(size, 0), [Offer(card(size, state).normal) for state in (1, 2)]
    return sum(len(compare_entry(entry(number), A2A, live, older, drift_only=True)) for number in range(size))


def test_many_entries_of_one_large_card_cost_no_more_than_both_are_long() -> None:
    assert growth(compare_all, 60) < FAR_FROM_SQUARE
