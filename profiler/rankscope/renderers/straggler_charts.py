"""The plots about whom everybody waits for: heat map of caused wait, and arrivals."""

from __future__ import annotations

from typing import Any

from rankscope.model.report import Report
from rankscope.renderers.arrivals import list_arrivals
from rankscope.renderers.chart_axes import choose_unit
from rankscope.renderers.escape import escape_plot
from rankscope.renderers.wait_matrix import WaitMatrix
from rankscope.units import format_duration

Figure = dict[str, Any]

_COLLECTIVES = 12
_RANKS = 64
_ROW_PX = 22
_LOW_ROW_PX = 11
_MOST_ROOMY = 24
_FRAME_PX = 70
_MOST_LABELS = 24
_LONGEST_LABEL = 56


def build_wait_chart(matrix: WaitMatrix) -> Figure:
    """The heat map of a matrix.

    Args:
        matrix: what each rank cost each step.
    """
    convert, unit = choose_unit(matrix.full_ns)
    names = [f"rank {rank}" for rank in matrix.ranks]
    trace = {
        "type": "heatmap",
        "x": list(matrix.steps),
        "y": names,
        "z": [[None if value is None else convert(value) for value in row] for row in matrix.values],
        "customdata": [
            ["unknown" if value is None else format_duration(value) for value in row] for row in matrix.values
        ],
        "hovertemplate": "%{y}, step %{x}: %{customdata}<extra></extra>",
        "hoverongaps": False,
        "zmin": 0,
        "zmax": convert(matrix.full_ns),
        "xgap": 2 if len(matrix.steps) <= 60 else 0,
        "ygap": 2,
        "colorbar": {"title": {"text": unit, "side": "right"}, "thickness": 12, "outlinewidth": 0},
        "meta": {"ramp": "exposed"},
    }
    layout = {
        "height": max((_ROW_PX if len(names) <= _MOST_ROOMY else _LOW_ROW_PX) * len(names) + _FRAME_PX, 180),
        "xaxis": {
            "type": "category", "showgrid": False, "nticks": _MOST_LABELS, "ticks": "", "title": {"text": "step"},
        },
        "yaxis": {
            "type": "category", "autorange": "reversed", "automargin": True, "showgrid": False, "ticks": "",
            "nticks": _MOST_LABELS,
        },
    }  # fmt: skip
    return {"data": [trace], "layout": layout}


def build_arrival_chart(report: Report) -> Figure | None:
    """A line per collective: a mark where each rank arrived, time running to the last one; None without any."""
    listed = list_arrivals(report, collectives=_COLLECTIVES, ranks=_RANKS)
    if not listed:
        return None
    convert, unit = choose_unit(max(arrivals.span_ns for arrivals in listed))
    names = [escape_plot(arrivals.name, _LONGEST_LABEL) for arrivals in listed]
    spans = {
        "type": "scatter",
        "mode": "lines",
        "hoverinfo": "skip",
        "x": [x for arrivals in listed for x in (-convert(arrivals.span_ns), 0, None)],
        "y": [y for name in names for y in (name, name, None)],
        "meta": {"part": "waiting", "width": 6},
    }
    early = [(name, a) for name, arrivals in zip(names, listed, strict=True) for a in arrivals.ranks[:-1]]
    last = [(name, arrivals.ranks[-1]) for name, arrivals in zip(names, listed, strict=True)]
    marks = {
        "type": "scatter",
        "mode": "markers",
        "x": [-convert(arrival.before_last_ns) for _, arrival in early],
        "y": [name for name, _ in early],
        "customdata": [
            f"rank {arrival.rank} waited {format_duration(arrival.before_last_ns)} for the last"
            for _, arrival in early
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
        "marker": {"size": 9, "symbol": "circle"},
        "meta": {"part": "compute"},
    }
    ends = {
        "type": "scatter",
        "mode": "markers+text",
        "x": [0] * len(last),
        "y": [name for name, _ in last],
        "text": [f"rank {arrival.rank}" for _, arrival in last],
        "textposition": "middle right",
        "hoverinfo": "skip",
        "cliponaxis": False,
        "marker": {"size": 11, "symbol": "diamond"},
        "meta": {"part": "exposed"},
    }
    layout = {
        "height": _ROW_PX * len(names) + _FRAME_PX,
        "xaxis": {"title": {"text": f"{unit} before the last rank arrived"}, "zeroline": False},
        "yaxis": {"type": "category", "autorange": "reversed", "automargin": True, "showgrid": False},
        "margin": {"r": 72},
    }
    return {"data": [spans, marks, ends], "layout": layout}
