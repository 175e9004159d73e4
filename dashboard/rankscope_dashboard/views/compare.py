"""Two runs side by side."""

from __future__ import annotations

import streamlit as st

from rankscope.gate.compare import compare
from rankscope.gate.snapshot import list_parts, take_snapshot
from rankscope.model.comparison import Comparison
from rankscope.model.report import Report
from rankscope.model.snapshot import Baseline
from rankscope.renderers.comparison_tables import (
    SCOPE_TITLES,
    build_figure_table,
    build_part_table,
    say_comparison,
    say_outside,
    say_sides,
)
from rankscope.store import RunRecord
from rankscope_dashboard.figures.steps import build_step_comparison
from rankscope_dashboard.load import StoredRun, find_run, load_report, open_shared_store
from rankscope_dashboard.places import read_parameter, remember
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
from rankscope_dashboard.visit import Visit
from rankscope_dashboard.words import COMPARE

WITH = "with"
_MOST_CHOICES = 2_000
_PARTS = 100


def show(visit: Visit) -> None:
    """Draw the comparison of a run with another one."""
    show_title(COMPARE)
    others = [r for r in open_shared_store().list_runs() if r.run_id != visit.run.id]
    if not others:
        show_nothing(
            "Nothing to compare with", "This is the only run.", "Upload another one, from before the change."
        )
        return
    base = _choose(others[:_MOST_CHOICES])
    if base is None:
        show_nothing("Choose a run", "Choose the run above that this one is to be compared with.")
        return
    found = find_run(base.run_id)
    if not isinstance(found, StoredRun):
        show_nothing("That run is not ready yet", "Its analysis is still under way.")
        return
    comparison = compare(_as_baseline(load_report(found)), _as_baseline(visit.report))
    _show(comparison, base.name, visit)


def _choose(others: list[RunRecord]) -> RunRecord | None:
    """The run to compare with, which the link names."""
    linked = read_parameter(WITH)
    place = next((i for i, record in enumerate(others) if record.run_id == linked), None)
    chosen = st.selectbox(
        "Compare with",
        others,
        index=place,
        format_func=_name,
        key="compare-with",
        placeholder="a run from before",
    )
    remember(WITH, None if chosen is None else chosen.run_id)
    return chosen


def _name(record: RunRecord) -> str:
    tags = ", ".join(f"{key}={value}" for key, value in record.tags.items())
    return option_text(
        " · ".join(part for part in (record.name, record.created_at[:16].replace("T", " "), tags) if part),
        120,
    )


def _as_baseline(report: Report) -> Baseline:
    return Baseline(tool_version=report.tool.version, runs=[take_snapshot(report)], parts=list_parts(report))


def _show(comparison: Comparison, base_name: str, visit: Visit) -> None:
    outside = say_outside(comparison)
    st.html(
        f'<div class="rs-verdict"><p>{safe(say_comparison(comparison))}</p><p>{safe(say_sides(comparison))}.</p>'
        f"{f'<p>{safe(outside)}</p>' if outside else ''}</div>"
    )
    figure = build_step_comparison(comparison, base_name, visit.run.record.name)
    if figure is not None:
        show_heading(
            "Hidden communication step by step",
            "Steady steps in order. Lines that cross are noise, not change.",
        )
        show_figure(figure, key="compared-steps", alt="Hidden communication of both runs, step by step")
    for scope in ("steady", "run", "outside"):
        table = build_figure_table(comparison, scope)
        if table.rows:
            show_heading(SCOPE_TITLES[scope])
            show_table(table, key=f"compared-{scope}")
    parts = build_part_table(comparison, _PARTS)
    if parts.rows:
        show_heading(parts.title, "Where the difference comes from, the largest first.")
        show_table(parts, key="compared-parts")
    show_notes(comparison.notes)
