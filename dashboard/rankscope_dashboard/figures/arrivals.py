"""The picture of one collective: when each rank came, waited and was done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rankscope.model.report import CollectiveRow
from rankscope.renderers.chart_axes import choose_unit
from rankscope.renderers.palette import HIDDEN, WAITING
from rankscope.units import format_duration
from rankscope_dashboard.figures.paint import Figure

_ROW_PX, _FRAME_PX, _MOST_PX = 26, 86, 620


@dataclass(frozen=True, slots=True, kw_only=True)
class RankArrival:
    """One rank at a collective: when it came (ns from the run's origin), and how long it waited, if known."""

    rank: int
    arrival_ns: int
    wait_ns: int | None


def arrivals_of(table: Any, index: int) -> tuple[RankArrival, ...]:  # noqa: ANN401 - a pyarrow table
    """The arrivals at one collective, by rank.

    Args:
        table: the run's table "arrivals".
        index: number of the collective.
    """
    import pyarrow.compute as pc

    rows = table.filter(pc.equal(table["index"], index)).to_pylist()
    return tuple(
        RankArrival(rank=row["rank"], arrival_ns=row["arrival_ns"], wait_ns=row["wait_ns"])
        for row in sorted(rows, key=lambda row: int(row["rank"]))
        if row["arrival_ns"] is not None
    )


def build_one_arrival(arrivals: Sequence[RankArrival], row: CollectiveRow) -> Figure | None:
    """A bar per rank from its arrival: waiting, then the transfer; None without arrivals."""
    if not arrivals:
        return None
    first = min(arrival.arrival_ns for arrival in arrivals)
    transfer = row.transfer_ns or 0
    longest = max(a.arrival_ns - first + (a.wait_ns or 0) + transfer for a in arrivals)
    convert, unit = choose_unit(longest)
    names = [f"rank {arrival.rank}" for arrival in arrivals]
    bars = (
        ("waiting", WAITING.slug, [(a.arrival_ns - first, a.wait_ns or 0) for a in arrivals]),
        ("transfer", HIDDEN.slug, [(a.arrival_ns - first + (a.wait_ns or 0), transfer) for a in arrivals]),
    )
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": label,
            "y": names,
            "base": [convert(start) for start, _ in spans],
            "x": [convert(length) for _, length in spans],
            "customdata": [format_duration(length) for _, length in spans],
            "hovertemplate": "%{y}<br>" + label + ": %{customdata}<extra></extra>",
            "meta": {"part": part},
        }
        for label, part, spans in bars
    ]
    layout = {
        "barmode": "overlay",
        "bargap": 0.35,
        "height": min(_ROW_PX * len(names) + _FRAME_PX, _MOST_PX),
        "xaxis": {"title": {"text": f"{unit} since the first rank came"}},
        "yaxis": {"type": "category", "autorange": "reversed", "showgrid": False},
    }
    return {"data": data, "layout": layout}
