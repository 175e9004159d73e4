"""Which row launched what runs on the device: joins of device rows with host rows."""

from __future__ import annotations

import numpy as np

from rankscope.model.categories import Category
from rankscope.model.intervals import Int64
from rankscope.model.table import TraceTable

NO_ROW = -1


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
    launches = table.rows_of_category(Category.RUNTIME)
    launches = launches[table.correlation[launches] > 0]
    found = np.full(len(rows), NO_ROW, np.int64)
    if len(launches) == 0 or len(rows) == 0:
        return found
    launches = launches[np.argsort(table.correlation[launches], kind="stable")]  # by start already
    ids = table.correlation[launches]
    wanted = table.correlation[rows]
    first = np.searchsorted(ids, wanted, side="left")
    known = np.flatnonzero((first < len(ids)) & (wanted > 0))
    known = known[ids[first[known]] == wanted[known]]
    found[known] = launches[first[known]]
    following = np.minimum(first[known] + 1, len(ids) - 1)
    several = known[(following > first[known]) & (ids[following] == wanted[known])]
    for i in several.tolist():
        candidates = launches[first[i] : np.searchsorted(ids, wanted[i], side="right")]
        before = np.searchsorted(table.start_ns[candidates], table.start_ns[rows[i]], side="right")
        found[i] = candidates[max(int(before) - 1, 0)]
    return found


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
