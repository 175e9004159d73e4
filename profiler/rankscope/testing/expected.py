"""What is known of a synthetic run before anything reads it: every number comes from the scenario's parameters.

Durations are nanoseconds of true time; points in time count from 0, where the host threads of all ranks start.
A figure that a scenario does not state is None, and a list that it does not state is empty.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedMeasures:
    """Union measures of a rank, of the whole run or of one step, in ns; None: not stated.

    Window and idle are only stated for a whole run. Under a drift of p ppm, files hold p ppm more.
    """

    compute_ns: int | None = None
    communication_ns: int | None = None
    overlap_ns: int | None = None
    exposed_communication_ns: int | None = None
    communication_self_overlap_ns: int | None = None
    memory_ns: int | None = None
    exposed_memory_ns: int | None = None
    window_ns: int | None = None
    idle_ns: int | None = None

    def stated(self) -> dict[str, int]:
        """Name -> figure, of those that are stated."""
        return {name: figure for name, figure in asdict(self).items() if figure is not None}

    def times(self, count: int) -> ExpectedMeasures:
        """The sums of `count` such steps, which share no device time."""
        return ExpectedMeasures(**{name: count * figure for name, figure in self.stated().items()})

    @property
    def overlap_ratio(self) -> float | None:
        """Overlap over communication, 0..1; None without communication."""
        if not self.communication_ns or self.overlap_ns is None:
            return None
        return self.overlap_ns / self.communication_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedCollective:
    """One collective on all its ranks.

    Attributes:
        step: training step.
        group: the scenario's name of the process group.
        op, size_bytes: operation and size.
        transfer_ns: from the last arrival to the common end.
        arrivals_ns: rank -> true time at which its kernel starts.
    """

    step: int
    group: str
    op: str
    size_bytes: int
    transfer_ns: int
    arrivals_ns: dict[int, int]

    @property
    def end_ns(self) -> int:
        """The common end, without the ranks' jitter."""
        return max(self.arrivals_ns.values()) + self.transfer_ns

    @property
    def lateness_ns(self) -> int:
        """Last minus second last arrival."""
        times = sorted(self.arrivals_ns.values())
        return times[-1] - times[-2] if len(times) > 1 else 0

    @property
    def last_rank(self) -> int | None:
        """The rank that arrives last; None if several arrive together."""
        if self.lateness_ns == 0:
            return None
        return max(self.arrivals_ns, key=lambda rank: self.arrivals_ns[rank])


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedBucket:
    """One DDP bucket of one step on one rank; points in true time.

    Attributes:
        step, rank, index, size_bytes: which bucket.
        ready_ns: end of the compute that its last gradient needs (on gloo: of the last compute operator).
        operator_ns: start of the c10d operator.
        recorded_ns: start of the `record_param_comms` row; None on gloo, which writes none.
        launched_ns: start of the launch row; None on gloo.
        started_ns, finished_ns: the collective on this rank.
        transfer_ns: from the last arrival to the end.
        exposed_ns: its time outside this rank's compute.
    """

    step: int
    rank: int
    index: int
    size_bytes: int
    ready_ns: int
    operator_ns: int
    recorded_ns: int | None
    launched_ns: int | None
    started_ns: int
    finished_ns: int
    transfer_ns: int
    exposed_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedStraggler:
    """Whom everybody waits for.

    Attributes:
        verdict: "found" or "none".
        scope: what the ranks are together; None if nobody, or no such thing.
        ranks: the ranks to blame.
        cause: "compute", "work", "host", "input" or "memory"; None if nobody.
        cost_ns_per_step: what the set costs each step.
        cost_by_rank_ns: rank -> what that rank alone costs each step.
    """

    verdict: Literal["found", "none"]
    scope: Literal["rank", "host", "tensor group", "stage"] | None = None
    ranks: tuple[int, ...] = ()
    cause: str | None = None
    cost_ns_per_step: int = 0
    cost_by_rank_ns: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The answers of a run.

    Attributes:
        name: the scenario.
        reasoning: the arithmetic in words.
        world_size: ranks of the job.
        ranks: rank -> measures of the whole run.
        steps: step -> rank -> measures of what the step launched.
        step_duration_ns: step -> rank -> length of the `ProfilerStep#` row.
        collectives: every collective, in the order of the calls within each group.
        buckets: every DDP bucket of every step and rank.
        bucket_elements: step -> elements of the buckets in launch order.
        operations: how many communications of each operation one rank runs, where all ranks run the same.
        straggler: the verdict; None if the run decides nothing.
        clock_offsets_ns: rank -> what its clock shows more than true time at the start of the run.
        drift_ppm: rank -> how much faster its clock runs.
        hosts: rank -> host name.
        missing_ranks: ranks of the job without a file.
    """

    name: str
    reasoning: str
    world_size: int
    ranks: dict[int, ExpectedMeasures] = field(default_factory=dict)
    steps: dict[int, dict[int, ExpectedMeasures]] = field(default_factory=dict)
    step_duration_ns: dict[int, dict[int, int]] = field(default_factory=dict)
    collectives: tuple[ExpectedCollective, ...] = ()
    buckets: tuple[ExpectedBucket, ...] = ()
    bucket_elements: dict[int, tuple[int, ...]] = field(default_factory=dict)
    operations: dict[str, int] = field(default_factory=dict)
    straggler: ExpectedStraggler | None = None
    clock_offsets_ns: dict[int, int] = field(default_factory=dict)
    drift_ppm: dict[int, float] = field(default_factory=dict)
    hosts: dict[int, str] = field(default_factory=dict)
    missing_ranks: tuple[int, ...] = ()

    def lateness_ns(self, step: int | None = None) -> dict[int, int]:
        """Rank -> sum of (last - second last arrival) over the collectives it is last in, of a step or of all."""
        sums: dict[int, int] = defaultdict(int)
        for collective in self.collectives:
            if step in (None, collective.step) and collective.last_rank is not None:
                sums[collective.last_rank] += collective.lateness_ns
        return dict(sums)

    def as_json(self) -> dict[str, Any]:
        """The `expect` part of an expected.json, with ns figures; see sample_traces/README.md."""
        entries: dict[str, Any] = {
            "per_rank": _by_rank(self.ranks),
            "per_step": {str(s): _by_rank(by_rank) for s, by_rank in self.steps.items()},
            "step_duration_ns": {
                str(s): _by_rank_number(by_rank) for s, by_rank in self.step_duration_ns.items()
            },
            "bucket_elements": {str(s): list(e) for s, e in self.bucket_elements.items()},
            "operations": dict(self.operations),
            "straggler": _straggler(self.straggler),
            "lateness_ns": _by_rank_number(self.lateness_ns()),
            "clock_offset_ns": _by_rank_number(self.clock_offsets_ns),
            "drift_ppm": _by_rank_number(self.drift_ppm),
        }
        stated = {key: value for key, value in entries.items() if value}
        return {"world_size": self.world_size, **stated, "missing_ranks": list(self.missing_ranks)}


def _by_rank(measures: dict[int, ExpectedMeasures]) -> dict[str, dict[str, int | float]]:
    return {str(rank): _stated(m) for rank, m in sorted(measures.items())}


def _by_rank_number(figures: Mapping[int, int | float]) -> dict[str, int | float]:
    return {str(rank): figure for rank, figure in sorted(figures.items())}


def _stated(measures: ExpectedMeasures) -> dict[str, int | float]:
    figures: dict[str, int | float] = {**measures.stated()}
    if measures.overlap_ratio is not None:
        figures["overlap_ratio"] = round(measures.overlap_ratio, 6)
    return figures


def _straggler(straggler: ExpectedStraggler | None) -> dict[str, Any] | None:
    if straggler is None:
        return None
    if straggler.verdict == "none":
        return {"verdict": "none"}
    return {
        "verdict": straggler.verdict,
        "scope": straggler.scope,
        "ranks": list(straggler.ranks),
        "cause": straggler.cause,
        "cost_ns_per_step": straggler.cost_ns_per_step,
    }
