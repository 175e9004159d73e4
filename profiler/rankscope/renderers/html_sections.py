"""What stands on the page, section by section: sentences, a plot with its legend, tables."""

from __future__ import annotations

from dataclasses import dataclass

from rankscope.model.report import Report
from rankscope.model.timeline import Timeline
from rankscope.renderers.advice_output import build_alternative_table, explain_advice
from rankscope.renderers.advice_tables import build_advice_table, write_advice, write_code
from rankscope.renderers.bucket_charts import build_bucket_chart, build_cap_chart
from rankscope.renderers.bucket_tables import (
    build_bucket_table,
    build_layout_table,
    describe_layout,
    pick_bucket_step,
)
from rankscope.renderers.charts import Figure, build_step_chart, build_window_chart
from rankscope.renderers.palette import PARTS
from rankscope.renderers.report_tables import (
    build_group_table,
    build_problem_table,
    build_rank_table,
    build_step_table,
)
from rankscope.renderers.straggler_charts import build_arrival_chart, build_wait_chart
from rankscope.renderers.straggler_tables import (
    build_clock_table,
    build_evidence_table,
    build_late_table,
    build_waiting_table,
    explain_verdict,
)
from rankscope.renderers.tables import Table
from rankscope.renderers.wait_matrix import build_wait_matrix

ROWS_SHOWN = 1_000
"""Rows of a table above which a page gets slow; the JSON report holds all."""

_LATE_SHOWN = 50
_MAP_RANKS = 64
_MAP_STEPS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class LegendItem:
    """One entry of a legend: the colour's name, and "" or "faint", "open" or "line" for its shape."""

    part: str
    label: str
    shape: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A plot or a table with what explains it.

    Attributes:
        title: heading below the section's; "" if it needs none.
        statements: sentences above it.
        chart: name of the plot; None without one.
        figure: the plot.
        legend: of the plot.
        table: the table; None without one.
        code: a line of code.
        notes: lines below the plot.
    """

    title: str = ""
    statements: tuple[str, ...] = ()
    chart: str | None = None
    figure: Figure | None = None
    legend: tuple[LegendItem, ...] = ()
    table: Table | None = None
    code: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A section of the page."""

    title: str
    blocks: tuple[Block, ...]


def list_first_sections(report: Report) -> tuple[Section, ...]:
    """What stands above the timeline."""
    return _keep_filled(_windows(report), _steps(report), _waiting(report))


def list_last_sections(report: Report, timeline: Timeline | None) -> tuple[Section, ...]:
    """What stands below the timeline."""
    return _keep_filled(
        _buckets(report, timeline),
        _advice(report),
        *(
            _section(table.title, _table_block(table))
            for table in (
                build_rank_table(report, ROWS_SHOWN),
                build_step_table(report, ROWS_SHOWN),
                build_group_table(report, ROWS_SHOWN),
                build_clock_table(report, ROWS_SHOWN),
                build_problem_table(report, ROWS_SHOWN),
            )
        ),
    )


def _keep_filled(*sections: Section) -> tuple[Section, ...]:
    return tuple(section for section in sections if section.blocks)


def _section(title: str, *blocks: Block | None) -> Section:
    return Section(title=title, blocks=tuple(block for block in blocks if block is not None))


def _table_block(table: Table, title: str = "") -> Block | None:
    return Block(title=title, table=table) if table.rows else None


def _windows(report: Report) -> Section:
    figure = build_window_chart(report)
    legend = tuple(LegendItem(part=part.slug, label=part.label) for part in PARTS)
    chart = None if figure is None else Block(chart="windows", figure=figure, legend=legend)
    return _section("Where the time goes, per rank", chart)


