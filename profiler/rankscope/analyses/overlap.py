"""Overlap of communication with compute, per rank, device and recording window."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

import numpy as np

from rankscope.correlate.device_events import DeviceEvents, DeviceName
from rankscope.model.intervals import (
    EMPTY,
    Int64,
    IntervalSet,
    depth_at_least,
    intersect,
    merge,
    subtract,
)
from rankscope.model.report import Measures


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowOverlap:
    """Union measures of one window on one device.

    Attributes:
        rank, device, window, file: which one.
        started_ns: absolute start of its first event.
        measures: the union measures, the window and idle time included.
        self_overlap_ns: time in which two or more communication events run at once.
        compute_kernels, communication_kernels, memory_operations: numbers of events.
    """

    rank: int
    device: DeviceName
    window: int
    file: str
    started_ns: int
    measures: Measures
    self_overlap_ns: int
    compute_kernels: int
    communication_kernels: int
    memory_operations: int


def measure_overlap(events: DeviceEvents) -> WindowOverlap:
    """Union measures of one window on one device, in ns, exact.

    window = first start to last end of compute, communication and memory events; compute + exposed
    communication + exposed memory + idle = window.
    """
    table = events.table
    compute, communication, memory = (
        _union(events, rows) for rows in (events.compute, events.communication, events.memory)
    )
    # Of the rows, not of their union: that holds no event without duration, and those begin and end windows too.
    all_rows = np.concatenate([events.compute, events.communication, events.memory])
    started_ns = int(table.start_ns[all_rows].min()) if len(all_rows) else 0
    window_ns = int(table.ends_of(all_rows).max()) - started_ns if len(all_rows) else 0
    measures = measure_sets(communication=communication, compute=compute, memory=memory, window_ns=window_ns)
    rows = events.communication
    several = depth_at_least(table.start_ns[rows], table.ends_of(rows), 2) if len(rows) > 1 else EMPTY
    return WindowOverlap(
        rank=events.window.rank,
        device=events.device,
        window=events.window.window,
        file=events.window.file,
        started_ns=started_ns,
        measures=measures,
        self_overlap_ns=several.length_ns,
        compute_kernels=len(events.compute),
        communication_kernels=len(events.communication),
        memory_operations=len(events.memory),
    )


def measure_sets(
    *,
    communication: IntervalSet,
    compute: IntervalSet,
    memory: IntervalSet,
    window_ns: int | None = None,
    all_compute: IntervalSet | None = None,
    all_communication: IntervalSet | None = None,
) -> Measures:
    """Union measures of sets of times.

    Args:
        communication, compute, memory: the times that are measured.
        window_ns: length of the window, None where there is none (then idle is None too).
        all_compute: what can hide communication; `compute` unless given.
        all_communication: what can hide memory beside compute; `communication` unless given.
    """
    cover = compute if all_compute is None else all_compute
    others = merge(cover, communication if all_communication is None else all_communication)
    communication_ns, overlap_ns = communication.length_ns, intersect(communication, cover).length_ns
    exposed_memory_ns = subtract(memory, others).length_ns
    exposed_ns = communication_ns - overlap_ns
    return Measures(
        window_ns=window_ns,
        compute_ns=compute.length_ns,
        communication_ns=communication_ns,
        overlap_ns=overlap_ns,
        exposed_communication_ns=exposed_ns,
        memory_ns=memory.length_ns,
        exposed_memory_ns=exposed_memory_ns,
        idle_ns=None if window_ns is None else window_ns - compute.length_ns - exposed_ns - exposed_memory_ns,
        overlap_ratio=overlap_ratio(overlap_ns, communication_ns),
    )


def overlap_ratio(overlap_ns: int, communication_ns: int) -> float | None:
    """Share of communication that compute hides, 0 to 1; None without communication.

    >>> overlap_ratio(300, 400)
    0.75
    """
    return overlap_ns / communication_ns if communication_ns > 0 else None


def add_measures(parts: Iterable[Measures]) -> Measures:
    """Sum of measures; windows and idle stay defined only if they are in every part.

    >>> parts = [Measures(communication_ns=4, overlap_ns=1), Measures(communication_ns=4, overlap_ns=3)]
    >>> add_measures(parts).overlap_ratio
    0.5
    """
    parts = list(parts)
    sums: dict[str, int | None] = {}
    for field in fields(Measures):
        if field.name != "overlap_ratio":
            values = [getattr(part, field.name) for part in parts]
            sums[field.name] = sum(values) if None not in values else None
    ratio = overlap_ratio(sums["overlap_ns"] or 0, sums["communication_ns"] or 0)
    return Measures(**sums, overlap_ratio=ratio)  # type: ignore[arg-type]


def _union(events: DeviceEvents, rows: Int64) -> IntervalSet:
    return events.table.times_of(rows)
