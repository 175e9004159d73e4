"""What no stream can do is put right: events that appear twice, and kernels that run over later ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from rankscope.model.categories import GPU_CATEGORIES, Category, EventClass
from rankscope.model.intervals import Int64
from rankscope.model.run import Problem
from rankscope.model.table import CPU_DEVICE, TraceTable
from rankscope.units import format_duration


def clean_table(table: TraceTable, file: str) -> tuple[TraceTable, tuple[Problem, ...]]:
    """The table without impossible device rows, and a problem for each kind of them.

    Args:
        table: sorted by start.
        file: its file, for the problems.
    """
    problems = []
    rows = np.flatnonzero(np.isin(table.category, np.array(GPU_CATEGORIES, np.uint8)))
    doubled = _doubled(table, rows)
    if len(doubled):
        table = _without_time(table, doubled)
        problems.append(
            Problem(
                file=file,
                offset=None,
                kind="duplicate-event",
                message=f"{len(doubled)} device event(s) appear twice (same stream, start, duration, name and "
                "correlation) and are counted once",
            )
        )
        rows = np.setdiff1d(rows, doubled)
    table, clipped = _clip_overruns(table, rows)
    problems += [
        Problem(file=file, offset=None, kind="overrun", message=message)
        for message in _describe(table, clipped)
    ]
    return table, tuple(problems)


def _doubled(table: TraceTable, rows: Int64) -> Int64:
    """Device rows equal to an earlier one in every column."""
    start = table.start_ns[rows]
    at_once = np.flatnonzero(start[1:] == start[:-1])  # rows are sorted by start
    if len(at_once) == 0:
        return np.empty(0, np.int64)
    rows = rows[np.union1d(at_once, at_once + 1)]
    keys: tuple[npt.NDArray[np.integer], ...] = (
        table.name,
        table.correlation,
        table.duration_ns,
        table.start_ns,
        table.lane,
    )
    order = rows[np.lexsort(tuple(key[rows] for key in keys))]
    same = np.ones(len(order) - 1, dtype=bool)
    for key in keys:
        same &= key[order][1:] == key[order][:-1]
    return np.sort(order[1:][same])


def _without_time(table: TraceTable, rows: Int64) -> TraceTable:
    """The table with some device rows turned into host rows of no category, so that nothing counts them."""
    category, event_class, device = table.category.copy(), table.event_class.copy(), table.device.copy()
    category[rows], event_class[rows], device[rows] = Category.OTHER, EventClass.HOST, CPU_DEVICE
    return replace(table, category=category, event_class=event_class, device=device)


def _clip_overruns(table: TraceTable, rows: Int64) -> tuple[TraceTable, list[tuple[int, int]]]:
    """Cut rows that last beyond the end of a later row of their stream, back to that row's start.

    A stream runs one kernel after another. Neighbours may overlap by programmatic dependent launch, but a
    kernel that both starts before and ends after another has a wrong duration (roctracer#104).

    Returns:
        the table, and (row, nanoseconds cut off) of each.
    """
    rows = rows[table.duration_ns[rows] > 0]
    order = rows[np.argsort(table.lane[rows], kind="stable")]  # by start already
    if len(order) < 2:
        return table, []
    start, end, lane = table.start_ns[order], table.ends_of(order), table.lane[order]
    overruns = np.flatnonzero((lane[1:] == lane[:-1]) & (end[1:] < end[:-1]) & (start[1:] > start[:-1]))
    if len(overruns) == 0:
        return table, []
    duration = table.duration_ns.copy()
    duration[order[overruns]] = start[overruns + 1] - start[overruns]
    cut = end[overruns] - start[overruns + 1]
    clipped = list(zip(order[overruns].tolist(), cut.tolist(), strict=True))
    return replace(table, duration_ns=duration), clipped


def _describe(table: TraceTable, clipped: list[tuple[int, int]]) -> list[str]:
    if not clipped:
        return []
    row, cut = max(clipped, key=lambda pair: pair[1])
    lane = table.lanes[table.lane[row]]
    where = f"device {lane.device} stream {lane.stream}"
    return [
        f"{len(clipped)} kernel(s) overrun the next kernel on their stream and were cut back to its start; the "
        f"worst is {table.names[table.name[row]][:120]!r} on {where}, by {format_duration(cut)}"
    ]
