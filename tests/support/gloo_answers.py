"""The plain arithmetic of sample_traces/record_gloo.py, for runs that a test records itself."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"


@cache
def load_script() -> ModuleType:
    """The script as a module; skips the test where the repository's samples are absent."""
    path = SAMPLES / "record_gloo.py"
    if not path.is_file():
        pytest.skip("sample_traces is part of the repository only")
    spec = importlib.util.spec_from_file_location("record_gloo", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
