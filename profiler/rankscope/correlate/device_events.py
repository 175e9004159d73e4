"""The events of one window on one device, by class: GPU rows, or host operators on a CPU-only run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from rankscope.correlate.launches import NO_ROW, ROW_BITS, find_launches
from rankscope.model.categories import BLOCKING_HOST_OPS, Category, EventClass
from rankscope.model.intervals import Int64
from rankscope.model.parts import parts
from rankscope.model.run import Run, TraceWindow
from rankscope.model.table import CPU_DEVICE, TraceTable

DeviceName = int | Literal["cpu"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceEvents:
    """Rows of a window's table that are time on one device.

    Attributes:
        window: the recorded window.
        device: device number, or "cpu" on a CPU-only run.
        compute, communication, memory: int64 rows, in order of start.
    """

    window: TraceWindow
    device: DeviceName
    compute: Int64
    communication: Int64
    memory: Int64

    @property
    def table(self) -> TraceTable:
        """The window's table."""
        return self.window.table

    def host_times(self, rows: Int64) -> Int64:
        """When the host issued each row, int64[k] ns: start of its launch; NO_TIME without a launch row.

        On a CPU-only run a row is issued where it starts.
        """
        if self.device == "cpu":
            return self.table.start_ns[rows]
        launches = find_launches(self.table, rows)
        times: Int64 = np.where(launches == NO_ROW, NO_TIME, self.table.start_ns[np.maximum(launches, 0)])
        return times


NO_TIME = np.iinfo(np.int64).min


def device_events(run: Run) -> tuple[DeviceEvents, ...]:
    """Events of every window on every device, in order of rank, window and device.

    A window without events on any device yields nothing.
    """
    cpu_only = run.is_cpu_only
    events = (
        [_cpu_events(w) for w in run.windows]
        if cpu_only
        else [e for w in run.windows for e in _gpu_events(w)]
    )
    return tuple(e for e in events if len(e.compute) + len(e.communication) + len(e.memory))


def _gpu_events(window: TraceWindow) -> list[DeviceEvents]:
    table = window.table
    return [
        DeviceEvents(
            window=window,
            device=device,
            compute=table.rows_of_class(EventClass.COMPUTE, device),
            communication=_in_order(table, table.rows_of_class(EventClass.COMMUNICATION, device)),
            memory=table.rows_of_class(EventClass.MEMORY, device),
        )
        for device in table.gpu_devices()
    ]


def _in_order(table: TraceTable, rows: Int64) -> Int64:
    """Rows by start; of those that start together the shorter one first, so that the order in the file says nothing."""
    order = np.lexsort((table.correlation[rows], table.duration_ns[rows], table.start_ns[rows]))
    ordered: Int64 = rows[order]
    return ordered


def _cpu_events(window: TraceWindow) -> DeviceEvents:
    table = window.table
    return DeviceEvents(
        window=window,
        device="cpu",
        compute=_outermost_operators(table),
        communication=_in_order(table, table.rows_of_class(EventClass.COMMUNICATION, CPU_DEVICE)),
        memory=np.empty(0, np.int64),
    )


def _outermost_operators(table: TraceTable) -> Int64:
    """Host operators that lie in no other operator of their thread, without those that wait for a peer."""
    rows = table.rows_of_category(Category.CPU_OP)
    if len(rows) == 0:
        return rows
    order = rows[np.lexsort((-table.duration_ns[rows], table.start_ns[rows], table.lane[rows]))]
    outermost = np.zeros(len(order), bool)
    lanes = table.lane[order]
    for lane in np.unique(lanes):
        first, after = np.searchsorted(lanes, [lane, lane + 1])
        part = order[first:after]
        reach = np.maximum.accumulate(table.ends_of(part))
        outermost[first] = True
        # One that only crosses the end of an earlier one does not lie in it.
        beyond = (table.start_ns[part[1:]] >= reach[:-1]) | (table.ends_of(part[1:]) > reach[:-1])
        outermost[first + 1 : after] = beyond
    blocking = np.isin(order, table.rows_named(BLOCKING_HOST_OPS))
    kept: Int64 = np.sort(order[outermost & ~blocking])
    return kept


def leaf_operators(table: TraceTable) -> Int64:
    """Host operators that hold no other operator of their thread: where the host really computes.

    A row of the autograd engine holds the operators of a node, and the hooks that Python runs beside them.
    """
    operators = table.category == Category.CPU_OP
    rows = np.empty(np.count_nonzero(operators), np.int64)
    filled = 0
    for part in parts(len(table)):
        few = np.flatnonzero(operators[part]) + part.start
        rows[filled : filled + len(few)] = table.lane[few].astype(np.int64) << ROW_BITS | few
        filled += len(few)
    del operators
    rows.sort()
    threads = np.searchsorted(rows, np.arange(1, len(table.lanes)) << ROW_BITS)
    rows &= (1 << ROW_BITS) - 1
    leaves: Int64 = np.concatenate([_leaves_of_thread(table, own) for own in np.split(rows, threads)])
    leaves.sort()
    return leaves


def _leaves_of_thread(table: TraceTable, rows: Int64) -> Int64:
    if len(rows) == 0:
        return rows
    start = table.start_ns[rows]
    equal = np.flatnonzero(start[1:] == start[:-1])
    if len(equal):  # of those that start together the longest holds the others
        tied = np.union1d(equal, equal + 1)
        rows = rows.copy()
        rows[tied] = rows[tied][np.lexsort((-table.duration_ns[rows[tied]], start[tied]))]
    is_leaf = np.ones(len(rows), bool)
    for part in parts(len(rows) - 1):
        is_leaf[part] = start[part.start + 1 : part.stop + 1] >= table.ends_of(rows[part])
    leaves: Int64 = rows[is_leaf]
    return leaves
