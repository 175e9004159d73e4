"""The report: the contract between analyses, renderers, gate and dashboard.

Times are int nanoseconds, relative to `run.origin_ns` where they are points in time; sizes are bytes; ratios
run from 0 to 1. A figure that is undefined is None, and `Report.undefined` holds the reason under its path.
Docs: docs/formats.md. Version history of the format:

1.0  first version
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

REPORT_NAME = "rankscope-report"
REPORT_VERSION = "1.0"

SUMMARY_ROW_LIMIT = 50_000
"""Above this many collective or bucket rows the summary keeps quantiles and the worst rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """Name and version of the report's format."""

    name: str = REPORT_NAME
    version: str = REPORT_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """The tool that wrote the report."""

    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Residual:
    """How far matched collectives end apart after alignment, in ns; None where nothing was matched."""

    median: int | None = None
    max: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """How the ranks' clocks were brought onto one axis.

    Attributes:
        method: "none" (raw clocks), "collective ends", "clock samples" (the collector's, for ranks that no
            collective ties), or "collective ends, clock samples".
        offsets_ns: rank -> what was subtracted from its times.
        uncertainty_ns: rank -> half the width of the causally possible interval; None if unbounded.
        drift_ppm: rank -> drift against the reference, where the window is long enough to see it.
        residual_ns: what remains.
        untied_ranks: ranks that no matched collective ties to the reference.
    """

    method: str = "none"
    offsets_ns: dict[int, int] = field(default_factory=dict)
    uncertainty_ns: dict[int, int | None] = field(default_factory=dict)
    drift_ppm: dict[int, float] = field(default_factory=dict)
    residual_ns: Residual = field(default_factory=Residual)
    untied_ranks: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What the run is.

    Attributes:
        name, source: short name, and the path or URL.
        started_at: UTC time of the first event, ISO 8601; None where traces hold no absolute time.
        labels: free text given by the user.
        origin_ns: absolute nanoseconds of the report's time zero, as text since JSON numbers lose digits.
        backend: communication backend.
        world_size: ranks of the job.
        ranks, missing_ranks: ranks present, ranks without a file.
        rank_source: rank -> where its number comes from.
        host, devices: rank -> host name; rank -> product name of its device.
        versions: component -> version.
        steps, steady_steps: step numbers recorded; those that the steady figures use.
        clock: how clocks were aligned.
    """

    name: str
    source: str
    started_at: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    origin_ns: str = "0"
    backend: str | None = None
    world_size: int | None = None
    ranks: list[int] = field(default_factory=list)
    missing_ranks: list[int] = field(default_factory=list)
    rank_source: dict[int, str] = field(default_factory=dict)
    host: dict[int, str] = field(default_factory=dict)
    devices: dict[int, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    steps: list[int] = field(default_factory=list)
    steady_steps: list[int] = field(default_factory=list)
    clock: Clock = field(default_factory=Clock)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Shares of communication time (0..1, None without communication) that are understood.

    Attributes:
        matched: belongs to a collective found on all its ranks.
        sized: has a size in bytes.
        named: has a known operation.
        in_steps: was launched inside a step.
    """

    matched: float | None = None
    sized: float | None = None
    named: float | None = None
    in_steps: float | None = None


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    """Median and 95th percentile in ns."""

    p50: int
    p95: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """One operation in one process group, over all ranks.

    Attributes:
        group: short name of the group; ranks: its global ranks ([] if unknown).
        op: canonical operation.
        count: collectives (the most that one rank took part in, until ranks are matched).
        size_bytes: sum of the sizes of those collectives; None if some are unknown.
        communication_ns, exposed_communication_ns: sum over ranks of union times.
        overlap_ratio: share of communication_ns that compute hides.
        bus_bandwidth_gbps: by transfer time, 1e9 bytes per second.
        transfer_ns: quantiles of the transfer times.
    """

    group: str
    ranks: list[int]
    op: str
    count: int
    size_bytes: int | None
    communication_ns: int
    exposed_communication_ns: int
    overlap_ratio: float | None
    bus_bandwidth_gbps: float | None = None
    transfer_ns: Quantiles | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitQuantiles:
    """Median and largest wait over the ranks of a collective, in ns."""

    p50: int
    max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveRow:
    """One collective over all its ranks; times need no clocks except arrivals, lateness and last_rank.

    Attributes:
        sequence: its number in the group by the source named in `matched_by`.
        matched_by: "seq", "inputs", "order" or "unmatched".
        ranks: number of ranks on which it was found.
        transfer_ns: shortest duration over the ranks.
        lateness_ns: last arrival - second last.
        overlap_ratio: hidden share of its time, all ranks together.
        countable: whether its lateness counts against its last rank (docs/metrics.md, Straggler).
        arrivals_ns: rank -> start on the common clock; without `--detail full` of the latest collectives only.
        waits_ns: rank -> duration - transfer, with `--detail full`.
    """

    index: int
    step: int | None
    group: str
    op: str
    dtype: str | None
    size_bytes: int | None
    sequence: int | None
    matched_by: str
    coalesced: bool
    ranks: int
    transfer_ns: int | None
    lateness_ns: int | None
    last_rank: int | None
    overlap_ratio: float | None
    algorithm_bandwidth_gbps: float | None
    bus_bandwidth_gbps: float | None
    wait_ns: WaitQuantiles | None
    arrivals_ns: dict[int, int] | None = None
    waits_ns: dict[int, int] | None = None
    countable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunicationRow:
    """One communication event of one rank, in time order (with `--detail full`)."""

    rank: int
    device: int | Literal["cpu"]
    window: int
    step: int | None
    op: str
    name: str
    group: str
    dtype: str | None
    size_bytes: int | None
    started_ns: int
    duration_ns: int
    exposed_ns: int
    overlap_ratio: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PointToPointRow:
    """One end of a point-to-point transfer: wait for the peer, then transfer."""

    step: int | None
    op: str
    rank: int
    peer: int | None
    size_bytes: int | None
    wait_ns: int | None
    transfer_ns: int | None


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


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileRow:
    """Rows of one kind, of which the summary holds the worst only; see `SUMMARY_ROW_LIMIT`.

    Attributes:
        table: "collectives" or "buckets".
        group, op, size_bytes: of collectives.
        layout, index: of buckets.
        count: how many there are; kept: how many of them the report holds.
        transfer_ns: quantiles of their transfer times; None if none is known.
        wait_ns: quantiles of waits: of a collective the longest of its ranks.
        lateness_ns: quantiles of the lateness of collectives.
        exposed_ns: quantiles of the exposed time of buckets.
    """

    table: Literal["collectives", "buckets"]
    group: str | None = None
    op: str | None = None
    size_bytes: int | None = None
    layout: int | None = None
    index: int | None = None
    count: int
    kept: int
    transfer_ns: Quantiles | None = None
    wait_ns: Quantiles | None = None
    lateness_ns: Quantiles | None = None
    exposed_ns: Quantiles | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CausedWaitRow:
    """What one rank cost one step, in ns.

    Attributes:
        step: its number; None for a run without step markers, which counts as one step.
        lateness_ns: sum over the countable collectives in which it was last of last - second last arrival.
        cost_ns: by how much the step would be shorter if the rank worked like its peers.
    """

    step: int | None
    rank: int
    lateness_ns: int | None
    cost_ns: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StragglerRank:
    """What one rank caused: lateness and cost per step, in ns; collectives in which it was last."""

    rank: int
    lateness_ns_per_step: int
    cost_ns_per_step: int | None
    last_in: int
    countable: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StragglerEvidence:
    """One thing that took the late rank longer than its peers: medians over the steps, in ns.

    Attributes:
        kind: "compute", "memory" or "idle": what the device did meanwhile.
        name: kernel, operator or copy; for "idle" the stage in which the host was.
    """

    kind: str
    name: str
    own_ns: int
    peers_ns: int
    excess_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Straggler:
    """Whom everybody waits for, or that nobody is, or that the data cannot tell.

    Attributes:
        verdict: "found", "none" or "inconclusive".
        scope: what the named ranks are: "rank", "host", "group", "stage" or "ranks".
        rank: the rank, if it is one.
        ranks: all ranks of the set.
        cause: "compute", "work", "host", "input", "memory" or "network"; None if no single thing stands out.
        cost_ns_per_step: by how much a step would be shorter if the set worked like its peers and no host held up its
            device (median).
        saved_ns_per_step: by how much it would really be shorter: hosts of the other ranks that were slow behind the
            wait, unseen, count (median).
        slowdown: measured over replayed length of the steps, by what is really saved; None where the replay is not
            exact enough.
        confidence: "high", "medium" or "low".
        reason: one sentence.
        by_rank: lateness and cost of every rank.
        cause_stage: stage of the step in which its host lost the time.
        cause_name: annotation, operator or kernel that took longer.
        cause_ns_per_step: by how much, against the median of its peers.
        cause_reason: one sentence on the cause, or why there is none.
        evidence: the largest differences from its peers.
    """

    verdict: Literal["found", "none", "inconclusive"]
    scope: str | None
    rank: int | None
    ranks: list[int]
    cause: str | None
    cost_ns_per_step: int | None
    saved_ns_per_step: int | None = None
    slowdown: float | None
    confidence: str | None
    reason: str
    by_rank: list[StragglerRank]
    cause_stage: str | None = None
    cause_name: str | None = None
    cause_ns_per_step: int | None = None
    cause_reason: str | None = None
    evidence: list[StragglerEvidence] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What one value of bucket_cap_mb would give, in ns; low and high bound the step's error band."""

    bucket_cap_mb: float
    step_ns: int
    exposed_ns: int
    overlap_ratio: float | None
    step_low_ns: int
    step_high_ns: int
    buckets: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CapAdvice:
    """The cap in use, the best one, and the predictions behind it."""

    current: float | None
    best: float | None
    predictions: list[Prediction]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlternativeRow:
    """What another change would give, in ns: caps per bucket, compression, another network.

    `change` says it in words, `code` as the argument or line to write ("" where there is none).
    """

    change: str
    code: str
    step_ns: int
    exposed_ns: int
    overlap_ratio: float | None
    step_low_ns: int
    step_high_ns: int
    buckets: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkRow:
    """The network behind the predictions: what an all-reduce costs.

    Attributes:
        source: "calibration", "run" or "given".
        sizes: distinct sizes that were measured.
        latency_ns: of the smallest messages.
        bus_bandwidth_gbps: of large messages, in 1e9 bytes/s; None where size makes no difference.
        deviation_ratio: median relative deviation of single transfers from the fit.
        confidence: "high", "medium" or "low".
        pieces: straight pieces of the fit; more than 1 where the data shows protocol steps.
    """

    source: str
    sizes: int
    latency_ns: int
    bus_bandwidth_gbps: float | None
    deviation_ratio: float
    confidence: str
    pieces: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What to change.

    Attributes:
        bucket_cap_mb: predictions over the cap; `best` is None where none is recommended.
        verdict: "change", "keep" (nothing worth having is to be gained), or "declined" (the data cannot tell).
        reason: one sentence; of a declined one, what to record.
        code: the argument of DistributedDataParallel to write; None unless the verdict is "change".
        step_ns: measured step that the predictions start from.
        saving_ns, saving_ratio: what the best cap saves per step; None unless the verdict is "change".
        replay_error_ratio: replayed over measured backward with the layout in use, less 1.
        compute_slowdown: factor by which transfers slow compute down; None where the trace does not show it.
        transfer_slowdown: factor by which compute slows transfers down; None without a calibration.
        network: the fitted network; None where there is none.
        alternatives: other changes.
    """

    bucket_cap_mb: CapAdvice
    verdict: Literal["change", "keep", "declined"] = "keep"
    reason: str = ""
    code: str | None = None
    step_ns: int | None = None
    saving_ns: int | None = None
    saving_ratio: float | None = None
    replay_error_ratio: float | None = None
    compute_slowdown: float | None = None
    transfer_slowdown: float | None = None
    network: NetworkRow | None = None
    alternatives: list[AlternativeRow] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that a person should see: what, where and what to do.

    Attributes:
        rule: slug of the rule, explained in docs/findings.md.
        severity: "critical", "warning" or "info".
    """

    rule: str
    severity: Literal["critical", "warning", "info"]
    rank: int | None
    step: int | None
    message: str
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemRow:
    """Something in the input that a person must know; see `rankscope.model.run.Problem`."""

    file: str
    offset: int | None
    kind: str
    message: str
    severity: str


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
class Report:
    """All results of one run."""

    format: Format = field(default_factory=Format)
    tool: Tool
    run: RunFacts
    totals: Totals
    coverage: Coverage = field(default_factory=Coverage)
    ranks: list[RankRow] = field(default_factory=list)
    windows: list[WindowRow] = field(default_factory=list)
    steps: list[StepRow] = field(default_factory=list)
    groups: list[GroupRow] = field(default_factory=list)
    collectives: list[CollectiveRow] = field(default_factory=list)
    communications: list[CommunicationRow] = field(default_factory=list)
    p2p: list[PointToPointRow] = field(default_factory=list)
    bucket_layouts: list[LayoutRow] = field(default_factory=list)
    buckets: list[BucketRow] = field(default_factory=list)
    quantiles: list[QuantileRow] = field(default_factory=list)
    straggler: Straggler | None = None
    caused_waits: list[CausedWaitRow] = field(default_factory=list)
    advice: Advice | None = None
    findings: list[Finding] = field(default_factory=list)
    problems: list[ProblemRow] = field(default_factory=list)
    undefined: dict[str, str] = field(default_factory=dict)
