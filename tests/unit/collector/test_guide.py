"""docs/collect.md shows every key of the collector's facts, and every option."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import typing
from pathlib import Path
from typing import Any

import pytest

from rankscope.collector import Collector
from rankscope.model.manifest import MANIFEST_VERSION, Manifest

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "collect.md"
pytestmark = pytest.mark.skipif(not GUIDE.is_file(), reason="docs is part of the repository only")


def _compare(shown: Any, kind: Any, where: str) -> None:
    """Fail unless `shown` has the keys of the dataclass `kind`, all the way down."""
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        assert set(shown) == set(hints), where
        for key, value in shown.items():
            _compare(value, hints[key], f"{where}.{key}")
        return
    for inner in typing.get_args(kind):
        if dataclasses.is_dataclass(inner):
            for value in shown if isinstance(shown, list) else [shown]:
                _compare(value, inner, where)


def test_the_example_has_every_key_and_no_other() -> None:
    (text,) = re.findall(r"```json\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    shown = json.loads(text)
    _compare(shown, Manifest, "rankscope")
    assert shown["format"]["version"] == MANIFEST_VERSION


def test_every_option_is_explained() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    names = set(inspect.signature(Collector).parameters) - {"directory"}
    assert {name for name in names if f"`{name}`" not in text and f"({name}=" not in text} == set()
