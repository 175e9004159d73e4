"""`rankscope advise`: which bucket_cap_mb to use instead."""

from __future__ import annotations

import math
import shutil
import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from rankscope.cli.output import check_writable, print_report, say, write_file
from rankscope.errors import UsageError

if TYPE_CHECKING:
    from rankscope.model.report import Report

EXIT_COULD_NOT = 2
_MOST_MIB = 1 << 30


class AdviceFormat(str, Enum):
    """Formats of the advice."""

    CONSOLE = "console"
    JSON = "json"
    MARKDOWN = "markdown"
    HTML = "html"


_FORMAT_OF_SUFFIX = {
    ".json": AdviceFormat.JSON,
    ".md": AdviceFormat.MARKDOWN,
    ".markdown": AdviceFormat.MARKDOWN,
    ".html": AdviceFormat.HTML,
    ".htm": AdviceFormat.HTML,
    ".txt": AdviceFormat.CONSOLE,
}


def advise(
    run: str = typer.Argument(..., help="A trace file, a directory of them, or an fsspec URL of either."),
    caps: str = typer.Option(
        "", "--caps", help="Values of bucket_cap_mb in MiB, such as 1,5,25. [default: usual ones]"
    ),
    cap_list: list[str] = typer.Option(
        [], "--cap-list", help="A cap per bucket (bucket_cap_mb_list), such as 1,5,25; may be repeated."
    ),
    bandwidth: float | None = typer.Option(None, help="Predict for this bus bandwidth, in GB/s (1e9 bytes)."),
    latency: float | None = typer.Option(None, help="Predict for this latency of an all-reduce, in us."),
    world_size: int | None = typer.Option(
        None, min=2, help="Predict for this number of ranks, by the ring formula."
    ),
    steps: str = typer.Option(
        "", "--steps", help="Steps to predict from, such as 4-6,9. [default: all steady ones]"
    ),
    advice_format: AdviceFormat | None = typer.Option(
        None, "--format", help="Format of the advice. [default: by the output's suffix, else console]"
    ),
    output: list[Path] = typer.Option(
        [], "--output", "-o", help="Write the advice here instead of to stdout; may be given several times."
    ),
    force: bool = typer.Option(False, "--force", help="Replace files that exist."),
    comm_pattern: list[str] = typer.Option(
        [],
        "--comm-pattern",
        help="Regular expression of more kernel names that communicate; may be repeated.",
    ),
    processes: int = typer.Option(
        0, min=0, help="Processes that read files side by side. [default: one per core]"
    ),
) -> None:
    """Step time for other sizes of DDP's buckets, predicted from one recorded run, and the best of them.

    Exit status 2 if nothing can be predicted; the reason and what to record are printed.
    """
    from rankscope.cli.analyze import parse_steps
    from rankscope.cli.reading import read_with_progress
    from rankscope.pipeline import AnalyzeOptions, analyze_run
    from rankscope.pipeline.advice import AdviseOptions
    from rankscope.readers.run_reader import ReadOptions

    formats = [advice_format or _format_of(path) for path in output]
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
    for path, one_format in zip(output, formats, strict=True):
        write_file(path, render(report, one_format), force=force)
        say(f"wrote {path}")
    if not output:
        on_stdout = advice_format or AdviceFormat.CONSOLE
        print_report(render(report, on_stdout), is_for_people=on_stdout is AdviceFormat.CONSOLE)
    if report.advice.verdict == "declined":
        raise typer.Exit(EXIT_COULD_NOT)


def render(report: Report, advice_format: AdviceFormat) -> str:
    """Text of the advice in one format; HTML is the whole report, whose Advice section holds the plot."""
    from rankscope.renderers import advice_output

    if advice_format is AdviceFormat.JSON:
        return advice_output.render_advice_json(report)
    if advice_format is AdviceFormat.MARKDOWN:
        return advice_output.render_advice_markdown(report)
    if advice_format is AdviceFormat.HTML:
        from rankscope.renderers.to_html import render_html

        return render_html(report)
    width = shutil.get_terminal_size((100, 24)).columns
    return advice_output.render_advice_console(report, width=width, color=sys.stdout.isatty())


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


def _format_of(path: Path) -> AdviceFormat:
    found = _FORMAT_OF_SUFFIX.get(path.suffix.lower())
    if found is None:
        known = ", ".join(_FORMAT_OF_SUFFIX)
        raise UsageError(f"cannot tell the format of {path} by its suffix (known: {known}); give --format")
    return found
