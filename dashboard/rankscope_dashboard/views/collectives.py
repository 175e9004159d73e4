"""Every collective in a table with filters."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from rankscope.model.report import CollectiveRow, Report
from rankscope.renderers.tables import (
    Cell,
    Column,
    Table,
    count_cell,
    duration_cell,
    finish_table,
    number_cell,
    ratio_cell,
    size_cell,
    text_cell,
)
from rankscope.renderers.undefined import Reasons, make_path
from rankscope_dashboard.show import option_text, show_notes, show_nothing, show_table, show_title
from rankscope_dashboard.visit import Visit
from rankscope_dashboard.words import COLLECTIVES

_SHOWN = 1_000
_ORDERS = {
    "longest wait": lambda row: -(row.wait_ns.max if row.wait_ns else -1),
    "longest transfer": lambda row: -(row.transfer_ns if row.transfer_ns is not None else -1),
    "greatest lateness": lambda row: -(row.lateness_ns if row.lateness_ns is not None else -1),
    "least hidden": lambda row: row.overlap_ratio if row.overlap_ratio is not None else 2,
    "order of the run": lambda row: row.index,
}
_COLUMNS = (
    Column(label="No."),
    Column(label="Step", term="Step"),
    Column(label="Op", numeric=False),
    Column(label="Group", numeric=False),
    Column(label="Size"),
    Column(label="Ranks"),
    Column(label="Max wait"),
    Column(label="Median wait"),
    Column(label="Transfer"),
    Column(label="Lateness", term="Lateness"),
    Column(label="Last"),
    Column(label="Hidden", term="Hidden"),
    Column(label="Bus", term="Bus bandwidth"),
    Column(label="Match", numeric=False),
)


def show(visit: Visit) -> None:
    """Draw the collectives of a run."""
    show_title(COLLECTIVES)
    rows = visit.report.collectives
    if not rows:
        show_nothing("No collectives", "The run holds no collective operation that could be read.")
        return
    chosen = _filter(rows)
    if not chosen:
        show_nothing("No collective matches", f"None of {len(rows):,} collectives passes these filters.")
        return
    show_table(_build_table(visit.report, chosen[:_SHOWN]), key="collectives")
    if len(chosen) > _SHOWN:
        show_notes([f"Shown: the first {_SHOWN:,} of {len(chosen):,}; the CSV download holds all."])
    show_notes(
        [
            f"{quantiles.count:,} {quantiles.op} of one size in {quantiles.group}: the report keeps the worst "
            f"{quantiles.kept:,}."
            for quantiles in visit.report.quantiles
            if quantiles.table == "collectives"
        ][:8]
    )


def _filter(rows: Sequence[CollectiveRow]) -> list[CollectiveRow]:
    """The rows that the visitor's filters let through, in the order chosen."""
    left, middle, right, last = st.columns(4)
    ops = left.multiselect(
        "Operation", sorted({row.op for row in rows}), format_func=option_text, key="filter-op"
    )
    groups = middle.multiselect(
        "Group", sorted({row.group for row in rows}), format_func=option_text, key="filter-group"
    )
    steps = right.multiselect(
        "Step", sorted({row.step for row in rows if row.step is not None}), key="filter-step"
    )
    order = last.selectbox("First", list(_ORDERS), key="filter-order")
    kept = [
        row
        for row in rows
        if (not ops or row.op in ops)
        and (not groups or row.group in groups)
        and (not steps or row.step in steps)
    ]
    return sorted(kept, key=_ORDERS[order])


def _build_table(report: Report, rows: Sequence[CollectiveRow]) -> Table:
    reasons = Reasons(report.undefined)
    return finish_table("Collectives", _COLUMNS, [_cells(row, reasons) for row in rows])


def _cells(row: CollectiveRow, reasons: Reasons) -> list[Cell]:
    def why(figure: str) -> str | None:
        return reasons.find(make_path("collectives", {"index": row.index}, figure))

    step = Cell(text="outside") if row.step is None else Cell(text=str(row.step), value=row.step)
    return [
        count_cell(row.index),
        step,
        text_cell(row.op),
        text_cell(row.group),
        size_cell(row.size_bytes, why("size_bytes")),
        count_cell(row.ranks),
        duration_cell(row.wait_ns.max if row.wait_ns else None, why("wait_ns")),
        duration_cell(row.wait_ns.p50 if row.wait_ns else None, why("wait_ns")),
        duration_cell(row.transfer_ns, why("transfer_ns")),
        duration_cell(row.lateness_ns, why("lateness_ns")),
        number_cell(row.last_rank, lambda rank: f"{rank:g}", why("last_rank")),
        ratio_cell(row.overlap_ratio, why("overlap_ratio")),
        number_cell(row.bus_bandwidth_gbps, lambda value: f"{value:.3g} GB/s", why("bus_bandwidth_gbps")),
        text_cell(row.matched_by),
    ]
