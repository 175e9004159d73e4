"""What is kept of a run to compare it with another: its figures, samples per step, and largest parts.

A baseline file is a few of these as JSON. Docs: docs/formats.md. Version history of the file:

1.0  first version
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

BASELINE_NAME = "rankscope-baseline"
BASELINE_VERSION = "1.0"

PartClass = Literal["collective", "compute", "memory"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """All events of one name: a collective operation in a process group, a kernel, or a copy.

    Attributes:
        part_class: what it is.
        name: name of the kernel or copy; the operation of a collective.
        group: process group of a collective, "" otherwise.
        count: events, mean per rank.
        time_ns: sum of their durations, mean per rank; union time of a collective.
        exposed_ns: exposed part of a collective, mean per rank; None otherwise.
    """

    part_class: PartClass
    name: str
    group: str = ""
    count: float
    time_ns: float
    exposed_ns: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The largest parts of a run.

    Attributes:
        rows: the parts, the largest first.
        has_kernels: whether kernels and copies are among them; a saved report knows collectives only.
        left_out_collective_ns, left_out_kernel_ns: time of the largest collective, and kernel or copy, that was
            left out; 0 if none was.
    """

    rows: list[Part] = field(default_factory=list)
    has_kernels: bool = False
    left_out_collective_ns: float = 0
    left_out_kernel_ns: float = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One run.

    Attributes:
        name: short name of the run.
        started_at: UTC time of its first event; None if unknown.
        labels: free text given by the user.
        versions: component -> version.
        devices: distinct names of devices.
        backend: communication backend.
        is_cpu_only: whether compute ran on the CPU.
        world_size: ranks of the job.
        ranks: number of ranks with a trace.
        missing_ranks: ranks without one.
        rows: rank and device pairs: what means per rank are taken over.
        steps: recorded steps, mean over these.
        figures: "overlap_ratio", "steady.exposed_communication" ... -> value in ns, ratio, ...; None if undefined.
        undefined: the same names -> why there is no value.
        samples: figure -> its value in each steady step, in order; None where it is undefined.
    """

    name: str
    started_at: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    devices: list[str] = field(default_factory=list)
    backend: str | None = None
    is_cpu_only: bool = False
    world_size: int | None = None
    ranks: int = 0
    missing_ranks: list[int] = field(default_factory=list)
    rows: int = 0
    steps: float = 0
    figures: dict[str, float | None] = field(default_factory=dict)
    undefined: dict[str, str] = field(default_factory=dict)
    samples: dict[str, list[float | None]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineFormat:
    """Name and version of the baseline's format."""

    name: str = BASELINE_NAME
    version: str = BASELINE_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """Runs of one state of the code, to compare others with.

    Attributes:
        format: name and version of the format.
        tool_version: the rankscope that wrote it.
        runs: the runs, the oldest first; several show how much runs differ without a change.
        parts: the largest parts of the newest run.
    """

    format: BaselineFormat = field(default_factory=BaselineFormat)
    tool_version: str
    runs: list[Snapshot]
    parts: Parts = field(default_factory=Parts)
