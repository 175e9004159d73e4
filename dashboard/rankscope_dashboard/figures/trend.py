"""Pictures of how runs went one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rankscope.renderers.chart_axes import choose_unit
from rankscope.renderers.palette import COMPUTE, EXPOSED
from rankscope.store import RunRecord
from rankscope.units import format_duration, format_ratio
from rankscope_dashboard.figures.paint import Figure, plot_text

_MOST_RUNS = 1_000
_HEIGHT_PX = 240


def build_trend(records: Sequence[RunRecord]) -> dict[str, Figure]:
    """Pictures of overlap and of step time over the runs by age, by name; only those with two points at least."""
    ordered = sorted(records, key=lambda record: record.started_at or record.created_at)[-_MOST_RUNS:]
    longest = max((record.step_ns or 0 for record in ordered), default=0)
    convert, unit = choose_unit(longest)
    pictures = {
        "hidden": _line(ordered, "hidden, %", COMPUTE.slug, _hidden_percent, _say_hidden),
        "step": _line(
            ordered,
            f"step, {unit}",
            EXPOSED.slug,
            lambda record: None if record.step_ns is None else convert(record.step_ns),
            lambda record: f"step: {format_duration(record.step_ns or 0)}",
        ),
    }
    return {name: figure for name, figure in pictures.items() if figure is not None}


def _hidden_percent(record: RunRecord) -> float | None:
    return None if record.overlap_ratio is None else round(100 * record.overlap_ratio, 3)


def _say_hidden(record: RunRecord) -> str:
    return f"hidden: {format_ratio(record.overlap_ratio or 0)}"


def _line(
    records: Sequence[RunRecord],
    title: str,
    part: str,
    value: Callable[[RunRecord], float | None],
    say: Callable[[RunRecord], str],
) -> Figure | None:
    known = [(place, record) for place, record in enumerate(records, start=1) if value(record) is not None]
    if len(known) < 2:
        return None
    trace = {
        "type": "scatter",
        "mode": "lines+markers",
        "x": [place for place, _ in known],
        "y": [value(record) for _, record in known],
        "customdata": [
            f"{plot_text(record.name)}<br>{plot_text(record.started_at or record.created_at)}<br>{say(record)}"
            for _, record in known
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
        "marker": {"size": 7},
        "meta": {"part": part},
    }
    layout = {
        "height": _HEIGHT_PX,
        "xaxis": {
            "title": {"text": "run, oldest first"},
            "tickformat": "d",
            "showgrid": False,
            "rangemode": "tozero",
        },
        "yaxis": {"title": {"text": title}, "rangemode": "tozero"},
    }
    return {"data": [trace], "layout": layout}
