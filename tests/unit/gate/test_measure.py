"""Figures of each scope, by hand from the numbers in tests/support/gate_reports.py."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rankscope.gate.figures import FIGURES_OF_SCOPE
from rankscope.gate.measure import measure_scope, why_empty
from rankscope.model.report import Measures, QuantileRow, Report, RunFacts, Tool, Totals
from support.gate_reports import MS, bucket_row, straggler, two_rank_report

EMPTY = Report(tool=Tool(version="0"), run=RunFacts(name="e", source="e"), totals=Totals(run=Measures()))


@pytest.mark.parametrize("scope", FIGURES_OF_SCOPE)
def test_an_empty_report_has_no_rows_and_says_why(scope: str) -> None:
    assert measure_scope(EMPTY, scope) == []
    assert why_empty(EMPTY, scope)


@pytest.mark.parametrize("scope", FIGURES_OF_SCOPE)
def test_every_figure_is_measured_where_it_is_promised(scope: str) -> None:
    report = replace(two_rank_report(), buckets=[bucket_row(5, 0, exposed=4)])
    for row in measure_scope(report, scope):
        assert set(row.values) == {figure.name for figure in FIGURES_OF_SCOPE[scope]}


def test_whole_run() -> None:
    (row,) = measure_scope(two_rank_report(), "run")
    values = row.values
    assert values["overlap_ratio"] == 41 / 58
    assert values["exposed_communication"] == 8.5 * MS  # (10 + 7) / 2
    assert values["exposed_communication_ratio"] == 0.085  # of a window of 100 ms
    assert values["idle_ratio"] == 0.255  # (25 + 26) / 2 of 100
    assert values["missing_ranks"] == 1
    assert values["bus_bandwidth"] == 212.5  # the broadcast has none
    assert (values["straggler_cost"], values["straggler_cost_ratio"], values["straggler_slowdown"]) == (
        0,
        0.0,
        1.0,
    )
    assert values["exposed_wait"] is None
    assert row.reason("exposed_wait") == "waiting cannot be told from transfer"


def test_missing_ranks_are_unknown_where_no_file_says_the_size_of_the_job() -> None:
    report = two_rank_report()
    (row,) = measure_scope(replace(report, run=replace(report.run, world_size=None, missing_ranks=[])), "run")
    assert row.values["missing_ranks"] is None


def test_cost_of_a_straggler() -> None:
    (row,) = measure_scope(replace(two_rank_report(), straggler=straggler("found")), "run")
    assert row.values["straggler_cost"] == 2 * MS
    assert row.values["straggler_cost_ratio"] == 2 / 26  # steps of 25 and 27 ms
    (row,) = measure_scope(replace(two_rank_report(), straggler=straggler("inconclusive")), "run")
    assert row.values["straggler_cost"] is None
    assert row.reason("straggler_cost") == "whether a rank is late cannot be told: no file of rank 2"


def test_steady_steps() -> None:
    (row,) = measure_scope(two_rank_report(), "steady")
    assert row.values["overlap_ratio"] == 0.75  # (6 + 4 + 7 + 7) / 32
    assert row.values["exposed_communication"] == 2 * MS  # (2 + 4 + 1 + 1) / 4
    assert row.values["duration"] == 26 * MS
    assert row.values["exposed_communication_ratio"] == 2 / 26


def test_outside_steps() -> None:
    (row,) = measure_scope(two_rank_report(), "outside")
    assert (row.values["overlap_ratio"], row.values["exposed_communication"]) == (
        0.4,
        3 * MS,
    )  # 6 over two ranks


def test_each_steady_step() -> None:
    rows = measure_scope(two_rank_report(), "step")
    assert [(row.place, row.values["overlap_ratio"]) for row in rows] == [
        ("step 5", 10 / 16),
        ("step 6", 14 / 16),
    ]


def test_a_step_without_communication_is_undefined() -> None:
    report = two_rank_report()
    steps = [
        replace(row, communication_ns=0, overlap_ns=0, exposed_communication_ns=0) for row in report.steps
    ]
    assert [row.values["overlap_ratio"] for row in measure_scope(replace(report, steps=steps), "step")] == [
        None,
        None,
    ]


def test_ranks_and_groups() -> None:
    assert [row.values["overlap_ratio"] for row in measure_scope(two_rank_report(), "rank")] == [2 / 3, 0.75]
    reduce, broadcast = measure_scope(two_rank_report(), "group")
    assert reduce.values["communication"] == 27 * MS  # 54 over the two of three ranks that are here
    assert reduce.values["transfer_p95"] == 3 * MS
    assert broadcast.values["bus_bandwidth"] is None
    assert broadcast.reason("bus_bandwidth") == "broadcasts are not matched"


def test_a_report_that_holds_the_worst_buckets_only_says_nothing_of_them() -> None:
    cut = QuantileRow(table="buckets", layout=0, index=0, count=90_000, kept=50_000)
    report = replace(two_rank_report(), buckets=[bucket_row(5, 0, exposed=4)], quantiles=[cut])
    (row,) = measure_scope(report, "bucket")
    assert set(row.values.values()) == {None}
    assert "--detail full" in row.reason("exposed_communication")


def test_buckets_of_the_steady_steps() -> None:
    rows = [
        bucket_row(4, 0, exposed=10, steady=False),
        bucket_row(5, 0, exposed=4),
        bucket_row(6, 0, exposed=2),
    ]
    (row,) = measure_scope(replace(two_rank_report(), buckets=rows), "bucket")
    assert row.values["overlap_ratio"] == 0.7  # 1 - (4 + 2) / 20
    assert row.values["exposed_communication"] == 3 * MS
    assert row.values["bus_bandwidth"] == 105.5  # median of 105 and 106
    assert row.values["queue"] is None
    first = replace(bucket_row(4, 0, exposed=10, steady=False), layout=1)  # before DDP rebuilt its buckets
    assert len(measure_scope(replace(two_rank_report(), buckets=[first, *rows]), "bucket")) == 1
    (row,) = measure_scope(replace(two_rank_report(), buckets=[first]), "bucket")
    assert row.values["overlap_ratio"] == 0.0
