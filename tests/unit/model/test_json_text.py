from __future__ import annotations

import json

import numpy as np
import pytest

from rankscope.model.json_text import write_json


def test_what_json_does_not_know() -> None:
    value = {"n": np.int64(3), "bad": [float("nan"), float("inf")], "name": "\ud800x", "\udc80": "é"}
    text = write_json(value, indent=2)
    assert json.loads(text) == {"n": 3, "bad": [None, None], "name": "\\ud800x", "\\udc80": "é"}
    text.encode()


def test_nothing_else_is_guessed_at() -> None:
    with pytest.raises(NotImplementedError, match="object has no place in JSON"):
        write_json({"x": object()})
