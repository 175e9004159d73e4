"""The same events by HolisticTraceAnalysis."""

from __future__ import annotations

from importlib.util import find_spec

from rankscope_dashboard.show import show_nothing, show_title
from rankscope_dashboard.visit import Visit
from rankscope_dashboard.words import HTA


def show(visit: Visit) -> None:
    """Draw what HolisticTraceAnalysis says of a run."""
    show_title(HTA)
    if find_spec("hta") is None:
        show_nothing(
            "HolisticTraceAnalysis is not installed",
            "This view needs it on the server.",
            'Install it with: pip install "rankscope[hta]"',
        )
        return
