"""DDP buckets: which all-reduces they are, and their times."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rankscope.model.report import BucketRow, Report
from rankscope.pipeline import analyze
from rankscope.testing.expected import ExpectedBucket
from rankscope.testing.synth import ddp_run, write_run
from support.trace_text import Row, collective, cpu_op, kernel, launch, nccl, step, write_ranks

EVALUATE = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"
ACCUMULATE = "torch::autograd::AccumulateGrad"


def elements_of(report: Report, *, steady: bool = True) -> list[list[int]]:
    """Elements of the buckets in index order, of each layout."""
    return [
        [(b.size_bytes or 0) // 4 for b in layout.buckets]
        for layout in report.bucket_layouts
        if layout.before_rebuild != steady
    ]


@pytest.mark.parametrize("name", ["amd_resnet_ddp_4rank", "nccl_ddp_buckets_1of2"])
def test_buckets_of_real_runs_in_order(shared_traces: Path, name: str) -> None:
    expected = json.loads((shared_traces / name / "expected.json").read_text())
    report = analyze(shared_traces / name)
    assert elements_of(report) == [expected["collectives"]["bucket_elements_in_launch_order"]]
    assert len(report.buckets) == 15 * len(report.run.ranks)
    for rank in report.run.ranks:
        for number in report.run.steps:
            mine = [b for b in report.buckets if (b.rank, b.step) == (rank, number)]
            assert [b.index for b in mine] == list(range(5))
            assert [b.launched_ns for b in mine] == sorted(b.launched_ns or 0 for b in mine)


@pytest.mark.parametrize("cap", ["cap1", "cap10", "cap100"])
def test_buckets_of_gloo_runs_in_order(shared_traces: Path, cap: str) -> None:
    expected = json.loads((shared_traces / "gloo_ddp_caps" / "expected.json").read_text())
    report = analyze(shared_traces / "gloo_ddp_caps" / cap)
    layouts = {
        layout.layout: [(b.size_bytes or 0) // 4 for b in layout.buckets] for layout in report.bucket_layouts
    }
    for number in (0, 1, 2, 3):
        mine = [b for b in report.buckets if b.rank == 0 and b.step == number]
        by_index = sorted(mine, key=lambda b: b.index)
        wanted = (
            expected["bucket_elements_step_0"]
            if number == 0
            else expected["bucket_elements_steps_1_to_3"][cap]
        )
        assert [(b.size_bytes or 0) // 4 for b in by_index] == wanted
        assert {tuple(layouts[b.layout]) for b in mine} == {tuple(wanted)}
        assert {b.steady for b in mine} == {number > 0}


def test_numbers_of_a_bucket_by_hand(shared_traces: Path) -> None:
    """Step 9, bucket 1 (6,822,912 float32) of the 4 MI300 ranks; times in us after 1106964744000 on the ranks' clocks.

    rank  host row   launch     kernel     duration
    0      596.625    649.496   2233.932   2347.724
    1     2062.048   2124.534   2224.563   2359.901
    2     1631.983   1706.986   2225.544   2348.084
    3     4192.491   4251.050   4266.759    324.362   <- shortest: transfer = 324.362

    On rank 0:
    host overhead = 649.496 - 596.625 = 52.871
    ready: the last kernel that the thread launched before 596.625 (launch at 570.669) ran 610.083 + 5.729 = 615.812
    queue = 2233.932 - max(615.812, 649.496) = 1584.436
    wait = 2347.724 - 324.362 = 2023.362
    compute beside it: 130 kernels, one after another, 1035.303 in all (summed from the file)
    exposed = 2347.724 - 1035.303 = 1312.421; ratio = 1035.303 / 2347.724
    bus bandwidth = 2 (4-1)/4 x 27,291,648 bytes / 324,362 ns
    """
    report = analyze(shared_traces / "amd_resnet_ddp_4rank")
    of_rank = {b.rank: b for b in report.buckets if b.step == 9 and b.index == 1}
    row = of_rank[0]
    assert row.size_bytes == 27_291_648
    assert row.host_overhead_ns == 52_871
    assert row.ready_ns is not None
    assert row.launched_ns is not None
    assert row.launched_ns - row.ready_ns == 649_496 - 615_812
    assert row.started_ns - row.launched_ns == 2_233_932 - 649_496
    assert row.queue_ns == 1_584_436
    assert row.finished_ns - row.started_ns == 2_347_724
    assert {rank: b.transfer_ns for rank, b in of_rank.items()} == dict.fromkeys(range(4), 324_362)
    assert [of_rank[r].wait_ns for r in range(4)] == [2_023_362, 2_035_539, 2_023_722, 0]
    assert [of_rank[r].host_overhead_ns for r in range(4)] == [52_871, 62_486, 75_003, 58_559]
    assert row.exposed_ns == 1_312_421
    assert row.overlap_ratio == 1_035_303 / 2_347_724
    assert row.bus_bandwidth_gbps == 1.5 * 27_291_648 / 324_362


def expected_fields(bucket: ExpectedBucket) -> dict[str, Any]:
    overhead = None
    if bucket.recorded_ns is not None and bucket.launched_ns is not None:
        overhead = bucket.launched_ns - bucket.recorded_ns
    launched = bucket.launched_ns if bucket.launched_ns is not None else bucket.operator_ns
    return {
        "size_bytes": bucket.size_bytes,
        "host_overhead_ns": overhead,
        "transfer_ns": bucket.transfer_ns,
        "exposed_ns": bucket.exposed_ns,
        "queue_ns": bucket.started_ns - max(bucket.ready_ns, launched),
        "wait_ns": bucket.finished_ns - bucket.started_ns - bucket.transfer_ns,
        "ready_before_start": bucket.started_ns - bucket.ready_ns,
        "duration": bucket.finished_ns - bucket.started_ns,
    }


def found_fields(row: BucketRow) -> dict[str, Any]:
    assert row.ready_ns is not None
    return {
        "size_bytes": row.size_bytes,
        "host_overhead_ns": row.host_overhead_ns,
        "transfer_ns": row.transfer_ns,
        "exposed_ns": row.exposed_ns,
        "queue_ns": row.queue_ns,
        "wait_ns": row.wait_ns,
        "ready_before_start": row.started_ns - row.ready_ns,
        "duration": row.finished_ns - row.started_ns,
    }


@pytest.mark.parametrize("backend", ["nccl", "rccl"])
@pytest.mark.parametrize("overlap", ["full", "partial", "none"])
def test_given_answers_of_synthetic_runs(tmp_path: Path, backend: Any, overlap: Any) -> None:
    scenario = ddp_run(ranks=3, overlap=overlap, backend=backend, straggler=(1, 3_000_000, "compute"))
    expected = write_run(scenario, tmp_path)
    report = analyze(tmp_path)
    wanted = {(b.step, b.rank, b.index): expected_fields(b) for b in expected.buckets}
    assert {(b.step, b.rank, b.index): found_fields(b) for b in report.buckets} == wanted


@pytest.mark.parametrize("overlap", ["full", "partial", "none"])
def test_given_answers_of_synthetic_gloo_runs(tmp_path: Path, overlap: Any) -> None:
    """Ready is the end of the last operator before the request: of the gradient's own AccumulateGrad at the latest."""
    expected = write_run(ddp_run(ranks=3, overlap=overlap, backend="gloo"), tmp_path)
    report = analyze(tmp_path)
    found = {(b.step, b.rank, b.index): b for b in report.buckets}
    assert set(found) == {(b.step, b.rank, b.index) for b in expected.buckets}
    for bucket in expected.buckets:
        row = found[bucket.step, bucket.rank, bucket.index]
        assert row.ready_ns is not None
        assert row.launched_ns is not None
        assert row.host_overhead_ns is None
        assert row.launched_ns == bucket.operator_ns + row.started_ns - bucket.started_ns
        assert bucket.ready_ns <= row.ready_ns + bucket.started_ns - row.started_ns <= bucket.operator_ns
        assert row.queue_ns == bucket.started_ns - bucket.operator_ns
        wanted = expected_fields(bucket)
        assert (row.transfer_ns, row.exposed_ns) == (wanted["transfer_ns"], wanted["exposed_ns"])


