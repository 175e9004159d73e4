"""Arithmetic on sets of half-open intervals [start, end) of int64 nanoseconds, vectorised.

A set in normal form is a pair of equally long arrays, sorted, without touching or overlapping members and
without empty ones. All functions cost O(n log n) at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalSet:
    """A set of times in normal form: `starts` and `ends` are int64[n] nanoseconds, sorted and disjoint."""

    starts: Int64
    ends: Int64

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def length_ns(self) -> int:
        """Total time in the set, in nanoseconds."""
        return int((self.ends - self.starts).sum())


EMPTY = IntervalSet(starts=np.empty(0, np.int64), ends=np.empty(0, np.int64))


def union(starts: Int64, ends: Int64) -> IntervalSet:
    """The times covered by at least one of the intervals.

    Args:
        starts: int64[n], nanoseconds, in any order.
        ends: int64[n]; intervals with end <= start are empty and add nothing.

    >>> u = union(np.array([0, 5, 20]), np.array([10, 12, 30]))
    >>> u.starts.tolist(), u.ends.tolist(), u.length_ns
    ([0, 20], [12, 30], 22)
    """
    keep = ends > starts
    if not keep.all():
        starts, ends = starts[keep], ends[keep]
    if len(starts) == 0:
        return EMPTY
    if not (starts[1:] >= starts[:-1]).all():
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], ends[order]
    starts = starts.astype(np.int64, copy=False)
    reach = np.maximum.accumulate(ends).astype(np.int64, copy=False)
    opens = np.empty(len(starts), dtype=bool)
    opens[0] = True
    opens[1:] = starts[1:] > reach[:-1]
    closes = np.append(np.flatnonzero(opens)[1:] - 1, len(starts) - 1)
    return IntervalSet(starts=starts[opens], ends=reach[closes])


def merge(*sets: IntervalSet) -> IntervalSet:
    """The times in at least one of the sets.

    >>> merge(union(np.array([0]), np.array([2])), union(np.array([1]), np.array([5]))).length_ns
    5
    """
    merged = EMPTY
    for one in sets:
        merged = one if len(merged) == 0 else merged if len(one) == 0 else _merge_two(merged, one)
    return merged


def _merge_two(a: IntervalSet, b: IntervalSet) -> IntervalSet:
    # A start counts where the other set does not lead up to it, an end where the other does not go on.
    return IntervalSet(
        starts=_merge_times(
            _those_in(b, a.starts, "left", inside=False), _those_in(a, b.starts, "left", inside=False)
        ),
        ends=_merge_times(
            _those_in(b, a.ends, "right", inside=False), _those_in(a, b.ends, "right", inside=False)
        ),
    )


def intersect(a: IntervalSet, b: IntervalSet) -> IntervalSet:
    """The times in both sets.

    >>> intersect(union(np.array([0]), np.array([10])), union(np.array([4, 8]), np.array([6, 20]))).length_ns
    4
    """
    if len(a) == 0 or len(b) == 0:
        return EMPTY
    # Pieces begin at a start that lies in the other set, at its first moment or later; they end likewise.
    return IntervalSet(
        starts=_merge_times(_those_in(b, a.starts, "right"), _those_in(a, b.starts, "right")),
        ends=_merge_times(_those_in(b, a.ends, "left"), _those_in(a, b.ends, "left")),
    )


def _those_in(
    cover: IntervalSet, times: Int64, side: Literal["left", "right"], *, inside: bool = True
) -> Int64:
    """The times t with start <= t < end of an interval (side "right"), or start < t <= end (side "left").

    Or those that are in none.
    """
    bounds = np.empty(2 * len(cover), np.int64)
    bounds[0::2], bounds[1::2] = cover.starts, cover.ends
    found: Int64 = times[np.searchsorted(bounds, times, side) % 2 == (1 if inside else 0)]
    return found


def _merge_times(a: Int64, b: Int64) -> Int64:
    """The times of two sorted arrays, each once."""
    times = np.sort(np.concatenate([a, b]), kind="stable")  # merges what is sorted in parts
    merged: Int64 = times[np.append(True, times[1:] != times[:-1])[: len(times)]]
    return merged


def subtract(a: IntervalSet, b: IntervalSet) -> IntervalSet:
    """The times in `a` that are not in `b`.

    >>> rest = subtract(union(np.array([0]), np.array([10])), union(np.array([4]), np.array([6])))
    >>> rest.starts.tolist(), rest.ends.tolist()
    ([0, 6], [4, 10])
    """
    if len(a) == 0 or len(b) == 0:
        return a
    gaps = IntervalSet(
        starts=np.concatenate([[min(a.starts[0], b.starts[0]) - 1], b.ends]).astype(np.int64),
        ends=np.concatenate([b.starts, [max(a.ends[-1], b.ends[-1]) + 1]]).astype(np.int64),
    )
    return intersect(a, gaps)


def covered_ns(starts: Int64, ends: Int64, cover: IntervalSet) -> Int64:
    """Nanoseconds of each interval that lie in `cover`.

    Args:
        starts: int64[n], nanoseconds, in any order; intervals may overlap one another.
        ends: int64[n].
        cover: a set in normal form.

    Returns:
        int64[n], nanoseconds.

    >>> covered_ns(np.array([0, 5]), np.array([10, 6]), union(np.array([4]), np.array([8]))).tolist()
    [4, 1]
    """
    if len(cover) == 0 or len(starts) == 0:
        return np.zeros(len(starts), np.int64)
    covered: Int64 = np.maximum(_covered_before(ends, cover) - _covered_before(starts, cover), 0)
    return covered


def _covered_before(times: Int64, cover: IntervalSet) -> Int64:
    total_before = np.concatenate([[0], np.cumsum(cover.ends - cover.starts)]).astype(np.int64)
    index = np.searchsorted(cover.starts, times, side="right")
    last = np.maximum(index - 1, 0)
    partial = np.where(index > 0, np.minimum(times, cover.ends[last]) - cover.starts[last], 0)
    before: Int64 = total_before[last] + partial
    return before


def depth_at_least(starts: Int64, ends: Int64, depth: int) -> IntervalSet:
    """The times covered by at least `depth` of the intervals at once.

    >>> depth_at_least(np.array([0, 200]), np.array([600, 800]), 2).length_ns
    400
    """
    keep = ends > starts
    starts, ends = starts[keep], ends[keep]
    if len(starts) < depth:
        return EMPTY
    times = np.concatenate([starts, ends])
    steps = np.concatenate([np.ones(len(starts), np.int64), np.full(len(ends), -1, np.int64)])
    order = np.lexsort((steps, times))
    times, level = times[order], np.cumsum(steps[order])
    inside = np.flatnonzero(level[:-1] >= depth)
    return union(times[inside], times[inside + 1])
