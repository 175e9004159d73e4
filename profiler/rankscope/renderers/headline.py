"""The figures that a report opens with, and the step rows of all ranks as one row per step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rankscope.model.report import Measures, Report, StepRow
from rankscope.renderers.tables import take_median
from rankscope.renderers.undefined import make_path, reason_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """What a run comes down to.

    Attributes:
        is_steady: True if the figures are of the steady steps, False if of the whole recording.
        overlap_ratio: share of communication that compute hides; None with its reason.
        overlap_reason: why the ratio is undefined.
        exposed_ns: exposed communication, mean per rank (and step, if steady).
        base_ns: what that is part of: mean duration of a step, or mean window; None if unknown.
    """

    is_steady: bool
    overlap_ratio: float | None
    overlap_reason: str | None
    exposed_ns: int
    base_ns: int | None

    @property
    def exposed_share(self) -> float | None:
        """Exposed communication as a share of the step or window; None if that is unknown or nothing."""
        return self.exposed_ns / self.base_ns if self.base_ns else None


def measure_headline(report: Report) -> Headline | None:
    """The figures of the steady steps, else of the whole recording; None if nothing was recorded."""
    steady_steps = set(report.run.steady_steps)
    bases = [row.duration_ns for row in report.steps if row.step in steady_steps]
    if report.totals.steady is not None and bases:
        return _headline(report, "totals.steady", report.totals.steady, bases)
    if not report.ranks:
        return None
    return _headline(report, "totals.run", report.totals.run, [row.window_ns for row in report.ranks])


def _headline(report: Report, section: str, measures: Measures, bases: Sequence[int | None]) -> Headline:
    known = [base for base in bases if base is not None]
    return Headline(
        is_steady=section == "totals.steady",
        overlap_ratio=measures.overlap_ratio,
        overlap_reason=reason_of(report, f"{section}.overlap_ratio"),
        exposed_ns=round(measures.exposed_communication_ns / len(bases)),
        base_ns=round(sum(known) / len(known)) if len(known) == len(bases) else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSummary:
    """One step over all ranks.

    Attributes:
        step: its number; None for what was launched outside steps.
        steady: whether the steady figures use it.
        ranks: number of ranks that recorded it.
        duration_ns, communication_ns, exposed_ns: medians over ranks and devices.
        overlap_ratio: hidden share of the communication of all ranks together; None without communication.
        overlap_low, overlap_high: least and greatest ratio of a rank.
        path_keys: keys of its first row, to look up why a figure is undefined.
    """

    step: int | None
    steady: bool
    ranks: int
    duration_ns: int | None
    communication_ns: int
    exposed_ns: int
    overlap_ratio: float | None
    overlap_low: float | None
    overlap_high: float | None
    path_keys: dict[str, object]

    def path(self, figure: str) -> str:
        """Path of a figure among the report's undefined ones."""
        return make_path("steps", self.path_keys, figure)


def summarise_steps(report: Report) -> tuple[StepSummary, ...]:
    """One row per step, in order; what was launched outside steps comes last."""
    by_step: dict[int | None, list[StepRow]] = {}
    for row in report.steps:
        by_step.setdefault(row.step, []).append(row)
    numbered = sorted(step for step in by_step if step is not None)
    order = [*numbered, None] if None in by_step else numbered
    return tuple(_summarise_step(step, by_step[step]) for step in order)


def _summarise_step(step: int | None, rows: Sequence[StepRow]) -> StepSummary:
    ratios = [row.overlap_ratio for row in rows if row.overlap_ratio is not None]
    communication_ns = sum(row.communication_ns for row in rows)
    overlap_ns = sum(row.overlap_ns for row in rows)
    first = rows[0]
    return StepSummary(
        step=step,
        steady=all(row.steady for row in rows),
        ranks=len({row.rank for row in rows}),
        duration_ns=take_median([row.duration_ns for row in rows]),
        communication_ns=take_median([row.communication_ns for row in rows]) or 0,
        exposed_ns=take_median([row.exposed_communication_ns for row in rows]) or 0,
        overlap_ratio=overlap_ns / communication_ns if communication_ns else None,
        overlap_low=min(ratios, default=None),
        overlap_high=max(ratios, default=None),
        path_keys={"step": step, "rank": first.rank, "device": first.device, "window": first.window},
    )
