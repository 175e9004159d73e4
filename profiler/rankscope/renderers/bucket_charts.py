"""The plots of DDP buckets and of the advice on their size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rankscope.model.categories import EventClass
from rankscope.model.intervals import IntervalSet, union
from rankscope.model.report import BucketRow, Report
from rankscope.model.timeline import Timeline
from rankscope.renderers.bucket_tables import pick_bucket_step, split_bucket
from rankscope.renderers.chart_axes import choose_unit
from rankscope.units import format_duration, format_ratio, format_size

Figure = dict[str, Any]

_ROW_PX = 26
_FRAME_PX = 66
_PLOT_PX = 300
_MOST_PIECES = 500
"""Pieces of compute that are drawn; shorter gaps between them are closed."""


def build_bucket_chart(report: Report, timeline: Timeline | None) -> Figure | None:
    """The buckets of one step on one rank over time, below the compute of that rank; None without buckets.

    Args:
        report: the report.
        timeline: for the compute of its step; left out if it shows another one.
    """
    rows = pick_bucket_step(report, None if timeline is None else timeline.step)
    if not rows:
        return None
    begin = min(split_bucket(row)[0] for row in rows)
    end = max(row.finished_ns for row in rows)
    convert, unit = choose_unit(end - begin)
    names = [f"bucket {row.index}" for row in rows]
    data = [_draw_part(rows, names, part, begin, convert) for part in _PARTS]
    compute = _find_compute(report, timeline, rows[0], begin, end)
    if compute is not None and len(compute):
        names = ["compute", *names]
        data.insert(0, _draw_compute(compute, begin, convert))
    ready = [(name, row.ready_ns) for name, row in zip(names[-len(rows) :], rows, strict=True)]
    data.append(
        {
            "type": "scatter",
            "mode": "markers",
            "x": [convert(t - begin) for _, t in ready if t is not None],
            "y": [name for name, t in ready if t is not None],
            "hovertemplate": "%{y}: gradients ready<extra></extra>",
            "marker": {"size": 11, "symbol": "line-ns-open", "line": {"width": 2}},
            "meta": {"part": "text"},
        }
    )
    layout = {
        "barmode": "overlay",
        "bargap": 0.35,
        "height": _ROW_PX * len(names) + _FRAME_PX,
        "xaxis": {
            "title": {"text": f"{unit} since the first gradients were ready"}, "range": [0, convert(end - begin)],
        },
        "yaxis": {
            "type": "category", "categoryorder": "array", "categoryarray": names, "autorange": "reversed",
            "automargin": True, "showgrid": False,
        },
    }  # fmt: skip
    return {"data": data, "layout": layout}


_PARTS = ("idle", "annotation", "waiting", "hidden")
_PART_WORDS = {
    "idle": "waits for its host",
    "annotation": "waits for its turn",
    "waiting": "waits for other ranks",
    "hidden": "transfer",
}


def _draw_part(
    rows: Sequence[BucketRow],
    names: Sequence[str],
    part: str,
    begin: int,
    convert: Any,  # noqa: ANN401 - ns to a unit
) -> Figure:
    place = _PARTS.index(part)
    spans = [split_bucket(row)[place : place + 2] for row in rows]
    return {
        "type": "bar",
        "orientation": "h",
        "name": _PART_WORDS[part],
        "y": list(names),
        "base": [convert(first - begin) for first, _ in spans],
        "x": [convert(last - first) for first, last in spans],
        "customdata": [
            f"{_PART_WORDS[part]}: {format_duration(last - first)}<br>{_describe(row)}"
            for row, (first, last) in zip(rows, spans, strict=True)
        ],
        "hovertemplate": "%{y}<br>%{customdata}<extra></extra>",
        "meta": {"part": part},
    }


def _describe(row: BucketRow) -> str:
    size = "" if row.size_bytes is None else f"{format_size(row.size_bytes)}, "
    hidden = "" if row.overlap_ratio is None else f", hidden {format_ratio(row.overlap_ratio)}"
    return f"{size}exposed {format_duration(row.exposed_ns)}{hidden}"


def _find_compute(
    report: Report, timeline: Timeline | None, row: BucketRow, begin: int, end: int
) -> IntervalSet | None:
    """Compute of the rank between two times of the report, in the report's times; None if not at hand."""
    if timeline is None or timeline.step != row.step:
        return None
    lanes = [lane for lane in timeline.lanes if lane.rank == row.rank and lane.kind in ("device", "thread")]
    if not lanes:
        return None
    starts = np.concatenate([lane.starts_ns for lane in lanes])
    ends = starts + np.concatenate([lane.durations_ns for lane in lanes])
    is_compute = np.concatenate([lane.classes for lane in lanes]) == EventClass.COMPUTE
    shift = timeline.origin_ns - int(report.run.origin_ns)
    starts = np.maximum(starts[is_compute] + shift, begin)
    ends = np.minimum(ends[is_compute] + shift, end)
    inside = ends > starts
    busy = union(starts[inside], ends[inside])
    return _close_gaps(busy, (end - begin) // _MOST_PIECES)


def _close_gaps(busy: IntervalSet, gap_ns: int) -> IntervalSet:
    """The set without gaps of up to `gap_ns`, which nobody could see."""
    if not len(busy):
        return busy
    opens = np.append(True, busy.starts[1:] - busy.ends[:-1] > gap_ns)
    closes = np.append(np.flatnonzero(opens)[1:] - 1, len(busy) - 1)
    return IntervalSet(starts=busy.starts[opens], ends=busy.ends[closes])


def _draw_compute(compute: IntervalSet, begin: int, convert: Any) -> Figure:  # noqa: ANN401 - ns to a unit
    lengths = (compute.ends - compute.starts).tolist()
    return {
        "type": "bar",
        "orientation": "h",
        "name": "compute",
        "y": ["compute"] * len(lengths),
        "base": [convert(start - begin) for start in compute.starts.tolist()],
        "x": [convert(length) for length in lengths],
        "hoverinfo": "skip",
        "meta": {"part": "compute"},
    }


def build_cap_chart(report: Report) -> Figure | None:
    """Predicted step time over bucket_cap_mb with the model's range; None with fewer than two predictions."""
    cap = None if report.advice is None else report.advice.bucket_cap_mb
    if cap is None or len(cap.predictions) < 2:
        return None
    rows = sorted(cap.predictions, key=lambda row: row.bucket_cap_mb)
    convert, unit = choose_unit(max(row.step_high_ns for row in rows))
    caps = [row.bucket_cap_mb for row in rows]
    shared = {"type": "scatter", "mode": "lines", "x": caps, "hoverinfo": "skip", "line": {"width": 0}}
    data = [
        {**shared, "y": [convert(row.step_low_ns) for row in rows]},
        {
            **shared,
            "y": [convert(row.step_high_ns) for row in rows],
            "fill": "tonexty",
            "meta": {"part": "compute", "faint": True},
        },
        {
            "type": "scatter",
            "mode": "lines+markers",
            "x": caps,
            "y": [convert(row.step_ns) for row in rows],
            "customdata": [
                f"step {format_duration(row.step_ns)} ({format_duration(row.step_low_ns)} to "
                f"{format_duration(row.step_high_ns)})<br>exposed {format_duration(row.exposed_ns)}"
                for row in rows
            ],
            "hovertemplate": "bucket_cap_mb=%{x}<br>%{customdata}<extra></extra>",
            "marker": {"size": 8},
            "meta": {"part": "compute"},
        },
    ]
    for value, part, symbol in ((cap.current, "text", "circle-open"), (cap.best, "exposed", "diamond")):
        marked = [row for row in rows if row.bucket_cap_mb == value]
        data += [
            {
                "type": "scatter",
                "mode": "markers",
                "x": [row.bucket_cap_mb],
                "y": [convert(row.step_ns)],
                "hoverinfo": "skip",
                "marker": {"size": 15, "symbol": symbol, "line": {"width": 2}},
                "meta": {"part": part},
            }
            for row in marked
        ]
    layout = {
        "height": _PLOT_PX,
        "xaxis": {
            "title": {"text": "bucket_cap_mb"}, "type": "log" if caps[0] > 0 else "linear", "showgrid": False,
            "tickvals": caps, "ticktext": [f"{value:g}" for value in caps],
        },
        "yaxis": {"title": {"text": f"step, {unit}"}},
    }  # fmt: skip
    return {"data": data, "layout": layout}
