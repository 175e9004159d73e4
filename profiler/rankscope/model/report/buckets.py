"""Buckets of DDP and units of FSDP, and the layouts that they follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutBucket:
    """One bucket of a layout: its index in launch order, bytes as sent, dtype and parameters, and its operation.

    Without the collector's facts a parameter is named by its place in gradient-ready order: "#0 (4096 elements)".
    """

    index: int
    size_bytes: int | None
    dtype: str | None
    parameters: list[str]
    op: str = "all_reduce"


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutRow:
    """One layout of DDP buckets, or the order of FSDP's all-gathers and reduce-scatters in a step.

    Attributes:
        layout: its number, in order of first use.
        cap_mb: `bucket_cap_mb` where the collector recorded it.
        buckets: its buckets, in index order.
        module: name of the DDP module, None without the collector's facts; "FSDP" for FSDP units.
        before_rebuild: whether only steps before DDP's rebuild used it.
        parameters_from: "collector", "gradient sizes" (inferred), "annotations" (of FSDP: the parameters are the
            unit's name), or None if the parameters are not known.
    """

    layout: int
    cap_mb: float | None
    buckets: list[LayoutBucket]
    module: str | None = None
    before_rebuild: bool = False
    parameters_from: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketRow:
    """One DDP bucket or FSDP unit of one step on one rank; times are relative to the origin, on the common clock.

    Attributes:
        step: the step, None outside steps.
        steady: whether steady figures use it.
        layout: number of its layout.
        index: its place in launch order.
        rank: the rank.
        size_bytes: bytes as sent.
        ready_ns: when its last gradient was in place on the device, and every lower bucket's.
        launched_ns: when the host launched it.
        host_overhead_ns: from the host's request to the launch; None on CPU-only runs.
        started_ns, finished_ns: the communication itself.
        queue_ns: from max(ready, launched) to the start.
        wait_ns: from the start until the last rank had come.
        transfer_ns: shortest duration over the ranks.
        exposed_ns: time beside which no compute ran on the rank.
        overlap_ratio: hidden share of its time.
        bus_bandwidth_gbps: 2(n-1)/n of its size over the transfer time, in 1e9 bytes/s.
        backward: which backward of the recorded window (gradient accumulation, several losses).
        device: device number, or "cpu".
        window: recorded window of the rank.
        op: "all_reduce" of a bucket; "all_gather", "reduce_scatter" or "all_reduce" of an FSDP unit.
    """

    step: int | None
    steady: bool
    layout: int
    index: int
    rank: int
    size_bytes: int | None
    ready_ns: int | None
    launched_ns: int | None
    host_overhead_ns: int | None
    started_ns: int
    finished_ns: int
    queue_ns: int | None
    wait_ns: int | None
    transfer_ns: int | None
    exposed_ns: int
    overlap_ratio: float | None
    bus_bandwidth_gbps: float | None
    backward: int = 0
    device: int | Literal["cpu"] = 0
    window: int = 0
    op: str = "all_reduce"
