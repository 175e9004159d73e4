"""Tables of text, the same for every format: cells that know their number, and notes on what is undefined."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rankscope.renderers.escape import NAME_LIMIT, make_inert
from rankscope.units import format_duration, format_ratio, format_size

NOT_AVAILABLE = "n/a"
NO_REASON = "the report gives no reason"

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell: inert text, and the number behind it for sorting.

    Attributes:
        text: what is shown, "n/a" if undefined.
        value: the number; None for text and for undefined figures.
        reason: why it is undefined; None if it is not.
    """

    text: str
    value: float | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column.

    Attributes:
        label: heading.
        short: heading where the page is narrow; "" if it is the same.
        numeric: numbers stand on the right.
        wide: left out where the page is narrow.
        term: the entry of the glossary that explains it.
    """

    label: str
    short: str = ""
    numeric: bool = True
    wide: bool = False
    term: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table.

    Attributes:
        title: heading.
        columns: the columns.
        rows: as many cells each as there are columns.
        notes: lines that stand below: what is undefined and why, what was left out.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()


def text_cell(text: str, limit: int = NAME_LIMIT) -> Cell:
    """A cell with text, made inert."""
    return Cell(text=make_inert(text, limit))


def undefined_cell(reason: str | None) -> Cell:
    """A cell of a figure that has no value."""
    return Cell(text=NOT_AVAILABLE, reason=make_inert(reason or NO_REASON, 200))


def number_cell(value: float | None, text: Callable[[float], str], reason: str | None = None) -> Cell:
    """A cell with a number in the words of `text`, or "n/a" where it is None."""
    return undefined_cell(reason) if value is None else Cell(text=text(value), value=value)


def duration_cell(ns: int | None, reason: str | None = None) -> Cell:
    """A cell with a time given in ns."""
    return number_cell(ns, lambda value: format_duration(int(value)), reason)


def ratio_cell(ratio: float | None, reason: str | None = None) -> Cell:
    """A cell with a ratio as a percentage."""
    return number_cell(ratio, format_ratio, reason)


def size_cell(size_bytes: int | None, reason: str | None = None) -> Cell:
    """A cell with a size given in bytes."""
    return number_cell(size_bytes, lambda value: format_size(int(value)), reason)


def count_cell(count: int) -> Cell:
    """A cell with a count, its thousands set apart."""
    return Cell(text=f"{count:,}", value=count)


def finish_table(
    title: str,
    columns: Sequence[Column],
    rows: Sequence[Sequence[Cell]],
    notes: Sequence[str] = (),
) -> Table:
    """The table without the columns that nothing is known of; notes say what is undefined and why.

    Args:
        title: heading.
        columns: the columns.
        rows: cells; the first of each row names the row.
        notes: further lines.
    """
    kept: list[int] = []
    missing: dict[str, list[str]] = {}
    for index, column in enumerate(columns):
        undefined = [(row[0].text, row[index].reason) for row in rows if row[index].reason is not None]
        reasons = sorted({reason for _, reason in undefined if reason is not None})
        is_whole = bool(rows) and len(undefined) == len(rows)
        if not is_whole or len(reasons) > 1:
            kept.append(index)
        if reasons:
            names = _enumerate([name for name, _ in undefined])
            of_rows = "" if is_whole else f" of {columns[0].label.lower()} {names}"
            missing.setdefault(f"{of_rows}: {NOT_AVAILABLE} ({'; '.join(reasons)})", []).append(column.label)
    undefined_notes = [f"{', '.join(labels)}{rest}" for rest, labels in missing.items()]
    return Table(
        title=title,
        columns=tuple(columns[i] for i in kept),
        rows=tuple(tuple(row[i] for i in kept) for row in rows),
        notes=(*undefined_notes, *notes),
    )


def _enumerate(names: Sequence[str], most: int = 6) -> str:
    distinct = list(dict.fromkeys(names))
    text = ", ".join(distinct[:most])
    return text if len(distinct) <= most else f"{text} and {len(distinct) - most:,} more"


def keep_worst(
    rows: Sequence[Row], badness: Callable[[Row], float | tuple[float, ...]], limit: int
) -> tuple[tuple[Row, ...], int]:
    """The `limit` rows of greatest badness, in their given order, and how many were left out.

    >>> keep_worst([3, 1, 2], lambda row: row, 2)
    ((3, 2), 1)
    """
    if len(rows) <= limit:
        return tuple(rows), 0
    worst = sorted(range(len(rows)), key=lambda index: badness(rows[index]), reverse=True)[:limit]
    return tuple(rows[index] for index in sorted(worst)), len(rows) - limit


def take_median(values: Sequence[int | None]) -> int | None:
    """Median of the known values, to the nearest ns; None if none is known.

    >>> take_median([1, None, 4])
    2
    """
    known = [value for value in values if value is not None]
    return round(statistics.median(known)) if known else None
