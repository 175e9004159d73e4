"""A comparison as tables and sentences, the same for every format."""

from __future__ import annotations

from collections.abc import Sequence

from rankscope.model.comparison import ChangedPart, ComparedFigure, Comparison, Side, format_p
from rankscope.model.figure import format_exact_duration
from rankscope.renderers.escape import MESSAGE_LIMIT, make_inert
from rankscope.renderers.tables import (
    Cell,
    Column,
    Table,
    finish_table,
    number_cell,
    text_cell,
    undefined_cell,
)

SCOPE_TITLES = {
    "run": "Whole run, mean per rank",
    "steady": "Steady steps, mean per rank and step",
    "outside": "Outside steps, mean per rank",
}

_FIGURE_COLUMNS = (
    Column(label="Figure", numeric=False),
    Column(label="Base"),
    Column(label="Head"),
    Column(label="Change"),
    Column(label="Relative", wide=True),
    Column(label="p"),
    Column(label="Verdict", numeric=False),
)

_PART_COLUMNS = (
    Column(label="Change", numeric=False),
    Column(label="What", numeric=False),
    Column(label="Base"),
    Column(label="Head"),
    Column(label="Difference"),
    Column(label="Exposed by", wide=True),
    Column(label="Count", wide=True),
)

_NAME_LIMIT = 64

_ALWAYS_ALIKE = "coverage_"
"""Figures whose names begin so are shown only if they differ."""

_PART_WORDS = {
    "appeared": "appeared",
    "vanished": "vanished",
    "longer": "takes longer",
    "shorter": "takes less",
    "less hidden": "less hidden",
    "more hidden": "more hidden",
}


def build_figure_table(comparison: Comparison, scope: str) -> Table:
    """One row per figure of a scope that at least one side has; what neither has stands in a note."""
    rows = [row for row in comparison.figures if row.scope == scope]
    rows = [row for row in rows if not row.figure.name.startswith(_ALWAYS_ALIKE) or row.change]
    shown = [row for row in rows if row.base is not None or row.head is not None]
    absent = [row for row in rows if row.base is None and row.head is None]
    title = SCOPE_TITLES[scope]
    if any(row.is_per_step for row in rows):
        title += "; times per recorded step"
    labels: dict[str, list[str]] = {}
    for row in shown:
        if row.reason:
            labels.setdefault(row.reason, []).append(row.figure.label)
    notes = [
        make_inert(f"{', '.join(named)}: n/a ({reason})", MESSAGE_LIMIT) for reason, named in labels.items()
    ]
    if absent and shown:
        notes.append(f"Measured on neither side: {', '.join(row.figure.label for row in absent)}.")
    if any(row.judgement for row in rows):
        notes.append(
            "p and significance: permutation test over the values of the steady steps of both sides."
        )
    rows_of_cells = tuple(tuple(_figure_cells(row)) for row in shown)
    return Table(title=title, columns=_FIGURE_COLUMNS, rows=rows_of_cells, notes=tuple(notes))


def _figure_cells(row: ComparedFigure) -> list[Cell]:
    figure, reason = row.figure, row.reason
    judgement = row.judgement
    p_value = judgement.p_value if judgement else None
    return [
        Cell(text=figure.label),
        number_cell(row.base, figure.format, reason),
        number_cell(row.head, figure.format, reason),
        number_cell(row.change, figure.format_change, reason),
        number_cell(row.relative_change, lambda v: f"{100 * v:+.1f} %")
        if row.relative_change is not None
        else Cell(text=""),
        Cell(text="" if p_value is None else format_p(p_value), value=p_value),
        undefined_cell(reason) if row.change is None else Cell(text=say_direction(row)),
    ]


def say_direction(row: ComparedFigure) -> str:
    """Direction of a change, and whether it is more than noise where that can be told."""
    direction = row.direction or "n/a"
    if direction == "same" or row.judgement is None:
        return direction
    if row.is_significant is None:
        return f"{direction}, noise unknown"
    return f"{direction}, significant" if row.is_significant else f"{direction}, not significant"


