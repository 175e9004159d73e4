"""The arguments of rows that carry communication facts, collected as columns beside the table."""

from __future__ import annotations

from math import prod
from typing import Any

import msgspec
import numpy as np

from rankscope.model.intervals import Bool, Int64
from rankscope.model.parts import gather
from rankscope.model.table import NO_ID, Arguments, Int32, empty_arguments
from rankscope.readers.event_decoding import EventArguments, numbers_of, whole_numbers

_SHAPED_PREFIXES = ("gloo:", "mpi:", "ucc:", "c10d::")
_SHAPED_NAMES = frozenset({"torch::autograd::AccumulateGrad", "record_param_comms"})

_MAX_ELEMENTS = 1 << 40
"""No device holds as many: a larger count is a fault, and bytes worked out from it would leave 64 bits."""

_COLLECTIVE_SIZES = ("in_elements", "out_elements")
_INTEGER_COLUMNS = ("row", *_COLLECTIVE_SIZES, "group_size", "sequence", "source", "destination")
_TEXT_COLUMNS = ("collective", "dtype", "group_name", "group_description", "group_ranks", "inputs")


class _TextNumbers(dict[Any, int]):
    """Number of a text, whatever way it is written; NO_ID for none and for the empty one."""

    def __init__(self, texts: dict[str, int]) -> None:
        self._texts = texts

    def __missing__(self, key: str | int | bytes | None) -> int:
        text = _raw_text(key) if isinstance(key, bytes) else "" if key is None else str(key)
        number = self[key] = self._texts.setdefault(text, len(self._texts)) if text else NO_ID
        return number


class ArgumentColumns:
    """Collects the arguments of chosen rows, block by block."""

    def __init__(self) -> None:
        self._pieces: dict[str, list[Any]] = {key: [] for key in (*_INTEGER_COLUMNS, *_TEXT_COLUMNS)}
        self._texts: dict[str, int] = {}
        self._numbers = _TextNumbers(self._texts)
        self._is_shaped: dict[int, bool] = {}

    def add_block(
        self, first_row: int, names: list[str], name: Int32, arguments: list[EventArguments]
    ) -> None:
        """Take what the rows `first_row`, `first_row + 1`, ... of a block carry.

        Args:
            first_row: number of the block's first row.
            names: their names.
            name: int32[n], the names numbered: equal numbers are equal names.
            arguments: their arguments.
        """
        takes = np.array([args.collective is not None for args in arguments])
        rows = np.flatnonzero(takes | self._are_shaped(names, name))
        if len(rows) == 0:
            return
        chosen = [arguments[i] for i in rows.tolist()]
        sizes = {key: _element_counts(chosen, key) for key in _COLLECTIVE_SIZES}
        dtypes = [args.dtype for args in chosen]
        for i in np.flatnonzero(~takes[rows]).tolist():
            elements, dtype = _shape(chosen[i])
            if sizes["in_elements"][i] == NO_ID:
                sizes["in_elements"][i] = elements
            dtypes[i] = dtypes[i] or dtype
        integers = {"row": rows + first_row, **sizes}
        for key in ("group_size", "sequence", "source", "destination"):
            integers[key] = whole_numbers([getattr(args, key) for args in chosen])
        inputs = [
            bytes(args.inputs) if names[i] == "record_param_comms" else None
            for i, args in zip(rows.tolist(), chosen, strict=True)
        ]
        texts: dict[str, list[Any]] = {
            "collective": [args.collective for args in chosen],
            "dtype": dtypes,
            "group_name": [args.group_name for args in chosen],
            "group_description": [args.group_description for args in chosen],
            "group_ranks": [bytes(args.group_ranks) for args in chosen],
            "inputs": [None if text is None else text.decode("utf-8", errors="replace") for text in inputs],
        }
        for key, column in integers.items():
            self._pieces[key].append(column)
        for key, values in texts.items():
            numbers = map(self._numbers.__getitem__, values)
            self._pieces[key].append(np.fromiter(numbers, np.int32, len(values)))

    def append(self, other: ArgumentColumns, first_row: int) -> None:
        """Take over what the part of the file that follows holds, whose first row is `first_row`."""
        of_text = {number: text for text, number in other._texts.items()}
        texts = [self._texts.setdefault(of_text[i], len(self._texts)) for i in range(len(of_text))]
        number = np.array([*texts, NO_ID], np.int32)  # NO_ID is the last index
        for key, pieces in other._pieces.items():
            for piece in pieces:
                new = number[piece] if key in _TEXT_COLUMNS else piece + first_row if key == "row" else piece
                self._pieces[key].append(new)

    def _are_shaped(self, names: list[str], name: Int32) -> Bool:
        """bool[n]: whether the shapes of such a row matter."""
        numbers, first = np.unique(name, return_index=True)
        for number, i in zip(numbers.tolist(), first.tolist(), strict=True):
            if number not in self._is_shaped:
                self._is_shaped[number] = _takes_shapes(names[i])
        shaped = [number for number in numbers.tolist() if self._is_shaped[number]]
        return np.isin(name, shaped)

    def build(self, row_order: Any) -> Arguments:
        """The columns sorted by row, where new row i is old row `row_order[i]`, integers of any width."""
        if not self._pieces["row"]:
            return empty_arguments()
        old_row = np.concatenate(self._pieces["row"])  # ascending, as rows came
        has_arguments = np.zeros(len(row_order), bool)
        has_arguments[old_row] = True
        row = np.flatnonzero(gather(has_arguments, row_order))
        order = np.searchsorted(old_row, row_order[row])

        texts = sorted(self._texts)  # the order in which they were met depends on where blocks were cut
        place = {text: i for i, text in enumerate(texts)}
        new = np.array([*(place[text] for text in self._texts), NO_ID], np.int32)  # NO_ID is the last index

        def column(key: str) -> Any:
            joined = np.concatenate(self._pieces[key])[order]
            return new[joined] if key in _TEXT_COLUMNS else joined

        return Arguments(
            row=row,
            collective=column("collective"),
            dtype=column("dtype"),
            in_elements=column("in_elements"),
            out_elements=column("out_elements"),
            group_name=column("group_name"),
            group_description=column("group_description"),
            group_ranks=column("group_ranks"),
            group_size=column("group_size"),
            sequence=column("sequence"),
            inputs=column("inputs"),
            source=column("source"),
            destination=column("destination"),
            texts=tuple(texts),
        )


