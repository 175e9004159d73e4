"""The timeline of all ranks for Perfetto."""

from __future__ import annotations

from rankscope.pipeline import analyze_fully
from rankscope.pipeline.merged_trace import merged_trace
from rankscope_dashboard.load import StoredRun


def merged_trace_text(run: StoredRun) -> str:
    """All ranks in one Chrome trace on the common clock."""
    analysis = analyze_fully(run.store.run(run.id))
    return "".join(merged_trace(analysis.results, analysis.together, analysis.origin_ns))
