"""Own work of ranks compared with that of their peers, and the graph with the work of a set made like theirs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from rankscope.correlate.host_path import work_clock
from rankscope.correlate.run_communications import RunCommunications
from rankscope.correlate.sync_graph import NONE, SyncGraph
from rankscope.model.grouping import places_of_each
from rankscope.model.intervals import Bool, Int64

_AT_ONCE = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One rank on one device in one window: its events of syncs that are on all their ranks, in order.

    Attributes:
        number: index into the graph's nodes.
        rank: its rank.
        window: its recorded window.
        event: int64[k], those events, as indices into the graph's event columns, by position.
        arrival: int64[k], own-work clock at each arrival, never falling.
        begin: int64[k], own-work clock where the work up to each arrival begins: at the arrival before. The first
            one has none before it and begins at itself. Where a sync between the two is missing on some rank, its
            wait looks like work there: then the work begins at that sync, or at its end on ranks that lack it.
        is_cut: bool[k], whether it begins at such a sync.
        step: int64[k], steps of the syncs.
        call: int64[k], places of the events in the order in which the host asked for them. That order is the
            program's and equal on all ranks of a role; the order of arrivals on several streams is not.
        all_events: int64[j], its events of all syncs.
    """

    number: int
    rank: int
    window: int
    event: Int64
    arrival: Int64
    begin: Int64
    is_cut: Bool
    step: Int64
    call: Int64
    all_events: Int64

    @property
    def work(self) -> Int64:
        """int64[k], own work up to each arrival."""
        return self.arrival - self.begin

    def in_order_of(self, other: Node) -> Int64:
        """int64[k], places of the equal events of this node, in the order of another node of the role."""
        place = np.empty(len(self.call), np.int64)
        place[other.call] = self.call
        return place

    def work_in_order_of(self, other: Node) -> tuple[Int64, Bool]:
        """(int64[k], bool[k]): own work up to each arrival and `is_cut`, in the order of another node of the role."""
        if np.array_equal(self.call, other.call):
            return self.work, self.is_cut
        place = self.in_order_of(other)
        arrival = self.arrival[place]
        begin = np.where(self.is_cut[place], self.begin[place], _before(arrival, arrival))
        return arrival - begin, self.is_cut[place]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnWork:
    """Own work of all nodes, and who can be compared with whom.

    Attributes:
        nodes: nodes with events.
        roles: sets of nodes (indices into `nodes`) whose hosts ask for the same sequence of syncs and that hang
            together.
        incomplete_steps: steps in which a sync is missing on some rank.
    """

    nodes: tuple[Node, ...]
    roles: tuple[tuple[int, ...], ...]
    incomplete_steps: frozenset[int] = frozenset()


def measure_own_work(graph: SyncGraph, comms: RunCommunications, component: dict[int, int]) -> OwnWork:
    """Own work of every node between its syncs.

    Args:
        graph: the synchronisation graph.
        comms: the run's communication events.
        component: rank -> a number that is equal for ranks that hang together.
    """
    if len(graph) == 0:
        return OwnWork(nodes=(), roles=())
    holes = _Holes(graph, comms)
    sync = graph.sync
    order = np.lexsort((graph.position, graph.node))
    numbers, starts = np.unique(graph.node[order], return_index=True)
    nodes: list[Node] = []
    roles = defaultdict(list)
    for number, events in zip(numbers.tolist(), np.split(order, starts[1:]), strict=True):
        event = events[holes.is_whole[sync[events]]]
        if len(event) == 0:
            continue
        arrival = np.maximum.accumulate(graph.arrival_work[event])
        rank = int(graph.node_rank[number])
        call = np.argsort(comms.launch_ns[graph.event[event]], kind="stable")
        is_cut, begin = holes.cut(number, events, event)
        node = Node(
            number=number,
            rank=rank,
            window=int(graph.node_window[number]),
            event=event,
            arrival=arrival,
            begin=np.where(
                is_cut, np.clip(begin, _before(arrival, begin), arrival), _before(arrival, arrival)
            ),
            is_cut=is_cut,
            step=graph.step[sync[event]],
            call=call,
            all_events=events,
        )
        tokens = comms.token[graph.event[event[call]]]
        program = (tokens.tobytes(), node.step[call].tobytes())
        roles[component.get(rank, -1 - rank), node.window, program].append(len(nodes))
        nodes.append(node)
    return OwnWork(
        nodes=tuple(nodes),
        roles=tuple(tuple(members) for members in roles.values()),
        incomplete_steps=frozenset(graph.step[~holes.is_whole].tolist()),
    )


