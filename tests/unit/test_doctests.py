"""The examples in docstrings hold."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import rankscope

HOME = Path(rankscope.__file__).parent
NAMES = sorted(
    ".".join(path.relative_to(HOME.parent).with_suffix("").parts)
    for path in HOME.rglob("*.py")
    if ">>>" in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", NAMES)
def test_examples(name: str) -> None:
    if name.startswith("rankscope.collector"):
        pytest.importorskip("torch", reason="the collector records torch")
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted > 0
    assert found.failed == 0
