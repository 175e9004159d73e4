"""A run compared with another one, or with the runs of a baseline."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from rankscope.gate.figures import (
    COMMUNICATION,
    COMPUTE,
    DURATION,
    EXPOSED,
    FIGURES_OF_SCOPE,
    OVERLAP,
    qualify,
)
from rankscope.gate.parts import compare_parts
from rankscope.gate.regressions import COMPARED_SCOPES, RegressionLimit
from rankscope.gate.significance import judge
from rankscope.model.comparison import ChangedPart, ComparedFigure, Comparison, Judgement, Side
from rankscope.model.figure import Figure
from rankscope.model.groups import compact_ranks
from rankscope.model.snapshot import Baseline, Snapshot
from rankscope.model.verdict import Measured, Outcome, Status

HEADLINE_FIGURES = (OVERLAP.name, EXPOSED.name, DURATION.name)
"""Figures whose significant change is a change of the run. The others follow from these or from the machine."""

_PER_STEP_SCOPES = ("run",)
_DRIFT_WORTH_SAYING = 0.05
_PARTS_SHOWN = 50


def compare(
    base: Baseline, head: Baseline, limits: Sequence[RegressionLimit] = (), *, parts_shown: int = _PARTS_SHOWN
) -> Comparison:
    """How the newest run of `head` differs from the runs of `base`.

    Args:
        base: what to compare with; three or more runs show how much runs differ without a change.
        head: what to compare; only its newest run is.
        limits: how much worse figures may become.
        parts_shown: most collectives, kernels and copies to list.
    """
    old, new = base.runs[-1], head.runs[-1]
    steps_differ = old.steps != new.steps
    judgements = _judge_figures(base.runs, new)
    figures = tuple(
        _compare_figure(base.runs, new, scope, figure, steps_differ, judgements)
        for scope in COMPARED_SCOPES
        for figure in FIGURES_OF_SCOPE[scope]
    )
    parts = _compare_parts(base, head, steps_differ)
    return Comparison(
        base=_describe_side(base),
        head=_describe_side(head),
        figures=figures,
        parts=tuple(parts[:parts_shown]),
        parts_left_out=max(0, len(parts) - parts_shown),
        notes=tuple(_note_differences(base, head)),
        outcomes=tuple(_check_regression(limit, figures) for limit in limits),
    )


def _describe_side(side: Baseline) -> Side:
    newest = side.runs[-1]
    return Side(
        name=newest.name,
        runs=len(side.runs),
        ranks=newest.ranks,
        world_size=newest.world_size,
        steps=newest.steps,
        started_at=newest.started_at,
        overlap_by_step=tuple(newest.samples.get(OVERLAP.name, ())),
    )


def _judge_figures(base: Sequence[Snapshot], head: Snapshot) -> dict[str, Judgement]:
    """Figure -> judgement by its values per steady step; noise of exposed time is a share of communication."""
    if not head.samples or not any(run.samples for run in base):
        return {}
    scale = _mean_sample(base, COMMUNICATION.name)
    drift = _measure_drift(base, head)
    return {
        name: judge(
            [_known(run.samples.get(name, ())) for run in base],
            _known(head.samples[name]),
            scale=scale if name == EXPOSED.name else None,
            drift=drift,
        )
        for name in head.samples
    }


def _measure_drift(base: Sequence[Snapshot], head: Snapshot) -> float:
    """How far compute per step differs, as a share of it, if it ran on the CPU; 0 on GPUs, which jobs do not share."""
    if not (head.is_cpu_only and all(run.is_cpu_only for run in base)):
        return 0.0
    before, after = _mean_sample(base, COMPUTE.name), _mean_sample([head], COMPUTE.name)
    return 2 * abs(after - before) / (after + before) if before and after else 0.0


def _known(samples: Sequence[float | None]) -> list[float]:
    return [sample for sample in samples if sample is not None]


def _mean_sample(runs: Sequence[Snapshot], name: str) -> float | None:
    values = [value for run in runs for value in _known(run.samples.get(name, ()))]
    return statistics.fmean(values) if values else None


def _compare_figure(
    base: Sequence[Snapshot],
    head: Snapshot,
    scope: str,
    figure: Figure,
    steps_differ: bool,
    judgements: dict[str, Judgement],
) -> ComparedFigure:
    name = qualify(scope, figure.name)
    is_per_step = (
        steps_differ and scope in _PER_STEP_SCOPES and figure.kind == "time" and figure.name not in _RATES
    )
    old = [_value(run, name, is_per_step) for run in base]
    known = [value for value in old if value is not None]
    base_value = statistics.fmean(known) if len(known) == len(old) else None
    head_value = _value(head, name, is_per_step)
    return ComparedFigure(
        name=name,
        scope=scope,
        figure=figure,
        base=base_value,
        head=head_value,
        reason=_why_none(name, base, head, is_per_step) if None in (base_value, head_value) else None,
        is_per_step=is_per_step,
        is_headline=figure.name in HEADLINE_FIGURES and scope == ("steady" if judgements else "run"),
        judgement=judgements.get(figure.name) if scope in ("run", "steady") else None,
    )


_RATES = ("straggler_cost",)
"""Times of the run that are per step already."""


def _value(run: Snapshot, name: str, is_per_step: bool) -> float | None:
    value = run.figures.get(name)
    if value is None or not is_per_step:
        return value
    return value / run.steps if run.steps else None


def _why_none(name: str, base: Sequence[Snapshot], head: Snapshot, is_per_step: bool) -> str:
    sides = (("base", next((r for r in base if r.figures.get(name) is None), None)), ("head", head))
    for side, run in sides:
        if run is not None and run.figures.get(name) is None:
            return f"{side}: {run.undefined.get(name, 'it does not hold this figure')}"
    if is_per_step:
        return "one of them has no step markers, and the lengths of recordings differ"
    return "unknown"


def _compare_parts(base: Baseline, head: Baseline, steps_differ: bool) -> list[ChangedPart]:
    old, new = base.runs[-1], head.runs[-1]
    if steps_differ and not (old.steps and new.steps):
        return []
    return compare_parts(
        base.parts,
        head.parts,
        base_steps=old.steps if steps_differ else 1,
        head_steps=new.steps if steps_differ else 1,
        same_ranks=old.world_size == new.world_size,
    )


def _note_differences(base: Baseline, head: Baseline) -> list[str]:
    old, new = base.runs[-1], head.runs[-1]
    notes = []
    if old.steps != new.steps:
        notes.append(
            f"{old.steps:g} against {new.steps:g} recorded steps: times of the whole run, collectives and kernels "
            "are per step; what was launched outside steps is in them."
        )
    if old.world_size != new.world_size:
        notes.append(
            f"Jobs of {old.world_size or '?'} against {new.world_size or '?'} ranks: groups are compared by name."
        )
    elif old.ranks != new.ranks or old.missing_ranks != new.missing_ranks:
        notes.append(f"Traces of {_name_ranks(old)} against {_name_ranks(new)}: times are means over those.")
    for what, before, after in (
        ("Backend", old.backend, new.backend),
        ("Devices", ", ".join(old.devices) or None, ", ".join(new.devices) or None),
    ):
        if before != after:
            notes.append(f"{what}: {before or 'unknown'} against {after or 'unknown'}.")
    versions = [
        f"{key} {old.versions.get(key, 'unknown')} against {new.versions.get(key, 'unknown')}"
        for key in sorted({**old.versions, **new.versions})
        if old.versions.get(key) != new.versions.get(key)
    ]
    if versions:
        notes.append(f"Versions: {', '.join(versions)}.")
    drift = _measure_drift(base.runs, new)
    if drift > _DRIFT_WORTH_SAYING:
        notes.append(
            f"Compute on the CPU differs by {100 * drift:.0f} %: the machine was not equally busy, and other figures "
            "may differ by as much for that reason alone."
        )
    if not (base.parts.has_kernels and head.parts.has_kernels):
        notes.append("Kernels and copies were not compared: a saved report does not hold them.")
    return notes


def _name_ranks(run: Snapshot) -> str:
    missing = f" (without {compact_ranks(run.missing_ranks)})" if run.missing_ranks else ""
    return f"{run.ranks} rank{'' if run.ranks == 1 else 's'}{missing}"


def _check_regression(limit: RegressionLimit, figures: Sequence[ComparedFigure]) -> Outcome:
    name = qualify(limit.scope, limit.figure.name)
    row = next(figure for figure in figures if figure.name == name)
    figure, per_step = row.figure, " per step" if row.is_per_step else ""
    label = name_figure(row)
    if row.base is None or row.head is None or row.change is None:
        status: Status = "not measured, allowed" if limit.allow_undefined else "not measured"
        message = f"{label} was not measured: n/a ({row.reason}); limit: {limit.text} than the base"
        return _outcome(limit, status, message, None)
    relative = "" if row.relative_change is None else f", {100 * row.relative_change:+.2f} %"
    change = f"{figure.format_change(row.change)}{per_step}{relative}"
    sides = f"from {figure.format(row.base)} to {figure.format(row.head)}"
    message = f"{label} went {sides} ({change}); limit: {limit.text}"
    status = "broken" if limit.is_broken_by(row.base, row.head) else "passed"
    return _outcome(limit, status, message, Measured(place=label, value=row.change, text=change))


def _outcome(limit: RegressionLimit, status: Status, message: str, worst: Measured | None) -> Outcome:
    return Outcome(
        name=f"regression.{limit.name}",
        suite="regression",
        limit=limit.text,
        status=status,
        message=message,
        checked=0 if worst is None else 1,
        worst=worst,
        broken=(worst,) if worst is not None and status == "broken" else (),
    )


def name_figure(row: ComparedFigure) -> str:
    """Name of a compared figure for people: "hidden communication of the steady steps"."""
    places = {"run": "of the whole run", "steady": "of the steady steps", "outside": "outside steps"}
    return f"{row.figure.label} {places[row.scope]}"
