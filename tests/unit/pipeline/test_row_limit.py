from __future__ import annotations

from typing import Any

import pytest

from rankscope.model.report import (
    BucketRow,
    CausedWaitRow,
    CollectiveRow,
    Measures,
    QuantileRow,
    Quantiles,
    Report,
    RunFacts,
    Tool,
    Totals,
    WaitQuantiles,
)
from rankscope.pipeline.row_limit import limit_rows


def make_collective(index: int, wait: int | None, **changed: Any) -> CollectiveRow:
    known: dict[str, Any] = {
        "index": index, "step": 1, "group": "g", "op": "all_reduce", "dtype": None, "size_bytes": 8,
        "sequence": index, "matched_by": "order", "coalesced": False, "ranks": 2, "transfer_ns": 10 * index,
        "lateness_ns": wait, "last_rank": 0, "overlap_ratio": 0.5, "algorithm_bandwidth_gbps": None,
        "bus_bandwidth_gbps": None, "wait_ns": None if wait is None else WaitQuantiles(p50=0, max=wait),
    }  # fmt: skip
    return CollectiveRow(**{**known, **changed})


def make_bucket(step: int, index: int, exposed_ns: int) -> BucketRow:
    return BucketRow(
        step=step, steady=True, layout=0, index=index, rank=0, size_bytes=100, ready_ns=None, launched_ns=None,
        host_overhead_ns=None, started_ns=0, finished_ns=1, queue_ns=None, wait_ns=None, transfer_ns=7,
        exposed_ns=exposed_ns, overlap_ratio=None, bus_bandwidth_gbps=None,
    )  # fmt: skip


def make_report(**sections: Any) -> Report:
    return Report(
        tool=Tool(version="0"), run=RunFacts(name="r", source="r"), totals=Totals(run=Measures()), **sections
    )


def test_an_empty_report_is_returned_as_it_is() -> None:
    report = make_report()
    assert limit_rows(report, 0) is report


def test_as_many_rows_as_the_limit_are_kept() -> None:
    report = make_report(collectives=[make_collective(0, 1), make_collective(1, 2)])
    assert limit_rows(report, 2) is report


def test_the_collectives_with_the_longest_wait_are_kept_in_order_and_all_are_described() -> None:
    """Waits 5, 9, unknown, 7 and 30: the two longest are those of 1 and 4.

    Transfer is 10 x index. all_reduce of 8 B: 0, 1, 2, 3: transfers 0 10 20 30, waits 5 7 9; of 16 B: 4 alone.
    Quantiles take the lower neighbour: position 0.5 x 3 = 1.5 -> 10, 0.95 x 3 = 2.85 -> 20; of three waits
    position 1 -> 7 and 1.9 -> 7.
    """
    rows = [make_collective(0, 5), make_collective(1, 9), make_collective(2, None), make_collective(3, 7),
            make_collective(4, 30, size_bytes=16)]  # fmt: skip
    limited = limit_rows(make_report(collectives=rows), 2)
    assert [row.index for row in limited.collectives] == [1, 4]
    assert limited.quantiles == [
        QuantileRow(table="collectives", group="g", op="all_reduce", size_bytes=8, count=4, kept=1,
                    transfer_ns=Quantiles(p50=10, p95=20), wait_ns=Quantiles(p50=7, p95=7),
                    lateness_ns=Quantiles(p50=7, p95=7)),
        QuantileRow(table="collectives", group="g", op="all_reduce", size_bytes=16, count=1, kept=1,
                    transfer_ns=Quantiles(p50=40, p95=40), wait_ns=Quantiles(p50=30, p95=30),
                    lateness_ns=Quantiles(p50=30, p95=30)),
    ]  # fmt: skip


def test_the_report_says_what_was_left_out() -> None:
    rows = [make_collective(index, index) for index in range(1500)]
    (note,) = limit_rows(make_report(collectives=rows), 1000).problems
    assert (note.kind, note.severity, note.file) == ("rows-left-out", "note", "")
    assert note.message.startswith("the summary holds 1,000 of 1,500 rows of `collectives`")


def test_unknown_figures_have_no_quantiles() -> None:
    rows = [make_collective(index, None, transfer_ns=None) for index in range(3)]
    (row,) = limit_rows(make_report(collectives=rows), 1).quantiles
    assert (row.transfer_ns, row.wait_ns, row.lateness_ns, row.count) == (None, None, None, 3)


def test_the_buckets_with_the_most_exposed_time_are_kept() -> None:
    """Bucket 0: exposed 4 and 1; bucket 1: 2 and 8. The most exposed are 8 and 4."""
    rows = [make_bucket(1, 0, 4), make_bucket(1, 1, 2), make_bucket(2, 0, 1), make_bucket(2, 1, 8)]
    limited = limit_rows(make_report(buckets=rows), 2)
    assert [row.exposed_ns for row in limited.buckets] == [4, 8]
    assert [(q.table, q.layout, q.index, q.count, q.kept) for q in limited.quantiles] == [
        ("buckets", 0, 0, 2, 1),
        ("buckets", 0, 1, 2, 1),
    ]
    assert [q.exposed_ns for q in limited.quantiles] == [Quantiles(p50=1, p95=1), Quantiles(p50=2, p95=2)]


@pytest.mark.parametrize("limit", [4, 5])
def test_whole_ranks_are_kept_of_the_matrix_of_caused_waits(limit: int) -> None:
    """Costs over both steps: rank 0 5, rank 1 20, rank 2 unknown but late by 9: two ranks of two steps fit."""
    costs: dict[int, list[int | None]] = {0: [2, 3], 1: [20, 0], 2: [None, None]}
    rows = [
        CausedWaitRow(step=step, rank=rank, lateness_ns=9 if rank == 2 else 0, cost_ns=costs[rank][step])
        for step in (0, 1)
        for rank in (0, 1, 2)
    ]
    limited = limit_rows(make_report(caused_waits=rows), limit)
    assert [(row.step, row.rank) for row in limited.caused_waits] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert limited.problems[0].message.startswith("the summary holds 4 of 6 rows of `caused_waits`")


def test_limiting_twice_changes_nothing_more() -> None:
    once = limit_rows(make_report(collectives=[make_collective(i, i) for i in range(5)]), 3)
    assert limit_rows(once, 3) is once
