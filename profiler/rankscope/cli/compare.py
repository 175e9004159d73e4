"""`rankscope compare`: how one run differs from another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankscope.cli.gate_inputs import read_side
from rankscope.cli.gate_outputs import GateFormat, GateFormatOption, choose_outputs, write_outputs
from rankscope.cli.options import (
    AllowUndefined,
    CommPatterns,
    Force,
    GitlabFile,
    JsonFile,
    JunitFile,
    MarkdownFile,
    Processes,
)
from rankscope.cli.status import EXIT_BROKEN, EXIT_COULD_NOT

_Base = Annotated[str, typer.Argument(help="What to compare with: traces, a saved report, or a baseline.")]
_Head = Annotated[str, typer.Argument(help="What to compare: traces, a saved report, or a baseline.")]
_Regressions = Annotated[
    list[str],
    typer.Option(
        default_factory=list,
        show_default=False,
        help="How much worse figures may be, noise or not: overlap_ratio=2pp,exposed=5%. Exit status 1 if more.",
    ),
]
_FailOnWorse = Annotated[
    bool, typer.Option("--fail-on-worse", help="Exit status 1 if a headline figure is significantly worse.")
]
_HtmlFile = Annotated[Path | None, typer.Option(help="Write both runs side by side as HTML here.")]
_CsvFile = Annotated[Path | None, typer.Option(help="Write the figures as CSV here.")]


def compare(
    base: _Base,
    head: _Head,
    *,
    max_regression: _Regressions,
    fail_on_worse: _FailOnWorse = False,
    allow_undefined: AllowUndefined = False,
    report_format: GateFormatOption = GateFormat.CONSOLE,
    html: _HtmlFile = None,
    markdown: MarkdownFile = None,
    json: JsonFile = None,
    csv: _CsvFile = None,
    junit: JunitFile = None,
    gitlab: GitlabFile = None,
    force: Force = False,
    comm_pattern: CommPatterns,
    processes: Processes = 0,
) -> None:
    """Differences of two runs, and whether they are more than noise. Exit status 1 only for a limit that is broken."""
    from rankscope.gate.compare import compare as compare_sides
    from rankscope.gate.regressions import parse_regressions
    from rankscope.gate.verdict import judge_comparison

    limits = parse_regressions(max_regression, allow_undefined=allow_undefined)
    outputs = choose_outputs(
        report_format,
        {
            GateFormat.HTML: html,
            GateFormat.MARKDOWN: markdown,
            GateFormat.JSON: json,
            GateFormat.CSV: csv,
            GateFormat.JUNIT: junit,
            GateFormat.GITLAB: gitlab,
        },
        force=force,
        has_comparison=True,
    )
    sides = [read_side(source, comm_pattern, processes) for source in (base, head)]
    comparison = compare_sides(sides[0].baseline, sides[1].baseline, limits)
    verdict = judge_comparison(comparison, head, fail_on_worse=fail_on_worse, allow_undefined=allow_undefined)
    write_outputs(outputs, verdict, comparison, command="compare", limits_file=None)
    if any(side.is_partial for side in sides):
        raise typer.Exit(EXIT_COULD_NOT)
    if verdict.failed:
        raise typer.Exit(EXIT_BROKEN)
