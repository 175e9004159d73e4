"""One collective on all its ranks: by number, by order, alone, and never twice."""

from __future__ import annotations

import numpy as np

from rankscope.correlate.match import UNMATCHED, Matching, match_collectives
from rankscope.correlate.run_communications import RunCommunications
from support.communications import Event, comms_of

MS = 1_000_000


def numbers_of(matching: Matching, comms: RunCommunications, rank: int) -> list[int]:
    found: list[int] = matching.collective[comms.rank == rank].tolist()
    return found


def events(ends: list[int], **fields: object) -> list[Event]:
    return [Event(start=end - 100, end=end, **fields) for end in ends]  # type: ignore[arg-type]


def test_no_events() -> None:
    matching = match_collectives(comms_of({}))
    assert len(matching) == 0


def test_by_order_where_no_number_says() -> None:
    comms = comms_of({0: events([1_000, 2_000]), 1: events([1_001, 2_002])})
    matching = match_collectives(comms, 2)
    assert numbers_of(matching, comms, 0) == numbers_of(matching, comms, 1) == [0, 1]
    assert (matching.present.tolist(), matching.expected.tolist()) == ([2, 2], [2, 2])
    assert matching.matched_by(0) == "order"


def test_by_sequence_numbers_where_all_have_them() -> None:
    """Rank 1 lost the first of two equal collectives: only the number tells which is left."""
    comms = comms_of(
        {
            0: [Event(start=0, end=10, seq=7), Event(start=20, end=30, seq=8)],
            1: [Event(start=20, end=31, seq=8)],
        }
    )
    matching = match_collectives(comms, 2)
    assert numbers_of(matching, comms, 0) == [0, 1]
    assert numbers_of(matching, comms, 1) == [1]
    assert [matching.matched_by(k) for k in range(2)] == ["seq", "seq"]
    assert matching.is_complete.tolist() == [False, True]
    assert matching.sequence.tolist() == [7, 8]


def test_numbers_that_are_the_rank_are_no_sequence() -> None:
    comms = comms_of({rank: [Event(start=s, end=s + 10, seq=rank) for s in (0, 20, 40)] for rank in (0, 1)})
    matching = match_collectives(comms, 2)
    assert matching.matched_by(0) == "order"
    assert numbers_of(matching, comms, 0) == numbers_of(matching, comms, 1) == [0, 1, 2]


def test_numbers_on_which_the_ranks_disagree_are_left_alone() -> None:
    """The numbers pair an all-reduce of 1,000 with one of 2,000 bytes: they count something else."""
    sizes = (1_000, 2_000, 3_000)
    comms = comms_of(
        {
            0: [Event(start=20 * i, end=20 * i + 10, size=s, seq=i) for i, s in enumerate(sizes)],
            1: [Event(start=20 * i, end=20 * i + 10, size=s, seq=i + 1) for i, s in enumerate(sizes)],
        }
    )
    matching = match_collectives(comms, 2)
    assert numbers_of(matching, comms, 0) == numbers_of(matching, comms, 1) == [0, 1, 2]
    assert matching.matched_by(0) == "order"


def test_groups_with_the_same_ranks_are_kept_apart() -> None:
    comms = comms_of(
        {rank: [Event(start=0, end=10, ordinal=0), Event(start=20, end=30, ordinal=1)] for rank in (0, 1)}
    )
    matching = match_collectives(comms, 2)
    assert len(matching) == 2
    assert sorted(matching.group.tolist()) == [0, 1]


def test_a_rank_alone_in_its_group_matches_nobody() -> None:
    comms = comms_of({0: events([10, 20], group=(0, 1)), 2: events([10], group=(2, 3))})
    matching = match_collectives(comms, 4)
    assert matching.present.tolist() == [1, 1, 1]
    assert not matching.is_complete.any()
    assert {matching.matched_by(k) for k in range(3)} == {"unmatched"}


def test_messages_are_no_collectives() -> None:
    comms = comms_of(
        {
            0: [Event(start=0, end=10, op="send", peer=1)],
            1: [Event(start=0, end=10, op="recv", peer=0)],
        }
    )
    matching = match_collectives(comms, 2)
    assert matching.collective.tolist() == [UNMATCHED, UNMATCHED]


def test_no_event_is_in_two_collectives_and_no_rank_twice_in_one() -> None:
    ends = (np.cumsum([1, 3, 2, 5, 4, 7]) * MS).tolist()
    comms = comms_of({0: events(ends), 1: events(ends[1:]), 2: events(ends[:-2])})
    matching = match_collectives(comms, 3)
    pairs = list(zip(matching.collective.tolist(), comms.rank.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs)
    assert numbers_of(matching, comms, 1) == [1, 2, 3, 4, 5]
    assert numbers_of(matching, comms, 2) == [0, 1, 2, 3]
    assert matching.present.tolist() == [2, 3, 3, 3, 2, 2]
