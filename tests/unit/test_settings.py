"""What the settings accept, where they come from, and how mistakes are reported."""

import re
import tomllib
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from config.errors import OperatorError
from config.loading import load_settings
from config.settings import Settings
from crawler.cli import cli


def write(text: str, name: str = "ardvark.toml") -> Path:
    """Write a settings file into the working folder of the test."""
    path = Path(name)
    path.write_text(text, encoding="utf-8")
    return path


def mistakes(file: Path | None = None, overrides: dict[str, Any] | None = None) -> list[str]:
    """Load settings that are wrong; give what the operator reads, a mistake a line."""
    with pytest.raises(OperatorError) as caught:
        load_settings(file, overrides)
    first, *rest = str(caught.value).splitlines()
    assert first == "the settings are wrong:"
    return [line.removeprefix("  ") for line in rest]


CONTRACT = """
[[origins]]
origin = "https://acme.example"
surfaces = ["ard", "a2a", "mcp", "madp"]
pages = ["/"]
artifact_hosts = ["api.acme.example"]
min_interval = "5m"
max_interval = "7d"
[[origins]]
origin = "https://*.corp.example"
[storage]
url = "sqlite+aiosqlite:///ardvark.db"
[api]
listen = "127.0.0.1:8080"
public_url = "https://registry.example/api/v1/"
[network]
allow_http = true
allow_private = ["127.0.0.0/8"]
hosts = { "*.example" = "127.0.0.1" }
extra_ca_file = "ca.pem"
[politeness]
contact_url = "https://registry.example/crawler"
min_delay = "1s"
[[peers]]
url = "https://finder.example/api/v1/"
roles = ["search", "refer", "mirror"]
"""


def test_every_promised_key_is_accepted() -> None:
    write("", "ca.pem")
    settings = load_settings(write(CONTRACT))
    acme, pattern = settings.origins
    assert (acme.origin, acme.pages, acme.artifact_hosts) == ("https://acme.example", ("/",), ("api.acme.example",))
    assert acme.surfaces == pattern.surfaces == ("ard", "a2a", "mcp", "madp")
    assert (acme.min_interval, acme.max_interval) == (timedelta(minutes=5), timedelta(days=7))
    assert (acme.is_pattern, pattern.is_pattern) == (False, True)
    assert settings.storage.url == "sqlite+aiosqlite:///ardvark.db"
    assert (settings.api.listen, settings.base_url) == ("127.0.0.1:8080", "https://registry.example/api/v1/")
    assert settings.network.allow_http
    assert [str(network) for network in settings.network.allow_private] == ["127.0.0.0/8"]
    assert settings.network.hosts == {"*.example": "127.0.0.1"}
    assert settings.network.extra_ca_file == Path("ca.pem")
    assert settings.contact_url == "https://registry.example/crawler"
    assert settings.politeness.min_delay == timedelta(seconds=1)
    assert (settings.peers[0].url, settings.peers[0].roles) == (
        "https://finder.example/api/v1/",
        ("search", "refer", "mirror"),
    )


def test_without_anything_every_door_is_closed() -> None:
    settings = load_settings()
    assert settings.origins == ()
    network = settings.network
    assert (network.allow_http, network.allow_private, network.hosts, network.extra_ca_file) == (False, (), {}, None)
    assert settings.storage.url == "sqlite+aiosqlite:///ardvark.db"
    assert settings.base_url == settings.contact_url == "http://127.0.0.1:8080/api/v1/"


# --- where values come from -------------------------------------------------------------------------------------------


def test_the_file_of_the_working_folder_is_read_unless_another_is_named() -> None:
    write("[crawl]\nvisits = 7\n")
    assert load_settings().crawl.visits == 7
    assert load_settings(write("[crawl]\nvisits = 8\n", "other.toml")).crawl.visits == 8


