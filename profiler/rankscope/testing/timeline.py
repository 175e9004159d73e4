"""A synthetic run laid out in time: what every rank's host threads and streams do, in true nanoseconds.

True time is one axis for all ranks, from 0 at the start of the run; clocks come in when files are written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rankscope.testing.program import Backend, DeviceItem, Item, Region, Thread

SpanKind = Literal["operator", "annotation", "record", "launch", "sync"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSpan:
    """A row of a host thread.

    Attributes:
        kind: "operator" (cpu_op), "annotation", "record" (record_param_comms), "launch" or "sync" (runtime).
        name: its name; "" for launches and syncs, whose name depends on the vendor.
        thread: "main" or "backward".
        start_ns, end_ns: true time.
        launch: number of the device work (per rank) that it launches or that belongs to it, or None.
        item: the program item behind it.
        shape: dimensions of its input, or None.
    """

    kind: SpanKind
    name: str
    thread: Thread
    start_ns: int
    end_ns: int
    item: Item
    launch: int | None = None
    shape: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSpan:
    """A kernel, copy or worker-thread collective.

    Attributes:
        item: the program item behind it.
        stream: name of the stream (on gloo: of the worker).
        start_ns, end_ns: true time.
        launch: number of the launch on its rank, from 0.
        sequence: position among its group's collectives, or among its pair's messages; None for others.
        step: training step in which it was launched, or None.
    """

    item: DeviceItem
    stream: str
    start_ns: int
    end_ns: int
    launch: int
    sequence: int | None
    step: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankTimeline:
    """All rows of one rank: host rows with outer before inner ones, device rows in launch order."""

    host: tuple[HostSpan, ...]
    device: tuple[DeviceSpan, ...]

    def steps(self) -> dict[int, HostSpan]:
        """Step -> its `ProfilerStep#` row, in order."""
        return {s.item.step: s for s in self.host if isinstance(s.item, Region) and s.item.step is not None}

    def edges_ns(self) -> tuple[int, ...]:
        """All starts and ends, in true ns."""
        host = [ns for span in self.host for ns in (span.start_ns, span.end_ns)]
        return (*host, *(ns for span in self.device for ns in (span.start_ns, span.end_ns)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """All ranks of a run."""

    backend: Backend
    ranks: dict[int, RankTimeline]
