"""The events of one step as they are drawn: lanes of rectangles on one time axis."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from rankscope.model.intervals import Int64
from rankscope.model.table import Int32, UInt8

LaneKind = Literal["device", "thread", "exposed", "annotations"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineLane:
    """Events that are drawn beside one another, sorted by start.

    Attributes:
        rank: global rank.
        label: what the lane is, without the rank: "GPU 0 stream 7", "thread 1234".
        kind: "device" - a stream; "thread" - a host thread of a CPU-only run; "exposed" - the times in which
            communication runs and nothing is computed; "annotations" - the user's own on the host.
        starts_ns: int64[n], relative to the timeline's origin; negative if an event began before it.
        durations_ns: int64[n].
        names: int32[n], index into the timeline's names.
        classes: uint8[n], an `EventClass`.
    """

    rank: int
    label: str
    kind: LaneKind
    starts_ns: Int64
    durations_ns: Int64
    names: Int32
    classes: UInt8

    def __len__(self) -> int:
        return len(self.starts_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The lanes of all ranks during one step.

    Attributes:
        origin_ns: absolute nanoseconds of the timeline's zero.
        step: number of the step; None where the traces mark none, and then all of the recording is here.
        start_ns, end_ns: the span to show, relative to the origin.
        lanes: sorted by rank.
        names: distinct names of events, as the traces write them.
        merged: True if events too short to be seen were drawn together to keep their number down.
    """

    origin_ns: int
    step: int | None
    start_ns: int
    end_ns: int
    lanes: tuple[TimelineLane, ...]
    names: tuple[str, ...]
    merged: bool = False

    def __len__(self) -> int:
        return sum(len(lane) for lane in self.lanes)


MERGED_NAME = "(several short events)"

_FINEST_PARTS = 1 << 16
"""Merging starts with the span cut into this many parts, finer than any screen."""


def merge_short_events(timeline: Timeline, max_events: int) -> Timeline:
    """The timeline with at most `max_events` events, where that can be done.

    The span is cut into parts; in each part the events of one lane and class that are shorter than the part
    become one, as long as all of them together. The parts grow until the events are few enough, so that
    what is merged is as short as possible.

    Args:
        timeline: the timeline.
        max_events: greatest number of events wanted.
    """
    part_ns = max((timeline.end_ns - timeline.start_ns) // _FINEST_PARTS, 1)
    merged_name = len(timeline.names)
    merged = timeline
    while len(merged) > max_events and part_ns < 2 * max(timeline.end_ns - timeline.start_ns, 1):
        # Always from the original: merging what was merged would join events across long gaps.
        merged = replace(
            timeline,
            lanes=tuple(_merge_lane(lane, part_ns, merged_name) for lane in timeline.lanes),
            names=(*timeline.names, MERGED_NAME),
            merged=True,
        )
        part_ns *= 2
    return merged


def _merge_lane(lane: TimelineLane, part_ns: int, merged_name: int) -> TimelineLane:
    is_short = lane.durations_ns < part_ns
    part = np.where(is_short, lane.starts_ns // part_ns, 0)
    # A long event is a group of its own; numbering them apart keeps one call for both.
    apart = np.where(is_short, -1, np.arange(len(lane)))
    order = np.lexsort((lane.starts_ns, apart, lane.classes, part))
    keys = np.stack([part[order], lane.classes[order].astype(np.int64), apart[order]])
    opens = np.ones(len(lane), dtype=bool)
    opens[1:] = (keys[:, 1:] != keys[:, :-1]).any(axis=0)
    first = np.flatnonzero(opens)
    counts = np.diff(np.append(first, len(lane)))
    rows = order[first]
    durations, names = lane.durations_ns[rows], lane.names[rows]
    if len(first):
        ends = np.maximum.reduceat((lane.starts_ns + lane.durations_ns)[order], first)
        busy = np.add.reduceat(lane.durations_ns[order], first)
        # Nested events: together no longer than from the first start to the last end.
        durations = np.minimum(busy, ends - lane.starts_ns[rows])
        names = np.where(counts > 1, merged_name, names).astype(np.int32)
    by_start = np.argsort(lane.starts_ns[rows], kind="stable")
    rows = rows[by_start]
    return replace(
        lane,
        starts_ns=lane.starts_ns[rows],
        durations_ns=durations[by_start],
        names=names[by_start],
        classes=lane.classes[rows],
    )
