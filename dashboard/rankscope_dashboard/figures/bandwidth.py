"""The picture of bandwidth against size."""

from __future__ import annotations

from collections.abc import Sequence

from rankscope.model.collective import bus_factor
from rankscope.model.report import CollectiveRow, NetworkRow, Report
from rankscope.model.ring import ring_bandwidth_gbps
from rankscope.renderers.palette import COMPUTE, EXPOSED, HIDDEN, MEMORY, WAITING
from rankscope.units import format_duration, format_size
from rankscope_dashboard.figures.paint import Figure, plot_text

_HEIGHT_PX = 320
_MOST_POINTS = 3_000
_CURVE_POINTS = 60
_PARTS = (COMPUTE.slug, HIDDEN.slug, MEMORY.slug, WAITING.slug)
_SIZES = tuple(1 << power for power in range(0, 44, 2))


def build_bandwidth_chart(report: Report) -> Figure | None:
    """Bus bandwidth against size on a logarithmic axis, a colour per operation, and what the ring can reach.

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
    network = None if report.advice is None else report.advice.network
    sizes = [row.size_bytes or 1 for row in known]
    low, high = min(sizes) / 1.6, max(sizes) * 1.6
    data.append(_bound(known, low, high, network))
    ticks = [size for size in _SIZES if low <= size <= high]
    layout = {
        "height": _HEIGHT_PX,
        "xaxis": {
            "title": {"text": "size"},
            "type": "log",
            "showgrid": False,
            "tickvals": ticks or sizes[:1],
            "ticktext": [format_size(size) for size in ticks or sizes[:1]],
        },
        "yaxis": {"title": {"text": "bus bandwidth, GB/s"}, "rangemode": "tozero"},
        "showlegend": True,
    }
    return {"data": data, "layout": layout}


def _bound(rows: Sequence[CollectiveRow], low: float, high: float, network: NetworkRow | None) -> Figure:
    """What the ring can reach: by the fitted network where there is one, else the best that was measured."""
    shared = {"type": "scatter", "mode": "lines", "hoverinfo": "skip", "meta": {"part": EXPOSED.slug}}
    shared["line"] = {"dash": "dash", "width": 1.5}
    ranks = max(row.ranks for row in rows)
    if network is None or not network.bus_bandwidth_gbps or bus_factor("all_reduce", ranks) is None:
        best = max(row.bus_bandwidth_gbps or 0.0 for row in rows)
        return {**shared, "name": f"best reached: {best:.3g} GB/s", "x": [low, high], "y": [best] * 2}
    sizes = [round(low * (high / low) ** (place / _CURVE_POINTS)) for place in range(_CURVE_POINTS + 1)]
    reached = [
        ring_bandwidth_gbps(size, ranks, network.latency_ns, network.bus_bandwidth_gbps) for size in sizes
    ]
    words = f"fitted: {format_duration(network.latency_ns)} and {network.bus_bandwidth_gbps:.3g} GB/s"
    return {**shared, "name": words, "x": sizes, "y": reached}


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
