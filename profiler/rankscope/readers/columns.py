"""Events to columns: numpy arrays per block, joined into one sorted `TraceTable` at the end."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankscope.model.categories import CATEGORY_OF_TEXT, GPU_CATEGORIES, Category, Classifier
from rankscope.model.intervals import Int64
from rankscope.model.parts import gather, parts
from rankscope.model.table import CPU_DEVICE, Lane, TraceTable
from rankscope.readers.argument_columns import ArgumentColumns
from rankscope.readers.event_decoding import (
    MAX_EXACT_FLOAT_US,
    NO_ARGUMENTS,
    SKIPPED_CATEGORIES,
    Event,
    EventArguments,
    Number,
    numbers_of,
    to_nanoseconds,
    whole_numbers,
)
from rankscope.readers.growing_column import GrowingColumn

_DIGITS = re.compile(r"\d{1,18}")

MAX_TIME_NS = 1 << 61
"""Limit of a time, a duration and a base time (the year 2043), so that no sum of the three leaves 64 bits."""

_NUMBER_OF_CATEGORIES = max(Category) + 1
_IS_GPU = np.zeros(_NUMBER_OF_CATEGORIES, bool)
_IS_GPU[[*GPU_CATEGORIES, Category.GPU_ANNOTATION]] = True


class _Numbering(dict[Any, int]):
    """Numbers things in the order in which they are first asked for."""

    def __missing__(self, key: object) -> int:
        number = self[key] = len(self)
        return number


class _CategoryNumbers(dict[Any, int]):
    """Category number of a `cat` text, case-blind; -1 for categories that are not kept."""

    def __missing__(self, key: object) -> int:
        text = key.lower() if isinstance(key, str) else ""
        number = -1 if text in SKIPPED_CATEGORIES else int(CATEGORY_OF_TEXT.get(text, Category.OTHER))
        self[key] = number
        return number


class _HostLanes(dict[tuple[Any, Any], int]):
    """Lane number of a host thread, by pid and tid."""

    def __init__(self, lanes: list[Lane]) -> None:
        self._lanes = lanes

    def __missing__(self, key: tuple[Any, Any]) -> int:
        number = self[key] = len(self._lanes)
        self._lanes.append(Lane(pid=key[0], tid=key[1]))
        return number


class _GpuLanes(dict[tuple[Any, Any, Any, Any], tuple[int, int]]):
    """Lane number and device number of a stream, by pid, tid, and the arguments device and stream."""

    def __init__(self, lanes: list[Lane]) -> None:
        self._lanes = lanes
        self._known: dict[Lane, int] = {}

    def __missing__(self, key: tuple[Any, Any, Any, Any]) -> tuple[int, int]:
        pid, tid, device, stream = key
        number = _small_int(device, pid)
        lane = Lane(pid=pid, tid=tid, device=number, stream=_small_int(stream, tid))
        if lane not in self._known:
            self._known[lane] = len(self._lanes)
            self._lanes.append(lane)
        found = self[key] = (self._known[lane], number if number is not None else 0)
        return found


@dataclass(slots=True, kw_only=True)
class BadEvents:
    """Events left out because they cannot be placed in time: how many, and the first of each kind."""

    without_times: int = 0
    first_without_times: str = ""
    negative: int = 0
    first_negative: str = ""

    def note_without_times(self, event: Event) -> None:
        """Count an event whose ts or dur is not a number."""
        self.without_times += 1
        if self.without_times == 1:
            self.first_without_times = f"{event.name!r}: ts={event.ts!r}, dur={event.dur!r}"

    def note_negative(self, event: Event) -> None:
        """Count an event whose duration is negative: it was still running when recording stopped."""
        self.negative += 1
        if self.negative == 1:
            self.first_negative = f"{event.name!r}: dur={event.dur!r}"

    def append(self, later: BadEvents) -> None:
        """Count those of the part of the file that follows too."""
        self.first_without_times = self.first_without_times or later.first_without_times
        self.first_negative = self.first_negative or later.first_negative
        self.without_times += later.without_times
        self.negative += later.negative


_DTYPES = {
    "start": np.int64,
    "duration": np.int64,
    "category": np.uint8,
    "name": np.int32,
    "lane": np.int32,
    "device": np.int16,
    "correlation": np.int64,
    "external": np.int64,
}

ExactTimes = Callable[[], list[tuple[Number, Number]]]


class TableBuilder:
    """Collects blocks of events and builds the table.

    Attributes:
        bad: what was left out.
        events: complete events seen, kept or not.
    """

    def __init__(self, classifier: Classifier) -> None:
        self.bad = BadEvents()
        self.events = 0
        self._classifier = classifier
        self._categories = _CategoryNumbers()
        self._names = _Numbering()
        self._lanes: list[Lane] = []
        self._host_lanes = _HostLanes(self._lanes)
        self._gpu_lanes = _GpuLanes(self._lanes)
        self._pieces = {key: GrowingColumn(dtype) for key, dtype in _DTYPES.items()}
        self._rows = 0
        self._arguments = ArgumentColumns()

    def add_block(self, events: list[Event], exact_times: ExactTimes) -> None:
        """Append the complete events of one block.

        Args:
            events: the decoded events.
            exact_times: gives (ts, dur) of the same events as decimal text, for times beyond a double.
        """
        self.events += len(events)
        kept = [event for event in events if event.ph == "X"]
        category = self._category_numbers(kept)
        if category.min(initial=0) < 0:
            kept = [event for event, number in zip(kept, category.tolist(), strict=True) if number >= 0]
            category = category[category >= 0]
        if not kept:
            return
        start, duration = self._times(kept, events, exact_times)
        good = self._drop_bad(kept, start, duration)
        if good is not None:
            kept = [kept[i] for i in good]
            start, duration, category = start[good], duration[good], category[good]
        if kept:
            self._append(kept, start, duration, category.astype(np.uint8))

    def _category_numbers(self, events: list[Event]) -> Any:
        """int8[n]: category of each event, -1 for those that are not kept."""
        numbers = map(self._categories.__getitem__, [event.cat for event in events])
        return np.fromiter(numbers, np.int8, len(events))

    def _times(self, kept: list[Event], events: list[Event], exact_times: ExactTimes) -> tuple[Int64, Int64]:
        """Start and duration of the kept events in ns; _NOWHERE where the text is not a number."""
        start = _fast_nanoseconds([event.ts for event in kept])
        duration = _fast_nanoseconds([event.dur for event in kept])
        if start is not None and duration is not None:
            return start, duration
        exact = exact_times()
        pairs = [exact[i] for i, e in enumerate(events) if e.ph == "X" and self._categories[e.cat] >= 0]
        return _exact_nanoseconds([ts for ts, _ in pairs]), _exact_nanoseconds([dur for _, dur in pairs])

    def _drop_bad(self, events: list[Event], start: Int64, duration: Int64) -> Int64 | None:
        """Indices of the events that can be placed in time, or None if all can."""
        placed = (start != _NOWHERE) & (duration != _NOWHERE)
        good = placed & (duration >= 0)
        if good.all():
            return None
        for i in np.flatnonzero(~placed):
            self.bad.note_without_times(events[i])
        for i in np.flatnonzero(placed & (duration < 0)):
            self.bad.note_negative(events[i])
        return np.flatnonzero(good)

    def _append(self, events: list[Event], start: Int64, duration: Int64, category: Any) -> None:
        # A column at a time: one attribute of all events costs a third of a tuple per event.
        names = [event.name or "" for event in events]
        name = np.fromiter(map(self._names.__getitem__, names), np.int32, len(events))
        arguments = [event.args or NO_ARGUMENTS for event in events]
        lane, device = self._lanes_of(events, arguments, category)
        pieces = self._pieces
        pieces["start"].append(start)
        pieces["duration"].append(duration)
        pieces["category"].append(category)
        pieces["name"].append(name)
        pieces["lane"].append(lane)
        pieces["device"].append(device)
        pieces["correlation"].append(whole_numbers([a.correlation for a in arguments]))
        pieces["external"].append(numbers_of(arguments, "external_id"))
        self._arguments.add_block(self._rows, names, name, arguments)
        self._rows += len(events)

    def _lanes_of(
        self, events: list[Event], arguments: list[EventArguments], category: Any
    ) -> tuple[Any, Any]:
        """Lane and device of each event, int32[n] and int16[n]."""
        lane = np.empty(len(events), np.int32)
        device = np.full(len(events), CPU_DEVICE, np.int16)
        on_gpu = _IS_GPU[category]
        for i in np.flatnonzero(on_gpu).tolist():
            event, args = events[i], arguments[i]
            lane[i], device[i] = self._gpu_lanes[event.pid, event.tid, args.device, args.stream]
        on_host = [event for event, gpu in zip(events, on_gpu.tolist(), strict=True) if not gpu]
        threads = zip([e.pid for e in on_host], [e.tid for e in on_host], strict=True)
        lane[~on_gpu] = np.fromiter(map(self._host_lanes.__getitem__, threads), np.int32, len(on_host))
        return lane, device

    def append(self, other: TableBuilder) -> None:
        """Take over all rows of the part of the file that follows; the other is empty afterwards."""
        name = np.array([self._names[text] for text in other._names], np.int32)
        lane = np.empty(len(other._lanes), np.int32)
        for thread, number in other._host_lanes.items():
            lane[number] = self._host_lanes[thread]
        for stream, (number, _) in other._gpu_lanes.items():
            lane[number] = self._gpu_lanes[stream][0]
        new_numbers = {"name": name, "lane": lane}
        for key, piece in self._pieces.items():
            for chunk in other._pieces[key].take_chunks():
                piece.append(new_numbers[key][chunk] if key in new_numbers else chunk)
        self._arguments.append(other._arguments, first_row=self._rows)
        self._rows += other._rows
        self.events += other.events
        self.bad.append(other.bad)

    def build(self, base_ns: int) -> TraceTable:
        """The table, sorted by start, times absolute: `base_ns` is added to every start."""
        start = self._pieces["start"].join()
        order = np.argsort(start, kind="stable")
        if len(order) < 1 << 32:
            order = order.astype(np.uint32)
        start = gather(start, order)
        start += np.int64(base_ns)
        # One column after the other, so that no more than one of them is held twice.
        columns = {key: gather(piece.join(), order) for key, piece in self._pieces.items() if key != "start"}
        arguments = self._arguments.build(order)
        del order
        names = tuple(self._names)
        lane, lanes = _in_order_of_use(columns["lane"], self._lanes)
        device = columns["device"]
        # An annotation's copy on the GPU is a label: it must not make its device count as one with work.
        device[columns["category"] == Category.GPU_ANNOTATION] = CPU_DEVICE
        return TraceTable(
            start_ns=start,
            duration_ns=columns["duration"],
            category=columns["category"],
            event_class=self._classes(names, columns["category"], columns["name"]),
            name=columns["name"],
            lane=lane,
            device=device,
            correlation=columns["correlation"],
            external_id=columns["external"],
            names=names,
            lanes=lanes,
            arguments=arguments,
        )

    def _classes(self, names: tuple[str, ...], category: Any, name: Any) -> Any:
        """uint8[n]: each distinct pair of category and name is classified once."""
        present = np.zeros((len(names), _NUMBER_OF_CATEGORIES), bool)
        for part in parts(len(name)):
            present[name[part], category[part]] = True
        class_of = np.zeros(present.shape, np.uint8)
        for name_index, number in np.argwhere(present).tolist():
            class_of[name_index, number] = self._classifier.classify(Category(number), names[name_index])
        classes = np.empty(len(name), np.uint8)
        for part in parts(len(name)):
            classes[part] = class_of[name[part], category[part]]
        return classes


_NOWHERE = np.iinfo(np.int64).min


def _fast_nanoseconds(microseconds: list[Number]) -> Int64 | None:
    """Exact nanoseconds where plain int64 or double arithmetic gives them, else None."""
    values = _numbers(microseconds)
    if values is None:
        return None
    if values.dtype == np.int64:
        limit = MAX_TIME_NS // 1000
        if values.min(initial=0) <= -limit or values.max(initial=0) >= limit:
            return None
        nanoseconds: Int64 = values * 1000
        return nanoseconds
    if values.dtype == np.float64 and bool((np.abs(values) < MAX_EXACT_FLOAT_US).all()):
        # Whole and fractional part apart: the product of the whole would be rounded a second time.
        whole = np.floor(values)
        exact: Int64 = whole.astype(np.int64) * 1000 + np.rint((values - whole) * 1000).astype(np.int64)
        return exact
    return None


def _exact_nanoseconds(texts: list[Number]) -> Int64:
    times = [to_nanoseconds(text) for text in texts]
    return np.array([_NOWHERE if t is None or abs(t) >= MAX_TIME_NS else t for t in times], np.int64)


def _in_order_of_use(lane: Any, lanes: list[Lane]) -> tuple[Any, tuple[Lane, ...]]:
    """Lane numbers and lanes, renumbered by the first row of each, however the file was cut into blocks."""
    first = np.full(len(lanes), len(lane))
    for part in reversed(parts(len(lane))):
        first[lane[part][::-1]] = np.arange(part.start, part.stop)[::-1]
    order = np.argsort(first, kind="stable")
    new = np.empty(len(lanes), np.int32)
    new[order] = np.arange(len(lanes), dtype=np.int32)
    renumbered = np.empty(len(lane), np.int32)
    for part in parts(len(lane)):
        renumbered[part] = new[lane[part]]
    return renumbered, tuple(lanes[i] for i in order)


def _numbers(values: list[Any]) -> Any:
    """int64[n] if all values are such integers, else float64[n] if they are numbers, else None."""
    # The array module takes no float for an integer, and is four times as fast as np.array on a list.
    try:
        return np.frombuffer(array("q", values), np.int64)
    except (TypeError, OverflowError):
        pass
    try:
        return np.frombuffer(array("d", values), np.float64)
    except (TypeError, OverflowError):
        return None


def _small_int(value: object, fallback: object) -> int | None:
    """A device or stream number from its argument, else from pid or tid, text like "stream 7" included."""
    for candidate in (value, fallback):
        if isinstance(candidate, int) and 0 <= candidate < 1 << 15:
            return candidate
        if isinstance(candidate, str):
            digits = _DIGITS.search(candidate)
            if digits and int(digits.group()) < 1 << 15:
                return int(digits.group())
    return None