def test_the_environment_goes_over_the_file_and_the_command_line_over_both(monkeypatch: pytest.MonkeyPatch) -> None:
    write("[crawl]\nvisits = 1\nmax_documents = 1\nremoval_sightings = 1\n")
    monkeypatch.setenv("ARDVARK_CRAWL__VISITS", "2")
    monkeypatch.setenv("ARDVARK_CRAWL__MAX_DOCUMENTS", "2")
    settings = load_settings(overrides={"crawl": {"visits": 3}})
    assert (settings.crawl.visits, settings.crawl.max_documents, settings.crawl.removal_sightings) == (3, 2, 1)


def test_variables_spell_lists_and_tables_in_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARDVARK_NETWORK__ALLOW_PRIVATE", '["10.0.0.0/8", "fd00::/8"]')
    monkeypatch.setenv("ARDVARK_NETWORK__HOSTS", '{"*.example": "127.0.0.1"}')
    monkeypatch.setenv("ARDVARK_ORIGINS", '[{"origin": "https://acme.example", "pages": ["/about"]}]')
    monkeypatch.setenv("ARDVARK_API", '{"listen": "[::1]:9000"}')
    settings = load_settings()
    assert [str(network) for network in settings.network.allow_private] == ["10.0.0.0/8", "fd00::/8"]
    assert settings.network.hosts == {"*.example": "127.0.0.1"}
    assert [(item.origin, item.pages) for item in settings.origins] == [("https://acme.example", ("/about",))]
    assert settings.api.listen == "[::1]:9000"


def test_variables_are_read_whatever_their_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ardvark_crawl__visits", "9")
    assert load_settings().crawl.visits == 9


@pytest.mark.parametrize(
    ("assignments", "message"),
    [
        (["crawl.visits"], "--set crawl.visits: expected KEY=VALUE, as in crawl.visits=20"),
        (["=5"], "--set =5: expected KEY=VALUE, as in crawl.visits=20"),
        (["crawl=5", "crawl.visits=3"], "--set crawl.visits=3: crawl is set to a plain value as well"),
        (["crawl.visits=many"], 'command line: crawl.visits = "many": expected a whole number'),
        (["crawl.visits=3", "crawl.visit=4"], "command line: crawl.visit: no such setting"),
        (["origins=https://acme.example"], 'command line: origins = "https://acme.example": expected a list'),
    ],
)
def test_a_wrong_assignment_on_the_command_line_is_a_mistake_of_the_operator(
    assignments: list[str], message: str
) -> None:
    arguments = [part for assignment in assignments for part in ("--set", assignment)]
    result = CliRunner().invoke(cli, [*arguments, "changes"])
    assert isinstance(result.exception, OperatorError)
    assert message in str(result.exception)


# --- what values are accepted -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("https://acme.example", "https://acme.example"),
        ("HTTPS://Acme.Example/", "https://acme.example"),
        ("https://acme.example:443", "https://acme.example"),
        ("https://acme.example:8443", "https://acme.example:8443"),
        ("https://acme.example:08443", "https://acme.example:8443"),
        ("https://*.corp.example", "https://*.corp.example"),
        ("https://intranet", "https://intranet"),
        ("https://10.1.2.3", "https://10.1.2.3"),
        ("https://[2001:db8::1]:8443", "https://[2001:db8::1]:8443"),
        ("https://[2001:0DB8:0:0::1]", "https://[2001:db8::1]"),
    ],
)
def test_an_origin_is_kept_in_one_spelling(given: str, kept: str) -> None:
    settings = load_settings(overrides={"origins": [{"origin": given}]})
    assert settings.origins[0].origin == kept


def test_a_name_in_another_script_is_refused_with_its_form_in_ascii() -> None:
    named = {"origin": "https://bücher.example:8443/", "artifact_hosts": ["*.bücher.example"]}
    origin, host = mistakes(overrides={"origins": [named]})
    assert origin.endswith('; this name is written in ASCII as "https://xn--bcher-kva.example:8443"')
    assert host.endswith('; this name is written in ASCII as "*.xn--bcher-kva.example"')


