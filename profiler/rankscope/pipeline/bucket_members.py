"""Which gradients make up which bucket, in the order in which they became ready."""

from __future__ import annotations

from collections import defaultdict

from rankscope.advise.ddp_layout import Gradient
from rankscope.correlate.bucket_layouts import NO_MODULE
from rankscope.model.intervals import Int64
from rankscope.model.manifest import DdpFacts
from rankscope.model.table import NO_ID
from rankscope.pipeline.buckets import WindowBuckets


def members_of(
    window: WindowBuckets,
    mine: Int64,
    gradients: tuple[Gradient, ...],
    facts: DdpFacts | None,
) -> tuple[tuple[int, ...], ...] | None:
    """Gradients of each bucket as places in ready order: from the collector's layout, else by walking the sizes."""
    if facts is not None and all(window.places[i].module != NO_MODULE for i in mine.tolist()):
        place = {parameter: ready for ready, parameter in enumerate(facts.ready_order)}
        if len(place) == len(gradients) and all(p in place for b in facts.buckets for p in b.parameters):
            return tuple(tuple(place[p] for p in bucket.parameters) for bucket in facts.buckets)
    by_dtype: dict[str, list[int]] = defaultdict(list)
    for i, gradient in enumerate(gradients):
        by_dtype[gradient.dtype].append(i)
    members = []
    for i in mine.tolist():
        wanted = window.sent[i].elements
        found = _take(by_dtype, window.sent[i].dtype, gradients, wanted)
        if found is None:
            return None
        members.append(found)
    return tuple(members) if not any(by_dtype.values()) else None


def _take(
    left: dict[str, list[int]], dtype: str | None, gradients: tuple[Gradient, ...], elements: int | None
) -> tuple[int, ...] | None:
    """The next gradients of one dtype that have `elements` together; under compression any dtype that fits."""
    for candidate in [dtype, *left] if dtype in left else list(left):
        total, taken = 0, []
        for i in left[candidate or ""]:
            if elements is None or total >= elements:
                break
            total += gradients[i].elements
            taken.append(i)
        if taken and total == elements:
            left[candidate or ""] = left[candidate or ""][len(taken) :]
            return tuple(taken)
    return None


def subsequence(elements: list[int], wanted: list[int]) -> list[int] | None:
    """Places in `elements` of the values `wanted`, in order; None if they are not all there.

    Unknown elements (no recorded shapes) fit if there are exactly as many as wanted.

    >>> subsequence([7, 3, 1, 4], [3, 4]), subsequence([3, 1], [3, 4])
    ([1, 3], None)
    """
    if len(elements) == len(wanted) and set(elements) == {NO_ID}:
        return list(range(len(wanted)))
    places: list[int] = []
    for place, count in enumerate(elements):
        if len(places) < len(wanted) and count == wanted[len(places)]:
            places.append(place)
    return places if len(places) == len(wanted) else None
