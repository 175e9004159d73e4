"""Which events a timeline of one step shows, and on which lanes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from rankscope.correlate.clocks import Clocks, correction
from rankscope.correlate.device_events import DeviceEvents, device_events
from rankscope.correlate.steps import find_steps
from rankscope.model.categories import Category, EventClass
from rankscope.model.intervals import Int64, IntervalSet, subtract, union
from rankscope.model.run import Run, TraceWindow
from rankscope.model.table import Int32, Lane, TraceTable, UInt8
from rankscope.model.timeline import LaneKind, Timeline, TimelineLane, merge_short_events

EXPOSED_NAME = "exposed communication"

_NUMBER = re.compile(r"[0-9]+")
_LANE_ORDER: tuple[LaneKind, ...] = ("annotations", "device", "thread", "exposed")


def build_timeline(
    run: Run, *, step: int | None = None, max_events: int = 100_000, clocks: Clocks | None = None
) -> Timeline | None:
    """The events of one step on all ranks, or None if nothing was recorded in it.

    The timeline runs from the step's begin on the host to the end of the last device event that began before
    the step's end there. A device that lags behind its host still shows work of the step before. On one clock
    all ranks show the same time, from the first begin to the last end.

    Args:
        run: the run.
        step: number of the step; without it the middle one of those that most ranks recorded, and all of the
            recording where no step is marked.
        max_events: above this number, events of one class that are too short to be seen are merged.
        clocks: puts the ranks on one clock, by what holds at the step's begin; without it each keeps its own.
    """
    devices = device_events(run)
    shown = _choose_step(devices) if step is None else step
    timeline = _draw(devices, shown, clocks)
    return None if timeline is None else merge_short_events(timeline, max_events)


def build_whole_timeline(run: Run, clocks: Clocks | None = None) -> Timeline | None:
    """All events of all ranks, or None if there are none; on one clock if `clocks` are given."""
    return _draw(device_events(run), None, clocks)


def _draw(devices: Sequence[DeviceEvents], step: int | None, clocks: Clocks | None) -> Timeline | None:
    """The events of a step, of the whole recording for None."""
    spans = [_find_span(device, step) for device in devices]
    drawn = [(device, span) for device, span in zip(devices, spans, strict=True) if span is not None]
    if not drawn:
        return None
    shifts = {
        device.window.rank: _find_shift(clocks, device.window.rank, span.start) for device, span in drawn
    }
    if clocks is not None and all(clocks.is_tied(rank) for rank in shifts):
        drawn = _widen(drawn, shifts)
    drawing = _Drawing(
        origin=min(span.start - shifts[device.window.rank] for device, span in drawn), shifts=shifts
    )
    for device, span in drawn:
        drawing.add_device(device, span)
    # A window has one set of annotations, whatever the number of its devices.
    for window, span in {id(device.window): (device.window, span) for device, span in drawn}.values():
        drawing.add_annotations(window, span)
    return Timeline(
        origin_ns=drawing.origin,
        step=step,
        start_ns=0,
        end_ns=max(span.end - shifts[device.window.rank] for device, span in drawn) - drawing.origin,
        lanes=drawing.list_lanes(),
        names=tuple(drawing.names),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """A half-open range of absolute nanoseconds."""

    start: int
    end: int

    def meets(self, table: TraceTable) -> npt.NDArray[np.bool_]:
        """bool[n], rows of the table that lie at least partly in the span."""
        return (table.start_ns < self.end) & (table.end_ns > self.start)


def _widen(
    drawn: Sequence[tuple[DeviceEvents, _Span]], shifts: Mapping[int, int]
) -> list[tuple[DeviceEvents, _Span]]:
    """The same time of all ranks: hosts may be in the same step at quite different times."""
    start = min(span.start - shifts[device.window.rank] for device, span in drawn)
    end = max(span.end - shifts[device.window.rank] for device, span in drawn)
    return [
        (device, _Span(start=start + shifts[device.window.rank], end=end + shifts[device.window.rank]))
        for device, _ in drawn
    ]


def _find_shift(clocks: Clocks | None, rank: int, time_ns: int) -> int:
    """What to subtract from the times of a rank, in ns."""
    clock = None if clocks is None else clocks.of_rank.get(rank)
    return 0 if clock is None else int(correction(clock, np.array([time_ns]))[0])


def _choose_step(devices: Sequence[DeviceEvents]) -> int | None:
    counts = Counter(number for device in devices for number in find_steps(device.table).numbers.tolist())
    most = max(counts.values(), default=0)
    common = sorted(number for number, count in counts.items() if count == most)
    # The middle is neither the warm-up nor a step that the recording's end cuts off.
    return common[len(common) // 2] if common else None


def _find_span(device: DeviceEvents, step: int | None) -> _Span | None:
    table, rows = device.table, _list_rows(device)
    starts, ends = table.start_ns[rows], table.ends_of(rows)
    if step is None:
        return _Span(start=int(starts.min()), end=int(ends.max()))
    steps = find_steps(table)
    found = np.flatnonzero(steps.numbers == step)
    if len(found) == 0:
        return None
    start, end = int(steps.starts[found[0]]), int(steps.ends[found[0]])
    begun = (starts >= start) & (starts < end)
    return _Span(start=start, end=max(end, int(ends[begun].max()) if begun.any() else end))


def _list_rows(device: DeviceEvents) -> Int64:
    rows: Int64 = np.sort(np.concatenate([device.compute, device.communication, device.memory]))
    return rows


class _Drawing:
    """Lanes and names, filled device by device.

    Attributes:
        origin: absolute nanoseconds of the timeline's zero, on the common clock.
        shifts: rank -> nanoseconds to subtract from its own times.
        names: distinct names of events -> number.
    """

    def __init__(self, origin: int, shifts: Mapping[int, int]) -> None:
        self.origin = origin
        self.shifts = shifts
        self.names: dict[str, int] = {}
        self._parts: dict[tuple[int, LaneKind, str], list[TimelineLane]] = {}

    def add_device(self, device: DeviceEvents, span: _Span) -> None:
        """Adds a lane per stream or thread, and one with the exposed communication."""
        table = device.table
        rows = _list_rows(device)
        rows = rows[span.meets(table)[rows]]
        classes = table.event_class.copy()
        classes[device.compute] = EventClass.COMPUTE  # host operators, on a CPU-only run
        by_lane = rows[np.argsort(table.lane[rows], kind="stable")]
        for part in np.split(by_lane, np.flatnonzero(np.diff(table.lane[by_lane])) + 1):
            if len(part):
                label, kind = _describe_lane(table.lanes[int(table.lane[part[0]])])
                self._add(
                    device.window,
                    kind,
                    label,
                    table.start_ns[part],
                    table.ends_of(part),
                    self._number_names(table.names, table.name[part]),
                    classes[part],
                )
        exposed = _find_exposed(device, span)
        label = "exposed" if device.device == "cpu" else f"GPU {device.device} exposed"
        names = np.full(len(exposed), self.names.setdefault(EXPOSED_NAME, len(self.names)), np.int32)
        self._add(
            device.window,
            "exposed",
            label,
            exposed.starts,
            exposed.ends,
            names,
            np.full(len(exposed), EventClass.COMMUNICATION, np.uint8),
        )

    def add_annotations(self, window: TraceWindow, span: _Span) -> None:
        """Adds the user's own annotations on the host; communication of CPU-only runs is not among them."""
        table = window.table
        is_own = (table.category == Category.USER_ANNOTATION) & (table.event_class == EventClass.ANNOTATION)
        rows = np.flatnonzero(is_own & span.meets(table))
        self._add(
            window,
            "annotations",
            "annotations",
            table.start_ns[rows],
            table.ends_of(rows),
            self._number_names(table.names, table.name[rows]),
            table.event_class[rows],
        )

    def _number_names(self, table_names: Sequence[str], used: Int32) -> Int32:
        """int32[n]: the numbers here of names given as indices into `table_names`."""
        distinct, inverse = np.unique(used, return_inverse=True)
        texts = [table_names[index] for index in distinct.tolist()]
        numbers = [self.names.setdefault(text, len(self.names)) for text in texts]
        return np.array(numbers, np.int32)[inverse]

    def _add(
        self,
        window: TraceWindow,
        kind: LaneKind,
        label: str,
        starts: Int64,
        ends: Int64,
        names: Int32,
        classes: UInt8,
    ) -> None:
        if len(starts) == 0:
            return
        part = TimelineLane(
            rank=window.rank,
            label=label,
            kind=kind,
            starts_ns=starts - (self.origin + self.shifts[window.rank]),
            durations_ns=ends - starts,
            names=names,
            classes=classes,
        )
        self._parts.setdefault((window.rank, kind, label), []).append(part)

    def list_lanes(self) -> tuple[TimelineLane, ...]:
        """The lanes, by rank, kind and label; windows of a rank stand on one lane."""
        order = sorted(self._parts, key=lambda key: (key[0], _LANE_ORDER.index(key[1]), _pad_numbers(key[2])))
        return tuple(_join_parts(self._parts[key]) for key in order)


def _pad_numbers(label: str) -> str:
    """The label for sorting: stream 7 before stream 21."""
    return _NUMBER.sub(lambda match: match.group().zfill(20), label)


def _describe_lane(lane: Lane) -> tuple[str, LaneKind]:
    if lane.device is None:
        return f"thread {lane.tid}", "thread"
    return f"GPU {lane.device} stream {lane.tid if lane.stream is None else lane.stream}", "device"


def _find_exposed(device: DeviceEvents, span: _Span) -> IntervalSet:
    table = device.table
    times = [table.times_of(rows) for rows in (device.communication, device.compute)]
    exposed = subtract(*times)
    return union(np.maximum(exposed.starts, span.start), np.minimum(exposed.ends, span.end))


def _join_parts(parts: Sequence[TimelineLane]) -> TimelineLane:
    order = np.argsort(np.concatenate([part.starts_ns for part in parts]), kind="stable")
    return replace(
        parts[0],
        starts_ns=np.concatenate([part.starts_ns for part in parts])[order],
        durations_ns=np.concatenate([part.durations_ns for part in parts])[order],
        names=np.concatenate([part.names for part in parts])[order],
        classes=np.concatenate([part.classes for part in parts])[order],
    )