@pytest.mark.parametrize(
    "origin",
    [
        "acme.example",
        "ftp://acme.example",
        "https://",
        "https://acme.example/path",
        "https://acme.example?x",
        "https://user@acme.example",
        "https://acme.example:0",
        "https://acme.example:65536",
        "https://acme.example:",
        "https://[:::]",
        "https://[::1",
        "https://a..example",
        "https://a.*.example",
        "https://*",
        "https://-acme.example",
        "https://acme.example.",
        "https://acme.example\n",
        "https://аcme.example",
        "",
    ],
)
def test_what_is_no_origin_is_refused(origin: str) -> None:
    (line,) = mistakes(overrides={"origins": [{"origin": origin}]})
    assert "origins[0].origin = " in line
    assert 'expected an origin, such as "https://acme.example"' in line


@pytest.mark.parametrize(
    ("section", "key", "value", "expected"),
    [
        ("storage", "url", "mysql://h/d", '"sqlite+aiosqlite:///ardvark.db" or'),
        ("storage", "url", "sqlite:///a.db", '"sqlite+aiosqlite:///ardvark.db" or'),
        ("api", "listen", "8080", "an address and port to listen on"),
        ("api", "listen", "127.0.0.1:70000", "an address and port to listen on"),
        ("api", "public_url", "registry.example", "an absolute http or https URL without credentials"),
        ("api", "public_url", "https://registry.example/#top", "an absolute http or https URL without credentials"),
        ("api", "identifier", "urn:air:registry.example", "an ARD identifier"),
        ("api", "identifier", "urn:ai:registry.example:x", "an ARD identifier"),
        ("api", "display_name", "", "a text that is not empty"),
        ("api", "max_request_size", "1.5MiB", "a size in bytes"),
        ("network", "allow_http", "perhaps", "true or false"),
        ("network", "allow_private", ["10.0.0.1/8"], "an address range in CIDR form"),
        ("network", "allow_private", "10.0.0.0/8", "a list"),
        ("network", "hosts", {"*.example": "localhost"}, "a literal IP address"),
        ("network", "hosts", {"a b": "127.0.0.1"}, "a host name or a pattern"),
        ("network", "hosts", {"*.*.example": "127.0.0.1"}, "a host name or a pattern"),
        ("network", "nameservers", ["dns.example"], "a literal IP address"),
        ("network", "extra_ca_file", "missing.pem", "an existing file"),
        ("network", "max_redirects", 21, "a number of at most 20"),
        ("network", "connections", "many", "a whole number"),
        ("politeness", "min_delay", 1, "a duration with its unit"),
        ("crawl", "visits", 0, "a number of at least 1"),
        ("crawl", "visits", 1.5, "a whole number"),
        ("limits", "json_depth", 300, "a number of at most 256"),
        ("trust", "alignment", "strict", "one of 'subdomain', 'exact' or 'off'"),
        ("logging", "level", "loud", "one of 'debug', 'info', 'warning' or 'error'"),
    ],
)
def test_a_wrong_value_is_named_with_what_was_expected(section: str, key: str, value: Any, expected: str) -> None:
    (line,) = mistakes(overrides={section: {key: value}})
    assert line.startswith(f"command line: {section}.{key}")
    assert f": expected {expected}" in line


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ({"surfaces": ["ard", "dns"]}, "surfaces[1] = \"dns\": expected one of 'ard', 'a2a', 'mcp' or 'madp'"),
        ({"pages": ["about"]}, 'pages[0] = "about": expected a path on the origin'),
        ({"pages": ["//evil.example/"]}, 'pages[0] = "//evil.example/": expected a path on the origin'),
        (
            {"artifact_hosts": ["https://api.example"]},
            'artifact_hosts[0] = "https://api.example": expected a host name',
        ),
        ({"min_interval": "8d", "max_interval": "7d"}, 'min_interval = "8d": expected at most max_interval, which is'),
        ({"interval": "8d"}, "interval: no such setting"),
    ],
)
def test_a_wrong_option_of_an_origin_is_named_with_its_number(origin: dict[str, Any], expected: str) -> None:
    entries = [{"origin": "https://acme.example"}, {"origin": "https://beta.example", **origin}]
    (line,) = mistakes(overrides={"origins": entries})
    assert line.startswith(f"command line: origins[1].{expected}")


