"""Order alignment: which events of two ranks are the same collectives, when no number says so.

Collectives of one group happen in one order on all its ranks, so equal sequences pair by order. Where events
are lost at the head, in the middle or at the tail of a rank, the pairs are those that keep the order, have
equal tokens, and end together: a wrong pairing ends apart by the length of a layer, a right one by microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rankscope.model.intervals import Bool, Int64

UNPAIRED = -1
_SHIFTS_TRIED = (-3, -2, -1, 1, 2, 3)
_CLEARLY_BETTER = 0.25
_MIN_TOLERANCE_NS = 200_000
_VOTERS = 128
_MAX_CELLS = 1_000_000
_CUTOFF_TOLERANCES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSequence:
    """Events of one rank in one group, in order.

    Attributes:
        token: int64[k], equal numbers mean equal operation, dtype and size.
        end_ns: int64[k], ends on the rank's own clock.
        step: int64[k], step numbers, -1 outside steps.
        ends_together: bool[k], whether the operation ends at about the same time on all ranks.
    """

    token: Int64
    end_ns: Int64
    step: Int64
    ends_together: Bool

    def __len__(self) -> int:
        return len(self.token)

    def take(self, index: Int64) -> EventSequence:
        """Some of the events."""
        return EventSequence(
            token=self.token[index],
            end_ns=self.end_ns[index],
            step=self.step[index],
            ends_together=self.ends_together[index],
        )


def align(reference: EventSequence, other: EventSequence, offset_hint_ns: int | None = None) -> Int64:
    """Index in `reference` of each event of `other`, int64[len(other)], UNPAIRED where there is none.

    Args:
        reference, other: events of two ranks in the same group.
        offset_hint_ns: other clock - reference clock, if something else tells it.
    """
    pairs = np.full(len(other), UNPAIRED, np.int64)
    if len(reference) == 0 or len(other) == 0:
        return pairs
    if _same(reference.token, other.token) and _same(reference.step, other.step):
        pairs[:] = np.arange(len(other))
        return _shifted_if_clearly_better(reference, other, pairs)
    blocks = _blocks(reference, other)
    direct = [(mine, theirs) for mine, theirs in blocks if _same(reference.token[theirs], other.token[mine])]
    rest = [
        (mine, theirs) for mine, theirs in blocks if not _same(reference.token[theirs], other.token[mine])
    ]
    for mine, theirs in direct:
        pairs[mine] = theirs
    offset, tolerance = _offset_of_pairs(reference, other, pairs, offset_hint_ns)
    for mine, theirs in rest:
        found = _align_unequal(reference.take(theirs), other.take(mine), offset, tolerance)
        pairs[mine[found != UNPAIRED]] = theirs[found[found != UNPAIRED]]
    return _realign_outliers(reference, other, pairs, direct, offset, tolerance)


def _same(a: Int64, b: Int64) -> bool:
    return len(a) == len(b) and bool((a == b).all())


def _blocks(reference: EventSequence, other: EventSequence) -> list[tuple[Int64, Int64]]:
    """(events of other, events of reference) that can belong together: step by step where both know steps."""
    steps = np.intersect1d(reference.step[reference.step >= 0], other.step[other.step >= 0])
    if len(steps) == 0:
        return [(np.arange(len(other)), np.arange(len(reference)))]
    return [(np.flatnonzero(other.step == step), np.flatnonzero(reference.step == step)) for step in steps]


def _offset_of_pairs(
    reference: EventSequence, other: EventSequence, pairs: Int64, hint: int | None
) -> tuple[int | None, int]:
    """(offset of the other clock, tolerance) from pairs found so far; the hint, or None, without any."""
    paired = np.flatnonzero((pairs != UNPAIRED) & other.ends_together)
    if len(paired) == 0:
        return hint, _MIN_TOLERANCE_NS
    apart = other.end_ns[paired] - reference.end_ns[pairs[paired]]
    offset = int(np.median(apart))
    return offset, max(_MIN_TOLERANCE_NS, 6 * int(np.median(np.abs(apart - offset))))


def _shifted_if_clearly_better(reference: EventSequence, other: EventSequence, pairs: Int64) -> Int64:
    """The pairs, or those shifted by some places where the ends then agree clearly better.

    Equal sequences can still be shifted against each other: one rank lost its first event, another its last.
    """
    spread = _spread(reference, other, pairs)
    best, best_spread = pairs, spread
    if spread is None or spread == 0:
        return pairs
    for shift in _SHIFTS_TRIED:
        shifted = pairs + shift
        shifted[(shifted < 0) | (shifted >= len(reference))] = UNPAIRED
        kept = np.flatnonzero(shifted != UNPAIRED)
        if len(kept) < 4 or not _same(reference.token[shifted[kept]], other.token[kept]):
            continue
        candidate = _spread(reference, other, shifted)
        if candidate is not None and best_spread is not None and candidate < _CLEARLY_BETTER * best_spread:
            best, best_spread = shifted, candidate
    return best


def _spread(reference: EventSequence, other: EventSequence, pairs: Int64) -> float | None:
    """Median distance from the median of how far paired ends lie apart, in ns."""
    paired = np.flatnonzero((pairs != UNPAIRED) & other.ends_together)
    if len(paired) < 4:
        return None
    apart = other.end_ns[paired] - reference.end_ns[pairs[paired]]
    return float(np.median(np.abs(apart - np.median(apart))))


def _realign_outliers(
    reference: EventSequence,
    other: EventSequence,
    pairs: Int64,
    direct: list[tuple[Int64, Int64]],
    offset: int | None,
    tolerance: int,
) -> Int64:
    """Align anew, by time, the blocks of equal sequences whose ends do not agree with the other blocks."""
    if offset is None or len(direct) < 3:
        return pairs
    for mine, theirs in direct:
        together = other.ends_together[mine]
        if not together.any():
            continue
        apart = other.end_ns[mine[together]] - reference.end_ns[pairs[mine[together]]]
        if abs(float(np.median(apart)) - offset) > _CUTOFF_TOLERANCES * tolerance:
            found = _align_unequal(reference.take(theirs), other.take(mine), offset, tolerance)
            pairs[mine] = np.where(found == UNPAIRED, UNPAIRED, theirs[np.maximum(found, 0)])
    return pairs


def _align_unequal(
    reference: EventSequence, other: EventSequence, offset: int | None, tolerance: int
) -> Int64:
    """Pairs of two sequences of which at least one lost events."""
    pairs = np.full(len(other), UNPAIRED, np.int64)
    if len(reference) == 0 or len(other) == 0:
        return pairs
    if offset is None:
        offset = vote_offset(reference, other)
    head = _equal_run(reference, other, offset, tolerance, from_end=False)
    pairs[:head] = np.arange(head)
    rest_reference, rest_other = len(reference) - head, len(other) - head
    tail = min(_equal_run(reference, other, offset, tolerance, from_end=True), rest_reference, rest_other)
    if tail:
        pairs[len(other) - tail :] = np.arange(len(reference) - tail, len(reference))
    mine = np.arange(head, len(other) - tail)
    theirs = np.arange(head, len(reference) - tail)
    if len(mine) and len(theirs):
        found = _best_pairs(reference.take(theirs), other.take(mine), offset, tolerance)
        pairs[mine[found != UNPAIRED]] = theirs[found[found != UNPAIRED]]
    return pairs


def _equal_run(
    reference: EventSequence, other: EventSequence, offset: int | None, tolerance: int, *, from_end: bool
) -> int:
    """Number of events from one end on that pair one by one, with equal tokens and ends that agree."""
    length = min(len(reference), len(other))
    ours = slice(len(other) - length, None) if from_end else slice(0, length)
    theirs = slice(len(reference) - length, None) if from_end else slice(0, length)
    agrees = other.token[ours] == reference.token[theirs]
    if offset is not None:
        apart = np.abs(other.end_ns[ours] - reference.end_ns[theirs] - offset)
        agrees &= (apart <= tolerance) | ~other.ends_together[ours]
    if from_end:
        agrees = agrees[::-1]
    return length if agrees.all() else int(np.argmin(agrees))


def vote_offset(reference: EventSequence, other: EventSequence) -> int | None:
    """The clock difference on which most pairs of equal tokens agree; of equals the smallest; None without pairs.

    Right pairs all lie apart by the clock offset, wrong ones by anything.
    """
    voters = np.flatnonzero(other.ends_together)
    if len(voters) > _VOTERS:
        voters = voters[np.linspace(0, len(voters) - 1, _VOTERS).astype(np.int64)]
    differences = [
        other.end_ns[i] - reference.end_ns[(reference.token == other.token[i]) & reference.ends_together]
        for i in voters
    ]
    votes = np.sort(np.concatenate(differences)) if differences else np.empty(0, np.int64)
    if len(votes) == 0:
        return None
    counts = np.searchsorted(votes, votes + _MIN_TOLERANCE_NS, side="right") - np.arange(len(votes))
    good = np.flatnonzero(counts >= 0.95 * counts.max())
    middles = [int(np.median(votes[i : i + counts[i]])) for i in good]
    return min(middles, key=abs)


def _best_pairs(reference: EventSequence, other: EventSequence, offset: int | None, tolerance: int) -> Int64:
    """Pairs in order with the greatest total score: many pairs, and ends that agree (Needleman-Wunsch)."""
    if len(reference) * len(other) > _MAX_CELLS:
        return _nearest_in_time(reference, other, offset or 0, tolerance)
    scores = _scores(reference, other, offset, tolerance)
    rows, columns = scores.shape
    best = np.zeros((rows + 1, columns + 1))
    for i in range(rows):
        along = np.maximum(best[i, 1:], best[i, :-1] + scores[i])
        best[i + 1, 1:] = np.maximum.accumulate(along)
    return _trace_back(best, scores)


def _trace_back(best: npt.NDArray[np.float64], scores: npt.NDArray[np.float64]) -> Int64:
    pairs = np.full(scores.shape[0], UNPAIRED, np.int64)
    i, j = scores.shape
    while i > 0 and j > 0:
        if best[i, j] == best[i - 1, j]:
            i -= 1
        elif best[i, j] == best[i, j - 1]:
            j -= 1
        else:
            pairs[i - 1] = j - 1
            i, j = i - 1, j - 1
    return pairs


def _scores(
    reference: EventSequence, other: EventSequence, offset: int | None, tolerance: int
) -> npt.NDArray[np.float64]:
    """Score of pairing each event of `other` (rows) with each of `reference`; not positive: never pair."""
    equal = other.token[:, None] == reference.token[None, :]
    if offset is None:
        return np.where(equal, 1.0, -1.0)
    apart = np.abs(other.end_ns[:, None] - reference.end_ns[None, :] - offset) / tolerance
    by_time = np.where(apart <= _CUTOFF_TOLERANCES, 1.0 / (1.0 + apart), -1.0)
    together = other.ends_together[:, None] & reference.ends_together[None, :]
    return np.where(equal, np.where(together, by_time, 1.0 / (1.0 + apart)), -1.0)


def _nearest_in_time(reference: EventSequence, other: EventSequence, offset: int, tolerance: int) -> Int64:
    """Pairs by nearest end, for sequences too long for the exact method."""
    pairs = np.full(len(other), UNPAIRED, np.int64)
    wanted = other.end_ns - offset
    order = np.argsort(reference.end_ns, kind="stable")
    ends = reference.end_ns[order]
    right = np.minimum(np.searchsorted(ends, wanted), len(ends) - 1)
    left = np.maximum(right - 1, 0)
    nearest = np.where(np.abs(ends[left] - wanted) <= np.abs(ends[right] - wanted), left, right)
    candidate = order[nearest]
    good = (np.abs(reference.end_ns[candidate] - wanted) <= tolerance) & (
        reference.token[candidate] == other.token
    )
    pairs[good] = candidate[good]
    _, first = np.unique(pairs[good], return_index=True)
    kept = np.flatnonzero(good)[first]
    unique = np.full(len(other), UNPAIRED, np.int64)
    unique[kept] = pairs[kept]
    return unique
