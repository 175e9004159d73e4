"""Order alignment: equal sequences pair by order, and lost events shift no other pair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankscope.correlate.alignment import UNPAIRED, EventSequence, align, vote_offset

MS = 1_000_000


def sequence(tokens: list[int], ends: list[int], steps: list[int] | None = None) -> EventSequence:
    return EventSequence(
        token=np.array(tokens, np.int64),
        end_ns=np.array(ends, np.int64),
        step=np.array(steps if steps is not None else [-1] * len(tokens), np.int64),
        ends_together=np.ones(len(tokens), bool),
    )


def test_nothing_pairs_with_nothing() -> None:
    empty, one = sequence([], []), sequence([1], [5])
    assert align(empty, empty).tolist() == []
    assert align(empty, one).tolist() == [UNPAIRED]
    assert align(one, empty).tolist() == []


def test_equal_sequences_pair_by_order_whatever_their_clocks() -> None:
    a = sequence([1, 2, 1], [10, 20, 30])
    b = sequence([1, 2, 1], [7_010, 7_020, 7_030])
    assert align(a, b).tolist() == [0, 1, 2]


# Ends at 0, 3, 7, 12, 18 ms: no shift by one place keeps the distances.
ENDS = [0, 3 * MS, 7 * MS, 12 * MS, 18 * MS]


@pytest.mark.parametrize("offset", [0, 10 * MS, -500 * MS])
@pytest.mark.parametrize("lost", range(5))
def test_one_lost_event_of_equal_ones(lost: int, offset: int) -> None:
    left = [i for i in range(5) if i != lost]
    a, b = sequence([1] * 5, ENDS), sequence([1] * 4, [ENDS[i] + offset for i in left])
    assert align(a, b).tolist() == left


def test_equally_long_but_shifted_sequences_pair_by_their_ends() -> None:
    """One rank lost its first event, the other its last: as long as each other, and all one place apart."""
    ends = np.cumsum([0, 3, 4, 5, 6, 9, 2, 7]) * MS
    a, b = sequence([1] * 7, ends[:-1].tolist()), sequence([1] * 7, ends[1:].tolist())
    assert align(a, b).tolist() == [1, 2, 3, 4, 5, 6, UNPAIRED]


def test_other_tokens_never_pair() -> None:
    a, b = sequence([1, 2, 3], [0, MS, 2 * MS]), sequence([1, 4, 3], [0, MS, 2 * MS])
    assert align(a, b).tolist() == [0, UNPAIRED, 2]


def test_steps_bind_where_both_know_them() -> None:
    """Without steps the only event of the second rank could be either."""
    a = sequence([1, 1], [0, 0], [4, 5])
    assert align(a, sequence([1], [0], [5])).tolist() == [1]
    assert align(a, sequence([1], [0], [6])).tolist() in ([UNPAIRED], [0], [1])


def test_the_offset_on_which_most_pairs_agree() -> None:
    a = sequence([1] * 5, ENDS)
    b = sequence([1] * 4, [end + 10 * MS for end in ENDS[1:]])
    assert vote_offset(a, b) == 10 * MS
    assert vote_offset(a, sequence([2], [0])) is None


gaps = st.lists(st.integers(1, 40), min_size=6, max_size=40)


@settings(max_examples=60, deadline=None)
@given(gaps=gaps, data=st.data(), offset=st.integers(-(10**9), 10**9))
def test_a_lost_event_never_mispairs_others(gaps: list[int], data: st.DataObject, offset: int) -> None:
    """Whatever was lost, a pair that is found is a right one, if the gaps differ enough to tell."""
    ends = (np.cumsum(gaps) * MS).tolist()
    lost = data.draw(st.integers(0, len(ends) - 1))
    tokens = data.draw(st.lists(st.integers(1, 3), min_size=len(ends), max_size=len(ends)))
    left = [i for i in range(len(ends)) if i != lost]
    a = sequence(tokens, ends)
    b = sequence([tokens[i] for i in left], [ends[i] + offset for i in left])
    pairs = align(a, b, offset)
    assert [p for p in pairs.tolist() if p != UNPAIRED] == [
        i for i, p in zip(left, pairs.tolist(), strict=True) if p != UNPAIRED
    ]
