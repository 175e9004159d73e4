"""The tables of a report, the same for every format."""

from __future__ import annotations

from collections.abc import Sequence

from rankscope.model.report import Finding, GroupRow, Measures, ProblemRow, RankRow, Report
from rankscope.renderers.escape import MESSAGE_LIMIT
from rankscope.renderers.headline import StepSummary, summarise_steps
from rankscope.renderers.tables import (
    Cell,
    Column,
    Table,
    count_cell,
    duration_cell,
    finish_table,
    keep_worst,
    number_cell,
    ratio_cell,
    size_cell,
    take_median,
    text_cell,
)
from rankscope.renderers.undefined import Reasons, make_path

SEVERITIES = ("critical", "error", "warning", "info", "note")
"""Of findings and problems, the gravest first."""

_RANK_COLUMNS = (
    Column(label="Rank"),
    Column(label="Host", numeric=False, wide=True),
    Column(label="Window", term="Window"),
    Column(label="Compute", term="Compute"),
    Column(label="Communication", short="Comm.", term="Communication"),
    Column(label="Hidden", term="Hidden"),
    Column(label="Exposed", term="Exposed"),
    Column(label="Exposed share", wide=True, term="Exposed"),
    Column(label="Exposed memory", short="Memory", term="Exposed memory"),
    Column(label="Idle", term="Idle"),
)

_STEP_COLUMNS = (
    Column(label="Step", term="Step"),
    Column(label="Steady", numeric=False, term="Steady"),
    Column(label="Duration", term="Step"),
    Column(label="Communication", short="Comm.", term="Communication"),
    Column(label="Hidden", term="Hidden"),
    Column(label="Hidden, worst rank", wide=True, term="Hidden"),
    Column(label="Exposed", term="Exposed"),
    Column(label="Exposed share", wide=True, term="Exposed"),
)

_GROUP_COLUMNS = (
    Column(label="Group", numeric=False),
    Column(label="Operation", numeric=False),
    Column(label="Count", wide=True),
    Column(label="Bytes", wide=True),
    Column(label="Time", term="Communication"),
    Column(label="Hidden", term="Hidden"),
    Column(label="Exposed", term="Exposed"),
    Column(label="Bus bandwidth", short="Bus", term="Bus bandwidth"),
)

_PROBLEM_COLUMNS = (
    Column(label="Severity", numeric=False),
    Column(label="File", numeric=False),
    Column(label="Byte"),
    Column(label="What", numeric=False),
)


def pick_ranks(report: Report, limit: int) -> tuple[tuple[RankRow, ...], int]:
    """The rows per rank with the most exposed communication, in order, and how many were left out."""
    return keep_worst(report.ranks, lambda row: row.exposed_communication_ns, limit)


def name_rank(report: Report, row: RankRow) -> str:
    """The rank's number, with the device where ranks have several.

    Args:
        report: the report.
        row: one of its rows.
    """
    several = len({r.rank for r in report.ranks}) < len(report.ranks)
    return f"{row.rank} (GPU {row.device})" if several else str(row.rank)


def build_rank_table(report: Report, limit: int) -> Table:
    """One row per rank and device; above `limit` the worst ones and the median of all."""
    reasons = Reasons(report.undefined)
    kept, left_out = pick_ranks(report, limit)
    rows = [_rank_cells(report, row, reasons) for row in kept]
    notes = []
    if left_out:
        rows.append(_median_cells(report.ranks))
        notes.append(
            f"Shown: the {len(kept):,} of {len(report.ranks):,} rows with the most exposed communication, "
            "and the median of all."
        )
    return finish_table("Ranks", *drop_single_host(report, _RANK_COLUMNS, rows), notes)


def drop_single_host(
    report: Report, columns: Sequence[Column], rows: Sequence[Sequence[Cell]]
) -> tuple[Sequence[Column], Sequence[Sequence[Cell]]]:
    """Columns and rows without the second column, which names the host, where the ranks have only one."""
    if len(set(report.run.host.values())) > 1:
        return columns, rows
    return [columns[0], *columns[2:]], [[row[0], *row[2:]] for row in rows]


def _rank_cells(report: Report, row: RankRow, reasons: Reasons) -> list[Cell]:
    def why(figure: str) -> str | None:
        return reasons.find(make_path("ranks", {"rank": row.rank, "device": row.device}, figure))

    first = Cell(text=name_rank(report, row), value=row.rank)
    host = text_cell(row.host or report.run.host.get(row.rank, ""))
    return [first, host, *_measure_cells(row, why("window_ns"), why("overlap_ratio"), why("idle_ns"))]


def _measure_cells(
    row: Measures, no_window: str | None, no_overlap: str | None, no_idle: str | None
) -> list[Cell]:
    share = row.exposed_communication_ns / row.window_ns if row.window_ns else None
    return [
        duration_cell(row.window_ns, no_window),
        duration_cell(row.compute_ns),
        duration_cell(row.communication_ns),
        ratio_cell(row.overlap_ratio, no_overlap),
        duration_cell(row.exposed_communication_ns),
        ratio_cell(share, no_window or "the window is empty"),
        duration_cell(row.exposed_memory_ns),
        duration_cell(row.idle_ns, no_idle),
    ]


