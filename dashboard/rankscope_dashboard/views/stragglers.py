"""Whom the others wait for, what it costs, and what that rank does meanwhile."""

from __future__ import annotations

import streamlit as st

from rankscope.model.report import CollectiveRow, Report, Straggler
from rankscope.renderers.arrivals import describe_arrivals, list_arrivals
from rankscope.renderers.straggler_charts import build_arrival_chart, build_wait_chart
from rankscope.renderers.straggler_tables import (
    build_clock_table,
    build_evidence_table,
    build_late_table,
    build_waiting_table,
    explain_verdict,
    name_culprit,
)
from rankscope.renderers.wait_matrix import build_wait_matrix
from rankscope.units import format_duration
from rankscope_dashboard.figures.arrivals import arrivals_of, build_one_arrival
from rankscope_dashboard.load import load_table
from rankscope_dashboard.places import go_to
from rankscope_dashboard.show import (
    option_text,
    safe,
    show_figure,
    show_heading,
    show_notes,
    show_nothing,
    show_table,
    show_title,
)
from rankscope_dashboard.views.timeline import FROM, TO
from rankscope_dashboard.visit import Visit
from rankscope_dashboard.words import STRAGGLERS, TIMELINE

_RANKS, _STEPS, _ROWS, _CHOICES = 64, 120, 1_000, 200


def show(visit: Visit) -> None:
    """Draw the stragglers of a run."""
    show_title(STRAGGLERS)
    straggler = visit.report.straggler
    if straggler is None:
        show_nothing(
            "Nobody can be late", "Stragglers need the traces of at least two ranks that communicate."
        )
        return
    _show_verdict(visit.report, straggler)
    _show_matrix(visit)
    _show_cause(visit)
    _show_latest(visit)
    _show_one(visit)
    clocks = build_clock_table(visit.report, _ROWS)
    if clocks.rows:
        show_heading(
            "Clocks",
            "What was taken off each rank's clock, and how exact that is: arrivals are known to that.",
        )
        show_table(clocks, key="clocks")


def _show_verdict(report: Report, straggler: Straggler) -> None:
    others = explain_verdict(report) or (f"{straggler.reason[:1].upper()}{straggler.reason[1:]}.",)
    st.html(
        f'<div class="rs-verdict"><p>{safe(_say_verdict(straggler))}</p>'
        f"{''.join(f'<p>{safe(other)}</p>' for other in others)}</div>"
    )


def _say_verdict(straggler: Straggler) -> str:
    if straggler.verdict == "none":
        return "No rank holds the others up."
    if straggler.verdict == "inconclusive":
        return "Whether one rank holds the others up cannot be told."
    cost = format_duration(straggler.cost_ns_per_step or 0)
    return (
        f"The others wait for {name_culprit(straggler)}: {cost} per step (confidence {straggler.confidence})."
    )


def _show_matrix(visit: Visit) -> None:
    matrix = build_wait_matrix(visit.report, ranks=_RANKS, steps=_STEPS)
    if matrix is None:
        show_heading("What each rank cost each step")
        show_nothing(
            "Nothing to compare",
            "This needs collectives that were found on at least two ranks, inside steps that can be judged.",
        )
    else:
        show_heading(
            matrix.title,
            "A row that is strong throughout is a rank to look at; a single strong cell is an accident of one step.",
        )
        show_figure(build_wait_chart(matrix), key="caused-waits", alt=matrix.title)
        show_notes(matrix.notes)
    table = build_waiting_table(visit.report, _ROWS)
    if table.rows:
        show_table(table, key="waiting")


def _show_cause(visit: Visit) -> None:
    evidence = build_evidence_table(visit.report, _ROWS)
    if evidence.rows:
        show_heading(evidence.title, "What takes it longer than its peers, the greatest difference first.")
        show_table(evidence, key="evidence")


def _show_latest(visit: Visit) -> None:
    figure = build_arrival_chart(visit.report)
    if figure is None:
        return
    show_heading(
        "The collectives that waited longest",
        "Each line is a collective, each mark the arrival of a rank; the diamond names the one that all waited for.",
    )
    show_figure(figure, key="latest", alt="Arrivals at the latest collectives")
    listed = list_arrivals(visit.report, collectives=3, ranks=2)
    show_notes([f"{arrivals.name}: {describe_arrivals(arrivals)}." for arrivals in listed])
    show_table(build_late_table(visit.report, _ROWS), key="late")


def _show_one(visit: Visit) -> None:
    table = load_table(visit.run, "arrivals")
    rows = sorted(
        (row for row in visit.report.collectives if row.lateness_ns is not None),
        key=lambda row: -(row.lateness_ns or 0),
    )[:_CHOICES]
    if table is None or not rows:
        return
    show_heading(
        "One collective",
        "When each rank came, how long it waited and when the transfer ended. Another one can be picked here.",
    )
    row = st.selectbox(
        "Collective", rows, format_func=_name_collective, key="one-collective", label_visibility="collapsed"
    )
    arrivals = arrivals_of(table, row.index)
    figure = build_one_arrival(arrivals, row)
    if figure is None:
        show_nothing("Arrivals are not known", "The clocks of its ranks could not be aligned.")
        return
    show_figure(figure, key="one-arrival", alt="Arrivals, waits and transfer of one collective")
    first, last = (
        min(a.arrival_ns for a in arrivals),
        max(a.arrival_ns for a in arrivals) + (row.transfer_ns or 0),
    )
    margin = max((last - first) // 2, 1)
    st.button(
        "Look at it on the timeline",
        icon=TIMELINE.icon,
        on_click=go_to,
        args=(visit.run.id, TIMELINE.slug, {FROM: str(first - margin), TO: str(last + margin)}),
    )


def _name_collective(row: CollectiveRow) -> str:
    step = "outside steps" if row.step is None else f"step {row.step}"
    late = format_duration(row.lateness_ns or 0)
    return option_text(
        f"#{row.index}, {step}, {row.op} in {row.group}: rank {row.last_rank} came {late} late", 140
    )
