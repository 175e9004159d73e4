"""Whom everybody waits for, and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


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
