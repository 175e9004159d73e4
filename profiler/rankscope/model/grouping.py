"""Rows with equal numbers, all numbers at once: one look per number would grow with the square of a run's ranks."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from rankscope.model.intervals import Int64


def places_of_each(numbers: Int64, count: int) -> list[Int64]:
    """For each number of 0 ... count - 1 the places at which it stands, in order.

    >>> [places.tolist() for places in places_of_each(np.array([2, 0, 2]), 4)]
    [[1], [], [0, 2], []]

    Args:
        numbers: int64[n]; others than those looked for, such as -1, are left out.
        count: how many numbers.
    """
    order = np.argsort(numbers, kind="stable")
    bounds = np.searchsorted(numbers[order], np.arange(count + 1)).tolist()
    return [order[first:after] for first, after in pairwise(bounds)]


def medians(keys: Int64, values: Int64) -> tuple[Int64, Int64]:
    """(distinct keys in order, median of the values of each); of two middles, the lower one.

    >>> [column.tolist() for column in medians(np.array([7, 3, 7, 7]), np.array([9, 4, 1, 5]))]
    [[3, 7], [4, 5]]
    """
    order = np.argsort(keys, kind="stable")
    keys, values = keys[order], values[order]
    first = np.flatnonzero(np.diff(keys, prepend=keys[:1] - 1))
    counts = np.diff(first, append=len(keys))
    middle = np.empty(len(first), np.int64)
    for count in np.unique(counts).tolist():  # keys of one count are rows of a table, and sorted at once
        alike = counts == count
        rows = values[first[alike][:, None] + np.arange(count)]
        middle[alike] = np.partition(rows, (count - 1) // 2, axis=1)[:, (count - 1) // 2]
    return keys[first], middle
