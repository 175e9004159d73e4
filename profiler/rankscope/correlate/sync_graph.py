"""The synchronisation graph of a run: how much own work every rank did between its meetings with others.

Each rank's time is split in two. It is *blocked* while nothing but communication keeps its device busy up to the
very end of that communication: what follows had to wait for it. All other time is *own work*, the host's included.
The own-work clock of a rank stands still while the rank is blocked; an arrival or a block is a point on it. With
these points and the transfer times, any change of own work can be replayed (`rankscope.correlate.replay`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rankscope.correlate.clocks import Clocks, RankClock, correction
from rankscope.correlate.communications import Communications
from rankscope.correlate.device_events import NO_TIME
from rankscope.correlate.host_path import HostPath, Launches, host_path, host_waits, work_clock
from rankscope.correlate.launches import NO_ROW
from rankscope.correlate.match import UNMATCHED, Matching
from rankscope.correlate.point_to_point import Pairs
from rankscope.correlate.run_communications import RunCommunications
from rankscope.correlate.waves import find_levels
from rankscope.model.grouping import medians, places_of_each
from rankscope.model.intervals import EMPTY, Bool, Int64, IntervalSet, merge, union
from rankscope.units import us_to_ns

NONE = -1
_QUEUE_GAP_NS = us_to_ns(50)
_QUEUE_GAP_CPU_NS = us_to_ns(300)
_SYNC_TOLERANCE_NS = us_to_ns(250)
_MAX_LINK_ROUNDS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncGraph:
    """Meetings of ranks ("syncs": collectives and point-to-point pairs) in an order in which they can be replayed.

    The events of sync k are `first[k]:first[k + 1]`; all event columns have that order.

    Attributes:
        first: int64[s + 1].
        transfer_ns: int64[s], from the last arrival to the end.
        end_ns: int64[s], measured end on the common clock.
        step: int64[s], step number, NONE outside steps.
        level: int64[s], how many syncs of a chain of links come before; those of one level can be replayed at once.
        event: int64[m], index into the `RunCommunications`.
        node: int64[m], the rank, device and window of an event, index into `node_rank`.
        position: int64[m], how many events of the node come before.
        arrival_work: int64[m], own-work clock at the arrival.
        block_work: int64[m], own-work clock at which the rank waits for the end; NONE where it never does, or where
            another communication goes on for which it waits as well.
        block_before_arrival: int64[m], the node's last block before the arrival, an index of an event, or NONE.
        block_before: int64[m], the node's last block before this one, or NONE.
        queued_behind: int64[m], the event whose end the arrival had to await on its stream, or NONE.
        queue_gap: int64[m], from that end to the arrival.
        host: how the host comes to launch each event.
        node_rank: int64[n], rank of each node.
        node_window: int64[n], number of the recorded window.
        node_start: int64[n], own-work clock where the node's recording starts.
        node_blocked: n sets of times on the common clock in which the node is blocked.
    """

    first: Int64
    transfer_ns: Int64
    end_ns: Int64
    step: Int64
    level: Int64
    event: Int64
    node: Int64
    position: Int64
    arrival_work: Int64
    block_work: Int64
    block_before_arrival: Int64
    block_before: Int64
    queued_behind: Int64
    queue_gap: Int64
    host: HostPath
    node_rank: Int64
    node_window: Int64
    node_start: Int64
    node_blocked: tuple[IntervalSet, ...]

    def __len__(self) -> int:
        return len(self.transfer_ns)

    @property
    def sync(self) -> Int64:
        """int64[m], the sync of each event."""
        return np.repeat(np.arange(len(self)), np.diff(self.first))


def build_sync_graph(
    comms: RunCommunications,
    parts: Sequence[Communications],
    matching: Matching,
    pairs: Pairs,
    clocks: Clocks,
) -> SyncGraph:
    """The graph of all collectives and pairs that really synchronised.

    Left out, and counted as own work: events that were not matched, those of ranks whose clocks are not tied,
    and operations that some rank finished before another arrived (a broadcast does not make its root wait).
    """
    sync_of_event = _number_syncs(comms, matching, pairs)
    sync_of_event[~np.isin(comms.rank, list(clocks.of_rank))] = UNMATCHED
    start = clocks.aligned(comms.rank, comms.start_ns)
    end = clocks.aligned(comms.rank, comms.end_ns)
    sync_of_event = _only_synchronised(sync_of_event, start, end)
    event = np.flatnonzero(sync_of_event != UNMATCHED)
    times = [_node_times(part, clocks) for part in parts]
    columns = _event_columns(comms, parts, times, event)
    return _assemble(comms, parts, sync_of_event[event], event, start, end, columns)


def _number_syncs(comms: RunCommunications, matching: Matching, pairs: Pairs) -> Int64:
    """Sync number of each event; pairs are numbered after the collectives."""
    numbers = matching.collective.copy()
    numbers[pairs.send] = len(matching) + np.arange(len(pairs))
    numbers[pairs.recv] = len(matching) + np.arange(len(pairs))
    return numbers


def _only_synchronised(sync: Int64, start: Int64, end: Int64) -> Int64:
    """Sync numbers without those of one event, and those in which an end precedes an arrival."""
    found = np.flatnonzero(sync != UNMATCHED)
    if len(found) == 0:
        return sync
    size = int(sync.max()) + 1
    latest = np.full(size, np.iinfo(np.int64).min)
    earliest = np.full(size, np.iinfo(np.int64).max)
    np.maximum.at(latest, sync[found], start[found])
    np.minimum.at(earliest, sync[found], end[found])
    counts = np.bincount(sync[found], minlength=size)
    with np.errstate(over="ignore"):
        good = (counts > 1) & (earliest + _SYNC_TOLERANCE_NS >= latest)
    kept = sync.copy()
    kept[found[~good[sync[found]]]] = UNMATCHED
    return kept


@dataclass(frozen=True, slots=True, kw_only=True)
class _NodeTimes:
    """Times of a node on the common clock.

    Attributes:
        busy: when its device computes or copies.
        busy_launch: int64[b], when the host launched compute and memory events, in order.
        busy_start: int64[b], when they start on the device.
        busy_reach: int64[b], latest end of those launched up to then.
        host_waits: when its host waits for the device.
        started_ns: start of the recording on the device.
        clock: its clock, None if it is the common one.
    """

    busy: IntervalSet
    busy_launch: Int64
    busy_start: Int64
    busy_reach: Int64
    host_waits: IntervalSet
    started_ns: int
    clock: RankClock | None

    def common(self, times: Int64) -> Int64:
        """Times of the node's own clock on the common clock."""
        return times if self.clock is None else times - correction(self.clock, times)


