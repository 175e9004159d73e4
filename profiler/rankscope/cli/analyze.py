"""`rankscope analyze`: the report of a run."""

from __future__ import annotations

import re
import shutil
import sys
from collections import Counter
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from rankscope.cli.output import check_writable, print_report, say, write_file, write_pieces
from rankscope.errors import UsageError

if TYPE_CHECKING:
    from rankscope.model.report import Report
    from rankscope.model.run import Run
    from rankscope.pipeline import Analysis

EXIT_COULD_NOT = 2
View = Literal["summary", "ranks"]


class ReportFormat(str, Enum):
    """Formats of a report."""

    CONSOLE = "console"
    JSON = "json"
    MARKDOWN = "markdown"
    HTML = "html"


_FORMAT_OF_SUFFIX = {
    ".json": ReportFormat.JSON,
    ".md": ReportFormat.MARKDOWN,
    ".markdown": ReportFormat.MARKDOWN,
    ".html": ReportFormat.HTML,
    ".htm": ReportFormat.HTML,
    ".txt": ReportFormat.CONSOLE,
}


_STEP_RANGE = re.compile(r"\s*([0-9]{1,18})(?:-([0-9]{1,18}))?\s*$")
_MAX_STEPS = 100_000
"""Most steps in one range: no trace holds more, and a slip of the finger must not fill the memory."""


class Detail(str, Enum):
    """How much the report holds."""

    SUMMARY = "summary"
    FULL = "full"


def analyze(
    run: str = typer.Argument(..., help="A trace file, a directory of them, or an fsspec URL of either."),
    report_format: ReportFormat | None = typer.Option(
        None, "--format", help="Format of the report. [default: by the output's suffix, else console]"
    ),
    output: list[Path] = typer.Option(
        [], "--output", "-o", help="Write the report here instead of to stdout; may be given several times."
    ),
    force: bool = typer.Option(False, "--force", help="Replace files that exist."),
    steps: str = typer.Option(
        "", "--steps", help="Steps to report and to judge by, such as 4-6,9. [default: all]"
    ),
    comm_pattern: list[str] = typer.Option(
        [],
        "--comm-pattern",
        help="Regular expression of more kernel names that communicate; may be repeated.",
    ),
    detail: Detail = typer.Option(Detail.SUMMARY, help="full: also a row per communication event and rank."),
    tables: Path | None = typer.Option(None, help="Write the rows as Parquet files into this directory."),
    ranks: bool = typer.Option(
        False,
        "--ranks",
        help="On the terminal: whom everybody waits for, with every rank, arrivals and clocks.",
    ),
    perfetto: Path | None = typer.Option(
        None, help="Write all ranks on one clock as a trace for Perfetto (OUT.json.gz or OUT.json)."
    ),
    label: list[str] = typer.Option([], "--label", help="key=value to keep in the report; may be repeated."),
    processes: int = typer.Option(
        0, min=0, help="Processes that read files side by side. [default: one per core]"
    ),
    max_unpacked: float = typer.Option(
        64.0, min=0.001, help="Most GiB of unpacked text to accept of one file."
    ),
    no_cache: bool = typer.Option(False, "--no-cache", help="Read every file anew, and keep nothing."),
) -> None:
    """Overlap, exposed communication and where it comes from, over all ranks of a run.

    Exit status 2 if a file could not be read, or nothing could be analysed; the report is still printed.
    """
    formats = [report_format or _format_of(path) for path in output]
    view: View = "ranks" if ranks else "summary"
    _check_view([*formats, *([] if output else [report_format or ReportFormat.CONSOLE])], view)
    check_writable([*output, *_perfetto_paths(perfetto)], force=force)
    _check_tables(tables, force=force)
    chosen_steps, labels = parse_steps(steps), parse_labels(label)
    needs_events = perfetto is not None or ReportFormat.HTML in (*formats, report_format)
    wanted = _Wanted(
        run=run,
        steps=chosen_steps,
        is_full=tables is not None or detail is Detail.FULL,
        labels=labels,
        patterns=tuple(comm_pattern),
        max_unpacked_bytes=int(max_unpacked * (1 << 30)),
    )
    made = _make(wanted, processes, use_cache=not no_cache, needs_events=needs_events)
    report = made.report
    for path, one_format in zip(output, formats, strict=True):
        write_file(path, made.text(one_format, detail.value, view), force=force)
        say(f"wrote {path}")
    if perfetto is not None and made.analysis is not None:
        from rankscope.pipeline.merged_trace import merged_trace

        write_pieces(perfetto, merged_trace(made.analysis.results, made.analysis.together), force=force)
        say(f"wrote {perfetto}")
    if tables is not None:
        from rankscope.cli.tables import write_tables

        write_tables(report, tables)
        say(f"wrote tables into {tables}")
    if not output:
        on_stdout = report_format or ReportFormat.CONSOLE
        text = made.text(on_stdout, detail.value, view)
        print_report(text, is_for_people=on_stdout is ReportFormat.CONSOLE)
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


