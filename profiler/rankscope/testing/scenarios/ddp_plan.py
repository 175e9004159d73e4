"""The parameters of a synthetic DDP run, and ready-made choices of how much of its communication hides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Literal

from rankscope.testing.program import ACCUMULATE_NS, COMMUNICATION, HOST_OVERHEAD_NS, Backend
from rankscope.testing.scenarios.parts import refuse

Overlap = Literal["full", "partial", "none"]
Where = Literal["compute", "work", "host", "input", "memory"]

DEFAULT_BUCKETS = (262_656, 6_566_400, 3_677_184)
"""40 x Linear(512), 262,656 elements each, under the default caps of 1 MiB and then 25 MiB: 1, 25 and 14 layers."""

ELEMENT_BYTES = 4
"""Gradients are float32."""

_MARGIN_NS = 200_000
_LATENCY_NS = 20_000
_BYTES_PER_NS = 10
_NS_PER_US = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    """What makes a rank slow: `extra_ns` more in every step, and where.

    "compute": its forward kernel takes longer. "work": it runs one more kernel. "host": its host thread does
    something without a row before the launches. "input": its data loader takes longer. "memory": its copy to
    the device takes longer.
    """

    extra_ns: int
    where: Where


@dataclass(frozen=True, slots=True, kw_only=True)
class DdpPlan:
    """A DDP run: in every step every rank loads data, copies it, runs forward and backward, and steps.

    Attributes:
        name: of the scenario.
        ranks, steps, first_step: ranks 0..ranks-1, and `steps` steps numbered from `first_step`.
        buckets: elements of the parameters of each bucket, in gradient-ready order.
        backward_ns: backward compute before each parameter's gradient is ready, in that order; one more entry
            is compute after the last gradient.
        transfer_ns: of each bucket.
        initial_transfer_ns: if given, the first step uses one bucket with everything, of this transfer.
        input_ns, copy_ns, forward_ns, optimizer_ns: durations of a step's other parts.
        backend: "nccl", "rccl" or "gloo".
        workers: communication streams (gloo: worker threads) that buckets use in turn.
        extras: rank -> what makes it slow.
        end_jitter_ns: rank -> how much later than the common end collectives end on it.
    """

    name: str
    ranks: int
    steps: int
    first_step: int
    buckets: tuple[tuple[int, ...], ...]
    backward_ns: tuple[int, ...]
    transfer_ns: tuple[int, ...]
    initial_transfer_ns: int | None = None
    input_ns: int = 100_000
    copy_ns: int = 0
    forward_ns: int = 2_000_000
    optimizer_ns: int = 500_000
    backend: Backend = "nccl"
    workers: int = 1
    extras: Mapping[int, Extra] = field(default_factory=dict)
    end_jitter_ns: Mapping[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check everything at once.

        Raises:
            UsageError: naming each parameter that has no meaning.
        """
        parameters = sum(len(bucket) for bucket in self.buckets)
        is_slow_in_memory = any(extra.where == "memory" for extra in self.extras.values())
        refuse(
            self.name,
            (self.ranks < 1 or self.steps < 1, "there must be at least one rank and one step"),
            (not all(self.buckets), "a bucket holds at least one parameter"),
            (len(self.transfer_ns) != len(self.buckets), "one transfer_ns per bucket"),
            (
                len(self.backward_ns) not in (parameters, parameters + 1),
                f"one backward_ns per parameter ({parameters}), and at most one more",
            ),
            (self.on_cpu and self.copy_ns > 0, "gloo runs have no copies to a device"),
            (is_slow_in_memory and self.copy_ns == 0, "a rank that is slow in memory needs copy_ns"),
            (self.workers < 1, "at least one worker"),
            (bool(set(self.extras) - set(range(self.ranks))), "a slow rank is not in the run"),
            input_ns=self.input_ns,
            copy_ns=self.copy_ns,
            forward_ns=self.forward_ns,
            optimizer_ns=self.optimizer_ns,
            shortest_transfer_ns=min(self.transfer_ns),
            shortest_backward_ns=min(self.backward_ns),
        )

    @property
    def on_cpu(self) -> bool:
        """True where compute runs on the host thread."""
        return self.backend == "gloo"

    @property
    def step_numbers(self) -> range:
        """The steps."""
        return range(self.first_step, self.first_step + self.steps)

    def buckets_of(self, step: int) -> tuple[tuple[int, ...], ...]:
        """Elements of the parameters of each bucket in a step."""
        if step == self.first_step and self.initial_transfer_ns is not None:
            return (tuple(elements for bucket in self.buckets for elements in bucket),)
        return self.buckets

    def transfers_of(self, step: int) -> tuple[int, ...]:
        """Transfer of each bucket in a step, in ns."""
        if step == self.first_step and self.initial_transfer_ns is not None:
            return (self.initial_transfer_ns,)
        return self.transfer_ns

    def lane(self, bucket: int) -> str:
        """The stream or worker of a bucket."""
        return COMMUNICATION if self.workers == 1 else f"worker {bucket % self.workers}"

    def slower_by_ns(self, rank: int, *where: Where) -> int:
        """What a rank spends more at any of these places, in ns."""
        extra = self.extras.get(rank)
        return extra.extra_ns if extra is not None and extra.where in where else 0


def parameters_of(buckets: Sequence[int | Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """Buckets as tuples of parameters; a bare number is a bucket of one parameter.

    >>> parameters_of([8, [1, 2]])
    ((8,), (1, 2))
    """
    return tuple((b,) if isinstance(b, int) else tuple(b) for b in buckets)


def usual_transfer_ns(bucket: Sequence[int]) -> int:
    """Transfer time of a bucket on a plausible network, in whole us: 20 us and 10 bytes per ns.

    >>> usual_transfer_ns((262_144, 512))
    125000
    """
    return _LATENCY_NS + sum(bucket) * ELEMENT_BYTES // _BYTES_PER_NS // _NS_PER_US * _NS_PER_US


def backward_for(
    overlap: Overlap,
    buckets: Sequence[Sequence[int]],
    transfer_ns: Sequence[int],
) -> tuple[int, ...]:
    """Backward compute per parameter (ns) that hides all, half or none of the communication.

    "full": after each bucket comes compute that is longer than its transfer. "partial": half as long, and
    nothing after the last. "none": all compute comes before the first gradient; on gloo the AccumulateGrad
    rows of later buckets, which are compute, still run beside the first ones.
    """
    first = {0, *accumulate(len(bucket) for bucket in buckets)}
    after = dict(zip(sorted(first)[1:], transfer_ns, strict=True))
    parameters = sum(len(bucket) for bucket in buckets)
    # Each AccumulateGrad row costs the host time, and the device must not run dry meanwhile.
    base = [2 * ACCUMULATE_NS + 2 * HOST_OVERHEAD_NS for _ in range(parameters)]
    if overlap == "none":
        return (sum(base) + _MARGIN_NS, *([0] * (parameters - 1)))
    for place, transfer in after.items():
        if place < parameters:
            base[place] = transfer + _MARGIN_NS if overlap == "full" else max(base[place], transfer // 2)
    return (*base, transfer_ns[-1] + _MARGIN_NS) if overlap == "full" else tuple(base)
