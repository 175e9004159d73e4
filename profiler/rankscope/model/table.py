"""One trace file as columns: the only form in which events leave the readers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from rankscope.model.categories import Category, EventClass
from rankscope.model.intervals import Int64, IntervalSet, union

Int32 = npt.NDArray[np.int32]
Int16 = npt.NDArray[np.int16]
UInt8 = npt.NDArray[np.uint8]

NO_ID = -1
"""Stands in an id column (correlation, external id, device, element count) for "the trace does not say"."""

CPU_DEVICE = -1
"""The device number of host rows; the whole of a CPU-only run is measured on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """Where rows run one after another: a host thread, or a stream of a device.

    Attributes:
        pid: process of a host thread, or the device's number, as the trace writes it.
        tid: thread, or stream, as the trace writes it (text in old traces).
        device: device number; None on the host.
        stream: stream number; None on the host or where the trace does not say.
    """

    pid: int | str
    tid: int | str
    device: int | None = None
    stream: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """The arguments of the rows that carry communication facts, as columns, sorted by `row`.

    Text columns are indices into `texts` (NO_ID: absent); numbers are NO_ID where absent.

    Attributes:
        row: int64[m], index into the table.
        collective: int32[m], `Collective name`.
        dtype: int32[m], as the trace writes it ("Float", "BFloat16", "float", "c10::BFloat16").
        in_elements: int64[m], elements that this rank puts in.
        out_elements: int64[m], elements that this rank gets out.
        group_name, group_description, group_ranks: int32[m], texts.
        group_size: int64[m], number of ranks in the process group.
        sequence: int64[m], `Seq`, torch >= 2.12.
        inputs: int32[m], the `Concrete Inputs` list as JSON text.
        source, destination: int64[m], `Src Rank`, `Dst Rank`.
        texts: the texts.
    """

    row: Int64
    collective: Int32
    dtype: Int32
    in_elements: Int64
    out_elements: Int64
    group_name: Int32
    group_description: Int32
    group_ranks: Int32
    group_size: Int64
    sequence: Int64
    inputs: Int32
    source: Int64
    destination: Int64
    texts: tuple[str, ...]

    def text(self, index: int) -> str | None:
        """The text behind an index of a text column, or None."""
        return None if index == NO_ID else self.texts[index]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceTable:
    """The complete events of one trace file, sorted by start; times are absolute int64 nanoseconds.

    Attributes:
        start_ns: int64[n], since the Unix epoch where the trace says so (base time added).
        duration_ns: int64[n], never negative.
        category: uint8[n], a `Category`.
        event_class: uint8[n], an `EventClass`.
        name: int32[n], index into `names`.
        lane: int32[n], index into `lanes`.
        device: int16[n], CPU_DEVICE on host rows.
        correlation: int64[n], joins a device row to its launch row; NO_ID if absent.
        external_id: int64[n], joins rows to operators; NO_ID if absent.
        names: distinct names.
        lanes: distinct lanes.
        arguments: columns of the rows that carry communication facts.
    """

    start_ns: Int64
    duration_ns: Int64
    category: UInt8
    event_class: UInt8
    name: Int32
    lane: Int32
    device: Int16
    correlation: Int64
    external_id: Int64
    names: tuple[str, ...]
    lanes: tuple[Lane, ...]
    arguments: Arguments

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def end_ns(self) -> Int64:
        """int64[n], end of each row in nanoseconds."""
        return self.start_ns + self.duration_ns

    def ends_of(self, rows: Int64) -> Int64:
        """int64[k], end of each of some rows in nanoseconds; a column of all rows is not made for it."""
        ends: Int64 = self.start_ns[rows]
        ends += self.duration_ns[rows]
        return ends

    def times_of(self, rows: Int64) -> IntervalSet:
        """When at least one of some rows is on."""
        return union(self.start_ns[rows], self.ends_of(rows))

    def rows_of_class(self, event_class: EventClass, device: int) -> Int64:
        """int64[k], rows of one class on one device (device rows only where `device` is a GPU)."""
        return np.flatnonzero((self.event_class == event_class) & (self.device == device))

    def rows_of_category(self, category: Category, of_names: Sequence[bool] | None = None) -> Int64:
        """int64[k], rows of one category; of some names only, where `of_names` says of each name whether it counts."""
        rows = np.flatnonzero(self.category == category)
        if of_names is None or len(rows) == 0:
            return rows
        named: Int64 = rows[np.array(of_names, bool)[self.name[rows]]]
        return named

    def gpu_devices(self) -> tuple[int, ...]:
        """Devices with kernels, copies or fills, in order."""
        return tuple(int(d) for d in np.unique(self.device) if d != CPU_DEVICE)

    def rows_named(self, predicate_names: frozenset[str]) -> Int64:
        """int64[k], rows whose name is one of `predicate_names`."""
        wanted = np.array([name in predicate_names for name in self.names], bool)
        return np.flatnonzero(wanted[self.name])

    def shifted(self, offset_ns: int) -> TraceTable:
        """The same events `offset_ns` later."""
        return replace(self, start_ns=self.start_ns + np.int64(offset_ns))


def empty_arguments() -> Arguments:
    """Arguments of a table in which no row carries any."""
    int32, int64 = np.empty(0, np.int32), np.empty(0, np.int64)
    return Arguments(
        row=int64,
        collective=int32,
        dtype=int32,
        in_elements=int64,
        out_elements=int64,
        group_name=int32,
        group_description=int32,
        group_ranks=int32,
        group_size=int64,
        sequence=int64,
        inputs=int32,
        source=int64,
        destination=int64,
        texts=(),
    )


def empty_table() -> TraceTable:
    """A table without events."""
    int64 = np.empty(0, np.int64)
    return TraceTable(
        start_ns=int64,
        duration_ns=int64,
        category=np.empty(0, np.uint8),
        event_class=np.empty(0, np.uint8),
        name=np.empty(0, np.int32),
        lane=np.empty(0, np.int32),
        device=np.empty(0, np.int16),
        correlation=int64,
        external_id=int64,
        names=(),
        lanes=(),
        arguments=empty_arguments(),
    )
