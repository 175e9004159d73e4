"""`rankscope inspect`: what is in the files, before any figure is worked out."""

from __future__ import annotations

import json
from collections import Counter
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankscope.cli.options import CommPatterns, NoCache, Processes, RunToRead
from rankscope.cli.output import print_report
from rankscope.cli.status import EXIT_COULD_NOT
from rankscope.units import format_duration

if TYPE_CHECKING:
    from rankscope.model.run import Run, TraceWindow


class InspectFormat(str, Enum):
    """Formats of `inspect`."""

    CONSOLE = "console"
    JSON = "json"


_Format = Annotated[InspectFormat, typer.Option("--format", help="Format of the output.")]


def inspect(
    run: RunToRead,
    *,
    report_format: _Format = InspectFormat.CONSOLE,
    comm_pattern: CommPatterns,
    processes: Processes = 0,
    no_cache: NoCache = False,
) -> None:
    """Ranks, windows, steps, events, process groups and problems of the files of a run."""
    from rankscope.cli.reading import read_with_progress
    from rankscope.readers.run_reader import ReadOptions

    options = ReadOptions(communication_patterns=tuple(comm_pattern), processes=processes)
    found = read_with_progress(run, options, use_cache=not no_cache)
    facts = describe_run(found)
    if report_format is InspectFormat.JSON:
        print_report(json.dumps(facts, indent=2, allow_nan=False) + "\n", is_for_people=False)
    else:
        print_report(_to_text(facts), is_for_people=True)
    if any(problem.severity == "error" for problem in found.problems):
        raise typer.Exit(EXIT_COULD_NOT)


def describe_run(run: Run) -> dict[str, Any]:
    """What the files hold, as plain data."""
    return {
        "name": run.name,
        "source": run.source,
        "world_size": run.world_size,
        "ranks": list(run.ranks),
        "missing_ranks": list(run.missing_ranks),
        "cpu_only": run.is_cpu_only,
        "windows": [_describe_window(window) for window in run.windows],
        "problems": [
            {"file": p.file, "offset": p.offset, "kind": p.kind, "severity": p.severity, "message": p.message}
            for p in run.problems
        ],
    }


def _describe_window(window: TraceWindow) -> dict[str, Any]:
    from rankscope.correlate.steps import find_steps
    from rankscope.model.categories import Category, EventClass

    table = window.table
    categories = Counter(Category(int(c)).name.lower() for c in table.category)
    on_device = table.device >= 0
    classes = Counter(EventClass(int(c)).name.lower() for c in table.event_class[on_device])
    return {
        "rank": window.rank,
        "rank_source": window.rank_source,
        "window": window.window,
        "file": window.file,
        "backend": window.backend,
        "host": window.host,
        "versions": window.versions,
        "span_ns": int(table.end_ns.max() - table.start_ns.min()) if len(table) else 0,
        "steps": find_steps(table).numbers.tolist(),
        "devices": list(table.gpu_devices()),
        "events": dict(sorted(categories.items())),
        "device_events": dict(sorted(classes.items())),
        "groups": [
            {"name": g.name, "description": g.description, "ranks": list(g.ranks)} for g in window.groups
        ],
        "collector": window.manifest is not None,
    }


def _to_text(facts: dict[str, Any]) -> str:
    from rich.table import Table

    from rankscope.cli.terminal import table_text
    from rankscope.model.groups import compact_ranks
    from rankscope.renderers.escape import MESSAGE_LIMIT, make_inert

    world = facts["world_size"] if facts["world_size"] is not None else "unknown"
    ranks = compact_ranks(facts["ranks"]) or "none"
    lines = [f"{make_inert(facts['name'])}: ranks {ranks}, world size {world}"]
    if facts["missing_ranks"]:
        lines.append(f"missing ranks: {compact_ranks(facts['missing_ranks'])}")
    table = Table(
        "rank", "window", "file", "span", "steps", "devices", "events", "communication", "groups", box=None
    )
    for window in facts["windows"]:
        communication = window["device_events"].get("communication", 0)
        devices = ",".join(map(str, window["devices"])) or ("cpu" if facts["cpu_only"] else "none")
        table.add_row(
            f"{window['rank']}" + ("" if window["rank_source"] == "distributedInfo" else "*"),
            str(window["window"]),
            make_inert(window["file"]),
            format_duration(window["span_ns"]),
            compact_ranks(window["steps"]) or "none",
            devices,
            str(sum(window["events"].values())),
            str(communication) if not facts["cpu_only"] else "-",
            str(len(window["groups"])),
        )
    lines.append(table_text(table))
    if any(window["rank_source"] != "distributedInfo" for window in facts["windows"]):
        lines.append("* rank not from the trace's distributedInfo, see the problems")
    for problem in facts["problems"]:
        offset = "" if problem["offset"] is None else f" at byte {problem['offset']}"
        message = make_inert(problem["message"], MESSAGE_LIMIT)
        lines.append(f"{problem['severity']}: {make_inert(problem['file'])}{offset}: {message}")
    return "\n".join(lines) + "\n"
