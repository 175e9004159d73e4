"""A second way to measure: interval arithmetic on what the schedule lays out, written for these tests only."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from rankscope.testing.program import Collective, Compute, Copy, PointToPoint
from rankscope.testing.timeline import Timeline

Intervals = list[tuple[int, int]]
Figures = Callable[[Timeline, int], dict[str, int]]


@pytest.fixture
def figures() -> Figures:
    return _figures


def _figures(timeline: Timeline, rank: int) -> dict[str, int]:
    device = timeline.ranks[rank].device
    communication = _union(
        (d.start_ns, d.end_ns) for d in device if isinstance(d.item, (Collective, PointToPoint))
    )
    memory = _union((d.start_ns, d.end_ns) for d in device if isinstance(d.item, Copy))
    compute = _union((d.start_ns, d.end_ns) for d in device if isinstance(d.item, Compute))
    if timeline.backend == "gloo":
        compute = _union((h.start_ns, h.end_ns) for h in timeline.ranks[rank].host if h.kind == "operator")
    busy = _union([*communication, *memory, *compute])
    window = busy[-1][1] - busy[0][0]
    overlap = _shared(communication, compute)
    either = _union([*communication, *compute])
    total = sum(d.end_ns - d.start_ns for d in device if isinstance(d.item, Collective))
    return {
        "compute_ns": _length(compute),
        "communication_ns": _length(communication),
        "overlap_ns": overlap,
        "exposed_communication_ns": _length(communication) - overlap,
        "communication_self_overlap_ns": total - _length(communication),
        "memory_ns": _length(memory),
        "exposed_memory_ns": _length(memory) - _shared(memory, either),
        "window_ns": window,
        "idle_ns": window - _length(busy),
    }


def _union(intervals: Iterable[tuple[int, int]]) -> Intervals:
    merged: Intervals = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _length(intervals: Intervals) -> int:
    return sum(end - start for start, end in intervals)


def _shared(some: Intervals, others: Intervals) -> int:
    return sum(max(0, min(b, d) - max(a, c)) for a, b in some for c, d in others)
