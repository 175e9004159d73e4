"""The figures of a comparison as CSV."""

from __future__ import annotations

import csv
import io

from rankscope.model.comparison import Comparison
from rankscope.renderers.to_csv import defuse

_COLUMNS = (
    "figure",
    "unit",
    "base",
    "head",
    "change",
    "relative_change",
    "direction",
    "p_value",
    "significant",
    "reason",
)


def render_comparison_csv(comparison: Comparison) -> str:
    """One line per figure, with a line of names; an undefined value is an empty cell.

    Names of runs, kernels and groups are not in it; reasons are inert, and begin like no formula.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for row in comparison.figures:
        judgement = row.judgement
        writer.writerow(
            [
                row.name,
                row.figure.unit,
                row.base,
                row.head,
                row.change,
                row.relative_change,
                row.direction,
                judgement.p_value if judgement else None,
                row.is_significant,
                defuse(row.reason) if row.reason else None,
            ]
        )
    return text.getvalue()
