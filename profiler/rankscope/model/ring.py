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