class _Holes:
    """Syncs that are missing on some rank that was recorded.

    Attributes:
        is_whole: bool[s], whether each sync is on all its ranks.
    """

    def __init__(self, graph: SyncGraph, comms: RunCommunications) -> None:
        first = graph.event[graph.first[:-1]]
        group = comms.group[first]
        members = _present(comms)
        wanted = np.array([len(ranks) for ranks in members], np.int64)[group]
        wanted[comms.is_point_to_point[first]] = 2
        self._graph = graph
        self._sync = graph.sync
        self._window = graph.node_window[graph.node[graph.first[:-1]]]
        self.is_whole: Bool = np.diff(graph.first) >= wanted
        self._of_rank: dict[int, list[Int64]] = defaultdict(list)
        for number in np.unique(group[~self.is_whole]).tolist():
            missing = np.flatnonzero(~self.is_whole & (group == number))
            for rank in members[number]:
                self._of_rank[rank].append(missing)

    def cut(self, node: int, events: Int64, whole: Int64) -> tuple[Bool, Int64]:
        """Which of a node's whole syncs follow one that is missing somewhere, and where the work in between begins.

        Args:
            node: the node.
            events: its events.
            whole: those of them that are of whole syncs.

        Returns:
            (bool[k], int64[k]): whether the last sync before the arrival is such a one, and the own-work clock at
            the arrival there, or at its end if the node lacks it.
        """
        graph = self._graph
        is_cut, begin = np.zeros(len(whole), bool), np.zeros(len(whole), np.int64)
        found = self._of_rank.get(int(graph.node_rank[node]))
        if found is None:
            return is_cut, begin
        missing = np.concatenate(found)
        missing = np.sort(
            missing[self._window[missing] == graph.node_window[node]]
        )  # syncs are in order of end
        point = work_clock(graph.end_ns[missing], graph.node_blocked[node])
        mine = events[~self.is_whole[self._sync[events]]]
        point[np.searchsorted(missing, self._sync[mine])] = graph.arrival_work[mine]
        ends = np.maximum.accumulate(graph.end_ns[self._sync[whole]])
        place = np.searchsorted(ends, graph.end_ns[missing], side="left")
        inside = place < len(whole)
        is_cut[place[inside]] = True
        begin[place[inside]] = point[inside]  # of several, the last one
        return is_cut, begin


def _present(comms: RunCommunications) -> list[list[int]]:
    """For each group its ranks that were recorded."""
    recorded = set(comms.ranks)
    events = places_of_each(comms.group, len(comms.groups))
    return [
        sorted(recorded.intersection(key.ranks)) if key.ranks else np.unique(comms.rank[mine]).tolist()
        for key, mine in zip(comms.groups, events, strict=True)
    ]


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
        mine = [work.nodes[i] for i in role if work.nodes[i].rank in chosen]
        peers = [work.nodes[i] for i in role if work.nodes[i].rank not in chosen]
        targets: dict[bytes, tuple[Int64, Bool]] = {}
        for node in mine:
            if peers:
                like = node.call.tobytes() + node.is_cut.tobytes()
                if like not in targets:
                    targets[like] = _target(peers, node)
                target, known = targets[like]
                changed = np.cumsum(np.where(known, target - node.work, 0))
            else:
                changed = _by_totals(work, node, chosen)
            arrivals = graph.arrival_work[node.all_events]
            at_arrival[node.all_events] = _between(arrivals, node, changed)
            at_arrival[node.event] = changed
            blocking = node.all_events[graph.block_work[node.all_events] != NONE]
            at_block[blocking] = _between(graph.block_work[blocking], node, changed)
    return at_arrival, at_block


