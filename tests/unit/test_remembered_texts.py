"""What is remembered from call to call is short, however long the texts of strangers are."""

import tracemalloc
from collections.abc import Callable

import pytest

from index.findings import find
from index.identity import canonical_type, version_key
from index.offered import are_related, canonical, host_named

MIB = 1_048_576


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda text: canonical_type(f"application/{text}"), id="media types"),
        pytest.param(version_key, id="versions"),
        pytest.param(lambda text: canonical(f"https://acme.example/{text}"), id="addresses"),
        pytest.param(lambda text: are_related("acme.example", host_named(f"{text}.example:443")), id="hosts"),
        pytest.param(lambda text: find({text: "https://acme.example/"}), id="names of members"),
    ],
)
def test_a_text_that_fills_a_document_is_not_remembered(call: Callable[[str], object]) -> None:
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(20):
            call(f"{number}{'x' * MIB}")
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 3 * MIB
