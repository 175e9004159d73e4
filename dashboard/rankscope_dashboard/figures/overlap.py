"""Pictures of overlap: rank x step, what exposed communication waits on, and per operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rankscope.model.report import GroupRow, Report, StepRow
from rankscope.renderers.chart_axes import choose_unit
from rankscope.renderers.palette import EXPOSED, HIDDEN, WAITING
from rankscope.renderers.report_tables import name_rank
from rankscope.renderers.undefined import Reasons, make_path
from rankscope.units import format_duration, format_ratio
from rankscope_dashboard.figures.paint import Figure, plot_text

_CELL_PX, _FRAME_PX = 24, 86
_LEAST_PX, _MOST_PX = 150, 620
_MOST_GROUPS = 15


def build_step_map(report: Report, *, figure: str) -> Figure | None:
    """A cell per rank and step, the darker the worse; None without steps.

    Args:
        report: the report.
        figure: "exposed" - exposed communication as a share of the step; "hidden" - hidden share of communication.
    """
    rows = [row for row in report.steps if row.step is not None]
    if not rows:
        return None
    reasons = Reasons(report.undefined)
    numbers = sorted({row.step for row in rows if row.step is not None})
    lanes = sorted({(row.rank, str(row.device)) for row in rows})
    place = {(row.rank, str(row.device), row.step): row for row in rows}
    measure = _exposed_share if figure == "exposed" else _hidden
    values = [[_cell(place.get((*lane, n)), measure) for n in numbers] for lane in lanes]
    words = [[_say_cell(place.get((*lane, n)), reasons) for n in numbers] for lane in lanes]
    several = len({rank for rank, _ in lanes}) < len(lanes)
    heat = {
        "type": "heatmap",
        "x": [str(n) for n in numbers],
        "y": [f"rank {rank} (GPU {device})" if several else f"rank {rank}" for rank, device in lanes],
        "z": values,
        "customdata": words,
        "hovertemplate": "%{y}, step %{x}<br>%{customdata}<extra></extra>",
        "hoverongaps": False,
        "xgap": 2 if len(numbers) <= _MOST_GROUPS * 4 else 0,
        "ygap": 2 if len(lanes) <= _MOST_GROUPS * 4 else 0,
        "zmin": 0,
        "zmax": 100
        if figure == "hidden"
        else max((v for row in values for v in row if v is not None), default=1),
        "meta": {"ramp": EXPOSED.slug if figure == "exposed" else HIDDEN.slug},
        "colorbar": {"ticksuffix": " %", "thickness": 12, "outlinewidth": 0},
    }
    layout = {
        "height": min(_CELL_PX * len(lanes) + _FRAME_PX, _MOST_PX),
        "xaxis": {"title": {"text": "step"}, "type": "category", "showgrid": False},
        "yaxis": {"type": "category", "autorange": "reversed", "showgrid": False},
    }
    return {"data": [heat], "layout": layout}


def _exposed_share(row: StepRow) -> float | None:
    return row.exposed_communication_ns / row.duration_ns if row.duration_ns else None


def _hidden(row: StepRow) -> float | None:
    return row.overlap_ratio


def _cell(row: StepRow | None, measure: Callable[[StepRow], float | None]) -> float | None:
    value = None if row is None else measure(row)
    return None if value is None else round(100 * value, 2)


def _say_cell(row: StepRow | None, reasons: Reasons) -> str:
    if row is None:
        return "not recorded"
    keys = {"step": row.step, "rank": row.rank, "device": row.device, "window": row.window}
    hidden = (
        format_ratio(row.overlap_ratio)
        if row.overlap_ratio is not None
        else f"n/a ({plot_text(reasons.find(make_path('steps', keys, 'overlap_ratio')) or 'no communication')})"
    )
    duration = "unknown" if row.duration_ns is None else format_duration(row.duration_ns)
    steady = "" if row.steady else "<br>not a steady step"
    return (
        f"exposed: {format_duration(row.exposed_communication_ns)} of a step of {duration}<br>hidden: {hidden} of "
        f"{format_duration(row.communication_ns)} communication{steady}"
    )


def build_wait_chart(report: Report) -> Figure | None:
    """A bar per rank: exposed communication that waits for other ranks, and that transfers; None if unknown."""
    rows = [row for row in report.ranks if row.exposed_wait_ns is not None]
    if not rows:
        return None
    waits = [row.exposed_wait_ns or 0 for row in rows]
    transfers = [row.exposed_transfer_ns or 0 for row in rows]
    return _draw_bars(
        [f"rank {name_rank(report, row)}" for row in rows],
        max(row.exposed_communication_ns for row in rows),
        {
            ("waiting for other ranks", WAITING.slug): [(wait, format_duration(wait)) for wait in waits],
            ("transferring", EXPOSED.slug): [(transfer, format_duration(transfer)) for transfer in transfers],
        },
    )


def build_operation_chart(report: Report) -> Figure | None:
    """A bar per operation and group: its communication, hidden and exposed, over all ranks; None without any."""
    groups = sorted(report.groups, key=lambda group: -group.exposed_communication_ns)[:_MOST_GROUPS]
    if not groups:
        return None

    def spans(pick: Callable[[GroupRow], int]) -> list[tuple[int, str]]:
        return [(pick(g), f"{format_duration(pick(g))} in {g.count:,} per rank") for g in groups]

    return _draw_bars(
        [plot_text(f"{group.op} · {group.group}")[:60] for group in groups],
        max(group.communication_ns for group in groups),
        {
            ("exposed", EXPOSED.slug): spans(lambda g: g.exposed_communication_ns),
            ("hidden", HIDDEN.slug): spans(lambda g: g.communication_ns - g.exposed_communication_ns),
        },
    )


def _draw_bars(
    names: Sequence[str], longest: int, parts: Mapping[tuple[str, str], Sequence[tuple[int, str]]]
) -> Figure:
    """Lying bars, stacked: for each part (label, colour) the length in ns and the words of every bar."""
    convert, unit = choose_unit(longest)
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": label,
            "y": list(names),
            "x": [convert(length) for length, _ in spans],
            "customdata": [words for _, words in spans],
            "hovertemplate": "%{y}<br>" + label + ": %{customdata}<extra></extra>",
            "meta": {"part": part},
        }
        for (label, part), spans in parts.items()
    ]
    layout = {
        "barmode": "stack",
        "bargap": 0.35,
        "height": max(_LEAST_PX, min(26 * len(names) + _FRAME_PX, _MOST_PX)),
        "xaxis": {"title": {"text": unit}, "rangemode": "tozero"},
        "yaxis": {"type": "category", "autorange": "reversed", "showgrid": False},
    }
    return {"data": data, "layout": layout}
