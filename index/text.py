"""Text analysis: one analyser in Python for both databases, for what is indexed and for what is asked. Pure.

Words are runs of letters and digits of the folded text; one with changes of case counts as a whole and in its parts,
for people write GitHub and look for github. English words are reduced to their Porter stems; runs of scripts without
spaces become pairs of characters.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import Stemmer

ANALYSER_VERSION = 1
K1 = 1.2
B = 0.75
# Weighted words of an average entry, measured on eight thousand public ones. A constant keeps every impact a function
# of its entry alone, so the index does not depend on the order of arrival and never has to be rescaled.
AVERAGE_LENGTH = 38.0
IMPACT_SCALE = 100
MAX_QUERY_WORDS = 16
LONGEST_QUERY = 2000
_LONGEST_WORD = 40
_LONGEST_FIELD = 20_000
_MAX_QUERIES = 50
_MAX_CARD_TEXTS = 400
# Beside the entry's own words; enough to be found by, not enough to outrank an entry that says so itself.
_CARD_WEIGHT = 1.0
_MOST_CARD_WEIGHT = 2.0
_WEIGHTS = {"name": 1.5, "keywords": 1.5, "queries": 1.5, "description": 1.0, "identifier": 1.0}

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W_]+")
# Thai, Lao, Myanmar, Khmer, kana and Han: scripts that write no spaces between words.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
_STOP_WORDS = frozenset(
    """
    a about all also am an and any are as at be been but by can could did do does doing for from had has have having he
    her here him his how i if in into is it its itself just let me might more most my no nor not of off on once only or
    other our ours out over own please same she should so some such than that the their them then there these they this
    those through to too under until up us very was we were what when where which while who whom why will with would you
    your yours
    der die das den dem des ein eine einen einem einer eines und oder mit von zu zum zur im am auf fur ist nicht auch
    el la los las un una unos unas y o de del al en con por para que es se su sus lo como
    le les l d du des et ou avec dans sur pour par ne pas qui au aux ce cette ces
    o os as um uma uns umas e ou do da dos das no na nos nas com por para que
    i w we z ze na do od dla po przez oraz lub jest sie nie
    и в во на с со к ко у о об от до для по из за над под при не что как это
    """.split()
)
# Letters whose stroke is no combining mark, so that decomposition leaves them alone.
_STROKES = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ħ": "h", "ŧ": "t", "ı": "i", "æ": "ae", "œ": "oe"})
_stemmer = Stemmer.Stemmer("porter", 0)
_stems: dict[str, str] = {}
_MAX_STEMS = 200_000


def fold(text: str) -> str:
    """Fold text for comparison: compatibility forms, case and accents removed (NFKC, casefold, marks dropped)."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    bare = "".join(mark for mark in decomposed if not unicodedata.combining(mark)).translate(_STROKES)
    # Korean syllables fell apart as well, and come together again.
    return unicodedata.normalize("NFC", bare)


def fold_name(text: str) -> str:
    """Fold a display name so that spacing does not matter either."""
    return " ".join(fold(text).split())


def stems(text: str) -> Iterator[str]:
    """Yield the index words of a text in order, stop words left out."""
    if not text.islower() and _CAMEL.search(text):
        text = _WORD.sub(_with_parts, text)
    for word in _WORD.findall(fold(text)):
        if word.isascii():
            if word not in _STOP_WORDS:
                yield _stem(word[:_LONGEST_WORD])
        elif _UNSPACED.search(word):
            yield from _pieces(word)
        elif word not in _STOP_WORDS:
            yield word[:_LONGEST_WORD]


def _with_parts(match: re.Match[str]) -> str:
    """Put the parts of a word with changes of case beside it."""
    word = match[0]
    parts = _CAMEL.sub(" ", word)
    return word if parts == word else f"{word} {parts}"


def _stem(word: str) -> str:
    known = _stems.get(word)
    if known is None:
        if len(_stems) >= _MAX_STEMS:
            _stems.clear()
        known = _stems[word] = _stemmer.stemWord(word) or word
    return known


def _pieces(word: str) -> Iterator[str]:
    """Cut a word with unspaced script into pairs of characters; what is spaced stays whole."""
    position = 0
    for match in _UNSPACED.finditer(word):
        if match.start() > position:
            yield word[position : match.start()][:_LONGEST_WORD]
        run = match[0]
        if len(run) == 1:
            yield run
        else:
            yield from (run[index : index + 2] for index in range(len(run) - 1))
        position = match.end()
    if position < len(word):
        yield word[position:][:_LONGEST_WORD]


def entry_impacts(
    value: Mapping[str, Any], name: str, identifier_words: str, card_texts: Sequence[str] = ()
) -> dict[str, int]:
    """Weigh the words of an entry: stem to BM25 impact, scaled to a small whole number.

    Combined fields: one weighted count and one length over all of them. Inverse frequency is left to the query. Words
    that only the live card has are added and change nothing about the entry's own.
    """
    weights: Counter[str] = Counter()
    for field, texts in (
        ("name", [name]),
        ("keywords", [*_texts(value.get("tags")), *_texts(value.get("capabilities"))]),
        ("queries", _texts(value.get("representativeQueries"))[:_MAX_QUERIES]),
        ("description", _texts(value.get("description"))),
        ("identifier", [identifier_words]),
    ):
        weight = _WEIGHTS[field]
        for text in texts:
            for stem in stems(text[:_LONGEST_FIELD]):
                weights[stem] += weight  # type: ignore[assignment]
    length = sum(weights.values())
    norm = K1 * (1 - B + B * length / AVERAGE_LENGTH)
    for stem, weight in _card_weights(card_texts, weights).items():
        weights[stem] = weight  # type: ignore[assignment]
    return {stem: round(IMPACT_SCALE * weight * (K1 + 1) / (weight + norm)) for stem, weight in weights.items()}


def _card_weights(texts: Sequence[str], own: Mapping[str, Any]) -> dict[str, float]:
    weights: dict[str, float] = {}
    for text in texts[:_MAX_CARD_TEXTS]:
        for stem in stems(text[:LONGEST_QUERY]):
            if stem not in own:
                weights[stem] = min(weights.get(stem, 0.0) + _CARD_WEIGHT, _MOST_CARD_WEIGHT)
    return weights


def _texts(value: Any) -> list[str]:
    """Read a member that should be a text or texts; anything else in it counts as absent."""
    if isinstance(value, str):
        return [value]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def query_words(text: str) -> tuple[str, ...]:
    """Analyse the text of a search to its distinct words, in order; at most sixteen count."""
    return tuple(dict.fromkeys(stems(text[:LONGEST_QUERY])))[:MAX_QUERY_WORDS]
