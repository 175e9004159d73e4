"""Wait, transfer and arrivals of every collective over its ranks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankscope.correlate.clocks import Clocks
from rankscope.correlate.match import UNMATCHED, Matching
from rankscope.correlate.run_communications import RunCommunications
from rankscope.model.intervals import Bool, Int64

NO_RANK = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveTimes:
    """Times of all collectives; the events of collective k are `event[first[k]:first[k + 1]]`.

    Attributes:
        event: int64[m], indices into the `RunCommunications`, sorted by collective and rank.
        first: int64[c + 1], where each collective begins in `event`.
        duration_ns: int64[m], by the rank's own clock.
        arrival_ns: int64[m], start on the common clock.
        end_ns: int64[m], end on the common clock.
        wait_ns: int64[m], duration - transfer: how long the rank was there before the transfer began.
        transfer_ns: int64[c], the shortest duration over the ranks (needs no clocks).
        last_rank: int64[c], the rank that arrived last; NO_RANK with fewer than two ranks.
        lateness_ns: int64[c], last arrival - second last; 0 with fewer than two ranks.
        synchronising: bool[c], whether no rank can end before all have arrived.
        complete: bool[c], whether every rank of the group was found.
        first_of_group: bool[c], the first collective of its group in the window.
        aligned: bool[c], whether all its ranks' clocks are tied together.
    """

    event: Int64
    first: Int64
    duration_ns: Int64
    arrival_ns: Int64
    end_ns: Int64
    wait_ns: Int64
    transfer_ns: Int64
    last_rank: Int64
    lateness_ns: Int64
    synchronising: Bool
    complete: Bool
    first_of_group: Bool
    aligned: Bool

    def __len__(self) -> int:
        return len(self.transfer_ns)

    @property
    def collective(self) -> Int64:
        """int64[m], number of the collective of each event."""
        return np.repeat(np.arange(len(self)), np.diff(self.first))


def measure_collectives(comms: RunCommunications, matching: Matching, clocks: Clocks) -> CollectiveTimes:
    """Wait, transfer, arrivals and lateness of every collective.

    Args:
        comms: events of all ranks.
        matching: which of them are the same collective.
        clocks: the ranks' clocks.
    """
    event = np.flatnonzero(matching.collective != UNMATCHED)
    event = event[np.lexsort((comms.rank[event], matching.collective[event]))]
    count = len(matching)
    first = np.searchsorted(matching.collective[event], np.arange(count + 1))
    arrival = clocks.aligned(comms.rank[event], comms.start_ns[event])
    end = clocks.aligned(comms.rank[event], comms.end_ns[event])
    duration = comms.end_ns[event] - comms.start_ns[event]
    number = np.repeat(np.arange(count), np.diff(first))
    transfer = _smallest(number, duration, count)
    last_rank, lateness = _last_arrivals(number, comms.rank[event], arrival, count)
    synchronising = np.zeros(count, bool)
    synchronising[number] = comms.is_synchronising[event]
    return CollectiveTimes(
        event=event,
        first=first,
        duration_ns=duration,
        arrival_ns=arrival,
        end_ns=end,
        wait_ns=duration - transfer[number],
        transfer_ns=transfer,
        last_rank=last_rank,
        lateness_ns=lateness,
        synchronising=synchronising,
        complete=matching.is_complete,
        first_of_group=_firsts(matching),
        aligned=_all_tied(number, comms.rank[event], clocks, count),
    )


def _smallest(number: Int64, values: Int64, count: int) -> Int64:
    smallest = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(smallest, number, values)
    return smallest


def _last_arrivals(number: Int64, rank: Int64, arrival: Int64, count: int) -> tuple[Int64, Int64]:
    """(rank that arrived last, last - second last) of each collective; of ties the lowest rank is named."""
    order = np.lexsort((-rank, arrival, number))
    ends = np.searchsorted(number[order], np.arange(count), side="right") - 1
    begins = np.searchsorted(number[order], np.arange(count))
    several = ends - begins >= 1
    last_rank = np.full(count, NO_RANK, np.int64)
    lateness = np.zeros(count, np.int64)
    last, second = order[ends[several]], order[ends[several] - 1]
    last_rank[several] = rank[last]
    lateness[several] = arrival[last] - arrival[second]
    return last_rank, lateness


def _firsts(matching: Matching) -> Bool:
    """Collectives are numbered in time, so the first of a group has the lowest number."""
    firsts = np.zeros(len(matching), bool)
    _, index = np.unique(matching.group, return_index=True)
    firsts[index] = True
    return firsts


def _all_tied(number: Int64, rank: Int64, clocks: Clocks, count: int) -> Bool:
    """Whether the clocks of all ranks of a collective are against the same reference."""
    highest = int(rank.max(initial=0)) + 1
    reference_of = np.array(
        [clocks.of_rank[r].reference if r in clocks.of_rank else -1 - r for r in range(highest)]
    )
    low = np.full(count, np.iinfo(np.int64).max)
    high = np.full(count, np.iinfo(np.int64).min)
    np.minimum.at(low, number, reference_of[rank])
    np.maximum.at(high, number, reference_of[rank])
    tied: Bool = (low == high) & (low >= 0)
    return tied
