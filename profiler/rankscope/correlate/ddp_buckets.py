"""Which communications are DDP buckets: gradient all-reduces that DDP's hook asked for.

A bucket's host row lies inside the AccumulateGrad row of its last parameter. The bitmap of used parameters lies there
too, and is an integer; broadcasts, SyncBatchNorm and tensor-parallel all-reduces lie elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankscope.correlate.communications import Communications
from rankscope.correlate.gradient_rows import GradientRows, count_forwards, find_gradients
from rankscope.correlate.launches import NO_ROW, find_enclosing
from rankscope.correlate.steps import OUTSIDE_STEPS, StepSpans
from rankscope.model.categories import Category
from rankscope.model.intervals import Bool, Int64

_INTEGERS = frozenset({"int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool"})
NO_GRADIENT = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketEvents:
    """DDP buckets of one window on one device, in the order in which the host asked for them.

    Attributes:
        index: int64[b], which of the window's communications each is.
        host_row: int64[b], the row that asked for it; NO_ROW without host operators.
        last_gradient: int64[b], the gradient whose hook asked for it, an index into `gradients`; NO_GRADIENT
            without host operators.
        step: int64[b], step number, -1 outside steps.
        backward: int64[b], which backward of the window, as in `GradientRows`.
        gradients: the window's gradients.
        by_host_rows: whether host rows identified them; else their sizes did (`buckets_by_sizes`).
    """

    index: Int64
    host_row: Int64
    last_gradient: Int64
    step: Int64
    backward: Int64
    gradients: GradientRows
    by_host_rows: bool

    def __len__(self) -> int:
        return len(self.index)


def find_buckets(communications: Communications, spans: StepSpans, step: Int64) -> BucketEvents:
    """The DDP buckets among a window's communications.

    Args:
        communications: one window on one device.
        spans: its steps.
        step: int64[k], step of each communication.
    """
    table = communications.events.table
    gradients = find_gradients(table, spans)
    if len(table.rows_of_category(Category.CPU_OP)) == 0:
        return _without_host_rows(communications, gradients, step)
    wanted = np.flatnonzero(_is_gradient_sum(communications))
    host = communications.host_row[wanted]
    host = np.where(host == NO_ROW, communications.launch_row[wanted], host)
    holders = find_enclosing(table, gradients.rows, host)
    inside = holders != NO_ROW
    index, host, holders = wanted[inside], host[inside], holders[inside]
    order = np.argsort(table.start_ns[host], kind="stable")
    index, host, holders = index[order], host[order], holders[order]
    place = np.searchsorted(gradients.rows, holders)
    return BucketEvents(
        index=index,
        host_row=host,
        last_gradient=place.astype(np.int64),
        step=step[index],
        backward=count_forwards(table, table.start_ns[host]),
        gradients=gradients,
        by_host_rows=True,
    )


def buckets_by_sizes(step: Int64, sizes: Int64) -> tuple[Bool, int] | None:
    """Which all-reduces are buckets, told by DDP's rebuild alone, and the first step after it; None if none shows.

    Before the rebuild one bucket holds every gradient; after it the same elements go out as the same several buckets
    in every step. No other use of all-reduce looks like that.

    Args:
        step: int64[k], step of each all-reduce, in order of time.
        sizes: int64[k], its size.

    >>> found = buckets_by_sizes(np.array([0, 1, 1, 2, 2]), np.array([9, 4, 5, 4, 5]))
    >>> found[0].tolist(), found[1]
    ([True, True, True, True, True], 1)
    >>> buckets_by_sizes(np.array([0, 0, 1, 1]), np.array([4, 5, 4, 5])) is None
    True
    """
    steps = [int(n) for n in np.unique(step) if n != OUTSIDE_STEPS]
    rows = [sizes[step == n].tolist() for n in steps]
    for i in range(len(steps) - 1):
        after = rows[i + 1]
        one_before = len(rows[i]) == 1 and len(after) > 1 and sum(after) == rows[i][0]
        if one_before and all(row == after for row in rows[i + 1 :]):
            return np.isin(step, steps[i:]), steps[i + 1]
    return None


def bucket_sizes(communications: Communications, index: Int64) -> Int64:
    """Bytes of each communication of `index`, 0 where unknown, int64[k]."""
    return np.array([communications.kinds[k].size_bytes or 0 for k in communications.kind[index]], np.int64)


def _without_host_rows(communications: Communications, gradients: GradientRows, step: Int64) -> BucketEvents:
    """Buckets of a trace that holds no host operators at all."""
    index = np.flatnonzero(_is_gradient_sum(communications))
    groups = {communications.kinds[k].group.identity for k in communications.kind[index]}
    found = buckets_by_sizes(step[index], bucket_sizes(communications, index)) if len(groups) == 1 else None
    index = index[:0] if found is None else index[found[0]]
    return BucketEvents(
        index=index,
        host_row=np.full(len(index), NO_ROW, np.int64),
        last_gradient=np.full(len(index), NO_GRADIENT, np.int64),
        step=step[index],
        backward=step[index],
        gradients=gradients,
        by_host_rows=False,
    )


def _is_gradient_sum(communications: Communications) -> Bool:
    """bool[k]: all-reduces of anything but integers."""
    fits = np.array([k.op == "all_reduce" and k.dtype not in _INTEGERS for k in communications.kinds], bool)
    return fits[communications.kind] if len(communications.kinds) else np.zeros(0, bool)
