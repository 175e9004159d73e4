"""A column that grows block by block, holds its values as narrow as they are, and gives its memory back."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

_CHUNK_BYTES = 1 << 20
_INT32 = np.iinfo(np.int32)


class GrowingColumn:
    """Values of one dtype, appended in arrays.

    Chunks are mapped from the system. Thousands of small arrays of several columns would lie between one another
    in the heap, and freeing those of one column would give nothing back: the peak would be twice the table.
    Full chunks of 64-bit integers lie in 32 bits where they fit, as identifiers and durations mostly do.
    """

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._dtype = np.dtype(dtype)
        self._full: list[Any] = []
        self._open = _new_chunk(self._dtype)
        self._used = 0  # of the open chunk

    def append(self, values: Any) -> None:
        """Add an array at the end."""
        while len(values):
            if self._used == len(self._open):
                self._full.append(_narrow(self._open))
                self._open = _new_chunk(self._dtype)
                self._used = 0
            free = self._open[self._used :]
            taken = values[: len(free)]
            free[: len(taken)] = taken
            self._used += len(taken)
            values = values[len(taken) :]

    def take_chunks(self) -> Iterator[Any]:
        """The values in arrays, each given back once the next is asked for; the column is empty afterwards."""
        chunks = [*self._full, self._open[: self._used]]
        self._full, self._open, self._used = [], _new_chunk(self._dtype), 0
        chunks.reverse()
        while chunks:
            yield chunks.pop()

    def join(self) -> Any:
        """All values as one array; the column is empty afterwards."""
        joined = np.empty(sum(map(len, self._full)) + self._used, self._dtype)
        start = 0
        for chunk in self.take_chunks():
            joined[start : start + len(chunk)] = chunk
            start += len(chunk)
        return joined

    def __getstate__(self) -> tuple[np.dtype[Any], list[Any]]:
        return self._dtype, [*self._full, self._open[: self._used]]

    def __setstate__(self, state: tuple[np.dtype[Any], list[Any]]) -> None:
        self._dtype, self._full = state
        self._open, self._used = _new_chunk(self._dtype), 0


def _new_chunk(dtype: np.dtype[Any], length: int | None = None) -> Any:
    length = _CHUNK_BYTES // dtype.itemsize if length is None else length
    return np.frombuffer(mmap.mmap(-1, length * dtype.itemsize), dtype)


def _narrow(chunk: Any) -> Any:
    """The same values in 32 bits, if they are integers that fit."""
    if chunk.dtype != np.int64 or chunk.min() < _INT32.min or chunk.max() > _INT32.max:
        return chunk
    narrow = _new_chunk(np.dtype(np.int32), len(chunk))
    narrow[:] = chunk
    return narrow
