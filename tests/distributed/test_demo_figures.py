"""The demo's run, recorded here and now: rankscope's figures against plain arithmetic, and against DDP's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rankscope.model.report import Report
from rankscope.pipeline import analyze
from support.gloo_answers import load_script

pytest.importorskip("torch", reason="the ranks train with torch")
pytestmark = pytest.mark.distributed

STEP_FIGURES = ("communication_ns", "overlap_ns", "exposed_communication_ns")


@pytest.fixture(scope="module")
def answers(demo_run: list[Path]) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(json.dumps(load_script().answer_run(demo_run[0].parent)))
    return loaded


@pytest.fixture(scope="module")
def report(demo_run: list[Path]) -> Report:
    return analyze(demo_run[0].parent)


def test_figures_are_those_of_plain_arithmetic(answers: dict[str, Any], report: Report) -> None:
    assert [row.rank for row in report.ranks] == [0, 1]
    for row in report.ranks:
        wanted = answers["per_rank"][str(row.rank)]
        assert row.overlap_ratio is not None
        assert round(row.overlap_ratio, 6) == wanted["overlap_ratio"]
        assert {key: getattr(row, key) for key in wanted if key != "overlap_ratio"} == {
            key: value for key, value in wanted.items() if key != "overlap_ratio"
        }
    assert report.run.steady_steps == [2, 3, 4, 5]
    for step in report.steps:
        if step.step is not None:
            wanted = answers["per_step"][str(step.step)][str(step.rank)]
            assert {key: getattr(step, key) for key in STEP_FIGURES} == wanted
    assert report.totals.steady is not None
    assert report.totals.steady.overlap_ratio is not None
    assert round(report.totals.steady.overlap_ratio, 6) == answers["steady_overlap_ratio"]


def test_buckets_are_those_of_ddp(answers: dict[str, Any], report: Report) -> None:
    # Measured on shared/traces/gloo_ddp_caps: three layers reach 10 MiB, two are left; 4 bytes an element
    assert set(map(tuple, answers["bucket_elements"].values())) == {(3_148_800, 3_148_800, 2_099_200)}
    found = {(row.step, row.rank, row.index): row.size_bytes for row in report.buckets}
    assert found == {
        (step, rank, index): size
        for step in (2, 3, 4, 5)
        for rank in (0, 1)
        for index, size in enumerate((12_595_200, 12_595_200, 8_396_800))
    }


def test_ddps_own_overlap_is_an_upper_bound(demo_run: list[Path]) -> None:
    """DDP counts from the first bucket's launch to the backward's end, gaps between transfers included.

    It leaves out what comes after: copying finished buckets into gradients while later ones are still on their way,
    which our figures count as compute. So ours is taken up to the last gradient here.
    """
    script = load_script()
    seen = 0
    for file in demo_run:
        trace, rows = script.read_rows(file)
        compute = script.find_compute(rows)
        for iteration in trace["rankscope"]["ddp"][0]["iterations"]:
            (step,) = [row for row in rows if row.name == f"ProfilerStep#{iteration['step']}"]
            inside = [row for row in rows if step.start <= row.start < step.end]
            last_gradient = max(row.end for row in inside if "AccumulateGrad" in row.name)
            transfers = script.merge(
                (row.start, min(row.end, last_gradient))
                for row in inside
                if row.name == "gloo:all_reduce" and row.start < last_gradient
            )
            ours = script.common(transfers, compute)
            assert 0 < ours <= iteration["overlap_ns"] + 20_000  # two clocks, read microseconds apart
            assert script.length(transfers) <= iteration["backward_communication_ns"]
            seen += 1
    # DDP publishes an iteration when the next one begins: the last of four recorded steps has none.
    assert seen == 2 * 3
