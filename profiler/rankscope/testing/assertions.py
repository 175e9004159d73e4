"""Assertions on runs for users' own tests; no plugin is needed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rankscope.errors import UsageError

if TYPE_CHECKING:
    from rankscope.gate.row import Row
    from rankscope.model.report import Report
    from rankscope.model.run import Run

_STEPS_NAMED = 3
_GROUPS_NAMED = 3


def assert_overlap(
    run: str | Path | Run | Report, *, min_ratio: float, scope: Literal["steady", "run"] | None = None
) -> Report:
    """Assert that compute hides at least `min_ratio` of the communication time.

    Args:
        run: traces (a file, a directory, an fsspec URL), a report saved as JSON, a run or a report.
        min_ratio: share from 0 to 1.
        scope: "steady" for the steady steps, "run" for the whole recording; the steady steps if there are any
            unless given.

    Returns:
        The report, to assert more.

    Raises:
        AssertionError: less is hidden, or it could not be measured; the message shows the figures, the worst
            steps and the collectives that are exposed most.
        UsageError: `min_ratio` is no ratio.
        InputError: there is nothing to analyse.
    """
    from rankscope.gate.measure import measure_scope, why_empty

    if not 0 <= min_ratio <= 1:
        raise UsageError(f"min_ratio={min_ratio!r}: a ratio runs from 0 to 1")
    report = _find_report(run)
    chosen = scope or ("steady" if report.totals.steady is not None else "run")
    rows = measure_scope(report, chosen)
    ratio = rows[0].values["overlap_ratio"] if rows else None
    if ratio is None:
        reason = rows[0].reason("overlap_ratio") if rows else why_empty(report, chosen)
        raise AssertionError(f"the overlap of {report.run.name} was not measured: {reason}")
    if ratio < min_ratio:
        raise AssertionError(_describe(report, rows[0], min_ratio))
    return report


def _find_report(run: str | Path | Run | Report) -> Report:
    from rankscope.model.report import Report
    from rankscope.pipeline import analyze
    from rankscope.pipeline.saved import read_saved

    if isinstance(run, Report):
        return run
    if isinstance(run, str | Path):
        saved = read_saved(str(run))
        if isinstance(saved, Report):
            return saved
        if saved is not None:
            raise UsageError(f"{run} is a baseline; give traces or a report")
    return analyze(run)


def _describe(report: Report, row: Row, min_ratio: float) -> str:
    from rankscope.gate.figures import COMMUNICATION, EXPOSED, OVERLAP
    from rankscope.gate.measure import measure_scope

    per = "per rank and step" if row.place == "steady steps" else "per rank"
    lines = [
        f"hidden communication of {report.run.name} is {OVERLAP.format(row.values['overlap_ratio'] or 0)} "
        f"in the {row.place}; expected at least {OVERLAP.format(min_ratio)}",
        f"  communication {COMMUNICATION.format(row.values['communication'] or 0)}, of which "
        f"{EXPOSED.format(row.values['exposed_communication'] or 0)} is exposed, {per}",
    ]
    steps = [step for step in measure_scope(report, "step") if step.values["overlap_ratio"] is not None]
    steps.sort(key=lambda step: step.values["overlap_ratio"] or 0)
    lines += [f"  {_describe_row(step)}" for step in steps[:_STEPS_NAMED]]
    groups = sorted(measure_scope(report, "group"), key=lambda g: -(g.values["exposed_communication"] or 0))
    lines += [f"  {_describe_row(group)} per rank" for group in groups[:_GROUPS_NAMED]]
    return "\n".join(lines)


def _describe_row(row: Row) -> str:
    from rankscope.gate.figures import EXPOSED, OVERLAP

    ratio = row.values["overlap_ratio"]
    hidden = "n/a" if ratio is None else OVERLAP.format(ratio)
    return f"{row.place}: {hidden} hidden, {EXPOSED.format(row.values['exposed_communication'] or 0)} exposed"