# --- how mistakes are reported ----------------------------------------------------------------------------------------


def test_all_mistakes_are_listed_at_once_with_key_value_source_and_expectation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARDVARK_CRAWL__VISITS", "many")
    monkeypatch.setenv("ARDVARK_NETWORK__ALLOW_PRIVATE", "10.0.0.0/8")
    monkeypatch.setenv("ARDVARK_STORAGE__URLL", "x")
    monkeypatch.setenv("ARDVARK_STORE", "x")
    file = write(
        """
        orgins = 1
        [[origins]]
        origin = "acme.example"
        surfaces = ["ard", "foo"]
        pages = "/"
        [[origins]]
        min_interval = "2d"
        [[origins]]
        origin = "http://plain.example"
        min_interval = 5
        [[origins]]
        origin = "https://twice.example"
        [[origins]]
        origin = "https://twice.example:443/"
        [crawl]
        min_interval = "2d"
        max_interval = "1d"
        [[peers]]
        url = "finder.example"
        roles = ["search", "lead"]
        """
    )
    listed = mistakes(file, {"logging": {"level": "loud"}})
    origin = 'an origin, such as "https://acme.example", or a pattern, such as "https://*.corp.example"'
    duration = 'a duration with its unit, such as "500ms", "30s", "5m", "12h" or "7d"'
    url = 'an absolute http or https URL without credentials, such as "https://registry.example/"'
    assert sorted(listed) == sorted(
        [
            "ARDVARK_STORE: expected one of the settings, such as ARDVARK_API__LISTEN",
            "ARDVARK_STORAGE__URLL: storage.urll: no such setting",
            'ARDVARK_CRAWL__VISITS: crawl.visits = "many": expected a whole number',
            'ARDVARK_NETWORK__ALLOW_PRIVATE: network.allow_private = "10.0.0.0/8": expected a list, written as JSON',
            "command line: logging.level = \"loud\": expected one of 'debug', 'info', 'warning' or 'error'",
            "ardvark.toml: orgins: no such setting",
            f'ardvark.toml: origins[0].origin = "acme.example": expected {origin}',
            "ardvark.toml: origins[0].surfaces[1] = \"foo\": expected one of 'ard', 'a2a', 'mcp' or 'madp'",
            'ardvark.toml: origins[0].pages = "/": expected a list',
            "ardvark.toml: origins[1].origin: is missing",
            f"ardvark.toml: origins[2].min_interval = 5: expected {duration}",
            f'ardvark.toml: peers[0].url = "finder.example": expected {url}',
            "ardvark.toml: peers[0].roles[1] = \"lead\": expected one of 'search', 'refer' or 'mirror'",
            # These three concern values that are right by themselves.
            'ardvark.toml: origins[2].origin = "http://plain.example": expected https, or network.allow_http = true',
            'ardvark.toml: origins[4].origin = "https://twice.example": expected an origin not listed before',
            'ardvark.toml: crawl.min_interval = "2d": expected at most crawl.max_interval, which is "1d"',
        ]
    )


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ({"storage": 5}, "command line: storage = 5: expected a table"),
        ({"origins": 5}, "command line: origins = 5: expected a list"),
        ({"origins": ["https://acme.example"]}, 'command line: origins[0] = "https://acme.example": expected a table'),
        ({"peers": [{}, 1]}, "command line: peers[1] = 1: expected a table"),
        (
            {"network": {"hosts": {"*.example": None}}},
            'command line: network.hosts."*.example" = None: expected a text',
        ),
    ],
)
def test_a_value_of_the_wrong_shape_is_a_mistake_and_no_crash(overrides: dict[str, Any], expected: str) -> None:
    assert expected in mistakes(overrides=overrides)


