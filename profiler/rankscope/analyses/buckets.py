"""When each DDP bucket was ready, launched, waited and transferred, and how much of it compute hides."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankscope.correlate.communications import Communications
from rankscope.correlate.ddp_buckets import BucketEvents
from rankscope.correlate.device_events import NO_TIME
from rankscope.correlate.gradient_rows import device_ready_times, host_ready_times
from rankscope.correlate.launches import NO_ROW
from rankscope.model.intervals import Int64, covered_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketTimes:
    """Times of the buckets of one window on one device; absolute ns on the rank's own clock, int64[b] each.

    Attributes:
        ready_ns: when its last gradient was in place: end of the last compute or memory event that its thread
            launched before it asked (on a CPU-only run: of the last operator), and not before that of lower
            buckets; NO_TIME if the trace does not tell.
        launched_ns: start of the launch; on a CPU-only run of the operator that puts it into the queue.
        host_overhead_ns: from the host row that asked for it to the launch; NO_TIME on a CPU-only run, where both
            are one.
        started_ns, finished_ns: the communication itself.
        queue_ns: from when it could have started, max(ready, launched), to its start.
        hidden_ns: part of it beside which compute ran.
    """

    ready_ns: Int64
    launched_ns: Int64
    host_overhead_ns: Int64
    started_ns: Int64
    finished_ns: Int64
    queue_ns: Int64
    hidden_ns: Int64


def measure_buckets(communications: Communications, buckets: BucketEvents) -> BucketTimes:
    """Times of every bucket of a window.

    Args:
        communications: one window on one device.
        buckets: which of them are buckets.
    """
    events = communications.events
    table = events.table
    rows = communications.rows[buckets.index]
    started, finished = table.start_ns[rows], table.ends_of(rows)
    launched = _starts(communications, communications.launch_row[buckets.index])
    asked = _starts(communications, buckets.host_row)
    ready = _in_order(_ready(communications, buckets), buckets)
    if events.device == "cpu":
        overhead = np.full(len(rows), NO_TIME, np.int64)
    else:
        known = (launched != NO_TIME) & (asked != NO_TIME)
        overhead = np.where(known, launched - np.where(known, asked, 0), NO_TIME)
    possible = np.maximum(ready, launched)  # NO_TIME is the least of all
    both = (ready != NO_TIME) & (launched != NO_TIME)
    compute = table.times_of(events.compute)
    return BucketTimes(
        ready_ns=ready,
        launched_ns=launched,
        host_overhead_ns=overhead,
        started_ns=started,
        finished_ns=finished,
        queue_ns=np.where(both, np.maximum(started - np.where(both, possible, 0), 0), NO_TIME),
        hidden_ns=covered_ns(started, finished, compute),
    )


def _starts(communications: Communications, rows: Int64) -> Int64:
    table = communications.events.table
    if len(table) == 0:
        return np.full(len(rows), NO_TIME, np.int64)
    return np.where(rows == NO_ROW, NO_TIME, table.start_ns[np.maximum(rows, 0)])


def _ready(communications: Communications, buckets: BucketEvents) -> Int64:
    """End of the last work that the thread did, or launched, before it asked for the bucket."""
    events = communications.events
    ready = np.full(len(buckets), NO_TIME, np.int64)
    known = np.flatnonzero(buckets.host_row != NO_ROW)
    host = buckets.host_row[known]
    lanes, times = events.table.lane[host].astype(np.int64), events.table.start_ns[host]
    if events.device == "cpu":
        ready[known] = host_ready_times(events.table, lanes, times)
    else:
        ready[known] = device_ready_times(events, lanes, times)
    return ready


def _in_order(ready: Int64, buckets: BucketEvents) -> Int64:
    """Ready times not before those of lower buckets of the same backward: buckets go out in index order."""
    ordered = ready.copy()
    for backward in np.unique(buckets.backward).tolist():
        mine = buckets.backward == backward
        ordered[mine] = np.maximum.accumulate(ready[mine])
    return ordered
