"""Drawing for a terminal: titles, texts, lists and tables that never cut a number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from io import StringIO

from rich import box
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from rankscope.renderers.escape import MESSAGE_LIMIT, bind_units, make_inert
from rankscope.renderers.tables import Cell, Table

INDENT = 2
NOTHING = Text("")
"""A section that is left out."""

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


def print_sections(sections: Iterable[RenderableType], *, width: int, color: bool) -> str:
    """The sections as text, ending with a line break.

    Args:
        sections: what to print; `NOTHING` is left out.
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
        for section in sections:
            if section is not NOTHING:
                console.print(section)
    text = capture.get().replace(_NO_BREAK, " ")
    lines = (line if color else line.rstrip() for line in text.splitlines())
    return "\n".join(lines).strip("\n") + "\n"


def draw_text(text: str, style: str = "") -> Text:
    """Text made inert, whose numbers keep their units."""
    return Text(bind_units(make_inert(text, MESSAGE_LIMIT), _NO_BREAK), style=style)


def draw_title(text: str) -> Text:
    """The heading of a section, with a line above it."""
    return Text(f"\n{text}", style="bold")


def draw_items(items: Sequence[tuple[str, str, str]]) -> RenderableType:
    """A list of (severity, head, body); an empty body is left out."""
    grid = Grid.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for severity, head, body in items:
        label = Text(make_inert(severity), style=_SEVERITY_STYLES.get(severity, ""))
        grid.add_row(label, draw_text(head))
        if body:
            grid.add_row("", draw_text(body))
    return Padding(grid, (0, 0, 0, INDENT))


def draw_notes(notes: Sequence[str]) -> list[RenderableType]:
    """Lines that stand below something, in grey."""
    return [Padding(draw_text(note, style="dim"), (0, 0, 0, INDENT)) for note in notes]


def draw_table(table: Table, width: int) -> RenderableType:
    """A table with its title and notes; `NOTHING` without rows."""
    if not table.rows:
        return NOTHING
    columns = _choose_columns(table, width - INDENT)
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
    return Group(draw_title(table.title), Padding(grid, (0, 0, 0, INDENT)), *draw_notes(table.notes))


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