def test_plain_http_needs_its_switch() -> None:
    overrides: dict[str, Any] = {"origins": [{"origin": "http://acme.example"}]}
    (line,) = mistakes(overrides=overrides)
    assert line.endswith('origins[0].origin = "http://acme.example": expected https, or network.allow_http = true')
    assert load_settings(overrides={**overrides, "network": {"allow_http": True}}).origins


def test_a_mistake_between_sources_is_laid_at_the_door_of_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    file = write('[crawl]\nmin_interval = "1h"\nmax_interval = "1d"\n')
    monkeypatch.setenv("ARDVARK_CRAWL__MIN_INTERVAL", "2d")
    assert mistakes(file) == [
        'ARDVARK_CRAWL__MIN_INTERVAL: crawl.min_interval = "2d": expected at most crawl.max_interval, which is "1d"'
    ]


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("storage", "url", "postgresql://ardvark:hunter2@db.example/ardvark"),
        ("storage", "url", "postgresql://ardvark:pa@hunter2@db.example/ardvark"),
        ("storage", "url", "postgresql://ardvark:pa/hunter2@db.example/ardvark"),
        ("storage", "url", "postgresql://hunter2@db.example/ardvark"),
        ("storage", "url", "postgresql://db.example/ardvark?user=ardvark&password=hunter2"),
        ("api", "public_url", "https://ardvark:hunter2@registry.example/"),
        ("politeness", "contact_url", "https://registry.example/?a=1&Token=hunter2#x"),
        ("network", "hosts", {"*.example": "https://u:hunter2@h/"}),
    ],
)
def test_a_message_never_shows_a_secret(section: str, key: str, value: Any) -> None:
    (line,) = mistakes(overrides={section: {key: value}})
    assert "***" in line
    assert "hunter2" not in line


def test_a_value_is_shown_without_control_characters() -> None:
    (line,) = mistakes(overrides={"crawl": {"lease": "5\n\x1b[31mm"}})
    assert line.startswith(r'command line: crawl.lease = "5\n\u001b[31mm": expected')


def test_a_long_value_is_cut_in_its_message() -> None:
    (line,) = mistakes(overrides={"crawl": {"lease": "x" * 1000}})
    assert len(line) < 250
    assert 'crawl.lease = "xxx' in line


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[api]\nlisten = \n", r"not valid TOML: .*\(at line 2, column \d+\)"),
        ("[api]\n[api]\n", r"not valid TOML: .*\(at line 2, column \d+\)"),
        ("a = 1\na = 2\n", r"not valid TOML: .*\(at line 2, column \d+\)"),
        ("[api\n", r"not valid TOML: .*\(at line 1, column \d+\)"),
    ],
)
def test_a_syntax_error_is_reported_with_its_line(text: str, message: str) -> None:
    with pytest.raises(OperatorError, match=f"^ardvark.toml: {message}$"):
        load_settings(write(text))


def test_a_file_that_is_not_utf_8_is_reported_with_its_line() -> None:
    Path("ardvark.toml").write_bytes(b'[api]\n# caf\xe9\nlisten = "x"\n')
    with pytest.raises(OperatorError, match=r"^ardvark.toml: not valid TOML: not UTF-8 \(at line 2\)$"):
        load_settings()


def test_a_file_that_is_not_there_is_reported() -> None:
    with pytest.raises(OperatorError, match=r"^nowhere\.toml: no such settings file$"):
        load_settings(Path("nowhere.toml"))


def test_a_file_that_cannot_be_read_is_reported() -> None:
    Path("folder.toml").mkdir()
    with pytest.raises(OperatorError, match=r"^folder.toml: cannot be read \(Is a directory\)$"):
        load_settings(Path("folder.toml"))


# --- the generated reference ------------------------------------------------------------------------------------------

