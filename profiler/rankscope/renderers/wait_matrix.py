"""What each rank cost each step, as a matrix that is small enough to look at."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rankscope.model.report import CausedWaitRow, Report
from rankscope.renderers.tables import keep_worst, take_median
from rankscope.units import format_duration

_LEAST_SCALE = 0.02
"""Share of a step that is drawn in full colour at least: what is less than that names nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitMatrix:
    """Ranks down, steps across.

    Attributes:
        figure: "cost" - by how much the step would be shorter; "lateness" where no cost is known.
        ranks: the ranks shown, in order.
        steps: what each column is: "9", or "9-12" where steps were drawn together.
        values: ns per rank and column; None if unknown. Of several steps the greatest.
        full_ns: value that is drawn in full colour.
        notes: what was left out or drawn together.
    """

    figure: Literal["cost", "lateness"]
    ranks: tuple[int, ...]
    steps: tuple[str, ...]
    values: tuple[tuple[int | None, ...], ...]
    full_ns: int
    notes: tuple[str, ...]

    @property
    def title(self) -> str:
        """Heading of the drawing."""
        if self.figure == "cost":
            return "What each rank cost each step"
        return "How late each rank was, step by step"


def build_wait_matrix(report: Report, *, ranks: int, steps: int) -> WaitMatrix | None:
    """The matrix, or None where there is nothing to compare.

    Args:
        report: the report.
        ranks: greatest number of rows; above it the ranks that cost most are kept.
        steps: greatest number of columns; above it neighbours are drawn together.
    """
    rows = report.caused_waits
    is_cost = any(row.cost_ns is not None for row in rows)
    known = {(row.rank, row.step): _value(row, is_cost=is_cost) for row in rows}
    known = {key: value for key, value in known.items() if value is not None}
    all_ranks = sorted({rank for rank, _ in known})
    if len(all_ranks) < 2:
        return None
    sums: dict[int, int] = defaultdict(int)
    for (rank, _), value in known.items():
        sums[rank] += value or 0
    kept, left_out = keep_worst(all_ranks, lambda rank: sums[rank], ranks)
    numbers = sorted({step for _, step in known if step is not None})
    parts: list[list[int | None]] = [[None]]
    size = 1
    if numbers:
        size = -(-len(numbers) // steps)
        parts = [list(numbers[first : first + size]) for first in range(0, len(numbers), size)]
    values = tuple(
        tuple(_greatest([known.get((rank, step)) for step in part]) for part in parts) for rank in kept
    )
    most = max((value for row in values for value in row if value is not None), default=0)
    return WaitMatrix(
        figure="cost" if is_cost else "lateness",
        ranks=kept,
        steps=tuple(_name_part(part) for part in parts),
        values=values,
        full_ns=max(most, _least_scale(report), 1),
        notes=tuple(_make_notes(report, left_out, len(all_ranks), size)),
    )


def _value(row: CausedWaitRow, *, is_cost: bool) -> int | None:
    value = row.cost_ns if is_cost else row.lateness_ns
    # Less than nothing is the noise of a replay.
    return None if value is None else max(value, 0)


def _greatest(values: Sequence[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


def _name_part(part: Sequence[int | None]) -> str:
    if part[0] is None:
        return "all"
    return str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}"


def _least_scale(report: Report) -> int:
    step_ns = take_median([row.duration_ns for row in report.steps if row.step is not None])
    return round(_LEAST_SCALE * (step_ns or 0))


def _make_notes(report: Report, left_out: int, count: int, size: int) -> list[str]:
    notes = []
    straggler = report.straggler
    if straggler is not None and straggler.verdict == "found" and len(straggler.ranks) > 1:
        notes.append(
            "Here each rank is counted alone: ranks that are slow together hide each other, so that the named ones may "
            f"look harmless. Together they cost {format_duration(straggler.cost_ns_per_step or 0)} per step."
        )
    if size > 1:
        notes.append(f"Every column holds up to {size:,} steps, and shows the worst of them.")
    if left_out:
        notes.append(f"Shown: the {count - left_out:,} of {count:,} ranks that cost most.")
    return notes
