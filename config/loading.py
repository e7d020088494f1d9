"""Settings from a TOML file, `ARDVARK_*` environment variables and the command line, the later over the earlier."""

import copy
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_settings import SettingsError

from config.errors import OperatorError
from config.settings import ENV_PREFIX, Settings

DEFAULT_FILE = "ardvark.toml"


@dataclass(frozen=True)
class _Origins:
    """Where each value came from, to name it in a message."""

    file: Path | None
    overrides: Mapping[str, Any]

    def of(self, path: Sequence[str | int]) -> str:
        value: Any = self.overrides if path else None
        for step in path or [""]:
            if not isinstance(value, Mapping) or step not in value:
                break
            value = value[step]
        else:
            return "command line"
        names = [str(step).upper() for step in path if isinstance(step, str)]
        for length in range(len(names), 0, -1):
            name = ENV_PREFIX + "__".join(names[:length])
            if name in os.environ:
                return name
        return str(self.file) if self.file else "settings"


def load_settings(file: Path | None = None, overrides: Mapping[str, Any] | None = None) -> Settings:
    """Read the settings from file, environment and command line.

    Without `file`, `ardvark.toml` of the working directory is read if it is there. Raises OperatorError that lists all
    mistakes, each with its key, its value and what was expected.
    """
    overrides = overrides or {}
    path = file or (Path(DEFAULT_FILE) if Path(DEFAULT_FILE).exists() else None)
    from_file = _read_toml(path) if path else {}
    mistakes = _unknown_variables()
    try:
        settings = Settings(**{**overrides, "_file": from_file})
    except ValidationError as error:
        mistakes += _all_mistakes(error, from_file, overrides, _Origins(path, overrides))
    except SettingsError as error:
        mistakes.append(f"{_env_field(error)}: expected JSON, as in '[\"127.0.0.0/8\"]'")
    else:
        if not mistakes:
            return settings
    raise OperatorError("the settings are wrong:\n" + "\n".join(f"  {mistake}" for mistake in mistakes))


def _all_mistakes(
    error: ValidationError, from_file: Mapping[str, Any], overrides: Mapping[str, Any], origins: _Origins
) -> list[str]:
    """Describe the errors, then those that only show once the wrong values are out of the way."""
    mistakes = [_mistake(item, origins) for item in error.errors()]
    rest = [copy.deepcopy(dict(overrides)), copy.deepcopy(dict(from_file))]
    for item in error.errors():
        for values in rest:
            _take_out(values, item["loc"])
    try:
        Settings(**{**rest[0], "_file": rest[1]})
    except ValidationError as second:
        described = [_mistake(item, origins) for item in second.errors()]
        mistakes += [mistake for mistake in described if mistake not in mistakes]
    return mistakes


def _take_out(values: Any, path: Sequence[str | int]) -> None:
    """Remove the value at `path`; a list keeps its length, so that later messages count right."""
    while path and isinstance(path[-1], int):
        path = path[:-1]
    for step in path[:-1]:
        try:
            values = values[step]
        except (KeyError, IndexError, TypeError):
            return
    last = path[-1] if path else None
    if isinstance(values, dict) and last == "origin":
        values[last] = f"https://wrong-{id(values)}.invalid"
    elif isinstance(values, dict):
        values.pop(last, None)


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as stream:
            return tomllib.load(stream)
    except FileNotFoundError:
        raise OperatorError(f"{path}: no such settings file") from None
    except OSError as error:
        raise OperatorError(f"{path}: cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise OperatorError(f"{path}: not valid TOML: {error}") from None


def _unknown_variables() -> list[str]:
    known = tuple(ENV_PREFIX + name.upper() for name in Settings.model_fields)
    return [
        f"{name}: expected one of the settings, such as {ENV_PREFIX}API__LISTEN"
        for name in sorted(os.environ)
        if name.startswith(ENV_PREFIX) and name.split("__")[0] not in known
    ]


def _env_field(error: SettingsError) -> str:
    match = re.search(r'field "(\w+)"', str(error))
    return ENV_PREFIX + match[1].upper() if match else "environment"


def _mistake(item: Any, origins: _Origins) -> str:
    path = [step for step in item["loc"] if not (isinstance(step, str) and step.startswith("function-"))]
    key = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")
    where = origins.of(path)
    kind = item["type"]
    if kind == "extra_forbidden":
        return f"{where}: {key}: no such setting"
    if kind == "missing":
        return f"{where}: {key}: is missing"
    expected = str(item.get("ctx", {}).get("error") or item["msg"])
    if kind == "literal_error":
        expected = f"one of {item['ctx']['expected']}"
    expected = re.sub(r"^(Input should be|Value error,) ", "", expected)
    if not key or isinstance(item["input"], Mapping):
        return f"{where}: {key}{': ' if key else ''}expected {expected}"
    return f"{where}: {key} = {_shown(item['input'])}: expected {expected}"


def _shown(value: Any) -> str:
    """Show a wrong value, short and without a password."""
    text = f'"{value}"' if isinstance(value, str) else str(value)
    text = re.sub(r"(://[^:/@\s]*):[^@\s]*@", r"\1:***@", text)
    return text if len(text) <= 80 else text[:77] + "..."
