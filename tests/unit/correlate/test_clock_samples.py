"""Clocks tied and checked by the collector's samples, with numbers worked by hand."""

from __future__ import annotations

from rankscope.correlate.clock_samples import ClockSamples, Disagreement, find_disagreements, tie_by_samples
from rankscope.correlate.clocks import Clocks, RankClock
from rankscope.model.manifest import ClockOffset

MS = 1_000_000


def sample(rank: int, offset_ns: int, uncertainty_ns: int = 50_000) -> ClockOffset:
    return ClockOffset(rank=rank, reference=0, offset_ns=offset_ns, uncertainty_ns=uncertainty_ns, at_ns=0)


def clock(reference: int, offset_ns: int, half_width_ns: int = 10_000) -> RankClock:
    return RankClock(
        reference=reference,
        offset_ns=offset_ns,
        low_ns=offset_ns - half_width_ns,
        high_ns=offset_ns + half_width_ns,
    )


def test_the_sample_of_the_shortest_round_trip_counts() -> None:
    samples = ClockSamples([sample(1, 3 * MS, 90_000), sample(1, 4 * MS, 20_000)])
    assert samples.between(1, 0) == (4 * MS, 20_000)
    assert samples.between(0, 1) == (-4 * MS, 20_000)


def test_two_sampled_ranks_differ_by_the_difference_and_both_errors() -> None:
    samples = ClockSamples([sample(1, 3 * MS, 90_000), sample(2, -MS, 20_000)])
    assert samples.between(1, 2) == (4 * MS, 110_000)


def test_a_rank_without_a_sample_cannot_be_compared() -> None:
    assert ClockSamples([sample(1, 3 * MS)]).between(2, 0) is None
    assert ClockSamples([]).between(1, 0) is None


def test_samples_tie_what_collectives_leave_apart() -> None:
    # Ranks 0-1 hang together, ranks 2-3 among themselves: 3 is 2 ms ahead of 2, and 2 was sampled 7 ms ahead of 0.
    clocks = Clocks(
        method="collective ends",
        reference=0,
        of_rank={
            0: RankClock(reference=0),
            1: clock(0, 5 * MS),
            2: RankClock(reference=2),
            3: clock(2, 2 * MS),
        },
    )
    tied = tie_by_samples(clocks, ClockSamples([sample(2, 7 * MS)]), range(4))
    assert tied.method == "collective ends, clock samples"
    assert {rank: c.offset_ns for rank, c in tied.of_rank.items()} == {0: 0, 1: 5 * MS, 2: 7 * MS, 3: 9 * MS}
    assert all(tied.is_tied(rank) for rank in range(4))
    # 50 us of the sample, 10 us of causality between 2 and 3, 1 ms between the profiler's and the sampled clock.
    assert tied.of_rank[3].uncertainty_ns == 1_060_000
    assert tied.of_rank[1] == clocks.of_rank[1]


def test_without_any_collective_samples_alone_tie_the_ranks() -> None:
    clocks = Clocks(method="none", reference=0)
    tied = tie_by_samples(clocks, ClockSamples([sample(1, 7 * MS)]), (0, 1, 2))
    assert tied.method == "clock samples"
    assert (tied.is_tied(0), tied.is_tied(1), tied.is_tied(2)) == (True, True, False)


def test_without_samples_nothing_changes() -> None:
    clocks = Clocks(method="none", reference=0)
    assert tie_by_samples(clocks, ClockSamples([]), (0, 1)) is clocks


def test_a_clock_far_from_its_sample_is_told() -> None:
    clocks = Clocks(
        method="collective ends",
        reference=0,
        of_rank={0: RankClock(), 1: clock(0, 5 * MS), 2: clock(0, 5 * MS)},
    )
    # Allowed are 1 ms and the sample's own 50 us: rank 1 is 1.05 ms off, rank 2 one nanosecond more.
    samples = ClockSamples([sample(1, 5 * MS - 1_050_000), sample(2, 5 * MS - 1_050_001)])
    assert find_disagreements(clocks, samples) == [
        Disagreement(rank=2, aligned_ns=5 * MS, sampled_ns=3_949_999, uncertainty_ns=50_000)
    ]
