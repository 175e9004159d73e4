"""`rankscope compare`: how one run differs from another."""

from __future__ import annotations

from pathlib import Path

import typer

from rankscope.cli.gate_inputs import read_side
from rankscope.cli.gate_outputs import EXIT_BROKEN, EXIT_COULD_NOT, GateFormat, choose_outputs, write_outputs


def compare(
    base: str = typer.Argument(..., help="What to compare with: traces, a saved report, or a baseline."),
    head: str = typer.Argument(..., help="What to compare: traces, a saved report, or a baseline."),
    max_regression: list[str] = typer.Option(
        [],
        help="How much worse figures may be, noise or not: overlap_ratio=2pp,exposed=5%. Exit status 1 if more.",
    ),
    fail_on_worse: bool = typer.Option(
        False, "--fail-on-worse", help="Exit status 1 if a headline figure is significantly worse."
    ),
    allow_undefined: bool = typer.Option(
        False, "--allow-undefined", help="A figure without a value breaks no limit."
    ),
    report_format: GateFormat = typer.Option(GateFormat.CONSOLE, "--format", help="What goes to stdout."),
    html: Path | None = typer.Option(None, help="Write both runs side by side as HTML here."),
    markdown: Path | None = typer.Option(None, help="Write Markdown for a comment here."),
    json: Path | None = typer.Option(None, help="Write JSON here."),
    csv: Path | None = typer.Option(None, help="Write the figures as CSV here."),
    junit: Path | None = typer.Option(None, help="Write JUnit XML of the limits here."),
    gitlab: Path | None = typer.Option(None, help="Write GitLab code quality JSON of the limits here."),
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
