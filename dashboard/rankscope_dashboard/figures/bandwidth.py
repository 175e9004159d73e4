"""The picture of bandwidth against size."""

from __future__ import annotations

from collections.abc import Sequence

from rankscope.model.report import CollectiveRow, Report
from rankscope.renderers.palette import COMPUTE, EXPOSED, HIDDEN, MEMORY, WAITING
from rankscope.units import format_duration, format_size
from rankscope_dashboard.figures.paint import Figure, plot_text

_HEIGHT_PX = 320
_MOST_POINTS = 3_000
_PARTS = (COMPUTE.slug, HIDDEN.slug, MEMORY.slug, WAITING.slug)
_SIZES = tuple(1 << power for power in range(0, 44, 2))


def build_bandwidth_chart(report: Report) -> Figure | None:
    """Bus bandwidth against size on a logarithmic axis, a colour per operation, and the best reached.

    Returns:
        The figure, or None if no operation has both.
    """
    known = [row for row in report.collectives if row.size_bytes and row.bus_bandwidth_gbps]
    if not known:
        return None
    ops = sorted({row.op for row in known}, key=lambda op: -sum(row.op == op for row in known))
    data = [
        _marks(op, _PARTS[min(place, len(_PARTS) - 1)], [row for row in known if row.op == op])
        for place, op in enumerate(ops)
    ]
    best = max(known, key=lambda row: row.bus_bandwidth_gbps or 0.0)
    sizes = [row.size_bytes or 1 for row in known]
    low, high = min(sizes) / 1.6, max(sizes) * 1.6
    data.append(
        {
            "type": "scatter",
            "mode": "lines",
            "name": f"best reached: {best.bus_bandwidth_gbps:.3g} GB/s",
            "x": [low, high],
            "y": [best.bus_bandwidth_gbps] * 2,
            "hoverinfo": "skip",
            "line": {"dash": "dash", "width": 1.5},
            "meta": {"part": EXPOSED.slug},
        }
    )
    ticks = [size for size in _SIZES if low <= size <= high]
    layout = {
        "height": _HEIGHT_PX,
        "xaxis": {
            "title": {"text": "size"},
            "type": "log",
            "showgrid": False,
            "tickvals": ticks or [best.size_bytes or 0],
            "ticktext": [format_size(size) for size in ticks] or [format_size(best.size_bytes or 0)],
        },
        "yaxis": {"title": {"text": "bus bandwidth, GB/s"}, "rangemode": "tozero"},
        "showlegend": True,
    }
    return {"data": data, "layout": layout}


def _marks(op: str, part: str, rows: Sequence[CollectiveRow]) -> Figure:
    shown = rows[:: -(-len(rows) // _MOST_POINTS)]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": plot_text(op),
        "x": [row.size_bytes for row in shown],
        "y": [row.bus_bandwidth_gbps for row in shown],
        "customdata": [
            f"{plot_text(row.op)} #{row.index}, {format_size(row.size_bytes or 0)}<br>"
            f"{row.bus_bandwidth_gbps:.3g} GB/s, transfer {format_duration(row.transfer_ns or 0)}"
            for row in shown
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
        "marker": {"size": 8, "opacity": 0.75},
        "meta": {"part": part},
    }
