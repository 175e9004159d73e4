"""Rules over a finished report: what a person should look at first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rankscope.model.groups import name_ranks
from rankscope.model.report import Finding, Measures, Report, Straggler
from rankscope.units import format_duration, format_ratio

_SHARE_WORTH_SAYING = 0.05
_SHARE_CRITICAL = 0.25
_MOST_OF_COST = 0.9
_SLOWDOWN_CRITICAL = 1.1
_COVERAGE_WORTH_SAYING = 0.9
_SAVING_WORTH_SAYING = 0.03


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


def _straggler(report: Report) -> Iterator[Finding]:
    """The rank or set of ranks that the others wait for."""
    straggler = report.straggler
    if straggler is None or straggler.verdict != "found":
        return
    cost, saved = straggler.cost_ns_per_step or 0, straggler.saved_ns_per_step
    shorter = format_duration(cost if saved is None else saved)
    hosts_next = saved is not None and saved < _MOST_OF_COST * cost
    limit = (
        f", not all of the {format_duration(cost)} that it costs, since the hosts of the other ranks are slow too"
        if hosts_next
        else ""
    )
    who = name_ranks(straggler.ranks)
    if straggler.scope in ("host", "group", "stage"):
        who += f" (one {straggler.scope})"
    yield Finding(
        rule="straggler",
        severity="critical" if (straggler.slowdown or 1.0) >= _SLOWDOWN_CRITICAL else "warning",
        rank=straggler.rank,
        step=None,
        message=f"The others wait for {who}: a step would be {shorter} shorter if it worked like its peers{limit} "
        f"(confidence {straggler.confidence}).{_cause_sentence(straggler)}",
        hint=_CAUSE_HINTS.get(straggler.cause or "", "Compare this rank with its peers on the timeline."),
    )


def _cause_sentence(straggler: Straggler) -> str:
    if straggler.cause is None:
        return f" No single cause: {straggler.cause_reason}." if straggler.cause_reason else ""
    lost = format_duration(straggler.cause_ns_per_step or 0)
    stage = straggler.cause_stage
    place = "" if not stage else f" {stage}" if stage.startswith("outside") else f" in {stage}"
    name = f", {straggler.cause_name[:120]!r}" if straggler.cause_name else ""
    return f" It lost {lost} per step against their median{place}{name}: {straggler.cause_reason}."


_CAUSE_HINTS = {
    "input": "Load data ahead: more DataLoader workers, prefetching, a faster or local copy of this rank's shard.",
    "host": "Look at what this rank's Python did there: logging, checkpoints, garbage collection, a busy CPU core.",
    "compute": "Its kernels are slower: compare clocks, temperature and power of its device, and what else runs there.",
    "work": "It gets more work than its peers: balance sequence lengths, experts or layers.",
    "memory": "Its copies or allocations take longer: pin host memory, check PCIe links and memory pressure.",
    "network": "Its links are slower: check the switch port, cable and NIC of its host.",
}


def _bucket_cap(report: Report) -> Iterator[Finding]:
    """Another size of DDP buckets that makes the step shorter."""
    advice = report.advice
    if advice is None or advice.saving_ratio is None or advice.saving_ratio < _SAVING_WORTH_SAYING:
        return
    yield Finding(
        rule="bucket-cap",
        severity="warning",
        rank=None,
        step=None,
        message=f"Buckets of another size are predicted to save {format_ratio(advice.saving_ratio)} of a step: "
        f"{advice.reason}.",
        hint=f"Pass {advice.code} to DistributedDataParallel; `rankscope advise` shows the predictions.",
    )


_RULES = (_straggler, _exposed_communication, _bucket_cap, _unknown_operations)