def build_part_table(comparison: Comparison, limit: int) -> Table:
    """Collectives, kernels and copies that changed, the largest change first; the first `limit` of them."""
    notes = ["Mean per rank over the whole run."]
    if any(row.is_per_step for row in comparison.figures):
        notes = ["Mean per rank and recorded step."]
    left_out = comparison.parts_left_out + max(0, len(comparison.parts) - limit)
    if left_out:
        notes.append(f"{left_out:,} more changed by less.")
    rows = [_part_cells(part) for part in comparison.parts[:limit]]
    return finish_table("Collectives and kernels that changed", _PART_COLUMNS, rows, notes if rows else ())


def _part_cells(part: ChangedPart) -> list[Cell]:
    exposed = part.exposed_change_ns
    return [
        Cell(text=_PART_WORDS[part.change]),
        text_cell(name_part(part), _NAME_LIMIT),
        Cell(text=format_exact_duration(part.base_ns), value=part.base_ns),
        Cell(text=format_exact_duration(part.head_ns), value=part.head_ns),
        Cell(text=_signed(part.change_ns), value=part.change_ns),
        Cell(text="" if exposed is None else _signed(exposed), value=exposed),
        Cell(text=f"{part.base_count:.4g} → {part.head_count:.4g}"),
    ]


def _signed(ns: float) -> str:
    return f"{'+' if ns >= 0 else ''}{format_exact_duration(ns)}"


def name_part(part: ChangedPart) -> str:
    """Name of a part: "all_reduce in default_pg [0-7]", "kernel gemm"; inert text."""
    if part.part_class == "collective":
        return make_inert(f"{part.name} in {part.group}")
    return make_inert(f"{'kernel' if part.part_class == 'compute' else 'copy'} {part.name}")


def say_sides(comparison: Comparison) -> str:
    """What is compared with what; inert text."""
    base, head = _say_side(comparison.base), _say_side(comparison.head)
    return make_inert(f"base: {base}; head: {head}", MESSAGE_LIMIT)


def _say_side(side: Side) -> str:
    runs = f"{side.runs} runs up to " if side.runs > 1 else ""
    return f"{runs}{make_inert(side.name)} ({', '.join(list_extent(side))})"


def list_extent(side: Side) -> tuple[str, str]:
    """How many ranks and steps a side has, in words."""
    ranks = f"{side.ranks}" if side.world_size in (None, side.ranks) else f"{side.ranks} of {side.world_size}"
    steps = f"{side.steps:g} {'step' if side.steps == 1 else 'steps'}" if side.steps else "no step markers"
    return f"{ranks} {'rank' if ranks == '1' else 'ranks'}", steps


def say_comparison(comparison: Comparison) -> str:
    """The comparison in a sentence: what is significantly worse or better, or that nothing is."""
    worse, better = comparison.changed("worse"), comparison.changed("better")
    if worse or better:
        parts = [
            f"significantly {word}: {_labels(rows)}"
            for word, rows in (("worse", worse), ("better", better))
            if rows
        ]
        text = "; ".join(parts)
        return f"{text[0].upper()}{text[1:]}."
    headline = [row for row in comparison.figures if row.is_headline and row.change is not None]
    if not headline:
        return "Nothing could be compared."
    if all(row.direction == "same" for row in headline):
        return "No difference."
    if all(row.judgement is None for row in headline):
        return "There are differences; without step markers they cannot be told from noise."
    if all(row.is_significant is None for row in headline):
        return "There are differences; with so few steps they cannot be told from noise."
    return "No significant difference."


def _labels(rows: Sequence[ComparedFigure]) -> str:
    return ", ".join(
        f"{row.figure.label} ({row.figure.format_change(row.change or 0)} per step)"
        if row.figure.kind == "time"
        else f"{row.figure.label} ({row.figure.format_change(row.change or 0)})"
        for row in rows
    )


def say_outside(comparison: Comparison) -> str | None:
    """How much of the exposed communication was launched outside steps; None if nothing was."""
    by_name = {row.name: row for row in comparison.figures}
    row = by_name.get("outside.exposed_communication")
    if row is None or row.base is None or row.head is None or (row.base == 0 and row.head == 0):
        return None
    figure = row.figure
    return (
        f"Outside steps lie {figure.format(row.base)} and {figure.format(row.head)} of the exposed communication of "
        "the whole run (mean per rank); no step says how much noise is in them."
    )
