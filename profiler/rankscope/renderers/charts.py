"""The plots of a report as plotly figures in plain data; colours are named by part and filled in by the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rankscope.model.report import Measures, Report
from rankscope.renderers.chart_axes import choose_unit
from rankscope.renderers.headline import StepSummary, summarise_steps
from rankscope.renderers.palette import PARTS, split_window
from rankscope.renderers.report_tables import name_rank
from rankscope.units import format_duration, format_ratio

Figure = dict[str, Any]

_MOST_HORIZONTAL = 40
"""Above this many ranks bars stand upright, one beside the other, and only some carry a label."""

_MOST_STEP_TICKS = 20
_BAR_PX = 26
_FRAME_PX = 66
_PLOT_PX = 300


def build_window_chart(report: Report) -> Figure | None:
    """A bar per rank, stacked from the parts of its window; None without a window.

    Args:
        report: the report.
    """
    rows = [row for row in report.ranks if row.window_ns]
    if not rows:
        return None
    convert, unit = choose_unit(max(row.window_ns or 0 for row in rows))
    parts = [split_window(row) for row in rows]
    is_horizontal = len(rows) <= _MOST_HORIZONTAL
    names = [f"rank {name_rank(report, row)}" if is_horizontal else name_rank(report, row) for row in rows]
    value_axis, name_axis = ("x", "y") if is_horizontal else ("y", "x")
    data = [
        {
            "type": "bar",
            "name": part.label,
            "orientation": "h" if is_horizontal else "v",
            name_axis: names,
            value_axis: [convert(split[index][1]) for split in parts],
            "customdata": [
                _describe_part(row, split[index][1]) for row, split in zip(rows, parts, strict=True)
            ],
            "hovertemplate": "%{" + name_axis + "}<br>" + part.label + ": %{customdata}<extra></extra>",
            "meta": {"part": part.slug},
        }
        for index, part in enumerate(PARTS)
    ]
    names_layout = {"type": "category", "automargin": True, "showgrid": False}
    names_layout |= {"autorange": "reversed"} if is_horizontal else {"title": {"text": "rank"}, "nticks": 16}
    layout = {
        "barmode": "stack",
        "bargap": 0.35 if is_horizontal else 0.1,
        "height": _BAR_PX * len(rows) + _FRAME_PX if is_horizontal else _PLOT_PX,
        f"{name_axis}axis": names_layout,
        f"{value_axis}axis": {"title": {"text": unit}, "rangemode": "tozero"},
    }
    return {"data": data, "layout": layout}


def _describe_part(row: Measures, ns: int) -> str:
    share = f" ({format_ratio(ns / row.window_ns)})" if row.window_ns else ""
    return f"{format_duration(ns)}{share}"


def build_step_chart(report: Report) -> Figure | None:
    """Hidden communication per step, with the range over the ranks; None without steps that communicate."""
    steps = [step for step in summarise_steps(report) if step.step is not None]
    steps = [step for step in steps if step.overlap_ratio is not None]
    if not steps:
        return None
    data = [*_draw_range(steps)] if any(step.ranks > 1 for step in steps) else []
    data.append(
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": "all ranks together",
            "x": [step.step for step in steps],
            "y": [_percent(step.overlap_ratio) for step in steps],
            "customdata": [_describe_step(step) for step in steps],
            "hovertemplate": "step %{x}<br>%{customdata}<extra></extra>",
            "marker": {"size": 8, "symbol": ["circle" if step.steady else "circle-open" for step in steps]},
            "meta": {"part": "compute"},
        }
    )
    numbers = [step.step for step in steps] if len(steps) <= _MOST_STEP_TICKS else None
    layout = {
        "height": _PLOT_PX,
        "xaxis": {"title": {"text": "step"}, "tickformat": "d", "showgrid": False, "tickvals": numbers},
        "yaxis": {"title": {"text": "hidden, %"}, "range": [0, 104]},
    }
    return {"data": data, "layout": layout}


def _draw_range(steps: Sequence[StepSummary]) -> list[Figure]:
    """An invisible line at the lowest rank, and a filled one from it up to the highest."""
    shared = {"type": "scatter", "mode": "lines", "x": [step.step for step in steps], "hoverinfo": "skip"}
    return [
        {**shared, "y": [_percent(s.overlap_low) for s in steps], "line": {"width": 0}},
        {
            **shared,
            "name": "lowest to highest rank",
            "y": [_percent(s.overlap_high) for s in steps],
            "fill": "tonexty",
            "line": {"width": 0},
            "meta": {"part": "compute", "faint": True},
        },
    ]


def _describe_step(step: StepSummary) -> str:
    hidden = "" if step.overlap_ratio is None else f"hidden: {format_ratio(step.overlap_ratio)}<br>"
    steady = "" if step.steady else "<br>not a steady step"
    return f"{hidden}exposed: {format_duration(step.exposed_ns)} (median rank){steady}"


def _percent(ratio: float | None) -> float | None:
    return None if ratio is None else round(100 * ratio, 3)
