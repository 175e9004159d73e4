"""A column gives back what was put in, however its chunks hold it; and a copy in order, however it is cut."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from rankscope.model import parts
from rankscope.model.parts import gather
from rankscope.readers import growing_column
from rankscope.readers.growing_column import GrowingColumn

ROWS_OF_A_CHUNK = 4
FIRST_TOO_LARGE, FIRST_TOO_SMALL = 1 << 31, -(1 << 31) - 1


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing_column, "_CHUNK_BYTES", 8 * ROWS_OF_A_CHUNK)


def filled(values: list[int], piece: int = 3) -> GrowingColumn:
    column = GrowingColumn(np.int64)
    for start in range(0, len(values), piece):
        column.append(np.array(values[start : start + piece], np.int64))
    return column


VALUES = [
    1,
    2,
    3,
    4,
    5,
    6,
    FIRST_TOO_LARGE,
    8,
    9,
    10,
    11,
    FIRST_TOO_SMALL,
    -13,
    FIRST_TOO_LARGE - 1,
    15,
    16,
    17,
]


def test_values_come_back_in_their_dtype() -> None:
    joined = filled(VALUES).join()
    assert joined.dtype == np.int64
    assert joined.tolist() == VALUES


def test_only_chunks_whose_values_fit_are_narrow() -> None:
    """Rows 0-3 fit 32 bits, 4-7 and 8-11 hold one that does not, 12-15 fit just so; the last is not full."""
    chunks = list(filled(VALUES).take_chunks())
    assert [chunk.dtype.itemsize for chunk in chunks] == [4, 8, 8, 4, 8]
    assert np.concatenate(chunks).tolist() == VALUES


def test_a_column_that_was_sent_goes_on() -> None:
    column: Any = pickle.loads(pickle.dumps(filled(VALUES[:6])))  # noqa: S301 - made here
    column.append(np.array(VALUES[6:], np.int64))
    assert column.join().tolist() == VALUES


def test_a_column_that_was_taken_is_empty() -> None:
    column = filled(VALUES)
    column.join()
    assert column.join().tolist() == []


def test_other_dtypes_stay_as_they_are() -> None:
    column = GrowingColumn(np.uint8)
    column.append(np.arange(100, dtype=np.uint8))
    assert {chunk.dtype for chunk in column.take_chunks()} == {np.dtype(np.uint8)}


@pytest.mark.parametrize("dtype", [np.uint32, np.int64])
def test_gathering_part_by_part(monkeypatch: pytest.MonkeyPatch, dtype: Any) -> None:
    monkeypatch.setattr(parts, "_PART_ROWS", 3)
    column, order = np.arange(10) * 10, np.array([9, 0, 8, 1, 7, 2, 6, 3, 5, 4, 9], dtype)
    assert gather(column, order).tolist() == [90, 0, 80, 10, 70, 20, 60, 30, 50, 40, 90]
    assert gather(column[:0], order[:0]).tolist() == []
