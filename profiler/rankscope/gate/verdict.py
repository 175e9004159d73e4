"""The verdict on a run: its limits, and what a person should know besides."""

from __future__ import annotations

from rankscope.gate.check import check_limits
from rankscope.gate.compare import name_figure
from rankscope.gate.limits import Limit
from rankscope.gate.measure import measure_steps
from rankscope.model.comparison import ComparedFigure, Comparison, format_p
from rankscope.model.groups import name_ranks
from rankscope.model.report import Report
from rankscope.model.verdict import Outcome, Status, Verdict


def judge_run(
    report: Report,
    limits: tuple[Limit, ...],
    comparison: Comparison | None = None,
    *,
    fail_on_worse: bool = False,
    allow_undefined: bool = False,
) -> Verdict:
    """What became of all limits of a run, those against a baseline last.

    Args:
        report: the report of the run.
        limits: limits on its own figures.
        comparison: of the run with its baseline; its regression limits count too.
        fail_on_worse: whether every headline figure that became significantly worse closes the gate.
        allow_undefined: whether headline figures that cannot be judged may pass.
    """
    outcomes = check_limits(report, limits)
    warnings = _warn_of_ranks(report)
    if comparison is not None:
        compared = judge_comparison(
            comparison, report.run.source, fail_on_worse=fail_on_worse, allow_undefined=allow_undefined
        )
        outcomes += compared.outcomes
        warnings += compared.warnings
    return Verdict(
        run=report.run.name,
        source=report.run.source,
        outcomes=outcomes,
        warnings=tuple(warnings),
        overlap_by_step=tuple(row.values["overlap_ratio"] for row in measure_steps(report)),
    )


def judge_comparison(
    comparison: Comparison, source: str, *, fail_on_worse: bool = False, allow_undefined: bool = False
) -> Verdict:
    """What became of the regression limits of a comparison.

    Args:
        comparison: the comparison.
        source: the path or URL of the head.
        fail_on_worse: whether every headline figure that became significantly worse closes the gate.
        allow_undefined: whether headline figures that cannot be judged may pass.
    """
    outcomes = comparison.outcomes
    if fail_on_worse:
        outcomes += tuple(
            _forbid_worse(row, allow_undefined) for row in comparison.figures if row.is_headline
        )
    return Verdict(
        run=comparison.head.name,
        source=source,
        outcomes=outcomes,
        warnings=() if fail_on_worse else tuple(_warn_of_changes(comparison)),
        overlap_by_step=comparison.head.overlap_by_step,
    )


def _warn_of_ranks(report: Report) -> list[str]:
    missing = report.run.missing_ranks
    if not missing:
        return []
    have = "has" if len(missing) == 1 else "have"
    return [f"{name_ranks(missing)} {have} no trace: the figures hold for the others only"]


def _warn_of_changes(comparison: Comparison) -> list[str]:
    return [describe_change(row) for row in comparison.changed("worse")]


def describe_change(row: ComparedFigure) -> str:
    """One sentence about a change by the steps, with the figures that tell it from noise."""
    judgement = row.judgement
    if judgement is None or judgement.base_mean is None or judgement.head_mean is None:
        return f"{name_figure(row)}: no steps to judge it by"
    figure = row.figure
    apart = figure.format_change(judgement.head_mean - judgement.base_mean)
    text = f"{figure.label} per step went from {figure.format(judgement.base_mean)} to "
    text += f"{figure.format(judgement.head_mean)} ({apart}"
    if judgement.p_value is None or judgement.smallest is None:
        return f"{text}): {judgement.basis}"
    least = figure.format_change(judgement.smallest)[1:]
    return f"{text}, p {_relate(judgement.p_value)}); a change counts above {least} ({judgement.basis})"


def _relate(p_value: float) -> str:
    text = format_p(p_value)
    return text if text.startswith("<") else f"= {text}"


def _forbid_worse(row: ComparedFigure, allow_undefined: bool) -> Outcome:
    significant = row.is_significant
    unknown: Status = "not measured, allowed" if allow_undefined else "not measured"
    is_worse = significant is True and row.direction == "worse"
    return Outcome(
        name=f"no_worse.{row.name}",
        suite="regression",
        limit="not significantly worse",
        status="broken" if is_worse else unknown if significant is None else "passed",
        message=describe_change(row),
        checked=0 if significant is None else 1,
        worst=None,
    )
