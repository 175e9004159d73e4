"""The comparison of a text with its golden file (see README.md)."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

UPDATE = "RANKSCOPE_UPDATE_GOLDEN"


@pytest.fixture
def check_golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares a text with the file of that name in `expected/` beside the test, or writes the file anew."""

    def check(name: str, text: str) -> None:
        path = request.path.parent / "expected" / name
        if os.environ.get(UPDATE):
            path.write_text(text, encoding="utf-8", newline="")
            pytest.skip(f"{name} written anew")
        assert path.exists(), f"{path} is missing; make it with {UPDATE}=1 (see tests/golden/README.md)"
        assert text == path.read_bytes().decode(), f"{name} differs; see tests/golden/README.md"

    return check
