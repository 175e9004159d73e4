"""Where DDP rebuilt its buckets: the steps before it are no guide to later ones.

After the first backward DDP knows the order in which gradients become ready. At the start of the next forward
it broadcasts that order, two small int32 tensors: one entry per parameter and one more, then one entry per
bucket (torch/csrc/distributed/c10d/reducer.cpp, sync_bucket_indices).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankscope.correlate.communications import Communications
from rankscope.correlate.gradient_rows import forward_rows
from rankscope.correlate.launches import NO_ROW
from rankscope.correlate.steps import OUTSIDE_STEPS, StepSpans
from rankscope.model.intervals import Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuild:
    """The rebuild in one window.

    Attributes:
        step: number of the first step with the new buckets.
        index: int64[b], the broadcasts, as indices into the communications.
    """

    step: int
    index: Int64


def find_rebuild(communications: Communications, spans: StepSpans) -> Rebuild | None:
    """The rebuild of DDP's buckets in a window, or None; the last one if there are several modules."""
    small = [
        i
        for i, kind in enumerate(communications.kinds)
        if kind.op == "broadcast" and kind.dtype == "int32" and kind.size_bytes is not None
    ]
    index = np.flatnonzero(np.isin(communications.kind, np.array(small, np.int64)))
    forward = _forward_of(communications, index)
    pairs = _pairs(communications, index[forward >= 0], forward[forward >= 0])
    if len(pairs) == 0:
        return None
    times = communications.events.host_times(communications.rows[pairs])
    steps = spans.step_at(times)
    if (steps == OUTSIDE_STEPS).any():
        return None
    return Rebuild(step=int(steps.max()), index=pairs)


def _pairs(communications: Communications, index: Int64, forward: Int64) -> Int64:
    """Those of `index` that come in pairs, in one forward, of which the second is no larger than the first."""
    sizes = [communications.kinds[k].size_bytes or 0 for k in communications.kind[index]]
    paired: list[int] = []
    i = 0
    while i + 1 < len(index):
        if forward[i] == forward[i + 1] and 0 < sizes[i + 1] <= sizes[i]:
            paired += [int(index[i]), int(index[i + 1])]
            i += 2
        else:
            i += 1
    return np.array(paired, np.int64)


def _forward_of(communications: Communications, index: Int64) -> Int64:
    """Number of the DDP forward in which each of `index` was launched, -1 if in none."""
    table = communications.events.table
    forwards = forward_rows(table)
    if len(forwards) == 0 or len(index) == 0:
        return np.full(len(index), -1, np.int64)
    launches = communications.launch_row[index]
    own = communications.events.host_times(communications.rows[index])
    times = np.where(launches == NO_ROW, own, table.start_ns[np.maximum(launches, 0)])
    starts, ends = table.start_ns[forwards], table.ends_of(forwards)
    last = np.searchsorted(starts, times, side="right") - 1
    inside = (last >= 0) & (times < ends[np.maximum(last, 0)])
    return np.where(inside, last, -1)
