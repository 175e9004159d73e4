"""Wait, transfer and arrivals of collectives, worked by hand."""

from __future__ import annotations

import pytest

from rankscope.analyses.collectives import NO_RANK, CollectiveTimes, measure_collectives
from rankscope.correlate.clocks import align_clocks
from rankscope.correlate.match import match_collectives
from rankscope.correlate.run_communications import RunCommunications
from support.communications import Event, comms_of

US = 1_000


def times_of(comms: RunCommunications) -> CollectiveTimes:
    matching = match_collectives(comms, len(comms.ranks))
    return measure_collectives(comms, matching, align_clocks(comms, matching))


# Ends together at 100 and 250 us. First: arrivals 20, 50, 70 us. Second: 200, 240, 210 us.
FIRST, SECOND = (20, 50, 70), (200, 240, 210)


def run(shift_of_rank_2: int = 0) -> RunCommunications:
    shift = {2: shift_of_rank_2}
    return comms_of(
        {
            rank: [
                Event(start=FIRST[rank] * US + shift.get(rank, 0), end=100 * US + shift.get(rank, 0)),
                Event(start=SECOND[rank] * US + shift.get(rank, 0), end=250 * US + shift.get(rank, 0)),
            ]
            for rank in range(3)
        }
    )


def test_nothing() -> None:
    assert len(times_of(comms_of({}))) == 0


@pytest.mark.parametrize("shift", [0, 7_000_003, -(10**12)])
def test_figures_by_hand_whatever_the_clock_of_a_rank(shift: int) -> None:
    times = times_of(run(shift))
    # The shortest durations: rank 2 was there 30 us before the end of the first, rank 1 10 us before the second's.
    assert times.transfer_ns.tolist() == [30 * US, 10 * US]
    assert times.wait_ns.tolist() == [50 * US, 20 * US, 0, 40 * US, 0, 30 * US]
    assert times.last_rank.tolist() == [2, 1]
    assert times.lateness_ns.tolist() == [20 * US, 30 * US]
    assert times.first_of_group.tolist() == [True, False]
    assert times.synchronising.all()
    assert times.complete.all()
    assert times.aligned.all()


def test_one_rank_alone_is_last_nowhere() -> None:
    times = times_of(comms_of({0: [Event(start=0, end=9, group=(0, 1))]}))
    assert (times.last_rank.tolist(), times.lateness_ns.tolist()) == ([NO_RANK], [0])
    assert not times.complete.any()


def test_of_two_that_arrive_together_the_lower_is_named_and_nobody_is_late() -> None:
    comms = comms_of({r: [Event(start=0, end=9), Event(start=20, end=29)] for r in (0, 1)})
    times = times_of(comms)
    assert times.lateness_ns.tolist() == [0, 0]
    assert times.last_rank.tolist() == [0, 0]


def test_a_broadcast_synchronises_nobody() -> None:
    times = times_of(comms_of({r: [Event(start=0, end=9 + r, op="broadcast")] for r in (0, 1)}))
    assert not times.synchronising.any()
    assert not times.aligned.any()
