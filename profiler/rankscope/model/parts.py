"""Columns taken a part at a time: of the largest files what a whole column needs on the way is most of the memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

_PART_ROWS = 1 << 18


def parts(length: int) -> list[slice]:
    """Slices that cover a column of that length."""
    return [slice(a, min(a + _PART_ROWS, length)) for a in range(0, length, _PART_ROWS)]


def gather(column: npt.NDArray[Any], order: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """`column[order]`, for an index of any integer type; numpy would copy one of 32 bits to 64 as a whole.

    >>> gather(np.array([10, 20, 30]), np.array([2, 0, 1], np.uint32)).tolist()
    [30, 10, 20]
    """
    gathered = np.empty(len(order), column.dtype)
    for part in parts(len(order)):
        gathered[part] = column[order[part]]
    return gathered
