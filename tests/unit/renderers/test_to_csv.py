"""Tables as CSV: nothing that a spreadsheet would execute, nested records as columns, undefined as empty."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from rankscope.model.report import (
    CollectiveRow,
    Finding,
    GroupRow,
    Measures,
    Report,
    RunFacts,
    Tool,
    Totals,
    WaitQuantiles,
)
from rankscope.renderers.to_csv import CSV_TABLES, render_csv


def report(**lists: Any) -> Report:
    return Report(
        tool=Tool(version="0"), run=RunFacts(name="r", source="r"), totals=Totals(run=Measures()), **lists
    )


def rows_of(made: Report, table: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(render_csv(made, table))))


def group(name: str) -> GroupRow:
    return GroupRow(
        group=name,
        ranks=[0, 1],
        op="all_reduce",
        count=3,
        size_bytes=None,
        communication_ns=100,
        exposed_communication_ns=40,
        overlap_ratio=0.6,
    )


@pytest.mark.parametrize("table", CSV_TABLES)
def test_an_empty_list_is_an_empty_text(table: str) -> None:
    assert render_csv(report(), table) == ""


@pytest.mark.parametrize(
    "name", ["=HYPERLINK(0)", "+1+1", "-2+3", "@SUM(A1)", " =1", "\t=1", "=1\nrow", '=cmd|" /C calc"!A0']
)
def test_no_cell_of_text_begins_like_a_formula(name: str) -> None:
    cells = [
        cell
        for row in csv.reader(io.StringIO(render_csv(report(groups=[group(name)]), "groups")))
        for cell in row
    ]
    assert not [cell for cell in cells if cell.strip().startswith(("=", "+", "-", "@"))]


def test_numbers_stay_numbers_and_undefined_ones_are_empty() -> None:
    (row,) = rows_of(report(groups=[group("default_pg")]), "groups")
    assert (row["communication_ns"], row["overlap_ratio"], row["size_bytes"]) == ("100", "0.6", "")
    assert row["ranks"] == "0 1"


def test_a_message_with_commas_quotes_and_lines_is_one_cell() -> None:
    finding = Finding(rule="r", severity="info", rank=None, step=None, message='a, "b"\nc', hint="")
    (row,) = rows_of(report(findings=[finding]), "findings")
    assert row["message"] == 'a, "b"\\nc'


def test_nested_records_become_columns_and_maps_by_rank_are_left_out() -> None:
    row = CollectiveRow(
        index=0,
        step=None,
        group="g",
        op="all_reduce",
        dtype=None,
        size_bytes=8,
        sequence=None,
        matched_by="order",
        coalesced=False,
        ranks=2,
        transfer_ns=5,
        lateness_ns=-3,
        last_rank=1,
        overlap_ratio=None,
        algorithm_bandwidth_gbps=None,
        bus_bandwidth_gbps=None,
        wait_ns=WaitQuantiles(p50=1, max=2),
        arrivals_ns={0: 1, 1: 2},
    )
    (written,) = rows_of(report(collectives=[row]), "collectives")
    assert (written["wait_ns_p50"], written["wait_ns_max"], written["lateness_ns"]) == ("1", "2", "-3")
    assert "arrivals_ns" not in written
