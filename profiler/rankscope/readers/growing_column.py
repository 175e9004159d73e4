"""A column that grows block by block and gives its memory back when it is joined."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import numpy.typing as npt

_CHUNK_BYTES = 1 << 20


class GrowingColumn:
    """Values of one dtype, appended in arrays.

    Chunks are mapped from the system. Thousands of small arrays of several columns would lie between one another
    in the heap, and freeing those of one column would give nothing back: the peak would be twice the table.
    """

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._dtype = np.dtype(dtype)
        self._chunks: list[Any] = []
        self._used = 0

    def append(self, values: Any) -> None:
        """Add an array at the end."""
        while len(values):
            if not self._chunks or self._used == len(self._chunks[-1]):
                self._chunks.append(np.frombuffer(mmap.mmap(-1, _CHUNK_BYTES), self._dtype))
                self._used = 0
            free = self._chunks[-1][self._used :]
            taken = values[: len(free)]
            free[: len(taken)] = taken
            self._used += len(taken)
            values = values[len(taken) :]

    def join(self) -> Any:
        """All values as one array; the column is empty afterwards."""
        if not self._chunks:
            return np.empty(0, self._dtype)
        joined = np.concatenate([*self._chunks[:-1], self._chunks[-1][: self._used]])
        self._chunks.clear()
        return joined
