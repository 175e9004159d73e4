"""Interval arithmetic: worked by hand, and against sets of whole numbers that are small enough to count."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rankscope.model.intervals import (
    EMPTY,
    Int64,
    IntervalSet,
    covered_ns,
    depth_at_least,
    intersect,
    merge,
    subtract,
    union,
)

Pairs = list[tuple[int, int]]

COUNTED = settings(max_examples=150, deadline=None, database=None)
pairs_strategy = st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), max_size=8)


def columns(pairs: Pairs) -> tuple[Int64, Int64]:
    starts = np.array([start for start, _ in pairs], np.int64)
    return starts, np.array([end for _, end in pairs], np.int64)


def set_of(pairs: Pairs) -> IntervalSet:
    return union(*columns(pairs))


def shown(times: IntervalSet) -> Pairs:
    return list(zip(times.starts.tolist(), times.ends.tolist(), strict=True))


def units(pairs: Iterable[tuple[int, int]]) -> set[int]:
    """Unit n stands for [n, n + 1)."""
    return {n for start, end in pairs for n in range(start, end)}


def check_normal_form(times: IntervalSet) -> None:
    assert (times.starts < times.ends).all()
    assert (times.ends[:-1] < times.starts[1:]).all()
    assert times.starts.dtype == times.ends.dtype == np.int64


def test_nothing() -> None:
    assert shown(set_of([])) == []
    assert set_of([]).length_ns == 0
    assert merge() is EMPTY
    assert len(intersect(EMPTY, set_of([(0, 5)]))) == 0
    assert len(subtract(EMPTY, set_of([(0, 5)]))) == 0
    assert shown(subtract(set_of([(0, 5)]), EMPTY)) == [(0, 5)]
    assert covered_ns(*columns([]), set_of([(0, 5)])).tolist() == []
    assert covered_ns(*columns([(0, 5)]), EMPTY).tolist() == [0]
    assert len(depth_at_least(*columns([]), 1)) == 0


def test_union_joins_what_touches_or_overlaps_in_any_order() -> None:
    assert shown(set_of([(20, 30), (5, 12), (0, 10), (12, 13)])) == [(0, 13), (20, 30)]


def test_union_of_nested_intervals_keeps_the_outer_end() -> None:
    assert shown(set_of([(0, 100), (10, 20), (30, 40)])) == [(0, 100)]


def test_empty_and_backward_intervals_add_nothing() -> None:
    assert shown(set_of([(5, 5), (9, 2), (1, 2)])) == [(1, 2)]


def test_touching_sets_share_nothing() -> None:
    assert len(intersect(set_of([(0, 10)]), set_of([(10, 20)]))) == 0


def test_intersect_cuts_at_both_sides() -> None:
    """[0,10) and [20,30) with [5,25): 5..10 and 20..25."""
    assert shown(intersect(set_of([(0, 10), (20, 30)]), set_of([(5, 25)]))) == [(5, 10), (20, 25)]


def test_subtract_leaves_the_gaps() -> None:
    """[0,100) without [10,20), [50,60) and what lies beyond it on both sides."""
    rest = subtract(set_of([(0, 100)]), set_of([(-5, 1), (10, 20), (50, 60), (99, 200)]))
    assert shown(rest) == [(1, 10), (20, 50), (60, 99)]


def test_times_since_the_epoch_keep_their_nanoseconds() -> None:
    epoch = 1_767_225_600_000_000_130
    times = intersect(set_of([(epoch, epoch + 7)]), set_of([(epoch + 3, epoch + 9)]))
    assert shown(times) == [(epoch + 3, epoch + 7)]
    assert times.length_ns == 4


def test_depth_counts_intervals_that_run_at_once() -> None:
    """One to 600, one from 200 to 800, one from 500 to 550: two at once in 200..600, three in 500..550."""
    starts, ends = columns([(0, 600), (200, 800), (500, 550)])
    assert shown(depth_at_least(starts, ends, 2)) == [(200, 600)]
    assert shown(depth_at_least(starts, ends, 3)) == [(500, 550)]
    assert depth_at_least(starts, ends, 4).length_ns == 0


def test_one_after_another_is_not_at_once() -> None:
    assert len(depth_at_least(*columns([(0, 10), (10, 20)]), 2)) == 0


@COUNTED
@given(pairs_strategy)
def test_union_holds_every_unit_once(pairs: Pairs) -> None:
    times = set_of(pairs)
    check_normal_form(times)
    assert units(shown(times)) == units(pairs)
    assert times.length_ns == len(units(pairs))


@COUNTED
@given(pairs_strategy, pairs_strategy)
def test_set_operations_are_those_of_sets(a: Pairs, b: Pairs) -> None:
    for times, wanted in (
        (intersect(set_of(a), set_of(b)), units(a) & units(b)),
        (subtract(set_of(a), set_of(b)), units(a) - units(b)),
        (merge(set_of(a), set_of(b)), units(a) | units(b)),
    ):
        check_normal_form(times)
        assert units(shown(times)) == wanted


@COUNTED
@given(pairs_strategy, pairs_strategy)
def test_cover_of_each_interval_is_counted_alone(pairs: Pairs, cover: Pairs) -> None:
    wanted = [len(units([pair]) & units(cover)) for pair in pairs]
    assert covered_ns(*columns(pairs), set_of(cover)).tolist() == wanted


@COUNTED
@given(pairs_strategy, st.integers(1, 4))
def test_depth_is_the_number_of_intervals_over_a_unit(pairs: Pairs, depth: int) -> None:
    times = depth_at_least(*columns(pairs), depth)
    check_normal_form(times)
    wanted = {n for n in range(-9, 9) if sum(start <= n < end for start, end in pairs) >= depth}
    assert units(shown(times)) == wanted
