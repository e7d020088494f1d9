"""Sixty entries that are hard to put in order, and what is asked of them: ties, cases, accents, scripts and signs."""

from collections.abc import Iterator
from typing import Any

from tests.fakes.web import entry

MCP = "application/mcp-server-card+json"
A2A = "application/a2a-agent-card+json"
SKILL = "application/ai-skill+md"
_TYPES = (MCP, A2A, SKILL)

# The same words in every one of them, so that nothing but the identifier tells them apart; most languages sort them
# otherwise than by their characters.
_EQUALS = (
    "tide-table", "tide_table", "tide.table", "TIDE-TABLE", "Tide_Table", "table-tide", "table_tide",
    "tide--table",
)  # fmt: skip
_PUBLISHERS = ("acme.example", "acme-labs.example", "acmelabs.example", "b.example", "zeta.example")

# Display name, description, tags.
_NAMES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("Zürich Trams", "Departures of trams and buses in Zürich", ("Transport", "zürich")),
    ("zurich trams", "Departures of trams and buses in Zurich", ("transport", "Zurich")),
    ("ZÜRICH TRAMS", "Abfahrten der Straßenbahn", ("TRANSPORT", "ZÜRICH")),
    ("Straße", "Finds the name of a street", ("straße", "map")),
    ("STRASSE", "Finds the name of a street", ("strasse", "Map")),
    ("Élan", "Ski passes and snow reports", ("sport", "élan")),
    ("elan", "Ski passes and snow reports", ("Sport", "elan")),
    ("Eland", "Counts antelopes", ("animals",)),
    ("Éland", "Counts antelopes", ("animals",)),
    ("Łódź archive", "Records of the city archive", ("łódź", "archive")),
    ("Ødegård", "Farm and field register", ("ødegård", "farm")),
    ("Øresund", "Bridge tolls and traffic", ("øresund",)),
    ("İstanbul ferries", "Ferries over the strait", ("ferry", "İstanbul")),
    ("ıstanbul ferries", "Ferries over the strait", ("ferry", "ıstanbul")),
    ("Σίσυφος", "Rolls a stone uphill", ("σίσυφος",)),
    ("ΣΊΣΥΦΟΣ", "Rolls a stone uphill", ("ΣΊΣΥΦΟΣ",)),
    ("Погода", "Прогноз погоды для городов", ("погода",)),
    ("天気予報", "東京の天気と気温", ("天気",)),
    ("天气预报", "北京的天气和气温", ("天气",)),
    ("날씨", "서울의 날씨와 기온", ("날씨",)),
    ("พยากรณ์อากาศ", "สภาพอากาศในกรุงเทพ", ("อากาศ",)),
    ("ﬁle ﬁnder", "Finds a file by its name", ("ﬁles",)),
    ("File Finder", "Finds a file by its name", ("files",)),
    ("ＦＩＬＥ　ＦＩＮＤＥＲ", "Finds a file by its name", ("Files",)),
    ("100% proof", "Checks a proof, step_by_step", ("100%", "a_b")),
    ("100 proof", "Checks a proof step by step", ("100", "a b", "a-b", "ab")),
    ("_underscore", "Starts with a sign", ("_x",)),
    ("-dash", "Starts with a sign", ("-x",)),
    ("~tilde", "Starts with a sign", ("~x",)),
    ("zeta", "The last of its kind", ("x", "X")),
    ("Zeta", "The last of its kind", ("x", "É")),
    ("GitHubIssues", "Reads issues of a repository", ("git", "Git", "GIT")),
    ("github issues", "Reads issues of a repository", ("git",)),
    ("Ångström units", "Converts lengths, from ångström to parsec", ("units", "Ångström")),
    ("Angstrom Units", "Converts lengths, from angstrom to parsec", ("units", "Angstrom")),
    ("𝔊othic letters", "Shows letters of the astral planes 𐍈", ("𐍈", "🙂")),
    ("🙂 faces", "Draws a face for a mood", ("🙂", "\uffee")),
    ("naïve bayes", "Sorts letters by a naïve guess", ("naïve",)),
    ("Weather now", "Weather, wind and rain for a place", ("weather", "wind", "rain")),
    ("Wind and rain", "Rain and wind for a place", ("wind", "rain")),
    ("Rain radar", "Rain on a map, every five minutes", ("rain", "map")),
    ("Snow", "Snow on a map", ("snow", "map")),
    ("Snow and ice", "Snow and ice on roads", ("snow", "ice", "roads")),
    ("Roads", "Road works and traffic jams", ("roads", "traffic")),
)


def collection(edition: int = 1) -> dict[str, list[dict[str, Any]]]:
    """Give the manifests of five hosts; a later edition has other words, some entries more and some less."""
    hosts: dict[str, list[dict[str, Any]]] = {name: [] for name in _PUBLISHERS}
    for number, item in enumerate(_all()):
        value = {**item, "version": f"{number % 4}.0"}
        if edition > 1 and number % 7 == 0:
            value["description"] += " by night, rarely used"
        if edition > 1 and number % 11 == 5:
            continue
        if edition == 1 and number % 13 == 3:
            continue
        hosts[item["identifier"].split(":")[2]].append(value)
    # Said by two hosts of one entry that belongs to neither.
    shared = "urn:air:shared.example:tool:clock"
    for number, host in enumerate(_PUBLISHERS[:2]):
        hosts[host].append(entry(identifier=shared, displayName=f"Clock of {number}", description="Tells the time"))
    return hosts


