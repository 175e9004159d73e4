"""The report for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO

from rich import box
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from rankscope.model.report import Finding, ProblemRow, RankRow, Report
from rankscope.renderers.escape import MESSAGE_LIMIT, bind_units, make_inert
from rankscope.renderers.palette import PARTS, split_window
from rankscope.renderers.report_tables import (
    build_group_table,
    build_rank_table,
    build_step_table,
    name_place,
    name_rank,
    pick_ranks,
    sort_findings,
    sort_problems,
)
from rankscope.renderers.tables import Cell, Table
from rankscope.renderers.verdict import describe_run, write_verdict

RANKS_SHOWN = 16
STEPS_SHOWN = 20
GROUPS_SHOWN = 20
PROBLEMS_SHOWN = 20
_WIDE = 100
_INDENT = 2
_COLUMN_GAP = 3
_SHORTEST_TEXT = 20

# A number is not parted from its unit at the end of a line. Rich breaks at a no-break space too, so a
# private character stands in until the lines are made; inert text holds none.
_NO_BREAK = "\ue000"
_SEVERITY_STYLES = {
    "critical": "bold red",
    "error": "bold red",
    "warning": "yellow",
    "info": "cyan",
    "note": "dim",
}


def render_console(report: Report, *, width: int = 100, color: bool = False) -> str:
    """The report as text for a terminal, ending with a line break.

    Args:
        report: the report.
        width: columns of the terminal.
        color: whether to use terminal colours.
    """
    # An empty environment: NO_COLOR, TERM and the like are the caller's to decide on.
    console = Console(
        file=StringIO(),
        width=width,
        force_terminal=color,
        color_system="256" if color else None,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
        _environ={},
    )
    with console.capture() as capture:
        for section in _list_sections(report, width):
            console.print(section)
    text = capture.get().replace(_NO_BREAK, " ")
    lines = (line if color else line.rstrip() for line in text.splitlines())
    return "\n".join(lines).strip("\n") + "\n"


def _list_sections(report: Report, width: int) -> list[RenderableType]:
    tables = (
        build_rank_table(report, RANKS_SHOWN),
        build_step_table(report, STEPS_SHOWN),
        build_group_table(report, GROUPS_SHOWN),
    )
    sections: list[RenderableType] = [_draw_verdict(report), _draw_findings(sort_findings(report))]
    for table in tables:
        sections.append(_draw_table(table, width))
        if table.title == "Ranks":
            sections.append(_draw_bars(report, width))
    sections.append(_draw_problems(sort_problems(report)))
    return [section for section in sections if section is not _NOTHING]


_NOTHING = Text("")


def _draw_verdict(report: Report) -> RenderableType:
    first, *others = write_verdict(report)
    title = Text.assemble(("rankscope", "bold"), "  ", make_inert(report.run.name))
    lines = [title, Text(describe_run(report), style="dim"), Text(""), _draw_text(first, style="bold")]
    return Group(*lines, *(_draw_text(statement) for statement in others))


def _draw_text(text: str, style: str = "") -> Text:
    return Text(bind_units(make_inert(text, MESSAGE_LIMIT), _NO_BREAK), style=style)


def _title(text: str) -> Text:
    return Text(f"\n{text}", style="bold")


def _draw_findings(findings: Sequence[Finding]) -> RenderableType:
    if not findings:
        return _NOTHING
    items = [(f.severity, f"{name_place(f)}: {f.message}", f"→ {f.hint}" if f.hint else "") for f in findings]
    return Group(_title("Findings"), _draw_items(items))


def _draw_problems(problems: Sequence[ProblemRow]) -> RenderableType:
    if not problems:
        return _NOTHING
    items = [(p.severity, _name_origin(p), p.message) for p in problems[:PROBLEMS_SHOWN]]
    left_out = len(problems) - len(items)
    notes = [f"{left_out:,} more are in the JSON report."] if left_out else []
    return Group(_title("Problems"), _draw_items(items), *_draw_notes(notes))


def _name_origin(problem: ProblemRow) -> str:
    file = make_inert(problem.file or "the whole run")
    return file if problem.offset is None else f"{file}, byte {problem.offset:,}"


def _draw_items(items: Sequence[tuple[str, str, str]]) -> RenderableType:
    grid = Grid.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for severity, head, body in items:
        label = Text(make_inert(severity), style=_SEVERITY_STYLES.get(severity, ""))
        grid.add_row(label, _draw_text(head))
        if body:
            grid.add_row("", _draw_text(body))
    return Padding(grid, (0, 0, 0, _INDENT))


def _draw_table(table: Table, width: int) -> RenderableType:
    if not table.rows:
        return _NOTHING
    columns = _choose_columns(table, width - _INDENT)
    grid = Grid(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, show_edge=False)
    for index, label in columns:
        is_number = table.columns[index].numeric
        grid.add_column(
            label,
            justify="right" if is_number else "left",
            no_wrap=is_number,
            overflow="fold",
            header_style="",
        )
    for row in table.rows:
        grid.add_row(*(_draw_cell(row[index]) for index, _ in columns))
    return Group(_title(table.title), Padding(grid, (0, 0, 0, _INDENT)), *_draw_notes(table.notes))


def _choose_columns(table: Table, space: int) -> list[tuple[int, str]]:
    """Index and heading of the columns that fit, so that no number is ever cut.

    Headings are shortened first, then columns that can be spared are left out, the last one first.
    """
    choice = [(index, column.label) for index, column in enumerate(table.columns)]
    if _measure_columns(table, choice) > space:
        choice = [(index, column.short or column.label) for index, column in enumerate(table.columns)]
    for index in reversed(range(len(table.columns))):
        if table.columns[index].wide and _measure_columns(table, choice) > space:
            choice = [(kept, label) for kept, label in choice if kept != index]
    return choice


def _measure_columns(table: Table, columns: Sequence[tuple[int, str]]) -> int:
    total = -_COLUMN_GAP
    for index, label in columns:
        longest = max(cell_len(text) for text in (label, *(row[index].text for row in table.rows)))
        # Text can be folded, numbers cannot.
        total += _COLUMN_GAP + (longest if table.columns[index].numeric else min(longest, _SHORTEST_TEXT))
    return total


def _draw_cell(cell: Cell) -> Text:
    return Text(cell.text, style="dim" if cell.reason is not None else "")


def _draw_notes(notes: Sequence[str]) -> list[RenderableType]:
    return [Padding(_draw_text(note, style="dim"), (0, 0, 0, _INDENT)) for note in notes]


def _draw_bars(report: Report, width: int) -> RenderableType:
    kept, _ = pick_ranks(report, RANKS_SHOWN)
    rows = [row for row in kept if row.window_ns]
    if not rows:
        return _NOTHING
    label_width = max(len(name_rank(report, row)) for row in rows) + len("rank ")
    longest = max(row.window_ns or 0 for row in rows)
    space = max(10, min(width - label_width - 4, 100))
    lines: list[RenderableType] = []
    for row in rows:
        label = f"  rank {name_rank(report, row)}".ljust(label_width + 3)
        lines.append(Text(label).append_text(_draw_bar(row, space * (row.window_ns or 0) / longest)))
    legend = Text("  ")
    for part in PARTS:
        label = part.label if width >= _WIDE else part.label.replace("communication", "comm.")
        legend.append(part.block, style=part.light).append(f" {label}   ")
    return Group(_title("Where the window goes"), *lines, legend)


def _draw_bar(row: RankRow, length: float) -> Text:
    bar = Text()
    reached_ns, drawn = 0, 0
    for part, ns in split_window(row):
        # Rounding the running sum keeps the bar's length right whatever the parts are.
        reached_ns += ns
        reach = round(length * reached_ns / row.window_ns) if row.window_ns else 0
        bar.append(part.block * (reach - drawn), style=part.light)
        drawn = max(drawn, reach)
    return bar
