"""What became of the limits that a run was held against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["passed", "broken", "not measured", "not measured, allowed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One value that a limit was held against.

    Attributes:
        place: "whole run", "step 12", "all_reduce in default_pg [0-7]"; text from traces may be in it.
        value: in the figure's unit inside (ns, ratio, ...); None where it is undefined.
        text: the value for people, or "n/a (reason)".
    """

    place: str
    value: float | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one limit.

    Attributes:
        name: the limit as the user wrote it, "step.max_duration_ms".
        suite: what it belongs to: the scope ("run", "step" ...), or "regression".
        limit: the limit for people, "at most 20.000 ms".
        status: "passed", "broken", or "not measured", which fails unless it is allowed.
        message: one sentence: figure, place, measured value and limit.
        checked: number of values that were held against it.
        worst: the value nearest to breaking it, or that breaks it most; None if nothing was measured.
        broken: the values that break it, the worst first.
    """

    name: str
    suite: str
    limit: str
    status: Status
    message: str
    checked: int
    worst: Measured | None
    broken: tuple[Measured, ...] = ()

    @property
    def fails(self) -> bool:
        """Whether the gate closes."""
        return self.status in ("broken", "not measured")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of all limits of one run.

    Attributes:
        run: short name of the run.
        source: the path or URL that was read.
        outcomes: one per limit, in the order in which the limits were given.
        warnings: what a person should know that breaks no limit: missing ranks, figures that became worse.
        overlap_by_step: hidden share of communication in each steady step; None where undefined.
    """

    run: str
    source: str
    outcomes: tuple[Outcome, ...]
    warnings: tuple[str, ...] = ()
    overlap_by_step: tuple[float | None, ...] = ()

    @property
    def failed(self) -> tuple[Outcome, ...]:
        """The limits that close the gate."""
        return tuple(outcome for outcome in self.outcomes if outcome.fails)