def _node_times(part: Communications, clocks: Clocks) -> _NodeTimes:
    table, events = part.events.table, part.events
    clock = clocks.of_rank.get(events.window.rank)

    def common(times: Int64) -> Int64:
        return times if clock is None else times - correction(clock, times)

    def common_set(times: IntervalSet) -> IntervalSet:
        return union(common(times.starts), common(times.ends))

    # What holds most of a large file on the way comes first, while nothing else is held.
    waits = common_set(host_waits(events))
    busy = common_set(merge(table.times_of(events.compute), table.times_of(events.memory)))
    rows = np.concatenate([events.compute, events.memory])
    first = [int(table.start_ns[r].min()) for r in (rows, events.communication) if len(r)]
    launch = events.host_times(rows)
    known = np.flatnonzero(launch != NO_TIME)
    order = known[np.argsort(launch[known], kind="stable")]
    ends = common(table.ends_of(rows[order]))
    return _NodeTimes(
        busy=busy,
        busy_launch=common(launch[order]),
        busy_start=common(table.start_ns[rows[order]]),
        busy_reach=np.maximum.accumulate(ends) if len(ends) else ends,
        host_waits=waits,
        started_ns=int(common(np.array([min(first)]))[0]) if first else 0,
        clock=clock,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _EventColumns:
    """Columns of the events in the order of `event`; links are indices into that order."""

    position: Int64
    arrival_work: Int64
    block_work: Int64
    block_before_arrival: Int64
    block_before: Int64
    queued_behind: Int64
    queue_gap: Int64
    host: HostPath
    node_start: Int64
    node_blocked: tuple[IntervalSet, ...]


def _event_columns(
    comms: RunCommunications, parts: Sequence[Communications], times: list[_NodeTimes], event: Int64
) -> _EventColumns:
    size = len(event)
    columns = {
        key: np.full(size, NONE, np.int64)
        for key in (
            "position",
            "arrival_work",
            "block_work",
            "block_before_arrival",
            "block_before",
            "queued_behind",
            "queue_gap",
        )
    }
    host = HostPath.unknown(size)
    node_start = np.zeros(len(parts), np.int64)
    blocked = [EMPTY] * len(parts)
    places = places_of_each(comms.part[event], len(parts))  # in order of start: the run's table is sorted so
    for node, (part, node_times, mine) in enumerate(zip(parts, times, places, strict=True)):
        node_start[node] = node_times.started_ns
        if len(mine) == 0:
            continue
        values_of, blocked[node], on_host = _node_columns(part, node_times, comms.index[event[mine]], mine)
        host.put(mine, on_host)
        for key, values in values_of.items():
            columns[key][mine] = values
    return _EventColumns(**columns, host=host, node_start=node_start, node_blocked=tuple(blocked))


def _node_columns(
    part: Communications, times: _NodeTimes, index: Int64, mine: Int64
) -> tuple[dict[str, Int64], IntervalSet, HostPath]:
    """Columns of one node's events (`index` in the part, `mine` in the graph), when it is blocked, and its host."""
    start, end, launch = _common_times(part, times, index)
    blocked_from = _blocked_from(times.busy, start, end)
    blocks = blocked_from < end
    blocked = union(blocked_from[blocks], end[blocks])
    blocks &= ~_outlived(blocked_from, end)
    ready, behind = _queue(part, index, start, end, launch, times)
    arrival = work_clock(ready, blocked)
    block = np.where(blocks, work_clock(end, blocked), NONE)
    order = np.flatnonzero(blocks)[np.argsort(end[blocks], kind="stable")]
    ends_in_order = end[order]
    before_arrival = np.searchsorted(ends_in_order, ready, side="right") - 1
    before = np.full(len(mine), NONE, np.int64)
    before[order[1:]] = order[:-1]
    nowhere = np.full(len(mine), NONE, np.int64)
    last_block = mine[order[np.maximum(before_arrival, 0)]] if len(order) else nowhere
    columns = {
        "position": np.arange(len(mine), dtype=np.int64),
        "arrival_work": arrival,
        "block_work": block,
        "block_before_arrival": np.where(before_arrival >= 0, last_block, NONE),
        "block_before": np.where(before >= 0, mine[np.maximum(before, 0)], NONE),
        "queued_behind": np.where(behind >= 0, mine[np.maximum(behind, 0)], NONE),
        "queue_gap": np.where(behind >= 0, start - end[np.maximum(behind, 0)], 0),
    }
    launched = np.flatnonzero(part.launch_row[index] != NO_ROW)
    work = Launches(launch_ns=times.busy_launch, start_ns=times.busy_start, busy=times.busy)
    on_host = host_path(times.host_waits, work, launch, ready, launched, order, ends_in_order, blocked)
    after = np.where(on_host.after >= 0, mine[np.maximum(on_host.after, 0)], NONE)
    return columns, blocked, replace(on_host, after=after)


def _common_times(part: Communications, times: _NodeTimes, index: Int64) -> tuple[Int64, Int64, Int64]:
    """(start, end, launch) of events on the common clock; launch = start where there is no launch row."""
    table, rows = part.events.table, part.rows[index]
    launch_row = part.launch_row[index]
    launch = np.where(launch_row == NO_ROW, table.start_ns[rows], table.start_ns[np.maximum(launch_row, 0)])
    return times.common(table.start_ns[rows]), times.common(table.ends_of(rows)), times.common(launch)


def _blocked_from(busy: IntervalSet, start: Int64, end: Int64) -> Int64:
    """From when each communication alone keeps its rank waiting up to its end; its end where it never does.

    That is the end of the last busy time before its own end, or its start if that is later.
    """
    if len(busy) == 0:
        return start
    last = np.searchsorted(busy.starts, end, side="left") - 1
    idle_from = np.where(last >= 0, busy.ends[np.maximum(last, 0)], np.iinfo(np.int64).min)
    blocked_from: Int64 = np.minimum(np.maximum(idle_from, start), end)
    return blocked_from


def _outlived(blocked_from: Int64, end: Int64) -> Bool:
    """bool[k], whether another communication that keeps the rank waiting goes on after each one's end.

    What follows starts at the end of the last of them: nothing says that it had to wait for the earlier ones too.
    """
    order = np.argsort(blocked_from, kind="stable")
    reach = np.maximum.accumulate(end[order]) if len(order) else end
    before = np.searchsorted(blocked_from[order], end, side="left") - 1
    outlived: Bool = (before >= 0) & (reach[np.maximum(before, 0)] > end)
    return outlived


def _queue(
    part: Communications, index: Int64, start: Int64, end: Int64, launch: Int64, times: _NodeTimes
) -> tuple[Int64, Int64]:
    """(when each event could have started, the event it queued behind or NONE).

    An event queued if the one before it on its stream ended just before it started and it had been launched by
    then. It could have started when it was launched and what the host had launched before was done.
    """
    lanes = part.events.table.lane[part.rows[index]]
    is_cpu = part.events.device == "cpu"
    longest_gap = _QUEUE_GAP_CPU_NS if is_cpu else _QUEUE_GAP_NS
    ready, behind = start.copy(), np.full(len(index), NONE, np.int64)
    for lane in np.unique(lanes):
        mine = np.flatnonzero(lanes == lane)
        gap = start[mine[1:]] - end[mine[:-1]]
        queued = (gap >= 0) & (gap <= longest_gap) & (launch[mine[1:]] < end[mine[:-1]])
        behind[mine[1:][queued]] = mine[:-1][queued]
    queued = behind >= 0
    if queued.any():
        could_start = launch[queued] if is_cpu else _ready(launch[queued], times)
        ready[queued] = np.minimum(could_start, start[queued])
    return ready, behind


def _ready(launch: Int64, times: _NodeTimes) -> Int64:
    """When what was launched at some times could start: launched, and all work launched before it done."""
    if len(times.busy_launch) == 0:
        return launch
    last = np.searchsorted(times.busy_launch, launch, side="left") - 1
    ready: Int64 = np.where(last >= 0, np.maximum(times.busy_reach[np.maximum(last, 0)], launch), launch)
    return ready


def _assemble(
    comms: RunCommunications,
    parts: Sequence[Communications],
    sync: Int64,
    event: Int64,
    start: Int64,
    end: Int64,
    columns: _EventColumns,
) -> SyncGraph:
    """The graph with its syncs in order of their ends, and links that point backwards only."""
    distinct, sync = np.unique(sync, return_inverse=True)
    sync = sync.reshape(-1)
    count = len(distinct)
    _, sync_end = medians(sync, end[event])
    rank_of_sync = np.empty(count, np.int64)
    rank_of_sync[np.argsort(sync_end, kind="stable")] = np.arange(count)
    sync = rank_of_sync[sync]
    order = np.argsort(sync, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    first = np.searchsorted(sync[order], np.arange(count + 1))
    latest = np.maximum.reduceat(start[event[order]], first[:-1]) if count else np.empty(0, np.int64)
    step = np.full(count, NONE, np.int64)
    step[sync[order][::-1]] = comms.step[event[order]][::-1]
    graph = SyncGraph(
        first=first,
        transfer_ns=np.maximum(np.sort(sync_end) - latest, 0),
        end_ns=np.sort(sync_end),
        step=step,
        level=np.zeros(count, np.int64),
        event=event[order],
        node=comms.part[event[order]],
        position=columns.position[order],
        arrival_work=columns.arrival_work[order],
        block_work=columns.block_work[order],
        block_before_arrival=_moved(columns.block_before_arrival[order], place),
        block_before=_moved(columns.block_before[order], place),
        queued_behind=_moved(columns.queued_behind[order], place),
        queue_gap=columns.queue_gap[order],
        host=columns.host.reordered(order, place),
        node_rank=np.array([part.events.window.rank for part in parts], np.int64),
        node_window=np.array([part.events.window.window for part in parts], np.int64),
        node_start=columns.node_start,
        node_blocked=columns.node_blocked,
    )
    return _with_backward_links(graph)


def _moved(links: Int64, place: Int64) -> Int64:
    moved: Int64 = np.where(links == NONE, NONE, place[np.maximum(links, 0)]) if len(place) else links
    return moved


def _with_backward_links(graph: SyncGraph) -> SyncGraph:
    """Links to syncs that come later in the order are moved back along the node, or cut.

    They arise where an end lies a few microseconds out of order, which clocks cannot tell better.
    """
    sync = graph.sync
    before = graph.block_before
    for _ in range(_MAX_LINK_ROUNDS):
        forward = (before != NONE) & (sync[np.maximum(before, 0)] >= sync)
        if not forward.any():
            break
        before = np.where(forward, before[np.maximum(before, 0)], before)
    before = np.where((before != NONE) & (sync[np.maximum(before, 0)] >= sync), NONE, before)
    arrival = graph.block_before_arrival
    for _ in range(_MAX_LINK_ROUNDS):
        forward = (arrival != NONE) & (sync[np.maximum(arrival, 0)] >= sync)
        if not forward.any():
            break
        arrival = np.where(forward, before[np.maximum(arrival, 0)], arrival)
    arrival = np.where((arrival != NONE) & (sync[np.maximum(arrival, 0)] >= sync), NONE, arrival)
    queue = graph.queued_behind
    queue = np.where((queue != NONE) & (sync[np.maximum(queue, 0)] >= sync), NONE, queue)
    host = graph.host.without_forward_links(sync)
    return replace(
        graph,
        level=find_levels(sync, graph.first, (before, arrival, queue, host.after)),
        block_before=before,
        block_before_arrival=arrival,
        queued_behind=queue,
        host=host,
    )