REPOSITORY = Path(__file__).resolve().parents[2]
FULL_LINE = re.compile(r"^#(?! )", re.MULTILINE)


def test_the_reference_page_is_up_to_date() -> None:
    from config.reference import settings_markdown

    stale = "docs/settings.md is stale: run `make docs`"
    assert (REPOSITORY / "docs" / "settings.md").read_text(encoding="utf-8") == settings_markdown(), stale


def test_the_file_to_start_from_is_up_to_date() -> None:
    from config.reference import default_toml

    stale = "config/default.toml is stale: run `make docs`"
    assert (REPOSITORY / "config" / "default.toml").read_text(encoding="utf-8") == default_toml(), stale


def test_the_file_to_start_from_changes_nothing_as_it_is() -> None:
    assert load_settings(REPOSITORY / "config" / "default.toml") == load_settings()


def test_with_every_line_in_force_the_file_to_start_from_sets_every_key_to_its_default() -> None:
    text = FULL_LINE.sub("", (REPOSITORY / "config" / "default.toml").read_text(encoding="utf-8"))
    values = tomllib.loads(text)
    write("", "ca.pem")
    write("", "acme-keys.json")
    settings = load_settings(write(text, "full.toml"))
    defaults = Settings().model_dump(mode="json")
    for section, keys in defaults.items():
        if isinstance(keys, dict):
            assert list(values[section]) == list(keys)
            for key, default in keys.items():
                if default is not None:
                    assert settings.model_dump(mode="json")[section][key] == default, f"{section}.{key}"
    assert list(values["origins"][0]) == list(type(settings.origins[0]).model_fields)
    assert list(values["peers"][0]) == list(type(settings.peers[0]).model_fields)
    assert list(values["trusted_keys"][0]) == list(type(settings.trusted_keys[0]).model_fields)


def test_trusted_keys_name_files_that_are_there() -> None:
    write("", "keys.json")
    settings = load_settings(write('[[trusted_keys]]\nfile = "keys.json"\n', "keys.toml"))
    assert settings.trusted_keys[0].hosts == ("*",)
    text = '[[trusted_keys]]\nfile = "none.json"\n[[trusted_keys]]\nhosts = ["-"]\n'
    with pytest.raises(OperatorError) as raised:
        load_settings(write(text, "wrong.toml"))
    lines = str(raised.value).splitlines()[1:]
    assert [line.partition("trusted_keys")[2].partition(" ")[0] for line in lines] == [
        "[0].file",
        "[1].file:",
        "[1].hosts[0]",
    ]


def test_every_key_has_a_line_of_help() -> None:
    lines = (REPOSITORY / "config" / "default.toml").read_text(encoding="utf-8").splitlines()
    keys = [number for number, line in enumerate(lines) if re.match(r"#\w+ = ", line)]
    assert len(keys) > 50
    assert [lines[number] for number in keys if not re.fullmatch(r"# \S.*\S", lines[number - 1])] == []


def documented_variables() -> list[tuple[str, str, str]]:
    """The rows of the reference page: section, key, variable."""
    page = (REPOSITORY / "docs" / "settings.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| .* \| `(ARDVARK_(\w+?)__\w+)` \|$", page, re.MULTILINE)
    return [(section.lower(), key, variable) for key, variable, section in rows]


def test_every_key_of_a_section_has_a_documented_variable() -> None:
    sections = {name: keys for name, keys in Settings().model_dump().items() if isinstance(keys, dict)}
    assert [row[:2] for row in documented_variables()] == [
        (section, key) for section, keys in sections.items() for key in keys
    ]


@pytest.mark.parametrize(("section", "key", "variable"), documented_variables())
def test_a_documented_variable_sets_its_key(
    section: str, key: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "\x7f")
    try:
        answer = getattr(getattr(load_settings(), section), key)
    except OperatorError as error:
        answer = str(error)
    assert answer == "\x7f" or f"{variable}: {section}.{key} = " in answer
