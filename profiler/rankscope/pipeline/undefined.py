"""The reason of every figure that has no value."""

from __future__ import annotations

from dataclasses import replace

from rankscope.model.report import Report
from rankscope.model.run import Run

_NO_COMMUNICATION = "no communication kernels"
_STEP_WINDOW = "the work of a step overlaps that of its neighbours, so a step has no window of its own"
_NOT_COMPLETE = (
    "needs a collective that was found on all its ranks and on which every rank waits for the last"
)
_NO_SIZE = "the trace gives no size for it (record with record_shapes=True)"


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
    _explain_collectives(report, reasons)
    _explain_straggler(report, reasons)
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
    for group in report.groups:
        path = f"groups[group={group.group},op={group.op}]"
        if group.size_bytes is None:
            reasons[f"{path}.size_bytes"] = (
                "the trace gives no size for some of these (record with record_shapes=True)"
            )
        if group.overlap_ratio is None:
            reasons[f"{path}.overlap_ratio"] = "it took no time"
        if group.transfer_ns is None:
            reasons[f"{path}.transfer_ns"] = _NOT_COMPLETE
        if group.bus_bandwidth_gbps is None:
            reasons[f"{path}.bus_bandwidth_gbps"] = _NOT_COMPLETE if group.transfer_ns is None else _NO_SIZE


def _explain_collectives(report: Report, reasons: dict[str, str]) -> None:
    """One reason for all rows of a kind: there may be many thousands."""
    rows = report.collectives
    for name in ("transfer_ns", "wait_ns", "lateness_ns", "last_rank"):
        if any(getattr(row, name) is None for row in rows):
            reasons[f"collectives[*].{name}"] = _NOT_COMPLETE
    for name in ("algorithm_bandwidth_gbps", "bus_bandwidth_gbps"):
        if any(getattr(row, name) is None for row in rows):
            reasons[f"collectives[*].{name}"] = f"{_NOT_COMPLETE}, and its size"
    if any(row.size_bytes is None for row in rows):
        reasons["collectives[*].size_bytes"] = _NO_SIZE
        reasons["collectives[*].dtype"] = _NO_SIZE
    if any(row.step is None for row in rows):
        reasons["collectives[*].step"] = "launched outside the recorded steps"
    if any(row.overlap_ratio is None for row in rows):
        reasons["collectives[*].overlap_ratio"] = "it took no time"
    if any(row.wait_ns is None for row in report.p2p):
        reasons["p2p[*].wait_ns"] = reasons["p2p[*].transfer_ns"] = "the other end is not in the traces"
    if any(row.exposed_wait_ns is None for row in report.ranks):
        reasons["ranks[*].exposed_wait_ns"] = reasons["ranks[*].exposed_transfer_ns"] = (
            "no collective was found on all its ranks, so waiting cannot be told from transfer"
        )
    if report.coverage.matched is None:
        reasons["coverage.matched"] = _NO_COMMUNICATION
    clock = report.run.clock
    if clock.residual_ns.median is None:
        reasons["run.clock.residual_ns"] = "no synchronising collective was found on several ranks"
    for rank, uncertainty in clock.uncertainty_ns.items():
        if uncertainty is None:
            reasons[f"run.clock.uncertainty_ns[{rank}]"] = "no collective bounds this clock from both sides"


def _explain_straggler(report: Report, reasons: dict[str, str]) -> None:
    straggler = report.straggler
    if straggler is None or straggler.verdict != "found":
        return
    if straggler.cause is None:
        reasons["straggler.cause"] = straggler.cause_reason or "no cause stands out"
    if straggler.slowdown is None:
        reasons["straggler.slowdown"] = (
            "the replay of the unchanged run is more than 2 % off the measured steps"
        )
