"""Real runs with exact answers (../shared/traces): every figure to the nanosecond, whatever the order of files."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from rankscope.pipeline import analyze

GPU_SETS = (
    "amd_resnet_ddp_4rank",
    "many_allreduces_1of2",
    "megatron_tp2_2rank",
    "mi300_resnet_1of8",
    "nanogpt_before_after/after",
    "nanogpt_before_after/before",
    "nanogpt_h100_8rank",
    "nccl_ddp_buckets_1of2",
    "param_dlrm_8rank",
    "torchrec_resnet18_2rank",
    "torchrec_straggler_4rank",
)
FIGURES = (
    "compute_ns",
    "communication_ns",
    "overlap_ns",
    "exposed_communication_ns",
    "memory_ns",
    "exposed_memory_ns",
    "idle_ns",
    "communication_kernels",
    "compute_kernels",
)


def expected_of(folder: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((folder / "expected.json").read_text())
    return loaded


@pytest.mark.parametrize("name", GPU_SETS)
def test_every_figure_of_every_rank(shared_traces: Path, name: str) -> None:
    expected = expected_of(shared_traces / name)
    report = analyze(shared_traces / name)
    assert [row.rank for row in report.ranks] == sorted(int(rank) for rank in expected["ranks"])
    for row in report.ranks:
        wanted = expected["ranks"][str(row.rank)]
        assert {key: getattr(row, key) for key in FIGURES} == {key: wanted[key] for key in FIGURES}
        assert row.window_ns == wanted["span_ns"]
        assert row.overlap_ratio is not None
        assert round(row.overlap_ratio, 6) == wanted["overlap_ratio"]
    assert report.run.world_size == expected["world_size"]
    assert report.run.missing_ranks == expected.get("missing_ranks", report.run.missing_ranks)


def test_names_and_order_of_files_change_nothing(shared_traces: Path, tmp_path: Path) -> None:
    """The eight H100 files do not sort by rank; under random names they are the same run."""
    files = sorted((shared_traces / "nanogpt_h100_8rank").glob("*.json.gz"))
    names = [f"{i:02d}.json.gz" for i in range(len(files))]
    random.Random(3).shuffle(names)
    for file, name in zip(files, names, strict=True):
        shutil.copyfile(file, tmp_path / name)
    plain, shuffled = analyze(shared_traces / "nanogpt_h100_8rank"), analyze(tmp_path)
    assert plain.ranks == shuffled.ranks
    assert plain.steps == shuffled.steps
    assert plain.groups == shuffled.groups


@pytest.mark.parametrize("cap", ["cap1", "cap10", "cap100"])
def test_overlap_of_steady_steps_on_gloo(shared_traces: Path, cap: str) -> None:
    expected = expected_of(shared_traces / "gloo_ddp_caps")
    report = analyze(shared_traces / "gloo_ddp_caps" / cap)
    assert report.run.steps == [0, 1, 2, 3]
    assert report.run.steady_steps == [1, 2, 3]
    assert report.totals.steady is not None
    assert report.totals.steady.overlap_ratio == pytest.approx(expected["overlap_ratio"][cap], abs=0.0005)
    for row in report.ranks:
        assert row.overlap_ratio == pytest.approx(expected[f"whole_file_rank_{row.rank}"][cap], abs=0.00005)


def test_events_outside_steps_are_told_apart(shared_traces: Path) -> None:
    """INDEX.md: 20 of the 76 NCCL kernels of H100 rank 0 were launched before the window."""
    report = analyze(shared_traces / "nanogpt_h100_8rank", detail="full")
    mine = [row for row in report.communications if row.rank == 0]
    assert len(mine) == 76
    assert sum(row.step is None for row in mine) == 20
    assert report.totals.outside_steps is not None
    assert report.totals.steady is not None
    total = report.totals.run.communication_ns
    assert report.totals.outside_steps.communication_ns + report.totals.steady.communication_ns >= total
