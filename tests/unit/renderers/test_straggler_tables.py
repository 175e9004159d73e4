from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rankscope.model.report import Clock, Report, Residual
from rankscope.renderers.straggler_tables import (
    build_clock_table,
    build_evidence_table,
    build_late_table,
    build_waiting_table,
    describe_clocks,
    explain_verdict,
    name_culprit,
)
from rankscope.renderers.tables import Table
from support.straggling_report import MS, make_rank, make_straggling

from .conftest import MakeReport


def texts(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]


def with_straggler(**changed: Any) -> Report:
    report = make_straggling()
    assert report.straggler is not None
    return replace(report, straggler=replace(report.straggler, **changed))


def with_clock(**changed: Any) -> Report:
    report = make_straggling()
    return replace(report, run=replace(report.run, clock=replace(report.run.clock, **changed)))


def test_nothing_is_known(make_report: MakeReport) -> None:
    report = make_report()
    for build in (build_waiting_table, build_evidence_table, build_late_table, build_clock_table):
        assert build(report, 9).rows == ()
    assert explain_verdict(report) == describe_clocks(report) == ()
    assert name_culprit(None) == "nobody"


def test_what_each_rank_cost_and_how_long_it_waited() -> None:
    assert texts(build_waiting_table(make_straggling(), 9)) == [
        ["0", "0 ns", "0 ns", "0 of 3", "20.0 ms", "5.00 ms"],
        ["1", "0 ns", "0 ns", "0 of 3", "20.0 ms", "5.00 ms"],
        ["2", "5.00 ms", "6.00 ms", "3 of 3", "0 ns", "5.00 ms"],
    ]


def test_several_devices_of_a_rank_are_added_up() -> None:
    report = replace(make_straggling(), ranks=[make_rank(0), replace(make_rank(0), device=1), make_rank(2)])
    row = texts(build_waiting_table(report, 9))[0]
    assert row[-2:] == ["40.0 ms", "10.0 ms"]


def test_above_the_limit_the_ranks_that_cost_most_are_kept() -> None:
    table = build_waiting_table(make_straggling(), 1)
    assert [row[0] for row in texts(table)] == ["2"]
    assert table.notes[-1] == "Shown: the 1 of 3 ranks that cost most."


def test_of_many_ranks_the_worst_come_first() -> None:
    """Ranks 0 to 19 cost 3 x rank modulo 20: 13 costs 19, 6 costs 18, 19 costs 17."""
    report = make_straggling()
    assert report.straggler is not None
    one = report.straggler.by_rank[0]
    rows = [replace(one, rank=rank, cost_ns_per_step=3 * rank % 20) for rank in range(20)]
    table = build_waiting_table(with_straggler(by_rank=rows), 99)
    assert [row[0] for row in texts(table)][:3] == ["13", "6", "19"]
    assert table.notes[-1] == "The ranks that cost most come first."


def test_an_unknown_cost_has_its_reason() -> None:
    report = with_straggler()
    assert report.straggler is not None
    rows = [replace(row, cost_ns_per_step=None) if row.rank == 0 else row for row in report.straggler.by_rank]
    report = replace(
        with_straggler(by_rank=rows), undefined={"straggler.by_rank[*].cost_ns_per_step": "not replayed"}
    )
    table = build_waiting_table(report, 9)
    assert texts(table)[0][1] == "n/a"
    assert "Cost per step of rank 0: n/a (not replayed)" in table.notes


def test_the_evidence() -> None:
    table = build_evidence_table(make_straggling(), 9)
    assert table.title == "Why rank 2 is late"
    assert texts(table) == [
        ["device idle, host in", "data loading", "6.00 ms", "1.20 ms", "4.80 ms"],
        ["compute", "gemm", "31.0 ms", "30.9 ms", "100 us"],
    ]


def test_the_verdict_and_its_cause_are_explained() -> None:
    assert explain_verdict(make_straggling()) == (
        "With its own work like that of its peers, 100 % of the steps would be at least 2 % shorter.",
        "The run is 1.05 times as slow as it would be then.",
        "Cause: input, 4.80 ms per step, in data loading (DataLoader.__next__): the device was idle while the host "
        "waited for data.",
    )


def test_a_stage_outside_the_others_reads_as_a_sentence() -> None:
    cause = explain_verdict(with_straggler(cause_stage="outside the training stages", cause_name=None))[-1]
    assert cause.startswith("Cause: input, 4.80 ms per step, outside the training stages: ")


@pytest.mark.parametrize(("saved", "is_said"), [(5 * MS, False), (3 * MS, True), (None, False)])
def test_what_is_really_saved_is_told_where_it_differs(saved: int | None, is_said: bool) -> None:
    sentences = explain_verdict(with_straggler(saved_ns_per_step=saved))
    assert any("would really get 3.00 ms shorter" in sentence for sentence in sentences) == is_said


def test_no_cause_is_an_answer_too() -> None:
    sentences = explain_verdict(with_straggler(cause=None, cause_reason="nothing makes up half of it"))
    assert sentences[-1] == "No single cause: nothing makes up half of it."


def test_an_inconclusive_verdict_says_why_by_itself() -> None:
    assert explain_verdict(with_straggler(verdict="inconclusive")) == ()


def test_hostile_names_are_inert() -> None:
    (*_, cause) = explain_verdict(with_straggler(cause_name="\u202eb\n::error::"))
    assert "\\u202eb\\n: :error::" in cause


def test_the_latest_collectives() -> None:
    table = build_late_table(make_straggling(), 2)
    assert texts(table) == [
        ["2", "3", "all_reduce", "default_pg [0-2]", "25 MiB", "2", "7.00 ms", "8.00 ms", "2.00 ms"],
        ["1", "2", "all_reduce", "default_pg [0-2]", "25 MiB", "2", "6.00 ms", "7.00 ms", "2.00 ms"],
    ]
    assert table.notes == ("Shown: the 2 of 3 with the greatest lateness.",)


def test_clocks_with_their_uncertainty() -> None:
    table = build_clock_table(make_straggling(), 9)
    assert texts(table) == [
        ["0", "0 ns", "±0 ns", "none seen"],
        ["1", "12.0 us", "±20.0 us", "4.25 ppm"],
        ["2", "-3.00 ms", "n/a", "none seen"],
    ]
    assert "Uncertainty of rank 2: n/a (no collective bounds this clock from both sides)" in table.notes


def test_how_clocks_were_tied_together() -> None:
    assert describe_clocks(make_straggling())[1] == (
        "After that the ends of one collective still lie 7.00 us apart (median; at most 31.0 us)."
    )
    assert describe_clocks(with_clock(untied_ranks=[4]))[-1] == (
        "Rank 4 shares no collective with them: only figures that need no clock hold there."
    )
    assert describe_clocks(with_clock(untied_ranks=[4, 5]))[-1].startswith("Ranks 4-5 share no collective")
    samples = with_clock(method="clock samples", residual_ns=Residual())
    assert describe_clocks(samples) == (
        "The clocks of the ranks were tied together by the collector's clock samples.",
    )


def test_clocks_that_could_not_be_tied() -> None:
    report = make_straggling()
    raw = replace(report, run=replace(report.run, clock=Clock()))
    assert describe_clocks(raw) == (
        "The clocks of the ranks could not be tied together: arrivals and lateness are unknown.",
    )
    assert build_clock_table(raw, 9).rows == ()
