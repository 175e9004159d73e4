"""All ranks in one Chrome trace on the common clock, for Perfetto or chrome://tracing.

Each rank is a process; each collective is an arrow over its ranks in order of arrival; a counter per rank and device
is 1 while communication runs and nothing is computed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import numpy as np

from rankscope.correlate.clocks import Clocks, correction
from rankscope.correlate.device_events import DeviceEvents
from rankscope.model.categories import Category, EventClass
from rankscope.model.intervals import Int64, subtract
from rankscope.pipeline.together import Together
from rankscope.pipeline.window_results import WindowResults
from rankscope.units import NS_PER_US

_CLASS_NAMES = {
    EventClass.COMPUTE: "compute",
    EventClass.COMMUNICATION: "communication",
    EventClass.MEMORY: "memory",
}
_HOST_LANE = 100_000
_MAX_NAME = 200


def merged_trace(results: Sequence[WindowResults], together: Together) -> Iterator[str]:
    """Text of the merged trace, piece by piece; joined it is one JSON object.

    The first event of all ranks stands at 0, since viewers drop what lies before it; `otherData.origin_ns` is its
    absolute time on the common clock, as text.

    Args:
        results: the windows.
        together: matching and clocks.
    """
    starts = [_aligned(r.events, together.clocks, r.events.table.start_ns[:1], 0) for r in results]
    origin_ns = min((int(start[0]) for start in starts), default=0)
    yield f'{{"displayTimeUnit":"ns","otherData":{{"origin_ns":"{origin_ns}"}},"traceEvents":[\n'
    separator = ""
    for event in _events(results, together, origin_ns):
        yield separator + json.dumps(event, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
        separator = ",\n"
    yield "\n]}\n"


def _events(
    results: Sequence[WindowResults], together: Together, origin_ns: int
) -> Iterator[dict[str, object]]:
    named: set[int] = set()
    drawn: set[int] = set()
    for result in results:
        events = result.events
        rank = events.window.rank
        if rank not in named:
            named.add(rank)
            yield {"ph": "M", "name": "process_name", "pid": rank, "args": {"name": f"rank {rank}"}}
            yield {"ph": "M", "name": "process_sort_index", "pid": rank, "args": {"sort_index": rank}}
        # A window has one set of annotations, whatever the number of its devices.
        has_annotations = id(events.window) not in drawn
        drawn.add(id(events.window))
        yield from _rows(events, together.clocks, origin_ns, has_annotations=has_annotations)
        yield from _exposed_counter(events, together.clocks, origin_ns)
    yield from _arrows(together, origin_ns)


def _aligned(events: DeviceEvents, clocks: Clocks, times: Int64, origin_ns: int) -> Int64:
    clock = clocks.of_rank.get(events.window.rank)
    return times - origin_ns - (0 if clock is None else correction(clock, times))


def _us(ns: int) -> float:
    return ns / NS_PER_US


def _rows(
    events: DeviceEvents, clocks: Clocks, origin_ns: int, *, has_annotations: bool
) -> Iterator[dict[str, object]]:
    """Device rows on their streams, and user annotations on their threads."""
    table, rank = events.table, events.window.rank
    device_rows = np.concatenate([events.compute, events.communication, events.memory])
    annotations = table.rows_of_category(Category.USER_ANNOTATION)
    rows = np.union1d(device_rows, annotations) if has_annotations else np.unique(device_rows)
    starts = _aligned(events, clocks, table.start_ns[rows], origin_ns)
    on_device = np.isin(rows, device_rows)
    lanes_seen: set[int] = set()
    for row, start, device in zip(rows.tolist(), starts.tolist(), on_device.tolist(), strict=True):
        lane = int(table.lane[row])
        tid = lane if device else _HOST_LANE + lane
        if tid not in lanes_seen:
            lanes_seen.add(tid)
            yield {
                "ph": "M",
                "name": "thread_name",
                "pid": rank,
                "tid": tid,
                "args": {"name": _lane_name(events, lane, device)},
            }
        yield {
            "ph": "X",
            "name": table.names[table.name[row]][:_MAX_NAME],
            "cat": _CLASS_NAMES.get(EventClass(int(table.event_class[row])), "annotation"),
            "pid": rank,
            "tid": tid,
            "ts": _us(start),
            "dur": _us(int(table.duration_ns[row])),
        }


def _lane_name(events: DeviceEvents, lane: int, on_device: bool) -> str:
    found = events.table.lanes[lane]
    if on_device and found.device is not None:
        return f"GPU {found.device} stream {found.stream}"
    return f"thread {found.tid}" if on_device else f"thread {found.tid} annotations"


def _exposed_counter(events: DeviceEvents, clocks: Clocks, origin_ns: int) -> Iterator[dict[str, object]]:
    table, rank = events.table, events.window.rank
    communication = table.times_of(events.communication)
    compute = table.times_of(events.compute)
    exposed = subtract(communication, compute)
    where = "" if events.device == "cpu" else f" GPU {events.device}"
    for times, value in ((exposed.starts, 1), (exposed.ends, 0)):
        for time in _aligned(events, clocks, times, origin_ns).tolist():
            yield {
                "ph": "C",
                "name": f"exposed communication{where}",
                "pid": rank,
                "ts": _us(time),
                "args": {"exposed": value},
            }


def _arrows(together: Together, origin_ns: int) -> Iterator[dict[str, object]]:
    """Flow events that join the events of each collective in order of arrival."""
    times, comms = together.times, together.comms
    for k in range(len(times)):
        here = np.arange(times.first[k], times.first[k + 1])
        if len(here) < 2:
            continue
        order = here[np.argsort(times.arrival_ns[here], kind="stable")]
        token = comms.tokens[int(comms.token[times.event[order[0]]])]
        for place, i in enumerate(order.tolist()):
            event = int(times.event[i])
            part = together.parts[int(comms.part[event])]
            lane = int(part.events.table.lane[part.rows[comms.index[event]]])
            yield {
                "ph": "s" if place == 0 else "f" if place == len(order) - 1 else "t",
                "bp": "e",
                "id": k,
                "cat": "collective",
                "name": token.op,
                "pid": int(comms.rank[event]),
                "tid": lane,
                "ts": _us(int(times.arrival_ns[i]) - origin_ns),
            }
