"""Rows per rank, device and window, and what the report says of the run."""

from __future__ import annotations

from typing import Any

from rankscope.model.run import Run
from rankscope.pipeline import AnalyzeOptions, analyze_run
from support.reading import report_of, run_of_files
from support.trace_text import Bare, collective, cpu_op, gloo, job, kernel, memcpy, nccl, step

BASE_NS = 1_767_225_600_000_000_000  # 2026-01-01 00:00:00 UTC


def test_a_run_without_windows() -> None:
    report = analyze_run(Run(name="r", source="s", windows=()))
    assert (report.run.name, report.run.source) == ("r", "s")
    sections = (report.ranks, report.windows, report.steps, report.groups, report.collectives)
    assert [len(rows) for rows in sections] == [0] * 5
    assert report.findings == []
    assert report.run.world_size is None
    assert report.totals.run.overlap_ratio is None
    assert report.totals.steady is None


def test_one_row_per_rank_in_order() -> None:
    """Rank 0: compute [0,10), communication [5,25): 5 of 20 hidden. Rank 1: all of 10 hidden."""
    report = report_of(
        {1: [kernel("a", 0, 50), nccl(5, 10)], 0: [kernel("a", 0, 10), nccl(5, 20), memcpy(30, 5)]}
    )
    assert [(row.rank, row.device, row.overlap_ratio) for row in report.ranks] == [(0, 0, 0.25), (1, 0, 1.0)]
    row = report.ranks[0]
    assert (row.window_ns, row.compute_ns, row.exposed_communication_ns) == (35_000, 10_000, 15_000)
    assert (row.exposed_memory_ns, row.idle_ns) == (5_000, 5_000)  # [25,30) idle
    assert (row.compute_kernels, row.communication_kernels, row.memory_operations) == (1, 1, 1)


def test_totals_weigh_by_time_and_are_no_mean_of_ratios() -> None:
    """15 of 30 us hidden over both ranks; the mean of 0.25 and 1.0 would be 0.625."""
    report = report_of({0: [kernel("a", 0, 10), nccl(5, 20)], 1: [kernel("a", 0, 50), nccl(5, 10)]})
    run = report.totals.run
    assert (run.communication_ns, run.overlap_ns, run.overlap_ratio) == (30_000, 15_000, 0.5)
    assert run.window_ns == 75_000  # 25 + 50


def test_devices_of_one_rank_are_rows_of_their_own() -> None:
    report = report_of({0: [kernel("a", 0, 10), nccl(5, 20), kernel("b", 100, 10, device=1)]})
    assert [(row.device, row.window_ns, row.overlap_ratio) for row in report.ranks] == [
        (0, 25_000, 0.25),
        (1, 10_000, None),
    ]


def two_windows() -> Run:
    """Rank 0 recorded [0,30) and, a second later, [1000000,1000060)."""
    later = 1_000_000
    return run_of_files(
        ("a.json", [step(1, 0, 30), kernel("a", 0, 20), nccl(10, 20)], job(0, 1)),
        ("b.json", [step(9, later, 70), kernel("a", later, 10), nccl(later + 20, 40)], job(0, 1)),
    )


def test_windows_of_a_rank_add_up_and_the_gap_is_nothing() -> None:
    """30 + 60 us of window; 10 of 20 and 0 of 40 hidden: 1/6. Idle is [10,20) of the second window alone."""
    report = analyze_run(two_windows())
    (rank,) = report.ranks
    assert rank.window_ns == 90_000
    assert rank.idle_ns == 10_000
    assert rank.overlap_ratio == 10 / 60
    assert [(w.window, w.file, w.window_ns, w.overlap_ratio) for w in report.windows] == [
        (0, "a.json", 30_000, 0.5),
        (1, "b.json", 60_000, 0.0),
    ]
    assert [w.started_ns for w in report.windows] == [0, 1_000_000_000]


def test_times_are_relative_to_the_first_event_of_any_rank() -> None:
    """Host rows count: the first is the operator of rank 1."""
    report = report_of(
        {0: [kernel("a", 50, 10)], 1: [cpu_op("x", Bare("40.500"), 1), kernel("a", 60, 10)]},
        metadata={"baseTimeNanoseconds": BASE_NS},
    )
    assert report.run.origin_ns == str(BASE_NS + 40_500)
    assert [w.started_ns for w in report.windows] == [9_500, 19_500]
    assert report.run.started_at == "2026-01-01T00:00:00+00:00"


def test_a_trace_that_begins_at_zero_has_no_date() -> None:
    assert report_of({0: [kernel("a", 5, 10)]}).run.started_at is None


