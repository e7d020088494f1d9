"""Real input: every collected card is recognised, read, looked through and kept byte for byte.

The cards are data that does not travel with the project; where the folder is missing, everything here is skipped. They
are excerpts: name, description, skills or tools, and sometimes provider and capabilities. So no agent card has its
address and no server card its endpoint, which is what most of the counts below say. A version can be told only where
the capabilities hold a member that one family alone has.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from crawler.surfaces.a2a import Card as AgentCard
from crawler.surfaces.a2a import read_card
from crawler.surfaces.mcp import ServerCard, read_server_card
from crawler.surfaces.recognise import Kind, recognise
from index.findings import find, has_secret, redact
from index.store.database import Database
from index.store.snapshots import NewSnapshot, load_snapshot, put_snapshots
from index.strict_json import digest, parse

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "catalogs"
FILES = sorted(DATA.glob("*.cards.json"))
AT = "https://publisher.example/card.json"

pytestmark = [
    pytest.mark.system,
    pytest.mark.xdist_group("real_cards"),
    pytest.mark.skipif(not FILES, reason=f"REAL CARDS ARE ABSENT: no *.cards.json in {DATA}"),
]


@dataclass(frozen=True)
class Collected:
    """One card as it lies in the collection."""

    file: str
    identifier: str
    body: bytes
    value: dict[str, Any]


def _members(text: str) -> Iterator[tuple[str, str]]:
    """Cut the members of an object out of its text, so that each card keeps the bytes it was collected with."""
    decoder = json.JSONDecoder()
    position = text.index("{") + 1
    while '"' in text[position:]:
        name, position = decoder.raw_decode(text, text.index('"', position))
        start = text.index("{", position)
        _, position = decoder.raw_decode(text, start)
        yield name, text[start:position]


@pytest.fixture(scope="module")
def cards() -> list[Collected]:
    found = [
        Collected(file.name.removesuffix(".cards.json"), identifier, text.encode(), json.loads(text))
        for file in FILES
        for identifier, text in _members(file.read_text(encoding="utf-8"))
    ]
    assert len(found) == sum(len(json.loads(file.read_bytes())) for file in FILES)
    return found


def _read(value: dict[str, Any]) -> AgentCard | ServerCard:
    return read_card(value) if recognise(value) is Kind.A2A_CARD else read_server_card(value, AT)


def _shown(capsys: pytest.CaptureFixture[str], title: str, counts: Counter[Any]) -> dict[Any, int]:
    with capsys.disabled():
        print(f"\n{title}:", *(f"\n  {count:5} {key}" for key, count in sorted(counts.items(), key=str)), end="")
    return dict(counts)


def test_every_card_has_a_kind_and_a_shape(cards: list[Collected], capsys: pytest.CaptureFixture[str]) -> None:
    counts: Counter[tuple[str, str, str]] = Counter()
    for card in cards:
        read = _read(card.value)
        assert read.kind is recognise(card.value)
        counts[card.file, str(read.kind), read.shape] += 1
    assert _shown(capsys, "cards by file, kind and shape", counts) == {
        ("a2a-registry", "a2a.card", "0.x"): 119,
        ("a2a-registry", "a2a.card", "unversioned"): 9,
        ("a2a-samples", "a2a.card", "0.x"): 5,
        ("a2a-samples", "a2a.card", "1.0"): 1,
        ("a2a-samples", "a2a.card", "unversioned"): 28,
        ("mcp-azure", "mcp.card", "unversioned"): 42,
        ("mcp-docker", "mcp.card", "unversioned"): 28,
        ("mcp-toolsdk", "mcp.card", "unversioned"): 873,
    }


def test_the_shape_is_told_wherever_something_tells_it(cards: list[Collected]) -> None:
    """What stays unversioned has no member that any one version alone has."""
    telling = {"stateTransitionHistory", "extendedAgentCard"}
    for card in cards:
        if recognise(card.value) is Kind.A2A_CARD:
            told = telling & (card.value.get("capabilities") or {}).keys()
            assert (read_card(card.value).shape == "unversioned") == (not told), card.identifier
            assert card.value.keys() <= {"name", "description", "skills", "provider", "capabilities"}
        else:
            assert card.value.keys() == {"name", "description", "tools"}


def test_the_problems_of_all_cards(cards: list[Collected], capsys: pytest.CaptureFixture[str]) -> None:
    counts: Counter[tuple[str, str]] = Counter()
    for card in cards:
        # How often a skill or a tool is at fault counts, which one does not.
        for problem in _read(card.value).problems:
            steps = ["*" if step.isdigit() else step for step in problem.pointer.split("/")]
            counts[problem.code, "/".join(steps)] += 1
    assert _shown(capsys, "problems by code and place", counts) == {
        ("a2a.missing", "/capabilities"): 28,
        ("a2a.missing", "/defaultInputModes"): 1,
        ("a2a.missing", "/defaultOutputModes"): 1,
        ("a2a.missing", "/version"): 162,
        ("a2a.no_interface", ""): 162,
        ("mcp.no_remote", ""): 943,
    }


def test_skills_and_tools_come_over_whole(cards: list[Collected]) -> None:
    for card in cards:
        if recognise(card.value) is Kind.A2A_CARD:
            skills = read_card(card.value).normal["skills"]
            assert [skill["id"] for skill in skills] == [skill["id"] for skill in card.value["skills"]], card.identifier
        else:
            tools = read_server_card(card.value, AT).normal["tools"]
            assert [tool["name"] for tool in tools] == [tool["name"] for tool in card.value["tools"]], card.identifier


def test_nothing_public_is_taken_for_a_secret_and_hardly_a_text_for_an_instruction(
    cards: list[Collected], capsys: pytest.CaptureFixture[str]
) -> None:
    found = Counter((problem.code, card.identifier) for card in cards for problem in find(card.value))
    # The one text tells the model to prefer its tool to the one that the user has.
    assert _shown(capsys, f"findings in {len(cards)} cards", found) == {
        ("finding.instructions", "urn:air:github.com:block:vscode-mcp-server"): 1
    }
    for card in cards:
        assert not has_secret(card.value)
        assert redact(card.value) == card.value


def test_nothing_is_found_in_the_entries_that_point_to_them(capsys: pytest.CaptureFixture[str]) -> None:
    catalogs = [json.loads(file.read_bytes()) for file in DATA.glob("*.json") if not file.name.endswith(".cards.json")]
    entries = [entry for catalog in catalogs for entry in catalog["entries"]]
    found = Counter(problem.code for entry in entries for problem in find(entry))
    assert len(entries) > 8000
    assert _shown(capsys, f"findings in {len(entries)} entries", found) == {}


async def test_the_bytes_of_every_card_come_back_from_the_store(cards: list[Collected], tmp_path: Path) -> None:
    """What is kept is what was received, and not a card that was built anew from what we made of it."""
    now = datetime(2026, 11, 1, tzinfo=UTC)
    bodies = [NewSnapshot(digest(card.body), card.body, "application/json", now) for card in cards]
    url = f"sqlite+aiosqlite:///{tmp_path}/cards.db"
    async with Database(url) as database:
        await database.upgrade()
        assert await database.write(put_snapshots, bodies) == len({item.digest for item in bodies})
        assert await database.write(put_snapshots, bodies) == 0
    async with Database(url) as database:
        for card, item in zip(cards, bodies, strict=True):
            kept = await database.read(load_snapshot, item.digest)
            assert kept == card.body
            assert kept is not None
            parsed = parse(kept, max_depth=64)
            assert parsed.problems == ()
            assert _read(parsed.value) == _read(card.value)
