"""Gradients of a window in the order in which they became ready: one AccumulateGrad row per parameter and backward.

The autograd engine evaluates `torch::autograd::AccumulateGrad` once for each parameter and backward; DDP's hook
runs inside that row, copies the gradient into its bucket, and asks for the all-reduce of a bucket that is full.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankscope.correlate.device_events import NO_TIME, DeviceEvents, leaf_operators
from rankscope.correlate.launches import NO_ROW, find_enclosing, find_launches
from rankscope.correlate.steps import StepSpans
from rankscope.model.categories import Category
from rankscope.model.collective import dtype_name
from rankscope.model.intervals import Int64
from rankscope.model.table import NO_ID, TraceTable

_ACCUMULATE = "torch::autograd::AccumulateGrad"
_EVALUATE = "autograd::engine::evaluate_function: " + _ACCUMULATE
_COPY_BACK = "torch.distributed.ddp.reducer::copy_bucket_to_grad"
_DDP_FORWARD = "DistributedDataParallel.forward"


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientRows:
    """Gradients of one window, in order of time.

    Attributes:
        rows: int64[g], the engine's row of each gradient; DDP's hook runs inside it.
        elements: int64[g], elements of the gradient; NO_ID without recorded shapes.
        dtype: PyTorch's name of each element type; None without recorded shapes.
        step: int64[g], step number, -1 outside steps.
        backward: int64[g], which backward of the window: the number of DDP forwards that began before it.
    """

    rows: Int64
    elements: Int64
    dtype: tuple[str | None, ...]
    step: Int64
    backward: Int64

    def __len__(self) -> int:
        return len(self.rows)


def find_gradients(table: TraceTable, spans: StepSpans) -> GradientRows:
    """The gradients of one window."""
    rows = _rows_named(table, _EVALUATE)
    inner = _rows_named(table, _ACCUMULATE)
    if len(rows) == 0:  # the engine's own rows are missing in old traces
        rows = inner
    elements, dtypes = _shapes(table, rows, inner)
    starts = table.start_ns[rows]
    return GradientRows(
        rows=rows,
        elements=elements,
        dtype=dtypes,
        step=spans.step_at(starts),
        backward=count_forwards(table, starts),
    )


def forward_rows(table: TraceTable) -> Int64:
    """Rows of the forwards of DDP modules, int64[f]."""
    return _rows_named(table, _DDP_FORWARD, Category.USER_ANNOTATION)


def count_forwards(table: TraceTable, times: Int64) -> Int64:
    """How many DDP forwards began at or before each time, int64[k]."""
    counts: Int64 = np.searchsorted(table.start_ns[forward_rows(table)], times, side="right").astype(np.int64)
    return counts


def device_ready_times(events: DeviceEvents, lanes: Int64, times: Int64) -> Int64:
    """End of the last compute or memory event that a thread launched before a time, int64[k] ns.

    Args:
        events: one window on one device (not the CPU).
        lanes: int64[k], lane of the thread.
        times: int64[k], host times in ns.

    Returns:
        NO_TIME where the thread had launched nothing yet.
    """
    table = events.table
    rows = np.concatenate([events.compute, events.memory])
    launches = find_launches(table, rows)
    rows, launches = rows[launches != NO_ROW], launches[launches != NO_ROW]
    ready = np.full(len(times), NO_TIME, np.int64)
    for lane in np.unique(lanes).tolist():
        mine = table.lane[launches] == lane
        order = np.lexsort((table.ends_of(rows[mine]), table.start_ns[launches[mine]]))
        issued = table.start_ns[launches[mine]][order]
        ends = table.ends_of(rows[mine])[order]
        wanted = np.flatnonzero(lanes == lane)
        last = np.searchsorted(issued, times[wanted], side="left") - 1
        ready[wanted[last >= 0]] = ends[last[last >= 0]]
    return ready


def host_ready_times(table: TraceTable, lanes: Int64, times: Int64) -> Int64:
    """End of the last host operator without others inside that a thread had finished at a time, int64[k] ns.

    Args:
        table: one CPU-only window.
        lanes: int64[k], lane of the thread.
        times: int64[k], host times in ns.

    Returns:
        NO_TIME where the thread had finished none yet.
    """
    leaves = leaf_operators(table)
    ready = np.full(len(times), NO_TIME, np.int64)
    for lane in np.unique(lanes).tolist():
        ends = np.sort(table.ends_of(leaves[table.lane[leaves] == lane]))
        wanted = np.flatnonzero(lanes == lane)
        last = np.searchsorted(ends, times[wanted], side="right") - 1
        ready[wanted[last >= 0]] = ends[last[last >= 0]]
    return ready


def find_copies_back(events: DeviceEvents) -> Int64:
    """Rows of copies from buckets to gradients, int64[k]: on the device, or the host's own on a CPU-only run.

    DDP copies every gradient back once its bucket has arrived, unless `gradient_as_bucket_view` is set.
    """
    table = events.table
    asked = _rows_named(table, _COPY_BACK)
    if events.device == "cpu":
        return asked
    rows = np.sort(np.concatenate([events.compute, events.memory]))
    copied: Int64 = rows[find_enclosing(table, asked, find_launches(table, rows)) != NO_ROW]
    return copied


def _rows_named(table: TraceTable, name: str, category: Category = Category.CPU_OP) -> Int64:
    rows = table.rows_named(frozenset({name}))
    found: Int64 = rows[table.category[rows] == category]
    return found


def _shapes(table: TraceTable, rows: Int64, inner: Int64) -> tuple[Int64, tuple[str | None, ...]]:
    """Elements and dtype of each gradient, from the operator inside its row."""
    elements = np.full(len(rows), NO_ID, np.int64)
    dtypes: list[str | None] = [None] * len(rows)
    arguments = table.arguments
    carried = inner[np.isin(inner, arguments.row)]
    holders = find_enclosing(table, rows, carried)
    carried, holders = carried[holders != NO_ROW], holders[holders != NO_ROW]
    at = np.searchsorted(arguments.row, carried)
    place = np.searchsorted(rows, holders)
    elements[place] = arguments.in_elements[at]
    for where, text in zip(place.tolist(), arguments.dtype[at].tolist(), strict=True):
        dtypes[where] = dtype_name(arguments.text(text))
    return elements, tuple(dtypes)
