"""Drawing for a terminal: titles, texts, lists and tables that never cut a number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
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

_GAP = 3
_NARROW_GAP = 2
_SHORTEST_TEXT = 20
_LONGEST_WORD = 30

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
    return Text(_bind(make_inert(text, MESSAGE_LIMIT)), style=style)


def draw_lines(lines: Sequence[str]) -> RenderableType:
    """Sentences as lines with an empty one above them; `NOTHING` if there are none."""
    return Group(Text(""), *map(draw_text, lines)) if lines else NOTHING


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
    columns, gap = _choose_columns(table, width - INDENT)
    grid = Grid(box=box.SIMPLE_HEAD, padding=(0, 1, 0, gap - 2), pad_edge=False, show_edge=False)
    for column in columns:
        grid.add_column(
            column.label,
            justify="right" if table.columns[column.index].numeric else "left",
            width=column.width,
            overflow="fold",
            header_style="",
        )
    for row in table.rows:
        grid.add_row(*(_draw_cell(row[column.index]) for column in columns))
    shown = {column.index for column in columns}
    lost = [c.label for index, c in enumerate(table.columns) if index not in shown and not c.wide]
    notes = [*table.notes, *([f"No room for: {', '.join(lost)}."] if lost else [])]
    return Group(draw_title(table.title), Padding(grid, (0, 0, 0, INDENT)), *draw_notes(notes))


@dataclass(frozen=True, slots=True)
class _Shown:
    """A column that is shown: its place in the table, its heading, and its width with no line folded."""

    index: int
    label: str
    width: int
    comfortable: int
    """Width below which columns that can be spared are left out; less than `width` only where text may be folded."""
    longest_word: int
    """Width that folds between words only, but for very long ones."""
    least: int
    """Width that cuts no number, and folds words where there is no other way."""


def _choose_columns(table: Table, space: int) -> tuple[list[_Shown], int]:
    """The columns that fit, with widths that do, and the gap between them, so that no number is ever cut.

    Headings are shortened first, then columns that can be spared are left out, the last one first; then gaps become
    narrower and text is folded between words; at the very last other columns are left out, all but the first.
    """

    def is_wider(gap: int, widths: Iterable[int]) -> bool:
        return sum(width + gap for width in widths) - gap > space

    choice = [_measure_column(table, index, column.label) for index, column in enumerate(table.columns)]
    if is_wider(_GAP, (column.comfortable for column in choice)):
        choice = [_measure_column(table, i, c.short or c.label) for i, c in enumerate(table.columns)]
    for column in reversed(choice):
        if table.columns[column.index].wide and is_wider(_GAP, (kept.comfortable for kept in choice)):
            choice = [kept for kept in choice if kept is not column]
    gap = _NARROW_GAP if is_wider(_GAP, (column.comfortable for column in choice)) else _GAP
    while len(choice) > 1 and is_wider(gap, (column.least for column in choice)):
        choice.pop()
    while is_wider(gap, (column.width for column in choice)):
        widest = max(choice, key=lambda c: (c.width > c.longest_word, c.width > c.least, c.width))
        narrower = replace(widest, width=widest.width - 1)
        choice = [narrower if column is widest else column for column in choice]
    return choice, gap


def _measure_column(table: Table, index: int, label: str) -> _Shown:
    texts = [label, *(_bind(row[index].text) for row in table.rows)]
    longest = max(cell_len(text) for text in texts)
    if table.columns[index].numeric:
        return _Shown(index, label, longest, longest, longest, longest)
    word = max((cell_len(word) for text in texts for word in text.split()), default=0)
    comfortable, least = min(longest, _SHORTEST_TEXT), min(word, _SHORTEST_TEXT)
    return _Shown(index, label, longest, comfortable, min(word, _LONGEST_WORD), least)


def _draw_cell(cell: Cell) -> Text:
    return Text(_bind(cell.text), style="dim" if cell.reason is not None else "")


def _bind(text: str) -> str:
    return bind_units(text, _NO_BREAK)
