"""Rules over a finished report: what a person should look at first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rankscope.model.report import Finding, Measures, Report
from rankscope.units import format_duration, format_ratio

_SHARE_WORTH_SAYING = 0.05
_SHARE_CRITICAL = 0.25
_COVERAGE_WORTH_SAYING = 0.9


def find(report: Report) -> Report:
    """The report with its findings, the most severe first."""
    order = {"critical": 0, "warning": 1, "info": 2}
    findings = sorted((f for rule in _RULES for f in rule(report)), key=lambda f: order[f.severity])
    return replace(report, findings=findings)


def _exposed_communication(report: Report) -> Iterator[Finding]:
    """Exposed communication as a share of the time on the device."""
    measures, busy_ns, scope = _headline(report)
    if measures is None or measures.overlap_ratio is None or busy_ns <= 0:
        return
    share = measures.exposed_communication_ns / busy_ns
    if share < _SHARE_WORTH_SAYING:
        return
    yield Finding(
        rule="exposed-communication",
        severity="critical" if share >= _SHARE_CRITICAL else "warning",
        rank=None,
        step=None,
        message=f"Communication beside which no compute ran takes {format_ratio(share)} of {scope} "
        f"({format_duration(measures.exposed_communication_ns)} over all ranks); compute hides "
        f"{format_ratio(measures.overlap_ratio)} of the communication.",
        hint=_worst_operation(report),
    )


def _headline(report: Report) -> tuple[Measures | None, int, str]:
    """Measures to judge by, the time they are a share of, and its name."""
    steady = report.totals.steady
    if steady is not None and steady.communication_ns:
        steps = set(report.run.steady_steps)
        duration = sum(s.duration_ns or 0 for s in report.steps if s.step in steps)
        return steady, duration, "the steady steps"
    run = report.totals.run
    return run, run.window_ns or 0, "the recorded time"


def _worst_operation(report: Report) -> str:
    if not report.groups:
        return ""
    worst = report.groups[0]
    return (
        f"Most of it is {worst.op} in {worst.group}: {format_duration(worst.exposed_communication_ns)} exposed in "
        f"{worst.count} per rank. Waiting for a late rank counts in here too."
    )


def _unknown_operations(report: Report) -> Iterator[Finding]:
    """Communication whose operation the trace does not tell."""
    named = report.coverage.named
    if named is not None and named < _COVERAGE_WORTH_SAYING:
        yield Finding(
            rule="unknown-operations",
            severity="info",
            rank=None,
            step=None,
            message=f"The operation of {format_ratio(1 - named)} of the communication time is not known.",
            hint="Record with torch >= 2.2, which writes `Collective name`, and start recording a step earlier.",
        )


_RULES = (_exposed_communication, _unknown_operations)
