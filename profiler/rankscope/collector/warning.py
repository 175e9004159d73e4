"""The collector's one way to speak: a Python warning that never becomes an exception in the training."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

_HERE = str(Path(__file__).parent)


class RankscopeWarning(UserWarning):
    """Something that the collector could not do; the training itself is not affected."""


def warn(message: str) -> None:
    """Warn with `message`, shown at the line of the user's own code that called the collector.

    Where warnings are errors (`python -W error`) the message goes to stderr instead: a run must not end
    because its profiler has something to say.
    """
    try:
        warnings.warn(message, RankscopeWarning, stacklevel=_depth_of_user_code())
    except RankscopeWarning:
        sys.stderr.write(f"RankscopeWarning: {message}\n")


def _depth_of_user_code() -> int:
    """`stacklevel`, counted from `warn`, of the nearest frame outside this package."""
    frame = sys._getframe(1)
    depth = 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
        depth += 1
    return depth
