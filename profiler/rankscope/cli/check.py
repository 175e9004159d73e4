"""`rankscope check`: a run held against limits."""

from __future__ import annotations

from pathlib import Path

import typer

from rankscope.cli.gate_inputs import read_limits, read_side
from rankscope.cli.gate_outputs import EXIT_BROKEN, EXIT_COULD_NOT, GateFormat, choose_outputs, write_outputs
from rankscope.errors import UsageError


def check(
    run: str = typer.Argument(
        ..., help="Traces (a file, a directory, an fsspec URL), or a report saved as JSON."
    ),
    config: Path | None = typer.Option(
        None, "--config", help="File with the limits. [default: rankscope.toml, if it is here]"
    ),
    limit: list[str] = typer.Option(
        [], "--limit", help="One more limit, such as min_overlap_ratio=0.6 or step.max_duration_ms=120."
    ),
    baseline: str | None = typer.Option(
        None, help="Also compare with this: a baseline, a saved report or traces. [default: the config's]"
    ),
    max_regression: list[str] = typer.Option(
        [], help="How much worse than the baseline figures may be: overlap_ratio=2pp,exposed=5%."
    ),
    fail_on_worse: bool = typer.Option(
        False,
        "--fail-on-worse",
        help="A headline figure that is significantly worse than the baseline breaks a limit.",
    ),
    allow_undefined: bool = typer.Option(
        False, "--allow-undefined", help="A figure without a value breaks no limit."
    ),
    report_format: GateFormat = typer.Option(GateFormat.CONSOLE, "--format", help="What goes to stdout."),
    junit: Path | None = typer.Option(None, help="Write JUnit XML here."),
    gitlab: Path | None = typer.Option(None, help="Write GitLab code quality JSON here."),
    markdown: Path | None = typer.Option(None, help="Write Markdown for a comment here."),
    json: Path | None = typer.Option(None, help="Write JSON here."),
    html: Path | None = typer.Option(None, help="Write the comparison with the baseline as HTML here."),
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
    """Hold a run against limits. Exit status 0: all are kept; 1: one is broken or not measured; 2: could not do it."""
    from rankscope.gate.compare import compare
    from rankscope.gate.limits_file import parse_limit_flags
    from rankscope.gate.regressions import parse_regressions
    from rankscope.gate.verdict import judge_run

    limits_file, path = read_limits(config, allow_undefined=allow_undefined)
    limits = limits_file.limits + parse_limit_flags(limit, allow_undefined=allow_undefined)
    regressions = limits_file.regressions + parse_regressions(max_regression, allow_undefined=allow_undefined)
    base_source = _find_baseline(baseline, limits_file.baseline, path)
    against_base = bool(regressions) or fail_on_worse
    _require_limits(limits=bool(limits), against_base=against_base, has_base=base_source is not None)
    outputs = choose_outputs(
        report_format,
        {
            GateFormat.JUNIT: junit,
            GateFormat.GITLAB: gitlab,
            GateFormat.MARKDOWN: markdown,
            GateFormat.JSON: json,
            GateFormat.HTML: html,
        },
        force=force,
        has_comparison=base_source is not None,
    )
    head = read_side(run, comm_pattern, processes)
    if head.report is None:
        raise UsageError(f"{run} is a baseline: check traces or a saved report, and give it as --baseline")
    base = None if base_source is None else read_side(base_source, comm_pattern, processes)
    comparison = None if base is None else compare(base.baseline, head.baseline, regressions)
    verdict = judge_run(
        head.report, limits, comparison, fail_on_worse=fail_on_worse, allow_undefined=allow_undefined
    )
    write_outputs(outputs, verdict, comparison, command="check", limits_file=path)
    if head.is_partial or (base is not None and base.is_partial):
        raise typer.Exit(EXIT_COULD_NOT)
    if verdict.failed:
        raise typer.Exit(EXIT_BROKEN)


def _find_baseline(given: str | None, configured: str | None, config: Path | None) -> str | None:
    """The baseline that was given, else the config's, whose path is relative to the config."""
    if given is not None or configured is None or config is None:
        return given
    return configured if "://" in configured else str(config.parent / configured)


def _require_limits(*, limits: bool, against_base: bool, has_base: bool) -> None:
    if not limits and not against_base:
        raise UsageError(
            "no limit is set: write some into rankscope.toml (docs/ci.md), or give --limit min_overlap_ratio=0.6"
        )
    if against_base and not has_base:
        raise UsageError(
            "there are limits on regressions but nothing to compare with: give --baseline, or name it in the config"
        )
