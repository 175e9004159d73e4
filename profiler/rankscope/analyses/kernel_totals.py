"""Time per kernel name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rankscope.correlate.device_events import DeviceEvents
from rankscope.model.intervals import Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTotal:
    """All kernels, or copies and fills, of one name over all windows, ranks and devices.

    Attributes:
        kind: "compute" or "memory".
        name: the name.
        count: how many.
        time_ns: sum of their durations.
    """

    kind: Literal["compute", "memory"]
    name: str
    count: int
    time_ns: int


def total_kernels(windows: Sequence[DeviceEvents]) -> tuple[KernelTotal, ...]:
    """Count and time per name of compute and memory events, the longest time first.

    Args:
        windows: events of each window and device.
    """
    totals: dict[tuple[Literal["compute", "memory"], str], tuple[int, int]] = {}
    for events in windows:
        table = events.table
        kinds: tuple[tuple[Literal["compute", "memory"], Int64], ...] = (
            ("compute", events.compute),
            ("memory", events.memory),
        )
        for kind, rows in kinds:
            if len(rows) == 0:
                continue
            names, position, counts = np.unique(table.name[rows], return_inverse=True, return_counts=True)
            times = np.zeros(len(names), np.int64)
            np.add.at(times, position.reshape(-1), table.duration_ns[rows])
            for name, count, time in zip(names.tolist(), counts.tolist(), times.tolist(), strict=True):
                key = (kind, table.names[name])
                before = totals.get(key, (0, 0))
                totals[key] = (before[0] + count, before[1] + time)
    found = [
        KernelTotal(kind=kind, name=name, count=count, time_ns=time)
        for (kind, name), (count, time) in totals.items()
    ]
    return tuple(sorted(found, key=lambda total: (-total.time_ns, total.kind, total.name)))
