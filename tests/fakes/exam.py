"""Exams: tests with a short form for every run and a long one for `make exam`, which prints what it measured."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parents[2]


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Lay out a table in Markdown."""
    lines = [list(head), ["---"] * len(head), *(list(map(str, row)) for row in rows)]
    return [f"| {' | '.join(cells)} |" if cells[0] != "---" else f"|{'|'.join(cells)}|" for cells in lines]


@dataclass
class Exam:
    """How an exam is to be taken: short or `long`, by which `seed`, and whether it `writes` its part of the manual."""

    long: bool
    seed: int
    writes: bool
    lines: list[str] = field(default_factory=list)

    def chance(self, name: str) -> Random:
        """Give the dice of one exam, and say how they can be thrown again."""
        self.say(f"{name}: {'long' if self.long else 'short'} form, --exam-seed={self.seed}")
        return Random(f"{self.seed} {name}")

    def say(self, *lines: str) -> None:
        """Put lines into the report, and into the output of the test that is shown when it fails."""
        self.lines += lines
        for line in lines:
            print(line)

    def keep(self, name: str, lines: Sequence[str]) -> None:
        """Compare a part of the manual of operators with what was found, or write it anew."""
        path = ROOT / "docs" / "operations.md"
        text = path.read_text(encoding="utf-8")
        begin, end = f"<!-- {name}: written by `make exam` -->\n", f"<!-- end of {name} -->\n"
        before, found, rest = text.partition(begin)
        assert found, f"docs/operations.md has no place for {name}"
        _, found, after = rest.partition(end)
        assert found, f"the place for {name} in docs/operations.md has no end"
        wanted = f"{before}{begin}{chr(10).join(lines)}\n{end}{after}"
        if self.writes and wanted != text:
            path.write_text(wanted, encoding="utf-8")
        assert self.writes or wanted == text, "docs/operations.md is out of date; run `make exam`"
