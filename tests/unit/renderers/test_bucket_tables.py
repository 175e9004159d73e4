from __future__ import annotations

from dataclasses import replace

from rankscope.model.report import LayoutBucket, LayoutRow, Report
from rankscope.renderers.bucket_tables import (
    build_bucket_table,
    build_layout_table,
    describe_layout,
    pick_bucket_step,
    pick_layout,
    split_bucket,
)
from rankscope.renderers.tables import Table
from support.straggling_report import MS, make_bucket, make_layout, make_straggling

from .conftest import MakeReport


def texts(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]


def with_initial_layout() -> Report:
    """Layout 0 in steps 1 to 3, layout 1 with one bucket in step 0, which is not steady."""
    report = make_straggling()
    first = replace(make_bucket(1, 0, 0), step=0, steady=False, layout=1, exposed_ns=99 * MS)
    bucket = LayoutBucket(index=0, size_bytes=None, dtype=None, parameters=[])
    initial = LayoutRow(layout=1, cap_mb=None, buckets=[bucket], before_rebuild=True)
    return replace(report, buckets=[first, *report.buckets], bucket_layouts=[make_layout(), initial])


def test_no_buckets(make_report: MakeReport) -> None:
    report = make_report()
    assert build_bucket_table(report, 9).rows == build_layout_table(report, 9).rows == ()
    assert pick_layout(report) is None
    assert pick_bucket_step(report) == ()
    assert describe_layout(report) == ()


def test_medians_over_steady_steps_and_ranks() -> None:
    """Bucket 0: 5 of 6 ms hidden, bucket 1 nothing of 2 ms."""
    table = build_bucket_table(make_straggling(), 9)
    assert texts(table) == [
        ["0", "25 MiB", "2", "60.0 us", "1.00 ms", "4.00 ms", "2.00 ms", "1.00 ms", "83.3 %", "17.5 GB/s"],
        ["1", "10 MiB", "1", "60.0 us", "3.00 ms", "0 ns", "2.00 ms", "2.00 ms", "0.0 %", "7 GB/s"],
    ]
    assert table.notes == ("Times: median over the steady steps and the ranks.",)


def test_the_median_of_an_even_number_of_bandwidths_lies_between_them() -> None:
    rows = [
        replace(make_bucket(1, rank, 0), bus_bandwidth_gbps=gbps) for rank, gbps in ((0, 10.0), (1, 13.0))
    ]
    table = build_bucket_table(replace(make_straggling(), buckets=rows), 9)
    assert texts(table)[0][-1] == "11.5 GB/s"


def test_times_of_a_bucket_never_run_backwards() -> None:
    """Ready at 60, launched 61, started 62, the last rank came at 66, finished at 68 ms of a step from 100."""
    row = make_bucket(1, 0, 0)
    assert split_bucket(row) == tuple((100 + ms) * MS for ms in (60, 61, 62, 66, 68))
    late = replace(row, ready_ns=170 * MS, launched_ns=None, wait_ns=99 * MS)
    assert split_bucket(late) == tuple((100 + ms) * MS for ms in (62, 62, 62, 68, 68))
    unknown = replace(row, ready_ns=None, launched_ns=None, wait_ns=None)
    assert split_bucket(unknown) == tuple((100 + ms) * MS for ms in (62, 62, 62, 62, 68))


def test_the_layout_of_the_steady_steps_is_shown() -> None:
    report = with_initial_layout()
    layout = pick_layout(report)
    assert layout is not None
    assert layout.layout == 0
    assert texts(build_bucket_table(report, 9)) == texts(build_bucket_table(make_straggling(), 9))


def test_steps_that_are_not_steady_change_no_median() -> None:
    report = make_straggling()
    odd = [
        replace(make_bucket(step, 0, 0), steady=False, exposed_ns=99 * MS, size_bytes=1) for step in range(50)
    ]
    mixed = replace(report, buckets=[*odd, *report.buckets])
    assert texts(build_bucket_table(mixed, 9)) == texts(build_bucket_table(report, 9))


def test_without_steady_steps_the_others_are_shown_and_named() -> None:
    report = with_initial_layout()
    only = replace(report, buckets=report.buckets[:1], bucket_layouts=report.bucket_layouts[1:])
    table = build_bucket_table(only, 9)
    assert table.rows[0][-3].text == "99.0 ms"
    assert table.notes[-1] == "Times: median over all steps, none of which is steady, and the ranks."
    assert any("before DDP rebuilt them" in sentence for sentence in describe_layout(only))


def test_above_the_limit_the_buckets_with_the_most_exposed_time_are_kept() -> None:
    table = build_bucket_table(make_straggling(), 1)
    assert [row[0] for row in texts(table)] == ["1"]
    assert table.notes[-1] == "Shown: the 1 of 2 buckets with the most exposed time."


def test_what_is_in_each_bucket() -> None:
    assert texts(build_layout_table(make_straggling(), 9)) == [
        ["0", "25 MiB", "float32", "2", "head.bias", "head.weight"],
        ["1", "10 MiB", "float32", "1", "stem.weight", "stem.weight"],
    ]


def test_where_the_layout_comes_from() -> None:
    assert describe_layout(make_straggling()) == (
        "DDP sends the gradients of model in 2 buckets under bucket_cap_mb=25.",
    )
    inferred = replace(make_layout(), module=None, cap_mb=None, parameters_from="gradient sizes")
    sentences = describe_layout(replace(make_straggling(), bucket_layouts=[inferred]))
    assert sentences[0] == "DDP sends the gradients in 2 buckets."
    assert "collector.watch(model)" in sentences[1]


def test_hostile_names_are_inert() -> None:
    evil = replace(make_layout(), module="m\u202e\n")
    assert "m\\u202e\\n" in describe_layout(replace(make_straggling(), bucket_layouts=[evil]))[0]


def test_the_middle_steady_step_is_drawn_on_the_rank_with_the_most_exposed_time() -> None:
    rows = [
        replace(row, exposed_ns=9 * MS) if (row.step, row.rank, row.index) == (2, 1, 1) else row
        for row in make_straggling().buckets
    ]
    report = replace(make_straggling(), buckets=rows)
    assert [(row.step, row.rank, row.index) for row in pick_bucket_step(report)] == [(2, 1, 0), (2, 1, 1)]


def test_a_preferred_step_is_drawn_if_it_has_buckets() -> None:
    assert {row.step for row in pick_bucket_step(make_straggling(), 3)} == {3}
    assert {row.step for row in pick_bucket_step(make_straggling(), 77)} == {2}
