"""Memory that was freed, given back to the system."""

from __future__ import annotations

import ctypes
import sys


def give_memory_back() -> None:
    """Let the C library return what is free in its heap.

    glibc returns the end of its heap only. After a large file some 75 MiB lie free between small blocks that are
    still in use, and are of no use for the large arrays that follow.
    """
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it, musl has not
        if trim is not None:
            trim(0)
