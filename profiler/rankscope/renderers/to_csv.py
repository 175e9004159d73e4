"""The report's rows as CSV that is safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict, fields, is_dataclass
from typing import Any

from rankscope.model.report import Report
from rankscope.renderers.escape import MESSAGE_LIMIT, make_inert

CSV_TABLES = (
    "ranks",
    "steps",
    "groups",
    "collectives",
    "communications",
    "p2p",
    "buckets",
    "findings",
    "problems",
)
"""Lists of the report that can be written as CSV."""

_OPENS_FORMULA = ("=", "+", "-", "@")


def render_csv(report: Report, table: str) -> str:
    """One list of the report with a line of names, as comma-separated values; "" if the list is empty.

    Nested records become columns (`wait_ns` -> `wait_ns_p50`); what is given per rank is left out. An undefined
    figure is an empty cell. Text from traces is inert: no cell of text begins like a formula of a spreadsheet.

    Args:
        report: the report.
        table: one of `CSV_TABLES`.
    """
    rows = [_flatten(row) for row in getattr(report, table)]
    if not rows:
        return ""
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_cell(row.get(name)) for name in names] for row in rows)
    return text.getvalue()


def _flatten(row: Any) -> dict[str, Any]:  # noqa: ANN401 - any row of the report
    flat: dict[str, Any] = {}
    for field in fields(row):
        value = getattr(row, field.name)
        if is_dataclass(value) and not isinstance(value, type):
            flat |= {f"{field.name}_{key}": inner for key, inner in asdict(value).items()}
        elif not isinstance(value, dict):
            flat[field.name] = value
    return flat


def defuse(text: str) -> str:
    """Text that no spreadsheet takes for a formula: a quote stands before `=`, `+`, `-` and `@`.

    >>> defuse("=HYPERLINK(0)"), defuse("all_reduce")
    ("'=HYPERLINK(0)", 'all_reduce')
    """
    inert = make_inert(text, MESSAGE_LIMIT)
    return f"'{inert}" if inert.lstrip().startswith(_OPENS_FORMULA) else inert


def _cell(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, list):
        return defuse(" ".join(map(str, value)))
    return defuse(value) if isinstance(value, str) else value
