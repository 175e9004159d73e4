"""Run to report."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from rankscope import __version__
from rankscope.analyses.communication_totals import measure_coverage, total_by_group
from rankscope.correlate.device_events import device_events
from rankscope.errors import UsageError
from rankscope.model.memory import give_memory_back
from rankscope.model.report import Coverage, Report, Tool
from rankscope.model.run import Run
from rankscope.pipeline.advice import AdviseOptions, advise_run
from rankscope.pipeline.buckets import RunBuckets, bucket_rows, collect_buckets
from rankscope.pipeline.caused_waits import caused_waits
from rankscope.pipeline.collective_rows import collective_rows
from rankscope.pipeline.findings import find
from rankscope.pipeline.fsdp_units import fsdp_rows
from rankscope.pipeline.notices import clock_problems, notice_problems
from rankscope.pipeline.row_limit import limit_rows
from rankscope.pipeline.rows import (
    communication_rows,
    group_rows,
    problem_rows,
    rank_rows,
    run_facts,
    steady_steps,
    step_rows,
    totals,
    window_rows,
)
from rankscope.pipeline.together import Together, put_together
from rankscope.pipeline.together_rows import (
    clock_facts,
    matched_share,
    point_to_point_rows,
    straggler_section,
    with_durations,
    with_transfers,
    with_waits,
)
from rankscope.pipeline.undefined import explain_undefined
from rankscope.pipeline.window_results import WindowResults, analyze_window
from rankscope.readers.run_reader import OnFileDone, ReadOptions, read_run

Detail = Literal["summary", "full"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyzeOptions:
    """What to analyse.

    Attributes:
        steps: step numbers to report and to take for steady figures; None = all.
        detail: "full" adds a row per communication event and rank, and lifts the limit on rows.
        labels: free text to keep in the report.
        advise: what to predict of DDP's buckets beside the usual caps.
    """

    steps: frozenset[int] | None = None
    detail: Detail = "summary"
    labels: tuple[tuple[str, str], ...] = ()
    advise: AdviseOptions = field(default_factory=AdviseOptions)


def analyze(
    run: str | Path | Run,
    *,
    steps: Collection[int] | None = None,
    detail: Detail = "summary",
    communication_patterns: Collection[str] = (),
    processes: int = 1,
    on_file_done: OnFileDone | None = None,
) -> Report:
    """The report of a run.

    Args:
        run: a trace file, a directory of them, an fsspec URL of either, or a run already read.
        steps: step numbers to report and to take for steady figures; all unless given.
        detail: "full" adds a row per communication event and rank.
        communication_patterns: extra regular expressions of kernel names that communicate.
        processes: worker processes for reading; 0 = one per core.
        on_file_done: called with a file's name and stored bytes whenever one has been read.

    Raises:
        InputError: there is nothing to analyse, or two runs lie in one directory.
        UsageError: a pattern is no regular expression, or a step is not in the run.
    """
    if not isinstance(run, Run):
        options = ReadOptions(communication_patterns=tuple(communication_patterns), processes=processes)
        run = read_run(run, options, on_file_done=on_file_done)
    return analyze_run(run, AnalyzeOptions(steps=None if steps is None else frozenset(steps), detail=detail))


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """A report with what it was made from.

    Attributes:
        report: the report.
        results: the windows' results.
        together: what needs all ranks.
        buckets: the DDP buckets.
        origin_ns: absolute time of the report's zero.
    """

    report: Report
    results: tuple[WindowResults, ...]
    together: Together
    buckets: RunBuckets
    origin_ns: int


def analyze_run(run: Run, options: AnalyzeOptions | None = None) -> Report:
    """The report of a run that has been read.

    Raises:
        UsageError: a chosen step is not in the run.
    """
    return analyze_fully(run, options).report


def analyze_fully(run: Run, options: AnalyzeOptions | None = None) -> Analysis:
    """The report of a run that has been read, and what it was made from.

    Raises:
        UsageError: a chosen step is not in the run.
    """
    options = options or AnalyzeOptions()
    results = [analyze_window(events, run.world_size) for events in device_events(run)]
    give_memory_back()
    _check_steps(options.steps, results)
    origin_ns = min((int(r.events.table.start_ns[0]) for r in results), default=0)
    shares = measure_coverage([r.communications for r in results], [r.communication_steps for r in results])
    steps = step_rows(results, options.steps)
    steady = steady_steps(steps)
    together = put_together(run, results, steady)
    buckets = collect_buckets(results, together)
    units, unit_rows = fsdp_rows(results, together, origin_ns, steady, first_layout=len(buckets.layouts))
    collectives = collective_rows(together, results, origin_ns, full=options.detail == "full")
    steps = with_durations(steps, together)
    facts = run_facts(run, results, origin_ns, steps, dict(options.labels))
    report = Report(
        tool=Tool(version=__version__),
        run=replace(facts, clock=clock_facts(together)),
        totals=totals(results, steps),
        coverage=Coverage(
            matched=matched_share(together),
            sized=shares.sized,
            named=shares.named,
            in_steps=shares.in_steps if any(len(r.spans) for r in results) else None,
        ),
        ranks=with_waits(rank_rows(run, results), together, results),
        windows=window_rows(run, results, origin_ns),
        steps=steps,
        groups=with_transfers(group_rows(total_by_group([r.communications for r in results])), collectives),
        collectives=collectives,
        communications=communication_rows(results, origin_ns) if options.detail == "full" else [],
        p2p=point_to_point_rows(together),
        bucket_layouts=[*buckets.layouts, *units],
        buckets=[*bucket_rows(buckets, together, origin_ns, steady), *unit_rows],
        straggler=straggler_section(together, steady),
        caused_waits=caused_waits(together),
        advice=advise_run(run, buckets, together, steps, options.advise),
        problems=problem_rows(
            [*run.problems, *clock_problems(together.clock_disagreements), *notice_problems(run, results)]
        ),
    )
    report = find(report)
    if options.detail == "summary":
        report = limit_rows(report)
    report = explain_undefined(report, run)
    return Analysis(
        report=report, results=tuple(results), together=together, buckets=buckets, origin_ns=origin_ns
    )


def _check_steps(wanted: frozenset[int] | None, results: list[WindowResults]) -> None:
    if wanted is None:
        return
    present = sorted({n for r in results for n in r.spans.numbers.tolist()})
    absent = sorted(wanted - set(present))
    if absent:
        shown = ", ".join(map(str, present)) or "none"
        raise UsageError(f"step(s) {', '.join(map(str, absent))} are not in the run; it holds: {shown}")
