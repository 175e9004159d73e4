"""`rankscope demo`: a real training run under the collector, and its report."""

from __future__ import annotations

import shutil
from pathlib import Path

import typer

from rankscope.cli.output import print_report, say, write_file
from rankscope.errors import UsageError


def demo(
    output: Path = typer.Option(
        Path("rankscope-demo"), "--output", "-o", help="Directory for traces and reports."
    ),
    world_size: int = typer.Option(2, min=1, max=16, help="Number of training processes."),
    bucket_cap_mb: float = typer.Option(4.0, min=0.01, help="bucket_cap_mb of DistributedDataParallel."),
    steps: int = typer.Option(7, min=4, help="Training steps."),
    force: bool = typer.Option(False, "--force", help="Replace what an earlier demo left in the directory."),
) -> None:
    """Train a small model with DDP on the CPU (gloo), record it, and report on it. Needs torch."""
    from rankscope.cli.analyze import ReportFormat, render
    from rankscope.collector.demo import run_demo
    from rankscope.pipeline import analyze_fully, read_run

    traces = output / "traces"
    _make_room(output, traces, force=force)
    say(f"training on {world_size} processes ...")
    run_demo(traces, world_size=world_size, bucket_cap_mb=bucket_cap_mb, steps=steps)
    run = read_run(traces)
    analysis = analyze_fully(run)
    for report_format, name in (
        (ReportFormat.HTML, "report.html"),
        (ReportFormat.MARKDOWN, "report.md"),
        (ReportFormat.JSON, "report.json"),
    ):
        write_file(output / name, render(analysis, run, report_format, "summary"))
        say(f"wrote {output / name}")
    print_report(render(analysis, run, ReportFormat.CONSOLE, "summary"), is_for_people=True)


def _make_room(output: Path, traces: Path, *, force: bool) -> None:
    if output.exists() and not output.is_dir():
        raise UsageError(f"{output} is not a directory; give another --output")
    if traces.exists() and any(traces.iterdir()):
        if not force:
            raise UsageError(
                f"{traces} holds traces already; give --force to replace them, or another --output"
            )
        shutil.rmtree(traces)
    traces.mkdir(parents=True, exist_ok=True)
