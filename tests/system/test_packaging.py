"""The wheel: what is in it, and that the command works where nothing but the wheel is."""

import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Mapping
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.web import entry

ROOT = Path(__file__).resolve().parents[2]
NAMES = {"crawler", "index", "config"}

pytestmark = [
    pytest.mark.system,
    pytest.mark.xdist_group("packaging"),
    pytest.mark.skipif(
        importlib.util.find_spec("hatchling") is None or importlib.util.find_spec("pip") is None,
        reason="THE WHEEL IS NOT TESTED: hatchling and pip must be installed beside the tests",
    ),
]


def run(*command: Any, cwd: Path, status: int = 0, env: Mapping[str, str] | None = None) -> str:
    """Run a command in a folder, with nothing of ours on the path, and give what it printed."""
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env={**clean, **(env or {})}, capture_output=True, text=True
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel without any download."""
    folder = tmp_path_factory.mktemp("wheel")
    build = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation")
    hatchling = importlib.util.find_spec("hatchling")
    assert hatchling is not None
    assert hatchling.origin is not None
    beside = str(Path(hatchling.origin).parents[1])
    run(*build, "--no-cache-dir", "--wheel-dir", folder, ROOT, cwd=folder, env={"PYTHONPATH": beside})
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def contents(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel in it; what it depends on is borrowed from the one that runs the tests."""
    folder = tmp_path_factory.mktemp("environment") / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    install = ("install", "--quiet", "--no-deps", "--no-index", "--no-compile", wheel)
    run(sys.executable, "-m", "pip", "--python", folder / "bin" / "python", *install, cwd=folder.parent)
    (packages,) = folder.glob("lib/python*/site-packages")
    # A folder named here is searched, but the editable install that lies in it is not followed.
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n" + sysconfig.get_path("platlib") + "\n")
    return folder


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    folder = tmp_path / "empty"
    folder.mkdir()
    return folder


# --- what is in it ----------------------------------------------------------------------------------------------------


def test_three_packages_are_in_the_wheel_and_nothing_else(contents: set[str]) -> None:
    top = {name.partition("/")[0] for name in contents}
    assert {name for name in top if not name.endswith(".dist-info")} == NAMES
    assert len(top) == len(NAMES) + 1
    assert not [name for name in contents if "test" in name or name.endswith((".pyc", ".db"))]


def test_every_module_and_data_file_is_in_the_wheel(contents: set[str]) -> None:
    """Whatever is in the folders and under version control is delivered."""
    tracked = subprocess.run(["git", "ls-files", *sorted(NAMES)], cwd=ROOT, capture_output=True, text=True)
    if tracked.returncode == 0 and tracked.stdout:
        assert set(tracked.stdout.split()) <= contents
    wanted = {f"{name}/py.typed" for name in NAMES} | {
        "config/default.toml",
        "index/store/migrations/env.py",
        "index/store/migrations/script.py.mako",
        "index/store/migrations/versions/0001_initial.py",
    }
    assert wanted <= contents


def test_the_metadata_says_what_it_is_and_how_it_is_called(wheel: Path, contents: set[str]) -> None:
    info = next(name.partition("/")[0] for name in contents if name.endswith(".dist-info/METADATA"))
    with zipfile.ZipFile(wheel) as archive:
        metadata = Parser().parsestr(archive.read(f"{info}/METADATA").decode())
        entry_points = archive.read(f"{info}/entry_points.txt").decode()
    assert (metadata["Name"], metadata["Requires-Python"]) == ("ardvark", ">=3.11")
    assert metadata["License-Expression"] == "Apache-2.0"
    assert f"{info}/licenses/LICENSE" in contents
    assert entry_points.split() == ["[console_scripts]", "ardvark", "=", "crawler.cli:main"]


# --- that it works ----------------------------------------------------------------------------------------------------


def test_the_command_runs_from_an_empty_folder(environment: Path, empty: Path) -> None:
    ardvark = environment / "bin" / "ardvark"
    said = run(ardvark, "--version", cwd=empty)
    assert said.startswith("ardvark, version ")
    assert "Usage: ardvark" in run(ardvark, "--help", cwd=empty)
    assert list(empty.iterdir()) == [], "asking leaves nothing behind"


def test_the_packages_are_those_of_the_wheel_and_their_names_ours_alone(environment: Path, empty: Path) -> None:
    question = (
        "import json, config, crawler, index; from importlib.metadata import packages_distributions as owners;"
        "ours = {each.__name__: each.__file__ for each in (config, crawler, index)};"
        "print(json.dumps({name: [file, sorted(set(owners()[name]))] for name, file in ours.items()}))"
    )
    answer = json.loads(run(environment / "bin" / "python", "-c", question, cwd=empty))
    for name in NAMES:
        place, owners = answer[name]
        assert Path(place).is_relative_to(environment)
        assert owners == ["ardvark"]


def test_check_works_from_an_empty_folder(environment: Path, empty: Path, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps({"entries": [entry("echo")]}))
    bad.write_text(json.dumps({"entries": [entry("echo", url=None)]}))
    ardvark = environment / "bin" / "ardvark"
    assert "1 entries, 0 errors" in run(ardvark, "check", good, cwd=empty)
    assert "entry.no_content" in run(ardvark, "check", bad, cwd=empty, status=1)
    assert list(empty.iterdir()) == []


def test_the_migrations_in_the_wheel_make_a_database(environment: Path, empty: Path) -> None:
    ardvark = environment / "bin" / "ardvark"
    assert "brought from nothing to" in run(ardvark, "db", "upgrade", cwd=empty)
    assert "nothing matches" in run(ardvark, "search", "anything", cwd=empty)
    assert {path.name for path in empty.iterdir()} >= {"ardvark.db"}


def test_a_wrong_setting_is_told_without_a_traceback(environment: Path, empty: Path) -> None:
    said = run(environment / "bin" / "ardvark", "--set", "crawl.visits=0", "search", "x", cwd=empty, status=2)
    assert "crawl.visits" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("name", ["config", "index"])
def test_a_package_of_the_same_name_that_is_in_the_way_is_named(
    environment: Path, empty: Path, tmp_path: Path, name: str
) -> None:
    stranger = tmp_path / "stranger"
    (stranger / name).mkdir(parents=True)
    (stranger / name / "__init__.py").write_text("")
    said = run(environment / "bin" / "ardvark", "--version", cwd=empty, status=2, env={"PYTHONPATH": str(stranger)})
    assert f"another package named {name}" in said
    assert "Traceback" not in said


def test_a_folder_of_the_same_name_beside_the_operator_is_not_in_the_way(environment: Path, empty: Path) -> None:
    for name in NAMES:
        (empty / name).mkdir()
        (empty / name / "__init__.py").write_text("raise SystemExit('the wrong package')")
    assert run(environment / "bin" / "ardvark", "--version", cwd=empty).startswith("ardvark, version ")
