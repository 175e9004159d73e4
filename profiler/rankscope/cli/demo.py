"""`rankscope demo`: a real training run under the collector, and its report."""

from __future__ import annotations

from pathlib import Path

import typer

from rankscope.cli.output import check_writable, print_report, say, write_file
from rankscope.errors import UsageError

_TRACES = "traces"
_REPORTS = ("report.html", "report.md", "report.json")


def demo(
    output: Path = typer.Option(
        Path("rankscope-demo"), "--output", "-o", help="Directory for traces and reports."
    ),
    world_size: int = typer.Option(2, min=1, max=16, help="Number of training processes."),
    bucket_cap_mb: float = typer.Option(4.0, min=0.01, help="bucket_cap_mb of DistributedDataParallel."),
    steps: int = typer.Option(12, min=4, help="Training steps; the first two are not recorded."),
    force: bool = typer.Option(False, "--force", help="Replace what an earlier demo left in the directory."),
) -> None:
    """Train a small model with DDP on the CPU (gloo), record it, and report on it. Needs torch."""
    from rankscope.cli.report_outputs import ReportFormat
    from rankscope.cli.report_text import render
    from rankscope.collector.demo import run_demo
    from rankscope.pipeline import analyze_fully, read_run

    traces = output / _TRACES
    _make_room(output, force=force)
    say(
        f"1/3  training: 8 x Linear(1024) under DistributedDataParallel, {world_size} processes on this machine "
        f"(gloo), {steps} steps, recorded by rankscope.Collector"
    )
    files = run_demo(traces, world_size=world_size, bucket_cap_mb=bucket_cap_mb, steps=steps)
    say(f"2/3  analysing {len(files)} traces in {traces}")
    run = read_run(traces)
    analysis = analyze_fully(run)
    formats = (ReportFormat.HTML, ReportFormat.MARKDOWN, ReportFormat.JSON)
    for report_format, name in zip(formats, _REPORTS, strict=True):
        write_file(output / name, render(analysis, run, report_format, "summary"))
    say(f"3/3  wrote {', '.join(str(output / name) for name in _REPORTS)}\n")
    print_report(render(analysis, run, ReportFormat.CONSOLE, "summary"), is_for_people=True)
    say(
        f"\nOpen {output / _REPORTS[0]} in a browser for the timeline and the plots, or try\n"
        f"  rankscope analyze {traces} --ranks\n"
        f"  rankscope advise {traces}\n"
        f"  rankscope inspect {traces}\n"
        "Your own training needs two lines: docs/collect.md shows them."
    )


def _make_room(output: Path, *, force: bool) -> None:
    """Make the directory; remove an earlier demo's traces from it, and nothing else.

    Raises:
        UsageError: something is in the way.
    """
    from rankscope.collector.trace_file import SUFFIX

    traces = output / _TRACES
    for place in (output, traces):
        if place.exists() and not place.is_dir():
            raise UsageError(f"{place} is not a directory; give another --output")
    found = sorted(traces.iterdir()) if traces.exists() else []
    foreign = [path.name for path in found if not path.name.endswith(SUFFIX)]
    if foreign:
        raise UsageError(f"{traces} holds files that no demo wrote ({foreign[0]}); give another --output")
    if found and not force:
        raise UsageError(f"{traces} holds traces already; give --force to replace them, or another --output")
    traces.mkdir(parents=True, exist_ok=True)
    check_writable([output / name for name in _REPORTS], force=force)
    for path in found:
        path.unlink()
