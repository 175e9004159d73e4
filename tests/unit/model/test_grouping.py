"""Rows with equal numbers, all numbers at once."""

from __future__ import annotations

import statistics

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rankscope.model.grouping import medians, places_of_each

NUMBERS = st.lists(st.integers(-1, 5))
PAIRS = st.lists(st.tuples(st.integers(-3, 3), st.integers(-(1 << 62), 1 << 62)))


@given(NUMBERS)
def test_places_are_those_that_a_look_per_number_finds(numbers: list[int]) -> None:
    found = [places.tolist() for places in places_of_each(np.array(numbers, np.int64), 5)]
    assert found == [[i for i, number in enumerate(numbers) if number == wanted] for wanted in range(5)]


@given(PAIRS)
def test_median_of_each_key_is_the_lower_middle_of_its_values(pairs: list[tuple[int, int]]) -> None:
    keys = sorted({key for key, _ in pairs})
    expected = [statistics.median_low([value for key, value in pairs if key == wanted]) for wanted in keys]
    columns = np.array(pairs, np.int64).reshape(-1, 2)
    distinct, middle = medians(columns[:, 0], columns[:, 1])
    assert (distinct.tolist(), middle.tolist()) == (keys, expected)