def _takes_shapes(name: str) -> bool:
    return name in _SHAPED_NAMES or name.startswith(_SHAPED_PREFIXES)


def _element_counts(arguments: list[EventArguments], key: str) -> Int64:
    counts = numbers_of(arguments, key)
    return np.where(counts <= _MAX_ELEMENTS, counts, NO_ID)


def _raw_text(raw: bytes) -> str:
    """Text of a value that is a list in some versions and the text of one in others; "" for none."""
    text = raw.decode("utf-8", errors="replace")
    if text.startswith('"'):
        text = msgspec.json.decode(text, type=str)
    return "" if text in ("null", "[]") else text


def _shape(args: EventArguments) -> tuple[int, str | None]:
    """Elements of all tensors in `Input Dims` (lists of tensors too) and the first dtype."""
    try:
        dims = msgspec.json.decode(args.input_dims) if bytes(args.input_dims) else []
        types = msgspec.json.decode(args.input_types) if bytes(args.input_types) else []
        elements = sum(_elements(entry) for entry in dims) if isinstance(dims, list) else 0
    except (msgspec.MsgspecError, RecursionError):
        return NO_ID, None
    dtype = types[0] if isinstance(types, list) and types and isinstance(types[0], str) else None
    return elements if 0 < elements <= _MAX_ELEMENTS else NO_ID, dtype if dtype not in (
        "",
        "TensorList",
    ) else None


def _elements(entry: object) -> int:
    if not isinstance(entry, list) or not entry:
        return 0
    if all(isinstance(n, int) for n in entry):
        return prod(entry)
    return sum(_elements(inner) for inner in entry)
