"""How a run differs from another one, or from a few others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from rankscope.model.figure import Figure
from rankscope.model.snapshot import PartClass
from rankscope.model.verdict import Outcome

Direction = Literal["better", "worse", "same"]
PartChange = Literal["appeared", "vanished", "longer", "shorter", "less hidden", "more hidden"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Whether a difference is more than noise, judged by the values of the steady steps.

    Attributes:
        base_mean, head_mean: means over the steps (over runs of means over steps, if the base is several runs).
        base_steps, head_steps: number of steps.
        p_value: two-sided permutation test over the steps; None with fewer than two steps on a side.
        smallest: smallest difference of the means that would count; None as `p_value`.
        is_significant: p at most 0.05 and the difference above `smallest`; None where it cannot be told.
        basis: one sentence: how it was judged, or why it cannot be.
    """

    base_mean: float | None
    head_mean: float | None
    base_steps: int
    head_steps: int
    p_value: float | None
    smallest: float | None
    is_significant: bool | None
    basis: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedFigure:
    """One figure of both runs.

    Attributes:
        name: "overlap_ratio", "steady.duration", "outside.exposed_communication".
        scope: "run", "steady" or "outside".
        figure: what it is.
        base, head: the values in the figure's unit inside; None where undefined.
        reason: why there is no difference, if there is none.
        is_per_step: whether times were divided by the number of recorded steps, which differs.
        is_headline: whether a significant change of it is a change of the run.
        judgement: by the steps; None where steps say nothing about it.
    """

    name: str
    scope: str
    figure: Figure
    base: float | None
    head: float | None
    reason: str | None = None
    is_per_step: bool = False
    is_headline: bool = False
    judgement: Judgement | None = None

    @property
    def change(self) -> float | None:
        """Change of the value; None if one of them is undefined."""
        return None if self.base is None or self.head is None else self.head - self.base

    @property
    def relative_change(self) -> float | None:
        """Change as a share of the base; None if that is undefined or nothing."""
        return self.change / abs(self.base) if self.change is not None and self.base else None

    @property
    def direction(self) -> Direction | None:
        """Whether the head is better; None if the change is undefined."""
        if self.change is None:
            return None
        if self.change == 0:
            return "same"
        return "better" if (self.change > 0) == (self.figure.better == "higher") else "worse"

    @property
    def is_significant(self) -> bool | None:
        """Whether the steps confirm a change in this direction; None where they cannot tell."""
        judgement = self.judgement
        if judgement is None or judgement.is_significant is None or self.change is None:
            return None
        if judgement.head_mean is None or judgement.base_mean is None:
            return None
        return judgement.is_significant and (judgement.head_mean - judgement.base_mean) * self.change > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedPart:
    """A collective, kernel or copy whose time changed; times are means per rank (and step) in ns.

    Attributes:
        part_class: what it is.
        name, group: name of the kernel or operation; group of a collective, "" otherwise.
        change: what happened.
        base_ns, head_ns: time; 0 where it is not there.
        base_count, head_count: events.
        base_exposed_ns, head_exposed_ns: exposed part of a collective's time; None for others.
    """

    part_class: PartClass
    name: str
    group: str
    change: PartChange
    base_ns: float
    head_ns: float
    base_count: float
    head_count: float
    base_exposed_ns: float | None = None
    head_exposed_ns: float | None = None

    @property
    def change_ns(self) -> float:
        """Change of its time."""
        return self.head_ns - self.base_ns

    @property
    def exposed_change_ns(self) -> float | None:
        """Change of the exposed part of a collective's time; None for others."""
        if self.base_exposed_ns is None or self.head_exposed_ns is None:
            return None
        return self.head_exposed_ns - self.base_exposed_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side of a comparison.

    Attributes:
        name: short name of the run, or of the newest of several.
        runs: number of runs.
        ranks: ranks with a trace.
        world_size: ranks of the job; None if unknown.
        steps: recorded steps, mean over ranks.
        started_at: UTC time of the (newest) run; None if unknown.
        overlap_by_step: hidden share of communication in each steady step of the (newest) run.
    """

    name: str
    runs: int
    ranks: int
    world_size: int | None
    steps: float
    started_at: str | None
    overlap_by_step: tuple[float | None, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How the head differs from the base.

    Attributes:
        base, head: the sides.
        figures: every figure of both, by scope.
        parts: collectives, kernels and copies whose time changed, the largest change first.
        parts_left_out: how many more there are.
        notes: what else differs, and what could not be compared.
        outcomes: what became of the regression limits.
    """

    base: Side
    head: Side
    figures: tuple[ComparedFigure, ...]
    parts: tuple[ChangedPart, ...]
    parts_left_out: int = 0
    notes: tuple[str, ...] = ()
    outcomes: tuple[Outcome, ...] = field(default=())

    def changed(self, direction: Direction) -> tuple[ComparedFigure, ...]:
        """The headline figures that changed significantly in that direction."""
        return tuple(
            f for f in self.figures if f.is_headline and f.is_significant and f.direction == direction
        )

    @property
    def failed(self) -> tuple[Outcome, ...]:
        """The regression limits that close the gate."""
        return tuple(outcome for outcome in self.outcomes if outcome.fails)


def format_p(p_value: float) -> str:
    """Text of a p value.

    >>> format_p(0.142857), format_p(0.00004)
    ('0.143', '<0.001')
    """
    return f"{p_value:.3f}" if p_value >= 0.001 else "<0.001"
