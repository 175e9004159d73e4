"""`rankscope check`: a run held against limits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankscope.cli.gate_inputs import read_limits, read_side
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
from rankscope.errors import UsageError

_Run = Annotated[
    str, typer.Argument(help="Traces (a file, a directory, an fsspec URL), or a report saved as JSON.")
]
_Config = Annotated[
    Path | None, typer.Option(show_default="rankscope.toml, if it is here", help="File with the limits.")
]
_Limits = Annotated[
    list[str],
    typer.Option(
        default_factory=list,
        show_default=False,
        help="One more limit, such as min_overlap_ratio=0.6 or step.max_duration_ms=120.",
    ),
]
_Baseline = Annotated[
    str | None,
    typer.Option(
        show_default="the config's", help="Also compare with this: a baseline, a saved report or traces."
    ),
]
_Regressions = Annotated[
    list[str],
    typer.Option(
        default_factory=list,
        show_default=False,
        help="How much worse than the baseline figures may be: overlap_ratio=2pp,exposed=5%.",
    ),
]
_FailOnWorse = Annotated[
    bool,
    typer.Option(
        "--fail-on-worse",
        help="A headline figure that is significantly worse than the baseline breaks a limit.",
    ),
]
_HtmlFile = Annotated[Path | None, typer.Option(help="Write the comparison with the baseline as HTML here.")]


def check(
    run: _Run,
    *,
    config: _Config = None,
    limit: _Limits,
    baseline: _Baseline = None,
    max_regression: _Regressions,
    fail_on_worse: _FailOnWorse = False,
    allow_undefined: AllowUndefined = False,
    report_format: GateFormatOption = GateFormat.CONSOLE,
    junit: JunitFile = None,
    gitlab: GitlabFile = None,
    markdown: MarkdownFile = None,
    json: JsonFile = None,
    html: _HtmlFile = None,
    force: Force = False,
    comm_pattern: CommPatterns,
    processes: Processes = 0,
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
