"""Colours for figures in plain data: parts of time get the colours that they have in every other format."""

from __future__ import annotations

import html
from typing import Any, Literal

from rankscope.renderers.escape import make_inert
from rankscope.renderers.palette import ANNOTATION, PARTS, WAITING, Part

Figure = dict[str, Any]
Theme = Literal["light", "dark"]

_PARTS = {part.slug: part for part in (*PARTS, ANNOTATION, WAITING)}
_PAPER = {"light": "#f4f5f7", "dark": "#232830"}
_TEXT = {"light": "#1c2128", "dark": "#e4e7eb"}
_FAINT_ALPHA = "2e"
FONT_PX = 13


def color_of(part: Part, theme: Theme) -> str:
    """The colour of a part of time."""
    return part.light if theme == "light" else part.dark


def paint(figure: Figure, theme: Theme) -> Figure:
    """The figure with the colours that its traces name under `meta`, and the dashboard's manners.

    `meta` may hold `part` (slug of a part of time or "text"), `width` (of its line), `faint` (a
    filled area) and `ramp` (slug of the part that a heat map is shaded by).
    """
    layout = figure["layout"]
    font = {"size": FONT_PX}
    return {
        "data": [_paint_trace(trace, theme) for trace in figure["data"]],
        "layout": {
            "showlegend": len([t for t in figure["data"] if t.get("name")]) > 1,
            "legend": {
                "orientation": "h",
                "traceorder": "normal",
                "x": 0,
                "y": 1.02,
                "yanchor": "bottom",
                "font": font,
            },
            "hoverlabel": {"align": "left", "font": font},
            "dragmode": "zoom",
            **layout,
            "margin": {"l": 8, "r": 8, "t": 8, "b": 8, **layout.get("margin", {})},
            "xaxis": _dress_axis(layout.get("xaxis", {})),
            "yaxis": _dress_axis(layout.get("yaxis", {})),
        },
    }


def _dress_axis(axis: Figure) -> Figure:
    title = axis.get("title")
    dressed = {"automargin": True, "tickfont": {"size": FONT_PX}, **axis}
    return dressed if title is None else {**dressed, "title": {**title, "font": {"size": FONT_PX}}}


def _paint_trace(trace: Figure, theme: Theme) -> Figure:
    meta = trace.get("meta") or {}
    if not trace.get("name"):
        trace = {**trace, "showlegend": False}
    if "ramp" in meta:
        return {**trace, "colorscale": shade_scale(_PARTS[meta["ramp"]], theme)}
    if "part" not in meta:
        return trace
    color = _TEXT[theme] if meta["part"] == "text" else color_of(_PARTS[meta["part"]], theme)
    if meta.get("faint"):
        return {**trace, "fillcolor": f"{color}{_FAINT_ALPHA}"}
    painted = {**trace, "marker": {"color": color, **trace.get("marker", {})}}
    if trace.get("type") == "scatter":
        painted["line"] = {"color": color, "width": meta.get("width", 2), **trace.get("line", {})}
    return painted


def shade_scale(part: Part, theme: Theme) -> list[list[Any]]:
    """A colour scale from the page's quiet background to the part's colour."""
    return [[0.0, _PAPER[theme]], [1.0, color_of(part, theme)]]


def plot_text(text: str) -> str:
    """Text for a figure, where plotly would take a name from a trace for markup."""
    return html.escape(make_inert(text), quote=False)
