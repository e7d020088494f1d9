"""Documents of every generation, and the readings that are expected of them."""

import json
from pathlib import Path

import pytest

from tests.surfaces.golden import documents, read, reading_file, write


@pytest.mark.parametrize("document", documents(), ids=lambda path: path.name)
def test_a_document_is_read_as_its_golden_file_says(document: Path) -> None:
    assert write(read(document)) == reading_file(document).read_text(encoding="utf-8")


@pytest.mark.parametrize("document", documents(), ids=lambda path: path.name)
def test_an_entry_keeps_its_text_as_published(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for entry in read(document).entries:
        assert entry.raw in text
        assert not entry.published or json.loads(entry.raw) == entry.published


def test_there_is_a_document_for_every_golden_file() -> None:
    folder = documents()[0].parent
    assert {path for path in folder.iterdir() if path not in documents()} == set(map(reading_file, documents()))
