"""Results of analyses as rows of the report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import fields
from datetime import datetime, timezone
from typing import Any

import numpy as np

from rankscope.analyses.communication_totals import GroupTotal
from rankscope.analyses.overlap import add_measures, overlap_ratio
from rankscope.correlate.steps import OUTSIDE_STEPS
from rankscope.model.intervals import covered_ns
from rankscope.model.report import (
    CommunicationRow,
    GroupRow,
    Measures,
    ProblemRow,
    RankRow,
    RunFacts,
    StepRow,
    Totals,
    WindowRow,
)
from rankscope.model.run import Problem, Run
from rankscope.pipeline.window_results import WindowResults
from rankscope.units import NS_PER_S

_EARLIEST_S, _LATEST_S = (datetime(year, 1, 1, tzinfo=timezone.utc).timestamp() for year in (2000, 2200))


def device_order(device: int | str) -> tuple[bool, int]:
    """Sort key of a device: by number, the CPU last."""
    return (True, 0) if isinstance(device, str) else (False, device)


def measures_dict(measures: Measures) -> dict[str, Any]:
    """The measures as keyword arguments of a row."""
    return {field.name: getattr(measures, field.name) for field in fields(Measures)}


def steady_steps(steps: list[StepRow]) -> list[int]:
    """Numbers of the steps that are steady on every rank, in order."""
    unsteady = {s.step for s in steps if not s.steady}
    return sorted({s.step for s in steps if s.step is not None} - unsteady)


def run_facts(
    run: Run, results: list[WindowResults], origin_ns: int, steps: list[StepRow], labels: dict[str, str]
) -> RunFacts:
    """What the run is."""
    backends = sorted({w.backend for w in run.windows if w.backend is not None})
    versions: dict[str, str] = {}
    for window in run.windows:
        for component, version in window.versions.items():
            versions.setdefault(component, version)
    for window in run.windows:
        if window.manifest is not None:
            labels = {**window.manifest.labels, **labels}
    return RunFacts(
        name=run.name,
        source=run.source,
        started_at=_utc(origin_ns),
        labels=labels,
        origin_ns=str(origin_ns),
        backend=", ".join(backends) or None,
        world_size=run.world_size,
        ranks=list(run.ranks),
        missing_ranks=list(run.missing_ranks),
        rank_source={w.rank: w.rank_source for w in run.windows},
        host={w.rank: w.host for w in run.windows if w.host},
        devices=_device_names(run, results),
        versions=versions,
        steps=sorted({s.step for s in steps if s.step is not None}),
        steady_steps=steady_steps(steps),
    )


def _device_names(run: Run, results: list[WindowResults]) -> dict[int, str]:
    names: dict[int, str] = {}
    for result in results:
        window, device = result.events.window, result.events.device
        name = "cpu" if device == "cpu" else window.device_names.get(int(device))
        if name is not None:
            names.setdefault(window.rank, name)
    return {rank: names[rank] for rank in run.ranks if rank in names}


def _utc(absolute_ns: int) -> str | None:
    """ISO time of an absolute ns, None where the trace's zero cannot be the Unix epoch."""
    seconds = absolute_ns // NS_PER_S
    if not _EARLIEST_S <= seconds < _LATEST_S:
        return None
    return datetime.fromtimestamp(seconds, tz=timezone.utc).isoformat()


def rank_rows(run: Run, results: list[WindowResults]) -> list[RankRow]:
    """One row per rank and device, windows added up."""
    by_device: dict[tuple[int, Any], list[WindowResults]] = defaultdict(list)
    for result in results:
        by_device[result.events.window.rank, result.events.device].append(result)
    hosts = {w.rank: w.host for w in run.windows}
    return [
        RankRow(
            rank=rank,
            device=device,
            host=hosts.get(rank),
            communication_self_overlap_ns=sum(r.overlap.self_overlap_ns for r in parts),
            compute_kernels=sum(r.overlap.compute_kernels for r in parts),
            communication_kernels=sum(r.overlap.communication_kernels for r in parts),
            memory_operations=sum(r.overlap.memory_operations for r in parts),
            **measures_dict(add_measures(r.overlap.measures for r in parts)),
        )
        for (rank, device), parts in sorted(
            by_device.items(), key=lambda item: (item[0][0], device_order(item[0][1]))
        )
    ]


