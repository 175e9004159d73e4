"""A snapshot of a run, from its report."""

from __future__ import annotations

from collections.abc import Sequence

from rankscope.analyses.kernel_totals import KernelTotal
from rankscope.gate.figures import FIGURES_OF_SCOPE, STEP_FIGURES, qualify
from rankscope.gate.measure import count_present, measure_scope, measure_steps, why_empty
from rankscope.gate.regressions import COMPARED_SCOPES
from rankscope.model.report import Report
from rankscope.model.snapshot import Part, Parts, Snapshot

_VERSIONS_KEPT = 8


def take_snapshot(report: Report) -> Snapshot:
    """What is kept of a run to compare it with others."""
    figures: dict[str, float | None] = {}
    undefined: dict[str, str] = {}
    for scope in COMPARED_SCOPES:
        rows = measure_scope(report, scope)
        for figure in FIGURES_OF_SCOPE[scope]:
            name = qualify(scope, figure.name)
            figures[name] = rows[0].values.get(figure.name) if rows else None
            if figures[name] is None:
                undefined[name] = rows[0].reason(figure.name) if rows else why_empty(report, scope)
    steps = measure_steps(report)
    recorded = [row for row in report.steps if row.step is not None]
    run = report.run
    return Snapshot(
        name=run.name,
        started_at=run.started_at,
        labels=run.labels,
        versions=dict(sorted(run.versions.items())[:_VERSIONS_KEPT]),
        devices=sorted(set(run.devices.values())),
        backend=run.backend,
        is_cpu_only=any(row.device == "cpu" for row in report.ranks),
        world_size=run.world_size,
        ranks=len(run.ranks),
        missing_ranks=run.missing_ranks,
        rows=len(report.ranks),
        steps=len(recorded) / len(report.ranks) if report.ranks else 0,
        figures=figures,
        undefined=undefined,
        samples={f.name: [row.values.get(f.name) for row in steps] for f in STEP_FIGURES} if steps else {},
    )


def list_parts(report: Report, kernels: Sequence[KernelTotal] | None = None) -> Parts:
    """The collectives of a run, and its kernels and copies if they are known; the largest first.

    Args:
        report: the report.
        kernels: time per kernel name over all ranks and devices; None if only the report is at hand.
    """
    rows = [
        Part(
            part_class="collective",
            name=group.op,
            group=group.group,
            count=group.count,
            time_ns=group.communication_ns / count_present(group, report),
            exposed_ns=group.exposed_communication_ns / count_present(group, report),
        )
        for group in report.groups
    ]
    number = len(report.ranks) or 1
    rows += [
        Part(
            part_class=total.kind, name=total.name, count=total.count / number, time_ns=total.time_ns / number
        )
        for total in kernels or ()
    ]
    rows.sort(key=lambda part: (-part.time_ns, part.part_class, part.name, part.group))
    return Parts(rows=rows, has_kernels=kernels is not None)
