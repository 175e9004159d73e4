"""Slow links: groups whose transfers take longer than those of groups of the same shape, though nobody arrives late."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rankscope.correlate.candidates import Candidate
from rankscope.correlate.graph_steps import GraphSteps
from rankscope.correlate.replay import replay
from rankscope.correlate.run_communications import RunCommunications
from rankscope.correlate.sync_graph import SyncGraph
from rankscope.model.groups import compact_ranks
from rankscope.model.intervals import Int64

_MIN_RATIO = 1.5
_MIN_EXCESS_NS = 20_000
_MIN_TRANSFERS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowNetwork:
    """A rank, host or group whose links are slow.

    Attributes:
        candidate: whose links.
        rivals: number of links that were compared.
        op: operation on which it shows most.
        size_bytes: its size; None if unknown.
        transfer_ns, peers_ns: median transfer on the slow links, and on the links of the same shape.
        per_step_ns: int64[s], by how much each step would be shorter with transfers like those of the peers (replay).
        step_ns: int64[s], length of the steps.
    """

    candidate: Candidate
    rivals: int
    op: str
    size_bytes: int | None
    transfer_ns: int
    peers_ns: int
    per_step_ns: Int64
    step_ns: Int64


Link = tuple[int, ...]
"""Ranks that transfer between them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Class:
    """Transfers that should take equally long: one operation and size, on links of one shape.

    Attributes:
        token: the operation.
        links: link -> indices of its syncs.
        typical_ns: link -> median transfer.
    """

    token: int
    links: dict[Link, Int64]
    typical_ns: dict[Link, int]

    @property
    def usual_ns(self) -> int:
        """Median over the links, of an even number the lower of the two in the middle."""
        return sorted(self.typical_ns.values())[(len(self.links) - 1) // 2]


def find_slow_network(
    graph: SyncGraph, comms: RunCommunications, hosts: Mapping[int, str], steady: Sequence[int] | None
) -> SlowNetwork | None:
    """The rank, host or group whose links are slow; None if there is none, or several links without a common end.

    A transfer is compared with those of the same operation, element type and size on links with as many ranks on as
    many hosts; two such links are needed at least, and a slow one takes half as long again as the median of all (of
    two: the faster).

    Args:
        graph: the synchronisation graph.
        comms: the run's communication events.
        hosts: rank -> host, where known.
        steady: step numbers that count; None without step markers.
    """
    if len(graph) == 0:
        return None
    transfer = _shortest(graph, comms)
    classes = _classes(graph, comms, hosts, transfer)
    slow, healthy = _sort_links(classes)
    candidate = _common_end(slow, healthy, hosts)
    if candidate is None:
        return None
    base, ends = replay(graph), replay(graph, transfer_ns=_repaired(graph, classes, transfer, slow))
    steps = GraphSteps(graph, steady)
    steps.keep_long(base)
    everything = np.ones(len(graph), bool)
    length = steps.lengths(base, everything)
    token, own, peers = _clearest(classes, transfer, slow)
    return SlowNetwork(
        candidate=candidate,
        rivals=len(slow) + len(healthy),
        op=comms.tokens[token].op,
        size_bytes=comms.tokens[token].size_bytes,
        transfer_ns=own,
        peers_ns=peers,
        per_step_ns=length - steps.lengths(ends, everything),
        step_ns=length,
    )


def _shortest(graph: SyncGraph, comms: RunCommunications) -> Int64:
    """Transfer of each sync, int64[s]: the shortest duration over its ranks."""
    duration = comms.end_ns[graph.event] - comms.start_ns[graph.event]
    shortest: Int64 = np.minimum.reduceat(duration, graph.first[:-1])
    return shortest


def _classes(
    graph: SyncGraph, comms: RunCommunications, hosts: Mapping[int, str], transfer: Int64
) -> list[_Class]:
    """Classes with two links at least, each link with enough transfers to have a typical one."""
    width = max(comms.ranks) + 1
    rank = np.sort(graph.sync * width + comms.rank[graph.event]) % width  # of each sync in order
    token = comms.token[graph.event[graph.first[:-1]]].tolist()
    alike: dict[tuple[int, bytes], list[int]] = defaultdict(list)
    for sync, (begin, end) in enumerate(pairwise(graph.first.tolist())):
        alike[token[sync], rank[begin:end].tobytes()].append(sync)
    found: dict[tuple[int, int, int], dict[Link, Int64]] = defaultdict(dict)
    for (number, members), syncs in alike.items():
        link = tuple(np.frombuffer(members, np.int64).tolist())
        if len(syncs) >= _MIN_TRANSFERS:
            on_hosts = len({hosts.get(member, "") for member in link})
            found[number, len(link), on_hosts][link] = np.array(syncs, np.int64)
    return [
        _Class(
            token=number,
            links=links,
            typical_ns={link: int(np.median(transfer[index])) for link, index in links.items()},
        )
        for (number, _, _), links in found.items()
        if len(links) > 1
    ]


def _sort_links(classes: Sequence[_Class]) -> tuple[set[Link], set[Link]]:
    """(slow links, healthy links); a link is slow if it is so in all classes in which it is compared."""
    verdicts: dict[Link, list[bool]] = defaultdict(list)
    for kind in classes:
        usual = kind.usual_ns
        for link, value in kind.typical_ns.items():
            verdicts[link].append(value >= _MIN_RATIO * usual and value - usual >= _MIN_EXCESS_NS)
    slow = {link for link, of_class in verdicts.items() if all(of_class)}
    return slow, set(verdicts) - slow


def _common_end(slow: set[Link], healthy: set[Link], hosts: Mapping[int, str]) -> Candidate | None:
    """What all slow links have in common and no healthy one has: a rank, else a host, else the one link itself."""
    if not slow or not healthy:
        return None
    on_healthy = {rank for link in healthy for rank in link}
    ranks = sorted(set.intersection(*(set(link) for link in slow)) - on_healthy)
    if len(ranks) == 1:
        return Candidate((ranks[0],), "rank")
    names = [{hosts[r] for r in link if r in hosts} for link in slow]
    healthy_hosts = {hosts[r] for link in healthy for r in link if r in hosts}
    shared = sorted(set.intersection(*names) - healthy_hosts)
    if len(shared) == 1:
        return Candidate(tuple(sorted(r for r, h in hosts.items() if h == shared[0])), "host", shared[0])
    if len(slow) == 1:
        (link,) = slow
        return Candidate(link, "group", f"[{compact_ranks(link)}]")
    return None


def _repaired(graph: SyncGraph, classes: Sequence[_Class], transfer: Int64, slow: set[Link]) -> Int64:
    """Transfers for the replay in which the slow links are as fast as the others."""
    repaired = graph.transfer_ns.copy()
    for kind in classes:
        for link, index in kind.links.items():
            if link in slow:
                excess = np.maximum(transfer[index] - kind.usual_ns, 0)
                repaired[index] = np.maximum(graph.transfer_ns[index] - excess, 0)
    return repaired


def _clearest(classes: Sequence[_Class], transfer: Int64, slow: set[Link]) -> tuple[int, int, int]:
    """(token, median transfer on the slow links, usual transfer) where the slow links lose most time."""
    lost = []
    for kind in classes:
        index = [i for link, i in kind.links.items() if link in slow]
        if index:
            mine, usual = transfer[np.concatenate(index)], kind.usual_ns
            lost.append((int((mine - usual).sum()), kind.token, int(np.median(mine)), usual))
    return max(lost)[1:]
