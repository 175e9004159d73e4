"""The picture of two runs step by step."""

from __future__ import annotations

from rankscope.model.comparison import Comparison
from rankscope.renderers.palette import COMPUTE, EXPOSED
from rankscope_dashboard.figures.paint import Figure, plot_text

_HEIGHT_PX = 260


def build_step_comparison(comparison: Comparison, base_name: str, head_name: str) -> Figure | None:
    """A line per run with the hidden share of each steady step; None if one has none."""
    sides = (
        (f"base: {base_name}", comparison.base.overlap_by_step, COMPUTE.slug),
        (f"head: {head_name}", comparison.head.overlap_by_step, EXPOSED.slug),
    )
    if not all(any(value is not None for value in values) for _, values, _ in sides):
        return None
    data = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": plot_text(name),
            "x": list(range(1, len(values) + 1)),
            "y": [None if value is None else round(100 * value, 3) for value in values],
            "hovertemplate": "steady step %{x}: %{y:.1f} %<extra></extra>",
            "marker": {"size": 7},
            "meta": {"part": part},
        }
        for name, values, part in sides
    ]
    longest = max(len(values) for _, values, _ in sides)
    layout = {
        "height": _HEIGHT_PX,
        "xaxis": {"title": {"text": "steady step"}, "dtick": max(1, longest // 20), "showgrid": False},
        "yaxis": {"title": {"text": "hidden, %"}, "range": [0, 104]},
    }
    return {"data": data, "layout": layout}
