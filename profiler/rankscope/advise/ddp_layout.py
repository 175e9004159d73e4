"""The rule by which DDP puts gradients into buckets, to the byte.

Source: `compute_bucket_assignment_by_size` and `Reducer::rebuild_buckets` in torch/csrc/distributed/c10d/reducer.cpp,
and `_BucketCapacityConfig` in torch/nn/parallel/distributed.py; tests compare it with real DDP.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MIB = 1 << 20
DEFAULT_CAP_BYTES = 25 * MIB
DEFAULT_FIRST_CAP_BYTES = MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Gradient:
    """A parameter's gradient: elements, dtype ("float32") and bytes."""

    elements: int
    dtype: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """A bucket of a layout: bytes, dtype, and its gradients as places in the sequence that was laid out."""

    size_bytes: int
    dtype: str
    gradients: tuple[int, ...]


def caps_of(
    bucket_cap_mb: float | None, *, bucket_cap_mb_list: Sequence[float] | None = None
) -> tuple[int, ...]:
    """Caps in bytes that DDP derives from its arguments; the last one holds for all further buckets.

    An explicit cap, even of 25, drops the small first bucket (torch >= 2.4).

    >>> caps_of(None), caps_of(25), caps_of(None, bucket_cap_mb_list=[1, 0.5])
    ((1048576, 26214400), (26214400,), (1048576, 524288))
    """
    if bucket_cap_mb_list:
        return tuple(int(cap * MIB) for cap in bucket_cap_mb_list)
    if bucket_cap_mb is None:
        return (DEFAULT_FIRST_CAP_BYTES, DEFAULT_CAP_BYTES)
    return (int(bucket_cap_mb * MIB),)


def rebuilt_layout(gradients: Sequence[Gradient], caps: Sequence[int]) -> list[Bucket]:
    """Buckets after DDP's rebuild, in index order (the order in which they are launched).

    Gradients are taken in the order in which they became ready, one open bucket per dtype; a bucket closes when its
    size reaches its cap, so it overshoots, and every dtype walks through the caps by itself. What is left open at the
    end follows by dtype, the one that appeared last first (the iteration order of libstdc++'s hash map; of the dtypes
    that DDP trains, none share a slot of it).

    Args:
        gradients: in gradient-ready order.
        caps: bytes, as from `caps_of`.

    >>> four = [Gradient(elements=3, dtype="float32", size_bytes=12)] * 4
    >>> [bucket.gradients for bucket in rebuilt_layout(four, (20,))]
    [(0, 1), (2, 3)]
    """
    buckets: list[Bucket] = []
    open_: dict[str, list[int]] = {}
    caps_left: dict[str, int] = {}
    for place, gradient in enumerate(gradients):
        members = open_.setdefault(gradient.dtype, [])
        members.append(place)
        cap = caps[min(caps_left.setdefault(gradient.dtype, 0), len(caps) - 1)]
        if sum(gradients[i].size_bytes for i in members) >= cap:
            buckets.append(_close(gradients, members))
            open_[gradient.dtype] = []
            caps_left[gradient.dtype] += 1
    buckets += [_close(gradients, members) for members in reversed(open_.values()) if members]
    return buckets


def initial_layout(parameters: Sequence[Gradient], caps: Sequence[int]) -> list[Bucket]:
    """Buckets of a DDP that never rebuilds them (`find_unused_parameters=True` without `static_graph`).

    The same walk over `parameters()`, sorted by first parameter, and launched from the last to the first.

    Args:
        parameters: in `parameters()` order.
        caps: bytes, as from `caps_of`.
    """
    by_first = sorted(rebuilt_layout(parameters, caps), key=lambda bucket: bucket.gradients[0])
    return by_first[::-1]


def _close(gradients: Sequence[Gradient], members: list[int]) -> Bucket:
    return Bucket(
        size_bytes=sum(gradients[i].size_bytes for i in members),
        dtype=gradients[members[0]].dtype,
        gradients=tuple(members),
    )
