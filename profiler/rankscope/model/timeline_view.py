"""A part of a timeline as it is drawn: what lies in view, with what is narrower than a pixel drawn together."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from rankscope.model.intervals import Int64
from rankscope.model.table import Int32
from rankscope.model.timeline import MERGED_NAME, Timeline, TimelineLane

MOST_TRACKS = 6
"""Tracks of a lane; events nested deeper share the last one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineCut:
    """What a timeline shows between two times.

    Attributes:
        timeline: the events in view; its names are those in use, its span is the whole timeline's.
        counts: per lane int32[n], number of events that each drawn one stands for.
        start_ns, end_ns: the part that was cut out.
        part_ns: events shorter than this are drawn together.
    """

    timeline: Timeline
    counts: tuple[Int32, ...]
    start_ns: int
    end_ns: int
    part_ns: int


def split_tracks(timeline: Timeline) -> Timeline:
    """The timeline with lanes in which no two events overlap: nested ones follow as further lanes of the same name.

    Events nested deeper than `MOST_TRACKS` stay on the last track and overlap there.
    """
    return replace(timeline, lanes=tuple(track for lane in timeline.lanes for track in _split_lane(lane)))


def _split_lane(lane: TimelineLane) -> Iterable[TimelineLane]:
    ends = lane.starts_ns + lane.durations_ns
    if len(lane) < 2 or (np.maximum.accumulate(ends)[:-1] <= lane.starts_ns[1:]).all():
        return (lane,)
    track = np.empty(len(lane), np.int8)
    free = [-(1 << 62)] * MOST_TRACKS
    for i, (start, end) in enumerate(zip(lane.starts_ns.tolist(), ends.tolist(), strict=True)):
        place = next((t for t, taken_until in enumerate(free) if taken_until <= start), MOST_TRACKS - 1)
        free[place] = max(free[place], end)
        track[i] = place
    return [_take(lane, np.flatnonzero(track == t)) for t in range(int(track.max()) + 1)]


def _take(lane: TimelineLane, rows: Int64) -> TimelineLane:
    return replace(
        lane,
        starts_ns=lane.starts_ns[rows],
        durations_ns=lane.durations_ns[rows],
        names=lane.names[rows],
        classes=lane.classes[rows],
    )


def cut(
    timeline: Timeline,
    start_ns: int,
    end_ns: int,
    *,
    parts: int,
    ranks: Collection[int] | None = None,
    most_events: int = 60_000,
) -> TimelineCut:
    """The events between two times, where no more than about two per part, lane and class remain.

    The span is cut into equal parts. In each, the events of one lane and class that are shorter than a part
    become one that starts with the first and is as long as all of them together, so that no time is invented.

    Args:
        timeline: the timeline; lanes sorted by start.
        start_ns, end_ns: the part wanted, relative to the timeline's origin.
        parts: number of parts, such as pixels; at least 1.
        ranks: the ranks wanted; all unless given.
        most_events: the parts grow until no more events remain, where that can be.
    """
    end_ns = max(end_ns, start_ns + 1)
    lanes = [lane for lane in timeline.lanes if ranks is None or lane.rank in ranks]
    inside = [_in_view(lane, start_ns, end_ns) for lane in lanes]
    part_ns = max(-(-(end_ns - start_ns) // max(parts, 1)), 1)
    merged_name = len(timeline.names)
    drawn = [_merge(lane, start_ns, part_ns, merged_name) for lane in inside]
    while sum(len(lane) for lane, _ in drawn) > most_events and part_ns < end_ns - start_ns:
        part_ns *= 2
        drawn = [_merge(lane, start_ns, part_ns, merged_name) for lane in inside]
    shown = replace(timeline, lanes=tuple(lane for lane, _ in drawn), names=(*timeline.names, MERGED_NAME))
    return TimelineCut(
        timeline=replace(_keep_used_names(shown), merged=any((counts > 1).any() for _, counts in drawn)),
        counts=tuple(counts for _, counts in drawn),
        start_ns=start_ns,
        end_ns=end_ns,
        part_ns=part_ns,
    )


def _in_view(lane: TimelineLane, start_ns: int, end_ns: int) -> TimelineLane:
    ends = lane.starts_ns + lane.durations_ns
    last = int(np.searchsorted(lane.starts_ns, end_ns, side="left"))
    return _take(lane, np.flatnonzero(ends[:last] > start_ns))


def _merge(lane: TimelineLane, start_ns: int, part_ns: int, merged_name: int) -> tuple[TimelineLane, Int32]:
    is_short = lane.durations_ns < part_ns
    if not is_short.any():
        return lane, np.ones(len(lane), np.int32)
    groups = [
        _merge_class(lane, np.flatnonzero(is_short & (lane.classes == c)), start_ns, part_ns)
        for c in np.unique(lane.classes)
    ]
    long = np.flatnonzero(~is_short)
    rows = np.concatenate([long, *(first for first, _, _ in groups)])
    durations = np.concatenate([lane.durations_ns[long], *(duration for _, duration, _ in groups)])
    counts = np.concatenate([np.ones(len(long), np.int64), *(count for _, _, count in groups)])
    order = np.argsort(lane.starts_ns[rows], kind="stable")
    rows, durations, counts = rows[order], durations[order], counts[order].astype(np.int32)
    names = np.where(counts > 1, np.int32(merged_name), lane.names[rows]).astype(np.int32)
    return replace(_take(lane, rows), durations_ns=durations, names=names), counts


def _merge_class(lane: TimelineLane, rows: Int64, start_ns: int, part_ns: int) -> tuple[Int64, Int64, Int64]:
    """Of each part: its first row, the time of its events together, and their number."""
    if len(rows) == 0:
        return rows, rows, rows
    part = (lane.starts_ns[rows] - start_ns) // part_ns
    first = np.flatnonzero(np.concatenate([[True], part[1:] != part[:-1]]))
    durations = lane.durations_ns[rows]
    ends = np.maximum.reduceat(lane.starts_ns[rows] + durations, first)
    busy = np.add.reduceat(durations, first)
    # Where events overlap: together no longer than from the first start to the last end.
    together = np.minimum(busy, ends - lane.starts_ns[rows[first]])
    return rows[first], together, np.diff(np.append(first, len(rows)))


def _keep_used_names(timeline: Timeline) -> Timeline:
    used = np.zeros(len(timeline.names), bool)
    for lane in timeline.lanes:
        used[lane.names] = True
    number: npt.NDArray[np.int32] = (np.cumsum(used) - 1).astype(np.int32)
    return replace(
        timeline,
        lanes=tuple(replace(lane, names=number[lane.names]) for lane in timeline.lanes),
        names=tuple(timeline.names[i] for i in np.flatnonzero(used).tolist()),
    )
