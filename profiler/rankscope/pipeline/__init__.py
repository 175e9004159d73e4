"""From a run to its report: reads, joins, analyses, and puts the rows together."""

from __future__ import annotations

from rankscope.pipeline.analyze import Analysis, AnalyzeOptions, analyze, analyze_fully, analyze_run
from rankscope.readers.run_reader import ReadOptions, read_run

__all__ = ["Analysis", "AnalyzeOptions", "ReadOptions", "analyze", "analyze_fully", "analyze_run", "read_run"]
