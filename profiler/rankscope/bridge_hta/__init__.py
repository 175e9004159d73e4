"""A run in the hands of HolisticTraceAnalysis (`hta`), without its parser: for its analyses, and for notebooks.

    from rankscope import read_run
    from rankscope.bridge_hta import to_hta

    analysis = to_hta(read_run("runs/mine"))
    analysis.get_idle_time_breakdown(ranks=[0], visualize=False)

Its results are those of its own load of the same files, but for two things that hang on the order of events in
the file: the order of events that start in the same microsecond, and kernels whose launch was not recorded, for
which HTA takes the file's first event as the launch. What HTA does not find here: memory bandwidths, shapes of
operators, Python functions and stream waits, which rankscope does not keep. Analyses of these give what they give
for a trace without them.
"""

from __future__ import annotations

from rankscope.bridge_hta.answers import (
    HtaFaultError,
    OverlapDifference,
    PathPart,
    explain_overlap,
    measure_critical_path,
    quiet,
)
from rankscope.bridge_hta.load import to_hta

__all__ = [
    "HtaFaultError",
    "OverlapDifference",
    "PathPart",
    "explain_overlap",
    "measure_critical_path",
    "quiet",
    "to_hta",
]
