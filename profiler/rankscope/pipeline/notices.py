"""What a person must know of the run before reading its figures."""

from __future__ import annotations

from collections.abc import Sequence

from rankscope.correlate.clock_samples import Disagreement
from rankscope.correlate.steps import OUTSIDE_STEPS
from rankscope.model.groups import name_ranks
from rankscope.model.run import Problem, Run, Severity, has_device_launches
from rankscope.pipeline.window_results import WindowResults
from rankscope.units import format_duration


def notice_problems(run: Run, results: list[WindowResults]) -> list[Problem]:
    """Notices about missing ranks, steps, device events and communication, in that order."""
    return [
        *_missing_ranks(run),
        *_empty_windows(run, results),
        *_no_steps(results),
        *_before_rebuild(results),
        *_no_communication(results),
        *_outside_steps(results),
    ]


def clock_problems(disagreements: Sequence[Disagreement]) -> list[Problem]:
    """A warning for every rank whose clock by collective ends is not where the collector's samples saw it."""
    return [
        _problem(
            "",
            "clock-disagrees",
            f"by the ends of its collectives the clock of rank {d.rank} is off by {format_duration(d.aligned_ns)}, but "
            f"the collector measured {format_duration(d.sampled_ns)} +- {format_duration(d.uncertainty_ns)}: "
            "collectives may be matched wrongly, or the clock was set while the job ran; do not trust arrivals of this "
            "rank",
            "warning",
        )
        for d in disagreements
    ]


def _missing_ranks(run: Run) -> list[Problem]:
    missing = run.missing_ranks
    if not missing:
        return []
    have, they = ("has", "it") if len(missing) == 1 else ("have", "they")
    text = (
        f"{name_ranks(missing)} of {run.world_size} {have} no readable file; what {they} did, and whether "
        "the others waited for them, cannot be said"
    )
    return [_problem("", "missing-ranks", text, "warning")]


def _empty_windows(run: Run, results: list[WindowResults]) -> list[Problem]:
    if run.is_cpu_only:
        if not results:
            return _nothing_to_measure(run)
        text = "no GPU events in any file: figures are for the CPU, communication (gloo, mpi) against host operators"
        return [_problem("", "cpu-only", text, "note")]
    filled = {(r.events.window.rank, r.events.window.window) for r in results}
    problems = []
    for window in run.windows:
        if (window.rank, window.window) not in filled:
            hint = (
                "launches were recorded but no kernels: the profiler ran without ProfilerActivity.CUDA, or another "
                "tool held the GPU's profiling interface"
                if has_device_launches(window.table)
                else "nothing ran on the device while it was recorded"
            )
            text = f"rank {window.rank} window {window.window} has no GPU events; {hint}"
            problems.append(_problem(window.file, "no-gpu-events", text, "warning"))
    return problems


def _nothing_to_measure(run: Run) -> list[Problem]:
    if not run.windows:
        return []
    text = (
        "no file holds an event on a device or a host operator, so there is nothing to measure; record with "
        "ProfilerActivity.CPU and, where there is a GPU, ProfilerActivity.CUDA, around steps that do work"
    )
    return [_problem("", "nothing-to-measure", text, "warning")]


def _no_steps(results: list[WindowResults]) -> list[Problem]:
    files = [r.events.window.file for r in results if len(r.spans) == 0]
    if not files:
        return []
    text = (
        "no ProfilerStep markers: the file is taken as one window, without figures per step. Call step() on the "
        "profiler (or rankscope.Collector) once per training step"
    )
    return [_problem(file, "no-steps", text, "note") for file in dict.fromkeys(files)]


def _before_rebuild(results: list[WindowResults]) -> list[Problem]:
    unsteady = sorted({number for r in results for number in r.unsteady})
    if not unsteady:
        return []
    steps = ", ".join(map(str, unsteady))
    text = f"step(s) {steps} lie before DDP rebuilt its buckets and are left out of steady figures"
    return [_problem("", "before-rebuild", text, "note")]


def _no_communication(results: list[WindowResults]) -> list[Problem]:
    if not results or any(len(r.events.communication) for r in results):
        return []
    text = (
        "no communication kernels in any file: overlap is not defined. If kernels of yours communicate, name them "
        "with --comm-pattern"
    )
    return [_problem("", "no-communication", text, "note")]


def _outside_steps(results: list[WindowResults]) -> list[Problem]:
    outside = total = 0
    for result in results:
        if len(result.spans) == 0:
            continue
        durations = result.events.table.duration_ns[result.events.communication]
        total += int(durations.sum())
        outside += int(durations[result.communication_steps == OUTSIDE_STEPS].sum())
    if outside == 0:
        return []
    text = (
        f"{format_duration(outside)} of {format_duration(total)} of communication was launched outside the "
        "recorded steps (before the first one, or by a graph) and belongs to no step"
    )
    return [_problem("", "outside-steps", text, "note")]


def _problem(file: str, kind: str, message: str, severity: Severity) -> Problem:
    return Problem(file=file, offset=None, kind=kind, message=message, severity=severity)
