"""What the commands of the gate read: traces, saved reports, baselines and limits files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rankscope.cli.output import say
from rankscope.errors import InputError, UsageError

if TYPE_CHECKING:
    from rankscope.gate.limits_file import LimitsFile
    from rankscope.model.report import Report
    from rankscope.model.run import Run
    from rankscope.model.snapshot import Baseline

DEFAULT_CONFIG = Path("rankscope.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One run, as far as it is known.

    Attributes:
        source: the path or URL.
        report: its report; None if it is a baseline.
        baseline: what it is compared by.
        is_partial: whether a file of it was lost.
    """

    source: str
    report: Report | None
    baseline: Baseline
    is_partial: bool


def read_side(run: str, patterns: list[str], processes: int) -> Side:
    """A run to compare: traces, a saved report or a baseline.

    Raises:
        InputError: it does not exist, or nothing in it could be analysed.
    """
    from rankscope.model.snapshot import Baseline
    from rankscope.pipeline import analyze_run
    from rankscope.pipeline.saved import baseline_of_report, read_saved, take_baseline

    saved = read_saved(run)
    if isinstance(saved, Baseline):
        return Side(source=run, report=None, baseline=saved, is_partial=False)
    if saved is not None:
        report, baseline = saved, baseline_of_report(saved)
    else:
        found = _read_traces(run, patterns, processes)
        report = analyze_run(found)
        baseline = take_baseline(found, report)
    if not report.ranks:
        raise InputError(f"nothing could be analysed in {run}: {_say_problem(report)}")
    return Side(source=run, report=report, baseline=baseline, is_partial=_tell_losses(report, run))


def _read_traces(run: str, patterns: list[str], processes: int) -> Run:
    from rankscope.cli.reading import read_with_progress
    from rankscope.readers.run_reader import ReadOptions

    return read_with_progress(run, ReadOptions(communication_patterns=tuple(patterns), processes=processes))


def _say_problem(report: Report) -> str:
    errors = [problem for problem in report.problems if problem.severity == "error"]
    if not errors:
        return "no event on a device, and no host operator, in any file"
    return "; ".join(f"{problem.file}: {problem.message}" for problem in errors[:3])


def _tell_losses(report: Report, run: str) -> bool:
    """Whether files of the run were lost, which is said on stderr."""
    errors = [problem for problem in report.problems if problem.severity == "error"]
    for problem in errors:
        say(f"rankscope: a file of {run} is lost: {problem.file}: {problem.message}")
    return bool(errors)


def read_limits(config: Path | None, *, allow_undefined: bool) -> tuple[LimitsFile, Path | None]:
    """The limits file that was given, else `rankscope.toml` of this directory if there is one; and its path.

    Raises:
        UsageError: it cannot be read, or is faulty.
    """
    from rankscope.gate.limits_file import LimitsFile, parse_limits_file

    path = config if config is not None else DEFAULT_CONFIG if DEFAULT_CONFIG.is_file() else None
    if path is None:
        return LimitsFile(), None
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(f"cannot read the limits file {path}: {reason}") from error
    return parse_limits_file(text, str(path), allow_undefined=allow_undefined), path
