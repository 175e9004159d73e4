"""Replay of a synchronisation graph: when every sync ends if some ranks had done more or less own work.

A sync ends at its last arrival plus its transfer. A rank arrives when its own work up to there is done and its
earlier waits are over, on a stream when the transfer before it has ended, and, if hosts count, not before its host
launches it (`rankscope.correlate.host_path`). With nothing changed the replay
gives back the measured times, up to how far the ends of one collective lie apart.
"""

from __future__ import annotations

import numpy as np

from rankscope.correlate.host_path import LOW
from rankscope.correlate.sync_graph import NONE, SyncGraph
from rankscope.correlate.waves import waves_of
from rankscope.model.intervals import Bool, Int64


def replay(
    graph: SyncGraph,
    *,
    work_change: Int64 | None = None,
    block_change: Int64 | None = None,
    transfer_ns: Int64 | None = None,
    free_hosts: Bool | None = None,
) -> Int64:
    """End of every sync on the common clock, int64[s], or int64[s, v] for v variants at once.

    Args:
        graph: the measured graph.
        work_change: int64[m] or int64[m, v], what to add to the own-work clock at each arrival.
        block_change: the same at each block.
        transfer_ns: int64[s], other transfer times.
        free_hosts: bool[m, v], events that need not wait for their host: those of ranks whose own work is changed.
            None: no event waits for its host, so the result is what the devices alone would do.
    """
    work, block = _Changed(graph.arrival_work, work_change), _Changed(graph.block_work, block_change)
    transfer = graph.transfer_ns if transfer_ns is None else transfer_ns
    ends = _run(graph, work, block, transfer, free_hosts)
    return ends[:, 0] if work.is_single and block.is_single else ends


class _Changed:
    """Points of the own-work clock with what is added to them; added for the events at hand only, to spare memory."""

    def __init__(self, points: Int64, change: Int64 | None) -> None:
        self.is_single = change is None or change.ndim == 1
        self._points = points
        self._change = change[:, None] if change is not None and change.ndim == 1 else change

    @property
    def variants(self) -> int:
        """How many variants there are."""
        return 1 if self._change is None else self._change.shape[1]

    def at(self, events: Int64) -> Int64:
        """int64[r, v], or int64[r, 1] where nothing changes."""
        points = self._points[events, None]
        return points if self._change is None else points + self._change[events]


def _run(
    graph: SyncGraph, work: _Changed, block: _Changed, transfer: Int64, free_hosts: Bool | None
) -> Int64:
    variants = max(work.variants, block.variants)
    # delay[e]: how far the node's time is ahead of its own work after the block of event e; the last row
    # stands for "no block yet", which NONE (-1) indexes.
    delay = np.zeros((len(graph.event) + 1, variants), np.int64)
    ends = np.empty((len(graph) + 1, variants), np.int64)
    ends[-1] = np.iinfo(np.int64).min
    sync = np.append(graph.sync, len(graph))
    before_arrival, before, behind = graph.block_before_arrival, graph.block_before, sync[graph.queued_behind]
    gap = graph.queue_gap[:, None]
    has_block, queues = graph.block_work != NONE, graph.queued_behind != NONE
    hosts = _Hosts(graph, free_hosts, variants) if free_hosts is not None and graph.host.binds else None
    for wave in waves_of(sync[:-1], graph.first, graph.level):
        here = wave.events
        there = work.at(here) + delay[before_arrival[here]]
        queued = np.flatnonzero(queues[here])
        if len(queued):
            late = here[queued]
            there[queued] = np.maximum(there[queued], ends[behind[late]] + gap[late])
        if hosts is not None:
            there = np.maximum(there, hosts.launches(here, delay))
        end = np.maximum.reduceat(there, wave.first, axis=0) + transfer[wave.syncs, None]
        ends[wave.syncs] = end
        waited = np.maximum(delay[before[here]], end[wave.sync_of_event] - block.at(here))
        delay[here] = np.where(has_block[here][:, None], waited, 0)
        if hosts is not None:
            hosts.advance(here, has_block[here], delay)
    return ends[:-1]


class _Hosts:
    """How far each host has waited: `waited[e]` after the block of event e, the last row for "no block yet"."""

    def __init__(self, graph: SyncGraph, free: Bool, variants: int) -> None:
        self._path = graph.host
        self._before = graph.block_before
        self._before_after = np.where(
            graph.host.after == NONE, NONE, graph.block_before[np.maximum(graph.host.after, 0)]
        )
        self._free = free
        self._waited = np.full((len(graph.event) + 1, variants), LOW, np.int64)

    def launches(self, here: Int64, delay: Int64) -> Int64:
        """When the events are launched, int64[r, v]; LOW for those that need not wait for it."""
        path = self._path
        waited = delay[path.after[here]] + path.slack[here][:, None]
        waited = np.maximum(waited, self._waited[self._before_after[here]])
        launch = path.launch[here][:, None] + np.maximum(waited, path.floor[here][:, None])
        return np.where(self._free[here], LOW, launch)

    def advance(self, here: Int64, blocks: Bool, delay: Int64) -> None:
        """Note the waits after the events' blocks."""
        waited = np.maximum(
            self._waited[self._before[here]], delay[here] + self._path.block_slack[here][:, None]
        )
        self._waited[here] = np.where(blocks[:, None], waited, LOW)
