"""A logged fault says where it happened, and gives none of the values that were at hand there."""

import subprocess
import sys

import pytest

SCRIPT = """
import structlog
from config.logging import configure_logging
from config.settings import LoggingSettings

configure_logging(LoggingSettings(format={format!r}))
try:
    password = "hunter" + "2"
    {{}}["absent"]
except KeyError:
    structlog.get_logger("ardvark.test").exception("visit.crashed", origin="https://acme.example")
"""


@pytest.mark.parametrize("format", ["json", "console"])
def test_local_values_stay_out_of_the_log(format: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(format=format)], capture_output=True, text=True, check=True
    )
    assert done.stdout == ""
    for part in ("visit.crashed", "https://acme.example", "KeyError", "absent"):
        assert part in done.stderr
    assert "hunter2" not in done.stderr
