"""Text analysis: which words a text has, and what they weigh."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.text import (
    LONGEST_QUERY,
    MAX_QUERY_WORDS,
    entry_impacts,
    fold,
    fold_name,
    query_words,
    stems,
)
from tests.fakes.work import FAR_FROM_SQUARE, growth


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Echo", "echo"),
        ("STRASSE Straße", "strasse strasse"),
        ("Café CAFE\u0301", "cafe cafe"),
        ("ﬁle Ⅷ １２", "file viii 12"),
        ("Łódź Ørsted Ægir İzmir ı", "lodz orsted aegir izmir i"),
        ("ΑΘΗΝΑ Ж", "αθηνα ж"),
        ("naïve", "naive"),
        ("", ""),
    ],
)
def test_case_accents_and_compatibility_forms_are_no_difference(text: str, folded: str) -> None:
    assert fold(text) == folded


@given(st.text(max_size=30))
def test_folded_text_folds_to_itself(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@pytest.mark.parametrize(
    ("name", "folded"), [("  Echo \n Tool ", "echo tool"), ("ECHO\u00a0TOOL", "echo tool"), ("echo tool", "echo tool")]
)
def test_the_spacing_of_a_name_is_no_difference(name: str, folded: str) -> None:
    assert fold_name(name) == folded


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("weather forecast", ["weather", "forecast"]),
        # English words are reduced to their stems.
        ("Running runs, quickly", ["run", "run", "quickli"]),
        ("forecasts forecasting", ["forecast", "forecast"]),
        # Stop words of several languages.
        ("What is the weather?", ["weather"]),
        ("Wetter für die Stadt", ["wetter", "stadt"]),
        ("a the and", []),
        # Underscores, hyphens and punctuation separate.
        ("user_id kebab-case a.b/c", ["user", "id", "kebab", "case", "b", "c"]),
        ("__init__ C++ C# .NET", ["init", "c", "c", "net"]),
        ("2.0.1 v2", ["2", "0", "1", "v2"]),
        # A word with changes of case counts as a whole and in its parts.
        ("GitHub", ["github", "git", "hub"]),
        ("getWeatherForecast", ["getweatherforecast", "get", "weather", "forecast"]),
        ("HTTPServer2Go", ["httpserver2go", "http", "server2", "go"]),
        ("OAuth2", ["oauth2", "auth2"]),
        ("MCP Server", ["mcp", "server"]),
        ("GITHUB", ["github"]),
        # Scripts without spaces become pairs of characters, a lone one stays.
        ("東京", ["東京"]),
        ("天気予報", ["天気", "気予", "予報"]),
        ("東", ["東"]),
        ("日本語テキスト search", ["日本", "本語", "語テ", "テキ", "キス", "スト", "search"]),
        ("天気API予報v2", ["天気", "api", "予報", "v2"]),
        ("ไทย", ["ไท", "ทย"]),
        # Other scripts are whole words.
        ("서울 날씨", ["서울", "날씨"]),
        ("Погода в Москве", ["погода", "москве"]),
        ("מזג אוויר", ["מזג", "אוויר"]),
        ("🎉 party!", ["parti"]),
        ("the user's s", ["user", "s", "s"]),
        ("", []),
        ("x" * 100, ["x" * 40]),
        ("ж" * 100, ["ж" * 40]),
    ],
)
def test_a_text_has_its_words(text: str, words: list[str]) -> None:
    assert list(stems(text)) == words


@pytest.mark.parametrize(
    ("published", "asked"),
    [
        ("GitHub issues", "github"),
        ("GitHub issues", "GITHUB Issue"),
        ("GitHub issues", "git hub"),
        ("getWeatherForecast", "weather forecasts"),
        ("iOS builds", "ios"),
        ("Café finder", "cafe"),
        ("天気予報サービス", "天気"),
        ("Straßenkarte", "STRASSENKARTE"),
    ],
)
def test_what_was_published_is_found_however_it_is_asked_for(published: str, asked: str) -> None:
    assert set(query_words(asked)) <= set(stems(published))


@given(st.text(max_size=60))
def test_every_word_can_be_kept_and_compared(text: str) -> None:
    for word in stems(text):
        assert 0 < len(word) <= 40
        assert word == word.strip()
        assert word.isprintable() or not word.isascii()


def test_a_query_has_its_distinct_words_in_order_and_only_so_many() -> None:
    assert query_words("the weather, Weather or the forecast") == ("weather", "forecast")
    assert len(query_words(" ".join(f"w{number}" for number in range(100)))) == MAX_QUERY_WORDS
    assert query_words("a" * LONGEST_QUERY + " late") == ("a" * 40,)
    assert query_words("?!") == ()


# --- weights ----------------------------------------------------------------------------------------------------------


def impacts(name: str = "", identifier: str = "", **members: Any) -> dict[str, int]:
    return entry_impacts(members, name, identifier)


def test_every_field_of_an_entry_has_words() -> None:
    found = impacts(
        "Name",
        "acme.example identifier",
        description="description",
        tags=["tag"],
        capabilities=["capability"],
        representativeQueries=["sample query"],
        version="9.9.9",
        other="other",
    )
    assert set(found) == {"name", "acm", "exampl", "identifi", "descript", "tag", "capabl", "sampl", "queri"}
    assert all(impact > 0 for impact in found.values())


def test_a_name_weighs_more_than_a_description_and_repetition_less_each_time() -> None:
    in_name, in_text = impacts("weather")["weather"], impacts(description="weather")["weather"]
    assert in_name > in_text
    once, twice, often = (impacts(description="weather " * count)["weather"] for count in (1, 2, 20))
    assert once < twice < often
    assert often - twice < 20 * (twice - once)


def test_a_word_weighs_less_in_a_longer_text() -> None:
    long = impacts(description="weather " + " ".join(f"word{number}" for number in range(100)))
    assert long["weather"] < impacts(description="weather")["weather"]


@pytest.mark.parametrize(
    "members",
    [
        {"description": 5, "tags": "red", "capabilities": {"a": 1}, "representativeQueries": None},
        {"tags": [None, 5, ["x"], "red"]},
    ],
)
def test_members_of_the_wrong_type_have_no_words(members: dict[str, Any]) -> None:
    assert set(impacts(**members)) == {"red"}


def test_only_so_much_of_an_entry_is_weighed() -> None:
    queries = [f"query{number}" for number in range(100)]
    assert "query49" in impacts(representativeQueries=queries)
    assert "query50" not in impacts(representativeQueries=queries)
    assert "late" not in impacts(description="x" * 20_000 + " late")


@pytest.mark.parametrize("piece", ["a", "A", "aB", "Aa ", "1", "_", "東", "é", "\u0301", " ", "aA1", "東a"])
def test_a_hostile_text_is_analysed_in_time_that_grows_with_its_size(piece: str) -> None:
    assert growth(lambda size: list(stems(piece * size)), 500) < FAR_FROM_SQUARE