def _median_cells(rows: Sequence[RankRow]) -> list[Cell]:
    communication = sum(row.communication_ns for row in rows)
    overlap = sum(row.overlap_ns for row in rows)
    median = Measures(
        window_ns=take_median([row.window_ns for row in rows]),
        compute_ns=take_median([row.compute_ns for row in rows]) or 0,
        communication_ns=take_median([row.communication_ns for row in rows]) or 0,
        exposed_communication_ns=take_median([row.exposed_communication_ns for row in rows]) or 0,
        exposed_memory_ns=take_median([row.exposed_memory_ns for row in rows]) or 0,
        idle_ns=take_median([row.idle_ns for row in rows]),
        overlap_ratio=overlap / communication if communication else None,
    )
    unknown = "unknown on every rank"
    return [Cell(text="median"), Cell(text=""), *_measure_cells(median, unknown, unknown, unknown)]


def build_step_table(report: Report, limit: int) -> Table:
    """One row per step, over all ranks; above `limit` the ones with the most exposed communication."""
    reasons = Reasons(report.undefined)
    steps = summarise_steps(report)
    kept, left_out = keep_worst(steps, lambda step: step.exposed_ns, limit)
    notes = ["Times: median over the ranks. Hidden: of the communication of all ranks together."]
    if left_out:
        notes.append(f"Shown: the {limit:,} of {len(steps):,} steps with the most exposed communication.")
    rows = [_step_cells(step, reasons) for step in kept]
    return finish_table("Steps", _STEP_COLUMNS, rows, notes if rows else ())


def _step_cells(step: StepSummary, reasons: Reasons) -> list[Cell]:
    no_duration = reasons.find(step.path("duration_ns"))
    if step.step is None:
        no_duration = no_duration or "what runs outside steps has no duration"
    no_overlap = reasons.find(step.path("overlap_ratio"))
    share = step.exposed_ns / step.duration_ns if step.duration_ns else None
    return [
        Cell(text="outside steps" if step.step is None else str(step.step), value=step.step),
        Cell(text="yes" if step.steady else "no"),
        duration_cell(step.duration_ns, no_duration),
        duration_cell(step.communication_ns),
        ratio_cell(step.overlap_ratio, no_overlap),
        ratio_cell(step.overlap_low, no_overlap),
        duration_cell(step.exposed_ns),
        ratio_cell(share, no_duration),
    ]


def build_group_table(report: Report, limit: int) -> Table:
    """One row per process group and operation, the most exposed communication first."""
    reasons = Reasons(report.undefined)
    groups = sorted(report.groups, key=lambda row: -row.exposed_communication_ns)
    notes = ["Times: sum over the ranks."] if groups else []
    if len(groups) > limit:
        notes.append(f"Shown: the {limit:,} of {len(groups):,} rows with the most exposed communication.")
    rows = [_group_cells(row, reasons) for row in groups[:limit]]
    return finish_table("Process groups", _GROUP_COLUMNS, rows, notes)


def _group_cells(row: GroupRow, reasons: Reasons) -> list[Cell]:
    def why(figure: str) -> str | None:
        return reasons.find(make_path("groups", {"group": row.group, "op": row.op}, figure))

    return [
        text_cell(row.group),
        text_cell(row.op),
        count_cell(row.count),
        size_cell(row.size_bytes, why("size_bytes")),
        duration_cell(row.communication_ns),
        ratio_cell(row.overlap_ratio, why("overlap_ratio")),
        duration_cell(row.exposed_communication_ns),
        number_cell(row.bus_bandwidth_gbps, lambda v: f"{v:.3g} GB/s", why("bus_bandwidth_gbps")),
    ]


def build_problem_table(report: Report, limit: int) -> Table:
    """One row per problem, the gravest first."""
    problems = sort_problems(report)
    notes = [f"{len(problems) - limit:,} more are in the JSON report."] if len(problems) > limit else []
    rows = [
        (
            text_cell(problem.severity),
            text_cell(problem.file or "the whole run"),
            Cell(text="") if problem.offset is None else count_cell(problem.offset),
            text_cell(problem.message, MESSAGE_LIMIT),
        )
        for problem in problems[:limit]
    ]
    return finish_table("Problems", _PROBLEM_COLUMNS, rows, notes)


def sort_problems(report: Report) -> list[ProblemRow]:
    """The problems, the gravest first."""
    return sorted(report.problems, key=lambda problem: _gravity(problem.severity))


def sort_findings(report: Report) -> list[Finding]:
    """The findings, the gravest first."""
    return sorted(report.findings, key=lambda finding: _gravity(finding.severity))


def _gravity(severity: str) -> int:
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)


def name_place(finding: Finding) -> str:
    """Where a finding holds: "rank 3, step 5", or "all ranks"."""
    rank = "all ranks" if finding.rank is None else f"rank {finding.rank}"
    return rank if finding.step is None else f"{rank}, step {finding.step}"
