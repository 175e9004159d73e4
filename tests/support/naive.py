"""What tools say that trust raw timestamps and the n-th event: the peers of the corruption table."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from rankscope.correlate.run_communications import RunCommunications


def last_to_start(comms: RunCommunications) -> int | None:
    """The rank whose n-th collectives start last by the most, by the ranks' own clocks; it always names one."""
    starts = _nth_events(comms, comms.start_ns)
    if not starts:
        return None
    lost: dict[int, int] = defaultdict(int)
    for by_rank in zip(*starts.values(), strict=False):
        order = np.argsort(by_rank, kind="stable")
        lost[list(starts)[int(order[-1])]] += int(by_rank[order[-1]] - by_rank[order[-2]])
    return max(lost, key=lambda rank: (lost[rank], -rank))


def least_waiting(comms: RunCommunications) -> int | None:
    """The rank whose collectives take least time in all: it waits for nobody; it always names one."""
    spent = {rank: sum(ns) for rank, ns in _nth_events(comms, comms.end_ns - comms.start_ns).items()}
    return min(spent, key=lambda rank: (spent[rank], rank)) if spent else None


def _nth_events(comms: RunCommunications, values: np.typing.NDArray[np.int64]) -> dict[int, list[int]]:
    """Rank -> values of its collectives in order of start, as many as all ranks have; {} with one rank."""
    usable = comms.is_synchronising
    found = {rank: values[usable & (comms.rank == rank)].tolist() for rank in comms.ranks}
    found = {rank: listed for rank, listed in found.items() if listed}
    count = min((len(listed) for listed in found.values()), default=0)
    return {rank: listed[:count] for rank, listed in found.items()} if len(found) > 1 else {}