def _between(points: Int64, node: Node, changed: Int64) -> Int64:
    """The change at points of the own-work clock: it grows from the begin of each segment to its arrival."""
    zero = node.begin[0]  # small numbers, since floats cannot hold absolute nanoseconds
    knots = np.stack([node.begin, node.arrival], axis=1).reshape(-1) - zero
    before = np.concatenate([[0], changed[:-1]])
    heights = np.stack([before, changed], axis=1).reshape(-1)
    change: Int64 = np.rint(np.interp(points - zero, knots, heights)).astype(np.int64)
    return change


def _target(peers: Sequence[Node], like: Node) -> tuple[Int64, Bool]:
    """(int64[k], bool[k]): what the peers worked in each segment of a node, and whether any has the same segment."""
    rows, cuts = _segments(peers, like)
    comparable = cuts == like.is_cut
    comparable[:, 0] &= like.is_cut[0]
    known: Bool = np.asarray(comparable.any(axis=0))
    target = middle(rows)
    for column in np.flatnonzero(known & ~comparable.all(axis=0)).tolist():
        target[column] = middle(rows[comparable[:, column], column][:, None])[0]
    return target, known


def _segments(nodes: Sequence[Node], like: Node) -> tuple[Int64, Bool]:
    """(int64[n, k], bool[n, k]): own work of nodes of one role, and cuts, in the order of one of them."""
    found = [node.work_in_order_of(like) for node in nodes]
    return np.stack([work for work, _ in found]), np.stack([cuts for _, cuts in found])


def _before(arrival: Int64, first: Int64) -> Int64:
    """int64[k], the arrival before each one; before the first one what `first` says."""
    return np.concatenate([first[:1], arrival[:-1]])


def middle(rows: Int64) -> Int64:
    """Median of each column, int64; of two rows the smaller value.

    >>> middle(np.array([[1, 9], [3, 5], [2, 6]])).tolist(), middle(np.array([[1, 9], [3, 5]])).tolist()
    ([2, 6], [1, 5])
    """
    if len(rows) == 2:
        smaller: Int64 = rows.min(axis=0)
        return smaller
    medians = np.empty(rows.shape[1], np.int64)
    for first in range(0, rows.shape[1], _AT_ONCE):  # a few columns at a time stay in the processor's cache
        few = slice(first, first + _AT_ONCE)
        medians[few] = np.rint(np.median(rows[:, few], axis=0))
    return medians


def _by_totals(work: OwnWork, node: Node, chosen: set[int]) -> Int64:
    """Change at each arrival if the node's own work in each step were that of the others, evenly spread."""
    others = [n for n in work.nodes if n.rank not in chosen and n.window == node.window]
    changed = np.zeros(len(node.event), np.int64)
    if not others:
        return changed
    own = _total_per_step(node)
    totals = [_total_per_step(n) for n in others]
    factor = np.ones(len(node.event))
    for step, total in own.items():
        theirs = [t[step] for t in totals if step in t]
        if theirs and total > 0:
            factor[node.step == step] = float(middle(np.array(theirs)[:, None])[0]) / total
    return np.cumsum(np.rint(node.work * (factor - 1.0)).astype(np.int64))


def _total_per_step(node: Node) -> dict[int, int]:
    """Step -> own work of the node in it, without steps of which a sync is missing on some rank."""
    steps, index = np.unique(node.step, return_inverse=True)
    sums = np.zeros(len(steps), np.int64)
    np.add.at(sums, index.reshape(-1), node.work)
    cut = set(node.step[node.is_cut].tolist())
    return {s: ns for s, ns in zip(steps.tolist(), sums.tolist(), strict=True) if s not in cut}


def excess_of(work: OwnWork) -> dict[int, int]:
    """How much longer each rank worked than its peers, in ns: sum over segments, what it did faster deducted."""
    excess: dict[int, int] = defaultdict(int)
    for role in work.roles:
        nodes = [work.nodes[i] for i in role]
        rows, cuts = _segments(nodes, nodes[0])
        rows = rows[:, (cuts == cuts[0]).all(axis=0)]
        target = np.median(rows, axis=0) if len(role) > 2 else rows.min(axis=0)
        for node, row in zip(nodes, rows, strict=True):
            excess[node.rank] += int((row - target).sum())
    return dict(excess)
