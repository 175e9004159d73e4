"""Own work of ranks compared with that of their peers, and the graph with the work of a set made like theirs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from rankscope.correlate.run_communications import RunCommunications
from rankscope.correlate.sync_graph import NONE, SyncGraph
from rankscope.model.intervals import Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One rank on one device in one window: its events in order.

    Attributes:
        number: index into the graph's nodes.
        rank: its rank.
        window: its recorded window.
        event: int64[k], its events, as indices into the graph's event columns, by position.
        arrival: int64[k], own-work clock at each arrival, never falling.
        work: int64[k], own work since the arrival before; 0 for the first one, which has none before it.
        step: int64[k], steps of the syncs.
        call: int64[k], places of the events in the order in which the host asked for them. That order is the
            program's and equal on all ranks of a role; the order of arrivals on several streams is not.
    """

    number: int
    rank: int
    window: int
    event: Int64
    arrival: Int64
    work: Int64
    step: Int64
    call: Int64

    def arrival_in_order_of(self, other: Node) -> Int64:
        """int64[k], own-work clock at the arrivals of the equal events, in the order of another node of the role."""
        place = np.empty(len(self.call), np.int64)
        place[other.call] = self.call
        return self.arrival[place]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnWork:
    """Own work of all nodes, and who can be compared with whom.

    Attributes:
        nodes: nodes with events.
        roles: sets of nodes (indices into `nodes`) whose hosts ask for the same sequence of syncs and that hang
            together.
    """

    nodes: tuple[Node, ...]
    roles: tuple[tuple[int, ...], ...]

    def role_of(self) -> dict[int, int]:
        """Index of the role of each node."""
        return {node: i for i, role in enumerate(self.roles) for node in role}


def measure_own_work(graph: SyncGraph, comms: RunCommunications, component: dict[int, int]) -> OwnWork:
    """Own work of every node between its syncs.

    Args:
        graph: the synchronisation graph.
        comms: the run's communication events.
        component: rank -> a number that is equal for ranks that hang together.
    """
    if len(graph) == 0:
        return OwnWork(nodes=(), roles=())
    sync = graph.sync
    order = np.lexsort((graph.position, graph.node))
    numbers, starts = np.unique(graph.node[order], return_index=True)
    nodes, signatures = [], []
    for number, event in zip(numbers.tolist(), np.split(order, starts[1:]), strict=True):
        arrival = np.maximum.accumulate(graph.arrival_work[event])
        rank = int(graph.node_rank[number])
        step = graph.step[sync[event]]
        call = np.argsort(comms.launch_ns[graph.event[event]], kind="stable")
        nodes.append(
            Node(
                number=number,
                rank=rank,
                window=int(graph.node_window[number]),
                event=event,
                arrival=arrival,
                work=np.diff(arrival, prepend=arrival[:1]),
                step=step,
                call=call,
            )
        )
        tokens = comms.token[graph.event[event[call]]]
        signatures.append(
            (component.get(rank, -1 - rank), nodes[-1].window, tokens.tobytes(), step[call].tobytes())
        )
    roles = defaultdict(list)
    for i, signature in enumerate(signatures):
        roles[signature].append(i)
    return OwnWork(nodes=tuple(nodes), roles=tuple(tuple(members) for members in roles.values()))


def change_to_peers(graph: SyncGraph, work: OwnWork, ranks: Collection[int]) -> tuple[Int64, Int64]:
    """What to add to the own-work clock at each arrival and block if `ranks` worked like their peers.

    Segment by segment where other ranks run the same sequence; else step by step, by the totals of all others.
    The peers' work is their median, of two the least. A rank's first segment stays: it begins where recording
    began, which says nothing.

    Returns:
        (int64[m], int64[m]) in ns, for `rankscope.correlate.replay.replay`.
    """
    at_arrival = np.zeros(len(graph.event), np.int64)
    at_block = np.zeros(len(graph.event), np.int64)
    chosen = set(ranks)
    for role in work.roles:
        mine = [i for i in role if work.nodes[i].rank in chosen]
        peers = [i for i in role if work.nodes[i].rank not in chosen]
        if not mine:
            continue
        targets: dict[bytes, Int64] = {}
        for i in mine:
            node = work.nodes[i]
            if peers:
                order = node.call.tobytes()
                if order not in targets:
                    targets[order] = middle(_segments([work.nodes[p] for p in peers], node))
                changed = np.cumsum(targets[order] - node.work)
            else:
                changed = _by_totals(work, node, chosen)
            at_arrival[node.event] = changed
            has_block = graph.block_work[node.event] != NONE
            blocks = graph.block_work[node.event][has_block]
            at_block[node.event[has_block]] = np.rint(np.interp(blocks, node.arrival, changed)).astype(
                np.int64
            )
    return at_arrival, at_block


def _segments(nodes: Sequence[Node], like: Node) -> Int64:
    """int64[n, k], own work of nodes of one role between the arrivals, in the order of one of them."""
    return np.stack([np.diff(a, prepend=a[:1]) for a in (node.arrival_in_order_of(like) for node in nodes)])


def middle(rows: Int64) -> Int64:
    """Median of each column, int64; of two rows the smaller value.

    >>> middle(np.array([[1, 9], [3, 5], [2, 6]])).tolist(), middle(np.array([[1, 9], [3, 5]])).tolist()
    ([2, 6], [1, 5])
    """
    if len(rows) == 2:
        smaller: Int64 = rows.min(axis=0)
        return smaller
    medians: Int64 = np.rint(np.median(rows, axis=0)).astype(np.int64)
    return medians


def _by_totals(work: OwnWork, node: Node, chosen: set[int]) -> Int64:
    """Change at each arrival if the node's own work in each step were that of the others, evenly spread."""
    others = [n for n in work.nodes if n.rank not in chosen and n.window == node.window]
    changed = np.zeros(len(node.event), np.int64)
    if not others:
        return changed
    totals = [_total_per_step(n) for n in others]
    factor = np.ones(len(node.event))
    for step in np.unique(node.step).tolist():
        mine = node.step == step
        theirs = [t[step] for t in totals if step in t]
        own = int(node.work[mine].sum())
        if theirs and own > 0:
            factor[mine] = float(middle(np.array(theirs)[:, None])[0]) / own
    return np.cumsum(np.rint(node.work * (factor - 1.0)).astype(np.int64))


def _total_per_step(node: Node) -> dict[int, int]:
    steps, index = np.unique(node.step, return_inverse=True)
    sums = np.zeros(len(steps), np.int64)
    np.add.at(sums, index.reshape(-1), node.work)
    return dict(zip(steps.tolist(), sums.tolist(), strict=True))


def excess_of(work: OwnWork) -> dict[int, int]:
    """How much longer each rank worked than its peers, in ns: sum over segments, what it did faster deducted."""
    excess: dict[int, int] = defaultdict(int)
    for role in work.roles:
        rows = _segments([work.nodes[i] for i in role], work.nodes[role[0]])
        target = np.median(rows, axis=0) if len(role) > 2 else rows.min(axis=0)
        for i, row in zip(role, rows, strict=True):
            excess[work.nodes[i].rank] += int((row - target).sum())
    return dict(excess)
