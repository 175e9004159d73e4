"""Both runs side by side as one HTML file that needs nothing else."""

from __future__ import annotations

from typing import Any

from rankscope.model.comparison import ComparedFigure, Comparison, Side
from rankscope.model.verdict import Verdict
from rankscope.renderers.check_tables import build_outcome_table, say_verdict
from rankscope.renderers.comparison_tables import (
    SCOPE_TITLES,
    build_figure_table,
    build_part_table,
    list_extent,
    say_comparison,
    say_direction,
    say_outside,
)
from rankscope.renderers.escape import MESSAGE_LIMIT, make_inert
from rankscope.renderers.html_page import render_page
from rankscope.renderers.palette import COMPUTE, EXPOSED, HIDDEN, IDLE, MEMORY, PARTS, Part
from rankscope.renderers.tables import NOT_AVAILABLE

_PLOT_WIDTH = 460
_PLOT_HEIGHT = 150
_WIDEST_BAR = 40
_PARTS_SHOWN = 50


def render_comparison_html(comparison: Comparison, verdict: Verdict) -> str:
    """The comparison as a self-contained page without scripts, ending with a line break.

    Args:
        comparison: the comparison.
        verdict: what became of its regression limits.
    """
    return render_page(
        "comparison.html.j2",
        _collect(comparison, verdict),
        policy="default-src 'none'; style-src 'unsafe-inline'",
        colors=PARTS,
        styles=("report.css", "comparison.css"),
    )


def _collect(comparison: Comparison, verdict: Verdict) -> dict[str, Any]:
    outside = say_outside(comparison)
    tables = [
        build_outcome_table(verdict),
        *(build_figure_table(comparison, scope) for scope in SCOPE_TITLES),
        build_part_table(comparison, _PARTS_SHOWN),
    ]
    longest = max(_window(comparison, "base"), _window(comparison, "head"))
    return {
        "statements": [say_comparison(comparison), *([say_verdict(verdict)] if verdict.outcomes else [])],
        "is_closed": bool(verdict.failed),
        "failures": [(make_inert(o.name), make_inert(o.message, MESSAGE_LIMIT)) for o in verdict.failed],
        "sides": [
            _collect_side(comparison, "base", comparison.base, longest),
            _collect_side(comparison, "head", comparison.head, longest),
        ],
        "tiles": [_make_tile(row) for row in comparison.figures if row.is_headline],
        "tables": [table for table in tables if table.rows],
        "outside": outside,
        "notes": [make_inert(note, MESSAGE_LIMIT) for note in comparison.notes],
        "parts": PARTS,
        "plot_width": _PLOT_WIDTH,
        "plot_height": _PLOT_HEIGHT,
    }


def _collect_side(comparison: Comparison, which: str, side: Side, longest: float) -> dict[str, Any]:
    facts = [f"{side.runs} runs" if side.runs > 1 else "", *list_extent(side), side.started_at or ""]
    return {
        "which": which,
        "name": make_inert(side.name),
        "facts": " · ".join(fact for fact in facts if fact),
        "window": _split_window(comparison, which, longest),
        "steps": _draw_steps(side),
    }


def _window(comparison: Comparison, which: str) -> float:
    return _value(comparison, which, "window") or 0


def _value(comparison: Comparison, which: str, name: str) -> float | None:
    row = next(row for row in comparison.figures if row.name == name)
    return row.base if which == "base" else row.head


def _split_window(comparison: Comparison, which: str, longest: float) -> list[dict[str, Any]]:
    """The parts of the mean window as shares of the longer one, so that both bars have one scale."""
    names = ("compute", "communication", "exposed_communication", "exposed_memory", "idle")
    values = [_value(comparison, which, name) for name in names]
    if not longest or None in values:
        return []
    compute, communication, exposed, memory, idle = (value or 0 for value in values)
    hidden = communication - exposed
    parts: list[tuple[Part, float]] = [
        (COMPUTE, compute - hidden),
        (HIDDEN, hidden),
        (EXPOSED, exposed),
        (MEMORY, memory),
        (IDLE, idle),
    ]
    figure = next(row.figure for row in comparison.figures if row.name == "window")
    return [
        {
            "part": part,
            "percent": f"{100 * max(0.0, ns) / longest:.3f}",
            "text": f"{part.label}: {figure.format(ns)}",
        }
        for part, ns in parts
    ]


def _draw_steps(side: Side) -> list[dict[str, str]]:
    """A bar per steady step from the bottom of the plot; an undefined one has no height."""
    number = len(side.overlap_by_step)
    if not number:
        return []
    pitch = min(_PLOT_WIDTH / number, _WIDEST_BAR)
    return [
        {
            "x": f"{index * pitch:.2f}",
            "width": f"{max(pitch * 0.8, 0.5):.2f}",
            "y": f"{_PLOT_HEIGHT * (1 - (ratio or 0)):.2f}",
            "height": f"{_PLOT_HEIGHT * (ratio or 0):.2f}",
            "text": f"steady step {index + 1}: "
            + (NOT_AVAILABLE if ratio is None else f"{100 * ratio:.1f} %"),
        }
        for index, ratio in enumerate(side.overlap_by_step)
    ]


def _make_tile(row: ComparedFigure) -> dict[str, str]:
    figure = row.figure
    per = " of the steady steps" if row.scope == "steady" and figure.name != "duration" else ""
    if row.base is None or row.head is None or row.change is None:
        reason = make_inert(row.reason or "", MESSAGE_LIMIT)
        return {"label": f"{figure.label}{per}", "change": NOT_AVAILABLE, "detail": reason, "class": "same"}
    significant = row.is_significant
    return {
        "label": f"{figure.label}{per}",
        "change": figure.format_change(row.change),
        "detail": f"{figure.format(row.base)} → {figure.format(row.head)}, {say_direction(row)}",
        "class": (row.direction or "same") if significant or significant is None else "same",
    }
