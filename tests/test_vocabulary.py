"""docs/functions.md counts the public functions: what it says of them is found by running, and is current."""

from __future__ import annotations

import pytest
import vocabulary


@pytest.mark.slow
def test_the_page_of_functions_is_current() -> None:
    table = vocabulary.table()
    assert len(table.splitlines()) > 400
    assert table in vocabulary.PAGE.read_text(), "run python tests/vocabulary.py --write"
