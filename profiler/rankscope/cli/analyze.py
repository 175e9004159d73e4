"""`rankscope analyze`: the report of a run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rankscope.cli.options import (
    CommPatterns,
    Force,
    NoCache,
    Processes,
    RunToRead,
    parse_labels,
    parse_steps,
)
from rankscope.cli.output import check_writable, say, write_pieces
from rankscope.cli.report_outputs import FormatOfReport, OutputFiles, ReportFormat, choose_outputs
from rankscope.cli.report_text import View, render, render_report
from rankscope.cli.status import EXIT_COULD_NOT
from rankscope.errors import UsageError

if TYPE_CHECKING:
    from rankscope.model.report import Report
    from rankscope.model.run import Run
    from rankscope.pipeline import Analysis


class Detail(str, Enum):
    """How much the report holds."""

    SUMMARY = "summary"
    FULL = "full"


_Steps = Annotated[
    str, typer.Option(help="Steps to report and to judge by, such as 4-6,9.", show_default="all")
]
_Detail = Annotated[Detail, typer.Option(help="full: also a row per communication event and rank.")]
_Tables = Annotated[Path | None, typer.Option(help="Write the rows as Parquet files into this directory.")]
_Ranks = Annotated[
    bool,
    typer.Option(
        "--ranks", help="On the terminal: whom everybody waits for, with every rank, arrivals and clocks."
    ),
]
_Perfetto = Annotated[
    Path | None,
    typer.Option(help="Write all ranks on one clock as a trace for Perfetto (OUT.json.gz or OUT.json)."),
]
_Labels = Annotated[
    list[str],
    typer.Option(
        "--label",
        default_factory=list,
        show_default=False,
        help="key=value to keep in the report; may be repeated.",
    ),
]
_MaxUnpacked = Annotated[
    float, typer.Option(min=0.001, help="Most GiB of unpacked text to accept of one file.")
]


def analyze(
    run: RunToRead,
    *,
    report_format: FormatOfReport = None,
    output: OutputFiles,
    force: Force = False,
    steps: _Steps = "",
    comm_pattern: CommPatterns,
    detail: _Detail = Detail.SUMMARY,
    tables: _Tables = None,
    ranks: _Ranks = False,
    perfetto: _Perfetto = None,
    label: _Labels,
    processes: Processes = 0,
    max_unpacked: _MaxUnpacked = 64.0,
    no_cache: NoCache = False,
) -> None:
    """Overlap, exposed communication and where it comes from, over all ranks of a run.

    Exit status 2 if a file could not be read, or nothing could be analysed; the report is still printed.
    """
    view: View = "ranks" if ranks else "summary"
    outputs = choose_outputs(output, report_format)
    _check_view(outputs.formats, view)
    check_writable([*output, *_perfetto_paths(perfetto)], force=force)
    _check_tables(tables, force=force)
    wanted = _Wanted(
        run=run,
        steps=parse_steps(steps),
        is_full=tables is not None or detail is Detail.FULL,
        labels=parse_labels(label),
        patterns=tuple(comm_pattern),
        max_unpacked_bytes=int(max_unpacked * (1 << 30)),
    )
    needs_events = perfetto is not None or ReportFormat.HTML in outputs.formats
    made = _make(wanted, processes, use_cache=not no_cache, needs_events=needs_events)
    report = made.report
    if perfetto is not None and made.analysis is not None:
        from rankscope.pipeline.merged_trace import merged_trace

        write_pieces(perfetto, merged_trace(made.analysis.results, made.analysis.together), force=force)
        say(f"wrote {perfetto}")
    if tables is not None:
        from rankscope.cli.tables import write_tables

        write_tables(report, tables)
        say(f"wrote tables into {tables}")
    outputs.write(lambda form: made.text(form, detail.value, view), force=force)
    if not report.ranks:
        say("rankscope: nothing could be analysed: no event on a device, and no host operator, in any file")
    if not report.ranks or any(problem.severity == "error" for problem in report.problems):
        raise typer.Exit(EXIT_COULD_NOT)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """Everything that decides a report."""

    run: str
    steps: frozenset[int] | None
    is_full: bool
    labels: dict[str, str]
    patterns: tuple[str, ...]
    max_unpacked_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """A report, and what it was made from unless it was kept from an earlier command."""

    report: Report
    is_full: bool
    analysis: Analysis | None = None
    run: Run | None = None

    def text(self, report_format: ReportFormat, detail: str, view: View) -> str:
        if report_format is ReportFormat.HTML and self.analysis is not None and self.run is not None:
            return render(self.analysis, self.run, report_format, detail, view)
        report = self.report
        if self.is_full and report_format is ReportFormat.JSON and detail != "full":
            from rankscope.pipeline.row_limit import limit_rows

            report = limit_rows(report)
        return render_report(report, report_format, detail, view)


def _make(wanted: _Wanted, processes: int, *, use_cache: bool, needs_events: bool) -> _Made:
    """The report, from an earlier command if the files and all that decides it are the same."""
    kept = None
    if use_cache and not needs_events:
        from rankscope.cli.kept_reports import find_kept

        kept = find_kept(wanted.run, _spelled(wanted))
        report = kept.load() if kept is not None else None
        if report is not None:
            return _Made(report=report, is_full=wanted.is_full)
    from rankscope.pipeline import AnalyzeOptions, analyze_fully

    run = _read(wanted, processes, use_cache=use_cache)
    detail: Literal["full", "summary"] = "full" if wanted.is_full else "summary"
    analysis = analyze_fully(
        run, AnalyzeOptions(steps=wanted.steps, detail=detail, labels=tuple(wanted.labels.items()))
    )
    if kept is not None and not any(p.severity == "error" for p in analysis.report.problems):
        kept.store(analysis.report)
    return _Made(report=analysis.report, is_full=wanted.is_full, analysis=analysis, run=run)


def _spelled(wanted: _Wanted) -> str:
    """What is wanted, as a text that is the same for the same."""
    return repr(replace(wanted, steps=None)) + repr(None if wanted.steps is None else sorted(wanted.steps))


def _read(wanted: _Wanted, processes: int, *, use_cache: bool) -> Run:
    from rankscope.cli.reading import read_with_progress
    from rankscope.readers.run_reader import ReadOptions

    options = ReadOptions(
        communication_patterns=wanted.patterns,
        processes=processes,
        max_unpacked_bytes=wanted.max_unpacked_bytes,
    )
    return read_with_progress(wanted.run, options, use_cache=use_cache)


def _check_view(formats: tuple[ReportFormat, ...], view: View) -> None:
    if view == "ranks" and any(one is not ReportFormat.CONSOLE for one in formats):
        raise UsageError(
            "--ranks is a view for the terminal; leave it out for json, markdown and html, which hold it"
        )


def _perfetto_paths(path: Path | None) -> list[Path]:
    if path is not None and not path.name.endswith((".json", ".json.gz")):
        raise UsageError(f"--perfetto: {path} should end with .json.gz or .json")
    return [] if path is None else [path]


def _check_tables(directory: Path | None, *, force: bool) -> None:
    if directory is None or not directory.exists():
        return
    if not directory.is_dir():
        raise UsageError(f"{directory} is not a directory; give --tables a directory")
    if not force and any(directory.iterdir()):
        raise UsageError(f"{directory} is not empty; give --force to replace its tables")
