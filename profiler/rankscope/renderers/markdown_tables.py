"""Tables and small drawings in Markdown; everything from traces is inert (see `escape`)."""

from __future__ import annotations

from collections.abc import Sequence

from rankscope.renderers.escape import MESSAGE_LIMIT, escape_markdown
from rankscope.renderers.tables import Cell, Column, Table

LONGEST_TEXT = 60_000
"""Characters; a comment on GitHub holds 65,536."""

_SPARKS = "▁▂▃▄▅▆▇█"


def write_table(table: Table, heading: str = "###") -> list[str]:
    """Heading, grid and notes of a table as blocks; [] without rows."""
    if not table.rows:
        return []
    notes = [f"<sub>{escape_markdown(note, MESSAGE_LIMIT)}</sub>" for note in table.notes]
    blocks = [f"{heading} {escape_markdown(table.title)}", draw_grid(table.columns, table.rows)]
    return [*blocks, "<br>\n".join(notes)] if notes else blocks


def draw_grid(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell]], *, with_reasons: bool = False
) -> str:
    """The lines of a table.

    Args:
        columns: the columns.
        rows: the cells.
        with_reasons: whether an undefined figure carries its reason in the cell.
    """
    heads = [column.label for column in columns]
    rules = ["--:" if column.numeric else ":--" for column in columns]
    lines = [heads, rules, *([_draw_cell(cell, with_reasons) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _draw_cell(cell: Cell, with_reason: bool) -> str:
    text = escape_markdown(cell.text, MESSAGE_LIMIT)
    return f"{text} ({escape_markdown(cell.reason)})" if with_reason and cell.reason else text


def draw_sparkline(ratios: Sequence[float | None]) -> str:
    """One block per ratio, from 0 to 1; a dot where it is undefined.

    >>> draw_sparkline([0.0, 0.5, 1.0, None])
    '▁▅█·'
    """
    last = len(_SPARKS) - 1
    return "".join(
        "·" if ratio is None else _SPARKS[max(0, min(last, int(ratio * len(_SPARKS))))] for ratio in ratios
    )
