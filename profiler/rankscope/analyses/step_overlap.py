"""Overlap per step: what each step launched, hidden by any compute of the rank."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from rankscope.correlate.device_events import DeviceEvents, DeviceName
from rankscope.correlate.steps import OUTSIDE_STEPS, StepSpans
from rankscope.model.intervals import Int64, IntervalSet, covered_ns, merge, union
from rankscope.model.report import Measures


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
    all_compute = union(table.start_ns[rows["compute"]], table.end_ns[rows["compute"]])
    all_busy = merge(
        all_compute, union(table.start_ns[rows["communication"]], table.end_ns[rows["communication"]])
    )
    results = []
    for i, number in enumerate([*spans.numbers.tolist(), OUTSIDE_STEPS]):
        owned = {key: rows[key][step_of_event[key] == number] for key in rows}
        if number == OUTSIDE_STEPS and not any(len(r) for r in owned.values()):
            continue
        in_step = number != OUTSIDE_STEPS
        end = int(spans.ends[i]) if in_step else None
        results.append(
            StepOverlap(
                step=number if in_step else None,
                rank=events.window.rank,
                device=events.device,
                window=events.window.window,
                steady=in_step and number not in unsteady,
                host_duration_ns=int(spans.ends[i] - spans.starts[i]) if in_step else None,
                runs_past_end_ns=_runs_past(events, owned, end),
                measures=_measure(events, owned, all_compute, all_busy),
            )
        )
    return results


def _runs_past(events: DeviceEvents, owned: dict[str, Int64], end_ns: int | None) -> int | None:
    if end_ns is None:
        return None
    last = max((int(events.table.end_ns[r].max()) for r in owned.values() if len(r)), default=end_ns)
    return max(last - end_ns, 0)


def _measure(
    events: DeviceEvents, owned: dict[str, Int64], all_compute: IntervalSet, all_busy: IntervalSet
) -> Measures:
    table = events.table
    sets = {key: union(table.start_ns[rows], table.end_ns[rows]) for key, rows in owned.items()}
    communication, memory = sets["communication"], sets["memory"]
    overlap_ns = _covered(communication, all_compute)
    communication_ns = communication.length_ns
    return Measures(
        compute_ns=sets["compute"].length_ns,
        communication_ns=communication_ns,
        overlap_ns=overlap_ns,
        exposed_communication_ns=communication_ns - overlap_ns,
        memory_ns=memory.length_ns,
        exposed_memory_ns=memory.length_ns - _covered(memory, all_busy),
        overlap_ratio=overlap_ns / communication_ns if communication_ns else None,
    )


def _covered(times: IntervalSet, cover: IntervalSet) -> int:
    return int(np.sum(covered_ns(times.starts, times.ends, cover)))
