"""`rankscope analyze RUN --perfetto OUT`: all ranks on one clock, for a viewer."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from rankscope.testing.synth import ddp_run, write_run
from support.command import rankscope

# input 50 us, launch delay 5. forward 1000, backward 400 and 300; rank 1 computes 250 us longer. Rank 0 arrives at
# the first bucket at 1455 and has computed all at 1755, rank 1 at 1705 and 2005. Bucket 1: 1705 + 500 = 2205 on
# both; bucket 2 right after it: 2205 + 200 = 2405.
TINY: dict[str, Any] = {
    "buckets": (1_000, 2_000),
    "backward_ns": (400_000, 300_000),
    "transfer_ns": (500_000, 200_000),
    "forward_ns": 1_000_000,
    "optimizer_ns": 100_000,
    "input_ns": 50_000,
    "steps": 1,
}
CLOCK_AHEAD_NS = 5_000_000


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("perfetto") / "run"
    scenario = ddp_run(**TINY, straggler=(1, 250_000, "compute")).with_clocks({1: CLOCK_AHEAD_NS})
    write_run(scenario, folder, torch="2.8")
    return folder


@pytest.fixture(scope="module")
def trace(run: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    out = tmp_path_factory.mktemp("out") / "all.json.gz"
    done = rankscope("analyze", run, "--perfetto", out)
    assert done.returncode == 0
    assert f"wrote {out}" in done.stderr
    loaded: dict[str, Any] = json.loads(gzip.decompress(out.read_bytes()))
    return loaded


def events(trace: dict[str, Any], *phases: str) -> list[dict[str, Any]]:
    return [event for event in trace["traceEvents"] if event["ph"] in phases]


def first_arrival(trace: dict[str, Any]) -> float:
    """When rank 0 arrives at the first collective: 1455 us after the run's begin."""
    return float(min(event["ts"] for event in events(trace, "s")))


def test_an_arrow_joins_each_collective_over_the_ranks_on_one_clock(trace: dict[str, Any]) -> None:
    begin = first_arrival(trace)
    arrows = [(e["id"], e["ph"], e["pid"], round(e["ts"] - begin, 3)) for e in events(trace, "s", "t", "f")]
    # Bucket 1: rank 1 comes 1705 - 1455 = 250 us after rank 0. Bucket 2: both at 2205 - 1455 = 750.
    assert arrows[:2] == [(0, "s", 0, 0.0), (0, "f", 1, 250.0)]
    assert [(number, phase, ts) for number, phase, _, ts in arrows[2:]] == [(1, "s", 750.0), (1, "f", 750.0)]


def test_every_arrow_begins_and_ends_on_a_communication_kernel(trace: dict[str, Any]) -> None:
    kernels = {(e["pid"], e["tid"], e["ts"]) for e in events(trace, "X") if e["cat"] == "communication"}
    ends = {(e["pid"], e["tid"], e["ts"]) for e in events(trace, "s", "t", "f")}
    assert ends == kernels
    assert len(kernels) == 4


def test_the_kernels_of_a_collective_end_together(trace: dict[str, Any]) -> None:
    """750 and 500 us long, from 0 and 250; then 200 us on both. By the raw clocks rank 1 would be at 5250."""
    begin = first_arrival(trace)
    kernels = [e for e in events(trace, "X") if e["cat"] == "communication"]
    assert sorted((e["pid"], round(e["ts"] - begin, 3), e["dur"]) for e in kernels) == [
        (0, 0.0, 750.0),
        (0, 750.0, 200.0),
        (1, 250.0, 500.0),
        (1, 750.0, 200.0),
    ]


def test_a_counter_is_one_while_communication_is_exposed(trace: dict[str, Any]) -> None:
    """Rank 0: from 1755 to 2405, rank 1: from 2005 to 2405."""
    begin = first_arrival(trace)
    counts = [
        (e["pid"], round(e["ts"] - begin, 3), e["args"]["exposed"])
        for e in events(trace, "C")
        if e["name"].startswith("exposed communication")
    ]
    assert sorted(counts) == [(0, 300.0, 1), (0, 950.0, 0), (1, 550.0, 1), (1, 950.0, 0)]


def test_ranks_are_named_processes_and_nothing_lies_before_zero(trace: dict[str, Any]) -> None:
    names = {e["pid"]: e["args"]["name"] for e in events(trace, "M") if e["name"] == "process_name"}
    assert names == {0: "rank 0", 1: "rank 1"}
    assert min(e["ts"] for e in trace["traceEvents"] if "ts" in e) >= 0
    assert trace["otherData"]["origin_ns"].isdecimal()


def test_a_file_is_not_replaced_without_force(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "all.json"
    out.write_text("mine", encoding="utf-8")
    done = rankscope("analyze", run, "--perfetto", out)
    assert done.returncode == 2
    assert f"{out} exists already; give --force to replace it" in done.stderr
    assert out.read_text(encoding="utf-8") == "mine"
    assert rankscope("analyze", run, "--perfetto", out, "--force").returncode == 0
    assert len(json.loads(out.read_text(encoding="utf-8"))["traceEvents"]) > 10
    assert [path.name for path in tmp_path.iterdir()] == ["all.json"]


def test_a_name_that_no_viewer_knows_is_refused(run: Path, tmp_path: Path) -> None:
    done = rankscope("analyze", run, "--perfetto", tmp_path / "out.html")
    assert done.returncode == 2
    assert "should end with .json.gz or .json" in done.stderr


def test_the_view_of_the_ranks(run: Path, tmp_path: Path) -> None:
    done = rankscope("analyze", run, "--ranks")
    assert done.returncode == 0
    for title in ("Who the others wait for", "Clocks"):
        assert title in done.stdout
    # Rank 1's clock is 5 ms ahead of rank 0's.
    assert [line.split()[:3] for line in done.stdout.splitlines() if "5.00 ms" in line] == [
        ["1", "5.00", "ms"]
    ]
    refused = rankscope("analyze", run, "--ranks", "-o", tmp_path / "report.html")
    assert refused.returncode == 2
    assert "--ranks is a view for the terminal" in refused.stderr