def render(
    analysis: Analysis, run: Run, report_format: ReportFormat, detail: str, view: View = "summary"
) -> str:
    """Text of a report in one format.

    Args:
        analysis: the report, and what it was made from.
        run: the run.
        report_format: the format.
        detail: "full" for every row, in JSON.
        view: "ranks" for the terminal's view of the ranks.
    """
    if report_format is not ReportFormat.HTML:
        return render_report(analysis.report, report_format, detail, view)
    from rankscope.analyses.timeline import build_timeline
    from rankscope.renderers.to_html import render_html

    step = _middle_step(analysis.report)
    return render_html(analysis.report, build_timeline(run, step=step, clocks=analysis.together.clocks))


def render_report(report: Report, report_format: ReportFormat, detail: str, view: View = "summary") -> str:
    """Text of a report in a format that needs nothing else: all but HTML, which draws events."""
    if report_format is ReportFormat.JSON:
        from rankscope.renderers.to_json import render_json

        return render_json(report, detail="full" if detail == "full" else "summary")
    if report_format is ReportFormat.MARKDOWN:
        from rankscope.renderers.to_markdown import render_markdown

        return render_markdown(report)
    from rankscope.renderers.to_console import render_console

    width = shutil.get_terminal_size((100, 24)).columns
    return render_console(report, width=width, color=sys.stdout.isatty(), view=view)


def _middle_step(report: Report) -> int | None:
    """The middle one of the steady steps that most ranks recorded, to draw; None to leave the choice open."""
    counts = Counter(row.step for row in report.steps if row.step in report.run.steady_steps)
    most = max(counts.values(), default=0)
    steps = sorted(step for step, count in counts.items() if count == most and step is not None)
    return steps[len(steps) // 2] if steps else None


def _check_view(formats: list[ReportFormat], view: View) -> None:
    if view == "ranks" and any(one is not ReportFormat.CONSOLE for one in formats):
        raise UsageError(
            "--ranks is a view for the terminal; leave it out for json, markdown and html, which hold it"
        )


def _perfetto_paths(path: Path | None) -> list[Path]:
    if path is not None and not path.name.endswith((".json", ".json.gz")):
        raise UsageError(f"--perfetto: {path} should end with .json.gz or .json")
    return [] if path is None else [path]


def parse_steps(text: str) -> frozenset[int] | None:
    """Step numbers of a text such as "4-6,9"; None for "" (all).

    Raises:
        UsageError: naming every part that is neither a number nor a range.

    >>> sorted(parse_steps("4-6,9"))
    [4, 5, 6, 9]
    """
    if not text.strip():
        return None
    steps: set[int] = set()
    bad = []
    for part in text.split(","):
        match = _STEP_RANGE.match(part)
        first, last = (int(match.group(1)), int(match.group(2) or match.group(1))) if match else (0, -1)
        if 0 <= last - first < _MAX_STEPS:
            steps.update(range(first, last + 1))
        else:
            bad.append(part.strip()[:40])
    if bad:
        raise UsageError(
            f"--steps: {', '.join(map(repr, bad))} is no step nor range; expected something like 4-6,9"
        )
    return frozenset(steps)


def parse_labels(texts: list[str], option: str = "--label") -> dict[str, str]:
    """Labels of texts such as "branch=main".

    Raises:
        UsageError: naming every text without a key and a `=`.
    """
    bad = [text for text in texts if not text.partition("=")[0] or "=" not in text]
    if bad:
        raise UsageError(f"{option}: {', '.join(map(repr, bad))}; expected key=value")
    return {key: value for key, _, value in (text.partition("=") for text in texts)}


def _format_of(path: Path) -> ReportFormat:
    found = _FORMAT_OF_SUFFIX.get(path.suffix.lower())
    if found is None:
        known = ", ".join(_FORMAT_OF_SUFFIX)
        raise UsageError(f"cannot tell the format of {path} by its suffix (known: {known}); give --format")
    return found


def _check_tables(directory: Path | None, *, force: bool) -> None:
    if directory is None or not directory.exists():
        return
    if not directory.is_dir():
        raise UsageError(f"{directory} is not a directory; give --tables a directory")
    if not force and any(directory.iterdir()):
        raise UsageError(f"{directory} is not empty; give --force to replace its tables")
