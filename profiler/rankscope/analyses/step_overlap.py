"""Overlap per step: what each step launched, hidden by any compute of the rank."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from rankscope.correlate.device_events import DeviceEvents, DeviceName
from rankscope.correlate.steps import OUTSIDE_STEPS, StepSpans
from rankscope.model.intervals import Int64, IntervalSet, covered_ns, merge
from rankscope.model.report import Measures
from rankscope.model.table import TraceTable


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOverlap:
    """Union measures of the events that one step launched on one device.

    Attributes:
        step: its number; None for the events launched outside every step.
        rank, device, window: where.
        steady: whether steady figures use it.
        host_duration_ns: length of the step on the host; None outside steps.
        runs_past_end_ns: how long its last device event ends after the step ended on the host, 0 if it does
            not; None outside steps.
        measures: window and idle are None, since a step's work overlaps its neighbours'.
    """

    step: int | None
    rank: int
    device: DeviceName
    window: int
    steady: bool
    host_duration_ns: int | None
    runs_past_end_ns: int | None
    measures: Measures


def measure_steps(
    events: DeviceEvents,
    spans: StepSpans,
    step_of_event: dict[str, Int64],
    unsteady: Collection[int],
) -> list[StepOverlap]:
    """Measures of each step in time order, and last of the events outside steps, if there are any.

    Args:
        events: one window on one device.
        spans: the window's steps.
        step_of_event: "compute", "communication", "memory" -> int64 step number of each of those rows.
        unsteady: step numbers to leave out of steady figures.

    Returns:
        nothing for a window without step markers.
    """
    if len(spans) == 0:
        return []
    table = events.table
    rows = {"compute": events.compute, "communication": events.communication, "memory": events.memory}
    all_compute = table.times_of(rows["compute"])
    all_busy = merge(all_compute, table.times_of(rows["communication"]))
    numbers = [*spans.numbers.tolist(), OUTSIDE_STEPS]
    owned = {key: _rows_of_steps(rows[key], step_of_event[key], numbers) for key in rows}
    times = {key: [table.times_of(r) for r in owned[key]] for key in rows}
    overlap_ns = _covered(times["communication"], all_compute)
    hidden_memory_ns = _covered(times["memory"], all_busy)
    results = []
    for i, number in enumerate(numbers):
        of_step = [owned[key][i] for key in rows]
        in_step = number != OUTSIDE_STEPS
        if not in_step and not any(len(r) for r in of_step):
            continue
        communication_ns, memory_ns = times["communication"][i].length_ns, times["memory"][i].length_ns
        results.append(
            StepOverlap(
                step=number if in_step else None,
                rank=events.window.rank,
                device=events.device,
                window=events.window.window,
                steady=in_step and number not in unsteady,
                host_duration_ns=int(spans.ends[i] - spans.starts[i]) if in_step else None,
                runs_past_end_ns=_runs_past(table, of_step, int(spans.ends[i])) if in_step else None,
                measures=Measures(
                    compute_ns=times["compute"][i].length_ns,
                    communication_ns=communication_ns,
                    overlap_ns=overlap_ns[i],
                    exposed_communication_ns=communication_ns - overlap_ns[i],
                    memory_ns=memory_ns,
                    exposed_memory_ns=memory_ns - hidden_memory_ns[i],
                    overlap_ratio=overlap_ns[i] / communication_ns if communication_ns else None,
                ),
            )
        )
    return results


def _rows_of_steps(rows: Int64, step_of_row: Int64, numbers: Sequence[int]) -> list[Int64]:
    """Rows that belong to each step, in their order; one sort for all steps."""
    order = np.argsort(step_of_row, kind="stable")
    sorted_steps = step_of_row[order]
    first = np.searchsorted(sorted_steps, numbers, side="left")
    after = np.searchsorted(sorted_steps, numbers, side="right")
    return [rows[order[a:b]] for a, b in zip(first, after, strict=True)]


def _runs_past(table: TraceTable, rows: Sequence[Int64], end_ns: int) -> int:
    last = max((int(table.ends_of(r).max()) for r in rows if len(r)), default=end_ns)
    return max(last - end_ns, 0)


def _covered(times: Sequence[IntervalSet], cover: IntervalSet) -> list[int]:
    """Nanoseconds of each set that lie in `cover`."""
    starts, ends = np.concatenate([t.starts for t in times]), np.concatenate([t.ends for t in times])
    total = np.concatenate([[0], np.cumsum(covered_ns(starts, ends, cover))])
    edges = np.cumsum([0, *(len(t) for t in times)])
    covered: list[int] = np.diff(total[edges]).tolist()
    return covered
