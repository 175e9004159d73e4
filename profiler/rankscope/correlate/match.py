"""One collective on all its ranks: by sequence number where the trace has one, else by order.

Group = (set of ranks, ordinal among groups with that set); ranks are never renumbered, and no event is part of
two collectives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from rankscope.correlate.alignment import UNPAIRED, EventSequence, align
from rankscope.correlate.run_communications import NO_SEQUENCE, RunCommunications
from rankscope.model.grouping import places_of_each
from rankscope.model.intervals import Bool, Int64

UNMATCHED = -1
MatchedBy = Literal["seq", "inputs", "order", "unmatched"]
_METHODS: tuple[MatchedBy, ...] = ("seq", "inputs", "order", "unmatched")
_MAX_DISAGREEING = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """Which events are the same collective.

    Attributes:
        collective: int64[n], number of the collective of each event of the `RunCommunications`; UNMATCHED for
            events that are alone (and for point-to-point ones).
        group: int64[c], group of each collective.
        method: int64[c], index into `_METHODS`.
        sequence: int64[c], its number in the group by that method.
        present: int64[c], number of ranks on which it was found.
        expected: int64[c], number of ranks of its group, as far as known.
    """

    collective: Int64
    group: Int64
    method: Int64
    sequence: Int64
    present: Int64
    expected: Int64

    def __len__(self) -> int:
        return len(self.group)

    def matched_by(self, collective: int) -> MatchedBy:
        """Name of the method that found a collective."""
        return _METHODS[int(self.method[collective])]

    @property
    def is_complete(self) -> Bool:
        """bool[c], whether all ranks of the group are there."""
        complete: Bool = self.present >= self.expected
        return complete


def match_collectives(comms: RunCommunications, world_size: int | None = None) -> Matching:
    """Collectives over all ranks.

    Args:
        comms: events of all ranks.
        world_size: ranks of the job; a group whose ranks the trace does not tell is taken to hold all.
    """
    collective = np.full(len(comms), UNMATCHED, np.int64)
    parts: list[_GroupMatch] = []
    first = 0
    usable = ~comms.is_point_to_point & ~comms.is_op(("send_recv", "unknown"))
    together = comms.is_synchronising
    numbers = np.where(usable, comms.group, UNMATCHED)
    for group, events in enumerate(places_of_each(numbers, len(comms.groups))):
        if len(events) == 0:
            continue
        part = _match_group(comms, events, group, world_size, together)
        found = part.collective != UNMATCHED
        collective[events[found]] = part.collective[found] + first
        first += len(part.sequence)
        parts.append(part)
    return _number_by_time(comms, collective, parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _GroupMatch:
    group: int
    collective: Int64
    sequence: Int64
    method: int
    expected: int


def _match_group(
    comms: RunCommunications, events: Int64, group: int, world_size: int | None, together: Bool
) -> _GroupMatch:
    ranks = comms.groups[group].ranks
    present = np.unique(comms.rank[events])
    expected = len(ranks) if ranks else max(world_size or 0, len(present))
    if len(present) == 1:
        return _alone(group, len(events), expected)
    for method, numbers in ((0, comms.seq), (1, comms.input_sequence)):
        by_number = _by_number(comms, events, numbers[events])
        if by_number is not None:
            collective, sequence = by_number
            return _GroupMatch(
                group=group, collective=collective, sequence=sequence, method=method, expected=expected
            )
    collective = _by_order(comms, events, together)
    size = int(collective.max(initial=UNMATCHED)) + 1
    return _GroupMatch(
        group=group, collective=collective, sequence=np.arange(size), method=2, expected=expected
    )


def _alone(group: int, count: int, expected: int) -> _GroupMatch:
    """Events of the only rank that is present: each is a collective of its own."""
    numbers = np.arange(count, dtype=np.int64)
    method = 2 if expected <= 1 else 3
    return _GroupMatch(group=group, collective=numbers, sequence=numbers, method=method, expected=expected)


def _by_number(comms: RunCommunications, events: Int64, numbers: Int64) -> tuple[Int64, Int64] | None:
    """(collective of each event, sequence of each collective), or None if the numbers are no sequence.

    They are accepted if every event has one, they never fall on a rank, and equal numbers mean equal tokens
    on all ranks. Events of one launch share a number: their place in it is part of the key.
    """
    if (numbers == NO_SEQUENCE).any():
        return None
    rank = comms.rank[events]
    same_rank = rank[1:] == rank[:-1]
    if (numbers[1:][same_rank] < numbers[:-1][same_rank]).any():
        return None
    place = _place_in_run(rank, numbers)
    if np.bincount(place).argmax() != 0 or (place > 0).mean() > 0.5:
        return None  # one number for everything is no sequence
    _, collective = np.unique(np.stack([numbers, place], axis=1), axis=0, return_inverse=True)
    collective = collective.reshape(-1).astype(np.int64)
    if _disagreeing(comms.token[events], collective) > _MAX_DISAGREEING:
        return None
    size = int(collective.max()) + 1
    sequence = np.empty(size, np.int64)
    sequence[collective] = numbers
    return collective, sequence


def _place_in_run(rank: Int64, numbers: Int64) -> Int64:
    """Place of each event among the neighbours with its rank and number: 0 for the first."""
    starts = np.ones(len(rank), bool)
    starts[1:] = (rank[1:] != rank[:-1]) | (numbers[1:] != numbers[:-1])
    index = np.arange(len(rank))
    place: Int64 = index - np.maximum.accumulate(np.where(starts, index, 0))
    return place


def _disagreeing(token: Int64, collective: Int64) -> float:
    """Share of collectives whose events have different tokens."""
    size = int(collective.max()) + 1
    least = np.full(size, np.iinfo(np.int64).max)
    most = np.full(size, -1, np.int64)
    np.minimum.at(least, collective, token)
    np.maximum.at(most, collective, token)
    return float((least != most).mean())


def _by_order(comms: RunCommunications, events: Int64, together: Bool) -> Int64:
    """Collective of each event by order alignment against the rank with the most events."""
    collective = np.full(len(events), UNMATCHED, np.int64)
    ranks, starts = np.unique(comms.rank[events], return_index=True)  # the run's table is sorted by rank
    by_rank = dict(zip(ranks.tolist(), np.split(np.arange(len(events)), starts[1:]), strict=True))
    leftover = by_rank
    first = 0
    while len([index for index in leftover.values() if len(index)]) > 1:
        reference = max(leftover, key=lambda r: (len(leftover[r]), -r))
        base = _sequence(comms, events[leftover[reference]], together)
        collective[leftover[reference]] = first + np.arange(len(base))
        remaining = {}
        for rank, index in leftover.items():
            if rank == reference or len(index) == 0:
                continue
            pairs = align(base, _sequence(comms, events[index], together))
            paired = pairs != UNPAIRED
            collective[index[paired]] = first + pairs[paired]
            remaining[rank] = index[~paired]
        first += len(base)
        if all(len(index) == len(leftover[rank]) for rank, index in remaining.items()):
            break  # nothing paired in this round: what is left stays alone
        leftover = remaining
    return _without_singles(collective)


def _sequence(comms: RunCommunications, events: Int64, together: Bool) -> EventSequence:
    return EventSequence(
        token=comms.token[events],
        end_ns=comms.end_ns[events],
        step=comms.step[events],
        ends_together=together[events],
    )


def _without_singles(collective: Int64) -> Int64:
    """Renumber without the collectives that have one event: those stay UNMATCHED."""
    found = collective != UNMATCHED
    if not found.any():
        return collective
    numbers, inverse, counts = np.unique(collective[found], return_inverse=True, return_counts=True)
    new = np.full(len(numbers), UNMATCHED, np.int64)
    new[counts > 1] = np.arange(int((counts > 1).sum()))
    result = collective.copy()
    result[found] = new[inverse.reshape(-1)]
    return result


def _number_by_time(comms: RunCommunications, collective: Int64, parts: list[_GroupMatch]) -> Matching:
    """Collectives numbered by the median of their ends, with their facts."""
    sizes = [len(part.sequence) for part in parts]
    count = sum(sizes)
    found = np.flatnonzero(collective != UNMATCHED)
    order = found[np.lexsort((comms.end_ns[found], collective[found]))]
    starts = np.searchsorted(collective[order], np.arange(count))
    present = np.bincount(collective[found], minlength=count)
    middle = comms.end_ns[order[starts + present // 2]] if count else np.empty(0, np.int64)
    by_time = np.argsort(middle, kind="stable")
    number = np.empty(count, np.int64)
    number[by_time] = np.arange(count)

    def per_collective(values: list[Int64]) -> Int64:
        return np.concatenate(values)[by_time] if values else np.empty(0, np.int64)

    numbered = collective.copy()
    numbered[found] = number[collective[found]]
    return Matching(
        collective=numbered,
        group=per_collective(
            [np.full(s, part.group, np.int64) for s, part in zip(sizes, parts, strict=True)]
        ),
        method=per_collective(
            [np.full(s, part.method, np.int64) for s, part in zip(sizes, parts, strict=True)]
        ),
        sequence=per_collective([part.sequence for part in parts]),
        present=present[by_time],
        expected=per_collective(
            [np.full(s, part.expected, np.int64) for s, part in zip(sizes, parts, strict=True)]
        ),
    )
