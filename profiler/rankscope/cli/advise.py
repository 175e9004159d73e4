"""`rankscope advise`: which bucket_cap_mb to use instead."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from rankscope.cli.options import CommPatterns, Force, Processes, RunToRead, parse_steps
from rankscope.cli.output import check_writable, say
from rankscope.cli.report_outputs import FormatOfReport, OutputFiles, ReportFormat, choose_outputs
from rankscope.cli.status import EXIT_COULD_NOT
from rankscope.cli.terminal import terminal_width
from rankscope.errors import UsageError

if TYPE_CHECKING:
    from rankscope.model.report import Report

_MOST_MIB = 1 << 30

_Caps = Annotated[
    str,
    typer.Option(show_default="usual ones", help="Values of bucket_cap_mb in MiB, such as 1,5,25."),
]
_CapLists = Annotated[
    list[str],
    typer.Option(
        default_factory=list,
        show_default=False,
        help="A cap per bucket (bucket_cap_mb_list), such as 1,5,25; may be repeated.",
    ),
]
_Bandwidth = Annotated[
    float | None, typer.Option(help="Predict for this bus bandwidth, in GB/s (1e9 bytes).")
]
_Latency = Annotated[float | None, typer.Option(help="Predict for this latency of an all-reduce, in us.")]
_WorldSize = Annotated[
    int | None, typer.Option(min=2, help="Predict for this number of ranks, by the ring formula.")
]
_Steps = Annotated[
    str,
    typer.Option(show_default="all steady ones", help="Steps to predict from, such as 4-6,9."),
]


def advise(
    run: RunToRead,
    *,
    caps: _Caps = "",
    cap_list: _CapLists,
    bandwidth: _Bandwidth = None,
    latency: _Latency = None,
    world_size: _WorldSize = None,
    steps: _Steps = "",
    report_format: FormatOfReport = None,
    output: OutputFiles,
    force: Force = False,
    comm_pattern: CommPatterns,
    processes: Processes = 0,
) -> None:
    """Step time for other sizes of DDP's buckets, predicted from one recorded run, and the best of them.

    Exit status 2 if nothing can be predicted; the reason and what to record are printed.
    """
    from rankscope.cli.reading import read_with_progress
    from rankscope.pipeline import AnalyzeOptions, analyze_run
    from rankscope.pipeline.advice import AdviseOptions
    from rankscope.readers.run_reader import ReadOptions

    outputs = choose_outputs(output, report_format)
    check_writable(output, force=force)
    options = AdviseOptions(
        caps_mb=tuple(sorted(set(parse_caps(caps, "--caps")))),
        cap_lists_mb=tuple(parse_caps(text, "--cap-list") for text in cap_list),
        bandwidth_gbps=_positive(bandwidth, "--bandwidth"),
        latency_us=_positive(latency, "--latency"),
        world_size=world_size,
    )
    found = read_with_progress(
        run, ReadOptions(communication_patterns=tuple(comm_pattern), processes=processes)
    )
    report = analyze_run(found, AnalyzeOptions(steps=parse_steps(steps), advise=options))
    if report.advice is None:
        say(
            "rankscope: no DDP bucket is in the run: no all-reduce was asked for inside an AccumulateGrad row. Record "
            "a DistributedDataParallel training with ProfilerActivity.CPU, best with rankscope.Collector"
        )
        raise typer.Exit(EXIT_COULD_NOT)
    outputs.write(lambda form: render(report, form), force=force)
    if report.advice.verdict == "declined":
        raise typer.Exit(EXIT_COULD_NOT)


def render(report: Report, report_format: ReportFormat) -> str:
    """Text of the advice in one format; HTML is the whole report, whose Advice section holds the plot."""
    from rankscope.renderers import advice_output

    if report_format is ReportFormat.JSON:
        return advice_output.render_advice_json(report)
    if report_format is ReportFormat.MARKDOWN:
        return advice_output.render_advice_markdown(report)
    if report_format is ReportFormat.HTML:
        from rankscope.renderers.to_html import render_html

        return render_html(report)
    return advice_output.render_advice_console(report, width=terminal_width(), color=sys.stdout.isatty())


def parse_caps(text: str, option: str) -> tuple[float, ...]:
    """Sizes in MiB of a text such as "1,5,25"; () for "".

    Raises:
        UsageError: naming every part that is no size above 0.

    >>> parse_caps("1,0.25", "--caps")
    (1.0, 0.25)
    """
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    bad = [part[:40] for part in parts if not _is_size(part)]
    if bad:
        raise UsageError(
            f"{option}: {', '.join(map(repr, bad))} is no size in MiB; expected something like 1,5,25"
        )
    return tuple(float(part) for part in parts)


def _is_size(text: str) -> bool:
    try:
        value = float(text)
    except ValueError:
        return False
    return math.isfinite(value) and 0 < value <= _MOST_MIB


def _positive(value: float | None, option: str) -> float | None:
    if value is not None and not (math.isfinite(value) and value > 0):
        raise UsageError(f"{option} must be a number above 0, not {value}")
    return value
