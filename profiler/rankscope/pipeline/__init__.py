"""From a run to its report: reads, joins, analyses, and puts the rows together."""

from __future__ import annotations

from rankscope.pipeline.analyze import AnalyzeOptions, analyze, analyze_run
from rankscope.readers.run_reader import ReadOptions, read_run

__all__ = ["AnalyzeOptions", "ReadOptions", "analyze", "analyze_run", "read_run"]
