"""Freed memory goes back to the system."""

from __future__ import annotations

import ctypes
import sys
from types import SimpleNamespace

import psutil
import pytest

from rankscope.model.memory import give_memory_back

MB = 1_000_000


def has_trim() -> bool:
    return sys.platform == "linux" and hasattr(ctypes.CDLL(None), "malloc_trim")


@pytest.mark.skipif(not has_trim(), reason="the C library is not glibc")
def test_what_lies_free_between_blocks_in_use_is_given_back() -> None:
    """60 MB in blocks of 60 kB, of which every tenth stays: the end of the heap is in use, and most of it is free."""
    blocks = [bytearray(b"x") * 60_000 for _ in range(1_000)]
    kept = blocks[::10]
    del blocks
    before = psutil.Process().memory_info().rss
    give_memory_back()
    assert before - psutil.Process().memory_info().rss > 30 * MB
    assert all(block == b"x" * 60_000 for block in kept)


def test_another_c_library_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: SimpleNamespace())
    give_memory_back()
