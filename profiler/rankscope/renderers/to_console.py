"""The report for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from rankscope.model.report import Finding, ProblemRow, Report
from rankscope.renderers.advice_tables import build_advice_table, write_advice, write_code
from rankscope.renderers.bucket_tables import build_bucket_table, describe_layout
from rankscope.renderers.console_charts import (
    draw_arrivals,
    draw_bucket_strip,
    draw_caps,
    draw_heat_map,
    draw_window_bars,
)
from rankscope.renderers.console_drawing import (
    INDENT,
    NOTHING,
    draw_items,
    draw_notes,
    draw_table,
    draw_text,
    draw_title,
    print_sections,
)
from rankscope.renderers.escape import make_inert
from rankscope.renderers.report_tables import (
    build_group_table,
    build_rank_table,
    build_step_table,
    name_place,
    sort_findings,
    sort_problems,
)
from rankscope.renderers.straggler_tables import (
    build_clock_table,
    build_evidence_table,
    build_late_table,
    build_waiting_table,
    describe_clocks,
    explain_verdict,
)
from rankscope.renderers.verdict import describe_run, write_verdict

View = Literal["summary", "ranks"]

RANKS_SHOWN = 16
WAITING_SHOWN = 8
STEPS_SHOWN = 20
GROUPS_SHOWN = 20
BUCKETS_SHOWN = 20
CAPS_SHOWN = 20
EVIDENCE_SHOWN = 5
LATE_SHOWN = 5
PROBLEMS_SHOWN = 20

_ALL = 1_000_000
_MAPPED = 64
"""Rows of the heat map in the view of the ranks."""

_LATE_LISTED = 50
_STRIPS = 5
_STRIP_RANKS = 12


def render_console(report: Report, *, width: int = 100, color: bool = False, view: View = "summary") -> str:
    """The report as text for a terminal, ending with a line break.

    Args:
        report: the report.
        width: columns of the terminal.
        color: whether to use terminal colours.
        view: "summary" for everything in short; "ranks" for whom everybody waits for, with every rank.
    """
    sections = _list_rank_sections(report, width) if view == "ranks" else _list_sections(report, width)
    return print_sections(sections, width=width, color=color)


def _list_sections(report: Report, width: int) -> list[RenderableType]:
    found = report.straggler is not None and report.straggler.verdict == "found"
    about_culprit = [
        draw_heat_map(report, width, WAITING_SHOWN),
        draw_table(build_evidence_table(report, EVIDENCE_SHOWN), width),
        draw_table(build_late_table(report, LATE_SHOWN), width),
    ]
    return [
        _draw_verdict(report),
        _draw_findings(sort_findings(report)),
        draw_table(build_rank_table(report, RANKS_SHOWN), width),
        draw_window_bars(report, width, RANKS_SHOWN),
        draw_table(build_waiting_table(report, WAITING_SHOWN), width),
        *(about_culprit if found else []),
        _draw_more_about_ranks(report),
        draw_table(build_step_table(report, STEPS_SHOWN), width),
        draw_table(build_group_table(report, GROUPS_SHOWN), width),
        draw_table(build_bucket_table(report, BUCKETS_SHOWN), width),
        *draw_notes(describe_layout(report) if report.buckets else ()),
        draw_bucket_strip(report, width),
        *_draw_advice(report, width),
        _draw_problems(sort_problems(report)),
    ]


def _list_rank_sections(report: Report, width: int) -> list[RenderableType]:
    return [
        _draw_verdict(report),
        *(draw_text(sentence) for sentence in explain_verdict(report)),
        draw_table(build_waiting_table(report, _ALL), width),
        draw_heat_map(report, width, _MAPPED),
        draw_table(build_evidence_table(report, _ALL), width),
        draw_arrivals(report, width, _STRIPS, _STRIP_RANKS),
        draw_table(build_late_table(report, _LATE_LISTED), width),
        draw_table(build_clock_table(report, _ALL), width),
        draw_table(build_rank_table(report, _ALL), width),
        draw_window_bars(report, width, _MAPPED),
        _draw_problems(sort_problems(report)),
    ]


def _draw_verdict(report: Report) -> RenderableType:
    first, *others = write_verdict(report)
    title = Text.assemble(("rankscope", "bold"), "  ", make_inert(report.run.name))
    lines = [title, Text(describe_run(report), style="dim"), Text(""), draw_text(first, style="bold")]
    return Group(*lines, *(draw_text(statement) for statement in others))


def _draw_more_about_ranks(report: Report) -> RenderableType:
    if report.straggler is None or len(report.straggler.by_rank) < 2:
        return NOTHING
    more = "`rankscope analyze RUN --ranks` shows all ranks, arrivals and clocks."
    return Group(*draw_notes([" ".join([*describe_clocks(report), more])]))


def _draw_findings(findings: Sequence[Finding]) -> RenderableType:
    if not findings:
        return NOTHING
    items = [(f.severity, f"{name_place(f)}: {f.message}", f"→ {f.hint}" if f.hint else "") for f in findings]
    return Group(draw_title("Findings"), draw_items(items))


def _draw_advice(report: Report, width: int) -> list[RenderableType]:
    sentences = write_advice(report)
    if not sentences:
        return []
    code = write_code(report)
    lines = [Padding(draw_text(sentence), (0, 0, 0, INDENT)) for sentence in sentences]
    if code is None:  # nothing to change: the predictions would be noise here
        return [draw_title("Advice"), *lines]
    return [
        draw_title("Advice"),
        *lines,
        Padding(Text(code, style="bold"), (0, 0, 0, 2 * INDENT)),
        draw_caps(report, width),
        draw_table(build_advice_table(report, CAPS_SHOWN), width),
    ]


def _draw_problems(problems: Sequence[ProblemRow]) -> RenderableType:
    if not problems:
        return NOTHING
    items = [(p.severity, _name_origin(p), p.message) for p in problems[:PROBLEMS_SHOWN]]
    left_out = len(problems) - len(items)
    notes = [f"{left_out:,} more are in the JSON report."] if left_out else []
    return Group(draw_title("Problems"), draw_items(items), *draw_notes(notes))


def _name_origin(problem: ProblemRow) -> str:
    file = make_inert(problem.file or "the whole run")
    return file if problem.offset is None else f"{file}, byte {problem.offset:,}"
