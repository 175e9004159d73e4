"""Rank x step, and what exposed communication waits on."""

from __future__ import annotations

import streamlit as st

from rankscope.renderers.report_tables import build_group_table
from rankscope_dashboard.figures.overlap import build_operation_chart, build_step_map, build_wait_chart
from rankscope_dashboard.show import show_figure, show_heading, show_nothing, show_table, show_title
from rankscope_dashboard.visit import Visit
from rankscope_dashboard.words import OVERLAP

_ROWS = 1_000
_MEASURES = {"exposed": "exposed share of the step", "hidden": "hidden share of communication"}


def show(visit: Visit) -> None:
    """Draw the overlap of a run."""
    show_title(OVERLAP)
    _show_map(visit)
    _show_waits(visit)
    _show_operations(visit)


def _show_map(visit: Visit) -> None:
    chosen = st.segmented_control(
        "Colour by",
        list(_MEASURES),
        format_func=_MEASURES.__getitem__,
        default="exposed",
        required=True,
        key="colour-by",
    )
    figure = build_step_map(visit.report, figure=chosen or "exposed")
    if figure is None:
        show_nothing(
            "No steps to show",
            "The traces mark no steps, so that overlap is known for each whole recording only; see the overview.",
            "Call profiler.step() after each iteration; rankscope's Collector does that by itself.",
        )
        return
    show_figure(figure, key="step-map", alt=f"Rank by step: {_MEASURES[chosen or 'exposed']}")


def _show_waits(visit: Visit) -> None:
    show_heading(
        "Waiting or transferring",
        "Exposed communication of each rank over the whole recording. Waiting ends when the last rank arrives: it is "
        "a question of stragglers; transferring is one of bytes, buckets and links.",
    )
    figure = build_wait_chart(visit.report)
    if figure is None:
        show_nothing(
            "The split is not known", "No collective could be found on all its ranks, so waits are not known."
        )
        return
    show_figure(figure, key="waits", alt="Exposed waiting and exposed transfer of each rank")


def _show_operations(visit: Visit) -> None:
    show_heading(
        "Which operation",
        "Communication of each operation and process group, all ranks together. Move or shrink the longest red bar.",
    )
    figure = build_operation_chart(visit.report)
    if figure is None:
        show_nothing("No communication", "The run holds no communication.")
        return
    show_figure(figure, key="operations", alt="Exposed and hidden communication of each operation")
    show_table(build_group_table(visit.report, _ROWS), key="groups")
