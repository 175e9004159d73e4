"""The recorded runs in sample_traces: every figure as its expected.json says, which plain arithmetic worked out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rankscope.pipeline import analyze
from support.gloo_answers import SAMPLES, load_script

NAMES = ("gloo_2rank_cap1", "gloo_2rank_cap25")
STEP_FIGURES = ("communication_ns", "overlap_ns", "exposed_communication_ns")

pytestmark = pytest.mark.skipif(
    not (SAMPLES / NAMES[0]).is_dir(), reason="sample_traces is part of the repository only"
)


def _expected(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((SAMPLES / name / "expected.json").read_text())
    return loaded


@pytest.mark.parametrize("name", NAMES)
def test_answers_are_what_the_script_works_out_and_keep_the_identity(name: str) -> None:
    expected = _expected(name)
    assert json.loads(json.dumps(load_script().answer_run(SAMPLES / name))) == expected["expect"]
    assert sorted(p.name for p in (SAMPLES / name).iterdir()) == ["expected.json", *expected["files"]]
    for rank in expected["expect"]["per_rank"].values():
        parts = ("compute_ns", "exposed_communication_ns", "idle_ns")
        assert sum(rank[part] for part in parts) == rank["window_ns"]


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_of_the_analysis(name: str) -> None:
    expect = _expected(name)["expect"]
    report = analyze(SAMPLES / name)
    assert (report.run.world_size, report.run.missing_ranks) == (2, [])
    assert [row.rank for row in report.ranks] == [0, 1]
    for row in report.ranks:
        wanted = dict(expect["per_rank"][str(row.rank)])
        assert row.overlap_ratio is not None
        assert round(row.overlap_ratio, 6) == wanted.pop("overlap_ratio")
        assert {key: getattr(row, key) for key in wanted} == wanted
    found = {(row.step, row.rank): {key: getattr(row, key) for key in STEP_FIGURES} for row in report.steps}
    found.pop((None, 0), None)
    found.pop((None, 1), None)
    assert found == {
        (int(step), int(rank)): wanted
        for step, ranks in expect["per_step"].items()
        for rank, wanted in ranks.items()
    }
    assert report.totals.steady is not None
    assert report.totals.steady.overlap_ratio is not None
    assert round(report.totals.steady.overlap_ratio, 6) == expect["steady_overlap_ratio"]


def test_layouts_by_hand() -> None:
    # A layer: 1024 x 1024 weights and 1024 biases = 1,049,600 elements of 4 bytes.
    # Cap 1 MiB: each layer's weight passes it. Cap 25 MiB = 26,214,400 bytes: six layers are 25,190,400, the bias of
    # the seventh does not reach it, its weight does: 7 x 1,049,600 = 7,347,200 elements, then the last layer.
    assert set(map(tuple, _expected(NAMES[0])["expect"]["bucket_elements"].values())) == {(1_049_600,) * 8}
    assert set(map(tuple, _expected(NAMES[1])["expect"]["bucket_elements"].values())) == {
        (7_347_200, 1_049_600)
    }


def test_the_samples_hold_no_host_and_stay_small() -> None:
    for name in NAMES:
        report = analyze(SAMPLES / name)
        assert set(report.run.host.values()) <= {None, ""}
    files = [p for p in SAMPLES.rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    assert sum(p.stat().st_size for p in files) < 3_000_000
    readme = (SAMPLES / "README.md").read_text()
    assert all(f"`{name}`" in readme for name in NAMES)