def window_rows(run: Run, results: list[WindowResults], origin_ns: int) -> list[WindowRow]:
    """One row per recorded window and device; a window without device events has one without a device."""
    by_window: dict[tuple[int, int], list[WindowResults]] = defaultdict(list)
    for result in results:
        by_window[result.events.window.rank, result.events.window.window].append(result)
    rows = []
    for window in run.windows:
        found = by_window.get((window.rank, window.window), [])
        rows += [
            WindowRow(
                rank=window.rank,
                device=result.events.device,
                window=window.window,
                file=window.file,
                started_ns=result.overlap.started_ns - origin_ns,
                **measures_dict(result.overlap.measures),
            )
            for result in found
        ]
        if not found:
            rows.append(WindowRow(rank=window.rank, device=None, window=window.window, file=window.file))
    return rows


def step_rows(results: list[WindowResults], wanted: frozenset[int] | None) -> list[StepRow]:
    """One row per step, rank and device, and one for the events outside steps; chosen steps only."""
    rows = [
        StepRow(
            step=step.step,
            rank=step.rank,
            device=step.device,
            window=step.window,
            steady=step.steady,
            duration_ns=step.host_duration_ns,
            runs_past_end_ns=step.runs_past_end_ns,
            **measures_dict(step.measures),
        )
        for result in results
        for step in result.steps
        if wanted is None or step.step in wanted
    ]
    return sorted(rows, key=lambda r: (r.step is None, r.step or 0, r.rank, device_order(r.device), r.window))


def totals(results: list[WindowResults], steps: list[StepRow]) -> Totals:
    """Measures added over ranks: everything, the steady ones of `steps`, what was launched outside all steps."""
    numbers = set(steady_steps(steps))
    steady = [s for s in steps if s.step in numbers]
    outside = [step.measures for result in results for step in result.steps if step.step is None]
    has_steps = any(len(r.spans) for r in results)
    return Totals(
        run=add_measures(r.overlap.measures for r in results),
        steady=add_measures(steady) if steady else None,
        outside_steps=add_measures(outside) if has_steps else None,
    )


def group_rows(group_totals: Iterable[GroupTotal]) -> list[GroupRow]:
    """One row per operation and process group."""
    return [
        GroupRow(
            group=total.group.label,
            ranks=list(total.group.ranks),
            op=total.op,
            count=total.count,
            size_bytes=total.size_bytes,
            communication_ns=total.communication_ns,
            exposed_communication_ns=total.exposed_communication_ns,
            overlap_ratio=overlap_ratio(
                total.communication_ns - total.exposed_communication_ns, total.communication_ns
            ),
        )
        for total in group_totals
    ]


def communication_rows(results: list[WindowResults], origin_ns: int) -> list[CommunicationRow]:
    """One row per communication event, in order of rank, device, window and start."""
    return [row for result in results for row in _communications_of(result, origin_ns)]


def _communications_of(result: WindowResults, origin_ns: int) -> list[CommunicationRow]:
    communications, table = result.communications, result.events.table
    rows = communications.rows
    compute = table.times_of(result.events.compute)
    covered = covered_ns(table.start_ns[rows], table.ends_of(rows), compute)
    step_of = np.where(result.communication_steps == OUTSIDE_STEPS, -1, result.communication_steps)
    made = []
    for i, row in enumerate(rows.tolist()):
        kind = communications.kinds[communications.kind[i]]
        duration = int(table.duration_ns[row])
        made.append(
            CommunicationRow(
                rank=result.events.window.rank,
                device=result.events.device,
                window=result.events.window.window,
                step=int(step_of[i]) if step_of[i] >= 0 else None,
                op=kind.op,
                name=table.names[table.name[row]],
                group=kind.group.label,
                dtype=kind.dtype,
                size_bytes=kind.size_bytes,
                started_ns=int(table.start_ns[row]) - origin_ns,
                duration_ns=duration,
                exposed_ns=duration - int(covered[i]),
                overlap_ratio=overlap_ratio(int(covered[i]), duration),
            )
        )
    return made


def problem_rows(problems: Iterable[Problem]) -> list[ProblemRow]:
    """Problems of the input and of the analysis."""
    return [
        ProblemRow(file=p.file, offset=p.offset, kind=p.kind, message=p.message, severity=p.severity)
        for p in problems
    ]
