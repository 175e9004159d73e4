"""Which row launched what runs on the device: joins of device rows with host rows."""

from __future__ import annotations

import numpy as np

from rankscope.model.categories import Category
from rankscope.model.intervals import Int64
from rankscope.model.parts import parts
from rankscope.model.table import TraceTable

NO_ROW = -1
ROW_BITS = 32
"""Bits for a row where a row and a number are sorted as one number, in place: of large files that spares memory.

Both fit: a file of `DEFAULT_MAX_UNPACKED_BYTES` has fewer rows than 2**32, and launches fewer kernels than 2**31.
"""


def find_launches(table: TraceTable, rows: Int64) -> Int64:
    """Launch row of each device row, by correlation id.

    Many device rows may share one launch (a CUDA graph replay). Where an id occurs in several launches, as
    in merged traces, the last one that starts at or before the device row counts, else the first.

    Args:
        table: one trace file.
        rows: int64[k], device rows.

    Returns:
        int64[k], rows of the runtime category; NO_ROW where the trace holds none.
    """
    wanted = table.correlation[rows]
    ids = np.unique(wanted[wanted > 0])
    if len(ids) == 0:
        return np.full(len(rows), NO_ROW, np.int64)
    launches = _launches_of(table, ids)
    if len(launches) == 0:
        return np.full(len(rows), NO_ROW, np.int64)
    key = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    del ids
    key <<= ROW_BITS
    place = np.searchsorted(launches, key)  # the first launch with the id
    key |= np.searchsorted(
        table.start_ns, table.start_ns[rows], side="right"
    )  # how many rows have started by then
    np.maximum(place, np.searchsorted(launches, key) - 1, out=place)
    np.minimum(place, len(launches) - 1, out=place)
    found: Int64 = launches[place]
    del place
    absent = (found >> ROW_BITS != key >> ROW_BITS) | (wanted <= 0)
    found &= (1 << ROW_BITS) - 1
    found[absent] = NO_ROW
    return found


def _launches_of(table: TraceTable, ids: Int64) -> Int64:
    """Rows of the runtime category that carry one of some ids, each with the id's place before its own bits, in order.

    Args:
        table: one trace file.
        ids: distinct correlation ids, in order; one at least.
    """
    keys = []
    for part in parts(len(table)):  # most runtime rows launch nothing: few are held
        rows = np.flatnonzero(table.category[part] == Category.RUNTIME) + part.start
        place = np.searchsorted(ids, table.correlation[rows])
        carries = ids[np.minimum(place, len(ids) - 1)] == table.correlation[rows]
        keys.append(place[carries] << ROW_BITS | rows[carries])
    key = np.concatenate(keys)
    key.sort()
    return key


def find_enclosing(table: TraceTable, holders: Int64, rows: Int64) -> Int64:
    """For each row the innermost holder that contains its start on the same lane, else NO_ROW.

    Args:
        table: one trace file.
        holders: int64[h], rows that may contain others.
        rows: int64[k], host rows; NO_ROW entries find nothing.
    """
    found = np.full(len(rows), NO_ROW, np.int64)
    known = np.flatnonzero(rows != NO_ROW)
    if len(holders) == 0 or len(known) == 0:
        return found
    # Of two that start together the shorter is the inner one, and comes last.
    by_nesting = np.lexsort((-table.duration_ns[holders], table.start_ns[holders], table.lane[holders]))
    holders = holders[by_nesting]
    lanes, starts, ends = table.lane[holders], table.start_ns[holders], table.ends_of(holders)
    for lane in np.unique(table.lane[rows[known]]):
        first, after = np.searchsorted(lanes, [lane, lane + 1])
        if first == after:
            continue
        mine = known[table.lane[rows[known]] == lane]
        times = table.start_ns[rows[mine]]
        candidate = np.searchsorted(starts[first:after], times, side="right") - 1
        lane_ends = ends[first:after]
        outer = _nearest_with_later_end(lane_ends)
        while (over := (candidate >= 0) & (lane_ends[np.maximum(candidate, 0)] < times)).any():
            candidate[over] = outer[candidate[over]]
        inside = candidate >= 0
        found[mine[inside]] = holders[first + candidate[inside]]
    return found


def _nearest_with_later_end(ends: Int64) -> Int64:
    """int64[n], for each interval, in order of start, the nearest before it that ends later; NO_ROW if none."""
    nearest = np.full(len(ends), NO_ROW, np.int64)
    open_: list[tuple[int, int]] = []
    for i, end in enumerate(ends.tolist()):
        while open_ and open_[-1][1] <= end:
            open_.pop()
        if open_:
            nearest[i] = open_[-1][0]
        open_.append((i, end))
    return nearest
