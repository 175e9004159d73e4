"""What all views draw with: statements, notes, tables and figures, with everything from a trace as plain text."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from rankscope.renderers.escape import MESSAGE_LIMIT, bind_units, escape_markdown, make_inert
from rankscope.renderers.glossary import TERMS
from rankscope.renderers.tables import NOT_AVAILABLE, Cell, Column, Table
from rankscope_dashboard.figures.paint import Figure, Theme, paint
from rankscope_dashboard.words import ViewWords

_ROW_PX, _MOST_TABLE_PX = 35, 520


def safe(text: str, limit: int = MESSAGE_LIMIT) -> str:
    """Text as HTML that shows exactly this text."""
    return bind_units(html.escape(make_inert(text, limit)), "&nbsp;")


def label_text(text: str, limit: int = 40) -> str:
    """Text as Markdown for the label of a widget."""
    return escape_markdown(text, limit)


def option_text(text: str, limit: int = 120) -> str:
    """Text for the option of a widget, which is shown as it is."""
    return make_inert(text, limit)


def current_theme() -> Theme:
    """Whether the visitor's page is light or dark."""
    return "dark" if st.context.theme.type == "dark" else "light"


def show_title(words: ViewWords) -> None:
    """The view's name, and a sentence on what it shows and what to do."""
    st.html(
        f'<h1 class="rs-title">{safe(words.title)}</h1>'
        f'<p class="rs-sentence">{safe(words.shows)} <b>{safe(words.act)}</b></p>'
    )


def show_heading(title: str, sentence: str = "") -> None:
    """A heading within a view, with the sentence that explains the picture below it."""
    explained = f'<p class="rs-sentence">{safe(sentence)}</p>' if sentence else ""
    st.html(f'<h2 class="rs-heading">{safe(title)}</h2>{explained}')


def show_nothing(title: str, reason: str, act: str = "") -> None:
    """What stands in place of a picture that cannot be drawn: why, and what would change that."""
    todo = f"<p>{safe(act)}</p>" if act else ""
    st.html(f'<div class="rs-empty"><b>{safe(title)}</b><p>{safe(reason)}</p>{todo}</div>')


def show_notes(notes: Sequence[str]) -> None:
    """Small lines below a table or a figure."""
    if notes:
        st.html("".join(f'<p class="rs-note">{safe(note)}</p>' for note in notes))


def show_figure(figure: Figure, key: str, alt: str, **options: Any) -> Any:  # noqa: ANN401 - plotly's selection
    """A figure in plain data, in the colours of the visitor's theme."""
    painted = paint(figure, current_theme())
    return st.plotly_chart(painted, key=key, alt=alt, config={"displaylogo": False}, **options)


def show_table(table: Table, key: str, **options: Any) -> Any:  # noqa: ANN401 - the rows chosen
    """A table that sorts by its numbers and shows their texts, with its notes."""
    frame, styled = to_frame(table)
    config = {
        f"{i}": st.column_config.Column(column.label, help=_explain(column))
        for i, column in enumerate(table.columns)
    }
    with st.container(key=f"table-{key}"):
        chosen = st.dataframe(
            styled,
            key=key,
            hide_index=True,
            column_config=config,
            placeholder=NOT_AVAILABLE,
            height=min(_ROW_PX * (len(frame) + 1) + 3, _MOST_TABLE_PX),
            **options,
        )
        show_notes(table.notes)
    return chosen


def _explain(column: Column) -> str | None:
    return TERMS.get(column.term) if column.term else None


def to_frame(table: Table) -> tuple[pd.DataFrame, Any]:
    """The table as numbers (text where a column holds no numbers), and the same with the texts of the cells.

    Columns are named by their place, since labels may repeat.
    """
    columns = {str(i): [row[i] for row in table.rows] for i in range(len(table.columns))}
    frame = pd.DataFrame({name: _column_values(cells) for name, cells in columns.items()})
    styled = frame.style.format(na_rep=NOT_AVAILABLE)
    for name, cells in columns.items():
        if _is_numeric(cells):
            _give_texts(styled, name, cells)
    return frame, styled


def _give_texts(styled: Any, name: str, cells: Sequence[Cell]) -> None:  # noqa: ANN401 - pandas' Styler
    """Show the texts of a column's cells in place of its numbers."""
    known = {_value_of(cell): cell.text for cell in cells}
    if all(known[_value_of(cell)] == cell.text for cell in cells):
        styled.format(partial(_look_up, known), subset=[name], na_rep=NOT_AVAILABLE)
        return
    # One number with several texts ("1 of 2", "1 of 8"): row by row, which takes longer.
    for text in {cell.text for cell in cells}:
        rows = [row for row, cell in enumerate(cells) if cell.text == text]
        styled.format(partial(_say, text), subset=(rows, [name]), na_rep=NOT_AVAILABLE)


def _look_up(texts: dict[Any, str], value: object) -> str:
    return texts.get(value, NOT_AVAILABLE)


def _say(text: str, _value: object) -> str:
    return text


def _is_numeric(cells: Sequence[Cell]) -> bool:
    return any(cell.value is not None for cell in cells)


def _column_values(cells: Sequence[Cell]) -> list[Any]:
    return [_value_of(cell) for cell in cells] if _is_numeric(cells) else [cell.text for cell in cells]


def _value_of(cell: Cell) -> float | None:
    # A row that is named and has no number, such as "outside steps", comes after those with one.
    return math.inf if cell.value is None and cell.text and cell.reason is None else cell.value
