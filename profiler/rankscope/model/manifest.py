"""The collector's own facts about a window, kept under the trace's top-level key `rankscope`.

Standard library only: the collector writes it beside torch alone. Readers ignore unknown keys; a new key
raises the minor version, a change of meaning the major one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

MANIFEST_KEY = "rankscope"
MANIFEST_NAME = "rankscope-manifest"
MANIFEST_VERSION = "1.1"  # 1.1: initial_buckets, iterations, calibration, clock_offsets


@dataclass(frozen=True)
class ManifestFormat:
    """Name and version of the manifest's format."""

    name: str = MANIFEST_NAME
    version: str = MANIFEST_VERSION


@dataclass(frozen=True)
class ManifestGroup:
    """A process group: its name on this rank, its description, its backend and its global ranks."""

    name: str
    description: str = ""
    backend: str = ""
    ranks: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class StepTime:
    """Wall time of one step on the host.

    Attributes:
        step: number of the step, as in `ProfilerStep#<step>`.
        started_unix_ns: wall-clock nanoseconds since the Unix epoch.
        duration_ns: from this `Collector.step()` to the next, by the monotonic clock.
        recorded: whether the profiler was recording during the step.
    """

    step: int
    started_unix_ns: int
    duration_ns: int
    recorded: bool


@dataclass(frozen=True)
class Parameter:
    """A parameter of a watched module: qualified name, number of elements, dtype ("float32"), bytes."""

    name: str
    elements: int
    dtype: str
    size_bytes: int


@dataclass(frozen=True)
class BucketLayout:
    """One DDP bucket: its index (launch order), bytes, dtype, and its parameters' indices in `parameters`."""

    index: int
    size_bytes: int
    dtype: str
    parameters: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class DdpIteration:
    """DDP's own times of one of its iterations, in ns, as it measures them on the device that it trains on.

    Attributes:
        step: training step that the iteration belongs to.
        iteration: DDP's own count of the iterations that synchronise gradients, from 1.
        forward_compute_ns: from the forward's start to its end.
        backward_compute_ns: from the backward's start to the moment at which the last gradient is ready.
        backward_communication_ns: from the first bucket's launch to the last bucket's end.
        overlap_ns: from the first bucket's launch to the last gradient, gaps without a transfer included:
            an upper bound of the true overlap.
    """

    step: int
    iteration: int
    forward_compute_ns: int
    backward_compute_ns: int
    backward_communication_ns: int
    overlap_ns: int


@dataclass(frozen=True)
class DdpFacts:
    """What DDP says of one watched module, from `_get_ddp_logging_data()`.

    Attributes:
        module: class name of the wrapped module.
        bucket_cap_bytes: `bucket_cap_mb` in bytes; None if the logging data does not hold it.
        first_bucket_bytes: cap of the first bucket, where it differs.
        has_rebuilt_buckets: whether the layout below is the rebuilt one.
        find_unused_parameters, static_graph, gradient_as_bucket_view: DDP's flags.
        buckets: the current layout, in index order.
        initial_buckets: the layout of the first iteration, where `buckets` is the rebuilt one; [] otherwise.
        parameters: the parameters that require a gradient, in `parameters()` order.
        ready_order: indices of `parameters` in the order in which gradients became ready; [] if unknown.
        communication_hook: name of a registered communication hook, "" if none.
        group: name of the process group that carries its buckets, as in `Manifest.groups`; "" if unknown.
        bucket_caps_bytes: the caps of `bucket_cap_mb_list`, one per bucket; [] where it was not used.
        averages: DDP's own averages in ns (`avg_backward_compute_time`, ...), as it names them: over every
            iteration that it sampled since it was built, the first (unhidden) one included.
        iterations: its times of single iterations within the window. DDP publishes an iteration when the next
            one begins, so the window's last step has none.
    """

    module: str
    bucket_cap_bytes: int | None = None
    first_bucket_bytes: int | None = None
    has_rebuilt_buckets: bool | None = None
    find_unused_parameters: bool | None = None
    static_graph: bool | None = None
    gradient_as_bucket_view: bool | None = None
    buckets: list[BucketLayout] = field(default_factory=list)
    parameters: list[Parameter] = field(default_factory=list)
    ready_order: list[int] = field(default_factory=list)
    communication_hook: str = ""
    group: str = ""
    bucket_caps_bytes: list[int] = field(default_factory=list)
    averages: dict[str, int] = field(default_factory=dict)
    initial_buckets: list[BucketLayout] = field(default_factory=list)
    iterations: list[DdpIteration] = field(default_factory=list)


