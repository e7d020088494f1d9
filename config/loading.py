"""Settings from a TOML file, `ARDVARK_*` environment variables and the command line, the later over the earlier."""

import copy
import json
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import EnvSettingsSource

from config.errors import OperatorError
from config.settings import ENV_PREFIX, Settings

DEFAULT_FILE = "ardvark.toml"

# What pydantic would put in the words of a programmer.
_EXPECTED = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dict_type": "a table",
    "float_parsing": "a number",
    "greater_than_equal": "a number of at least {ge}",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "less_than_equal": "a number of at most {le}",
    "literal_error": "one of {expected}",
    "model_attributes_type": "a table",
    "model_type": "a table",
    "path_type": "a path",
    "string_too_short": "a text that is not empty",
    "string_type": "a text",
    "too_short": "a list that is not empty",
    "tuple_type": "a list",
}
_IN_JSON = frozenset({"dict_type", "model_attributes_type", "model_type", "tuple_type"})
_SECRETS = (
    (re.compile(r"(://[^:/?#@\s]*):\S*@"), r"\1:***@"),
    (re.compile(r"://[^:/?#@\s]*@"), "://***@"),
    (re.compile(r"((?:password|passwd|secret|token|key)=)[^&\s\"']*", re.IGNORECASE), r"\1***"),
)
_LONGEST_SHOWN = 80


class _Environment(EnvSettingsSource):
    """Reads the variables; what should be JSON and isn't stays text, for the checks to find with all other mistakes."""

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: Any) -> Any:
        try:
            return super().decode_complex_value(field_name, field, value)
        except ValueError:
            return value


@dataclass(frozen=True, slots=True)
class _Origins:
    """Where each value came from, to name it in a message."""

    file: Path | None
    environment: Mapping[str, Any]
    overrides: Mapping[str, Any]

    def of(self, path: Sequence[str | int]) -> str:
        if path and _reaches(self.overrides, path):
            return "command line"
        if path and _reaches(self.environment, path):
            return self._variable(path)
        return str(self.file) if self.file else "settings"

    @staticmethod
    def _variable(path: Sequence[str | int]) -> str:
        present = {name.upper(): name for name in os.environ}
        names = [str(step).upper() for step in path if isinstance(step, str)]
        for length in range(len(names), 0, -1):
            name = ENV_PREFIX + "__".join(names[:length])
            if name in present:
                return present[name]
        return "environment"


def load_settings(file: Path | None = None, overrides: Mapping[str, Any] | None = None) -> Settings:
    """Read the settings from file, environment and command line.

    Without `file`, `ardvark.toml` of the working directory is read if it is there. Raises OperatorError that lists all
    mistakes, each with its key, its value, where it was set and what was expected.
    """
    path = file or (Path(DEFAULT_FILE) if Path(DEFAULT_FILE).exists() else None)
    from_file = _read_toml(path) if path else {}
    from_environment = _Environment(Settings)()
    origins = _Origins(path, from_environment, overrides or {})
    values = _merged(_merged(from_file, from_environment), origins.overrides)
    mistakes = _unknown_variables()
    try:
        settings = Settings(**values)
    except ValidationError as error:
        mistakes += _all_mistakes(error, values, origins)
    else:
        if not mistakes:
            return settings
    raise OperatorError("the settings are wrong:\n" + "\n".join(f"  {mistake}" for mistake in mistakes))


def _merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Lay one set of values over another; tables merge key by key, everything else is replaced."""
    merged = dict(under)
    for name, value in over.items():
        below = merged.get(name)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            value = _merged(below, value)
        merged[name] = value
    return merged


def _reaches(values: Any, path: Sequence[str | int]) -> bool:
    """Tell whether values hold the start of the path, down to a list or a plain value that is replaced as a whole."""
    for step in path:
        if not isinstance(values, Mapping):
            return True
        if step not in values:
            return False
        values = values[step]
    return True


def _all_mistakes(error: ValidationError, values: Mapping[str, Any], origins: _Origins) -> list[str]:
    """Describe the mistakes, then those that only show once the wrong values are out of the way."""
    mistakes = [_mistake(item, origins) for item in error.errors()]
    repaired = copy.deepcopy(dict(values))
    for item in error.errors():
        _repair(repaired, _steps(item))
    try:
        Settings(**repaired)
    except ValidationError as second:
        mistakes += [_mistake(item, origins) for item in second.errors()]
    return list(dict.fromkeys(mistakes))


def _repair(values: Any, path: tuple[Any, ...]) -> None:
    """Take a wrong value out, or put a harmless one in its place; lists of tables keep their length to count right."""
    while path and isinstance(path[-1], int) and len(path) != 2:
        path = path[:-1]
    for step in path[:-1]:
        try:
            values = values[step]
        except (KeyError, IndexError, TypeError):
            return
    harmless = _harmless(path)
    if harmless is not None and isinstance(values, dict | list):
        values[path[-1]] = harmless
    elif path and isinstance(values, dict):
        values.pop(path[-1], None)


def _harmless(path: tuple[str | int, ...]) -> Any:
    """Give a value for what is required; None for what may be absent."""
    section, number, key = (*path, None, None)[:3]
    tables: dict[Any, dict[str, Any]] = {
        "origins": {"origin": f"https://wrong-{number}.invalid"},
        "peers": {"url": "https://wrong.invalid/", "roles": ["search"]},
        "trusted_keys": {"file": __file__},
    }
    if section not in tables or number is None:
        return None
    return tables[section] if key is None else tables[section].get(str(key))


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_bytes().decode())
    except FileNotFoundError:
        raise OperatorError(f"{path}: no such settings file") from None
    except OSError as error:
        raise OperatorError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise OperatorError(f"{path}: not valid TOML: not UTF-8 (at line {line})") from None
    except tomllib.TOMLDecodeError as error:
        raise OperatorError(f"{path}: not valid TOML: {error}") from None


def _unknown_variables() -> list[str]:
    known = tuple(ENV_PREFIX + name.upper() for name in Settings.model_fields)
    return [
        f"{name}: expected one of the settings, such as {ENV_PREFIX}API__LISTEN"
        for name in sorted(os.environ)
        if name.upper().startswith(ENV_PREFIX) and name.upper().split("__")[0] not in known
    ]


def _steps(item: Any) -> tuple[str | int, ...]:
    """Give the path of a mistake without the marks that pydantic adds for keys and validators."""
    return tuple(
        step for step in item["loc"] if step != "[key]" and not (isinstance(step, str) and step.startswith("function-"))
    )


def _mistake(item: Any, origins: _Origins) -> str:
    path = _steps(item)
    key = "".join(map(_key_step, path)).lstrip(".")
    where = origins.of(path)
    kind, value = item["type"], item["input"]
    if kind == "extra_forbidden":
        return f"{where}: {key}: no such setting"
    if kind == "missing":
        return f"{where}: {key}: is missing"
    context = item.get("ctx", {})
    expected = str(context.get("error") or item["msg"])
    if kind in _EXPECTED:
        expected = _EXPECTED[kind].format_map(context)
    if where.upper().startswith(ENV_PREFIX) and kind in _IN_JSON:
        expected += ", written as JSON"
    if isinstance(value, Mapping):
        return f"{where}: {key}: expected {expected}"
    return f"{where}: {key} = {_shown(value)}: expected {expected}"


def _key_step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if re.fullmatch(r"[\w-]+", step, re.ASCII) else f".{json.dumps(step)}"


def _shown(value: Any) -> str:
    """Show a wrong value, short and without the secrets that URLs carry."""
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "..."
