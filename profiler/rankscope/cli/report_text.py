"""The text of a report in one of its formats."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Literal

from rankscope.cli.report_outputs import ReportFormat
from rankscope.cli.terminal import terminal_width

if TYPE_CHECKING:
    from rankscope.model.report import Report
    from rankscope.model.run import Run
    from rankscope.pipeline import Analysis

View = Literal["summary", "ranks"]


def render(
    analysis: Analysis, run: Run, report_format: ReportFormat, detail: str, view: View = "summary"
) -> str:
    """Text of a report in one format.

    Args:
        analysis: the report, and what it was made from.
        run: the run.
        report_format: the format.
        detail: "full" for every row, in JSON.
        view: "ranks" for the terminal's view of the ranks.
    """
    if report_format is not ReportFormat.HTML:
        return render_report(analysis.report, report_format, detail, view)
    from rankscope.analyses.timeline import build_timeline
    from rankscope.renderers.to_html import render_html

    step = _middle_step(analysis.report)
    return render_html(analysis.report, build_timeline(run, step=step, clocks=analysis.together.clocks))


def render_report(report: Report, report_format: ReportFormat, detail: str, view: View = "summary") -> str:
    """Text of a report in a format that needs nothing else: all but HTML, which draws events."""
    if report_format is ReportFormat.JSON:
        from rankscope.renderers.to_json import render_json

        return render_json(report, detail="full" if detail == "full" else "summary")
    if report_format is ReportFormat.MARKDOWN:
        from rankscope.renderers.to_markdown import render_markdown

        return render_markdown(report)
    from rankscope.renderers.to_console import render_console

    return render_console(report, width=terminal_width(), color=sys.stdout.isatty(), view=view)


def _middle_step(report: Report) -> int | None:
    """The middle one of the steady steps that most ranks recorded, to draw; None to leave the choice open."""
    counts = Counter(row.step for row in report.steps if row.step in report.run.steady_steps)
    most = max(counts.values(), default=0)
    steps = sorted(step for step, count in counts.items() if count == most and step is not None)
    return steps[len(steps) // 2] if steps else None
