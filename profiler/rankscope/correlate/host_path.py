"""The host's way to each communication: none starts before its host launches it.

While a rank's device is blocked its host often runs ahead, and its slow launches do not show. If others came sooner,
they would: the host is then what the rank waits for. So in a replay an event arrives no sooner than its launch, nor
than the launch of earlier work and what the device has to do from there on; and a launch moves only as far as the
host had waited for the device before.

The host-work clock of a rank stands still while its host waits, which is while a row of the runtime takes long
(synchronise, a blocking copy, a full queue), or an operator calls nothing for long (the allocator waits inside). A wait
ends when the device gets as far as it was at its end.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from rankscope.correlate.device_events import DeviceEvents, leaf_operators
from rankscope.model.categories import Category
from rankscope.model.intervals import EMPTY, Int64, IntervalSet, covered_ns, merge, subtract, union
from rankscope.model.parts import parts
from rankscope.model.table import TraceTable
from rankscope.units import ms_to_ns, us_to_ns

NONE = -1
LOW = -(1 << 61)
"""A time before all others that can still be added to."""

_MIN_WAIT_NS = us_to_ns(20)
_MIN_OPERATOR_NS = ms_to_ns(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPath:
    """Columns of the events of a synchronisation graph.

    Attributes:
        launch: int64[m], host-work clock at the earliest arrival that the launches allow; LOW where the trace holds
            no launch row.
        after: int64[m], the node's last block before the end of the host's last wait before the launch, or NONE.
        slack: int64[m], device's less host's clock at the end of those waits since that block, the largest; LOW
            without one.
        floor: int64[m], how long the host had waited before the node's first block.
        block_slack: int64[m], for a block the largest slack up to the next block; LOW without a wait.
    """

    launch: Int64
    after: Int64
    slack: Int64
    floor: Int64
    block_slack: Int64

    @classmethod
    def unknown(cls, size: int) -> HostPath:
        """Columns that bind nothing."""
        low = np.full(size, LOW, np.int64)
        return cls(
            launch=low,
            after=np.full(size, NONE, np.int64),
            slack=low.copy(),
            floor=np.zeros(size, np.int64),
            block_slack=low.copy(),
        )

    @property
    def binds(self) -> bool:
        """Whether any launch is known."""
        return bool((self.launch != LOW).any())

    def put(self, where: Int64, part: HostPath) -> None:
        """Set the columns at some places."""
        for field in fields(self):
            getattr(self, field.name)[where] = getattr(part, field.name)

    def reordered(self, order: Int64, place: Int64) -> HostPath:
        """The columns in another order, links included."""
        after = self.after[order]
        return HostPath(
            launch=self.launch[order],
            after=np.where(after == NONE, NONE, place[np.maximum(after, 0)]) if len(place) else after,
            slack=self.slack[order],
            floor=self.floor[order],
            block_slack=self.block_slack[order],
        )

    def without_forward_links(self, sync: Int64) -> HostPath:
        """The same, with launches unknown that come after a block whose sync comes later in the order."""
        forward = (self.after != NONE) & (sync[np.maximum(self.after, 0)] >= sync)
        return replace(
            self, launch=np.where(forward, LOW, self.launch), after=np.where(forward, NONE, self.after)
        )


def host_waits(events: DeviceEvents) -> IntervalSet:
    """When the host waits, on the rank's own clock: long rows of the runtime, and long stretches inside an operator.

    Those are stretches in which the operator calls nothing, such as the allocator's. None on a CPU-only run.
    """
    table = events.table
    if events.device == "cpu":
        return EMPTY
    operators = leaf_operators(table)
    operators = operators[table.duration_ns[operators] >= _MIN_OPERATOR_NS]
    calls = table.rows_of_category(Category.RUNTIME)
    computing = table.times_of(operators)
    meanwhile = _that_touch(computing, table, calls)
    inside = subtract(computing, table.times_of(meanwhile))
    long = inside.ends - inside.starts >= _MIN_OPERATOR_NS
    waits = calls[table.duration_ns[calls] >= _MIN_WAIT_NS]
    return merge(table.times_of(waits), union(inside.starts[long], inside.ends[long]))


def _that_touch(times: IntervalSet, table: TraceTable, rows: Int64) -> Int64:
    """The rows that are on at some of the times."""
    if len(times) == 0:
        return rows[:0]
    touches = np.zeros(len(rows), bool)
    for part in parts(len(rows)):
        last_begun = np.searchsorted(times.starts, table.ends_of(rows[part]), "left") - 1
        touches[part] = (last_begun >= 0) & (times.ends[last_begun] > table.start_ns[rows[part]])
    return rows[touches]


@dataclass(frozen=True, slots=True, kw_only=True)
class Launches:
    """What a host launches beside communication, in order of launch, on the common clock.

    Attributes:
        launch_ns: int64[b].
        start_ns: int64[b], when it starts on the device.
        busy: when the device is busy with it.
    """

    launch_ns: Int64
    start_ns: Int64
    busy: IntervalSet


def host_path(
    waits: IntervalSet,
    work: Launches,
    launch: Int64,
    arrival: Int64,
    known: Int64,
    blocks: Int64,
    block_ends: Int64,
    blocked: IntervalSet,
) -> HostPath:
    """Columns of one node's events; links are places among those events.

    Args:
        waits: when its host waits, on the common clock.
        work: what else it launches.
        launch: int64[k], launch of each event.
        arrival: int64[k], when each event could have started.
        known: places of the events whose launch is known.
        blocks: int64[b], places of the events that block the node, in order of their ends.
        block_ends: int64[b], those ends.
        blocked: when the node is blocked.
    """
    path = HostPath.unknown(len(launch))
    group = np.searchsorted(block_ends, waits.ends, side="right") - 1
    slack = work_clock(waits.ends, blocked) - work_clock(waits.ends, waits)
    highest = _running_maximum(slack, group)
    last_of_group = np.flatnonzero(np.append(np.diff(group) != 0, True)) if len(group) else group
    starts_late = group[last_of_group] >= 0
    closing = last_of_group[starts_late]
    path.block_slack[blocks[group[closing]]] = highest[closing]
    before_first = int(np.searchsorted(group, 0))

    last_wait = np.searchsorted(waits.ends, launch[known], side="right") - 1
    path.launch[known] = np.maximum(
        work_clock(launch[known], waits), _through_work(waits, work, launch[known], arrival[known], last_wait)
    )
    early = np.minimum(last_wait, before_first - 1)
    waited = early >= 0
    path.floor[known[waited]] = np.maximum(highest[early[waited]], 0)
    late = last_wait >= before_first
    path.after[known[late]] = blocks[group[last_wait[late]]]
    path.slack[known[late]] = highest[last_wait[late]]
    return path


def _through_work(
    waits: IntervalSet, work: Launches, launch: Int64, arrival: Int64, last_wait: Int64
) -> Int64:
    """Earliest arrivals by the launches of work since the last wait: each launch plus what is to do from it on."""
    if len(work.launch_ns) == 0:
        return np.full(len(launch), LOW, np.int64)
    wait = np.searchsorted(waits.ends, work.launch_ns, side="right") - 1
    to_do_before = work.start_ns - work_clock(work.start_ns, work.busy)
    highest = _running_maximum(work_clock(work.launch_ns, waits) - to_do_before, wait)
    last = np.searchsorted(work.launch_ns, launch, side="right") - 1
    since_wait = (last >= 0) & (wait[np.maximum(last, 0)] == last_wait)
    done = arrival - work_clock(arrival, work.busy)
    return np.where(since_wait, highest[np.maximum(last, 0)] + done, LOW)


def _running_maximum(values: Int64, group: Int64) -> Int64:
    """Largest value of the group so far; groups are in order."""
    order = np.argsort(values)
    place = np.empty(len(values), np.int64)
    place[order] = np.arange(len(values))
    base = group * len(values)  # places of a later group lie above all of those before
    running: Int64 = values[order[np.maximum.accumulate(base + place) - base]]
    return running


def work_clock(times: Int64, stopped: IntervalSet) -> Int64:
    """A clock that stands still in some intervals: each time less what was stopped before it."""
    if len(stopped) == 0:
        return times.copy()
    zero = np.full(len(times), int(stopped.starts[0]), np.int64)
    return times - np.where(times > zero, covered_ns(zero, np.maximum(times, zero), stopped), 0)
