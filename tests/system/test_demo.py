"""The demo as a visitor runs it: the installed command, its output, its API and its end."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.system
ARDVARK = Path(sys.executable).parent / "ardvark"


@dataclass
class Demo:
    """A running demo and the lines it has written so far."""

    process: subprocess.Popen[str]
    lines: list[str]

    def read_until(self, part: str) -> str:
        """Read on to the first line that holds a text."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            if part in line:
                return line
        raise AssertionError(f"the demo ended without {part!r}: {''.join(self.lines)}")

    def word_after(self, text: str) -> str:
        written = "".join(self.lines)
        return written.partition(text)[2].split()[0]

    def ardvark(self, *arguments: str) -> Any:
        """Ask from another terminal, with the settings file that the guide names."""
        command = [ARDVARK, "-c", self.word_after("ardvark -c"), *arguments, "--json"]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    def stop(self) -> tuple[int, str]:
        self.process.send_signal(signal.SIGINT)
        output, errors = self.process.communicate(timeout=20)
        self.lines.append(output)
        return self.process.returncode, errors


@contextmanager
def demo(*options: str) -> Iterator[Demo]:
    with subprocess.Popen(
        [ARDVARK, "demo", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Demo(process, [])
        finally:
            process.kill()


def post(url: str, body: Any) -> Any:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as response:
        return json.load(response)


def test_the_demo_crawls_serves_and_changes_until_ctrl_c() -> None:
    with demo("--port", "0", "--listen", "127.0.0.1:0", "--change-after", "1s") as running:
        running.read_until("Stop with Ctrl-C")
        api = running.word_after("The registry answers at")
        folder = Path(running.word_after("ardvark -c")).parent
        assert folder.is_dir()

        found = post(f"{api}search", {"query": {"text": "book a mountain hut"}})["results"]
        assert found[0]["identifier"] == "urn:air:huts.example:agent:warden"
        assert found[0]["source"] == api

        running.read_until("Seen after")
        events = running.ardvark("changes")["items"]
        tides = {(event["kind"], event["identifier"]) for event in events if "tides.example" in event["identifier"]}
        assert {
            ("entry.changed", "urn:air:tides.example:mcp:tables"),
            ("entry.added", "urn:air:tides.example:mcp:storm-surge"),
            ("entry.removed", "urn:air:tides.example:agent:moorings"),
        } <= tides
        changed = [event["members"] for event in events if event["kind"] == "entry.changed"]
        assert changed[:1] == [["/description", "/version"]]
        running.read_until("Union of Mountain Huts (huts.example) closes two bridges")
        running.read_until("entry.changed  urn:air:huts.example:agent:warden (/version)")

        assert running.stop() == (0, "")
        assert not folder.exists()


def test_settings_and_database_are_kept_in_a_named_folder_whatever_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    precious = tmp_path / "precious.db"
    folder = tmp_path / "kept"
    monkeypatch.setenv("ARDVARK_STORAGE__URL", f"sqlite+aiosqlite:///{precious}")
    with demo("--port", "0", "--listen", "127.0.0.1:0", "--directory", str(folder)) as running:
        running.read_until("Stop with Ctrl-C")
        assert running.stop() == (0, "")
    assert not precious.exists()

    monkeypatch.delenv("ARDVARK_STORAGE__URL")
    shown = running.ardvark("show", "urn:air:tides.example:mcp:tables")
    assert shown["state"] == "current"
    assert [source["state"] for source in shown["sources"]] == ["listed", "conflict"]
    assert {"demo.db", "demo.toml"} <= {path.name for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--listen", "127.0.0.1:{taken}"], "cannot listen on 127.0.0.1:{taken}"),
        (["--listen", "127.0.0.1:0", "--port", "{taken}"], "--port {taken}: "),
        (["--change-after", "soon"], "--change-after soon: expected a duration"),
        (["--directory", "mine"], "demo.toml was not written by the demo"),
    ],
)
def test_a_mistake_is_one_message_and_exit_status_two(options: list[str], says: str, tmp_path: Path) -> None:
    mine = tmp_path / "mine" / "demo.toml"
    mine.parent.mkdir()
    mine.write_text("[api]\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        given = [option.replace("{taken}", port) for option in options]
        ended = subprocess.run([ARDVARK, "demo", *given], capture_output=True, text=True, cwd=tmp_path, timeout=20)
    assert ended.returncode == 2
    assert ended.stderr.startswith("ardvark: ")
    assert says.replace("{taken}", port) in ended.stderr
    assert ended.stderr.count(os.linesep) == 1
    assert mine.read_text() == "[api]\n"


def test_a_reader_who_leaves_ends_the_demo_without_a_traceback() -> None:
    with demo("--port", "0", "--listen", "127.0.0.1:0", "--change-after", "100ms") as running:
        running.read_until("Stop with Ctrl-C")
        assert running.process.stdout is not None
        running.process.stdout.close()
        assert running.process.wait(timeout=20) == 0
        assert running.process.stderr is not None
        assert running.process.stderr.read() == ""
