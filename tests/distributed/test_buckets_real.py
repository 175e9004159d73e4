"""DDP buckets of real runs over gloo, in every way of using DDP that changes what is sent, and when."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rankscope.advise.ddp_layout import Gradient, rebuilt_layout
from rankscope.collector.demo import run_demo, run_ranks
from rankscope.model.intervals import covered_ns, union
from rankscope.model.report import Report
from rankscope.pipeline import analyze, analyze_fully, read_run

pytestmark = [pytest.mark.distributed, pytest.mark.torch]

JOB = Path(__file__).parents[1] / "support" / "bucket_job.py"
LINEAR = 66_048


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All runs of `support/bucket_job.py`, recorded once, by two ranks."""
    folder = tmp_path_factory.mktemp("runs")
    words = [str(folder / "run"), str(folder / "store")]
    commands = [[sys.executable, str(JOB), *words, str(rank)] for rank in range(2)]
    run_ranks(commands, [folder / f"log_{rank}" for rank in range(2)], timeout_seconds=120)
    return folder / "run"


@pytest.fixture
def report_of(runs: Path) -> Callable[[str], Report]:
    return lambda name: analyze(runs / name)


def sizes(report: Report, step: int, rank: int = 0) -> list[tuple[int, int | None]]:
    rows = [b for b in report.buckets if b.step == step and b.rank == rank]
    return [(b.index, b.size_bytes) for b in sorted(rows, key=lambda b: (b.layout, b.index))]


@pytest.mark.parametrize("name", ["plain", "view", "static", "no_sync", "metrics"])
def test_two_buckets_of_two_layers(report_of: Callable[[str], Report], name: str) -> None:
    """0.1 MiB = 104,857 bytes: 66,048 do not reach it, 132,096 do. An all-reduce of a metric is no bucket."""
    report = report_of(name)
    for step in report.run.steps:
        for rank in (0, 1):
            assert sizes(report, step, rank) == [(0, 2 * LINEAR), (1, 2 * LINEAR)]
    (layout,) = report.bucket_layouts
    assert layout.cap_mb == pytest.approx(0.1, rel=1e-5)
    assert layout.parameters_from == "collector"
    assert [bucket.parameters for bucket in layout.buckets] == [
        ["3.bias", "3.weight", "2.bias", "2.weight"],
        ["1.bias", "1.weight", "0.bias", "0.weight"],
    ]
    row = report.buckets[0]
    assert row.ready_ns is not None
    assert row.launched_ns is not None
    assert row.ready_ns <= row.launched_ns <= row.started_ns < row.finished_ns
    assert row.transfer_ns is not None
    assert row.wait_ns is not None
    assert row.wait_ns + row.transfer_ns == row.finished_ns - row.started_ns


def test_the_bitmap_of_used_parameters_is_no_bucket(report_of: Callable[[str], Report]) -> None:
    report = report_of("unused")
    for step in report.run.steps:
        assert sum(size or 0 for _, size in sizes(report, step)) == 2 * LINEAR
    assert {b.dtype for layout in report.bucket_layouts for b in layout.buckets} == {"float32"}
    assert len([c for c in report.collectives if c.op == "all_reduce"]) > len(report.buckets) / 2


def test_two_modules_have_layouts_of_their_own(report_of: Callable[[str], Report]) -> None:
    """Cap 0.01 MiB = 10,485 bytes: a bias of 512 bytes does not reach it, its weight does: one bucket per layer."""
    report = report_of("two")
    by_size = {tuple(b.size_bytes for b in layout.buckets) for layout in report.bucket_layouts}
    assert by_size == {(2 * LINEAR, 2 * LINEAR), (LINEAR, LINEAR)}
    for step in report.run.steps:
        assert [index for index, _ in sizes(report, step)] == [0, 1, 0, 1]
    assert report.advice is not None
    assert report.advice.verdict == "declined"
    assert "several DDP modules" in report.advice.reason


def test_a_compression_hook_sends_half(report_of: Callable[[str], Report]) -> None:
    report = report_of("hook")
    (layout,) = report.bucket_layouts
    assert [(b.size_bytes, b.dtype) for b in layout.buckets] == [(LINEAR, "float16"), (LINEAR, "float16")]
    assert layout.parameters_from == "collector"


def test_equal_buckets_without_a_calibration_get_no_advice(report_of: Callable[[str], Report]) -> None:
    advice: Any = report_of("plain").advice
    assert advice.verdict == "declined"
    assert "calibrate=True" in advice.reason


def test_the_layout_rule_is_that_of_two_ranks(runs: Path) -> None:
    """The collector's layout of every module that DDP has rebuilt, from its parameters, ready order and cap alone."""
    seen = 0
    for window in (window for folder in sorted(runs.iterdir()) for window in read_run(folder).windows):
        assert window.manifest is not None
        for facts in window.manifest.ddp:
            if not facts.has_rebuilt_buckets or facts.bucket_cap_bytes is None:
                continue
            ordered = [facts.parameters[i] for i in facts.ready_order]
            gradients = [
                Gradient(elements=p.elements, dtype=p.dtype, size_bytes=p.size_bytes) for p in ordered
            ]
            found = rebuilt_layout(gradients, (facts.bucket_cap_bytes,))
            assert [b.size_bytes for b in found] == [b.size_bytes for b in facts.buckets]
            members = [[facts.ready_order[i] for i in b.gradients] for b in found]
            assert members == [b.parameters for b in facts.buckets]
            seen += 1
    assert seen == 2 * 8


def test_ddp_counts_at_least_our_overlap(tmp_path: Path) -> None:
    """On the demo's run, DDP's overlap (first bucket's launch to last gradient, gaps included) bounds ours up to then.

    Ours of a whole step can be larger: the copies back out of the first buckets run beside the last ones.
    """
    run_demo(tmp_path)
    run = read_run(tmp_path)
    compared = 0
    for result in analyze_fully(run).results:
        window, table = result.events.window, result.events.table
        assert window.manifest is not None
        rows = result.communications.rows[result.buckets.index]
        compute = union(table.start_ns[result.events.compute], table.end_ns[result.events.compute])
        for iteration in window.manifest.ddp[0].iterations:
            gradients = result.buckets.gradients
            last = int(table.end_ns[gradients.rows[gradients.step == iteration.step]].max())
            mine = rows[result.buckets.step == iteration.step]
            transfers = union(table.start_ns[mine], np.minimum(table.end_ns[mine], last))
            ours = int(covered_ns(transfers.starts, transfers.ends, compute).sum())
            assert 0 < ours <= iteration.overlap_ns
            compared += 1
    assert compared >= 4
