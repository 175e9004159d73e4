"""Union measures of times on devices: of everything, and per rank, window and step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """Union measures of a set of events, in ns; every row of times in the report holds these.

    compute + exposed communication + exposed memory + idle = window, to the nanosecond, where a window is
    defined.
    """

    window_ns: int | None = None
    compute_ns: int = 0
    communication_ns: int = 0
    overlap_ns: int = 0
    exposed_communication_ns: int = 0
    memory_ns: int = 0
    exposed_memory_ns: int = 0
    idle_ns: int | None = None
    overlap_ratio: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Union measures added over ranks, devices and windows.

    Attributes:
        run: everything.
        steady: the steady steps only; None without one.
        outside_steps: events launched outside every step; None without step markers.
    """

    run: Measures
    steady: Measures | None = None
    outside_steps: Measures | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRow(Measures):
    """One rank on one device, all its windows together. `device` is "cpu" on CPU-only runs."""

    rank: int
    device: int | Literal["cpu"]
    host: str | None = None
    exposed_wait_ns: int | None = None
    exposed_transfer_ns: int | None = None
    communication_self_overlap_ns: int = 0
    compute_kernels: int = 0
    communication_kernels: int = 0
    memory_operations: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRow(Measures):
    """One recorded window of one rank on one device. `started_ns` is relative to the origin."""

    rank: int
    device: int | Literal["cpu"] | None
    window: int
    file: str
    started_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow(Measures):
    """What one step launched on one rank and device; `step` is None for events outside steps.

    Attributes:
        steady: whether the steady figures use it.
        duration_ns: duration of the step; None outside steps.
        runs_past_end_ns: how long its last event on the device runs on after the step ended on the host.
    """

    step: int | None
    rank: int
    device: int | Literal["cpu"]
    window: int = 0
    steady: bool = False
    duration_ns: int | None = None
    runs_past_end_ns: int | None = None
