"""What runs when the last window has been written: beside the training, never in its way."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from pathlib import Path

from rankscope.collector.guard import Guard

_EXIT_PATIENCE_SECONDS = 60.0


def start_afterwards(action: Callable[[Path], object], directory: Path) -> threading.Thread:
    """Call `action(directory)` on a daemon thread; a fault in it becomes one warning.

    At the interpreter's exit it gets one minute to finish: a daemon thread would end there in the middle.
    """
    guard = Guard(lambda: None, "rankscope's when_done failed, the traces are complete")
    thread = threading.Thread(
        target=guard.run, args=(lambda: _discard(action(directory)),), name="rankscope-when-done", daemon=True
    )
    thread.start()
    atexit.register(thread.join, _EXIT_PATIENCE_SECONDS)
    return thread


def _discard(result: object) -> None:
    """The action's own result is nobody's business."""
