"""The examples in the docstrings of rankscope.testing run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import rankscope.testing

MODULES = sorted(m.name for m in pkgutil.walk_packages(rankscope.testing.__path__, "rankscope.testing."))


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
