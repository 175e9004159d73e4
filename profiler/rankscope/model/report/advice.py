"""What to change: bucket sizes, and what other changes would give."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


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