def test_a_window_without_device_events_is_a_row_without_figures() -> None:
    report = report_of({0: [kernel("a", 0, 10)], 1: [cpu_op("x", 0, 10)]})
    assert [row.rank for row in report.ranks] == [0]
    row = report.windows[1]
    assert (row.rank, row.device, row.window_ns, row.started_ns, row.overlap_ratio) == (
        1,
        None,
        None,
        None,
        None,
    )


def test_on_the_cpu_the_device_is_called_cpu() -> None:
    report = report_of({0: [cpu_op("aten::mm", 0, 10), gloo("all_reduce", 5, 10)]})
    assert [(row.device, row.overlap_ratio) for row in report.ranks] == [("cpu", 0.5)]
    assert report.run.devices == {0: "cpu"}


def test_what_the_run_is() -> None:
    metadata: dict[str, Any] = {
        "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}],
        "host_name": "node1",
        "cuda_runtime_version": 12040,
    }
    report = report_of({0: [kernel("a", 0, 10)], 2: [kernel("a", 0, 10)]}, world_size=4, metadata=metadata)
    facts = report.run
    assert (facts.name, facts.backend, facts.world_size) == ("made", "nccl", 4)
    assert (facts.ranks, facts.missing_ranks) == ([0, 2], [1, 3])
    assert facts.rank_source == {0: "distributedInfo", 2: "distributedInfo"}
    assert facts.host == {0: "node1", 2: "node1"}
    assert facts.devices == {0: "NVIDIA H100", 2: "NVIDIA H100"}
    assert facts.versions == {"cuda runtime": "12040"}


def test_labels_of_the_call_go_before_those_of_the_collector() -> None:
    facts = {"format": {"name": "rankscope-manifest", "version": "1.0"}, "labels": {"a": "file", "b": "file"}}
    report = report_of(
        {0: [kernel("a", 0, 10)]},
        options=AnalyzeOptions(labels=(("a", "call"), ("c", "call"))),
        metadata={"rankscope": facts},
    )
    assert report.run.labels == {"a": "call", "b": "file", "c": "call"}


def test_a_row_per_communication_event_with_full_detail_alone() -> None:
    """The all-reduce [100,140) lies beside compute [110,120): 10 hidden, 30 exposed."""
    events = [
        kernel("a", 110, 10),
        nccl(100, 40, args=collective("allreduce", 8, 8, group="0", ranks="[0, 1]")),
        nccl(200, 0),
    ]
    assert report_of({0: events}).communications == []
    first, second = report_of({0: events}, options=AnalyzeOptions(detail="full")).communications
    assert (first.rank, first.device, first.window, first.step) == (0, 0, 0, None)
    assert (first.op, first.group, first.dtype, first.size_bytes) == ("all_reduce", "[0-1]", "float32", 32)
    assert (first.started_ns, first.duration_ns) == (0, 40_000)  # relative to the run's first event
    assert (first.exposed_ns, first.overlap_ratio) == (30_000, 0.25)
    assert (second.duration_ns, second.overlap_ratio) == (0, None)


def test_groups_over_all_ranks() -> None:
    args = collective("allreduce", 8, 8, group="0", ranks="[0, 1]", size=2)
    report = report_of({rank: [nccl(0, 10 + rank, args=args), kernel("a", 0, 5)] for rank in (0, 1)})
    (row,) = report.groups
    assert (row.group, row.ranks, row.op, row.count, row.size_bytes) == ("[0-1]", [0, 1], "all_reduce", 1, 32)
    assert (row.communication_ns, row.exposed_communication_ns) == (21_000, 11_000)
    assert row.overlap_ratio == 10 / 21


def test_coverage_of_the_run() -> None:
    """Of 40 us, 10 have size and operation, 30 the operation by name alone; 30 were launched in a step: none."""
    report = report_of({0: [nccl(0, 10, args=collective("allreduce", 8, 8)), nccl(20, 30), step(1, 0, 90)]})
    assert (report.coverage.sized, report.coverage.named, report.coverage.in_steps) == (0.25, 1.0, 0.0)


def test_without_step_markers_no_share_lies_in_steps() -> None:
    """Neither none nor all of it: there are no steps for it to lie in."""
    report = report_of({0: [kernel("a", 0, 10), nccl(5, 10)]})
    assert report.coverage.in_steps is None
    assert report.undefined["coverage.in_steps"] == "no step markers (ProfilerStep) in the files"


def test_devices_are_in_order_of_their_numbers() -> None:
    report = report_of({0: [kernel("a", 0, 10, device=device) for device in (10, 2, 0)]})
    assert [row.device for row in report.windows] == [0, 2, 10]
    assert [row.device for row in report.ranks] == [0, 2, 10]
