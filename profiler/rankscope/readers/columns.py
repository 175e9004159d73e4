"""Events to columns: numpy arrays per block, joined into one sorted `TraceTable` at the end."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from rankscope.model.categories import CATEGORY_OF_TEXT, Category, Classifier
from rankscope.model.intervals import Int64
from rankscope.model.table import CPU_DEVICE, NO_ID, Lane, TraceTable
from rankscope.readers.argument_columns import ArgumentColumns
from rankscope.readers.event_decoding import (
    MAX_EXACT_FLOAT_US,
    NO_ARGUMENTS,
    Event,
    EventArguments,
    Number,
    to_nanoseconds,
    whole_number,
)

_SKIPPED_CATEGORIES = frozenset({"python_function", "trace"})
_GPU = frozenset(
    {int(Category.KERNEL), int(Category.MEMCPY), int(Category.MEMSET), int(Category.GPU_ANNOTATION)}
)
_DIGITS = re.compile(r"\d{1,18}")

MAX_TIME_NS = 1 << 61
"""Limit of a time, a duration and a base time (the year 2043), so that no sum of the three leaves 64 bits."""

_NUMBER_OF_CATEGORIES = max(Category) + 1

_fields = attrgetter("cat", "name", "pid", "tid", "ts", "dur", "args")


class _Numbering(dict[Any, int]):
    """Numbers things in the order in which they are first asked for."""

    def __missing__(self, key: object) -> int:
        number = self[key] = len(self)
        return number


class _CategoryNumbers(dict[Any, int]):
    """Category number of a `cat` text, case-blind; -1 for categories that are not kept."""

    def __missing__(self, key: object) -> int:
        text = key.lower() if isinstance(key, str) else ""
        number = -1 if text in _SKIPPED_CATEGORIES else int(CATEGORY_OF_TEXT.get(text, Category.OTHER))
        self[key] = number
        return number


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
        self._lanes = _Numbering()
        self._pieces: dict[str, list[Any]] = {
            key: []
            for key in ("start", "duration", "category", "name", "lane", "device", "correlation", "external")
        }
        self._rows = 0
        self._arguments = ArgumentColumns()

    def add_block(self, events: list[Event], exact_times: ExactTimes) -> None:
        """Append the complete events of one block.

        Args:
            events: the decoded events.
            exact_times: gives (ts, dur) of the same events as decimal text, for times beyond a double.
        """
        categories = self._categories
        index = [i for i, e in enumerate(events) if e.ph == "X" and categories[e.cat] >= 0]
        self.events += len(events)
        if not index:
            return
        kept = events if len(index) == len(events) else [events[i] for i in index]
        start, duration = _times(kept, index, exact_times)
        good = self._drop_bad(kept, start, duration)
        if good is not None:
            kept = [kept[i] for i in good]
            start, duration = start[good], duration[good]
        if kept:
            self._append(kept, start, duration)

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

    def _append(self, events: list[Event], start: Int64, duration: Int64) -> None:
        cats, names, pids, tids, _, _, args = zip(*map(_fields, events), strict=True)
        arguments: list[EventArguments] = [a or NO_ARGUMENTS for a in args]
        category = np.fromiter(map(self._categories.__getitem__, cats), np.uint8, len(events))
        lane, device = self._lanes_of(category, pids, tids, arguments)
        numbers, text = self._names, "" if None in names else None
        name = np.fromiter(
            (numbers[n or ""] for n in names) if text is not None else map(numbers.__getitem__, names),
            np.int32,
            len(events),
        )
        pieces = self._pieces
        pieces["start"].append(start)
        pieces["duration"].append(duration)
        pieces["category"].append(category)
        pieces["name"].append(name)
        pieces["lane"].append(lane)
        pieces["device"].append(device)
        pieces["correlation"].append(_ids([a.correlation for a in arguments]))
        pieces["external"].append(
            _ids([a.external_id if a.external_id is not None else a.old_external_id for a in arguments])
        )
        self._arguments.add_block(self._rows, names, arguments)
        self._rows += len(events)

    def _lanes_of(
        self,
        category: Any,
        pids: tuple[Any, ...],
        tids: tuple[Any, ...],
        arguments: list[EventArguments],
    ) -> tuple[Any, Any]:
        lanes = self._lanes
        lane = np.empty(len(pids), np.int32)
        device = np.full(len(pids), CPU_DEVICE, np.int16)
        on_gpu = [c in _GPU for c in category.tolist()]
        for i, (gpu, pid, tid, args) in enumerate(zip(on_gpu, pids, tids, arguments, strict=True)):
            if gpu:
                number = _small_int(args.device, pid)
                lane[i] = lanes[pid, tid, number, _small_int(args.stream, tid)]
                device[i] = number if number is not None else 0
            else:
                lane[i] = lanes[pid, tid, None, None]
        return lane, device

    def build(self, base_ns: int) -> TraceTable:
        """The table, sorted by start, times absolute: `base_ns` is added to every start."""
        start = self._join("start")
        order = np.argsort(start, kind="stable")
        start = start[order]
        start += np.int64(base_ns)
        # One column after the other, so that no more than one of them is held twice.
        columns = {key: self._join(key)[order] for key in self._pieces if key != "start"}
        arguments = self._arguments.build(order)
        del order
        names = tuple(self._names)
        device = columns["device"]
        # An annotation's copy on the GPU is a label: it must not make its device count as one with work.
        device[columns["category"] == Category.GPU_ANNOTATION] = CPU_DEVICE
        return TraceTable(
            start_ns=start,
            duration_ns=columns["duration"],
            category=columns["category"],
            event_class=self._classes(names, columns["category"], columns["name"]),
            name=columns["name"],
            lane=columns["lane"],
            device=device,
            correlation=columns["correlation"],
            external_id=columns["external"],
            names=names,
            lanes=tuple(Lane(pid=p, tid=t, device=d, stream=s) for p, t, d, s in self._lanes),
            arguments=arguments,
        )

    def _join(self, key: str) -> Any:
        pieces = self._pieces[key]
        joined = np.concatenate(pieces) if pieces else np.empty(0, _DTYPES[key])
        pieces.clear()
        return joined

    def _classes(self, names: tuple[str, ...], category: Any, name: Any) -> Any:
        """uint8[n]: each distinct pair of category and name is classified once."""
        present = np.zeros((len(names), _NUMBER_OF_CATEGORIES), bool)
        present[name, category] = True
        class_of = np.zeros(present.shape, np.uint8)
        for name_index, number in np.argwhere(present).tolist():
            class_of[name_index, number] = self._classifier.classify(Category(number), names[name_index])
        return class_of[name, category]


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

_NOWHERE = np.iinfo(np.int64).min


def _times(events: list[Event], index: list[int], exact_times: ExactTimes) -> tuple[Int64, Int64]:
    """Start and duration in ns; _NOWHERE where the text is not a number."""
    start = _fast_nanoseconds([e.ts for e in events])
    duration = _fast_nanoseconds([e.dur for e in events])
    if start is None or duration is None:
        exact = exact_times()
        pairs = [exact[i] for i in index] if exact else [(e.ts, e.dur) for e in events]
        start = _exact_nanoseconds([ts for ts, _ in pairs])
        duration = _exact_nanoseconds([dur for _, dur in pairs])
    return start, duration


def _fast_nanoseconds(microseconds: list[Number]) -> Int64 | None:
    """Exact nanoseconds where plain int64 or double arithmetic gives them, else None."""
    try:
        values = np.array(microseconds)
    except (ValueError, OverflowError):
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


def _ids(values: list[Any]) -> Int64:
    """int64 ids; NO_ID for what is absent, not a whole number, or beyond 64 bits."""
    ids = np.array([NO_ID if v is None else v for v in values])
    if ids.dtype != np.int64:
        ids = np.array([NO_ID if (n := whole_number(v)) is None else n for v in values], np.int64)
    return ids


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
