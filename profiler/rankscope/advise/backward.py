"""A recorded backward over all ranks, and what it would be with nothing beside its compute."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from rankscope.advise.ddp_layout import Bucket, Gradient
from rankscope.model.intervals import Int64, IntervalSet, covered_ns, union

_LITTLE, _MUCH = 0.2, 0.8
_MIN_SEGMENTS = 3
_MAX_SLOWDOWN = 4.0
_FEW = 0.1
_UNEVEN = 1.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One backward that DDP synchronised, on all ranks; times are ns on the common clock.

    Attributes:
        step: its step.
        gradients: in the order in which they became ready.
        ready_ns: int64[r, g], when each gradient was in place.
        issued_ns: int64[r, g], when the host thread was done with it; equal to `ready_ns` on CPU-only runs.
        computed_ns: int64[r], when each rank's compute ended that did not wait for a bucket: not before the last
            gradient.
        copied_ns: int64[r], how long each rank copied gradients back out of the buckets, after the last had arrived.
        buckets: as they were sent: places in `gradients`.
        sent_bytes: int64[b], bytes of each bucket on the network.
        started_ns, finished_ns: int64[r, b], each bucket's communication.
        host_ns: time in which a thread asks for one bucket; its compute stands still meanwhile on CPU-only runs.
        start_delay_ns: from the request of a bucket to its start, where nothing else is in its way.
        on_cpu: whether host threads compute.
    """

    step: int
    gradients: tuple[Gradient, ...]
    ready_ns: Int64
    issued_ns: Int64
    computed_ns: Int64
    copied_ns: Int64
    buckets: tuple[Bucket, ...]
    sent_bytes: Int64
    started_ns: Int64
    finished_ns: Int64
    host_ns: int
    start_delay_ns: int
    on_cpu: bool

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return len(self.ready_ns)

    @property
    def sent_ratio(self) -> float:
        """Bytes on the network over bytes of the gradients: below 1 under a compression hook."""
        return float(self.sent_bytes.sum()) / max(sum(b.size_bytes for b in self.buckets), 1)

    @property
    def transfers(self) -> IntervalSet:
        """When some bucket was being transferred: from its last rank's start to its first end."""
        return union(self.started_ns.max(axis=0), self.finished_ns.min(axis=0))

    @property
    def end_ns(self) -> int:
        """When the last rank had all gradients, summed over ranks, and had computed all it could."""
        return int(max(self.computed_ns.max(), self.finished_ns.max()))

    @property
    def marks_ns(self) -> Int64:
        """int64[r, g + 1], `ready_ns` and last `computed_ns`."""
        return np.concatenate([self.ready_ns, self.computed_ns[:, None]], axis=1)

    def launches_before(self) -> Int64:
        """int64[g + 1], number of buckets asked for before each gradient was in place, and last of all buckets."""
        counts = np.zeros(len(self.gradients) + 1, np.int64)
        last = -1
        for bucket in self.buckets:
            last = max(last, *bucket.gradients)
            counts[last + 1 :] += 1
        return counts


def segments(recorded: Recorded) -> tuple[Int64, Int64]:
    """Compute between one gradient and the next, and the part beside a transfer: int64[r, g] ns each.

    The last segment is what was computed after the last gradient. On CPU-only runs the time in which the thread asked
    for a bucket is taken out.
    """
    marks, transfers = recorded.marks_ns, recorded.transfers
    duration = np.diff(marks, axis=1)
    beside = covered_ns(marks[:, :-1].ravel(), marks[:, 1:].ravel(), transfers).reshape(duration.shape)
    if recorded.on_cpu:
        asked = np.diff(recorded.launches_before()) * recorded.host_ns
        kept = np.maximum(duration - asked, 0)
        beside = np.minimum(beside, kept)
        duration = kept
    return duration, beside


def slowdown_of(backwards: Sequence[Recorded]) -> tuple[float, bool]:
    """By what factor transfers slow compute down, and whether the trace shows it; else 1.

    Layers repeat: segments that end in gradients of the same sizes do the same work. What those beside a transfer take,
    over what as many of them take without one, is the factor. Steps are sums, so means count, but for a tenth at either
    end.

    On a slow network hardly a segment is without a transfer. There the lowest tenth of equal segments stands for those
    without: what disturbs compute does so unevenly, and only ever adds time. A factor below 1.1 is mere scatter then.
    """
    with_transfer: dict[tuple[int, int], list[int]] = defaultdict(list)
    without: dict[tuple[int, int], list[int]] = defaultdict(list)
    for recorded in backwards:
        duration, beside = segments(recorded)
        for k in range(len(recorded.gradients) - 1):
            key = recorded.gradients[k].elements, recorded.gradients[k + 1].elements
            for d, b in zip(duration[:, k].tolist(), beside[:, k].tolist(), strict=True):
                if d > 0 and b >= _MUCH * d:
                    with_transfer[key].append(d)
                elif d > 0 and b <= _LITTLE * d:
                    without[key].append(d)
    pairs = [
        (slow, without[key])
        for key, slow in with_transfer.items()
        if min(len(slow), len(without[key])) >= _MIN_SEGMENTS
    ]
    if not pairs:
        return _uneven_slowdown(with_transfer)
    slow_ns = sum(len(slow) * _mean_of_most(slow) for slow, _ in pairs)
    free_ns = sum(len(slow) * _mean_of_most(free) for slow, free in pairs)
    return float(np.clip(slow_ns / free_ns, 1.0, _MAX_SLOWDOWN)), True


def _uneven_slowdown(with_transfer: Mapping[tuple[int, int], Sequence[int]]) -> tuple[float, bool]:
    """Median over lowest tenth of equal segments beside transfers; 1 and False where they differ too little."""
    many = [slow for slow in with_transfer.values() if len(slow) >= 2 * _MIN_SEGMENTS]
    if not many:
        return 1.0, False
    ratios = [float(np.median(slow) / np.quantile(slow, _FEW)) for slow in many]
    factor = min(_weighted_median(ratios, [float(sum(slow)) for slow in many]), _MAX_SLOWDOWN)
    return (factor, True) if factor >= _UNEVEN else (1.0, False)


def _mean_of_most(values: Sequence[int]) -> float:
    """Mean without the tenth of the values at either end, and at least one: a hiccup is not what is typical."""
    cut = ceil(_FEW * len(values))
    return float(np.sort(values)[cut : len(values) - cut].mean())


def _weighted_median(values: list[float], weights: list[float]) -> float:
    order = np.argsort(values)
    reached = np.cumsum(np.array(weights)[order])
    return values[int(order[int(np.searchsorted(reached, reached[-1] / 2))])]


def free_segments(recorded: Recorded, slowdown: float) -> Int64:
    """`segments` as they would be without any transfer beside them, int64[r, g] ns."""
    duration, beside = segments(recorded)
    free: Int64 = np.rint(duration - beside + beside / slowdown).astype(np.int64)
    return free
