"""Where the commands of the gate write: stdout, files per format, and the job summary of GitHub."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankscope.cli.output import check_writable, print_report, say, write_file
from rankscope.cli.terminal import terminal_width
from rankscope.errors import UsageError

if TYPE_CHECKING:
    from rankscope.model.comparison import Comparison
    from rankscope.model.verdict import Verdict

SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"


class GateFormat(str, Enum):
    """Formats of a verdict or comparison."""

    CONSOLE = "console"
    JSON = "json"
    MARKDOWN = "markdown"
    HTML = "html"
    CSV = "csv"
    JUNIT = "junit"
    GITHUB = "github"
    GITLAB = "gitlab"


GateFormatOption = Annotated[GateFormat, typer.Option("--format", help="What goes to stdout.")]
NEEDS_COMPARISON = (GateFormat.HTML, GateFormat.CSV)
"""Formats that show a comparison only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """What to write where.

    Attributes:
        stdout: format of what goes to stdout.
        files: format -> file.
    """

    stdout: GateFormat
    files: dict[GateFormat, Path]


def choose_outputs(
    stdout: GateFormat, files: dict[GateFormat, Path | None], *, force: bool, has_comparison: bool
) -> Outputs:
    """The outputs, checked before the work starts.

    Raises:
        UsageError: a file exists already (without `force`) or has no directory, or a format needs a comparison.
    """
    chosen = {form: path for form, path in files.items() if path is not None}
    if not has_comparison:
        wanting = [form.value for form in {stdout: None, **chosen} if form in NEEDS_COMPARISON]
        if wanting:
            raise UsageError(
                f"{' and '.join(wanting)} show a comparison: give --baseline, or use `rankscope compare`"
            )
    check_writable(list(chosen.values()), force=force)
    return Outputs(stdout=stdout, files=chosen)


def write_outputs(
    outputs: Outputs,
    verdict: Verdict,
    comparison: Comparison | None,
    *,
    command: str,
    limits_file: Path | None,
) -> None:
    """Write every file, then stdout, then the job summary if annotations of GitHub were asked for."""
    for form, path in outputs.files.items():
        write_file(path, _render(form, verdict, comparison, command, limits_file))
        say(f"wrote {path}")
    text = _render(outputs.stdout, verdict, comparison, command, limits_file)
    print_report(text, is_for_people=outputs.stdout is GateFormat.CONSOLE)
    summary = os.environ.get(SUMMARY_VARIABLE)
    if summary and outputs.stdout is GateFormat.GITHUB:
        _append(Path(summary), _render(GateFormat.MARKDOWN, verdict, comparison, command, limits_file))


def _append(path: Path, text: str) -> None:
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"cannot write the job summary {path}: {error.strerror or error}") from error


def _render(
    form: GateFormat, verdict: Verdict, comparison: Comparison | None, command: str, limits_file: Path | None
) -> str:
    file = None if limits_file is None else limits_file.as_posix()
    if form is GateFormat.JSON:
        from rankscope.renderers.check_json import render_check_json

        return render_check_json(verdict, comparison)
    if form is GateFormat.MARKDOWN:
        from rankscope.renderers.check_markdown import render_check_markdown

        return render_check_markdown(verdict, comparison)
    if form is GateFormat.JUNIT:
        from rankscope.renderers.to_junit import render_junit

        return render_junit(verdict)
    if form is GateFormat.GITHUB:
        from rankscope.renderers.to_github import render_github

        return render_github(verdict, file)
    if form is GateFormat.GITLAB:
        from rankscope.renderers.to_gitlab import render_gitlab

        return render_gitlab(verdict, file)
    if comparison is not None and form is GateFormat.HTML:
        from rankscope.renderers.comparison_html import render_comparison_html

        return render_comparison_html(comparison, verdict)
    if comparison is not None and form is GateFormat.CSV:
        from rankscope.renderers.comparison_csv import render_comparison_csv

        return render_comparison_csv(comparison)
    return _render_console(verdict, comparison, command)


def _render_console(verdict: Verdict, comparison: Comparison | None, command: str) -> str:
    width, color = terminal_width(), sys.stdout.isatty()
    if command == "compare" and comparison is not None:
        from rankscope.renderers.comparison_console import render_comparison_console

        return render_comparison_console(comparison, verdict, width=width, color=color)
    from rankscope.renderers.check_console import render_check_console

    return render_check_console(verdict, comparison, width=width, color=color)