def _all() -> Iterator[dict[str, Any]]:
    for number, name in enumerate(_EQUALS):
        for publisher in _PUBLISHERS[: 1 + number % 2]:
            text = "Says when the water is high"
            yield entry(name, publisher, displayName="Tides", description=text, type=_TYPES[number % 3], tags=["water"])
    for number, (name, text, tags) in enumerate(_NAMES):
        yield entry(
            f"{'nN'[number % 2]}{'-_.'[number % 3]}{number}",
            _PUBLISHERS[number % 5],
            displayName=name,
            description=text,
            tags=list(tags),
            type=_TYPES[number % 3],
            representativeQueries=None,
            updatedAt=f"2026-0{1 + number % 9}-01T00:00:00{'Z' if number % 2 else '+02:00'}",
            metadata={"rank": number % 5, "size": number / 4, "open": number % 2 == 0},
            **{"ex:level": [number % 3, str(number % 2)]},
        )


NEEDS = (
    "tides", "TIDES", "tide table", "water high", "when is the water high", "tide", "table", "tidetable",
    "urn:air:acme.example:tool:tide-table", "urn:air:acme.example:tool:TIDE-TABLE",
    "urn:air:acme.example:tool:Tide-Table", "tide-table@acme", "TIDE_TABLE@acme.example", "tide.table@example",
    "zürich trams", "zurich trams", "ZURICH  TRAMS", "departures of trams", "straße", "strasse", "STRASSE",
    "élan", "elan", "ELAN", "eland", "łódź", "lodz archive", "odegard", "ødegård farm", "øresund bridge",
    "istanbul", "İSTANBUL FERRIES", "ıstanbul ferries", "σίσυφος", "ΣΊΣΥΦΟΣ", "σισυφοσ", "погода", "ПОГОДА",
    "прогноз погоды", "天気", "天气", "東京の天気", "気温", "날씨", "서울의 날씨", "อากาศ", "file finder",
    "ﬁle ﬁnder", "ＦＩＬＥ　ＦＩＮＤＥＲ", "100%", "100% proof", "step_by_step", "a_b", "_underscore", "-dash",
    "zeta", "last of its kind", "starts with a sign", "GitHubIssues", "github issues", "git hub", "ångström",
    "Angstrom units", "𝔊othic", "gothic letters", "🙂", "🙂 faces", "naive bayes", "naïve guess letters",
    "rain", "wind", "wind rain", "rain wind place", "snow map", "map", "weather wind rain snow ice roads map",
    "roads traffic", "clock", "tells the time", "rarely used", "by night", "the of and", "xyzzyqwrtp",
    "rain xyzzyqwrtp", "finds", "converts lengths from one unit to another", "and or not (rain",
    "'rain' \"wind\" %_\\",
)  # fmt: skip
FILTERS: tuple[dict[str, Any], ...] = (
    {"type": MCP}, {"type": [A2A, SKILL]}, {"publisher": "acme.example"}, {"publisher": ["B.example", "zeta.example"]},
    {"tags": "map"}, {"tags": "Map"}, {"tags": ["straße", "strasse"]}, {"tags": ["git", "GIT"], "type": A2A},
    {"metadata.rank": 3}, {"metadata.size": 0.25}, {"metadata.open": True}, {"ex:level": [2, "0"]}, {"version": "1.0"},
    {"tags": "water", "publisher": "acme.example"}, {"displayName": "Tides"}, {"tags": []}, {"absent": "x"},
)  # fmt: skip
FACETS = (
    "type", "publisher", "tags", "version", "metadata.rank", "metadata.size", "metadata.open", "ex:level",
    "absent",
)  # fmt: skip
LIST_FILTERS = (
    "displayName = 'ZURICH'", "displayName = 'strasse'", "displayName = 'E'", "displayName = '%'",
    "displayName = '_'", "displayName = 'σίς'", "displayName = 'istan', '天'", "displayName = 'i'",
    "type = 'application/mcp-server'", "publisherId = 'acme.example', 'b.example'",
    "displayName = 'a' AND type = application/a2a-agent-card+json", "updatedAfter > 2026-04-01",
    "updatedAfter > 2026-03-31T22:00:00Z", "createdAfter > 2026-11-29T12:30:00Z",
)  # fmt: skip
ORDERS = (
    None, "identifier DESC", "displayName", "displayName DESC", "displayName DESC, identifier DESC",
    "updatedAt", "updatedAt DESC, displayName", "createdAt", "createdAt DESC, displayName DESC",
    "createdAt, updatedAt DESC, identifier",
)  # fmt: skip
