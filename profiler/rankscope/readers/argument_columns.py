"""The arguments of rows that carry communication facts, collected as columns beside the table."""

from __future__ import annotations

from array import array
from math import prod

import msgspec
import numpy as np

from rankscope.model.intervals import Bool, Int64
from rankscope.model.table import NO_ID, Arguments, Int32, empty_arguments
from rankscope.readers.event_decoding import MAX_INT, EventArguments, whole_number

_SHAPED_PREFIXES = ("gloo:", "mpi:", "ucc:", "c10d::")
_SHAPED_NAMES = frozenset({"torch::autograd::AccumulateGrad", "record_param_comms"})

_INTEGER_COLUMNS = ("row", "in_elements", "out_elements", "group_size", "sequence", "source", "destination")
_TEXT_COLUMNS = ("collective", "dtype", "group_name", "group_description", "group_ranks", "inputs")


class ArgumentColumns:
    """Collects the arguments of chosen rows, block by block."""

    def __init__(self) -> None:
        # Arrays of C integers: a list would hold an object for each number.
        self._columns = {key: array("q") for key in _INTEGER_COLUMNS} | {
            key: array("i") for key in _TEXT_COLUMNS
        }
        self._texts: dict[str, int] = {}
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
        takes = [args.collective is not None for args in arguments]
        for i in np.flatnonzero(np.array(takes) | self._are_shaped(names, name)).tolist():
            self._add(first_row + i, names[i], arguments[i])

    def _are_shaped(self, names: list[str], name: Int32) -> Bool:
        """bool[n]: whether the shapes of such a row matter."""
        numbers, first = np.unique(name, return_index=True)
        for number, i in zip(numbers.tolist(), first.tolist(), strict=True):
            if number not in self._is_shaped:
                self._is_shaped[number] = _takes_shapes(names[i])
        shaped = [number for number in numbers.tolist() if self._is_shaped[number]]
        return np.isin(name, shaped)

    def _add(self, row: int, name: str, args: EventArguments) -> None:
        in_elements = _whole(args.in_elements if args.in_elements is not None else args.old_in_elements)
        dtype = args.dtype
        if args.collective is None:
            elements, shaped_dtype = _shape(args)
            in_elements = elements if in_elements == NO_ID else in_elements
            dtype = dtype or shaped_dtype
        out = args.out_elements if args.out_elements is not None else args.old_out_elements
        inputs = (
            bytes(args.inputs).decode("utf-8", errors="replace") if name == "record_param_comms" else None
        )
        values = {
            "row": row,
            "in_elements": in_elements,
            "out_elements": _whole(out),
            "group_size": _whole(args.group_size),
            "sequence": _whole(args.sequence),
            "source": _whole(args.source),
            "destination": _whole(args.destination),
            "collective": self._text(args.collective),
            "dtype": self._text(dtype),
            "group_name": self._text(args.group_name),
            "group_description": self._text(args.group_description),
            "group_ranks": self._text(_raw_text(args.group_ranks)),
            "inputs": self._text(inputs),
        }
        for key, value in values.items():
            self._columns[key].append(value)

    def _text(self, text: str | int | None) -> int:
        if text is None or text == "":
            return NO_ID
        return self._texts.setdefault(str(text), len(self._texts))

    def build(self, row_order: Int64) -> Arguments:
        """The columns sorted by row, where new row i is old row `row_order[i]`."""
        if not self._columns["row"]:
            return empty_arguments()
        new_row = np.empty(len(row_order), np.int64)
        new_row[row_order] = np.arange(len(row_order))
        row = new_row[np.frombuffer(self._columns["row"], np.int64)]
        del new_row
        order = np.argsort(row, kind="stable")

        def integers(key: str) -> Int64:
            return np.frombuffer(self._columns[key], np.int64)[order]

        def texts(key: str) -> Int32:
            return np.frombuffer(self._columns[key], np.int32)[order]

        return Arguments(
            row=row[order],
            collective=texts("collective"),
            dtype=texts("dtype"),
            in_elements=integers("in_elements"),
            out_elements=integers("out_elements"),
            group_name=texts("group_name"),
            group_description=texts("group_description"),
            group_ranks=texts("group_ranks"),
            group_size=integers("group_size"),
            sequence=integers("sequence"),
            inputs=texts("inputs"),
            source=integers("source"),
            destination=integers("destination"),
            texts=tuple(self._texts),
        )


def _takes_shapes(name: str) -> bool:
    return name in _SHAPED_NAMES or name.startswith(_SHAPED_PREFIXES)


def _whole(value: object) -> int:
    if value is None:
        return NO_ID
    number = whole_number(value)
    return NO_ID if number is None else number


def _raw_text(raw: msgspec.Raw) -> str | None:
    """Text of a value that is a list in some versions and the text of one in others."""
    text = bytes(raw).decode("utf-8", errors="replace")
    if text.startswith('"'):
        text = msgspec.json.decode(text, type=str)
    return None if text in ("", "null", "[]") else text


def _shape(args: EventArguments) -> tuple[int, str | None]:
    """Elements of all tensors in `Input Dims` (lists of tensors too) and the first dtype."""
    try:
        dims = msgspec.json.decode(args.input_dims) if bytes(args.input_dims) else []
        types = msgspec.json.decode(args.input_types) if bytes(args.input_types) else []
        elements = sum(_elements(entry) for entry in dims) if isinstance(dims, list) else 0
    except (msgspec.MsgspecError, RecursionError):
        return NO_ID, None
    dtype = types[0] if isinstance(types, list) and types and isinstance(types[0], str) else None
    return elements if 0 < elements <= MAX_INT else NO_ID, dtype if dtype not in ("", "TensorList") else None


def _elements(entry: object) -> int:
    if not isinstance(entry, list) or not entry:
        return 0
    if all(isinstance(n, int) for n in entry):
        return prod(entry)
    return sum(_elements(inner) for inner in entry)
