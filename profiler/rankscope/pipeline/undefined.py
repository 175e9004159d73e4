"""The reason of every figure that has no value."""

from __future__ import annotations

from dataclasses import replace

from rankscope.model.report import Report
from rankscope.model.run import Run

_NO_COMMUNICATION = "no communication kernels"
_STEP_WINDOW = "the work of a step overlaps that of its neighbours, so a step has no window of its own"
_NEEDS_MATCH = "collectives have not been matched over the ranks"


def explain_undefined(report: Report, run: Run) -> Report:
    """The report with a reason for every None in its figures.

    Paths name a list's row by its keys, `ranks[rank=3,device=0].overlap_ratio`; `[*]` stands for every row.
    """
    reasons: dict[str, str] = {}
    _explain_totals(report, run, reasons)
    for rank in report.ranks:
        if rank.overlap_ratio is None:
            reasons[f"ranks[rank={rank.rank},device={rank.device}].overlap_ratio"] = _NO_COMMUNICATION
    for window in report.windows:
        if window.overlap_ratio is None:
            where = f"windows[rank={window.rank},window={window.window}"
            if window.device is None:
                reasons[f"{where}].overlap_ratio"] = "no GPU events in this window"
            else:
                reasons[f"{where},device={window.device}].overlap_ratio"] = _NO_COMMUNICATION
    _explain_steps(report, reasons)
    _explain_groups(report, reasons)
    if report.coverage.named is None:
        reasons["coverage"] = _NO_COMMUNICATION
    return replace(report, undefined=reasons)


def _explain_totals(report: Report, run: Run, reasons: dict[str, str]) -> None:
    nothing = "no device events in any file" if run.windows else "no file could be read"
    if report.totals.run.overlap_ratio is None:
        reasons["totals.run.overlap_ratio"] = _NO_COMMUNICATION if report.ranks else nothing
    if report.totals.steady is None:
        reasons["totals.steady"] = _why_no_steady_steps(report)
    elif report.totals.steady.overlap_ratio is None:
        reasons["totals.steady.overlap_ratio"] = "no communication in the steady steps"
    if report.totals.outside_steps is None:
        reasons["totals.outside_steps"] = "no step markers (ProfilerStep) in the files"
    elif report.totals.outside_steps.overlap_ratio is None:
        reasons["totals.outside_steps.overlap_ratio"] = "no communication outside steps"


def _why_no_steady_steps(report: Report) -> str:
    if not report.ranks:
        return "nothing was analysed"
    if not report.run.steps:
        return "no step markers (ProfilerStep) in the files"
    return "every recorded step lies before DDP rebuilt its buckets; record later steps"


def _explain_steps(report: Report, reasons: dict[str, str]) -> None:
    if report.steps:
        reasons["steps[*].window_ns"] = reasons["steps[*].idle_ns"] = _STEP_WINDOW
    if any(s.step is None for s in report.steps):
        reasons["steps[step=None].duration_ns"] = "events outside steps have no duration as a step"
    for step in report.steps:
        if step.overlap_ratio is None:
            path = f"steps[step={step.step},rank={step.rank},device={step.device}].overlap_ratio"
            reasons[path] = "no communication was launched in this step"


def _explain_groups(report: Report, reasons: dict[str, str]) -> None:
    if report.groups:
        reasons["groups[*].bus_bandwidth_gbps"] = reasons["groups[*].transfer_ns"] = _NEEDS_MATCH
    for group in report.groups:
        if group.size_bytes is None:
            path = f"groups[group={group.group},op={group.op}].size_bytes"
            reasons[path] = "the trace gives no size for some of these (record with record_shapes=True)"
        if group.overlap_ratio is None:
            reasons[f"groups[group={group.group},op={group.op}].overlap_ratio"] = "it took no time"