def _steps(report: Report) -> Section:
    figure = build_step_chart(report)
    if figure is None:
        return _section("")
    legend = [LegendItem(part="compute", label="all ranks together")]
    if len(report.run.ranks) > 1:
        legend.append(LegendItem(part="compute", label="lowest to highest rank", shape="faint"))
    if any(not row.steady for row in report.steps if row.step is not None):
        legend.append(LegendItem(part="compute", label="not a steady step", shape="open"))
    return _section(
        "Hidden communication per step", Block(chart="steps", figure=figure, legend=tuple(legend))
    )


def _waiting(report: Report) -> Section:
    straggler = report.straggler
    if straggler is None or len(straggler.by_rank) < 2:
        return _section("")
    statements = explain_verdict(report)
    return _section(
        "Who the others wait for",
        Block(statements=statements) if statements else None,
        _table_block(build_waiting_table(report, ROWS_SHOWN)),
        _wait_map(report),
        _evidence(report),
        _arrivals(report),
        _late(report),
    )


def _wait_map(report: Report) -> Block | None:
    matrix = build_wait_matrix(report, ranks=_MAP_RANKS, steps=_MAP_STEPS)
    if matrix is None:
        return None
    return Block(title=matrix.title, chart="waits", figure=build_wait_chart(matrix), notes=matrix.notes)


def _evidence(report: Report) -> Block | None:
    table = build_evidence_table(report, ROWS_SHOWN)
    return _table_block(table, table.title)


def _arrivals(report: Report) -> Block | None:
    figure = build_arrival_chart(report)
    if figure is None:
        return None
    legend = (
        LegendItem(part="compute", label="a rank arrives", shape="round"),
        LegendItem(part="waiting", label="ranks wait"),
        LegendItem(part="exposed", label="the last rank arrives"),
    )
    return Block(title="Who arrived when", chart="arrivals", figure=figure, legend=legend)


def _late(report: Report) -> Block | None:
    table = build_late_table(report, _LATE_SHOWN)
    return _table_block(table, table.title)


def _buckets(report: Report, timeline: Timeline | None) -> Section:
    table = build_bucket_table(report, ROWS_SHOWN)
    if not table.rows:
        return _section("")
    layout = build_layout_table(report, ROWS_SHOWN)
    return _section(
        "Buckets",
        Block(statements=describe_layout(report)),
        _bucket_chart(report, timeline),
        _table_block(table),
        _table_block(layout, layout.title),
    )


def _bucket_chart(report: Report, timeline: Timeline | None) -> Block | None:
    figure = build_bucket_chart(report, timeline)
    if figure is None:
        return None
    row = pick_bucket_step(report, None if timeline is None else timeline.step)[0]
    legend = [
        LegendItem(part="compute", label="compute"),
        LegendItem(part="text", label="gradients ready", shape="line"),
        LegendItem(part="idle", label="waits for its host"),
        LegendItem(part="annotation", label="waits for its turn"),
        LegendItem(part="waiting", label="waits for other ranks"),
        LegendItem(part="hidden", label="transfer"),
    ]
    if not any(trace.get("name") == "compute" for trace in figure["data"]):
        legend = legend[1:]
    title = f"Step {row.step} on rank {row.rank}, the one with the most exposed time in buckets"
    return Block(title=title, chart="buckets", figure=figure, legend=tuple(legend))


def _advice(report: Report) -> Section:
    statements = write_advice(report)
    if not statements:
        return _section("")
    figure = build_cap_chart(report)
    legend = (
        LegendItem(part="compute", label="predicted step"),
        LegendItem(part="compute", label="range of the model", shape="faint"),
        LegendItem(part="text", label="in use", shape="ring"),
        LegendItem(part="exposed", label="best"),
    )
    table, others = build_advice_table(report, ROWS_SHOWN), build_alternative_table(report)
    explained = explain_advice(report.advice)
    return _section(
        "Advice",
        Block(statements=statements, code=write_code(report)),
        None if figure is None else Block(chart="caps", figure=figure, legend=legend),
        _table_block(table),
        _table_block(others, others.title),
        Block(statements=explained) if explained else None,
    )
