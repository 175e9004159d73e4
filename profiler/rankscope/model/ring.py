"""The ring: how many steps a collective takes over it, and what each rank sends.

With n ranks in a ring an all-reduce is a reduce-scatter followed by an all-gather: 2(n-1) steps in each of which
every rank sends 1/n of the size to its neighbour (nccl-tests, doc/PERFORMANCE.md).
"""

from __future__ import annotations

from dataclasses import dataclass

from rankscope.model.collective import bus_factor

_ROUNDS = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ring:
    """A collective over a ring.

    Attributes:
        op: the operation.
        ranks: number of ranks n.
        size_bytes: the collective's size S.
        steps: steps after one another; None for operations that are not done in equal steps.
        step_bytes: what a rank sends in a step; None likewise.
        traffic_bytes: what a rank sends in all, S times the bus factor.
    """

    op: str
    ranks: int
    size_bytes: int
    steps: int | None
    step_bytes: int | None
    traffic_bytes: int

    def transfer_ns(self, link_gbps: float) -> int:
        """Least time in ns over links of `link_gbps` (1e9 bytes/s); latency is not in it."""
        return round(self.traffic_bytes / link_gbps)


def plan_ring(op: str, ranks: int, size_bytes: int) -> Ring | None:
    """The collective over a ring; None for an operation whose traffic is not known, or a single rank.

    >>> ring = plan_ring("all_reduce", 4, 100_000_000)
    >>> ring.steps, ring.step_bytes, ring.traffic_bytes, ring.transfer_ns(150)
    (6, 25000000, 150000000, 1000000)
    """
    factor = bus_factor(op, ranks)
    if factor is None or ranks < 2:
        return None
    rounds = _ROUNDS.get(op)
    return Ring(
        op=op,
        ranks=ranks,
        size_bytes=size_bytes,
        steps=None if rounds is None else rounds * (ranks - 1),
        step_bytes=None if rounds is None else -(-size_bytes // ranks),
        traffic_bytes=round(factor * size_bytes),
    )


def ring_bandwidth_gbps(size_bytes: int, ranks: int, latency_ns: float, link_gbps: float) -> float:
    """Bus bandwidth of an all-reduce in 1e9 bytes/s that costs a latency before its bytes flow.

    Args:
        size_bytes: size of the all-reduce.
        ranks: number of ranks, at least 2.
        latency_ns: time of an all-reduce of no size.
        link_gbps: bus bandwidth of a very large one.

    >>> ring_bandwidth_gbps(100_000_000, 4, 1_000_000, 150)  # 150 MB in 1 ms of latency and 1 ms of transfer
    75.0
    """
    traffic_bytes = (bus_factor("all_reduce", ranks) or 0.0) * size_bytes
    return traffic_bytes / (latency_ns + traffic_bytes / link_gbps)
