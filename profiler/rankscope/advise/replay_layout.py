"""A backward replayed with another layout of buckets.

Every rank computes its gradients one after another. A bucket starts when all ranks have asked for it and the one before
has been transferred: one communication stream, buckets in index order. (gloo's two workers start two at once, which
share the network: measured, even the latency of one does not hide behind the other.) While a transfer runs, compute
takes `slowdown` times as long, and a transfer takes `drag` times as long while a rank still computes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rankscope.advise.backward import Recorded, free_segments
from rankscope.advise.ddp_layout import Bucket

Float = npt.NDArray[np.float64]
TransferTime = Callable[[float], float]
"""Bytes -> ns of a transfer, from the last rank's arrival on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What a layout gives, in ns.

    Attributes:
        end_ns: when all ranks have all gradients, after the first gradient's moment on the common clock.
        exposed_ns: communication after compute has ended, mean over ranks.
        communication_ns: communication, waiting included, mean over ranks.
    """

    end_ns: float
    exposed_ns: float
    communication_ns: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What compute and communication do to one another: factors of at least 1."""

    slowdown: float = 1.0
    drag: float = 1.0


def replay_layout(
    recorded: Recorded,
    layout: Sequence[Bucket],
    transfer_time: TransferTime,
    beside: Beside,
    *,
    sent_ratio: float | None = None,
    work: Float | None = None,
) -> Replayed:
    """Replay a recorded backward with a layout.

    Args:
        recorded: the backward.
        layout: buckets in index order, over the gradients of `recorded`.
        transfer_time: what a transfer takes from the last rank's arrival on.
        beside: how compute and communication slow one another.
        sent_ratio: bytes on the network over bytes of the gradients; as recorded unless given.
        work: what `free_work` returns for the slowdown, where it has been worked out before.
    """
    ratio = recorded.sent_ratio if sent_ratio is None else sent_ratio
    origin = int(recorded.ready_ns[:, 0].min())
    if work is None:
        work = free_work(recorded, beside.slowdown)
    compute = _Compute(recorded, work, origin, beside.slowdown)
    free_from = 0.0
    last = -1
    waits = np.zeros(recorded.ranks)
    spans: list[tuple[float, Float]] = []
    for place, bucket in enumerate(layout):
        last = max(last, *bucket.gradients)
        asked = np.maximum(compute.asked(last, place) + recorded.start_delay_ns, free_from)
        start = float(asked.max())
        end = _end_of(transfer_time(bucket.size_bytes * ratio), start, compute, len(layout), beside)
        spans.append((end, asked))
        compute.add_transfer(start, end)
        free_from = end
    computed = compute.ends(len(layout))
    for end, arrived in spans:
        waits += end - arrived
    exposed = sum((np.maximum(end - np.maximum(arrived, computed), 0) for end, arrived in spans), waits * 0)
    return Replayed(
        end_ns=max(float(computed.max()), free_from),
        exposed_ns=float(exposed.mean()),
        communication_ns=float(waits.mean()),
    )


def free_work(recorded: Recorded, slowdown: float) -> Float:
    """Work in ns that each rank has done at each gradient, and last in all, if no transfer ran beside it.

    Returns:
        float[r, g + 1].
    """
    zero = np.zeros((recorded.ranks, 1))
    return np.concatenate([zero, np.cumsum(free_segments(recorded, slowdown), axis=1)], axis=1)


def _end_of(work: float, start: float, compute: _Compute, buckets: int, beside: Beside) -> float:
    """When a transfer of `work` ns ends: it goes slower while the last rank still computes."""
    if beside.drag == 1.0:
        return start + work
    left = max(float(compute.ends(buckets).max()) - start, 0.0) * beside.slowdown
    if work * beside.drag <= left:
        return start + work * beside.drag
    return start + left + work - left / beside.drag


class _Compute:
    """Compute of all ranks, slowed while transfers run; times are ns after the origin."""

    def __init__(self, recorded: Recorded, work: Float, origin: int, slowdown: float) -> None:
        self._work = work
        self._begin: Float = (recorded.ready_ns[:, 0] - origin).astype(float)
        self._issued: Float = (recorded.issued_ns - origin).astype(float)
        self._recorded_launches = recorded.launches_before()
        self._host_ns = recorded.host_ns
        self._on_cpu = recorded.on_cpu
        self._slowdown = slowdown
        # Where each rank is: at time _at it has done _done of its work; later transfers are still to come.
        self._at: Float = self._begin.copy()
        self._done: Float = np.zeros(recorded.ranks)
        self._transfers: list[tuple[float, float]] = []

    def add_transfer(self, start: float, end: float) -> None:
        """Take note of a transfer; they come in order and do not overlap."""
        self._transfers.append((start, end))

    def asked(self, gradient: int, launched: int) -> Float:
        """When each rank asks for a bucket whose last gradient is `gradient`, after `launched` others, float[r]."""
        if self._on_cpu:
            return self._reach(self._work[:, gradient] + launched * self._host_ns, keep=True)
        ready = self._reach(self._work[:, gradient], keep=True)
        more = launched - self._recorded_launches[gradient]
        asked: Float = np.maximum(ready, self._issued[:, gradient] + (more + 1) * self._host_ns)
        return asked

    def ends(self, buckets: int) -> Float:
        """When each rank has computed all that waits for no bucket, and asked for all buckets, float[r]."""
        extra = buckets * self._host_ns if self._on_cpu else 0
        return self._reach(self._work[:, -1] + extra, keep=False)

    def _reach(self, work: Float, *, keep: bool) -> Float:
        """When each rank has done `work`; with `keep` the next call goes on from there."""
        at, done = self._at.copy(), self._done.copy()
        for start, end in self._transfers if self._slowdown > 1 else ():
            before = np.minimum(np.maximum(start - at, 0), np.maximum(work - done, 0))
            at, done = at + before, done + before
            inside = (at >= start) & (at < end) & (done < work)
            possible = np.where(inside, (end - at) / self._slowdown, 0.0)
            gained = np.minimum(possible, np.maximum(work - done, 0))
            at, done = at + gained * self._slowdown, done + gained
        rest = np.maximum(work - done, 0)
        at, done = at + rest, done + rest
        if keep:
            self._at, self._done = at, done
            earliest = float(at.min())
            self._transfers = [(s, e) for s, e in self._transfers if e > earliest]
        return at
