"""Layouts: which sequence of buckets a backward sent out, of which module, and from which parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rankscope.model.manifest import DdpFacts

NO_MODULE = -1


@dataclass(frozen=True, slots=True)
class SentBucket:
    """A bucket as it went over the network: elements and dtype (compressed, if a hook does that)."""

    elements: int | None
    dtype: str | None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a bucket belongs: DDP module (NO_MODULE: the collector does not say) and its index there."""

    module: int
    index: int


def place_buckets(sent: Sequence[SentBucket], modules: Sequence[DdpFacts]) -> list[Place]:
    """Module and index of each bucket of one backward, in the order in which the host asked for them.

    A module sends its buckets in index order; those of several modules may alternate. Where the collector's layouts do
    not explain all of the buckets, they are numbered in one row.

    >>> place_buckets([SentBucket(4, None), SentBucket(8, None)], [])
    [Place(module=-1, index=0), Place(module=-1, index=1)]
    """
    layouts = [layout_elements(facts) for facts in modules]
    next_of = [0] * len(layouts)
    places: list[Place] = []
    current = NO_MODULE
    for bucket in sent:
        fitting = [
            m
            for m, layout in enumerate(layouts)
            if next_of[m] < len(layout) and layout[next_of[m]] == bucket.elements
        ]
        if not fitting:
            return [Place(NO_MODULE, i) for i in range(len(sent))]
        current = current if current in fitting else fitting[-1]
        places.append(Place(current, next_of[current]))
        next_of[current] += 1
    if any(0 < done < len(layout) for done, layout in zip(next_of, layouts, strict=True)):
        return [Place(NO_MODULE, i) for i in range(len(sent))]
    return places


def layout_elements(facts: DdpFacts) -> list[int]:
    """Elements of each bucket of a module's layout; [] if the collector does not know its parameters."""
    sizes = [p.elements for p in facts.parameters]
    if any(not b.parameters or max(b.parameters) >= len(sizes) for b in facts.buckets):
        return []
    return [sum(sizes[i] for i in bucket.parameters) for bucket in facts.buckets]


def infer_members(sent: Sequence[SentBucket], gradients: Sequence[int]) -> list[list[int]] | None:
    """Which gradients make up each bucket, as places in the order in which they became ready; None if unclear.

    In the layout that DDP rebuilds for a module of one dtype, a bucket is a run of that order, so walking it must meet
    every size exactly.

    Args:
        sent: the buckets of one backward.
        gradients: elements of each gradient of that backward, in the order in which they became ready.

    >>> infer_members([SentBucket(7, None), SentBucket(5, None)], [3, 4, 5])
    [[0, 1], [2]]
    >>> infer_members([SentBucket(5, None), SentBucket(7, None)], [3, 4, 5]) is None
    True
    """
    members: list[list[int]] = []
    first = 0
    for bucket in sent:
        after, total = first, 0
        while after < len(gradients) and bucket.elements is not None and total < bucket.elements:
            total += gradients[after]
            after += 1
        if total != bucket.elements or after == first:
            return None
        members.append(list(range(first, after)))
        first = after
    return members if first == len(gradients) else None
