"""What the run is, how its clocks were aligned, how much of it is understood, and what was wrong with its files."""

from __future__ import annotations

from dataclasses import dataclass, field


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
class ProblemRow:
    """Something in the input that a person must know; see `rankscope.model.run.Problem`."""

    file: str
    offset: int | None
    kind: str
    message: str
    severity: str