def test_step_before_the_rebuild_has_a_layout_of_its_own(tmp_path: Path) -> None:
    scenario = ddp_run(initial_transfer_ns=4_000_000)
    write_run(scenario, tmp_path)
    report = analyze(tmp_path)
    first, later = report.bucket_layouts
    assert (first.before_rebuild, later.before_rebuild) == (True, False)
    assert sum(b.size_bytes or 0 for b in later.buckets) == first.buckets[0].size_bytes
    assert {b.step for b in report.buckets if not b.steady} == {0}


def hooked(number: int, at: float, name: str, elements: int, dtype: str, *, inside: bool) -> list[Row]:
    """A collective at `at`, asked for inside (or outside) an AccumulateGrad row, of 10 us."""
    args = collective(name, elements, elements, group="0", ranks="[0, 1]", size=2, dtype=dtype)
    rows = [
        cpu_op("record_param_comms", at, 4, args={**args, "External id": number}),
        launch(number, at + 2),
        nccl(at + 5, 10, correlation=number, args={**args, "External id": number}),
    ]
    return [cpu_op(EVALUATE, at - 1, 6), cpu_op(ACCUMULATE, at - 0.5, 0.3), *rows] if inside else rows


def test_what_is_no_bucket(tmp_path: Path) -> None:
    """The used-parameter bitmap (int32), a broadcast, SyncBatchNorm and tensor parallelism outside the hook."""
    rows = [
        step(3, 0, 200),
        kernel("gemm", 1, 100, correlation=900),
        launch(900, 0.5),
        *hooked(1, 10, "allreduce", 512, "Float", inside=False),
        *hooked(2, 30, "allreduce", 4096, "Float", inside=True),
        *hooked(3, 50, "allreduce", 8192, "BFloat16", inside=True),
        *hooked(4, 70, "allreduce", 16, "Int", inside=True),
        *hooked(5, 90, "broadcast", 4096, "Float", inside=True),
        *hooked(6, 110, "allreduce", 2048, "Float", inside=False),
    ]
    report = analyze(write_ranks(tmp_path, {0: rows, 1: rows}))
    found = [(b.index, b.size_bytes) for b in report.buckets if b.rank == 0]
    assert found == [(0, 16_384), (1, 16_384)]
    assert [b.dtype for b in report.bucket_layouts[0].buckets] == ["float32", "bfloat16"]


def test_a_run_without_gradients_has_no_buckets(tmp_path: Path) -> None:
    rows = [step(3, 0, 200), *hooked(1, 10, "allreduce", 512, "Float", inside=False)]
    report = analyze(write_ranks(tmp_path, {0: rows, 1: rows}))
    assert report.buckets == []
    assert report.bucket_layouts == []
