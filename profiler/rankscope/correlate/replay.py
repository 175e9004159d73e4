"""Replay of a synchronisation graph: when every sync ends if some ranks had done more or less own work.

A sync ends at its last arrival plus its transfer. A rank arrives when its own work up to there is done and its
earlier waits are over, and, on a stream, when the transfer before it has ended. With nothing changed the replay
gives back the measured times, up to how far the ends of one collective lie apart.
"""

from __future__ import annotations

import numpy as np

from rankscope.correlate.sync_graph import NONE, SyncGraph
from rankscope.model.intervals import Int64


def replay(
    graph: SyncGraph,
    *,
    work_change: Int64 | None = None,
    block_change: Int64 | None = None,
    transfer_ns: Int64 | None = None,
) -> Int64:
    """End of every sync on the common clock, int64[s], or int64[s, v] for v variants at once.

    Args:
        graph: the measured graph.
        work_change: int64[m] or int64[m, v], what to add to the own-work clock at each arrival.
        block_change: the same at each block.
        transfer_ns: int64[s], other transfer times.
    """
    arrival = graph.arrival_work if work_change is None else _plus(graph.arrival_work, work_change)
    block = graph.block_work if block_change is None else _plus(graph.block_work, block_change)
    single = arrival.ndim == 1 and block.ndim == 1
    arrival, block = np.atleast_2d(arrival.T).T, np.atleast_2d(block.T).T
    variants = max(arrival.shape[1], block.shape[1])
    arrival, block = (np.broadcast_to(a, (len(graph.event), variants)) for a in (arrival, block))
    ends = _run(graph, arrival, block, graph.transfer_ns if transfer_ns is None else transfer_ns, variants)
    return ends[:, 0] if single else ends


def _plus(column: Int64, change: Int64) -> Int64:
    return column + change if change.ndim == 1 else column[:, None] + change


def _run(graph: SyncGraph, arrival: Int64, block: Int64, transfer: Int64, variants: int) -> Int64:
    # delay[e]: how far the node's time is ahead of its own work after the block of event e; the last row
    # stands for "no block yet", which NONE (-1) indexes.
    delay = np.zeros((len(graph.event) + 1, variants), np.int64)
    ends = np.empty((len(graph) + 1, variants), np.int64)
    ends[-1] = np.iinfo(np.int64).min
    sync = np.append(graph.sync, len(graph))
    first, before_arrival, before, behind = (
        graph.first.tolist(),
        graph.block_before_arrival,
        graph.block_before,
        sync[graph.queued_behind],
    )
    gap = graph.queue_gap[:, None]
    has_block, queues = graph.block_work != NONE, graph.queued_behind != NONE
    any_queue = np.logical_or.reduceat(queues, graph.first[:-1]) if len(graph) else queues
    for k in range(len(graph)):
        here = slice(first[k], first[k + 1])
        there = arrival[here] + delay[before_arrival[here]]
        if any_queue[k]:
            free = ends[behind[here]] + gap[here]
            there = np.maximum(there, np.where(queues[here][:, None], free, there))
        end = there.max(axis=0) + transfer[k]
        ends[k] = end
        late = np.maximum(delay[before[here]], end - block[here])
        delay[here] = np.where(has_block[here][:, None], late, 0)
    return ends[:-1]
