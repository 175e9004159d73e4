"""What the host of a rank was doing at a time: the stage of the training step, and the annotation in which it was.

Stages come from what PyTorch itself annotates: the data loader, DDP's forward, the backward's rows, the optimizer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from rankscope.model.categories import Category
from rankscope.model.intervals import EMPTY, Int64, IntervalSet, intersect, merge, subtract, union
from rankscope.model.table import TraceTable

DATA_LOADING = "data loading"
FORWARD = "forward"
BACKWARD = "backward"
COMMUNICATION_HOOK = "communication hook"
OPTIMIZER = "optimizer"
OUTSIDE = "outside the training stages"

_LOADER = re.compile(r"^enumerate\(DataLoader\)|data_?load(?:er|ing)?\b|^dataloader", re.IGNORECASE)
_FORWARD = re.compile(
    r"^(?:DistributedDataParallel\.forward|FullyShardedDataParallel\.forward|FSDP::root_pre_forward)"
)
_OPTIMIZER = re.compile(r"^Optimizer\.(?:step|zero_grad)#")
_SKIPPED = re.compile(r"^(?:ProfilerStep#|nccl:|gloo:|mpi:|rccl:)")
_BACKWARD_ROW = "autograd::engine::evaluate_function: "
_ACCUMULATE_ROW = _BACKWARD_ROW + "torch::autograd::AccumulateGrad"
_ACCUMULATE = "torch::autograd::AccumulateGrad"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostStages:
    """Times of each stage on a rank's own clock; they do not overlap.

    Attributes:
        stages: name -> times, in the order in which a step passes them.
        annotations: name of a user annotation -> times in which it is the innermost one.
    """

    stages: dict[str, IntervalSet]
    annotations: dict[str, IntervalSet]


def find_host_stages(table: TraceTable, steps: tuple[Int64, Int64]) -> HostStages:
    """Stages and annotations of one window.

    Args:
        table: its rows.
        steps: (starts, ends) of the steps on the host, int64[s]; empty without step markers.
    """
    loading = _annotated(table, _LOADER)
    forward = _annotated(table, _FORWARD)
    optimizer = _annotated(table, _OPTIMIZER)
    hook = _communication_hook(table)
    backward = _backward(table, steps)
    taken = EMPTY
    stages = {}
    for name, times in (
        (COMMUNICATION_HOOK, hook),
        (DATA_LOADING, loading),
        (OPTIMIZER, optimizer),
        (FORWARD, forward),
        (BACKWARD, backward),
    ):
        stages[name] = subtract(times, taken)
        taken = merge(taken, times)
    return HostStages(stages=stages, annotations=_innermost(table))


def _annotated(table: TraceTable, pattern: re.Pattern[str]) -> IntervalSet:
    wanted = np.array([pattern.search(name) is not None for name in table.names], bool)
    if not wanted.any():
        return EMPTY
    rows = np.flatnonzero(wanted[table.name] & (table.category == Category.USER_ANNOTATION))
    return table.times_of(rows)


def _rows_with(table: TraceTable, matches: list[bool]) -> Int64:
    wanted = np.array(matches, bool)
    return np.flatnonzero(wanted[table.name]) if len(wanted) else np.empty(0, np.int64)


def _backward(table: TraceTable, steps: tuple[Int64, Int64]) -> IntervalSet:
    """From the first to the last row of the autograd engine in each step; the rows alone without step markers."""
    rows = _rows_with(table, [name.startswith(_BACKWARD_ROW) for name in table.names])
    starts, ends = table.start_ns[rows], table.ends_of(rows)
    step_starts, step_ends = steps
    if len(step_starts) == 0 or len(rows) == 0:
        return union(starts, ends)
    index = np.searchsorted(step_starts, starts, side="right") - 1
    inside = (index >= 0) & (starts < step_ends[np.maximum(index, 0)])
    first = np.full(len(step_starts), np.iinfo(np.int64).max)
    last = np.full(len(step_starts), np.iinfo(np.int64).min)
    np.minimum.at(first, index[inside], starts[inside])
    np.maximum.at(last, index[inside], ends[inside])
    found = first < last
    return union(first[found], last[found])


def _communication_hook(table: TraceTable) -> IntervalSet:
    """From where a gradient is accumulated to the end of its row in the engine: there DDP runs its hooks."""
    outer = _rows_with(table, [name == _ACCUMULATE_ROW for name in table.names])
    inner = _rows_with(table, [name == _ACCUMULATE for name in table.names])
    whole = table.times_of(outer)
    if len(outer) == 0 or len(inner) == 0:
        return EMPTY
    place = np.searchsorted(whole.starts, table.ends_of(inner), side="right") - 1
    good = place >= 0
    ends = whole.ends[np.maximum(place, 0)]
    good &= ends > table.ends_of(inner)
    return intersect(union(table.ends_of(inner)[good], ends[good]), whole)


def _innermost(table: TraceTable) -> dict[str, IntervalSet]:
    """Times in which each user annotation is the innermost one of its thread.

    Annotations on several threads count each on its own.
    """
    skipped = np.array([_SKIPPED.match(name) is not None for name in table.names], bool)
    rows = np.flatnonzero(table.category == Category.USER_ANNOTATION)
    rows = rows[~skipped[table.name[rows]]] if len(rows) else rows
    pieces: dict[str, list[tuple[int, int]]] = {}
    for lane in np.unique(table.lane[rows]):
        mine = rows[table.lane[rows] == lane]
        for name, start, end in _innermost_of_lane(table, mine):
            pieces.setdefault(name, []).append((start, end))
    return {
        name: union(np.array([s for s, _ in spans], np.int64), np.array([e for _, e in spans], np.int64))
        for name, spans in sorted(pieces.items())
    }


def _innermost_of_lane(table: TraceTable, rows: Int64) -> list[tuple[str, int, int]]:
    """(name, start, end) of the stretches in which each annotation is the innermost: the latest started."""
    order = rows[np.lexsort((-table.duration_ns[rows], table.start_ns[rows]))]
    stretches: list[tuple[str, int, int]] = []
    stack: list[tuple[str, int]] = []
    position = 0

    def close_until(time: int) -> None:
        nonlocal position
        while stack and stack[-1][1] <= time:
            name, end = stack.pop()
            if end > position:
                stretches.append((name, position, end))
                position = end

    for row in order.tolist():
        start, end = int(table.start_ns[row]), int(table.ends_of(row))
        close_until(start)
        if stack and start > position:
            stretches.append((stack[-1][0], position, start))
        position = max(position, start)
        stack.append((table.names[table.name[row]], end))
    close_until(np.iinfo(np.int64).max)
    return stretches
