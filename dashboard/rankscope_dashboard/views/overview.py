"""The verdict first, then the findings, then where the time goes."""

from __future__ import annotations

import streamlit as st

from rankscope.model.report import Finding, ProblemRow, Report
from rankscope.renderers.charts import build_step_chart, build_window_chart
from rankscope.renderers.glossary import TERMS
from rankscope.renderers.headline import Headline, measure_headline
from rankscope.renderers.report_tables import (
    build_rank_table,
    build_step_table,
    name_place,
    sort_findings,
    sort_problems,
)
from rankscope.renderers.tables import NO_REASON, duration_cell, ratio_cell
from rankscope.renderers.verdict import describe_run, write_verdict
from rankscope_dashboard.places import go_to
from rankscope_dashboard.show import (
    safe,
    show_figure,
    show_heading,
    show_notes,
    show_nothing,
    show_table,
    show_title,
)
from rankscope_dashboard.visit import Visit
from rankscope_dashboard.words import OVERVIEW, TIMELINE, VIEW_OF_RULE

_ROWS = 1_000
_FINDINGS = 6
_PROBLEMS = 50
_TONES = {"error": "error", "warning": "warning", "note": "info"}


def show(visit: Visit) -> None:
    """Draw the overview of a run."""
    report = visit.report
    show_title(OVERVIEW)
    first, *others = write_verdict(report)
    st.html(
        f'<div class="rs-verdict"><p>{safe(first)}</p>{"".join(f"<p>{safe(other)}</p>" for other in others)}</div>'
        f'<p class="rs-note">{safe(describe_run(report))}</p>'
    )
    headline = measure_headline(report)
    if headline is not None:
        _show_tiles(headline)
    _show_findings(visit)
    _show_windows(report)
    _show_steps(report)
    _show_problems(report)


def _show_tiles(headline: Headline) -> None:
    whole, per = ("step", "rank and step") if headline.is_steady else ("window", "rank")
    tiles = (
        (
            "Hidden communication",
            ratio_cell(headline.overlap_ratio, headline.overlap_reason),
            TERMS["Hidden"],
        ),
        (f"Exposed per {per}", duration_cell(headline.exposed_ns), TERMS["Exposed"]),
        (f"Exposed share of the {whole}", ratio_cell(headline.exposed_share, NO_REASON), TERMS["Exposed"]),
        (
            f"Mean {whole}",
            duration_cell(headline.base_ns, NO_REASON),
            TERMS["Step" if headline.is_steady else "Window"],
        ),
    )
    for column, (label, cell, meaning) in zip(st.columns(len(tiles)), tiles, strict=True):
        column.metric(label, cell.text, help=cell.reason or meaning, border=True)


def _show_findings(visit: Visit) -> None:
    findings = sort_findings(visit.report)
    if not findings:
        return
    show_heading("What to do first")
    for number, finding in enumerate(findings[:_FINDINGS]):
        with st.container(border=True):
            _show_finding(visit, number, finding)
    if len(findings) > _FINDINGS:
        show_notes([f"{len(findings) - _FINDINGS:,} more are in the JSON report."])


def _show_finding(visit: Visit, number: int, finding: Finding) -> None:
    hint = f'<p class="rs-hint">→ {safe(finding.hint)}</p>' if finding.hint else ""
    st.html(
        f'<div class="rs-finding"><span class="rs-badge rs-{finding.severity}">{finding.severity}</span>'
        f'<span class="rs-place">{safe(name_place(finding))}</span><p>{safe(finding.message)}</p>{hint}</div>'
    )
    words = VIEW_OF_RULE.get(finding.rule, TIMELINE)
    st.button(
        f"Look at {words.title.lower()}",
        key=f"finding-{number}",
        icon=words.icon,
        type="tertiary",
        on_click=go_to,
        args=(visit.run.id, words.slug),
    )


def _show_windows(report: Report) -> None:
    show_heading(
        "Where each rank's time goes",
        "A bar is the rank's recording. Red is communication that nothing hides: it, and grey idle time, is what to "
        "win back.",
    )
    figure = build_window_chart(report)
    if figure is None:
        show_nothing("No time to show", "No rank recorded an event on a device, nor a host operator.")
        return
    show_figure(figure, key="windows", alt="Compute, communication, memory and idle time of each rank")
    show_table(build_rank_table(report, _ROWS), key="ranks")


def _show_steps(report: Report) -> None:
    figure = build_step_chart(report)
    show_heading(
        "Step by step",
        "Hidden share of the communication in each step; the band runs from the worst to the best rank. A wide band "
        "points at one rank, a dip at one step.",
    )
    if figure is None:
        show_nothing(
            "No steps to show",
            "The traces mark no steps, or no step communicates.",
            "Call profiler.step() after each iteration; rankscope's Collector does that by itself.",
        )
        return
    show_figure(figure, key="steps", alt="Hidden communication per step")
    show_table(build_step_table(report, _ROWS), key="step-table")


def _show_problems(report: Report) -> None:
    problems = sort_problems(report)
    if not problems:
        return
    show_heading("Notes on the input", "What could not be read, had to be repaired, or is good to know.")
    lines = [
        f'<div class="rs-finding rs-problem"><span class="rs-badge rs-{_TONES.get(problem.severity, "info")}">'
        f'{safe(problem.severity)}</span><span class="rs-place">{safe(name_file(problem))}</span>'
        f"<p>{safe(problem.message)}</p></div>"
        for problem in problems[:_PROBLEMS]
    ]
    st.html("".join(lines))
    if len(problems) > _PROBLEMS:
        show_notes([f"{len(problems) - _PROBLEMS:,} more are in the JSON report."])


def name_file(problem: ProblemRow) -> str:
    """Where a problem is: its file, and the byte where that is known."""
    place = problem.file or "the whole run"
    return place if problem.offset is None else f"{place}, byte {problem.offset:,}"
