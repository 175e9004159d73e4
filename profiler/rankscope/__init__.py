"""rankscope: where communication stops hiding behind compute, which rank everybody waits for, what to change.

The names below load what they need on first use, so that `import rankscope` in a training script costs
nothing and works with `pip install --no-deps rankscope` beside torch alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankscope.collector import Collector as Collector
    from rankscope.collector import Push as Push
    from rankscope.collector import on_trace_ready as on_trace_ready
    from rankscope.pipeline import read_run as read_run
    from rankscope.pipeline.analyze import analyze as analyze

__version__ = "0.1.0"

__all__ = ["Collector", "Push", "__version__", "analyze", "on_trace_ready", "read_run"]

_HOMES = {
    "Collector": "rankscope.collector",
    "Push": "rankscope.collector",
    "on_trace_ready": "rankscope.collector",
    "analyze": "rankscope.pipeline",
    "read_run": "rankscope.pipeline",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module attribute has any type
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'rankscope' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
