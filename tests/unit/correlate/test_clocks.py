"""Clocks from the ends of collectives, and what causality allows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankscope.correlate.clocks import Clocks, RankClock, align_clocks, correction
from rankscope.correlate.match import match_collectives
from rankscope.correlate.run_communications import RunCommunications
from support.communications import Event, comms_of

US = 1_000
MS = 1_000_000
S = 1_000_000_000


def clocks_of(comms: RunCommunications) -> Clocks:
    return align_clocks(comms, match_collectives(comms, len(comms.ranks)))


def offsets(clocks: Clocks) -> dict[int, int]:
    return {rank: clock.offset_ns for rank, clock in clocks.of_rank.items()}


def shifted(events: list[Event], ns: int) -> list[Event]:
    return [
        Event(start=e.start + ns, end=e.end + ns, op=e.op, size=e.size, group=e.group, step=e.step)
        for e in events
    ]


# Three all-reduces of 100 us; both arrive 30 us or less apart.
FIRST = [Event(start=0, end=130 * US), Event(start=MS, end=1_100 * US), Event(start=3 * MS, end=3_120 * US)]
SECOND = [
    Event(start=30 * US, end=130 * US),
    Event(start=MS, end=1_100 * US),
    Event(start=3_020 * US, end=3_120 * US),
]


def test_without_events_there_are_no_clocks() -> None:
    assert clocks_of(comms_of({})) == Clocks(method="none", reference=None)
    assert clocks_of(comms_of({3: FIRST})).method == "none"


def test_ends_give_the_offset_and_starts_bound_it() -> None:
    clocks = clocks_of(comms_of({0: FIRST, 1: shifted(SECOND, 5 * MS)}))
    assert offsets(clocks) == {0: 0, 1: 5 * MS}
    # With e the error of the offset: no end before the other's arrival. Rank 0 arrives 130 us before the end of the
    # first, 100 before that of the second, 120 before that of the third: e >= -100 us; rank 1: e <= 100 us.
    assert (clocks.of_rank[1].low_ns, clocks.of_rank[1].high_ns) == (5 * MS - 100 * US, 5 * MS + 100 * US)
    assert clocks.of_rank[1].uncertainty_ns == 100 * US
    assert (clocks.residual_median_ns, clocks.residual_max_ns) == (0, 0)


def test_one_late_end_changes_nothing() -> None:
    late = [*shifted(SECOND, 0)[:2], Event(start=3_020 * US, end=4 * MS)]
    assert offsets(clocks_of(comms_of({0: FIRST, 1: late}))) == {0: 0, 1: 0}


def test_broadcasts_tie_no_clocks() -> None:
    """Their ends lie milliseconds apart."""
    comms = comms_of({r: [Event(start=0, end=r * MS + 1, op="broadcast")] for r in (0, 1)})
    assert clocks_of(comms).method == "none"


def test_groups_join_clocks_as_a_graph() -> None:
    """0 meets 1, 1 meets 2: 2 is tied to 0 though they never meet. 5 and 6 hang together, but not with these."""

    def meeting(end: int, *ranks: int) -> list[Event]:
        return [Event(start=end - 100, end=end, group=ranks)]

    comms = comms_of(
        {
            0: meeting(MS, 0, 1),
            1: [*meeting(MS + 70, 0, 1), *meeting(2 * MS + 70, 1, 2)],
            2: meeting(2 * MS - 30, 1, 2),
            5: meeting(MS, 5, 6),
            6: meeting(MS + 9, 5, 6),
        }
    )
    clocks = clocks_of(comms)
    assert offsets(clocks) == {0: 0, 1: 70, 2: -30, 5: 0, 6: 9}
    assert {rank: clocks.is_tied(rank) for rank in (0, 1, 2, 5, 6)} == {
        0: True,
        1: True,
        2: True,
        5: False,
        6: False,
    }
    assert clocks.of_rank[6].reference == 5


def ending(*ends: int, ranks: tuple[int, ...]) -> list[Event]:
    return [Event(start=end - 100 * US, end=end, group=ranks) for end in ends]


def joined(*parts: list[Event]) -> list[Event]:
    return sorted((event for part in parts for event in part), key=lambda event: event.start)


def every_ms(first: int, count: int) -> list[int]:
    return [(first + i) * MS for i in range(count)]


def test_an_offset_is_the_median_and_one_late_end_does_not_move_it() -> None:
    """1 meets 0 three times, and once ends 400 us late. 0 meets 3 more often: medians over all ranks follow those."""
    seldom, often = every_ms(1, 3), every_ms(10, 9)
    late = [*seldom[:2], seldom[2] + 400 * US]
    comms = comms_of(
        {
            0: joined(ending(*seldom, ranks=(0, 1)), ending(*often, ranks=(0, 3))),
            1: ending(*late, ranks=(0, 1)),
            3: ending(*often, ranks=(0, 3)),
        }
    )
    assert offsets(clocks_of(comms)) == {0: 0, 1: 0, 3: 0}


def test_clocks_are_tied_through_the_groups_with_many_ranks_first() -> None:
    """0 and 1 meet alone once, with an end that is 400 us late on 1, and five times together with 2."""
    once, five, often = every_ms(1, 1), every_ms(10, 5), every_ms(20, 20)
    comms = comms_of(
        {
            0: joined(
                ending(*once, ranks=(0, 1)), ending(*five, ranks=(0, 1, 2)), ending(*often, ranks=(0, 3))
            ),
            1: joined(ending(once[0] + 400 * US, ranks=(0, 1)), ending(*five, ranks=(0, 1, 2))),
            2: ending(*five, ranks=(0, 1, 2)),
            3: ending(*often, ranks=(0, 3)),
        }
    )
    assert offsets(clocks_of(comms)) == dict.fromkeys(range(4), 0)


def test_of_groups_of_one_size_those_with_many_collectives_go_first() -> None:
    """0 and 1 meet once, with an end that is 400 us late on 1; both meet 2 five times."""
    once, first, second, often = every_ms(1, 1), every_ms(10, 5), every_ms(20, 5), every_ms(30, 20)
    comms = comms_of(
        {
            0: joined(
                ending(*once, ranks=(0, 1)), ending(*first, ranks=(0, 2)), ending(*often, ranks=(0, 3))
            ),
            1: joined(ending(once[0] + 400 * US, ranks=(0, 1)), ending(*second, ranks=(1, 2))),
            2: joined(ending(*first, ranks=(0, 2)), ending(*second, ranks=(1, 2))),
            3: ending(*often, ranks=(0, 3)),
        }
    )
    assert offsets(clocks_of(comms)) == dict.fromkeys(range(4), 0)


def test_drift_is_seen_over_a_minute_and_taken_out() -> None:
    """20 ppm over 60 s: 1.2 ms between the first and the last end."""
    ends = np.arange(0, 60 * S, S // 2)
    true = [Event(start=int(e) - 100 * US, end=int(e)) for e in ends]
    fast = [Event(start=e.start + e.start // 50_000, end=e.end + e.end // 50_000) for e in true]
    clock = clocks_of(comms_of({0: true, 1: fast})).of_rank[1]
    assert clock.drift == pytest.approx(20e-6, rel=1e-3)
    aligned = np.array([e.end for e in fast]) - correction(clock, np.array([e.end for e in fast]))
    assert np.abs(aligned - ends).max() <= 10


def test_wrong_pairs_lie_beyond_what_causality_allows() -> None:
    """Each waits for the other in turn: no offset lets both ends come after both arrivals."""
    first = [Event(start=0, end=100 * US), Event(start=5 * MS, end=5_100 * US)]
    second = [Event(start=0, end=100 * US), Event(start=9 * MS, end=9_100 * US)]
    clock = clocks_of(comms_of({0: first, 1: second})).of_rank[1]
    assert clock.low_ns is not None
    assert clock.high_ns is not None
    assert clock.low_ns > clock.high_ns
    assert clock.beyond_bounds_ns > MS
    assert RankClock(offset_ns=5, low_ns=0, high_ns=9).beyond_bounds_ns == 0


@settings(max_examples=40, deadline=None)
@given(
    ends=st.lists(st.integers(1, 50), min_size=4, max_size=12),
    waits=st.lists(st.integers(0, 300), min_size=24, max_size=24),
    shift=st.integers(-(10**12), 10**12),
)
def test_a_constant_shifts_the_offset_by_exactly_that(ends: list[int], waits: list[int], shift: int) -> None:
    """And nothing else: bounds move along, residuals and the other ranks stay."""
    times = (np.cumsum(ends) * MS).tolist()
    events = {
        rank: [
            Event(start=t - (100 + waits[(rank * 7 + i) % 24]) * US, end=t + waits[(i + rank) % 24])
            for i, t in enumerate(times)
        ]
        for rank in (0, 1, 2)
    }
    plain = clocks_of(comms_of(events))
    moved = clocks_of(comms_of({**events, 2: shifted(events[2], shift)}))
    a, b = plain.of_rank[2], moved.of_rank[2]
    assert b.offset_ns - a.offset_ns == shift
    assert (b.low_ns or 0) - (a.low_ns or 0) == shift
    assert (b.high_ns or 0) - (a.high_ns or 0) == shift
    assert plain.of_rank[1] == moved.of_rank[1]
    assert (plain.residual_median_ns, plain.residual_max_ns) == (
        moved.residual_median_ns,
        moved.residual_max_ns,
    )