@dataclass(frozen=True)
class ClockSample:
    """One reading of this rank's clocks: wall clock and monotonic clock, in ns, taken together."""

    unix_ns: int
    monotonic_ns: int


@dataclass(frozen=True)
class ClockOffset:
    """How far this rank's wall clock is ahead of the reference rank's, measured as NTP does.

    Attributes:
        rank: this rank.
        reference: rank whose clock is the reference.
        offset_ns: this clock minus the reference's clock; negative if this one is behind.
        uncertainty_ns: half the round trip: the true offset lies within offset_ns +- uncertainty_ns.
        at_ns: middle of the round trip, by this rank's own wall clock (ns since the Unix epoch).
    """

    rank: int
    reference: int
    offset_ns: int
    uncertainty_ns: int
    at_ns: int


@dataclass(frozen=True)
class CalibrationPoint:
    """One message size of a sweep.

    Attributes:
        size_bytes: bytes that each rank puts in.
        durations_ns: one per repeat, the same list on every rank: the shortest duration over the ranks, which is
            that of the rank that arrived last. It holds no waiting, and needs no common clock.
    """

    size_bytes: int
    durations_ns: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Calibration:
    """One sweep of an all-reduce over message sizes, on the job's own process group, outside the recorded steps.

    Attributes:
        op: always "all_reduce".
        group: name of the process group, as in `Manifest.groups`.
        ranks: global ranks of the group.
        dtype: element type of the messages.
        device: "cpu" or "cuda".
        limited_by: why sizes end below the gradients' total: "memory" (a quarter of what was free on the
            rank with the least), "time", or "" if they do not.
        points: by rising size; durations are those of the rows that a trace has for these operations.
    """

    op: str = "all_reduce"
    group: str = ""
    ranks: list[int] = field(default_factory=list)
    dtype: str = "float32"
    device: str = "cpu"
    limited_by: str = ""
    points: list[CalibrationPoint] = field(default_factory=list)


@dataclass(frozen=True)
class Manifest:
    """All facts of one window of one rank.

    Attributes:
        format: name and version of this format.
        rank, world_size, local_rank: of the default process group; rank 0 of 1 without torch.distributed.
        window: number of the recorded window on this rank, from 0.
        host: host name, "" if scrubbed.
        backend: backend of the default process group, "" without torch.distributed.
        versions: component -> version ("rankscope", "torch", "python", "cuda", "nccl").
        groups: process groups that this rank is in, in creation order.
        steps: wall times of the finished steps since the last window (the latest 10,000), recorded or not.
        ddp: one entry per watched DDP module.
        clock_samples: readings at the window's start and end.
        clock_offsets: this rank's clock against rank 0's, at the start and the end of the window, best round trip
            of several each; [] on rank 0 and without `sync_clocks`.
        calibration: the sweep that `calibrate` asked for, in the first window's trace; None otherwise.
        labels: free text of the user.
        notes: what the collector could not record, and why.
        unfinished_step: the step that was running when recording ended early; None if the window is whole.
    """

    format: ManifestFormat = field(default_factory=ManifestFormat)
    rank: int = 0
    world_size: int = 1
    local_rank: int | None = None
    window: int = 0
    host: str = ""
    backend: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    groups: list[ManifestGroup] = field(default_factory=list)
    steps: list[StepTime] = field(default_factory=list)
    ddp: list[DdpFacts] = field(default_factory=list)
    clock_samples: list[ClockSample] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    unfinished_step: int | None = None
    clock_offsets: list[ClockOffset] = field(default_factory=list)
    calibration: Calibration | None = None
